//! The connections that CLIENT lists, pauses and kills.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use reactor::{Buffers, Connection, Handle};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::messages::subscriptions::Subscriptions;
use crate::messages::tracking_state::TrackingState;

/// The data of a connection that CLIENT LIST shows. The session writes it, other sessions read it.
pub struct Client {
    pub id: u64,
    pub connection: Weak<Connection>,
    pub address: String,
    pub peer: IpAddr,
    pub local: String,
    pub fd: i32,
    /// Size of the session struct, for the memory that CLIENT LIST shows.
    session_bytes: usize,
    pub opened_ms: u64,
    pub state: Mutex<ClientState>,
    pub last_ms: AtomicU64,
    pub no_evict: AtomicBool,
    /// In a command that waits, so CLIENT UNBLOCK may end it.
    pub waits: AtomicBool,
    /// The request of CLIENT UNBLOCK; 0 if there is none.
    pub unblock: AtomicU32,
    /// Ended by CLIENT KILL: it runs no further command, and no list shows it.
    pub killed: AtomicBool,
    gone: AtomicBool,
    /// The peer has closed the connection while a request of it runs.
    departed: Arc<AtomicBool>,
    /// The connections to wake when this one is gone.
    watchers: Mutex<Vec<Handle>>,
    /// Of the running request: bytes received and not yet run, and bytes of its arguments.
    pub query_bytes: AtomicU64,
    pub argument_bytes: AtomicU64,
    pub subscriptions: Mutex<Subscriptions>,
    /// How many these are.
    pub subscribed: AtomicUsize,
    /// Gets the requests of all clients.
    pub monitors: AtomicBool,
    pub tracking: Mutex<TrackingState>,
    /// Whether that is on.
    pub tracks: AtomicBool,
    /// The peer follows this server.
    pub is_replica: AtomicBool,
    /// Another client that tracks has its messages sent to this one.
    pub is_redirected_to: AtomicBool,
    /// The version of the protocol, for messages.
    pub resp3: AtomicBool,
    /// Since when more bytes are unsent than the soft limit; 0 if there are fewer.
    pub over_soft_limit_ms: AtomicU64,
    /// Longest output of one batch.
    pub send_peak: AtomicU64,
}

impl Client {
    pub fn new(connection: &Arc<Connection>, now_ms: u64, session_bytes: usize) -> Client {
        Client {
            id: connection.id,
            connection: Arc::downgrade(connection),
            address: connection.peer.to_string(),
            peer: connection.peer.ip(),
            local: connection.local.to_string(),
            fd: connection.fd(),
            session_bytes,
            opened_ms: now_ms,
            state: Mutex::new(ClientState { multi: -1, resp: 2, user: "default".into(), ..ClientState::default() }),
            last_ms: AtomicU64::new(now_ms),
            no_evict: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            unblock: AtomicU32::new(0),
            killed: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            departed: Arc::default(),
            watchers: Mutex::default(),
            query_bytes: AtomicU64::new(0),
            argument_bytes: AtomicU64::new(0),
            subscriptions: Mutex::default(),
            subscribed: AtomicUsize::new(0),
            monitors: AtomicBool::new(false),
            tracking: Mutex::default(),
            tracks: AtomicBool::new(false),
            is_replica: AtomicBool::new(false),
            is_redirected_to: AtomicBool::new(false),
            resp3: AtomicBool::new(false),
            over_soft_limit_ms: AtomicU64::new(0),
            send_peak: AtomicU64::new(0),
        }
    }

    /// Returns whether the client has subscriptions.
    #[inline]
    pub fn is_subscriber(&self) -> bool {
        self.subscribed.load(Ordering::Relaxed) > 0
    }

    /// Returns whether messages may come to the client.
    #[inline]
    pub fn gets_messages(&self) -> bool {
        let others = [&self.monitors, &self.tracks, &self.is_redirected_to];
        self.is_subscriber() || others.iter().any(|is| is.load(Ordering::Relaxed))
    }

    /// Returns whether the peer has closed the connection, or the client was killed, since the first script of it began.
    pub fn has_departed(&self) -> bool {
        self.departed.load(Ordering::Relaxed) || self.killed.load(Ordering::Relaxed)
    }

