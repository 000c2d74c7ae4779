//! Hashes whose fields expire, packed and as elements: against a model, over crashes at any I/O, and the work of the background.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use engine::{
    Entry, Error, Expire, FIELD_TIME_MAX, FieldChange, KeySet, KeyTransaction, Kind, PackLimits, event_class,
};
use os::Clock;
use stdx::prng::Prng;

use crate::support::{Story, World, bytes, crash_at, options};

const LIMITS: PackLimits = PackLimits { entries: 512, value: 64 };

/// Fields with their values and expiry times.
type Fields = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;
type Hashes = BTreeMap<Vec<u8>, Fields>;

fn is_due(time: Option<u64>, now: u64) -> bool {
    time.is_some_and(|time| now > time)
}

/// Removes what is due from a model.
fn at(now: u64, hashes: &Hashes) -> Hashes {
    let mut hashes = hashes.clone();
    hashes.values_mut().for_each(|fields| fields.retain(|_, (_, time)| !is_due(*time, now)));
    hashes.retain(|_, fields| !fields.is_empty());
    hashes
}

fn read(txn: &mut KeyTransaction<'_>, key: &[u8]) -> Result<Fields, Error> {
    let entry = txn.peek(0, key)?.expect("a scanned key is there");
    let (mut fields, mut walk) = (Fields::new(), txn.members(&entry)?);
    while let Some(item) = walk.next(txn)? {
        let (name, time) = (item.member.to_vec(), item.expire_at_ms);
        let value = item.value.to_entry()?;
        let mut bytes = Vec::new();
        txn.value(&value, 0..value.len, &mut bytes)?;
        let found = txn.member(&entry, &name)?.expect("a walked field is found");
        assert_eq!((found.len, found.expire_at_ms), (value.len, time));
        assert!(fields.insert(name, (bytes, time)).is_none(), "a field is walked once");
    }
    assert_eq!(txn.live_count(&entry)?, fields.len() as u64);
    let drawn = txn.random_member(&entry)?.expect("it has fields").0;
    assert!(fields.contains_key(&drawn), "a due field was drawn");
    Ok(fields)
}

fn all(world: &World) -> Hashes {
    let keys = world.scan(0, 100);
    let read = |key: &Vec<u8>| {
        let keys = [(0, key.as_slice())];
        world.engine.keyspace().read::<_, Error>(KeySet::Keys(&keys), |txn| read(txn, key)).expect("it reads").0
    };
    keys.iter().map(|key| (key.clone(), read(key))).collect()
}

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>),
    PutValue(Vec<u8>, Vec<u8>, Vec<u8>),
    Remove(Vec<u8>, Vec<Vec<u8>>),
    /// Of each field: nothing, another time from now on, none, or its end. With the second part only for fields that have no time yet.
    Change(Vec<u8>, Vec<Vec<u8>>, FieldChange, bool),
    Build(Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>, u64),
    Delete(Vec<u8>),
    Set(Vec<u8>),
    Copy(Vec<u8>, Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
}

fn key(prng: &mut Prng) -> Vec<u8> {
    match prng.below(6) {
        5 => bytes(700, 1),
        n => format!("k{n}").into_bytes(),
    }
}

fn name(prng: &mut Prng) -> Vec<u8> {
    match prng.below(14) {
        0 => bytes(600 + prng.below(3) as usize, 30),
        _ => format!("{}", prng.below(60)).into_bytes(),
    }
}

fn names(prng: &mut Prng) -> Vec<Vec<u8>> {
    let count = if prng.chance(0.3) { 60 } else { prng.below(4) + 1 };
    (0..count).map(|_| name(prng)).collect()
}

fn items(prng: &mut Prng) -> Vec<(Vec<u8>, Vec<u8>)> {
    let value = |prng: &mut Prng| match prng.below(30) {
        0 => bytes(300_000, prng.next_u64()),
        1 => bytes(3000, prng.next_u64()),
        2..8 => bytes(100, prng.next_u64()),
        _ => bytes(prng.below(12) as usize, prng.next_u64()),
    };
    names(prng).into_iter().map(|name| (name, value(prng))).collect()
}

