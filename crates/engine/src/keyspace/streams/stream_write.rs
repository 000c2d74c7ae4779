//! Adding, deleting and trimming entries of a stream.
//!
//! A chunk is never empty: with its last entry it goes, and what it knows about its node goes to a neighbour in the node. The last chunk of a node knows the whole
//! node, unless the tail goes on with it (EN-77).

use crate::error::Result;
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::key_txn::KeyTransaction;
use crate::keyspace::streams::chunk::{CHUNK_MAX, ChunkEntries, ChunkHead, ChunkWriter};
use crate::keyspace::streams::node::{Node, NodeLimits, StreamField};
use crate::keyspace::streams::stream::{REMOVED_MAX, Stream, StreamChunk};
use crate::keyspace::streams::stream_id::StreamId;

/// How much XTRIM leaves.
#[derive(Clone, Copy, Debug)]
pub enum TrimTo {
    /// At most so many entries.
    MaxLen(u64),
    /// No id below this one.
    MinId(StreamId),
}

/// XTRIM, and its options in XADD.
#[derive(Clone, Copy, Debug)]
pub struct Trim {
    pub to: TrimTo,
    /// Only whole nodes go.
    pub is_approximate: bool,
    /// Most entries that are removed; 0 is no limit.
    pub limit: u64,
}

/// The parts that a trim removes.
#[derive(Default)]
struct TrimCut {
    entries: u64,
    /// The first of the chunks that go, unless there are many, and the last one.
    chunks: Vec<StreamId>,
    last_chunk: Option<StreamId>,
    is_many: bool,
    /// The tail goes.
    has_tail: bool,
    /// Number of entries of the part behind that go, too.
    partial: u64,
    /// Nodes that go, each with its first part.
    nodes: u64,
}

impl TrimCut {
    fn add(&mut self, part: &StreamPart) {
        self.entries += u64::from(part.head.live);
        self.nodes += u64::from(part.head.begins_node);
        match part.chunk {
            None => self.has_tail = true,
            Some(id) => self.add_chunk(id),
        }
    }

    fn add_chunk(&mut self, id: StreamId) {
        self.is_many |= self.chunks.len() == REMOVED_MAX;
        if !self.is_many {
            self.chunks.push(id);
        }
        self.last_chunk = Some(id);
    }
}

/// A chunk, or the tail.
#[derive(Clone, Copy)]
struct StreamPart {
    chunk: Option<StreamId>,
    head: ChunkHead,
}

