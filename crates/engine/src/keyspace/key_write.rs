//! How a key transaction changes a meta record, with everything that belongs to it.
//!
//! ```text
//!   expiry entry of the new time        a record of its own, added before (EN-55)
//!   meta record                         one descent: the old record decides which pages become free
//!   purge queue                         if a value in segments was added or removed; then all this is a record transaction
//!   expiry entry of the old time        a record of its own, removed afterwards, or after COMMIT
//!   counts, watchers
//! ```

use btree::LeafHint;
use pager::Lsn;

use crate::error::Result;
use crate::keyspace::key::{ELEMENTS, SEGMENT};
use crate::keyspace::key_events::event_class;
use crate::keyspace::key_txn::{KeyPlace, KeyTransaction};
use crate::keyspace::record::{Body, EXTENT_MAX};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, Removal, Replaced, apply};
use crate::keyspace::segments::{Segments, apply_segment};
use crate::keyspace::value::NewBody;
use crate::keyspace::watch_registry::Touch;
use crate::keyspace::{expiry, field_times, key, value};
use crate::store::purge_queue::{encode_version, version_key};
use crate::store::wal::Counted;
use crate::txn::page_changes::PageChanges;

impl<'k> KeyTransaction<'k> {
    pub(crate) fn write(&mut self, place: &KeyPlace, target: &RecordChange<'_>) -> Result<Replaced> {
        if let Some(facts) = self.keep(place, target)? {
            return Ok(facts);
        }
        self.write_kept_before(Some(place))?;
        self.before_change()?;
        let leaf = self.leaf_of(place);
        if self.kept.as_ref().is_some_and(|kept| kept.is_of(place.space, &place.key)) {
            self.kept = None;
        }
        if let RecordChange::Put(put) = target
            && place.space != ELEMENTS
        {
            let key = place.key.as_slice();
            if let Expire::At(time) = put.expire {
                self.add_expiry(place, expiry::entry(time, key))?;
            }
            if let Some(time) = field_times::least_of(put.kind, &put.body, put.key_len)? {
                self.add_expiry(place, expiry::entry_of_fields(time, key))?;
            }
        }
        let mut facts = self.write_record(place, target, leaf)?;
        if facts.needs_txn {
            self.begin()?;
            facts = self.write_record(place, target, leaf)?;
        }
        if let (Some(version), Some(txn)) = (facts.orphaned, &mut self.record_txn) {
            self.leaves_garbage = true;
            let value = encode_version(txn.id());
            txn.change_too(&self.keyspace.store.queue, &version_key(version), |_, pages| {
                pages.change.put(&[&value]);
            })?;
        }
        self.after_write(place, target, &facts)?;
        Ok(facts)
    }

    fn add_expiry(&mut self, place: &KeyPlace, entry: Vec<u8>) -> Result<()> {
        let is_new = self.keyspace.add_expiry(place.db, &entry)?;
        if self.record_txn.is_some() && is_new {
            self.stale_if_aborted.push(entry);
        }
        Ok(())
    }

    /// Writes a record, whose leaf may be known.
    pub(crate) fn write_record(
        &mut self,
        place: &KeyPlace,
        target: &RecordChange<'_>,
        leaf: LeafHint,
    ) -> Result<Replaced> {
        let (now, key) = (self.now, place.key.as_slice());
        if place.space != ELEMENTS
            && let (RecordChange::Remove(_), Some(txn)) = (target, &mut self.record_txn)
        {
            txn.removes();
        }
        let records = &self.keyspace.store.records;
        let (done, alone) = match &mut self.record_txn {
            Some(txn) => {
                (txn.change_at(leaf, records, key, |old, pages| apply(old, pages, target, now, false))?, false)
            }
            None => {
                let done = records.modify_with_hint(leaf, key, None, |old, change| {
                    apply(old.as_ref(), &mut PageChanges::alone(change), target, now, true)
                })?;
                (done, true)
            }
        };
        let facts = done.result?;
        self.placed = !facts.needs_txn;
        if done.lsn != 0 {
            let keys = match target {
                RecordChange::Put(_) => i64::from(!facts.existed),
                RecordChange::Remove(_) => -i64::from(facts.existed),
            };
            self.counted_change(place, keys, done.lsn, alone);
        }
        Ok(facts)
    }

    fn counted_change(&mut self, place: &KeyPlace, keys: i64, lsn: Lsn, alone: bool) {
        if alone {
            self.changed = true;
            self.last = self.last.max(lsn);
        }
        if keys == 0 || place.space == ELEMENTS {
            return;
        }
        match &mut self.record_txn {
            Some(txn) => txn.count(place.space, keys, 0),
            None => self.keyspace.counts.add(place.db, place.space, Counted { keys, expiries: 0 }, lsn),
        }
    }

