//! A connection's state and the loop over its packets.
//!
//! ```text
//!   greeted ──answer──► login ──► ready ──command──► reply; or rows under way, a buffer at a time
//!      └──request for TLS──► greeted           └──CHANGE_USER──► login
//! ```
//! While rows are under way their command stays at the front of the input: so the pool knows that there is something to go on with when the client has
//! taken what was written, and nothing behind it is looked at before.

use std::sync::Arc;
use std::time::Duration;

use engine::{Attempt, Turn as LoginTurn};
use query::error::SqlError;
use reactor::{Connection, Flow, Io};

use crate::auth::{Ground, Login, Refused, Step, new_scramble};
use crate::clients::Client;
use crate::compression::{self, Method};
use crate::conversation::{Conversation, Next, Turn, is_long};
use crate::door::Shared;
use crate::errors;
use crate::handshake::{self, Answer, First, SCRAMBLE};
use crate::packet::{self, Cut, FRAME_MAX, HEADER};
use crate::protocol::{capability, status};
use crate::reply::{Ending, Writer};
use crate::room::Share;
use crate::squeeze::{Opened, Squeeze};

/// Before the login a client gets no more room than its answer may need: names, and attributes of up to 64 KB.
const LOGIN_PACKET_MAX: usize = 128 << 10;
/// utf8mb4_0900_ai_ci.
const COLLATION: u8 = 255;

/// A login under way, and what the client asked for besides.
struct Entering {
    login: Login,
    attempt: Attempt,
    collation: u16,
    database: Vec<u8>,
    attributes: Vec<(String, String)>,
    /// CHANGE_USER: what goes on if it succeeds.
    conversation: Option<Box<Conversation>>,
}

/// A login that may not be checked yet, because others from the same address to the same account have failed.
struct Delayed {
    attempt: Attempt,
    until_ms: u64,
    /// The client's login, as sent.
    payload: Vec<u8>,
    /// CHANGE_USER: what goes on if it succeeds.
    conversation: Option<Box<Conversation>>,
}

enum Phase {
    Greeted,
    Delayed(Box<Delayed>),
    Entering(Box<Entering>),
    Ready(Box<Conversation>),
    /// Nothing more is read.
    Over,
}

/// A packet that is too long passes by, so that the client reads the error instead of hanging in its own writing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skip {
    No,
    /// The header of a frame is next.
    Header,
    /// So many bytes of a frame; whether it is the last.
    Bytes(usize, bool),
}

/// A payload of several frames: each is taken out of the input as it comes, so the input never holds more than one. The last one stays there until the reply is whole (Y2).
struct Gathering {
    payload: Vec<u8>,
    share: Share,
}

/// What the connection's bytes are.
enum Stream {
    Plain,
    /// Frames, from the login on, if the client asked for it.
    Squeezed(Box<Squeeze>),
    /// What was in a frame, while it is served.
    Inside,
}

pub struct Session {
    shared: Arc<Shared>,
    client: Arc<Client>,
    connection_id: u64,
    host: String,
    /// The client is on this machine.
    is_near: bool,
    capabilities: u32,
    /// Of the next packet, whoever sends it.
    sequence: u8,
    scramble: [u8; SCRAMBLE],
    is_private: bool,
    phase: Phase,
    skip: Skip,
    /// What is told when a packet has passed by, if not that it was too long.
    refusal: Option<SqlError>,
    gathering: Option<Gathering>,
    stream: Stream,
    /// How frames are made shorter, if the client wants them.
    method: Option<Method>,
}

impl Session {
    /// The session and its first packet.
    pub(crate) fn new(shared: &Arc<Shared>, connection: &Arc<Connection>) -> (Session, Vec<u8>) {
        let ip = connection.peer.ip();
        let login_max = shared.database.global_word("connect_timeout").parse().unwrap_or(10);
        let mut session = Session {
            client: shared.clients.add(connection.id, connection.handle(), Duration::from_secs(login_max)),
            shared: shared.clone(),
            connection_id: connection.id,
            host: if ip.is_loopback() { "localhost".into() } else { ip.to_string() },
            is_near: ip.is_loopback(),
            capabilities: 0,
            sequence: 0,
            scramble: new_scramble(),
            is_private: false,
            phase: Phase::Greeted,
            skip: Skip::No,
            refusal: None,
            gathering: None,
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

    /// What is understood of a client's answer.
    fn known(&self) -> u32 {
        capability::OFFERED | if self.shared.tls.is_some() { capability::SSL } else { 0 }
    }

    fn algorithms(&self) -> String {
        self.shared.database.global_word("protocol_compression_algorithms")
    }

    fn writer<'a>(&'a mut self, out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out, sequence: &mut self.sequence, capabilities: self.capabilities }
    }

