//! Reading: which version of a row a transaction sees.
//!
//! Hard part: the record, the slot of its writer and the old versions are looked at one after the other, without a lock. Each way they may have moved meanwhile shows in the record's version
//! word: it is another one as soon as anybody has written or taken back. So "there is no older version" and "decided long ago" count only if the word still stands; else it
//! starts again (EN-15).
//!
//! An index entry has a creator of its own, which need not be the creator of the row's visible version: once a transaction has written a row over a version that its snapshot does not see, the row's
//! newest entries are the visible ones, although somebody else has made them. A scan of an index therefore knows the map of its rows and decides such entries by the row (EN-26).

use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;

use btree::{Batch, ScanState};
use pager::{Lsn, TxnId};
use stdx::prng::Prng;

use crate::error::{Error, Result};
use crate::keyspace::record::Body;
use crate::rows::row::{HEAD_BYTES, RowHead, RowValue};
use crate::rows::state::Rows;
use crate::rows::status_table::Status;
use crate::rows::transaction::Transaction;
use crate::rows::visibility::{Snapshot, Visibility};
use crate::store::maps::RowMap;
use crate::store::trees::MapId;

/// An index over the rows of another map.
#[derive(Clone, Copy)]
pub struct IndexOf {
    /// The map of the rows.
    pub rows: MapId,
    /// Returns the row's key that an entry, key and value, names.
    pub row_key: for<'e> fn(&'e [u8], &'e [u8]) -> &'e [u8],
}

impl Rows {
    fn stands(&self, map: &RowMap, key: &[u8], word: u64) -> Result<bool> {
        let found = map.tree.get(key, &mut Vec::new())?;
        Ok(found.present && found.word == word)
    }

    /// The value that `snapshot` sees of a record that was found with `word`; None: no row. The outer None: the record has changed.
    fn resolve(
        &self,
        map: &RowMap,
        key: &[u8],
        (word, record): (u64, &[u8]),
        (snapshot, me): (Snapshot, Option<TxnId>),
        gate: &mut Lsn,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        let (head, value) = RowValue::parse(record)?;
        match self.visibility(head.writer, snapshot, me) {
            Visibility::Yes(lsn) => *gate = (*gate).max(lsn),
            Visibility::IfItStands if !self.stands(map, key, word)? => return Ok(None),
            Visibility::IfItStands => {}
            Visibility::No => return self.older(map, key, (word, head.writer), (snapshot, me), gate, out),
        }
        if !head.is_delete_marked {
            self.load_for(snapshot, value, out)?;
        }
        Ok(Some(!head.is_delete_marked))
    }

    /// Appends a value to `out`. Of segments that somebody has replaced since, and that nobody's snapshot keeps, it makes an error.
    pub(crate) fn load(&self, value: RowValue<'_>, out: &mut Vec<u8>) -> Result<()> {
        match value {
            RowValue::Inline(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            RowValue::Segments { len, version } => {
                let base = out.len();
                out.reserve_exact(len as usize);
                let body = Body::Segments { len, version };
                self.store.read_payload(&body, 0..len, out).inspect_err(|_| out.truncate(base))
            }
        }
    }

    /// What a snapshot sees stays until the snapshot goes, or is given up.
    fn load_for(&self, snapshot: Snapshot, value: RowValue<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.load(value, out)
            .map_err(|error| if self.snapshots.is_expired(snapshot.lsn) { Error::SnapshotTooOld } else { error })
    }

    fn older(
        &self,
        map: &RowMap,
        key: &[u8],
        (word, writer): (u64, TxnId),
        (snapshot, me): (Snapshot, Option<TxnId>),
        gate: &mut Lsn,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        let seen = Cell::new(0);
        let sees = |writer| match self.visibility(writer, snapshot, me) {
            Visibility::Yes(lsn) => {
                seen.set(lsn);
                true
            }
            // Replaced, so it was committed.
            Visibility::IfItStands => true,
            Visibility::No => false,
        };
        let found = self.versions.find(map.id, key, writer, sees)?;
        if self.snapshots.is_expired(snapshot.lsn) {
            return Err(Error::SnapshotTooOld);
        }
        let Some(record) = found else {
            return Ok(if self.stands(map, key, word)? { Some(false) } else { None });
        };
        *gate = (*gate).max(seen.get());
        let (head, value) = RowValue::parse(&record)?;
        if !head.is_delete_marked {
            self.load_for(snapshot, value, out)?;
        }
        Ok(Some(!head.is_delete_marked))
    }
}

impl Transaction {
    /// The row as the transaction's snapshot, or the transaction itself, has it: appended to `out`. False: there is none.
    pub fn get(&mut self, map: MapId, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        self.alive()?;
        let view = (self.seen(), self.id());
        let map = self.rows.map(map)?;
        self.get_seen(&map, key, view, out)
    }

