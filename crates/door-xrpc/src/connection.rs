//! A connection: its login, and the loop that cuts frames and distributes them to sessions.
//!
//! ```text
//!   opening ──XRPC──► fresh ──start──► challenged ──answer──► entered
//!      └─TLS─► the same inside of TLS     └─────── wrong: ERROR, closed
//! ```
//! The receiving thread executes no statement (DX-8). It answers requests that belong to no session, or must not wait for one: capabilities on a number without
//! a session, logins, new sessions, kills, tokens. It copies every other request out of the input and pushes it to the queue of its session. Queues that were
//! idle are dispatched to the thread pool together, when all received frames have been cut.

use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::{Attempt, Turn};
use reactor::{Connection, Flow, Io, Pushed, SessionQueue, Task};
use sql_mysql::error::{self, SqlError};
use sql_mysql::{Database, Kill};
use stdx::hash::Map;
use stdx::sync::atomic::{AtomicU32, Ordering};

use crate::auth::{self, Answer, SALT, Verdict};
use crate::errors;
use crate::frame::{self, Cut, Frame, Mode};
use crate::identity::Identity;
use crate::liveness::Liveness;
use crate::message::ask;
use crate::message::reply::{Severity, Writer};
use crate::message::request::{
    AuthenticateContinue, AuthenticateStart, GetTso, KillKind, KillSession, TokenOffer, read_empty,
};
use crate::protocol_detection::{self, DetectedProtocol};
use crate::session::{Request, SINGLE, Session};
use crate::session_control::{EndReason, SessionControl};
use crate::session_handle::{SessionHandle, abandon_all};
use crate::shared::Shared;

/// The frame limit before the login, enough for an answer to the challenge.
const LOGIN_LENGTH_MAX: usize = 64 << 10;
/// The time limit of a login.
const LOGIN_MAX: Duration = Duration::from_secs(10);
/// The delay between the last message to a client and the close, so that the message arrives.
const LAST_WORD: Duration = Duration::from_millis(200);
/// The limit of timestamps in one request.
const TIMESTAMPS_MAX: u32 = 1 << 16;
/// Ended sessions are removed when this many are known, or twice as many as the last sweep kept.
const SWEEP_MIN: usize = 64;

enum Phase {
    Opening,
    Fresh,
    Challenged([u8; SALT]),
    Entered(Arc<Identity>),
}

/// The progress of the login, for the login timer.
const SILENT: u32 = 0;
const SPEAKING: u32 = 1;
const ENTERED: u32 = 2;

pub struct XrpcConnection {
    shared: Arc<Shared>,
    peer: SocketAddr,
    host: String,
    is_encrypted: bool,
    /// The frame header of both directions.
    mode: Mode,
    liveness: Arc<Liveness>,
    phase: Phase,
    progress: Arc<AtomicU32>,
    /// A login that may not be checked yet, and when it may; its frame is not consumed.
    delayed: Option<(u64, Attempt)>,
    sessions: Map<u64, SessionHandle>,
    sweep_at: usize,
    /// Session queues that were idle and have received requests.
    tasks: Vec<Task>,
}

impl XrpcConnection {
    pub(crate) fn new(shared: &Arc<Shared>, connection: &Arc<Connection>) -> XrpcConnection {
        let ip = connection.peer.ip();
        let progress = Arc::new(AtomicU32::new(SILENT));
        let (watched, handle, shared_for_timer) = (progress.clone(), connection.handle(), shared.clone());
        let login_timeout = move || {
            let kill = handle.clone();
            match watched.load(Ordering::Relaxed) {
                ENTERED => return,
                // A client that waits for a greeting speaks MySQL's protocol.
                SILENT => handle.push(&protocol_detection::mysql_error(0)),
                _ => {}
            }
            shared_for_timer.timer(LAST_WORD, Box::new(move || kill.kill()));
        };
        shared.timer(LOGIN_MAX, Box::new(login_timeout));
        XrpcConnection {
            shared: shared.clone(),
            peer: connection.peer,
            host: if ip.is_loopback() { "localhost".into() } else { ip.to_string() },
            is_encrypted: false,
            mode: shared.settings.mode(),
            liveness: Liveness::new(shared),
            phase: Phase::Opening,
            progress,
            delayed: None,
            sessions: Map::default(),
            sweep_at: SWEEP_MIN,
            tasks: Vec::new(),
        }
    }

    /// Handles the received bytes.
    pub(crate) fn serve(&mut self, io: &mut Io<'_>) -> Flow {
        let begun = self.shared.begin();
        let flow = self.process_frames(io);
        self.shared.record(&self.shared.stats.decode, begun);
        if !self.tasks.is_empty() {
            io.connection().dispatch_sessions(&mut self.tasks);
        }
        flow
    }

