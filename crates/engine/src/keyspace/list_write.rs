//! Changing lists.
//!
//! ```text
//!   push, pop      the record alone, as long as its ends take it
//!   an end too long    its inner part becomes a chunk          |
//!   an end empty       the next chunk becomes the end          |  record, chunks and levels change in one record transaction
//!   in the middle      a chunk is written again or split       |
//! ```
//! A `ListEdit` has the list's record in memory while a command changes it; chunks are written at once, and the record last. An empty list is no key.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::key::{ELEMENTS, TreeKey, chunk, parse_chunk};
use crate::keyspace::key_txn::{Entry, KeyPlace, KeyTransaction};
use crate::keyspace::levels::Levels;
use crate::keyspace::list::{
    CHUNK_MAX, END_KEPT, ENDS_MAX, End, Items, ListChunk, ListRecord, chunk_payload, is_large,
};
use crate::keyspace::list_read::{ListWalk, chunk_position};
use crate::keyspace::members::ItemValue;
use crate::keyspace::record::{Body, INLINE_MAX, Kind, Meta, RAW};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, Removal};
use crate::keyspace::segments::Segments;

/// Position of the first chunk of a list, and the distance at which further ones follow at its ends.
const MIDDLE: u64 = 1 << 63;
const STEP: u64 = 1 << 20;

/// The contents of a chunk that is written.
enum Piece<'i> {
    Items(Items),
    Large(&'i [u8]),
}

/// A chunk as it was read.
struct FoundChunk {
    position: u64,
    record: Vec<u8>,
}

/// A list while a command changes it.
struct ListEdit<'k> {
    place: KeyPlace,
    /// The key, if the record has to contain it.
    stored_key: Vec<u8>,
    expire: Expire,
    list: ListRecord,
    /// Its version id, if no record refers to that yet.
    fresh: Option<Segments<'k>>,
    /// The levels over its chunks, once they are needed.
    levels: Option<Levels<'k>>,
}

