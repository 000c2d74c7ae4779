//! Copying a stream, and the memory that it takes.

use std::collections::HashSet;
use std::ops::{Bound, Range};

use btree::Batch;

use crate::error::{Error, Result};
use crate::keyspace::build::put_new_element;
use crate::keyspace::key;
use crate::keyspace::key_txn::{Entry, KeyTransaction};
use crate::keyspace::record::{Body, INLINE_MAX, Kind, Meta};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut};
use crate::keyspace::segments::Segments;
use crate::keyspace::streams::chunk::StreamState;
use crate::keyspace::streams::stream::Stream;
use crate::keyspace::streams::stream_id::StreamId;

impl KeyTransaction<'_> {
    /// Copies a stream to a key, with its groups and pending entries.
    pub(crate) fn copy_stream(&mut self, entry: &Entry, to: (u8, &[u8]), expire: Expire) -> Result<()> {
        let meta = Meta::parse(&entry.record)?;
        let target = self.place(to.0, to.1)?;
        let stored_key: &[u8] = if target.key.is_long() { to.1 } else { &[] };
        let mut put = RecordPut::new(0, expire, stored_key.len());
        put.kind = Kind::Stream;
        let (state, count, source) = match meta.body {
            Body::Inline(payload) => (&payload[meta.head.key_len as usize..], 0, None),
            Body::Elements { count, version, fields } => (fields, count, Some(version)),
            _ => return Err(Error::corrupt("a stream's record of unknown form")),
        };
        if source.is_none() && stored_key.len() + state.len() <= INLINE_MAX {
            let payload = [stored_key, state].concat();
            put.body = Body::Inline(&payload);
            return self.write(&target, &RecordChange::Put(put)).map(drop);
        }
        self.leaves_garbage = true;
        let store = &self.keyspace.store;
        let version = Segments::write(store, stored_key.len() as u64, |range, out| {
            out.extend_from_slice(&stored_key[range.start as usize..range.end as usize]);
            Ok(())
        })?;
        let count = match source {
            Some(source) => {
                let stream = self.stream_of(&target, entry)?;
                self.copy_elements(&stream, source, version.version())?;
                count
            }
            None => StreamState::tail_live(state)?,
        };
        put.body = Body::Elements { count, version: version.version(), fields: state };
        self.put_unnamed(&target, put, version.version()).map(drop)
    }

    /// Copies elements to a version id that no key refers to yet, outside of any transaction.
    fn copy_elements(&self, stream: &Stream<'_>, from: u64, to: u64) -> Result<()> {
        let store = &self.keyspace.store;
        let mut groups = HashSet::new();
        let mut walk = self.groups(stream);
        while let Some(group) = walk.next_group(self)? {
            groups.insert(group.id);
        }
        let (first, end) = key::elements(from);
        let mut scan = store.records.scan(Bound::Included(&first[..]), Bound::Excluded(&end[..]));
        let mut batch = Batch::new();
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                let kind = key::version_and_kind(record.key).map(|(_, kind)| kind);
                let kind = kind.ok_or_else(|| Error::corrupt("the key of an element is too short"))?;
                let sub = key::sub_key(record.key);
                // What was trimmed or removed may still wait for the background.
                let is_live = match kind {
                    key::SEGMENT => false,
                    key::STREAM_CHUNK => {
                        *record.key >= *stream.chunk_key(from, stream.state.start).as_slice()
                            && *record.key <= *stream.chunk_key(from, StreamId::MAX).as_slice()
                    }
                    key::GROUP => true,
                    _ => self.is_of_consumer(from, kind, sub, &groups)?,
                };
                if !is_live {
                    continue;
                }
                let meta = Meta::parse(record.value)?;
                let name_len = u64::from(meta.head.key_len);
                let mut name = Vec::new();
                store.read_payload(&meta.body, 0..name_len, &mut name)?;
                let read = |range: Range<u64>, out: &mut Vec<u8>| {
                    store.read_payload(&meta.body, range.start + name_len..range.end + name_len, out)
                };
                put_new_element(store, &key::sub_element(to, kind, sub), &name, meta.len(), &read)?;
            }
        }
        Ok(())
    }

    /// Returns whether an element belongs to one of these groups and, if it is of one consumer, to one that exists.
    fn is_of_consumer(&self, version: u64, kind: u8, sub: &[u8], groups: &HashSet<u32>) -> Result<bool> {
        let number = |at: usize| sub.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
        match (number(0), number(4)) {
            (Some(group), _) if !groups.contains(&group) => Ok(false),
            (Some(group), Some(consumer)) if kind == key::OWNED => {
                Ok(self.consumer_at(version, group, consumer)?.is_some())
            }
            (group, _) => Ok(group.is_some()),
        }
    }

    /// Returns the bytes of a stream's elements: those of the first ones, times their share in its entries. With 0 samples all are counted.
    pub(crate) fn elements_memory(&self, entry: &Entry, samples: u64) -> Result<u64> {
        let Some(version) = Meta::parse(&entry.record)?.body.version() else { return Ok(0) };
        let (first, end) = key::elements(version);
        let mut scan = self.keyspace.store.records.scan(Bound::Included(&first[..]), Bound::Excluded(&end[..]));
        let (mut batch, mut bytes, mut seen, mut entries) = (Batch::new(), 0, 0, 0);
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                let meta = Meta::parse(record.value)?;
                let pages: u64 = meta.body.runs().map(|run| u64::from(run.pages)).sum();
                bytes += (record.key.len() + record.value.len()) as u64 + pages * pager::PAGE_BYTES as u64;
                seen += 1;
                if key::version_and_kind(record.key).is_some_and(|(_, kind)| kind == key::STREAM_CHUNK) {
                    entries += u64::from(self.chunk(record.key, record.value)?.head.live);
                }
            }
            if samples > 0 && seen >= samples && entries > 0 {
                return Ok((u128::from(bytes) * u128::from(entry.count()?) / u128::from(entries)) as u64);
            }
        }
        Ok(bytes)
    }
}
