//! PostgreSQL's wire protocol, version 3, over `sql-postgres`. Start with README.md beside this crate.

#![forbid(unsafe_code)]

mod auth;
mod certificate;
mod clients;
mod connection_state;
mod door;
mod errors;
mod message;
mod options;
mod replies;
mod reply;
mod requests;
mod scram;
mod session;
mod shared;
mod sql;
mod startup;
mod stats;
mod wire;

/// The entry points of the fuzz target.
#[cfg(fuzzing)]
pub mod fuzzed {
    pub use crate::message::{Cut, Request, cut, read};
    pub use crate::scram::{Exchange, PLAIN, PLUS};
    /// First packets.
    pub mod first {
        pub use crate::startup::{First, FirstCut, PACKET_MAX, cut, read};
    }
}

pub use door::PostgresDoor;
pub use options::{Options, Tls};
pub use sql::Database;
pub use stats::Stats;
