//! The operations of a key transaction for commands: read, store, patch, delete, rename and copy keys.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::keyspace::build::read_behind;
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::field_times;
use crate::keyspace::key::{TreeKey, VALUE_MAX};
use crate::keyspace::key_events::event_class;
use crate::keyspace::key_txn::{Entry, KeyPlace, KeyTransaction};
use crate::keyspace::record::{Body, EXTENT_MAX, INLINE_MAX, Kind, Meta, NOT_INT, RAW};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, Removal, Replaced};
use crate::keyspace::segments::Segments;
use crate::keyspace::value;
use crate::keyspace::value::NewBody;
use crate::keyspace::watch_registry::Touch;
use crate::store::trees::RECORDS;
use crate::store::wal::Counted;

/// Pages that `prefetch_values` reads at most, in all and of one value: an eighth of the frames of a key snapshot.
const PREFETCHED_MAX: usize = 256;
const PREFETCHED_OF_VALUE: usize = 16;

/// The answer of OBJECT ENCODING for a string. The bytes are stored alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As after SET: int, embstr or raw.
    Auto,
    /// As after INCRBYFLOAT: embstr or raw.
    NotInt,
    /// As after APPEND, SETRANGE or SETBIT: raw.
    Raw,
}

impl Form {
    fn bits(self) -> u8 {
        match self {
            Form::Auto => 0,
            Form::NotInt => NOT_INT,
            Form::Raw => RAW,
        }
    }
}

impl<'k> KeyTransaction<'k> {
    /// Looks up a key for a command that reads it, and counts a hit or a miss.
    pub fn get(&mut self, db: u8, key: &[u8]) -> Result<Option<Entry>> {
        let found = self.get_unnoticed(db, key)?;
        if found.is_none() {
            self.notify(db, key, event_class::MISS, "keymiss");
        }
        Ok(found)
    }

    /// Looks up a key as `get` does, but a miss is no event.
    pub fn get_unnoticed(&mut self, db: u8, key: &[u8]) -> Result<Option<Entry>> {
        let found = self.peek(db, key)?;
        match found {
            Some(_) => self.hits += 1,
            None => self.misses += 1,
        }
        Ok(found)
    }

    /// Looks up a key for a command that goes on to change it.
    pub fn peek(&mut self, db: u8, key: &[u8]) -> Result<Option<Entry>> {
        let place = self.place(db, key)?;
        self.entry(&place)
    }