impl Op {
    fn draw(prng: &mut Prng, now: u64) -> Op {
        let time = now + [1, 5, 40, 1000, 1 << 40][prng.below(5) as usize] + prng.below(10);
        match prng.below(24) {
            0..5 => Op::Put(key(prng), items(prng)),
            5..7 => Op::PutValue(key(prng), name(prng), bytes(prng.below(90) as usize, prng.next_u64())),
            7..10 => Op::Remove(key(prng), names(prng)),
            10..18 => {
                let change = match prng.below(8) {
                    0 => FieldChange::Persist,
                    1 => FieldChange::Remove,
                    _ => FieldChange::Until(time.min(FIELD_TIME_MAX)),
                };
                Op::Change(key(prng), names(prng), change, prng.chance(0.3))
            }
            18 => Op::Build(key(prng), items(prng), time),
            19 => Op::Delete(key(prng)),
            20 => Op::Set(key(prng)),
            21 => Op::Copy(key(prng), key(prng)),
            _ => Op::Rename(key(prng), key(prng)),
        }
    }

    fn keys(&self) -> Vec<(u8, &[u8])> {
        match self {
            Op::Put(key, _) | Op::PutValue(key, ..) | Op::Remove(key, _) | Op::Change(key, ..) => vec![(0, key)],
            Op::Build(key, ..) | Op::Delete(key) | Op::Set(key) => vec![(0, key)],
            Op::Copy(from, to) | Op::Rename(from, to) => vec![(0, from), (0, to)],
        }
    }

    /// Makes the change with the engine. Returns what it says about it.
    fn run(&self, txn: &mut KeyTransaction<'_>) -> Result<Vec<u64>, Error> {
        Ok(match self {
            Op::Put(key, items) => {
                let items: Vec<(&[u8], &[u8])> = items.iter().map(|(name, value)| (&name[..], &value[..])).collect();
                vec![txn.put_members(0, key, Kind::Hash, &items, LIMITS)?]
            }
            Op::PutValue(key, name, value) => vec![txn.put_value(0, key, (name, value), LIMITS)?.into()],
            Op::Remove(key, names) => {
                let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                vec![txn.remove_members(0, key, Kind::Hash, &names)?]
            }
            Op::Change(key, names, change, only_untimed) => {
                let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                let mut found = Vec::new();
                txn.change_fields(0, key, &names, LIMITS, &mut |nth, time| {
                    found.extend([nth as u64, time.unwrap_or(0)]);
                    if *only_untimed && time.is_some() { FieldChange::Keep } else { *change }
                })?;
                found
            }
            Op::Build(key, items, time) => {
                let mut build = txn.build(0, key, Kind::Hash, LIMITS)?;
                for (nth, (name, value)) in items.iter().enumerate() {
                    build.put_until(name, value, (nth % 3 > 0).then_some(time + nth as u64))?;
                }
                vec![txn.put_built(0, key, build)?]
            }
            Op::Delete(key) => vec![txn.delete(0, key)?.into()],
            Op::Set(key) => {
                txn.put_string(0, key, b"v", Expire::None)?;
                vec![txn.delete(0, key)?.into()]
            }
            Op::Copy(from, to) => vec![txn.copy((0, from), (0, to))?.into()],
            Op::Rename(from, to) => vec![txn.rename((0, from), (0, to))?.into()],
        })
    }

