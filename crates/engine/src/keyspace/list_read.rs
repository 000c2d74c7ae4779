//! Reading lists: one item, or a walk from an index in either direction.
//!
//! A walk goes through the head, the chunks and the tail, one of them at a time. A reader without locks may meet chunks that are being changed; all that it reads is
//! discarded then (EN-48), so every loop here is bounded.

use std::ops::Bound;

use btree::{Batch, ReadMode, ScanState};

use crate::error::Result;
use crate::keyspace::key::chunk;
use crate::keyspace::key_txn::{Entry, KeyTransaction};
use crate::keyspace::list::{End, Items, ListChunk, ListRecord};
use crate::keyspace::members::ItemValue;
use crate::keyspace::record::Meta;

/// A part of a list, in the order of a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Near,
    Chunks,
    Far,
    Over,
}

/// A walk over the items of a list.
pub struct ListWalk {
    list: ListRecord,
    /// The end at which the walk begins.
    from: End,
    /// The part that comes next.
    part: Part,
    /// Items to pass over before the first one.
    skip: u64,
    state: Option<ScanState>,
    batch: Batch,
    at: usize,
    /// The current items, where each is, and how many have been returned.
    current: Items,
    spans: Vec<(u32, u32)>,
    done: usize,
    /// The record of the current item, if that is a large one.
    large: Option<Vec<u8>>,
}

impl ListWalk {
    fn new(list: ListRecord, from: End, skip: u64) -> ListWalk {
        ListWalk {
            list,
            from,
            part: Part::Near,
            skip,
            state: None,
            batch: Batch::new(),
            at: 0,
            current: Items::default(),
            spans: Vec::new(),
            done: 0,
            large: None,
        }
    }

    /// Returns the next item.
    pub fn next(&mut self, txn: &KeyTransaction<'_>) -> Result<Option<ItemValue<'_>>> {
        self.large = None;
        while self.done == self.spans.len() {
            if !self.load(txn)? {
                return Ok(None);
            }
            if self.large.is_some() {
                return Ok(self.large.as_deref().map(ItemValue::Record));
            }
        }
        let at = if self.from == End::Head { self.done } else { self.spans.len() - 1 - self.done };
        self.done += 1;
        let (from, to) = self.spans[at];
        Ok(Some(ItemValue::Bytes(&self.current.bytes[from as usize..to as usize])))
    }

    /// Makes the items behind the current ones current. Returns false at the end.
    fn load(&mut self, txn: &KeyTransaction<'_>) -> Result<bool> {
        match self.part {
            Part::Near | Part::Far => {
                let end = if self.part == Part::Near { self.from } else { self.from.other() };
                self.part = if self.part == Part::Near { Part::Chunks } else { Part::Over };
                let items = std::mem::take(self.list.end(end));
                self.take(items)?;
            }
            Part::Chunks => {
                if !self.load_chunk(txn)? {
                    self.part = Part::Far;
                }
            }
            Part::Over => return Ok(false),
        }
        Ok(true)
    }

    fn take(&mut self, items: Items) -> Result<()> {
        items.spans(&mut self.spans)?;
        self.current = items;
        self.done = self.skip.min(self.spans.len() as u64) as usize;
        self.skip -= self.done as u64;
        Ok(())
    }

    fn load_chunk(&mut self, txn: &KeyTransaction<'_>) -> Result<bool> {
        let Some(version) = self.list.version.filter(|_| self.list.in_chunks() > 0) else { return Ok(false) };
        let from = self.from;
        let state = self.state.get_or_insert_with(|| {
            let (first, last) = (chunk(version, 0), chunk(version, u64::MAX));
            ScanState::new(Bound::Included(&first), Bound::Included(&last), from == End::Tail)
        });
        if self.at == self.batch.len() {
            self.at = 0;
            if !state.next_batch(&txn.keyspace.store.records, ReadMode::MayRead, &mut self.batch)? {
                return Ok(false);
            }
        }
        let record = self.batch.get(self.at);
        self.at += 1;
        match ListChunk::parse(record.value)? {
            ListChunk::Items(items) => self.take(items)?,
            ListChunk::Large(_) if self.skip > 0 => self.skip -= 1,
            ListChunk::Large(_) => self.large = Some(record.value.to_vec()),
        }
        Ok(true)
    }
}

impl KeyTransaction<'_> {
    /// Begins a walk from the item of this index, counted from the end `from` on.
    pub fn items_from(&self, entry: &Entry, from: End, index: u64) -> Result<ListWalk> {
        Ok(ListWalk::new(ListRecord::parse(&Meta::parse(&entry.record)?)?, from, index))
    }

    /// Begins a walk over the items from this index on, by the shorter way.
    pub fn item_at(&self, entry: &Entry, index: u64) -> Result<ListWalk> {
        let count = entry.count()?;
        if index > count / 2 {
            self.items_from(entry, End::Tail, count.saturating_sub(index + 1))
        } else {
            self.items_from(entry, End::Head, index)
        }
    }
}
