//! Streams: entries in listpacks, each with a first entry that names the usual fields, then groups with what they have delivered.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io::Read;

use crate::error::Result;
use crate::packed::{Listpack, ListpackItems, Rule};
use crate::source::Source;
use crate::types as t;
use crate::write::{write_length, write_string};

const IS_DELETED: i64 = 1;
const HAS_SAME_FIELDS: i64 = 2;
/// The most items of an entry. Nothing that Redis writes reaches it.
const ITEMS_MAX: i64 = 1 << 30;
const RULE: Rule = "an entry of a stream is damaged";

/// The id of an entry: milliseconds and a number among the entries of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    pub ms: u64,
    pub seq: u64,
}

/// The state of a stream beside its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamState {
    pub len: u64,
    pub last_id: StreamId,
    /// The greatest id of a deleted entry; zero in data of a version before 7.0.
    pub max_deleted_id: StreamId,
    /// Entries ever added. Data of a version before 7.0 gives the present number.
    pub entries_added: u64,
}

/// A part of a stream.
#[derive(Debug, PartialEq)]
pub enum StreamEvent<'a> {
    /// An entry: fields and values in turn. Ids ascend.
    Entry(StreamId, &'a [Cow<'a, [u8]>]),
    /// Behind the last entry.
    State(StreamState),
    /// A consumer group. Pending entries and consumers up to the next one are its own. `entries_read` is `None` if nobody knows it, and an estimate in data of
    /// a version before 7.0.
    Group { name: &'a [u8], last_id: StreamId, entries_read: Option<u64> },
    /// An entry that was delivered and not acknowledged. The consumer is told by a `ConsumerPending` behind.
    Pending { id: StreamId, time_ms: u64, deliveries: u64 },
    /// A consumer of the group. `active_time_ms` is `None` in data of a version before 7.2, or if the consumer never got anything.
    Consumer { name: &'a [u8], seen_time_ms: u64, active_time_ms: Option<u64> },
    /// A pending entry of the group that is the last consumer's.
    ConsumerPending(StreamId),
}

impl StreamId {
    fn of_bytes(bytes: [u8; 16]) -> StreamId {
        let both = u128::from_be_bytes(bytes);
        StreamId { ms: (both >> 64) as u64, seq: both as u64 }
    }

    /// Returns the form in which ids stand in front of listpacks and in lists of pending entries.
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }
}

