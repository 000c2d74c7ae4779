//! Plain reads and scans: which version of a row a transaction sees.
//!
//! Hard part: the record, its creator's status and the older versions are read one after the other, without a lock. Every change and every undo in between
//! gives the record another version word. So "there is no older version" and "decided long ago" count only if the word is unchanged; otherwise the lookup
//! starts again (EN-15).
//!
//! An index entry has a creator of its own, which need not be the creator of the row's visible version. Once a transaction has written a row over a version
//! that its snapshot does not see, the row's newest entries are the visible ones, although another transaction created them. A scan of an index therefore knows
//! the map of its rows and decides such entries by the row (EN-26).

use std::ops::Bound;
use std::sync::Arc;

use btree::{Batch, LeafHint, ScanState};
use pager::{Lsn, TxnId};
use stdx::prng::Prng;

use crate::error::{Error, Result};
use crate::keyspace::record::Body;
use crate::rows::lock_table::{Blocker, Strength};
use crate::rows::row::{HEAD_BYTES, RowHead, RowValue};
use crate::rows::state::Rows;
use crate::rows::status_table::Status;
use crate::rows::transaction::Transaction;
use crate::rows::versions::Descent;
use crate::rows::visibility::{Snapshot, Visibility};
use crate::store::maps::RowMap;
use crate::store::trees::MapId;

/// An index over the rows of another map.
#[derive(Clone, Copy)]
pub struct IndexOf {
    /// The map of the rows.
    pub rows: MapId,
    /// Returns the row's key from an entry's key and value.
    pub row_key: for<'e> fn(&'e [u8], &'e [u8]) -> &'e [u8],
}

impl Rows {
    pub(super) fn is_unchanged(&self, map: &RowMap, key: &[u8], word: u64) -> Result<bool> {
        let found = map.tree.get(key, &mut Vec::new())?;
        Ok(found.present && found.word == word)
    }

    /// Appends the value that `snapshot` sees of a record that was found with `word`. Returns whether there is a row; the outer `None` if the record has
    /// changed meanwhile.
    fn resolve(
        &self,
        map: &RowMap,
        key: &[u8],
        (word, record): (u64, &[u8]),
        (snapshot, me): (Snapshot, Option<TxnId>),
        durability_lsn: &mut Lsn,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        let (head, value) = RowValue::parse(record)?;
        match self.visibility_in(map, head.creator, snapshot, me) {
            Visibility::Yes(lsn) => *durability_lsn = (*durability_lsn).max(lsn),
            Visibility::IfUnchanged if !self.is_unchanged(map, key, word)? => return Ok(None),
            Visibility::IfUnchanged => {}
            Visibility::No => return self.older(map, key, (word, head.creator), (snapshot, me), durability_lsn, out),
        }
        if !head.is_delete_marked {
            self.load_for(snapshot, value, out)?;
        }
        Ok(Some(!head.is_delete_marked))
    }

    /// Appends a value to `out`. Fails if its segments were replaced since and are not kept for a snapshot.
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

    /// Does the same for a value that a snapshot sees. Its segments are kept until the snapshot ends or is given up.
    fn load_for(&self, snapshot: Snapshot, value: RowValue<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.load(value, out)
            .map_err(|error| if self.snapshots.is_expired(snapshot.lsn) { Error::SnapshotTooOld } else { error })
    }

    fn older(
        &self,
        map: &RowMap,
        key: &[u8],
        (word, creator): (u64, TxnId),
        (snapshot, me): (Snapshot, Option<TxnId>),
        durability_lsn: &mut Lsn,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        // A version that was replaced was committed, so that of a creator decided long ago is visible.
        let sees = |creator| self.visibility_in(map, creator, snapshot, me) != Visibility::No;
        let found = self.descend(map, key, creator, sees)?.found;
        if self.snapshots.is_expired(snapshot.lsn) {
            return Err(Error::SnapshotTooOld);
        }
        let Some(record) = found else {
            return Ok(if self.is_unchanged(map, key, word)? { Some(false) } else { None });
        };
        let (head, value) = RowValue::parse(&record)?;
        if let Visibility::Yes(lsn) = self.visibility_in(map, head.creator, snapshot, me) {
            *durability_lsn = (*durability_lsn).max(lsn);
        }
        if !head.is_delete_marked {
            self.load_for(snapshot, value, out)?;
        }
        Ok(Some(!head.is_delete_marked))
    }

