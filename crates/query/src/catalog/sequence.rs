//! Sequences: counters with a name, which columns may own.
//!
//! All versions of a sequence share one counter, which has the parameters in force, so a reader of an older definition
//! counts by the newest. Values are reserved `AHEAD` of use in a transaction of its own: a crash skips some, and gives
//! none twice (QU-37). A value may be shown once the WAL is durable up to the LSN that comes with it (QU-38). DDL holds
//! the counter from its change of the records until it has committed or undone it (QU-39). Until then the transaction of
//! the change counts by a state of its own, which goes with it when it is undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use datum::fault::{SequenceLimit, SequencePosition};
use datum::{Fault, Result};
use engine::rows::Isolation;
use engine::{Engine, Lsn};
use stdx::sync::{Condvar, Mutex, MutexGuard};
use stdx::wait;

use crate::catalog::codec::{DefinitionHead, In, Out, damaged};
use crate::catalog::object_id::{Maker, ObjectId};
use crate::catalog::record::{position_key, put};
use crate::catalog::table::TableId;
use crate::catalog::table_lock::{Patience, STEP, TABLE_LOCK, gives_up};
use crate::engine_fault::engine_fault;

const VERSION: u8 = 1;

/// The values that are reserved ahead of use, and that a crash may skip.
const AHEAD: u64 = 32;

/// A definition: one immutable version of a sequence.
#[derive(Clone, Debug)]
pub struct Sequence {
    pub id: ObjectId,
    pub maker: Maker,
    pub schema: String,
    pub name: String,
    /// The table of the column that owns it; the column has it in `TableColumn::sequences`.
    pub owned_by: Option<TableId>,
    /// Of one session, and without records.
    pub temporary: bool,
    pub parameters: Parameters,
    live: Arc<SequenceState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The width of the declared type: 2, 4 or 8.
    pub bytes: u8,
    pub start: i64,
    /// Negative for a sequence that descends, never 0.
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    /// The number of values that a session takes at once.
    pub cache: u64,
    pub cycle: bool,
}

/// The state that all versions of a sequence share.
#[derive(Debug)]
struct SequenceState {
    counter: Mutex<Counter>,
    released: Condvar,
    /// The state of a definition that only the transaction sees which has made it. Its positions are recorded at the
    /// commit.
    is_pending: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    parameters: Parameters,
    last: i64,
    /// `last` has been given; otherwise it is the next value.
    is_called: bool,
    /// Values between `last` and this one are reserved. `None`: not even the next one.
    reserved: Option<i64>,
    /// The durability LSN of `last` and of the reservation.
    durability_lsn: Lsn,
    /// DDL holds the counter (QU-39).
    is_held: bool,
    is_gone: bool,
}

/// Values that were taken: `first` and the next ones, `increment` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub first: i64,
    pub count: u64,
    pub increment: i64,
    pub durability_lsn: Lsn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub last_value: i64,
    pub is_called: bool,
    pub durability_lsn: Lsn,
}

impl Parameters {
    /// Returns the value after this one; `None` beyond the bounds.
    fn next(&self, value: i64) -> Option<i64> {
        value.checked_add(self.increment).filter(|next| self.contains(*next))
    }

    fn contains(&self, value: i64) -> bool {
        (self.min..=self.max).contains(&value)
    }

    /// Returns the number of values after this one up to the bound, and the last of the first `count` of them.
    fn ahead(&self, value: i64, count: u64) -> (u64, i64) {
        let room = if self.increment > 0 { self.max.abs_diff(value) } else { self.min.abs_diff(value) };
        let count = count.min(room / self.increment.unsigned_abs());
        // The product is at most `room`, so neither it nor the sum overflows its range.
        let distance = i128::from(count) * i128::from(self.increment);
        (count, (i128::from(value) + distance) as i64)
    }

    /// Returns the value with which a cycle begins anew.
    fn cycle_start(&self) -> i64 {
        if self.increment > 0 { self.min } else { self.max }
    }
}

impl Counter {
    fn new(parameters: Parameters, last: i64, is_called: bool) -> Counter {
        let (reserved, durability_lsn) = (None, 0);
        Counter { parameters, last, is_called, reserved, durability_lsn, is_held: false, is_gone: false }
    }

    /// Returns the first of the next values, and whether it follows `last` without a new cycle; `None` beyond the bound.
    fn first(&self) -> Option<(i64, bool)> {
        let Counter { parameters, last, .. } = self;
        if !self.is_called {
            return Some((*last, false));
        }
        let next = parameters.next(*last).map(|next| (next, true));
        next.or_else(|| parameters.cycle.then(|| (parameters.cycle_start(), false)))
    }

    /// Returns whether `value`, which follows `last`, is reserved.
    fn covers(&self, value: i64) -> bool {
        let is_up = self.parameters.increment > 0;
        self.reserved.is_some_and(|reserved| if is_up { value <= reserved } else { value >= reserved })
    }

