//! Random histories against a model, and what is left of them after a crash.
//!
//! A history is a list of units drawn from a seed. After each the model is remembered together with the unit's gate. A crash may take back the newest units,
//! but never one whose gate was durable, and never half of one: what recovery finds is one of the remembered models, at or behind the last durable one.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use engine::{Engine, Error, Expire, Locks, Lsn, Unit};
use os::{SimClock, SimFolder};
use stdx::prng::Prng;

use crate::support::{START_MS, World, bytes, options, tight};

const DATABASES: u8 = 3;

type Database = BTreeMap<Vec<u8>, (Arc<Vec<u8>>, Option<u64>)>;

#[derive(Clone, Default, PartialEq, Eq)]
pub struct Model {
    databases: [Database; DATABASES as usize],
}

type Name = (u8, Vec<u8>);

#[derive(Clone, Debug)]
enum Op {
    Put(Name, Vec<u8>, Expire),
    Patch(Name, u64, Vec<u8>),
    Delete(Name),
    Expire(Name, Option<u64>),
    Rename(Name, Name),
    Copy(Name, Name),
    Flush(u8),
    FlushAll,
    Swap(u8, u8),
}

/// One unit, or something else that a server does.
#[derive(Clone, Debug)]
enum Step {
    One(Op),
    Several(Vec<Op>),
    RolledBack(Vec<Op>),
    Tick(u64),
    Background,
    FlushLog,
    Clean,
    Checkpoint,
}

/// A key of the model with its value and time.
type ModelEntry<'a> = (&'a Vec<u8>, &'a (Arc<Vec<u8>>, Option<u64>));

impl Model {
    fn live(&self, name: &Name, now: u64) -> Option<&(Arc<Vec<u8>>, Option<u64>)> {
        let found = self.databases[usize::from(name.0)].get(&name.1);
        found.filter(|(_, expire)| expire.is_none_or(|expire| now <= expire))
    }

    fn put(&mut self, name: &Name, value: Vec<u8>, expire: Option<u64>) {
        self.databases[usize::from(name.0)].insert(name.1.clone(), (Arc::new(value), expire));
    }

    fn apply(&mut self, op: &Op, now: u64) {
        match op {
            Op::Put(name, value, expire) => {
                let kept = self.live(name, now).and_then(|(_, expire)| *expire);
                let expire = match expire {
                    Expire::Keep => kept,
                    Expire::None => None,
                    Expire::At(time) => Some(*time),
                };
                self.put(name, value.clone(), expire);
            }
            Op::Patch(name, at, with) => {
                let (mut value, expire) = match self.live(name, now) {
                    Some((value, expire)) => (value.to_vec(), *expire),
                    None => Default::default(),
                };
                let at = *at as usize;
                value.resize(value.len().max(at + with.len()), 0);
                value[at..at + with.len()].copy_from_slice(with);
                self.put(name, value, expire);
            }
            Op::Delete(name) => {
                self.databases[usize::from(name.0)].remove(&name.1);
            }
            Op::Expire(name, time) => {
                if let Some((value, _)) = self.live(name, now).cloned() {
                    self.put(name, value.to_vec(), *time);
                }
            }
            Op::Rename(from, to) | Op::Copy(from, to) => {
                if let Some((value, expire)) = self.live(from, now).cloned() {
                    if matches!(op, Op::Rename(..)) {
                        self.databases[usize::from(from.0)].remove(&from.1);
                    }
                    self.put(to, value.to_vec(), expire);
                }
            }
            Op::Flush(db) => self.databases[usize::from(*db)].clear(),
            Op::FlushAll => self.databases = Default::default(),
            Op::Swap(a, b) => self.databases.swap(usize::from(*a), usize::from(*b)),
        }
    }

    /// Without what has expired by `now`.
    fn at(&self, now: u64) -> Model {
        let mut model = self.clone();
        for database in &mut model.databases {
            database.retain(|_, (_, expire)| expire.is_none_or(|expire| now <= expire));
        }
        model
    }

