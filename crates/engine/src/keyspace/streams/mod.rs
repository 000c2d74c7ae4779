//! Streams: entries in chunks, and groups with their consumers and pending entries. The crate's README lists the files in reading order.

pub(crate) mod chunk;
pub(crate) mod groups;
pub(crate) mod node;
pub(crate) mod pending;
pub(crate) mod stream;
pub(crate) mod stream_check;
pub(crate) mod stream_copy;
pub(crate) mod stream_id;
pub(crate) mod stream_walk;
pub(crate) mod stream_write;
