//! Changing hashes and sets, and what sorted sets (`sorted_write`) share with them.
//!
//! ```text
//!   packed      the one record is written again; a change that does not fit converts to elements (`build`)
//!   elements    each element is a record, and so is the meta record with the count: several of them are one record transaction
//! ```
//! `field_times_write` changes hashes of which fields expire. A collection whose members have become few and short is packed again, and its elements are left to purge. An empty one is no key.

use crate::error::{Error, Result};
use crate::keyspace::build::{Build, BuildState};
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::key::{ELEMENTS, SHORT_MEMBER_MAX};
use crate::keyspace::key_txn::{Entry, KeyPlace, KeyTransaction};
use crate::keyspace::packed::{PackLimits, PackedItems, packed_part};
use crate::keyspace::record::{Body, INLINE_MAX, Kind, Meta, RAW};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, Removal, Replaced};
use crate::keyspace::watch_registry::Touch;

/// A collection of elements is packed again if it has at most so many members of at most so many bytes.
const REPACK_COUNT: u64 = 8;
const REPACK_BYTES: usize = 400;

impl<'k> KeyTransaction<'k> {
    /// Adds fields with their values, or members of a set with empty ones, to the collection at a key, which must be absent or of this kind. A field that has an
    /// expiry time loses it. Returns the number of new ones.
    pub fn put_members(
        &mut self,
        db: u8,
        key: &[u8],
        kind: Kind,
        items: &[(&[u8], &[u8])],
        limits: PackLimits,
    ) -> Result<u64> {
        let added = self.put_members_as(db, (key, kind), items, limits, false)?;
        if added > 0 || kind == Kind::Hash && !items.is_empty() {
            self.effect(db, KeyEffect::PutMembers { key, kind, items });
        }
        Ok(added)
    }

    /// Gives a field of a hash another value. It keeps its expiry time. An absent field is added without one. Returns true if it is new.
    pub fn put_value(
        &mut self,
        db: u8,
        key: &[u8],
        (field, value): (&[u8], &[u8]),
        limits: PackLimits,
    ) -> Result<bool> {
        let is_new = self.put_members_as(db, (key, Kind::Hash), &[(field, value)], limits, true)? > 0;
        if self.records_effects() {
            self.effect(db, KeyEffect::PutMembers { key, kind: Kind::Hash, items: &[(field, value)] });
            let entry = self.peek(db, key)?;
            let found = entry.map(|entry| self.member(&entry, field)).transpose()?.flatten();
            if let Some(time) = found.and_then(|found| found.expire_at_ms) {
                self.effect(db, KeyEffect::FieldsExpireAt { key, fields: &[field], at_ms: Some(time) });
            }
        }
        Ok(is_new)
    }