    /// What the engine shows.
    pub fn read(world: &World) -> Model {
        let mut model = Model::default();
        for db in 0..DATABASES {
            for key in world.scan(db, 7) {
                let value = world.get(db, &key).expect("a key that SCAN shows");
                let expire = world.ttl(db, &key).expect("it is there");
                model.databases[usize::from(db)].insert(key, (Arc::new(value), expire));
            }
        }
        model
    }

    pub fn summary(&self) -> String {
        let entry = |(key, (value, expire)): ModelEntry<'_>| {
            format!(
                "{}={}b#{:x}@{expire:?}",
                String::from_utf8_lossy(&key[..key.len().min(8)]),
                value.len(),
                crc32c::crc32c(value)
            )
        };
        format!("{:?}", self.databases.iter().map(|db| db.iter().map(entry).collect::<Vec<_>>()).collect::<Vec<_>>())
    }
}

impl Op {
    fn names(&self) -> Vec<Name> {
        match self {
            Op::Put(name, ..) | Op::Patch(name, ..) | Op::Delete(name) | Op::Expire(name, _) => vec![name.clone()],
            Op::Rename(from, to) | Op::Copy(from, to) => vec![from.clone(), to.clone()],
            Op::Flush(_) | Op::FlushAll | Op::Swap(..) => Vec::new(),
        }
    }

    fn needs_all(&self) -> bool {
        matches!(self, Op::Flush(_) | Op::FlushAll | Op::Swap(..))
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<(), Error> {
        match self {
            Op::Put((db, key), value, expire) => unit.put_string(*db, key, value, *expire),
            Op::Patch((db, key), at, with) => unit.patch_string(*db, key, *at, with).map(drop),
            Op::Delete((db, key)) => unit.delete(*db, key).map(drop),
            Op::Expire((db, key), time) => unit.set_expire(*db, key, *time).map(drop),
            Op::Rename(from, to) => unit.rename((from.0, &from.1), (to.0, &to.1)).map(drop),
            Op::Copy(from, to) => unit.copy((from.0, &from.1), (to.0, &to.1)).map(drop),
            Op::Flush(db) => unit.flush(*db),
            Op::FlushAll => unit.flush_all(),
            Op::Swap(a, b) => unit.swap(*a, *b),
        }
    }
}

fn draw_op(prng: &mut Prng, now: u64) -> Op {
    let name = |prng: &mut Prng| {
        let key = match prng.below(8) {
            0 => bytes(600, 1),
            n => format!("k{n}").into_bytes(),
        };
        (prng.below(u64::from(DATABASES)) as u8, key)
    };
    let value = |prng: &mut Prng| {
        let size = match prng.below(20) {
            0..10 => prng.below(200),
            10..13 => prng.below(1300),
            13..18 => prng.below(20_000),
            18 => 260_000 + prng.below(4_000),
            _ => 270_000 + prng.below(300_000),
        };
        bytes(size as usize, prng.next_u64())
    };
    let time = |prng: &mut Prng| now + prng.below(400);
    match prng.below(40) {
        0..16 => {
            let expire = match prng.below(4) {
                0 => Expire::Keep,
                1 => Expire::At(time(prng)),
                _ => Expire::None,
            };
            Op::Put(name(prng), value(prng), expire)
        }
        16..22 => {
            let at = if prng.chance(0.1) { prng.below(500_000) } else { prng.below(9_000) };
            let len = 1 + prng.below(600) as usize;
            Op::Patch(name(prng), at, bytes(len, prng.next_u64()))
        }
        22..28 => Op::Delete(name(prng)),
        28..31 => Op::Expire(name(prng), prng.chance(0.7).then(|| time(prng))),
        31..35 => Op::Rename(name(prng), name(prng)),
        35..37 => Op::Copy(name(prng), name(prng)),
        37 => Op::Flush(prng.below(u64::from(DATABASES)) as u8),
        38 if prng.chance(0.3) => Op::FlushAll,
        _ => Op::Swap(prng.below(u64::from(DATABASES)) as u8, prng.below(u64::from(DATABASES)) as u8),
    }
}

fn draw(prng: &mut Prng, now: u64) -> Step {
    let several = |prng: &mut Prng| (0..2 + prng.below(4)).map(|_| draw_op(prng, now)).collect();
    match prng.below(30) {
        0..12 => Step::One(draw_op(prng, now)),
        12..18 => Step::Several(several(prng)),
        18..21 => Step::RolledBack(several(prng)),
        21..23 => Step::Tick(prng.below(200)),
        23..25 => Step::Background,
        25..28 => Step::FlushLog,
        28 => Step::Clean,
        _ => Step::Checkpoint,
    }
}

/// A history under way.
struct Play {
    world: World,
    /// The model after each unit, and the gate of its answer; the first is the empty database.
    models: Vec<(Model, Lsn)>,
    now: u64,
    flushes_within: bool,
}

/// What a crash leaves to be compared.
pub struct Left {
    folder: Arc<SimFolder>,
    clock: Arc<SimClock>,
    /// Models that recovery may find.
    possible: Vec<Model>,
    /// For the message of a failure.
    story: String,
}

fn guard(engine: &Engine) {
    // A rollback that meets the dead disk would stop the process; here only the simulated one stops.
    engine.pager().set_failure_hook(Box::new(|error| panic!("the simulated process stops: {error}")));
}

impl Play {
    fn new(world: World, flushes_within: bool) -> Play {
        guard(&world.engine);
        Play { world, models: vec![(Model::default(), 0)], now: START_MS, flushes_within }
    }

