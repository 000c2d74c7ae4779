//! Pending entries of a group: delivered, and not yet acknowledged.
//!
//! ```text
//!   kind 26   group u32 | first id   ->  items: id, consumer varint, delivery time varint, deliveries varint       by id
//!   kind 27   group u32 | consumer u32 | first id   ->  items: id                                                  by consumer
//!             an id is ms varint, seq varint, each less that of the item before, as in a stream's chunk
//! ```
//! Items are sorted by id within a record and over the records of a list, each of which has at most about `CHUNK_MAX` bytes. A change of many items that are close to each
//! other, as XREADGROUP makes it, writes few records.

use std::ops::{Bound, Range};

use btree::{Batch, ReadMode, ScanState};

use crate::error::{Error, Result};
use crate::keyspace::key::{self, OWNED, PENDING, TreeKey};
use crate::keyspace::key_txn::{KeyPlace, KeyTransaction};
use crate::keyspace::packed::{push_varint, take_varint};
use crate::keyspace::streams::chunk::CHUNK_MAX;
use crate::keyspace::streams::stream::id_of_key;
use crate::keyspace::streams::stream_id::StreamId;

/// An entry that a consumer has got and not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pending {
    pub id: StreamId,
    /// The number of the consumer in its group.
    pub consumer: u32,
    /// When it was delivered for the last time, milliseconds since 1970.
    pub delivered_ms: u64,
    pub deliveries: u64,
}

/// A sorted list of items: the pending entries of a group, or their ids of a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PendingList {
    version: u64,
    group: u32,
    consumer: Option<u32>,
}

impl PendingList {
    pub fn of_group(version: u64, group: u32) -> PendingList {
        PendingList { version, group, consumer: None }
    }

    pub fn of_consumer(version: u64, group: u32, consumer: u32) -> PendingList {
        PendingList { version, group, consumer: Some(consumer) }
    }

    fn prefix(&self) -> Vec<u8> {
        let mut prefix = self.group.to_be_bytes().to_vec();
        prefix.extend(self.consumer.iter().flat_map(|consumer| consumer.to_be_bytes()));
        prefix
    }

    fn kind(&self) -> u8 {
        if self.consumer.is_some() { OWNED } else { PENDING }
    }

    fn key(&self, id: StreamId) -> TreeKey {
        key::sub_element(self.version, self.kind(), &[&self.prefix()[..], &id.to_bytes()].concat())
    }

    /// Returns bounds of all records of the list.
    pub fn bounds(&self) -> (TreeKey, Vec<u8>) {
        let from = key::sub_element(self.version, self.kind(), &self.prefix());
        let to = key::after_prefix(from.as_slice()).expect("a kind is below 255");
        (from, to)
    }
}

/// Appends an item. `before` is the id of the item before.
fn push_item(out: &mut Vec<u8>, before: StreamId, item: &Pending, has_details: bool) {
    let ms = item.id.ms - before.ms;
    push_varint(out, ms);
    push_varint(out, if ms == 0 { item.id.seq - before.seq } else { item.id.seq });
    if has_details {
        push_varint(out, item.consumer.into());
        push_varint(out, item.delivered_ms);
        push_varint(out, item.deliveries);
    }
}

/// Returns the items of a record. `base` is the id in its key.
pub(crate) fn parse_items(base: StreamId, mut bytes: &[u8], has_details: bool) -> Result<Vec<Pending>> {
    let (mut items, mut before) = (Vec::new(), base);
    let rest = &mut bytes;
    while !rest.is_empty() {
        let mut take = || {
            let (ms, seq) = (take_varint(rest)?, take_varint(rest)?);
            let seq = if ms == 0 { before.seq.checked_add(seq)? } else { seq };
            let mut item = Pending { id: StreamId { ms: before.ms.checked_add(ms)?, seq }, ..Pending::default() };
            if has_details {
                item.consumer = u32::try_from(take_varint(rest)?).ok()?;
                (item.delivered_ms, item.deliveries) = (take_varint(rest)?, take_varint(rest)?);
            }
            Some(item)
        };
        let item = take().ok_or_else(|| Error::corrupt("pending entries of unknown form"))?;
        before = item.id;
        items.push(item);
    }
    Ok(items)
}

/// A record of a list, and where the next one begins.
#[derive(Default)]
struct RecordAround {
    base: Option<StreamId>,
    items: Vec<Pending>,
    until: Option<StreamId>,
}

/// A walk over a list, from an id on.
pub struct PendingWalk {
    list: PendingList,
    from: StreamId,
    scan: ScanState,
    batch: Batch,
    record: usize,
    items: std::vec::IntoIter<Pending>,
}