    /// Makes the change in a model, of which nothing is due.
    fn apply(&self, hashes: &mut Hashes) -> Vec<u64> {
        match self {
            Op::Put(key, items) => {
                let fields = hashes.entry(key.clone()).or_default();
                let new = |(name, value): &(Vec<u8>, Vec<u8>)| {
                    u64::from(fields.insert(name.clone(), (value.clone(), None)).is_none())
                };
                vec![items.iter().map(new).sum()]
            }
            Op::PutValue(key, name, value) => {
                let fields = hashes.entry(key.clone()).or_default();
                let old = fields.get(name).map(|(_, time)| *time);
                fields.insert(name.clone(), (value.clone(), old.flatten()));
                vec![old.is_none().into()]
            }
            Op::Remove(key, names) => {
                let Some(fields) = hashes.get_mut(key) else { return vec![0] };
                let removed = names.iter().filter(|name| fields.remove(*name).is_some()).count();
                hashes.retain(|_, fields| !fields.is_empty());
                vec![removed as u64]
            }
            Op::Change(key, names, change, only_untimed) => {
                let mut found = Vec::new();
                let Some(fields) = hashes.get_mut(key) else { return found };
                for (nth, name) in names.iter().enumerate() {
                    let Some((_, time)) = fields.get_mut(name) else { continue };
                    found.extend([nth as u64, time.unwrap_or(0)]);
                    match change {
                        _ if *only_untimed && time.is_some() => {}
                        FieldChange::Keep => {}
                        FieldChange::Until(new) => *time = Some(*new),
                        FieldChange::Persist => *time = None,
                        FieldChange::Remove => drop(fields.remove(name)),
                    }
                }
                hashes.retain(|_, fields| !fields.is_empty());
                found
            }
            Op::Build(key, items, time) => {
                let timed = |(nth, (name, value)): (usize, &(Vec<u8>, Vec<u8>))| {
                    (name.clone(), (value.clone(), (nth % 3 > 0).then_some(time + nth as u64)))
                };
                let fields: Fields = items.iter().enumerate().map(timed).collect();
                let count = fields.len() as u64;
                hashes.insert(key.clone(), fields);
                vec![count]
            }
            Op::Delete(key) => vec![hashes.remove(key).is_some().into()],
            Op::Set(key) => {
                hashes.remove(key);
                vec![1]
            }
            Op::Copy(from, to) => {
                let found = hashes.get(from).cloned();
                let is_there = found.is_some();
                found.into_iter().for_each(|found| drop(hashes.insert(to.clone(), found)));
                vec![is_there.into()]
            }
            Op::Rename(from, to) => {
                let found = hashes.remove(from);
                let is_there = found.is_some();
                found.into_iter().for_each(|found| drop(hashes.insert(to.clone(), found)));
                vec![is_there.into()]
            }
        }
    }
}

/// Draws and makes the changes of a transaction. Returns its LSN, and the model after it; `None` if it was rolled back.
fn transact(world: &World, prng: &mut Prng, before: &Hashes) -> (Hashes, bool, Result<u64, Error>) {
    let now = world.clock.wall_ms();
    let count = if prng.chance(0.3) { prng.below(4) + 2 } else { 1 };
    let ops: Vec<Op> = (0..count).map(|_| Op::draw(prng, now)).collect();
    let roll_back = prng.chance(0.15);
    let mut after = at(now, before);
    let said: Vec<Vec<u64>> = ops.iter().map(|op| op.apply(&mut after)).collect();
    let keys: Vec<(u8, &[u8])> = ops.iter().flat_map(Op::keys).collect();
    let several = ops.len() > 1 || keys.len() > 1 || roll_back || ops.iter().any(|op| matches!(op, Op::Set(_)));
    let done = world.engine.keyspace().write::<(), Error>(KeySet::Keys(&keys), several, |txn| {
        for (op, said) in ops.iter().zip(&said) {
            assert_eq!(op.run(txn)?, *said, "{op:?}");
        }
        if roll_back { Err(Error::Misuse("asked for")) } else { Ok(()) }
    });
    match done {
        Ok(((), lsn)) => (after, true, Ok(lsn)),
        Err(Error::Misuse("asked for")) => (before.clone(), false, Ok(0)),
        Err(error) => (after, !roll_back, Err(error)),
    }
}

