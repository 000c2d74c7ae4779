//! Bytes of a stream's state and of its chunks, the records that hold its entries.
//!
//! ```text
//!   entry    (number of fields << 1 | has the names of the entry before) varint | ms, less that of the entry before, varint | seq varint |
//!            names, if they are other ones: length varint, bytes | values: length varint, bytes
//!            seq is less that of the entry before if ms is the same; before the first entry is the chunk's id, which is that of the first entry it ever had
//!   head     flags u8 (1 begins a node) | live u32 | node: total u32, bytes u32, names u64, first id, last id
//!   chunk    head | entries
//!   state    last id | greatest id deleted by XDEL | entries added u64 | epoch u32 | first id of the chunks | nodes u64 | groups u32 | next group u32 | tail: first id, head, entries
//! ```
//! The node in a head is as of the chunk's last entry, deleted ones included. Numbers are little-endian, ids are 16 bytes big-endian.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::keyspace::packed::{push_varint, take_item, take_varint};
use crate::keyspace::streams::node::{Node, StreamField};
use crate::keyspace::streams::stream_id::StreamId;

/// Most bytes of entries in the tail, and in a chunk of more than one entry.
pub(crate) const CHUNK_MAX: usize = 1000;

const BEGINS_NODE: u8 = 1;
pub(crate) const HEAD_BYTES: usize = 1 + 4 + 4 + 4 + 8 + 2 * StreamId::BYTES;
const STATE_BYTES: usize = 3 * StreamId::BYTES + 8 + 8 + 4 + 4 + 4 + StreamId::BYTES + HEAD_BYTES;
const _: () = assert!(STATE_BYTES + CHUNK_MAX <= crate::keyspace::record::INLINE_MAX);

/// Facts about a chunk, or about the tail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ChunkHead {
    pub begins_node: bool,
    /// Number of entries.
    pub live: u32,
    pub node: Node,
}

/// Takes numbers and ids from the front of bytes.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn id(&mut self) -> Option<StreamId> {
        self.array().map(StreamId::from_bytes)
    }
}

impl ChunkHead {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(if self.begins_node { BEGINS_NODE } else { 0 });
        out.extend_from_slice(&self.live.to_le_bytes());
        out.extend_from_slice(&self.node.total.to_le_bytes());
        out.extend_from_slice(&self.node.bytes.to_le_bytes());
        out.extend_from_slice(&self.node.names.to_le_bytes());
        out.extend_from_slice(&self.node.first.to_bytes());
        out.extend_from_slice(&self.node.last.to_bytes());
    }

    fn take(fields: &mut Fields<'_>) -> Option<ChunkHead> {
        let begins_node = match fields.array::<1>()? {
            [0] => false,
            [BEGINS_NODE] => true,
            _ => return None,
        };
        let live = fields.u32()?;
        let (total, bytes, names) = (fields.u32()?, fields.u32()?, fields.u64()?);
        let node = Node { total, bytes, names, first: fields.id()?, last: fields.id()? };
        Some(ChunkHead { begins_node, live, node })
    }

    /// Splits a chunk's payload, of which at least the head has been read.
    pub fn split(payload: &[u8]) -> Result<(ChunkHead, &[u8])> {
        let mut fields = Fields(payload);
        let head = ChunkHead::take(&mut fields).ok_or_else(|| Error::corrupt("a stream's chunk of unknown form"))?;
        Ok((head, fields.0))
    }

    /// Returns a chunk's payload.
    pub fn with(&self, entries: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(HEAD_BYTES + entries.len());
        self.encode(&mut payload);
        payload.extend_from_slice(entries);
        payload
    }
}

/// The part of a stream that its key's record holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct StreamState {
    pub last_id: StreamId,
    pub max_deleted: StreamId,
    pub added: u64,
    /// Chunks of other epochs, and with smaller ids, are garbage. An epoch begins when the ids of an empty stream are set back.
    pub epoch: u32,
    pub start: StreamId,
    pub nodes: u64,
    pub groups: u32,
    pub next_group: u32,
    /// The id of the tail as a chunk.
    pub base: StreamId,
    /// Of the tail. Its node is the last one, also if the tail is empty.
    pub head: ChunkHead,
    pub entries: Vec<u8>,
}

