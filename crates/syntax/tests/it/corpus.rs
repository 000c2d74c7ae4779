//! Statements that a MySQL 9.7 server was asked about: both grammars accept or refuse the same ones, and name the same place in a refused one (SY-6).
//!
//! scripts/syntax_corpus.py writes the files. `SYNTAX_CORPUS` names another folder of them.

use std::path::{Path, PathBuf};

use syntax::{Mode, Problem, parse};

/// Statements about which both differ, by a text that they contain in lower case, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("returning", "RETURNING is Beluga's own, so it is no alias without AS"),
    ("sequence", "CREATE SEQUENCE is AliSQL's"),
    ("flush hosts", "gone from MySQL 9"),
    (", hosts", "gone from MySQL 9"),
    ("show slave", "gone from MySQL 9"),
    ("show master", "gone from MySQL 9"),
    ("master_bind", "reserved in MySQL 8"),
    ("master_ssl_verify_server_cert", "reserved in MySQL 8"),
    ("vector", "a type of MySQL 9"),
    ("drop library", "a statement of MySQL 9"),
    ("sql_tsi_year", "a synonym of the keyword YEAR, of which only the unit is known"),
    ("call adddate()", "synonyms of keywords, called as procedures"),
    ("call subdate()", "synonyms of keywords, called as procedures"),
    ("call session_user()", "synonyms of keywords, called as procedures"),
    ("call system_user()", "synonyms of keywords, called as procedures"),
    ("charset k utf8mb4", "MySQL refuses the character set before it reads on"),
    ("charset charset cp1251", "MySQL refuses the character set before it reads on"),
    ("collate concat utf8mb4_bin", "MySQL refuses the collation before it reads on"),
    ("format = xml", "MySQL refuses the format before it reads on"),
    ("from json_table ( '[1]'", "MySQL asks for the alias before it reads on"),
    ("update json_table", "MySQL refuses the table before it reads on"),
    ("set a0 . id = b 1", "MySQL refuses the name before it reads on"),
    ("dumpfile into", "MySQL refuses the variable before it reads on"),
    ("low_priority write", "gone from MySQL 9"),
    ("group by cube", "of MySQL 9"),
    ("sql_tsi_", "synonyms of keywords, of which only the units are known"),
    ("create view v as select 1 into @a", "MySQL's grammar takes INTO of a view and refuses it later"),
    ("select 1 union select 2 into @a into @a", "MySQL's grammar takes a second INTO and refuses it later"),
    (
        "select 1 union select 2 union select 3 into @a into @a",
        "MySQL's grammar takes a second INTO and refuses it later",
    ),
    ("select 1  into outfile", "MySQL's grammar takes a second INTO and refuses it later"),
    ("select 1 into @a, @b  from t", "MySQL's grammar takes a second INTO and refuses it later"),
    ("character set utf8mb4  character set", "MySQL's grammar takes the second for an alias"),
    ("character set utf8mb4 character set", "MySQL's grammar takes the second for an alias"),
    ("not enforced enforced", "MySQL takes several words about a CHECK"),
    (") into 1", "MySQL's grammar takes a name for a variable of a stored program"),
    ("{ t oj", "MySQL's grammar tells the ODBC escape apart by its first word"),
];

/// Keywords of MySQL 9, which are names to MySQL 8.
const LATER_KEYWORDS: &[&str] = &[
    "absent",
    "allow_missing_files",
    "assign_gtids_to_anonymous_transactions",
    "auto_refresh",
    "duality",
    "external",
    "file_format",
    "file_name",
    "file_pattern",
    "file_prefix",
    "files",
    "guided",
    "header",
    "library",
    "manual",
    "materialized",
    "parallel",
    "parameters",
    "qualify",
    "relational",
    "require_table_primary_key_check",
    "sets",
    "strict_load",
    "tablesample",
    "validate",
    "verify_key_constraints",
];

fn is_exception(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = || text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    EXCEPTIONS.iter().any(|(part, _)| text.contains(part))
        || words().any(|word| LATER_KEYWORDS.iter().any(|known| word.starts_with(known)))
}

struct Case {
    /// None: accepted. The byte that the server names, if it is known.
    refused: Option<Option<usize>>,
    text: String,
}

fn unescaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        out.push(match letters.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('0') => '\0',
            other => other.unwrap(),
        });
    }
    out
}

fn cases() -> Vec<(String, Case)> {
    let folder = std::env::var_os("SYNTAX_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"), PathBuf::from);
    let mut cases = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let origin = path.file_stem().unwrap().to_string_lossy().into_owned();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let (mark, text) = line.split_once(' ').unwrap();
            let refused = mark.strip_prefix('-').map(|at| at.parse().ok());
            cases.push((origin.clone(), Case { refused, text: unescaped(text) }));
        }
    }
    cases
}

#[test]
fn statements_are_accepted_and_refused_as_by_mysql() {
    let (mut all, mut unread, mut refused, mut elsewhere) = (0, 0, 0, 0);
    let mut differences = Vec::new();
    for (origin, Case { refused: verdict, text }) in cases() {
        all += 1;
        let found = parse(&text, Mode::default()).map_err(|error| (error.problem, error.at));
        let differs = match (&found, verdict) {
            (Ok(_), None) => false,
            (Err((Problem::Syntax, _)), None) => true,
            (Err(_), None) => false,
            (Ok(_), Some(_)) => true,
            (Err((Problem::Syntax, at)), Some(place)) => {
                refused += 1;
                if place.is_some_and(|place| place != *at) {
                    elsewhere += 1;
                    if std::env::var_os("SYNTAX_PLACES").is_some() {
                        println!("PLACE {at} {place:?} {text:?}");
                    }
                }
                false
            }
            // What follows the name of a statement or clause that is not served is not read.
            (Err(_), Some(_)) => {
                unread += 1;
                if std::env::var_os("SYNTAX_PLACES").is_some() {
                    println!("UNREAD {text:?} {found:?}");
                }
                false
            }
        };
        if differs && !is_exception(&text) {
            let said = match found {
                Ok(_) => "taken".to_owned(),
                Err((_, at)) => {
                    format!("refused at {:?}", text.get(at..).unwrap_or("?").chars().take(30).collect::<String>())
                }
            };
            let mark = if verdict.is_some() { "-" } else { "+" };
            differences.push(format!("{mark} {origin}: {text:?} is {said}"));
        }
    }
    println!("{all} statements, {refused} refused ({elsewhere} elsewhere), {unread} unread");
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