    /// Goes down the versions of a row (`VersionStore::descend`), and counts the steps.
    pub(super) fn descend(
        &self,
        map: &RowMap,
        key: &[u8],
        creator: TxnId,
        stops: impl Fn(TxnId) -> bool,
    ) -> Result<Descent> {
        let way = self.versions.descend(map.id, key, creator, stops)?;
        self.store.metrics.version_steps.add(way.steps);
        Ok(way)
    }
}

impl Transaction {
    /// Appends the row's value to `out`, as the transaction's snapshot or the transaction itself has it. Returns false if there is no row.
    pub fn get(&mut self, map: MapId, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        self.get_located(map, key, LeafHint::Unknown, out)
    }

    /// Appends one hint for each key to `hints`: where its row is, for `get_located`. The keys are looked up side by side, so their cache misses overlap. Reads no page from the disk.
    pub fn locate(&self, map: MapId, keys: &[&[u8]], hints: &mut Vec<LeafHint>) -> Result<()> {
        self.rows.map(map)?.tree.locate_leaves(keys, hints);
        Ok(())
    }

    /// As `get`, with a hint where the row is.
    pub fn get_located(&mut self, map: MapId, key: &[u8], hint: LeafHint, out: &mut Vec<u8>) -> Result<bool> {
        self.alive()?;
        self.note_key(map, key);
        let view = (self.seen(), self.id());
        let map = self.rows.map(map)?;
        self.get_seen(&map, (key, hint), view, out)
    }

    fn get_seen(
        &mut self,
        map: &RowMap,
        (key, mut hint): (&[u8], LeafHint),
        view: (Snapshot, Option<TxnId>),
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        loop {
            self.record.clear();
            let found = match map.tree.get_at_hint(std::mem::take(&mut hint), key, &mut self.record)? {
                Some(found) => found,
                None => map
                    .tree
                    .get_in_mode(self.wait_mode.read_mode, key, &mut self.record)
                    .map_err(|error| self.wait_mode.note(error))?,
            };
            if !found.present {
                return Ok(false);
            }
            let seen = self.rows.resolve(map, key, (found.word, &self.record), view, &mut self.durability_lsn, out)?;
            if let Some(present) = seen {
                return Ok(present);
            }
        }
    }

    /// Appends the newest committed value, or the transaction's own. The inner `Err` is an open transaction that has changed the row, unless the caller has
    /// locked no more than the row's key and the change keeps it (EN-58).
    pub(crate) fn newest(
        &mut self,
        map: &RowMap,
        key: &[u8],
        strength: Strength,
        out: &mut Vec<u8>,
    ) -> Result<Result<bool, Blocker>> {
        let me = self.id();
        let mut record = Vec::new();
        self.newest_creator = None;
        loop {
            record.clear();
            // Read before the record: undo of transactions below it was complete by then.
            let low = self.rows.statuses.low();
            let found = map
                .tree
                .get_in_mode(self.wait_mode.read_mode, key, &mut record)
                .map_err(|error| self.wait_mode.note(error))?;
            if !found.present {
                return Ok(Ok(false));
            }
            let (head, value) = RowValue::parse(&record)?;
            if Some(head.creator) != me && (head.creator >= low || self.rows.statuses.is_loser(head.creator)) {
                match self.rows.statuses.status(head.creator) {
                    Status::Active if strength == Strength::KeyShared && head.keeps_key => {
                        match self.version_before(map, key, head.creator, out)? {
                            true => return Ok(Ok(true)),
                            false => continue,
                        }
                    }
                    Status::Active => return Ok(Err(Blocker { txn: head.creator, strength: head.strength() })),
                    Status::Committed(lsn) => self.durability_lsn = self.durability_lsn.max(lsn),
                    Status::Aborted => continue,
                    Status::Past if !self.rows.is_unchanged(map, key, found.word)? => continue,
                    Status::Past => {}
                }
            }
            self.newest_creator = Some(head.creator);
            if !head.is_delete_marked {
                // It cannot be replaced: the caller has locked the row.
                self.rows.load(value, out)?;
            }
            return Ok(Ok(!head.is_delete_marked));
        }
    }

