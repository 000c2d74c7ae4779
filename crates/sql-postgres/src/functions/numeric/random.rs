//! `random()` and its seed: xoroshiro128** as PostgreSQL has it, so that a seed gives the same numbers.

use std::hash::{BuildHasher, RandomState};

use query::nodes::context::EvalContext;

use crate::error::{PgError, Result, state};
use crate::types::numeric::float::with_digits;

/// The generator of a session. It begins with a seed that nobody knows.
#[derive(Clone, Debug)]
pub struct Generator {
    words: [u64; 2],
}

impl Default for Generator {
    fn default() -> Generator {
        // A hasher's keys are random: the standard library's only source of entropy.
        Generator::of_seed(RandomState::new().hash_one(0u8))
    }
}

/// The next number of splitmix64, which makes many bits of few.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

impl Generator {
    fn of_seed(mut seed: u64) -> Generator {
        let words = [split_mix(&mut seed), split_mix(&mut seed)];
        // All zeros would stay so.
        Generator { words: if words == [0, 0] { [0x5851_F42D_4C95_7F2D, 0x1405_7B7E_F767_814F] } else { words } }
    }

    fn next(&mut self) -> u64 {
        let [first, second] = self.words;
        let mixed = second ^ first;
        let number = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.words = [first.rotate_left(24) ^ mixed ^ mixed << 16, mixed.rotate_left(37)];
        number
    }

    /// Returns a number from 0 to less than 1.
    pub fn next_float(&mut self) -> f64 {
        (self.next() >> 12) as f64 / 2f64.powi(52)
    }

    /// Returns a number of the normal distribution with mean 0 and deviation 1, by the method of Box and Muller.
    pub fn next_normal(&mut self) -> f64 {
        let (first, second) = (1.0 - self.next_float(), 1.0 - self.next_float());
        (-2.0 * first.ln()).sqrt() * (2.0 * std::f64::consts::PI * second).sin()
    }
}

pub fn random(ctx: &mut EvalContext) -> f64 {
    ctx.slot_mut::<Generator>().next_float()
}

pub fn random_normal(mean: f64, deviation: f64, ctx: &mut EvalContext) -> f64 {
    deviation * ctx.slot_mut::<Generator>().next_normal() + mean
}

/// Starts the session's numbers from a seed.
pub fn set_seed(seed: f64, ctx: &mut EvalContext) -> Result<()> {
    if !(-1.0..=1.0).contains(&seed) {
        let message = format!("setseed parameter {} is out of allowed range [-1,1]", with_digits(seed, 6));
        return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
    }
    let seed = (((1u64 << 52) - 1) as f64 * seed) as i64;
    *ctx.slot_mut::<Generator>() = Generator::of_seed(seed as u64);
    Ok(())
}
