//! Effects of key transactions as commands of Redis 7. Each is a fact: applied to the state before, it gives the state behind, whenever it runs.

use engine::{End, Expire, KeyEffect, Kind, StreamId};

use crate::float;
use crate::number;
use crate::reply::bulk_header;

/// Appends a command.
pub fn put_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    put_many(out, words, std::iter::empty());
}

/// Appends a command of these words and more.
fn put_many<'w>(out: &mut Vec<u8>, words: &[&'w [u8]], more: impl Iterator<Item = &'w [u8]> + Clone) {
    out.push(b'*');
    number::append_unsigned(out, (words.len() + more.clone().count()) as u64);
    out.extend_from_slice(b"\r\n");
    words.iter().copied().chain(more).for_each(|word| {
        bulk_header(out, word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    });
}

/// The decimal text of a number.
fn text(value: impl ToString) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn ids_text(ids: &[StreamId]) -> Vec<Vec<u8>> {
    ids.iter().map(|id| id_text(*id)).collect()
}

fn id_text(id: StreamId) -> Vec<u8> {
    format!("{}-{}", id.ms, id.seq).into_bytes()
}

fn slices(words: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> + Clone {
    words.iter().map(Vec::as_slice)
}

/// Appends an effect as commands. Returns how many there are.
pub fn encode(effect: &KeyEffect<'_>, out: &mut Vec<u8>) -> u32 {
    let is_known = encode_key(effect, out) || encode_members(effect, out) || encode_list(effect, out);
    assert!(is_known || encode_stream(effect, out) || encode_group(effect, out), "every effect has a command");
    // A key that moves to another name or database is copied and removed.
    if let KeyEffect::Rename { key, .. } = effect {
        put_command(out, &[b"UNLINK", key]);
        return 2;
    }
    1
}

fn encode_key(effect: &KeyEffect<'_>, out: &mut Vec<u8>) -> bool {
    match *effect {
        KeyEffect::Set { key, value, expire } => match expire {
            Expire::Keep => put_command(out, &[b"SET", key, value, b"KEEPTTL"]),
            Expire::None => put_command(out, &[b"SET", key, value]),
            Expire::At(time) => put_command(out, &[b"SET", key, value, b"PXAT", &text(time)]),
        },
        KeyEffect::Patch { key, offset, bytes } => put_command(out, &[b"SETRANGE", key, &text(offset), bytes]),
        KeyEffect::Delete { key } => put_command(out, &[b"UNLINK", key]),
        KeyEffect::ExpireAt { key, at_ms: Some(time) } => put_command(out, &[b"PEXPIREAT", key, &text(time)]),
        KeyEffect::ExpireAt { key, at_ms: None } => put_command(out, &[b"PERSIST", key]),
        KeyEffect::Rename { key, to: (db, name) } | KeyEffect::Copy { key, to: (db, name) } => {
            put_command(out, &[b"COPY", key, name, b"DB", &text(db), b"REPLACE"]);
        }
        KeyEffect::Restore { key, at_ms, payload } => {
            let time = text(at_ms.unwrap_or(0));
            put_command(out, &[b"RESTORE", key, &time, payload, b"REPLACE", b"ABSTTL"]);
        }
        KeyEffect::FlushDatabase => put_command(out, &[b"FLUSHDB"]),
        KeyEffect::FlushAll => put_command(out, &[b"FLUSHALL"]),
        KeyEffect::SwapDatabases(one, other) => put_command(out, &[b"SWAPDB", &text(one), &text(other)]),
        _ => return false,
    }
    true
}

fn encode_members(effect: &KeyEffect<'_>, out: &mut Vec<u8>) -> bool {
    match *effect {
        KeyEffect::PutMembers { key, kind: Kind::Hash, items } => {
            put_many(out, &[b"HSET", key], items.iter().flat_map(|(field, value)| [*field, *value]));
        }
        KeyEffect::PutMembers { key, items, .. } => {
            put_many(out, &[b"SADD", key], items.iter().map(|(member, _)| *member));
        }
        KeyEffect::RemoveMembers { key, kind, members } => {
            let name: &[u8] = match kind {
                Kind::Hash => b"HDEL",
                Kind::ZSet => b"ZREM",
                _ => b"SREM",
            };
            put_many(out, &[name, key], members.iter().copied());
        }
        KeyEffect::FieldsExpireAt { key, fields, at_ms } => {
            let (count, time) = (text(fields.len()), at_ms.map(text));
            let fields = fields.iter().copied();
            match &time {
                Some(time) => put_many(out, &[b"HPEXPIREAT", key, time, b"FIELDS", &count], fields),
                None => put_many(out, &[b"HPERSIST", key, b"FIELDS", &count], fields),
            }
        }
        KeyEffect::PutScores { key, items } => {
            let scores: Vec<Vec<u8>> = items
                .iter()
                .map(|(score, _)| {
                    let mut shown = Vec::new();
                    float::print(&mut shown, *score);
                    shown
                })
                .collect();
            let pairs = scores.iter().zip(items).flat_map(|(score, (_, member))| [score.as_slice(), *member]);
            put_many(out, &[b"ZADD", key], pairs);
        }
        KeyEffect::RemoveRanks { key, ref ranks } => {
            let (first, last) = (text(ranks.start), text(ranks.end.saturating_sub(1)));
            put_command(out, &[b"ZREMRANGEBYRANK", key, &first, &last]);
        }
        _ => return false,
    }
    true
}

fn encode_list(effect: &KeyEffect<'_>, out: &mut Vec<u8>) -> bool {
    match *effect {
        KeyEffect::Push { key, end, items } => {
            let name: &[u8] = if end == End::Head { b"LPUSH" } else { b"RPUSH" };
            put_many(out, &[name, key], items.iter().copied());
        }
        KeyEffect::Pop { key, end, count } => {
            let name: &[u8] = if end == End::Head { b"LPOP" } else { b"RPOP" };
            put_command(out, &[name, key, &text(count.min(i64::MAX as u64))]);
        }
        KeyEffect::KeepItems { key, ref kept } => {
            put_command(out, &[b"LTRIM", key, &text(kept.start), &text(kept.end.saturating_sub(1))]);
        }
        KeyEffect::SetItem { key, index, item } => put_command(out, &[b"LSET", key, &text(index), item]),
        KeyEffect::InsertItem { key, pivot, is_before, item } => {
            let place: &[u8] = if is_before { b"BEFORE" } else { b"AFTER" };
            put_command(out, &[b"LINSERT", key, place, pivot, item]);
        }
        KeyEffect::RemoveItems { key, from, count, item } => {
            let count = if from == End::Head { count as i64 } else { -(count as i64) };
            put_command(out, &[b"LREM", key, &text(count), item]);
        }
        _ => return false,
    }
    true
}

fn encode_stream(effect: &KeyEffect<'_>, out: &mut Vec<u8>) -> bool {
    match *effect {
        KeyEffect::AppendEntry { key, id, fields } => {
            let id = id_text(id);
            let pairs = fields.iter().flat_map(|(field, value)| [*field, *value]);
            put_many(out, &[b"XADD", key, &id], pairs);
        }
        KeyEffect::DeleteEntries { key, ids } => put_many(out, &[b"XDEL", key], slices(&ids_text(ids))),
        KeyEffect::TrimStream { key, len } => put_command(out, &[b"XTRIM", key, b"MAXLEN", b"=", &text(len)]),
        // An entry that is trimmed at once; its id is replaced by those that follow.
        KeyEffect::EmptyStream { key } => {
            put_command(out, &[b"XADD", key, b"MAXLEN", b"=", b"0", b"0-1", b"x", b"y"]);
        }
        KeyEffect::SetStreamIds { key, last, added, max_deleted } => {
            let (last, added, deleted) = (id_text(last), text(added), id_text(max_deleted));
            put_command(out, &[b"XSETID", key, &last, b"ENTRIESADDED", &added, b"MAXDELETEDID", &deleted]);
        }
        _ => return false,
    }
    true
}

fn encode_group(effect: &KeyEffect<'_>, out: &mut Vec<u8>) -> bool {
    match *effect {
        KeyEffect::CreateGroup { key, group, last, entries_read } => {
            let (last, read) = (id_text(last), text(entries_read));
            put_command(out, &[b"XGROUP", b"CREATE", key, group, &last, b"MKSTREAM", b"ENTRIESREAD", &read]);
        }
        KeyEffect::SetGroup { key, group, last, entries_read } => {
            let (last, read) = (id_text(last), text(entries_read));
            put_command(out, &[b"XGROUP", b"SETID", key, group, &last, b"ENTRIESREAD", &read]);
        }
        KeyEffect::DestroyGroup { key, group } => put_command(out, &[b"XGROUP", b"DESTROY", key, group]),
        KeyEffect::CreateConsumer { key, group, consumer } => {
            put_command(out, &[b"XGROUP", b"CREATECONSUMER", key, group, consumer]);
        }
        KeyEffect::DeleteConsumer { key, group, consumer } => {
            put_command(out, &[b"XGROUP", b"DELCONSUMER", key, group, consumer]);
        }
        KeyEffect::SetPending { key, group, consumer, ids, delivered_ms, deliveries } => {
            let (ids, time, count) = (ids_text(ids), text(delivered_ms), text(deliveries));
            let options: [&[u8]; 6] = [b"TIME", &time, b"RETRYCOUNT", &count, b"FORCE", b"JUSTID"];
            put_many(out, &[b"XCLAIM", key, group, consumer, b"0"], slices(&ids).chain(options));
        }
        KeyEffect::Acknowledge { key, group, ids } => {
            put_many(out, &[b"XACK", key, group], slices(&ids_text(ids)));
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(effect: &KeyEffect<'_>) -> (u32, String) {
        let mut out = Vec::new();
        let count = encode(effect, &mut out);
        (count, String::from_utf8_lossy(&out).replace("\r\n", " "))
    }

    #[test]
    fn effects_are_facts_in_the_words_of_redis() {
        let key = b"k";
        let cases = [
            (KeyEffect::Set { key, value: b"v", expire: Expire::At(7) }, "*5 $3 SET $1 k $1 v $4 PXAT $1 7 "),
            (KeyEffect::RemoveItems { key, from: End::Tail, count: 2, item: b"v" }, "*4 $4 LREM $1 k $2 -2 $1 v "),
            (
                KeyEffect::PutScores { key, items: &[(-0.0, b"m"), (1.5, b"n")] },
                "*6 $4 ZADD $1 k $2 -0 $1 m $3 1.5 $1 n ",
            ),
            (KeyEffect::KeepItems { key, kept: 1..3 }, "*4 $5 LTRIM $1 k $1 1 $1 2 "),
        ];
        for (effect, expected) in cases {
            assert_eq!(encoded(&effect), (1, expected.to_owned()));
        }
        let (count, text) = encoded(&KeyEffect::Rename { key, to: (3, b"to") });
        assert_eq!((count, text.as_str()), (2, "*6 $4 COPY $1 k $2 to $2 DB $1 3 $7 REPLACE *2 $6 UNLINK $1 k "));
    }
}