    /// Appends the committed value that an open transaction has replaced. Returns false if that transaction has ended meanwhile.
    fn version_before(&mut self, map: &RowMap, key: &[u8], creator: TxnId, out: &mut Vec<u8>) -> Result<bool> {
        let start = out.len();
        let Some(record) = self.rows.versions.replaced(map.id, key, creator)? else { return Ok(false) };
        let (head, value) = RowValue::parse(&record)?;
        let loaded = self.rows.load(value, out);
        // Once that transaction has ended, the segments of a long value may be gone.
        if !self.rows.statuses.is_open(creator) {
            out.truncate(start);
            return Ok(false);
        }
        loaded?;
        if let Status::Committed(lsn) = self.rows.statuses.status(head.creator) {
            self.durability_lsn = self.durability_lsn.max(lsn);
        }
        self.newest_creator = Some(head.creator);
        Ok(true)
    }

    /// Begins a scan of a range of rows, as the snapshot has them.
    pub fn scan(&mut self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>, backward: bool) -> Result<Cursor> {
        self.cursor(map, from, to, backward, None, false)
    }

    /// Does the same for a map that is an index of `of`. The scan returns the entries of exactly those row versions that `get` and `scan` of the rows' map
    /// return (EN-26). A key may come twice, with the entries of two rows: the snapshot's row, and one that the transaction has written itself.
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

    /// Returns true if the transaction has written a row of the map over a version that its snapshot did not see. Only then do `scan_index` and `scan` or `get`
    /// of an index differ.
    pub fn has_overwritten_unseen(&self, map: MapId) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.unseen.contains(&map))
    }

    /// Returns whether what the scan reads is part of the read set: a scan of the newest versions goes on to lock what it reads.
    fn notes_reads_of(&self, cursor: &Cursor) -> bool {
        self.validates_reads() && cursor.snapshot.is_some()
    }

    /// Returns true if the row's newest version is the transaction's own, a deletion included.
    fn owns(&mut self, map: &RowMap, key: &[u8]) -> Result<bool> {
        let Some(me) = self.id() else { return Ok(false) };
        let mut record = Vec::new();
        let found = map
            .tree
            .get_in_mode(self.wait_mode.read_mode, key, &mut record)
            .map_err(|error| self.wait_mode.note(error))?;
        Ok(found.present && RowHead::parse(&record)?.0.creator == me)
    }

    /// Begins a scan of the keys of a range whose rows may exist now, those that other open transactions are inserting or changing included. It is for callers
    /// that go on to `lock` each key. Values are hints: long ones are left out, and so are those of records of other undecided transactions.
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
        // A statement's rows are those of one moment, even if it continues later.
        let snapshot = if is_current { None } else { Some(self.seen()) };
        Ok(Cursor { map, span: ScanState::new(from, to, is_backward), is_backward, index, snapshot })
    }
}

/// A scan under way. It holds no lock or latch between calls.
pub struct Cursor {
    map: Arc<RowMap>,
    span: ScanState,
    is_backward: bool,
    index: Option<IndexOf>,
    /// `None`: the newest versions.
    snapshot: Option<Snapshot>,
}

