//! A session: the requests of one sid, one after another.
//!
//! It begins with its first request. It ends with SESS_CLOSE, with an error of severity FATAL, with a kill or with its connection; in each case the transaction
//! is rolled back and locks are released at that moment, not when the session is dropped (DX-11). A sid with the top bit takes a session from the door's pool
//! for one statement.

use std::sync::Arc;

use reactor::{Call, Reply, SessionQueue};
use sql_mysql::error::{self, SqlError};
use sql_mysql::types::Charset;
use sql_mysql::{Kill, Prepared};
use stdx::hash::Map;

use crate::errors;
use crate::identity::Identity;
use crate::liveness::Liveness;
use crate::message::reply::{Severity, Writer};
use crate::message::request::{AutoSavepoint, SavepointOp, read_empty};
use crate::pending_answer::PendingAnswer;
use crate::session_control::{EndReason, SessionControl};
use crate::session_settings::SessionSettings;
use crate::shared::Shared;
use crate::statement::quoted;

/// A sid with this bit serves one statement.
pub const SINGLE: u64 = 1 << 63;

/// A request that a connection pushes to a session. It owns its payload, because another thread runs it.
pub enum Request {
    /// SESS_NEW, with the session's own queue.
    New(SessionQueue<Session, Request>),
    Execute(Box<[u8]>),
    ExecutePlan(Box<[u8]>),
    Savepoint(Box<[u8]>),
    Close(Box<[u8]>),
    Capabilities,
    /// Answered with an error that ends nothing.
    Refuse(SqlError),
    /// `SessionControl` has changed.
    CheckControl,
}

/// The failure of a request.
pub struct Failure {
    pub severity: Severity,
    pub error: SqlError,
    /// Whether later requests that depend on this one get the error too.
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

pub struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) sid: u64,
    pub(crate) control: Arc<SessionControl>,
    pub(crate) sql: Option<Box<sql_mysql::Session>>,
    pub(crate) settings: SessionSettings,
    pub(crate) pending: Option<PendingAnswer>,
    /// Statements with arguments, by their text, that only this session can use.
    pub(crate) prepared: Map<Box<str>, Prepared>,
    last_error: Option<SqlError>,
    connection: reactor::Handle,
    /// The session has ended.
    is_over: bool,
    /// The session counts as a client's session.
    is_counted: bool,
    /// The session uses one of the door's pool.
    is_borrowed: bool,
    _presence: Arc<Liveness>,
}

