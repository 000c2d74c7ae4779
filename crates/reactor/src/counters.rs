//! The counters of the pool. Their names are XRPC's where XRPC has the counter.

use stdx::counter::Counter;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::latency::Latencies;

#[derive(Default)]
pub struct Counters {
    pub accepted: Counter,
    pub refused: Counter,
    pub closed: Counter,
    pub bytes_in: Counter,
    pub bytes_out: Counter,
    /// Returns from epoll_wait.
    pub wakeups: Counter,
    /// Calls of `Door::serve`, one per batch of received bytes.
    pub batches: Counter,
    /// Times that a socket took bytes of a connection.
    pub sends: Counter,
    /// Batches whose replies had to wait for the WAL.
    pub replies_held: Counter,
    /// Entries of a local run queue that were handed to other threads because their own thread began to wait.
    pub handed_over: Counter,
    /// Connections that have migrated to the group that runs where their packets come in.
    pub migrated: Counter,
    /// Waits that were refused because no wait slot was free.
    pub waits_refused: Counter,
    /// Computations that had to end because their group had no other thread left.
    pub computations_ended: Counter,
    pub threads_added: Counter,
    pub threads_removed: Counter,
    /// Requests that ended in a panic. Their connections were closed.
    pub panics: Counter,
    pub latency: Latencies,
    /// Bytes of all connections that are written and that their peers have not taken. One word, because decisions depend on it; it changes only for connections that wait.
    pub(crate) unsent: AtomicU64,
}

impl Counters {
    /// Returns the bytes of all connections together that are written and not sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }
}
