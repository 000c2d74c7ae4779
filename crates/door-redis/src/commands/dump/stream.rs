//! Streams in Redis' format: entries, then groups with their consumers and pending entries.

use std::collections::{BTreeMap, HashSet};

use engine::{Consumer, Entry, Group, KeyTransaction, NodeLimits, Pending, Stream, StreamId};
use rdb::{Source, StreamEntries, StreamEvent, StreamState, types};
use stdx::memory;

use crate::call::Call;
use crate::commands::dump::payload::{Dumped, NotRestored, Payload};

fn to_rdb(id: StreamId) -> rdb::StreamId {
    rdb::StreamId { ms: id.ms, seq: id.seq }
}

pub(crate) fn from_rdb(id: rdb::StreamId) -> StreamId {
    StreamId::new(id.ms, id.seq)
}

/// Writes a stream.
pub(super) fn write_stream(
    txn: &mut KeyTransaction<'_>,
    (db, key): (u8, &[u8]),
    entry: &Entry,
    out: &mut Payload<'_>,
) -> Result<Dumped, engine::Error> {
    let stream = txn.stream(db, key, entry)?;
    out.begin(types::STREAM_LISTPACKS_2)?;
    let first = write_entries(txn, &stream, out)?;
    rdb::write_length(&mut out.bytes, stream.len());
    rdb::write_id(&mut out.bytes, to_rdb(stream.last_id()));
    rdb::write_id(&mut out.bytes, to_rdb(first));
    rdb::write_id(&mut out.bytes, to_rdb(stream.max_deleted_id()));
    rdb::write_length(&mut out.bytes, stream.entries_added());
    rdb::write_length(&mut out.bytes, stream.group_count());
    let mut groups = txn.groups(&stream);
    while let Some(group) = groups.next_group(txn)? {
        write_group(txn, &stream, &group, out)?;
        if out.is_too_long() {
            return Ok(Dumped::TooLong);
        }
    }
    Ok(if out.is_too_long() { Dumped::TooLong } else { Dumped::Whole })
}

