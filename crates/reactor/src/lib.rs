//! The thread pool that all doors share: groups of epoll threads, and replies that wait for the WAL without a thread. Start with README.md.

#![forbid(unsafe_code)]

mod acceptor;
mod broadcast;
mod connection;
mod context;
mod counters;
mod door;
mod event_source;
mod group;
mod job;
mod latency;
mod mailbox;
mod pool;
mod progress;
mod reply_gate;
mod round;
mod run_cost;
mod run_state;
mod scratch;
mod send_batch;
mod session_queue;
mod settings;
mod shared;
mod state;
mod sys;
mod timer;
mod tls;
mod watchdog;
mod worker;
mod worker_pool;
mod worker_slots;

pub use acceptor::ListenOptions;
pub use broadcast::{Backlog, Broadcast};
pub use connection::Buffers;
pub use counters::Counters;
pub use door::{Door, Nested, Received};
pub use event_source::EventSource;
pub use job::{Job, Next};
pub use latency::Latencies;
pub use mailbox::Task;
pub use pool::{Listener, Pool};
pub use reply_gate::ReplyGate;
pub use session_queue::{Call, Pushed, Reply, Serve, SessionQueue, Waker};
pub use settings::Settings;
pub use state::{Connection, Fetch, Flow, Handle, Io};
pub use timer::Alarm;
pub use tls::{TlsConfig, TlsInfo};
