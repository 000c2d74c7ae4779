//! A connection: its phases and the loop over its packets.
//!
//! ```text
//!   greeted ──response──► login ──► ready ──command──► reply; or rows, a buffer at a time
//!      └──request for TLS──► greeted           └──CHANGE_USER──► login
//! ```
//! While rows are pending, their command stays at the front of the input. The pool therefore calls again when the client has read the output, and nothing
//! behind the command is processed before its reply is complete (DM-2).

use std::sync::Arc;
use std::time::Duration;

use engine::{Attempt, Turn as LoginTurn};
use reactor::{Connection, Flow, Io};
use sql_mysql::error::SqlError;

use crate::auth::{DenyReason, LoginContext, LoginExchange, LoginStep, new_scramble};
use crate::clients::Client;
use crate::command_context::{CommandContext, Progress};
use crate::commands;
use crate::compressed_stream::{CompressedStream, Opened};
use crate::compression::{self, Method};
use crate::connection_state::ConnectionState;
use crate::errors;
use crate::handshake::{self, FirstPacket, HandshakeResponse};
use crate::long_commands;
use crate::memory_budget::Reservation;
use crate::packet::{self, Cut, FRAME_MAX, HEADER};
use crate::protocol::{SCRAMBLE_LEN, capability, status};
use crate::reply::{OkPacket, Writer};
use crate::shared::Shared;

/// The packet limit before the login, enough for a handshake response: names, and up to 64 KB of attributes (DM-5).
const LOGIN_PACKET_MAX: usize = 128 << 10;
/// utf8mb4_0900_ai_ci.
const COLLATION: u8 = 255;

/// A login in progress, and the options of the handshake response.
struct PendingLogin {
    login: LoginExchange,
    attempt: Attempt,
    collation: u16,
    database: Vec<u8>,
    attributes: Vec<(String, String)>,
    /// For COM_CHANGE_USER: the state that continues if the login succeeds.
    state: Option<Box<ConnectionState>>,
}

/// A login that may not be checked yet, because others from the same address to the same account have failed.
struct DelayedLogin {
    attempt: Attempt,
    until_ms: u64,
    /// The login packet as sent.
    payload: Vec<u8>,
    /// For COM_CHANGE_USER: the state that continues if the login succeeds.
    state: Option<Box<ConnectionState>>,
}

enum Phase {
    Greeted,
    DelayedLogin(Box<DelayedLogin>),
    PendingLogin(Box<PendingLogin>),
    Ready(Box<ConnectionState>),
    /// Nothing more is read.
    Over,
}

/// How far a packet that is too long has been skipped. It is read to its end, so that the client reads the error instead of blocking in its own write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skip {
    No,
    /// The header of a frame is next.
    Header,
    /// Bytes left of a frame, and whether it is the last.
    Bytes(usize, bool),
}

/// A payload of several frames. Each frame is taken out of the input when it is complete, so the input never holds more than one. The last one stays there
/// until the reply is complete (DM-2).
struct PartialPayload {
    payload: Vec<u8>,
    reservation: Reservation,
}

/// The encoding of the connection's bytes.
enum Stream {
    Plain,
    /// Compressed frames, after the login, if the client asked for them.
    Compressed(Box<CompressedStream>),
    /// The content of a compressed frame while it is served.
    Inside,
}

pub struct Session {
    shared: Arc<Shared>,
    client: Arc<Client>,
    connection_id: u64,
    host: String,
    /// The client is on this machine.
    is_local: bool,
    capabilities: u32,
    /// The sequence number of the next packet in either direction.
    sequence: u8,
    scramble: [u8; SCRAMBLE_LEN],
    is_encrypted: bool,
    phase: Phase,
    skip: Skip,
    /// The error to send after a skipped packet, if it is not that the packet was too long.
    refusal: Option<SqlError>,
    partial_payload: Option<PartialPayload>,
    stream: Stream,
    /// The compression method, if the client wants one.
    method: Option<Method>,
}