/// Reads a stream; see `read_value`.
pub(crate) fn read<R: Read, E: From<crate::Error>>(
    source: &mut Source<R>,
    number: u8,
    emit: &mut dyn FnMut(StreamEvent<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut nodes = Nodes { first: None, last: None, count: 0 };
    for _ in 0..source.length()? {
        let key: [u8; 16] = source
            .string()?
            .try_into()
            .map_err(|_| source.bad("the id before entries of a stream has not 16 bytes"))?;
        let bytes = source.string()?;
        nodes.read(source, StreamId::of_bytes(key), &bytes, emit)?;
    }
    let state = read_state(source, number)?;
    if state.len != nodes.count {
        return Err(source.bad("a stream has not the entries it claims").into());
    }
    if nodes.last.is_some_and(|last| last > state.last_id) {
        return Err(source.bad("a stream has an entry behind its last id").into());
    }
    emit(StreamEvent::State(state))?;
    for _ in 0..source.length()? {
        read_group(source, number, (&state, nodes.first), emit)?;
    }
    Ok(())
}

/// Estimates how many entries a group has read whose number the data does not have, as Redis does when it loads such data: nothing was deleted as far as it knows.
fn estimated_read(state: &StreamState, first: Option<StreamId>, last_delivered: StreamId) -> Option<u64> {
    match first {
        _ if state.entries_added == 0 => Some(0),
        _ if last_delivered > state.last_id => None,
        Some(first) if last_delivered < state.last_id => match last_delivered.cmp(&first) {
            Ordering::Less => Some(state.entries_added - state.len),
            Ordering::Equal => Some(state.entries_added - state.len + 1),
            Ordering::Greater => None,
        },
        _ => Some(state.entries_added),
    }
}

fn read_state<R: Read>(source: &mut Source<R>, number: u8) -> Result<StreamState> {
    let len = source.length()?;
    let last_id = source.id()?;
    if number == t::STREAM_LISTPACKS {
        return Ok(StreamState { len, last_id, max_deleted_id: StreamId::default(), entries_added: len });
    }
    source.id()?;
    Ok(StreamState { len, last_id, max_deleted_id: source.id()?, entries_added: source.length()? })
}

fn read_group<R: Read, E: From<crate::Error>>(
    source: &mut Source<R>,
    number: u8,
    (state, first): (&StreamState, Option<StreamId>),
    emit: &mut dyn FnMut(StreamEvent<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let name = source.string()?;
    let last_id = source.id()?;
    let entries_read = match number {
        t::STREAM_LISTPACKS => estimated_read(state, first, last_id),
        _ => Some(source.length()?).filter(|read| *read != u64::MAX),
    };
    emit(StreamEvent::Group { name: &name, last_id, entries_read })?;
    for _ in 0..source.length()? {
        let id = StreamId::of_bytes(source.array()?);
        let time_ms = source.time()?;
        let deliveries = source.length()?;
        emit(StreamEvent::Pending { id, time_ms, deliveries })?;
    }
    for _ in 0..source.length()? {
        let name = source.string()?;
        let seen_time_ms = source.time()?;
        let active_time_ms = match number {
            t::STREAM_LISTPACKS_3 => Some(source.time()?).filter(|time| *time != u64::MAX),
            _ => None,
        };
        emit(StreamEvent::Consumer { name: &name, seen_time_ms, active_time_ms })?;
        for _ in 0..source.length()? {
            emit(StreamEvent::ConsumerPending(StreamId::of_bytes(source.array()?)))?;
        }
    }
    Ok(())
}

impl<R: Read> Source<R> {
    fn id(&mut self) -> Result<StreamId> {
        Ok(StreamId { ms: self.length()?, seq: self.length()? })
    }
}

/// The listpacks of a stream so far.
struct Nodes {
    /// The first entry that is there.
    first: Option<StreamId>,
    last: Option<StreamId>,
    count: u64,
}

/// An entry of a listpack.
struct Entry<'b> {
    id: StreamId,
    is_deleted: bool,
    items: Vec<Cow<'b, [u8]>>,
}

impl Nodes {
    /// Reads a listpack whose entries have ids relative to `first`.
    fn read<R, E: From<crate::Error>>(
        &mut self,
        source: &Source<R>,
        first: StreamId,
        bytes: &[u8],
        emit: &mut dyn FnMut(StreamEvent<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E>
    where
        R: Read,
    {
        let bad = |rule| E::from(source.bad(rule));
        let mut items = ListpackItems::new(bytes).map_err(bad)?;
        let NodeHead { mut left, usual } = read_head(&mut items).map_err(bad)?;
        while left != [0, 0] {
            let entry = read_entry(&mut items, first, &usual).map_err(bad)?;
            let left = &mut left[usize::from(entry.is_deleted)];
            *left = left
                .checked_sub(1)
                .filter(|left| *left >= 0)
                .ok_or_else(|| bad("a stream's count of entries is wrong"))?;
            if self.last.is_some_and(|last| last >= entry.id) {
                return Err(bad("the ids of a stream do not ascend"));
            }
            self.last = Some(entry.id);
            if !entry.is_deleted {
                self.count += 1;
                self.first.get_or_insert(entry.id);
                emit(StreamEvent::Entry(entry.id, &entry.items))?;
            }
        }
        match items.next() {
            Ok(None) => Ok(()),
            _ => Err(bad("a stream's count of entries is wrong")),
        }
    }
}

/// The first entry of a listpack.
struct NodeHead<'b> {
    /// Entries to come, those that are there and those that are deleted.
    left: [i64; 2],
    /// The fields that most entries have.
    usual: Vec<Cow<'b, [u8]>>,
}

fn read_head<'b>(items: &mut ListpackItems<'b>) -> std::result::Result<NodeHead<'b>, Rule> {
    let valid = items.require_integer()?;
    let deleted = items.require_integer()?;
    let fields = items.require_integer()?;
    if valid < 0 || deleted < 0 || valid + deleted == 0 || !(0..ITEMS_MAX).contains(&fields) {
        return Err(RULE);
    }
    let usual = (0..fields).map(|_| Ok(items.require()?.text())).collect::<std::result::Result<_, Rule>>()?;
    match items.require_integer()? {
        0 => Ok(NodeHead { left: [valid, deleted], usual }),
        _ => Err(RULE),
    }
}

fn read_entry<'b>(
    items: &mut ListpackItems<'b>,
    first: StreamId,
    usual: &[Cow<'b, [u8]>],
) -> std::result::Result<Entry<'b>, Rule> {
    let flags = items.require_integer()?;
    if !(0..=IS_DELETED | HAS_SAME_FIELDS).contains(&flags) {
        return Err(RULE);
    }
    let id = StreamId {
        ms: first.ms.wrapping_add(items.require_integer()? as u64),
        seq: first.seq.wrapping_add(items.require_integer()? as u64),
    };
    let has_same_fields = flags & HAS_SAME_FIELDS != 0;
    let mut found = Vec::new();
    // Items of the listpack, with flags and id; the last item is their number.
    let read = if has_same_fields {
        for field in usual {
            found.push(field.clone());
            found.push(items.require()?.text());
        }
        usual.len() as i64 + 3
    } else {
        let fields = items.require_integer()?;
        if !(0..ITEMS_MAX).contains(&fields) {
            return Err(RULE);
        }
        for _ in 0..2 * fields {
            found.push(items.require()?.text());
        }
        2 * fields + 4
    };
    match items.require_integer()? == read {
        true => Ok(Entry { id, is_deleted: flags & IS_DELETED != 0, items: found }),
        false => Err(RULE),
    }
}