    /// Reads the pages of these values that are not in memory together, so that their readers wait once. Of long values, and of many, only the first pages.
    pub fn prefetch_values<'e>(&self, entries: impl IntoIterator<Item = &'e Entry>) -> Result<()> {
        let mut pages = Vec::new();
        for entry in entries {
            if let Body::Extent(extent) = Meta::parse(&entry.record)?.body {
                pages.extend(extent.pages().take(PREFETCHED_OF_VALUE));
            }
        }
        pages.truncate(PREFETCHED_MAX);
        self.keyspace.store.pager.prefetch_units(&pages);
        Ok(())
    }

    pub fn exists(&mut self, db: u8, key: &[u8]) -> Result<bool> {
        Ok(self.get(db, key)?.is_some())
    }

    /// Appends a range of a string, cut to its length.
    pub fn value(&mut self, entry: &Entry, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let meta = Meta::parse(&entry.record)?;
        if meta.head.kind != Kind::String {
            return Err(Error::Misuse("value() of a key that is not a string"));
        }
        self.value_part(entry, range, out)
    }

    /// Does the same for the value of a field.
    pub(crate) fn value_part(&self, entry: &Entry, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let meta = Meta::parse(&entry.record)?;
        let range = range.start..range.end.min(entry.len);
        if range.is_empty() {
            return Ok(());
        }
        let skip = u64::from(meta.head.key_len);
        self.keyspace.store.read_payload(&meta.body, range.start + skip..range.end + skip, out)
    }

    /// Stores a string as SET does, whatever type of value the key held.
    pub fn put_string(&mut self, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<()> {
        self.put_string_as(db, key, value, expire, Form::Auto)
    }

    pub fn put_string_as(&mut self, db: u8, key: &[u8], value: &[u8], expire: Expire, form: Form) -> Result<()> {
        let place = self.place(db, key)?;
        self.must_write()?;
        check_len(value.len() as u64)?;
        let stored_key: &[u8] = if place.key.is_long() { key } else { &[] };
        let put = RecordPut::new(form.bits(), expire, stored_key.len());
        self.put_payload(&place, put, stored_key, value)?;
        self.effect(db, KeyEffect::Set { key, value, expire });
        Ok(())
    }

    /// Stores `stored`, followed by a value, as the payload of a record.
    pub(crate) fn put_payload(
        &mut self,
        place: &KeyPlace,
        mut put: RecordPut<'_>,
        stored: &[u8],
        value: &[u8],
    ) -> Result<Replaced> {
        let len = stored.len() + value.len();
        if len > EXTENT_MAX {
            let segment = |range: Range<u64>, out: &mut Vec<u8>| {
                read_behind(stored, range, out, &|range, out| {
                    out.extend_from_slice(&value[range.start as usize..range.end as usize]);
                    Ok(())
                })
            };
            let segments = self.write_segments(len as u64, segment)?;
            return self.put_segments(place, put, segments);
        }
        let joined;
        let payload = if stored.is_empty() {
            value
        } else {
            joined = [stored, value].concat();
            &joined
        };
        if len <= INLINE_MAX {
            let put = RecordPut { body: Body::Inline(payload), ..put };
            return self.write(place, &RecordChange::Put(put));
        }
        let fresh = NewBody::write(&self.keyspace.store.pager, payload)?;
        put.shares_pages = false;
        self.put_fresh(place, put, fresh)
    }

    /// Writes bytes at an offset of a string, which grows if needed. A gap is filled with zeros, and an absent key counts as an empty string. Returns the new
    /// length.
    ///
    /// Only the touched pages of a large value are written. APPEND is a patch at the end.
    pub fn patch_string(&mut self, db: u8, key: &[u8], offset: u64, bytes: &[u8]) -> Result<u64> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let entry = self.entry(&place)?;
        let old_len = entry.as_ref().map_or(0, |entry| entry.len);
        if bytes.is_empty() {
            return Ok(old_len);
        }
        let len = old_len.max(offset.saturating_add(bytes.len() as u64));
        check_len(len)?;
        let stored_key: &[u8] = if place.key.is_long() { key } else { &[] };
        let skip = stored_key.len() as u64;
        let body = match &entry {
            Some(entry) => Meta::parse(&entry.record)?.body,
            None => Body::Inline(stored_key),
        };
        if entry.as_ref().is_some_and(|entry| entry.kind != Kind::String) {
            return Err(Error::Misuse("patch_string() of a key that is not a string"));
        }
        let expire = if entry.is_some() { Expire::Keep } else { Expire::None };
        let mut put = RecordPut::new(RAW, expire, stored_key.len());
        put.shares_pages = true;
        match body {
            Body::Segments { version, .. } => {
                let patched = self.patch_segments(&place, put, version, skip + old_len, skip + offset, bytes);
                patched.inspect_err(|error| self.mark_broken(error))?;
            }
            body if skip + len <= EXTENT_MAX as u64 => {
                let fresh = value::patch(&self.keyspace.store.pager, &body, (skip + offset) as usize, bytes)?;
                self.put_fresh(&place, put, fresh)?;
            }
            body => {
                let store = &self.keyspace.store;
                let compose = |range: Range<u64>, out: &mut Vec<u8>| {
                    value::compose(store, &body, skip + offset, bytes, range, out)
                };
                put.shares_pages = false;
                let segments = self.write_segments(skip + len, compose)?;
                self.put_segments(&place, put, segments)?;
            }
        }
        self.effect(db, KeyEffect::Patch { key, offset, bytes });
        Ok(len)
    }

    /// Removes a key, in the same time whatever its size. Returns true if it existed.
    pub fn delete(&mut self, db: u8, key: &[u8]) -> Result<bool> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let existed = self.remove(&place, Removal::Deleted)?;
        if existed {
            self.effect(db, KeyEffect::Delete { key });
        }
        Ok(existed)
    }

    /// Sets or removes a key's expiry time. Returns false if there is no such key.
    pub fn set_expire(&mut self, db: u8, key: &[u8], at_ms: Option<u64>) -> Result<bool> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let Some(entry) = self.entry(&place)? else { return Ok(false) };
        let expire = at_ms.map_or(Expire::None, Expire::At);
        self.put_again(&place, &entry, expire)?;
        self.effect(db, KeyEffect::ExpireAt { key, at_ms });
        Ok(true)
    }

    /// Renames a key, within a database or to another one. A key with the new name is replaced. Returns false if there is no such key.
    pub fn rename(&mut self, from: (u8, &[u8]), to: (u8, &[u8])) -> Result<bool> {
        let (source, target) = (self.place(from.0, from.1)?, self.place(to.0, to.1)?);
        self.must_write()?;
        let Some(entry) = self.entry(&source)? else { return Ok(false) };
        if from == to {
            return Ok(true);
        }
        self.begin()?;
        let expire = entry.expire_at_ms.map_or(Expire::None, Expire::At);
        if source.key.is_long() || target.key.is_long() {
            // The payload of a long key starts with the key, so it changes with the name.
            self.copy_value(&entry, to, expire)?;
            let removed = self.remove(&source, Removal::Deleted);
            removed.inspect_err(|error| self.mark_broken(error))?;
        } else {
            let renamed = self.move_record(&source, &target, &entry, expire);
            renamed.inspect_err(|error| self.mark_broken(error))?;
        }
        if self.has_field_times(&entry)? {
            self.effect_of_members(to.0, to.1)?;
            self.effect(from.0, KeyEffect::Delete { key: from.1 });
        } else {
            self.effect(from.0, KeyEffect::Rename { key: from.1, to });
        }
        Ok(true)
    }

    /// Moves the record of an element to a place where there is none.
    pub(crate) fn move_element(&mut self, source: &KeyPlace, target: &KeyPlace) -> Result<()> {
        let entry = self.entry(source)?.ok_or_else(|| Error::corrupt("an element is gone"))?;
        self.move_record(source, target, &entry, Expire::None)
    }

    /// Moves a record in the order in which undo knows an owner of the value's pages wherever the WAL ends (EN-8).
    fn move_record(&mut self, source: &KeyPlace, target: &KeyPlace, entry: &Entry, expire: Expire) -> Result<()> {
        let is_own = self.record_txn.as_ref().is_some_and(|txn| txn.has_changed(RECORDS, source.key.as_slice()));
        if is_own {
            // No image refers to the pages. Both records do until the old one is deleted, and undo finds both.
            self.put_again(target, entry, expire)?;
            self.remove(source, Removal::Renamed)?;
        } else {
            // The image refers to the pages. If the new record came first, undo might find only that one, and free the pages of the old one.
            self.remove(source, Removal::Renamed)?;
            self.put_again(target, entry, expire)?;
        }
        Ok(())
    }

    /// Copies a key with its expiry time. A key at the target is replaced. Returns false if there is no such key.
    pub fn copy(&mut self, from: (u8, &[u8]), to: (u8, &[u8])) -> Result<bool> {
        let (source, _) = (self.place(from.0, from.1)?, self.place(to.0, to.1)?);
        self.must_write()?;
        let Some(entry) = self.entry(&source)? else { return Ok(false) };
        if from != to {
            let expire = entry.expire_at_ms.map_or(Expire::None, Expire::At);
            self.copy_value(&entry, to, expire)?;
            if self.has_field_times(&entry)? {
                self.effect_of_members(to.0, to.1)?;
            } else {
                self.effect(from.0, KeyEffect::Copy { key: from.1, to });
            }
        }
        Ok(true)
    }

    /// Returns whether a value may have due fields, which a follower may still have.
    fn has_field_times(&self, entry: &Entry) -> Result<bool> {
        Ok(entry.kind == Kind::Hash && field_times::least(&Meta::parse(&entry.record)?)?.is_some())
    }

    /// Makes OBJECT ENCODING of a string answer "raw", as Redis does before it changes a string in place, also if the string then stays the same. Watchers are
    /// not marked.
    pub fn make_raw(&mut self, db: u8, key: &[u8]) -> Result<()> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let Some(entry) = self.entry(&place)? else { return Ok(()) };
        if entry.encoding() == "raw" {
            return Ok(());
        }
        let expire = entry.expire_at_ms.map_or(Expire::None, Expire::At);
        let meta = Meta::parse(&entry.record)?;
        let mut put = RecordPut::new(meta.head.form | RAW, expire, meta.head.key_len as usize);
        (put.kind, put.body, put.shares_pages, put.unseen) = (meta.head.kind, meta.body, true, true);
        self.write(&place, &RecordChange::Put(put)).map(drop)
    }

    /// Marks the watchers of a key as if it had changed.
    pub fn touch(&mut self, db: u8, key: &[u8]) -> Result<()> {
        let place = self.place(db, key)?;
        self.touched(&place, Touch::Changed);
        Ok(())
    }

    /// Returns the number of keys of a database. Expired keys that are not yet removed count.
    pub fn count(&mut self, db: u8) -> Result<u64> {
        Ok(self.counted(db)?.keys.max(0) as u64)
    }

    /// Returns the number of keys of a database that have an expiry time.
    pub fn expires(&mut self, db: u8) -> Result<u64> {
        Ok(self.counted(db)?.expiries.max(0) as u64)
    }

    fn counted(&mut self, db: u8) -> Result<Counted> {
        let db = self.slot(db)?;
        let mut counted = self.keyspace.counts.get(db);
        let space = self.keyspace.databases.space(db);
        let own = self.record_txn.iter().flat_map(|txn| txn.deltas()).filter(|delta| delta.0 == space);
        for (_, keys, expiries) in own {
            counted.keys += keys;
            counted.expiries += expiries;
        }
        self.durability_lsn = self.durability_lsn.max(self.keyspace.store.pager.wal_head());
        Ok(counted)
    }

    /// Stores the same value under the same or another key.
    pub(crate) fn put_again(&mut self, place: &KeyPlace, entry: &Entry, expire: Expire) -> Result<()> {
        let meta = Meta::parse(&entry.record)?;
        let mut put = RecordPut::new(meta.head.form, expire, meta.head.key_len as usize);
        put.kind = meta.head.kind;
        put.body = meta.body;
        put.shares_pages = true;
        self.write(place, &RecordChange::Put(put)).map(drop)
    }

    fn put_fresh(&mut self, place: &KeyPlace, put: RecordPut<'_>, fresh: NewBody<'k>) -> Result<Replaced> {
        let put = RecordPut { body: fresh.body(), allocated: fresh.reserved.runs(), ..put };
        self.placed = false;
        let result = self.write(place, &RecordChange::Put(put));
        if self.placed {
            // Also if a later step failed: the record refers to the pages, and undoing it frees them.
            fresh.reserved.settle();
        }
        result
    }

    fn write_segments(
        &mut self,
        len: u64,
        read: impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Segments<'k>> {
        self.leaves_garbage = true;
        Segments::write(&self.keyspace.store, len, read)
    }

    /// Writes another copy of a value of any size.
    fn copy_value(&mut self, entry: &Entry, to: (u8, &[u8]), expire: Expire) -> Result<()> {
        match entry.kind {
            Kind::String => {}
            Kind::List => return self.copy_list(entry, to, expire),
            Kind::Stream => return self.copy_stream(entry, to, expire),
            _ => return self.copy_members(entry, to, expire),
        }
        let meta = Meta::parse(&entry.record)?;
        let target = self.place(to.0, to.1)?;
        let stored_key: &[u8] = if target.key.is_long() { to.1 } else { &[] };
        let old_skip = u64::from(meta.head.key_len);
        let skip = stored_key.len() as u64;
        let len = skip + entry.len;
        let store = &self.keyspace.store;
        let read = |range: Range<u64>, out: &mut Vec<u8>| {
            let of_key = range.start.min(skip) as usize..range.end.min(skip) as usize;
            out.extend_from_slice(&stored_key[of_key]);
            let of_value = range.start.max(skip) - skip + old_skip..range.end.max(skip) - skip + old_skip;
            store.read_payload(&meta.body, of_value, out)
        };
        let mut put = RecordPut::new(meta.head.form, expire, stored_key.len());
        if len > EXTENT_MAX as u64 {
            let segments = self.write_segments(len, read)?;
            return self.put_segments(&target, put, segments).map(drop);
        }
        let mut payload = Vec::with_capacity(len as usize);
        read(0..len, &mut payload)?;
        if payload.len() <= INLINE_MAX {
            put.body = Body::Inline(&payload);
            return self.write(&target, &RecordChange::Put(put)).map(drop);
        }
        let fresh = NewBody::write(&store.pager, &payload)?;
        self.put_fresh(&target, put, fresh).map(drop)
    }

    /// Removes a record by its tree key, for the background thread. The transaction must hold its stripe.
    pub(crate) fn remove_record(&mut self, db: u8, key: TreeKey, why: Removal) -> Result<bool> {
        let place = self.place_of_record(db, key)?;
        self.remove(&place, why)
    }

    /// Removes up to `budget` due fields of a hash by its tree key, for the background thread. The transaction must hold its stripe.
    pub(crate) fn remove_due_fields_of(&mut self, db: u8, key: TreeKey, budget: usize) -> Result<usize> {
        let place = self.place_of_record(db, key)?;
        self.remove_due_fields(&place, budget)
    }

    fn place_of_record(&self, db: u8, key: TreeKey) -> Result<KeyPlace> {
        let space = self.keyspace.databases.space(db);
        let mut place = self.place_of(db, space, key)?;
        if place.key.is_long() && self.keyspace.needs_names() {
            let mut record = Vec::new();
            self.keyspace.store.records.get(place.key.as_slice(), &mut record)?;
            let name = self.user_key(place.key.suffix(), &Meta::parse(&record)?)?;
            place.long_name = Some(name.into());
        }
        Ok(place)
    }

    /// Removes a record. Returns true if there was a key that had not expired.
    fn remove(&mut self, place: &KeyPlace, why: Removal) -> Result<bool> {
        let facts = self.write(place, &RecordChange::Remove(why))?;
        if !facts.existed {
            self.durability_lsn = self.durability_lsn.max(place.stripe_lsn);
        }
        let expired = facts.expire.is_some_and(|expire| self.now > expire);
        if facts.existed && expired {
            self.keyspace.store.metrics.expired.add(1);
        }
        if !expired && let Some(old) = &facts.due_hash {
            // Purge has not begun with the elements, because the transaction is open or holds the stripe.
            let are_all_due = field_times::are_all_due(&self.keyspace.store, &Meta::parse(old)?, self.now)?;
            if are_all_due {
                self.effect_of_removal(place);
            }
            return Ok(!are_all_due);
        }
        Ok(facts.existed && !expired)
    }
}

fn check_len(len: u64) -> Result<()> {
    if len > VALUE_MAX { Err(Error::TooLarge { what: "value", limit: VALUE_MAX }) } else { Ok(()) }
}
