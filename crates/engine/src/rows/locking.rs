//! Locking reads: locks on rows and ranges that a transaction does not change yet.

use std::sync::Arc;

use pager::TxnId;

use crate::error::{Error, Result};
use crate::rows::lock_table::{Acquired, Blocker, Strength};
use crate::rows::request::{Locked, LockedRow, Wait};
use crate::rows::row::RowHead;
use crate::rows::state::Rows;
use crate::rows::status_table::Status;
use crate::rows::transaction::Transaction;
use crate::rows::visibility::{Snapshot, Visibility};
use crate::store::maps::RowMap;
use crate::store::trees::MapId;

impl Transaction {
    /// Locks a row until the end of the transaction and appends its newest committed value, or the transaction's own, to `out`. An absent row is locked too, so
    /// that no other transaction can insert it.
    pub fn lock(
        &mut self,
        map: MapId,
        key: &[u8],
        strength: Strength,
        wait: Wait,
        out: &mut Vec<u8>,
    ) -> Result<Locked> {
        let rows = self.rows.clone();
        let map = rows.map(map)?;
        let mut attempt = self.attempt(&rows, map.id, key, strength);
        loop {
            let releases = rows.statuses.releases();
            match self.try_lock(&rows, &map, key, strength, out)? {
                Ok(locked) => return Ok(locked),
                Err(_) if wait == Wait::SkipLocked => return Ok(Locked::Skipped),
                Err(blocker) => self.wait_for(&mut attempt, blocker, wait, releases)?,
            }
        }
    }

    /// Locks a row that the snapshot sees, and appends its newest committed value, or the transaction's own, to `out`. A row whose key was changed is followed to
    /// its new key. If the transaction may not write over newer versions (`fail_on_unseen`), a row that has one fails with `Error::SerializationFailure`.
    pub fn lock_seen(
        &mut self,
        map: MapId,
        key: &[u8],
        strength: Strength,
        wait: Wait,
        out: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        let (snapshot, start) = (self.seen(), out.len());
        let (mut moved, mut mover): (Option<Vec<u8>>, Option<TxnId>) = (None, None);
        loop {
            let at = moved.as_deref().unwrap_or(key);
            let locked = self.lock(map, at, strength, wait, out)?;
            if locked == Locked::Skipped {
                return Ok(LockedRow::Skipped);
            }
            let me = self.id();
            let sees = |rows: &Rows, creator| rows.visibility(creator, snapshot, me) != Visibility::No;
            if moved.is_none() && self.newest_creator.is_none_or(|creator| sees(&self.rows, creator)) {
                return Ok(if locked == Locked::Present { LockedRow::Same } else { LockedRow::Gone });
            }
            let open = self.rows.map(map)?;
            let fate = match mover {
                None => self.rows.fate_after_seen(&open, at, snapshot, |creator| sees(&self.rows, creator))?,
                Some(mover) => self.rows.fate_after_move(&open, at, snapshot, mover)?,
            };
            if self.fails_on_unseen {
                return Err(Error::SerializationFailure { is_deleted: matches!(fate, RowFate::Deleted) });
            }
            match fate {
                RowFate::Stays => return Ok(LockedRow::Newer(moved)),
                RowFate::Deleted => {
                    out.truncate(start);
                    self.unlock_last();
                    return Ok(LockedRow::Gone);
                }
                RowFate::Moved(to, by) => {
                    out.truncate(start);
                    self.unlock_last();
                    (moved, mover) = (Some(to), Some(by));
                }
            }
        }
    }

    /// Locks a row if that needs no wait and the snapshot sees its newest version, which is appended to `out` then. Otherwise returns false, and nothing is
    /// locked.
    pub fn lock_if_seen(&mut self, map: MapId, key: &[u8], strength: Strength, out: &mut Vec<u8>) -> Result<bool> {
        let (snapshot, start) = (self.seen(), out.len());
        let locked = match self.lock(map, key, strength, Wait::NoWait, out) {
            Err(Error::LockNotAvailable) => return Ok(false),
            locked => locked?,
        };
        let me = self.id();
        let sees = |creator| self.rows.visibility(creator, snapshot, me) != Visibility::No;
        if locked == Locked::Present && self.newest_creator.is_some_and(sees) {
            return Ok(true);
        }
        out.truncate(start);
        self.unlock_last();
        Ok(false)
    }

