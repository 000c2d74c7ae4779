//! Nodes of a shared database that take over from each other, and proof that the oracle detects each part of the fence that is missing.

use sim::{TAKEOVER_FAULTS, Takeover, TakeoverFault, TakeoverSummary};

#[test]
fn nodes_that_are_paused_and_killed_at_any_step_lose_no_acknowledged_write_and_show_no_old_value() {
    let mut total = TakeoverSummary::default();
    for seed in 1..1 + 400 * crate::rounds() {
        total.add(
            &Takeover { seed, fault: None }.run(&mut Vec::new()).unwrap_or_else(|violation| panic!("{violation}")),
        );
    }
    println!("{total}");
    assert!(total.steps >= 30 * total.histories && total.refused > total.histories && 2 * total.late > total.histories);
    assert!(total.openings > 2 * total.histories && total.acknowledged > 0 && total.shown > 0);
}

/// For each fault the seed of a history that goes wrong without that part; `sim canary` looks for one.
const WRONG: [(TakeoverFault, u64); 7] = [
    (TakeoverFault::Root, 273),
    (TakeoverFault::Log, 1),
    (TakeoverFault::Pages, 216),
    (TakeoverFault::Lease, 112),
    (TakeoverFault::Wait, 186),
    (TakeoverFault::Answer, 2233),
    (TakeoverFault::Holder, 1),
];

#[test]
fn each_missing_part_of_the_fence_is_detected() {
    assert_eq!(WRONG.map(|(fault, _)| fault), TAKEOVER_FAULTS);
    for (fault, seed) in WRONG {
        // Neighbours too, so that a change of the model does not at once leave the test without its history.
        let (_, violation) = fault
            .is_detected(seed, 200)
            .unwrap_or_else(|| panic!("{} is not detected from seed {seed} on", fault.name()));
        println!("{}: {}", fault.name(), violation.what);
    }
}

#[test]
fn histories_that_were_wrong_once_are_right() {
    // A claim that put an older checkpoint back; a segment that was created after it had been dropped; an error without a cause.
    for seed in [193, 250, 1625] {
        Takeover { seed, fault: None }.run(&mut Vec::new()).unwrap_or_else(|violation| panic!("{violation}"));
    }
}
