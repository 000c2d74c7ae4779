//! The thread pool that all doors share: groups of epoll threads, replies that wait for the disk without a thread. Start with README.md.

#![forbid(unsafe_code)]

mod connection;
mod door;
mod group;
mod latency;
mod mailbox;
mod pool;
mod progress;
mod round;
mod scratch;
mod send_batch;
mod session_queue;
mod settings;
mod sys;
mod timer;
mod tls;
mod worker_pool;
mod worker_slots;

pub use connection::{Buffers, Connection, Handle};
pub use door::{Door, Fetch, Flow, Io, Nested, Received};
pub use latency::Latencies;
pub use mailbox::Task;
pub use pool::{EventSource, Job, ListenOptions, Listener, Next, Pool};
pub use session_queue::{Call, Pushed, Reply, Serve, SessionQueue, Waker};
pub use settings::Settings;
pub use timer::Alarm;
pub use tls::{TlsConfig, TlsInfo};

/// What the pool counts; the names are XRPC's where XRPC has one.
#[derive(Default)]
pub struct Counters {
    pub accepted: stdx::counter::Counter,
    pub refused: stdx::counter::Counter,
    pub closed: stdx::counter::Counter,
    pub bytes_in: stdx::counter::Counter,
    pub bytes_out: stdx::counter::Counter,
    /// Returns from epoll_wait.
    pub wakeups: stdx::counter::Counter,
    /// Connections served, once for each batch of received bytes.
    pub batches: stdx::counter::Counter,
    /// Latencies that a connection's socket took bytes.
    pub sends: stdx::counter::Counter,
    /// Batches whose replies had to wait for the disk.
    pub replies_held: stdx::counter::Counter,
    /// Connections handed to another thread because this one began to wait.
    pub handed_over: stdx::counter::Counter,
    /// Connections moved to the group that runs where their packets come in.
    pub migrated: stdx::counter::Counter,
    /// Waits that were refused because no wait slot was free.
    pub waits_refused: stdx::counter::Counter,
    /// Computations that had to end because their group had no other thread left.
    pub computations_ended: stdx::counter::Counter,
    pub threads_added: stdx::counter::Counter,
    pub threads_removed: stdx::counter::Counter,
    /// Requests that ended in a panic; their connection was closed.
    pub panics: stdx::counter::Counter,
    pub latency: Latencies,
    /// Bytes written for all connections that their peers have not taken. One word, because it decides; it changes only for who waits.
    pub(crate) unsent: stdx::sync::atomic::AtomicU64,
}

impl Counters {
    /// Bytes written and not sent, of all connections together.
    pub fn unsent_bytes(&self) -> u64 {
        self.unsent.load(stdx::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn is_crowded(&self, settings: &Settings) -> bool {
        self.unsent_bytes() > settings.output_total_bytes as u64
    }
}
