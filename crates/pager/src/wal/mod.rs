//! The write-ahead log: one stream of records, durable in order.
//!
//! Reading order: `record` (bytes of a record), `ring` (reserve and copy), `stream` (append, space), `flush` (chunks, the durable watermark), `segment`
//! (segments), `log_store` (their storage), `log_files` (in a local folder), `read` (the stream read back), `copy` (the stream written anew). Invariants PG-10 to PG-18 are in the crate's README, formats in docs/formats/log.md.

pub mod copy;
pub mod flush;
pub mod log_files;
pub mod log_store;
pub mod read;
pub mod record;
pub mod ring;
pub mod segment;
pub mod stream;

use crate::page::Lsn;

/// The first position of a new WAL. Smaller numbers have special meanings (0: never, 1: decided long ago).
pub const FIRST_LSN: Lsn = 4096;
