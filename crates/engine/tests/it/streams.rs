//! Streams and their groups: against a model, over crashes at any I/O, under rollback and purge.

use std::collections::BTreeMap;

use engine::{Error, KeyTransaction, Kind, NodeLimits, Pending, Stream, StreamId, Trim, TrimTo};
use stdx::prng::Prng;

use crate::key_changes::{KeyChange, Model, crash_at_any_io, play_beside_model};
use crate::support::bytes;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

#[derive(Clone, PartialEq, Debug, Default)]
struct GroupModel {
    last: u64,
    /// Consumer and deliveries of each pending entry.
    pending: BTreeMap<u64, (Vec<u8>, u64)>,
    consumers: BTreeMap<Vec<u8>, u64>,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct StreamModel {
    entries: BTreeMap<u64, Fields>,
    last: u64,
    added: u64,
    groups: BTreeMap<Vec<u8>, GroupModel>,
}

fn id(n: u64) -> StreamId {
    StreamId::new(n / 4, n % 4)
}

fn number(id: StreamId) -> u64 {
    id.ms * 4 + id.seq
}

fn read(txn: &mut KeyTransaction<'_>, key: &[u8]) -> Result<StreamModel, Error> {
    let entry = txn.peek(0, key)?.expect("a scanned key is there");
    let stream = txn.stream(0, key, &entry)?;
    let entries_of = |from: u64, to: u64, is_backward: bool| -> Result<Vec<(u64, Fields)>, Error> {
        let mut walk = txn.stream_entries(&stream, id(from), id(to), is_backward)?;
        let mut found = Vec::new();
        while let Some(item) = walk.next(txn)? {
            let fields = item.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
            found.push((number(item.id), fields));
        }
        Ok(found)
    };
    let all = entries_of(0, u64::MAX / 8, false)?;
    assert_eq!((all.len() as u64, entry.count()?), (stream.len(), stream.len()));
    let mut back = entries_of(0, u64::MAX / 8, true)?;
    back.reverse();
    assert_eq!(back, all);
    if let (Some((first, _)), Some((last, _))) = (all.first(), all.last()) {
        let (from, to) = (first + (last - first) / 3, first + (last - first) / 3 * 2);
        let middle: Vec<_> = all.iter().filter(|(n, _)| (from..=to).contains(n)).cloned().collect();
        assert_eq!(entries_of(from, to, false)?, middle);
        let mut back = entries_of(from, to, true)?;
        back.reverse();
        assert_eq!(back, middle);
    }
    let mut groups = BTreeMap::new();
    let mut walk = txn.groups(&stream);
    while let Some(group) = walk.next_group(txn)? {
        groups.insert(group.name.clone(), read_group(txn, &stream, &group)?);
    }
    assert_eq!(groups.len() as u64, stream.group_count());
    let last = number(stream.last_id());
    Ok(StreamModel { entries: all.into_iter().collect(), last, added: stream.entries_added(), groups })
}

fn read_group(txn: &KeyTransaction<'_>, stream: &Stream<'_>, group: &engine::Group) -> Result<GroupModel, Error> {
    let mut found = GroupModel { last: number(group.last_id), ..GroupModel::default() };
    let mut names = BTreeMap::new();
    let mut walk = txn.consumers(stream, group);
    while let Some(consumer) = walk.next_consumer(txn)? {
        names.insert(consumer.id, consumer.name.clone());
        let mut owned = txn.consumer_pending(stream, group, &consumer, StreamId::MIN)?;
        let mut count = 0;
        while owned.next(txn)?.is_some() {
            count += 1;
        }
        assert_eq!(count, consumer.pending);
        found.consumers.insert(consumer.name, count);
    }
    let mut walk = txn.group_pending(stream, group, StreamId::MIN)?;
    while let Some(item) = walk.next(txn)? {
        found.pending.insert(number(item.id), (names[&item.consumer].clone(), item.deliveries));
    }
    assert_eq!((found.pending.len() as u64, found.consumers.len() as u32), (group.pending, group.consumers));
    Ok(found)
}

#[derive(Clone, Debug)]
enum Op {
    Add(Vec<u8>, u64, Vec<Fields>),
    Delete(Vec<u8>, Vec<u64>),
    Trim(Vec<u8>, bool, u64),
    Group(Vec<u8>, Vec<u8>),
    DropGroup(Vec<u8>, Vec<u8>),
    /// Reads up to a number of entries for a consumer.
    Deliver(Vec<u8>, Vec<u8>, Vec<u8>, usize),
    Acknowledge(Vec<u8>, Vec<u8>, Vec<u64>),
    DropConsumer(Vec<u8>, Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Copy(Vec<u8>, Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
}

fn key(prng: &mut Prng) -> Vec<u8> {
    match prng.below(4) {
        2 => bytes(700, 1),
        3 => bytes(3000, 2),
        n => format!("k{n}").into_bytes(),
    }
}

fn name(prng: &mut Prng) -> Vec<u8> {
    match prng.below(4) {
        3 => bytes(600 + prng.below(2) as usize, 5),
        n => format!("name {n}").into_bytes(),
    }
}

fn fields(prng: &mut Prng) -> Fields {
    let count = prng.below(3) + 1;
    let len = |prng: &mut Prng| match prng.below(60) {
        0 => 300_000,
        1 => 5000,
        2..10 => 300,
        _ => prng.below(12) as usize,
    };
    (0..count)
        .map(|n| (format!("f{}", n + prng.below(8) / 7).into_bytes(), bytes(len(prng), prng.next_u64())))
        .collect()
}

fn ids(prng: &mut Prng, most: u64) -> Vec<u64> {
    let count = if prng.chance(0.2) { 150 } else { prng.below(5) + 1 };
    let start = prng.below(most + 1);
    let mut ids: Vec<u64> = (0..count).map(|_| start + prng.below(count * 2)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

const LIMITS: NodeLimits = NodeLimits { entries: 10, bytes: 4096 };

fn stream_at<'k>(txn: &mut KeyTransaction<'k>, key: &[u8]) -> Result<Option<Stream<'k>>, Error> {
    match txn.peek(0, key)? {
        Some(entry) => {
            assert_eq!(entry.kind, Kind::Stream);
            txn.stream(0, key, &entry).map(Some)
        }
        None => Ok(None),
    }
}

impl KeyChange for Op {
    type Value = StreamModel;
    type Drawn = u64;

    fn draw(prng: &mut Prng, next: &mut u64) -> Op {
        match prng.below(30) {
            0..12 => {
                *next += 1;
                let count = if prng.chance(0.1) { 120 } else { prng.below(6) + 1 };
                let first = *next;
                *next += count;
                Op::Add(key(prng), first, (0..count).map(|_| fields(prng)).collect())
            }
            12..15 => Op::Delete(key(prng), ids(prng, *next)),
            15 => Op::Trim(key(prng), true, prng.below(200)),
            16 => Op::Trim(key(prng), false, prng.below(*next + 1)),
            17..19 => Op::Group(key(prng), name(prng)),
            19 => Op::DropGroup(key(prng), name(prng)),
            20..24 => Op::Deliver(key(prng), name(prng), name(prng), if prng.chance(0.2) { 200 } else { 3 }),
            24..26 => Op::Acknowledge(key(prng), name(prng), ids(prng, *next)),
            26 => Op::DropConsumer(key(prng), name(prng), name(prng)),
            27 => Op::Remove(key(prng)),
            28 => Op::Copy(key(prng), key(prng)),
            _ => Op::Rename(key(prng), key(prng)),
        }
    }

    fn read(txn: &mut KeyTransaction<'_>, key: &[u8]) -> Result<StreamModel, Error> {
        read(txn, key)
    }

    fn keys(&self) -> Vec<(u8, &[u8])> {
        match self {
            Op::Copy(from, to) | Op::Rename(from, to) => vec![(0, from), (0, to)],
            Op::Add(key, ..)
            | Op::Delete(key, _)
            | Op::Trim(key, ..)
            | Op::Group(key, _)
            | Op::DropGroup(key, _)
            | Op::Deliver(key, ..)
            | Op::Acknowledge(key, ..)
            | Op::DropConsumer(key, ..)
            | Op::Remove(key) => vec![(0, key)],
        }
    }

    fn run(&self, txn: &mut KeyTransaction<'_>) -> Result<(), Error> {
        match self {
            Op::Remove(key) => return txn.delete(0, key).map(drop),
            Op::Copy(from, to) => return txn.copy((0, from), (0, to)).map(drop),
            Op::Rename(from, to) => return txn.rename((0, from), (0, to)).map(drop),
            Op::Add(key, first, entries) => {
                let mut stream = match stream_at(txn, key)? {
                    Some(stream) => stream,
                    None => txn.new_stream(0, key)?,
                };
                for (n, fields) in (*first..).zip(entries) {
                    let fields: Vec<(&[u8], &[u8])> = fields.iter().map(|(a, b)| (&a[..], &b[..])).collect();
                    txn.append_entry(&mut stream, id(n), &fields, LIMITS)?;
                }
                return txn.store_stream(stream);
            }
            _ => {}
        }
        let Some(mut stream) = stream_at(txn, self.keys()[0].1)? else { return Ok(()) };
        match self {
            Op::Delete(_, numbers) => {
                let ids: Vec<StreamId> = numbers.iter().map(|n| id(*n)).collect();
                if txn.delete_entries(&mut stream, &ids)?.0 == 0 {
                    return Ok(());
                }
            }
            Op::Trim(_, by_len, n) => {
                let to = if *by_len { TrimTo::MaxLen(*n) } else { TrimTo::MinId(id(*n)) };
                if txn.trim_stream(&mut stream, Trim { to, is_approximate: false, limit: 0 })? == 0 {
                    return Ok(());
                }
            }
            Op::Group(_, name) => {
                if txn.group(&stream, name)?.is_some() {
                    return Ok(());
                }
                txn.create_group(&mut stream, name, StreamId::MIN, -1)?;
            }
            Op::DropGroup(_, name) => {
                let Some(group) = txn.group(&stream, name)? else { return Ok(()) };
                txn.destroy_group(&mut stream, &group)?;
            }
            Op::DropConsumer(_, group, name) => {
                let Some(mut group) = txn.group(&stream, group)? else { return Ok(()) };
                let Some(consumer) = txn.consumer(&stream, &group, name)? else { return Ok(()) };
                txn.delete_consumer(&mut stream, &mut group, &consumer)?;
                txn.put_group(&mut stream, &group)?;
            }
            Op::Acknowledge(_, group, numbers) => {
                let Some(mut group) = txn.group(&stream, group)? else { return Ok(()) };
                let changes: Vec<_> = numbers.iter().map(|n| (id(*n), None)).collect();
                txn.set_pending(&mut stream, &mut group, &changes, None)?;
                txn.put_group(&mut stream, &group)?;
            }
            Op::Deliver(_, group, name, most) => {
                let Some(mut group) = txn.group(&stream, group)? else { return Ok(()) };
                let mut consumer = match txn.consumer(&stream, &group, name)? {
                    Some(consumer) => consumer,
                    None => txn.create_consumer(&mut stream, &mut group, name)?,
                };
                let mut changes = Vec::new();
                let from = group.last_id.next().expect("not the last one");
                let mut walk = txn.stream_entries(&stream, from, StreamId::MAX, false)?;
                while changes.len() < *most
                    && let Some(item) = walk.next(txn)?
                {
                    let pending = Pending { id: item.id, consumer: consumer.id, delivered_ms: 7, deliveries: 1 };
                    changes.push((item.id, Some(pending)));
                    group.last_id = item.id;
                }
                txn.set_pending(&mut stream, &mut group, &changes, Some(&mut consumer))?;
                txn.put_consumer(&mut stream, &group, &consumer)?;
                txn.put_group(&mut stream, &group)?;
            }
            _ => unreachable!("run above"),
        }
        txn.store_stream(stream)
    }

    fn apply(&self, model: &mut Model<Op>) {
        match self {
            Op::Remove(key) => drop(model.remove(key)),
            Op::Copy(from, to) => {
                if let Some(found) = model.get(from).cloned() {
                    model.insert(to.clone(), found);
                }
            }
            Op::Rename(from, to) => {
                if let Some(found) = model.remove(from) {
                    model.insert(to.clone(), found);
                }
            }
            Op::Add(key, first, entries) => {
                let at = model.entry(key.clone()).or_default();
                at.entries.extend((*first..).zip(entries.iter().cloned()));
                (at.last, at.added) = (first + entries.len() as u64 - 1, at.added + entries.len() as u64);
            }
            _ => {
                if let Some(at) = model.get_mut(self.keys()[0].1) {
                    self.apply_to(at);
                }
            }
        }
    }
}

impl Op {
    fn apply_to(&self, at: &mut StreamModel) {
        match self {
            Op::Delete(_, ids) => at.entries.retain(|n, _| !ids.contains(n)),
            Op::Trim(_, true, most) => {
                while at.entries.len() as u64 > *most {
                    at.entries.pop_first();
                }
            }
            Op::Trim(_, false, least) => at.entries.retain(|n, _| n >= least),
            Op::Group(_, name) => drop(at.groups.entry(name.clone()).or_default()),
            Op::DropGroup(_, name) => drop(at.groups.remove(name)),
            Op::DropConsumer(_, group, name) => {
                if let Some(group) = at.groups.get_mut(group) {
                    group.consumers.remove(name);
                    group.pending.retain(|_, (owner, _)| owner != name);
                }
            }
            Op::Acknowledge(_, group, ids) => {
                if let Some(group) = at.groups.get_mut(group) {
                    for id in ids {
                        if let Some((owner, _)) = group.pending.remove(id) {
                            *group.consumers.get_mut(&owner).expect("it owns one") -= 1;
                        }
                    }
                }
            }
            Op::Deliver(_, group, name, most) => {
                if let Some(group) = at.groups.get_mut(group) {
                    let pending = group.consumers.entry(name.clone()).or_default();
                    for (n, _) in at.entries.range(group.last + 1..).take(*most) {
                        group.last = *n;
                        *pending += 1;
                        group.pending.insert(*n, (name.clone(), 1));
                    }
                }
            }
            _ => unreachable!("applied above"),
        }
    }
}

/// Runs ops as one key transaction. `Ok(false)`: it was rolled back as asked.
#[test]
fn streams_are_as_a_model_says() {
    (0..4).for_each(|seed| play_beside_model::<Op>(seed, 180));
}

#[test]
fn a_crash_at_any_io_leaves_streams_as_they_were_committed() {
    crash_at_any_io::<Op>(12, Prng::new(11));
}
