//! Changing: one row, and which maps there are.
//!
//! Everything is decided under the latch of the row's leaf, in one go: is the row's writer decided, does anybody lock the row or, for a new row, its range, is there a row at all. If
//! somebody is in the way the latch is given back and this transaction waits for that one's end, then looks again.

use std::sync::Arc;

use pager::TxnId;

use crate::error::{Error, Result};
use crate::rows::lock::Strength;
use crate::rows::maps::{self, Map};
use crate::rows::transaction::{Transaction, Writer};
use crate::rows::version::{HEAD_BYTES, Head};
use crate::rows::{Inserted, MapId, ROW_KEY_MAX, ROW_VALUE_MAX, Rows};
use crate::txn::{MAPS, QUEUE};

/// What is to become of a row.
#[derive(Clone, Copy)]
enum Change<'v> {
    Insert(&'v [u8]),
    Update(&'v [u8]),
    Delete,
}

/// What a look under the latch came to.
enum Seen {
    Changed,
    /// There is a row where there must be none, or none where there must be one.
    Refused,
    Blocked(TxnId),
}

impl Transaction {
    /// Puts a new row in. If there is one with this key (its writer, if open, is waited for), its value is appended to `old` and nothing is changed.
    pub fn insert(&mut self, map: MapId, key: &[u8], value: &[u8], old: &mut Vec<u8>) -> Result<Inserted> {
        Ok(if self.change(map, key, Change::Insert(value), old)? { Inserted::Done } else { Inserted::Exists })
    }

    /// Replaces the newest value of a row. False: there is no such row.
    pub fn update(&mut self, map: MapId, key: &[u8], value: &[u8]) -> Result<bool> {
        self.change(map, key, Change::Update(value), &mut Vec::new())
    }

    /// Removes a row. False: there is no such row.
    pub fn delete(&mut self, map: MapId, key: &[u8]) -> Result<bool> {
        self.change(map, key, Change::Delete, &mut Vec::new())
    }

    fn change(&mut self, map: MapId, key: &[u8], change: Change<'_>, old: &mut Vec<u8>) -> Result<bool> {
        if key.len() > ROW_KEY_MAX {
            return Err(Error::TooLarge { what: "a row's key", limit: ROW_KEY_MAX as u64 });
        }
        if let Change::Insert(value) | Change::Update(value) = change
            && value.len() > ROW_VALUE_MAX
        {
            return Err(Error::TooLarge { what: "a row", limit: ROW_VALUE_MAX as u64 });
        }
        let map = self.rows.map(map)?;
        let rows = self.rows.clone();
        loop {
            match rows.try_change(self.writer()?, &map, key, change, old)? {
                Seen::Changed => return Ok(true),
                Seen::Refused => return Ok(false),
                Seen::Blocked(holder) => self.wait_for(holder, self.patience())?,
            }
        }
    }

    /// Makes an empty map. It is gone again if the transaction is rolled back.
    pub fn create_map(&mut self) -> Result<MapId> {
        let rows = self.rows.clone();
        let writer = self.writer()?;
        rows.store.pager.admit()?;
        writer.aside.pages(writer.debt.pages_with_one_more())?;
        let id = writer.id;
        let map = rows.store.maps.create(&rows.store.pager, |map, root| {
            let (key, value) = (maps::key(map), root.to_le_bytes());
            rows.store.maps_tree.modify(&key, Some(id), |old, change| {
                writer.remember(MAPS, &key, None, 0, value.len());
                assert!(old.is_none(), "E8: a map has a number of its own");
                change.allocated(root, 1);
                change.put(&[&value]);
            })?;
            Ok(())
        })?;
        writer.aside.log(writer.debt.log_bytes);
        writer.made.push(map);
        Ok(map)
    }

    /// Drops a map with all its rows when the transaction commits. The caller sees to it that nobody else uses it.
    pub fn drop_map(&mut self, map: MapId) -> Result<()> {
        let rows = self.rows.clone();
        let (open, writer) = (rows.map(map)?, self.writer()?);
        let (key, root) = (maps::key(map), open.tree.root());
        let (queue_key, entry) = maps::garbage(map, root, writer.id);
        rows.store.pager.admit()?;
        writer.aside.pages(writer.debt.pages_with_one_more())?;
        rows.store.queue.modify(&queue_key, Some(writer.id), |old, change| {
            writer.remember(QUEUE, &queue_key, old.map(|old| old.value), 0, entry.len());
            change.put(&[&entry]);
        })?;
        rows.store.maps_tree.modify(&key, Some(writer.id), |old, change| {
            let value = old.map(|old| old.value);
            writer.remember(MAPS, &key, value, value.map_or(0, <[u8]>::len), 0);
            change.delete();
        })?;
        writer.aside.log(writer.debt.log_bytes);
        writer.dropped.push(map);
        Ok(())
    }
}

impl Rows {
    fn try_change(
        &self,
        writer: &mut Writer,
        map: &Arc<Map>,
        key: &[u8],
        wanted: Change<'_>,
        old_value: &mut Vec<u8>,
    ) -> Result<Seen> {
        self.store.pager.admit()?;
        writer.aside.pages(writer.debt.pages_with_one_more())?;
        let id = writer.id;
        let done = map.tree.modify(key, Some(id), |old, change| -> Result<Seen> {
            let before = old.map(|old| old.value);
            let parsed = before.map(Head::parse).transpose()?;
            let is_row = parsed.is_some_and(|(head, _)| !head.is_ghost);
            if let Some(holder) = self.in_the_way(map, key, id, parsed.map(|(head, _)| head), is_row) {
                return Ok(Seen::Blocked(holder));
            }
            let value = match (wanted, is_row) {
                (Change::Insert(value), false) | (Change::Update(value), true) => value,
                (Change::Delete, true) => &[],
                (Change::Insert(_), true) => {
                    old_value.extend_from_slice(parsed.expect("a row").1);
                    return Ok(Seen::Refused);
                }
                (Change::Update(_) | Change::Delete, false) => return Ok(Seen::Refused),
            };
            let is_ghost = matches!(wanted, Change::Delete);
            let (old_len, now) = (before.map_or(0, <[u8]>::len), HEAD_BYTES + value.len());
            let is_first = writer.remember(map.id, key, before, old_len, now);
            if let (Some(before), Some((head, _))) = (before, parsed)
                && is_first
                && head.writer != id
            {
                self.versions.push(map.id, key, id, before);
            }
            if is_ghost {
                writer.ghosts.push((map.id, key.into()));
            }
            change.put(&[&Head { writer: id, is_ghost }.bytes(), value]);
            Ok(Seen::Changed)
        });
        writer.aside.log(writer.debt.log_bytes);
        match done {
            Ok(done) => done.result,
            Err(error) => {
                // What was remembered is harmless: taking it back puts there what is there.
                Err(error.into())
            }
        }
    }

    /// An open transaction that has written or locked the row, or the range that a new row falls into.
    fn in_the_way(&self, map: &Map, key: &[u8], id: TxnId, head: Option<Head>, is_row: bool) -> Option<TxnId> {
        let is_open = |id| self.slots.is_open(id);
        if let Some(head) = head
            && head.writer != id
            && is_open(head.writer)
        {
            return Some(head.writer);
        }
        let holder = self.locks.holder(map, key, id, is_open);
        if is_row { holder } else { holder.or_else(|| self.locks.range_holder(map, key, id, is_open)) }
    }

    /// Keeps others from rows that are about to be as they were before this transaction, which is not decided yet (M6).
    pub(crate) fn hold(&self, writer: &mut Writer, map: &Arc<Map>, key: &[u8]) {
        let taken = self.locks.take(map, key, writer.id, Strength::Exclusive, |id| self.slots.is_open(id));
        if taken.expect("M6: who has written a row has it for himself") {
            writer.row_locks.push((map.clone(), key.into()));
        }
    }
}
