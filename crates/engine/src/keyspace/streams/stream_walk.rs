//! Reading a stream's entries in either direction.
//!
//! Hard part: a reader without locks may meet chunks that are being changed. All that it reads is discarded then (EN-48), so it only must not loop or panic.

use std::ops::Range;

use crate::error::Result;
use crate::keyspace::key_txn::KeyTransaction;
use crate::keyspace::streams::chunk::{ChunkEntries, ChunkEntry};
use crate::keyspace::streams::node::StreamField;
use crate::keyspace::streams::stream::{ChunkWalk, Stream};
use crate::keyspace::streams::stream_id::StreamId;

/// A walk over the entries of a stream whose ids are between two ids, both included.
pub struct StreamWalk {
    from: StreamId,
    to: StreamId,
    is_backward: bool,
    chunks: ChunkWalk,
    /// The tail, until it is walked over.
    tail: Option<(StreamId, Vec<u8>)>,
    /// Entries of the current chunk.
    bytes: Vec<u8>,
    base: StreamId,
    /// Where they are, in the order of the walk.
    entries: Vec<EntryPlace>,
    at: usize,
    is_done: bool,
}

struct EntryPlace {
    id: StreamId,
    count: usize,
    names: Range<usize>,
    values: Range<usize>,
}

/// An entry of a stream.
#[derive(Clone, Copy)]
pub struct StreamItem<'w> {
    pub id: StreamId,
    entry: ChunkEntry<'w>,
}

impl<'w> StreamItem<'w> {
    /// Returns the fields with their values.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = StreamField<'w>> + use<'w> {
        self.entry.fields()
    }
}

impl KeyTransaction<'_> {
    /// Begins a walk over the entries from one id to another, both included.
    pub fn stream_entries(
        &self,
        stream: &Stream<'_>,
        from: StreamId,
        to: StreamId,
        is_backward: bool,
    ) -> Result<StreamWalk> {
        let has_tail = stream.state.head.live > 0 && to >= stream.state.base;
        let tail = has_tail.then(|| (stream.state.base, stream.state.entries.clone()));
        // The first entries may be in a chunk that begins before them.
        let reaches_chunks = !has_tail || from < stream.state.base;
        let chunks = if reaches_chunks {
            let first = self.chunk_at(stream, from)?.map_or(from, |chunk| chunk.id);
            self.chunks(stream, first..=to, is_backward)
        } else {
            ChunkWalk::default()
        };
        Ok(StreamWalk {
            from,
            to,
            is_backward,
            chunks,
            tail,
            bytes: Vec::new(),
            base: StreamId::MIN,
            entries: Vec::new(),
            at: 0,
            is_done: from > to,
        })
    }

    /// Returns the id of the first entry, or of the last one.
    pub fn edge_id(&self, stream: &Stream<'_>, is_last: bool) -> Result<Option<StreamId>> {
        let mut walk = self.stream_entries(stream, StreamId::MIN, StreamId::MAX, is_last)?;
        Ok(walk.next(self)?.map(|item| item.id))
    }

    /// Returns whether there is an entry with this id.
    pub fn has_entry(&self, stream: &Stream<'_>, id: StreamId) -> Result<bool> {
        let mut walk = self.stream_entries(stream, id, id, false)?;
        Ok(walk.next(self)?.is_some())
    }
}

impl StreamWalk {
    /// Returns the next entry.
    pub fn next(&mut self, txn: &KeyTransaction<'_>) -> Result<Option<StreamItem<'_>>> {
        while !self.is_done {
            while self.at < self.entries.len() {
                let at = self.at;
                self.at += 1;
                let place = &self.entries[at];
                if self.from <= place.id && place.id <= self.to {
                    let (names, values) = (&self.bytes[place.names.clone()], &self.bytes[place.values.clone()]);
                    let entry = ChunkEntry { id: place.id, count: place.count, names, values };
                    return Ok(Some(StreamItem { id: place.id, entry }));
                }
            }
            self.is_done = !self.next_chunk(txn)?;
        }
        Ok(None)
    }

    /// Returns false behind the last chunk.
    fn next_chunk(&mut self, txn: &KeyTransaction<'_>) -> Result<bool> {
        let tail = if self.is_backward { self.tail.take() } else { None };
        let next = match tail {
            Some(tail) => Some(tail),
            None => match self.chunks.next(txn)? {
                Some(chunk) => Some((chunk.id, txn.chunk_entries(&chunk)?)),
                None => self.tail.take(),
            },
        };
        let Some((base, bytes)) = next else { return Ok(false) };
        (self.base, self.bytes) = (base, bytes);
        self.entries.clear();
        self.at = 0;
        let mut read = ChunkEntries::new(base, &self.bytes);
        let start = self.bytes.as_ptr() as usize;
        let range = |part: &[u8]| {
            let from = part.as_ptr() as usize - start;
            from..from + part.len()
        };
        while let Some(entry) = read.next()? {
            let (names, values) = (range(entry.names), range(entry.values));
            self.entries.push(EntryPlace { id: entry.id, count: entry.count, names, values });
        }
        if self.is_backward {
            self.entries.reverse();
        }
        Ok(true)
    }
}
