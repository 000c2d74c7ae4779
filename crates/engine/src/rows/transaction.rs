//! A transaction from its beginning to its end.
//!
//! ```text
//!   begin     nothing
//!   reads     a registered snapshot
//!   changes   an id and a status; each change is a WAL record with a before-image; pages and WAL bytes for the undo are reserved (EN-11)
//!   commit    COMMITTING | COMMIT in the WAL | its end is the commit's number          visible at once, acknowledged when durable
//!   rollback  oldest images restored, stretch by stretch of the steps (`undo`) | ABORT | ABORTED
//! ```
//! Between the last restored image and ABORTED the rows are still locked for others, so no transaction sees a half (EN-18).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use pager::{Lsn, TxnId, UndoReserve};
use stdx::sync::atomic::Ordering;
use stdx::sync::thread;

use crate::accounts::Accounts;
use crate::accounts::pending::PendingAccounts;
use crate::error::{Error, Result};
use crate::keyspace::cross_door_commit::CrossDoorCommit;
use crate::rows::activity::Activity;
use crate::rows::key_changes::KeyChanges;
use crate::rows::lock_queue::{LockAttempt, SuspendedWait};
use crate::rows::lock_table::{Acquired, Blocker, Requester, Strength};
use crate::rows::purge_list::CommittedTxn;
use crate::rows::read_set::ReadSet;
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

/// Called with (undone, all) numbers of changes, about every thousand changes.
pub type ReportProgress<'t> = dyn FnMut(u64, u64) + 't;

/// The default lock wait timeout. It is MySQL's default.
const LOCK_WAIT: Duration = Duration::from_secs(50);

/// Returns true if a wait for a lock has to end: see `Transaction::set_cancel`.
pub type Cancel = Arc<dyn Fn() -> bool + Send + Sync>;

/// A point to roll back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint {
    steps: usize,
    keys: usize,
    locks: usize,
    loads: u64,
}

/// A map that a transaction has created.
pub(crate) struct MadeMap {
    pub id: MapId,
    /// The number of undo steps before its creation.
    step: usize,
    /// The number of the last row that was loaded into it without an undo step; 0 if there is none.
    last_load: u64,
}

/// A snapshot of plain reads that `Transaction::read_newest` has put aside.
#[must_use = "the transaction goes on with the newest snapshot until it is given back"]
pub struct SnapshotAside(Option<Snapshot>, Option<Box<ReadSet>>);

/// The state of a transaction from its first change or lock on.
pub(crate) struct Writer {
    pub id: TxnId,
    pub reserve: UndoReserve,
    pub undo_cost: UndoCost,
    pub undo: UndoLog,
    /// The WAL has records of this transaction, so COMMIT or ABORT must follow, even if all of them were undone.
    pub has_records: bool,
    /// Rows that were loaded into maps of its own without undo steps (EN-31).
    pub loads: u64,
    pub row_locks: Vec<(Arc<RowMap>, Box<[u8]>)>,
    /// Maps in which it has escalated locks.
    pub escalated_locks: Vec<Arc<RowMap>>,
    pub range_locks: Vec<Arc<RowMap>>,
    /// It has put long values into the purge queue, or removed some from it.
    pub has_values: bool,
    /// A rollback to a savepoint has made maps garbage that it had created (EN-60).
    pub has_garbage: bool,
    /// Maps in which it has written a row over a version that its snapshot did not see (EN-26).
    pub unseen: HashSet<MapId>,
    /// Of a serializable transaction: the maps that it has changed.
    pub changed: Option<HashMap<MapId, Arc<RowMap>>>,
    /// A change of a row whose newest version the snapshot does not see fails.
    pub fails_on_unseen: bool,
    /// An insert does not wait for locks on a row that is there.
    pub locks_keys: bool,
    /// Locks by key that are being given back (`rollback_to_and_unlock`).
    unlocking: HashMap<(MapId, Box<[u8]>), Arc<RowMap>>,
    pub made: Vec<MadeMap>,
    pub dropped: Vec<MapId>,
    pub keys: KeyChanges,
}

