//! The Redis protocol (RESP) over the engine. README.md is the introduction; docs/protocols/redis.md describes what is served.

#![forbid(unsafe_code)]

mod alone;
mod call;
mod clients;
mod cluster;
mod command;
mod commands;
mod docs;
mod door;
mod errors;
pub mod extended;
mod float;
mod functions;
mod geohash;
pub mod glob;
mod host;
mod hyperloglog;
mod import;
mod latency;
pub mod messages;
mod migrations;
mod number;
mod parameters;
pub mod parser;
mod rates;
mod replica;
mod reply;
mod saves;
mod scripts;
mod session;
mod shared;
mod shutdown;
mod source;
mod sparkline;
mod spool;
mod stats;
mod table;
mod users;

pub use command::Command;
pub use door::{Options, RedisDoor};
pub use host::{Host, Refused};
pub use import::{ImportError, ImportPart, Imported, read_manifest};
pub use parameters::{event_flags, output_limits};
pub use stats::Stats;
pub use table::COMMANDS;
