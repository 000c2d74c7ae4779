//! The MySQL client/server protocol over `query`. Start with README.md beside this crate.
#![forbid(unsafe_code)]

mod auth;
mod charset;
mod clients;
mod columns;
mod command_context;
mod commands;
mod compressed_stream;
mod compression;
mod connection_state;
mod door;
mod errors;
mod handshake;
mod large_row;
mod literal_extraction;
mod literals;
mod local_infile;
mod long_commands;
mod memory_budget;
mod options;
mod packet;
mod params;
mod pending_reply;
mod protocol;
mod replies;
mod reply;
mod rows;
mod rsa;
mod session;
mod session_settings;
mod shared;
mod statements;
mod stats;
mod wire;

/// The entry points of the fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzed {
    pub use crate::compressed_stream::{CompressedStream, Opened};
    pub use crate::compression::Method;
    pub use crate::handshake::{FirstPacket, HandshakeResponse, read_change_user, read_first};
    pub use crate::packet::{Cut, cut};
    pub use crate::params::{read, read_attributes, read_named};
    pub use crate::wire::Reader;
}

pub use door::MysqlDoor;
pub use handshake::VERSION;
pub use options::Options;
pub use stats::Stats;
