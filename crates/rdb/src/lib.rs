//! Redis' format of values: what DUMP replies, RESTORE takes, and an RDB file holds. Bytes to events and events to bytes; knows no keyspace.
#![forbid(unsafe_code)]

mod error;
mod file;
mod file_writer;
mod lzf;
mod packed;
mod payload;
mod source;
mod stream;
mod value;
mod write;

pub use error::{Error, Result};
pub use file::{FileEvent, FileKey, read_file};
pub use file_writer::{FileWriter, file_head};
pub use packed::{Intset, Listpack};
pub use payload::{PAYLOAD_END, PayloadDigest, check_payload, end_payload, payload_version};
pub use source::Source;
pub use stream::{StreamEntries, StreamEvent, StreamId, StreamState, write_id};
pub use value::{Event, Kind, read_value};
pub use write::{write_length, write_score, write_string, write_time};

/// The version of RDB that is written: that of Redis 7.0.
pub const VERSION_WRITTEN: u16 = 10;

/// The version of RDB in which a hash of which fields expire is written: that of Redis 7.4.
pub const VERSION_OF_TIMES: u16 = 12;

/// The newest version of RDB that is read: that of Redis 7.4.
pub const VERSION_READ: u16 = 12;

/// Bytes of the longest string, as in Redis (`proto-max-bulk-len`).
pub const STRING_MAX: u64 = 512 << 20;

/// The bytes before a value that say its type.
pub mod types {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const ZSET: u8 = 3;
    pub const HASH: u8 = 4;
    pub const ZSET_2: u8 = 5;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const ZSET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_QUICKLIST: u8 = 14;
    pub const STREAM_LISTPACKS: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const ZSET_LISTPACK: u8 = 17;
    pub const LIST_QUICKLIST_2: u8 = 18;
    pub const STREAM_LISTPACKS_2: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    pub const STREAM_LISTPACKS_3: u8 = 21;
    pub const HASH_TIMES_RC: u8 = 22;
    pub const HASH_LISTPACK_TIMES_RC: u8 = 23;
    pub const HASH_TIMES: u8 = 24;
    pub const HASH_LISTPACK_TIMES: u8 = 25;
}
