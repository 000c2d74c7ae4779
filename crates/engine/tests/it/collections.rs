//! Hashes, sets and sorted sets, packed and as elements: against a model, over crashes at any I/O, under rollback and purge.

use std::collections::BTreeMap;

use engine::rows::Isolation;
use engine::{Entry, Error, Expire, KeySet, KeyTransaction, Kind, LevelSizes, Options, PackLimits, ScoreBound};
use stdx::prng::Prng;

use crate::key_changes::{KeyChange, Model, all, crash_at_any_io, play_beside_model};
use crate::support::{World, bytes, options};

const LIMITS: PackLimits = PackLimits { entries: 512, value: 64 };

type Members = BTreeMap<Vec<u8>, Vec<u8>>;

/// Fields with their values, members with empty ones, or members with the bytes of their scores.
#[derive(Clone, PartialEq, Debug)]
struct Collection {
    kind: Kind,
    members: Members,
}

fn put(txn: &mut KeyTransaction<'_>, key: &[u8], kind: Kind, items: &[(&[u8], &[u8])]) -> Result<u64, Error> {
    if kind == Kind::ZSet {
        let members: Vec<&[u8]> = items.iter().map(|(member, _)| *member).collect();
        return Ok(txn.put_scores(0, key, &members, &mut |at, _| Some(score_of(items[at].1)), LIMITS)?.added);
    }
    txn.put_members(0, key, kind, items, LIMITS)
}

fn score_of(value: &[u8]) -> f64 {
    f64::from_le_bytes(value.try_into().expect("eight bytes"))
}

/// Checks that walks in both directions, ranks and scores agree.
fn check_order(txn: &KeyTransaction<'_>, entry: &Entry, members: &Members) -> Result<(), Error> {
    // Long members that share 512 bytes are in the order of their digests; here none do.
    let mut expected: Vec<(f64, &[u8])> =
        members.iter().map(|(member, value)| (score_of(value), member.as_slice())).collect();
    expected.sort_by(|one, two| one.partial_cmp(two).expect("no NaN"));
    for (rank, (score, member)) in expected.iter().enumerate() {
        assert_eq!(txn.score(entry, member)?.map(f64::to_bits), Some(score.to_bits()));
        for is_after in [false, true] {
            let bound = ScoreBound::Member { score: *score, member, is_after };
            assert_eq!(txn.rank(entry, &bound)?, rank as u64 + u64::from(is_after));
        }
        let bound = ScoreBound::Score { score: *score, is_after: false };
        assert_eq!(txn.rank(entry, &bound)?, expected.iter().filter(|(other, _)| other < score).count() as u64);
    }
    let last = expected.len() - 1;
    for rank in [0, expected.len() / 3, last] {
        let (mut up, mut down) = (txn.sorted(entry, rank as u64, false)?, txn.sorted(entry, rank as u64, true)?);
        for item in &expected[rank..] {
            assert_eq!(up.next(txn)?, Some(*item), "up from {rank}");
        }
        for item in expected[..=rank].iter().rev() {
            assert_eq!(down.next(txn)?, Some(*item), "down from {rank}");
        }
        assert_eq!((up.next(txn)?, down.next(txn)?), (None, None));
    }
    Ok(())
}

fn read(txn: &mut KeyTransaction<'_>, key: &[u8]) -> Result<Option<Collection>, Error> {
    let Some(entry) = txn.peek(0, key)? else { return Ok(None) };
    let mut members = Members::new();
    let mut walk = txn.members(&entry)?;
    let mut last = None;
    while let Some(item) = walk.next(txn)? {
        assert!(last <= item.hash, "elements are walked in the order of their hashes");
        last = item.hash;
        let member = item.member.to_vec();
        let value = item.value.to_entry()?;
        let mut bytes = Vec::new();
        txn.value(&value, 0..value.len, &mut bytes)?;
        let found = txn.member(&entry, &member)?.expect("a walked member is found");
        assert_eq!(found.len, value.len);
        assert!(members.insert(member, bytes).is_none(), "a member is walked once");
    }
    assert_eq!(entry.count()?, members.len() as u64);
    if entry.kind == Kind::ZSet {
        check_order(txn, &entry, &members)?;
    }
    Ok(Some(Collection { kind: entry.kind, members }))
}

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Kind, Vec<(Vec<u8>, Vec<u8>)>),
    Remove(Vec<u8>, Vec<Vec<u8>>),
    RemoveRanks(Vec<u8>, std::ops::Range<u64>),
    Build(Vec<u8>, Kind, Vec<(Vec<u8>, Vec<u8>)>),
    Delete(Vec<u8>),
    Copy(Vec<u8>, Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
    Touch(Vec<u8>),
}

