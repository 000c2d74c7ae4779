//! Changing hashes of elements, fields of which may expire, and the expiry times of fields; removing due fields.
//!
//! A change of elements is one record transaction: the fields, their elements by time, and the meta record with the number of fields, how many of them
//! have a time, and the least time (EN-84). Its end is in one place, `put_field_count`.

use std::ops::Bound;

use btree::Batch;

use crate::error::{Error, Result};
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::field_times;
use crate::keyspace::field_times::{FIELD_TIME_MAX, FieldTimes};
use crate::keyspace::key;
use crate::keyspace::key::{ELEMENTS, TreeKey};
use crate::keyspace::key_events::event_class;
use crate::keyspace::key_txn::{Entry, KeyPlace, KeyTransaction};
use crate::keyspace::members_write::of_kind;
use crate::keyspace::packed;
use crate::keyspace::packed::{PackLimits, PackedItems, packed_part};
use crate::keyspace::record::{Body, Head, Kind, Meta};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, Removal};
use crate::keyspace::watch_registry::Touch;

/// A change of a field of a hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldChange {
    Keep,
    /// It expires when the clock shows more, in milliseconds since 1970: at least 1, at most `FIELD_TIME_MAX`.
    Until(u64),
    /// It does not expire.
    Persist,
    Remove,
}

/// A hash of elements while it is changed.
struct TimedHash {
    version: u64,
    /// Number of fields, due ones included.
    count: u64,
    /// Number of fields that have an expiry time.
    timed: u64,
    form: u8,
    /// An expiry time was added or removed.
    has_new_times: bool,
    is_changed: bool,
}

impl TimedHash {
    fn of(meta: &Meta<'_>) -> Result<TimedHash> {
        let Body::Elements { count, version, fields } = meta.body else { return Err(Error::Misuse("a packed hash")) };
        let timed = FieldTimes::parse(fields).map_or(0, |times| times.timed);
        Ok(TimedHash { version, count, timed, form: meta.head.form, has_new_times: false, is_changed: false })
    }
}