    /// The connection is gone.
    pub(crate) fn end(self) {
        self.shared.clients.remove(&self.client);
    }

    pub(crate) fn serve(&mut self, io: &mut Io<'_>) -> Flow {
        self.client.begin();
        let before = (io.input().len(), io.out().len());
        let flow = match std::mem::replace(&mut self.stream, Stream::Inside) {
            Stream::Squeezed(squeeze) => self.run_squeezed(io, squeeze),
            plain => {
                self.stream = plain;
                self.run(io)
            }
        };
        self.count(before, io);
        // While rows are under way it is the client's turn to read, which the pool watches.
        if matches!(&self.phase, Phase::Ready(conversation) if conversation.is_running()) {
            return flow;
        }
        self.client.rest(self.shared.clients.now_ms(), self.sequence);
        flow
    }

    /// Counts what came and went, from the login on: Bytes_received, Bytes_sent.
    fn count(&self, (input, out): (usize, usize), io: &mut Io<'_>) {
        if let Phase::Ready(conversation) = &self.phase {
            let (received, sent) = (input.saturating_sub(io.input().len()), io.out().len().saturating_sub(out));
            conversation.sql.count_bytes(received as u64, sent as u64);
        }
    }

    /// Opens frame after frame and runs what is inside. A frame is consumed when all that is in it has been, or when the rest waits for more: not while rows are under way.
    fn run_squeezed(&mut self, io: &mut Io<'_>, mut squeeze: Box<Squeeze>) -> Flow {
        let flow = loop {
            let inside = {
                let Squeeze { input, out, .. } = &mut *squeeze;
                io.nested(input, out, |inner| self.run(inner))
            };
            squeeze.consume(inside.consumed);
            squeeze.put(io.out());
            if inside.result != Flow::Continue {
                break inside.result;
            }
            if io.is_parked() {
                // Its command stays in the frame, and the frame in the input.
                break Flow::Continue;
            }
            if inside.is_paused {
                io.pause();
                break Flow::Continue;
            }
            if io.is_parked() && matches!(self.phase, Phase::Delayed(_)) {
                break Flow::Continue;
            }
            io.consume(std::mem::take(&mut squeeze.held));
            match squeeze.open(io.input()) {
                Opened::Frame(size) => squeeze.held = size,
                Opened::More(size) => {
                    if !io.input().is_empty() {
                        io.expect(size);
                    }
                    break Flow::Continue;
                }
                Opened::Refused(error) => {
                    self.shared.stats.errors.add(1);
                    // It answers the packet that did not come.
                    self.sequence = self.sequence.wrapping_add(1);
                    self.writer(&mut squeeze.out).error(&error);
                    squeeze.put(io.out());
                    self.phase = Phase::Over;
                    break Flow::Close;
                }
            }
        };
        self.stream = Stream::Squeezed(squeeze);
        flow
    }

    fn run(&mut self, io: &mut Io<'_>) -> Flow {
        loop {
            if io.is_full() {
                io.pause();
                return Flow::Continue;
            }
            let flow = match self.go_on(io) {
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
                self.client.squeeze();
                self.stream = Stream::Inside;
                return self.run_squeezed(io, Box::new(Squeeze::new(method)));
            }
        }
    }

    /// Goes on with rows that are under way, if there are any.
    fn go_on(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let Phase::Ready(conversation) = &mut self.phase else { return None };
        if !conversation.is_running() {
            return None;
        }
        let mut turn = Turn { shared: &self.shared, sequence: &mut self.sequence, capabilities: self.capabilities, io };
        match conversation.go_on(&mut turn) {
            Next::Running => {}
            Next::Close => return Some(Flow::Close),
            Next::Awaits(size) => turn.io.consume(size),
            Next::Done(size) => {
                turn.io.consume(size);
                self.sequence = 0;
                if conversation.sql.is_released() {
                    return Some(Flow::Close);
                }
            }
        }
        Some(Flow::Continue)
    }