impl Session {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        identity: &Arc<Identity>,
        sid: u64,
        (control, liveness): (&Arc<SessionControl>, &Arc<Liveness>),
        connection: reactor::Handle,
    ) -> Session {
        let is_counted = sid & SINGLE == 0;
        shared.stats.sessions.add(is_counted.into());
        Session {
            shared: shared.clone(),
            identity: identity.clone(),
            sid,
            control: control.clone(),
            sql: None,
            settings: SessionSettings::DEFAULT,
            pending: None,
            prepared: Map::default(),
            last_error: None,
            connection,
            is_over: false,
            is_counted,
            is_borrowed: false,
            _presence: liveness.clone(),
        }
    }

    pub fn is_single(&self) -> bool {
        self.sid & SINGLE != 0
    }

    /// Serves a call of the session queue.
    pub fn serve(&mut self, call: Call<Request>, reply: &mut Reply<'_>) {
        if !self.is_over && self.control.ending().is_none() {
            match call {
                Call::Resume => self.resume(reply),
                Call::Request(request) => self.request(request, reply),
            }
            if self.sql.as_ref().is_some_and(|sql| sql.is_released()) {
                self.end();
            }
        }
        if let Some(why) = self.control.ending()
            && !self.is_over
        {
            let error = match why {
                EndReason::Killed => errors::KILLED.bare(),
                EndReason::Duplicate => errors::DUPLICATE_SESSION.bare(),
                EndReason::QueueFull => errors::QUEUE_FULL.with(&[&self.shared.settings.queue_max()]),
            };
            // A suspended statement gets its own answer first, as a running one does (DX-9).
            if self.pending.take_if(|pending| matches!(pending, PendingAnswer::Suspended(_))).is_some() {
                self.fail(error::QUERY_INTERRUPTED.bare().into(), reply);
            }
            self.fail(Failure::fatal(error), reply);
        }
    }

    fn request(&mut self, request: Request, reply: &mut Reply<'_>) {
        match request {
            Request::New(session_queue) => self.open_session(session_queue, reply),
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
                    reply.hold_until_durable(sql.durability_lsn());
                }
                self.writer(reply).capabilities();
            }
            Request::Refuse(error) => self.fail(error.into(), reply),
            Request::CheckControl => {}
        }
    }

    pub(crate) fn writer<'r>(&self, reply: &'r mut Reply<'_>) -> Writer<'r> {
        Writer { out: reply.out(), mode: self.identity.mode, sid: self.sid }
    }

    fn open_session(&mut self, session_queue: SessionQueue<Session, Request>, reply: &mut Reply<'_>) {
        match self.shared.new_session(&self.identity) {
            Ok(sql) => {
                let control = self.control.clone();
                sql.handle().on_kill(Box::new(move || {
                    control.end(EndReason::Killed);
                    wake(&session_queue);
                }));
                self.control.set_sql(Some(sql.handle().clone()));
                self.sql = Some(sql);
                self.writer(reply).ok();
            }
            Err(error) => self.fail(Failure::fatal(error), reply),
        }
    }

    /// Closes the connection after a malformed message: nothing is known of the client's state (DX-2).
    pub(crate) fn break_off(&mut self) {
        self.shared.stats.malformed.add(1);
        self.connection.kill();
    }

    /// Returns the error of a failed earlier request, if this one depends on it.
    pub(crate) fn inherited_error(&self, reset_error: Option<bool>) -> Option<SqlError> {
        if reset_error == Some(false) { self.last_error.clone() } else { None }
    }

    pub(crate) fn succeed(&mut self) {
        self.last_error = None;
    }

    /// Answers with an error.
    pub(crate) fn fail(&mut self, failure: Failure, reply: &mut Reply<'_>) {
        let Failure { severity, error, is_remembered } = failure;
        self.shared.stats.errors.add(1);
        if let Some(sql) = &self.sql {
            reply.hold_until_durable(sql.durability_lsn());
        }
        if severity == Severity::Fatal {
            self.end();
        }
        self.writer(reply).error(severity, (error.code, error.sqlstate, &error.message));
        if is_remembered {
            self.last_error = Some(error);
        }
    }

    /// Copies the session's variables again if the last statement has set any.
    pub(crate) fn refresh_settings(&mut self) {
        let Some(sql) = &self.sql else { return };
        if sql.variables_version() == self.settings.version {
            return;
        }
        self.settings = SessionSettings::of(sql);
        // They were parsed under the former SQL modes.
        self.prepared.clear();
    }

    fn savepoint(&mut self, payload: &[u8], reply: &mut Reply<'_>) {
        let Ok(request) = AutoSavepoint::read(payload) else { return self.break_off() };
        if let Some(error) = self.inherited_error(request.reset_error) {
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

    /// Returns whether the statement was killed.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.sql.as_ref().is_some_and(|sql| sql.handle().killed() != Kill::No)
    }

    /// Ends the session: rolls back its transaction and releases its locks.
    fn end(&mut self) {
        self.is_over = true;
        self.discount();
        self.pending = None;
        self.control.set_sql(None);
        self.sql = None;
        self.control.set_over(true);
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

    /// Takes a session from the door's pool for one statement.
    pub(crate) fn borrow_sql(&mut self) -> Result<(), SqlError> {
        let sql = self.shared.borrow_session(&self.identity)?;
        self.shared.stats.borrowed.add(1);
        self.is_borrowed = true;
        self.control.set_over(false);
        self.control.set_sql(Some(sql.handle().clone()));
        self.sql = Some(sql);
        self.settings = SessionSettings::DEFAULT;
        Ok(())
    }

    /// Returns the session to the pool after its statement.
    pub(crate) fn return_sql(&mut self) {
        self.give_back();
        self.control.set_sql(None);
        if let Some(sql) = self.sql.take() {
            self.shared.return_session(&self.identity, sql);
        }
        self.prepared.clear();
        self.control.set_over(true);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.discount();
    }
}

/// The error of a killed statement.
pub fn interrupted() -> SqlError {
    error::QUERY_INTERRUPTED.bare()
}

/// Makes the session check its control block, whatever it does. A full queue is being served, so the request may be dropped.
pub fn wake(session_queue: &SessionQueue<Session, Request>) {
    let _ = session_queue.post(Request::CheckControl);
    session_queue.wake();
}