impl Cursor {
    /// Replaces `out` by the next rows: those of one leaf, or fewer if they are long. Returns false, with no rows, at the end.
    pub fn next(&mut self, txn: &mut Transaction, out: &mut RowBatch) -> Result<bool> {
        txn.alive()?;
        out.clear();
        while out.is_empty() && !self.span.is_done() {
            let low = txn.rows.statuses.low();
            let before = txn.notes_reads_of(self).then(|| self.span.clone());
            let Cursor { map, span, .. } = self;
            let drawn = span.next_batch(&map.tree, txn.wait_mode.read_mode, &mut out.records);
            drawn.map_err(|error| txn.wait_mode.note_range(error, map, span))?;
            match self.snapshot {
                Some(snapshot) => {
                    if let Some(last) = self.take_seen((snapshot, LONG_ALONE), txn, out)? {
                        self.span.resume_after(out.records.get(last).key);
                    }
                }
                None => take_current(txn, low, out)?,
            }
            if let Some(before) = before {
                self.note_passed(txn, before);
            }
        }
        Ok(!out.is_empty())
    }

    /// Notes the part of the range that the scan has passed since it was at `before`, as read.
    fn note_passed(&self, txn: &mut Transaction, before: ScanState) {
        let (from, to) = before.bounds();
        let rest = (!self.span.is_done()).then(|| self.span.clone().bounds());
        match (rest, self.is_backward) {
            (None, _) => txn.note_range(self.map.id, &from, to.as_deref()),
            (Some((_, rest)), true) => {
                txn.note_range(self.map.id, &rest.unwrap_or_default(), to.as_deref());
            }
            (Some((rest, _)), false) => txn.note_range(self.map.id, &from, Some(&rest)),
        }
    }

