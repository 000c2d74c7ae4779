//! Random changes of keys, made by the engine and by a model: in one life with crashes between steps, and over a crash at any I/O.

use std::collections::BTreeMap;
use std::fmt::Debug;

use engine::{Error, KeySet, KeyTransaction};
use stdx::prng::Prng;

use crate::support::{Story, World, crash_at, options};

/// The values of all keys.
pub type Model<C> = BTreeMap<Vec<u8>, <C as KeyChange>::Value>;

/// A change of one key, or of two.
pub trait KeyChange: Sized {
    /// The value of a key.
    type Value: Clone + PartialEq + Debug;
    /// The memory that drawing has from one change to the next.
    type Drawn: Default;

    fn draw(prng: &mut Prng, drawn: &mut Self::Drawn) -> Self;

    fn keys(&self) -> Vec<(u8, &[u8])>;

    /// Makes it as a door does, which checks the type first.
    fn run(&self, txn: &mut KeyTransaction<'_>) -> Result<(), Error>;

    fn apply(&self, model: &mut Model<Self>);

    /// Reads a key that is there, in all ways there are.
    fn read(txn: &mut KeyTransaction<'_>, key: &[u8]) -> Result<Self::Value, Error>;
}

/// Reads all keys.
pub fn all<C: KeyChange>(world: &World) -> Model<C> {
    let keys = world.scan(0, 100);
    let read = |key: &Vec<u8>| {
        let keys = [(0, key.as_slice())];
        world.engine.keyspace().read::<_, Error>(KeySet::Keys(&keys), |txn| C::read(txn, key)).expect("it reads").0
    };
    keys.iter().map(|key| (key.clone(), read(key))).collect()
}

/// Draws the changes of a transaction.
fn draw<C: KeyChange>(prng: &mut Prng, drawn: &mut C::Drawn) -> Vec<C> {
    let count = if prng.chance(0.3) { prng.below(4) + 2 } else { 1 };
    (0..count).map(|_| C::draw(prng, drawn)).collect()
}

/// Makes changes in one transaction. Returns whether it was committed, and its LSN.
fn transact<C: KeyChange>(world: &World, changes: &[C], roll_back: bool) -> Result<(bool, u64), Error> {
    let keys: Vec<(u8, &[u8])> = changes.iter().flat_map(C::keys).collect();
    let several = changes.len() > 1 || keys.len() > 1 || roll_back;
    let done = world.engine.keyspace().write::<(), Error>(KeySet::Keys(&keys), several, |txn| {
        changes.iter().try_for_each(|change| change.run(txn))?;
        if roll_back { Err(Error::Misuse("asked for")) } else { Ok(()) }
    });
    match done {
        Ok(((), lsn)) => Ok((true, lsn)),
        Err(Error::Misuse("asked for")) => Ok((false, 0)),
        Err(error) => Err(error),
    }
}

/// Plays random transactions, with crashes between them. In the end all keys are removed, and nothing may be left of them.
pub fn play_beside_model<C: KeyChange>(seed: u64, steps: u32) {
    println!("seed {seed}");
    let (mut prng, mut drawn) = (Prng::new(seed), C::Drawn::default());
    let (mut world, mut model) = (World::new(seed), Model::<C>::new());
    for step in 0..steps {
        let changes = draw::<C>(&mut prng, &mut drawn);
        let roll_back = prng.chance(0.15);
        let (committed, _) = transact(&world, &changes, roll_back).expect("it runs");
        if committed {
            changes.iter().for_each(|change| change.apply(&mut model));
        }
        match prng.below(12) {
            0 => world.settle(),
            1 => drop(world.engine.background_once(3).expect("the background works")),
            _ => {}
        }
        if step % 10 == 9 {
            assert!(all::<C>(&world) == model, "another state at step {step}");
            world.check();
        }
        if step % 60 == 59 {
            world.flush();
            world = world.crash();
            assert!(all::<C>(&world) == model, "another state after a crash at step {step}");
            world.check();
        }
    }
    world.settle();
    assert!(all::<C>(&world) == model, "another state at the end");
    world.all(|txn| txn.flush_all());
    world.settle();
    let report = world.engine.check().expect("everything can be read");
    assert_eq!((report.problems.len(), report.elements, report.value_pages, report.queued), (0, 0, 0, 0));
}

/// Random transactions with the states after each commit.
struct RandomLife<C: KeyChange> {
    prng: Prng,
    drawn: C::Drawn,
    states: Vec<(u64, Model<C>)>,
}

impl<C: KeyChange> Story for RandomLife<C> {
    fn play(&mut self, world: &World) -> Result<(), Error> {
        loop {
            let changes = draw::<C>(&mut self.prng, &mut self.drawn);
            let roll_back = self.prng.chance(0.15);
            let mut after = self.states.last().expect("the first one").1.clone();
            changes.iter().for_each(|change| change.apply(&mut after));
            if !roll_back {
                // Until the LSN is known, a crash may or may not show it.
                self.states.push((u64::MAX, after));
            }
            let (committed, lsn) = transact(world, &changes, roll_back)?;
            if committed {
                // A change that finds nothing to do shows a state that an earlier commit decided.
                let before = self.states[self.states.len() - 2].0;
                self.states.last_mut().expect("pushed above").0 = lsn.max(before);
            }
            world.go_about(self.prng.below(6))?;
        }
    }

    fn bury(&mut self) {}

    fn verify(&self, world: &World, durable: u64) {
        let found = all::<C>(world);
        let first = self.states.iter().rposition(|(lsn, _)| *lsn <= durable).unwrap_or(0);
        let is_shown = self.states[first..].iter().any(|(_, model)| *model == found);
        assert!(is_shown, "no state since the durable one is shown");
    }
}

/// Plays a random life for each seed, each until its disk dies at an I/O that `crashes` draws, and compares what recovery shows.
pub fn crash_at_any_io<C: KeyChange>(seeds: u64, mut crashes: Prng) {
    for seed in 0..seeds {
        println!("seed {seed}");
        let states = vec![(0, Model::<C>::new())];
        let mut life = RandomLife::<C> { prng: Prng::new(seed), drawn: C::Drawn::default(), states };
        crash_at(World::new(seed), &mut life, crashes.below(400) + 5, options);
    }
}
