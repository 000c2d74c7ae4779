//! XACK, XPENDING, XCLAIM and XAUTOCLAIM.

use std::collections::{HashMap, hash_map};

use engine::{Consumer, Group, KeyTransaction, Pending, Stream, StreamId};

use super::{ids, load_group, load_read, notify};
use crate::call::{Call, Done, Result};
use crate::commands::shown;
use crate::{errors, number};

pub fn xack(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(found) = load_read(txn, call, call.args[1])? else { return Ok(()) };
    let group = found.as_ref().map(|stream| txn.group(stream, call.args[2])).transpose()?.flatten();
    let (Some(mut stream), Some(mut group)) = (found, group) else {
        call.reply.integer(0);
        return Ok(());
    };
    let Some(mut ids) = call.ids(3) else { return Ok(()) };
    ids.sort_unstable();
    ids.dedup();
    let known = txn.pending_entries(&stream, &group, &ids)?;
    let changes: Vec<_> =
        ids.into_iter().zip(&known).filter(|(_, known)| known.is_some()).map(|(id, _)| (id, None)).collect();
    if !changes.is_empty() {
        txn.set_pending(&mut stream, &mut group, &changes, None)?;
        txn.put_group(&mut stream, &group)?;
    }
    call.reply.integer(changes.len() as i64);
    Ok(())
}

/// The names of a group's consumers, as far as they were needed.
#[derive(Default)]
struct Names(HashMap<u32, Vec<u8>>);

impl Names {
    fn of(&mut self, txn: &KeyTransaction<'_>, stream: &Stream<'_>, group: &Group, id: u32) -> Done<&[u8]> {
        match self.0.entry(id) {
            hash_map::Entry::Occupied(known) => Ok(known.into_mut()),
            hash_map::Entry::Vacant(place) => {
                let consumer = txn.consumer_by_id(stream, group, id)?;
                Ok(place.insert(consumer.map(|consumer| consumer.name).unwrap_or_default()))
            }
        }
    }
}

/// The part of a group's pending entries that XPENDING shows.
struct Part {
    from: StreamId,
    to: StreamId,
    count: u64,
    idle_ms: i64,
    consumer: Option<usize>,
}

fn part(call: &mut Call<'_>) -> Option<Part> {
    let mut start = 3;
    let mut idle_ms = 0;
    if call.word(3, "idle") {
        idle_ms = call.integer(4)?;
        if call.args.len() < 8 {
            call.reply.error(errors::SYNTAX);
            return None;
        }
        start = 5;
    }
    let count = call.integer(start + 2)?.max(0) as u64;
    let from = call.range_start(start)?;
    let to = call.range_end(start + 1)?;
    let consumer = (start + 3 < call.args.len()).then_some(start + 3);
    Some(Part { from, to, count, idle_ms, consumer })
}

