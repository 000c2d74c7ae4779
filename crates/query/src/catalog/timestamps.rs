//! Timestamps for clients that order transactions of several servers by them: milliseconds since 1970, a counter of 16
//! bits within each millisecond, and six unused bits.
//!
//! A timestamp is unique, whatever the wall clock does and across restarts. A record of the catalog reserves the
//! numbers below it some seconds ahead, so it is written rarely. A timestamp must not be shown before that record is
//! durable, so each has a durability LSN.

use datum::Result;
use engine::rows::{CATALOG, Isolation};
use engine::{Engine, Lsn};
use stdx::sync::Mutex;

use crate::catalog::codec::In;
use crate::catalog::record::{TIMESTAMPS_KEY, put};
use crate::engine_fault::engine_fault;

/// The difference of two timestamps.
pub const STEP: u64 = 1 << 6;
const MILLISECOND: u64 = 1 << 22;
/// The range that a record reserves ahead.
const AHEAD: u64 = 10_000 * MILLISECOND;

#[derive(Debug, Default)]
pub struct Timestamps(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The last timestamp given out.
    last: u64,
    /// The reserved bound; 0 if it is not loaded.
    spoken: u64,
    durability_lsn: Lsn,
}

impl Timestamps {
    /// Reserves `count` timestamps. Returns a number, the first timestamp being `STEP` above it, and the durability LSN
    /// that must be waited for before they are shown.
    pub fn take(&self, engine: &Engine, count: u32, now_ms: u64) -> Result<(u64, Lsn)> {
        let mut state = self.0.lock();
        if state.spoken == 0 {
            state.spoken = read(engine)?;
            state.last = state.spoken;
        }
        let base = state.last.max(now_ms * MILLISECOND);
        let last = base + u64::from(count) * STEP;
        if last > state.spoken {
            state.durability_lsn = write(engine, last + AHEAD)?;
            state.spoken = last + AHEAD;
        }
        state.last = last;
        Ok((base, state.durability_lsn))
    }
}

fn read(engine: &Engine) -> Result<u64> {
    let mut txn = engine.rows().begin(Isolation::ReadCommitted);
    let mut out = Vec::new();
    let is_there = txn.get(CATALOG, TIMESTAMPS_KEY, &mut out).map_err(engine_fault)?;
    txn.rollback();
    if is_there { In(&out).number() } else { Ok(0) }
}

fn write(engine: &Engine, below: u64) -> Result<Lsn> {
    let mut txn = engine.rows().begin(Isolation::ReadCommitted);
    put(&mut txn, TIMESTAMPS_KEY, &below.to_le_bytes())?;
    txn.commit().map_err(engine_fault)
}
