//! Snapshots of keys: what one shows is what was there at its instant, for values of every form, whatever is written meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::{
    DATABASES, End, Engine, Error, Expire, FieldChange, KeySet, KeySnapshot, KeyTransaction, Keyspace, Kind,
    NodeLimits, Options, PackLimits, Pending, StreamId,
};
use os::{Folder, SimClock, SimFolder};
use stdx::prng::Prng;

use crate::support::{START_MS, World, bytes, options};

const LIMITS: PackLimits = PackLimits { entries: 16, value: 64 };
const NODES: NodeLimits = NodeLimits { bytes: 500, entries: 10 };
const KINDS: [Kind; 6] = [Kind::String, Kind::List, Kind::Set, Kind::ZSet, Kind::Hash, Kind::Stream];

/// All that can be read of a key, in the order of its parts.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    kind: Kind,
    expire_at_ms: Option<u64>,
    encoding: &'static str,
    parts: Vec<Vec<u8>>,
}

type Contents = BTreeMap<(u8, Vec<u8>), Content>;

fn stream_parts(txn: &mut KeyTransaction<'_>, (db, key): (u8, &[u8]), parts: &mut Vec<Vec<u8>>) -> Result<(), Error> {
    let entry = txn.peek(db, key)?.expect("a scanned key is there");
    let stream = txn.stream(db, key, &entry)?;
    let mut push = |part: String| parts.push(part.into_bytes());
    push(format!("{} {:?} {}", stream.len(), stream.last_id(), stream.entries_added()));
    let mut walk = txn.stream_entries(&stream, StreamId::MIN, StreamId::MAX, false)?;
    while let Some(item) = walk.next(txn)? {
        push(format!("{:?} {:?}", item.id, item.fields().collect::<Vec<_>>()));
    }
    let mut groups = txn.groups(&stream);
    while let Some(group) = groups.next_group(txn)? {
        push(format!("{:?} {:?} {}", group.name, group.last_id, group.pending));
        let mut pending = txn.group_pending(&stream, &group, StreamId::MIN)?;
        while let Some(item) = pending.next(txn)? {
            push(format!("{:?} {}", item.id, item.deliveries));
        }
        let mut consumers = txn.consumers(&stream, &group);
        while let Some(consumer) = consumers.next_consumer(txn)? {
            push(format!("{:?} {}", consumer.name, consumer.pending));
        }
    }
    Ok(())
}

fn content(txn: &mut KeyTransaction<'_>, db: u8, key: &[u8]) -> Result<Content, Error> {
    let entry = txn.peek(db, key)?.expect("a scanned key is there");
    let mut parts = Vec::new();
    let whole = |txn: &mut KeyTransaction<'_>, of: &engine::Entry| -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        txn.value(of, 0..of.len, &mut bytes)?;
        Ok(bytes)
    };
    match entry.kind {
        Kind::String => parts.push(whole(txn, &entry)?),
        Kind::List => {
            let mut walk = txn.items_from(&entry, End::Head, 0)?;
            while let Some(item) = walk.next(txn)? {
                parts.push(match item.bytes() {
                    Some(item) => item.to_vec(),
                    None => whole(txn, &item.to_entry()?)?,
                });
            }
        }
        Kind::Set | Kind::Hash => {
            let mut walk = txn.members(&entry)?;
            while let Some(item) = walk.next(txn)? {
                parts.push(item.member.to_vec());
                parts.push(format!("{:?}", item.expire_at_ms).into_bytes());
                if entry.kind == Kind::Hash {
                    parts.push(whole(txn, &item.value.to_entry()?)?);
                }
            }
        }
        Kind::ZSet => {
            let mut walk = txn.sorted(&entry, 0, false)?;
            while let Some((score, member)) = walk.next(txn)? {
                parts.push(format!("{score} {member:?}").into_bytes());
            }
        }
        Kind::Stream => stream_parts(txn, (db, key), &mut parts)?,
    }
    Ok(Content { kind: entry.kind, expire_at_ms: entry.expire_at_ms, encoding: entry.encoding(), parts })
}

/// Reads all databases in a transaction that holds them.
fn contents(txn: &mut KeyTransaction<'_>) -> Contents {
    let mut contents = Contents::new();
    for db in 0..DATABASES {
        let (mut keys, mut cursor) = (Vec::new(), 0);
        loop {
            cursor = txn.scan(db, cursor, 100, |key, _| keys.push(key.to_vec())).expect("a scan works");
            if cursor == 0 {
                break;
            }
        }
        for key in keys {
            let content = content(txn, db, &key).expect("a read works");
            contents.insert((db, key), content);
        }
    }
    contents
}