impl Session {
    /// Creates the session, and its first packet.
    pub(crate) fn new(shared: &Arc<Shared>, connection: &Arc<Connection>) -> (Session, Vec<u8>) {
        let ip = connection.peer.ip();
        let login_max = shared.database.global_word("connect_timeout").parse().unwrap_or(10);
        let mut session = Session {
            client: shared.clients.add(connection.id, connection.handle(), Duration::from_secs(login_max)),
            shared: shared.clone(),
            connection_id: connection.id,
            host: if ip.is_loopback() { "localhost".into() } else { ip.to_string() },
            is_local: ip.is_loopback(),
            capabilities: 0,
            sequence: 0,
            scramble: new_scramble(),
            is_encrypted: false,
            phase: Phase::Greeted,
            skip: Skip::No,
            refusal: None,
            partial_payload: None,
            stream: Stream::Plain,
            method: None,
        };
        let (id, scramble) = (session.connection_id as u32, session.scramble);
        let compressed = capability::COMPRESS | capability::ZSTD;
        let offered = session.known() & !compressed | compression::offered(&session.algorithms());
        let mut greeting = Vec::with_capacity(128);
        session.writer(&mut greeting).packet(|out| {
            handshake::put_greeting(out, id, &scramble, offered, (COLLATION, status::AUTOCOMMIT));
        });
        (session, greeting)
    }

    /// Returns the capabilities that are recognised in a handshake response.
    fn known(&self) -> u32 {
        capability::OFFERED | if self.shared.tls.is_some() { capability::SSL } else { 0 }
    }

    fn algorithms(&self) -> String {
        self.shared.database.global_word("protocol_compression_algorithms")
    }

