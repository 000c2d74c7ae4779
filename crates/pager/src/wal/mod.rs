//! The log: one stream of records, durable in order.
//!
//! Reading order: `record` (bytes of a record), `ring` (reserve and copy), `flush` (chunks, the durable watermark),
//! `segment` (files), `read` (the stream back from the files). Invariants L1..L6 stand in the crate's README; formats in docs/formats/log.md.

pub mod flush;
pub mod read;
pub mod record;
pub mod ring;
pub mod segment;
pub mod stream;

/// The first position of a new log. Smaller numbers have meanings of their own (0: never, 1: decided long ago).
pub const FIRST_LSN: crate::Lsn = 4096;
