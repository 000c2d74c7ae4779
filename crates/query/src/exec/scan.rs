//! Rows of one table: a cursor over the rows or an index, range by range (`ranges`), and conditions.
//!
//! Three ways of reading. Plain reads see the transaction's snapshot. Locking reads of current rows walk over what is there now, lock each row, and look at the newest version: so
//! every condition is looked at again on the row that is locked, and a row that is met twice, under its old and its new index entry, counts once. Locking reads of seen rows walk over the snapshot, lock each
//! row that satisfies the conditions, and recheck these on a newer version (QU-41).
//!
//! Below a LIMIT a locking read knows how many rows are still wanted (`Pace`): it locks the rows that it returns and those that it had to pass, and of its range no more than it has walked, but for an eighth.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use datum::row::{RowBytes, RowView};
use datum::{Fault, Result};
use engine::rows::{
    Cursor, IndexOf, Isolation, LeafHint, Locked, LockedRow, MapId, RowBatch, Strength, Transaction, Wait,
};

use crate::batch::{Batch, Row};
use crate::catalog::decode::put;
use crate::catalog::table::Index;
use crate::engine_fault::engine_fault;
use crate::exec::generated;
use crate::exec::host::host;
use crate::exec::lock_rows::lock_seen;
use crate::exec::monitor::RowAccess;
use crate::exec::ranges::{Range, point, ranges_of};
use crate::exec::row_ops;
use crate::exec::row_ops::all_hold;
use crate::exec::spill::keys::Keys;
use crate::exec::tied::{TiedRows, whole_columns};
use crate::key::{columns_length, is_shortened, row_key};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{Candidates, Lock, LockWait, Scan, Stages, StoredColumn};
use crate::plan::constant_folding::folded;
use crate::value::Value;

/// Rows that an index leads to are located in groups of so many.
const LOCATED_MIN: usize = 2;
const LOCATED_MAX: usize = 16;

/// The bytes of a longer row are shared by its values.
const LONG_ROW: usize = 256 << 10;

pub struct ScanState {
    base: Option<Arc<Row>>,
    /// Which of the access's ways is gone.
    way: usize,
    /// The next range, and those behind it.
    range: Option<Range>,
    ranges: VecDeque<Range>,
    /// Found rows satisfy the implied conditions.
    is_exact: bool,
    /// Entries of the index show all that is read: no row is.
    is_covered: bool,
    /// The output columns are stored in the rows unchanged.
    is_plain: bool,
    cursor: Option<Cursor>,
    /// The rows of the batch that have not been looked at.
    todo: std::ops::Range<usize>,
    pace: Option<Pace>,
    /// How many rows have been given.
    given: u64,
    /// The conditions, with what is the same for all rows computed.
    folded: Option<Vec<Expr>>,
    /// Keys of rows that have been met: by a locking walk over an index, and by one over several.
    seen: Keys,
    /// Of a scan that keeps the order of its key.
    tied: Option<Box<TiedRows>>,
    /// The entry that leads to the row at hand is shortened, so no condition has been looked at on it.
    is_shortened: bool,
    memory: Memory,
    /// The first entry of which there is a hint, and the hint of the one at hand.
    located: usize,
    hint: LeafHint,
    /// The wide row that is being looked at; empty if it was given away.
    wide: Row,
}

/// A locking read of which no more than some rows are wanted.
#[derive(Default)]
struct Pace {
    wanted: u64,
    /// How many rows or entries have been read.
    passed: u64,
    /// The range is locked as the scan goes on, not as a whole.
    locks_range: bool,
}

impl Pace {
    /// How many rows or entries may be locked as a range at once: as many as are needed at least, or few beside those that have been passed.
    fn step(&self, given: u64) -> usize {
        let step = self.wanted.saturating_sub(given).max(self.passed / 8).max(1);
        usize::try_from(step).unwrap_or(usize::MAX)
    }
}

/// Memory that a scan works with, and leaves to the next one of the same thread.
#[derive(Default)]
struct Memory {
    batch: RowBatch,
    bytes: Vec<u8>,
    /// Where the rows of some entries of the batch are.
    hints: Vec<LeafHint>,
}

thread_local! {
    static SPARE: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

impl Memory {
    /// Scans of a thread whose memory is kept, and how much of each.
    const KEPT: usize = 4;
    const KEPT_MAX: usize = 64 << 10;

    fn new() -> Memory {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }
}

impl Drop for ScanState {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        if memory.bytes.capacity() + memory.batch.capacity() > Memory::KEPT_MAX {
            return;
        }
        // At the end of a thread there is nobody to keep it for.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < Memory::KEPT {
                spare.push(memory);
            }
        });
    }
}

