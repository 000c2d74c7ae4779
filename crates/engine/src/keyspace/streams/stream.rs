//! A stream that a key transaction works on: its state, read from the key's record once and written there once.
//!
//! ```text
//!   no element yet     the record has the state inline, which holds the few entries in its tail
//!   elements           the record has the state behind count and version id; chunks and groups are elements
//! ```
//! An XADD changes the tail, and so one record. A tail that is full becomes a chunk, and the next entry begins a new tail.

use std::ops::{Bound, Range, RangeInclusive};

use btree::{Batch, ScanState};

use crate::error::{Error, Result};
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::key::{self, ELEMENTS, STREAM_CHUNK, TreeKey};
use crate::keyspace::key_txn::{Entry, KeyPlace, KeyTransaction};
use crate::keyspace::record::{Body, INLINE_MAX, Kind, Meta};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, Removal};
use crate::keyspace::record_walk::RecordWalk;
use crate::keyspace::segments::Segments;
use crate::keyspace::streams::chunk::{ChunkHead, HEAD_BYTES, StreamState};
use crate::keyspace::streams::stream_id::StreamId;
use crate::store::purge_queue::{range_key, range_value};

/// More elements than these are not removed by a command, but by the background.
pub(crate) const REMOVED_MAX: usize = 64;

/// A stream as a key transaction has read it. Changes are stored by `KeyTransaction::store_stream`.
pub struct Stream<'k> {
    pub(crate) place: KeyPlace,
    pub(crate) state: StreamState,
    pub(crate) len: u64,
    /// The version id of its elements, if there are any.
    pub(crate) version: Option<u64>,
    /// The version id, if this transaction has made it.
    fresh: Option<Segments<'k>>,
    /// The key, if its record has to contain it.
    stored_key: Vec<u8>,
    /// Its entries have changed, or it is new: watchers of the key are marked. A change of its ids or groups does not mark them.
    pub(crate) is_changed: bool,
    /// It is new, has got entries or lost a group: those who wait for the key are served.
    pub(crate) is_ready: bool,
    /// The key had no stream before.
    is_new: bool,
    /// Its ids were set, not by an entry.
    has_set_ids: bool,
}

impl Stream<'_> {
    /// Returns the number of entries.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the greatest id that the stream has had.
    pub fn last_id(&self) -> StreamId {
        self.state.last_id
    }

    /// Sets the id that the next one must exceed. It must not be below an entry of the stream.
    pub fn set_last_id(&mut self, id: StreamId) {
        if id < self.state.start {
            // The next chunks must not be taken for those that were trimmed.
            (self.state.epoch, self.state.start) = (self.state.epoch.wrapping_add(1), StreamId::MIN);
        }
        self.state.last_id = id;
        self.has_set_ids = true;
    }

    /// Returns the tree key of a chunk.
    pub(crate) fn chunk_key(&self, version: u64, id: StreamId) -> TreeKey {
        key::sub_element(version, STREAM_CHUNK, &[&self.state.epoch.to_be_bytes()[..], &id.to_bytes()].concat())
    }

    /// Returns the greatest id that XDEL has removed.
    pub fn max_deleted_id(&self) -> StreamId {
        self.state.max_deleted
    }

    pub fn set_max_deleted_id(&mut self, id: StreamId) {
        self.state.max_deleted = id;
        self.has_set_ids = true;
    }

    /// Returns the number of entries that were ever added.
    pub fn entries_added(&self) -> u64 {
        self.state.added
    }

    pub fn set_entries_added(&mut self, added: u64) {
        self.state.added = added;
        self.has_set_ids = true;
    }

    /// Returns the number of nodes in which Redis would keep the entries.
    pub fn node_count(&self) -> u64 {
        self.state.nodes
    }

    /// Returns the number of groups.
    pub fn group_count(&self) -> u64 {
        self.state.groups.into()
    }
}

/// The record of a chunk.
pub(crate) struct StreamChunk {
    pub id: StreamId,
    pub head: ChunkHead,
    pub record: Vec<u8>,
}

/// A walk over the chunks of a stream, without the tail.
#[derive(Default)]
pub(crate) struct ChunkWalk {
    records: RecordWalk,
}

