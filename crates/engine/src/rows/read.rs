//! Reading: which version of a row a transaction sees.
//!
//! Hard part: the record, the slot of its writer and the old versions are looked at one after the other, without a lock. Each way they may have moved meanwhile shows in the record's version
//! word: it is another one as soon as anybody has written or taken back. So "there is no older version" and "decided long ago" count only if the word still stands; else it
//! starts again (M3).

use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;

use btree::Batch;
use pager::{Lsn, TxnId};

use crate::error::{Error, Result};
use crate::keyspace::record::Body;
use crate::rows::maps::Map;
use crate::rows::slot::Status;
use crate::rows::transaction::{Snapshot, Transaction};
use crate::rows::version::{Head, Stored};
use crate::rows::{MapId, Rows};

/// Whether a version is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// Yes, and durable at this position.
    Yes(Lsn),
    No,
    /// Yes, if the record still is what it was.
    IfItStands,
}

impl Rows {
    fn sight(&self, writer: TxnId, snapshot: Snapshot, me: Option<TxnId>) -> Sight {
        if writer < snapshot.low || Some(writer) == me {
            return Sight::Yes(0);
        }
        match self.slots.status(writer) {
            Status::Committed(lsn) if lsn <= snapshot.lsn => Sight::Yes(lsn),
            Status::Committed(_) | Status::Active | Status::Aborted => Sight::No,
            Status::Past => Sight::IfItStands,
        }
    }

    fn stands(&self, map: &Map, key: &[u8], word: u64) -> Result<bool> {
        let found = map.tree.get(key, &mut Vec::new())?;
        Ok(found.present && found.word == word)
    }

    /// The value that `snapshot` sees of a record that was found with `word`; None: no row. The outer None: the record has changed.
    fn resolve(
        &self,
        map: &Map,
        key: &[u8],
        (word, record): (u64, &[u8]),
        (snapshot, me): (Snapshot, Option<TxnId>),
        gate: &mut Lsn,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        let (head, value) = Stored::parse(record)?;
        match self.sight(head.writer, snapshot, me) {
            Sight::Yes(lsn) => *gate = (*gate).max(lsn),
            Sight::IfItStands if !self.stands(map, key, word)? => return Ok(None),
            Sight::IfItStands => {}
            Sight::No => return self.older(map, key, (word, head.writer), (snapshot, me), gate, out),
        }
        if !head.is_ghost {
            self.load_for(snapshot, value, out)?;
        }
        Ok(Some(!head.is_ghost))
    }

