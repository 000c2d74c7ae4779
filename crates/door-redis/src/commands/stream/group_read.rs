//! A read of one stream for a consumer of a group, and the parts of a reply that XREAD and XREADGROUP share, whether they have waited or not.

use engine::{Consumer, Group, KeyTransaction, Pending, Stream, StreamId};

use super::progress::Progress;
use super::{id_text, notify};
use crate::call::{Call, Done, Result};

/// Where a stream is read from.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum After {
    Id(StreamId),
    /// Entries that the group has not got yet.
    New,
}

/// Replies with the number of streams.
pub(super) fn reply_streams(call: &mut Call<'_>, count: usize) {
    match count {
        0 => call.reply.null_array(),
        _ if call.reply.resp3 => call.reply.map(count),
        _ => call.reply.array(count),
    }
}

pub(super) fn reply_key(call: &mut Call<'_>, key: &[u8]) {
    if !call.reply.resp3 {
        call.reply.array(2);
    }
    call.reply.bulk(key);
}

/// A read of one stream for a consumer of a group.
pub(super) struct GroupRead<'r> {
    pub group: &'r [u8],
    pub consumer: &'r [u8],
    /// How many entries are there and wanted, or the most pending ones.
    pub count: Option<u64>,
    pub is_unacknowledged: bool,
}

impl GroupRead<'_> {
    /// Replies with the stream's entries, and makes them the consumer's.
    pub fn run(&self, txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, key: &[u8], after: After) -> Result {
        let Some(entry) = txn.peek(call.db, key)? else { return Ok(()) };
        let mut stream = txn.stream(call.db, key, &entry)?;
        let Some(mut group) = txn.group(&stream, self.group)? else { return Ok(()) };
        let mut consumer = match txn.consumer(&stream, &group, self.consumer)? {
            Some(known) => known,
            None => {
                notify(txn, call, key, "xgroup-createconsumer");
                txn.create_consumer(&mut stream, &mut group, self.consumer)?
            }
        };
        consumer.seen_ms = txn.now_ms();
        reply_key(call, key);
        let changes = match after {
            After::New => deliver(txn, call, &stream, &mut group, &consumer, self.count.unwrap_or(0))?,
            After::Id(id) => repeat(txn, call, &stream, &group, &consumer, (id, self.count))?,
        };
        if !changes.is_empty() {
            consumer.active_ms = txn.now_ms();
        }
        // What is read again stays pending.
        if !self.is_unacknowledged || after != After::New {
            let changes: Vec<_> = changes.into_iter().map(|(id, pending)| (id, Some(pending))).collect();
            txn.set_pending(&mut stream, &mut group, &changes, Some(&mut consumer))?;
        }
        txn.put_consumer(&mut stream, &group, &consumer)?;
        txn.put_group(&mut stream, &group)
    }
}

/// Replies with entries that the group has not got yet. Returns them as pending ones.
fn deliver(
    txn: &KeyTransaction<'_>,
    call: &mut Call<'_>,
    stream: &Stream<'_>,
    group: &mut Group,
    consumer: &Consumer,
    count: u64,
) -> Done<Vec<(StreamId, Pending)>> {
    let progress = Progress::of(txn, stream)?;
    let mut changes = Vec::new();
    call.reply.array(count as usize);
    let Some(from) = group.last_id.next() else { return Ok(changes) };
    let mut walk = txn.stream_entries(stream, from, StreamId::MAX, false)?;
    while (changes.len() as u64) < count
        && let Some(item) = walk.next(txn)?
    {
        call.stream_entry(&item)?;
        progress.advance(group, item.id);
        let delivered_ms = txn.now_ms();
        changes.push((item.id, Pending { id: item.id, consumer: consumer.id, delivered_ms, deliveries: 1 }));
    }
    Ok(changes)
}

/// Replies with pending entries of a consumer. Returns those that are delivered again.
fn repeat(
    txn: &KeyTransaction<'_>,
    call: &mut Call<'_>,
    stream: &Stream<'_>,
    group: &Group,
    consumer: &Consumer,
    (after, most): (StreamId, Option<u64>),
) -> Done<Vec<(StreamId, Pending)>> {
    let mut ids = Vec::new();
    if let Some(from) = after.next() {
        let mut walk = txn.consumer_pending(stream, group, consumer, from)?;
        while most.is_none_or(|most| (ids.len() as u64) < most)
            && let Some(item) = walk.next(txn)?
        {
            ids.push(item.id);
        }
    }
    call.reply.array(ids.len());
    let known = txn.pending_entries(stream, group, &ids)?;
    let mut changes = Vec::new();
    for (id, pending) in ids.into_iter().zip(known) {
        if call.entry_of(txn, stream, id)? {
            let pending = pending.unwrap_or_default();
            let (delivered_ms, deliveries) = (txn.now_ms(), pending.deliveries.wrapping_add(1));
            changes.push((id, Pending { id, consumer: consumer.id, delivered_ms, deliveries }));
        } else {
            // Its entry has been deleted.
            call.reply.array(2);
            call.reply.bulk(id_text(id).as_bytes());
            call.reply.null_array();
        }
    }
    Ok(changes)
}
