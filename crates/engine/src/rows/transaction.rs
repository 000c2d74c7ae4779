//! A transaction from its beginning to its end.
//!
//! ```text
//!   begin     nothing
//!   reads     a snapshot, registered
//!   changes   an id and a slot; each change a log record with what was there before; room put aside for taking it back (EN-11)
//!   commit    COMMITTING | COMMIT in the log | its end is the number          visible at once, to be acknowledged when durable
//!   rollback  oldest images put back, stretch by stretch of the steps (`undo`) | ABORT | ABORTED
//! ```
//! Between the last image put back and ABORTED others still take the rows for locked, so nobody sees a half (EN-18).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use pager::{Lsn, TxnId, UndoReserve};
use stdx::sync::atomic::Ordering;
use stdx::sync::thread;

use crate::error::{Error, Result};
use crate::keyspace::cross_door_commit::CrossDoorCommit;
use crate::rows::activity::Activity;
use crate::rows::key_changes::KeyChanges;
use crate::rows::lock_queue::{LockAttempt, SuspendedWait};
use crate::rows::lock_table::{Acquired, Requester, Strength};
use crate::rows::purge_list::CommittedTxn;
use crate::rows::request::{Isolation, Wait};
use crate::rows::run::UndoStep;
use crate::rows::snapshot::SnapshotRegistration;
use crate::rows::state::Rows;
use crate::rows::status_table::WaitOutcome;
use crate::rows::undo::{UndoBudget, UndoLog, pieces, stretches};
use crate::rows::visibility::Snapshot;
use crate::rows::wait_mode::WaitMode;
use crate::store::images::Images;
use crate::store::maps::RowMap;
use crate::store::trees::{MAPS, MapId};
use crate::store::wal::encode_deltas;
use crate::store::wal::kind;
use crate::txn::undo_cost::{UndoCost, undo_cost};

/// Hears how many of how many changes have been taken back, every thousand or so.
pub type Tell<'t> = dyn FnMut(u64, u64) + 't;

/// MySQL's own default.
const LOCK_WAIT: Duration = Duration::from_secs(50);

/// Says whether a wait for a lock has to end: see `Transaction::set_cancel`.
pub type Cancel = Arc<dyn Fn() -> bool + Send + Sync>;

/// A point to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint {
    steps: usize,
    keys: usize,
}

/// What a transaction has from its first change or lock on.
pub(crate) struct Writer {
    pub id: TxnId,
    pub aside: UndoReserve,
    pub debt: UndoCost,
    pub undo: UndoLog,
    /// The log holds records of this transaction, so that it must say how it ended, also if all of them were taken back.
    pub has_records: bool,
    /// Rows were put into maps of its own without steps: only the whole can be taken back.
    pub loaded: bool,
    pub row_locks: Vec<(Arc<RowMap>, Box<[u8]>)>,
    /// OpenMaps of which it has locks without keys.
    pub many_locks: Vec<Arc<RowMap>>,
    pub range_locks: Vec<Arc<RowMap>>,
    /// It has put long values into the purge queue, or taken some out of it.
    pub has_values: bool,
    /// OpenMaps in which it has written a row over a version that its snapshot did not see (EN-26).
    pub unseen: HashSet<MapId>,
    pub made: Vec<MapId>,
    pub dropped: Vec<MapId>,
    pub keys: KeyChanges,
}

/// A transaction. Dropped before its end, it is rolled back.
pub struct Transaction {
    pub(crate) rows: Arc<Rows>,
    isolation: Isolation,
    registration: Option<SnapshotRegistration>,
    /// What plain reads see; None: not taken yet.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) writer: Option<Writer>,
    pub(crate) gate: Lsn,
    lock_wait: Duration,
    cancel: Option<Cancel>,
    activity: Option<Arc<Activity>>,
    /// The last lock that `lock` or `lock_key` took and that the transaction did not have.
    pub(crate) locked_anew: Option<(Arc<RowMap>, Box<[u8]>, Acquired)>,
    /// For the record that is looked at; it keeps its memory.
    pub(crate) record: Vec<u8>,
    /// It cannot be committed: why.
    doomed: Option<fn() -> Error>,
    pub(crate) near: WaitMode,
    /// The wait for which its statement is suspended.
    pub(crate) suspended: Option<SuspendedWait>,
}