    pub(crate) fn after_write(&mut self, place: &KeyPlace, target: &RecordChange<'_>, facts: &Replaced) -> Result<()> {
        let key = place.key.as_slice();
        let stale = facts.stale_time().map(|old| expiry::entry(old, key));
        let stale_of_fields = facts.stale_field_time().map(|old| expiry::entry_of_fields(old, key));
        // The time of an element has an entry in no tree but its own (`field_times_write`).
        for entry in stale.into_iter().chain(stale_of_fields).filter(|_| place.space != ELEMENTS) {
            if self.record_txn.is_some() {
                self.stale_if_committed.push(entry);
            } else {
                // The change is made, whatever happens to the entry: one that remains is recognised as stale when its time comes.
                let _ = self.keyspace.remove_expiry(&entry);
            }
        }
        let kind = if let RecordChange::Put(put) = target { Some(put.kind) } else { None };
        if !matches!(target, RecordChange::Put(put) if put.is_idle) {
            self.readied(place, kind, facts.kind);
        }
        let was_expired = facts.expire.is_some_and(|expire| self.now > expire);
        if was_expired && facts.existed {
            self.notify_at(place, event_class::EXPIRED, "expired");
            if place.space != ELEMENTS {
                self.effect_of_removal(place);
            }
        }
        if matches!(target, RecordChange::Put(_)) && (was_expired || !facts.existed) {
            self.notify_at(place, event_class::NEW, "new");
        }
        match target {
            RecordChange::Remove(_) if !facts.existed => {}
            RecordChange::Put(put) if put.unseen => {}
            RecordChange::Remove(why) if *why == Removal::Expired || was_expired => self.touched(place, Touch::Expired),
            _ => self.touched(place, Touch::Changed),
        }
        Ok(())
    }

    /// Stores a value of more than 256 KiB whose segments are written.
    pub(crate) fn put_segments(
        &mut self,
        place: &KeyPlace,
        mut put: RecordPut<'_>,
        segments: Segments<'_>,
    ) -> Result<Replaced> {
        put.body = Body::Segments { len: segments.len, version: segments.version };
        self.put_unnamed(place, put, segments.version)
    }

    /// Stores a record that refers to a version id of the purge queue, and removes the queue's entry.
    pub(crate) fn put_unnamed(&mut self, place: &KeyPlace, put: RecordPut<'_>, version: u64) -> Result<Replaced> {
        // If anything fails from here on, the version is still in the purge queue.
        self.leaves_garbage = true;
        self.begin()?;
        let facts = self.write(place, &RecordChange::Put(put))?;
        let txn = self.record_txn.as_mut().expect("begun above");
        let queue = &self.keyspace.store.queue;
        txn.change_too(queue, &version_key(version), |_, pages| pages.change.delete())?;
        Ok(facts)
    }

    /// Changes the segments that a patch touches, and the meta record if the payload grows.
    pub(crate) fn patch_segments(
        &mut self,
        place: &KeyPlace,
        mut put: RecordPut<'_>,
        version: u64,
        old_len: u64,
        at: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let size = EXTENT_MAX as u64;
        let len = old_len.max(at + bytes.len() as u64);
        let touched = at / size..(at + bytes.len() as u64).div_ceil(size);
        let holes = old_len.div_ceil(size)..touched.start;
        if len != old_len || touched.end - touched.start > 1 {
            self.begin()?;
        }
        self.before_change()?;
        for index in holes {
            let hole = value::patch(&self.keyspace.store.pager, &Body::Inline(&[]), 0, &[])?;
            self.write_segment(version, index as u32, hole)?;
        }
        for index in touched {
            let start = index * size;
            let (from, to) = (at.max(start), (at + bytes.len() as u64).min(start + size));
            let part = &bytes[(from - at) as usize..(to - at) as usize];
            let store = &self.keyspace.store;
            let mut record = Vec::new();
            let old =
                if start < old_len { store.segment(version, index as u32, &mut record)? } else { Body::Inline(&[]) };
            let fresh = value::patch(&store.pager, &old, (from - start) as usize, part)?;
            self.write_segment(version, index as u32, fresh)?;
        }
        if len != old_len {
            put.body = Body::Segments { len, version };
            self.write(place, &RecordChange::Put(put))?;
        } else {
            self.touched(place, Touch::Changed);
        }
        Ok(())
    }

    fn write_segment(&mut self, version: u64, index: u32, fresh: NewBody<'k>) -> Result<()> {
        let key = key::element(version, SEGMENT, index);
        let records = &self.keyspace.store.records;
        let done = match &mut self.record_txn {
            Some(txn) => txn.change(records, &key, |old, pages| apply_segment(old, pages, &fresh))?,
            None => {
                let done = records.modify(&key, None, |old, change| {
                    apply_segment(old.as_ref(), &mut PageChanges::alone(change), &fresh)
                })?;
                self.changed = true;
                self.last = self.last.max(done.lsn);
                done
            }
        };
        done.result?;
        fresh.reserved.settle();
        Ok(())
    }
}