/// A transaction. It is rolled back if it is dropped before its end.
pub struct Transaction {
    pub(crate) rows: Arc<Rows>,
    isolation: Isolation,
    registration: Option<SnapshotRegistration>,
    /// The snapshot of plain reads, once it is taken.
    pub(crate) snapshot: Option<Snapshot>,
    /// In memory of its own: most transactions only read, and are moved some times.
    pub(crate) writer: Option<Box<Writer>>,
    pub(crate) durability_lsn: Lsn,
    lock_wait: Duration,
    cancel: Option<Cancel>,
    activity: Option<Arc<Activity>>,
    /// The lock that the last `lock` or `lock_key` took, if the transaction did not hold it before.
    pub(crate) locked_anew: Option<(Arc<RowMap>, Box<[u8]>, Acquired)>,
    /// The read set, if the commit validates it.
    pub(crate) reads: Option<Box<ReadSet>>,
    /// The creator of the record that `newest` has read.
    pub(crate) newest_creator: Option<TxnId>,
    /// Buffer for the record that is being read.
    pub(crate) record: Vec<u8>,
    /// Set if the transaction can no longer commit: returns the reason.
    doomed: Option<fn() -> Error>,
    pub(crate) wait_mode: WaitMode,
    pub(crate) fails_on_unseen: bool,
    locks_keys: bool,
    survives_deadlocks: bool,
    /// The wait for which the statement is suspended.
    pub(crate) suspended: Option<SuspendedWait>,
}