/// One change of a key, of the kind that its name says.
fn change(txn: &mut KeyTransaction<'_>, prng: &mut Prng, db: u8, key: &[u8], kind: Kind) -> Result<(), Error> {
    let len = [1, 30, 900, 3_000, 40_000, 300_000][prng.below(6) as usize];
    let few = prng.below(60) + 1;
    let names: Vec<Vec<u8>> = (0..few).map(|_| format!("m{}", prng.below(200)).into_bytes()).collect();
    let short = prng.below(40) as usize;
    if prng.below(12) == 0 {
        return txn.delete(db, key).map(drop);
    }
    match kind {
        Kind::String => txn.put_string(db, key, &bytes(len, prng.next_u64()), Expire::None),
        Kind::List => {
            let end = if prng.below(2) == 0 { End::Head } else { End::Tail };
            if prng.below(4) == 0 {
                return txn.trim_items(db, key, end, few).map(drop);
            }
            let large = bytes(if prng.below(20) == 0 { len } else { short }, prng.next_u64());
            let items: Vec<&[u8]> = names.iter().map(Vec::as_slice).chain([large.as_slice()]).collect();
            txn.push_items(db, key, end, &items).map(drop)
        }
        Kind::Set | Kind::Hash => {
            let value = bytes(if prng.below(20) == 0 { len } else { short }, prng.next_u64());
            let of = |name: &'_ Vec<u8>| if kind == Kind::Hash { value.clone() } else { name[..0].to_vec() };
            let values: Vec<Vec<u8>> = names.iter().map(of).collect();
            let members: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            match prng.below(5) {
                0 => txn.remove_members(db, key, kind, &members).map(drop),
                1 if kind == Kind::Hash => {
                    let time = START_MS + 500 + prng.below(2_000);
                    txn.change_fields(db, key, &members, LIMITS, &mut |at, _| match at % 3 {
                        0 => FieldChange::Persist,
                        _ => FieldChange::Until(time),
                    })
                }
                _ => {
                    let items: Vec<(&[u8], &[u8])> =
                        members.iter().copied().zip(values.iter().map(Vec::as_slice)).collect();
                    txn.put_members(db, key, kind, &items, LIMITS).map(drop)
                }
            }
        }
        Kind::ZSet => {
            let members: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            if prng.below(5) == 0 {
                return txn.remove_members(db, key, kind, &members).map(drop);
            }
            let score = prng.below(50) as f64;
            txn.put_scores(db, key, &members, &mut |at, _| Some(score + at as f64 / 8.0), LIMITS).map(drop)
        }
        Kind::Stream => {
            let mut stream = match txn.get(db, key)? {
                Some(entry) => txn.stream(db, key, &entry)?,
                None => txn.new_stream(db, key)?,
            };
            let last = stream.last_id();
            for at in 1..=few {
                let value = bytes(short, at);
                txn.append_entry(&mut stream, StreamId::new(last.ms + at, 1), &[(b"field", &value)], NODES)?;
            }
            match txn.group(&stream, b"group")? {
                None => txn.create_group(&mut stream, b"group", last, -1)?,
                Some(mut group) => {
                    let mut consumer = match txn.consumer(&stream, &group, b"one")? {
                        Some(consumer) => consumer,
                        None => txn.create_consumer(&mut stream, &mut group, b"one")?,
                    };
                    let new = |at: u64| {
                        let id = StreamId::new(last.ms + at, 1);
                        (id, Some(Pending { id, consumer: consumer.id, delivered_ms: START_MS, deliveries: 1 }))
                    };
                    let changes: Vec<_> = (1..=few).map(new).collect();
                    txn.set_pending(&mut stream, &mut group, &changes, Some(&mut consumer))?;
                    txn.put_consumer(&mut stream, &group, &consumer)?;
                    txn.put_group(&mut stream, &group)?;
                }
            }
            txn.store_stream(stream)
        }
    }
}