    fn unit(&mut self, ops: &[Op], several: bool, roll_back: bool) -> Result<(), Error> {
        let names: Vec<Name> = ops.iter().flat_map(Op::names).collect();
        let keys: Vec<(u8, &[u8])> = names.iter().map(|(db, key)| (*db, key.as_slice())).collect();
        let locks = if ops.iter().any(Op::needs_all) { Locks::All } else { Locks::Keys(&keys) };
        let mut after = self.models.last().expect("never empty").0.clone();
        if !roll_back {
            ops.iter().for_each(|op| after.apply(op, self.now));
        }
        let several = several || matches!(ops, [Op::Rename(..)]);
        let result = self.world.engine.keyspace().write::<(), Error>(locks, several, |unit| {
            for (at, op) in ops.iter().enumerate() {
                op.run(unit)?;
                // As a flusher would, in the middle of a unit: a crash then finds the half of it in the log.
                if self.flushes_within && at % 2 == 0 {
                    self.world.engine.pager().flush_once()?;
                }
            }
            if roll_back { Err(Error::Invalid("rolled back".into())) } else { Ok(()) }
        });
        match result {
            Ok(((), gate)) => {
                // A unit that changed nothing may have nothing to wait for; the model before it still has.
                let before = self.models.last().expect("never empty").1;
                self.models.push((after, gate.max(before)));
            }
            Err(Error::Invalid(_)) if roll_back => {}
            Err(error) => {
                // Cut off by the crash: it may be there or not, whole.
                self.models.push((after, Lsn::MAX));
                return Err(error);
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Error> {
        let pager = self.world.engine.pager().clone();
        match step {
            Step::One(op) => self.unit(std::slice::from_ref(op), false, false)?,
            Step::Several(ops) => self.unit(ops, true, false)?,
            Step::RolledBack(ops) => self.unit(ops, true, true)?,
            Step::Tick(ms) => {
                self.now += ms;
                self.world.clock.set_ms(self.now);
            }
            Step::Background => drop(self.world.engine.background_once(8)?),
            Step::FlushLog => while pager.flush_once()? {},
            Step::Clean => drop(pager.clean_ahead()?),
            Step::Checkpoint => drop(pager.checkpoint()?),
        }
        Ok(())
    }

    fn last(&self) -> Model {
        self.models.last().expect("never empty").0.at(self.now)
    }

    /// The crash: what is durable must stay, the rest may.
    fn crash(self, seed: u64, crash_at: Option<u64>) -> Left {
        let durable = self.world.engine.durable().get();
        let acknowledged = self.models.iter().rposition(|(_, gate)| *gate <= durable).expect("the empty one");
        let possible = self.models[acknowledged..].iter().map(|(model, _)| model.at(self.now)).collect();
        let story = format!(
            "seed {seed}, crash at I/O {crash_at:?}, durable {durable} of {}",
            self.world.engine.pager().log_head()
        );
        Left { folder: self.world.folder.crash(), clock: self.world.clock.clone(), possible, story }
    }
}

impl Left {
    /// Opens what is left, crashing again on the way if told to, and compares.
    pub fn recover(self, crash_again: Option<u64>) -> World {
        let Left { mut folder, clock, possible, story } = self;
        if let Some(io) = crash_again {
            folder.crash_at_io(io);
            let first = catch_unwind(AssertUnwindSafe(|| World::on(folder.clone(), clock.clone())));
            folder = folder.crash();
            drop(first);
        }
        let world = World::on(folder, clock).expect("it recovers");
        let found = Model::read(&world);
        if !possible.contains(&found) {
            let possible: Vec<String> = possible.iter().map(Model::summary).collect();
            panic!(
                "{story}, again at {crash_again:?}\n{:?}\nfound    {}\npossible {possible:#?}",
                world.engine.opened(),
                found.summary()
            );
        }
        world.check();
        world.settle();
        world.check();
        assert!(Model::read(&world) == found, "the background changed what is seen");
        world
    }
}

/// Plays `steps` steps. The disk dies at I/O number `crash_at`, or never.
pub fn play(seed: u64, steps: usize, crash_at: Option<u64>) -> Result<(World, Model), Left> {
    let folder = SimFolder::new(seed);
    if let Some(io) = crash_at {
        folder.crash_at_io(io);
    }
    let clock = Arc::new(SimClock::new(START_MS));
    let options = if seed.is_multiple_of(3) { tight() } else { options() };
    let opened = catch_unwind(AssertUnwindSafe(|| World::with(folder.clone(), clock.clone(), options)));
    let world = match opened {
        Ok(Ok(world)) => world,
        _ => {
            return Err(Left {
                folder: folder.crash(),
                clock,
                possible: vec![Model::default()],
                story: format!("seed {seed}, crash at I/O {crash_at:?} while opening"),
            });
        }
    };
    let mut prng = Prng::new(seed);
    let mut play = Play::new(world, seed.is_multiple_of(2));
    for at in 0..steps {
        let step = draw(&mut prng, play.now);
        match catch_unwind(AssertUnwindSafe(|| play.step(&step))) {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) if crash_at.is_some() => return Err(play.crash(seed, crash_at)),
            Ok(Err(error)) => panic!("step {at} of seed {seed}: {step:?}: {error}"),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        if at % 16 == 15 && crash_at.is_none() {
            let (seen, expected) = (Model::read(&play.world), play.last());
            assert!(
                seen == expected,
                "step {at} of seed {seed}: {step:?}\nseen     {}\nexpected {}",
                seen.summary(),
                expected.summary()
            );
            play.world.check();
        }
    }
    if crash_at.is_some() {
        return Err(play.crash(seed, crash_at));
    }
    let last = play.last();
    Ok((play.world, last))
}

#[test]
fn random_histories_agree_with_the_model() {
    for seed in 1..=12 {
        let Ok((world, model)) = play(seed, 200, None) else { unreachable!("no crash was ordered") };
        let world = world.reopen();
        assert!(Model::read(&world) == model, "seed {seed} after reopening");
        world.check();
        world.settle();
        world.check();
    }
}