impl PendingWalk {
    /// Returns the next item. Items of a consumer have only their id.
    pub fn next(&mut self, txn: &KeyTransaction<'_>) -> Result<Option<Pending>> {
        loop {
            for item in self.items.by_ref() {
                if item.id >= self.from {
                    return Ok(Some(item));
                }
            }
            if self.record == self.batch.len() {
                self.record = 0;
                if !self.scan.next_batch(&txn.keyspace.store.records, ReadMode::MayRead, &mut self.batch)? {
                    return Ok(None);
                }
            }
            let record = self.batch.get(self.record);
            self.record += 1;
            let base = id_of_key(record.key)?;
            let payload = txn.sub_payload(record.value)?;
            self.items = parse_items(base, &payload, self.list.consumer.is_none())?.into_iter();
        }
    }
}

impl KeyTransaction<'_> {
    /// Begins a walk over the items from an id on.
    pub(crate) fn pending_from(&self, list: PendingList, from: StreamId) -> Result<PendingWalk> {
        let (first, end) = list.bounds();
        let start = self.record_at(&list, from)?.map_or_else(|| list.key(from), |(key, _)| key);
        debug_assert!(start.as_slice() >= first.as_slice());
        let scan = ScanState::new(Bound::Included(start.as_slice()), Bound::Excluded(&end), false);
        let items = Vec::new().into_iter();
        Ok(PendingWalk { list, from, scan, batch: Batch::new(), record: 0, items })
    }

    /// Returns the last item.
    pub(crate) fn last_of(&self, list: PendingList) -> Result<Option<Pending>> {
        let (from, end) = list.bounds();
        let Some((key, payload)) = self.edge_record(from.as_slice(), &end, true)? else { return Ok(None) };
        Ok(parse_items(id_of_key(key.as_slice())?, &payload, list.consumer.is_none())?.pop())
    }

    /// Returns the last record whose items begin at an id or before.
    fn record_at(&self, list: &PendingList, id: StreamId) -> Result<Option<(TreeKey, Vec<u8>)>> {
        let (from, _) = list.bounds();
        let to = [list.key(id).as_slice(), &[0]].concat();
        self.edge_record(from.as_slice(), &to, true)
    }

    /// Returns the first or the last record between two keys.
    fn edge_record(&self, from: &[u8], to: &[u8], is_last: bool) -> Result<Option<(TreeKey, Vec<u8>)>> {
        let records = &self.keyspace.store.records;
        let (from, to) = (Bound::Included(from), Bound::Excluded(to));
        let scan = if is_last { records.scan_back(from, to) } else { records.scan(from, to) };
        let mut batch = Batch::new();
        if !scan.with_limit(1).next_batch(&mut batch)? {
            return Ok(None);
        }
        let record = batch.get(0);
        Ok(Some((TreeKey::from_bytes(record.key), self.sub_payload(record.value)?)))
    }

    /// Applies changes, which are sorted by their different ids: an item to put, or nothing to remove the id.
    pub(crate) fn change_pending(
        &mut self,
        of: &KeyPlace,
        list: PendingList,
        changes: &[(StreamId, Option<Pending>)],
    ) -> Result<()> {
        let mut rest = changes;
        while let Some((first, _)) = rest.first() {
            let around = self.record_around(list, *first)?;
            let count = rest.iter().take_while(|(id, _)| around.until.is_none_or(|until| *id < until)).count();
            let (now, later) = rest.split_at(count);
            rest = later;
            let appends = around.items.last().map(|last| last.id) < now.first().map(|(id, _)| *id);
            self.put_items(of, list, around.base, &merge(&around.items, now), appends)?;
        }
        Ok(())
    }

    /// Returns the record that an id belongs to, or would belong to.
    fn record_around(&self, list: PendingList, id: StreamId) -> Result<RecordAround> {
        let (from, end) = list.bounds();
        let here = match self.record_at(&list, id)? {
            None => self.edge_record(from.as_slice(), &end, false)?,
            here => here,
        };
        let Some((key, payload)) = here else { return Ok(RecordAround::default()) };
        let base = id_of_key(key.as_slice())?;
        let items = parse_items(base, &payload, list.consumer.is_none())?;
        let next = self.edge_record(&[key.as_slice(), &[0]].concat(), &end, false)?;
        let until = next.map(|(key, _)| id_of_key(key.as_slice())).transpose()?;
        Ok(RecordAround { base: Some(base), items, until })
    }

    /// Returns the items of some ids, which are sorted.
    pub(crate) fn pending_at(
        &self,
        list: PendingList,
        ids: impl Iterator<Item = StreamId>,
    ) -> Result<Vec<Option<Pending>>> {
        let (mut found, mut around) = (Vec::new(), None);
        for id in ids {
            let covers = |around: &RecordAround| around.until.is_none_or(|until| id < until);
            let record = match around.take().filter(covers) {
                Some(record) => record,
                None => self.record_around(list, id)?,
            };
            found.push(record.items.binary_search_by_key(&id, |item| item.id).ok().map(|at| record.items[at]));
            around = Some(record);
        }
        Ok(found)
    }

    /// Writes items in place of the record that begins at `base`.
    fn put_items(
        &mut self,
        of: &KeyPlace,
        list: PendingList,
        base: Option<StreamId>,
        items: &[Pending],
        appends: bool,
    ) -> Result<()> {
        let has_details = list.consumer.is_none();
        let pieces = split(items, has_details, appends);
        if let Some(base) = base
            && pieces.first().is_none_or(|first| items[first.start].id < base)
        {
            self.remove_sub(of, list.key(base))?;
        }
        for (at, piece) in pieces.into_iter().enumerate() {
            let piece = &items[piece];
            // The first record keeps its key, also if its first item is gone.
            let id = base.filter(|base| at == 0 && *base <= piece[0].id).unwrap_or(piece[0].id);
            let (mut payload, mut before) = (Vec::new(), id);
            for item in piece {
                push_item(&mut payload, before, item, has_details);
                before = item.id;
            }
            self.put_sub(of, list.key(id), &[], &payload)?;
        }
        Ok(())
    }
}