impl StreamState {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.last_id.to_bytes());
        out.extend_from_slice(&self.max_deleted.to_bytes());
        out.extend_from_slice(&self.added.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&self.start.to_bytes());
        out.extend_from_slice(&self.nodes.to_le_bytes());
        out.extend_from_slice(&self.groups.to_le_bytes());
        out.extend_from_slice(&self.next_group.to_le_bytes());
        out.extend_from_slice(&self.base.to_bytes());
        self.head.encode(out);
        out.extend_from_slice(&self.entries);
    }

    pub fn len(&self) -> usize {
        STATE_BYTES + self.entries.len()
    }

    pub fn parse(bytes: &[u8]) -> Result<StreamState> {
        let mut fields = Fields(bytes);
        let mut take = || {
            let (last_id, max_deleted, added) = (fields.id()?, fields.id()?, fields.u64()?);
            let (epoch, start, nodes) = (fields.u32()?, fields.id()?, fields.u64()?);
            let (groups, next_group) = (fields.u32()?, fields.u32()?);
            let (base, head) = (fields.id()?, ChunkHead::take(&mut fields)?);
            let entries = fields.0.to_vec();
            Some(StreamState {
                last_id,
                max_deleted,
                added,
                epoch,
                start,
                nodes,
                groups,
                next_group,
                base,
                head,
                entries,
            })
        };
        take().ok_or_else(|| Error::corrupt("a stream's record of unknown form"))
    }

    /// Returns the number of entries in the tail without reading these. The bytes are a state.
    pub fn tail_live(bytes: &[u8]) -> Result<u64> {
        Ok(StreamState::parse(bytes)?.head.live.into())
    }
}

/// One entry of a chunk. The names and values are items of length and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkEntry<'a> {
    pub id: StreamId,
    pub count: usize,
    pub names: &'a [u8],
    pub values: &'a [u8],
}

impl<'a> ChunkEntry<'a> {
    pub fn fields(&self) -> impl ExactSizeIterator<Item = StreamField<'a>> + use<'a> {
        let (mut names, mut values) = (self.names, self.values);
        (0..self.count).map(move |_| {
            let name = take_item(&mut names).expect("split when the entry was read");
            (name, take_item(&mut values).expect("split when the entry was read"))
        })
    }
}

/// The entries of a chunk, in order.
pub(crate) struct ChunkEntries<'a> {
    rest: &'a [u8],
    before: StreamId,
    names: Option<(usize, &'a [u8])>,
}

impl<'a> ChunkEntries<'a> {
    pub fn new(base: StreamId, entries: &'a [u8]) -> ChunkEntries<'a> {
        ChunkEntries { rest: entries, before: base, names: None }
    }

    pub fn next(&mut self) -> Result<Option<ChunkEntry<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let entry = self.take().ok_or_else(|| Error::corrupt("a stream's entry of unknown form"))?;
        (self.before, self.names) = (entry.id, Some((entry.count, entry.names)));
        Ok(Some(entry))
    }

    fn take(&mut self) -> Option<ChunkEntry<'a>> {
        let rest = &mut self.rest;
        let word = take_varint(rest)?;
        let (count, has_same_names) = ((word >> 1) as usize, word & 1 == 1);
        let ms = take_varint(rest)?;
        let seq = take_varint(rest)?;
        let id = StreamId {
            ms: self.before.ms.checked_add(ms)?,
            seq: if ms == 0 { self.before.seq.checked_add(seq)? } else { seq },
        };
        let names =
            if has_same_names { self.names.filter(|(known, _)| *known == count)?.1 } else { take_items(rest, count)? };
        let values = take_items(rest, count)?;
        Some(ChunkEntry { id, count, names, values })
    }
}

fn take_items<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let from = *bytes;
    for _ in 0..count {
        take_item(bytes)?;
    }
    Some(&from[..from.len() - bytes.len()])
}

/// Entries of a chunk that is being written.
pub(crate) struct ChunkWriter {
    pub bytes: Vec<u8>,
    pub live: u32,
    before: StreamId,
    /// Where the names of the last entry are, and how many.
    names: Option<(usize, Range<usize>)>,
}

impl ChunkWriter {
    pub fn new(base: StreamId) -> ChunkWriter {
        ChunkWriter { bytes: Vec::new(), live: 0, before: base, names: None }
    }