    fn position(&self) -> Vec<u8> {
        position_bytes(self.last, self.is_called)
    }
}

fn position_bytes(last: i64, is_called: bool) -> Vec<u8> {
    let mut out = Out::default();
    out.number(last as u64);
    out.byte(u8::from(is_called));
    out.0
}

impl Sequence {
    /// Returns a new sequence, which gives `start` first.
    pub fn new(id: ObjectId, schema: String, name: String, parameters: Parameters, maker: Maker) -> Sequence {
        let live = SequenceState::new(Counter::new(parameters, parameters.start, false), true);
        Sequence { id, maker, schema, name, owned_by: None, temporary: false, parameters, live }
    }

    /// Takes the next `count` values, or as many as remain before the bound, but one at least. Fails with
    /// `Fault::SequenceLimit` beyond the bound of a sequence that does not cycle.
    pub fn take(&self, engine: &Engine, count: u64, patience: Patience<'_>) -> Result<Taken> {
        let mut counter = self.lock(patience)?;
        let Counter { parameters, .. } = *counter;
        let (first, follows) = counter.first().ok_or_else(|| self.limit_reached(parameters))?;
        let (more, last) = parameters.ahead(first, count.max(1) - 1);
        if !follows || !counter.covers(last) {
            let (_, reserved) = parameters.ahead(last, AHEAD);
            counter.durability_lsn = self.record_position(engine, reserved, true)?;
            counter.reserved = Some(reserved);
        }
        (counter.last, counter.is_called) = (last, true);
        let durability_lsn = counter.durability_lsn;
        Ok(Taken { first, count: more + 1, increment: parameters.increment, durability_lsn })
    }

    /// Takes the next value. Returns it with its durability LSN.
    pub fn next(&self, engine: &Engine, patience: Patience<'_>) -> Result<(i64, Lsn)> {
        self.take(engine, 1, patience).map(|taken| (taken.first, taken.durability_lsn))
    }

    /// Moves the sequence at once, whatever becomes of the caller's transaction: the next value is `value`, or the one
    /// after it if `is_called`. Fails with `Fault::SequencePosition` outside the bounds.
    pub fn set(&self, engine: &Engine, value: i64, is_called: bool, patience: Patience<'_>) -> Result<Lsn> {
        let mut counter = self.lock(patience)?;
        self.check_position(&counter.parameters, value)?;
        counter.durability_lsn = self.record_position(engine, value, is_called)?;
        (counter.last, counter.is_called, counter.reserved) = (value, is_called, None);
        Ok(counter.durability_lsn)
    }

    /// Returns the record of the position.
    pub(super) fn position_record(&self) -> Vec<u8> {
        self.live.counter.lock().position()
    }

    /// Returns the last value, or the first one before any was taken.
    pub fn position(&self) -> Position {
        let Counter { last, is_called, durability_lsn, .. } = *self.live.counter.lock();
        Position { last_value: last, is_called, durability_lsn }
    }

