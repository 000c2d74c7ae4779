//! A transaction from its beginning to its end.
//!
//! ```text
//!   begin     nothing
//!   reads     a snapshot, registered
//!   changes   an id and a slot; each change a log record with what was there before; room put aside for taking it back (E11)
//!   commit    COMMITTING | COMMIT in the log | its end is the number          visible at once, to be acknowledged when durable
//!   rollback  oldest images put back | ABORT | ABORTED
//! ```
//! Between the last image put back and ABORTED others still take the rows for locked, so nobody sees a half (M6).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pager::{Aside, Lsn, TxnId};
use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::rows::lock::Strength;
use crate::rows::maps::Map;
use crate::rows::purge::Ended;
use crate::rows::slot::{Patience, Waited};
use crate::rows::snapshot::Seat;
use crate::rows::{Isolation, Locked, MapId, Rows, Wait};
use crate::txn::{Debt, Images, MAPS, QUEUE, encode_deltas, kind, owed};

/// MySQL's own default.
const LOCK_WAIT: Duration = Duration::from_secs(50);

/// Says whether a wait for a lock has to end: see `Transaction::set_cancel`.
pub type Cancel = Arc<dyn Fn() -> bool + Send + Sync>;

/// A point to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(usize);

/// A change that can be taken back.
pub(crate) struct Step {
    pub map: MapId,
    pub key: Box<[u8]>,
    /// The record as it was before, head and all.
    pub before: Option<Box<[u8]>>,
}

/// What a transaction has from its first change or lock on.
pub(crate) struct Writer {
    pub id: TxnId,
    pub aside: Aside,
    pub debt: Debt,
    pub steps: Vec<Step>,
    /// The log holds records of this transaction, so that it must say how it ended, also if all of them were taken back.
    pub has_records: bool,
    /// The first step of each record.
    pub first: HashMap<(MapId, Box<[u8]>), usize>,
    pub row_locks: Vec<(Arc<Map>, Box<[u8]>)>,
    pub range_locks: Vec<Arc<Map>>,
    /// Rows that it has deleted, some of them perhaps put in again.
    pub ghosts: Vec<(MapId, Box<[u8]>)>,
    /// It has put long values into the purge queue, or taken some out of it.
    pub has_values: bool,
    pub made: Vec<MapId>,
    pub dropped: Vec<MapId>,
}

/// A transaction. Dropped before its end, it is rolled back.
pub struct Transaction {
    pub(crate) rows: Arc<Rows>,
    isolation: Isolation,
    seat: Option<Seat>,
    /// What plain reads see; None: not taken yet.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) writer: Option<Writer>,
    pub(crate) gate: Lsn,
    lock_wait: Duration,
    cancel: Option<Cancel>,
    /// The last `lock` took a lock that the transaction did not have.
    locked_anew: bool,
    /// For the record that is looked at; it keeps its memory.
    pub(crate) record: Vec<u8>,
    /// It cannot be committed: why.
    doomed: Option<fn() -> Error>,
}

/// What may be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub lsn: Lsn,
    /// Ids below are decided, and were before `lsn`.
    pub low: TxnId,
}

impl Transaction {
    pub(crate) fn new(rows: Arc<Rows>, isolation: Isolation) -> Transaction {
        Transaction {
            rows,
            isolation,
            seat: None,
            snapshot: None,
            writer: None,
            gate: 0,
            lock_wait: LOCK_WAIT,
            cancel: None,
            locked_anew: false,
            record: Vec::new(),
            doomed: None,
        }
    }

    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// A statement begins: under READ COMMITTED it sees what is committed by now.
    pub fn begin_statement(&mut self) {
        if self.isolation <= Isolation::ReadCommitted && self.snapshot.take().is_some() {
            // Nobody need keep old versions for a transaction that thinks.
            self.seat.iter().for_each(|seat| self.rows.snapshots.release(seat));
        }
    }

    /// Takes the snapshot now, as START TRANSACTION WITH CONSISTENT SNAPSHOT does.
    pub fn take_snapshot(&mut self) {
        self.seen();
    }

    pub fn set_lock_wait(&mut self, wait: Duration) {
        self.lock_wait = wait;
    }

