//! XRANGE and XREVRANGE.

use engine::{KeyTransaction, Stream, StreamId};

use super::load;
use crate::call::{Call, Done, Result};
use crate::errors;

pub fn xrange(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    range(txn, call, false)
}

pub fn xrevrange(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    range(txn, call, true)
}

fn range(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, is_backward: bool) -> Result {
    let (start, end) = if is_backward { (3, 2) } else { (2, 3) };
    let Some(from) = call.range_start(start) else { return Ok(()) };
    let Some(to) = call.range_end(end) else { return Ok(()) };
    let (mut count, mut at) = (None, 4);
    while at < call.args.len() {
        if !call.word(at, "count") || at + 1 == call.args.len() {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
        let Some(number) = call.integer(at + 1) else { return Ok(()) };
        count = Some(number.max(0) as u64);
        at += 2;
    }
    let Some(found) = load(txn, call, call.args[1])? else { return Ok(()) };
    match (found, count) {
        (None, _) => call.reply.array(0),
        (Some(_), Some(0)) => call.reply.null_array(),
        (Some(stream), count) => {
            let count = count_entries(txn, &stream, from, to, is_backward, count)?.0;
            reply_entries(txn, call, &stream, (from, to, is_backward), count)?;
        }
    }
    Ok(())
}

/// Returns how many entries a range has, up to a number of them, and the last of these.
pub(super) fn count_entries(
    txn: &KeyTransaction<'_>,
    stream: &Stream<'_>,
    from: StreamId,
    to: StreamId,
    is_backward: bool,
    most: Option<u64>,
) -> Done<(u64, Option<StreamId>)> {
    let most = most.unwrap_or(u64::MAX);
    let (mut count, mut last) = (0, None);
    let mut walk = txn.stream_entries(stream, from, to, is_backward)?;
    while count < most
        && let Some(item) = walk.next(txn)?
    {
        (count, last) = (count + 1, Some(item.id));
    }
    Ok((count, last))
}

/// Replies with the first entries of a range, of which there are so many.
pub(super) fn reply_entries(
    txn: &KeyTransaction<'_>,
    call: &mut Call<'_>,
    stream: &Stream<'_>,
    (from, to, is_backward): (StreamId, StreamId, bool),
    count: u64,
) -> Result {
    call.reply.array(count as usize);
    let mut walk = txn.stream_entries(stream, from, to, is_backward)?;
    for _ in 0..count {
        // A reader that meets a change has fewer entries here, and runs again.
        let Some(item) = walk.next(txn)? else { return Ok(()) };
        call.stream_entry(&item)?;
    }
    Ok(())
}