    /// Locks the counter, once no DDL holds it.
    fn lock(&self, patience: Patience<'_>) -> Result<MutexGuard<'_, Counter>> {
        let mut counter = self.live.counter.lock();
        let mut until = None;
        while counter.is_held {
            let until = *until.get_or_insert_with(|| Instant::now() + patience.wait);
            let left = until.saturating_duration_since(Instant::now());
            if let Some(reason) = gives_up(left, patience.is_interrupted) {
                return Err(reason);
            }
            let Some(_waiting) = wait::try_announce(&TABLE_LOCK) else { return Err(Fault::TooManyWaits) };
            counter = self.live.released.wait_timeout(counter, left.min(STEP)).0;
        }
        match counter.is_gone {
            true => Err(Fault::unknown_table(&self.schema, &self.name)),
            false => Ok(counter),
        }
    }

    fn record_position(&self, engine: &Engine, last: i64, is_called: bool) -> Result<Lsn> {
        if self.temporary || self.is_pending() {
            return Ok(0);
        }
        let mut txn = engine.rows().begin(Isolation::ReadCommitted);
        put(&mut txn, &position_key(self.id), &position_bytes(last, is_called))?;
        txn.commit().map_err(engine_fault)
    }

    #[cold]
    fn limit_reached(&self, parameters: Parameters) -> Fault {
        let is_max = parameters.increment > 0;
        let limit = if is_max { parameters.max } else { parameters.min };
        Fault::SequenceLimit(Box::new(SequenceLimit { sequence: self.name.as_str().into(), is_max, limit }))
    }

    fn check_position(&self, parameters: &Parameters, value: i64) -> Result<()> {
        if parameters.contains(value) {
            return Ok(());
        }
        let Parameters { min, max, .. } = *parameters;
        let sequence = self.name.as_str().into();
        Err(Fault::SequencePosition(Box::new(SequencePosition { sequence, value, min, max })))
    }
}

pub(super) fn encode_sequence(sequence: &Sequence) -> Vec<u8> {
    let Sequence { id, maker, schema, name, owned_by, temporary: _, parameters, live: _ } = sequence;
    let Parameters { bytes, start, increment, min, max, cache, cycle } = *parameters;
    let mut out = Out::default();
    out.byte(VERSION);
    out.head(*id, *maker, schema, name);
    out.byte(u8::from(owned_by.is_some()));
    out.number(owned_by.unwrap_or_default());
    out.byte(bytes);
    [start, increment, min, max].into_iter().for_each(|number| out.number(number as u64));
    out.number(cache);
    out.byte(u8::from(cycle));
    out.0
}

/// Reads a definition and its position.
pub(super) fn decode_sequence(bytes: &[u8], position: &[u8]) -> Result<Sequence> {
    let mut from = In(bytes);
    if from.byte()? != VERSION {
        return Err(Fault::corrupt("a sequence of a later version"));
    }
    let DefinitionHead { id, maker, schema, name } = from.head()?;
    let is_owned = from.byte()? != 0;
    let owned_by = Some(from.number()?).filter(|_| is_owned);
    let bytes = from.byte()?;
    let mut number = || -> Result<i64> { Ok(from.number()? as i64) };
    let (start, increment, min, max) = (number()?, number()?, number()?, number()?);
    let (cache, cycle) = (from.number()?, from.byte()? != 0);
    let parameters = Parameters { bytes, start, increment, min, max, cache, cycle };
    let mut from = In(position);
    let (last, is_called) = (from.number()? as i64, from.byte()? != 0);
    if increment == 0 || !parameters.contains(start) || !parameters.contains(last) {
        return Err(damaged());
    }
    let sequence = Sequence { owned_by, ..Sequence::new(id, schema, name, parameters, maker) };
    *sequence.live.counter.lock() = Counter::new(parameters, last, is_called);
    sequence.live.is_pending.store(false, Ordering::Relaxed);
    Ok(sequence)
}

impl SequenceState {
    fn new(counter: Counter, is_pending: bool) -> Arc<SequenceState> {
        let (counter, is_pending) = (Mutex::new(counter), AtomicBool::new(is_pending));
        Arc::new(SequenceState { counter, released: Condvar::new(), is_pending })
    }
}

impl Sequence {
    /// Returns whether only the transaction that has made or altered the definition sees it.
    pub(super) fn is_pending(&self) -> bool {
        self.live.is_pending.load(Ordering::Relaxed)
    }

    /// Gives the altered definition a counter of its own (QU-43), which goes on from its position or from `restart`. Fails with
    /// `Fault::SequencePosition` if that is outside its bounds.
    pub(super) fn recount(&mut self, restart: Option<i64>) -> Result<()> {
        let Counter { last, is_called, .. } = *self.live.counter.lock();
        let (last, is_called) = restart.map_or((last, is_called), |value| (value, false));
        self.check_position(&self.parameters, last)?;
        self.live = SequenceState::new(Counter::new(self.parameters, last, is_called), true);
        Ok(())
    }

    /// Returns the definition as it is published: it counts by the held counter of its earlier versions, if it has one.
    pub(super) fn settled(sequence: &Sequence, held: Option<&HeldCounter>, lsn: Lsn) -> Sequence {
        let mut settled = sequence.clone();
        let reached = Counter { reserved: None, durability_lsn: lsn, ..*sequence.live.counter.lock() };
        match held {
            Some(held) => {
                *held.live.counter.lock() = Counter { is_held: true, ..reached };
                settled.live = held.live.clone();
            }
            None => {
                *settled.live.counter.lock() = reached;
                settled.live.is_pending.store(false, Ordering::Relaxed);
            }
        }
        settled
    }
}

/// A counter that DDL holds. Dropping it releases the counter.
#[derive(Debug)]
pub(super) struct HeldCounter {
    id: ObjectId,
    live: Arc<SequenceState>,
}

impl HeldCounter {
    /// Holds the counter until the change is committed or undone. The sequence is locked (`Writing::claim_sequence`), so
    /// another transaction can only be about to release the counter.
    pub(super) fn hold(sequence: &Sequence) -> HeldCounter {
        let mut counter = sequence.live.counter.lock();
        while counter.is_held {
            counter = sequence.live.released.wait(counter);
        }
        counter.is_held = true;
        HeldCounter { id: sequence.id, live: sequence.live.clone() }
    }

    pub(super) fn id(&self) -> ObjectId {
        self.id
    }

    pub(super) fn is_of(&self, sequence: &Sequence) -> bool {
        self.id == sequence.id
    }

    pub(super) fn drop_sequence(&self) {
        self.live.counter.lock().is_gone = true;
    }
}

impl Drop for HeldCounter {
    fn drop(&mut self) {
        self.live.counter.lock().is_held = false;
        self.live.released.notify_all();
    }
}

#[cfg(test)]
mod tests;
