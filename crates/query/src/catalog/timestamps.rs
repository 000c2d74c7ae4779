//! Timestamps for clients that order the transactions of several servers by them: milliseconds since 1970, a count within each of 16 bits, and six bits that are not used.
//!
//! A number is given out once, whatever the wall clock does and across restarts: numbers below a record of the catalog are spoken for, some seconds ahead, so that a record is written rarely. Whoever
//! gets a number must not show it before that record is durable, hence the gate.

use datum::Result;
use engine::rows::{CATALOG, Isolation};
use engine::{Engine, Lsn};
use stdx::sync::Mutex;

use crate::catalog::codec::In;
use crate::catalog::put;
use crate::catalog::record::TIMESTAMPS_KEY;
use crate::engine_fault::engine_fault;

/// Between two timestamps.
pub const STEP: u64 = 1 << 6;
const MILLISECOND: u64 = 1 << 22;
/// So much is spoken for at once.
const AHEAD: u64 = 10_000 * MILLISECOND;

#[derive(Debug, Default)]
pub struct Timestamps(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Given out.
    last: u64,
    /// Spoken for; 0: nobody has looked yet.
    spoken: u64,
    gate: Lsn,
}

impl Timestamps {
    /// `count` timestamps, the first of them `STEP` above the number returned, and the position at which the log must be durable before it is shown.
    pub fn take(&self, engine: &Engine, count: u32, now_ms: u64) -> Result<(u64, Lsn)> {
        let mut state = self.0.lock();
        if state.spoken == 0 {
            state.spoken = read(engine)?;
            state.last = state.spoken;
        }
        let base = state.last.max(now_ms * MILLISECOND);
        let last = base + u64::from(count) * STEP;
        if last > state.spoken {
            state.gate = write(engine, last + AHEAD)?;
            state.spoken = last + AHEAD;
        }
        state.last = last;
        Ok((base, state.gate))
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
