//! A database on a simulated disk, and sessions whose results are lines as psql shows them without alignment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::{Engine, Options};
use os::{Folder, SimClock, SimFolder};
use query::exec::instance::Instance;
use sql_postgres::error::PgError;
use sql_postgres::instance::database::Database;
use sql_postgres::session::{Login, More, Outcome, Script, Session};

pub struct World {
    folder: Arc<SimFolder>,
    pub db: Arc<Database>,
    pids: u32,
}

fn open(folder: &Arc<SimFolder>) -> Arc<Database> {
    let pager = pager::Options {
        frame_bytes: 2048 * 4096,
        ring_bytes: 4 << 20,
        segment_bytes: 8 << 20,
        checkpoint_distance: 32 << 20,
        ..pager::Options::default()
    };
    let clock = Arc::new(SimClock::new(1_700_000_000_000));
    let options = Options { pager, random: 7, ..Options::default() };
    let engine = Engine::open(options, folder.clone() as Arc<dyn Folder>, clock).expect("the engine opens");
    let instance = Arc::new(Instance::open(engine, &[]).expect("the catalog loads"));
    Database::open(instance).expect("the database opens")
}

impl World {
    pub fn new() -> World {
        let folder = SimFolder::new(7);
        let db = open(&folder);
        World { folder, db, pids: 0 }
    }

    pub fn session(&mut self) -> Client {
        self.pids += 1;
        let (pid, connection_id) = (self.pids, self.pids.into());
        let (role, database) = ("postgres".to_owned(), "postgres".to_owned());
        let login = Login { role, database, pid, connection_id, ..Login::default() };
        Client(Session::new(&self.db, login).expect("the session begins"))
    }

    /// Waits until the WAL is durable as far as the client's replies need, and opens the folder as it looks after a power cut.
    pub fn crash(self, client: Client) -> World {
        let lsn = client.0.durability_lsn();
        self.db.engine().durable().request(lsn);
        self.db.engine().durable().wait(lsn);
        let folder = self.folder.crash();
        drop(client);
        let db = open(&folder);
        World { folder, db, pids: self.pids }
    }
}

pub struct Client(pub Session);

fn shown(error: &PgError) -> String {
    let mut line = format!("{}: {}", error.state, error.message);
    for (label, text) in [("DETAIL", &error.detail), ("HINT", &error.hint), ("CONTEXT", &error.context)] {
        if let Some(text) = text {
            line.push_str(&format!("\n{label}:  {text}"));
        }
    }
    line
}

impl Client {
    /// Runs a text of the simple protocol and returns the lines of its results.
    pub fn run(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if let Err(error) = self.script(text, &mut lines) {
            self.notices(&mut lines);
            lines.extend(format!("ERROR:  {}", shown(&error)).lines().map(str::to_owned));
        }
        lines
    }

    /// Runs a text of the simple protocol and returns its error.
    pub fn script_error(&mut self, text: &str) -> Option<PgError> {
        self.script(text, &mut Vec::new()).err()
    }

