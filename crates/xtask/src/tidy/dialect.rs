//! The shared SQL core names no dialect: no SQL mode, no error number, no symbol of MySQL's or PostgreSQL's, in names or in strings.
//! Comments may.

use std::collections::BTreeMap;

use super::ratchet::Ratchet;
use super::source::{Token, Tree};
use crate::workspace::Workspace;

/// Crates that serve every dialect.
const CRATES: &[&str] = &["datum", "query"];

/// Parts of a name or a string, in lower case, that only one dialect has.
const WORDS: &[&str] = &["mysql", "mariadb", "sqlmode", "sql_mode", "postgres", "pg_catalog", "sqlstate"];

/// How a symbol of a dialect's errors begins.
const SYMBOLS: &[&str] = &["ER_", "WARN_", "ERRCODE_"];

/// Names of error constructors and codes: a number of four digits in their arguments or fields is a dialect's.
const ERRORS: &[&str] = &["SqlError", "Code", "code", "errno"];

const RATCHET: Ratchet = Ratchet { what: "words of a dialect", table: "dialect.rs", rows: &[] };

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut finds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for c in workspace.crates.iter().filter(|c| CRATES.contains(&c.name.as_str())) {
        for module in Tree::read(workspace, c)?.modules {
            let found = words(&module.tokens).into_iter().map(|(line, word)| format!("{}:{line}: {word}", module.file));
            finds.entry(c.name.clone()).or_default().extend(found);
        }
    }
    Ok(RATCHET.check(&finds))
}

fn words(tokens: &[Token]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let lower = token.text.to_lowercase();
        let is_symbol = SYMBOLS.iter().any(|s| token.text.trim_start_matches('"').starts_with(s));
        let is_word = is_symbol || WORDS.iter().any(|w| lower.contains(w));
        let is_number = token.text.len() == 4 && token.text.parse::<u16>().is_ok_and(|n| n >= 1000);
        let before = &tokens[at.saturating_sub(6)..at];
        let of_error = || before.iter().any(|t| ERRORS.contains(&t.text.as_str()));
        if is_word || is_number && of_error() {
            found.push((token.line, token.text.chars().take(40).collect()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::tree;
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree = tree(&[("s/lib.rs", text)]);
        words(&tree.modules[0].tokens).into_iter().map(|(_, word)| word).collect()
    }

    #[test]
    fn words_of_a_dialect_are_found() {
        assert_eq!(
            found("fn f(m: SqlMode) { \"as MySQL does\"; mysql_name() }"),
            ["SqlMode", "\"as MySQL does\"", "mysql_name"]
        );
        assert_eq!(
            found("SqlError { code: 1096, ..e }; Code::new(1064); error.code == 1146"),
            ["1096", "1064", "1146"]
        );
        assert_eq!(found("const ER_DUP_ENTRY: u16 = n();"), ["ER_DUP_ENTRY"]);
    }

    #[test]
    fn plain_code_and_comments_are_not() {
        assert!(found("/// As MySQL does.\nfn f() { let limit = 1024; order(ORDER_BY) } // ER_X").is_empty());
        assert!(found("#[cfg(test)] mod tests { const MYSQL: u8 = 1; }").is_empty());
    }
}
