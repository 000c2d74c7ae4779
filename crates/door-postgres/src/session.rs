//! A connection: its phases and the loop over its messages.
//!
//! ```text
//!   startup ──startup message──► login ──password──► ready ──message──► reply; or rows, a buffer at a time
//!      ├──SSLRequest──► S ──► TLS ──► startup
//!      └──CancelRequest──► closed
//! ```
//! While a reply is incomplete, its message stays at the front of the input. The pool therefore calls again when the client has read the output, and nothing
//! behind the message is processed before its reply is complete (DP-2).

use std::sync::Arc;
use std::time::Duration;

use engine::{Account, Attempt, Turn};
use reactor::{Alarm, Connection, Flow, Io};
use sql_postgres::error::PgError;
use sql_postgres::wire::{Kill, Login, QUEUE_BYTES_MAX};
use stdx::memory;
use stdx::sync::atomic::Ordering;

use crate::auth::{self, LoginContext, LoginExchange, LoginStep};
use crate::clients::Client;
use crate::connection_state::{ConnectionState, Context, Progress};
use crate::errors;
use crate::message::{self, Cut, HEADER};
use crate::reply;
use crate::scram;
use crate::shared::Shared;
use crate::startup::{self, First, FirstCut, Startup};

/// The time for everything up to the login, the delay after failures included.
const LOGIN_MAX: Duration = Duration::from_secs(10);
/// The longest message of a login: a password in clear text, as in PostgreSQL (DP-5).
const LOGIN_MESSAGE_MAX: usize = 65_535;
/// From this size on, memory is claimed before a message is received.
const LARGE_BYTES: usize = 64 << 10;

/// A login that may not begin yet, because others from the same address to the same account have failed.
struct DelayedLogin {
    attempt: Attempt,
    until_ms: u64,
    startup: Startup,
}

/// A login in progress, and the startup message that began it.
struct PendingLogin {
    login: LoginExchange,
    attempt: Attempt,
    startup: Startup,
}

enum Phase {
    Startup,
    /// The client has been told to begin TLS.
    BeginsTls,
    DelayedLogin(Box<DelayedLogin>),
    PendingLogin(Box<PendingLogin>),
    Ready(Box<ConnectionState>),
    /// Nothing more is read.
    Over,
}

/// A message that is refused and dropped as it arrives: its kind, the bytes that are left, and the error that answers it.
struct Skip {
    kind: u8,
    left: usize,
    error: PgError,
}

pub struct Session {
    shared: Arc<Shared>,
    client: Arc<Client>,
    is_encrypted: bool,
    phase: Phase,
    skip: Option<Skip>,
    /// Ends a login that takes too long.
    login_alarm: Option<Alarm>,
}

impl Session {
    pub(crate) fn new(shared: &Arc<Shared>, connection: &Arc<Connection>) -> Session {
        let client = shared.clients.add(connection.id, connection.handle());
        let (clients, late) = (shared.clients.clone(), Arc::downgrade(&client));
        let end = move || {
            if let Some(client) = late.upgrade() {
                clients.end(&client, &errors::login_timeout());
            }
        };
        let login_alarm = shared.clients.alarm(LOGIN_MAX, Box::new(end));
        Session { shared: shared.clone(), client, is_encrypted: false, phase: Phase::Startup, skip: None, login_alarm }
    }

    /// Ends the session of a closed connection.
    pub(crate) fn end(self) {
        self.shared.clients.remove(&self.client);
    }

    pub(crate) fn serve(&mut self, io: &mut Io<'_>) -> Flow {
        if !self.client.begin() {
            // A close now could overtake the last error, which its thread may not have pushed yet. That thread also closes the connection.
            io.consume(io.input().len());
            return Flow::Continue;
        }
        let flow = self.run(io);
        if flow == Flow::Continue && matches!(&self.phase, Phase::Ready(state) if state.pending.is_some()) {
            // The connection stays busy: its reply is not complete.
            return flow;
        }
        if self.client.rest() || flow != Flow::Continue {
            return flow;
        }
        let error = match self.phase {
            Phase::Ready(_) => errors::shutdown(),
            _ => errors::login_timeout(),
        };
        self.break_off(io, &error)
    }