    /// Fails with `Error::SerializationFailure` if the transaction may not write over newer versions (`fail_on_unseen`) and the newest version of the row is one.
    pub fn check_seen(&mut self, map: MapId, key: &[u8]) -> Result<()> {
        if !self.fails_on_unseen {
            return Ok(());
        }
        let (snapshot, me, map) = (self.seen(), self.id(), self.rows.map(map)?);
        let mut record = Vec::new();
        let is_seen = !map.tree.get(key, &mut record)?.present || {
            self.rows.visibility(RowHead::parse(&record)?.0.creator, snapshot, me) != Visibility::No
        };
        if is_seen { Ok(()) } else { Err(Error::SerializationFailure { is_deleted: false }) }
    }

    /// Releases the lock of the last `lock`, unless the transaction held it before. For rows that do not satisfy the statement's conditions, where the
    /// isolation level does not require that they stay as they are (EN-22).
    pub fn unlock_last(&mut self) {
        let Some((map, key, taken)) = self.locked_anew.take() else { return };
        let Some(writer) = &mut self.writer else { return };
        writer.unnote_lock(taken);
        self.rows.locks.release(&map, &key, writer.id, taken);
        self.rows.statuses.released(writer.id);
    }

    /// Does the same as `lock` with the timeout that `set_lock_wait` has set.
    pub fn lock_patiently(&mut self, map: MapId, key: &[u8], strength: Strength, out: &mut Vec<u8>) -> Result<Locked> {
        self.lock(map, key, strength, self.patience(), out)
    }

    /// Tries once. The inner `Err` is an open transaction that holds a conflicting lock.
    fn try_lock(
        &mut self,
        rows: &Rows,
        map: &Arc<RowMap>,
        key: &[u8],
        strength: Strength,
        out: &mut Vec<u8>,
    ) -> Result<Result<Locked, Blocker>> {
        self.locked_anew = None;
        let writer = self.writer()?;
        let requester = writer.requester(strength);
        let taken = match rows.locks.take(map, key, requester, |id| rows.statuses.is_open(id)) {
            Ok(taken) => taken,
            Err(blocker) => return Ok(Err(blocker)),
        };
        writer.note_lock(map, key, taken);
        match self.newest(map, key, strength, out) {
            Ok(Ok(present)) => {
                if taken != Acquired::AlreadyHeld {
                    self.locked_anew = Some((map.clone(), key.into(), taken));
                }
                Ok(Ok(if present { Locked::Present } else { Locked::Absent }))
            }
            Ok(Err(blocker)) => {
                self.release(map, key, taken)?;
                Ok(Err(blocker))
            }
            Err(Error::WouldBlock) => {
                let id = self.release(map, key, taken)?;
                // It may take long until the next try, and another transaction may have met the lock (EN-22).
                rows.statuses.released(id);
                Err(Error::WouldBlock)
            }
            Err(error) => Err(error),
        }
    }

    /// Releases the lock that was remembered last.
    fn release(&mut self, map: &RowMap, key: &[u8], taken: Acquired) -> Result<TxnId> {
        let rows = self.rows.clone();
        let writer = self.writer()?;
        writer.unnote_lock(taken);
        rows.locks.release(map, key, writer.id, taken);
        Ok(writer.id)
    }

    /// Locks a range against inserts by other transactions, until the end of this one. Uncommitted rows of others in the range are found by reading it
    /// afterwards with `lock`.
    pub fn lock_range(&mut self, map: MapId, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let map = self.rows.map(map)?;
        let rows = self.rows.clone();
        let writer = self.writer()?;
        rows.locks.take_range(&map, from, to, writer.id);
        if writer.range_locks.iter().all(|known| known.id != map.id) {
            writer.range_locks.push(map);
        }
        Ok(())
    }
}