    /// Notices from now on when the peer closes the connection.
    pub fn watch_departure(&self) {
        if let Some(connection) = self.connection.upgrade() {
            let departed = self.departed.clone();
            connection.on_departure(Box::new(move || departed.store(true, Ordering::Relaxed)));
        }
    }

    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Ends the client. It runs no command after the current one. `watcher` is woken when it is gone.
    pub fn kill(&self, watcher: Handle) {
        self.killed.store(true, Ordering::Release);
        let mut watchers = self.watchers.lock();
        if self.is_gone() {
            return;
        }
        watchers.push(watcher);
        drop(watchers);
        if let Some(handle) = self.handle() {
            handle.kill();
        }
    }

    /// Records the running command for CLIENT LIST.
    pub fn show_running(&self, query_bytes: u64, args: &[&[u8]]) {
        self.query_bytes.store(query_bytes, Ordering::Relaxed);
        self.argument_bytes.store(args.iter().map(|arg| arg.len() as u64).sum(), Ordering::Relaxed);
    }

    /// Records the end of a batch that left `send_bytes` to send.
    pub fn finish_batch(&self, send_bytes: u64) {
        if self.query_bytes.load(Ordering::Relaxed) > 0 {
            self.show_running(0, &[]);
        }
        if send_bytes > self.send_peak.load(Ordering::Relaxed) {
            self.send_peak.store(send_bytes, Ordering::Relaxed);
        }
    }

    /// Records the end of its session and wakes the watchers.
    fn finish(&self) {
        self.gone.store(true, Ordering::Release);
        let watchers = std::mem::take(&mut *self.watchers.lock());
        watchers.iter().for_each(Handle::wake);
    }
}

pub const UNBLOCK_TIMEOUT: u32 = 1;
pub const UNBLOCK_ERROR: u32 = 2;
/// Another server is followed from now on. The connection ends.
pub const UNBLOCK_ROLE: u32 = 3;

#[derive(Clone, Debug, Default)]
pub struct ClientState {
    pub name: String,
    pub db: u8,
    pub user: String,
    pub command: &'static str,
    /// Number of queued commands, -1 outside MULTI.
    pub multi: i64,
    /// Bytes of their arguments.
    pub multi_bytes: u64,
    pub resp: u8,
    pub parked: bool,
}

impl Client {
    pub fn handle(&self) -> Option<Handle> {
        self.connection.upgrade().map(|connection| connection.handle())
    }

    /// Records the number of queued commands (-1 outside MULTI) and their bytes.
    pub fn show_multi(&self, count: i64, bytes: u64) {
        let mut state = self.state.lock();
        (state.multi, state.multi_bytes) = (count, bytes);
    }

    fn buffers(&self) -> Buffers {
        self.connection.upgrade().map_or_else(Buffers::default, |connection| connection.buffers())
    }

    /// Returns the bytes of the query. The running requests are no longer in the buffer's count.
    fn query(&self, buffers: &Buffers) -> u64 {
        buffers.received.max(self.query_bytes.load(Ordering::Relaxed))
    }

    fn memory(&self, buffers: &Buffers, state: &ClientState) -> u64 {
        let own = size_of::<Client>() + self.session_bytes + size_of::<Connection>() + state.name.len();
        let held = buffers.receive_capacity.max(self.query(buffers)) + buffers.send_capacity.max(buffers.unsent);
        own as u64 + held + self.argument_bytes.load(Ordering::Relaxed) + state.multi_bytes
    }

    /// Returns the memory of the client: its state, its buffers and its queue.
    pub fn memory_bytes(&self) -> u64 {
        self.memory(&self.buffers(), &self.state.lock().clone())
    }