pub fn xpending(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if !matches!(call.args.len(), 3 | 6..=9) {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    if call.args.len() == 3 {
        let Some((stream, group)) = load_group(txn, call)? else { return Ok(()) };
        return summary(txn, call, &stream, &group);
    }
    let Some(part) = part(call) else { return Ok(()) };
    let Some((stream, group)) = load_group(txn, call)? else { return Ok(()) };
    let consumer = part.consumer.map(|at| txn.consumer(&stream, &group, call.args[at])).transpose()?;
    let found = match consumer {
        Some(None) => Vec::new(),
        Some(Some(consumer)) => shown_of_consumer(txn, &stream, &group, &consumer, &part)?,
        None => shown_of_group(txn, &stream, &group, &part)?,
    };
    let mut names = Names::default();
    call.reply.array(found.len());
    for item in found {
        call.reply.array(4);
        call.stream_id(item.id);
        let name = names.of(txn, &stream, &group, item.consumer)?;
        call.bulk_item(name)?;
        call.reply.integer(idle_of(txn, &item).max(0));
        call.reply.integer(item.deliveries as i64);
    }
    Ok(())
}

fn idle_of(txn: &KeyTransaction<'_>, item: &Pending) -> i64 {
    (txn.now_ms() as i64).wrapping_sub(item.delivered_ms as i64)
}

fn is_shown(txn: &KeyTransaction<'_>, item: &Pending, part: &Part) -> bool {
    part.idle_ms == 0 || idle_of(txn, item) >= part.idle_ms
}

fn shown_of_group(txn: &KeyTransaction<'_>, stream: &Stream<'_>, group: &Group, part: &Part) -> Done<Vec<Pending>> {
    let mut walk = txn.group_pending(stream, group, part.from)?;
    let mut found = Vec::new();
    while (found.len() as u64) < part.count
        && let Some(item) = walk.next(txn)?
        && item.id <= part.to
    {
        if is_shown(txn, &item, part) {
            found.push(item);
        }
    }
    Ok(found)
}

/// The list of a consumer has ids only; what belongs to them is read in batches.
fn shown_of_consumer(
    txn: &KeyTransaction<'_>,
    stream: &Stream<'_>,
    group: &Group,
    consumer: &Consumer,
    part: &Part,
) -> Done<Vec<Pending>> {
    const BATCH: usize = 100;
    let mut walk = txn.consumer_pending(stream, group, consumer, part.from)?;
    let (mut found, mut is_done) = (Vec::new(), false);
    while (found.len() as u64) < part.count && !is_done {
        let mut ids = Vec::new();
        while ids.len() < BATCH && !is_done {
            match walk.next(txn)?.filter(|item| item.id <= part.to) {
                Some(item) => ids.push(item.id),
                None => is_done = true,
            }
        }
        let items = txn.pending_entries(stream, group, &ids)?.into_iter().flatten();
        let left = part.count - found.len() as u64;
        found.extend(items.filter(|item| is_shown(txn, item, part)).take(usize::try_from(left).unwrap_or(usize::MAX)));
    }
    Ok(found)
}

fn summary(txn: &KeyTransaction<'_>, call: &mut Call<'_>, stream: &Stream<'_>, group: &Group) -> Result {
    call.reply.array(4);
    call.reply.integer(group.pending as i64);
    if group.pending == 0 {
        call.reply.null();
        call.reply.null();
        call.reply.null_array();
        return Ok(());
    }
    let mut walk = txn.group_pending(stream, group, StreamId::MIN)?;
    let first = walk.next(txn)?.map_or(StreamId::MIN, |item| item.id);
    let last = txn.last_pending(stream, group)?.unwrap_or_default();
    call.stream_id(first);
    call.stream_id(last);
    let mut busy = Vec::new();
    let mut walk = txn.consumers(stream, group);
    while let Some(consumer) = walk.next_consumer(txn)? {
        if consumer.pending > 0 {
            busy.push(consumer);
        }
    }
    call.reply.array(busy.len());
    for consumer in busy {
        call.reply.array(2);
        call.bulk_item(&consumer.name)?;
        call.reply.bulk(consumer.pending.to_string().as_bytes());
    }
    Ok(())
}

/// The options of XCLAIM.
#[derive(Default)]
struct ClaimOptions {
    ids: Vec<StreamId>,
    is_forced: bool,
    is_bare: bool,
    delivered_ms: Option<i64>,
    deliveries: Option<u64>,
    last_id: StreamId,
}

impl Call<'_> {
    fn claim_number(&mut self, at: usize, what: &str) -> Option<i64> {
        let number = number::parse(self.args[at]);
        if number.is_none() {
            self.reply.error(&format!("ERR Invalid {what} argument for {}", self.command.name.to_uppercase()));
        }
        number
    }
}