impl<'k> KeyTransaction<'k> {
    /// Reads the stream that an entry of a key shows.
    pub fn stream(&self, db: u8, key: &[u8], entry: &Entry) -> Result<Stream<'k>> {
        let place = self.place(db, key)?;
        let stored_key = if place.key.is_long() { key.to_vec() } else { Vec::new() };
        let (state, len, version) = parse(entry)?;
        Ok(Stream {
            place,
            state,
            len,
            version,
            fresh: None,
            stored_key,
            is_changed: false,
            is_ready: false,
            is_new: false,
            has_set_ids: false,
        })
    }

    /// Reads the stream of an entry, to read it only. The place need not be that of the entry.
    pub(crate) fn stream_of(&self, place: &KeyPlace, entry: &Entry) -> Result<Stream<'k>> {
        let place = self.element_at(place, place.key.clone());
        let (state, len, version) = parse(entry)?;
        Ok(Stream {
            place,
            state,
            len,
            version,
            fresh: None,
            stored_key: Vec::new(),
            is_changed: false,
            is_ready: false,
            is_new: false,
            has_set_ids: false,
        })
    }

    /// Returns an empty stream for a key, which is not stored yet.
    pub fn new_stream(&mut self, db: u8, key: &[u8]) -> Result<Stream<'k>> {
        let place = self.place(db, key)?;
        if self.records_effects() {
            self.effect_of_expired(&place)?;
        }
        let stored_key = if place.key.is_long() { key.to_vec() } else { Vec::new() };
        Ok(Stream {
            place,
            state: StreamState::default(),
            len: 0,
            version: None,
            fresh: None,
            stored_key,
            is_changed: true,
            is_ready: true,
            is_new: true,
            has_set_ids: false,
        })
    }

    /// Stores the stream's state.
    pub fn store_stream(&mut self, mut stream: Stream<'k>) -> Result<()> {
        self.must_write()?;
        let stored = if stream.is_new {
            self.without_effects(|txn| txn.try_store_stream(&mut stream))
        } else {
            self.try_store_stream(&mut stream)
        };
        stored.inspect_err(|error| self.mark_broken(error))?;
        if self.records_effects() && (stream.is_new || stream.has_set_ids) {
            self.effect_of_ids(&stream);
        }
        Ok(())
    }

    /// Records that a stream is there, if no entry and no group says so, and its ids.
    fn effect_of_ids(&mut self, stream: &Stream<'_>) {
        let (db, key) = (stream.place.db, stream.place.name());
        if stream.is_new && stream.is_empty() && stream.group_count() == 0 {
            self.effect(db, KeyEffect::EmptyStream { key: &key });
        }
        let (last, added, max_deleted) = (stream.last_id(), stream.entries_added(), stream.max_deleted_id());
        if stream.has_set_ids || stream.is_empty() {
            self.effect(db, KeyEffect::SetStreamIds { key: &key, last, added, max_deleted });
        }
    }

    fn try_store_stream(&mut self, stream: &mut Stream<'k>) -> Result<()> {
        if stream.version.is_none() && stream.stored_key.len() + stream.state.len() > INLINE_MAX {
            self.version_of(stream)?;
        }
        let mut put = RecordPut::new(0, Expire::Keep, stream.stored_key.len());
        (put.kind, put.unseen, put.is_idle) = (Kind::Stream, !stream.is_changed, !stream.is_ready);
        let mut bytes = Vec::with_capacity(stream.stored_key.len() + stream.state.len());
        match stream.version {
            None => {
                bytes.extend_from_slice(&stream.stored_key);
                stream.state.encode(&mut bytes);
                put.body = Body::Inline(&bytes);
                self.write(&stream.place, &RecordChange::Put(put)).map(drop)
            }
            Some(version) => {
                stream.state.encode(&mut bytes);
                put.body = Body::Elements { count: stream.len, version, fields: &bytes };
                match stream.fresh.take() {
                    // The guard of the new version goes after its record is written.
                    Some(_fresh) => self.put_unnamed(&stream.place, put, version).map(drop),
                    None => self.write(&stream.place, &RecordChange::Put(put)).map(drop),
                }
            }
        }
    }

    /// Returns the version id of a stream's elements, which it gets with the first one. All changes are one record transaction from here on.
    pub(crate) fn version_of(&mut self, stream: &mut Stream<'k>) -> Result<u64> {
        self.must_write()?;
        self.begin()?;
        if let Some(version) = stream.version {
            return Ok(version);
        }
        self.leaves_garbage = true;
        let key = &stream.stored_key;
        let fresh = Segments::write(&self.keyspace.store, key.len() as u64, |range, out| {
            out.extend_from_slice(&key[range.start as usize..range.end as usize]);
            Ok(())
        })?;
        stream.version = Some(fresh.version());
        stream.fresh = Some(fresh);
        Ok(stream.version.expect("just set"))
    }

    /// Returns the place of an element. It needs no stripe of its own: the key's stripe is held.
    pub(crate) fn element_at(&self, of: &KeyPlace, key: TreeKey) -> KeyPlace {
        KeyPlace { db: of.db, space: ELEMENTS, key, stripe_lsn: of.stripe_lsn, long_name: None }
    }

    /// Writes an element: `stored`, a name that is too long for the tree key, and a payload.
    pub(crate) fn put_sub(&mut self, of: &KeyPlace, key: TreeKey, stored: &[u8], payload: &[u8]) -> Result<()> {
        let place = self.element_at(of, key);
        let put = RecordPut { is_similar: true, ..RecordPut::new(0, Expire::None, stored.len()) };
        let done = self.put_payload(&place, put, stored, payload).map(drop);
        done.inspect_err(|error| self.mark_broken(error))
    }

    pub(crate) fn remove_sub(&mut self, of: &KeyPlace, key: TreeKey) -> Result<()> {
        let place = self.element_at(of, key);
        let done = self.write(&place, &RecordChange::Remove(Removal::Deleted)).map(drop);
        done.inspect_err(|error| self.mark_broken(error))
    }

    /// Removes the elements between two tree keys. Many are left to the background, and the caller must not find them any more.
    pub(crate) fn remove_subs(&mut self, of: &KeyPlace, from: &[u8], to: &[u8]) -> Result<()> {
        let (mut keys, mut batch) = (Vec::new(), Batch::new());
        let mut scan = self.keyspace.store.records.scan(Bound::Included(from), Bound::Excluded(to));
        while keys.len() <= REMOVED_MAX && scan.next_batch(&mut batch)? {
            keys.extend(batch.iter().map(|record| TreeKey::from_bytes(record.key)));
        }
        if keys.len() <= REMOVED_MAX {
            return keys.into_iter().try_for_each(|key| self.remove_sub(of, key));
        }
        self.begin()?;
        self.leaves_garbage = true;
        let txn = self.record_txn.as_mut().expect("begun above");
        let value = range_value(txn.id(), to);
        let queue = &self.keyspace.store.queue;
        txn.change_too(queue, &range_key(from), |_, pages| pages.change.put(&[&value])).map(drop)
    }

    /// Reads an element's payload without the name that it may start with.
    pub(crate) fn sub(&self, key: &TreeKey) -> Result<Option<Vec<u8>>> {
        let mut record = Vec::new();
        let found = self.keyspace.store.records.get(key.as_slice(), &mut record)?;
        if !found.present {
            return Ok(None);
        }
        self.sub_payload(&record).map(Some)
    }

    pub(crate) fn sub_payload(&self, record: &[u8]) -> Result<Vec<u8>> {
        let meta = Meta::parse(record)?;
        let skip = u64::from(meta.head.key_len);
        self.sub_part(record, skip..meta.body.payload_len())
    }

    /// Reads a part of an element's payload.
    pub(crate) fn sub_part(&self, record: &[u8], range: Range<u64>) -> Result<Vec<u8>> {
        let meta = Meta::parse(record)?;
        let bytes = (range.end.saturating_sub(range.start)) as usize;
        const SHORT: usize = 64 << 10;
        let _claim = (bytes > SHORT).then(|| stdx::memory::claim(bytes)).transpose().map_err(Error::OutOfMemory)?;
        let mut part = Vec::with_capacity(bytes);
        self.keyspace.store.read_payload(&meta.body, range, &mut part)?;
        Ok(part)
    }

    /// Reads a chunk's head from its record.
    pub(crate) fn chunk(&self, tree_key: &[u8], record: &[u8]) -> Result<StreamChunk> {
        let id = id_of_key(tree_key)?;
        let len = Meta::parse(record)?.body.payload_len().min(HEAD_BYTES as u64);
        let (head, _) = ChunkHead::split(&self.sub_part(record, 0..len)?)?;
        Ok(StreamChunk { id, head, record: record.to_vec() })
    }

    pub(crate) fn chunk_entries(&self, chunk: &StreamChunk) -> Result<Vec<u8>> {
        let len = Meta::parse(&chunk.record)?.body.payload_len();
        self.sub_part(&chunk.record, HEAD_BYTES as u64..len)
    }

    pub(crate) fn put_chunk(
        &mut self,
        stream: &mut Stream<'k>,
        id: StreamId,
        head: &ChunkHead,
        entries: &[u8],
    ) -> Result<()> {
        let version = self.version_of(stream)?;
        let key = stream.chunk_key(version, id);
        self.put_sub(&stream.place, key, &[], &head.with(entries))
    }

    /// Begins a walk over the chunks with ids from one to another, both included.
    pub(crate) fn chunks(&self, stream: &Stream<'_>, ids: RangeInclusive<StreamId>, is_backward: bool) -> ChunkWalk {
        let scan = stream.version.map(|version| {
            let from = stream.chunk_key(version, (*ids.start()).max(stream.state.start));
            let to = stream.chunk_key(version, *ids.end());
            ScanState::new(Bound::Included(from.as_slice()), Bound::Included(to.as_slice()), is_backward)
        });
        ChunkWalk { records: RecordWalk::new(scan) }
    }

    /// Begins a walk over all chunks.
    pub(crate) fn all_chunks(&self, stream: &Stream<'_>, is_backward: bool) -> ChunkWalk {
        self.chunks(stream, StreamId::MIN..=StreamId::MAX, is_backward)
    }

    /// Returns the last chunk whose id is at most this one.
    pub(crate) fn chunk_at(&self, stream: &Stream<'_>, id: StreamId) -> Result<Option<StreamChunk>> {
        let mut walk = self.chunks(stream, StreamId::MIN..=id, true);
        walk.next(self)
    }

    /// Returns the last chunk.
    pub(crate) fn last_chunk(&self, stream: &Stream<'_>) -> Result<Option<StreamChunk>> {
        self.chunk_at(stream, StreamId::MAX)
    }
}