impl KeyTransaction<'_> {
    pub(crate) fn is_due(&self, time: Option<u64>) -> bool {
        time.is_some_and(|time| self.now > time)
    }

    /// Changes the expiry times of fields of the hash at a key, which must be absent or a hash. `choose` is called with the position and the expiry time of each
    /// field that is there, in order. The last field takes the key with it.
    pub fn change_fields(
        &mut self,
        db: u8,
        key: &[u8],
        names: &[&[u8]],
        limits: PackLimits,
        choose: &mut dyn FnMut(usize, Option<u64>) -> FieldChange,
    ) -> Result<()> {
        if !self.records_effects() {
            return self.change_fields_as(db, key, names, limits, choose);
        }
        let mut changes = Vec::new();
        let noting = &mut |number, old| {
            let change = choose(number, old);
            changes.push((names[number], change));
            change
        };
        self.change_fields_as(db, key, names, limits, noting)?;
        for (field, change) in changes {
            match change {
                FieldChange::Keep => {}
                FieldChange::Until(time) => {
                    self.effect(db, KeyEffect::FieldsExpireAt { key, fields: &[field], at_ms: Some(time) });
                }
                FieldChange::Persist => {
                    self.effect(db, KeyEffect::FieldsExpireAt { key, fields: &[field], at_ms: None })
                }
                FieldChange::Remove => {
                    self.effect(db, KeyEffect::RemoveMembers { key, kind: Kind::Hash, members: &[field] });
                }
            }
        }
        Ok(())
    }

    fn change_fields_as(
        &mut self,
        db: u8,
        key: &[u8],
        names: &[&[u8]],
        limits: PackLimits,
        choose: &mut dyn FnMut(usize, Option<u64>) -> FieldChange,
    ) -> Result<()> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let Some(entry) = self.entry(&place)? else { return Ok(()) };
        let meta = of_kind(&entry, Kind::Hash)?;
        let Body::Inline(payload) = meta.body else {
            let changed = self.change_elements(&place, &entry, names, choose);
            return changed.inspect_err(|error| self.mark_broken(error));
        };
        let mut items = PackedItems::parse(Kind::Hash, packed_part(&meta, payload))?;
        let mut is_changed = self.remove_due_items(&place, &mut items)? > 0;
        for (nth, name) in names.iter().enumerate() {
            let Some(old) = items.time(name)? else { continue };
            let change = choose(nth, old);
            match change {
                FieldChange::Keep => continue,
                FieldChange::Until(time) => items.set_time(name, Some(valid(time)?))?,
                FieldChange::Persist => items.set_time(name, None)?,
                FieldChange::Remove => drop(items.remove(name)?),
            }
            is_changed = true;
        }
        if items.count == 0 {
            self.remove_record_at(&place)
        } else if is_changed {
            let mut build = self.build(db, key, Kind::Hash, limits)?;
            build.start(meta.head.form, items);
            build.settle()?;
            self.put_build(&place, build, Expire::Keep)
        } else {
            Ok(())
        }
    }

    fn change_elements(
        &mut self,
        place: &KeyPlace,
        entry: &Entry,
        names: &[&[u8]],
        choose: &mut dyn FnMut(usize, Option<u64>) -> FieldChange,
    ) -> Result<()> {
        let meta = Meta::parse(&entry.record)?;
        let mut fields = TimedHash::of(&meta)?;
        for (nth, name) in names.iter().enumerate() {
            let Some(found) = self.member(entry, name)? else { continue };
            let change = choose(nth, found.expire_at_ms);
            match change {
                FieldChange::Keep => continue,
                FieldChange::Remove => self.remove_field(place, &mut fields, name, found.expire_at_ms)?,
                FieldChange::Until(_) | FieldChange::Persist => {
                    let time = if let FieldChange::Until(time) = change { Some(valid(time)?) } else { None };
                    self.begin()?;
                    if found.expire_at_ms != time {
                        let element = self.element_place(place, fields.version, Kind::Hash, name)?;
                        self.put_again(&element, &found, time.map_or(Expire::None, Expire::At))?;
                        self.retime(place, &mut fields, name, found.expire_at_ms, time)?;
                    }
                }
            }
            fields.is_changed = true;
        }
        self.put_field_count(place, entry, fields)
    }

    /// Puts fields into a hash of elements, of which fields expire. Returns the number of new ones.
    pub(crate) fn put_fields(
        &mut self,
        place: &KeyPlace,
        entry: &Entry,
        items: &[(&[u8], &[u8])],
        limits: PackLimits,
        keeps_times: bool,
    ) -> Result<u64> {
        let meta = Meta::parse(&entry.record)?;
        let (mut fields, mut added) = (TimedHash::of(&meta)?, 0);
        self.begin()?;
        for (name, value) in items {
            let old = self.member_or_due(entry, name)?;
            let old_time = old.as_ref().and_then(|old| old.expire_at_ms);
            let is_there = old.is_some() && !self.is_due(old_time);
            let time = old_time.filter(|_| keeps_times && is_there);
            self.put_element_until(place, (fields.version, Kind::Hash), (name, value), time)?;
            self.retime(place, &mut fields, name, old_time, time)?;
            fields.count += u64::from(old.is_none());
            added += u64::from(!is_there);
            fields.form |= limits.form(Kind::Hash, fields.count, name, value);
        }
        fields.is_changed = !items.is_empty();
        self.put_field_count(place, entry, fields)?;
        Ok(added)
    }

    /// Removes fields from a hash of elements. Returns how many there were.
    pub(crate) fn remove_fields(&mut self, place: &KeyPlace, entry: &Entry, names: &[&[u8]]) -> Result<u64> {
        let meta = Meta::parse(&entry.record)?;
        let (mut fields, mut removed) = (TimedHash::of(&meta)?, 0);
        for name in names {
            let Some(found) = self.member(entry, name)? else { continue };
            self.remove_field(place, &mut fields, name, found.expire_at_ms)?;
            removed += 1;
        }
        self.put_field_count(place, entry, fields)?;
        Ok(removed)
    }

    fn remove_field(&mut self, place: &KeyPlace, fields: &mut TimedHash, name: &[u8], time: Option<u64>) -> Result<()> {
        self.begin()?;
        let element = self.element_place(place, fields.version, Kind::Hash, name)?;
        self.write(&element, &RecordChange::Remove(Removal::Deleted))?;
        self.retime(place, fields, name, time, None)?;
        fields.count -= 1;
        fields.is_changed = true;
        Ok(())
    }

    /// Replaces a field's element by time.
    fn retime(
        &mut self,
        place: &KeyPlace,
        fields: &mut TimedHash,
        name: &[u8],
        old: Option<u64>,
        new: Option<u64>,
    ) -> Result<()> {
        if old == new {
            return Ok(());
        }
        let element = self.element_place(place, fields.version, Kind::Hash, name)?;
        if let Some(old) = old {
            let by_time = by_time(place, fields.version, old, element.key.as_slice());
            self.write(&by_time, &RecordChange::Remove(Removal::Deleted))?;
            fields.timed -= 1;
        }
        if let Some(new) = new {
            let by_time = by_time(place, fields.version, new, element.key.as_slice());
            self.write(&by_time, &RecordChange::Put(RecordPut::new(0, Expire::None, 0)))?;
            fields.timed += 1;
        }
        fields.has_new_times = true;
        Ok(())
    }

    /// Ends a change of the elements of a hash: writes its record, packs it again if few fields are left, or removes it if none is that is not due.
    fn put_field_count(&mut self, place: &KeyPlace, entry: &Entry, fields: TimedHash) -> Result<()> {
        if !fields.is_changed {
            return Ok(());
        }
        if fields.count == 0 {
            return self.remove_record_at(place);
        }
        let meta = Meta::parse(&entry.record)?;
        let Body::Elements { count: old_count, fields: old_times, .. } = meta.body else {
            return Err(Error::Misuse("a packed hash"));
        };
        let mut times = FieldTimes::parse(old_times);
        if fields.has_new_times {
            let least = field_times::first_time(&self.keyspace.store, fields.version)?;
            times = least.map(|least| FieldTimes { timed: fields.timed, least });
            if times.is_some() != (fields.timed > 0) {
                return Err(Error::corrupt("a hash whose fields and their elements by time disagree"));
            }
        }
        let bytes = FieldTimes::bytes(times);
        let (count, version) = (fields.count, fields.version);
        if fields.count < old_count {
            let head = Head { form: fields.form, ..meta.head };
            let now_is = Meta { head, body: Body::Elements { count, version, fields: &bytes } };
            if field_times::are_all_due(&self.keyspace.store, &now_is, self.now)? {
                self.fields_expired(place, fields.count);
                self.effect_of_removal(place);
                return self.remove_record_at(place);
            }
            if let Some((stored_key, items)) = self.repacked(entry, fields.count)? {
                let due = fields.count - items.count as u64;
                self.fields_expired(place, due);
                self.put_packed(place, &meta, &stored_key, &items)?;
                return if due > 0 { self.effect_of_members(place.db, &place.name()) } else { Ok(()) };
            }
        }
        if count != old_count || fields.form != meta.head.form || bytes != old_times {
            self.put_count(place, &meta, fields.form, count, &bytes)
        } else {
            self.touched(place, Touch::Changed);
            Ok(())
        }
    }

    /// Removes due fields from the items of a packed hash that is about to be written. Returns how many there were.
    pub(crate) fn remove_due_items(&mut self, place: &KeyPlace, items: &mut PackedItems) -> Result<usize> {
        if self.records_effects() {
            let due = items.due(self.now)?;
            self.effect_of_due(place, &due);
        }
        let removed = items.remove_due(self.now)?;
        self.fields_expired(place, removed as u64);
        Ok(removed)
    }

    /// Records the removal of due fields, by their names.
    fn effect_of_due(&mut self, place: &KeyPlace, due: &[Vec<u8>]) {
        if !due.is_empty() {
            let members: Vec<&[u8]> = due.iter().map(Vec::as_slice).collect();
            self.effect(place.db, KeyEffect::RemoveMembers { key: &place.name(), kind: Kind::Hash, members: &members });
        }
    }

    /// Counts and notifies of due fields that are removed.
    fn fields_expired(&mut self, place: &KeyPlace, count: u64) {
        if count > 0 {
            self.keyspace.store.metrics.expired_fields.add(count);
            self.notify_at(place, event_class::HASH, "hexpired");
        }
    }

    /// Removes up to `budget` due fields of the hash at a place, for the background thread; all of them, and with them the key, if no other is left. Returns
    /// about how many records it has changed. The transaction must hold the place's stripe.
    pub(crate) fn remove_due_fields(&mut self, place: &KeyPlace, budget: usize) -> Result<usize> {
        let mut record = Vec::new();
        if !self.keyspace.store.records.get(place.key.as_slice(), &mut record)?.present {
            return Ok(1);
        }
        let meta = Meta::parse(&record)?;
        if field_times::are_all_due(&self.keyspace.store, &meta, self.now)? {
            let due = match meta.body {
                Body::Elements { count, .. } => count,
                Body::Inline(payload) => packed::split(packed_part(&meta, payload))?.count,
                _ => 0,
            };
            self.fields_expired(place, due);
            self.remove_record_at(place)?;
            self.effect_of_removal(place);
            self.notify_at(place, event_class::GENERIC, "del");
            return Ok(1);
        }
        match meta.body {
            Body::Inline(payload) => {
                let mut items = PackedItems::parse(Kind::Hash, packed_part(&meta, payload))?;
                if self.remove_due_items(place, &mut items)? > 0 {
                    self.put_packed(place, &meta, &payload[..meta.head.key_len as usize], &items)?;
                }
                Ok(1)
            }
            _ => {
                let Some(entry) = self.entry(place)? else { return Ok(1) };
                let removed = self.remove_due_elements(place, &entry, budget);
                removed.inspect_err(|error| self.mark_broken(error))
            }
        }
    }

    /// Returns the name of a field by the tree key of its element.
    fn name_of_field(&self, tree_key: &[u8]) -> Result<Vec<u8>> {
        if let Some(short) = key::parse_member(tree_key)?.short {
            return Ok(short.to_vec());
        }
        let (mut record, mut name) = (Vec::new(), Vec::new());
        self.keyspace.store.records.get(tree_key, &mut record)?;
        self.long_member(&record, &mut name)?;
        Ok(name)
    }

    fn remove_due_elements(&mut self, place: &KeyPlace, entry: &Entry, budget: usize) -> Result<usize> {
        let meta = Meta::parse(&entry.record)?;
        let mut fields = TimedHash::of(&meta)?;
        let (from, to) = (key::due_bound(fields.version, 0), key::due_bound(fields.version, self.now));
        let mut due = Vec::new();
        let mut scan =
            self.keyspace.store.records.scan(Bound::Included(&from), Bound::Excluded(&to)).with_limit(budget);
        let mut batch = Batch::new();
        while due.len() < budget && scan.next_batch(&mut batch)? {
            due.extend(batch.iter().take(budget - due.len()).map(|found| found.key.to_vec()));
        }
        drop(scan);
        let mut names = Vec::new();
        for by_time in &due {
            self.begin()?;
            let (_, field) = key::parse_due_field(by_time)?;
            if self.records_effects() {
                names.push(self.name_of_field(&field)?);
            }
            for tree_key in [&field[..], &by_time[..]] {
                self.write(&element_at(place, tree_key), &RecordChange::Remove(Removal::Deleted))?;
            }
            fields.count -= 1;
            fields.timed -= 1;
            (fields.has_new_times, fields.is_changed) = (true, true);
        }
        self.fields_expired(place, due.len() as u64);
        self.effect_of_due(place, &names);
        self.put_field_count(place, entry, fields)?;
        Ok(due.len().max(1))
    }
}

fn valid(time: u64) -> Result<u64> {
    if (1..=FIELD_TIME_MAX).contains(&time) {
        Ok(time)
    } else {
        Err(Error::Misuse("an expiry time of a field out of range"))
    }
}

fn by_time(of: &KeyPlace, version: u64, time: u64, field_key: &[u8]) -> KeyPlace {
    element_at(of, &key::due_field(version, time, field_key))
}

fn element_at(of: &KeyPlace, tree_key: &[u8]) -> KeyPlace {
    KeyPlace {
        db: of.db,
        space: ELEMENTS,
        key: TreeKey::from_bytes(tree_key),
        stripe_lsn: of.stripe_lsn,
        long_name: None,
    }
}