    fn writer<'a>(&'a mut self, out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out, sequence: &mut self.sequence, capabilities: self.capabilities }
    }

    /// Ends the session of a closed connection.
    pub(crate) fn end(self) {
        self.shared.clients.remove(&self.client);
    }

    pub(crate) fn serve(&mut self, io: &mut Io<'_>) -> Flow {
        self.client.begin();
        let before = (io.input().len(), io.out().len());
        let flow = match std::mem::replace(&mut self.stream, Stream::Inside) {
            Stream::Compressed(compressed_stream) => self.run_compressed(io, compressed_stream),
            plain => {
                self.stream = plain;
                self.run(io)
            }
        };
        self.count(before, io);
        // While rows are pending, the client has to read, which the pool watches.
        if matches!(&self.phase, Phase::Ready(state) if state.has_pending_reply()) {
            return flow;
        }
        self.client.rest(self.shared.clients.now_ms(), self.sequence);
        flow
    }

    /// Counts the received and sent bytes after the login: Bytes_received, Bytes_sent.
    fn count(&self, (input, out): (usize, usize), io: &mut Io<'_>) {
        if let Phase::Ready(state) = &self.phase {
            let (received, sent) = (input.saturating_sub(io.input().len()), io.out().len().saturating_sub(out));
            state.sql.count_bytes(received as u64, sent as u64);
        }
    }

    /// Decompresses frame after frame and serves their content. A frame is consumed when all of its content is, or when the rest is an incomplete packet; not
    /// while rows are pending (DM-11).
    fn run_compressed(&mut self, io: &mut Io<'_>, mut compressed_stream: Box<CompressedStream>) -> Flow {
        let flow = loop {
            let inside = {
                let CompressedStream { input, out, .. } = &mut *compressed_stream;
                io.nested(input, out, |inner| self.run(inner))
            };
            compressed_stream.consume(inside.consumed);
            compressed_stream.put(io.out());
            if inside.result != Flow::Continue {
                break inside.result;
            }
            if io.is_parked() {
                // The command stays in the frame, and the frame in the input.
                break Flow::Continue;
            }
            if inside.is_paused {
                io.pause();
                break Flow::Continue;
            }
            if io.is_parked() && matches!(self.phase, Phase::DelayedLogin(_)) {
                break Flow::Continue;
            }
            io.consume(std::mem::take(&mut compressed_stream.held));
            match compressed_stream.open(io.input()) {
                Opened::Frame(size) => compressed_stream.held = size,
                Opened::More(size) => {
                    if !io.input().is_empty() {
                        io.expect(size);
                    }
                    break Flow::Continue;
                }
                Opened::DenyReason(error) => {
                    self.shared.stats.errors.add(1);
                    // The error answers the packet that could not be read.
                    self.sequence = self.sequence.wrapping_add(1);
                    self.writer(&mut compressed_stream.out).error(&error);
                    compressed_stream.put(io.out());
                    self.phase = Phase::Over;
                    break Flow::Close;
                }
            }
        };
        self.stream = Stream::Compressed(compressed_stream);
        flow
    }

    fn run(&mut self, io: &mut Io<'_>) -> Flow {
        loop {
            if io.is_full() {
                io.pause();
                return Flow::Continue;
            }
            let flow = match self.resume(io) {
                Some(flow) => flow,
                None => match self.end_delay(io).or_else(|| self.take(io)) {
                    Some(flow) => flow,
                    None => return Flow::Continue,
                },
            };
            if flow != Flow::Continue {
                self.phase = Phase::Over;
                return flow;
            }
            if io.is_parked() {
                return Flow::Continue;
            }
            if let Some(method) = self.method
                && matches!((&self.stream, &self.phase), (Stream::Plain, Phase::Ready(_)))
            {
                self.client.compressed_stream();
                self.stream = Stream::Inside;
                return self.run_compressed(io, Box::new(CompressedStream::new(method)));
            }
        }
    }

    /// Continues a pending reply. Returns `None` if there is none.
    fn resume(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let Phase::Ready(state) = &mut self.phase else { return None };
        if !state.has_pending_reply() {
            return None;
        }
        let mut context =
            CommandContext { shared: &self.shared, sequence: &mut self.sequence, capabilities: self.capabilities, io };
        let progress = state.resume(&mut context);
        Some(self.apply(io, progress))
    }

    /// Passes bytes of the client's file on as they arrive. Returns `None` if more has to arrive first.
    fn take_file(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let Phase::Ready(state) = &mut self.phase else { return None };
        let mut context =
            CommandContext { shared: &self.shared, sequence: &mut self.sequence, capabilities: self.capabilities, io };
        match state.receive(&mut context) {
            Ok(progress) => progress.map(|progress| self.apply(io, progress)),
            Err(error) => Some(self.break_off(io, &error)),
        }
    }

    /// Cuts the next packet off the input and handles it. Returns `None` if more has to arrive first.
    fn take(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        if self.skip != Skip::No {
            return self.skip_packet(io);
        }
        let input = io.input();
        if input.is_empty() {
            return None;
        }
        if matches!(&self.phase, Phase::Ready(state) if state.is_receiving()) {
            return self.take_file(io);
        }
        let (expected, payload_max) = match &self.phase {
            Phase::Ready(state) => match &self.partial_payload {
                None => (0, state.packet_max()),
                Some(partial_payload) => (self.sequence, state.packet_max() - partial_payload.payload.len()),
            },
            Phase::Over | Phase::DelayedLogin(_) => return None,
            _ => (self.sequence, LOGIN_PACKET_MAX),
        };
        match packet::cut(input, expected, payload_max) {
            Cut::More(count) => {
                io.expect(count);
                None
            }
            Cut::OutOfOrder => Some(self.break_off(io, &errors::OUT_OF_ORDER.bare())),
            Cut::TooLong(_) => {
                self.partial_payload = None;
                self.skip = Skip::Header;
                Some(Flow::Continue)
            }
            Cut::Frame(frame) => {
                self.gather(frame);
                io.consume(HEADER + FRAME_MAX);
                self.sequence = expected.wrapping_add(1);
                Some(Flow::Continue)
            }
            Cut::Packet(packet) => {
                self.sequence = packet.next;
                match self.partial_payload.take() {
                    None => Some(self.dispatch(io, packet.payload, packet.size)),
                    Some(mut partial_payload) => {
                        partial_payload.payload.reserve_exact(packet.payload.len());
                        partial_payload.payload.extend_from_slice(packet.payload);
                        Some(self.long_command(io, partial_payload.payload, packet.size))
                    }
                }
            }
        }
    }

    /// Adds a frame to a long payload. If it does not fit the memory budget, the rest of the packet is skipped.
    fn gather(&mut self, frame: &[u8]) {
        // The value, and the row that it becomes a part of.
        let bytes = 2 * FRAME_MAX as u64;
        let has_room = match &mut self.partial_payload {
            Some(partial_payload) => partial_payload.reservation.grow(bytes),
            None => {
                let reservation = self.shared.memory_budget.take(bytes);
                self.partial_payload =
                    reservation.map(|reservation| PartialPayload { payload: Vec::new(), reservation });
                self.partial_payload.is_some()
            }
        };
        match &mut self.partial_payload {
            Some(PartialPayload { payload, .. }) if has_room => {
                payload.reserve_exact(FRAME_MAX);
                payload.extend_from_slice(frame);
            }
            _ => {
                self.partial_payload = None;
                self.refusal = Some(errors::OUT_OF_RESOURCES.bare());
                self.skip = Skip::Header;
            }
        }
    }

    /// Skips the available part of a packet that is too long. Returns `None` if more has to arrive first.
    fn skip_packet(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        match self.skip {
            Skip::No => unreachable!("the caller has looked"),
            Skip::Header => {
                let (length, sequence) = packet::header(io.input())?;
                io.consume(packet::HEADER);
                self.sequence = sequence.wrapping_add(1);
                self.skip = Skip::Bytes(length, length < packet::FRAME_MAX);
            }
            Skip::Bytes(0, true) => {
                let Some(refusal) = self.refusal.take() else {
                    return Some(self.break_off(io, &errors::PACKET_TOO_LARGE.bare()));
                };
                self.shared.stats.errors.add(1);
                self.writer(io.out()).error(&refusal);
                self.sequence = 0;
                self.skip = Skip::No;
            }
            Skip::Bytes(0, false) => self.skip = Skip::Header,
            Skip::Bytes(_, _) if io.input().is_empty() => return None,
            Skip::Bytes(left, last) => {
                let count = left.min(io.input().len());
                io.consume(count);
                self.skip = Skip::Bytes(left - count, last);
            }
        }
        Some(Flow::Continue)
    }

    fn break_off(&mut self, io: &mut Io<'_>, error: &SqlError) -> Flow {
        self.shared.stats.errors.add(1);
        self.writer(io.out()).error(error);
        Flow::Close
    }

    fn dispatch(&mut self, io: &mut Io<'_>, payload: &[u8], size: usize) -> Flow {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Greeted => {
                io.consume(size);
                self.first_packet(io, payload)
            }
            Phase::PendingLogin(mut pending_login) => {
                io.consume(size);
                let step = pending_login.login.resume(&self.ground(), payload);
                if pending_login.login.quick_proof_failed() {
                    pending_login.attempt.show();
                }
                self.step(io, *pending_login, step)
            }
            Phase::Ready(state) => self.command(io, state, payload, size),
            Phase::Over | Phase::DelayedLogin(_) => Flow::Close,
        }
    }

    /// Checks a delayed login when its time has come. Returns `None` if there is none.
    fn end_delay(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let Phase::DelayedLogin(delayed) = &self.phase else { return None };
        if self.shared.clients.now_ms() < delayed.until_ms {
            // The connection was woken for another reason.
            io.park();
            return Some(Flow::Continue);
        }
        let Phase::DelayedLogin(delayed) = std::mem::replace(&mut self.phase, Phase::Over) else { return None };
        let DelayedLogin { attempt, payload, state, .. } = *delayed;
        Some(match self.read_answer(&payload, state.is_some()) {
            Some(answer) => self.check(io, &answer, attempt, state),
            None => self.break_off(io, &errors::MALFORMED.bare()),
        })
    }

    /// Reads a login packet: the handshake response or COM_CHANGE_USER.
    fn read_answer<'p>(&self, payload: &'p [u8], changes_user: bool) -> Option<HandshakeResponse<'p>> {
        if changes_user {
            return handshake::read_change_user(&payload[1..], self.capabilities);
        }
        let known = if self.is_encrypted { capability::OFFERED | capability::SSL } else { self.known() };
        match handshake::read_first(payload, known) {
            Some(FirstPacket::HandshakeResponse(answer)) => Some(answer),
            _ => None,
        }
    }

    fn command(&mut self, io: &mut Io<'_>, mut state: Box<ConnectionState>, payload: &[u8], size: usize) -> Flow {
        const CHANGE_USER: u8 = 0x11;
        if payload.first() == Some(&CHANGE_USER) {
            self.shared.stats.commands.add(1);
            io.consume(size);
            return match self.read_answer(payload, true) {
                Some(answer) => self.enter(io, &answer, payload, Some(state)),
                None => self.break_off(io, &errors::MALFORMED.bare()),
            };
        }
        if long_commands::is_long(payload) {
            self.phase = Phase::Ready(state);
            return self.long_command(io, payload.to_vec(), size);
        }
        self.shared.stats.commands.add(1);
        let mut context =
            CommandContext { shared: &self.shared, sequence: &mut self.sequence, capabilities: self.capabilities, io };
        let next = commands::run(&mut state, &mut context, payload, size);
        self.settle(io, state, next)
    }

    /// Runs a command that owns its payload.
    fn long_command(&mut self, io: &mut Io<'_>, payload: Vec<u8>, size: usize) -> Flow {
        let Phase::Ready(mut state) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return Flow::Close;
        };
        self.shared.stats.commands.add(1);
        let mut context =
            CommandContext { shared: &self.shared, sequence: &mut self.sequence, capabilities: self.capabilities, io };
        let next = long_commands::run(&mut state, &mut context, payload, size);
        self.settle(io, state, next)
    }

    /// Keeps the connection's state after a command, and applies its progress.
    fn settle(&mut self, io: &mut Io<'_>, state: Box<ConnectionState>, next: Progress) -> Flow {
        self.phase = Phase::Ready(state);
        self.apply(io, next)
    }

    /// Consumes input as the progress of a command demands. A complete reply resets the sequence number, and ends a released session.
    fn apply(&mut self, io: &mut Io<'_>, progress: Progress) -> Flow {
        match progress {
            Progress::Running => {}
            Progress::Close => return Flow::Close,
            Progress::AwaitsInput(size) => io.consume(size),
            Progress::Done(size) => {
                io.consume(size);
                self.sequence = 0;
                if matches!(&self.phase, Phase::Ready(state) if state.sql.is_released()) {
                    return Flow::Close;
                }
            }
        }
        Flow::Continue
    }

    fn ground(&self) -> LoginContext<'_> {
        let shared = &self.shared;
        LoginContext {
            accounts: shared.engine().accounts(),
            digest_cache: &shared.digest_cache,
            rsa_key: &shared.rsa_key,
            is_encrypted: self.is_encrypted,
            is_local: self.is_local,
            handles_expired: self.capabilities & capability::CAN_HANDLE_EXPIRED_PASSWORDS != 0,
        }
    }

    /// Handles the client's first packet, or the second if the first requested TLS.
    fn first_packet(&mut self, io: &mut Io<'_>, payload: &[u8]) -> Flow {
        let known = if self.is_encrypted { capability::OFFERED | capability::SSL } else { self.known() };
        match handshake::read_first(payload, known) {
            Some(FirstPacket::Tls) if !self.is_encrypted => {
                let tls = self.shared.tls.clone().expect("offered");
                io.start_tls(&tls);
                self.is_encrypted = true;
                self.shared.stats.tls.add(1);
                self.phase = Phase::Greeted;
                Flow::Continue
            }
            Some(FirstPacket::HandshakeResponse(answer)) => {
                self.capabilities = answer.capabilities;
                if self.shared.require_secure_transport && !self.is_encrypted {
                    return self.break_off(io, &errors::insecure_transport());
                }
                match Method::chosen(answer.capabilities, answer.zstd_level, &self.algorithms()) {
                    Ok(method) => self.method = method,
                    Err(error) => return self.break_off(io, &error),
                }
                self.enter(io, &answer, payload, None)
            }
            _ => self.break_off(io, &errors::BAD_HANDSHAKE.bare()),
        }
    }

    /// Checks a login at once or, without a thread, after a delay. `payload` holds the login packet.
    fn enter(
        &mut self,
        io: &mut Io<'_>,
        answer: &HandshakeResponse<'_>,
        payload: &[u8],
        state: Option<Box<ConnectionState>>,
    ) -> Flow {
        let Ok(user) = std::str::from_utf8(answer.user) else {
            return self.break_off(io, &errors::MALFORMED.bare());
        };
        let accounts = self.shared.engine().accounts();
        let account = sql_mysql::rights::find(accounts, user, &self.host);
        let name = account.as_ref().map_or(user, |account| &account.name);
        let now_ms = self.shared.clients.now_ms();
        match accounts.attempts().arrive(io.connection().peer.ip(), &[name], now_ms) {
            LoginTurn::Now(attempt) => self.check(io, answer, attempt, state),
            LoginTurn::After(delay, attempt) => {
                let until_ms = now_ms + delay.as_millis() as u64;
                self.phase =
                    Phase::DelayedLogin(Box::new(DelayedLogin { attempt, until_ms, payload: payload.to_vec(), state }));
                let handle = io.connection().handle();
                io.park();
                self.shared.clients.timer(delay, Box::new(move || handle.wake()));
                Flow::Continue
            }
            LoginTurn::Refused => {
                self.shared.stats.denied.add(1);
                self.break_off(io, &errors::TOO_MANY_LOGINS.with(&[&user, &self.host]))
            }
        }
    }

    fn check(
        &mut self,
        io: &mut Io<'_>,
        answer: &HandshakeResponse<'_>,
        mut attempt: Attempt,
        state: Option<Box<ConnectionState>>,
    ) -> Flow {
        let Ok(user) = std::str::from_utf8(answer.user) else {
            return self.break_off(io, &errors::MALFORMED.bare());
        };
        let (login, step) =
            LoginExchange::begin(&self.ground(), user, &self.host, self.scramble, answer.plugin, answer.response);
        let database = answer.database.to_vec();
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let attributes = answer.attributes.iter().map(|(name, value)| (words(name), words(value))).collect();
        if login.quick_proof_failed() {
            attempt.show();
        }
        self.step(io, PendingLogin { login, attempt, collation: answer.collation, database, attributes, state }, step)
    }

    fn step(&mut self, io: &mut Io<'_>, pending_login: PendingLogin, step: LoginStep) -> Flow {
        match step {
            LoginStep::Say(payload) => {
                self.writer(io.out()).packet(|out| out.extend_from_slice(&payload));
                self.phase = Phase::PendingLogin(Box::new(pending_login));
                Flow::Continue
            }
            LoginStep::Deny => {
                self.shared.stats.denied.add(1);
                // The account is locked or requires TLS: the password was right, but a quick answer would reveal that.
                pending_login.attempt.failed();
                if let Some(error) = self.refusal(&pending_login.login) {
                    return self.break_off(io, &error);
                }
                let word = if pending_login.login.has_password { "YES" } else { "NO" };
                let error = sql_mysql::error::ACCESS_DENIED.with(&[&pending_login.login.user, &self.host, &word]);
                self.break_off(io, &error)
            }
            LoginStep::Accept(account, payload) => {
                if !payload.is_empty() {
                    self.writer(io.out()).packet(|out| out.extend_from_slice(&payload));
                }
                self.log_in(io, pending_login, &account.name)
            }
        }
    }

    /// Returns the error of a login that is denied although the password is right.
    fn refusal(&self, login: &LoginExchange) -> Option<SqlError> {
        match login.deny_reason {
            DenyReason::Locked => Some(sql_mysql::error::ACCOUNT_HAS_BEEN_LOCKED.with(&[&login.user, &self.host])),
            DenyReason::Expired => Some(sql_mysql::error::MUST_CHANGE_PASSWORD_LOGIN.bare()),
            DenyReason::No => None,
        }
    }

    /// Completes a login: begins the connection state, or switches it to the other account.
    fn log_in(&mut self, io: &mut Io<'_>, pending_login: PendingLogin, account: &str) -> Flow {
        let PendingLogin { login, attempt, collation, database, attributes, state } = pending_login;
        attempt.passed(0);
        let name = if login.user.is_empty() { account.to_string() } else { login.user };
        let who = sql_mysql::Login {
            user: name.clone(),
            host: self.host.clone(),
            database: None,
            connection_id: self.connection_id,
        };
        let options = (collation, &database[..], self.capabilities);
        let begun = match state {
            None => ConnectionState::begin(&self.shared, who, options, &self.client, io.connection()),
            Some(state) => state.change_user(who, options),
        };
        match begun {
            // The account list has changed in between: then the account whose password was proved is not the one found now.
            Ok(state) if state.sql.account() != account => {
                let error = sql_mysql::error::ACCESS_DENIED.with(&[&name, &self.host, &"YES"]);
                self.break_off(io, &error)
            }
            Ok(mut state) => {
                state.sql.describe_client(attributes);
                state.sql.tell_compression(self.method.map(|method| (method.name(), method.level())));
                state.sql.tell_sealing(io.tls_info().map(|tls| (tls.version, tls.cipher)));
                self.shared.stats.logins.add(1);
                let (status, changes) = (state.status_word(), state.changes(self.capabilities));
                self.writer(io.out()).ok(&OkPacket { status, changes: &changes, ..OkPacket::default() });
                self.sequence = 0;
                self.phase = Phase::Ready(state);
                Flow::Continue
            }
            Err(error) => self.break_off(io, &error),
        }
    }
}