    fn get_seen(
        &mut self,
        map: &RowMap,
        key: &[u8],
        view: (Snapshot, Option<TxnId>),
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        loop {
            self.record.clear();
            let found = map
                .tree
                .get_in_mode(self.near.read_mode, key, &mut self.record)
                .map_err(|error| self.near.note(error))?;
            if !found.present {
                return Ok(false);
            }
            let seen = self.rows.resolve(map, key, (found.word, &self.record), view, &mut self.gate, out)?;
            if let Some(present) = seen {
                return Ok(present);
            }
        }
    }

    /// The newest committed value, or the transaction's own. The inner Err names an open transaction that has written the row.
    pub(crate) fn newest(&mut self, map: &RowMap, key: &[u8], out: &mut Vec<u8>) -> Result<Result<bool, TxnId>> {
        let me = self.id();
        let mut record = Vec::new();
        loop {
            record.clear();
            // Before the record is read: what is below was put back before that, if it was not committed.
            let low = self.rows.statuses.low();
            let found =
                map.tree.get_in_mode(self.near.read_mode, key, &mut record).map_err(|error| self.near.note(error))?;
            if !found.present {
                return Ok(Ok(false));
            }
            let (head, value) = RowValue::parse(&record)?;
            if Some(head.writer) != me && (head.writer >= low || self.rows.statuses.is_loser(head.writer)) {
                match self.rows.statuses.status(head.writer) {
                    Status::Active => return Ok(Err(head.writer)),
                    Status::Committed(lsn) => self.gate = self.gate.max(lsn),
                    Status::Aborted => continue,
                    Status::Past if !self.rows.stands(map, key, found.word)? => continue,
                    Status::Past => {}
                }
            }
            if !head.is_delete_marked {
                // Nobody replaces it: the caller has locked the row.
                self.rows.load(value, out)?;
            }
            return Ok(Ok(!head.is_delete_marked));
        }
    }

    /// The rows of a range as the snapshot has them.
    pub fn scan(&mut self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>, backward: bool) -> Result<Cursor> {
        self.cursor(map, from, to, backward, None, false)
    }

    /// The same of a map that is an index of `of`: the entries of exactly those row versions that `get` and `scan` of the rows' map return (EN-26). A key may come twice, with the entries of two rows:
    /// the snapshot's, and that of a row which the transaction has written itself.
    pub fn scan_index(
        &mut self,
        map: MapId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        backward: bool,
        of: IndexOf,
    ) -> Result<Cursor> {
        self.cursor(map, from, to, backward, Some(of), false)
    }

    /// True if the transaction has written a row of the map over a version that its snapshot did not see. Only then do `scan_index` and `scan` or `get` of an index differ.
    pub fn has_overwritten_unseen(&self, map: MapId) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.unseen.contains(&map))
    }

    /// True if the row's newest version is the transaction's own, a deletion included.
    fn owns(&mut self, map: &RowMap, key: &[u8]) -> Result<bool> {
        let Some(me) = self.id() else { return Ok(false) };
        let mut record = Vec::new();
        let found =
            map.tree.get_in_mode(self.near.read_mode, key, &mut record).map_err(|error| self.near.note(error))?;
        Ok(found.present && RowHead::parse(&record)?.0.writer == me)
    }

    /// The keys of a range whose rows may be there now, those that others are just putting in or changing included. For whoever locks each of them
    /// next and looks at what `lock` returns. Values are hints: long ones are left out, and so are those of records that another transaction has written which is not decided.
    pub fn scan_current(&mut self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>, backward: bool) -> Result<Cursor> {
        self.cursor(map, from, to, backward, None, true)
    }

    fn cursor(
        &mut self,
        map: MapId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        is_backward: bool,
        index: Option<IndexOf>,
        is_current: bool,
    ) -> Result<Cursor> {
        self.alive()?;
        let map = self.rows.map(map)?;
        // A statement's rows are those of one moment, also if it goes on later.
        let snapshot = if is_current { None } else { Some(self.seen()) };
        Ok(Cursor { map, span: ScanState::new(from, to, is_backward), is_backward, index, snapshot })
    }
}

/// A scan under way. It holds nothing between calls.
pub struct Cursor {
    map: Arc<RowMap>,
    span: ScanState,
    is_backward: bool,
    index: Option<IndexOf>,
    /// None: what is there now.
    snapshot: Option<Snapshot>,
}