    /// Returns the line of CLIENT LIST. `now_ms` is the engine's wall clock.
    pub fn line(&self, now_ms: u64) -> String {
        let state = self.state.lock().clone();
        let buffers = self.buffers();
        let query = self.query(&buffers);
        let arguments = self.argument_bytes.load(Ordering::Relaxed);
        let (channels, patterns, shards) = {
            let own = self.subscriptions.lock();
            (own.channels.len(), own.patterns.len(), own.shards.len())
        };
        let tracking = self.tracking.lock().clone();
        let seconds = |since: u64| now_ms.saturating_sub(since) / 1000;
        let letters = [
            (self.monitors.load(Ordering::Relaxed), 'O'),
            (self.is_replica.load(Ordering::Relaxed), 'S'),
            (self.is_subscriber(), 'P'),
            (state.multi >= 0, 'x'),
            (state.parked, 'b'),
            (tracking.is_on, 't'),
            (tracking.is_broken, 'R'),
            (tracking.is_broadcast, 'B'),
            (self.no_evict.load(Ordering::Relaxed), 'e'),
        ];
        let flags: String = letters.iter().filter(|(is, _)| *is).map(|(_, letter)| *letter).collect();
        // A reply is written directly to the connection's buffer; there is no separate list of replies.
        format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} qbuf={query} qbuf-free={} argv-mem={arguments} multi-mem={} rbs={} rbp={} obl={} oll=0 omem={} tot-mem={} events={} cmd={} user={} redir={} resp={}",
            self.id,
            self.address,
            self.local,
            self.fd,
            state.name,
            seconds(self.opened_ms),
            seconds(self.last_ms.load(Ordering::Relaxed)),
            if flags.is_empty() { "N" } else { &flags },
            state.db,
            channels,
            patterns,
            shards,
            state.multi,
            buffers.receive_capacity.saturating_sub(query),
            state.multi_bytes,
            buffers.send_capacity,
            self.send_peak.load(Ordering::Relaxed),
            buffers.unsent,
            buffers.unsent,
            self.memory(&buffers, &state),
            if buffers.unsent > 0 { "rw" } else { "r" },
            if state.command.is_empty() { "NULL" } else { state.command },
            state.user,
            tracking.redirection(),
            state.resp,
        )
    }
}

/// A pause set by CLIENT PAUSE.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    pub until_ms: u64,
    pub writes_only: bool,
}

#[derive(Default)]
pub struct Clients {
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    pause: Mutex<Option<Pause>>,
    /// Whether there is a pause. A hint that avoids the lock.
    paused: AtomicBool,
    /// Whether commands that write wait, because the server is about to stop.
    holds_writes: AtomicBool,
}

impl Clients {
    pub fn add(&self, client: Arc<Client>) {
        self.all.lock().insert(client.id, client);
    }

    pub fn remove(&self, id: u64) {
        let client = self.all.lock().remove(&id);
        if let Some(client) = client {
            client.finish();
        }
    }

    /// Returns a client that is connected and has not been killed.
    pub fn find(&self, id: u64) -> Option<Arc<Client>> {
        self.all.lock().get(&id).filter(|client| !client.killed.load(Ordering::Acquire)).cloned()
    }

    /// Returns the clients that have not been killed.
    pub fn list(&self) -> Vec<Arc<Client>> {
        let is_alive = |client: &&Arc<Client>| !client.killed.load(Ordering::Acquire);
        self.all.lock().values().filter(is_alive).cloned().collect()
    }

    /// Pauses clients until `until_ms`. A second pause never ends the first one earlier. Returns the end of the pause.
    pub fn pause(&self, until_ms: u64, writes_only: bool) -> u64 {
        let mut pause = self.pause.lock();
        let new = match *pause {
            Some(old) => Pause { until_ms: old.until_ms.max(until_ms), writes_only: old.writes_only && writes_only },
            None => Pause { until_ms, writes_only },
        };
        *pause = Some(new);
        self.paused.store(true, Ordering::Relaxed);
        new.until_ms
    }

    pub fn unpause(&self) {
        *self.pause.lock() = None;
        self.paused.store(self.holds_writes.load(Ordering::Relaxed), Ordering::Relaxed);
        self.wake_all();
    }

    /// Makes commands that write wait from now on, or no longer. A pause of CLIENT PAUSE stays as it is.
    pub fn hold_writes(&self, holds: bool) {
        let pause = self.pause.lock();
        self.holds_writes.store(holds, Ordering::Relaxed);
        self.paused.store(holds || pause.is_some(), Ordering::Relaxed);
        drop(pause);
        self.wake_all();
    }

    /// Returns the pause in force at `now_ms`.
    pub fn pause_at(&self, now_ms: u64) -> Option<Pause> {
        if !self.paused.load(Ordering::Relaxed) {
            return None;
        }
        let mut pause = self.pause.lock();
        let holds_writes = self.holds_writes.load(Ordering::Relaxed);
        if pause.is_some_and(|pause| pause.until_ms <= now_ms) {
            *pause = None;
            self.paused.store(holds_writes, Ordering::Relaxed);
        }
        match *pause {
            Some(pause) if !pause.writes_only || !holds_writes => Some(pause),
            _ => holds_writes.then_some(Pause { until_ms: u64::MAX / 4, writes_only: true }),
        }
    }

    pub fn wake_all(&self) {
        for client in self.list() {
            if client.state.lock().parked
                && let Some(handle) = client.handle()
            {
                handle.wake();
            }
        }
    }
}