/// The fate of a row after one of its versions.
enum RowFate {
    Stays,
    Deleted,
    /// It goes on under this key, where this transaction has inserted it.
    Moved(Vec<u8>, TxnId),
}

impl RowFate {
    /// Returns the fate of the rows whose last version is before this record.
    fn by(record: &[u8]) -> Result<RowFate> {
        let (head, value) = RowHead::parse(record)?;
        Ok(match head.is_delete_marked {
            true if !value.is_empty() => RowFate::Moved(value.to_vec(), head.creator),
            is_delete_marked if is_delete_marked || head.is_new_row => RowFate::Deleted,
            _ => RowFate::Stays,
        })
    }
}

impl Rows {
    /// Returns what became of a row, which the caller has locked, after the version that the snapshot sees (EN-57).
    fn fate_after_seen(
        &self,
        map: &RowMap,
        key: &[u8],
        snapshot: Snapshot,
        sees: impl Fn(TxnId) -> bool,
    ) -> Result<RowFate> {
        let mut newest = Vec::new();
        if !map.tree.get(key, &mut newest)?.present {
            return Ok(RowFate::Deleted);
        }
        let head = RowHead::parse(&newest)?.0;
        if sees(head.creator) {
            return Ok(RowFate::Stays);
        }
        let way = self.descend(map, key, head.creator, sees)?;
        if way.found.is_none() {
            return self.fate_unknown(snapshot);
        }
        self.first_end(map, key, snapshot, (&newest, way.end))
    }

    /// Returns the same after the version under which `mover` has let the row go on. It may itself be a deletion.
    fn fate_after_move(&self, map: &RowMap, key: &[u8], snapshot: Snapshot, mover: TxnId) -> Result<RowFate> {
        let mut newest = Vec::new();
        if !map.tree.get(key, &mut newest)?.present {
            return Ok(RowFate::Deleted);
        }
        let head = RowHead::parse(&newest)?.0;
        let decided = self.statuses.status(mover);
        let is_at_most = |creator| {
            creator == mover
                || match (self.statuses.status(creator), decided) {
                    (Status::Past, Status::Committed(_)) => true,
                    (Status::Committed(lsn), Status::Committed(moved)) => lsn <= moved,
                    _ => false,
                }
        };
        let (start, end) = match is_at_most(head.creator) {
            true => (Some(newest.clone()), None),
            false => {
                let way = self.descend(map, key, head.creator, is_at_most)?;
                (way.found, way.end)
            }
        };
        let Some(start) = start else { return self.fate_unknown(snapshot) };
        let start_head = RowHead::parse(&start)?.0;
        if start_head.creator != mover {
            return self.fate_unknown(snapshot);
        }
        match (start_head.is_delete_marked, head.creator == mover) {
            (true, _) => RowFate::by(&start),
            (false, true) => Ok(RowFate::Stays),
            (false, false) => self.first_end(map, key, snapshot, (&newest, end)),
        }
    }

    /// Returns the fate by the oldest end among the versions after some version: the newest version, and those before it of which `end` is the transaction
    /// that replaced the oldest end.
    fn first_end(
        &self,
        map: &RowMap,
        key: &[u8],
        snapshot: Snapshot,
        (newest, end): (&[u8], Option<TxnId>),
    ) -> Result<RowFate> {
        let Some(by) = end else { return RowFate::by(newest) };
        match self.versions.replaced(map.id, key, by)? {
            Some(record) => RowFate::by(&record),
            None => self.fate_unknown(snapshot),
        }
    }

    /// Returns the fate of a row whose versions do not lead to the one that was looked for.
    fn fate_unknown(&self, snapshot: Snapshot) -> Result<RowFate> {
        if self.snapshots.is_expired(snapshot.lsn) { Err(Error::SnapshotTooOld) } else { Ok(RowFate::Deleted) }
    }
}
