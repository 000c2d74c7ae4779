//! The connections of the door, for whoever ends those that say nothing for too long.
//!
//! One timer of the pool stands for all of them, at the earliest moment at which one may be due; without connections there is none. Looking at a
//! connection takes nothing from it: it writes down when it was last served, and the one who looks reads that.

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

/// Between the word that a client is cut off and the cut, so that the word arrives.
const LAST_WORD: Duration = Duration::from_millis(200);
/// The timer is not set more finely than this.
const STEP_MS: u64 = 250;

/// Being served: not idle, however long it takes.
const BUSY: u64 = u64::MAX;

/// What others than its runner know of a connection.
pub struct Client {
    id: u64,
    handle: Handle,
    /// When it was last served, in milliseconds; `BUSY` while it is.
    since_ms: AtomicU64,
    /// How long it may be idle, in milliseconds.
    limit_ms: AtomicU64,
    /// The sequence number of the reply to what it may be about to send.
    reply: AtomicU32,
    /// It has been told that it is cut off.
    finish: AtomicBool,
    /// It reads compressed frames.
    compressed: AtomicBool,
}

impl Client {
    pub fn begin(&self) {
        self.since_ms.store(BUSY, Ordering::Relaxed);
    }

    /// Its next packet has the number `sequence`.
    pub fn rest(&self, now_ms: u64, sequence: u8) {
        self.reply.store(u32::from(sequence.wrapping_add(1)), Ordering::Relaxed);
        self.since_ms.store(now_ms, Ordering::Relaxed);
    }

    /// From here on what it reads is compressed.
    pub fn compressed_stream(&self) {
        self.compressed.store(true, Ordering::Relaxed);
    }

    /// When it will have been idle for too long, if it is not served again before.
    fn due_ms(&self, now_ms: u64) -> u64 {
        // One that is being served may fall idle at once.
        let since = self.since_ms.load(Ordering::Relaxed).min(now_ms);
        since.saturating_add(self.limit_ms.load(Ordering::Relaxed))
    }
}

pub struct Clients {
    clock: Arc<dyn Clock>,
    pool: OnceLock<Weak<Pool>>,
    by_id: Mutex<HashMap<u64, Arc<Client>>>,
    /// When the timer that counts rings, in milliseconds; 0: there is none.
    armed_ms: AtomicU64,
}

impl Clients {
    pub fn new(clock: Arc<dyn Clock>) -> Clients {
        Clients { clock, pool: OnceLock::new(), by_id: Mutex::default(), armed_ms: AtomicU64::new(0) }
    }

    /// Gives them the pool whose timers they use. Without one nobody is cut off.
    pub fn attach(&self, pool: &Arc<Pool>) {
        let _ = self.pool.set(Arc::downgrade(pool));
    }

    /// A timer of the pool; None without a pool.
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

    /// From here on it may be idle for so long.
    pub fn allow(self: &Arc<Self>, client: &Client, limit: Duration) {
        let limit_ms = limit.as_millis() as u64;
        client.limit_ms.store(limit_ms, Ordering::Relaxed);
        if let Some(pool) = self.pool.get().and_then(Weak::upgrade) {
            self.arm(&pool, self.now_ms() + limit_ms);
        }
    }

    /// Runs `action` after `delay`; at once where there is no pool any more.
    pub fn timer(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) {
        match self.pool.get().and_then(Weak::upgrade) {
            Some(pool) => pool.timer(delay, action),
            None => action(),
        }
    }

    pub fn remove(&self, client: &Client) {
        self.by_id.lock().remove(&client.id);
    }

    /// Sees to it that all are looked at by then, or a little later.
    fn arm(self: &Arc<Self>, pool: &Arc<Pool>, at_ms: u64) {
        let armed = self.armed_ms.load(Ordering::Relaxed);
        // A little later will do as well: one timer serves all connections that come within a second.
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
                // A timer that an earlier one has replaced does nothing.
                if clients.armed_ms.compare_exchange(at_ms, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    clients.look(&pool);
                }
            }),
        );
    }

    /// Ends what has been idle for too long, and comes again when the next may be.
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