fn key(prng: &mut Prng) -> Vec<u8> {
    match prng.below(7) {
        5 => bytes(700, 1),
        6 => bytes(3000, 2),
        n => format!("k{n}").into_bytes(),
    }
}

fn member(prng: &mut Prng) -> Vec<u8> {
    match prng.below(12) {
        0 => {
            let which = prng.below(3);
            bytes(600 + which as usize, 30 + which)
        }
        1 => bytes(2000, 4),
        _ => format!("{}", prng.below(60)).into_bytes(),
    }
}

fn value(prng: &mut Prng) -> Vec<u8> {
    let len = match prng.below(20) {
        0 => 300_000,
        1 => 2000,
        2..8 => 100,
        _ => prng.below(12),
    };
    bytes(len as usize, prng.next_u64())
}

fn score(prng: &mut Prng) -> Vec<u8> {
    let score = match prng.below(20) {
        0 => f64::INFINITY,
        1 => -1e300,
        2 => 1e-300,
        n => n as f64 / 2.0 - 4.25,
    };
    score.to_le_bytes().to_vec()
}

fn items(prng: &mut Prng, kind: Kind) -> Vec<(Vec<u8>, Vec<u8>)> {
    let count = if prng.chance(0.2) { prng.below(40) + 1 } else { prng.below(3) + 1 };
    let value = |prng: &mut Prng| match kind {
        Kind::Hash => value(prng),
        Kind::ZSet => score(prng),
        _ => Vec::new(),
    };
    (0..count).map(|_| (member(prng), value(prng))).collect()
}

fn borrowed(items: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&[u8], &[u8])> {
    items.iter().map(|(member, value)| (member.as_slice(), value.as_slice())).collect()
}

impl KeyChange for Op {
    type Value = Collection;
    type Drawn = ();

    fn draw(prng: &mut Prng, (): &mut ()) -> Op {
        let kind = [Kind::Hash, Kind::Set, Kind::ZSet, Kind::ZSet][prng.below(4) as usize];
        match prng.below(21) {
            0..9 => Op::Put(key(prng), kind, items(prng, kind)),
            9..14 => {
                let count = if prng.chance(0.3) { 80 } else { prng.below(4) + 1 };
                Op::Remove(key(prng), (0..count).map(|_| member(prng)).collect())
            }
            14 => Op::Build(key(prng), kind, items(prng, kind)),
            15 => Op::Delete(key(prng)),
            16 => Op::Copy(key(prng), key(prng)),
            17 => Op::Rename(key(prng), key(prng)),
            18 => {
                let start = prng.below(30);
                Op::RemoveRanks(key(prng), start..start + prng.below(30))
            }
            _ => Op::Touch(key(prng)),
        }
    }

    fn read(txn: &mut KeyTransaction<'_>, key: &[u8]) -> Result<Collection, Error> {
        Ok(read(txn, key)?.expect("a scanned key is there"))
    }

    fn keys(&self) -> Vec<(u8, &[u8])> {
        match self {
            Op::Put(key, ..) | Op::Remove(key, _) | Op::RemoveRanks(key, _) => vec![(0, key)],
            Op::Build(key, ..) | Op::Delete(key) | Op::Touch(key) => vec![(0, key)],
            Op::Copy(from, to) | Op::Rename(from, to) => vec![(0, from), (0, to)],
        }
    }

