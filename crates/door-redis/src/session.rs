//! The state of a connection, and the loop over its requests.
//!
//! A batch of received bytes runs in one pass: the requests are parsed and run one after the other, and their replies go into one buffer. The batch waits once,
//! for the highest LSN that any of its replies depends on (DR-4). GET and SET of a session without special state bypass the table.
//!
//! ```text
//!   plain ──MULTI──► queueing ──EXEC──► one key transaction over the union of all keys ──► plain
//!                        └──error──► dirty ──EXEC──► EXECABORT
//! ```

use std::sync::Arc;

use engine::{Account, Ahead, Attempt, Expire, Found, WatchSet};
use reactor::{Connection, Flow, Io};
use stdx::memory;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clients::{Client, UNBLOCK_ERROR, UNBLOCK_ROLE};
use crate::command::{self, Command, flag};
use crate::errors;
use crate::messages::limits::Verdict;
use crate::messages::monitors::Observed;
use crate::messages::subscriptions::Publication;
use crate::messages::tracking::Origin;
use crate::parser::{Limits, Parsed, Parser, Request};
use crate::reply::{self, Reply};
use crate::saves::{Saving, SyncOptions};
use crate::shared::Shared;
use crate::spool::Spool;
use crate::stats::{SlowArgs, Stats};
use crate::table::{self, COMMANDS};
use crate::users::User;
use feed_state::Feed;

mod block_state;
mod blocked;
mod feed_state;
mod feeding;
pub(crate) mod login;
mod pipeline;
mod run;
mod saving;

/// CLIENT REPLY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    On,
    Off,
    /// The next reply is suppressed.
    SkipNext,
    /// The current reply is suppressed.
    Skip,
}

/// A command queued for EXEC.
pub(crate) struct Queued {
    pub command: &'static Command,
    pub args: Vec<Vec<u8>>,
}

#[derive(Default)]
pub(crate) struct Multi {
    pub queue: Vec<Queued>,
    /// Bytes of the queued arguments.
    pub bytes: u64,
    /// A command could not be queued.
    pub dirty: bool,
}

/// The clients that a CLIENT KILL has ended, and its reply once they are gone: their number, or OK.
pub(crate) struct Killing {
    pub victims: Vec<Arc<Client>>,
    pub count: Option<i64>,
}

/// The account that a session acts for, and the generation of the account list at which it was read.
pub(crate) struct Identity {
    pub user: Arc<User>,
    generation: u64,
}

pub struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: Arc<Client>,
    pub(crate) connection_id: u64,
    pub(crate) db: u8,
    pub(crate) resp3: bool,
    pub(crate) identity: Option<Identity>,
    pub(crate) multi: Option<Multi>,
    pub(crate) watch: WatchSet,
    pub(crate) replies: Replies,
    pub(crate) closing: bool,
    /// The durability LSN of this batch: the highest LSN that one of its replies depends on.
    pub(crate) durability_lsn: u64,
    /// The session sleeps until this wall time: WAIT, a pause or a login delay.
    pub(crate) sleep_until_ms: Option<u64>,
    /// The wait of a blocking command.
    blocked: Option<block_state::Blocked>,
    /// The options that REPLCONF has set.
    pub(crate) sync: SyncOptions,
    /// The wait for an RDB file.
    saving: Option<Saving>,
    /// The peer follows this server.
    feed: Option<Feed>,
    /// WAIT: the offset that followers are to acknowledge, and how many of them.
    pub(crate) acknowledgements: Option<(u64, usize)>,
    /// The end of the history behind the last command of the session that may have changed something.
    pub(crate) written_to: AtomicU64,
    /// A pending login. While the session sleeps, it waits for this.
    attempt: Option<Attempt>,
    /// A CLIENT KILL that waits until its victims are gone.
    pub(crate) killing: Option<Killing>,
    /// The reply of WAIT, sent when the sleep ends.
    pub(crate) after_sleep: Option<i64>,
    /// EXEC is running.
    pub(crate) running_queue: AtomicBool,
    /// A script is running.
    pub(crate) runs_script: bool,
    /// Messages that EXEC or a script has published. They are sent when it has committed.
    pub(crate) unsent: Vec<Publication>,
    /// The running command writes confirmations of subscriptions, which CLIENT REPLY does not suppress.
    pub(crate) sends_pushes: bool,
    /// How many transactions of a client that tracks keys have begun to run.
    pub(crate) tracked_runs: u64,
    /// The highest durability LSN of all batches. It is that of the messages which the session publishes.
    highest_lsn: u64,
    parser: Parser,
    last_ns: u64,
    /// When the first request of the batch began to wait for the disk; 0 if it did not.
    waits_since_ns: u64,
    /// Results of looking ahead, by the index of the request in the window.
    ahead: Vec<Ahead>,
    /// The index of the running request in the window.
    at: usize,
    /// A reply in a file that is being sent.
    spool: Option<Spool>,
}

