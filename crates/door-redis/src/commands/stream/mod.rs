//! Commands of streams: what they share. `ids` reads ids, `add` has the commands that add and remove entries, `range`, `read`, `group_read` and `read_wait` those that show them, `groups`
//! and `pending` those of groups, `info` XINFO, and `progress` how far a group has read.

mod group_read;
mod ids;
mod progress;

pub mod add;
pub mod groups;
pub mod info;
pub mod pending;
pub mod range;
pub mod read;
mod read_wait;

use engine::{Group, KeyTransaction, Kind, Stream, StreamId, StreamItem, event_class};

use crate::call::{Call, Done, Result};
use crate::commands::{lookup_as, shown};
use crate::errors;

/// Reads the stream at a key. Returns None after a WRONGTYPE reply.
fn load<'k>(txn: &mut KeyTransaction<'k>, call: &mut Call<'_>, key: &[u8]) -> Done<Option<Option<Stream<'k>>>> {
    let Some(found) = lookup_as(txn, call, key, Kind::Stream)? else { return Ok(None) };
    let stream = found.map(|entry| txn.stream(call.db, key, &entry)).transpose()?;
    Ok(Some(stream))
}

/// Does the same for a command that writes and looks its key up as one that reads: a miss counts, and is an event.
fn load_read<'k>(txn: &mut KeyTransaction<'k>, call: &mut Call<'_>, key: &[u8]) -> Done<Option<Option<Stream<'k>>>> {
    let found = txn.get(call.db, key)?;
    if found.as_ref().is_some_and(|entry| entry.kind != Kind::Stream) {
        call.reply.error(errors::WRONG_TYPE);
        return Ok(None);
    }
    found.map(|entry| txn.stream(call.db, key, &entry)).transpose().map(Some)
}

/// Reads a stream and its group. Returns None after an error reply.
fn load_group<'k>(txn: &mut KeyTransaction<'k>, call: &mut Call<'_>) -> Done<Option<(Stream<'k>, Group)>> {
    let Some(stream) = load_read(txn, call, call.args[1])? else { return Ok(None) };
    let group = stream.as_ref().map(|stream| txn.group(stream, call.args[2])).transpose()?.flatten();
    if let (Some(stream), Some(group)) = (stream, group) {
        return Ok(Some((stream, group)));
    }
    let (key, group) = (shown(call.args[1]), shown(call.args[2]));
    call.reply.error(&format!("NOGROUP No such key '{key}' or consumer group '{group}'"));
    Ok(None)
}

fn notify(txn: &mut KeyTransaction<'_>, call: &Call<'_>, key: &[u8], event: &'static str) {
    txn.notify(call.db, key, event_class::STREAM, event);
}

fn id_text(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

impl Call<'_> {
    fn stream_id(&mut self, id: StreamId) {
        self.reply.bulk(id_text(id).as_bytes());
    }

    fn stream_entry(&mut self, item: &StreamItem<'_>) -> Result {
        self.reply.array(2);
        self.bulk_item(id_text(item.id).as_bytes())?;
        let fields = item.fields();
        self.reply.array(fields.len() * 2);
        for (name, value) in fields {
            self.bulk_item(name)?;
            self.bulk_item(value)?;
        }
        Ok(())
    }

    /// Replies with the entry of an id. Returns false, having written nothing, if there is none.
    fn entry_of(&mut self, txn: &KeyTransaction<'_>, stream: &Stream<'_>, id: StreamId) -> Done<bool> {
        let mut walk = txn.stream_entries(stream, id, id, false)?;
        let Some(item) = walk.next(txn)? else { return Ok(false) };
        self.stream_entry(&item)?;
        Ok(true)
    }
}
