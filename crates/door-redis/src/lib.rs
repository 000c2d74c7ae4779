//! RESP on the wire, the engine behind it. Start with README.md; the subset that is served stands in docs/protocols/redis.md.

#![forbid(unsafe_code)]

mod acl_rules;
mod clients;
mod command;
mod commands;
mod door;
mod errors;
pub mod extended;
pub mod frame;
pub mod glob;
mod host;
pub mod number;
mod parameters;
mod reply;
mod session;
mod stats;

pub use command::{COMMANDS, Command, Keys};
pub use door::{Options, RedisDoor};
pub use host::{Host, Refused};
pub use stats::Stats;
