//! The kernel of a session: what a session of every dialect holds between and during its statements.
//!
//! A dialect's session owns a `SessionCore` and drives it: it parses and binds, decides when a transaction begins and ends, and reports to its client. The core keeps the transaction's state, the
//! metadata locks, the session's temporary tables and the suspended statement.
//!
//! ```text
//!   dialect's session ──► plan_cache ──► statement (bound, valid?) ──► metadata_locks ──► transaction ──► exec
//!                                                                                            │            │ would wait
//!                                                            temporary: maps freed ◄─ end ───┘            ▼
//!   other threads ──► interrupts: cancel, end of waits, wake ◄──────────────────────────────────── suspension
//! ```

pub mod advisory_held;
pub mod advisory_locks;
pub mod deadlock;
pub mod definitions;
pub mod interrupts;
pub mod metadata_locks;
pub mod open_transaction;
pub mod plan_cache;
pub mod registry;
pub mod statement;
pub mod suspension;
pub mod temporary;
pub mod transaction;
mod wait_graph;
