//! This server as a source of replication: other servers follow it.
//!
//! ```text
//!   key transaction ─► effects, encoded ─► history ─► followers' sessions, each from its own offset ─► held until durable
//!   PSYNC ─► snapshot of the keys; at its instant the follower's offset is fixed ─► RDB file ─► the history behind that offset
//! ```
//! `encoding` turns effects into commands, `history` keeps their bytes, `followers` has what is known of who follows, `tick` does what time brings.

mod attach;
pub(crate) mod encoding;
pub(crate) mod followers;
pub(crate) mod history;
pub(crate) mod tick;