    /// What comes belongs to the client's file: its frames are passed on as far as they have come. `None`: more must come first.
    fn take_file(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let Phase::Ready(conversation) = &mut self.phase else { return None };
        let mut turn = Turn { shared: &self.shared, sequence: &mut self.sequence, capabilities: self.capabilities, io };
        let next = match conversation.receive(&mut turn) {
            Ok(next) => next?,
            Err(error) => return Some(self.break_off(io, &error)),
        };
        match next {
            Next::Running => {}
            Next::Close => return Some(Flow::Close),
            Next::Awaits(size) => turn.io.consume(size),
            Next::Done(size) => {
                turn.io.consume(size);
                self.sequence = 0;
            }
        }
        Some(Flow::Continue)
    }

    /// Cuts the next packet off the input and does what it says. `None`: more must come first.
    fn take(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        if self.skip != Skip::No {
            return self.pass_by(io);
        }
        let input = io.input();
        if input.is_empty() {
            return None;
        }
        if matches!(&self.phase, Phase::Ready(conversation) if conversation.is_receiving()) {
            return self.take_file(io);
        }
        let (expected, payload_max) = match &self.phase {
            Phase::Ready(conversation) => match &self.gathering {
                None => (0, conversation.packet_max()),
                Some(gathering) => (self.sequence, conversation.packet_max() - gathering.payload.len()),
            },
            Phase::Over | Phase::Delayed(_) => return None,
            _ => (self.sequence, LOGIN_PACKET_MAX),
        };
        match packet::cut(input, expected, payload_max) {
            Cut::More(count) => {
                io.expect(count);
                None
            }
            Cut::OutOfOrder => Some(self.break_off(io, &errors::OUT_OF_ORDER.bare())),
            Cut::TooLong(_) => {
                self.gathering = None;
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
                match self.gathering.take() {
                    None => Some(self.dispatch(io, packet.payload, packet.size)),
                    Some(mut gathering) => {
                        gathering.payload.reserve_exact(packet.payload.len());
                        gathering.payload.extend_from_slice(packet.payload);
                        Some(self.long_command(io, gathering.payload, packet.size))
                    }
                }
            }
        }
    }

    /// One more frame of a long payload; if there is no room for it, the rest passes by.
    fn gather(&mut self, frame: &[u8]) {
        // The value, and the row that it becomes a part of.
        let bytes = 2 * FRAME_MAX as u64;
        let has_room = match &mut self.gathering {
            Some(gathering) => gathering.share.grow(bytes),
            None => {
                let share = self.shared.room.take(bytes);
                self.gathering = share.map(|share| Gathering { payload: Vec::new(), share });
                self.gathering.is_some()
            }
        };
        match &mut self.gathering {
            Some(Gathering { payload, .. }) if has_room => {
                payload.reserve_exact(FRAME_MAX);
                payload.extend_from_slice(frame);
            }
            _ => {
                self.gathering = None;
                self.refusal = Some(errors::OUT_OF_RESOURCES.bare());
                self.skip = Skip::Header;
            }
        }
    }

