//! The door's open connections, and the timer that ends idle ones.
//!
//! One timer of the thread pool serves all connections; it fires at the earliest time at which one may be idle for too long. Without connections there is none.
//! The timer takes no lock of a connection: each connection publishes when it was last served, and the timer reads that.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use os::Clock;
use reactor::{Alarm, Handle, Pool};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::compressed_stream;
use crate::errors;
use crate::protocol::capability;
use crate::reply::Writer;

/// The delay between the error packet for an idle client and the close, so that the packet arrives.
const LAST_WORD: Duration = Duration::from_millis(200);
/// The timer's resolution.
const STEP_MS: u64 = 250;

/// The value of `since_ms` while the connection is being served: it is not idle, however long that takes.
const BUSY: u64 = u64::MAX;

/// The state of a connection that other threads may read.
pub struct Client {
    id: u64,
    handle: Handle,
    /// When the connection was last served, in milliseconds; `BUSY` while it is.
    since_ms: AtomicU64,
    /// The idle limit, in milliseconds.
    limit_ms: AtomicU64,
    /// The sequence number of the reply to the client's next packet.
    reply: AtomicU32,
    /// The client has been sent the idle error.
    finish: AtomicBool,
    /// The client reads compressed frames.
    compressed: AtomicBool,
}

impl Client {
    pub fn begin(&self) {
        self.since_ms.store(BUSY, Ordering::Relaxed);
    }

    /// Marks the connection as idle; its next packet has the number `sequence`.
    pub fn rest(&self, now_ms: u64, sequence: u8) {
        self.reply.store(u32::from(sequence.wrapping_add(1)), Ordering::Relaxed);
        self.since_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Marks the connection as compressed from here on.
    pub fn compressed_stream(&self) {
        self.compressed.store(true, Ordering::Relaxed);
    }

    /// Returns when the idle limit will be reached if the connection is not served again before.
    fn due_ms(&self, now_ms: u64) -> u64 {
        // A connection that is being served may become idle at once.
        let since = self.since_ms.load(Ordering::Relaxed).min(now_ms);
        since.saturating_add(self.limit_ms.load(Ordering::Relaxed))
    }
}

pub struct Clients {
    clock: Arc<dyn Clock>,
    pool: OnceLock<Weak<Pool>>,
    by_id: Mutex<HashMap<u64, Arc<Client>>>,
    /// The time at which the active timer fires, in milliseconds; 0 when there is none.
    armed_ms: AtomicU64,
}

impl Clients {
    pub fn new(clock: Arc<dyn Clock>) -> Clients {
        Clients { clock, pool: OnceLock::new(), by_id: Mutex::default(), armed_ms: AtomicU64::new(0) }
    }

    /// Sets the pool whose timers are used. Without a pool no connection is ended.
    pub fn attach(&self, pool: &Arc<Pool>) {
        let _ = self.pool.set(Arc::downgrade(pool));
    }

    /// Starts a cancellable timer of the pool; returns `None` without a pool.
    pub fn alarm(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) -> Option<Alarm> {
        self.pool.get().and_then(Weak::upgrade).map(|pool| pool.alarm(delay, action))
    }

    pub fn now_ms(&self) -> u64 {
        self.clock.monotonic_ns() / 1_000_000
    }

    pub fn count(&self) -> usize {
        self.by_id.lock().len()
    }

    /// Adds a connection, which has to be logged in within `login_max`.
    pub fn add(self: &Arc<Self>, id: u64, handle: Handle, login_max: Duration) -> Arc<Client> {
        let client = Arc::new(Client {
            id,
            handle,
            since_ms: AtomicU64::new(self.now_ms()),
            limit_ms: AtomicU64::new(0),
            reply: AtomicU32::new(2),
            finish: AtomicBool::new(false),
            compressed: AtomicBool::new(false),
        });
        self.by_id.lock().insert(id, client.clone());
        self.allow(&client, login_max);
        client
    }

    /// Sets the idle limit of a connection.
    pub fn allow(self: &Arc<Self>, client: &Client, limit: Duration) {
        let limit_ms = limit.as_millis() as u64;
        client.limit_ms.store(limit_ms, Ordering::Relaxed);
        if let Some(pool) = self.pool.get().and_then(Weak::upgrade) {
            self.arm(&pool, self.now_ms() + limit_ms);
        }
    }

    /// Runs `action` after `delay`; at once when there is no pool any more.
    pub fn timer(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) {
        match self.pool.get().and_then(Weak::upgrade) {
            Some(pool) => pool.timer(delay, action),
            None => action(),
        }
    }

    pub fn remove(&self, client: &Client) {
        self.by_id.lock().remove(&client.id);
    }

    /// Makes sure that all connections are checked by `at_ms`, or a little later.
    fn arm(self: &Arc<Self>, pool: &Arc<Pool>, at_ms: u64) {
        let armed = self.armed_ms.load(Ordering::Relaxed);
        // A little later will do: one timer serves all connections that arrive within a second.
        if armed != 0 && armed <= at_ms + 1000 {
            return;
        }
        self.armed_ms.store(at_ms, Ordering::Relaxed);
        let delay = Duration::from_millis(at_ms.saturating_sub(self.now_ms()).max(STEP_MS));
        let (clients, weak) = (Arc::downgrade(self), Arc::downgrade(pool));
        pool.timer(
            delay,
            Box::new(move || {
                let (Some(clients), Some(pool)) = (Weak::upgrade(&clients), Weak::upgrade(&weak)) else { return };
                // A timer that has been replaced does nothing.
                if clients.armed_ms.compare_exchange(at_ms, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    clients.look(&pool);
                }
            }),
        );
    }

    /// Ends the connections that have been idle for too long, and rearms the timer for the next one.
    fn look(self: &Arc<Self>, pool: &Arc<Pool>) {
        let now_ms = self.now_ms();
        let all: Vec<Arc<Client>> = self.by_id.lock().values().cloned().collect();
        let mut next = None;
        for client in all {
            let due = client.due_ms(now_ms);
            if due <= now_ms {
                cut_off(&client, pool);
            } else {
                next = Some(next.map_or(due, |next: u64| next.min(due)));
            }
        }
        if let Some(next) = next {
            self.arm(pool, next);
        }
    }
}

fn cut_off(client: &Client, pool: &Arc<Pool>) {
    if client.finish.swap(true, Ordering::Relaxed) {
        return;
    }
    let (mut out, mut sequence) = (Vec::new(), client.reply.load(Ordering::Relaxed) as u8);
    Writer { out: &mut out, sequence: &mut sequence, capabilities: capability::PROTOCOL_41 }
        .error(&errors::IDLE.bare());
    if client.compressed.load(Ordering::Relaxed) {
        out = compressed_stream::uncompressed_frame(&out, client.reply.load(Ordering::Relaxed) as u8);
    }
    client.handle.push(&out);
    let handle = client.handle.clone();
    pool.timer(LAST_WORD, Box::new(move || handle.kill()));
}