impl<'k> ListEdit<'k> {
    fn new(place: KeyPlace, key: &[u8], expire: Expire, list: ListRecord) -> ListEdit<'k> {
        let stored_key = if place.key.is_long() { key.to_vec() } else { Vec::new() };
        ListEdit { place, stored_key, expire, list, fresh: None, levels: None }
    }

    fn version(&mut self, txn: &mut KeyTransaction<'k>) -> Result<u64> {
        if let Some(version) = self.list.version {
            return Ok(version);
        }
        txn.leaves_garbage = true;
        let stored_key = &self.stored_key;
        let segments = Segments::write(&txn.keyspace.store, stored_key.len() as u64, |range: Range<u64>, out| {
            out.extend_from_slice(&stored_key[range.start as usize..range.end as usize]);
            Ok(())
        })?;
        self.list.version = Some(segments.version());
        self.fresh = Some(segments);
        Ok(self.list.version.expect("set above"))
    }

    /// Returns the levels over the chunks.
    fn levels(&mut self, txn: &mut KeyTransaction<'k>) -> Result<&mut Levels<'k>> {
        let version = self.version(txn)?;
        Ok(self.levels.get_or_insert_with(|| txn.keyspace.list_levels(version, self.list.levels)))
    }

    fn chunk_place(&mut self, txn: &mut KeyTransaction<'k>, position: u64) -> Result<KeyPlace> {
        let version = self.version(txn)?;
        let key = TreeKey::from_bytes(&chunk(version, position));
        Ok(KeyPlace { db: self.place.db, space: ELEMENTS, key, stripe_lsn: self.place.stripe_lsn, long_name: None })
    }

    fn write_chunk(&mut self, txn: &mut KeyTransaction<'k>, position: u64, piece: &Piece<'_>) -> Result<()> {
        let place = self.chunk_place(txn, position)?;
        txn.begin()?;
        let count = if let Piece::Items(items) = piece { items.count as u64 } else { 1 };
        self.levels(txn)?.set_weight(&position.to_be_bytes(), Some(count))?;
        match piece {
            Piece::Items(items) => {
                let payload = chunk_payload(items);
                let body = Body::Inline(&payload);
                let put = RecordPut { body, is_similar: true, ..RecordPut::new(0, Expire::None, 0) };
                txn.write(&place, &RecordChange::Put(put)).map(drop)
            }
            Piece::Large(item) => txn.put_payload(&place, RecordPut::new(RAW, Expire::None, 0), &[], item).map(drop),
        }
    }

    fn remove_chunk(&mut self, txn: &mut KeyTransaction<'k>, position: u64) -> Result<()> {
        let place = self.chunk_place(txn, position)?;
        txn.begin()?;
        self.levels(txn)?.set_weight(&position.to_be_bytes(), None)?;
        txn.write(&place, &RecordChange::Remove(Removal::Deleted)).map(drop)
    }

    /// Returns the first chunk behind a position in the direction away from `from`.
    fn next_chunk(&self, txn: &KeyTransaction<'k>, from: End, position: u64) -> Result<Option<FoundChunk>> {
        let Some(version) = self.list.version else { return Ok(None) };
        let (key, records) = (chunk(version, position), &txn.keyspace.store.records);
        let found = if from == End::Head { records.first_after(&key)? } else { records.last_before(&key)? };
        let of_list = found.filter(|found| found.key.starts_with(&key[..key.len() - 8]));
        of_list.map(|found| Ok(FoundChunk { position: parse_chunk(&found.key)?, record: found.value })).transpose()
    }

    /// Returns the outermost chunk at an end.
    fn outer_chunk(&self, txn: &KeyTransaction<'k>, end: End) -> Result<Option<FoundChunk>> {
        self.next_chunk(txn, end, if end == End::Head { 0 } else { u64::MAX })
    }

    /// Adds a chunk between the others and an end.
    fn push_chunk(&mut self, txn: &mut KeyTransaction<'k>, end: End, piece: &Piece<'_>) -> Result<()> {
        let position = match self.outer_chunk(txn, end)? {
            None => MIDDLE,
            Some(outer) if end == End::Head => outer.position - STEP,
            Some(outer) => outer.position + STEP,
        };
        self.write_chunk(txn, position, piece)
    }

    /// Moves items from an end into chunks, the innermost first.
    fn push_chunks(&mut self, txn: &mut KeyTransaction<'k>, end: End, mut items: Items) -> Result<()> {
        while !items.is_empty() {
            let count = items.fitting(end.other(), CHUNK_MAX)?.max(1);
            let inner = items.take(end.other(), count)?;
            self.push_chunk(txn, end, &Piece::Items(inner))?;
        }
        Ok(())
    }

    /// Adds an item at an end.
    fn push(&mut self, txn: &mut KeyTransaction<'k>, end: End, item: &[u8]) -> Result<()> {
        if is_large(item.len()) {
            let items = std::mem::take(self.list.end(end));
            self.push_chunks(txn, end, items)?;
            self.push_chunk(txn, end, &Piece::Large(item))?;
        } else {
            self.list.end(end).push(end, item);
        }
        self.list.count += 1;
        self.fit(txn)
    }

    /// Moves the inner part of an end into chunks while the ends are too long.
    fn fit(&mut self, txn: &mut KeyTransaction<'k>) -> Result<()> {
        while self.list.ends_len() > ENDS_MAX {
            let longer = if self.list.head.len() >= self.list.tail.len() { End::Head } else { End::Tail };
            self.spill(txn, longer)?;
        }
        Ok(())
    }

    fn spill(&mut self, txn: &mut KeyTransaction<'k>, end: End) -> Result<()> {
        let items = self.list.end(end);
        let kept = items.fitting(end, END_KEPT)?;
        let count = items.count - kept;
        let inner = items.take(end.other(), count)?;
        self.push_chunks(txn, end, inner)
    }

    /// Removes this many items at an end.
    fn trim(&mut self, txn: &mut KeyTransaction<'k>, end: End, count: u64) -> Result<()> {
        let mut left = count.min(self.list.count);
        self.list.count -= left;
        if self.list.count == 0 {
            return Ok(());
        }
        left -= self.take_from(end, end, left)?;
        let mut chunks = (self.list.count + left).saturating_sub((self.list.head.count + self.list.tail.count) as u64);
        while left > 0 && chunks > 0 {
            let found = self
                .outer_chunk(txn, end)?
                .ok_or_else(|| Error::corrupt("a list has fewer chunks than its count says"))?;
            let in_chunk = ListChunk::count_of(&found.record)?;
            if in_chunk <= left {
                self.remove_chunk(txn, found.position)?;
            } else {
                self.open_chunk(txn, end, &found, left as usize)?;
            }
            left -= in_chunk.min(left);
            chunks = chunks.saturating_sub(in_chunk);
        }
        self.take_from(end.other(), end, left)?;
        Ok(())
    }

    /// Drops up to `count` items at this side of an end's items. Returns how many.
    fn take_from(&mut self, end: End, side: End, count: u64) -> Result<u64> {
        let items = self.list.end(end);
        let count = count.min(items.count as u64);
        items.take(side, count as usize)?;
        Ok(count)
    }

    /// Drops the outer items of a chunk, which has more, and moves what the ends have room for into the end, which is empty.
    fn open_chunk(&mut self, txn: &mut KeyTransaction<'k>, end: End, found: &FoundChunk, dropped: usize) -> Result<()> {
        let ListChunk::Items(mut items) = ListChunk::parse(&found.record)? else {
            return Err(Error::corrupt("a large item is more than one"));
        };
        items.take(end, dropped)?;
        if self.list.end(end.other()).len() + items.len() > ENDS_MAX {
            self.spill(txn, end.other())?;
        }
        let room = ENDS_MAX - self.list.end(end.other()).len();
        let count = items.fitting(end, room)?;
        *self.list.end(end) = items.take(end, count)?;
        if items.is_empty() {
            self.remove_chunk(txn, found.position)
        } else {
            self.write_chunk(txn, found.position, &Piece::Items(items))
        }
    }

    /// Replaces the items of an end, which are longer than before or have a large one among them.
    fn set_end(&mut self, txn: &mut KeyTransaction<'k>, end: End, split: SplitItems<'_>) -> Result<()> {
        let SplitItems { before, item, after } = split;
        let (outer, inner) = if end == End::Head { (before, after) } else { (after, before) };
        match item {
            Some(item) if is_large(item.len()) => {
                self.push_chunks(txn, end, inner)?;
                self.push_chunk(txn, end, &Piece::Large(item))?;
                *self.list.end(end) = outer;
            }
            _ => {
                let mut items = outer;
                if let Some(item) = item {
                    items.push(end.other(), item);
                }
                items.join(end.other(), inner);
                *self.list.end(end) = items;
            }
        }
        self.fit(txn)
    }

    /// Replaces the contents of a chunk.
    fn set_chunk(&mut self, txn: &mut KeyTransaction<'k>, position: u64, split: SplitItems<'_>) -> Result<()> {
        let SplitItems { mut before, item, after } = split;
        let mut pieces = Vec::new();
        match item {
            Some(item) if is_large(item.len()) => {
                cut(before, &mut pieces)?;
                pieces.push(Piece::Large(item));
                cut(after, &mut pieces)?;
            }
            _ => {
                if let Some(item) = item {
                    before.push(End::Tail, item);
                }
                before.join(End::Tail, after);
                cut(before, &mut pieces)?;
            }
        }
        let Some((first, others)) = pieces.split_first() else { return self.remove_chunk(txn, position) };
        self.write_chunk(txn, position, first)?;
        self.insert_chunks(txn, position, others)
    }

    /// Adds chunks behind the one at a position.
    fn insert_chunks(&mut self, txn: &mut KeyTransaction<'k>, behind: u64, pieces: &[Piece<'_>]) -> Result<()> {
        if pieces.is_empty() {
            return Ok(());
        }
        let parts = pieces.len() as u64 + 1;
        let mut position = behind;
        let mut gap = self.gap_behind(txn, position)?;
        if gap < parts {
            position = self.make_room(txn, behind)?;
            gap = self.gap_behind(txn, position)?;
        }
        for (nth, piece) in pieces.iter().enumerate() {
            self.write_chunk(txn, position + gap / parts * (nth as u64 + 1), piece)?;
        }
        Ok(())
    }

    fn gap_behind(&self, txn: &KeyTransaction<'k>, position: u64) -> Result<u64> {
        let next = self.next_chunk(txn, End::Head, position)?;
        Ok(next.map_or(STEP * 2, |next| next.position - position))
    }

    /// Spreads the chunks around a position evenly, over the smallest aligned range in which they lie thinly enough. Returns the new position of that chunk.
    ///
    /// The range of 2^i positions may have (4/3)^i chunks. So the number of chunks that move, averaged over insertions, grows with the logarithm of the length.
    fn make_room(&mut self, txn: &mut KeyTransaction<'k>, position: u64) -> Result<u64> {
        const BITS_MIN: u32 = 8;
        const BITS_MAX: u32 = 62;
        for bits in BITS_MIN..=BITS_MAX {
            let first = position >> bits << bits;
            let most = (4.0_f64 / 3.0).powi(bits as i32) as usize;
            let (mut found, mut at) = (Vec::new(), first - 1);
            while found.len() <= most
                && let Some(next) = self.next_chunk(txn, End::Head, at)?
                && next.position - first < 1 << bits
            {
                at = next.position;
                found.push(at);
            }
            let spacing = (1 << bits) / (found.len() as u64 + 1);
            if found.len() <= most && spacing >= 8 {
                return self.spread(txn, &found, first, spacing, position);
            }
        }
        Err(Error::TooLarge { what: "list", limit: u64::MAX })
    }

    fn spread(
        &mut self,
        txn: &mut KeyTransaction<'k>,
        found: &[u64],
        first: u64,
        spacing: u64,
        watched: u64,
    ) -> Result<u64> {
        let target = |nth: usize| first + spacing * (nth as u64 + 1);
        // A chunk moves into a place that is free: its neighbour on that side moves in the same direction, and has moved before.
        let right = (0..found.len()).rev().filter(|nth| target(*nth) > found[*nth]);
        let left = (0..found.len()).filter(|nth| target(*nth) < found[*nth]);
        for nth in right.chain(left) {
            let (from, to) = (self.chunk_place(txn, found[nth])?, self.chunk_place(txn, target(nth))?);
            txn.begin()?;
            let levels = self.levels(txn)?;
            let weight = levels.weight(&found[nth].to_be_bytes())?;
            levels.set_weight(&found[nth].to_be_bytes(), None)?;
            levels.set_weight(&target(nth).to_be_bytes(), weight)?;
            txn.move_element(&from, &to)?;
        }
        let nth = found.iter().position(|position| *position == watched);
        nth.map(target).ok_or_else(|| Error::corrupt("a chunk of a list is gone"))
    }

    /// Writes the list's record.
    fn close(mut self, txn: &mut KeyTransaction<'k>) -> Result<u64> {
        let count = self.list.count;
        if count == 0 {
            txn.write(&self.place, &RecordChange::Remove(Removal::Deleted))?;
            return Ok(0);
        }
        let mut put = RecordPut::new(0, self.expire, self.stored_key.len());
        put.kind = Kind::List;
        if self.list.in_chunks() == 0 && self.stored_key.len() + self.list.packed_len() <= INLINE_MAX {
            let mut payload = Vec::with_capacity(self.stored_key.len() + self.list.packed_len());
            payload.extend_from_slice(&self.stored_key);
            self.list.encode_packed(&mut payload);
            put.body = Body::Inline(&payload);
            txn.write(&self.place, &RecordChange::Put(put))?;
            return Ok(count);
        }
        let version = self.version(txn)?;
        if let Some(levels) = &mut self.levels {
            self.list.levels = levels.top();
            txn.write_level_changes(&self.place, levels)?;
        }
        let fields = self.list.fields();
        put.body = Body::Elements { count, version, fields: &fields };
        match self.fresh {
            Some(_) => txn.put_unnamed(&self.place, put, version)?,
            None => txn.write(&self.place, &RecordChange::Put(put))?,
        };
        Ok(count)
    }
}