    /// Runs each line of a text by itself.
    pub fn lines(&mut self, text: &str) -> Vec<String> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).flat_map(|line| self.run(line)).collect()
    }

    fn notices(&mut self, lines: &mut Vec<String>) {
        for notice in self.0.take_notices() {
            lines.push(format!("{}:  {}", notice.severity, shown(&notice.error)));
        }
    }

    fn script(&mut self, text: &str, lines: &mut Vec<String>) -> Result<(), PgError> {
        let mut script = self.0.simple(text)?;
        while let Some(outcome) = self.0.next_of(&mut script)? {
            self.outcome(outcome, lines)?;
        }
        Ok(())
    }

    pub fn outcome(&mut self, outcome: Outcome, lines: &mut Vec<String>) -> Result<(), PgError> {
        match outcome {
            Outcome::Empty => {}
            Outcome::Done { tag } => {
                self.notices(lines);
                lines.push(tag);
            }
            Outcome::Rows(mut result) => loop {
                let mut bytes = Vec::new();
                let more = result.write_rows(&mut self.0, &mut bytes, 1 << 20);
                lines.extend(rows(&bytes));
                self.notices(lines);
                match more? {
                    More::Rows => {}
                    More::End { tag } if tag.starts_with("SELECT") || tag == "SHOW" => break,
                    More::End { tag } => {
                        lines.push(tag);
                        break;
                    }
                    More::PortalSuspended => {
                        lines.push("portal suspended".to_owned());
                        break;
                    }
                }
            },
            Outcome::CopyOut(mut copy) => loop {
                let mut bytes = Vec::new();
                let more = copy.write(&mut self.0, &mut bytes, 1 << 20)?;
                lines.extend(messages(&bytes).map(|body| String::from_utf8_lossy(body).trim_end().to_owned()));
                if let More::End { tag } = more {
                    lines.push(tag);
                    break;
                }
            },
            Outcome::CopyIn { .. } => lines.push("copy in".to_owned()),
            Outcome::Suspended => lines.push("suspended".to_owned()),
            Outcome::PortalSuspended => lines.push("portal suspended".to_owned()),
        }
        Ok(())
    }

    /// Runs COPY FROM STDIN with this input.
    pub fn copy(&mut self, text: &str, input: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let done = (|| {
            let mut script = self.0.simple(text)?;
            match self.0.next_of(&mut script)? {
                Some(Outcome::CopyIn { .. }) => {}
                _ => return Ok(()),
            }
            for piece in input.as_bytes().chunks(7) {
                self.0.copy_data(piece)?;
            }
            let outcome = self.0.copy_done()?;
            self.outcome(outcome, &mut lines)
        })();
        if let Err(error) = done {
            lines.extend(format!("ERROR:  {}", shown(&error)).lines().map(str::to_owned));
        }
        lines
    }
}

/// The bodies of messages.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?) as usize;
        let body = &bytes[5..1 + length];
        bytes = &bytes[1 + length..];
        Some(body)
    })
}

/// The rows of DataRow messages.
fn rows(bytes: &[u8]) -> Vec<String> {
    let row = |body: &[u8]| {
        let (mut values, mut at) = (Vec::new(), 2);
        while at < body.len() {
            let length = i32::from_be_bytes(body[at..at + 4].try_into().expect("a length"));
            at += 4;
            let end = at + usize::try_from(length).unwrap_or(0);
            values.push(String::from_utf8_lossy(&body[at..end]).into_owned());
            at = end;
        }
        values.join("|")
    };
    messages(bytes).map(row).collect()
}

/// Compares lines, but for spaces around them.
pub fn check(found: Vec<String>, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let found: Vec<&str> =
        found.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(found, expected, "\n{}", found.join("\n"));
}

/// Plays a recorded session: lines `> statement`, each followed by PostgreSQL 16's answer (without "Failing row contains").
pub fn play(client: &mut Client, recorded: &str) {
    let mut wrong = Vec::new();
    for part in recorded.strip_prefix("> ").expect("a statement").split("\n> ") {
        let (statement, answer) = part.split_once('\n').unwrap_or((part, ""));
        let answer: Vec<&str> = answer.lines().filter(|line| !line.is_empty()).collect();
        let found = client.run(statement);
        let found: Vec<&str> = found.iter().flat_map(|line| line.lines()).filter(|line| !line.is_empty()).collect();
        if found != answer {
            wrong.push(format!("> {statement}\n  found    {found:?}\n  expected {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Begins a statement that has to wait, without a thread, and counts its wake-ups. The script is to be kept until it is resumed.
pub fn suspend(client: &mut Client, text: &str) -> (Script, Arc<AtomicUsize>) {
    let mut script = client.0.simple(text).expect("it parses");
    client.0.allow_suspension();
    let outcome = client.0.next_of(&mut script);
    assert!(matches!(outcome, Ok(Some(Outcome::Suspended))), "{text}");
    (script, woken(client))
}

/// Counts the wake-ups of a suspended statement from now on.
pub fn woken(client: &mut Client) -> Arc<AtomicUsize> {
    let wakes = Arc::new(AtomicUsize::new(0));
    let count = wakes.clone();
    client.0.when_ready(Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    }));
    wakes
}

/// Resumes the statement and returns the lines of its result.
pub fn resumed(client: &mut Client) -> Vec<String> {
    let mut lines = Vec::new();
    let outcome = client.0.resume();
    if let Err(error) = outcome.and_then(|outcome| client.outcome(outcome, &mut lines)) {
        lines.push(format!("{}: {}", error.state, error.message));
    }
    lines
}
