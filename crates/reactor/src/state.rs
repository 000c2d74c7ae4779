//! A connection, its door and its group: three types that refer to each other, without their behaviour.
//!
//! A connection names its door and all groups, a group holds its connections, a door is called with a connection. They share this file, so that the imports between
//! the other files of the crate form no circle. Behaviour is elsewhere: `door`, `connection`, `group`, `worker`.

use std::any::Any;
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock, Weak};

use stdx::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use stdx::sync::{Mutex, RwLock};

use crate::event_source::EventSource;
use crate::mailbox::{Mailbox, Task};
use crate::progress::Progress;
use crate::run_cost::RunCost;
use crate::run_state::RunState;
use crate::shared::Shared;
use crate::sys::{Epoll, EventFd};
use crate::tls::{Tls, TlsConfig, TlsInfo};
use crate::worker_pool::WorkerPool;
use crate::worker_slots::WorkerSlots;

/// One socket and what is known about it. Doors use it to reach a connection from outside.
pub struct Connection {
    pub id: u64,
    pub peer: SocketAddr,
    pub local: SocketAddr,
    /// Milliseconds of the pool's clock when the connection was accepted.
    pub opened_ms: u64,
    /// The token in the epoll set of its home.
    pub(crate) token: AtomicU64,
    pub(crate) stream: TcpStream,
    pub(crate) door: Arc<dyn AnyDoor>,
    pub(crate) groups: Arc<[Arc<Group>]>,
    /// Index of the group that watches the socket. Only the runner changes it. An older value does no harm elsewhere, because any thread may
    /// run any connection (RE-7).
    pub(crate) home: AtomicUsize,
    pub(crate) run_state: RunState,
    pub(crate) stream_state: Mutex<StreamState>,
    pub(crate) mailbox: Mutex<Mailbox>,
    /// Runs of session queues wait in the mailbox.
    pub(crate) has_paused: AtomicBool,
    pub(crate) is_closed: AtomicBool,
    /// Called when the peer has gone while a request of it runs.
    pub(crate) on_departure: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(crate) last_active_ms: AtomicU64,
    pub(crate) pending_out: AtomicU64,
    pub(crate) pending_in: AtomicU64,
    /// The time at which output began to wait for the peer, in milliseconds of the pool's clock; 0 if none waits.
    pub(crate) blocked_since_ms: AtomicU64,
}

/// Refers to a connection without keeping it alive.
#[derive(Clone)]
pub struct Handle(pub(crate) Weak<Connection>);

/// The parts of a connection that only its runner uses.
pub(crate) struct StreamState {
    pub session: Option<Box<dyn Any + Send>>,
    pub tls: Option<Box<Tls>>,
    /// Bytes that are received and not consumed.
    pub input: Vec<u8>,
    /// The size of the request at the front of the input, if the session has announced it.
    pub needed: usize,
    pub out: Vec<u8>,
    /// How many bytes of `out` are sent.
    pub sent: usize,
    /// The end of the bytes of `out` that leave with the send batch of the round; 0 if none do (RE-8).
    pub batched_end: usize,
    /// The socket took less than its part of the send batch. The rest is sent on its own, so that the socket reports when it can take more.
    pub is_blocked: bool,
    /// The stream offset of `out[0]`.
    pub out_start: u64,
    /// The parts of the output that wait for the WAL, in order.
    pub holds: VecDeque<Hold>,
    /// The socket may hold bytes that are not received.
    pub is_unread: bool,
    /// The peer has ended the stream, perhaps behind bytes that are not received.
    pub has_ended: bool,
    pub is_parked: bool,
    /// The session is parked only as long as its peer is there (RE-19).
    pub closes_with_peer: bool,
    /// The input holds whole requests that wait until the peer has taken the output (RE-10).
    pub is_paused: bool,
    /// No further request is served, and the connection closes when the output is sent.
    pub is_closing: bool,
    /// The connection is in its group's list of those that wait for the watermark.
    pub is_registered: bool,
    /// The mailbox holds replies that wait for the watermark.
    pub has_held_mail: bool,
    /// The mailbox has got messages during a pause.
    pub has_messages: bool,
    /// The beginning of the round in which bytes were received last, by the clock of `Latencies`.
    pub last_round: u64,
    /// Receives since the processor of incoming packets was checked last.
    pub receives: u32,
    /// The group that this check suggested last, if it was not the home.
    pub suggested_home: Option<usize>,
}