    /// Lets go of what there is of a packet that is too long. `None`: more must come first.
    fn pass_by(&mut self, io: &mut Io<'_>) -> Option<Flow> {
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
                self.meet(io, payload)
            }
            Phase::Entering(mut entering) => {
                io.consume(size);
                let step = entering.login.go_on(&self.ground(), payload);
                if entering.login.is_disproved() {
                    entering.attempt.show();
                }
                self.step(io, *entering, step)
            }
            Phase::Ready(conversation) => self.command(io, conversation, payload, size),
            Phase::Over | Phase::Delayed(_) => Flow::Close,
        }
    }

    /// A delayed login is checked when its time has come. `None`: there is none.
    fn end_delay(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let Phase::Delayed(delayed) = &self.phase else { return None };
        if self.shared.clients.now_ms() < delayed.until_ms {
            // Something else has woken it.
            io.park();
            return Some(Flow::Continue);
        }
        let Phase::Delayed(delayed) = std::mem::replace(&mut self.phase, Phase::Over) else { return None };
        let Delayed { attempt, payload, conversation, .. } = *delayed;
        Some(match self.read_answer(&payload, conversation.is_some()) {
            Some(answer) => self.check(io, &answer, attempt, conversation),
            None => self.break_off(io, &errors::MALFORMED.bare()),
        })
    }

    /// A client's login, its first or one as another user.
    fn read_answer<'p>(&self, payload: &'p [u8], changes_user: bool) -> Option<Answer<'p>> {
        if changes_user {
            return handshake::read_change_user(&payload[1..], self.capabilities);
        }
        let known = if self.is_private { capability::OFFERED | capability::SSL } else { self.known() };
        match handshake::read_first(payload, known) {
            Some(First::Answer(answer)) => Some(answer),
            _ => None,
        }
    }

    fn command(&mut self, io: &mut Io<'_>, mut conversation: Box<Conversation>, payload: &[u8], size: usize) -> Flow {
        const CHANGE_USER: u8 = 0x11;
        if payload.first() == Some(&CHANGE_USER) {
            self.shared.stats.commands.add(1);
            io.consume(size);
            return match self.read_answer(payload, true) {
                Some(answer) => self.enter(io, &answer, payload, Some(conversation)),
                None => self.break_off(io, &errors::MALFORMED.bare()),
            };
        }
        if is_long(payload) {
            self.phase = Phase::Ready(conversation);
            return self.long_command(io, payload.to_vec(), size);
        }
        self.shared.stats.commands.add(1);
        let mut turn = Turn { shared: &self.shared, sequence: &mut self.sequence, capabilities: self.capabilities, io };
        let next = conversation.command(&mut turn, payload, size);
        self.settle(io, conversation, next)
    }

    /// The same for a payload that is the command's own.
    fn long_command(&mut self, io: &mut Io<'_>, payload: Vec<u8>, size: usize) -> Flow {
        let Phase::Ready(mut conversation) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return Flow::Close;
        };
        self.shared.stats.commands.add(1);
        let mut turn = Turn { shared: &self.shared, sequence: &mut self.sequence, capabilities: self.capabilities, io };
        let next = conversation.long_command(&mut turn, payload, size);
        self.settle(io, conversation, next)
    }

    /// How things stand after a command.
    fn settle(&mut self, io: &mut Io<'_>, conversation: Box<Conversation>, next: Next) -> Flow {
        match next {
            Next::Running => {}
            Next::Close => return Flow::Close,
            Next::Awaits(size) => io.consume(size),
            Next::Done(size) => {
                io.consume(size);
                self.sequence = 0;
                if conversation.sql.is_released() {
                    return Flow::Close;
                }
            }
        }
        self.phase = Phase::Ready(conversation);
        Flow::Continue
    }

    fn ground(&self) -> Ground<'_> {
        let shared = &self.shared;
        Ground {
            accounts: shared.engine().accounts(),
            remembered: &shared.remembered,
            seal: &shared.seal,
            is_private: self.is_private,
            is_near: self.is_near,
            handles_expired: self.capabilities & capability::CAN_HANDLE_EXPIRED_PASSWORDS != 0,
        }
    }

    /// The client's first packet, or its second if the first asked for TLS.
    fn meet(&mut self, io: &mut Io<'_>, payload: &[u8]) -> Flow {
        let known = if self.is_private { capability::OFFERED | capability::SSL } else { self.known() };
        match handshake::read_first(payload, known) {
            Some(First::Tls) if !self.is_private => {
                let tls = self.shared.tls.clone().expect("offered");
                io.start_tls(&tls);
                self.is_private = true;
                self.shared.stats.tls.add(1);
                self.phase = Phase::Greeted;
                Flow::Continue
            }
            Some(First::Answer(answer)) => {
                self.capabilities = answer.capabilities;
                if self.shared.require_secure_transport && !self.is_private {
                    return self.break_off(io, &errors::SECURE_TRANSPORT.bare());
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

    /// Checks a login at once or, without a thread, after a delay. `payload` holds the answer.
    fn enter(
        &mut self,
        io: &mut Io<'_>,
        answer: &Answer<'_>,
        payload: &[u8],
        conversation: Option<Box<Conversation>>,
    ) -> Flow {
        let Ok(user) = std::str::from_utf8(answer.user) else {
            return self.break_off(io, &errors::MALFORMED.bare());
        };
        let accounts = self.shared.engine().accounts();
        let account = query::rights::find(accounts, user, &self.host);
        let name = account.as_ref().map_or(user, |account| &account.name);
        let now_ms = self.shared.clients.now_ms();
        match accounts.attempts().arrive(io.connection().peer.ip(), &[name], now_ms) {
            LoginTurn::Now(attempt) => self.check(io, answer, attempt, conversation),
            LoginTurn::After(delay, attempt) => {
                let until_ms = now_ms + delay.as_millis() as u64;
                self.phase =
                    Phase::Delayed(Box::new(Delayed { attempt, until_ms, payload: payload.to_vec(), conversation }));
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
        answer: &Answer<'_>,
        mut attempt: Attempt,
        conversation: Option<Box<Conversation>>,
    ) -> Flow {
        let Ok(user) = std::str::from_utf8(answer.user) else {
            return self.break_off(io, &errors::MALFORMED.bare());
        };
        let (login, step) =
            Login::begin(&self.ground(), user, &self.host, self.scramble, answer.plugin, answer.response);
        let database = answer.database.to_vec();
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let attributes = answer.attributes.iter().map(|(name, value)| (words(name), words(value))).collect();
        if login.is_disproved() {
            attempt.show();
        }
        self.step(
            io,
            Entering { login, attempt, collation: answer.collation, database, attributes, conversation },
            step,
        )
    }

    fn step(&mut self, io: &mut Io<'_>, entering: Entering, step: Step) -> Flow {
        match step {
            Step::Say(payload) => {
                self.writer(io.out()).packet(|out| out.extend_from_slice(&payload));
                self.phase = Phase::Entering(Box::new(entering));
                Flow::Continue
            }
            Step::Deny => {
                self.shared.stats.denied.add(1);
                // Locked, or without TLS: the password was right all the same, but nobody need learn that quickly.
                entering.attempt.failed();
                if let Some(error) = self.refusal(&entering.login) {
                    return self.break_off(io, &error);
                }
                let word = if entering.login.has_password { "YES" } else { "NO" };
                let error = query::error::ACCESS_DENIED.with(&[&entering.login.user, &self.host, &word]);
                self.break_off(io, &error)
            }
            Step::Accept(account, payload) => {
                if !payload.is_empty() {
                    self.writer(io.out()).packet(|out| out.extend_from_slice(&payload));
                }
                self.welcome(io, entering, &account.name)
            }
        }
    }

    /// Why somebody whose password is right is not let in.
    fn refusal(&self, login: &Login) -> Option<SqlError> {
        match login.refused {
            Refused::Locked => Some(query::error::ACCOUNT_HAS_BEEN_LOCKED.with(&[&login.user, &self.host])),
            Refused::Expired => Some(query::error::MUST_CHANGE_PASSWORD_LOGIN.bare()),
            Refused::No => None,
        }
    }

    /// Begins the conversation, or gives it to somebody else.
    fn welcome(&mut self, io: &mut Io<'_>, entering: Entering, account: &str) -> Flow {
        let Entering { login, attempt, collation, database, attributes, conversation } = entering;
        attempt.passed(0);
        let name = if login.user.is_empty() { account.to_string() } else { login.user };
        let who = query::Login {
            user: name.clone(),
            host: self.host.clone(),
            database: None,
            connection_id: self.connection_id,
        };
        let wants = (collation, &database[..], self.capabilities);
        let begun = match conversation {
            None => Conversation::begin(&self.shared, who, wants, &self.client, io.connection()),
            Some(conversation) => conversation.change_user(who, wants),
        };
        match begun {
            // The account list has changed in between: what was proved is not what was found.
            Ok(conversation) if conversation.sql.account() != account => {
                let error = query::error::ACCESS_DENIED.with(&[&name, &self.host, &"YES"]);
                self.break_off(io, &error)
            }
            Ok(mut conversation) => {
                conversation.sql.describe_client(attributes);
                conversation.sql.tell_compression(self.method.map(|method| (method.name(), method.level())));
                conversation.sql.tell_sealing(io.tls_info().map(|tls| (tls.version, tls.cipher)));
                self.shared.stats.logins.add(1);
                let (status, changes) = (conversation.status_word(), conversation.changes(self.capabilities));
                self.writer(io.out()).ok(&Ending { status, changes: &changes, ..Ending::default() });
                self.sequence = 0;
                self.phase = Phase::Ready(conversation);
                Flow::Continue
            }
            Err(error) => self.break_off(io, &error),
        }
    }
}