fn play(seed: u64, steps: u32) {
    println!("seed {seed}");
    let (mut prng, mut world, mut model) = (Prng::new(seed), World::new(seed), Hashes::new());
    for step in 0..steps {
        let (after, _, done) = transact(&world, &mut prng, &model);
        done.expect("it runs");
        model = after;
        match prng.below(12) {
            0 => world.settle(),
            1 | 2 => drop(world.engine.background_once(3).expect("the background works")),
            3 | 4 => world.clock.advance_ms(prng.below(8)),
            5 => world.clock.advance_ms(prng.below(60)),
            _ => {}
        }
        if step % 10 == 9 {
            assert!(all(&world) == at(world.clock.wall_ms(), &model), "another state at step {step}");
            world.check();
        }
        if step % 60 == 59 {
            world.flush();
            world = world.crash();
            assert!(all(&world) == at(world.clock.wall_ms(), &model), "another state after a crash at step {step}");
            world.check();
        }
    }
    world.clock.advance_ms(1 << 41);
    assert_eq!(all(&world), at(world.clock.wall_ms(), &model));
    world.settle();
    model = at(world.clock.wall_ms(), &model);
    assert!(all(&world) == model, "another state at the end");
    assert_eq!(world.count(0), model.len() as u64, "a hash whose fields have expired is still there");
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems.len(), report.expiry_entries), (0, 0), "{:#?}", report.problems);
    world.all(|txn| txn.flush_all());
    world.settle();
    let report = world.engine.check().expect("everything can be read");
    assert_eq!((report.problems.len(), report.elements, report.value_pages, report.queued), (0, 0, 0, 0));
}

#[test]
fn hashes_with_expiring_fields_are_as_a_model_says() {
    (0..4).for_each(|seed| play(seed, 240));
}

struct RandomLife {
    prng: Prng,
    states: Vec<(u64, Hashes)>,
}

impl Story for RandomLife {
    fn play(&mut self, world: &World) -> Result<(), Error> {
        loop {
            let before = self.states.last().expect("the first one").clone();
            let (after, shows, done) = transact(world, &mut self.prng, &before.1);
            if shows {
                // Until the LSN is known, a crash may or may not show it.
                self.states.push((u64::MAX, after));
            }
            let lsn = done?;
            if shows {
                self.states.last_mut().expect("pushed above").0 = lsn.max(before.0);
            }
            world.clock.advance_ms(self.prng.below(4));
            world.go_about(self.prng.below(6))?;
        }
    }

    fn bury(&mut self) {}

    fn verify(&self, world: &World, durable: u64) {
        let (now, found) = (world.clock.wall_ms(), all(world));
        let first = self.states.iter().rposition(|(lsn, _)| *lsn <= durable).unwrap_or(0);
        let is_shown = self.states[first..].iter().any(|(_, model)| at(now, model) == found);
        assert!(is_shown, "no state since the durable one is shown");
    }
}

#[test]
fn a_crash_at_any_io_leaves_expiring_fields_as_they_were_committed() {
    let mut crashes = Prng::new(17);
    for seed in 0..12 {
        println!("seed {seed}");
        let mut life = RandomLife { prng: Prng::new(seed), states: vec![(0, Hashes::new())] };
        crash_at(World::new(seed), &mut life, crashes.below(400) + 5, options);
    }
}

fn field_names(count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|n| format!("field {n}").into_bytes()).collect()
}

fn put(world: &World, key: &[u8], names: &[Vec<u8>]) {
    let items: Vec<(&[u8], &[u8])> = names.iter().map(|name| (name.as_slice(), &b"v"[..])).collect();
    world.one(0, key, |txn| txn.put_members(0, key, Kind::Hash, &items, LIMITS));
}

fn expire(world: &World, key: &[u8], names: &[Vec<u8>], change: FieldChange) {
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    world.one(0, key, |txn| txn.change_fields(0, key, &names, LIMITS, &mut |_, _| change));
}

fn peek(world: &World, key: &[u8]) -> Option<Entry> {
    world.one(0, key, |txn| txn.peek(0, key))
}

fn live_count(world: &World, key: &[u8]) -> u64 {
    world.one(0, key, |txn| {
        let entry = txn.peek(0, key)?.expect("it is there");
        txn.live_count(&entry)
    })
}

