use std::time::Duration;

use stdx::prng::Prng;

use super::*;
use crate::catalog::tests::{World, parameters};
use crate::types::Collation;

const PATIENCE: Patience<'static> = Patience { wait: Duration::from_secs(60), is_interrupted: &|| false };

fn create(world: &World, parameters: Parameters) -> Arc<Sequence> {
    world.change(|writing| {
        writing.put_schema("d", Collation::Binary, Maker(1))?;
        let id = writing.new_id();
        writing.create_sequence(Sequence::new(id, "d".into(), "s".into(), parameters, Maker(1)))
    })
}

fn sequence(world: &World) -> Arc<Sequence> {
    world.catalog.snapshot().sequence("d", "s").expect("the sequence").clone()
}

fn next(world: &World) -> Result<i64> {
    sequence(world).next(&world.engine, PATIENCE).map(|(value, _)| value)
}

/// Takes this many values.
fn nexts(world: &World, count: usize) -> Vec<i64> {
    (0..count).map(|_| next(world).unwrap()).collect()
}

fn limit(is_max: bool, limit: i64) -> Fault {
    Fault::SequenceLimit(Box::new(SequenceLimit { sequence: "s".into(), is_max, limit }))
}

#[test]
fn a_sequence_gives_its_values_and_stops_at_its_bound() {
    let world = World::new(1);
    create(&world, Parameters { start: 3, increment: 3, max: 10, ..parameters() });
    assert_eq!(nexts(&world, 3), [3, 6, 9]);
    assert_eq!(next(&world), Err(limit(true, 10)));
    let world = World::new(2);
    create(&world, Parameters { start: -1, increment: -2, min: -4, max: -1, ..parameters() });
    assert_eq!(nexts(&world, 2), [-1, -3]);
    assert_eq!(next(&world), Err(limit(false, -4)));
}

#[test]
fn a_cycle_begins_anew_at_the_other_bound() {
    let world = World::new(3);
    create(&world, Parameters { start: 4, increment: 2, max: 7, cycle: true, ..parameters() });
    assert_eq!(nexts(&world, 7), [4, 6, 1, 3, 5, 7, 1]);
    let world = World::new(4);
    create(&world, Parameters { start: 2, increment: -1, max: 3, cycle: true, ..parameters() });
    assert_eq!(nexts(&world, 6), [2, 1, 3, 2, 1, 3]);
}

#[test]
fn the_ends_of_the_range_do_not_overflow() {
    let world = World::new(5);
    let all = Parameters { min: i64::MIN, ..parameters() };
    create(&world, Parameters { start: i64::MAX - 1, ..all });
    assert_eq!(nexts(&world, 2), [i64::MAX - 1, i64::MAX]);
    assert_eq!(next(&world), Err(limit(true, i64::MAX)));
    let world = World::new(6);
    create(&world, Parameters { start: i64::MAX, increment: i64::MIN, ..all });
    assert_eq!(nexts(&world, 2), [i64::MAX, -1]);
    assert_eq!(next(&world), Err(limit(false, i64::MIN)));
}

#[test]
fn several_values_are_taken_at_once_but_none_beyond_the_bound() {
    let world = World::new(7);
    let sequence = create(&world, Parameters { max: 7, cycle: true, ..parameters() });
    let take = |count| {
        let taken = sequence.take(&world.engine, count, PATIENCE).unwrap();
        (taken.first, taken.count)
    };
    assert_eq!([take(5), take(5), take(5)], [(1, 5), (6, 2), (1, 5)]);
}

#[test]
fn a_position_can_be_set_within_the_bounds() {
    let world = World::new(8);
    let sequence = create(&world, Parameters { max: 100, ..parameters() });
    let position = || (sequence.position().last_value, sequence.position().is_called);
    assert_eq!(position(), (1, false));
    assert_eq!(nexts(&world, 2), [1, 2]);
    assert_eq!(position(), (2, true));
    sequence.set(&world.engine, 50, true, PATIENCE).unwrap();
    assert_eq!(nexts(&world, 1), [51]);
    sequence.set(&world.engine, 50, false, PATIENCE).unwrap();
    assert_eq!(position(), (50, false));
    let lsn = sequence.position().durability_lsn;
    assert!(lsn > 0);
    world.await_durable(lsn);
    let outside = SequencePosition { sequence: "s".into(), value: 101, min: 1, max: 100 };
    assert_eq!(sequence.set(&world.engine, 101, true, PATIENCE), Err(Fault::SequencePosition(Box::new(outside))));
    let world = world.crash();
    assert_eq!(nexts(&world, 1), [50]);
}

#[test]
fn a_changed_sequence_goes_on_from_its_position() {
    let world = World::new(9);
    let former = create(&world, parameters());
    assert_eq!(nexts(&world, 3), [1, 2, 3]);
    let changed = Parameters { increment: 10, max: 1000, ..parameters() };
    world.change(|writing| writing.alter_sequence(Sequence { parameters: changed, ..Sequence::clone(&former) }, None));
    assert_eq!(nexts(&world, 1), [13]);
    // The former definition counts by the new one.
    assert_eq!(former.next(&world.engine, PATIENCE).unwrap().0, 23);
    world.change(|writing| writing.alter_sequence(Sequence::clone(&sequence(&world)), Some(7)));
    let world = world.crash();
    assert_eq!(nexts(&world, 2), [7, 17]);
    let mut writing = world.catalog.write();
    let narrow = Parameters { max: 10, ..changed };
    let outside = SequencePosition { sequence: "s".into(), value: 17, min: 1, max: 10 };
    assert_eq!(
        writing.alter_sequence(Sequence { parameters: narrow, ..Sequence::clone(&sequence(&world)) }, None).err(),
        Some(Fault::SequencePosition(Box::new(outside)))
    );
}

