//! Statements that a PostgreSQL 16 server was asked about: both grammars accept and refuse the same ones, with the same message at the same place (SY-6).
//!
//! scripts/postgres_corpus.py writes the files. `SYNTAX_CORPUS` names another folder of them.

use std::path::{Path, PathBuf};

use syntax::postgres::{Problem, parse_script};

/// Messages with SQLSTATE 42601 that PostgreSQL's analysis has, not its grammar.
const ANALYSIS: &[&str] = &[
    "cannot insert multiple commands",
    "DEFAULT is not allowed in this context",
    "VALUES lists must all be the same length",
    "SELECT * with no tables specified is not valid",
    "WITH query is not recursive",
    "INSERT has more",
    "each UNION query must have",
    "each INTERSECT query must have",
    "each EXCEPT query must have",
    "subquery must return only one column",
    "subquery has too many columns",
    "unnamed XML element value must be a column reference",
    "format requires a parameter",
    "a column definition list is",
    "unequal number of entries in row expressions",
    "INTO is only allowed",
    "SELECT ... INTO",
    "number of columns does not match",
    "source for a multiple-column UPDATE",
    "column alias list",
    "sequence option",
    "ON CONFLICT DO UPDATE requires",
    "WITH ORDINALITY cannot",
    "improper qualified name",
    "unreachable WHEN clause",
    "non-integer constant in",
];

/// Messages that PostgreSQL's execution has and this grammar has at once.
const EARLY: &[&str] = &[
    "cannot specify both",
    "misplaced",
    "multiple COLLATE clauses",
    "multiple DEFERRABLE/NOT DEFERRABLE clauses",
    "multiple INITIALLY IMMEDIATE/DEFERRED clauses",
    "constraint declared INITIALLY DEFERRED",
    "column names cannot be included in GRANT/REVOKE ROLE",
];

/// Texts about whose places both differ, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("u&", "PostgreSQL resolves the escapes of strings and names before it judges their places"),
    ("between between", "PostgreSQL's grammar takes no expression that begins with BETWEEN there"),
    ("with time", "PostgreSQL's lexer makes one keyword of WITH before TIME"),
    ("create schema if not exists s create table t (a )", "a table of a schema is none of a query"),
    ("revoke select option", "PostgreSQL's grammar tells a privilege from the name of an option later"),
    ("revoke all option", "PostgreSQL's grammar tells ALL from the name of an option later"),
    ("column if not in", "PostgreSQL's grammar takes IF for a name only before a type"),
    ("t (a [", "PostgreSQL's grammar reads a subscript there"),
];

pub(super) struct Case {
    /// SQLSTATE, position and message of the server's error.
    pub(super) error: Option<(String, usize, String)>,
    pub(super) text: String,
}

fn unescaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next().unwrap() {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            },
            letter => letter,
        });
    }
    out
}

pub(super) fn cases() -> Vec<Case> {
    let folder = std::env::var_os("SYNTAX_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus_postgres"), PathBuf::from);
    let mut cases = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        for line in std::fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            let (answer, text) = line.split_once('\t').unwrap();
            let mut parts = answer.splitn(3, ' ');
            let error = (answer != "+").then(|| {
                let state = parts.next().unwrap().to_owned();
                let position = parts.next().unwrap().parse().unwrap();
                (state, position, unescaped(parts.next().unwrap()))
            });
            cases.push(Case { error, text: unescaped(text) });
        }
    }
    cases
}

/// Whether the error is of the grammar.
fn is_of_grammar(state: &str, message: &str) -> bool {
    state == "42601" && !ANALYSIS.iter().any(|start| message.starts_with(start))
}

#[test]
fn statements_are_accepted_and_refused_as_by_postgresql() {
    let (mut all, mut refused, mut unread) = (0, 0, 0);
    let mut differences = Vec::new();
    for Case { error, text } in cases() {
        all += 1;
        let found = parse_script(&text, &|| false).map_err(|error| {
            let position = error.position().map_or(0, |at| text[..at].chars().count() + 1);
            (error.problem.clone(), error.state(), position, error.message(&text))
        });
        let said = match (&found, &error) {
            (Err((Problem::Unsupported(_), ..)), _) => {
                unread += 1;
                continue;
            }
            (Err((_, _, _, message)), _) if EARLY.iter().any(|start| message.starts_with(start)) => {
                unread += 1;
                continue;
            }
            (Ok(_), None) => continue,
            (Ok(_), Some((state, _, message))) if !is_of_grammar(state, message) => continue,
            (Ok(_), Some((_, position, message))) => format!("accepted, not refused at {position}: {message}"),
            (Err((_, state, position, message)), Some((their_state, their_position, their_message)))
                if state == their_state && message == their_message && position == their_position =>
            {
                refused += 1;
                continue;
            }
            (Err((_, state, position, message)), theirs) => {
                format!("{state} at {position}: {message}; the server: {theirs:?}")
            }
        };
        let lower = text.to_lowercase();
        if !EXCEPTIONS.iter().any(|(part, _)| lower.contains(part)) {
            differences.push(format!("{text:?}: {said}"));
        }
    }
    println!("{all} statements, {refused} refused, {unread} refused by name");
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
