//! Values of more than 256 KiB: segments under a version id.
//!
//! The segments are written before their meta record, under a new version id that is in the purge queue meanwhile. So a crash leaves them to purge (EN-8). The
//! transaction that makes the value reachable removes the queue's entry; the one that removes the value adds an entry.

use std::ops::Range;

use btree::OldRecord;
use pager::Run;

use crate::error::Result;
use crate::keyspace::key::SEGMENT;
use crate::keyspace::record::EXTENT_MAX;
use crate::keyspace::value::NewBody;
use crate::keyspace::{key, record};
use crate::store::Store;
use crate::store::purge_queue::{encode_version, version_key};
use crate::txn::page_changes::PageChanges;

pub(crate) fn apply_segment(
    old: Option<&OldRecord<'_>>,
    pages: &mut PageChanges<'_, '_>,
    fresh: &NewBody<'_>,
) -> Result<()> {
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

/// Segments written under a version id that no key refers to yet.
pub(crate) struct Segments<'s> {
    store: &'s Store,
    pub version: u64,
    pub len: u64,
}

impl<'s> Segments<'s> {
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Writes a payload of `len` bytes; `read` appends a range of it. Until a key refers to them, the segments are in the purge queue.
    pub fn write(
        store: &'s Store,
        len: u64,
        read: impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Segments<'s>> {
        let version = store.new_id();
        store.creating.lock().insert(version);
        let segments = Segments { store, version, len };
        let value = encode_version(0);
        store.queue.modify(&version_key(version), None, |_, change| change.put(&[&value]))?;
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
        // Missing bytes at a segment's end read as zeros, so a gap of zeros costs nothing.
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
    /// From here on purge may remove the segments, if the queue still has their entry.
    fn drop(&mut self) {
        self.store.creating.lock().remove(&self.version);
    }
}
