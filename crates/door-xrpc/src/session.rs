//! A session: requests of one sid, one after another.
//!
//! It begins with its first request and ends with SESS_CLOSE, with an error of severity FATAL, when it is killed or with its connection; in each case the transaction is rolled back and locks are
//! given back in that moment, not when somebody forgets the session (X4). A sid with the top bit is a session from the door's pool, taken for one statement.

use std::sync::Arc;

use query::error::{self, SqlError};
use query::types::{Charset, CharsetName as _};
use query::{Kill, Login, Prepared};
use reactor::{Call, Reply, SessionQueue};
use stdx::hash::Map;

use crate::door::Shared;
use crate::errors;
use crate::frame::Mode;
use crate::member::{Ending, Outside, rouse};
use crate::message::reply::{Severity, Writer};
use crate::message::request::{AutoSavepoint, SavepointOp, read_empty};
use crate::presence::Presence;
use crate::run::Running;
use crate::statement::quoted;
use query::letters::Results;

/// Sids with this bit are good for one statement.
pub const SINGLE: u64 = 1 << 63;

/// What a connection pushes to a session. Payloads are the request's own: it is run in another thread.
pub enum Request {
    /// SESS_NEW, and the session queue that it begins.
    New(SessionQueue<Session, Request>),
    Execute(Box<[u8]>),
    ExecutePlan(Box<[u8]>),
    Savepoint(Box<[u8]>),
    Close(Box<[u8]>),
    Capabilities,
    /// Answered by an error that ends nothing.
    Refuse(SqlError),
    /// There is something in `Outside`.
    Look,
}

/// Who a connection has logged in as, and how its frames are written.
#[derive(Debug)]
pub struct Who {
    pub user: String,
    pub host: String,
    pub account: String,
    pub mode: Mode,
}

/// Why a request fails.
pub struct Failure {
    pub severity: Severity,
    pub error: SqlError,
    /// A request behind it that depends on it gets the error too.
    pub is_remembered: bool,
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure { severity: Severity::Error, error, is_remembered: true }
    }
}

impl Failure {
    pub fn fatal(error: SqlError) -> Failure {
        Failure { severity: Severity::Fatal, error, is_remembered: true }
    }
}

/// What of the session's variables the door itself obeys.
#[derive(Clone, Copy)]
pub struct Obeyed {
    /// Of the session's variables when these were copied.
    version: u64,
    pub client: Charset,
    pub results: Results,
}

impl Obeyed {
    const DEFAULT: Obeyed = Obeyed { version: 0, client: Charset::Utf8, results: Results::UTF8 };

    fn of(sql: &query::Session) -> Obeyed {
        let charset = |name: &str| sql.variable(name).ok();
        Obeyed {
            version: sql.variables_version(),
            client: charset("character_set_client")
                .and_then(|name| Charset::by_name(&name).ok())
                .unwrap_or(Charset::Utf8),
            results: charset("character_set_results").map_or(Results::UTF8, |name| Results::named(&name)),
        }
    }
}

pub struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) who: Arc<Who>,
    pub(crate) sid: u64,
    pub(crate) outside: Arc<Outside>,
    pub(crate) sql: Option<Box<query::Session>>,
    pub(crate) obeyed: Obeyed,
    pub(crate) running: Option<Running>,
    /// Statements with arguments, by their text: those that are this session's alone.
    pub(crate) prepared: Map<Box<str>, Prepared>,
    last_error: Option<SqlError>,
    connection: reactor::Handle,
    /// Nothing more is done.
    is_over: bool,
    /// It is one of those that are counted.
    is_counted: bool,
    /// It has taken a session out of the door's pool.
    is_borrowed: bool,
    _presence: Arc<Presence>,
}