    /// Appends a value to `out`. Of segments that somebody has replaced since, and that nobody's snapshot keeps, it makes an error.
    pub(crate) fn load(&self, value: Stored<'_>, out: &mut Vec<u8>) -> Result<()> {
        match value {
            Stored::Here(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Stored::Segments { len, version } => {
                let base = out.len();
                let body = Body::Segments { len, version };
                self.store.read_payload(&body, 0..len, out).inspect_err(|_| out.truncate(base))
            }
        }
    }

    /// What a snapshot sees stays until the snapshot goes, or is given up.
    fn load_for(&self, snapshot: Snapshot, value: Stored<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.load(value, out)
            .map_err(|error| if self.snapshots.is_expired(snapshot.lsn) { Error::SnapshotTooOld } else { error })
    }

    fn older(
        &self,
        map: &Map,
        key: &[u8],
        (word, writer): (u64, TxnId),
        (snapshot, me): (Snapshot, Option<TxnId>),
        gate: &mut Lsn,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        let seen = Cell::new(0);
        let sees = |writer| match self.sight(writer, snapshot, me) {
            Sight::Yes(lsn) => {
                seen.set(lsn);
                true
            }
            // Replaced, so it was committed.
            Sight::IfItStands => true,
            Sight::No => false,
        };
        let found = self.versions.find(map.id, key, writer, sees)?;
        if self.snapshots.is_expired(snapshot.lsn) {
            return Err(Error::SnapshotTooOld);
        }
        let Some(record) = found else {
            return Ok(if self.stands(map, key, word)? { Some(false) } else { None });
        };
        *gate = (*gate).max(seen.get());
        let (head, value) = Stored::parse(&record)?;
        if !head.is_ghost {
            self.load_for(snapshot, value, out)?;
        }
        Ok(Some(!head.is_ghost))
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

    fn get_seen(&mut self, map: &Map, key: &[u8], view: (Snapshot, Option<TxnId>), out: &mut Vec<u8>) -> Result<bool> {
        let mut record = Vec::new();
        loop {
            record.clear();
            let found = map.tree.get(key, &mut record)?;
            if !found.present {
                return Ok(false);
            }
            let seen = self.rows.resolve(map, key, (found.word, &record), view, &mut self.gate, out)?;
            if let Some(present) = seen {
                return Ok(present);
            }
        }
    }

    /// The newest committed value, or the transaction's own. The inner Err names an open transaction that has written the row.
    pub(crate) fn newest(&mut self, map: &Map, key: &[u8], out: &mut Vec<u8>) -> Result<Result<bool, TxnId>> {
        let me = self.id();
        let mut record = Vec::new();
        loop {
            record.clear();
            // Before the record is read: what is below was put back before that, if it was not committed.
            let low = self.rows.slots.low();
            let found = map.tree.get(key, &mut record)?;
            if !found.present {
                return Ok(Ok(false));
            }
            let (head, value) = Stored::parse(&record)?;
            if Some(head.writer) != me && head.writer >= low {
                match self.rows.slots.status(head.writer) {
                    Status::Active => return Ok(Err(head.writer)),
                    Status::Committed(lsn) => self.gate = self.gate.max(lsn),
                    Status::Aborted => continue,
                    Status::Past if !self.rows.stands(map, key, found.word)? => continue,
                    Status::Past => {}
                }
            }
            if !head.is_ghost {
                // Nobody replaces it: the caller has locked the row.
                self.rows.load(value, out)?;
            }
            return Ok(Ok(!head.is_ghost));
        }
    }

    /// The rows of a range as the snapshot has them.
    pub fn scan(&mut self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>, backward: bool) -> Result<Cursor> {
        self.cursor(map, from, to, backward, false)
    }

    /// The keys of a range whose rows may be there now, those that others are just putting in or changing included. For whoever locks each of them
    /// next and looks at what `lock` returns; values are hints, and long ones left out.
    pub fn scan_current(&mut self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>, backward: bool) -> Result<Cursor> {
        self.cursor(map, from, to, backward, true)
    }

    fn cursor(
        &mut self,
        map: MapId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        is_backward: bool,
        is_current: bool,
    ) -> Result<Cursor> {
        self.alive()?;
        let map = self.rows.map(map)?;
        let (from, to) = (from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec));
        // A statement's rows are those of one moment, also if it goes on later.
        let snapshot = if is_current { None } else { Some(self.seen()) };
        Ok(Cursor { map, from, to, is_backward, snapshot, is_done: false, batch: Batch::new() })
    }
}

/// A scan under way. It holds nothing between calls.
pub struct Cursor {
    map: Arc<Map>,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    is_backward: bool,
    /// None: what is there now.
    snapshot: Option<Snapshot>,
    is_done: bool,
    batch: Batch,
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl Cursor {
    /// Replaces `out` by the next rows, some tens of them; false, and nothing, at the end.
    pub fn next(&mut self, txn: &mut Transaction, out: &mut RowBatch) -> Result<bool> {
        txn.alive()?;
        out.clear();
        while out.is_empty() && !self.is_done {
            self.fetch()?;
            let batch = std::mem::take(&mut self.batch);
            for record in batch.iter() {
                self.take(txn, record, out)?;
            }
            self.batch = batch;
        }
        Ok(!out.is_empty())
    }

    /// The records of the next leaf.
    fn fetch(&mut self) -> Result<()> {
        let (from, to) = (as_slice(&self.from), as_slice(&self.to));
        let tree = &self.map.tree;
        let mut scan = if self.is_backward { tree.scan_back(from, to) } else { tree.scan(from, to) };
        if !scan.next_batch(&mut self.batch)? {
            self.is_done = true;
            return Ok(());
        }
        let last = Bound::Excluded(self.batch.get(self.batch.len() - 1).key.to_vec());
        if self.is_backward {
            self.to = last;
        } else {
            self.from = last;
        }
        Ok(())
    }

    fn take(&self, txn: &mut Transaction, record: btree::Entry<'_>, out: &mut RowBatch) -> Result<()> {
        let start = out.begin(record.key);
        let Some(snapshot) = self.snapshot else {
            let (head, value) = Head::parse(record.value)?;
            let value = if head.is_long { &[] } else { value };
            let is_open = Some(head.writer) != txn.id() && txn.rows.slots.is_open(head.writer);
            out.bytes.extend_from_slice(value);
            out.end(start, is_open || !head.is_ghost);
            return Ok(());
        };
        let view = (snapshot, txn.id());
        let rows = txn.rows.clone();
        let found = (record.word, record.value);
        let present = match rows.resolve(&self.map, record.key, found, view, &mut txn.gate, &mut out.bytes)? {
            Some(present) => present,
            None => txn.get_seen(&self.map, record.key, view, &mut out.bytes)?,
        };
        out.end(start, present);
        Ok(())
    }
}

/// Rows of one step of a scan. Reuse it: it keeps its memory.
#[derive(Default, Debug)]
pub struct RowBatch {
    bytes: Vec<u8>,
    /// Where each row's key begins, its value begins, and it ends.
    items: Vec<[usize; 3]>,
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

    /// Key and value.
    pub fn get(&self, index: usize) -> (&[u8], &[u8]) {
        let [key, value, end] = self.items[index];
        (&self.bytes[key..value], &self.bytes[value..end])
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|index| self.get(index))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }

    fn begin(&mut self, key: &[u8]) -> [usize; 2] {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        [start, self.bytes.len()]
    }

    fn end(&mut self, [key, value]: [usize; 2], is_row: bool) {
        if is_row {
            self.items.push([key, value, self.bytes.len()]);
        } else {
            self.bytes.truncate(key);
        }
    }
}