    fn put_members_as(
        &mut self,
        db: u8,
        (key, kind): (&[u8], Kind),
        items: &[(&[u8], &[u8])],
        limits: PackLimits,
        keeps_times: bool,
    ) -> Result<u64> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let entry = self.entry(&place)?;
        let Some(entry) = entry else {
            let mut build = self.build(db, key, kind, limits)?;
            for (member, value) in items {
                build.put(member, value)?;
            }
            let added = build.count();
            self.put_build(&place, build, Expire::None)?;
            return Ok(added);
        };
        let meta = of_kind(&entry, kind)?;
        match meta.body {
            Body::Elements { .. } => {
                let added = self.put_elements(&place, &entry, items, limits, keeps_times);
                added.inspect_err(|error| self.mark_broken(error))
            }
            Body::Inline(payload) => {
                let mut packed = PackedItems::parse(kind, packed_part(&meta, payload))?;
                self.remove_due_items(&place, &mut packed)?;
                let times = if keeps_times {
                    items.iter().map(|(field, _)| Ok(packed.time(field)?.flatten())).collect::<Result<Vec<_>>>()?
                } else {
                    Vec::new()
                };
                let mut build = self.build(db, key, kind, limits)?;
                build.start(meta.head.form, packed);
                let mut added = 0;
                for (nth, (member, value)) in items.iter().enumerate() {
                    added += u64::from(build.put_until(member, value, times.get(nth).copied().flatten())?);
                }
                // A set that has all the members stays as it is.
                if added > 0 || kind == Kind::Hash {
                    self.put_build(&place, build, Expire::Keep)?;
                }
                Ok(added)
            }
            _ => Err(Error::corrupt("a collection that is neither packed nor has elements")),
        }
    }

    /// Stores a collection that was built, whatever the key held, without an expiry time. An empty one deletes the key. Returns the number of members.
    pub fn put_built(&mut self, db: u8, key: &[u8], build: Build<'k>) -> Result<u64> {
        self.put_built_until(db, key, build, Expire::None)
    }

    /// Does the same for a key that expires.
    pub fn put_built_until(&mut self, db: u8, key: &[u8], build: Build<'k>, expire: Expire) -> Result<u64> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let count = build.count();
        if count == 0 {
            self.delete(db, key)?;
        } else {
            self.put_build(&place, build, expire)?;
            self.effect_of_members(db, key)?;
        }
        Ok(count)
    }

    /// Stores a collection that was built and is not empty.
    pub(crate) fn put_build(&mut self, place: &KeyPlace, build: Build<'k>, expire: Expire) -> Result<()> {
        let stored_len = build.stored_key().len();
        let mut put = RecordPut::new(build.form, expire, stored_len);
        put.kind = build.kind;
        let mut payload = build.stored_key().to_vec();
        match &build.state {
            BuildState::Packed(items) => {
                items.encode(build.form, &mut payload)?;
                put.body = Body::Inline(&payload);
                self.write(place, &RecordChange::Put(put)).map(drop)
            }
            BuildState::Elements { version, count, .. } => {
                let fields = build.finish()?;
                put.body = Body::Elements { count: *count, version: version.version(), fields: &fields };
                self.put_unnamed(place, put, version.version()).map(drop)
            }
        }
    }

    /// Returns the place of an element. It needs no stripe of its own: the key's stripe is held.
    pub(crate) fn element_place(&self, of: &KeyPlace, version: u64, kind: Kind, member: &[u8]) -> Result<KeyPlace> {
        let key = self.member_key(version, kind, member);
        let key = key.ok_or_else(|| Error::corrupt("there are elements, but the catalog has no secret for members"))?;
        Ok(KeyPlace { db: of.db, space: ELEMENTS, key, stripe_lsn: of.stripe_lsn, long_name: None })
    }

    fn put_elements(
        &mut self,
        place: &KeyPlace,
        entry: &Entry,
        items: &[(&[u8], &[u8])],
        limits: PackLimits,
        keeps_times: bool,
    ) -> Result<u64> {
        let meta = Meta::parse(&entry.record)?;
        let Body::Elements { count, version, fields } = meta.body else {
            return Err(Error::Misuse("a packed collection"));
        };
        if entry.kind == Kind::Hash && !fields.is_empty() {
            return self.put_fields(place, entry, items, limits, keeps_times);
        }
        let (mut added, mut form) = (0, meta.head.form);
        if let [(member, value)] = items {
            let is_there = self.member(entry, member)?.is_some();
            form |= limits.form(entry.kind, count + u64::from(!is_there), member, value);
            if is_there && (entry.kind == Kind::Set || form == meta.head.form) {
                if entry.kind == Kind::Hash {
                    self.put_element(place, version, entry.kind, member, value)?;
                    self.touched(place, Touch::Changed);
                }
                return Ok(0);
            }
        }
        self.begin()?;
        for (member, value) in items {
            if entry.kind == Kind::Set && self.member(entry, member)?.is_some() {
                continue;
            }
            added += u64::from(!self.put_element(place, version, entry.kind, member, value)?);
            form |= limits.form(entry.kind, count + added, member, value);
        }
        if added > 0 || form != meta.head.form {
            self.put_count(place, &meta, form, count + added, &[])?;
        } else if entry.kind == Kind::Hash {
            self.touched(place, Touch::Changed);
        }
        Ok(added)
    }

    /// Returns true if the element existed.
    pub(crate) fn put_element(
        &mut self,
        place: &KeyPlace,
        version: u64,
        kind: Kind,
        member: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        Ok(self.put_element_until(place, (version, kind), (member, value), None)?.existed)
    }

    /// Writes an element, that of a field with its expiry time.
    pub(crate) fn put_element_until(
        &mut self,
        place: &KeyPlace,
        (version, kind): (u64, Kind),
        (member, value): (&[u8], &[u8]),
        time: Option<u64>,
    ) -> Result<Replaced> {
        let element = self.element_place(place, version, kind, member)?;
        let stored: &[u8] = if member.len() > SHORT_MEMBER_MAX { member } else { &[] };
        let put = RecordPut::new(0, time.map_or(Expire::None, Expire::At), stored.len());
        self.put_payload(&element, put, stored, value)
    }

    /// Writes the record of a collection of elements with another count, and with the fields of its kind.
    pub(crate) fn put_count(
        &mut self,
        place: &KeyPlace,
        meta: &Meta<'_>,
        form: u8,
        count: u64,
        fields: &[u8],
    ) -> Result<()> {
        let Body::Elements { version, .. } = meta.body else { return Err(Error::Misuse("a packed collection")) };
        let mut put = RecordPut::new(form, Expire::Keep, meta.head.key_len as usize);
        (put.kind, put.body) = (meta.head.kind, Body::Elements { count, version, fields });
        self.write(place, &RecordChange::Put(put)).map(drop)
    }

    /// Removes members from the collection at a key, which must be absent or of this kind. The last one takes the key with it. Returns how many there were.
    pub fn remove_members(&mut self, db: u8, key: &[u8], kind: Kind, members: &[&[u8]]) -> Result<u64> {
        let removed = self.remove_members_of(db, key, kind, members)?;
        if removed > 0 {
            self.effect(db, KeyEffect::RemoveMembers { key, kind, members });
        }
        Ok(removed)
    }

    fn remove_members_of(&mut self, db: u8, key: &[u8], kind: Kind, members: &[&[u8]]) -> Result<u64> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let Some(entry) = self.entry(&place)? else { return Ok(0) };
        let meta = of_kind(&entry, kind)?;
        let Body::Inline(payload) = meta.body else {
            let removed = self.remove_elements(&place, &entry, members);
            return removed.inspect_err(|error| self.mark_broken(error));
        };
        let mut items = PackedItems::parse(kind, packed_part(&meta, payload))?;
        let mut removed = 0;
        for member in members {
            // A due field is not there, and leaves with the rest of them.
            let is_due = self.is_due(items.time(member)?.flatten());
            removed += u64::from(!is_due && items.remove(member)?);
        }
        if removed > 0 {
            self.remove_due_items(&place, &mut items)?;
        }
        if items.count == 0 {
            self.remove_record_at(&place)?;
        } else if removed > 0 {
            self.put_packed(&place, &meta, &payload[..meta.head.key_len as usize], &items)?;
        }
        Ok(removed)
    }

    pub(crate) fn put_packed(
        &mut self,
        place: &KeyPlace,
        meta: &Meta<'_>,
        stored_key: &[u8],
        items: &PackedItems,
    ) -> Result<()> {
        let mut payload = stored_key.to_vec();
        items.encode(meta.head.form, &mut payload)?;
        let mut put = RecordPut::new(meta.head.form, Expire::Keep, stored_key.len());
        (put.kind, put.body) = (meta.head.kind, Body::Inline(&payload));
        self.write(place, &RecordChange::Put(put)).map(drop)
    }

    fn remove_elements(&mut self, place: &KeyPlace, entry: &Entry, members: &[&[u8]]) -> Result<u64> {
        let meta = Meta::parse(&entry.record)?;
        let Body::Elements { count, version, .. } = meta.body else { return Err(Error::Misuse("a packed collection")) };
        if entry.kind == Kind::Hash {
            return self.remove_fields(place, entry, members);
        }
        let (mut removed, mut index) = (0, self.score_index(&meta)?);
        for member in members {
            let Some(value) = self.member(entry, member)? else { continue };
            self.begin()?;
            let element = self.element_place(place, version, entry.kind, member)?;
            self.write(&element, &RecordChange::Remove(Removal::Deleted))?;
            if let Some(index) = &mut index {
                let score = self.score_of(&value)?;
                self.unindex_score(place, index, score, member)?;
            }
            removed += 1;
        }
        match count.saturating_sub(removed) {
            _ if removed == 0 => index.into_iter().for_each(|index| self.put_index_back(index)),
            0 => self.remove_record_at(place)?,
            left => match self.repacked(entry, left)? {
                Some((stored_key, items)) => self.put_packed(place, &meta, &stored_key, &items)?,
                None => {
                    let fields = index.map(|index| self.write_levels(place, index)).transpose()?.unwrap_or_default();
                    self.put_count(place, &meta, meta.head.form, left, &fields)?;
                }
            },
        }
        Ok(removed)
    }

    pub(crate) fn remove_record_at(&mut self, place: &KeyPlace) -> Result<()> {
        self.write(place, &RecordChange::Remove(Removal::Deleted)).map(drop)
    }

    /// Returns the key and the members of a collection that fits into one record again.
    pub(crate) fn repacked(&self, entry: &Entry, left: u64) -> Result<Option<(Vec<u8>, PackedItems)>> {
        let meta = Meta::parse(&entry.record)?;
        let key_len = meta.head.key_len as usize;
        if left > REPACK_COUNT || key_len + REPACK_BYTES > INLINE_MAX {
            return Ok(None);
        }
        let (mut items, mut walk) = (PackedItems::new(entry.kind), self.members(entry)?);
        while let Some(item) = walk.next(self)? {
            let Some(value) =
                item.value.bytes().filter(|value| items.len_with_time(item.member, value.len()) <= REPACK_BYTES)
            else {
                return Ok(None);
            };
            items.put_until(item.member, value, item.expire_at_ms)?;
        }
        let mut stored_key = Vec::new();
        self.keyspace.store.read_payload(&meta.key_body(), 0..key_len as u64, &mut stored_key)?;
        Ok(Some((stored_key, items)))
    }

    /// Copies a collection to a key.
    pub(crate) fn copy_members(&mut self, entry: &Entry, to: (u8, &[u8]), expire: Expire) -> Result<()> {
        // The copy keeps the form, whatever the limits are now.
        let meta = Meta::parse(&entry.record)?;
        let target = self.place(to.0, to.1)?;
        let mut build = self.build(to.0, to.1, entry.kind, PackLimits::KEEP)?;
        build.form = meta.head.form & RAW;
        let mut walk = self.members(entry)?;
        while let Some(item) = walk.next(self)? {
            let time = item.expire_at_ms;
            match item.value.bytes() {
                Some(value) => drop(build.put_read(item.member, value.len() as u64, time, &|range, out| {
                    out.extend_from_slice(&value[range.start as usize..range.end as usize]);
                    Ok(())
                })?),
                None => {
                    let value = item.value.to_entry()?;
                    let read = |range, out: &mut Vec<u8>| self.value_part(&value, range, out);
                    build.put_read(item.member, value.len, time, &read)?;
                }
            }
        }
        self.put_build(&target, build, expire)
    }
}

pub(crate) fn of_kind(entry: &Entry, kind: Kind) -> Result<Meta<'_>> {
    if entry.kind != kind {
        return Err(Error::Misuse("a change of a collection at a key of another type"));
    }
    Meta::parse(&entry.record)
}