    fn process_frames(&mut self, io: &mut Io<'_>) -> Flow {
        if let Phase::Opening = self.phase {
            match self.open(io) {
                Some(Flow::Continue) => {}
                Some(flow) => return flow,
                None => return Flow::Continue,
            }
        }
        let mode = self.mode;
        loop {
            let length_max =
                if let Phase::Entered(_) = self.phase { self.shared.settings.length_max() } else { LOGIN_LENGTH_MAX };
            match frame::cut(io.input(), mode, length_max) {
                Cut::Frame(frame) => {
                    self.shared.stats.requests.add(1);
                    let size = frame.size;
                    if let Err(flow) = self.frame(io, &frame) {
                        return flow;
                    }
                    io.consume(size);
                }
                Cut::More(wanted) => {
                    if !io.input().is_empty() {
                        io.expect(wanted);
                    }
                    return Flow::Continue;
                }
                Cut::TooLong(sid) => {
                    let error = errors::FRAME_TOO_LARGE.with(&[&length_max]);
                    return self.break_off(io, sid, &error);
                }
                Cut::Broken => return self.broken(),
            }
        }
    }

    /// Detects the protocol from the first bytes. Returns `Some(Continue)` for XRPC, and `None` if more has to arrive or TLS has begun.
    fn open(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        if io.input().is_empty() {
            return None;
        }
        self.progress.store(SPEAKING, Ordering::Relaxed);
        let mode = self.mode;
        let detected = protocol_detection::detect(io.input(), mode);
        match detected {
            DetectedProtocol::Unclear => return None,
            DetectedProtocol::Ours if self.shared.options.require_secure_transport && !self.is_encrypted => {
                return Some(self.break_off(io, 0, &errors::insecure_transport()));
            }
            DetectedProtocol::Ours => {
                self.phase = Phase::Fresh;
                return Some(Flow::Continue);
            }
            DetectedProtocol::Tls if !self.is_encrypted => {
                if let Some(tls) = self.shared.options.tls.clone() {
                    io.start_tls(&tls);
                    self.is_encrypted = true;
                    self.shared.stats.tls.add(1);
                    return None;
                }
            }
            _ => {}
        }
        self.shared.report_foreign(protocol_detection::name(detected), self.peer);
        protocol_detection::put_farewell(io.out(), detected, mode);
        Some(Flow::Close)
    }

    /// Handles one frame.
    fn frame(&mut self, io: &mut Io<'_>, frame: &Frame<'_>) -> Result<(), Flow> {
        match (frame.kind, &self.phase) {
            (ask::CAPABILITIES_GET, _) => self.capabilities(io, frame),
            (ask::AUTHENTICATE_START | ask::AUTHENTICATE_CONTINUE, _) => {
                let begun = self.shared.begin();
                let done = match frame.kind {
                    ask::AUTHENTICATE_START => self.challenge(io, frame.payload),
                    _ => self.check(io, frame.payload),
                };
                self.shared.record(&self.shared.stats.auth, begun);
                done
            }
            (_, Phase::Entered(_)) => self.request(io, frame),
            _ => Err(self.break_off(io, frame.sid, &errors::NOT_LOGGED_IN.bare())),
        }
    }

    /// Answers CapabilitiesGet. On a session's number the session answers in order, through its queue; on another number the connection answers at once, before
    /// the login too (DX-14).
    fn capabilities(&mut self, io: &mut Io<'_>, frame: &Frame<'_>) -> Result<(), Flow> {
        read_empty(frame.payload).map_err(|_| self.broken())?;
        match live_session(&mut self.sessions, frame.sid).filter(|_| frame.sid & SINGLE == 0) {
            Some(handle) => push(handle, Request::Capabilities, &mut self.tasks, &self.shared.database),
            None => self.writer(io, frame.sid).capabilities(),
        }
        Ok(())
    }

    fn challenge(&mut self, io: &mut Io<'_>, payload: &[u8]) -> Result<(), Flow> {
        AuthenticateStart::read(payload).map_err(|_| self.broken())?;
        let Phase::Fresh = self.phase else {
            let error = errors::XRPC.with(&[&"A login was begun where none can begin."]);
            return Err(self.break_off(io, 0, &error));
        };
        let salt = auth::new_salt();
        self.phase = Phase::Challenged(salt);
        self.writer(io, 0).authenticate_continue(&salt);
        Ok(())
    }

