//! MIGRATE: keys move to another server.
//!
//! ```text
//!   session: parked ─────────────────────────────────────────────────────────────────────────────────► reply
//!   thread:  lock the keys ─► for each: DUMP ─► RESTORE there ─► its answer ─► delete the answered ones ─► COMMIT
//! ```
//! The transfer is a transaction of rows that holds key locks (`engine::rows`), so no thread that serves clients waits for the other server: readers read, and a
//! command that changes one of the keys waits, as it does for a transaction of SQL. A key leaves this server when the other one has said that it has it, and
//! not before; it is never changed in between (DR-25). A value is sent when it is durable here, so a crash on this side leaves a key here, there, or at both, and never at none.
//!
//! Transfers are bounded: so many run at a time, each with some pieces of one key's payload in memory and the rest in an unnamed file, and the others wait in line.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::atomic::AtomicBool;
use stdx::sync::{Condvar, Mutex};

use crate::number;
use crate::saves::SaveSlot;

mod moving;
mod transfer;

/// A request to move keys.
pub(crate) struct Migration {
    pub host: String,
    pub port: u16,
    pub timeout: Duration,
    pub db: u8,
    pub to_db: i64,
    pub keys: Vec<Vec<u8>>,
    pub keeps: bool,
    pub replaces: bool,
    /// The words behind AUTH.
    pub login: Vec<Vec<u8>>,
    pub slot: SaveSlot,
}

#[derive(Default)]
struct MigrationLine {
    waiting: VecDeque<Migration>,
    running: usize,
}

#[derive(Default)]
pub(crate) struct Migrations {
    line: Mutex<MigrationLine>,
    /// A thread has ended.
    ended: Condvar,
    /// The server stops.
    is_ending: Arc<AtomicBool>,
}

/// Reads the port as Redis does: a text that is no number is port 0, which nobody listens on.
pub(crate) fn port_of(text: &[u8]) -> u16 {
    number::parse(text).and_then(|number| u16::try_from(number).ok()).unwrap_or(0)
}
