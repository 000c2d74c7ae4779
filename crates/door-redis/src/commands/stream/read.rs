//! XREAD and XREADGROUP. With BLOCK they wait if they have found nothing: `read_wait`.

use engine::{KeyTransaction, Stream, StreamId};

use super::group_read::{After, GroupRead, reply_key, reply_streams};
use super::load_read;
use super::range::{count_entries, reply_entries};
use super::read_wait::StreamWait;
use crate::call::{Blocking, Call, Done};
use crate::commands::shown;
use crate::commands::waits::milliseconds;
use crate::errors;

/// The options of XREAD and XREADGROUP.
struct ReadOptions {
    count: Option<u64>,
    /// The time to wait if there is nothing, in milliseconds; 0 means for ever.
    timeout_ms: Option<u64>,
    /// Name of the group and of the consumer.
    group: Option<(usize, usize)>,
    is_unacknowledged: bool,
    /// Where the keys are, and how many. The ids follow them.
    keys: usize,
    key_count: usize,
}

/// One stream of the reply.
struct Served {
    key: usize,
    after: After,
    /// Number of new entries.
    count: u64,
}

fn options(call: &mut Call<'_>, of_group: bool) -> Option<ReadOptions> {
    let mut found =
        ReadOptions { count: None, timeout_ms: None, group: None, is_unacknowledged: false, keys: 0, key_count: 0 };
    let mut at = 1;
    while at < call.args.len() {
        let more = call.args.len() - at - 1;
        if call.word(at, "block") && more > 0 {
            found.timeout_ms = Some(milliseconds(call, at + 1)?);
            at += 2;
        } else if call.word(at, "count") && more > 0 {
            // Redis takes a negative number for no limit, too.
            found.count = Some(call.integer(at + 1)?).filter(|count| *count > 0).map(|count| count as u64);
            at += 2;
        } else if call.word(at, "streams") && more > 0 {
            if !more.is_multiple_of(2) {
                // Redis 7.0 names XREAD in both commands.
                call.reply
                    .error("ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.");
                return None;
            }
            (found.keys, found.key_count) = (at + 1, more / 2);
            break;
        } else if call.word(at, "group") && more >= 2 {
            if !of_group {
                call.reply.error("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.");
                return None;
            }
            found.group = Some((at + 1, at + 2));
            at += 3;
        } else if call.word(at, "noack") {
            if !of_group {
                call.reply.error("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.");
                return None;
            }
            found.is_unacknowledged = true;
            at += 1;
        } else {
            call.reply.error(errors::SYNTAX);
            return None;
        }
    }
    let error = match found.group {
        _ if found.key_count == 0 => errors::SYNTAX,
        None if of_group => "ERR Missing GROUP option for XREADGROUP",
        _ => return Some(found),
    };
    call.reply.error(error);
    None
}

/// Reads the id of a stream. Returns None after an error reply.
fn after(call: &mut Call<'_>, at: usize, of_group: bool, stream: Option<&Stream<'_>>) -> Option<After> {
    let error = match call.args[at] {
        b"$" if of_group => {
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to \
             get new messages. The $ ID would just return an empty result set."
        }
        b"$" => return Some(After::Id(stream.map_or(StreamId::MIN, Stream::last_id))),
        b">" if of_group => return Some(After::New),
        b">" => "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        _ => {
            let id = call.id(at)?;
            // Redis marks new entries by the last id.
            return Some(if of_group && id == StreamId::MAX { After::New } else { After::Id(id) });
        }
    };
    call.reply.error(error);
    None
}