/// Where rows go.
enum Sink<'s> {
    Rows(&'s mut Vec<Row>),
    /// Only the columns that the scan puts out.
    Batch(&'s mut Batch),
    /// Calls a function with each row and keeps none; its result `false` or an error ends the scan.
    Each(&'s mut Take<'s>),
    /// Is there one for which these hold? The first ends the scan.
    First(&'s [Expr], &'s mut bool),
}

impl Sink<'_> {
    fn is_done(&self) -> bool {
        matches!(self, Sink::First(_, found) if **found)
    }
}

pub type Take<'t> = dyn FnMut(&[Value], &mut EvalContext) -> Result<()> + 't;

/// Returns how rows of such a scan are counted.
fn counted_as(scan: &Scan) -> RowAccess {
    match scan.access.index {
        _ if scan.access.backward => RowAccess::ReadPrev,
        None if scan.access.is_full() => RowAccess::ReadSequential,
        _ => RowAccess::ReadNext,
    }
}

/// Returns the lock of a scan over the rows that are there now.
fn current_lock(scan: &Scan) -> Option<Lock> {
    scan.lock.filter(|lock| lock.candidates == Candidates::Current)
}

/// Returns the lock of a scan over the rows that the snapshot sees.
fn seen_lock(scan: &Scan) -> Option<Lock> {
    scan.lock.filter(|lock| lock.candidates == Candidates::Seen)
}

fn map_of(scan: &Scan, index: Option<usize>) -> MapId {
    index.map_or(scan.table.map, |at| scan.table.indexes[at].map)
}

impl ScanState {
    /// `wanted`: whoever asks needs no more rows, as far as these are the last that are looked at.
    ///
    /// In a frame of its own, as `exec::boxed` makes the other states; this one, of some hundred bytes, is made for every statement, so it is not moved there.
    #[inline(never)]
    pub fn open(
        scan: &Scan,
        base: Option<&Arc<Row>>,
        wanted: Option<u64>,
        ctx: &mut EvalContext,
    ) -> Result<Box<ScanState>> {
        let mut state = ScanState::new(scan, base, wanted);
        state.begin(scan, base.map_or(&[], |base| base), ctx)?;
        state.folded = (scan.folds && base.is_none()).then(|| folded(&scan.conditions, ctx)).transpose()?;
        Ok(state)
    }

    #[inline]
    fn new(scan: &Scan, base: Option<&Arc<Row>>, wanted: Option<u64>) -> Box<ScanState> {
        Box::new(ScanState {
            base: base.cloned(),
            way: 0,
            range: None,
            ranges: VecDeque::new(),
            is_exact: false,
            is_covered: false,
            is_plain: is_plain(scan),
            cursor: None,
            todo: 0..0,
            pace: wanted.filter(|_| scan.lock.is_some()).map(|wanted| Pace { wanted, ..Pace::default() }),
            given: 0,
            folded: None,
            seen: Keys::default(),
            tied: scan.keeps_order.then(Box::default),
            is_shortened: false,
            memory: Memory::new(),
            located: 0,
            hint: LeafHint::Unknown,
            wide: Row::new(),
        })
    }

    /// Finds the first range, over a left row.
    fn begin(&mut self, scan: &Scan, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        if scan.table.is_unseen && !scan.table.temporary && (host(ctx).refuses_unseen || scan.table.has_moved_rows()) {
            return Err(Fault::RowsMoved);
        }
        let mut is_exact = true;
        self.range = point(scan, row, ctx)?.map(Range::Point);
        self.ranges.clear();
        if self.range.is_none() {
            self.ranges = ranges_of(&scan.table, &scan.access.ways()[0], row, ctx, &mut is_exact)?.into();
            self.range = self.ranges.pop_front();
        }
        self.is_exact = is_exact && !scan.access.may_repeat() && scan.lock.is_none();
        self.is_covered = scan.is_shown(if self.is_exact { &scan.needed_after } else { &scan.needed });
        Ok(())
    }