/// Returns the id at the end of the key of a chunk, or of pending entries.
pub(crate) fn id_of_key(tree_key: &[u8]) -> Result<StreamId> {
    let id = tree_key.last_chunk::<{ StreamId::BYTES }>();
    id.map(|id| StreamId::from_bytes(*id)).ok_or_else(|| Error::corrupt("the key of an element is too short"))
}

/// Returns state, number of entries, and version id.
fn parse(entry: &Entry) -> Result<(StreamState, u64, Option<u64>)> {
    if entry.kind != Kind::Stream {
        return Err(Error::Misuse("the stream of a key of another type"));
    }
    let meta = Meta::parse(&entry.record)?;
    match meta.body {
        Body::Elements { count, version, fields } => Ok((StreamState::parse(fields)?, count, Some(version))),
        Body::Inline(payload) => {
            let state = StreamState::parse(&payload[meta.head.key_len as usize..])?;
            let len = state.head.live.into();
            Ok((state, len, None))
        }
        _ => Err(Error::corrupt("a stream's record of unknown form")),
    }
}

impl ChunkWalk {
    pub fn next(&mut self, txn: &KeyTransaction<'_>) -> Result<Option<StreamChunk>> {
        let Some((tree_key, record)) = self.records.next(txn)? else { return Ok(None) };
        txn.chunk(tree_key, record).map(Some)
    }
}