/// Entries and bytes of a listpack of a stream, Redis' defaults of `stream-node-max-entries` and `stream-node-max-bytes`.
const NODE_ENTRIES: i64 = 100;
const NODE_BYTES: usize = 4096;

/// Writes the entries of a stream, in ascending order of their ids.
#[derive(Default)]
pub struct StreamEntries {
    /// The listpacks that are complete, each behind its key.
    nodes: Vec<u8>,
    node_count: u64,
    open: Option<Node>,
}

/// A listpack whose entries are not all there.
struct Node {
    first: StreamId,
    /// The fields of the first entry.
    usual: Vec<Vec<u8>>,
    /// Bytes of the listpack without entries.
    head_len: usize,
    count: i64,
    entries: Listpack,
}

impl Node {
    /// Returns the bytes that the listpack would have.
    fn len(&self) -> usize {
        self.head_len + self.entries.len() - Listpack::default().len()
    }
}

/// Returns a listpack with its first entry alone: the number of entries to come, none of them deleted, and the usual fields.
fn head(count: i64, usual: &[Vec<u8>]) -> Listpack {
    let mut pack = Listpack::default();
    pack.push_integer(count);
    pack.push_integer(0);
    pack.push_integer(usual.len() as i64);
    usual.iter().for_each(|field| pack.push(field));
    pack.push_integer(0);
    pack
}

impl StreamEntries {
    /// Appends an entry of fields and values in turn.
    pub fn push(&mut self, id: StreamId, items: &[&[u8]]) {
        let bytes: usize = items.iter().map(|item| item.len()).sum();
        if self.open.as_ref().is_some_and(|node| node.count == NODE_ENTRIES || node.len() + bytes >= NODE_BYTES) {
            self.end_node();
        }
        let fields = || items.iter().step_by(2);
        let node = self.open.get_or_insert_with(|| {
            let usual: Vec<_> = fields().map(|field| field.to_vec()).collect();
            let head_len = head(0, &usual).len();
            Node { first: id, usual, head_len, count: 0, entries: Listpack::default() }
        });
        node.count += 1;
        let has_same_fields = fields().copied().eq(node.usual.iter().map(Vec::as_slice));
        let pack = &mut node.entries;
        pack.push_integer(if has_same_fields { HAS_SAME_FIELDS } else { 0 });
        pack.push_integer(id.ms.wrapping_sub(node.first.ms) as i64);
        pack.push_integer(id.seq.wrapping_sub(node.first.seq) as i64);
        if has_same_fields {
            items.iter().skip(1).step_by(2).for_each(|value| pack.push(value));
            pack.push_integer(items.len() as i64 / 2 + 3);
        } else {
            pack.push_integer(items.len() as i64 / 2);
            items.iter().for_each(|item| pack.push(item));
            pack.push_integer(items.len() as i64 + 4);
        }
    }

    fn end_node(&mut self) {
        let Some(node) = self.open.take() else { return };
        let mut pack = head(node.count, &node.usual);
        pack.append(&node.entries);
        write_string(&mut self.nodes, &node.first.to_bytes());
        write_string(&mut self.nodes, &pack.end());
        self.node_count += 1;
    }

    /// Writes what was pushed.
    pub fn end(mut self, out: &mut Vec<u8>) {
        self.end_node();
        write_length(out, self.node_count);
        out.extend(self.nodes);
    }

    /// Returns how many listpacks there are, and forgets the entries. It precedes `write_nodes` of the same entries.
    pub fn end_count(mut self) -> u64 {
        self.end_node();
        self.node_count
    }

    /// Moves the listpacks that are complete to the end of `out`. Nobody writes their number.
    pub fn write_nodes(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.nodes);
    }

    /// Moves all listpacks to the end of `out`.
    pub fn write_rest(mut self, out: &mut Vec<u8>) {
        self.end_node();
        self.write_nodes(out);
    }
}

/// Writes an id as two numbers, as it stands behind the entries and in groups.
pub fn write_id(out: &mut Vec<u8>, id: StreamId) {
    write_length(out, id.ms);
    write_length(out, id.seq);
}
