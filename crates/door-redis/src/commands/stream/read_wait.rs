//! The waits of XREAD and XREADGROUP with BLOCK.
//!
//! A reader of a stream takes nothing from it, so a stream has something for all of them, and each is asked whatever happened to those before it. A group gives each
//! entry to one consumer: its last id, read anew for each ticket, decides, and a group is a class of its own. Both kinds wait in one queue, and the end of a stream concerns only the groups.

use engine::{Claim, KeyTransaction, Kind, Serving, StreamId};

use super::group_read::{After, GroupRead, reply_key, reply_streams};
use super::range::{count_entries, reply_entries};
use crate::call::{Blocking, Call, Done};
use crate::commands::waits::owned;

/// The most entries of a reply to a client that has waited, if it names no number.
const COUNT_WITHOUT_OPTION: u64 = 1000;

/// The entries that a blocked reader wants.
pub(super) struct StreamWait {
    db: u8,
    wants: StreamWant,
    count: u64,
}

enum StreamWant {
    /// Entries behind these ids, one for each key.
    Ids(Vec<StreamId>),
    /// New entries for a consumer of a group.
    Group { group: Box<[u8]>, consumer: Box<[u8]>, is_unacknowledged: bool },
}

impl StreamWait {
    pub fn of_ids(db: u8, ids: Vec<StreamId>, count: Option<u64>) -> StreamWait {
        StreamWait { db, wants: StreamWant::Ids(ids), count: count.unwrap_or(COUNT_WITHOUT_OPTION) }
    }

    pub fn of_group(db: u8, read: GroupRead<'_>) -> StreamWait {
        let (group, consumer) = (read.group.into(), read.consumer.into());
        let wants = StreamWant::Group { group, consumer, is_unacknowledged: read.is_unacknowledged };
        StreamWait { db, wants, count: read.count.unwrap_or(COUNT_WITHOUT_OPTION) }
    }

    pub fn begin(self, keys: &[&[u8]], timeout_ms: u64) -> Blocking {
        let names = owned(keys);
        let keys = names.clone();
        let class = match &self.wants {
            StreamWant::Ids(_) => Box::default(),
            // Never that of the readers without a group, whatever its name.
            StreamWant::Group { group, .. } => [&b"g"[..], group].concat().into(),
        };
        let serve = move |txn: &mut KeyTransaction<'_>, key: &[u8], claim: &Claim<'_>, call: &mut Call<'_>| {
            // Of a stream that is named twice, the first id counts.
            let at = names.iter().position(|name| **name == *key).unwrap_or(0);
            self.serve(txn, (key, at), claim, call)
        };
        Blocking {
            kind: Kind::Stream,
            class,
            keys,
            also: None,
            timeout_ms,
            serve: Box::new(serve),
            refuse: |reply| reply.null_array(),
        }
    }

    fn serve(
        &self,
        txn: &mut KeyTransaction<'_>,
        (key, at): (&[u8], usize),
        claim: &Claim<'_>,
        call: &mut Call<'_>,
    ) -> Done<Serving> {
        let Some(entry) = txn.peek(self.db, key)?.filter(|entry| entry.kind == Kind::Stream) else {
            let is_over = matches!(self.wants, StreamWant::Group { .. }) && claim.take();
            return Ok(end_if(is_over, call, "UNBLOCKED the stream key no longer exists"));
        };
        let stream = txn.stream(self.db, key, &entry)?;
        let after = match &self.wants {
            StreamWant::Ids(ids) => ids[at],
            StreamWant::Group { group, .. } => match txn.group(&stream, group)? {
                Some(group) => group.last_id,
                None => {
                    let text = "NOGROUP the consumer group this client was blocked on no longer exists";
                    return Ok(end_if(claim.take(), call, text));
                }
            },
        };
        let Some(from) = after.next().filter(|_| stream.last_id() > after) else {
            return Ok(match self.wants {
                StreamWant::Ids(_) => Serving::Waits,
                // The whole group has read all.
                StreamWant::Group { .. } => Serving::Exhausted,
            });
        };
        if !claim.take() {
            return Ok(Serving::Waits);
        }
        // Redis 7.0 ends the wait by the last id alone. If the entries behind it have been deleted since, the reply has none.
        let (count, _) = count_entries(txn, &stream, from, StreamId::MAX, false, Some(self.count))?;
        reply_streams(call, 1);
        match &self.wants {
            StreamWant::Ids(_) => {
                reply_key(call, key);
                reply_entries(txn, call, &stream, (from, StreamId::MAX, false), count)?;
            }
            StreamWant::Group { group, consumer, is_unacknowledged } => {
                let is_unacknowledged = *is_unacknowledged;
                let read = GroupRead { group, consumer, count: Some(count), is_unacknowledged };
                read.run(txn, call, key, After::New)?;
            }
        }
        Ok(Serving::Served)
    }
}

/// Ends a wait with an error, if it has been claimed.
fn end_if(is_claimed: bool, call: &mut Call<'_>, text: &str) -> Serving {
    if !is_claimed {
        return Serving::Waits;
    }
    call.reply.error(text);
    Serving::Served
}
