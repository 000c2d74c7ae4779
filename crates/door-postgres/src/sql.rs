//! A small stand-in for the session of `sql-postgres`, with its signatures, until that crate has one.

use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use sql_postgres::error::{PgError, Result};
use sql_postgres::wire::{self, Field, Kill, Login, More, Notice, Parameter, Ready, Wake};
use stdx::sync::Mutex;

pub struct Database {
    engine: Arc<Engine>,
    sessions: Mutex<Vec<Arc<Handle>>>,
}

impl Database {
    pub fn open(engine: Arc<Engine>) -> Arc<Database> {
        Arc::new(Database { engine, sessions: Mutex::default() })
    }
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
    pub fn kill(&self, pid: u32, how: Kill) -> bool {
        let handle = self.sessions.lock().iter().find(|handle| handle.pid == pid).cloned();
        handle.is_some_and(|handle| {
            handle.kill(how);
            true
        })
    }
    pub fn depart(&self, handle: &Handle) {
        handle.kill(Kill::Query);
    }
}

#[derive(Default)]
pub struct Handle {
    pid: u32,
    killed: Mutex<bool>,
    wake: Mutex<Option<Wake>>,
}

impl Handle {
    pub fn on_kill(&self, _: Box<dyn Fn() + Send + Sync>) {}
    pub fn kill(&self, _: Kill) {
        *self.killed.lock() = true;
        if let Some(wake) = &*self.wake.lock() {
            wake();
        }
    }
}

pub struct ResultSet {
    next: u64,
    end: u64,
    limit: u64,
    portal: Option<String>,
}
pub struct CopyOut(u64);
pub type Outcome = wire::Outcome<ResultSet, CopyOut>;
pub struct Script(Vec<String>, usize);

pub struct Session {
    handle: Arc<Handle>,
    status: u8,
    parameters: Vec<(&'static str, String)>,
    statements: Vec<(String, String)>,
    portals: Vec<(String, String, u64)>,
    rows: u64,
}

fn field() -> Field {
    Field { name: "?column?".into(), table: 0, column: 0, type_oid: 23, type_len: 4, typmod: -1, format: 0 }
}

impl Session {
    pub fn new(db: &Arc<Database>, login: Login) -> Result<Session> {
        if login.database == "nowhere" {
            return Err(PgError::new("3D000", "database \"nowhere\" does not exist"));
        }
        let handle = Arc::new(Handle { pid: login.pid, ..Handle::default() });
        db.sessions.lock().push(handle.clone());
        let parameters = vec![("server_version", "16.14".into()), ("client_encoding", "UTF8".into())];
        Ok(Session { handle, status: b'I', parameters, statements: Vec::new(), portals: Vec::new(), rows: 0 })
    }
    pub fn take_parameter_changes(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.parameters)
    }
    pub fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }
    pub fn transaction_status(&self) -> u8 {
        self.status
    }
    pub fn durability_lsn(&self) -> u64 {
        0
    }
    pub fn idle(&mut self) {}
    pub fn idle_limit(&self) -> Option<Duration> {
        None
    }
    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }
    pub fn allow_suspension(&mut self) {
        *self.handle.killed.lock() = false;
    }
    pub fn simple(&mut self, text: &str) -> Result<Script> {
        if text.contains("syntax") {
            self.fail(&PgError::new("42601", ""));
            return Err(PgError::new("42601", "syntax error at or near \"syntax\"").at(text, 0));
        }
        Ok(Script(text.split(';').map(|one| one.trim().to_owned()).collect(), 0))
    }
    pub fn next_of(&mut self, script: &mut Script) -> Result<Option<Outcome>> {
        let (one, rest) = match script.0.get(script.1) {
            Some(one) => (one.clone(), script.1),
            None => return Ok(None),
        };
        script.1 += 1;
        if one.is_empty() && rest > 0 {
            return Ok(None);
        }
        let outcome = self.run(&one, 0, None);
        if let Err(error) = &outcome {
            self.fail(error);
        }
        outcome.map(Some)
    }
    fn run(&mut self, text: &str, limit: u64, portal: Option<String>) -> Result<Outcome> {
        if self.status == b'E' && text != "rollback" {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(PgError::new("25P02", message));
        }
        let done = |tag: &str| Ok(Outcome::Done { tag: tag.into() });
        match text {
            "" => Ok(Outcome::Empty),
            "begin" => {
                self.status = b'T';
                done("BEGIN")
            }
            "rollback" | "commit" => {
                self.status = b'I';
                done(&text.to_uppercase())
            }
            "set timezone = 'UTC'" => {
                self.parameters.push(("TimeZone", "UTC".into()));
                done("SET")
            }
            "create table t (a int)" => done("CREATE TABLE"),
            "insert into t values (1)" => done("INSERT 0 1"),
            "copy t from stdin" => {
                self.rows = 0;
                Ok(Outcome::CopyIn { formats: vec![0], binary: false })
            }
            "copy t to stdout" => Ok(Outcome::CopyOut(CopyOut(2))),
            "select pg_sleep(60)" => Ok(Outcome::Suspended),
            "select 1/0" => Err(PgError::new("22012", "division by zero")),
            text => {
                let count = text.strip_prefix("select generate_series(1, ").map(|rest| &rest[..rest.len() - 1]);
                let end = count.map_or(1, |count| count.parse().unwrap_or(1));
                Ok(Outcome::Rows(ResultSet { next: 1, end, limit, portal }))
            }
        }
    }
    pub fn parse(&mut self, name: &str, text: &str, _: &[u32]) -> Result<()> {
        if text.contains("syntax") {
            return Err(PgError::new("42601", "syntax error at or near \"syntax\"").at(text, 0));
        }
        self.statements.retain(|(known, _)| known != name);
        self.statements.push((name.into(), text.into()));
        Ok(())
    }
    fn text(&self, name: &str) -> Result<String> {
        let known = self.statements.iter().find(|(known, _)| known == name);
        let missing = || PgError::new("26000", format!("prepared statement \"{name}\" does not exist"));
        known.map(|(_, text)| text.clone()).ok_or_else(missing)
    }
    pub fn describe_statement(&mut self, name: &str) -> Result<(Vec<u32>, Option<Vec<Field>>)> {
        let text = self.text(name)?;
        Ok((Vec::new(), text.starts_with("select").then(|| vec![field()])))
    }
    pub fn bind(&mut self, portal: &str, statement: &str, _: &[Parameter<'_>], _: &[i16]) -> Result<()> {
        let text = self.text(statement)?;
        self.portals.retain(|(known, _, _)| known != portal);
        self.portals.push((portal.into(), text, 0));
        Ok(())
    }
    pub fn describe_portal(&mut self, portal: &str) -> Result<Option<Vec<Field>>> {
        let text = self.portal(portal)?.1;
        Ok(text.starts_with("select").then(|| vec![field()]))
    }
    fn portal(&self, name: &str) -> Result<(String, String, u64)> {
        let known = self.portals.iter().find(|(known, _, _)| known == name);
        known.cloned().ok_or_else(|| PgError::new("34000", format!("portal \"{name}\" does not exist")))
    }
    pub fn execute(&mut self, portal: &str, max_rows: u64) -> Result<Outcome> {
        let (name, text, at) = self.portal(portal)?;
        let mut outcome = self.run(&text, max_rows, Some(name));
        if let Ok(Outcome::Rows(rows)) = &mut outcome {
            rows.next += at;
        }
        outcome
    }
    pub fn close_statement(&mut self, name: &str) {
        self.statements.retain(|(known, _)| known != name);
    }
    pub fn close_portal(&mut self, name: &str) {
        self.portals.retain(|(known, _, _)| known != name);
    }
    pub fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    pub fn fail(&mut self, _: &PgError) {
        if self.status == b'T' {
            self.status = b'E';
        }
    }
    pub fn copy_data(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.starts_with(b"x") {
            return Err(PgError::new("22P02", "invalid input syntax for type integer: \"x\""));
        }
        self.rows += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok(())
    }
    pub fn copy_done(&mut self) -> Result<Outcome> {
        Ok(Outcome::Done { tag: format!("COPY {}", self.rows) })
    }
    pub fn copy_fail(&mut self, message: &str) -> PgError {
        PgError::new("57014", format!("COPY from stdin failed: {message}"))
    }
    pub fn when_ready(&mut self, wake: Wake) -> Ready {
        *self.handle.wake.lock() = Some(wake.clone());
        if *self.handle.killed.lock() {
            wake();
        }
        Ready::Within(Duration::from_secs(60))
    }
    pub fn resume(&mut self) -> Result<Outcome> {
        match *self.handle.killed.lock() {
            true => Err(PgError::new("57014", "canceling statement due to user request")),
            false => Ok(Outcome::Suspended),
        }
    }
}