fn merge(old: &[Pending], changes: &[(StreamId, Option<Pending>)]) -> Vec<Pending> {
    let mut items = Vec::with_capacity(old.len() + changes.len());
    let (mut old, mut changes) = (old.iter().peekable(), changes.iter().peekable());
    loop {
        match (old.peek(), changes.peek()) {
            (Some(item), Some((id, _))) if item.id < *id => items.push(**item),
            (Some(item), None) => items.push(**item),
            (item, Some((id, change))) => {
                items.extend(change.iter());
                if item.is_some_and(|item| item.id == *id) {
                    old.next();
                }
                changes.next();
                continue;
            }
            (None, None) => return items,
        }
        old.next();
    }
}

/// Splits items into records. Those behind the end of a list fill their records, others leave room in them.
fn split(items: &[Pending], has_details: bool, appends: bool) -> Vec<Range<usize>> {
    let mut bytes = Vec::new();
    let mut ends = Vec::with_capacity(items.len());
    let mut before = items.first().map_or(StreamId::MIN, |first| first.id);
    for item in items {
        push_item(&mut bytes, before, item, has_details);
        before = item.id;
        ends.push(bytes.len());
    }
    let total = bytes.len();
    const ITEM_MAX: usize = 5 * 10;
    let even = total.div_ceil(total.div_ceil(CHUNK_MAX).max(1)) + ITEM_MAX;
    let most = if appends { CHUNK_MAX } else { even.min(CHUNK_MAX) };
    let (mut pieces, mut start) = (Vec::new(), 0);
    while start < items.len() {
        let begin = if start == 0 { 0 } else { ends[start - 1] };
        let count = ends[start..].iter().take_while(|end| **end - begin <= most).count().max(1);
        pieces.push(start..start + count);
        start += count;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(ms: u64) -> Pending {
        Pending { id: StreamId::new(ms, 0), consumer: 3, delivered_ms: 1 << 40, deliveries: 1 }
    }

    #[test]
    fn changes_are_merged_in_the_order_of_ids() {
        let old: Vec<Pending> = [1, 3, 5].map(item).into();
        let put = |ms| (StreamId::new(ms, 0), Some(item(ms)));
        let gone = |ms| (StreamId::new(ms, 0), None);
        let merged = merge(&old, &[put(0), gone(1), gone(2), put(3), put(4), gone(5), put(9)]);
        assert_eq!(merged, [0, 3, 4, 9].map(item));
    }

    #[test]
    fn appended_items_fill_their_records_and_others_leave_room() {
        let items: Vec<Pending> = (0..250).map(item).collect();
        let full = split(&items, true, true);
        let even = split(&items, true, false);
        assert_eq!(full.len(), even.len());
        assert!(full[0].len() > even[0].len());
        for pieces in [full, even] {
            assert_eq!(pieces.iter().map(Range::len).sum::<usize>(), items.len());
            for piece in pieces {
                let (mut bytes, mut before) = (Vec::new(), items[piece.start].id);
                for item in &items[piece.clone()] {
                    push_item(&mut bytes, before, item, true);
                    before = item.id;
                }
                // An item behind another one may take some bytes less at the beginning of a record.
                assert!(bytes.len() <= CHUNK_MAX + 20);
                assert_eq!(parse_items(items[piece.start].id, &bytes, true).unwrap(), items[piece]);
            }
        }
        assert!(parse_items(StreamId::MIN, &[1], false).is_err());
    }
}
