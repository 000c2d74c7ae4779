//! Reading lists: one item, or a walk from an index in either direction.
//!
//! A walk goes through the head, the chunks and the tail, one of them at a time. A reader without locks may meet chunks that are being changed; all that it reads is
//! discarded then (EN-48), so every loop here is bounded.

use std::ops::Bound;

use btree::{Batch, ReadMode, ScanState};

use crate::error::{Error, Result};
use crate::keyspace::key::{chunk, parse_chunk};
use crate::keyspace::key_txn::{Entry, KeyTransaction};
use crate::keyspace::levels::{LevelEntries, Levels};
use crate::keyspace::list::{End, Items, ListChunk, ListRecord};
use crate::keyspace::members::ItemValue;
use crate::keyspace::record::Meta;
use crate::keyspace::state::Keyspace;

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
    /// The index within the first chunk of the first item, if the walk begins in a chunk.
    first_index: Option<u64>,
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
            first_index: None,
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

    /// Passes over the parts before the first item, by the levels of the list.
    fn seek(&mut self, txn: &KeyTransaction<'_>) -> Result<()> {
        let (near, in_chunks) = (self.list.end(self.from).count as u64, self.list.in_chunks());
        let Some(version) = self.list.version.filter(|_| self.skip >= near && in_chunks > 0) else { return Ok(()) };
        let behind = self.skip - near;
        if behind >= in_chunks {
            (self.skip, self.part) = (behind - in_chunks, Part::Far);
            return Ok(());
        }
        let index = if self.from == End::Head { behind } else { in_chunks - 1 - behind };
        // A reader that meets a change finds nothing, and runs again.
        let Some((position, within)) = txn.keyspace.list_levels(version, self.list.levels).find(index)? else {
            self.part = Part::Over;
            return Ok(());
        };
        let position = chunk_position(&position)?;
        let (first, last) = match self.from {
            End::Head => (position, u64::MAX),
            End::Tail => (0, position),
        };
        let (first, last) = (chunk(version, first), chunk(version, last));
        let state = ScanState::new(Bound::Included(&first), Bound::Included(&last), self.from == End::Tail);
        (self.state, self.part, self.skip, self.first_index) = (Some(state), Part::Chunks, 0, Some(within));
        Ok(())
    }

    fn take(&mut self, items: Items) -> Result<()> {
        if let Some(index) = self.first_index.take() {
            self.skip = match self.from {
                End::Head => index,
                End::Tail => (items.count as u64).saturating_sub(index + 1),
            };
        }
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
            txn.check_for_interrupts()?;
            if !state.next_batch(&txn.keyspace.store.records, ReadMode::MayRead, &mut self.batch)? {
                return Ok(false);
            }
        }
        let record = self.batch.get(self.at);
        self.at += 1;
        match ListChunk::parse(record.value)? {
            ListChunk::Items(items) => self.take(items)?,
            ListChunk::Large(_) if self.skip > 0 => self.skip -= 1,
            ListChunk::Large(_) => {
                self.first_index = None;
                self.large = Some(record.value.to_vec());
            }
        }
        Ok(true)
    }
}

impl KeyTransaction<'_> {
    /// Begins a walk from the item of this index, counted from the end `from` on.
    pub fn items_from(&self, entry: &Entry, from: End, index: u64) -> Result<ListWalk> {
        let mut walk = ListWalk::new(ListRecord::parse(&Meta::parse(&entry.record)?)?, from, index);
        walk.seek(self)?;
        Ok(walk)
    }
}

/// Returns the position of a chunk from its entry on level 0.
pub(crate) fn chunk_position(sub: &[u8]) -> Result<u64> {
    let position = sub.try_into().map(u64::from_be_bytes);
    position.map_err(|_| Error::corrupt("an entry of a list's level 0 of unknown form"))
}

impl Keyspace {
    /// Returns the levels over the chunks of a list.
    pub(crate) fn list_levels(&self, version: u64, top: u8) -> Levels<'_> {
        Levels::new(&self.store.records, version, LevelEntries::Weights, self.level_sizes, top)
    }

    /// Checks the levels of a list, and level 0 against the chunks (EN-73). Returns one line for each violation.
    pub(crate) fn check_list(&self, version: u64, top: u8, in_chunks: u64) -> Result<Vec<String>> {
        let levels = self.list_levels(version, top);
        let mut problems = levels.check()?;
        let (first, last) = (chunk(version, 0), chunk(version, u64::MAX));
        let mut scan = self.store.records.scan(Bound::Included(&first[..]), Bound::Included(&last[..]));
        let mut batch = Batch::new();
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                let (position, count) = (parse_chunk(record.key)?, ListChunk::count_of(record.value)?);
                let weight = levels.weight(&position.to_be_bytes())?;
                if weight != Some(count) {
                    problems.push(format!(
                        "EN-73: chunk {position} of version {version} has {count} items, level 0 says {weight:?}"
                    ));
                }
            }
        }
        let sum = levels.position(&[u8::MAX; 9])?;
        if sum != in_chunks {
            problems
                .push(format!("EN-73: the chunks of version {version} have {sum} items, the record says {in_chunks}"));
        }
        Ok(problems)
    }
}