impl Cursor {
    /// Replaces `out` by the next rows, those of one leaf, or fewer where they are long; false, and nothing, at the end.
    pub fn next(&mut self, txn: &mut Transaction, out: &mut RowBatch) -> Result<bool> {
        txn.alive()?;
        out.clear();
        while out.is_empty() && !self.span.is_done() {
            let low = txn.rows.statuses.low();
            let Cursor { map, span, .. } = self;
            let drawn = span.next_batch(&map.tree, txn.near.read_mode, &mut out.records);
            drawn.map_err(|error| txn.near.note_range(error, map, span))?;
            match self.snapshot {
                Some(snapshot) => {
                    if let Some(last) = self.take_seen((snapshot, LONG_ALONE), txn, out)? {
                        self.span.resume_after(out.records.get(last).key);
                    }
                }
                None => take_current(txn, low, out)?,
            }
        }
        Ok(!out.is_empty())
    }

    /// As `next`, of a scan of what is there now, but at most `most` rows; and before they are returned the range from the scan's position to the last of them, or to the end of the scan if there are
    /// none, is locked as by `Transaction::lock_range`. So a scan that is not finished has locked no more of its range than it has passed.
    pub fn next_locked(&mut self, txn: &mut Transaction, out: &mut RowBatch, most: usize) -> Result<bool> {
        txn.alive()?;
        let (from, to) = self.span.clone().bounds();
        // Locked up to this key; the inner None: to the end.
        let mut locked: Option<Option<Vec<u8>>> = None;
        loop {
            // Read once to learn how far to lock, and again when that is locked (EN-17).
            let mut span = self.span.clone();
            out.clear();
            while out.is_empty() && !span.is_done() {
                let low = txn.rows.statuses.low();
                let drawn = span.next_batch(&self.map.tree, txn.near.read_mode, &mut out.records);
                drawn.map_err(|error| txn.near.note_range(error, &self.map, &span))?;
                take_current(txn, low, out)?;
            }
            out.items.truncate(most.max(1));
            let last = out.len().checked_sub(1).map(|last| out.get(last).0.to_vec());
            let is_locked = match (&locked, &last) {
                (None, _) => false,
                (Some(None), _) => true,
                (Some(Some(_)), None) => false,
                (Some(Some(end)), Some(last)) => last == end || (last < end) != self.is_backward,
            };
            if is_locked {
                match last {
                    Some(last) => self.span.resume_after(&last),
                    None => self.span = span,
                }
                return Ok(!out.is_empty());
            }
            match (&last, self.is_backward) {
                (None, _) => txn.lock_range(self.map.id, &from, to.as_deref())?,
                (Some(last), true) => txn.lock_range(self.map.id, last, to.as_deref())?,
                (Some(last), false) => txn.lock_range(self.map.id, &from, Some(&[last, &[0][..]].concat()))?,
            }
            locked = Some(last);
        }
    }

    /// The rows of some leaf: the scan itself stays where it is.
    pub(super) fn draw(&self, txn: &mut Transaction, prng: &mut Prng, out: &mut RowBatch) -> Result<()> {
        out.clear();
        let low = txn.rows.statuses.low();
        self.map.tree.random_leaf(prng, &mut out.records)?;
        match self.snapshot {
            Some(snapshot) => self.take_seen((snapshot, u64::MAX), txn, out).map(drop),
            None => take_current(txn, low, out),
        }
    }

