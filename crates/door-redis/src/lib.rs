//! RESP on the wire, the engine behind it. Start with README.md; the subset that is served stands in docs/protocols/redis.md.

#![forbid(unsafe_code)]

mod call;
mod clients;
mod command;
mod commands;
mod docs;
mod door;
mod errors;
pub mod extended;
pub mod frame;
mod functions;
pub mod glob;
mod host;
mod latency;
pub mod number;
mod parameters;
mod rates;
mod reply;
mod session;
mod shared;
mod sparkline;
mod spool;
mod stats;
mod table;
mod users;

pub use command::Command;
pub use door::{Options, RedisDoor};
pub use host::{Host, Refused};
pub use stats::Stats;
pub use table::COMMANDS;