    /// Continues behind the entries of a chunk.
    pub fn behind(base: StreamId, entries: &[u8]) -> Result<ChunkWriter> {
        let mut writer = ChunkWriter::new(base);
        let mut read = ChunkEntries::new(base, entries);
        while let Some(entry) = read.next()? {
            let start = entry.names.as_ptr() as usize - entries.as_ptr() as usize;
            (writer.before, writer.names) = (entry.id, Some((entry.count, start..start + entry.names.len())));
            writer.live += 1;
        }
        writer.bytes = entries.to_vec();
        Ok(writer)
    }

    fn begin(&mut self, id: StreamId, count: usize, has_same_names: bool) {
        push_varint(&mut self.bytes, (count as u64) << 1 | u64::from(has_same_names));
        let ms = id.ms - self.before.ms;
        push_varint(&mut self.bytes, ms);
        push_varint(&mut self.bytes, if ms == 0 { id.seq - self.before.seq } else { id.seq });
        (self.before, self.live) = (id, self.live + 1);
    }

    pub fn push(&mut self, id: StreamId, fields: &[StreamField<'_>]) {
        let mut names = Vec::new();
        for (name, _) in fields {
            push_varint(&mut names, name.len() as u64);
            names.extend_from_slice(name);
        }
        self.push_names(id, fields.len(), &names);
        for (_, value) in fields {
            push_varint(&mut self.bytes, value.len() as u64);
            self.bytes.extend_from_slice(value);
        }
    }

    pub fn push_entry(&mut self, entry: &ChunkEntry<'_>) {
        self.push_names(entry.id, entry.count, entry.names);
        self.bytes.extend_from_slice(entry.values);
    }

    fn push_names(&mut self, id: StreamId, count: usize, names: &[u8]) {
        let known = self.names.as_ref().is_some_and(|(known, at)| *known == count && self.bytes[at.clone()] == *names);
        self.begin(id, count, known);
        if !known {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(names);
            self.names = Some((count, start..self.bytes.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type OwnedFields = Vec<(Vec<u8>, Vec<u8>)>;

    fn read(base: StreamId, entries: &[u8]) -> Vec<(StreamId, OwnedFields)> {
        let (mut entries, mut found) = (ChunkEntries::new(base, entries), Vec::new());
        while let Some(entry) = entries.next().unwrap() {
            found.push((entry.id, entry.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()));
        }
        found
    }

    #[test]
    fn entries_share_the_names_of_the_one_before() {
        let base = StreamId::new(5, 7);
        let mut writer = ChunkWriter::new(base);
        writer.push(base, &[(b"name", b"1"), (b"other", b"2")]);
        let first = writer.bytes.len();
        writer.push(StreamId::new(5, 9), &[(b"name", b"3"), (b"other", b"")]);
        assert_eq!(writer.bytes.len() - first, 3 + 3);
        let mut writer = ChunkWriter::behind(base, &writer.bytes).unwrap();
        writer.push(StreamId::new(6, 1), &[(b"name", b"3"), (b"other", b"")]);
        writer.push(StreamId::MAX, &[(b"name", &[7; 300])]);
        writer.push(StreamId::MAX, &[]);
        let found = read(base, &writer.bytes);
        assert_eq!(found.iter().map(|(id, _)| id.seq).collect::<Vec<_>>(), [7, 9, 1, u64::MAX, u64::MAX]);
        assert_eq!(found[2].1, [(b"name".to_vec(), b"3".to_vec()), (b"other".to_vec(), vec![])]);
        assert_eq!(found[3].1[0].1.len(), 300);
        assert_eq!(writer.live, 5);
        let mut cut = ChunkEntries::new(base, &writer.bytes[..first - 1]);
        assert!(cut.next().is_err());
    }

    #[test]
    fn a_state_parses_as_it_was_encoded() {
        let node = Node::begin(StreamId::new(1, 2), &[(b"a", b"b")]);
        let head = ChunkHead { begins_node: true, live: 1, node };
        let state = StreamState {
            added: 9,
            groups: 2,
            base: StreamId::new(3, 4),
            head,
            entries: vec![1, 2, 3],
            ..StreamState::default()
        };
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        assert_eq!(bytes.len(), state.len());
        assert_eq!(StreamState::parse(&bytes).unwrap(), state);
        assert!(StreamState::parse(&bytes[..STATE_BYTES - 1]).is_err());
        assert_eq!(ChunkHead::split(&head.with(b"xy")).unwrap(), (head, &b"xy"[..]));
    }
}
