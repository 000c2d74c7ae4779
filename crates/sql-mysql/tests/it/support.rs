//! A database on a simulated disk.

use std::sync::Arc;

use engine::{Engine, Options};
use os::{Folder, SimClock, SimFolder};
use sql_mysql::batch::Batch;
use sql_mysql::error::SqlError;
use sql_mysql::value::Value;
use sql_mysql::{Database, Login, Outcome, Session};

pub struct World {
    pub folder: Arc<SimFolder>,
    pub engine: Arc<Engine>,
    pub db: Arc<Database>,
}

fn options(frames: u64) -> Options {
    let pager = pager::Options {
        frame_bytes: frames * 4096,
        ring_bytes: 4 << 20,
        segment_bytes: 8 << 20,
        checkpoint_distance: 32 << 20,
        ..pager::Options::default()
    };
    Options { pager, random: 7, ..Options::default() }
}

impl World {
    pub fn new(seed: u64) -> World {
        World::on(SimFolder::new(seed))
    }

    pub fn on(folder: Arc<SimFolder>) -> World {
        World::with_frames(folder, 2048)
    }

    /// With memory for so many pages.
    pub fn with_frames(folder: Arc<SimFolder>, frames: u64) -> World {
        let clock = Arc::new(SimClock::new(1_700_000_000_000));
        let engine = Engine::open(options(frames), folder.clone() as Arc<dyn Folder>, clock).expect("the engine opens");
        let db = Database::open(engine.clone()).expect("the catalog loads");
        World { folder, engine, db }
    }

    /// Closes and opens again.
    pub fn reopen(self) -> World {
        let World { folder, engine, db } = self;
        drop(db);
        engine.close().expect("closing works");
        drop(engine);
        World::on(folder)
    }

    /// Loses what was not durable and opens again.
    pub fn crash(self) -> World {
        let World { folder, engine, db } = self;
        let after = folder.crash();
        drop(db);
        drop(engine);
        World::on(after)
    }

    pub fn session(&self, connection_id: u64) -> Session {
        self.session_of("root", "localhost", connection_id).expect("root may come in")
    }

    pub fn session_of(&self, user: &str, host: &str, connection_id: u64) -> Result<Session, SqlError> {
        let who = Login { user: user.into(), host: host.into(), database: None, connection_id };
        let mut session = Session::new(&self.db, who)?;
        session.allow_local_files(true);
        Ok(session)
    }
}

/// As a client would print it.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Text(text) => text.as_str().replace('\n', "\\n"),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Date(date) => date.to_string(),
        Value::Time(time) => time.to_string(),
        Value::DateTime(reading) => reading.to_string(),
        Value::Json(json) => json.to_string(),
        other => format!("{other:?}"),
    }
}

/// The outcome as lines: a count, rows, or an error. A client's file has its bytes for its name.
pub fn run(session: &mut Session, sql: &str) -> Vec<String> {
    let outcome = match session.execute(sql) {
        Ok(Outcome::File(name)) => {
            name.as_bytes().chunks(3).for_each(|piece| session.load_data(piece));
            session.load_end()
        }
        other => other,
    };
    told(session, outcome)
}

/// Returns the outcome as lines.
pub fn told(session: &mut Session, outcome: Result<Outcome, SqlError>) -> Vec<String> {
    match outcome {
        Ok(Outcome::File(_)) => unreachable!("a file asks for no other"),
        Ok(Outcome::Suspended) => unreachable!("nobody has said that it may leave"),
        Err(error) => vec![format!("error {} {}", error.code, error.message)],
        Ok(Outcome::Done { affected, last_insert_id, info }) => {
            let mut line = format!("ok {affected}");
            if last_insert_id > 0 {
                line.push_str(&format!(", id {last_insert_id}"));
            }
            if !info.is_empty() {
                line.push_str(&format!(", {info}"));
            }
            vec![line]
        }
        Ok(Outcome::Rows(mut rows)) => {
            let names: Vec<&str> = rows.columns().iter().map(|column| column.name.as_str()).collect();
            let mut lines = vec![format!("[{}]", names.join(" | "))];
            let mut batch = Batch::new();
            loop {
                match rows.next(session, &mut batch) {
                    Ok(false) => return lines,
                    Ok(true) => {
                        lines.extend(
                            batch.rows().map(|row| row.to_row().iter().map(shown).collect::<Vec<_>>().join(" | ")),
                        );
                    }
                    Err(error) => {
                        lines.push(format!("error {} {}", error.code, error.message));
                        return lines;
                    }
                }
            }
        }
    }
}