/// Writes the entries of a stream. Returns the id of the first one.
fn write_entries(
    txn: &KeyTransaction<'_>,
    stream: &Stream<'_>,
    out: &mut Payload<'_>,
) -> Result<StreamId, engine::Error> {
    type Pushed<'f> = &'f mut dyn FnMut(&mut StreamEntries, &mut Payload<'_>, usize) -> Result<(), engine::Error>;
    let each = |out: &mut Payload<'_>, f: Pushed<'_>| {
        let (mut entries, mut first) = (StreamEntries::default(), None);
        let mut walk = txn.stream_entries(stream, StreamId::MIN, StreamId::MAX, false)?;
        while let Some(item) = walk.next(txn)? {
            first.get_or_insert(item.id);
            let items: Vec<&[u8]> = item.fields().flat_map(|(field, value)| [field, value]).collect();
            entries.push(to_rdb(item.id), &items);
            f(&mut entries, out, items.iter().map(|item| item.len()).sum::<usize>() + 1)?;
        }
        Ok::<_, engine::Error>((entries, first.unwrap_or(StreamId::MIN)))
    };
    if !out.is_streamed() {
        let mut bytes = 0;
        let (entries, first) = each(out, &mut |_, out, more| {
            bytes += more;
            out.reserve(bytes)
        })?;
        entries.end(&mut out.bytes);
        return Ok(first);
    }
    // The number of nodes comes first, and what is handed over cannot be changed.
    let mut unwritten = Vec::new();
    let (entries, _) = each(out, &mut |entries, _, _| {
        entries.write_nodes(&mut unwritten);
        unwritten.clear();
        Ok(())
    })?;
    rdb::write_length(&mut out.bytes, entries.end_count());
    let (entries, first) = each(out, &mut |entries, out, _| {
        entries.write_nodes(&mut out.bytes);
        out.reserve(0)
    })?;
    entries.write_rest(&mut out.bytes);
    Ok(first)
}

fn write_group(
    txn: &KeyTransaction<'_>,
    stream: &Stream<'_>,
    group: &Group,
    out: &mut Payload<'_>,
) -> Result<(), engine::Error> {
    const ITEM_MAX: usize = 40;
    out.string(&group.name)?;
    rdb::write_id(&mut out.bytes, to_rdb(group.last_id));
    // A negative number is that of all bits, which says that nobody knows it.
    rdb::write_length(&mut out.bytes, group.entries_read as u64);
    rdb::write_length(&mut out.bytes, group.pending);
    let mut pending = txn.group_pending(stream, group, StreamId::MIN)?;
    while let Some(item) = pending.next(txn)? {
        out.reserve(ITEM_MAX)?;
        out.bytes.extend(to_rdb(item.id).to_bytes());
        rdb::write_time(&mut out.bytes, item.delivered_ms);
        rdb::write_length(&mut out.bytes, item.deliveries);
    }
    rdb::write_length(&mut out.bytes, group.consumers.into());
    let mut consumers = txn.consumers(stream, group);
    while let Some(consumer) = consumers.next_consumer(txn)? {
        out.string(&consumer.name)?;
        out.reserve(ITEM_MAX)?;
        rdb::write_time(&mut out.bytes, consumer.seen_ms);
        rdb::write_length(&mut out.bytes, consumer.pending);
        let mut owned = txn.consumer_pending(stream, group, &consumer, StreamId::MIN)?;
        while let Some(item) = owned.next(txn)? {
            out.reserve(ITEM_MAX)?;
            out.bytes.extend(to_rdb(item.id).to_bytes());
        }
    }
    Ok(())
}

/// A group of a payload. Consumers are numbered in their order.
#[derive(Default)]
pub(crate) struct GroupPart {
    name: Vec<u8>,
    last_id: StreamId,
    entries_read: Option<u64>,
    consumers: Vec<(Vec<u8>, u64, Option<u64>)>,
    pending: BTreeMap<StreamId, PendingPart>,
}

struct PendingPart {
    time_ms: u64,
    deliveries: u64,
    consumer: Option<usize>,
}

/// Collects the groups of a payload, one after the other, and sees whether they are whole: names are unique, and each pending entry has one consumer.
#[derive(Default)]
pub(crate) struct Groups {
    names: HashSet<Vec<u8>>,
    open: Option<GroupPart>,
}

impl Groups {
    /// Adds a part. Returns the group before if it is complete.
    pub(crate) fn take(&mut self, event: &StreamEvent<'_>) -> Result<Option<GroupPart>, NotRestored> {
        if let StreamEvent::Group { name, last_id, entries_read } = event {
            let before = self.end()?;
            if !self.names.insert(name.to_vec()) {
                return NotRestored::format("a stream has two groups of one name");
            }
            let (name, last_id) = (name.to_vec(), from_rdb(*last_id));
            self.open = Some(GroupPart { name, last_id, entries_read: *entries_read, ..GroupPart::default() });
            return Ok(before);
        }
        let Some(group) = &mut self.open else { return Ok(None) };
        group.take(event).map(|()| None)
    }

    /// Returns the last group.
    pub(crate) fn end(&mut self) -> Result<Option<GroupPart>, NotRestored> {
        match self.open.take() {
            Some(group) if group.pending.values().any(|item| item.consumer.is_none()) => {
                NotRestored::format("a pending entry of a stream has no consumer")
            }
            group => Ok(group),
        }
    }
}

impl GroupPart {
    fn take(&mut self, event: &StreamEvent<'_>) -> Result<(), NotRestored> {
        // Bytes of this many items, with their places in the tree.
        const STRIDE: usize = 1024;
        const STRIDE_BYTES: usize = STRIDE * 100;
        const CONSUMER_BYTES: usize = 200;
        match event {
            StreamEvent::Pending { id, time_ms, deliveries } => {
                if self.pending.len().is_multiple_of(STRIDE) {
                    let _claim = memory::claim(STRIDE_BYTES).map_err(engine::Error::OutOfMemory)?;
                }
                let item = PendingPart { time_ms: *time_ms, deliveries: *deliveries, consumer: None };
                if self.pending.insert(from_rdb(*id), item).is_some() {
                    return NotRestored::format("an entry of a stream is pending twice");
                }
            }
            StreamEvent::Consumer { name, seen_time_ms, active_time_ms } => {
                let _claim = memory::claim(name.len() + CONSUMER_BYTES).map_err(engine::Error::OutOfMemory)?;
                self.consumers.push((name.to_vec(), *seen_time_ms, *active_time_ms));
            }
            StreamEvent::ConsumerPending(id) => {
                let owner = self.consumers.len().checked_sub(1);
                let Some(item) = self.pending.get_mut(&from_rdb(*id)) else {
                    return NotRestored::format("a consumer has an entry that its group has not");
                };
                if std::mem::replace(&mut item.consumer, owner).is_some() {
                    return NotRestored::format("two consumers have one pending entry");
                }
            }
            StreamEvent::Entry(..) | StreamEvent::State(_) | StreamEvent::Group { .. } => {}
        }
        Ok(())
    }

    /// Checks that no consumer has the name of another one.
    pub(crate) fn check_names(&self) -> Result<(), NotRestored> {
        let mut names = HashSet::new();
        match self.consumers.iter().all(|(name, ..)| names.insert(name)) {
            true => Ok(()),
            false => NotRestored::format("a group has two consumers of one name"),
        }
    }
}

/// Reads a stream to see whether it is whole.
#[derive(Default)]
pub(super) struct StreamCheck {
    groups: Groups,
}

impl StreamCheck {
    pub(super) fn take(&mut self, event: &StreamEvent<'_>) -> Result<(), NotRestored> {
        let before = self.groups.take(event)?;
        StreamCheck::whole(before)
    }

    pub(super) fn end(&mut self) -> Result<(), NotRestored> {
        StreamCheck::whole(self.groups.end()?)
    }

    fn whole(group: Option<GroupPart>) -> Result<(), NotRestored> {
        match group {
            Some(group) => group.check_names(),
            None => Ok(()),
        }
    }
}

/// Stores a stream that was checked. The key must be absent.
pub(super) fn store_stream(
    txn: &mut KeyTransaction<'_>,
    call: &Call<'_>,
    (number, value): (u8, &[u8]),
    limits: NodeLimits,
) -> Result<(), NotRestored> {
    let mut stream = txn.new_stream(call.db, call.args[1])?;
    let mut groups = Groups::default();
    rdb::read_value(&mut Source::of_bytes(value), number, &mut |event| -> Result<(), NotRestored> {
        let rdb::Event::Stream(event) = event else { return NotRestored::format("no part of a stream") };
        match &event {
            StreamEvent::Entry(id, items) => {
                let fields: Vec<(&[u8], &[u8])> = items.chunks_exact(2).map(|pair| (&*pair[0], &*pair[1])).collect();
                txn.append_entry(&mut stream, from_rdb(*id), &fields, limits)?;
            }
            StreamEvent::State(state) => set_state(&mut stream, state),
            _ => {
                if let Some(group) = groups.take(&event)? {
                    store_group(txn, &mut stream, group)?;
                }
            }
        }
        Ok(())
    })?;
    if let Some(group) = groups.end()? {
        store_group(txn, &mut stream, group)?;
    }
    Ok(txn.store_stream(stream)?)
}

pub(crate) fn set_state(stream: &mut Stream<'_>, state: &StreamState) {
    stream.set_last_id(from_rdb(state.last_id));
    stream.set_max_deleted_id(from_rdb(state.max_deleted_id));
    stream.set_entries_added(state.entries_added);
}

pub(crate) fn store_group<'k>(
    txn: &mut KeyTransaction<'k>,
    stream: &mut Stream<'k>,
    part: GroupPart,
) -> Result<(), NotRestored> {
    const BATCH: usize = 256;
    let read = part.entries_read.and_then(|read| i64::try_from(read).ok()).unwrap_or(-1);
    txn.create_group(stream, &part.name, part.last_id, read)?;
    let Some(mut group) = txn.group(stream, &part.name)? else { return NotRestored::format("a group is missing") };
    let mut consumers: Vec<Consumer> = Vec::new();
    for (name, seen_ms, active_ms) in &part.consumers {
        let mut consumer = txn.create_consumer(stream, &mut group, name)?;
        (consumer.seen_ms, consumer.active_ms) = (*seen_ms, active_ms.unwrap_or(*seen_ms));
        txn.put_consumer(stream, &group, &consumer)?;
        consumers.push(consumer);
    }
    let changes: Vec<_> = part
        .pending
        .iter()
        .filter_map(|(id, item)| {
            let consumer = consumers.get(item.consumer?)?.id;
            let pending = Pending { id: *id, consumer, delivered_ms: item.time_ms, deliveries: item.deliveries };
            Some((*id, Some(pending)))
        })
        .collect();
    for changes in changes.chunks(BATCH) {
        txn.set_pending(stream, &mut group, changes, None)?;
    }
    Ok(txn.put_group(stream, &group)?)
}
