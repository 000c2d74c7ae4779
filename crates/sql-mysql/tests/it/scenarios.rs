//! Runs every file of tests/scenarios: statements and what they answer. `UPDATE=1` writes what came, to be read before it is kept.
//!
//! ```text
//! select 1;          a statement, up to the `;` at a line's end; `b: ` before it names another session
//! [1]                what it answers, up to an empty line
//! 1
//!
//! login b app        session b is from now on the user app
//! ```

use std::collections::HashMap;
use std::path::Path;

use crate::support::{World, run};

/// `login b app 10.0.0.1`: from now on session b is that user, newly come from there. An error is a line, else nothing is.
fn enter(world: &World, sessions: &mut HashMap<String, sql_mysql::Session>, login: &str) -> String {
    let words: Vec<&str> = login.split_whitespace().collect();
    let id = sessions.len() as u64 + 1;
    sessions.remove(words[0]);
    match world.session_of(words[1], words.get(2).unwrap_or(&"localhost"), id) {
        Ok(session) => {
            sessions.insert(words[0].to_owned(), session);
            String::new()
        }
        Err(error) => format!("error {} {}\n", error.code, error.message),
    }
}

/// The scenario as it should be read, given what came.
fn play(text: &str, seed: u64) -> String {
    let world = World::new(seed);
    let mut sessions: HashMap<String, sql_mysql::Session> = HashMap::new();
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if let Some(login) = line.strip_prefix("login ") {
            while lines.peek().is_some_and(|line| !line.trim().is_empty()) {
                lines.next();
            }
            out.push_str(&enter(&world, &mut sessions, login));
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut sql = line.to_owned();
        while !sql.trim_end().ends_with(';') {
            let Some(more) = lines.next() else { break };
            out.push_str(more);
            out.push('\n');
            sql = format!("{sql}\n{more}");
        }
        // What stands below is what was expected: it is said anew.
        while lines.peek().is_some_and(|line| !line.trim().is_empty()) {
            lines.next();
        }
        let (name, sql) = match sql.split_once(": ") {
            Some((name, rest)) if name.len() == 1 => (name.to_owned(), rest.to_owned()),
            _ => ("a".to_owned(), sql),
        };
        let id = sessions.len() as u64 + 1;
        let session = sessions.entry(name).or_insert_with(|| {
            let mut session = world.session(id);
            let _ = session.execute("create database if not exists test");
            session.use_database("test").expect("it was made");
            session
        });
        let sql = sql.trim().trim_end_matches(';');
        for answer in run(session, sql) {
            out.push_str(&answer);
            out.push('\n');
        }
    }
    out
}

#[test]
fn scenarios_answer_what_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    for (seed, file) in files.iter().enumerate() {
        let expected = std::fs::read_to_string(file).expect("a scenario");
        let came = play(&expected, seed as u64);
        if came == expected {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(file, &came).expect("it can be written");
            continue;
        }
        for (line, (expected, came)) in expected.lines().zip(came.lines()).enumerate() {
            if expected != came {
                wrong.push(format!("{}:{}\n  expected {expected}\n  came     {came}", file.display(), line + 1));
                break;
            }
        }
        if expected.lines().count() != came.lines().count() {
            wrong.push(format!("{}: another number of lines", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