/// Unsent bytes of a client that has not logged in and is cut. Redis' limit is its buffer and 1,024 bytes.
const STRANGER_OUTPUT_MAX: u64 = 17 << 10;
/// Number of requests that are parsed before the first of them runs.
const WINDOW: usize = 32;
/// With fewer requests looking ahead does not pay.
const PREFETCH_MIN: usize = 4;
/// Number of requests from which on they may run as a pipeline.
const PIPELINE_MIN: usize = 2;

/// How the loop continues after a request.
#[derive(PartialEq, Eq)]
enum Step {
    Next,
    /// The request must wait. It is not consumed.
    Hold,
    Stop,
    /// The connection is closed without a reply.
    Abort,
}

/// Returns whether a command may run while a session of RESP2 has subscriptions.
fn may_run_in_subscription(command: &Command) -> bool {
    let is_about_subscriptions = command.is(flag::PUBSUB) && command.name.ends_with("subscribe");
    is_about_subscriptions || matches!(command.name, "ping" | "quit" | "reset")
}

impl Session {
    pub(crate) fn new(shared: &Arc<Shared>, connection: &Arc<Connection>) -> Session {
        let client = Arc::new(Client::new(connection, shared.clock.wall_ms(), size_of::<Session>()));
        shared.clients.add(client.clone());
        let mut session = Session {
            watch: shared.keyspace.watch_set(),
            shared: shared.clone(),
            client,
            connection_id: connection.id,
            db: 0,
            resp3: false,
            identity: None,
            multi: None,
            replies: Replies::On,
            closing: false,
            durability_lsn: 0,
            sleep_until_ms: None,
            blocked: None,
            sync: SyncOptions::default(),
            saving: None,
            feed: None,
            acknowledgements: None,
            written_to: AtomicU64::new(0),
            attempt: None,
            killing: None,
            after_sleep: None,
            running_queue: AtomicBool::new(false),
            runs_script: false,
            unsent: Vec::new(),
            sends_pushes: false,
            tracked_runs: 0,
            highest_lsn: 0,
            parser: Parser::new(),
            last_ns: 0,
            waits_since_ns: 0,
            ahead: Vec::new(),
            at: 0,
            spool: None,
        };
        session.become_default();
        session
    }

    /// Makes a new session act for the default user if that user needs no password.
    pub(crate) fn become_default(&mut self) {
        let default = self.shared.engine.accounts().get(engine::DEFAULT_ACCOUNT);
        self.identity = None;
        if let Some(account) = default.filter(|account| account.enabled && account.nopass) {
            self.act_for(account);
        }
    }

    pub(crate) fn act_for(&mut self, account: Arc<Account>) {
        let generation = self.shared.engine.accounts().generation();
        self.client.state.lock().user = account.name.clone();
        let user = self.shared.users.of(account, self.shared.engine.accounts());
        self.identity = Some(Identity { user, generation });
    }

    /// Reloads the account if the account list has changed. Returns false if the account is gone; the connection must then be closed.
    fn refresh_identity(&mut self) -> bool {
        let Some(identity) = &self.identity else { return true };
        let accounts = self.shared.engine.accounts();
        if identity.generation == accounts.generation() {
            return true;
        }
        let Some(account) = accounts.get(&identity.user.account.name) else { return false };
        self.act_for(account);
        true
    }

    pub(crate) fn user_name(&self) -> &str {
        self.identity.as_ref().map_or(engine::DEFAULT_ACCOUNT, |identity| identity.user.account.name.as_str())
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.shared.clock.wall_ms()
    }

