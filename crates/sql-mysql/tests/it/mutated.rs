//! Statements of the scenarios, damaged: whatever becomes of them, they are planned or refused, and nothing panics. A small and always equal part of what `make fuzz` looks for.

use std::path::Path;

use stdx::prng::Prng;

use crate::support::World;

const SEED: u64 = 20_261_121;
const ROUNDS: usize = 8000;

/// The statements of all scenarios, without what they answer.
fn statements() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("a scenario");
        for block in text.split("\n\n").filter(|block| !block.starts_with(['#', '\n'])) {
            let Some(end) = block.find(";\n").or_else(|| block.ends_with(';').then(|| block.len() - 1)) else {
                continue;
            };
            let statement = &block[..end];
            let statement = match statement.split_once(": ") {
                Some((name, rest)) if name.len() == 1 => rest,
                _ => statement,
            };
            found.push(statement.to_owned());
        }
    }
    assert!(found.len() > 1000, "the scenarios are read");
    found
}

/// Words, numbers, quoted texts and signs.
fn pieces(statement: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut quote = None;
    for letter in statement.chars() {
        let joins = match (quote, pieces.last().and_then(|piece| piece.chars().last())) {
            (Some(_), _) => true,
            (None, Some(last)) => {
                (letter.is_alphanumeric() || letter == '_') && (last.is_alphanumeric() || last == '_')
            }
            (None, None) => false,
        };
        match pieces.last_mut() {
            Some(piece) if joins => piece.push(letter),
            _ => pieces.push(letter.to_string()),
        }
        quote = match quote {
            Some(open) if open == letter => None,
            None if matches!(letter, '\'' | '"' | '`') => Some(letter),
            other => other,
        };
    }
    pieces
}

const ODD: &[&str] = &[
    "",
    "(",
    ")",
    ",",
    "'",
    "\"",
    "`",
    ";",
    "--",
    "/*",
    "*/",
    "/*!",
    "?",
    "@",
    "@@",
    ".",
    "*",
    "NULL",
    "-",
    "0",
    "-1",
    "18446744073709551616",
    "1e400",
    "''",
    "'\\",
    "0x",
    "x'0'",
    "b'2'",
    "_utf8mb4",
    "\u{1f40b}",
    "\0",
    "select",
    "from",
    "(select 1)",
    "default",
    "interval",
    "over ()",
    "99999999999999999999999999999999999999999999999999999999999999999999999999",
    ":=",
    "->>",
    "$",
    "{",
    "}",
    "limit",
    "using",
    "with",
    "as",
    "in",
];

fn damaged(random: &mut Prng, from: &[Vec<String>]) -> String {
    let pick = |random: &mut Prng, count: usize| random.below(count as u64) as usize;
    let mut pieces = from[pick(random, from.len())].clone();
    for _ in 0..1 + random.below(4) {
        let at = pick(random, pieces.len().max(1));
        let other = &from[pick(random, from.len())];
        match random.below(8) {
            _ if pieces.is_empty() => pieces.clone_from(other),
            0 => drop(pieces.remove(at)),
            1 => pieces.insert(at, pieces[at].clone()),
            2 => pieces[at] = other[pick(random, other.len())].clone(),
            3 => pieces.insert(at, ODD[pick(random, ODD.len())].to_owned()),
            4 => pieces[at] = ODD[pick(random, ODD.len())].to_owned(),
            5 => {
                let with = pick(random, pieces.len());
                pieces.swap(at, with);
            }
            6 => {
                let start = pick(random, other.len());
                pieces.splice(at..at, other[start..].iter().take(12).cloned());
            }
            _ => pieces.truncate(at),
        }
    }
    pieces.concat()
}

/// All tables and views that the scenarios make under names that do not clash: each in its own database would know too few of the others' names.
fn furnished(world: &World, statements: &[String]) -> sql_mysql::Session {
    let mut session = world.session(1);
    session.execute("create database test").expect("new");
    session.use_database("test").expect("it was made");
    for statement in statements {
        let word = statement.trim_start().get(..12).unwrap_or("").to_ascii_lowercase();
        if word.starts_with("create table") || word.starts_with("create view") {
            let _ = session.execute(statement);
        }
    }
    session
}

#[test]
fn damaged_statements_are_planned_or_refused() {
    let statements = statements();
    let world = World::new(SEED);
    let mut session = furnished(&world, &statements);
    let from: Vec<Vec<String>> =
        statements.iter().map(|statement| pieces(statement)).filter(|p| !p.is_empty()).collect();
    let mut random = Prng::new(SEED);
    let mut planned = 0;
    for round in 0..ROUNDS {
        let text = damaged(&mut random, &from);
        // Without the text a panic says nothing.
        let came = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut rest = &text[..];
            while !rest.is_empty() {
                let (one, behind) = session.split(rest);
                planned += usize::from(session.prepare(one).is_ok());
                rest = behind;
            }
        }));
        assert!(came.is_ok(), "seed {SEED}, round {round}: {text}");
    }
    assert!(planned > ROUNDS / 20, "{planned} of {ROUNDS} were planned: the damage is too great to find much");
}