    /// A wait for a lock ends with `Error::Cancelled` if `cancel` says so when it begins or when `Rows::rouse_waiters` is called.
    pub fn set_cancel(&mut self, cancel: Cancel) {
        self.cancel = Some(cancel);
    }

    /// Whoever is shown what the transaction has read must not be shown it before the log is durable up to here.
    pub fn gate(&self) -> Lsn {
        self.gate
    }

    /// True if it has changed something.
    pub fn has_changes(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| !writer.steps.is_empty())
    }

    /// The snapshot of plain reads, taken at the first of them.
    pub(crate) fn seen(&mut self) -> Snapshot {
        if let Some(snapshot) = self.snapshot {
            return snapshot;
        }
        let rows = &self.rows;
        let seat = self.seat.get_or_insert_with(|| rows.snapshots.enter());
        let low = rows.slots.low();
        let lsn = rows.snapshots.take(seat, || rows.head());
        *self.snapshot.insert(Snapshot { lsn, low })
    }

    pub(crate) fn id(&self) -> Option<TxnId> {
        self.writer.as_ref().map(|writer| writer.id)
    }

    pub(crate) fn alive(&self) -> Result<()> {
        self.doomed.map_or(Ok(()), |why| Err(why()))
    }

    /// The id and all that belongs to it, from the first change or lock on.
    pub(crate) fn writer(&mut self) -> Result<&mut Writer> {
        self.alive()?;
        let rows = &self.rows;
        Ok(self.writer.get_or_insert_with(|| {
            // An older answer keeps more than need be.
            let keep = rows.kept.load(Ordering::Relaxed);
            let id = rows.slots.begin(|| rows.store.new_id(), keep);
            rows.store.enlist(id);
            Writer {
                id,
                aside: rows.store.pager.aside(),
                debt: Debt::default(),
                steps: Vec::new(),
                has_records: false,
                first: HashMap::new(),
                row_locks: Vec::new(),
                range_locks: Vec::new(),
                ghosts: Vec::new(),
                has_values: false,
                made: Vec::new(),
                dropped: Vec::new(),
            }
        }))
    }

    /// Waits for the end of `holder`, which was found in the way after `Slots::releases` said `releases`. A deadlock ends this transaction.
    pub(crate) fn wait_for(&mut self, holder: TxnId, wait: Wait, releases: u64) -> Result<()> {
        let wait = match wait {
            Wait::For(wait) => wait,
            Wait::NoWait | Wait::SkipLocked => return Err(Error::LockNotAvailable),
        };
        let me = self.writer()?.id;
        let is_cancelled = || self.cancel.as_ref().is_some_and(|cancel| cancel());
        let patience = Patience { until: Instant::now() + wait, is_cancelled: &is_cancelled, releases };
        match self.rows.slots.wait(me, holder, &patience) {
            Waited::Over => Ok(()),
            Waited::Cancelled => Err(Error::Cancelled),
            Waited::TimedOut => Err(Error::LockTimeout),
            Waited::Deadlock => {
                self.roll_back();
                self.doomed = Some(|| Error::Deadlock);
                Err(Error::Deadlock)
            }
        }
    }

    pub(crate) fn patience(&self) -> Wait {
        Wait::For(self.lock_wait)
    }

    /// Locks a row until the end of the transaction and appends its newest committed value, or the transaction's own, to `out`. An absent row is locked too: nobody else can
    /// put it in.
    pub fn lock(
        &mut self,
        map: MapId,
        key: &[u8],
        strength: Strength,
        wait: Wait,
        out: &mut Vec<u8>,
    ) -> Result<Locked> {
        let map = self.rows.map(map)?;
        loop {
            let releases = self.rows.slots.releases();
            match self.try_lock(&map, key, strength, out)? {
                Ok(locked) => return Ok(locked),
                Err(_) if wait == Wait::SkipLocked => return Ok(Locked::Skipped),
                Err(holder) => self.wait_for(holder, wait, releases)?,
            }
        }
    }

    /// Gives back the lock of the last `lock`, unless the transaction had it before: the row turned out not to be wanted, and the isolation level does not ask
    /// that it stays as it is.
    pub fn unlock_last(&mut self) {
        if !std::mem::take(&mut self.locked_anew) {
            return;
        }
        let Some(writer) = &mut self.writer else { return };
        if let Some((map, key)) = writer.row_locks.pop() {
            self.rows.locks.drop_row(&map, &key, writer.id);
            self.rows.slots.released(writer.id);
        }
    }

    /// The same with the wait that `set_lock_wait` has set.
    pub fn lock_patiently(&mut self, map: MapId, key: &[u8], strength: Strength, out: &mut Vec<u8>) -> Result<Locked> {
        self.lock(map, key, strength, self.patience(), out)
    }

    /// The inner Err names who is in the way.
    fn try_lock(
        &mut self,
        map: &Arc<Map>,
        key: &[u8],
        strength: Strength,
        out: &mut Vec<u8>,
    ) -> Result<Result<Locked, TxnId>> {
        let rows = self.rows.clone();
        let writer = self.writer()?;
        let is_new = match rows.locks.take(map, key, writer.id, strength, |id| rows.slots.is_open(id)) {
            Ok(is_new) => is_new,
            Err(holder) => return Ok(Err(holder)),
        };
        if is_new {
            writer.row_locks.push((map.clone(), key.into()));
        }
        self.locked_anew = is_new;
        match self.newest(map, key, out)? {
            Ok(true) => Ok(Ok(Locked::Present)),
            Ok(false) => Ok(Ok(Locked::Absent)),
            Err(holder) => {
                self.locked_anew = false;
                if is_new && let Some((map, key)) = self.writer()?.row_locks.pop() {
                    let me = self.writer()?.id;
                    rows.locks.drop_row(&map, &key, me);
                }
                Ok(Err(holder))
            }
        }
    }

    /// Until the end of the transaction nobody else puts a new row into the range. What others have put in and not committed is met by whoever reads the range
    /// afterwards with `lock`.
    pub fn lock_range(&mut self, map: MapId, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let map = self.rows.map(map)?;
        let rows = self.rows.clone();
        let writer = self.writer()?;
        rows.locks.take_range(&map, from, to, writer.id);
        writer.range_locks.push(map);
        Ok(())
    }

    /// A point to come back to, before the next change.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.writer.as_ref().map_or(0, |writer| writer.steps.len()))
    }

    /// Takes back every change since `savepoint`. Locks stay. An error means that the whole transaction has been rolled back.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.alive()?;
        while self.savepoint() > savepoint {
            if let Err(error) = self.take_back_last() {
                self.roll_back();
                self.doomed = Some(|| Error::Misuse("the transaction has been rolled back"));
                return Err(error);
            }
        }
        Ok(())
    }

    fn take_back_last(&mut self) -> Result<()> {
        let rows = self.rows.clone();
        let _spending = rows.store.pager.spend();
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let Some(Step { map: id, key, before }) = writer.steps.pop() else { return Ok(()) };
        if id == MAPS {
            return Err(Error::Misuse("making or dropping a map cannot be taken back alone"));
        }
        let tree = rows.store.tree(id).ok_or(Error::Misuse("a map that does not exist"))?;
        let map = rows.store.maps.get(id);
        if let Some(map) = &map {
            rows.hold(writer, map, &key);
        }
        let (mut then, mut now) = (0, 0);
        tree.modify(&key, Some(writer.id), |old, change| {
            then = old.map_or(0, |old| old.value.len());
            match &before {
                Some(before) => change.put(&[before]),
                None => change.delete(),
            }
            now = change.len_after(then);
        })?;
        if writer.forget(id, &key, before.as_deref(), then, now) && map.is_some() {
            rows.versions.remove(id, &key, writer.id);
        }
        writer.aside.log(writer.debt.log_bytes);
        Ok(())
    }

    /// Makes the changes count. They are seen from here on; the LSN returned is the gate of whoever is told so.
    pub fn commit(mut self) -> Result<Lsn> {
        self.alive()?;
        let Some(writer) = self.writer.take() else {
            self.leave();
            return Ok(0);
        };
        let rows = self.rows.clone();
        let mut lsn = 0;
        if !writer.has_records {
            rows.slots.aborted(writer.id);
        } else {
            if writer.has_values {
                rows.store.held.lock().insert(writer.id);
            }
            let mut body = Vec::new();
            encode_deltas(&[], &mut body);
            rows.slots.committing(writer.id);
            lsn = rows.store.logical(kind::COMMIT, Some(writer.id), &body);
            rows.slots.committed(writer.id, lsn);
            rows.store.metrics.txn_commits.add(1);
        }
        rows.store.delist(writer.id);
        writer.dropped.iter().for_each(|map| rows.store.maps.forget(*map));
        rows.sweep_locks(&writer);
        self.leave();
        if lsn > 0 {
            let keys = writer.first.into_keys().filter(|(map, _)| !matches!(*map, MAPS | QUEUE)).collect();
            let (ghosts, holds_values) = (writer.ghosts, writer.has_values);
            rows.end(Ended { id: writer.id, lsn, keys, ghosts, holds_values });
        }
        Ok(lsn)
    }

    /// Takes everything back.
    pub fn rollback(mut self) {
        self.roll_back();
    }

    fn roll_back(&mut self) {
        self.leave();
        let Some(mut writer) = self.writer.take() else { return };
        let rows = &self.rows;
        if writer.has_records {
            let touched: Vec<(MapId, Box<[u8]>)> = writer.first.keys().cloned().collect();
            for (map, key) in touched {
                if let Some(map) = rows.store.maps.get(map) {
                    rows.hold(&mut writer, &map, &key);
                }
            }
            let images = images(&writer.steps);
            loop {
                match rows.store.undo(writer.id, &images) {
                    Ok(_) => break,
                    Err(Error::DiskFull) if rows.store.is_threaded => rows.store.wait_for_disk(),
                    // The changes stand in pages that can no longer be reached. Recovery can put it right, going on cannot.
                    Err(error) => rows.store.fail(&error),
                }
            }
            for (map, key) in writer.first.keys() {
                rows.versions.remove(*map, key, writer.id);
            }
        }
        rows.slots.aborted(writer.id);
        rows.store.delist(writer.id);
        writer.made.iter().for_each(|map| rows.store.maps.forget(*map));
        rows.sweep_locks(&writer);
        if writer.has_values || !writer.made.is_empty() {
            // They are garbage now.
            (rows.wake)();
        }
    }

    /// Reads are over.
    fn leave(&mut self) {
        self.snapshot = None;
        if let Some(seat) = self.seat.take() {
            self.rows.snapshots.leave(seat);
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.roll_back();
    }
}

