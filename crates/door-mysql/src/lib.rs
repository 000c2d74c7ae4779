//! The MySQL client/server protocol on the engine. Start with README.md beside this crate.
#![forbid(unsafe_code)]

mod auth;
mod charset;
mod clients;
mod columns;
mod commands;
mod compression;
mod conversation;
mod door;
mod errors;
mod handshake;
mod lift;
mod literals;
mod packet;
mod params;
mod parcel;
mod protocol;
mod reply;
mod room;
mod rows;
mod seal;
mod session;
mod squeeze;
mod statements;
mod stats;
mod wire;

/// What the fuzz targets feed.
#[cfg(fuzzing)]
pub mod fuzzed {
    pub use crate::compression::Method;
    pub use crate::handshake::{Answer, First, read_change_user, read_first};
    pub use crate::packet::{Cut, cut};
    pub use crate::params::{read, read_attributes, read_named};
    pub use crate::squeeze::{Opened, Squeeze};
    pub use crate::wire::Reader;
}

pub use door::{MysqlDoor, Options};
pub use handshake::VERSION;
pub use stats::Stats;
