//! Following another server of Redis, as its replica (REPLICAOF).
//!
//! ```text
//!   REPLICAOF ─► `Following`, a thread: connect ─► handshake ─► FULLRESYNC ─► RDB into staged databases ─► they replace everything, with the note
//!                                                  └─► CONTINUE ────────────────────────────────────────────┐
//!                                                                       commands in batches, each with its note ◄─┘─► REPLCONF ACK
//! ```
//! The note is the history's id, the offset in its stream and the selected database. It is stored by the transaction whose commands end there (DR-18), so after a
//! crash the stream continues behind them. While a server is followed nobody else writes keys, and only its commands remove expired ones (EN-89).

mod apply;
mod full_sync;
mod handshake;
mod link;
mod note;
mod received;
pub(crate) mod run;
pub(crate) mod start;
pub(crate) mod state;
mod stream;