/// One step of a writer: a key, two keys, or all of them; one in eight is rolled back.
fn step(keyspace: &Keyspace, prng: &mut Prng) {
    let name = |prng: &mut Prng| {
        let kind = KINDS[prng.below(6) as usize];
        let number = prng.below(6);
        let long = if number == 0 { 700 } else { 0 };
        (prng.below(2) as u8, format!("{kind:?}:{number}{}", "x".repeat(long)).into_bytes(), kind)
    };
    let ((db, key, kind), (db2, key2, kind2)) = (name(prng), name(prng));
    let keys: [(u8, &[u8]); 2] = [(db, &key), (db2, &key2)];
    let what = prng.below(40);
    let gives_up = prng.below(8) == 0;
    let locks = if what == 0 { KeySet::All } else { KeySet::Keys(&keys) };
    let done = keyspace.write::<(), Error>(locks, true, |txn| {
        match what {
            0 if db == 0 => txn.swap(0, 1)?,
            0 => txn.flush(1)?,
            1 | 2 if txn.exists(db, &key)? && kind == kind2 => drop(txn.rename((db, &key), (db2, &key2))?),
            3..8 => drop(txn.set_expire(db, &key, Some(START_MS + prng.below(3_000)))?),
            _ => {
                change(txn, prng, db, &key, kind)?;
                change(txn, prng, db2, &key2, kind2)?;
            }
        }
        if gives_up { Err(Error::Invalid("changed my mind".into())) } else { Ok(()) }
    });
    match done {
        Ok(_) | Err(Error::Invalid(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

fn take(keyspace: &Keyspace) -> (KeySnapshot, Contents) {
    let mut then = Contents::new();
    let snapshot = keyspace.snapshot(|txn| then = contents(txn)).expect("there is no other");
    (snapshot, then)
}

fn assert_shows(snapshot: &KeySnapshot, then: &Contents) {
    let found = contents(&mut snapshot.read());
    for (key, content) in then {
        assert!(found.get(key) == Some(content), "{key:?}: {:?} and not {:?}", found.get(key), content);
    }
    assert_eq!(found.len(), then.len());
}

#[test]
fn a_snapshot_shows_every_key_of_its_instant() {
    for seed in 0..6 {
        println!("seed {seed}");
        let (world, mut prng) = (World::new(seed), Prng::new(seed));
        let keyspace = world.engine.keyspace();
        (0..150).for_each(|_| step(keyspace, &mut prng));
        for _ in 0..2 {
            let (snapshot, then) = take(keyspace);
            assert!(keyspace.snapshot(|_| {}).is_err(), "EN-87: there is one at a time");
            for round in 0..6 {
                (0..30).for_each(|_| step(keyspace, &mut prng));
                world.clock.advance_ms(200);
                world.settle();
                world.go_about(round).expect("the disk works");
                if round % 2 == 0 {
                    assert_shows(&snapshot, &then);
                }
            }
            keyspace.write::<(), Error>(KeySet::All, true, |txn| txn.flush_all()).expect("it is empty");
            world.settle();
            world.engine.pager().checkpoint().expect("the disk works");
            assert_shows(&snapshot, &then);
            drop(snapshot);
            world.settle();
            world.check();
            (0..100).for_each(|_| step(keyspace, &mut prng));
        }
        let mut now = Contents::new();
        world.all(|txn| {
            now = contents(txn);
            Ok(())
        });
        let world = world.reopen();
        world.all(|txn| {
            assert_eq!(contents(txn), now, "the snapshots left nothing behind");
            Ok(())
        });
        world.check();
    }
}

#[test]
fn a_snapshot_shows_its_instant_while_several_threads_write() {
    let folder = SimFolder::new(1);
    let clock = Arc::new(SimClock::new(START_MS));
    let pager = pager::Options { background: pager::Background::Threads, ..options().pager };
    let engine = Engine::open(Options { pager, ..options() }, folder as Arc<dyn Folder>, clock.clone()).expect("opens");
    let keyspace = engine.keyspace();
    let (stop, steps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (stop, steps, clock) = (&stop, &steps, &clock);
            scope.spawn(move || {
                let mut prng = Prng::new(seed);
                while !stop.load(Ordering::Relaxed) {
                    step(keyspace, &mut prng);
                    steps.fetch_add(1, Ordering::Relaxed);
                    clock.advance_ms(1);
                }
            });
        }
        let more = |many: u64| {
            let end = steps.load(Ordering::Relaxed) + many;
            while steps.load(Ordering::Relaxed) < end {
                std::thread::yield_now();
            }
        };
        let shown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            more(100);
            for _ in 0..5 {
                let (snapshot, then) = take(keyspace);
                assert_shows(&snapshot, &then);
                more(100);
                assert_shows(&snapshot, &then);
                snapshot.flush().expect("the log device works");
                assert!(engine.durable().get() >= snapshot.durability_lsn());
            }
        }));
        stop.store(true, Ordering::Relaxed);
        shown.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    engine.stop_background();
    let report = engine.check().expect("everything can be read");
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
}

#[test]
fn a_snapshot_that_is_given_up_fails_and_others_go_on() {
    let world = World::new(1);
    let keyspace = world.engine.keyspace();
    let mut prng = Prng::new(1);
    (0..200).for_each(|_| step(keyspace, &mut prng));
    world.set(0, b"large", &bytes(200_000, 1));
    let (snapshot, then) = take(keyspace);
    assert_shows(&snapshot, &then);
    world.folder.set_capacity(Some(world.folder.used_bytes()));
    // What is replaced is held back, until there is no room for more.
    for at in 0..200 {
        world.set(0, b"large", &bytes(200_000, at));
        world.settle();
        world.flush();
        world.engine.pager().checkpoint().expect("the disk works");
        if snapshot.check().is_err() {
            break;
        }
    }
    let error = snapshot.check().expect_err("the disk is too small for it").to_string();
    assert!(error.contains("the disk is full"), "{error}");
    drop(snapshot);
    world.settle();
    world.check();
    let (snapshot, then) = take(keyspace);
    assert_shows(&snapshot, &then);
}