    fn check(&mut self, io: &mut Io<'_>, payload: &[u8]) -> Result<(), Flow> {
        let AuthenticateContinue { auth_data } = AuthenticateContinue::read(payload).map_err(|_| self.broken())?;
        let Phase::Challenged(salt) = self.phase else {
            let error = errors::XRPC.with(&[&"A login goes on that has not begun."]);
            return Err(self.break_off(io, 0, &error));
        };
        let attempt = match self.turn(io, auth_data)? {
            Some(attempt) => attempt,
            None => {
                self.shared.stats.denied.add(1);
                let error = errors::TOO_MANY_LOGINS.bare();
                self.write_error(io, 0, Severity::Error, &error);
                return Err(Flow::Close);
            }
        };
        match self.judge(auth_data, &salt) {
            Ok(identity) => {
                attempt.passed(0);
                self.progress.store(ENTERED, Ordering::Relaxed);
                self.shared.stats.logins.add(1);
                self.phase = Phase::Entered(Arc::new(identity));
                self.writer(io, 0).authenticate_ok();
                Ok(())
            }
            Err(error) => {
                attempt.failed();
                self.shared.stats.denied.add(1);
                self.shared.stats.errors.add(1);
                self.writer(io, 0).error(Severity::Error, (error.code, error.sqlstate, &error.message));
                Err(Flow::Close)
            }
        }
    }

    /// Returns the login attempt if it may be checked now, and `None` if it is refused. `Err(Continue)` means that the connection is parked until the delay is
    /// over.
    fn turn(&mut self, io: &mut Io<'_>, auth_data: &[u8]) -> Result<Option<Attempt>, Flow> {
        let now_ms = self.shared.now_ms();
        if let Some((until_ms, attempt)) = self.delayed.take() {
            if until_ms <= now_ms {
                return Ok(Some(attempt));
            }
            self.delayed = Some((until_ms, attempt));
            io.park();
            return Err(Flow::Continue);
        }
        let accounts = self.shared.engine().accounts();
        let user = Answer::read(auth_data).map_or("", |answer| std::str::from_utf8(answer.user).unwrap_or(""));
        let account = sql_mysql::rights::find(accounts, user, &self.host);
        let name = account.as_ref().map_or(user, |account| &account.name);
        match accounts.attempts().arrive(self.peer.ip(), &[name], now_ms) {
            Turn::Now(attempt) => Ok(Some(attempt)),
            Turn::After(delay, attempt) => {
                self.delayed = Some((now_ms + delay.as_millis() as u64, attempt));
                io.park();
                let handle = io.connection().handle();
                self.shared.timer(delay, Box::new(move || handle.wake()));
                Err(Flow::Continue)
            }
            Turn::Refused => Ok(None),
        }
    }

    /// Checks the answer to the challenge, and returns the identity of the account.
    fn judge(&self, auth_data: &[u8], salt: &[u8; SALT]) -> Result<Identity, SqlError> {
        let denied = |user: &str, has_password: bool| {
            errors::ACCESS_DENIED.with(&[&user, &self.host, &if has_password { "YES" } else { "NO" }])
        };
        let answer = Answer::read(auth_data).ok_or_else(|| denied("", false))?;
        let user = std::str::from_utf8(answer.user).map_err(|_| denied("", answer.has_password()))?;
        let account = sql_mysql::rights::find(self.shared.engine().accounts(), user, &self.host);
        match auth::judge(account.as_deref(), &answer, salt, self.is_encrypted) {
            Verdict::Accepted => Ok(Identity {
                user: user.to_owned(),
                host: self.host.clone(),
                account: account.map(|account| account.name.clone()).unwrap_or_default(),
                mode: self.mode,
            }),
            Verdict::Denied => Err(denied(user, answer.has_password())),
            Verdict::Locked => Err(error::ACCOUNT_HAS_BEEN_LOCKED.with(&[&user, &self.host])),
            Verdict::Expired => Err(error::MUST_CHANGE_PASSWORD_LOGIN.bare()),
        }
    }

