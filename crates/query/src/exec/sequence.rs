//! Sequences as a statement's expressions use them: the statement waits for DDL, and what it shows of a sequence raises its durability LSN (QU-38).
//!
//! The functions change state outside the transaction, so a plan that calls them is not restartable.

use std::time::Duration;

use datum::Result;
use engine::{Engine, Lsn};

use crate::catalog::sequence::{Position, Sequence, Taken};
use crate::catalog::table_lock::Patience;
use crate::exec::host::{Host, host};
use crate::nodes::context::EvalContext;

/// DDL holds a counter for one commit, so only a cancel request ends the wait.
const WAIT: Duration = Duration::from_secs(24 * 3600);

/// Takes the next `count` values, as `Sequence::take` does.
pub fn take(sequence: &Sequence, count: u64, ctx: &mut EvalContext) -> Result<Taken> {
    let host = host(ctx);
    let taken = with_patience(host, |engine, patience| sequence.take(engine, count, patience))?;
    note(host, taken.durability_lsn);
    Ok(taken)
}

/// Moves the sequence, as `Sequence::set` does.
pub fn set(sequence: &Sequence, value: i64, is_called: bool, ctx: &mut EvalContext) -> Result<()> {
    let host = host(ctx);
    let lsn = with_patience(host, |engine, patience| sequence.set(engine, value, is_called, patience))?;
    note(host, lsn);
    Ok(())
}

pub fn position(sequence: &Sequence, ctx: &mut EvalContext) -> Position {
    let position = sequence.position();
    note(host(ctx), position.durability_lsn);
    position
}

fn with_patience<T>(host: &Host, act: impl FnOnce(&Engine, Patience<'_>) -> Result<T>) -> Result<T> {
    let is_interrupted = &|| host.monitor.is_cancelled();
    act(host.instance.engine(), Patience { wait: WAIT, is_interrupted })
}

fn note(host: &mut Host, lsn: Lsn) {
    host.seen = host.seen.max(lsn);
}