impl ResultSet {
    pub fn fields(&self) -> Vec<Field> {
        vec![field()]
    }
    pub fn write_rows(&mut self, session: &mut Session, out: &mut Vec<u8>, bytes_max: usize) -> Result<More> {
        let (start, begun) = (out.len(), self.next);
        while self.next <= self.end {
            if self.limit > 0 && self.next - begun == self.limit {
                if let Some(portal) = session.portals.iter_mut().find(|(name, _, _)| Some(name) == self.portal.as_ref())
                {
                    portal.2 += self.limit;
                }
                return Ok(More::PortalSuspended);
            }
            if out.len() - start > bytes_max {
                return Ok(More::Rows);
            }
            crate::reply::put(out, b'D', |out| {
                let text = self.next.to_string();
                out.extend_from_slice(&[0, 1]);
                out.extend_from_slice(&(text.len() as u32).to_be_bytes());
                out.extend_from_slice(text.as_bytes());
            });
            self.next += 1;
        }
        Ok(More::End { tag: format!("SELECT {}", self.end) })
    }
    pub fn close(self, _: &mut Session) {}
}

impl CopyOut {
    pub fn formats(&self) -> &[i16] {
        &[0]
    }
    pub fn is_binary(&self) -> bool {
        false
    }
    pub fn write(&mut self, _: &mut Session, out: &mut Vec<u8>, _: usize) -> Result<More> {
        for nth in 1..=self.0 {
            crate::reply::put(out, b'd', |out| out.extend_from_slice(format!("{nth}\n").as_bytes()));
        }
        Ok(More::End { tag: format!("COPY {}", self.0) })
    }
    pub fn close(self, _: &mut Session) {}
}

impl Database {
    pub fn end_waits(&self) {
        self.sessions.lock().iter().for_each(|handle| handle.kill(Kill::Query));
    }
    pub fn kill_all(&self) {
        self.sessions.lock().iter().for_each(|handle| handle.kill(Kill::Connection));
    }
}