    fn run(&self, txn: &mut KeyTransaction<'_>) -> Result<(), Error> {
        match self {
            Op::Put(key, kind, items) => {
                if txn.peek(0, key)?.is_none_or(|entry| entry.kind == *kind) {
                    put(txn, key, *kind, &borrowed(items))?;
                }
            }
            Op::Remove(key, members) => {
                if let Some(entry) = txn.peek(0, key)? {
                    let members: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
                    txn.remove_members(0, key, entry.kind, &members)?;
                }
            }
            Op::RemoveRanks(key, ranks) => {
                if txn.peek(0, key)?.is_some_and(|entry| entry.kind == Kind::ZSet) {
                    txn.remove_ranks(0, key, ranks.clone())?;
                }
            }
            Op::Build(key, kind, items) => {
                let mut build = txn.build(0, key, *kind, LIMITS)?;
                for (member, value) in items {
                    build.put(member, value)?;
                }
                txn.put_built(0, key, build)?;
            }
            Op::Delete(key) => drop(txn.delete(0, key)?),
            Op::Copy(from, to) => drop(txn.copy((0, from), (0, to))?),
            Op::Rename(from, to) => drop(txn.rename((0, from), (0, to))?),
            Op::Touch(key) => drop(txn.set_expire(0, key, Some(u64::MAX / 2))?),
        }
        Ok(())
    }

    fn apply(&self, model: &mut Model<Op>) {
        match self {
            Op::Put(key, kind, items) => {
                let fresh = Collection { kind: *kind, members: Members::new() };
                let at = model.entry(key.clone()).or_insert(fresh);
                if at.kind == *kind {
                    at.members.extend(items.iter().cloned());
                }
            }
            Op::Remove(key, members) => {
                if let Some(at) = model.get_mut(key) {
                    members.iter().for_each(|member| drop(at.members.remove(member)));
                    if at.members.is_empty() {
                        model.remove(key);
                    }
                }
            }
            Op::RemoveRanks(key, ranks) => {
                if let Some(at) = model.get_mut(key).filter(|at| at.kind == Kind::ZSet) {
                    let mut sorted: Vec<(f64, Vec<u8>)> =
                        at.members.iter().map(|(member, value)| (score_of(value), member.clone())).collect();
                    sorted.sort_by(|one, two| one.partial_cmp(two).expect("no NaN"));
                    let ranks = ranks.start as usize..(ranks.end as usize).min(sorted.len());
                    sorted.get(ranks).into_iter().flatten().for_each(|(_, member)| drop(at.members.remove(member)));
                    if at.members.is_empty() {
                        model.remove(key);
                    }
                }
            }
            Op::Build(key, kind, items) => {
                let members = items.iter().cloned().collect();
                model.insert(key.clone(), Collection { kind: *kind, members });
            }
            Op::Delete(key) => drop(model.remove(key)),
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
            Op::Touch(_) => {}
        }
    }
}

/// Runs ops as one key transaction. `Ok(false)`: it was rolled back as asked.
#[test]
fn collections_are_as_a_model_says() {
    (0..6).for_each(|seed| play_beside_model::<Op>(seed, 250));
}

#[test]
fn a_crash_at_any_io_leaves_collections_as_they_were_committed() {
    crash_at_any_io::<Op>(25, Prng::new(11));
}

#[test]
fn elements_of_a_removed_hash_leave_with_their_values() {
    let world = World::new(1);
    let large: Vec<Vec<u8>> = (0..40).map(|n| bytes(if n % 8 == 0 { 600_000 } else { 5000 }, n)).collect();
    let names: Vec<String> = (0..40).map(|n| format!("field {n}")).collect();
    let items: Vec<(&[u8], &[u8])> = names.iter().map(String::as_bytes).zip(large.iter().map(Vec::as_slice)).collect();
    world.one(0, b"h", |txn| put(txn, b"h", Kind::Hash, &items));
    world.check();
    assert!(world.engine.check().unwrap().value_pages > 600);
    world.one(0, b"h", |txn| txn.delete(0, b"h"));
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems, report.elements, report.value_pages, report.queued), (Vec::new(), 0, 0, 0));
}

