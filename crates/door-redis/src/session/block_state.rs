//! The wait of a blocked session, and the reply that ends it.

use std::sync::Arc;

use engine::WaitTicket;
use reactor::Alarm;
use stdx::sync::Mutex;

use crate::messages::tracking::Origin;
use crate::stats::SlowArgs;

/// The reply of the thread that serves a ticket.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) reply: Vec<u8>,
    /// The durability LSN of the reply, once its transaction is decided.
    pub(super) done: Option<u64>,
    /// Messages about keys, which follow the reply.
    pub(super) messages: Vec<Arc<[u8]>>,
    /// How long the service took.
    pub(super) took_ns: u64,
    /// The changes of the service are the client's, until it is decided.
    pub(super) origin: Option<Origin>,
}

/// A blocked session's wait.
pub(crate) struct Blocked {
    pub(super) ticket: Arc<WaitTicket>,
    pub(super) slot: Arc<Mutex<Slot>>,
    pub(super) until_ms: Option<u64>,
    /// Wakes the session when its time is over.
    pub(super) alarm: Option<Alarm>,
    /// CLIENT REPLY suppresses the reply.
    pub(super) is_muted: bool,
    /// The index of the command.
    pub(super) command: usize,
    /// How long the command took before it was blocked.
    pub(super) took_ns: u64,
    /// Its arguments, if SLOWLOG may show them.
    pub(super) args: Option<SlowArgs>,
}