#[test]
fn due_fields_leave_in_steps_and_the_last_one_takes_the_key() {
    let world = World::new(1);
    let (names, now) = (field_names(3000), world.clock.wall_ms());
    put(&world, b"h", &names);
    expire(&world, b"h", &names[..2900], FieldChange::Until(now + 10));
    world.clock.advance_ms(10);
    assert_eq!(live_count(&world, b"h"), 3000, "not due at its time");
    world.clock.advance_ms(1);
    let mut steps = 0;
    while world.engine.metrics().expired_fields.get() < 2900 {
        let before = world.engine.metrics().expired_fields.get();
        world.engine.background_once(256).unwrap();
        let removed = world.engine.metrics().expired_fields.get() - before;
        assert!(removed <= 256, "{removed} fields in a step");
        assert_eq!(live_count(&world, b"h"), 100);
        steps += 1;
    }
    assert!(steps >= 2900 / 256);
    world.check();
    assert_eq!(peek(&world, b"h").unwrap().count().unwrap(), 100);
    expire(&world, b"h", &names[2900..], FieldChange::Until(now + 20));
    world.clock.advance_ms(20);
    assert!(peek(&world, b"h").is_none() && world.scan(0, 10).is_empty(), "a hash of due fields is absent");
    assert_eq!(world.count(0), 1);
    world.settle();
    assert_eq!((world.count(0), world.engine.check().unwrap().elements), (0, 0));
    world.check();
}

#[test]
fn what_no_field_needs_takes_no_room() {
    let world = World::new(2);
    let (small, large) = (field_names(3), field_names(400));
    for (key, names) in [(&b"s"[..], &small), (b"l", &large)] {
        put(&world, key, names);
        let before = peek(&world, key).unwrap().memory();
        let elements = world.engine.check().unwrap().elements;
        expire(&world, key, names, FieldChange::Until(world.clock.wall_ms() + 1000));
        assert!(peek(&world, key).unwrap().memory() > before);
        expire(&world, key, names, FieldChange::Persist);
        let report = world.engine.check().unwrap();
        assert_eq!((peek(&world, key).unwrap().memory(), report.elements), (before, elements));
        world.settle();
        world.clock.advance_ms(2000);
        world.settle();
        assert_eq!(world.engine.check().unwrap().expiry_entries, 0);
        assert_eq!(live_count(&world, key), names.len() as u64);
    }
}

#[test]
fn the_background_says_which_fields_and_which_keys_have_expired() {
    let world = World::new(3);
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let events = heard.clone();
    world.engine.keyspace().events().listen(Box::new(move |said, _| {
        let said = said.iter().map(|event| format!("{} {}", event.name, String::from_utf8_lossy(&event.key)));
        events.lock().unwrap().extend(said);
    }));
    let (small, large, now) = (field_names(3), field_names(400), world.clock.wall_ms());
    for (key, names) in [(&b"s"[..], &small), (b"l", &large)] {
        put(&world, key, names);
        expire(&world, key, &names[1..], FieldChange::Until(now + 5));
        expire(&world, key, &names[..1], FieldChange::Until(now + 50));
    }
    world.engine.keyspace().events().want(event_class::HASH | event_class::GENERIC);
    world.clock.advance_ms(6);
    world.settle();
    let mut said = std::mem::take(&mut *heard.lock().unwrap());
    said.sort();
    said.dedup();
    assert_eq!(said, ["hexpired l", "hexpired s"]);
    world.clock.advance_ms(50);
    world.settle();
    let mut said = std::mem::take(&mut *heard.lock().unwrap());
    said.sort();
    assert_eq!(said, ["del l", "del s", "hexpired l", "hexpired s"]);
}

#[test]
fn random_fields_are_drawn_from_those_that_are_not_due() {
    let world = World::new(4);
    let (names, now) = (field_names(1000), world.clock.wall_ms());
    put(&world, b"h", &names);
    expire(&world, b"h", &names[10..], FieldChange::Until(now + 5));
    world.clock.advance_ms(6);
    let mut found: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    world.one(0, b"h", |txn| {
        let entry = txn.peek(0, b"h")?.expect("it is there");
        for _ in 0..500 {
            *found.entry(txn.random_member(&entry)?.expect("it has fields").0).or_default() += 1;
        }
        Ok(())
    });
    assert_eq!(found.keys().collect::<Vec<_>>(), names[..10].iter().collect::<Vec<_>>());
    assert!(found.values().all(|times| *times > 20), "{found:?}");
}
