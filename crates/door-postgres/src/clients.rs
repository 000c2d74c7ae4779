//! The door's open connections: their process ids and keys for cancel requests, and how other threads end them.
//!
//! Hard part: another thread may send a last error to a connection only while none serves it, or the error would come between a statement and its reply. The
//! state of a client decides between the two (DP-8): the thread that ends an idle client makes it `ENDED`, so that nothing is served any more; one that is busy
//! becomes `ENDING`, and the thread that serves it writes the error after the reply.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use os::Clock;
use reactor::{Alarm, Handle, Pool};
use sql_postgres::error::PgError;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU32, Ordering};

use crate::reply;

/// The delay between the last error and the close, so that the error arrives.
const LAST_WORD: Duration = Duration::from_millis(200);

const PID_MAX: u32 = i32::MAX as u32;

const IDLE: u32 = 0;
/// A message is being served, or its reply is not complete.
const BUSY: u32 = 1;
const ENDING: u32 = 2;
const ENDED: u32 = 3;

/// The state of a connection that other threads may use.
pub struct Client {
    /// The process id of BackendKeyData.
    pub pid: u32,
    /// The secret of a cancel request.
    pub key: u32,
    handle: Handle,
    state: AtomicU32,
}

impl Client {
    /// Marks the connection as busy. Returns false if it has been ended: then nothing more is served.
    pub fn begin(&self) -> bool {
        match self.state.compare_exchange(IDLE, BUSY, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(state) => state != ENDED,
        }
    }

    /// Marks the connection as idle. Returns false if it is to end: then the caller writes the last error.
    pub fn rest(&self) -> bool {
        self.state.compare_exchange(BUSY, IDLE, Ordering::SeqCst, Ordering::SeqCst) != Err(ENDING)
    }

    /// Returns true if the client is idle, and has now been ended by the caller.
    fn end_if_idle(&self) -> bool {
        self.state.compare_exchange(IDLE, ENDED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Does the same as `end_if_idle`; a busy client ends after its reply.
    fn end(&self) -> bool {
        if !self.end_if_idle() {
            // It may have become idle in between.
            let busy = self.state.compare_exchange(BUSY, ENDING, Ordering::SeqCst, Ordering::SeqCst);
            return busy == Err(IDLE) && self.end();
        }
        true
    }
}

pub struct Clients {
    clock: Arc<dyn Clock>,
    pool: OnceLock<Weak<Pool>>,
    by_pid: Mutex<HashMap<u32, Arc<Client>>>,
}

impl Clients {
    pub fn new(clock: Arc<dyn Clock>) -> Clients {
        Clients { clock, pool: OnceLock::new(), by_pid: Mutex::default() }
    }

    /// Sets the pool whose timers are used. Without a pool no connection is ended.
    pub fn attach(&self, pool: &Arc<Pool>) {
        let _ = self.pool.set(Arc::downgrade(pool));
    }

    /// Starts a cancellable timer of the pool; returns `None` without a pool.
    pub fn alarm(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) -> Option<Alarm> {
        self.pool.get().and_then(Weak::upgrade).map(|pool| pool.alarm(delay, action))
    }

    /// Runs `action` after `delay`; at once when there is no pool any more.
    pub fn timer(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) {
        match self.pool.get().and_then(Weak::upgrade) {
            Some(pool) => pool.timer(delay, action),
            None => action(),
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.clock.monotonic_ns() / 1_000_000
    }

    pub fn count(&self) -> usize {
        self.by_pid.lock().len()
    }

    /// Adds a connection under a process id that no other has.
    pub fn add(&self, connection_id: u64, handle: Handle) -> Arc<Client> {
        let mut key = [0; 4];
        os::entropy(&mut key).expect("the kernel has random bytes");
        let mut by_pid = self.by_pid.lock();
        // A process id is a positive int4: the id of the connection, until those are longer. The loop ends, because there are fewer descriptors than numbers.
        let mut pid = ((connection_id.max(1) - 1) % u64::from(PID_MAX)) as u32 + 1;
        while by_pid.contains_key(&pid) {
            pid = pid % PID_MAX + 1;
        }
        let client = Arc::new(Client { pid, key: u32::from_be_bytes(key), handle, state: AtomicU32::new(IDLE) });
        by_pid.insert(pid, client.clone());
        client
    }

    pub fn remove(&self, client: &Client) {
        self.by_pid.lock().remove(&client.pid);
    }

    /// Returns whether the key of a cancel request is that of the connection with this process id. Takes the same time for every wrong key (DP-10).
    pub fn has_key(&self, pid: u32, key: u32) -> bool {
        let client = self.by_pid.lock().get(&pid).cloned();
        let difference = std::hint::black_box(client.as_ref().map_or(0, |client| client.key) ^ key);
        client.is_some() && difference == 0
    }

    /// Ends a connection: with `error` if it is idle, or else after its reply.
    pub fn end(&self, client: &Arc<Client>, error: &PgError) {
        if client.end() {
            self.say_last(client, error);
        }
    }

    /// Ends a connection if it is idle.
    pub fn end_if_idle(&self, client: &Arc<Client>, error: &PgError) {
        if client.end_if_idle() {
            self.say_last(client, error);
        }
    }

    fn say_last(&self, client: &Client, error: &PgError) {
        let mut out = Vec::new();
        reply::put_error(&mut out, reply::FATAL, error);
        client.handle.push(&out);
        let handle = client.handle.clone();
        self.timer(LAST_WORD, Box::new(move || handle.kill()));
    }

    /// Ends all connections.
    pub fn end_all(&self, error: &PgError) {
        let all: Vec<Arc<Client>> = self.by_pid.lock().values().cloned().collect();
        all.iter().for_each(|client| self.end(client, error));
    }
}
