//! The connections that CLIENT shows, pauses and kills.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use reactor::{Connection, Handle};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What CLIENT LIST tells of a connection; the session writes it, others read it.
pub struct Client {
    pub id: u64,
    pub connection: Weak<Connection>,
    pub address: String,
    pub local: String,
    pub fd: i32,
    pub opened_ms: u64,
    pub state: Mutex<ClientState>,
    pub last_ms: AtomicU64,
    pub no_evict: AtomicBool,
    /// Inside a command that waits, so that CLIENT UNBLOCK may end it.
    pub waits: AtomicBool,
    /// What CLIENT UNBLOCK asks for; 0: nothing.
    pub unblock: AtomicU32,
}

pub const UNBLOCK_TIMEOUT: u32 = 1;
pub const UNBLOCK_ERROR: u32 = 2;

#[derive(Clone, Debug, Default)]
pub struct ClientState {
    pub name: String,
    pub db: u8,
    pub user: String,
    pub command: &'static str,
    /// Queued commands, -1 outside MULTI.
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

    /// How many commands are queued, -1 outside MULTI, and their bytes.
    pub fn show_multi(&self, count: i64, bytes: u64) {
        let mut state = self.state.lock();
        (state.multi, state.multi_bytes) = (count, bytes);
    }

    /// What has come and waits to be run, and what waits to be sent.
    pub fn buffer_bytes(&self) -> u64 {
        self.connection.upgrade().map_or(0, |connection| {
            let (pending_in, pending_out) = connection.pending();
            pending_in + pending_out
        })
    }

    /// The line of CLIENT LIST. `now_ms`: the engine's wall clock.
    pub fn line(&self, now_ms: u64) -> String {
        let state = self.state.lock().clone();
        let (pending_in, pending_out) = self.connection.upgrade().map_or((0, 0), |connection| connection.pending());
        let seconds = |since: u64| now_ms.saturating_sub(since) / 1000;
        let letters = [(state.multi >= 0, 'x'), (state.parked, 'b'), (self.no_evict.load(Ordering::Relaxed), 'e')];
        let flags: String = letters.iter().filter(|(is, _)| *is).map(|(_, letter)| *letter).collect();
        // Of Redis's fields those that are known here: sizes of its buffers beyond what they hold are left out.
        format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 multi={} qbuf={} multi-mem={} obl={} oll=0 omem={} tot-mem={} events=r cmd={} user={} redir=-1 resp={}",
            self.id,
            self.address,
            self.local,
            self.fd,
            state.name,
            seconds(self.opened_ms),
            seconds(self.last_ms.load(Ordering::Relaxed)),
            if flags.is_empty() { "N" } else { &flags },
            state.db,
            state.multi,
            pending_in,
            state.multi_bytes,
            pending_out,
            pending_out,
            pending_in + pending_out + state.multi_bytes,
            if state.command.is_empty() { "NULL" } else { state.command },
            state.user,
            state.resp,
        )
    }
}

/// A pause that CLIENT PAUSE ordered.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    pub until_ms: u64,
    pub writes_only: bool,
}

#[derive(Default)]
pub struct Clients {
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    pause: Mutex<Option<Pause>>,
    /// There is a pause: a hint that spares the lock.
    paused: AtomicBool,
}

impl Clients {
    pub fn add(&self, client: Arc<Client>) {
        self.all.lock().insert(client.id, client);
    }

    pub fn remove(&self, id: u64) {
        self.all.lock().remove(&id);
    }

    pub fn list(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }

    /// Holds back until `until_ms`; a second pause never ends the first one sooner.
    pub fn pause(&self, until_ms: u64, writes_only: bool) {
        let mut pause = self.pause.lock();
        *pause = Some(match *pause {
            Some(old) => Pause { until_ms: old.until_ms.max(until_ms), writes_only: old.writes_only && writes_only },
            None => Pause { until_ms, writes_only },
        });
        self.paused.store(true, Ordering::Relaxed);
    }

    pub fn unpause(&self) {
        *self.pause.lock() = None;
        self.paused.store(false, Ordering::Relaxed);
        self.wake_all();
    }

    /// The pause in force at `now_ms`.
    pub fn pause_at(&self, now_ms: u64) -> Option<Pause> {
        if !self.paused.load(Ordering::Relaxed) {
            return None;
        }
        let mut pause = self.pause.lock();
        if pause.is_some_and(|pause| pause.until_ms <= now_ms) {
            *pause = None;
            self.paused.store(false, Ordering::Relaxed);
        }
        *pause
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