/// Items around a place, with an item to put there.
struct SplitItems<'i> {
    before: Items,
    item: Option<&'i [u8]>,
    after: Items,
}

impl<'i> SplitItems<'i> {
    /// Splits before the item of this index, and drops `removed` items there.
    fn at(mut items: Items, index: usize, removed: usize, item: Option<&'i [u8]>) -> Result<SplitItems<'i>> {
        let before = items.take(End::Head, index)?;
        items.take(End::Head, removed)?;
        Ok(SplitItems { before, item, after: items })
    }
}

/// Cuts items into chunks of about the same length.
fn cut<'i>(mut items: Items, pieces: &mut Vec<Piece<'i>>) -> Result<()> {
    let parts = items.len().div_ceil(CHUNK_MAX).max(1);
    let target = items.len() / parts + items.len() / items.count.max(1);
    while items.len() > CHUNK_MAX && items.count > 1 {
        let count = items.fitting(End::Head, target.min(CHUNK_MAX))?.max(1);
        pieces.push(Piece::Items(items.take(End::Head, count)?));
    }
    if !items.is_empty() {
        pieces.push(Piece::Items(items));
    }
    Ok(())
}

/// The place of an item: an end or a chunk, and the index in it.
struct ItemPlace {
    end: Option<End>,
    chunk: FoundChunk,
    index: usize,
}