    /// Returns the state of a scan over a left row, which is that of an earlier left row where there was one: its buffers and its wide row take no memory anew. Only of a scan that `may_restart`,
    /// whose rows are not given away (QU-53).
    pub fn restarted<'s>(
        state: &'s mut Option<Box<ScanState>>,
        scan: &Scan,
        row: &[Value],
        ctx: &mut EvalContext,
    ) -> Result<&'s mut ScanState> {
        let state = match state {
            Some(state) => state,
            None => {
                let mut new = ScanState::new(scan, None, None);
                new.folded = scan.folds.then(|| folded(&scan.conditions, ctx)).transpose()?;
                state.insert(new)
            }
        };
        state.restart(scan, row, ctx)?;
        state.wide.extend_from_slice(row);
        Ok(state)
    }

    /// Begins the scan again, over another left row that it keeps.
    pub fn restart_over(&mut self, scan: &Scan, base: &Arc<Row>, ctx: &mut EvalContext) -> Result<()> {
        self.base = Some(base.clone());
        self.restart(scan, base, ctx)
    }

    fn restart(&mut self, scan: &Scan, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        debug_assert!(ScanState::may_restart(scan));
        (self.cursor, self.todo, self.given, self.is_shortened) = (None, 0..0, 0, false);
        self.wide.clear();
        self.begin(scan, row, ctx)
    }

    /// Returns whether one state serves the scan over many left rows.
    pub fn may_restart(scan: &Scan) -> bool {
        scan.output.is_none() && scan.lock.is_none() && !scan.access.may_repeat() && !scan.keeps_order
    }

    /// Of the way that is gone.
    fn index(&self, scan: &Scan) -> Option<usize> {
        scan.access.ways()[self.way].index
    }

    /// The next way; false: that was the last.
    fn turn(&mut self, scan: &Scan, ctx: &mut EvalContext) -> Result<bool> {
        let Some(way) = scan.access.ways().get(self.way + 1) else { return Ok(false) };
        self.way += 1;
        let row: &[Value] = self.base.as_ref().map_or(&[], |base| base);
        self.ranges = ranges_of(&scan.table, way, row, ctx, &mut false)?.into();
        self.range = self.ranges.pop_front();
        Ok(true)
    }

    /// Adds some rows; none at the end.
    pub fn next(&mut self, scan: &Scan, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        while out.is_empty() && self.step(scan, ctx, &mut Sink::Rows(out))? {}
        Ok(())
    }

    /// The same into a batch. Only of a scan that puts out some places.
    pub fn fill(&mut self, scan: &Scan, ctx: &mut EvalContext, out: &mut Batch) -> Result<()> {
        let before = out.len();
        while out.len() == before && self.step(scan, ctx, &mut Sink::Batch(out))? {}
        Ok(())
    }

    /// Shows every row, wide, without making rows of their own.
    pub fn each(&mut self, scan: &Scan, ctx: &mut EvalContext, take: &mut Take<'_>) -> Result<()> {
        let mut take = |row: &[Value], ctx: &mut EvalContext| take(row, ctx);
        let mut sink = Sink::Each(&mut take);
        while self.step(scan, ctx, &mut sink)? {}
        Ok(())
    }

    /// Is there a row for which these hold?
    pub fn any(&mut self, scan: &Scan, on: &[Expr], ctx: &mut EvalContext) -> Result<bool> {
        let mut found = false;
        let mut sink = Sink::First(on, &mut found);
        while !sink.is_done() && self.step(scan, ctx, &mut sink)? {}
        Ok(found)
    }

    /// Nobody asks for more than that there is an entry: its row need not be read.
    fn is_told_by_entries(&self, scan: &Scan) -> bool {
        let says_all = self.is_exact && scan.implied == scan.conditions.len() && scan.needed_after.is_empty();
        let reads_nothing = scan.needed.is_empty() && scan.access.index.is_some() && scan.lock.is_none();
        scan.key_at.is_none() && (reads_nothing || says_all)
    }

    /// A row of which the entry shows all that is read.
    fn entry(
        &mut self,
        scan: &Scan,
        index: &Index,
        entry: (&[u8], &[u8]),
        ctx: &mut EvalContext,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        self.renew_wide(scan);
        let (read, skipped) = match self.is_exact {
            true => (&scan.needed_after, scan.implied),
            false => (&scan.needed, 0),
        };
        self.show(scan, index, entry, |column| read.contains(&column))?;
        let conditions = self.folded.as_deref().unwrap_or(&scan.conditions);
        if !all_hold(&conditions[skipped..], &self.wide, ctx)? {
            return Ok(());
        }
        self.give(scan, ctx, sink)
    }

    /// Puts what the entry shows of these columns into the wide row.
    fn show(
        &mut self,
        scan: &Scan,
        index: &Index,
        entry: (&[u8], &[u8]),
        is_read: impl Fn(usize) -> bool,
    ) -> Result<()> {
        for shown in scan.shown.iter().filter(|shown| is_read(shown.column)) {
            let place = scan.places.as_ref().map_or(scan.offset + shown.column, |places| places[shown.column]);
            self.wide[place] = shown.value(&scan.table, index, entry)?;
        }
        Ok(())
    }

    /// Do the conditions that the entry decides let its row be wanted?
    fn leads(&mut self, scan: &Scan, index: &Index, entry: (&[u8], &[u8]), ctx: &mut EvalContext) -> Result<bool> {
        if scan.pushed == 0 || scan.lock.is_some() || self.is_shortened {
            return Ok(true);
        }
        self.renew_wide(scan);
        self.show(scan, index, entry, |column| scan.needed.contains(&column))?;
        let conditions = self.folded.as_deref().unwrap_or(&scan.conditions);
        all_hold(&conditions[scan.implied..][..scan.pushed], &self.wide, ctx)
    }

    /// A row of which nothing is read.
    fn bare(&mut self, scan: &Scan, ctx: &mut EvalContext, sink: &mut Sink<'_>) -> Result<()> {
        if let Sink::First([], found) = sink {
            self.given += 1;
            **found = true;
            return Ok(());
        }
        self.renew_wide(scan);
        self.give(scan, ctx, sink)
    }

    /// A batch, a range, or a point further; false at the end.
    fn step(&mut self, scan: &Scan, ctx: &mut EvalContext, sink: &mut Sink<'_>) -> Result<bool> {
        if self.tied.as_ref().is_some_and(|tied| tied.is_giving()) {
            self.give_tied(scan, ctx, sink)?;
            return Ok(true);
        }
        if !self.todo.is_empty() {
            self.take_batch(scan, ctx, sink)?;
            return Ok(true);
        }
        if let Some(cursor) = &mut self.cursor {
            let (txn, batch) = (host(ctx).txn()?, &mut self.memory.batch);
            let more = match &self.pace {
                Some(pace) if pace.locks_range => {
                    cursor.next_locked(txn, batch, pace.step(self.given)).map_err(engine_fault)?
                }
                _ => cursor.next(txn, batch).map_err(engine_fault)?,
            };
            if !more {
                self.cursor = None;
            }
            let (host, count) = (host(ctx), self.memory.batch.len());
            host.look_up()?;
            host.monitor.count(counted_as(scan), count as u64);
            self.todo = 0..count;
            self.pace.iter_mut().for_each(|pace| pace.passed += count as u64);
            self.take_batch(scan, ctx, sink)?;
            return Ok(true);
        }
        let range = self.range.take();
        self.range = self.ranges.pop_front();
        match range {
            None => match &mut self.tied {
                Some(tied) if !tied.is_empty() => tied.sort(ctx)?,
                _ => return self.turn(scan, ctx),
            },
            Some(Range::Point(key)) => {
                debug_assert!(!scan.keeps_order, "QU-29: a point is one row");
                host(ctx).monitor.count(RowAccess::ReadKey, 1);
                self.point(scan, &key, ctx, sink)?;
            }
            Some(Range::Between(from, to)) => self.open_cursor(scan, from, to, ctx)?,
        }
        Ok(true)
    }

    fn open_cursor(
        &mut self,
        scan: &Scan,
        from: Bound<Vec<u8>>,
        to: Bound<Vec<u8>>,
        ctx: &mut EvalContext,
    ) -> Result<()> {
        let first = match (&from, &to) {
            (Bound::Unbounded, _) if !scan.access.backward => RowAccess::ReadFirst,
            (_, Bound::Unbounded) if scan.access.backward => RowAccess::ReadLast,
            _ => RowAccess::ReadKey,
        };
        host(ctx).monitor.count(first, 1);
        let map = map_of(scan, self.index(scan));
        let locks_gaps = host(ctx).isolation >= Isolation::RepeatableRead;
        let txn = host(ctx).txn()?;
        let locks_range = current_lock(scan)
            .is_some_and(|lock| matches!(lock.wait, LockWait::Patient | LockWait::Choosy))
            && locks_gaps;
        if let Some(pace) = &mut self.pace {
            pace.locks_range = locks_range;
        } else if locks_range {
            let low = match &from {
                Bound::Included(key) | Bound::Excluded(key) => &key[..],
                Bound::Unbounded => &[],
            };
            let high = match &to {
                Bound::Included(key) | Bound::Excluded(key) => Some(&key[..]),
                Bound::Unbounded => None,
            };
            txn.lock_range(map, low, high).map_err(engine_fault)?;
        }
        let (from, to) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
        let backward = scan.access.backward;
        let cursor = if current_lock(scan).is_some() {
            txn.scan_current(map, from, to, backward).map_err(engine_fault)?
        } else if self.index(scan).is_some() {
            txn.scan_index(map, from, to, backward, IndexOf { rows: scan.table.map, row_key }).map_err(engine_fault)?
        } else {
            txn.scan(map, from, to, backward).map_err(engine_fault)?
        };
        self.cursor = Some(cursor);
        Ok(())
    }

    /// One entry by its whole key.
    fn point(&mut self, scan: &Scan, key: &[u8], ctx: &mut EvalContext, sink: &mut Sink<'_>) -> Result<()> {
        let Some(index) = self.index(scan) else { return self.row(scan, key, None, ctx, sink) };
        self.memory.bytes.clear();
        let index = &scan.table.indexes[index];
        let map = index.map;
        let txn = host(ctx).txn()?;
        if current_lock(scan).is_none() && txn.has_overwritten_unseen(scan.table.map) {
            // The key may lead to two rows, of which the transaction has written one.
            let of = IndexOf { rows: scan.table.map, row_key };
            self.cursor =
                Some(txn.scan_index(map, Bound::Included(key), Bound::Included(key), false, of).map_err(engine_fault)?);
            return Ok(());
        }
        let mut entry = std::mem::take(&mut self.memory.bytes);
        let present = match current_lock(scan) {
            None => txn.get(map, key, &mut entry).map_err(engine_fault)?,
            Some(lock) => take_lock(txn, map, key, lock, &mut entry)? == Locked::Present,
        };
        if !present && current_lock(scan).is_some() && locks_what_it_takes(ctx) {
            host(ctx).txn()?.unlock_last();
        }
        self.is_shortened = present && is_shortened(&scan.table, index, key, &entry);
        if present && self.is_told_by_entries(scan) {
            self.bare(scan, ctx, sink)?;
        } else if present && self.is_covered && !self.is_shortened {
            self.entry(scan, index, (key, &entry), ctx, sink)?;
        } else if present && self.leads(scan, index, (key, &entry), ctx)? {
            let row_key = row_key(key, &entry).to_vec();
            self.row(scan, &row_key, None, ctx, sink)?;
        }
        self.memory.bytes = entry;
        Ok(())
    }

    fn take_batch(&mut self, scan: &Scan, ctx: &mut EvalContext, sink: &mut Sink<'_>) -> Result<()> {
        let mut batch = std::mem::take(&mut self.memory.batch);
        let long = if current_lock(scan).is_none() { batch.take_long().map(Arc::new) } else { None };
        let (is_told, index) = (self.is_told_by_entries(scan), self.index(scan));
        let mut result = Ok(());
        let enough = self.pace.as_ref().map_or(u64::MAX, |pace| pace.wanted.max(self.given + 1));
        let takes_keys =
            scan.key_at.is_some() || scan.lock.is_some() || self.tied.is_some() || scan.access.may_repeat();
        if index.is_none() && !takes_keys && long.is_none() && !matches!(sink, Sink::Batch(_)) {
            result = self.take_rows(scan, &batch, ctx, sink);
            self.memory.batch = batch;
            return result;
        }
        while self.given < enough
            && let Some(nth) = self.todo.next()
        {
            let (key, mut value) = batch.get(nth);
            let decided;
            if let (Some(at), Some(lock), []) = (index, current_lock(scan), value) {
                match self.decided(scan, (scan.table.indexes[at].map, key), lock, ctx) {
                    Ok(Some(entry)) => decided = entry,
                    Ok(None) => continue,
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
                value = &decided;
            }
            if !self.meet(scan, index, (key, value)) {
                // It comes again, after the rows that are gathered.
                self.todo.start = nth;
                result = self.tied.as_mut().map_or(Ok(()), |tied| tied.sort(ctx));
                break;
            }
            result = match index {
                None => self.row(scan, key, Some(long.as_ref().map_or(value.into(), RowBytes::from)), ctx, sink),
                Some(_) if is_told => self.bare(scan, ctx, sink),
                Some(at) if self.is_covered && !self.is_shortened => {
                    self.entry(scan, &scan.table.indexes[at], (key, value), ctx, sink)
                }
                Some(at) => match self.leads(scan, &scan.table.indexes[at], (key, value), ctx) {
                    Ok(true) => self.locate(scan, &batch, nth, ctx).and_then(|hint| {
                        self.hint = hint;
                        self.row(scan, row_key(key, value), None, ctx, sink)
                    }),
                    other => other.map(drop),
                },
            };
            if result.is_err() || sink.is_done() {
                break;
            }
        }
        self.memory.batch = batch;
        self.memory.hints.clear();
        self.hint = LeafHint::Unknown;
        result
    }

    /// Returns where the row of an entry is, of a scan that wants the row of each entry. It looks for the rows of some entries side by side; of few at first, because the reader may want few.
    fn locate(&mut self, scan: &Scan, batch: &RowBatch, nth: usize, ctx: &mut EvalContext) -> Result<LeafHint> {
        if scan.lock.is_some() || scan.pushed > 0 || self.is_covered || scan.access.may_repeat() {
            return Ok(LeafHint::Unknown);
        }
        if let Some(hint) = nth.checked_sub(self.located).and_then(|at| self.memory.hints.get(at)) {
            return Ok(*hint);
        }
        let passed = usize::try_from(self.given).unwrap_or(LOCATED_MAX).max(nth);
        let end = batch.len().min(nth + passed.min(LOCATED_MAX));
        if end < nth + LOCATED_MIN {
            return Ok(LeafHint::Unknown);
        }
        let row_key_of = |nth: usize| {
            let (key, value) = batch.get(nth);
            row_key(key, value)
        };
        let keys: Vec<&[u8]> = (nth..end).map(row_key_of).collect();
        self.located = nth;
        self.memory.hints.clear();
        host(ctx).txn()?.locate(scan.table.map, &keys, &mut self.memory.hints).map_err(engine_fault)?;
        Ok(self.memory.hints.first().copied().unwrap_or_default())
    }

    /// Does the same with rows of which nothing but their values matters.
    fn take_rows(&mut self, scan: &Scan, batch: &RowBatch, ctx: &mut EvalContext, sink: &mut Sink<'_>) -> Result<()> {
        let stages = self.stages(scan);
        while let Some(nth) = self.todo.next() {
            self.renew_wide(scan);
            if self.holds(scan, batch.get(nth).1.into(), stages, ctx)? {
                self.give(scan, ctx, sink)?;
                if sink.is_done() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns what is read of a row for its conditions and above them, and how many conditions hold already.
    fn stages<'s>(&self, scan: &'s Scan) -> (&'s Stages, usize) {
        match self.is_exact && !self.is_shortened {
            true => (&scan.stages_after, scan.implied + scan.pushed),
            false => (&scan.stages, 0),
        }
    }

    /// Looks at what the row or the entry of an index at hand is stored under. False: rows that are gathered come before it.
    fn meet(&mut self, scan: &Scan, index: Option<usize>, (key, value): (&[u8], &[u8])) -> bool {
        let (form, columns) = match index {
            None => (scan.table.primary_form, key),
            Some(at) => {
                let index = &scan.table.indexes[at];
                self.is_shortened = is_shortened(&scan.table, index, key, value);
                (index.form, &key[..columns_length(key, value)])
            }
        };
        self.tied.as_mut().is_none_or(|tied| tied.meet(form, columns))
    }

    /// The row at hand is to be gathered.
    fn is_tied(&self) -> bool {
        self.tied.as_ref().is_some_and(|tied| tied.takes())
    }

    /// Gives some of the rows that were gathered.
    fn give_tied(&mut self, scan: &Scan, ctx: &mut EvalContext, sink: &mut Sink<'_>) -> Result<()> {
        host(ctx).look_up()?;
        for _ in 0..row_ops::BATCH {
            let Some(wide) = self.tied.as_mut().map(|tied| tied.next()).transpose()?.flatten() else { break };
            self.wide = wide;
            self.give(scan, ctx, sink)?;
            if sink.is_done() {
                break;
            }
        }
        // A row that was given away in parts is no template for others.
        self.wide.clear();
        Ok(())
    }

    /// Returns the value of an entry that another open transaction has put in, removed or given to another row: it is locked until that one is decided, and read then.
    /// None: it is gone, or its row is not wanted.
    fn decided(
        &mut self,
        scan: &Scan,
        (map, key): (MapId, &[u8]),
        lock: Lock,
        ctx: &mut EvalContext,
    ) -> Result<Option<Vec<u8>>> {
        let mut entry = Vec::new();
        let mut locked = None;
        if lock.wait == LockWait::Choosy && locks_what_it_takes(ctx) {
            match host(ctx).txn()?.lock(map, key, lock.strength, Wait::NoWait, &mut entry) {
                Err(engine::Error::LockNotAvailable) => {
                    let present = host(ctx).txn()?.get(map, key, &mut entry).map_err(engine_fault)?;
                    if !present || !self.is_wanted(scan, row_key(key, &entry), ctx)? {
                        return Ok(None);
                    }
                    entry.clear();
                }
                done => locked = Some(done.map_err(engine_fault)?),
            }
        }
        let txn = host(ctx).txn()?;
        let locked = match locked {
            Some(locked) => locked,
            None => take_lock(txn, map, key, lock, &mut entry)?,
        };
        let present = locked == Locked::Present;
        // The lock that stays is the row's.
        txn.unlock_last();
        Ok(present.then_some(entry))
    }

    /// A row by its key; its bytes, if the cursor has them.
    fn row(
        &mut self,
        scan: &Scan,
        key: &[u8],
        known: Option<RowBytes<'_>>,
        ctx: &mut EvalContext,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        if scan.access.may_repeat() && current_lock(scan).is_none() && !self.seen.insert(key, ctx)? {
            return Ok(());
        }
        let known = known.filter(|_| current_lock(scan).is_none());
        let mut bytes = std::mem::take(&mut self.memory.bytes);
        bytes.clear();
        let mut lock = seen_lock(scan);
        if known.is_none() {
            if self.locks_at_once(scan)
                && host(ctx)
                    .txn()?
                    .lock_if_seen(scan.table.map, key, lock_strength(scan), &mut bytes)
                    .map_err(engine_fault)?
            {
                lock = None;
            } else if !self.fetch(scan, key, ctx, &mut bytes)? {
                self.memory.bytes = bytes;
                return Ok(());
            }
        }
        // A long row is not copied: its values are slices of it.
        let long = (bytes.len() > LONG_ROW).then(|| Arc::new(std::mem::take(&mut bytes)));
        let source = known.unwrap_or_else(|| long.as_ref().map_or((&bytes).into(), RowBytes::from));
        let is_long = source.is_shared();
        let (stages, skipped) = self.stages(scan);
        let is_free = skipped == scan.conditions.len();
        if let (Sink::Batch(out), Some(places), true) = (&mut *sink, &scan.output, is_free)
            && self.is_plain
            && !self.is_tied()
            && lock.is_none()
        {
            let result = append(scan, places, source, out);
            self.given += 1;
            self.memory.bytes = bytes;
            return result;
        }
        self.renew_wide(scan);
        if let Some(at) = scan.key_at {
            self.wide[at] = Value::bytes(key);
        }
        let is_wanted = self.holds(scan, source, (stages, skipped), ctx)?;
        let columns = (is_wanted && self.is_tied()).then(|| whole_columns(scan, source)).transpose()?;
        self.memory.bytes = bytes;
        if !is_wanted {
            if current_lock(scan).is_some() && locks_what_it_takes(ctx) {
                host(ctx).txn()?.unlock_last();
            }
            if is_long {
                // Its values are not to be held while the next row is read.
                scan.needed.iter().filter_map(|at| scan.place(*at)).for_each(|at| self.wide[at] = Value::Null);
            }
            return Ok(());
        }
        if let Some(lock) = lock
            && !self.take_seen(scan, key, lock, ctx)?
        {
            return Ok(());
        }
        match (columns, &mut self.tied) {
            (Some(columns), Some(tied)) => tied.push(&columns, &self.wide, ctx),
            _ => self.give(scan, ctx, sink),
        }
    }

    /// Returns whether a row is wanted for sure, so that it may be locked before it is read as the snapshot has it.
    fn locks_at_once(&self, scan: &Scan) -> bool {
        let is_sure = scan.access.is_point && scan.access.index.is_none() && !scan.access.may_repeat();
        is_sure && scan.implied == scan.conditions.len() && seen_lock(scan).is_some()
    }

    /// Locks a row that the snapshot sees and that satisfies the conditions. Returns false if it is gone or skipped, or a newer version does not satisfy them.
    fn take_seen(&mut self, scan: &Scan, key: &[u8], lock: Lock, ctx: &mut EvalContext) -> Result<bool> {
        let mut bytes = Vec::new();
        match lock_seen(&scan.table, key, lock, &mut bytes, ctx)? {
            LockedRow::Same => Ok(true),
            LockedRow::Newer(moved) => {
                if let Some(at) = scan.key_at {
                    self.wide[at] = Value::bytes(moved.as_deref().unwrap_or(key));
                }
                fill_in(scan, RowBytes::from(&bytes), &scan.needed, &mut self.wide, ctx)?;
                let conditions = self.folded.as_deref().unwrap_or(&scan.conditions);
                all_hold(conditions, &self.wide, ctx)
            }
            LockedRow::Gone | LockedRow::Skipped => Ok(false),
        }
    }

    /// Reads the row's columns, and looks at the conditions behind the `skipped` ones, as far as they hold.
    fn holds(
        &mut self,
        scan: &Scan,
        row: RowBytes<'_>,
        (stages, skipped): (&Stages, usize),
        ctx: &mut EvalContext,
    ) -> Result<bool> {
        let conditions = &self.folded.as_deref().unwrap_or(&scan.conditions)[skipped..];
        let wide = &mut self.wide;
        if scan.table.computes {
            // Computed columns are read at once, with those that they are computed from.
            let needed = if skipped == 0 { &scan.needed } else { &scan.needed_after };
            fill_in(scan, row, needed, wide, ctx)?;
            return all_hold(conditions, wide, ctx);
        }
        // The head of a row is read once for all columns.
        let row = scan.table.layout.open(row)?;
        for (columns, condition) in stages.before.iter().zip(conditions) {
            read(scan, &row, columns, wide)?;
            if !condition.holds(wide, ctx)? {
                return Ok(false);
            }
        }
        read(scan, &row, &stages.rest, wide)?;
        Ok(true)
    }

    /// The row's bytes as the statement has to see them; false: there is none for it.
    fn fetch(&mut self, scan: &Scan, key: &[u8], ctx: &mut EvalContext, bytes: &mut Vec<u8>) -> Result<bool> {
        let txn = host(ctx).txn()?;
        let Some(lock) = current_lock(scan) else {
            return txn.get_located(scan.table.map, key, self.hint, bytes).map_err(engine_fault);
        };
        let meets_once = scan.access.index.is_none() && !scan.access.may_repeat();
        let is_new = meets_once || self.seen.insert(key, ctx)?;
        if !is_new {
            return Ok(false);
        }
        let mut locked = None;
        if lock.wait == LockWait::Choosy && locks_what_it_takes(ctx) {
            match host(ctx).txn()?.lock(scan.table.map, key, lock.strength, Wait::NoWait, bytes) {
                Err(engine::Error::LockNotAvailable) if !self.is_wanted(scan, key, ctx)? => return Ok(false),
                Err(engine::Error::LockNotAvailable) => bytes.clear(),
                done => locked = Some(done.map_err(engine_fault)?),
            }
        }
        let locked = match locked {
            Some(locked) => locked,
            None => take_lock(host(ctx).txn()?, scan.table.map, key, lock, bytes)?,
        };
        let present = locked == Locked::Present;
        if !present && locks_what_it_takes(ctx) {
            // That there is no row need not stay so.
            host(ctx).txn()?.unlock_last();
        }
        Ok(present)
    }

    /// Does the row's newest committed version satisfy the conditions?
    fn is_wanted(&mut self, scan: &Scan, key: &[u8], ctx: &mut EvalContext) -> Result<bool> {
        let mut bytes = Vec::new();
        if !host(ctx).txn()?.get(scan.table.map, key, &mut bytes).map_err(engine_fault)? {
            return Ok(false);
        }
        self.renew_wide(scan);
        fill_in(scan, RowBytes::from(&bytes), &scan.needed, &mut self.wide, ctx)?;
        all_hold(&scan.conditions, &self.wide, ctx)
    }

    fn renew_wide(&mut self, scan: &Scan) {
        if self.wide.is_empty() {
            self.wide = row_ops::template(self.base.as_ref(), scan.width);
        }
    }

    /// The wide row goes where rows go.
    fn give(&mut self, scan: &Scan, ctx: &mut EvalContext, sink: &mut Sink<'_>) -> Result<()> {
        self.given += 1;
        match (sink, &scan.output) {
            (Sink::Each(take), _) => take(&self.wide, ctx)?,
            (Sink::First(on, found), _) => **found = all_hold(on, &self.wide, ctx)?,
            (Sink::Batch(out), places) => {
                places.iter().flatten().for_each(|at| out.push(std::mem::take(&mut self.wide[*at])));
                out.end_row();
            }
            (Sink::Rows(out), Some(places)) => {
                out.push(places.iter().map(|at| std::mem::take(&mut self.wide[*at])).collect());
            }
            (Sink::Rows(out), None) => out.push(std::mem::take(&mut self.wide)),
        }
        Ok(())
    }
}

/// Puts some columns of the row into the wide one.
#[inline]
fn read(scan: &Scan, row: &RowView<'_>, columns: &[StoredColumn], wide: &mut [Value]) -> Result<()> {
    for stored in columns {
        let out = &mut wide[stored.to];
        if !row.read(&stored.from, out)? {
            *out = scan.table.columns[stored.column].initial.clone();
        }
    }
    Ok(())
}

/// The columns of the row into the wide one.
fn fill_in(scan: &Scan, row: RowBytes<'_>, needed: &[usize], wide: &mut Row, ctx: &mut EvalContext) -> Result<()> {
    let Some(places) = &scan.places else {
        return generated::decode(&scan.table, row, needed, &mut wide[scan.offset..], ctx);
    };
    let row = scan.table.layout.open(row)?;
    for at in needed {
        put(&scan.table, &row, *at, &mut wide[places[*at]])?;
    }
    Ok(())
}

fn lock_strength(scan: &Scan) -> Strength {
    scan.lock.map_or(Strength::Shared, |lock| lock.strength)
}

/// At this isolation level only rows that are taken stay locked.
fn locks_what_it_takes(ctx: &mut EvalContext) -> bool {
    host(ctx).isolation <= Isolation::ReadCommitted
}

fn take_lock(txn: &mut Transaction, map: MapId, key: &[u8], lock: Lock, out: &mut Vec<u8>) -> Result<Locked> {
    Ok(match lock.wait {
        LockWait::Patient | LockWait::Choosy => {
            txn.lock_patiently(map, key, lock.strength, out).map_err(engine_fault)?
        }
        LockWait::NoWait => txn.lock(map, key, lock.strength, Wait::NoWait, out).map_err(engine_fault)?,
        LockWait::SkipLocked => txn.lock(map, key, lock.strength, Wait::SkipLocked, out).map_err(engine_fault)?,
    })
}

/// Are the places that the scan puts out columns that its rows hold?
fn is_plain(scan: &Scan) -> bool {
    let columns = &scan.table.columns;
    let is_held =
        |place: &usize| columns.get(place.wrapping_sub(scan.offset)).is_some_and(|column| !column.is_computed());
    scan.key_at.is_none() && scan.output.iter().flatten().all(is_held)
}

/// Puts out some columns of a row, which is that of the only table there is.
fn append(scan: &Scan, places: &[usize], row: RowBytes<'_>, out: &mut Batch) -> Result<()> {
    let layout = &scan.table.layout;
    let row = layout.open(row)?;
    for place in places {
        let column = &scan.table.columns[*place - scan.offset];
        layout.append(&row, column.slot, (column.ty.storage, &column.initial), out)?;
    }
    out.end_row();
    Ok(())
}