#[test]
fn a_field_that_is_replaced_or_removed_gives_back_its_pages() {
    let world = World::new(1);
    let fillers: Vec<Vec<u8>> = (0..40).map(|n| bytes(100, n)).collect();
    let names: Vec<String> = (0..40).map(|n| format!("field {n}")).collect();
    let items: Vec<(&[u8], &[u8])> =
        names.iter().map(String::as_bytes).zip(fillers.iter().map(Vec::as_slice)).collect();
    world.one(0, b"h", |txn| put(txn, b"h", Kind::Hash, &items));
    for len in [600_000, 9000, 300_000, 3, 9000] {
        world.one(0, b"h", |txn| put(txn, b"h", Kind::Hash, &[(b"field 1", &bytes(len, 7))]));
        world.settle();
        world.check();
    }
    // The pages of a change that is rolled back go, and those before it stay.
    let done = world.engine.keyspace().write::<(), Error>(KeySet::Keys(&[(0, b"h")]), true, |txn| {
        put(txn, b"h", Kind::Hash, &[(b"field 1", &bytes(600_000, 8)), (b"field 2", &bytes(9000, 8))])?;
        txn.remove_members(0, b"h", Kind::Hash, &[b"field 1"])?;
        Err(Error::Misuse("asked for"))
    });
    assert!(done.is_err());
    world.settle();
    world.check();
    assert_eq!(all::<Op>(&world)[b"h".as_slice()].members[b"field 1".as_slice()], bytes(9000, 7));
    world.one(0, b"h", |txn| txn.remove_members(0, b"h", Kind::Hash, &[b"field 1"]));
    world.settle();
    assert_eq!(world.engine.check().unwrap().value_pages, 0);
}

#[test]
fn a_collection_is_packed_again_when_few_members_are_left() {
    let world = World::new(1);
    let names: Vec<String> = (0..2000).map(|n| format!("member {n}")).collect();
    let items: Vec<(&[u8], &[u8])> = names.iter().map(|name| (name.as_bytes(), &[][..])).collect();
    assert_eq!(world.one(0, b"s", |txn| put(txn, b"s", Kind::Set, &items)), 2000);
    assert_eq!(world.engine.check().unwrap().elements, 2000);
    let gone: Vec<&[u8]> = names[5..].iter().map(String::as_bytes).collect();
    assert_eq!(world.one(0, b"s", |txn| txn.remove_members(0, b"s", Kind::Set, &gone)), 1995);
    world.settle();
    assert_eq!(world.engine.check().unwrap().elements, 0);
    assert_eq!(all::<Op>(&world)[b"s".as_slice()].members.len(), 5);
    // OBJECT ENCODING stays as it was, as in Redis.
    let encoding = world.one(0, b"s", |txn| Ok(txn.peek(0, b"s")?.map(|entry| entry.encoding())));
    assert_eq!(encoding, Some("hashtable"));
    world.check();
}

#[test]
fn random_members_are_drawn_with_the_same_probability() {
    let world = World::new(3);
    const COUNT: u64 = 200;
    let names: Vec<String> = (0..COUNT).map(|n| format!("a member of some length {n}")).collect();
    let items: Vec<(&[u8], &[u8])> = names.iter().map(|name| (name.as_bytes(), &[][..])).collect();
    world.one(0, b"s", |txn| put(txn, b"s", Kind::Set, &items));
    const DRAWS: u64 = 20_000;
    let mut found: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    world.one(0, b"s", |txn| {
        let entry = txn.peek(0, b"s")?.expect("it is there");
        assert!(entry.has_elements());
        for _ in 0..DRAWS {
            *found.entry(txn.random_member(&entry)?.expect("it has members").0).or_default() += 1;
        }
        Ok(())
    });
    let expected = DRAWS as f64 / COUNT as f64;
    let chi: f64 = names
        .iter()
        .map(|name| found.get(name.as_bytes()).map_or(0.0, |n| *n as f64) - expected)
        .map(|d| d * d / expected)
        .sum();
    // 199 degrees of freedom: beyond 280 with a probability of less than 1 in 5,000.
    assert!(chi < 280.0, "chi-square {chi}");
}