    /// Handles a frame after the login.
    fn request(&mut self, io: &mut Io<'_>, frame: &Frame<'_>) -> Result<(), Flow> {
        match frame.kind {
            ask::SESSION_NEW => self.begin_session(io, frame),
            ask::SESSION_KILL => self.kill(io, frame),
            ask::TOKEN_OFFER => self.offer(io, frame),
            ask::EXECUTE_SQL => self.session_request(io, frame, Request::Execute(frame.payload.into())),
            ask::AUTO_SAVEPOINT => self.session_request(io, frame, Request::Savepoint(frame.payload.into())),
            ask::SESSION_CLOSE => self.session_request(io, frame, Request::Close(frame.payload.into())),
            ask::EXECUTE_PLAN => self.session_request(io, frame, Request::ExecutePlan(frame.payload.into())),
            ask::GET_TSO => self.timestamps(io, frame),
            ask::GET_FILE_INFO | ask::TRANSFER_FILE_DATA | ask::MANAGE_FILE => {
                self.refuse(io, frame, "copies of data files")
            }
            ask::EXPECT_OPEN | ask::EXPECT_CLOSE => {
                let error = errors::not_served("expectations");
                self.write_error(io, frame.sid, Severity::Fatal, &error);
                if let Some(handle) = self.sessions.remove(&frame.sid) {
                    handle.abandon(&self.shared.database);
                }
                Ok(())
            }
            _ => Err(self.broken()),
        }
    }

    fn begin_session(&mut self, io: &mut Io<'_>, frame: &Frame<'_>) -> Result<(), Flow> {
        read_empty(frame.payload).map_err(|_| self.broken())?;
        let most = self.shared.options.sessions_max;
        let error = if frame.sid == 0 || frame.sid & SINGLE != 0 {
            errors::XRPC.with(&[&"A session cannot have this number."])
        } else if let Some(handle) = live_session(&mut self.sessions, frame.sid) {
            if !handle.is_closing {
                // The session reports the error itself, after its earlier answers, and holds no locks from then on (DX-11): the client forgets the session.
                handle.end(&self.shared.database, EndReason::Duplicate);
                return Ok(());
            }
            errors::DUPLICATE_SESSION.bare()
        } else if self.shared.stats.sessions.get() >= most {
            errors::TOO_MANY_SESSIONS.with(&[&most])
        } else {
            let session_queue = self.add_session(io, frame.sid).session_queue.clone();
            let task = session_queue.task();
            if let Pushed::WasIdle = session_queue.push(Request::New(session_queue.clone())) {
                self.tasks.push(task);
            }
            return Ok(());
        };
        self.write_error(io, frame.sid, Severity::Fatal, &error);
        Ok(())
    }

    fn add_session(&mut self, io: &Io<'_>, sid: u64) -> &mut SessionHandle {
        let Phase::Entered(identity) = &self.phase else { unreachable!("sessions begin after the login") };
        if self.sessions.len() >= self.sweep_at {
            self.sessions.retain(|_, handle| !handle.control.is_over());
            self.sweep_at = (2 * self.sessions.len()).max(SWEEP_MIN);
        }
        let control = Arc::new(SessionControl::default());
        let session = Session::new(&self.shared, identity, sid, (&control, &self.liveness), io.connection().handle());
        let queue_max = self.shared.settings.queue_max();
        let session_queue =
            SessionQueue::new(io.connection(), session, queue_max, |session, call, reply| session.serve(call, reply));
        let handle = SessionHandle { session_queue, control, is_closing: false };
        self.sessions.entry(sid).insert_entry(handle).into_mut()
    }

    /// Pushes a request to the queue of its session.
    fn session_request(&mut self, io: &mut Io<'_>, frame: &Frame<'_>, request: Request) -> Result<(), Flow> {
        let is_single = frame.sid & SINGLE != 0;
        if is_single && !matches!(request, Request::Execute(_)) {
            let error = errors::not_served("anything but statements on a sid with the top bit");
            self.write_error(io, frame.sid, Severity::Error, &error);
            return Ok(());
        }
        if is_single && !self.sessions.contains_key(&frame.sid) {
            self.add_session(io, frame.sid);
        }
        match live_session(&mut self.sessions, frame.sid) {
            Some(handle) => push(handle, request, &mut self.tasks, &self.shared.database),
            None => self.write_error(io, frame.sid, Severity::Fatal, &errors::NO_SESSION.bare()),
        }
        Ok(())
    }

    /// Answers a request that is not served, in its place among the answers of the session.
    fn refuse(&mut self, io: &mut Io<'_>, frame: &Frame<'_>, what: &str) -> Result<(), Flow> {
        let error = errors::not_served(what);
        match live_session(&mut self.sessions, frame.sid).filter(|_| frame.sid & SINGLE == 0) {
            Some(handle) => push(handle, Request::Refuse(error), &mut self.tasks, &self.shared.database),
            None => self.write_error(io, frame.sid, Severity::Error, &error),
        }
        Ok(())
    }

