//! Rates per second, for INFO.
//!
//! Redis samples ten times a second. An idle server here has no timer for that, so a rate is computed from the totals at two readings of it.

use stdx::sync::Mutex;

/// Readings closer together than this count as one.
const APART_NS: u64 = 100_000_000;

/// Totals at a point in time.
#[derive(Clone, Copy)]
struct Look<const N: usize> {
    at_ns: u64,
    totals: [u64; N],
}

/// The last reading, and the one before it.
pub struct Rates<const N: usize>(Mutex<[Look<N>; 2]>);

impl<const N: usize> Rates<N> {
    /// Starts counting at `at_ns`.
    pub fn new(at_ns: u64) -> Rates<N> {
        Rates(Mutex::new([Look { at_ns, totals: [0; N] }; 2]))
    }

    /// Returns the increase of each total per second between the last two readings. This reading is one of them if the previous one is at least a tenth of a
    /// second old.
    pub fn look(&self, at_ns: u64, totals: [u64; N]) -> [f64; N] {
        let mut looks = self.0.lock();
        if at_ns.saturating_sub(looks[1].at_ns) >= APART_NS {
            *looks = [looks[1], Look { at_ns, totals }];
        }
        let [before, last] = *looks;
        let seconds = last.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        // RESETSTAT resets totals.
        let gained = |at: usize| last.totals[at].saturating_sub(before.totals[at]) as f64;
        std::array::from_fn(|at| if seconds > 0.0 { gained(at) / seconds } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_came_between_two_looks_that_are_apart() {
        const SECOND: u64 = 1_000_000_000;
        let rates = Rates::new(5 * SECOND);
        assert_eq!(rates.look(5 * SECOND, [7]), [0.0], "no time has passed");
        assert_eq!(rates.look(7 * SECOND, [100]), [50.0]);
        assert_eq!(rates.look(7 * SECOND + 1, [900]), [50.0], "too soon after the last look");
        assert_eq!(rates.look(8 * SECOND, [160]), [60.0]);
        assert_eq!(rates.look(9 * SECOND, [10]), [0.0], "the counters were reset");
        assert_eq!(rates.look(11 * SECOND, [30]), [10.0]);
    }
}