#[test]
fn a_string_and_a_transaction_of_rows_replace_a_collection_or_refuse_it() {
    let world = World::new(4);
    let names: Vec<String> = (0..500).map(|n| format!("member {n}")).collect();
    let items: Vec<(&[u8], &[u8])> = names.iter().map(|name| (name.as_bytes(), &[][..])).collect();
    world.one(0, b"s", |txn| put(txn, b"s", Kind::Set, &items));
    let mut txn = world.engine.rows().begin(Isolation::RepeatableRead);
    let refused = txn.delete_key(0, b"s");
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    txn.rollback();
    world.engine.keyspace().set(0, b"s", b"v", Expire::None).unwrap();
    world.settle();
    assert_eq!((world.get(0, b"s"), world.engine.check().unwrap().elements), (Some(b"v".to_vec()), 0));
    world.check();
}

#[test]
fn a_key_of_any_type_is_locked_and_deleted_by_a_transaction_of_rows() {
    let world = World::new(4);
    let keyspace = world.engine.keyspace();
    keyspace.limit_key_wait(std::time::Duration::ZERO);
    world.one(0, b"h", |txn| put(txn, b"h", Kind::Hash, &[(b"f", b"v")]));
    world.set(0, b"s", b"string");
    for is_kept in [true, false] {
        let mut txn = world.engine.rows().begin(Isolation::ReadCommitted);
        let locked = [&b"h"[..], b"s", b"none"].map(|key| txn.lock_any_key(0, key).unwrap());
        assert_eq!(locked, [true, true, false]);
        for key in [&b"h"[..], b"none"] {
            let changed = keyspace.set(0, key, b"by another", Expire::None);
            assert!(matches!(changed, Err(Error::LockTimeout)), "{changed:?}");
        }
        assert!(txn.delete_any_key(0, b"h").unwrap() && !txn.delete_any_key(0, b"h").unwrap());
        assert!(txn.delete_any_key(0, b"s").unwrap() && !txn.delete_any_key(0, b"none").unwrap());
        match is_kept {
            true => txn.rollback(),
            false => drop(txn.commit().unwrap()),
        }
        let there = [&b"h"[..], b"s"].map(|key| world.one(0, key, |txn| txn.exists(0, key)));
        assert_eq!(there, [is_kept; 2]);
    }
    world.check();
}

/// Sorted members, of which every third has the score of its neighbours.
fn scored(count: u32) -> Vec<(Vec<u8>, f64)> {
    (0..count).map(|n| (format!("member {n:07}").into_bytes(), f64::from(n / 3))).collect()
}

#[test]
fn many_members_are_removed_by_rank_whichever_way_is_shorter() {
    const COUNT: u32 = 12_000;
    let mut options = options();
    options.pager.frame_bytes = 16 << 20;
    let world = World::with(os::SimFolder::new(1), std::sync::Arc::new(os::SimClock::new(1)), options).unwrap();
    let all = scored(COUNT);
    world.one(0, b"z", |txn| {
        let mut build = txn.build(0, b"z", Kind::ZSet, LIMITS)?;
        for (member, score) in &all {
            build.put(member, &score.to_le_bytes())?;
        }
        txn.put_built(0, b"z", build)
    });
    world.check();
    // The members that stay are built anew; then a few leave one by one.
    for (ranks, left) in [(10..9010, 3000), (5..2000, 1005)] {
        world.one(0, b"z", |txn| txn.remove_ranks(0, b"z", ranks));
        world.settle();
        let entry = world.one(0, b"z", |txn| txn.peek(0, b"z")).expect("some are left");
        assert_eq!((entry.count().unwrap(), entry.encoding()), (left, "skiplist"));
        world.check();
    }
    world.one(0, b"z", |txn| {
        let entry = txn.peek(0, b"z")?.expect("some are left");
        let mut walk = txn.sorted(&entry, 4, false)?;
        assert_eq!(walk.next(txn)?, Some((all[4].1, &all[4].0[..])));
        // Ranks 5 to 9, and 10 to 1,999 of those that followed the first 9,010, are gone.
        let next = &all[9010 + 1990];
        assert_eq!(walk.next(txn)?, Some((next.1, &next.0[..])));
        txn.remove_ranks(0, b"z", 0..u64::MAX)
    });
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems, report.elements, report.queued), (Vec::new(), 0, 0));
}