    /// Does the same for a scan of the newest versions, with at most `most` rows. Before it returns, it locks the range from the scan's position to the last
    /// row, or to the end of the scan if there are no more rows, as `Transaction::lock_range` does. So an unfinished scan has locked only the part of its range
    /// that it has passed.
    pub fn next_locked(&mut self, txn: &mut Transaction, out: &mut RowBatch, most: usize) -> Result<bool> {
        txn.alive()?;
        let (from, to) = self.span.clone().bounds();
        // Locked up to this key; the inner `None`: to the end.
        let mut locked: Option<Option<Vec<u8>>> = None;
        loop {
            // Read once to learn how far to lock, and again once that is locked (EN-17).
            let mut span = self.span.clone();
            out.clear();
            while out.is_empty() && !span.is_done() {
                let low = txn.rows.statuses.low();
                let drawn = span.next_batch(&self.map.tree, txn.wait_mode.read_mode, &mut out.records);
                drawn.map_err(|error| txn.wait_mode.note_range(error, &self.map, &span))?;
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

    /// Reads the rows of a random leaf. The scan's position does not change.
    pub(super) fn draw(&self, txn: &mut Transaction, prng: &mut Prng, out: &mut RowBatch) -> Result<()> {
        out.clear();
        let low = txn.rows.statuses.low();
        self.map.tree.random_leaf(prng, &mut out.records)?;
        match self.snapshot {
            Some(snapshot) => self.take_seen((snapshot, u64::MAX), txn, out).map(drop),
            None => take_current(txn, low, out),
        }
    }

    /// Collects the rows that the snapshot sees; nearly all of them are in the tree. Returns the index of the last record read if long values have filled the
    /// batch.
    fn take_seen(
        &self,
        (snapshot, most): (Snapshot, u64),
        txn: &mut Transaction,
        out: &mut RowBatch,
    ) -> Result<Option<usize>> {
        let rows = txn.rows.clone();
        let view = (snapshot, txn.id());
        let index_of = self.index.filter(|index| txn.has_overwritten_unseen(index.rows));
        let RowBatch { records, outside, items } = out;
        for (index, record) in records.iter().enumerate() {
            let head = RowHead::parse(record.value)?.0;
            let is_plain = !head.is_delete_marked && !head.is_long;
            if is_plain && let Visibility::Yes(lsn) = rows.visibility_in(&self.map, head.creator, snapshot, view.1) {
                txn.durability_lsn = txn.durability_lsn.max(lsn);
                items.push(Item { record: index as u32, value: ValuePlace::Record });
                continue;
            }
            // A long value comes alone, so that the caller can take it without a copy (`RowBatch::take_long`).
            if let RowValue::Segments { len, .. } = RowValue::parse(record.value)?.1
                && len > most
                && !items.is_empty()
            {
                return Ok(index.checked_sub(1));
            }
            let start = outside.len();
            let found = (record.word, record.value);
            let mut present =
                match rows.resolve(&self.map, record.key, found, view, &mut txn.durability_lsn, outside)? {
                    Some(present) => present,
                    None => txn.get_seen(&self.map, (record.key, LeafHint::Unknown), view, outside)?,
                };
            let seen = Item { record: index as u32, value: ValuePlace::Outside(start, outside.len()) };
            if let Some(of) = index_of
                && rows.visibility_in(&self.map, head.creator, snapshot, view.1) == Visibility::No
            {
                let row_map = rows.map(of.rows)?;
                let old_key = present.then(|| (of.row_key)(record.key, &outside[start..]).to_vec());
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
                    if let Status::Committed(lsn) = rows.statuses.status(head.creator) {
                        txn.durability_lsn = txn.durability_lsn.max(lsn);
                    }
                    // Two rows under one key: in the order of their own keys, as in an index of InnoDB.
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
            if outside.len() as u64 > most && index + 1 < records.len() {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

/// A value longer than this is the last of its batch.
const LONG_ALONE: u64 = 1 << 20;

/// Collects everything that may be a row. `low` was read before the records, so undo of uncommitted deletions below it was complete by then.
fn take_current(txn: &Transaction, low: TxnId, out: &mut RowBatch) -> Result<()> {
    for (index, record) in out.records.iter().enumerate() {
        let head = RowHead::parse(record.value)?.0;
        // A record whose transaction is being rolled back counts as undecided: the record that was read may not be the one that is restored.
        let is_decided = Some(head.creator) == txn.id()
            || (head.creator < low && !txn.rows.statuses.is_loser(head.creator))
            || matches!(txn.rows.statuses.status(head.creator), Status::Committed(_));
        if !head.is_delete_marked || !is_decided {
            let value = if head.is_long || !is_decided { ValuePlace::Outside(0, 0) } else { ValuePlace::Record };
            out.items.push(Item { record: index as u32, value });
        }
    }
    Ok(())
}

/// The rows of one step of a scan. Reuse it, since it keeps its memory.
#[derive(Default, Debug)]
pub struct RowBatch {
    records: Batch,
    /// Values that are not in the batch's records: older ones, and long ones.
    outside: Vec<u8>,
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
    /// A range of `outside`.
    Outside(usize, usize),
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

    /// Returns the bytes of memory that it keeps.
    pub fn capacity(&self) -> usize {
        self.records.capacity() + self.outside.capacity() + self.items.capacity() * size_of::<Item>()
    }

    /// Returns key and value.
    pub fn get(&self, index: usize) -> (&[u8], &[u8]) {
        let item = self.items[index];
        let record = self.records.get(item.record as usize);
        let value = match item.value {
            ValuePlace::Record => &record.value[HEAD_BYTES..],
            ValuePlace::Outside(from, to) => &self.outside[from..to],
        };
        (record.key, value)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Takes the value of the only row, if it is a long one, without a copy. The batch's value is empty afterwards.
    pub fn take_long(&mut self) -> Option<Vec<u8>> {
        match self.items[..] {
            [Item { value: ValuePlace::Outside(0, to), .. }] if to == self.outside.len() && to as u64 > LONG_ALONE => {
                self.items[0].value = ValuePlace::Outside(0, 0);
                Some(std::mem::take(&mut self.outside))
            }
            _ => None,
        }
    }

    fn clear(&mut self) {
        self.outside.clear();
        self.outside.shrink_to(LONG_ALONE as usize);
        self.items.clear();
    }
}