    /// Kills a statement or a session: the one of the frame's number, which the message repeats.
    fn kill(&mut self, io: &mut Io<'_>, frame: &Frame<'_>) -> Result<(), Flow> {
        let kill = KillSession::read(frame.payload).map_err(|_| self.broken())?;
        if let (Some(callback), Phase::Entered(identity)) = (&self.shared.options.on_kill, &self.phase) {
            callback(&identity.user, frame.sid, matches!(kill.kind, KillKind::Connection));
        }
        let database = &self.shared.database;
        let Some(handle) = live_session(&mut self.sessions, frame.sid) else {
            self.write_error(io, frame.sid, Severity::Fatal, &errors::NO_SESSION.bare());
            return Ok(());
        };
        match kill.kind {
            KillKind::Query => {
                handle.control.kill(database, Kill::Query);
                // The session may be waiting for tokens.
                handle.session_queue.wake();
            }
            KillKind::Connection => handle.end(database, EndReason::Killed),
        }
        Ok(())
    }

    fn offer(&mut self, io: &mut Io<'_>, frame: &Frame<'_>) -> Result<(), Flow> {
        let TokenOffer { token } = TokenOffer::read(frame.payload).map_err(|_| self.broken())?;
        match live_session(&mut self.sessions, frame.sid) {
            Some(handle) => {
                handle.control.offer(token);
                handle.session_queue.wake();
            }
            // Single statements need no tokens; an offer for one is ignored.
            None if frame.sid & SINGLE != 0 => {}
            None => self.write_error(io, frame.sid, Severity::Fatal, &errors::NO_SESSION.bare()),
        }
        Ok(())
    }

    /// Answers GET_TSO in the receiving thread, so that timestamps never wait behind a statement.
    fn timestamps(&mut self, io: &mut Io<'_>, frame: &Frame<'_>) -> Result<(), Flow> {
        let request = GetTso::read(frame.payload).map_err(|_| self.broken())?;
        let count = u32::try_from(request.batch_count).ok().filter(|count| (1..=TIMESTAMPS_MAX).contains(count));
        let taken = match count {
            None => Err(errors::XRPC.with(&[&format!("A batch has 1 to {TIMESTAMPS_MAX} timestamps.")])),
            Some(count) => {
                let taken = self.shared.database.take_timestamps(count, self.shared.clock.wall_ms());
                taken.map_err(SqlError::from)
            }
        };
        match taken {
            Ok((base, gate)) => {
                io.hold_until_durable(gate);
                self.writer(io, frame.sid).tso(base);
            }
            Err(error) => self.write_error(io, frame.sid, Severity::Error, &error),
        }
        Ok(())
    }

    fn writer<'w>(&self, io: &'w mut Io<'_>, sid: u64) -> Writer<'w> {
        Writer { out: io.out(), mode: self.mode, sid }
    }

    fn write_error(&self, io: &mut Io<'_>, sid: u64, severity: Severity, error: &SqlError) {
        self.shared.stats.errors.add(1);
        self.writer(io, sid).error(severity, (error.code, error.sqlstate, &error.message));
    }

    /// Sends the error and ends the connection.
    fn break_off(&mut self, io: &mut Io<'_>, sid: u64, error: &SqlError) -> Flow {
        self.write_error(io, sid, Severity::Fatal, error);
        // The close waits for running sessions, and one of them may wait for its client.
        abandon_all(self.sessions.values(), &self.shared.database);
        self.sessions.clear();
        Flow::Close
    }

    /// Closes the connection after a malformed message, without an answer: nothing is known of the client's state (DX-2).
    fn broken(&self) -> Flow {
        self.shared.stats.malformed.add(1);
        Flow::CloseNow
    }

    /// Ends the connection and its sessions.
    pub(crate) fn end(self) {
        self.progress.store(ENTERED, Ordering::Relaxed);
        self.liveness.close();
        abandon_all(self.sessions.values(), &self.shared.database);
    }
}

/// Returns the session of a number, unless it has ended.
fn live_session(sessions: &mut Map<u64, SessionHandle>, sid: u64) -> Option<&mut SessionHandle> {
    let Entry::Occupied(entry) = sessions.entry(sid) else { return None };
    if sid & SINGLE == 0 && entry.get().control.is_over() {
        entry.remove();
        return None;
    }
    Some(entry.into_mut())
}

/// Pushes a request to the queue of its session. A run of a queue that was idle is added to `tasks`.
fn push(handle: &mut SessionHandle, request: Request, tasks: &mut Vec<Task>, database: &Database) {
    if handle.is_closing {
        return;
    }
    handle.is_closing = matches!(request, Request::Close(_));
    match handle.session_queue.push(request) {
        Pushed::WasIdle => tasks.push(handle.session_queue.task()),
        Pushed::Queued | Pushed::Closed(_) => {}
        Pushed::Full(_) => handle.end(database, EndReason::QueueFull),
    }
}