    pub(crate) fn reply<'o>(&self, out: &'o mut Vec<u8>) -> Reply<'o> {
        Reply { out, resp3: self.resp3 }
    }

    /// Runs all complete requests of the input.
    pub(crate) fn serve(&mut self, io: &mut Io<'_>) -> Flow {
        self.durability_lsn = 0;
        if self.feed.is_some() {
            return self.serve_feed(io);
        }
        if !self.wake_blocked(io) || !self.wake_saving(io) || !self.wake_up(io) {
            self.ahead.clear();
            return Flow::Continue;
        }
        self.last_ns = match std::mem::take(&mut self.waits_since_ns) {
            0 => self.shared.clock.monotonic_ns(),
            since => since,
        };
        if !self.refresh_identity() {
            return Flow::CloseNow;
        }
        if let Some(flow) = self.send_spool(io) {
            return flow;
        }
        if self.closing {
            io.hold_until_durable(self.durability_lsn);
            return Flow::Close;
        }
        let now = self.now_ms();
        self.client.last_ms.store(now, Ordering::Relaxed);
        if self.client.gets_messages() {
            self.take_messages(io.out());
        }
        let mut flow = self.run_batch(io);
        if self.feed.is_some() {
            return self.serve_feed(io);
        }
        self.client.finish_batch(io.out().len() as u64);
        let unsent = io.out().len() as u64;
        let is_stranger = self.identity.is_none() && unsent > STRANGER_OUTPUT_MAX;
        match self.shared.output_limits.judge_replies(&self.client, unsent, now) {
            Verdict::Within if !is_stranger => {}
            Verdict::AboveSoft { again } if !is_stranger => self.shared.judge_later(&self.client, again),
            _ => {
                self.shared.stats.output_limit_disconnections.add(1);
                flow = Flow::CloseNow;
            }
        }
        self.highest_lsn = self.highest_lsn.max(self.durability_lsn);
        if self.shared.strict.load(Ordering::Relaxed) {
            io.hold_until_durable(self.durability_lsn);
        }
        flow
    }

    /// Continues to send a spooled reply. Returns None if there is none or if it is complete.
    fn send_spool(&mut self, io: &mut Io<'_>) -> Option<Flow> {
        let spool = self.spool.as_mut()?;
        io.hold_until_durable(spool.durability_lsn);
        match spool.send(io) {
            Ok(true) => {
                io.consume(spool.size);
                self.spool = None;
                self.closing.then_some(Flow::Close)
            }
            Ok(false) => {
                io.pause();
                Some(Flow::Continue)
            }
            // Part of the reply has been sent, so an error cannot be sent any more.
            Err(_) => Some(Flow::CloseNow),
        }
    }

    /// Ends the sleep if its time has come. Returns false if the session still sleeps.
    fn wake_up(&mut self, io: &mut Io<'_>) -> bool {
        let Some(until) = self.sleep_until_ms else { return true };
        if let Some(killing) = &self.killing
            && self.now_ms() < until
            && killing.victims.iter().any(|client| !client.is_gone())
        {
            io.park();
            return false;
        }
        let paused = self.after_sleep.is_none() && self.attempt.is_none() && self.killing.is_none();
        let unblocked = if self.after_sleep.is_none() { 0 } else { self.client.unblock.swap(0, Ordering::AcqRel) };
        let may_wait = self.killing.is_none() && unblocked == 0 && !self.are_acknowledged();
        if may_wait && self.now_ms() < until && !(paused && self.shared.clients.pause_at(self.now_ms()).is_none()) {
            self.park(io);
            return false;
        }
        (self.sleep_until_ms, self.acknowledgements) = (None, None);
        self.client.state.lock().parked = false;
        self.client.waits.store(false, Ordering::Release);
        if let Some(killing) = self.killing.take().filter(|_| self.replies == Replies::On) {
            let mut reply = self.reply(io.out());
            match killing.count {
                Some(count) => reply.integer(count),
                None => reply.ok(),
            }
        }
        if let Some(number) = self.after_sleep.take() {
            let mut reply = self.reply(io.out());
            if unblocked == UNBLOCK_ROLE {
                reply.error(errors::ROLE_CHANGED);
                self.closing = true;
            } else if unblocked == UNBLOCK_ERROR {
                reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
            } else {
                reply.integer(number);
            }
        }
        true
    }

    /// Parks the session. It ends with its peer, unless it waits for the end of other clients, whose reply is due soon.
    fn park(&self, io: &mut Io<'_>) {
        match self.killing {
            Some(_) => io.park(),
            None => io.park_for_peer(),
        }
    }

    fn sleep(&mut self, io: &mut Io<'_>, until_ms: u64) {
        self.sleep_until_ms = Some(until_ms);
        self.client.state.lock().parked = true;
        self.client.waits.store(self.after_sleep.is_some(), Ordering::Release);
        self.park(io);
        let delay = std::time::Duration::from_millis(until_ms.saturating_sub(self.now_ms()) + 1);
        let handle = io.connection().handle();
        if let Some(pool) = self.shared.pool() {
            pool.timer(delay, Box::new(move || handle.wake()));
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            bulk_max: self.shared.bulk_bytes_max.load(Ordering::Relaxed) as i64,
            request_max: self.shared.request_bytes_max.load(Ordering::Relaxed) as usize,
            restricted: self.identity.is_none(),
        }
    }

    /// Parses requests a window at a time, so that the pages of all their keys are requested before the first one runs.
    fn run_batch(&mut self, io: &mut Io<'_>) -> Flow {
        let flow = self.run_windows(io);
        // The results of looking ahead are valid for these requests only.
        self.ahead.clear();
        flow
    }

    fn run_windows(&mut self, io: &mut Io<'_>) -> Flow {
        let input = io.input();
        let mut args: Vec<&[u8]> = Vec::new();
        let mut window: Vec<Request> = Vec::new();
        let mut refused: &[u8] = &[];
        loop {
            window.clear();
            let stop = self.parse_window(input, &mut window);
            if window.len() >= PREFETCH_MIN {
                self.look_ahead(input, &window);
            }
            let (mut at, mut alone_until) = (0, 0);
            while let Some(request) = window.get(at) {
                if io.is_full() {
                    // Backpressure: a client that does not read its replies gets no further request run.
                    self.parser.rewind();
                    io.consume(request.start);
                    io.pause();
                    return Flow::Continue;
                }
                if self.client.killed.load(Ordering::Acquire) {
                    return Flow::CloseNow;
                }
                self.at = at;
                if at >= alone_until
                    && window.len() - at >= PIPELINE_MIN
                    && let Some(ran) = self.run_pipeline(input, &window[at..], &mut refused, io)
                {
                    alone_until = at + ran.alone_until;
                    if ran.count > 0 {
                        at += ran.count;
                        if let Some(spool) = &mut self.spool {
                            let last = &window[at - 1];
                            (spool.size, spool.durability_lsn) = (last.end - last.start, self.durability_lsn);
                            self.parser.rewind();
                            io.consume(last.start);
                            io.pause();
                            return Flow::Continue;
                        }
                        continue;
                    }
                }
                let step = self.run_request(input, request, &mut args, io);
                args.clear();
                at += 1;
                if step == Step::Hold {
                    if let Some(saving) = &mut self.saving {
                        saving.size = request.end - request.start;
                    }
                    // Parsed again when the session continues.
                    self.parser.rewind();
                    io.consume(request.start);
                    return Flow::Continue;
                }
                if step == Step::Abort {
                    return Flow::CloseNow;
                }
                if let Some(spool) = &mut self.spool {
                    (spool.size, spool.durability_lsn) = (request.end - request.start, self.durability_lsn);
                    self.parser.rewind();
                    io.consume(request.start);
                    io.pause();
                    return Flow::Continue;
                }
                if step == Step::Stop || self.closing {
                    self.consume(io, request.end);
                    return if self.closing { Flow::Close } else { Flow::Continue };
                }
            }
            self.ahead.clear();
            match stop {
                None | Some(Parsed::Request(_)) => {}
                Some(Parsed::Partial { needed }) => {
                    let start = self.parser.start();
                    self.consume(io, start);
                    if needed > 0 {
                        io.expect(needed);
                    }
                    return Flow::Continue;
                }
                Some(Parsed::Invalid(broken)) => {
                    let mark = io.out().len();
                    broken.reply(io.out());
                    self.shared.stats.count_error(&io.out()[mark..]);
                    return Flow::Close;
                }
            }
        }
    }

    /// Parses requests until the window is full. Returns the result that ended it early. An inline request ends it too, because the parser keeps the text of
    /// only one.
    fn parse_window(&mut self, input: &[u8], window: &mut Vec<Request>) -> Option<Parsed> {
        let limits = self.limits();
        let most = if limits.restricted { 1 } else { WINDOW };
        while window.len() < most {
            match self.parser.next(input, &limits) {
                Parsed::Request(request) => {
                    window.push(request);
                    if request.inline {
                        break;
                    }
                }
                other => return Some(other),
            }
        }
        None
    }

    /// Looks ahead for the first argument of each request, which for nearly every command is a key. Waits once for all pages that are not in memory.
    fn look_ahead(&mut self, input: &[u8], window: &[Request]) {
        let key = |request: &Request| {
            if request.count < 2 || request.inline {
                return None;
            }
            let span = self.parser.spans(request)[1];
            let start = request.start + span.start as usize;
            Some(&input[start..start + span.len as usize])
        };
        let keys: Vec<_> = window.iter().map(|request| (self.db, key(request))).collect();
        self.ahead = self.shared.look_ahead(&keys);
        self.shared.keyspace.fetch_now(&self.ahead);
    }

    /// Sets the result of looking ahead for the first request of the next batch and, if it has to wait for the disk, since when.
    pub(crate) fn expect(&mut self, ahead: Ahead, waits_since_ns: u64) {
        self.ahead.clear();
        self.ahead.push(ahead);
        self.waits_since_ns = waits_since_ns;
    }

    /// Consumes the input up to `end`, which must be whole requests.
    fn consume(&mut self, io: &mut Io<'_>, end: usize) {
        io.consume(end);
        if end == self.parser.start() {
            self.parser.consumed(end);
        } else {
            self.parser.rewind();
        }
    }

    /// Appends the arguments of a request that is not inline.
    fn push_args<'a>(&self, input: &'a [u8], request: &Request, args: &mut Vec<&'a [u8]>) {
        let base = &input[request.start..];
        args.extend(
            self.parser
                .spans(request)
                .iter()
                .map(|found| &base[found.start as usize..found.start as usize + found.len as usize]),
        );
    }

    fn run_request<'a>(
        &mut self,
        input: &'a [u8],
        request: &Request,
        args: &mut Vec<&'a [u8]>,
        io: &mut Io<'_>,
    ) -> Step {
        if request.inline {
            let line = self.parser.line().to_vec();
            let spans = self.parser.spans(request).to_vec();
            let owned: Vec<&[u8]> =
                spans.iter().map(|span| &line[span.start as usize..span.start as usize + span.len as usize]).collect();
            return self.dispatch(&owned, io);
        }
        self.push_args(input, request, args);
        self.dispatch(args, io)
    }

    /// Sets the version of the protocol.
    pub(crate) fn speak(&mut self, resp3: bool) {
        self.resp3 = resp3;
        self.client.resp3.store(resp3, Ordering::Relaxed);
    }

    /// Writes the messages that have come.
    pub(crate) fn take_messages(&mut self, out: &mut Vec<u8>) {
        if let Some(connection) = self.client.connection.upgrade() {
            self.durability_lsn = self.durability_lsn.max(connection.take_messages(out));
        }
    }

    /// Moves events of keys that the command has caused, and that the session subscribes to, before its reply, as in Redis.
    fn put_own_events(&mut self, out: &mut Vec<u8>, mark: usize) {
        // To a client that tracks keys, what has come may be about the reply, and must follow it (DR-15).
        let tracks = self.client.tracks.load(Ordering::Relaxed);
        if !tracks
            && self.client.is_subscriber()
            && self.spool.is_none()
            && self.shared.keyspace.events().wants(u32::MAX)
        {
            let reply = out.split_off(mark);
            self.take_messages(out);
            out.extend_from_slice(&reply);
        }
    }

    /// Returns the durability LSN of a message that the session publishes: that of all it has read and changed before.
    pub(crate) fn publishing_lsn(&self) -> u64 {
        let lsn = self.highest_lsn.max(self.durability_lsn);
        if self.shared.strict.load(Ordering::Relaxed) { lsn } else { 0 }
    }

    /// Returns whether only commands about subscriptions may run.
    fn is_restricted(&self) -> bool {
        !self.resp3 && self.client.is_subscriber()
    }

    /// Returns whether the reply of the running request is in a file.
    pub(crate) fn spools(&self) -> bool {
        self.spool.is_some()
    }

    /// Returns whether the session has no special state, so that commands may take the fast path.
    fn is_plain(&self) -> bool {
        self.multi.is_none()
            && self.replies == Replies::On
            && !self.is_restricted()
            && !self.client.monitors.load(Ordering::Relaxed)
            && !self.client.tracks.load(Ordering::Relaxed)
            && self.identity.as_ref().is_some_and(|identity| identity.user.is_unrestricted())
            && self.shared.clients.pause_at(0).is_none()
    }

    fn dispatch(&mut self, args: &[&[u8]], io: &mut Io<'_>) -> Step {
        if self.shared.tracking.client_count() == 0 {
            return self.dispatch_unmarked(args, io);
        }
        let (origin, mark) = (Origin::request(self.client.id), io.out().len());
        let step = self.dispatch_unmarked(args, io);
        if step != Step::Hold {
            self.end_caching(args);
        }
        self.put_own_invalidations(origin.finish(), io.out(), mark);
        step
    }

    fn dispatch_unmarked(&mut self, args: &[&[u8]], io: &mut Io<'_>) -> Step {
        if self.is_plain() && self.fast_path(args, io) {
            return Step::Next;
        }
        let mark = io.out().len();
        if self.replies == Replies::SkipNext {
            self.replies = Replies::Skip;
        }
        let step = self.slow_path(args, io);
        if !std::mem::take(&mut self.sends_pushes) && self.replies != Replies::On {
            io.out().truncate(mark);
            self.spool = None;
        }
        if self.replies == Replies::Skip {
            self.replies = Replies::On;
        }
        step
    }

    /// Runs a GET or SET without options. Returns false, having done nothing, for any other request.
    #[inline]
    fn fast_path(&mut self, args: &[&[u8]], io: &mut Io<'_>) -> bool {
        let out = io.out();
        let mark = out.len();
        let index = match args {
            [name, key] if name.eq_ignore_ascii_case(b"get") => {
                static GET: std::sync::LazyLock<usize> =
                    std::sync::LazyLock::new(|| table::find(b"get").expect("served").index());
                let ahead = self.ahead.get(self.at).copied().unwrap_or_default();
                match self.shared.keyspace.get_at(ahead, self.db, key, out, reply::bulk_header) {
                    Ok(got) => {
                        self.durability_lsn = self.durability_lsn.max(got.durability_lsn);
                        match got.found {
                            Found::Value => out.extend_from_slice(b"\r\n"),
                            Found::Missing => self.reply(out).null(),
                            Found::WrongType(_) => self.reply(out).error(errors::WRONG_TYPE),
                        }
                    }
                    Err(engine::Error::OutOfMemory(_)) => {
                        // The slow path can spool the reply to a file.
                        out.truncate(mark);
                        return false;
                    }
                    Err(error) => {
                        out.truncate(mark);
                        self.reply(out).error(&errors::of_engine(&error));
                    }
                }
                *GET
            }
            [name, key, value] if name.eq_ignore_ascii_case(b"set") => {
                static SET: std::sync::LazyLock<usize> =
                    std::sync::LazyLock::new(|| table::find(b"set").expect("served").index());
                let ahead = self.ahead.get(self.at).copied().unwrap_or_default();
                match self.shared.keyspace.set_at(ahead, self.db, key, value, Expire::None) {
                    Ok(lsn) => {
                        self.durability_lsn = self.durability_lsn.max(lsn);
                        self.reply(out).ok();
                    }
                    Err(error) => self.reply(out).error(&errors::of_engine(&error)),
                }
                *SET
            }
            _ => return false,
        };
        self.finish(index, args, &out[mark..]);
        self.put_own_events(out, mark);
        true
    }

    /// Counts a command that a script has run.
    pub(crate) fn finish_inner(&mut self, index: usize, db: u8, args: &[&[u8]], reply: &[u8]) {
        let took = self.lap();
        let counters = &self.shared.stats.commands[index];
        self.shared.stats.ran(index, took);
        if reply.first() == Some(&b'-') {
            counters.failed.add(1);
            self.shared.stats.count_error(reply);
        }
        if self.shared.monitors.see(&COMMANDS[index]) {
            self.show_request(db, "lua", args);
        }
        self.note_latency(index, took);
        if self.shared.stats.is_slow(took) && !COMMANDS[index].is(flag::SKIP_SLOWLOG) {
            // Redis knows no address of a script's client.
            let (args, now) = (Stats::slow_args(args), self.now_ms() / 1000);
            self.shared.stats.add_slow(now, took, args, "?:0".to_owned(), String::new());
        }
    }

    /// Returns the time since the command before has ended, in nanoseconds.
    fn lap(&mut self) -> u64 {
        let now = self.shared.clock.monotonic_ns();
        let took = now.saturating_sub(self.last_ns);
        self.last_ns = now;
        took
    }

    /// Counts a command that has run, and its reply.
    fn finish(&mut self, index: usize, args: &[&[u8]], reply: &[u8]) {
        let took = self.lap();
        self.count_run(index, args, reply, took);
        if let Some(blocked) = &mut self.blocked {
            blocked.took_ns = took;
            blocked.args = self.shared.stats.keeps_slow().then(|| Stats::slow_args(args));
        }
    }

    /// Counts a command that took so many nanoseconds.
    fn count_run(&self, index: usize, args: &[&[u8]], reply: &[u8], took: u64) {
        let stats = &self.shared.stats;
        let counters = &stats.commands[index];
        if self.shared.keyspace.effects().is_on() && COMMANDS[index].may_be_told() {
            self.written_to.store(self.shared.history.end(), Ordering::Relaxed);
        }
        if self.shared.monitors.see(&COMMANDS[index]) && !COMMANDS[index].is(flag::SKIP_MONITOR) {
            self.show_to_monitors(args);
        }
        if reply.first() == Some(&b'-') {
            counters.failed.add(1);
            stats.count_error(reply);
        }
        self.note_latency(index, took);
        if self.blocked.is_some() {
            // The rest follows when its wait ends.
            stats.blocked(index, took);
            return;
        }
        stats.ran(index, took);
        if stats.is_slow(took) && !COMMANDS[index].is(flag::SKIP_SLOWLOG) {
            self.note_slow(took, Stats::slow_args(args));
        }
    }

    fn note_latency(&self, index: usize, took: u64) {
        if self.shared.stats.monitor.is_slow(took) {
            let event = if COMMANDS[index].is(flag::FAST) { "fast-command" } else { "command" };
            self.shared.stats.monitor.add(event, self.now_ms() / 1000, took / 1_000_000);
        }
    }

    #[cold]
    fn note_slow(&self, took: u64, args: SlowArgs) {
        let name = self.client.state.lock().name.clone();
        self.shared.stats.add_slow(self.now_ms() / 1000, took, args, self.client.address.clone(), name);
    }

    pub(crate) fn show_to_monitors(&self, args: &[&[u8]]) {
        self.show_request(self.db, &self.client.address, args);
    }

    #[cold]
    fn show_request(&self, db: u8, address: &str, args: &[&[u8]]) {
        let wall_us = self.shared.clock.wall_us();
        let request = Observed { wall_us, db, address, args };
        let mut delivery = self.shared.delivery(0);
        self.shared.monitors.show(&request, &mut delivery);
        self.shared.finish(delivery);
    }

    fn reject(&mut self, command: Option<&'static Command>, text: &str, io: &mut Io<'_>) -> Step {
        let mut text = std::borrow::Cow::Borrowed(text);
        if command.is_some_and(|command| command.name == "exec") {
            // An EXEC that cannot run ends the transaction, and says so even if there is none.
            self.end_multi();
            let why = text.strip_prefix("ERR ").unwrap_or(&text);
            text = format!("EXECABORT Transaction discarded because of: {why}").into();
        } else if let Some(multi) = &mut self.multi {
            multi.dirty = true;
        }
        if let Some(command) = command {
            return self.reject_plainly(command, &text, io);
        }
        self.shared.stats.count_error(text.as_bytes());
        self.reply(io.out()).error(&text);
        Step::Next
    }

    fn reject_plainly(&mut self, command: &'static Command, text: &str, io: &mut Io<'_>) -> Step {
        self.shared.stats.commands[command.index()].rejected.add(1);
        self.shared.stats.count_error(text.as_bytes());
        self.reply(io.out()).error(text);
        Step::Next
    }

    /// Discards the transaction and the watched keys.
    fn end_multi(&mut self) {
        self.multi = None;
        self.watch.clear();
        self.client.show_multi(-1, 0);
    }

    /// Returns whether a request begins like HTTP. This is Redis' guard against web pages that send requests to this port.
    fn is_http(args: &[&[u8]]) -> bool {
        args.first().is_some_and(|word| word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:"))
    }

    fn slow_path(&mut self, args: &[&[u8]], io: &mut Io<'_>) -> Step {
        if Session::is_http(args) {
            self.shared.warn_about_http(&self.client.address, self.now_ms());
            return Step::Abort;
        }
        let command = match table::of_request(args) {
            Ok(command) => command,
            Err(text) => return self.reject(None, &text, io),
        };
        if !command.takes(args.len()) {
            return self.reject(Some(command), &errors::wrong_arity(command.name), io);
        }
        if self.identity.is_none() && !command.is(flag::NO_AUTH) {
            return self.reject(Some(command), errors::NO_AUTH, io);
        }
        if let Some(denied) = self.denied(command, args) {
            return self.reject(Some(command), &denied.text(command), io);
        }
        if let Some(text) = self.slot_error(command, args) {
            return self.reject(Some(command), text, io);
        }
        if command.name == "exec"
            && let Some(text) = self.multi.as_ref().and_then(|multi| self.slot_error_of_queue(&multi.queue))
        {
            // Its end is no EXECABORT, as in Redis.
            self.end_multi();
            return self.reject_plainly(command, text, io);
        }
        if self.shared.replica.is_following() && self.writes(command) {
            return self.reject(Some(command), errors::READ_ONLY, io);
        }
        if self.is_restricted() && !may_run_in_subscription(command) {
            let text = format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
                command.name
            );
            return self.reject(Some(command), &text, io);
        }
        if self.client.monitors.load(Ordering::Relaxed) && command.touches_keys_or_channels() {
            return self.reject(Some(command), "ERR Replica can't interact with the keyspace", io);
        }
        if self.multi.is_some() && (command.is(flag::NO_MULTI) || command::is_barred_from_exec(command, args)) {
            return self.reject(Some(command), "ERR Command not allowed inside a transaction", io);
        }
        if let Some(until) = self.paused(command, args) {
            self.sleep(io, until);
            return Step::Hold;
        }
        if let Some(step) = self.delay_login(command, args, io) {
            return step;
        }
        self.client.state.lock().command = command.name;
        self.client.show_running(io.input().len() as u64, args);
        if let Some(multi) = &mut self.multi
            && !command.is(flag::NOW)
        {
            let bytes = args.iter().map(|arg| arg.len() + size_of::<Vec<u8>>()).sum::<usize>() + size_of::<Queued>();
            let _claim = match memory::claim(bytes) {
                Ok(claim) => claim,
                Err(full) => return self.reject(Some(command), &errors::out_of_memory(full), io),
            };
            multi.queue.push(Queued { command, args: args.iter().map(|arg| arg.to_vec()).collect() });
            multi.bytes += args.iter().map(|arg| arg.len() as u64).sum::<u64>();
            self.client.show_multi(multi.queue.len() as i64, multi.bytes);
            self.reply(io.out()).simple("QUEUED");
            return Step::Next;
        }
        let mark = io.out().len();
        let out = io.out();
        let result = self.run(command, args, out);
        // Drops a login that the command requested but did not reach.
        self.attempt = None;
        if let Err(error) = &result {
            out.truncate(mark);
            self.reply(out).error(&errors::of_engine(error));
        }
        self.finish(command.index(), args, &out[mark..]);
        if command.is(flag::WRITE | flag::READONLY) {
            self.put_own_events(out, mark);
        }
        if self.blocked.is_some() {
            self.park_blocked(io);
            return Step::Stop;
        }
        if self.feed.is_some() {
            return Step::Stop;
        }
        if let Some(saving) = &self.saving {
            let is_sent = saving.head.is_some();
            self.park_saving(io);
            return if is_sent { Step::Hold } else { Step::Stop };
        }
        if let Some(until) = self.sleep_until_ms {
            self.sleep(io, until);
            return Step::Stop;
        }
        Step::Next
    }

    /// Returns whether the command is one that writes, or an EXEC of such.
    fn writes(&self, command: &Command) -> bool {
        let mut queue = self.multi.iter().flat_map(|multi| &multi.queue);
        command.is(flag::WRITE) || command.name == "exec" && queue.any(|one| one.command.is(flag::WRITE))
    }

    /// Returns until when the command has to wait because of CLIENT PAUSE.
    fn paused(&self, command: &Command, args: &[&[u8]]) -> Option<u64> {
        let pause = self.shared.clients.pause_at(self.now_ms())?;
        let exempt = command.is(flag::NO_AUTH) || command.name.starts_with("client|");
        let changes = |command: &Command, args: &[&[u8]]| {
            command.is(flag::WRITE | flag::MAY_REPLICATE) && !self.shared.runs_only_reads(command, args)
        };
        let mut queue = self.multi.iter().filter(|_| command.name == "exec").flat_map(|multi| &multi.queue);
        let mut queues_change =
            || queue.any(|one| changes(one.command, &one.args.iter().map(Vec::as_slice).collect::<Vec<_>>()));
        (!exempt && (!pause.writes_only || changes(command, args) || queues_change())).then_some(pause.until_ms)
    }
}
