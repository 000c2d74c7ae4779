//! Changes of one row, and of which maps exist.
//!
//! A change is decided under the latch of the row's leaf, at once: whether the record's creator is decided, whether another transaction locks the row or, for a
//! new row, its range, and whether there is a row at all. If there is a conflict, the latch is released, this transaction waits for the other one's end and
//! tries again.

use std::sync::Arc;

use pager::TxnId;

use crate::error::{Error, Result};
use crate::keyspace::segments::Segments;
use crate::rows::lock_queue::LockAttempt;
use crate::rows::lock_table::{Blocker, Strength};
use crate::rows::request::{Inserted, ROW_INLINE_MAX, ROW_KEY_MAX, ROW_VALUE_MAX};
use crate::rows::row::{HEAD_BYTES, RowHead, RowValue};
use crate::rows::run::UndoStep;
use crate::rows::state::Rows;
use crate::rows::transaction::{Savepoint, Transaction, Writer};
use crate::rows::visibility::{Snapshot, Visibility};
use crate::store::map_directory::map_key;
use crate::store::maps::RowMap;
use crate::store::purge_queue::{encode_version, queued_map, version_key};
use crate::store::trees::{MAPS, MapId, QUEUE, ROW_CATALOG};

/// The wanted change of a row.
#[derive(Clone, Copy)]
enum RowChange<'v> {
    Insert(NewValue<'v>),
    /// The strength says whether the row keeps its key.
    Update(NewValue<'v>, Strength),
    /// The row goes on under another key, if one is given.
    Delete(Option<&'v [u8]>),
}

/// The bytes of a value in the record.
#[derive(Clone, Copy)]
struct NewValue<'v> {
    bytes: &'v [u8],
    is_long: bool,
}

/// The outcome of a try under the latch.
enum ChangeOutcome {
    /// The record was changed. Holds the version id of the segments that the old record referred to.
    Changed(Option<u64>),
    /// There is no row, but there has to be one.
    NoRow,
    /// There is a row, but there must be none. Holds its record.
    Exists(Vec<u8>),
    Blocked(Blocker),
    /// The transaction's snapshot does not see the row's newest version, and the transaction may not write over such a row.
    Unseen,
}

impl Transaction {
    /// Inserts a row. If there is a row with this key, after its creator is decided, its value is appended to `old` and nothing is changed.
    pub fn insert(&mut self, map: MapId, key: &[u8], value: &[u8], old: &mut Vec<u8>) -> Result<Inserted> {
        let done = self.with_value(key, value, |txn, new| txn.change(map, key, RowChange::Insert(new), old))?;
        Ok(if done { Inserted::Done } else { Inserted::Exists })
    }

    /// Replaces the newest value of a row. Returns false if there is no such row.
    pub fn update(&mut self, map: MapId, key: &[u8], value: &[u8]) -> Result<bool> {
        self.update_with(map, key, value, Strength::Exclusive)
    }

    /// Does the same as a change of this strength: `NoKeyExclusive` lets key-shared locks of other transactions pass.
    pub fn update_with(&mut self, map: MapId, key: &[u8], value: &[u8], strength: Strength) -> Result<bool> {
        self.with_value(key, value, |txn, new| txn.change(map, key, RowChange::Update(new, strength), &mut Vec::new()))
    }

    /// Deletes a row. Returns false if there is no such row.
    pub fn delete(&mut self, map: MapId, key: &[u8]) -> Result<bool> {
        self.change(map, key, RowChange::Delete(None), &mut Vec::new())
    }

    /// Deletes a row that the caller is about to insert under `new_key`, so that `lock_seen` can follow it (EN-57). Returns false if there is no such row.
    pub fn move_away(&mut self, map: MapId, key: &[u8], new_key: &[u8]) -> Result<bool> {
        self.change(map, key, RowChange::Delete(Some(new_key)), &mut Vec::new())
    }

    /// Writes a long value before the change. WaitDeadline a record refers to it, it is in the purge queue; a successful change removes it from there (EN-8).
    fn with_value(
        &mut self,
        key: &[u8],
        value: &[u8],
        change: impl FnOnce(&mut Self, NewValue<'_>) -> Result<bool>,
    ) -> Result<bool> {
        if key.len() > ROW_KEY_MAX {
            return Err(Error::TooLarge { what: "a row's key", limit: ROW_KEY_MAX as u64 });
        }
        if value.len() > ROW_VALUE_MAX {
            return Err(Error::TooLarge { what: "a row", limit: ROW_VALUE_MAX as u64 });
        }
        if value.len() <= ROW_INLINE_MAX {
            return change(self, NewValue { bytes: value, is_long: false });
        }
        self.alive()?;
        self.make_room()?;
        let rows = self.rows.clone();
        let len = value.len() as u64;
        let segments = Segments::write(&rows.store, len, |range, out| {
            out.extend_from_slice(&value[range.start as usize..range.end as usize]);
            Ok(())
        })
        .inspect_err(|_| (rows.wake)())?;
        let (version, before) = (segments.version(), self.savepoint());
        let named = [len.to_le_bytes(), version.to_le_bytes()].concat();
        let mut done = change(self, NewValue { bytes: &named, is_long: true });
        if matches!(done, Ok(true)) {
            done = self.second_half(before, |txn| txn.change_queue(version, None)).map(|()| true);
        }
        drop(segments);
        if !matches!(done, Ok(true)) {
            (rows.wake)();
        }
        done
    }

    /// Inserts a row into a map that this transaction has created: as `insert`, but cheaper. No other transaction knows the map, so there is no lock to check,
    /// no version to keep and no step to remember; rollback drops the map with all its rows. A savepoint from between the map's creation and the load can no
    /// longer be rolled back to (EN-31). Keys in ascending order fill the pages best.
    pub fn load(&mut self, map: MapId, key: &[u8], value: &[u8]) -> Result<Inserted> {
        if value.len() > ROW_INLINE_MAX || key.len() > ROW_KEY_MAX {
            // The purge queue refers to a long value until a record does, which needs undo steps.
            return self.insert(map, key, value, &mut Vec::new());
        }
        let rows = self.rows.clone();
        let writer = self.writer()?;
        if !writer.note_load(map) {
            return Err(Error::Misuse("loading into a map of another transaction"));
        }
        let map = rows.map(map)?;
        let head = RowHead {
            creator: writer.id,
            is_delete_marked: false,
            is_long: false,
            is_new_row: false,
            keeps_key: false,
        }
        .bytes();
        let done = map.tree.modify(key, None, |old, change| {
            if old.is_some() {
                return Inserted::Exists;
            }
            change.put(&[&head, value]);
            Inserted::Done
        })?;
        Ok(done.result)
    }

    fn change(&mut self, map: MapId, key: &[u8], change: RowChange<'_>, old: &mut Vec<u8>) -> Result<bool> {
        // Nothing is changed yet: a wait for this row may suspend the statement, a later one may not.
        let suspends = self.wait_mode.suspends;
        self.wait_mode.begin_change();
        self.make_room()?;
        let map = self.rows.map(map)?;
        let rows = self.rows.clone();
        let before = self.savepoint();
        let strength = if let RowChange::Update(_, strength) = change { strength } else { Strength::Exclusive };
        let mut attempt = self.attempt(&rows, map.id, key, strength);
        loop {
            let releases = rows.statuses.releases();
            let snapshot = self.snapshot;
            match rows.try_change(self.writer()?, snapshot, &map, key, change)? {
                ChangeOutcome::Changed(None) => return Ok(true),
                ChangeOutcome::Changed(Some(version)) => {
                    let entry = encode_version(self.writer()?.id);
                    let queue = |txn: &mut Self| txn.change_queue(version, Some(&entry));
                    return self.second_half(before, queue).map(|()| true);
                }
                ChangeOutcome::NoRow => {
                    self.wait_mode.suspends = suspends;
                    return Ok(false);
                }
                ChangeOutcome::Unseen => return Err(Error::SerializationFailure { is_deleted: false }),
                // It may have been replaced since, and its segments may be gone.
                ChangeOutcome::Exists(record) => {
                    self.note_key(map.id, key);
                    match rows.load(RowValue::parse(&record)?.1, old) {
                        Ok(()) => {
                            self.wait_mode.suspends = suspends;
                            return Ok(false);
                        }
                        Err(error) if rows.is_same(&map, key, &record)? => return Err(error),
                        Err(_) => {}
                    }
                }
                ChangeOutcome::Blocked(blocker) => {
                    self.wait_mode.suspends = suspends;
                    let waited = self.wait_for(&mut attempt, blocker, self.patience(), releases);
                    self.wait_mode.begin_change();
                    waited?;
                }
            }
        }
    }

    /// Writes undo steps to a file if they take too much memory, before more are added.
    fn make_room(&mut self) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let rows = &self.rows;
        writer.undo.make_room(writer.id, &rows.budget, &rows.versions, rows.store.pager.folder().as_ref())
    }

    /// Makes the second half of a change. If it fails, the first half is undone too, since a record and the purge queue must not both refer to one value
    /// (EN-21).
    fn second_half(&mut self, before: Savepoint, half: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        half(self).or_else(|error| {
            self.rollback_to(before)?;
            Err(error)
        })
    }

    /// Puts a value's segments into the purge queue or removes them from it, as a change of this transaction.
    fn change_queue(&mut self, version: u64, entry: Option<&[u8]>) -> Result<()> {
        let rows = self.rows.clone();
        let (key, writer) = (version_key(version), self.writer()?);
        writer.has_values = true;
        rows.store.pager.admit()?;
        writer.reserve.reserve_pages(writer.undo_cost.pages_with_one_more())?;
        rows.store.queue.modify(&key, Some(writer.id), |old, change| {
            let before = old.map(|old| old.value);
            let now = entry.map_or(0, <[u8]>::len);
            writer.remember_plain(QUEUE, &key, before, now, &rows.budget);
            match entry {
                Some(entry) => change.put(&[entry]),
                None => change.delete(),
            }
        })?;
        writer.reserve.reserve_wal(writer.undo_cost.log_bytes);
        Ok(())
    }

    /// Creates an empty map. A rollback drops it.
    pub fn create_map(&mut self) -> Result<MapId> {
        let rows = self.rows.clone();
        let writer = self.writer()?;
        rows.store.pager.admit()?;
        writer.reserve.reserve_pages(writer.undo_cost.pages_with_one_more())?;
        let (id, step) = (writer.id, writer.undo.len());
        let map = rows.store.maps.create(&rows.store.pager, (id, rows.head()), |map, root| {
            let (key, value) = (map_key(map), root.to_le_bytes());
            rows.store.maps_tree.modify(&key, Some(id), |old, change| {
                writer.remember_plain(MAPS, &key, None, value.len(), &rows.budget);
                assert!(old.is_none(), "EN-8: a map has a number of its own");
                change.allocated(root, 1);
                change.put(&[&value]);
            })?;
            Ok(())
        })?;
        writer.reserve.reserve_wal(writer.undo_cost.log_bytes);
        writer.note_made(map, step);
        Ok(map)
    }

    /// Drops a map with all its rows when the transaction commits. The caller makes sure that no other transaction uses it. Waits for losers of the last crash
    /// that have changed it.
    pub fn drop_map(&mut self, map: MapId) -> Result<()> {
        self.wait_for_losers(map)?;
        let rows = self.rows.clone();
        let (open, writer) = (rows.map(map)?, self.writer()?);
        let (key, root) = (map_key(map), open.tree.root());
        let (queue_key, entry) = queued_map(map, root, writer.id);
        rows.store.pager.admit()?;
        writer.reserve.reserve_pages(writer.undo_cost.pages_with_one_more())?;
        rows.store.queue.modify(&queue_key, Some(writer.id), |old, change| {
            writer.remember_plain(QUEUE, &queue_key, old.map(|old| old.value), entry.len(), &rows.budget);
            change.put(&[&entry]);
        })?;
        rows.store.maps_tree.modify(&key, Some(writer.id), |old, change| {
            let value = old.map(|old| old.value);
            writer.remember_plain(MAPS, &key, value, 0, &rows.budget);
            change.delete();
        })?;
        writer.reserve.reserve_wal(writer.undo_cost.log_bytes);
        writer.dropped.push(map);
        Ok(())
    }
}

impl Transaction {
    /// Waits until no loser of the last crash has changes in the map that are not undone. A loser has no session that would hold the table's metadata lock, and
    /// its undo needs the map (EN-34). A caller that is about to drop a map calls this before it takes locks that others wait for.
    pub fn wait_for_losers(&mut self, map: MapId) -> Result<()> {
        let rows = self.rows.clone();
        // Shared, since it waits for the end of a transaction without a ticket.
        let mut attempt = LockAttempt::new(&rows.lock_queues, &rows.statuses, map, &[], Strength::Shared);
        loop {
            let releases = rows.statuses.releases();
            let Some(loser) = rows.losers.in_map(map) else { return Ok(()) };
            let blocker = Blocker { txn: loser, strength: Strength::Exclusive };
            self.wait_for(&mut attempt, blocker, self.patience(), releases)?;
        }
    }
}

impl Rows {
    fn try_change(
        &self,
        writer: &mut Writer,
        snapshot: Option<Snapshot>,
        map: &Arc<RowMap>,
        key: &[u8],
        wanted: RowChange<'_>,
    ) -> Result<ChangeOutcome> {
        self.store.pager.admit()?;
        writer.reserve.reserve_pages(writer.undo_cost.pages_with_one_more())?;
        let id = writer.id;
        let done = map.tree.modify(key, Some(id), |old, change| -> Result<ChangeOutcome> {
            let before = old.map(|old| old.value);
            let parsed = before.map(RowValue::parse).transpose()?;
            let head = parsed.map(|(head, _)| head);
            let is_row = head.is_some_and(|head| !head.is_delete_marked);
            // An insert only needs to know that there is a row: a shared lock of another transaction keeps it there.
            let strength = match wanted {
                RowChange::Insert(_) if is_row => Strength::Shared,
                RowChange::Update(_, strength) => strength,
                _ => Strength::Exclusive,
            };
            let meets_row = is_row && matches!(wanted, RowChange::Insert(_));
            if let Some(blocker) =
                self.blocker(map, key, (id, strength), head, (is_row, meets_row && writer.locks_keys))
            {
                return Ok(ChangeOutcome::Blocked(blocker));
            }
            let (value, is_delete_marked) = match (wanted, is_row) {
                (RowChange::Insert(value), false) | (RowChange::Update(value, _), true) => (value, false),
                (RowChange::Delete(new_key), true) => {
                    (NewValue { bytes: new_key.unwrap_or_default(), is_long: false }, true)
                }
                (RowChange::Insert(_), true) => return Ok(ChangeOutcome::Exists(before.expect("a row").to_vec())),
                (RowChange::Update(..) | RowChange::Delete(_), false) => return Ok(ChangeOutcome::NoRow),
            };
            let (old_len, now) = (before.map_or(0, <[u8]>::len), HEAD_BYTES + value.bytes.len());
            // The transaction has not changed the row before, so others may see the old version.
            let is_version = head.is_some_and(|head| head.creator != id);
            if let (true, Some(head), Some(snapshot)) = (is_version, head, snapshot)
                && self.visibility(head.creator, snapshot, Some(id)) == Visibility::No
            {
                // Definitions have no snapshot, and an entry that filled an index was there before the change of its row.
                if is_row && writer.fails_on_unseen && map.id != ROW_CATALOG && head.creator != map.creator {
                    return Ok(ChangeOutcome::Unseen);
                }
                writer.unseen.insert(map.id);
            }
            if let Some(changed) = &mut writer.changed {
                changed.entry(map.id).or_insert_with(|| map.clone());
            }
            if let (true, Some(before)) = (is_version, before) {
                self.versions.push(map.id, key, id, before)?;
            }
            let image = before.map(Into::into);
            let step = UndoStep { map: map.id, key: key.into(), before: image, is_version, deletes: is_delete_marked };
            writer.remember(step, old_len, now, &self.budget);
            let is_new_row = match wanted {
                RowChange::Insert(_) => head.is_some(),
                // Of the transaction's own record, which the new one replaces.
                _ => head.is_some_and(|head| head.creator == id && head.is_new_row),
            };
            let keeps_key = matches!(wanted, RowChange::Update(_, Strength::NoKeyExclusive))
                && head.is_some_and(|head| head.creator != id || head.keeps_key);
            let is_long = value.is_long;
            let new_head = RowHead { creator: id, is_delete_marked, is_long, is_new_row, keeps_key };
            change.put(&[&new_head.bytes(), value.bytes]);
            Ok(ChangeOutcome::Changed(match parsed {
                Some((_, RowValue::Segments { version, .. })) => Some(version),
                _ => None,
            }))
        });
        writer.reserve.reserve_wal(writer.undo_cost.log_bytes);
        // After an error the remembered step is harmless: undoing it changes nothing.
        done.map_err(Error::from)?.result
    }

    /// Returns true if the record is unchanged.
    fn is_same(&self, map: &RowMap, key: &[u8], record: &[u8]) -> Result<bool> {
        let mut now = Vec::new();
        Ok(map.tree.get(key, &mut now)?.present && now == record)
    }

    /// Returns an open transaction that has changed the row, holds a conflicting lock on it, or locks the range of a new row. `ignores_locks`: only the record
    /// counts.
    fn blocker(
        &self,
        map: &RowMap,
        key: &[u8],
        (id, strength): (TxnId, Strength),
        head: Option<RowHead>,
        (is_row, ignores_locks): (bool, bool),
    ) -> Option<Blocker> {
        let is_open = |id| self.statuses.is_open(id);
        if let Some(head) = head
            && head.creator != id
            && is_open(head.creator)
        {
            return Some(Blocker { txn: head.creator, strength: head.strength() });
        }
        if ignores_locks {
            return None;
        }
        let owned = head.filter(|head| head.creator == id).map(RowHead::strength);
        let holder = self.locks.holder(map, key, (id, strength), owned, is_open);
        if is_row {
            return holder;
        }
        let of_range = |txn| Blocker { txn, strength: Strength::Exclusive };
        holder.or_else(|| self.locks.range_holder(map, key, id, is_open).map(of_range))
    }
}
