//! The one way in which meta records change.
//!
//! ```text
//!   expiry entry of the new time        its own record, before (X1)
//!   meta record                         one descent: what stands there decides what becomes free
//!   purge queue                         if a value of many records came or went; then all this is a transaction
//!   expiry entry of the old time        its own record, after, or after COMMIT
//!   counts, watchers
//! ```
//! A value of many records is written before its meta record, under a version id that nobody knows yet and that stands in the purge queue meanwhile: a crash
//! leaves it to the background (E8). The transaction that makes it reachable takes it out of the queue; the one that drops its predecessor puts that in.

use std::ops::Range;

use btree::OldRecord;
use pager::{Lsn, Run};

use crate::error::Result;
use crate::keyspace::expiry;
use crate::keyspace::key::{self, SEGMENT};
use crate::keyspace::purge;
use crate::keyspace::record::{self, Body, EXTENT_MAX, Head, Kind, Meta};
use crate::keyspace::unit::{Expire, KeyPlace, KeyTransaction, Removal};
use crate::keyspace::value::{self, NewBody};
use crate::keyspace::watch::Touch;
use crate::txn::{Counted, PageChanges, Store};

/// A meta record to be.
pub(crate) struct RecordPut<'a> {
    pub kind: Kind,
    pub form: u8,
    pub expire: Expire,
    pub key_len: u32,
    pub body: Body<'a>,
    /// ReservedPages pages that the body names for the first time.
    pub allocated: &'a [Run],
    /// The body may name pages that the old record names too.
    pub shares_pages: bool,
    /// The value stays the same: watchers need not know.
    pub unseen: bool,
}

impl RecordPut<'_> {
    pub fn new(form: u8, expire: Expire, key_len: usize) -> Self {
        RecordPut {
            kind: Kind::String,
            form,
            expire,
            key_len: key_len as u32,
            body: Body::Inline(&[]),
            allocated: &[],
            shares_pages: false,
            unseen: false,
        }
    }
}

pub(crate) enum RecordChange<'a> {
    Put(RecordPut<'a>),
    Remove(Removal),
}

/// What stood there before.
#[derive(Clone, Copy, Default)]
pub(crate) struct Replaced {
    pub existed: bool,
    pub expire: Option<u64>,
    /// The old value's elements, which nobody names any more.
    orphaned: Option<u64>,
    new_expire: Option<u64>,
    pub needs_txn: bool,
}

impl Replaced {
    /// The time in the old record, if the new one has another.
    pub fn stale_time(&self) -> Option<u64> {
        self.expire.filter(|old| Some(*old) != self.new_expire)
    }
}

/// Changes the record under its leaf's latch.
pub(crate) fn apply(
    old: Option<&OldRecord<'_>>,
    pages: &mut PageChanges<'_, '_>,
    target: &RecordChange<'_>,
    now: u64,
    alone: bool,
) -> Result<Replaced> {
    let meta = old.map(|old| Meta::parse(old.value)).transpose()?;
    let mut facts = Replaced { existed: old.is_some(), ..Replaced::default() };
    let mut dropped = Vec::new();
    if let Some(meta) = &meta {
        facts.expire = meta.head.expire;
        let (keeps_pages, keeps_version) = match target {
            RecordChange::Put(put) => (put.shares_pages, put.body.version() == meta.body.version()),
            RecordChange::Remove(why) => (false, *why == Removal::Renamed),
        };
        facts.orphaned = meta.body.version().filter(|_| !keeps_version);
        if facts.orphaned.is_some() && alone {
            facts.needs_txn = true;
            return Ok(facts);
        }
        if !matches!(target, RecordChange::Remove(Removal::Renamed)) {
            let kept: Vec<_> = match target {
                RecordChange::Put(put) if keeps_pages => put.body.runs().collect(),
                _ => Vec::new(),
            };
            let is_kept = |page| kept.iter().any(|run| (run.first..run.first + u64::from(run.pages)).contains(&page));
            dropped = record::without(meta.body.runs(), is_kept);
        }
    }
    match target {
        RecordChange::Put(put) => {
            facts.new_expire = match put.expire {
                Expire::Keep => meta.filter(|meta| !meta.is_expired(now)).and_then(|meta| meta.head.expire),
                Expire::None => None,
                Expire::At(time) => Some(time),
            };
            let head = Head { kind: put.kind, form: put.form, expire: facts.new_expire, key_len: put.key_len };
            put.body.with_bytes(|one, two| pages.change.put(&[head.bytes(&put.body).as_slice(), one, two]));
            pages.allocated(put.allocated);
        }
        RecordChange::Remove(_) if facts.existed => pages.change.delete(),
        RecordChange::Remove(_) => {}
    }
    pages.dropped(dropped);
    Ok(facts)
}

impl<'k> KeyTransaction<'k> {
    pub(crate) fn write(&mut self, place: &KeyPlace, target: &RecordChange<'_>) -> Result<Replaced> {
        self.before_change()?;
        if let RecordChange::Put(RecordPut { expire: Expire::At(time), .. }) = target {
            let entry = expiry::entry(*time, place.key.as_slice());
            let is_new = self.keyspace.add_expiry(place.db, &entry)?;
            if self.txn.is_some() && is_new {
                self.stale_if_aborted.push(entry);
            }
        }
        let mut facts = self.write_record(place, target)?;
        if facts.needs_txn {
            self.begin()?;
            facts = self.write_record(place, target)?;
        }
        if let (Some(version), Some(txn)) = (facts.orphaned, &mut self.txn) {
            self.leaves_garbage = true;
            let value = purge::encode_version(txn.id());
            txn.change_too(&self.keyspace.store.queue, &purge::version_key(version), |_, pages| {
                pages.change.put(&[&value]);
            })?;
        }
        self.after_write(place, target, &facts)?;
        Ok(facts)
    }