/// The output from `start` on waits until the WAL is durable up to `lsn`.
pub(crate) struct Hold {
    pub lsn: u64,
    /// The stream offset of its first byte.
    pub start: u64,
}

/// How a connection continues after `Door::serve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// Close when the output has been sent.
    Close,
    /// Close at once and discard the output.
    CloseNow,
}

/// Starts reads without waiting for them. It receives one callback per deferred session, in order. Each is called, in any thread, when that session can be served.
pub type Fetch = Box<dyn FnOnce(Vec<Box<dyn FnOnce() + Send>>)>;

/// Input and output of one `Door::serve`.
pub struct Io<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) consumed: usize,
    pub(crate) needed: usize,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) durability_lsn: u64,
    pub(crate) is_parked: bool,
    pub(crate) closes_with_peer: bool,
    /// The length of `out` above which the session should pause.
    pub(crate) out_max: usize,
    pub(crate) is_paused: bool,
    pub(crate) continues: bool,
    pub(crate) tls: Option<Arc<TlsConfig>>,
    pub(crate) tls_info: Option<TlsInfo>,
    pub(crate) connection: &'a Arc<Connection>,
}

/// A door with its session type erased, so that all connections have one type.
pub(crate) trait AnyDoor: Send + Sync {
    fn open(&self, connection: &Arc<Connection>) -> Result<Box<dyn Any + Send>, Vec<u8>>;
    fn serve(&self, session: &mut (dyn Any + Send), io: &mut Io<'_>) -> Flow;
    fn look_ahead(&self, batches: &mut [&mut Batch]) -> Option<Fetch>;
    fn close(&self, session: Box<dyn Any + Send>);
    fn refuse(&self) -> Vec<u8>;
}

/// A session and its received requests, taken out of the connection for a round (RE-9).
pub(crate) struct Batch {
    pub session: Box<dyn Any + Send>,
    pub input: Vec<u8>,
    pub is_deferred: bool,
}

/// A connection whose requests are served in a round.
pub(crate) struct Member {
    pub connection: Arc<Connection>,
    pub batch: Batch,
}

/// An entry of a run queue.
pub(crate) enum Work {
    /// Events for a connection.
    Events(Arc<Connection>, u32),
    /// A deferred connection whose pages have been read.
    Fetched(Member),
    Task(Task),
    /// A run of a session queue.
    Session(Task),
}

/// The connections of an epoll set by token: slots with a generation, so that a token of a closed connection names none.
#[derive(Default)]
pub(crate) struct Slab {
    pub slots: Vec<(u32, Option<Arc<Connection>>)>,
    pub free: Vec<u32>,
}

/// One epoll set, its connections, its run queues and its threads.
pub(crate) struct Group {
    pub number: usize,
    pub shared: Arc<Shared>,
    pub epoll: Epoll,
    pub wake: EventFd,
    pub source: Option<EventSource>,
    /// Work for any thread of the group, with the time at which it was enqueued.
    pub queue: Mutex<VecDeque<(Work, u64)>>,
    /// The length of `queue`.
    pub queued: AtomicUsize,
    /// The local run queue: connections with events that a thread has taken from epoll, and work that these have left for the group meanwhile (RE-14).
    pub local_queue: Mutex<VecDeque<Work>>,
    /// Connections whose home is this group.
    pub population: AtomicUsize,
    /// The processor on which a thread of the group ran last.
    pub cpu: AtomicUsize,
    /// Threads that are in epoll_wait, or about to be.
    pub waiting: AtomicUsize,
    pub run_cost: RunCost,
    pub workers: WorkerPool,
    pub slots: WorkerSlots,
    pub slab: RwLock<Slab>,
    /// Connections with output that waits for the watermark.
    pub held: Mutex<Vec<Arc<Connection>>>,
    pub any_held: AtomicBool,
    /// The watermark has advanced while `any_held` was set.
    pub must_release: AtomicBool,
    /// Connections whose peer does not take their output.
    pub blocked: Mutex<Vec<Weak<Connection>>>,
    /// The progress of each thread, for the watchdog.
    pub progress: Mutex<Vec<Arc<Progress>>>,
}