impl<'k> KeyTransaction<'k> {
    /// Adds an entry behind all others.
    pub fn append_entry(
        &mut self,
        stream: &mut Stream<'k>,
        id: StreamId,
        fields: &[StreamField<'_>],
        limits: NodeLimits,
    ) -> Result<()> {
        self.must_write()?;
        let mut head = stream.state.head;
        let joins = head.node.accepts(fields, limits);
        if joins && head.live > 0 {
            let mut writer = ChunkWriter::behind(stream.state.base, &stream.state.entries)?;
            writer.push(id, fields);
            if writer.bytes.len() <= CHUNK_MAX {
                head.node.append(id, fields);
                head.live = writer.live;
                stream.state.entries = writer.bytes;
            } else {
                self.begin_chunk(stream, joins, id, fields)?;
                head = stream.state.head;
            }
        } else {
            self.begin_chunk(stream, joins, id, fields)?;
            head = stream.state.head;
        }
        stream.state.head = head;
        (stream.state.last_id, stream.state.added) = (id, stream.state.added.wrapping_add(1));
        stream.len += 1;
        (stream.is_changed, stream.is_ready) = (true, true);
        if self.records_effects() {
            let key = stream.place.name();
            self.effect(stream.place.db, KeyEffect::AppendEntry { key: &key, id, fields });
        }
        Ok(())
    }

    /// Makes the tail a chunk, and begins a new tail with an entry. A large entry becomes a chunk itself.
    fn begin_chunk(
        &mut self,
        stream: &mut Stream<'k>,
        joins: bool,
        id: StreamId,
        fields: &[StreamField<'_>],
    ) -> Result<()> {
        if stream.state.head.live > 0 {
            let (base, head) = (stream.state.base, stream.state.head);
            let entries = std::mem::take(&mut stream.state.entries);
            self.put_chunk(stream, base, &head, &entries)?;
        }
        let mut node = stream.state.head.node;
        if joins {
            node.append(id, fields);
        } else {
            node = Node::begin(id, fields);
            stream.state.nodes += 1;
        }
        let mut writer = ChunkWriter::new(id);
        writer.push(id, fields);
        let mut head = ChunkHead { begins_node: !joins, live: 1, node };
        if writer.bytes.len() > CHUNK_MAX {
            self.put_chunk(stream, id, &head, &writer.bytes)?;
            (head.live, head.begins_node) = (0, false);
        } else {
            stream.state.entries = writer.bytes;
        }
        (stream.state.base, stream.state.head) = (id, head);
        Ok(())
    }

    /// Deletes entries by their ids, which are in ascending order. Returns how many there were, and the greatest of them.
    pub fn delete_entries(&mut self, stream: &mut Stream<'k>, ids: &[StreamId]) -> Result<(u64, Option<StreamId>)> {
        self.must_write()?;
        let (mut deleted, mut greatest, mut rest) = (0, None, ids);
        while let Some(first) = rest.first() {
            let is_in_tail = stream.state.head.live > 0 && *first >= stream.state.base;
            let chunk = if is_in_tail { None } else { self.chunk_at(stream, *first)? };
            if !is_in_tail && chunk.is_none() {
                rest = &rest[1..];
                continue;
            }
            let (base, head, entries) = match &chunk {
                None => (stream.state.base, stream.state.head, stream.state.entries.clone()),
                Some(chunk) => (chunk.id, chunk.head, self.chunk_entries(chunk)?),
            };
            // The ids up to the chunk's last entry are looked for in it.
            let here = rest.iter().take_while(|id| is_in_tail || **id <= head.node.last).count().max(1);
            let (mut writer, mut read) = (ChunkWriter::new(base), ChunkEntries::new(base, &entries));
            let mut gone = 0;
            while let Some(entry) = read.next()? {
                if rest[..here].binary_search(&entry.id).is_ok() {
                    (gone, greatest) = (gone + 1, greatest.max(Some(entry.id)));
                } else {
                    writer.push_entry(&entry);
                }
            }
            rest = &rest[here..];
            if gone > 0 {
                deleted += gone;
                stream.is_changed = true;
                stream.len = stream.len.saturating_sub(gone);
                self.shrink_part(stream, chunk, writer)?;
            }
        }
        if deleted > 0 && self.records_effects() {
            let key = stream.place.name();
            self.effect(stream.place.db, KeyEffect::DeleteEntries { key: &key, ids });
        }
        Ok((deleted, greatest))
    }

    /// Stores what is left of a chunk, or of the tail.
    fn shrink_part(&mut self, stream: &mut Stream<'k>, chunk: Option<StreamChunk>, left: ChunkWriter) -> Result<()> {
        match chunk {
            Some(chunk) if left.live == 0 => self.drop_chunk(stream, &chunk),
            Some(chunk) => {
                let head = ChunkHead { live: left.live, ..chunk.head };
                self.put_chunk(stream, chunk.id, &head, &left.bytes)
            }
            None => {
                (stream.state.head.live, stream.state.entries) = (left.live, left.bytes);
                if left.live == 0 { self.leave_tail(stream) } else { Ok(()) }
            }
        }
    }

    /// The tail has no entry any more: its node goes, or the last chunk learns of it.
    fn leave_tail(&mut self, stream: &mut Stream<'k>) -> Result<()> {
        let last = self.last_chunk(stream)?;
        let head = &mut stream.state.head;
        if std::mem::take(&mut head.begins_node) {
            stream.state.nodes -= 1;
            head.node = last.map_or_else(Node::default, |last| last.head.node);
            return Ok(());
        }
        let node = head.node;
        match last {
            Some(last) => self.put_node(stream, &last, node),
            None => Ok(()),
        }
    }

    fn put_node(&mut self, stream: &mut Stream<'k>, chunk: &StreamChunk, node: Node) -> Result<()> {
        let entries = self.chunk_entries(chunk)?;
        self.put_chunk(stream, chunk.id, &ChunkHead { node, ..chunk.head }, &entries)
    }

    /// Removes a chunk without entries.
    fn drop_chunk(&mut self, stream: &mut Stream<'k>, chunk: &StreamChunk) -> Result<()> {
        let next = match chunk.id.next() {
            Some(behind) => self.chunks(stream, behind..=StreamId::MAX, false).next(self)?,
            None => None,
        };
        let tail = (stream.state.head.live > 0).then_some(stream.state.head);
        let goes_on = next.as_ref().map(|next| next.head).or(tail).is_some_and(|next| !next.begins_node);
        let is_last = next.is_none() && tail.is_none();
        if chunk.head.begins_node && !goes_on {
            stream.state.nodes -= 1;
        }
        if chunk.head.begins_node && goes_on {
            match next {
                None => stream.state.head.begins_node = true,
                Some(next) => {
                    let entries = self.chunk_entries(&next)?;
                    let head = ChunkHead { begins_node: true, ..next.head };
                    self.put_chunk(stream, next.id, &head, &entries)?;
                }
            }
        } else if !goes_on && (is_last || !chunk.head.begins_node) {
            let before = match chunk.id.previous() {
                Some(id) => self.chunk_at(stream, id)?,
                None => None,
            };
            match before {
                // The node has ended with this chunk.
                Some(before) if !chunk.head.begins_node => self.put_node(stream, &before, chunk.head.node)?,
                before if is_last => {
                    stream.state.head.node = before.map_or_else(Node::default, |before| before.head.node)
                }
                _ => {}
            }
        }
        let version = self.version_of(stream)?;
        self.remove_sub(&stream.place, stream.chunk_key(version, chunk.id))
    }

    /// Trims a stream. Returns the number of entries that went.
    pub fn trim_stream(&mut self, stream: &mut Stream<'k>, trim: Trim) -> Result<u64> {
        self.must_write()?;
        let excess = match trim.to {
            TrimTo::MaxLen(most) if stream.len <= most => return Ok(0),
            TrimTo::MaxLen(most) => stream.len - most,
            TrimTo::MinId(_) => u64::MAX,
        };
        let left = stream.len.saturating_sub(excess);
        let cut = match trim.to {
            // The side with fewer entries is read.
            TrimTo::MaxLen(_) if trim.limit == 0 && left < excess => self.cut_from_end(stream, left, trim)?,
            _ => self.cut_from_start(stream, excess, trim)?,
        };
        if cut.entries + cut.partial > 0 {
            self.apply_cut(stream, &cut, trim)?;
            if self.records_effects() {
                let key = stream.place.name();
                self.effect(stream.place.db, KeyEffect::TrimStream { key: &key, len: stream.len });
            }
        }
        Ok(cut.entries + cut.partial)
    }

    /// Reads from the first chunk on what goes.
    fn cut_from_start(&self, stream: &Stream<'_>, excess: u64, trim: Trim) -> Result<TrimCut> {
        let (mut cut, mut node) = (TrimCut::default(), Vec::<StreamPart>::new());
        let mut tail = (stream.state.head.live > 0).then_some(StreamPart { chunk: None, head: stream.state.head });
        let mut walk = self.all_chunks(stream, false);
        loop {
            let chunk = walk.next(self)?.map(|chunk| StreamPart { chunk: Some(chunk.id), head: chunk.head });
            let Some(part) = chunk.or_else(|| tail.take()) else { break };
            if !trim.is_approximate {
                let goes = match trim.to {
                    TrimTo::MaxLen(_) => cut.entries + u64::from(part.head.live) <= excess,
                    TrimTo::MinId(id) => part.head.node.last < id,
                };
                if !goes {
                    cut.partial = self.partial(stream, &part, excess - cut.entries.min(excess), trim)?;
                    return Ok(cut);
                }
                cut.add(&part);
                continue;
            }
            if part.head.begins_node && !node.is_empty() && !take_node(&mut cut, &mut node, excess, trim) {
                return Ok(cut);
            }
            node.push(part);
        }
        if trim.is_approximate && !node.is_empty() {
            take_node(&mut cut, &mut node, excess, trim);
        }
        Ok(cut)
    }

    /// Returns how many entries of a part go that does not go as a whole.
    fn partial(&self, stream: &Stream<'_>, part: &StreamPart, excess: u64, trim: Trim) -> Result<u64> {
        let TrimTo::MinId(least) = trim.to else { return Ok(excess) };
        let (base, entries) = self.part_entries(stream, part.chunk)?;
        let (mut read, mut count) = (ChunkEntries::new(base, &entries), 0);
        while let Some(entry) = read.next()?
            && entry.id < least
        {
            count += 1;
        }
        Ok(count)
    }

    fn part_entries(&self, stream: &Stream<'_>, chunk: Option<StreamId>) -> Result<(StreamId, Vec<u8>)> {
        let Some(id) = chunk else { return Ok((stream.state.base, stream.state.entries.clone())) };
        match self.chunk_at(stream, id)? {
            Some(chunk) => Ok((id, self.chunk_entries(&chunk)?)),
            None => Ok((id, Vec::new())),
        }
    }

    /// Reads from the tail on what stays, which is `left` entries, or more in whole nodes.
    fn cut_from_end(&self, stream: &Stream<'_>, left: u64, trim: Trim) -> Result<TrimCut> {
        let mut cut = TrimCut { is_many: true, ..TrimCut::default() };
        let (mut kept, mut nodes) = (0, 0);
        let mut walk = self.all_chunks(stream, true);
        let mut part = (stream.state.head.live > 0).then_some(StreamPart { chunk: None, head: stream.state.head });
        let mut stays = left > 0;
        loop {
            let here = match part.take() {
                Some(part) => part,
                None => match walk.next(self)? {
                    Some(chunk) => StreamPart { chunk: Some(chunk.id), head: chunk.head },
                    None => break,
                },
            };
            if !stays {
                // Here begins what goes.
                (cut.last_chunk, cut.has_tail) = (here.chunk, here.chunk.is_none());
                if here.chunk.is_none() {
                    cut.last_chunk = self.last_chunk(stream)?.map(|chunk| chunk.id);
                }
                break;
            }
            kept += u64::from(here.head.live);
            nodes += u64::from(here.head.begins_node);
            if trim.is_approximate {
                stays = kept < left || !here.head.begins_node;
            } else if kept >= left {
                (cut.partial, stays) = (kept - left, false);
            }
        }
        cut.entries = stream.len - kept;
        cut.nodes = stream.state.nodes.saturating_sub(nodes);
        Ok(cut)
    }

    fn apply_cut(&mut self, stream: &mut Stream<'k>, cut: &TrimCut, trim: Trim) -> Result<()> {
        if let Some(last) = cut.last_chunk {
            let version = self.version_of(stream)?;
            if cut.is_many {
                let from = stream.chunk_key(version, stream.state.start);
                let to = [stream.chunk_key(version, last).as_slice(), &[0]].concat();
                self.remove_subs(&stream.place, from.as_slice(), &to)?;
            } else {
                for id in &cut.chunks {
                    self.remove_sub(&stream.place, stream.chunk_key(version, *id))?;
                }
            }
            // Behind the last id of all comes no other chunk.
            stream.state.start = last.next().unwrap_or(StreamId::MAX);
        }
        stream.len = stream.len.saturating_sub(cut.entries + cut.partial);
        stream.state.nodes = stream.state.nodes.saturating_sub(cut.nodes);
        stream.is_changed = true;
        let first = self.all_chunks(stream, false).next(self)?;
        if cut.has_tail || first.is_none() && stream.state.head.live == 0 {
            // Nothing is left, so there is no node.
            stream.state.head = ChunkHead::default();
            stream.state.entries.clear();
            return Ok(());
        }
        if trim.is_approximate {
            return Ok(());
        }
        let (base, head, entries) = match &first {
            Some(chunk) => (chunk.id, chunk.head, self.chunk_entries(chunk)?),
            None => (stream.state.base, stream.state.head, stream.state.entries.clone()),
        };
        let (mut writer, mut read, mut at) = (ChunkWriter::new(base), ChunkEntries::new(base, &entries), 0);
        while let Some(entry) = read.next()? {
            if at >= cut.partial {
                writer.push_entry(&entry);
            }
            at += 1;
        }
        // A node of which the first part is gone is still one.
        stream.state.nodes += u64::from(!head.begins_node && head.live > 0);
        let head = ChunkHead { begins_node: head.live > 0, live: writer.live, ..head };
        match first {
            Some(chunk) if cut.partial > 0 || !chunk.head.begins_node => {
                if writer.live == 0 {
                    return self.shrink_part(stream, Some(StreamChunk { head, ..chunk }), writer);
                }
                self.put_chunk(stream, base, &head, &writer.bytes)
            }
            Some(_) => Ok(()),
            None => {
                (stream.state.head, stream.state.entries) = (head, writer.bytes);
                if stream.len == 0 { self.leave_tail(stream) } else { Ok(()) }
            }
        }
    }
}

/// Adds a node to what goes, if it may go. Returns false if it stays.
fn take_node(cut: &mut TrimCut, node: &mut Vec<StreamPart>, excess: u64, trim: Trim) -> bool {
    let live: u64 = node.iter().map(|part| u64::from(part.head.live)).sum();
    let is_within = trim.limit == 0 || cut.entries + live <= trim.limit;
    let goes = match trim.to {
        TrimTo::MaxLen(_) => cut.entries < excess && cut.entries + live <= excess,
        TrimTo::MinId(id) => node.last().is_some_and(|part| part.head.node.last < id),
    };
    if is_within && goes {
        node.drain(..).for_each(|part| cut.add(&part));
    }
    is_within && goes
}
