//! A short run of the histories that `make soak` plays for hours, and proof that the oracle detects faults.

mod takeover;

use sim::{Every, LIES, Point, Random, Summary, Violation, undo_seed};

/// Factor for the number of histories, each from a seed of its own: `SOAK_ROUNDS=50`.
pub fn rounds() -> u64 {
    std::env::var("SOAK_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

fn fail(violation: Violation) -> ! {
    panic!("{violation}")
}

fn random(seed: u64) -> Summary {
    Random { seed, liar: None }.run(&mut Vec::new()).unwrap_or_else(|violation| fail(violation))
}

#[test]
fn a_crash_at_every_io_and_at_every_io_of_recovery_loses_nothing() {
    let mut total = Summary::default();
    for seed in 1..1 + rounds() {
        let every = Every { seed, operations: 12, again_step: 3, liar: None };
        total.add(&every.run(&|_, _| {}).unwrap_or_else(|violation| fail(violation)));
    }
    println!("{total}");
    assert!(total.crashes > 30 * rounds() && total.in_recovery > total.crashes);
}

#[test]
fn a_crash_at_every_io_of_histories_loses_nothing() {
    for seed in 100..100 + 6 * rounds() {
        let every = Every { seed, operations: 24, again_step: 0, liar: None };
        every.run(&|_, _| {}).unwrap_or_else(|violation| fail(violation));
    }
}

#[test]
fn long_histories_of_several_lives_survive_crashes_full_disks_and_failing_ones() {
    let mut total = Summary::default();
    for seed in 1000..1000 + 300 * rounds() {
        total.add(&random(seed));
    }
    println!("{total}");
}

#[test]
fn lives_that_begin_during_the_undo_of_the_one_before_lose_nothing() {
    let mut total = Summary::default();
    for number in 0..80 * rounds() {
        total.add(&random(undo_seed(number)));
    }
    println!("{total}");
    assert!(total.during_undo > 20 * rounds(), "only {} of them did", total.during_undo);
    for number in 200..200 + 2 * rounds() {
        let every = Every { seed: undo_seed(number), operations: 14, again_step: 5, liar: None };
        every.run(&|_, _| {}).unwrap_or_else(|violation| fail(violation));
    }
}

/// Seeds that each found a fault once; tests elsewhere name them.
#[test]
fn seeds_that_once_failed_pass() {
    for seed in [2, 72, 1025, 2141, 2213, 3240, 5230, 10598, 20501, 998_912_758, 18_316_645, 311_306_064] {
        random(seed);
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [1, 2, 3] {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        let play = |trace: &mut Vec<String>| Random { seed, liar: None }.run(trace).unwrap_or_else(|v| fail(v));
        assert_eq!(play(&mut one), play(&mut other));
        assert_eq!(one, other);
        let every = Every { seed, operations: 10, again_step: 0, liar: None };
        let point = Point { crash: 20, again: Some(5) };
        let replay = || every.replay_point(point).unwrap_or_else(|violation| fail(violation));
        assert_eq!(replay(), replay());
    }
}

#[test]
fn a_disk_that_ignores_syncs_is_detected() {
    for lie in LIES {
        let (count, violation) = lie.is_detected(1, 200).unwrap_or_else(|| panic!("{} is not detected", lie.about));
        println!("{}: history {count}: {}", lie.about, violation.what);
        let again = violation.replay.split_whitespace().skip_while(|word| *word != "--seed").nth(1);
        let seed = again.and_then(|seed| seed.parse().ok()).expect("the command line has the seed");
        let replayed = Random { seed, liar: Some(lie.names) }.run(&mut Vec::new());
        assert_eq!(replayed.expect_err("the replay fails as well"), violation);
    }
}