    /// Rows as the snapshot has them. Nearly all of them are what stands in the tree. Some: long values have filled the batch, and that was the last record that was looked at.
    fn take_seen(
        &self,
        (snapshot, most): (Snapshot, u64),
        txn: &mut Transaction,
        out: &mut RowBatch,
    ) -> Result<Option<usize>> {
        let rows = txn.rows.clone();
        let view = (snapshot, txn.id());
        let index_of = self.index.filter(|index| txn.has_overwritten_unseen(index.rows));
        let RowBatch { records, aside, items } = out;
        for (index, record) in records.iter().enumerate() {
            let head = RowHead::parse(record.value)?.0;
            let is_plain = !head.is_delete_marked && !head.is_long;
            if is_plain && let Visibility::Yes(lsn) = rows.visibility(head.writer, snapshot, view.1) {
                txn.gate = txn.gate.max(lsn);
                items.push(Item { record: index as u32, value: ValuePlace::Record });
                continue;
            }
            // A long value comes alone: then whoever reads it can take it (`RowBatch::take_long`).
            if let RowValue::Segments { len, .. } = RowValue::parse(record.value)?.1
                && len > most
                && !items.is_empty()
            {
                return Ok(index.checked_sub(1));
            }
            let start = aside.len();
            let found = (record.word, record.value);
            let mut present = match rows.resolve(&self.map, record.key, found, view, &mut txn.gate, aside)? {
                Some(present) => present,
                None => txn.get_seen(&self.map, record.key, view, aside)?,
            };
            let seen = Item { record: index as u32, value: ValuePlace::Aside(start, aside.len()) };
            if let Some(of) = index_of
                && rows.visibility(head.writer, snapshot, view.1) == Visibility::No
            {
                let row_map = rows.map(of.rows)?;
                let old_key = present.then(|| (of.row_key)(record.key, &aside[start..]).to_vec());
                if let Some(old_key) = &old_key {
                    present = !txn.owns(&row_map, old_key)?;
                }
                let newest = RowValue::parse(record.value)?.1;
                let new_key = match newest {
                    RowValue::Inline(value) if !head.is_delete_marked => Some((of.row_key)(record.key, value)),
                    _ => None,
                };
                if let Some(new_key) = new_key
                    && txn.owns(&row_map, new_key)?
                {
                    if let Status::Committed(lsn) = rows.statuses.status(head.writer) {
                        txn.gate = txn.gate.max(lsn);
                    }
                    // Two rows under one key: in the order of their own keys, as an index of InnoDB has them.
                    let comes_first = old_key.is_none_or(|old_key| (new_key < &old_key[..]) != self.is_backward);
                    let newest = Item { record: index as u32, value: ValuePlace::Record };
                    match (present, comes_first) {
                        (false, _) => items.push(newest),
                        (true, true) => items.extend([newest, seen]),
                        (true, false) => items.extend([seen, newest]),
                    }
                    continue;
                }
            }
            if present {
                items.push(seen);
            }
            if aside.len() as u64 > most && index + 1 < records.len() {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

/// Of values beyond this a batch has no more than the last.
const LONG_ALONE: u64 = 1 << 20;

/// Whatever may be a row. `low` was read before the records were: what a transaction below it has deleted without committing had been put back by then.
fn take_current(txn: &Transaction, low: TxnId, out: &mut RowBatch) -> Result<()> {
    for (index, record) in out.records.iter().enumerate() {
        let head = RowHead::parse(record.value)?.0;
        // What is taken back while this looks is undecided too: the record that was read may not be the one that is put back.
        let is_decided = Some(head.writer) == txn.id()
            || (head.writer < low && !txn.rows.statuses.is_loser(head.writer))
            || matches!(txn.rows.statuses.status(head.writer), Status::Committed(_));
        if !head.is_delete_marked || !is_decided {
            let value = if head.is_long || !is_decided { ValuePlace::Aside(0, 0) } else { ValuePlace::Record };
            out.items.push(Item { record: index as u32, value });
        }
    }
    Ok(())
}

/// Rows of one step of a scan. Reuse it: it keeps its memory.
#[derive(Default, Debug)]
pub struct RowBatch {
    records: Batch,
    /// Values that do not stand in their records: older ones, and long ones.
    aside: Vec<u8>,
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    record: u32,
    value: ValuePlace,
}

#[derive(Clone, Copy, Debug)]
enum ValuePlace {
    Record,
    /// From where to where in `aside`.
    Aside(usize, usize),
}

impl RowBatch {
    pub fn new() -> RowBatch {
        RowBatch::default()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of memory that it keeps.
    pub fn capacity(&self) -> usize {
        self.records.capacity() + self.aside.capacity() + self.items.capacity() * size_of::<Item>()
    }

    /// Key and value.
    pub fn get(&self, index: usize) -> (&[u8], &[u8]) {
        let item = self.items[index];
        let record = self.records.get(item.record as usize);
        let value = match item.value {
            ValuePlace::Record => &record.value[HEAD_BYTES..],
            ValuePlace::Aside(from, to) => &self.aside[from..to],
        };
        (record.key, value)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The value of the only row, if it is a long one: without a copy. The batch has none afterwards.
    pub fn take_long(&mut self) -> Option<Vec<u8>> {
        match self.items[..] {
            [Item { value: ValuePlace::Aside(0, to), .. }] if to == self.aside.len() && to as u64 > LONG_ALONE => {
                self.items[0].value = ValuePlace::Aside(0, 0);
                Some(std::mem::take(&mut self.aside))
            }
            _ => None,
        }
    }

    fn clear(&mut self) {
        self.aside.clear();
        self.aside.shrink_to(LONG_ALONE as usize);
        self.items.clear();
    }
}