impl Rows {
    /// Begins a transaction. Nothing is written, and no snapshot taken, before it is needed.
    pub fn begin(self: &Arc<Rows>, isolation: Isolation) -> Transaction {
        Transaction::new(self.clone(), isolation)
    }
}

impl Transaction {
    pub(crate) fn new(rows: Arc<Rows>, isolation: Isolation) -> Transaction {
        Transaction {
            rows,
            isolation,
            registration: None,
            snapshot: None,
            writer: None,
            gate: 0,
            lock_wait: LOCK_WAIT,
            cancel: None,
            activity: None,
            locked_anew: None,
            record: Vec::new(),
            doomed: None,
            near: WaitMode::default(),
            suspended: None,
        }
    }

    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// A statement begins: under READ COMMITTED it sees what is committed by now.
    pub fn begin_statement(&mut self) {
        if self.isolation <= Isolation::ReadCommitted && self.snapshot.take().is_some() {
            // Nobody need keep old versions for a transaction that thinks.
            self.registration.iter().for_each(|registration| self.rows.snapshots.release(registration));
        }
    }

    /// Takes the snapshot now, as START TRANSACTION WITH CONSISTENT SNAPSHOT does.
    pub fn take_snapshot(&mut self) {
        self.seen();
    }

    pub fn set_lock_wait(&mut self, wait: Duration) {
        self.lock_wait = wait;
    }

    /// A wait for a lock ends with `Error::Cancelled` if `cancel` says so when it begins or when `Rows::wake_waiters` is called.
    pub fn set_cancel(&mut self, cancel: Cancel) {
        self.cancel = Some(cancel);
    }

    /// Where others are to see what becomes of it.
    pub fn set_activity(&mut self, activity: Arc<Activity>) {
        activity.set_id(self.id().unwrap_or(0));
        self.activity = Some(activity);
    }

    /// Whoever is shown what the transaction has read must not be shown it before the log is durable up to here.
    pub fn gate(&self) -> Lsn {
        self.gate
    }