    fn run(&mut self, io: &mut Io<'_>) -> Flow {
        loop {
            if !self.deliver(io) {
                return Flow::Close;
            }
            if io.is_full() {
                io.pause();
                return Flow::Continue;
            }
            let flow = match self.resume(io).or_else(|| self.end_delay(io)).or_else(|| self.take(io)) {
                Some(flow) => flow,
                None => return Flow::Continue,
            };
            if flow != Flow::Continue {
                self.phase = Phase::Over;
                return flow;
            }
            if io.is_parked() || matches!(self.phase, Phase::BeginsTls) {
                return Flow::Continue;
            }
        }
    }

    /// Writes notifications that have come while the client is idle. Returns false if it does not read them (DP-11).
    fn deliver(&mut self, io: &mut Io<'_>) -> bool {
        let Phase::Ready(state) = &mut self.phase else { return true };
        if !state.sql.has_notifications() || state.pending.is_some() {
            return true;
        }
        if io.out().len() > QUEUE_BYTES_MAX {
            let address = io.connection().peer.to_string();
            self.shared.database.warn("a client that does not read its notifications is disconnected", &address);
            return false;
        }
        state.put_notifications(&mut Context { shared: &self.shared, io });
        io.hold_until_durable(state.sql.durability_lsn());
        true
    }

    /// Continues a pending reply. Returns `None` if there is none.
    fn resume(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let Phase::Ready(state) = &mut self.phase else { return None };
        state.pending.as_ref()?;
        let progress = state.resume(&mut Context { shared: &self.shared, io });
        Some(self.apply(io, progress))
    }

    /// Cuts the next packet or message off the input and handles it. Returns `None` if more has to arrive first.
    fn take(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        if self.skip.is_some() {
            return self.skip_message(io);
        }
        if io.input().is_empty() {
            return None;
        }
        match &self.phase {
            Phase::Startup => self.take_first(io),
            Phase::BeginsTls => Some(self.begin_tls(io)),
            Phase::PendingLogin(_) => self.take_login(io),
            Phase::Ready(_) => self.take_message(io),
            Phase::DelayedLogin(_) | Phase::Over => None,
        }
    }

    /// Handles a packet before the login.
    fn take_first(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        match startup::cut(io.input(), !self.is_encrypted) {
            FirstCut::More(count) => {
                io.expect(count);
                None
            }
            FirstCut::Bad(error) => Some(self.break_off(io, &error)),
            FirstCut::Packet(first, size) => {
                io.consume(size);
                Some(match first {
                    First::Tls => self.answer_tls(io),
                    First::Gss => {
                        io.out().push(b'N');
                        Flow::Continue
                    }
                    First::Cancel { pid, key } => self.cancel(pid, key),
                    First::Startup { version, body } => match startup::read(version, body) {
                        Ok(startup) => self.enter(io, startup),
                        Err(error) => self.break_off(io, &error),
                    },
                })
            }
        }
    }

    fn answer_tls(&mut self, io: &mut Io<'_>) -> Flow {
        if self.shared.tls.is_none() {
            io.out().push(b'N');
            return Flow::Continue;
        }
        if !io.input().is_empty() {
            // Whoever sends before the answer may not be the client: plain bytes are never taken for encrypted ones (DP-7).
            let error = errors::protocol("received unencrypted data after SSL request").detail(
                "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.",
            );
            return self.break_off(io, &error);
        }
        io.out().push(b'S');
        self.phase = Phase::BeginsTls;
        Flow::Continue
    }

    /// Passes the connection to TLS. Its first bytes have arrived and are not consumed.
    fn begin_tls(&mut self, io: &mut Io<'_>) -> Flow {
        let Some(tls) = &self.shared.tls else { return Flow::Close };
        io.start_tls(&tls.config);
        self.shared.stats.tls.add(1);
        self.is_encrypted = true;
        self.phase = Phase::Startup;
        Flow::Continue
    }

    /// Ends the statement of another connection. There is no answer, whether the key is right or not.
    fn cancel(&mut self, pid: u32, key: u32) -> Flow {
        let counter = if self.shared.clients.has_key(pid, key) {
            self.shared.database.kill(pid, Kill::Query);
            &self.shared.stats.cancels
        } else {
            &self.shared.stats.wrong_cancels
        };
        counter.add(1);
        Flow::Close
    }

