//! The thread pool that all doors share: groups of epoll threads, replies that wait for the disk without a thread. Start with README.md.

mod beat;
mod connection;
mod crew;
mod door;
mod group;
mod mailbox;
mod outbox;
mod pool;
mod round;
mod scratch;
mod seats;
mod settings;
mod strand;
mod sys;
mod timer;
mod times;
mod tls;

pub use connection::{Buffers, Connection, Handle};
pub use door::{Arrived, Door, Fetch, Flow, Inside, Io};
pub use mailbox::Task;
pub use pool::{Job, ListenOptions, Listener, Next, Pool, Source};
pub use settings::Settings;
pub use strand::{Call, Pushed, Reply, Serve, Strand, Waker};
pub use timer::Alarm;
pub use times::Times;
pub use tls::{Sealing, TlsConfig};

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
    /// Times that a connection's socket took bytes.
    pub sends: stdx::counter::Counter,
    /// Batches whose replies had to wait for the disk.
    pub gated: stdx::counter::Counter,
    /// Connections handed to another thread because this one began to wait.
    pub handed_over: stdx::counter::Counter,
    /// Connections moved to the group that runs where their packets come in.
    pub moved: stdx::counter::Counter,
    /// Waits that were refused because no wait slot was free.
    pub waits_refused: stdx::counter::Counter,
    /// Computations that had to end because their group had no other thread left.
    pub computations_ended: stdx::counter::Counter,
    pub threads_added: stdx::counter::Counter,
    pub threads_left: stdx::counter::Counter,
    /// Requests that ended in a panic; their connection was closed.
    pub panics: stdx::counter::Counter,
    pub times: Times,
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
