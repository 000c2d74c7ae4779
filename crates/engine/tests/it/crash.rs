//! A crash at every I/O of short histories, and at random in longer ones.

use stdx::prng::Prng;

use crate::history::play;

/// Panics that the simulated crash causes are expected; they need not be printed.
fn quietly(f: impl FnOnce() + std::panic::UnwindSafe) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.to_string().contains("simulated") {
            hook(info);
        }
    }));
    let result = std::panic::catch_unwind(f);
    drop(std::panic::take_hook());
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// `SOAK_ROUNDS=50` plays so many times as many histories, each from a seed of its own.
fn rounds() -> u64 {
    std::env::var("SOAK_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// I/Os of a whole history without a crash.
fn ios(seed: u64, steps: usize) -> u64 {
    let Ok((world, _)) = play(seed, steps, None) else { unreachable!("no crash was ordered") };
    world.folder.io_count()
}

#[test]
fn a_crash_at_every_io_takes_back_nothing_acknowledged_and_no_half_units() {
    quietly(|| {
        for seed in 1000..1000 + 4 * rounds() {
            for io in 1..=ios(seed, 40) + 1 {
                let Err(left) = play(seed, 40, Some(io)) else { unreachable!("a crash was ordered") };
                left.recover(None);
            }
        }
    });
}

#[test]
fn a_crash_during_recovery_is_recovered_from() {
    quietly(|| {
        let mut prng = Prng::new(5);
        for seed in 2_000_000..2_000_000 + 40 * rounds() {
            let io = 1 + prng.below(ios(seed, 40));
            for again in 1..12 {
                let Err(left) = play(seed, 40, Some(io)) else { unreachable!("a crash was ordered") };
                left.recover(Some(again * 3));
            }
        }
    });
}

#[test]
fn long_histories_survive_a_crash_at_random() {
    quietly(|| {
        let mut prng = Prng::new(6);
        for seed in 3_000_000..3_000_000 + 12 * rounds() {
            let total = ios(seed, 250);
            for _ in 0..4 {
                let io = 1 + prng.below(total);
                let Err(left) = play(seed, 250, Some(io)) else { unreachable!("a crash was ordered") };
                let again = prng.chance(0.5).then(|| 1 + prng.below(40));
                left.recover(again);
            }
        }
    });
}