    fn login_context(&self) -> LoginContext<'_> {
        LoginContext {
            accounts: self.shared.database.engine().accounts(),
            decoys: &self.shared.decoys,
            is_encrypted: self.is_encrypted,
            channel: self.shared.channel.as_deref().filter(|_| self.is_encrypted),
        }
    }

    /// Returns whether anybody could enter as `postgres`, and protected mode refuses clients of other machines for that.
    fn is_protected_from(&self, io: &Io<'_>) -> bool {
        let postgres = auth::find(self.shared.database.engine().accounts(), auth::POSTGRES);
        let is_open = postgres.is_some_and(|account| account.enabled && auth::is_open(&account));
        is_open && !io.connection().peer.ip().is_loopback() && self.shared.protected_mode.load(Ordering::Relaxed)
    }

    /// Begins a login at once or, without a thread, after a delay.
    fn enter(&mut self, io: &mut Io<'_>, startup: Startup) -> Flow {
        if self.is_protected_from(io) {
            return self.break_off(io, &errors::protected_mode());
        }
        if self.shared.require_secure_transport && !self.is_encrypted {
            return self.break_off(io, &errors::insecure_transport());
        }
        if startup.needs_negotiation() {
            reply::put_negotiation(io.out(), &startup.unrecognized);
        }
        let accounts = self.shared.database.engine().accounts();
        let account = auth::find(accounts, &startup.user);
        let name = account.as_ref().map_or(startup.user.as_str(), |account| &account.name);
        let now_ms = self.shared.clients.now_ms();
        match accounts.attempts().arrive(io.connection().peer.ip(), &[name], now_ms) {
            Turn::Now(attempt) => self.begin_login(io, startup, attempt),
            Turn::After(delay, attempt) => {
                let until_ms = now_ms + delay.as_millis() as u64;
                self.phase = Phase::DelayedLogin(Box::new(DelayedLogin { attempt, until_ms, startup }));
                let handle = io.connection().handle();
                io.park();
                self.shared.clients.timer(delay, Box::new(move || handle.wake()));
                Flow::Continue
            }
            Turn::Refused => {
                self.shared.stats.denied.add(1);
                self.break_off(io, &errors::too_many_logins(&startup.user))
            }
        }
    }

    /// Begins a delayed login when its time has come. Returns `None` if there is none.
    fn end_delay(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let Phase::DelayedLogin(delayed) = &self.phase else { return None };
        if self.shared.clients.now_ms() < delayed.until_ms {
            // The connection was woken for another reason.
            io.park();
            return Some(Flow::Continue);
        }
        let Phase::DelayedLogin(delayed) = std::mem::replace(&mut self.phase, Phase::Over) else { return None };
        Some(self.begin_login(io, delayed.startup, delayed.attempt))
    }

    fn begin_login(&mut self, io: &mut Io<'_>, startup: Startup, attempt: Attempt) -> Flow {
        let (login, step) = LoginExchange::begin(&self.login_context(), &startup.user);
        self.step(io, PendingLogin { login, attempt, startup }, step)
    }

    /// Handles a message of the login.
    fn take_login(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        match message::cut(io.input(), LOGIN_MESSAGE_MAX) {
            Cut::More(count) => {
                io.expect(count);
                None
            }
            Cut::Bad(error) => Some(self.break_off(io, &error)),
            Cut::TooLong(_) => Some(self.break_off(io, &errors::protocol("invalid message length"))),
            Cut::Message(message) => {
                io.consume(message.size);
                let Phase::PendingLogin(mut pending) = std::mem::replace(&mut self.phase, Phase::Over) else {
                    return Some(Flow::Close);
                };
                if message.kind != b'p' {
                    let kind = message.kind;
                    let error = errors::protocol(format!("expected password response, got message type {kind}"));
                    return Some(self.break_off(io, &error));
                }
                if pending.login.is_sasl() && message.body.len() > scram::MESSAGE_MAX {
                    return Some(self.break_off(io, &errors::protocol("invalid message length")));
                }
                let step = pending.login.resume(&self.login_context(), message.body);
                Some(self.step(io, *pending, step))
            }
        }
    }

    fn step(&mut self, io: &mut Io<'_>, pending: PendingLogin, step: LoginStep) -> Flow {
        match step {
            LoginStep::Say(messages) => {
                io.out().extend_from_slice(&messages);
                self.phase = Phase::PendingLogin(Box::new(pending));
                Flow::Continue
            }
            LoginStep::Accept(account, messages) => {
                io.out().extend_from_slice(&messages);
                self.log_in(io, pending, &account)
            }
            LoginStep::Deny(error) => {
                self.shared.stats.denied.add(1);
                pending.attempt.failed();
                self.break_off(io, &error)
            }
            LoginStep::Refuse(error) => {
                self.shared.stats.denied.add(1);
                self.break_off(io, &error)
            }
        }
    }

    /// Completes a login: begins the connection state.
    fn log_in(&mut self, io: &mut Io<'_>, pending: PendingLogin, account: &Arc<Account>) -> Flow {
        let PendingLogin { login, attempt, startup } = pending;
        attempt.passed(0);
        // The account list may have changed in between: then the account whose password was proved is not the one found now.
        let found = auth::find(self.shared.database.engine().accounts(), &login.role);
        if found.is_none_or(|found| !Arc::ptr_eq(&found, account)) {
            return self.break_off(io, &errors::wrong_password(&login.role));
        }
        let ip = io.connection().peer.ip().to_canonical();
        let login = Login {
            role: startup.user,
            account: account.name.clone(),
            database: startup.database,
            address: ip.to_string(),
            connection_id: io.connection().id,
            pid: self.client.pid,
            options: startup.options,
        };
        reply::put_authentication(io.out(), reply::auth::OK, &[]);
        match ConnectionState::begin(&self.shared, login, &self.client, io.connection()) {
            Ok(mut state) => {
                self.login_alarm = None;
                self.shared.stats.logins.add(1);
                let mut context = Context { shared: &self.shared, io };
                state.put_parameters(&mut context);
                reply::put_key(context.io.out(), self.client.pid, self.client.key);
                state.put_ready(&mut context);
                io.hold_until_durable(state.sql.durability_lsn());
                self.phase = Phase::Ready(state);
                Flow::Continue
            }
            Err(error) => self.break_off(io, &error),
        }
    }

    /// Handles a message after the login.
    fn take_message(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let max = self.shared.message_max.load(Ordering::Relaxed);
        let Phase::Ready(state) = &mut self.phase else { return Some(Flow::Close) };
        match message::cut(io.input(), max) {
            Cut::More(count) if count > LARGE_BYTES && memory::claim(count).is_err() => {
                Some(self.begin_skip(io, count, errors::out_of_memory(count)))
            }
            Cut::More(count) => {
                io.expect(count);
                None
            }
            Cut::Bad(error) => Some(self.break_off(io, &error)),
            Cut::TooLong(size) => Some(self.begin_skip(io, size, errors::message_too_long(size, max))),
            Cut::Message(message) => {
                let progress = state.run(&mut Context { shared: &self.shared, io }, &message);
                Some(self.apply(io, progress))
            }
        }
    }

    /// Refuses a message of `size` bytes before it has arrived.
    fn begin_skip(&mut self, io: &mut Io<'_>, size: usize, error: PgError) -> Flow {
        let kind = io.input()[0];
        io.consume(HEADER);
        self.skip = Some(Skip { kind, left: size - HEADER, error });
        Flow::Continue
    }

    /// Drops the available part of a refused message, so that the client reads the error instead of blocking in its own write. Returns `None` if more has to
    /// arrive first.
    fn skip_message(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let skip = self.skip.as_mut()?;
        let count = skip.left.min(io.input().len());
        io.consume(count);
        skip.left -= count;
        if skip.left > 0 {
            return None;
        }
        let Skip { kind, error, .. } = self.skip.take()?;
        let Phase::Ready(state) = &mut self.phase else { return Some(Flow::Close) };
        let mut context = Context { shared: &self.shared, io };
        let progress = match state.copy.take() {
            _ if state.skips_to_sync => Progress::Done(0),
            Some(copy) => state.end_copy(&mut context, &copy, &error, 0),
            // Data of a COPY that has failed is dropped anyway.
            None if kind == b'd' => Progress::Done(0),
            None => state.refuse(&mut context, kind, &error, 0),
        };
        Some(self.apply(io, progress))
    }

    /// Consumes input as the progress of a message demands, and holds the reply until what it reports is durable (DP-1).
    fn apply(&mut self, io: &mut Io<'_>, progress: Progress) -> Flow {
        if let Phase::Ready(state) = &self.phase {
            io.hold_until_durable(state.sql.durability_lsn());
        }
        match progress {
            Progress::Running => {}
            Progress::Close => return Flow::Close,
            Progress::Done(size) => io.consume(size),
        }
        Flow::Continue
    }

    /// Writes a fatal error; the connection is closed behind it.
    fn break_off(&mut self, io: &mut Io<'_>, error: &PgError) -> Flow {
        self.shared.stats.errors.add(1);
        reply::put_error(io.out(), reply::FATAL, error);
        Flow::Close
    }
}