fn claim_options(call: &mut Call<'_>, now_ms: i64) -> Option<ClaimOptions> {
    let mut found = ClaimOptions {
        ids: call.args[5..].iter().map_while(|arg| ids::strict(arg)).collect(),
        ..ClaimOptions::default()
    };
    let mut at = 5 + found.ids.len();
    while at < call.args.len() {
        let has_more = at + 1 < call.args.len();
        if call.word(at, "force") {
            found.is_forced = true;
        } else if call.word(at, "justid") {
            found.is_bare = true;
        } else if call.word(at, "idle") && has_more {
            at += 1;
            found.delivered_ms = Some(now_ms.wrapping_sub(call.claim_number(at, "IDLE option")?));
        } else if call.word(at, "time") && has_more {
            at += 1;
            found.delivered_ms = Some(call.claim_number(at, "TIME option")?);
        } else if call.word(at, "retrycount") && has_more {
            at += 1;
            found.deliveries = u64::try_from(call.claim_number(at, "RETRYCOUNT option")?).ok();
        } else if call.word(at, "lastid") && has_more {
            at += 1;
            found.last_id = call.id(at)?;
        } else {
            call.reply.error(&format!("ERR Unrecognized XCLAIM option '{}'", shown(call.args[at])));
            return None;
        }
        at += 1;
    }
    // -1 is Redis' mark of an option that is not given.
    found.delivered_ms = found.delivered_ms.filter(|time| *time != -1);
    Some(found)
}

/// Entries that change their owner.
#[derive(Default)]
struct Claims {
    /// In the order of the request.
    shown: Vec<StreamId>,
    changes: HashMap<StreamId, Option<Pending>>,
    deleted: Vec<StreamId>,
    consumer: Option<Consumer>,
}

impl Claims {
    /// Makes the consumer the owner of an entry, and creates it with the first one.
    fn claim<'k>(
        &mut self,
        txn: &mut KeyTransaction<'k>,
        call: &Call<'_>,
        (stream, group): (&mut Stream<'k>, &mut Group),
        pending: Pending,
    ) -> Done<()> {
        let consumer = match self.consumer.take() {
            Some(consumer) => consumer,
            None => match txn.consumer(stream, group, call.args[3])? {
                Some(consumer) => Consumer { seen_ms: txn.now_ms(), ..consumer },
                None => {
                    let created = txn.create_consumer(stream, group, call.args[3])?;
                    notify(txn, call, call.args[1], "xgroup-createconsumer");
                    created
                }
            },
        };
        self.changes.insert(pending.id, Some(Pending { consumer: consumer.id, ..pending }));
        self.shown.push(pending.id);
        self.consumer = Some(Consumer { active_ms: txn.now_ms(), ..consumer });
        Ok(())
    }

    fn drop_deleted(&mut self, id: StreamId) {
        self.changes.insert(id, None);
        self.deleted.push(id);
    }

    /// Stores the changes, and replies with what was claimed.
    fn finish<'k>(
        mut self,
        txn: &mut KeyTransaction<'k>,
        call: &mut Call<'_>,
        (stream, group): (&mut Stream<'k>, &mut Group),
        is_bare: bool,
    ) -> Done<Vec<StreamId>> {
        call.reply.array(self.shown.len());
        for id in &self.shown {
            if is_bare {
                call.stream_id(*id);
            } else {
                call.entry_of(txn, stream, *id)?;
            }
        }
        let mut changes: Vec<_> = self.changes.into_iter().collect();
        changes.sort_unstable_by_key(|(id, _)| *id);
        if !changes.is_empty() {
            txn.set_pending(stream, group, &changes, self.consumer.as_mut())?;
        }
        if let Some(consumer) = &self.consumer {
            txn.put_consumer(stream, group, consumer)?;
        }
        Ok(self.deleted)
    }
}