#[test]
fn a_change_that_is_undone_leaves_the_sequence_as_it_was() {
    let world = World::new(10);
    let former = create(&world, parameters());
    nexts(&world, 3);
    let mut writing = world.catalog.write();
    writing.alter_sequence(Sequence::clone(&former), Some(100)).unwrap();
    writing.drop_sequence(&former).unwrap();
    let soon = Patience { wait: Duration::ZERO, ..PATIENCE };
    assert_eq!(former.next(&world.engine, soon), Err(Fault::LockTimeout), "DDL holds the counter");
    drop(writing);
    assert_eq!(nexts(&world, 1), [4]);
    world.change(|writing| writing.drop_sequence(&former));
    assert_eq!(former.next(&world.engine, PATIENCE), Err(Fault::unknown_table("d", "s")));
    assert!(world.reopen().catalog.snapshot().sequence("d", "s").is_none());
}

#[test]
fn sessions_never_get_the_same_value() {
    let world = World::new(11);
    create(&world, Parameters { cache: 3, ..parameters() });
    let mut all: Vec<i64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| nexts(&world, 200))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    all.sort_unstable();
    assert_eq!(all, (1..=800).collect::<Vec<i64>>());
}

/// A sequence with wide numbers and without reservations.
struct Model {
    parameters: Parameters,
    last: i128,
    is_called: bool,
}

impl Model {
    fn next(&mut self) -> Option<i64> {
        let Parameters { increment, min, max, cycle, .. } = self.parameters;
        let (min, max) = (i128::from(min), i128::from(max));
        let next = if self.is_called { self.last + i128::from(increment) } else { self.last };
        let next = match (min..=max).contains(&next) {
            true => next,
            false if cycle => {
                if increment > 0 {
                    min
                } else {
                    max
                }
            }
            false => return None,
        };
        (self.last, self.is_called) = (next, true);
        i64::try_from(next).ok()
    }
}

fn random_parameters(prng: &mut Prng) -> Parameters {
    let small = |prng: &mut Prng, bound: u64| prng.below(bound) as i64;
    let extremes = [0, i64::MIN, i64::MAX - 300, -150];
    let min = extremes[prng.below(4) as usize].saturating_add(small(prng, 50));
    let max = if prng.chance(0.2) { i64::MAX } else { min.saturating_add(small(prng, 250)) };
    let start = min.saturating_add(small(prng, 100)).min(max);
    let size = if prng.chance(0.1) { i64::MAX } else { 1 + small(prng, 20) };
    let increment = if prng.chance(0.5) { size } else { -size };
    Parameters { bytes: 8, start, increment, min, max, cache: 1 + prng.below(5), cycle: prng.chance(0.4) }
}

/// Each value is the model's, until a crash. After it values follow that may be beyond those shown, but never one of
/// them unless the sequence has cycled.
#[test]
fn random_sequences_agree_with_a_model() {
    for seed in 0..30 {
        let mut prng = Prng::new(seed);
        let mut world = World::new(seed);
        let parameters = random_parameters(&mut prng);
        create(&world, parameters);
        let mut model = Model { parameters, last: parameters.start.into(), is_called: false };
        for step in 0..200 {
            let context = format!("seed {seed}, step {step}, {:?}", model.parameters);
            match prng.below(40) {
                0 => {
                    let is_called = prng.chance(0.5);
                    let Parameters { min, max, .. } = model.parameters;
                    let value = min.saturating_add(prng.below(100) as i64).min(max);
                    world.await_durable(sequence(&world).set(&world.engine, value, is_called, PATIENCE).unwrap());
                    (model.last, model.is_called) = (value.into(), is_called);
                }
                1 => {
                    let start = random_parameters(&mut prng);
                    world.change(|writing| {
                        let altered = Sequence { parameters: start, ..Sequence::clone(&sequence(&world)) };
                        writing.alter_sequence(altered, Some(start.start))
                    });
                    model = Model { parameters: start, last: start.start.into(), is_called: false };
                }
                2 | 3 => {
                    let Position { last_value, is_called, durability_lsn } = sequence(&world).position();
                    assert_eq!((i128::from(last_value), is_called), (model.last, model.is_called), "{context}");
                    world.await_durable(durability_lsn);
                    world = if prng.chance(0.5) { world.crash() } else { world.reopen() };
                    let now = sequence(&world).position();
                    let skipped =
                        (i128::from(now.last_value) - model.last) * i128::from(model.parameters.increment.signum());
                    assert!(skipped >= 0, "{context}: {now:?} is before what was given");
                    let step = i128::from(model.parameters.increment.unsigned_abs());
                    assert!(skipped <= i128::from(AHEAD) * step, "{context}: {now:?} skips too much");
                    (model.last, model.is_called) = (now.last_value.into(), now.is_called);
                }
                _ => {
                    let taken = sequence(&world).next(&world.engine, PATIENCE).map(|(value, _)| value);
                    assert_eq!(taken.as_ref().ok().copied(), model.next(), "{context}: {taken:?}");
                }
            }
        }
    }
}
