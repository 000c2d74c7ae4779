//! Timestamps for clients: each is given out once, whatever the clock does and across crashes.

use crate::support::World;

const STEP: u64 = 64;
const MILLISECOND: u64 = 1 << 22;

#[test]
fn a_batch_is_nobody_elses_and_numbers_follow_the_clock_but_never_fall() {
    let world = World::new(11);
    let (one, gate) = world.db.take_timestamps(3, 1_700_000_000_000).unwrap();
    assert_eq!(one, 1_700_000_000_000 * MILLISECOND);
    assert!(gate > 0);
    let (two, _) = world.db.take_timestamps(1, 1_700_000_000_000).unwrap();
    assert_eq!(two, one + 3 * STEP);
    let (later, _) = world.db.take_timestamps(1, 1_700_000_000_005).unwrap();
    assert_eq!(later, 1_700_000_000_005 * MILLISECOND);
    let (behind, _) = world.db.take_timestamps(1, 1_600_000_000_000).unwrap();
    assert_eq!(behind, later + STEP);
}

#[test]
fn after_a_crash_they_go_on_above_all_that_may_have_been_shown() {
    let world = World::new(12);
    let (_, gate) = world.db.take_timestamps(1, 1_700_000_000_000).unwrap();
    // Shown only when the log is durable up to there.
    world.engine.durable().wait(gate);
    let (last, same) = world.db.take_timestamps(1000, 1_700_000_009_000).unwrap();
    assert_eq!(same, gate, "no record for each");
    let world = world.crash();
    let (next, _) = world.db.take_timestamps(1, 1_600_000_000_000).unwrap();
    assert!(next >= last + 1000 * STEP);
    let world = world.reopen();
    let (after, _) = world.db.take_timestamps(1, 0).unwrap();
    assert!(after > next);
}