impl Rows {
    /// Begins a transaction. It writes nothing and takes no snapshot before it has to.
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
            durability_lsn: 0,
            lock_wait: LOCK_WAIT,
            cancel: None,
            activity: None,
            locked_anew: None,
            reads: None,
            newest_creator: None,
            record: Vec::new(),
            doomed: None,
            wait_mode: WaitMode::default(),
            fails_on_unseen: false,
            locks_keys: false,
            survives_deadlocks: false,
            suspended: None,
        }
    }

    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Begins a statement. Under READ COMMITTED it gets a new snapshot.
    pub fn begin_statement(&mut self) {
        if !self.keeps_snapshot() && self.snapshot.take().is_some() {
            // So that an idle transaction keeps no old versions.
            self.registration.iter().for_each(|registration| self.rows.snapshots.release(registration));
        }
    }

    /// Returns whether all statements read by one snapshot.
    pub(super) fn keeps_snapshot(&self) -> bool {
        self.isolation > Isolation::ReadCommitted
    }

    /// Takes the snapshot now, as START TRANSACTION WITH CONSISTENT SNAPSHOT does.
    pub fn take_snapshot(&mut self) {
        self.seen();
    }

    /// Lets plain reads see what is committed now, until the snapshot is given back. For statements that write all rows of a table anew, at any isolation
    /// level. The caller makes sure that no other transaction has undecided changes in what it reads.
    pub fn read_newest(&mut self) -> SnapshotAside {
        // What is read meanwhile cannot change before the transaction's end, so it is not validated.
        let aside = SnapshotAside(self.snapshot, self.reads.take());
        match aside.0 {
            // The registration stands for the older snapshot, so it keeps what the newer one needs too (EN-16).
            Some(_) => {
                let low = self.rows.statuses.low();
                self.snapshot = Some(Snapshot { lsn: self.rows.head(), low });
            }
            None => {
                self.seen();
            }
        }
        aside
    }

    /// Goes on with the snapshot from before `read_newest`.
    pub fn read_as_before(&mut self, aside: SnapshotAside) {
        self.snapshot = aside.0;
        self.reads = aside.1;
        if self.snapshot.is_none() {
            self.registration.iter().for_each(|registration| self.rows.snapshots.release(registration));
        }
    }

    pub fn set_lock_wait(&mut self, wait: Duration) {
        self.lock_wait = wait;
    }

    /// Makes an update or delete of a row fail with `Error::SerializationFailure` if the snapshot does not see its newest version: snapshot isolation, where the first to commit wins.
    /// Takes the snapshot. Called before the first change.
    pub fn fail_on_unseen(&mut self) {
        self.seen();
        self.fails_on_unseen = true;
    }

    /// Makes an insert that meets a row of a decided transaction answer at once, whoever has locked the row. Called before the first change.
    pub fn insert_past_locks(&mut self) {
        self.locks_keys = true;
    }

    /// Makes a deadlock end the statement and leave the transaction to its caller.
    pub fn survive_deadlocks(&mut self) {
        self.survives_deadlocks = true;
    }

    /// Sets a function that ends a wait for a lock with `Error::Cancelled` if it returns true when the wait begins or `Rows::wake_waiters` is called.
    pub fn set_cancel(&mut self, cancel: Cancel) {
        self.cancel = Some(cancel);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(|cancel| cancel())
    }

    /// Sets where the transaction publishes its activity.
    pub fn set_activity(&mut self, activity: Arc<Activity>) {
        activity.set_id(self.id().unwrap_or(0));
        self.activity = Some(activity);
    }

    /// Returns the durability LSN of everything that the transaction has read.
    pub fn durability_lsn(&self) -> Lsn {
        self.durability_lsn
    }

    /// Returns the snapshot of plain reads. The first call takes it.
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

    /// Returns the transaction's id; `None` if it has changed and locked nothing.
    pub fn id(&self) -> Option<TxnId> {
        self.writer.as_ref().map(|writer| writer.id)
    }

    pub(crate) fn alive(&self) -> Result<()> {
        self.doomed.map_or(Ok(()), |why| Err(why()))
    }

    /// Returns the writing part. The first call assigns an id and a status.
    pub(crate) fn writer(&mut self) -> Result<&mut Writer> {
        self.alive()?;
        let rows = &self.rows;
        Ok(self.writer.get_or_insert_with(|| {
            // An older value only keeps more than necessary.
            let keep = rows.kept.load(Ordering::Relaxed);
            let id = rows.statuses.begin(|| rows.store.new_id(), keep);
            rows.store.enlist(id);
            self.activity.iter().for_each(|activity| activity.set_id(id));
            Box::new(Writer {
                id,
                reserve: rows.store.pager.undo_reserve(),
                undo_cost: UndoCost::default(),
                undo: UndoLog::default(),
                has_records: false,
                loads: 0,
                row_locks: Vec::new(),
                escalated_locks: Vec::new(),
                range_locks: Vec::new(),
                has_values: false,
                has_garbage: false,
                unseen: HashSet::new(),
                changed: (self.isolation == Isolation::Serializable).then(HashMap::new),
                fails_on_unseen: self.fails_on_unseen,
                locks_keys: self.locks_keys,
                unlocking: HashMap::new(),
                made: Vec::new(),
                dropped: Vec::new(),
                keys: KeyChanges::default(),
            })
        }))
    }

    /// Waits until the row of `attempt`, which `blocker` has locked, may be tried again. `releases` is `StatusTable::releases` before the last try. A deadlock
    /// rolls this transaction back, unless it survives deadlocks.
    pub(crate) fn wait_for(
        &mut self,
        attempt: &mut LockAttempt<'_>,
        blocker: Blocker,
        wait: Wait,
        releases: u64,
    ) -> Result<()> {
        let wait = match wait {
            Wait::For(wait) => wait,
            Wait::NoWait | Wait::SkipLocked => return Err(Error::LockNotAvailable),
        };
        if blocker.strength == Strength::KeyShared {
            attempt.leave_queue();
        }
        let (me, holder) = (self.writer()?.id, blocker.txn);
        let is_cancelled = || self.cancel.as_ref().is_some_and(|cancel| cancel());
        self.activity.iter().for_each(|activity| activity.set_awaited(Some(attempt.awaited())));
        if self.wait_mode.may_suspend(attempt.is_resumed()) {
            match attempt.suspend(me, holder, wait, &is_cancelled, releases) {
                Ok(suspended) => {
                    self.suspended = Some(suspended);
                    return Err(Error::WouldBlock);
                }
                Err(waited) => return self.end_wait(waited),
            }
        }
        let waited = attempt.wait(me, holder, wait, &is_cancelled, releases);
        self.end_wait(waited)
    }

    fn end_wait(&mut self, waited: WaitOutcome) -> Result<()> {
        self.activity.iter().for_each(|activity| activity.set_awaited(None));
        match waited {
            WaitOutcome::Over => Ok(()),
            WaitOutcome::Cancelled => Err(Error::Cancelled),
            WaitOutcome::TimedOut | WaitOutcome::Refused => Err(Error::LockTimeout),
            WaitOutcome::Deadlock if self.survives_deadlocks => Err(Error::Deadlock),
            WaitOutcome::Deadlock => {
                self.roll_back();
                self.doomed = Some(|| Error::Deadlock);
                Err(Error::Deadlock)
            }
        }
    }

    /// Returns the tries for a row, with the place that the suspended statement has in its queue.
    pub(crate) fn attempt<'r>(
        &mut self,
        rows: &'r Rows,
        map: MapId,
        key: &'r [u8],
        strength: Strength,
    ) -> LockAttempt<'r> {
        let mut attempt = LockAttempt::new(&rows.lock_queues, &rows.statuses, map, key, strength);
        if self.suspended.as_ref().is_some_and(|suspended| suspended.is_for(map, key)) {
            self.activity.iter().for_each(|activity| activity.set_awaited(None));
            attempt.adopt(self.suspended.take().expect("checked above"));
        }
        attempt
    }

    pub(crate) fn drop_suspended(&mut self) {
        if self.suspended.take().is_some() {
            self.activity.iter().for_each(|activity| activity.set_awaited(None));
        }
    }

    /// Returns the wait that `set_lock_wait` has set.
    pub fn patience(&self) -> Wait {
        Wait::For(self.lock_wait)
    }

    /// Returns a point to roll back to, before the next change.
    pub fn savepoint(&self) -> Savepoint {
        let counts = |writer: &Writer| Savepoint {
            steps: writer.undo.len(),
            keys: writer.keys.count(),
            locks: writer.row_locks.len(),
            loads: writer.loads,
        };
        self.writer.as_deref().map_or(Savepoint { steps: 0, keys: 0, locks: 0, loads: 0 }, counts)
    }

    /// Undoes every change since `savepoint`. Locks are kept. An error means that the whole transaction has been rolled back.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.rollback_to_with_progress(savepoint, &mut |_, _| ())
    }

    /// Does the same, and gives back the locks by key that were taken since, but for those of rows that were changed since: these stay locked until ABORT or
    /// COMMIT is in the WAL (EN-18, EN-59). Escalated locks stay, and a lock that was strengthened keeps its strength.
    pub fn rollback_to_and_unlock(&mut self, savepoint: Savepoint, report: &mut ReportProgress<'_>) -> Result<()> {
        self.alive()?;
        self.locked_anew = None;
        if let Some(writer) = &mut self.writer {
            let kept = savepoint.locks.min(writer.row_locks.len());
            let since = writer.row_locks.drain(kept..);
            writer.unlocking = since.map(|(map, key)| ((map.id, key), map)).collect();
        }
        // An error has rolled the transaction back, with all its locks.
        self.rollback_to_with_progress(savepoint, report)?;
        if let Some(writer) = &mut self.writer {
            let pure = std::mem::take(&mut writer.unlocking);
            if !pure.is_empty() {
                pure.iter().for_each(|((_, key), map)| self.rows.locks.drop_row(map, key, writer.id));
                self.rows.statuses.released(writer.id);
            }
        }
        Ok(())
    }

    /// Does the same as `rollback_to` and reports progress.
    pub fn rollback_to_with_progress(&mut self, savepoint: Savepoint, report: &mut ReportProgress<'_>) -> Result<()> {
        self.alive()?;
        if self.writer.as_ref().is_some_and(|writer| writer.keeps_loads_since(savepoint)) {
            self.roll_back();
            self.doomed = Some(|| Error::Misuse("the transaction has been rolled back"));
            return Err(Error::Misuse("loaded rows cannot be rolled back without their map"));
        }
        if let Some(writer) = &mut self.writer {
            writer.keys.undo_to(savepoint.keys);
        }
        let steps = self.savepoint().steps;
        while self.savepoint().steps > savepoint.steps {
            let done = steps - self.savepoint().steps;
            if done.is_multiple_of(1024) && done > 0 {
                report(done as u64, (steps - savepoint.steps) as u64);
            }
            if let Err(error) = self.undo_last() {
                self.roll_back();
                self.doomed = Some(|| Error::Misuse("the transaction has been rolled back"));
                return Err(error);
            }
        }
        Ok(())
    }

    fn undo_last(&mut self) -> Result<()> {
        let rows = self.rows.clone();
        let _undoing = rows.store.pager.enter_undo();
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.undo.bring_back(writer.id, &rows.budget, &rows.versions)?;
        let Some((UndoStep { map: id, key, before, is_version, .. }, is_first)) = writer.undo.pop(&rows.budget) else {
            return Ok(());
        };
        if id == MAPS {
            let map = MapId::from_be_bytes(key[..].try_into().expect("a key of the directory of maps"));
            match before {
                Some(_) => writer.dropped.retain(|dropped| *dropped != map),
                None => {
                    // From here on the map is garbage, however the transaction ends (EN-60).
                    rows.store.discard_map(&key, writer.id)?;
                    writer.made.retain(|made| made.id != map);
                    writer.has_garbage = true;
                }
            }
        }
        let tree = rows.store.tree(id).ok_or(Error::Misuse("a map that does not exist"))?;
        let map = rows.store.maps.get(id);
        if let Some(map) = &map {
            rows.hold(writer, map, &key);
            if let Some((at, map)) = writer.unlocking.remove_entry(&(id, key.clone())) {
                writer.row_locks.push((map, at.1));
            }
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
        if id == MAPS && before.is_none() {
            rows.store.maps.forget(MapId::from_be_bytes(key[..].try_into().expect("checked above")));
        }
        if is_version {
            rows.versions.remove(id, &key, writer.id);
        }
        writer.reserve.reserve_wal(writer.undo_cost.log_bytes);
        Ok(())
    }

    /// Commits. The changes are visible from here on. Returns the durability LSN of the acknowledgement. An error means that the transaction has been rolled back.
    pub fn commit(mut self) -> Result<Lsn> {
        self.alive()?;
        if self.writer.as_ref().is_some_and(|writer| !writer.keys.is_empty()) {
            return self.commit_joint(None);
        }
        let rows = self.rows.clone();
        let _serial = self.enter_serial_order(&rows)?;
        Ok(self.decide(None))
    }

    /// Commits, and changes accounts with the same COMMIT (EN-69). Fails if one of them has been changed meanwhile.
    pub fn commit_with_accounts(mut self, accounts: &Accounts, pending: &PendingAccounts) -> Result<Lsn> {
        if pending.is_empty() {
            return self.commit();
        }
        self.writer()?;
        self.commit_joint(Some((accounts, pending)))
    }

    fn commit_joint(mut self, accounts: Option<(&Accounts, &PendingAccounts)>) -> Result<Lsn> {
        let rows = self.rows.clone();
        let _serial = self.enter_serial_order(&rows)?;
        let keyspace = rows.keyspace()?;
        rows.store.pager.admit()?;
        let accounts = accounts.map(|(accounts, pending)| accounts.join(pending)).transpose()?;
        let writer = self.writer()?;
        let mut joint = CrossDoorCommit::new(&keyspace, writer.id, &writer.keys, accounts)?;
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
            rows.note_committed_maps(writer.made.iter().map(|made| made.id), lsn);
            rows.statuses.committed(writer.id, lsn);
            Rows::count_serial_commit(&writer);
            rows.store.metrics.txn_commits.add(1);
        }
        rows.store.delist(writer.id);
        // After the status, so that the key locks have ended when the stripes are released (EN-43).
        if let Some(keys) = keys {
            keys.committed(lsn);
        }
        writer.dropped.iter().for_each(|map| rows.store.maps.forget(*map));
        rows.remove_locks(&writer);
        if writer.has_garbage {
            (rows.wake)();
        }
        self.leave();
        let (tail, runs) = writer.undo.end(&rows.budget);
        if lsn > 0 {
            rows.end(CommittedTxn { id: writer.id, lsn, tail, runs, holds_values: writer.has_values });
        } else {
            rows.versions.withdraw(writer.id);
        }
        lsn
    }

    /// Rolls back.
    pub fn rollback(mut self) {
        self.roll_back();
    }

    /// Rolls back and reports progress.
    pub fn rollback_with_progress(mut self, report: &mut ReportProgress<'_>) {
        self.roll_back_with(None, report);
    }

    fn roll_back(&mut self) {
        self.roll_back_with(None, &mut |_, _| ());
    }

    /// Rolls back. `keys` is the keys' part if the commit failed while it changed their records.
    fn roll_back_with(&mut self, mut keys: Option<CrossDoorCommit<'_>>, report: &mut ReportProgress<'_>) {
        self.drop_suspended();
        self.leave();
        let Some(mut writer) = self.writer.take() else { return };
        let rows = &self.rows;
        if writer.has_records {
            let keys = keys.as_mut().map_or_else(Images::new, CrossDoorCommit::images);
            loop {
                match rows.put_back(&mut writer, &keys, report) {
                    Ok(()) => break,
                    Err(Error::DiskFull) if rows.store.is_threaded => rows.store.wait_for_disk(),
                    // The changes are in pages that can no longer be reached. Recovery can repair that; the running process cannot.
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
        keys.into_iter().for_each(CrossDoorCommit::rolled_back);
        writer.made.iter().for_each(|map| rows.store.maps.forget(map.id));
        rows.remove_locks(&writer);
        if writer.has_values || writer.has_garbage || !writer.made.is_empty() {
            // They are garbage now.
            (rows.wake)();
        }
    }

    /// Ends the snapshot and its registration.
    fn leave(&mut self) {
        self.drop_reads();
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
    /// Restores everything as it was before the transaction, and logs ABORT (EN-28). After an error it may run again.
    ///
    /// `keys` come first and all at once. First, because they were changed last, in the commit that failed. All at once, because undo frees a page unless one
    /// of their images refers to it (EN-8). Recovery uses the same order (EN-45).
    fn put_back(&self, writer: &mut Writer, keys: &Images, report: &mut ReportProgress<'_>) -> Result<()> {
        let store = &self.store;
        store.put_back(writer.id, keys, &Images::new())?;
        let directory = writer.undo.directory().clone();
        store.put_back(writer.id, &directory, &directory)?;
        let (all, tail) = (writer.undo.len() as u64, writer.undo.tail().len() as u64);
        let images = writer.undo.tail_images();
        let (mut done, rows) = (0, images.len() as u64);
        pieces(images.into_iter(), |piece| {
            self.put_back_stretch(writer, piece, &directory)?;
            done += piece.len() as u64;
            report(tail * done / rows, all);
            Ok(())
        })?;
        done = tail;
        for run in writer.undo.runs().iter().rev() {
            stretches(run, |stretch, steps| {
                self.put_back_stretch(writer, stretch, &directory)?;
                done += steps;
                report(done, all);
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

    /// Locks a row that is about to be restored while this transaction is undecided (EN-18).
    ///
    /// The creator of a row's record holds it exclusively. But a transaction that wants to lock the row adds its entry before it reads the record (EN-17), and
    /// removes it when it finds the creator. This spins for that moment.
    pub(crate) fn hold(&self, writer: &mut Writer, map: &Arc<RowMap>, key: &[u8]) {
        let is_open = |id| self.statuses.is_open(id);
        let mut requester = Requester { owns: true, ..writer.requester(Strength::Exclusive) };
        let taken = loop {
            match self.locks.take(map, key, requester, is_open) {
                Ok(taken) => break taken,
                // They may have passed the change that is restored, and write nothing (EN-58).
                Err(blocker) if blocker.strength == Strength::KeyShared => {
                    requester.strength = Strength::NoKeyExclusive
                }
                Err(_) => thread::yield_now(),
            }
        };
        writer.note_lock(map, key, taken);
    }

    fn remove_locks(&self, writer: &Writer) {
        writer.unlocking.iter().for_each(|((_, key), map)| self.locks.drop_row(map, key, writer.id));
        writer.row_locks.iter().for_each(|(map, key)| self.locks.drop_row(map, key, writer.id));
        writer.escalated_locks.iter().for_each(|map| self.locks.drop_escalated(map, writer.id));
        writer.range_locks.iter().for_each(|map| self.locks.drop_ranges(map, writer.id));
    }
}

impl Writer {
    /// Remembers a map that the transaction is about to create. The directory's record is the next step.
    pub fn note_made(&mut self, id: MapId, step: usize) {
        self.made.push(MadeMap { id, step, last_load: 0 });
    }

    /// Counts a row that is loaded into a map. Returns false if the map is not the transaction's own.
    pub fn note_load(&mut self, map: MapId) -> bool {
        let Some(made) = self.made.iter_mut().rev().find(|made| made.id == map) else { return false };
        self.loads += 1;
        made.last_load = self.loads;
        true
    }

    /// Returns true if a map that would stay has rows that were loaded after the savepoint (EN-31).
    fn keeps_loads_since(&self, savepoint: Savepoint) -> bool {
        self.made.iter().any(|made| made.step < savepoint.steps && made.last_load > savepoint.loads)
    }

    pub fn requester(&self, strength: Strength) -> Requester {
        Requester { txn: self.id, strength, exact: self.row_locks.len(), owns: false }
    }

    /// Remembers a lock, to be removed at the end.
    pub fn note_lock(&mut self, map: &Arc<RowMap>, key: &[u8], taken: Acquired) {
        match taken {
            Acquired::AlreadyHeld => {}
            Acquired::Exact => self.row_locks.push((map.clone(), key.into())),
            Acquired::Escalated if self.escalated_locks.iter().any(|known| known.id == map.id) => {}
            Acquired::Escalated => self.escalated_locks.push(map.clone()),
        }
    }

    /// Forgets the lock that was remembered last, which is about to be released.
    pub fn unnote_lock(&mut self, taken: Acquired) {
        if taken == Acquired::Exact {
            self.row_locks.pop();
        }
    }

    /// Remembers a record before it changes. `now` is the length of its new value.
    pub fn remember(&mut self, step: UndoStep, old_len: usize, now: usize, budget: &UndoBudget) {
        let known = self.undo.image(step.map, &step.key);
        let cost_before = known.map_or(UndoCost::default(), |image| undo_cost(image, &step.key, old_len));
        let cost_now = undo_cost(known.unwrap_or(step.before.as_deref()), &step.key, now);
        self.undo_cost.replace(cost_before, cost_now);
        self.has_records = true;
        self.undo.push(step, budget);
    }

    /// Does the same for a record that is not a row.
    pub fn remember_plain(&mut self, map: MapId, key: &[u8], before: Option<&[u8]>, now: usize, budget: &UndoBudget) {
        let old_len = before.map_or(0, <[u8]>::len);
        let before = before.map(Into::into);
        let step = UndoStep { map, key: key.into(), before, is_version: false, deletes: false };
        self.remember(step, old_len, now, budget);
    }

    /// Forgets the last step, which has been undone. It had remembered this image; the record's value had `then` bytes before the undo, and has `now` bytes.
    fn forget(&mut self, map: MapId, key: &[u8], (before, is_first): (Option<&[u8]>, bool), then: usize, now: usize) {
        if is_first {
            self.undo_cost.replace(undo_cost(before, key, then), UndoCost::default());
        } else if let Some(image) = self.undo.image(map, key) {
            let (cost_before, cost_now) = (undo_cost(image, key, then), undo_cost(image, key, now));
            self.undo_cost.replace(cost_before, cost_now);
        }
    }
}
