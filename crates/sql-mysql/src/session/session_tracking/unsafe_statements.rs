//! Detection of unsafe statements, which may have other results on another server. The test looks at the words of the
//! text, as MySQL's parser does, whether or not they are evaluated.

use crate::parse::lexical::Words;
use crate::scalar::modes::SqlMode;

/// Unsafe functions; a parenthesis must follow the name.
const FUNCTIONS: [&str; 20] = [
    "aes_decrypt",
    "aes_encrypt",
    "found_rows",
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "load_file",
    "rand",
    "random_bytes",
    "release_all_locks",
    "release_lock",
    "row_count",
    "session_user",
    "sleep",
    "sysdate",
    "system_user",
    "user",
    "uuid",
    "uuid_short",
    "version",
];

/// Unsafe words that need no parenthesis.
const ALONE: [&str; 2] = ["current_user", "limit"];

/// System variables that are replicated with a statement.
const CARRIED: [&str; 18] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "character_set_client",
    "character_set_connection",
    "character_set_database",
    "character_set_server",
    "collation_connection",
    "collation_database",
    "collation_server",
    "foreign_key_checks",
    "identity",
    "last_insert_id",
    "lc_time_names",
    "pseudo_thread_id",
    "sql_auto_is_null",
    "time_zone",
    "timestamp",
    "unique_checks",
];

pub fn is_unsafe(text: &str, mode: SqlMode) -> bool {
    let among = |list: &[&str], word: &str| list.iter().any(|known| known.eq_ignore_ascii_case(word));
    let mut words = Words::new(text, mode).peekable();
    while let Some(word) = words.next() {
        if let Some(variable) = word.strip_prefix("@@") {
            let name = ["session.", "local.", "global."].iter().find_map(|scope| {
                variable
                    .get(..scope.len())
                    .filter(|head| head.eq_ignore_ascii_case(scope))
                    .map(|head| &variable[head.len()..])
            });
            if !among(&CARRIED, name.unwrap_or(variable)) {
                return true;
            }
            continue;
        }
        if among(&ALONE, word) || (words.peek() == Some(&"(") && among(&FUNCTIONS, word)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_unsafe_by_its_words_and_not_by_what_stands_in_quotes() {
        for yes in [
            "SELECT uuid ()",
            "select 1 Limit 1",
            "SELECT @@sql_mode",
            "SELECT @@global.sql_mode",
            "DO RAND(1)",
            "select current_user",
            "SELECT a.b, SLEEP(0)",
        ] {
            assert!(is_unsafe(yes, SqlMode::NONE), "{yes}");
        }
        for no in [
            "SELECT 'uuid()'",
            "SELECT `limit`",
            "SELECT uuid",
            "SELECT @@session.time_zone",
            "SELECT 1 -- limit",
            "SELECT @limit",
            "SELECT t.rand",
            "SELECT NOW()",
            "SELECT /* limit */ 1",
        ] {
            assert!(!is_unsafe(no, SqlMode::NONE), "{no}");
        }
    }
}