pub fn xread(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    let Some(options) = options(call, false) else { return Ok(None) };
    let (mut served, mut ids) = (Vec::new(), Vec::with_capacity(options.key_count));
    for key in options.keys..options.keys + options.key_count {
        let Some(stream) = load_read(txn, call, call.args[key])? else { return Ok(None) };
        let Some(After::Id(after)) = after(call, key + options.key_count, false, stream.as_ref()) else {
            return Ok(None);
        };
        ids.push(after);
        if let (Some(stream), Some(from)) = (stream, after.next()) {
            let (count, _) = count_entries(txn, &stream, from, StreamId::MAX, false, options.count)?;
            if count > 0 {
                served.push((key, stream, from, count));
            }
        }
    }
    if let (true, Some(timeout_ms)) = (served.is_empty(), options.timeout_ms) {
        let keys = &call.args[options.keys..][..options.key_count];
        return Ok(Some(StreamWait::of_ids(call.db, ids, options.count).begin(keys, timeout_ms)));
    }
    reply_streams(call, served.len());
    for (key, stream, from, count) in served {
        reply_key(call, call.args[key]);
        reply_entries(txn, call, &stream, (from, StreamId::MAX, false), count)?;
    }
    Ok(None)
}

pub fn xreadgroup(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    let Some(options) = options(call, true) else { return Ok(None) };
    let Some((group, consumer)) = options.group else { return Ok(None) };
    let (group, consumer) = (call.args[group], call.args[consumer]);
    let mut reads = Vec::with_capacity(options.key_count);
    for key in options.keys..options.keys + options.key_count {
        let Some(stream) = load_read(txn, call, call.args[key])? else { return Ok(None) };
        let found = stream.as_ref().map(|stream| txn.group(stream, group)).transpose()?.flatten();
        if found.is_none() {
            let (key, group) = (shown(call.args[key]), shown(group));
            let text =
                format!("NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option");
            call.reply.error(&text);
            return Ok(None);
        }
        let Some(after) = after(call, key + options.key_count, true, stream.as_ref()) else { return Ok(None) };
        reads.push((key, after));
    }
    let served = plan(txn, call, group, &reads, &options)?;
    let streams = served.iter().flatten().count();
    if let (0, Some(timeout_ms)) = (streams, options.timeout_ms) {
        let keys = &call.args[options.keys..][..options.key_count];
        let read = GroupRead { group, consumer, count: options.count, is_unacknowledged: options.is_unacknowledged };
        return Ok(Some(StreamWait::of_group(call.db, read).begin(keys, timeout_ms)));
    }
    reply_streams(call, streams);
    for Served { key, after, count } in served.into_iter().flatten() {
        let count = if after == After::New { Some(count) } else { options.count };
        let read = GroupRead { group, consumer, count, is_unacknowledged: options.is_unacknowledged };
        read.run(txn, call, call.args[key], after)?;
    }
    Ok(None)
}

/// Counts what each stream will answer; nothing for a stream that is not part of the reply.
fn plan(
    txn: &mut KeyTransaction<'_>,
    call: &Call<'_>,
    group: &[u8],
    reads: &[(usize, After)],
    options: &ReadOptions,
) -> Done<Vec<Option<Served>>> {
    let mut planned = Vec::with_capacity(reads.len());
    // A stream that is named twice goes on where it was read to before.
    let mut read_to: Vec<(&[u8], StreamId)> = Vec::new();
    for (key, after) in reads {
        let name = call.args[*key];
        let Some(entry) = txn.peek(call.db, name)? else { return Ok(planned) };
        let stream = txn.stream(call.db, name, &entry)?;
        let Some(found) = txn.group(&stream, group)? else { return Ok(planned) };
        let count = match after {
            After::New => {
                let at = read_to.iter().rposition(|(known, _)| *known == name);
                let last = at.map_or(found.last_id, |at| read_to[at].1);
                let (count, last) = match last.next() {
                    Some(from) => count_entries(txn, &stream, from, StreamId::MAX, false, options.count)?,
                    None => (0, None),
                };
                read_to.extend(last.map(|last| (name, last)));
                count
            }
            After::Id(_) => 0,
        };
        let is_served = count > 0 || *after != After::New;
        planned.push(is_served.then_some(Served { key: *key, after: *after, count }));
    }
    Ok(planned)
}
