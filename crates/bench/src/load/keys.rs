//! Which key a connection asks for next: memtier's four patterns.
//!
//! The hard part is to mean what memtier means, because the 48 reference rows were made with it: `S` walks the whole
//! range on every connection, `P` cuts the range so that each connection walks its own part, `R` is uniform, `G` is a
//! normal distribution around the middle (sigma = a sixth of the range), drawn again when it falls outside.

use stdx::prng::Prng;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    Random,
    Sequential,
    Gaussian,
    Parallel,
}

impl Pattern {
    pub fn from_letter(letter: &str) -> Option<Pattern> {
        match letter {
            "R" => Some(Pattern::Random),
            "S" => Some(Pattern::Sequential),
            "G" => Some(Pattern::Gaussian),
            "P" => Some(Pattern::Parallel),
            _ => None,
        }
    }
}

/// An inclusive range of key numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub min: u64,
    pub max: u64,
}

impl Range {
    pub fn count(self) -> u64 {
        self.max - self.min + 1
    }

    /// The `index`-th of `parts` adjoining pieces; sizes differ by at most one. `None` when the piece is empty.
    pub fn part(self, index: u64, parts: u64) -> Option<Range> {
        let cut = |i: u64| (u128::from(self.count()) * u128::from(i) / u128::from(parts)) as u64;
        let (from, to) = (cut(index), cut(index + 1));
        (from < to).then(|| Range { min: self.min + from, max: self.min + to - 1 })
    }
}

/// One connection's way through the keys, for one kind of request.
pub struct Walk {
    pattern: Pattern,
    range: Range,
    next: u64,
}

impl Walk {
    pub fn new(pattern: Pattern, range: Range, connection: u64, connections: u64) -> Walk {
        let range = match pattern {
            // More connections than keys: the ones left without a part share the whole range.
            Pattern::Parallel => range.part(connection, connections).unwrap_or(range),
            _ => range,
        };
        Walk { pattern, range, next: range.min }
    }

    pub fn step(&mut self, random: &mut Prng) -> u64 {
        match self.pattern {
            Pattern::Random => self.range.min + random.below(self.range.count()),
            Pattern::Sequential | Pattern::Parallel => {
                let key = self.next;
                self.next = if key == self.range.max { self.range.min } else { key + 1 };
                key
            }
            Pattern::Gaussian => self.gaussian(random),
        }
    }

    fn gaussian(&self, random: &mut Prng) -> u64 {
        let (min, max) = (self.range.min as f64, self.range.max as f64);
        let (middle, sigma) = ((min + max) / 2.0, (max - min) / 6.0);
        loop {
            let key = (middle + sigma * normal(random)).round();
            if (min..=max).contains(&key) {
                return (key as u64).clamp(self.range.min, self.range.max);
            }
        }
    }
}

/// A standard normal number (Box and Muller).
fn normal(random: &mut Prng) -> f64 {
    let mut unit = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let radius = (-2.0 * (1.0 - unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit()).cos()
}

#[cfg(test)]
mod tests;