impl ItemPlace {
    fn in_end(end: End, index: usize) -> ItemPlace {
        ItemPlace { end: Some(end), chunk: FoundChunk { position: 0, record: Vec::new() }, index }
    }
}

impl<'k> KeyTransaction<'k> {
    fn list_edit(&mut self, db: u8, key: &[u8]) -> Result<ListEdit<'k>> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let entry = self.entry(&place)?;
        let (expire, list) = match &entry {
            Some(entry) => (Expire::Keep, ListRecord::parse(&Meta::parse(&entry.record)?)?),
            None => (Expire::None, ListRecord::new()),
        };
        Ok(ListEdit::new(place, key, expire, list))
    }

    /// Changes a list. If that fails half-way, the transaction can only be rolled back.
    fn edit<R>(
        &mut self,
        mut edit: ListEdit<'k>,
        f: impl FnOnce(&mut Self, &mut ListEdit<'k>) -> Result<R>,
    ) -> Result<(R, u64)> {
        let result = f(self, &mut edit).and_then(|result| Ok((result, edit.close(self)?)));
        result.inspect_err(|error| self.mark_broken(error))
    }

    /// Adds items one after the other at an end of a list; an absent key is an empty one. Returns the new length.
    pub fn push_items(&mut self, db: u8, key: &[u8], end: End, items: &[&[u8]]) -> Result<u64> {
        let edit = self.list_edit(db, key)?;
        let pushed = self.edit(edit, |txn, edit| items.iter().try_for_each(|item| edit.push(txn, end, item)))?;
        self.effect(db, KeyEffect::Push { key, end, items });
        Ok(pushed.1)
    }

    /// Removes up to this many items at an end of a list. Returns the new length; with 0 there is no key any more.
    pub fn trim_items(&mut self, db: u8, key: &[u8], end: End, count: u64) -> Result<u64> {
        let edit = self.list_edit(db, key)?;
        if edit.list.count == 0 || count == 0 {
            return Ok(edit.list.count);
        }
        let trimmed = self.edit(edit, |txn, edit| edit.trim(txn, end, count))?;
        self.effect(db, KeyEffect::Pop { key, end, count });
        Ok(trimmed.1)
    }

    /// Keeps the items whose indexes are in a range, which is not empty. Returns the new length.
    pub fn keep_items(&mut self, db: u8, key: &[u8], kept: Range<u64>) -> Result<u64> {
        let edit = self.list_edit(db, key)?;
        let behind = edit.list.count.saturating_sub(kept.end);
        let trimmed = self.edit(edit, |txn, edit| {
            edit.trim(txn, End::Tail, behind)?;
            edit.trim(txn, End::Head, kept.start)
        })?;
        self.effect(db, KeyEffect::KeepItems { key, kept });
        Ok(trimmed.1)
    }

    /// Returns the place of an item by its index.
    fn find_index(&self, edit: &ListEdit<'k>, index: u64) -> Result<Option<ItemPlace>> {
        let list = &edit.list;
        let (head, in_chunks) = (list.head.count as u64, list.in_chunks());
        if index < head {
            return Ok(Some(ItemPlace::in_end(End::Head, index as usize)));
        }
        if index >= head + in_chunks {
            let index = index - head - in_chunks;
            return Ok((index < list.tail.count as u64).then(|| ItemPlace::in_end(End::Tail, index as usize)));
        }
        let short = || Error::corrupt("a list has fewer items than its count says");
        let version = list.version.ok_or_else(short)?;
        let found = self.keyspace.list_levels(version, list.levels).find(index - head)?;
        let (position, index) = found.ok_or_else(short)?;
        let (position, mut record) = (chunk_position(&position)?, Vec::new());
        if !self.keyspace.store.records.get(&chunk(version, position), &mut record)?.present {
            return Err(short());
        }
        Ok(Some(ItemPlace { end: None, chunk: FoundChunk { position, record }, index: index as usize }))
    }

    /// Puts an item at a place: before the one that is there, or instead of it.
    fn put_item(&mut self, edit: &mut ListEdit<'k>, place: ItemPlace, removed: usize, item: &[u8]) -> Result<()> {
        if let Some(end) = place.end {
            let items = std::mem::take(edit.list.end(end));
            return edit.set_end(self, end, SplitItems::at(items, place.index, removed, Some(item))?);
        }
        let position = place.chunk.position;
        match ListChunk::parse(&place.chunk.record)? {
            ListChunk::Items(items) => {
                edit.set_chunk(self, position, SplitItems::at(items, place.index, removed, Some(item))?)
            }
            ListChunk::Large(_) if removed == 1 => edit.write_chunk(self, position, &one_piece(item)),
            ListChunk::Large(_) if place.index == 1 => edit.insert_chunks(self, position, &[one_piece(item)]),
            ListChunk::Large(_) => match edit.next_chunk(self, End::Tail, position)? {
                None => edit.push_chunk(self, End::Head, &one_piece(item)),
                Some(previous) => edit.insert_chunks(self, previous.position, &[one_piece(item)]),
            },
        }
    }

    /// Replaces the item of this index. Returns false if there is none.
    pub fn set_item(&mut self, db: u8, key: &[u8], index: u64, item: &[u8]) -> Result<bool> {
        let edit = self.list_edit(db, key)?;
        let Some(place) = self.find_index(&edit, index)? else { return Ok(false) };
        self.edit(edit, |txn, edit| txn.put_item(edit, place, 1, item))?;
        self.effect(db, KeyEffect::SetItem { key, index, item });
        Ok(true)
    }

    /// Inserts an item before or behind the first one that equals `pivot`. Returns the new length; `None` if there is no such item.
    pub fn insert_item(
        &mut self,
        db: u8,
        key: &[u8],
        pivot: &[u8],
        is_before: bool,
        item: &[u8],
    ) -> Result<Option<u64>> {
        let edit = self.list_edit(db, key)?;
        let Some(mut place) = self.find_item(&edit, pivot)? else { return Ok(None) };
        place.index += usize::from(!is_before);
        let inserted = self.edit(edit, |txn, edit| {
            edit.list.count += 1;
            txn.put_item(edit, place, 0, item)
        })?;
        self.effect(db, KeyEffect::InsertItem { key, pivot, is_before, item });
        Ok(Some(inserted.1))
    }

    /// Returns the place of the first item that equals `wanted`.
    fn find_item(&self, edit: &ListEdit<'k>, wanted: &[u8]) -> Result<Option<ItemPlace>> {
        if let Some(index) = indexes_of(&edit.list.head, wanted)?.first() {
            return Ok(Some(ItemPlace::in_end(End::Head, *index)));
        }
        let mut at = 0;
        while edit.list.in_chunks() > 0
            && let Some(chunk) = edit.next_chunk(self, End::Head, at)?
        {
            at = chunk.position;
            if let Some(index) = self.matches_in(&chunk, wanted)?.first() {
                return Ok(Some(ItemPlace { end: None, chunk, index: *index }));
            }
        }
        Ok(indexes_of(&edit.list.tail, wanted)?.first().map(|index| ItemPlace::in_end(End::Tail, *index)))
    }

    /// Returns the indexes of the items of a chunk that equal `wanted`.
    fn matches_in(&self, chunk: &FoundChunk, wanted: &[u8]) -> Result<Vec<usize>> {
        match ListChunk::parse(&chunk.record)? {
            ListChunk::Items(items) => indexes_of(&items, wanted),
            ListChunk::Large(meta) if meta.len() != wanted.len() as u64 => Ok(Vec::new()),
            ListChunk::Large(meta) => Ok(if self.equals(&meta, wanted)? { vec![0] } else { Vec::new() }),
        }
    }

    /// Compares a payload with bytes of the same length, a block at a time.
    fn equals(&self, meta: &Meta<'_>, wanted: &[u8]) -> Result<bool> {
        const BLOCK: usize = 64 << 10;
        let mut block = Vec::new();
        for (nth, part) in wanted.chunks(BLOCK).enumerate() {
            let from = (nth * BLOCK) as u64;
            block.clear();
            self.keyspace.store.read_payload(&meta.body, from..from + part.len() as u64, &mut block)?;
            if block != part {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares an item of a walk with bytes.
    pub fn item_equals(&self, item: &ItemValue<'_>, wanted: &[u8]) -> Result<bool> {
        match item {
            ItemValue::Bytes(bytes) => Ok(*bytes == wanted),
            ItemValue::Record(record) => {
                let meta = Meta::parse(record)?;
                Ok(meta.len() == wanted.len() as u64 && self.equals(&meta, wanted)?)
            }
        }
    }

    /// Removes up to `most` items that equal `wanted`, beginning at an end. Returns how many there were, and the new length.
    pub fn remove_items(&mut self, db: u8, key: &[u8], from: End, most: u64, wanted: &[u8]) -> Result<(u64, u64)> {
        let mut edit = self.list_edit(db, key)?;
        let (before, mut left) = (edit.list.count, most);
        let removed = self.remove_matches(&mut edit, from, &mut left, wanted);
        let removed = removed.inspect_err(|error| self.mark_broken(error))?;
        if removed == 0 {
            return Ok((0, before));
        }
        let (_, count) = self.edit(edit, |_, _| Ok(()))?;
        self.effect(db, KeyEffect::RemoveItems { key, from, count: removed, item: wanted });
        Ok((removed, count))
    }

    fn remove_matches(&mut self, edit: &mut ListEdit<'k>, from: End, left: &mut u64, wanted: &[u8]) -> Result<u64> {
        let mut removed = remove_from(edit.list.end(from), from, left, wanted)?;
        let (mut at, has_chunks) = (if from == End::Head { 0 } else { u64::MAX }, edit.list.in_chunks() > removed);
        while has_chunks
            && *left > 0
            && let Some(chunk) = edit.next_chunk(self, from, at)?
        {
            at = chunk.position;
            let found = self.matches_in(&chunk, wanted)?;
            if found.is_empty() {
                continue;
            }
            match ListChunk::parse(&chunk.record)? {
                ListChunk::Large(_) => {
                    edit.remove_chunk(self, at)?;
                    (removed, *left) = (removed + 1, *left - 1);
                }
                ListChunk::Items(mut items) => {
                    removed += remove_from(&mut items, from, left, wanted)?;
                    if items.is_empty() {
                        edit.remove_chunk(self, at)?;
                    } else {
                        edit.write_chunk(self, at, &Piece::Items(items))?;
                    }
                }
            }
        }
        removed += remove_from(edit.list.end(from.other()), from, left, wanted)?;
        edit.list.count -= removed;
        Ok(removed)
    }

    /// Copies a list to a key.
    pub(crate) fn copy_list(&mut self, entry: &Entry, to: (u8, &[u8]), expire: Expire) -> Result<()> {
        let mut walk = self.items_from(entry, End::Head, 0)?;
        self.put_list(to, expire, |txn| next_owned(&mut walk, txn))
    }

    /// Stores a list of these items, whatever the key held.
    pub(crate) fn put_list(
        &mut self,
        to: (u8, &[u8]),
        expire: Expire,
        mut next: impl FnMut(&mut Self) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let place = self.place(to.0, to.1)?;
        self.must_write()?;
        let edit = ListEdit::new(place, to.1, expire, ListRecord::new());
        self.edit(edit, |txn, edit| {
            while let Some(item) = next(txn)? {
                edit.push(txn, End::Tail, &item)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Returns the bytes of a list: its record, and the mean of some chunks for each item in chunks.
    pub(crate) fn list_memory(&self, entry: &Entry, samples: u64) -> Result<u64> {
        let list = ListRecord::parse(&Meta::parse(&entry.record)?)?;
        let (in_chunks, own) = (list.in_chunks(), entry.memory());
        let Some(version) = list.version.filter(|_| in_chunks > 0) else { return Ok(own) };
        let (mut at, mut bytes, mut seen) = (chunk(version, 0).to_vec(), 0, 0);
        while seen < samples.max(1)
            && let Some(found) = self.keyspace.store.records.first_after(&at)?
            && found.key.starts_with(&at[..at.len() - 8])
        {
            seen += ListChunk::count_of(&found.value)?;
            bytes += ItemValue::Record(&found.value).to_entry()?.memory() + at.len() as u64;
            at = found.key;
        }
        Ok(own + (u128::from(bytes) * u128::from(in_chunks) / u128::from(seen.max(1))) as u64)
    }
}

fn one_piece(item: &[u8]) -> Piece<'_> {
    if is_large(item.len()) {
        return Piece::Large(item);
    }
    let mut items = Items::default();
    items.push(End::Tail, item);
    Piece::Items(items)
}

fn next_owned(walk: &mut ListWalk, txn: &mut KeyTransaction<'_>) -> Result<Option<Vec<u8>>> {
    let Some(item) = walk.next(txn)? else { return Ok(None) };
    if let Some(bytes) = item.bytes() {
        return Ok(Some(bytes.to_vec()));
    }
    let (entry, mut bytes) = (item.to_entry()?, Vec::new());
    txn.value_part(&entry, 0..entry.len, &mut bytes)?;
    Ok(Some(bytes))
}

fn indexes_of(items: &Items, wanted: &[u8]) -> Result<Vec<usize>> {
    let mut spans = Vec::new();
    items.spans(&mut spans)?;
    let matches = |(_, (from, to)): &(usize, &(u32, u32))| &items.bytes[*from as usize..*to as usize] == wanted;
    Ok(spans.iter().enumerate().filter(matches).map(|(index, _)| index).collect())
}

/// Removes up to `left` items that equal `wanted`, beginning at this side.
fn remove_from(items: &mut Items, side: End, left: &mut u64, wanted: &[u8]) -> Result<u64> {
    let mut found = indexes_of(items, wanted)?;
    let excess = (found.len() as u64).saturating_sub(*left) as usize;
    if side == End::Head {
        found.truncate(found.len() - excess);
    } else {
        found.drain(..excess);
    }
    let mut kept = Items::default();
    let mut at = 0;
    for index in &found {
        kept.join(End::Tail, items.take(End::Head, index - at)?);
        items.take(End::Head, 1)?;
        at = index + 1;
    }
    kept.join(End::Tail, std::mem::take(items));
    *items = kept;
    *left -= found.len() as u64;
    Ok(found.len() as u64)
}