#[test]
fn long_members_with_the_same_start_are_ranked_and_found() {
    let world = World::new(5);
    let members: Vec<Vec<u8>> =
        (0..30u64).map(|n| [bytes(600, 1), bytes(if n % 7 == 0 { 300_000 } else { 20 }, n)].concat()).collect();
    let names: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
    world.one(0, b"z", |txn| txn.put_scores(0, b"z", &names, &mut |at, _| Some((at % 2) as f64), LIMITS));
    world.check();
    let (walked, ranks) = world.one(0, b"z", |txn| {
        let entry = txn.peek(0, b"z")?.expect("it is there");
        let (mut walk, mut walked, mut ranks) = (txn.sorted(&entry, 0, false)?, Vec::new(), Vec::new());
        while let Some((score, member)) = walk.next(txn)? {
            ranks.push(txn.rank(&entry, &ScoreBound::Member { score, member, is_after: false })?);
            walked.push((score, member.to_vec()));
        }
        Ok((walked, ranks))
    });
    assert_eq!(ranks, (0..30).collect::<Vec<u64>>());
    assert!(walked.is_sorted_by_key(|(score, _)| *score));
    let mut found: Vec<Vec<u8>> = walked.into_iter().map(|(_, member)| member).collect();
    found.sort();
    let mut expected = members.clone();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(world.one(0, b"z", |txn| txn.remove_members(0, b"z", Kind::ZSet, &names[1..])), 29);
    world.settle();
    world.check();
}

/// The pages that a fresh buffer pool reads for one question.
fn pages_read<R>(world: World, ask: impl Fn(&mut KeyTransaction<'_>, &Entry) -> Result<R, Error>) -> (World, u64, R) {
    let World { folder, clock, engine } = world;
    engine.close().expect("closing works");
    drop(engine);
    let options = Options { level_sizes: LevelSizes::default(), ..options() };
    let world = World::with(folder, clock, options).expect("it opens again");
    let entry = world.one(0, b"z", |txn| txn.peek(0, b"z")).expect("it is there");
    let before = world.engine.pager().counts().page_reads;
    let found = world.one(0, b"z", |txn| ask(txn, &entry));
    let read = world.engine.pager().counts().page_reads - before;
    (world, read, found)
}

#[test]
fn ranks_and_ranges_of_a_large_sorted_set_read_a_few_pages() {
    const COUNT: u32 = 40_000;
    let mut options = options();
    options.pager.frame_bytes = 16 << 20;
    options.level_sizes = LevelSizes::default();
    let (folder, clock) = (os::SimFolder::new(1), std::sync::Arc::new(os::SimClock::new(1)));
    let mut world = World::with(folder, clock, options).unwrap();
    let all = scored(COUNT);
    world.one(0, b"z", |txn| {
        let mut build = txn.build(0, b"z", Kind::ZSet, LIMITS)?;
        for (member, score) in &all {
            build.put(member, &score.to_le_bytes())?;
        }
        txn.put_built(0, b"z", build)
    });
    let pages = world.engine.check().unwrap().tree_pages;
    // The elements of one bucket, the buckets, and the path from the root; all members by score would take some 800 leaves.
    const FEW: u64 = 40;
    assert!(pages > 30 * FEW, "{pages}");
    for rank in [0, 777, 20_000, 39_999] {
        let (member, score) = all[rank].clone();
        let (after, read, found) = pages_read(world, |txn, entry| {
            txn.rank(entry, &ScoreBound::Member { score, member: &member, is_after: false })
        });
        assert_eq!(found, rank as u64);
        assert!(read <= FEW, "rank {rank} reads {read} of {pages} pages");
        let (after, read, found) = pages_read(after, |txn, entry| {
            let mut walk = txn.sorted(entry, rank as u64, false)?;
            Ok(walk.next(txn)?.map(|(_, member)| member.to_vec()))
        });
        assert_eq!(found.as_ref(), Some(&member));
        assert!(read <= FEW, "the member of rank {rank} reads {read} of {pages} pages");
        world = after;
    }
    let (_, read, found) = pages_read(world, |txn, entry| {
        let rank = |score: f64| txn.rank(entry, &ScoreBound::Score { score, is_after: false });
        Ok(rank(10_000.0)? - rank(1000.0)?)
    });
    assert_eq!(found, 27_000);
    assert!(read <= 2 * FEW, "a count reads {read} of {pages} pages");
}