impl Session {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        who: &Arc<Who>,
        sid: u64,
        (outside, presence): (&Arc<Outside>, &Arc<Presence>),
        connection: reactor::Handle,
    ) -> Session {
        let is_counted = sid & SINGLE == 0;
        shared.stats.sessions.add(is_counted.into());
        Session {
            shared: shared.clone(),
            who: who.clone(),
            sid,
            outside: outside.clone(),
            sql: None,
            obeyed: Obeyed::DEFAULT,
            running: None,
            prepared: Map::default(),
            last_error: None,
            connection,
            is_over: false,
            is_counted,
            is_borrowed: false,
            _presence: presence.clone(),
        }
    }

    pub fn is_single(&self) -> bool {
        self.sid & SINGLE != 0
    }

    /// What the session queue calls.
    pub fn serve(&mut self, call: Call<Request>, reply: &mut Reply<'_>) {
        if !self.is_over && self.outside.ending().is_none() {
            match call {
                Call::Resume => self.go_on(reply),
                Call::Request(request) => self.request(request, reply),
            }
            if self.sql.as_ref().is_some_and(|sql| sql.is_released()) {
                self.end();
            }
        }
        if let Some(why) = self.outside.ending()
            && !self.is_over
        {
            let error = match why {
                Ending::Killed => errors::KILLED.bare(),
                Ending::Duplicate => errors::DUPLICATE_SESSION.bare(),
                Ending::QueueFull => errors::QUEUE_FULL.with(&[&self.shared.live.queue_max()]),
            };
            // A suspended statement has its own answer first, as one has that a thread runs.
            if self.running.take_if(|running| matches!(running, Running::Away(_))).is_some() {
                self.fail(error::QUERY_INTERRUPTED.bare().into(), reply);
            }
            self.fail(Failure::fatal(error), reply);
        }
    }

    fn request(&mut self, request: Request, reply: &mut Reply<'_>) {
        match request {
            Request::New(session_queue) => self.found(session_queue, reply),
            Request::Execute(payload) => self.execute(&payload, reply),
            Request::ExecutePlan(payload) => self.execute_plan(&payload, reply),
            Request::Savepoint(payload) => self.savepoint(&payload, reply),
            Request::Close(payload) => {
                if read_empty(&payload).is_err() {
                    return self.break_off();
                }
                self.end();
                self.writer(reply).ok();
            }
            Request::Capabilities => {
                if let Some(sql) = &self.sql {
                    reply.hold_until_durable(sql.gate());
                }
                self.writer(reply).capabilities();
            }
            Request::Refuse(error) => self.fail(error.into(), reply),
            Request::Look => {}
        }
    }

    pub(crate) fn writer<'r>(&self, reply: &'r mut Reply<'_>) -> Writer<'r> {
        Writer { out: reply.out(), mode: self.who.mode, sid: self.sid }
    }

    fn found(&mut self, session_queue: SessionQueue<Session, Request>, reply: &mut Reply<'_>) {
        match self.shared.enter(&self.who) {
            Ok(sql) => {
                let outside = self.outside.clone();
                sql.handle().on_kill(Box::new(move || {
                    outside.end(Ending::Killed);
                    rouse(&session_queue);
                }));
                self.outside.set_sql(Some(sql.handle().clone()));
                self.sql = Some(sql);
                self.writer(reply).ok();
            }
            Err(error) => self.fail(Failure::fatal(error), reply),
        }
    }

    /// The client has sent what is no message: nobody knows what it believes (P2).
    pub(crate) fn break_off(&mut self) {
        self.shared.stats.malformed.add(1);
        self.connection.kill();
    }

    /// The error that a failed request before left for those that depend on it.
    pub(crate) fn left_over(&self, reset_error: Option<bool>) -> Option<SqlError> {
        if reset_error == Some(false) { self.last_error.clone() } else { None }
    }

    pub(crate) fn succeed(&mut self) {
        self.last_error = None;
    }

    /// Answers with the error.
    pub(crate) fn fail(&mut self, failure: Failure, reply: &mut Reply<'_>) {
        let Failure { severity, error, is_remembered } = failure;
        self.shared.stats.errors.add(1);
        if let Some(sql) = &self.sql {
            reply.hold_until_durable(sql.gate());
        }
        if severity == Severity::Fatal {
            self.end();
        }
        self.writer(reply).error(severity, (error.code, error.sqlstate, &error.message));
        if is_remembered {
            self.last_error = Some(error);
        }
    }

    /// Copies the session's variables again if the statement that has just run has set any.
    pub(crate) fn obey_changes(&mut self) {
        let Some(sql) = &self.sql else { return };
        if sql.variables_version() == self.obeyed.version {
            return;
        }
        self.obeyed = Obeyed::of(sql);
        // They were parsed under the modes before.
        self.prepared.clear();
    }

    fn savepoint(&mut self, payload: &[u8], reply: &mut Reply<'_>) {
        let Ok(request) = AutoSavepoint::read(payload) else { return self.break_off() };
        if let Some(error) = self.left_over(request.reset_error) {
            return self.fail(error.into(), reply);
        }
        match self.change_savepoint(&request) {
            Ok(()) => {
                self.succeed();
                self.writer(reply).ok();
            }
            Err(error) => self.fail(error.into(), reply),
        }
    }

    fn change_savepoint(&mut self, request: &AutoSavepoint<'_>) -> Result<(), SqlError> {
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        let name = quoted(&crate::statement::decode(request.name, Charset::Utf8)?);
        let text = match request.op {
            SavepointOp::Set => format!("SAVEPOINT {name}"),
            SavepointOp::Release => format!("RELEASE SAVEPOINT {name}"),
            SavepointOp::Rollback => format!("ROLLBACK TO SAVEPOINT {name}"),
        };
        sql.execute(&text).map(|_| ())
    }

    /// Was the statement under way told to stop?
    pub(crate) fn is_interrupted(&self) -> bool {
        self.sql.as_ref().is_some_and(|sql| sql.handle().killed() != Kill::No)
    }

    /// Ends the session: what its transaction did is taken back, and its locks are given back.
    fn end(&mut self) {
        self.is_over = true;
        self.discount();
        self.running = None;
        self.outside.set_sql(None);
        self.sql = None;
        self.outside.set_over(true);
    }

    fn discount(&mut self) {
        if std::mem::take(&mut self.is_counted) {
            self.shared.stats.sessions.add(1u64.wrapping_neg());
        }
        self.give_back();
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.is_borrowed) {
            self.shared.stats.borrowed.add(1u64.wrapping_neg());
        }
    }

    /// Takes a session out of the door's pool for one statement.
    pub(crate) fn borrow_sql(&mut self) -> Result<(), SqlError> {
        let sql = self.shared.spare.take(&self.shared, &self.who)?;
        self.shared.stats.borrowed.add(1);
        self.is_borrowed = true;
        self.outside.set_over(false);
        self.outside.set_sql(Some(sql.handle().clone()));
        self.sql = Some(sql);
        self.obeyed = Obeyed::DEFAULT;
        Ok(())
    }

    /// The statement is over: the session goes back.
    pub(crate) fn return_sql(&mut self) {
        self.give_back();
        self.outside.set_sql(None);
        if let Some(sql) = self.sql.take() {
            self.shared.spare.put_back(&self.shared, &self.who, sql);
        }
        self.prepared.clear();
        self.outside.set_over(true);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.discount();
    }
}

/// The error of a statement that was told to stop.
pub fn interrupted() -> SqlError {
    error::QUERY_INTERRUPTED.bare()
}

/// Begins a session of `query` for who has logged in.
pub(crate) fn enter(shared: &Shared, who: &Who) -> Result<Box<query::Session>, SqlError> {
    let login = Login {
        user: who.user.clone(),
        host: who.host.clone(),
        database: None,
        connection_id: shared.next_connection_id(),
    };
    let mut sql = query::Session::new(&shared.database, login)?;
    // The account list has changed since the login: what was proved is not what was found.
    if sql.account() != who.account {
        return Err(errors::ACCESS_DENIED.with(&[&who.user, &who.host, &"YES"]));
    }
    sql.count_found(true);
    Ok(Box::new(sql))
}