    /// The snapshot of plain reads, taken at the first of them.
    pub(crate) fn seen(&mut self) -> Snapshot {
        if let Some(snapshot) = self.snapshot {
            return snapshot;
        }
        let rows = &self.rows;
        let registration = self.registration.get_or_insert_with(|| rows.snapshots.enter());
        let low = rows.statuses.low();
        let lsn = rows.snapshots.take(registration, || rows.head());
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
            let id = rows.statuses.begin(|| rows.store.new_id(), keep);
            rows.store.enlist(id);
            self.activity.iter().for_each(|activity| activity.set_id(id));
            Writer {
                id,
                aside: rows.store.pager.undo_reserve(),
                debt: UndoCost::default(),
                undo: UndoLog::default(),
                has_records: false,
                loaded: false,
                row_locks: Vec::new(),
                many_locks: Vec::new(),
                range_locks: Vec::new(),
                has_values: false,
                unseen: HashSet::new(),
                made: Vec::new(),
                dropped: Vec::new(),
                keys: KeyChanges::default(),
            }
        }))
    }

    /// Waits for the end of `holder`, which was found in the way after `StatusTable::releases` said `releases`. A deadlock ends this transaction.
    /// Waits for the row of `turn`, which `holder` has, to be tried again. `releases`: what `StatusTable::releases` was before it was tried.
    pub(crate) fn wait_for(
        &mut self,
        turn: &mut LockAttempt<'_>,
        holder: TxnId,
        wait: Wait,
        releases: u64,
    ) -> Result<()> {
        let wait = match wait {
            Wait::For(wait) => wait,
            Wait::NoWait | Wait::SkipLocked => return Err(Error::LockNotAvailable),
        };
        let me = self.writer()?.id;
        let is_cancelled = || self.cancel.as_ref().is_some_and(|cancel| cancel());
        self.activity.iter().for_each(|activity| activity.set_awaited(Some(turn.awaited())));
        if self.near.may_suspend(turn.is_resumed()) {
            match turn.suspend(me, holder, wait, &is_cancelled, releases) {
                Ok(suspended) => {
                    self.suspended = Some(suspended);
                    return Err(Error::WouldBlock);
                }
                Err(waited) => return self.end_wait(waited),
            }
        }
        let waited = turn.wait(me, holder, wait, &is_cancelled, releases);
        self.end_wait(waited)
    }

    fn end_wait(&mut self, waited: WaitOutcome) -> Result<()> {
        self.activity.iter().for_each(|activity| activity.set_awaited(None));
        match waited {
            WaitOutcome::Over => Ok(()),
            WaitOutcome::Cancelled => Err(Error::Cancelled),
            WaitOutcome::TimedOut | WaitOutcome::Refused => Err(Error::LockTimeout),
            WaitOutcome::Deadlock => {
                self.roll_back();
                self.doomed = Some(|| Error::Deadlock);
                Err(Error::Deadlock)
            }
        }
    }

    /// The turn for a row, with the place that the suspended statement has in its line.
    pub(crate) fn turn<'r>(
        &mut self,
        rows: &'r Rows,
        map: MapId,
        key: &'r [u8],
        strength: Strength,
    ) -> LockAttempt<'r> {
        let mut turn = LockAttempt::new(&rows.lock_queues, &rows.statuses, map, key, strength);
        if self.suspended.as_ref().is_some_and(|suspended| suspended.is_for(map, key)) {
            self.activity.iter().for_each(|activity| activity.set_awaited(None));
            turn.adopt(self.suspended.take().expect("looked at above"));
        }
        turn
    }

    pub(crate) fn drop_suspended(&mut self) {
        if self.suspended.take().is_some() {
            self.activity.iter().for_each(|activity| activity.set_awaited(None));
        }
    }

    pub(crate) fn patience(&self) -> Wait {
        Wait::For(self.lock_wait)
    }

    /// A point to come back to, before the next change.
    pub fn savepoint(&self) -> Savepoint {
        let counts = |writer: &Writer| Savepoint { steps: writer.undo.len(), keys: writer.keys.count() };
        self.writer.as_ref().map_or(Savepoint { steps: 0, keys: 0 }, counts)
    }

    /// Takes back every change since `savepoint`. LockTable stay. An error means that the whole transaction has been rolled back.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.rollback_to_with_progress(savepoint, &mut |_, _| ())
    }

    /// The same, telling how many of how many changes have been taken back.
    pub fn rollback_to_with_progress(&mut self, savepoint: Savepoint, tell: &mut Tell<'_>) -> Result<()> {
        self.alive()?;
        if self.writer.as_ref().is_some_and(|writer| writer.loaded) {
            self.roll_back();
            self.doomed = Some(|| Error::Misuse("the transaction has been rolled back"));
            return Err(Error::Misuse("what was loaded cannot be taken back alone"));
        }
        if let Some(writer) = &mut self.writer {
            writer.keys.take_back_to(savepoint.keys);
        }
        let steps = self.savepoint().steps;
        while self.savepoint().steps > savepoint.steps {
            let done = steps - self.savepoint().steps;
            if done.is_multiple_of(1024) && done > 0 {
                tell(done as u64, (steps - savepoint.steps) as u64);
            }
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
        let _undoing = rows.store.pager.enter_undo();
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.undo.bring_back(writer.id, &rows.budget, &rows.versions)?;
        let Some((UndoStep { map: id, key, before, is_version, .. }, is_first)) = writer.undo.pop(&rows.budget) else {
            return Ok(());
        };
        if id == MAPS {
            return Err(Error::Misuse("making or dropping a map cannot be taken back alone"));
        }
        let tree = rows.store.tree(id).ok_or(Error::Misuse("a map that does not exist"))?;
        let map = rows.store.maps.get(id);
        if let Some(map) = &map {
            rows.hold(writer, map, &key);
        }
        let (mut then, mut now) = (0, 0);
        let done = tree.modify(&key, None, |old, change| {
            then = old.map_or(0, |old| old.value.len());
            match &before {
                Some(before) => change.put(&[before]),
                None => change.delete(),
            }
            now = change.len_after(then);
        });
        done?;
        writer.forget(id, &key, (before.as_deref(), is_first), then, now);
        if is_version {
            rows.versions.remove(id, &key, writer.id);
        }
        writer.aside.reserve_wal(writer.debt.log_bytes);
        Ok(())
    }

    /// Makes the changes count. They are seen from here on; the LSN returned is the gate of whoever is told so.
    pub fn commit(mut self) -> Result<Lsn> {
        self.alive()?;
        let rows = self.rows.clone();
        let Some(writer) = self.writer.as_mut().filter(|writer| !writer.keys.is_empty()) else {
            return Ok(self.decide(None));
        };
        let keyspace = rows.keyspace()?;
        rows.store.pager.admit()?;
        let mut joint = CrossDoorCommit::new(&keyspace, writer.id, &writer.keys)?;
        writer.has_records = true;
        match joint.apply(&writer.keys) {
            Ok(()) => Ok(self.decide(Some(joint))),
            Err(error) => {
                self.roll_back_with(Some(joint), &mut |_, _| ());
                Err(error)
            }
        }
    }

    fn decide(&mut self, keys: Option<CrossDoorCommit<'_>>) -> Lsn {
        self.drop_suspended();
        let Some(mut writer) = self.writer.take() else {
            self.leave();
            return 0;
        };
        let rows = self.rows.clone();
        let mut lsn = 0;
        if !writer.has_records {
            rows.statuses.aborted(writer.id);
        } else {
            if writer.has_values {
                rows.store.held.lock().insert(writer.id);
            }
            let mut body = Vec::new();
            encode_deltas(keys.as_ref().map_or(&[][..], |keys| keys.deltas()), &mut body);
            rows.statuses.committing(writer.id);
            lsn = rows.store.logical(kind::COMMIT, Some(writer.id), &body);
            rows.statuses.committed(writer.id, lsn);
            rows.store.metrics.txn_commits.add(1);
        }
        rows.store.delist(writer.id);
        if let Some(keys) = keys {
            keys.committed(lsn);
        }
        writer.dropped.iter().for_each(|map| rows.store.maps.forget(*map));
        rows.sweep_locks(&writer);
        self.leave();
        let (tail, runs) = writer.undo.end(&rows.budget);
        if lsn > 0 {
            rows.end(CommittedTxn { id: writer.id, lsn, tail, runs, holds_values: writer.has_values });
        } else {
            rows.versions.withdraw(writer.id);
        }
        lsn
    }

    /// Takes everything back.
    pub fn rollback(mut self) {
        self.roll_back();
    }

    /// The same, telling how many of how many changes have been taken back.
    pub fn rollback_with_progress(mut self, tell: &mut Tell<'_>) {
        self.roll_back_with(None, tell);
    }

    fn roll_back(&mut self) {
        self.roll_back_with(None, &mut |_, _| ());
    }

    /// `keys`: their part, if the commit has failed while they were put in their places.
    fn roll_back_with(&mut self, mut keys: Option<CrossDoorCommit<'_>>, tell: &mut Tell<'_>) {
        self.drop_suspended();
        self.leave();
        let Some(mut writer) = self.writer.take() else { return };
        let rows = &self.rows;
        if writer.has_records {
            let keys = keys.as_mut().map_or_else(Images::new, CrossDoorCommit::images);
            loop {
                match rows.put_back(&mut writer, &keys, tell) {
                    Ok(()) => break,
                    Err(Error::DiskFull) if rows.store.is_threaded => rows.store.wait_for_disk(),
                    // The changes stand in pages that can no longer be reached. Recovery can put it right, going on cannot.
                    Err(error) => rows.store.fail(&error),
                }
            }
            let versioned = writer.undo.tail().iter().filter(|step| step.is_version);
            versioned.for_each(|step| rows.versions.remove(step.map, &step.key, writer.id));
        }
        rows.versions.withdraw(writer.id);
        writer.undo.end(&rows.budget);
        rows.statuses.aborted(writer.id);
        rows.store.delist(writer.id);
        keys.into_iter().for_each(CrossDoorCommit::taken_back);
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
        if let Some(registration) = self.registration.take() {
            self.rows.snapshots.leave(registration);
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.roll_back();
    }
}

impl Rows {
    /// Puts everything back as it was before the transaction, and logs that it has been (EN-28). After an error it may run again.
    ///
    /// `keys` first: they were changed last, in the commit that failed, and all at once, for a page is freed unless any of their images names it (EN-8). Recovery goes the same way.
    fn put_back(&self, writer: &mut Writer, keys: &Images, tell: &mut Tell<'_>) -> Result<()> {
        let store = &self.store;
        store.put_back(writer.id, keys, &Images::new())?;
        let directory = writer.undo.directory().clone();
        store.put_back(writer.id, &directory, &directory)?;
        let (all, tail) = (writer.undo.len() as u64, writer.undo.tail().len() as u64);
        let images = writer.undo.tail_images();
        let (mut done, rows) = (0, images.len() as u64);
        pieces(&images, |piece| {
            self.put_back_stretch(writer, piece, &directory)?;
            done += piece.len() as u64;
            tell(tail * done / rows, all);
            Ok(())
        })?;
        done = tail;
        for run in writer.undo.runs().iter().rev() {
            stretches(run, |stretch, steps| {
                self.put_back_stretch(writer, stretch, &directory)?;
                done += steps;
                tell(done, all);
                Ok(())
            })?;
        }
        store.log_abort(writer.id);
        Ok(())
    }

    fn put_back_stretch(&self, writer: &mut Writer, images: &Images, directory: &Images) -> Result<()> {
        for (map, key) in images.keys() {
            if let Some(map) = self.store.maps.get(*map) {
                self.hold(writer, &map, key);
            }
        }
        self.store.put_back(writer.id, images, directory)
    }

    /// Keeps others from rows that are about to be as they were before this transaction, which is not decided yet (EN-18).
    ///
    /// Who has written a row has it for himself, but whoever wants to lock it puts its entry in before it looks at the record (EN-17), and takes it out when it sees the writer: for that moment it is waited.
    pub(crate) fn hold(&self, writer: &mut Writer, map: &Arc<RowMap>, key: &[u8]) {
        let is_open = |id| self.statuses.is_open(id);
        let requester = writer.requester(Strength::Exclusive);
        let taken = loop {
            match self.locks.take(map, key, Requester { owns: true, ..requester }, is_open) {
                Ok(taken) => break taken,
                Err(_) => thread::yield_now(),
            }
        };
        writer.note_lock(map, key, taken);
    }

    fn sweep_locks(&self, writer: &Writer) {
        writer.row_locks.iter().for_each(|(map, key)| self.locks.drop_row(map, key, writer.id));
        writer.many_locks.iter().for_each(|map| self.locks.drop_many(map, writer.id));
        writer.range_locks.iter().for_each(|map| self.locks.drop_ranges(map, writer.id));
    }
}

impl Writer {
    pub fn requester(&self, strength: Strength) -> Requester {
        Requester { txn: self.id, strength, exact: self.row_locks.len(), owns: false }
    }

    /// Remembers a lock for the sweep.
    pub fn note_lock(&mut self, map: &Arc<RowMap>, key: &[u8], taken: Acquired) {
        match taken {
            Acquired::AlreadyHeld => {}
            Acquired::Exact => self.row_locks.push((map.clone(), key.into())),
            Acquired::Escalated if self.many_locks.iter().any(|known| known.id == map.id) => {}
            Acquired::Escalated => self.many_locks.push(map.clone()),
        }
    }

    /// The lock noted last is about to be given back.
    pub fn unnote_lock(&mut self, taken: Acquired) {
        if taken == Acquired::Exact {
            self.row_locks.pop();
        }
    }

    /// A record is about to change: remembers how it was. `now` bytes will stand there.
    pub fn remember(&mut self, step: UndoStep, old_len: usize, now: usize, budget: &UndoBudget) {
        let known = self.undo.image(step.map, &step.key);
        let debt_before = known.map_or(UndoCost::default(), |image| undo_cost(image, &step.key, old_len));
        let debt_now = undo_cost(known.unwrap_or(step.before.as_deref()), &step.key, now);
        self.debt.replace(debt_before, debt_now);
        self.has_records = true;
        self.undo.push(step, budget);
    }

    /// The same of a record that is no row.
    pub fn remember_plain(&mut self, map: MapId, key: &[u8], before: Option<&[u8]>, now: usize, budget: &UndoBudget) {
        let old_len = before.map_or(0, <[u8]>::len);
        let before = before.map(Into::into);
        let step = UndoStep { map, key: key.into(), before, is_version: false, deletes: false };
        self.remember(step, old_len, now, budget);
    }

    /// The last step, which put this image away, has been taken back: `then` bytes stood there before that, `now` do now.
    fn forget(&mut self, map: MapId, key: &[u8], (before, is_first): (Option<&[u8]>, bool), then: usize, now: usize) {
        if is_first {
            self.debt.replace(undo_cost(before, key, then), UndoCost::default());
        } else if let Some(image) = self.undo.image(map, key) {
            let (debt_before, debt_now) = (undo_cost(image, key, then), undo_cost(image, key, now));
            self.debt.replace(debt_before, debt_now);
        }
    }
}