    fn write_record(&mut self, place: &KeyPlace, target: &RecordChange<'_>) -> Result<Replaced> {
        let (now, key) = (self.now, place.key.as_slice());
        if let (RecordChange::Remove(_), Some(txn)) = (target, &mut self.txn) {
            txn.removes();
        }
        let records = &self.keyspace.store.records;
        let (done, alone) = match &mut self.txn {
            Some(txn) => (txn.change(records, key, |old, pages| apply(old, pages, target, now, false))?, false),
            None => {
                let done = records.modify(key, None, |old, change| {
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
        if keys == 0 {
            return;
        }
        match &mut self.txn {
            Some(txn) => txn.count(place.space, keys, 0),
            None => self.keyspace.counts.add(place.db, place.space, Counted { keys, expiries: 0 }, lsn),
        }
    }

    fn after_write(&mut self, place: &KeyPlace, target: &RecordChange<'_>, facts: &Replaced) -> Result<()> {
        if let Some(old) = facts.stale_time() {
            let entry = expiry::entry(old, place.key.as_slice());
            if self.txn.is_some() {
                self.stale_if_committed.push(entry);
            } else {
                // The change is made, whatever becomes of the entry: one that stays is found out when its time comes.
                let _ = self.keyspace.remove_expiry(&entry);
            }
        }
        let was_expired = facts.expire.is_some_and(|expire| self.now > expire);
        match target {
            RecordChange::Remove(_) if !facts.existed => {}
            RecordChange::Put(put) if put.unseen => {}
            RecordChange::Remove(why) if *why == Removal::Expired || was_expired => self.touched(place, Touch::Expired),
            _ => self.touched(place, Touch::Changed),
        }
        Ok(())
    }

    /// Puts a value of more than 256 KiB whose segments are written.
    pub(crate) fn put_segments(
        &mut self,
        place: &KeyPlace,
        mut put: RecordPut<'_>,
        segments: Segments<'_>,
    ) -> Result<()> {
        // If anything fails from here on, the segments still stand in the purge queue.
        self.leaves_garbage = true;
        self.begin()?;
        put.body = Body::Segments { len: segments.len, version: segments.version };
        self.write(place, &RecordChange::Put(put))?;
        let txn = self.txn.as_mut().expect("begun above");
        let queue = &self.keyspace.store.queue;
        txn.change_too(queue, &purge::version_key(segments.version), |_, pages| pages.change.delete())?;
        Ok(())
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
        let done = match &mut self.txn {
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

fn apply_segment(old: Option<&OldRecord<'_>>, pages: &mut PageChanges<'_, '_>, fresh: &NewBody<'_>) -> Result<()> {
    let body = fresh.body();
    let dropped = match old {
        None => Vec::new(),
        Some(old) => {
            let kept: Vec<Run> = body.runs().collect();
            let is_kept = |page| kept.iter().any(|run| (run.first..run.first + u64::from(run.pages)).contains(&page));
            record::without(record::parse_segment(old.value)?.runs(), is_kept)
        }
    };
    body.with_bytes(|one, two| pages.change.put(&[&record::segment_head(&body), one, two]));
    pages.allocated(fresh.reserved.runs());
    pages.dropped(dropped);
    Ok(())
}

/// Segments written under a version id that no key has yet.
pub(crate) struct Segments<'s> {
    store: &'s Store,
    version: u64,
    len: u64,
}

impl<'s> Segments<'s> {
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Writes a payload of `len` bytes; `read` appends a range of it. Until a key takes them, the segments stand in the purge queue.
    pub fn write(
        store: &'s Store,
        len: u64,
        read: impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Segments<'s>> {
        let version = store.new_id();
        store.creating.lock().insert(version);
        let segments = Segments { store, version, len };
        let value = purge::encode_version(0);
        store.queue.modify(&purge::version_key(version), None, |_, change| change.put(&[&value]))?;
        let size = EXTENT_MAX as u64;
        let mut payload = Vec::with_capacity(EXTENT_MAX);
        for index in 0..len.div_ceil(size) {
            payload.clear();
            read(index * size..len.min((index + 1) * size), &mut payload)?;
            segments.write_one(index as u32, &payload)?;
        }
        Ok(segments)
    }

    fn write_one(&self, index: u32, payload: &[u8]) -> Result<()> {
        // What is missing at a segment's end reads as zeros, so a gap of zeros costs nothing.
        let used = payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.store.pager.admit()?;
        let fresh = NewBody::write(&self.store.pager, &payload[..used])?;
        let key = key::element(self.version, SEGMENT, index);
        let done = self
            .store
            .records
            .modify(&key, None, |old, change| apply_segment(old.as_ref(), &mut PageChanges::alone(change), &fresh))?;
        done.result?;
        fresh.reserved.settle();
        Ok(())
    }
}

impl Drop for Segments<'_> {
    /// From here on the background may remove the segments, if the queue still names them.
    fn drop(&mut self) {
        self.store.creating.lock().remove(&self.version);
    }
}