pub fn xclaim(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some((mut stream, mut group)) = load_group(txn, call)? else { return Ok(()) };
    let Some(min_idle) = call.claim_number(4, "min-idle-time") else { return Ok(()) };
    let now = txn.now_ms() as i64;
    let Some(options) = claim_options(call, now) else { return Ok(()) };
    let delivered = options.delivered_ms.filter(|time| (0..=now).contains(time)).unwrap_or(now) as u64;
    let is_ahead = options.last_id > group.last_id;
    group.last_id = group.last_id.max(options.last_id);
    let mut sorted = options.ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let known = txn.pending_entries(&stream, &group, &sorted)?;
    let mut claims = Claims::default();
    for id in options.ids {
        let stored = sorted.binary_search(&id).ok().and_then(|at| known[at]);
        let found = claims.changes.get(&id).copied().unwrap_or(stored);
        if !txn.has_entry(&stream, id)? {
            if found.is_some() {
                claims.drop_deleted(id);
            }
            continue;
        }
        let has_owner = found.is_some();
        let new = || Pending { id, consumer: u32::MAX, delivered_ms: now as u64, deliveries: 1 };
        let Some(pending) = found.or_else(|| options.is_forced.then(new)) else { continue };
        if has_owner && min_idle > 0 && idle_of(txn, &pending) < min_idle {
            continue;
        }
        let more = u64::from(!options.is_bare);
        let deliveries = options.deliveries.unwrap_or_else(|| pending.deliveries.wrapping_add(more));
        let pending = Pending { delivered_ms: delivered, deliveries, ..pending };
        claims.claim(txn, call, (&mut stream, &mut group), pending)?;
    }
    let is_changed = is_ahead || !claims.changes.is_empty();
    claims.finish(txn, call, (&mut stream, &mut group), options.is_bare)?;
    if is_changed {
        txn.put_group(&mut stream, &group)?;
    }
    Ok(())
}

pub fn xautoclaim(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(min_idle) = call.claim_number(4, "min-idle-time") else { return Ok(()) };
    let Some(from) = call.range_start(5) else { return Ok(()) };
    let (mut count, mut is_bare, mut at) = (100, false, 6);
    /// Redis looks at so many entries for each that it claims.
    const ATTEMPTS: i64 = 10;
    while at < call.args.len() {
        if call.word(at, "count") && at + 1 < call.args.len() {
            let number = number::parse(call.args[at + 1]).filter(|number| (1..=i64::MAX / 16).contains(number));
            let Some(number) = number else {
                call.reply.error("ERR COUNT must be > 0");
                return Ok(());
            };
            count = number;
            at += 1;
        } else if call.word(at, "justid") {
            is_bare = true;
        } else {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
        at += 1;
    }
    let Some((mut stream, mut group)) = load_group(txn, call)? else { return Ok(()) };
    let mut walk = txn.group_pending(&stream, &group, from)?;
    let (mut claims, mut attempts, mut next) = (Claims::default(), count * ATTEMPTS, walk.next(txn)?);
    while attempts > 0
        && count > 0
        && let Some(pending) = next
    {
        attempts -= 1;
        next = walk.next(txn)?;
        if !txn.has_entry(&stream, pending.id)? {
            claims.drop_deleted(pending.id);
            count -= 1;
            continue;
        }
        if min_idle > 0 && idle_of(txn, &pending) < min_idle {
            continue;
        }
        let deliveries = pending.deliveries.wrapping_add(u64::from(!is_bare));
        let pending = Pending { delivered_ms: txn.now_ms(), deliveries, ..pending };
        claims.claim(txn, call, (&mut stream, &mut group), pending)?;
        count -= 1;
    }
    call.reply.array(3);
    call.stream_id(next.map_or(StreamId::MIN, |item| item.id));
    let is_changed = !claims.changes.is_empty();
    let deleted = claims.finish(txn, call, (&mut stream, &mut group), is_bare)?;
    if is_changed {
        txn.put_group(&mut stream, &group)?;
    }
    call.reply.array(deleted.len());
    deleted.into_iter().for_each(|id| call.stream_id(id));
    Ok(())
}