impl Rows {
    fn sweep_locks(&self, writer: &Writer) {
        writer.row_locks.iter().for_each(|(map, key)| self.locks.drop_row(map, key, writer.id));
        writer.range_locks.iter().for_each(|map| self.locks.drop_ranges(map, writer.id));
    }
}

/// The oldest image of each record.
fn images(steps: &[Step]) -> Images {
    let mut images = Images::new();
    for step in steps {
        let before = || step.before.as_ref().map(|before| before.to_vec());
        images.entry((step.map, step.key.to_vec())).or_insert_with(before);
    }
    images
}

impl Writer {
    /// A record is about to change: remembers how it was. `now` bytes will stand there. Returns false if this transaction has written it before.
    pub fn remember(&mut self, map: MapId, key: &[u8], before: Option<&[u8]>, old_len: usize, now: usize) -> bool {
        let at = (map, key.into());
        let first = self.first.get(&at).copied();
        let image = match first {
            Some(first) => self.steps[first].before.as_deref(),
            None => before,
        };
        let debt_before = if first.is_some() { owed(image, key, old_len) } else { Debt::default() };
        let debt_now = owed(image, key, now);
        self.debt.replace(debt_before, debt_now);
        if first.is_none() {
            self.first.insert(at, self.steps.len());
        }
        self.has_records = true;
        self.steps.push(Step { map, key: key.into(), before: before.map(Into::into) });
        first.is_none()
    }

    /// The last step has been taken back: `then` bytes stood there before that, `now` do now. True if nothing of this transaction is left in the record.
    fn forget(&mut self, map: MapId, key: &[u8], before: Option<&[u8]>, then: usize, now: usize) -> bool {
        let at = (map, key.into());
        let first = self.first[&at];
        let is_first = first == self.steps.len();
        let image = if is_first { before } else { self.steps[first].before.as_deref() };
        let (debt_before, debt_now) = (owed(image, key, then), owed(image, key, now));
        self.debt.replace(debt_before, if is_first { Debt::default() } else { debt_now });
        if is_first {
            self.first.remove(&at);
        }
        is_first
    }
}
