//! The hash of keys that clients choose. It spreads them over shards and finds them in hash tables.
//!
//! Hard part: a client could choose keys that collide and make every lookup slow. A seed prevents that: it is drawn at each start, never shown, and mixed in before the first byte by a
//! multiplication whose upper half is folded down. Collisions therefore cannot be computed in advance. No reply contains a hash, and timing behind a socket reveals little about the length of a
//! shard's chain. SipHash gives a stronger guarantee and costs five times as much, under the latch of a leaf.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A hash map for keys that clients choose.
pub type Map<K, V> = std::collections::HashMap<K, V, Seed>;
/// A hash set for keys that clients choose.
pub type Set<K> = std::collections::HashSet<K, Seed>;

/// Hashes `bytes`, eight at a time: multiply to 128 bits and fold. Nothing durable may depend on the value.
pub fn hash(seed: u64, bytes: &[u8]) -> u64 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xd6e8_feb8_6659_fd93;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = fold(seed ^ A, bytes.len() as u64 ^ B);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        state = fold(state ^ u64::from_le_bytes(word.try_into().expect("eight bytes")), A);
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    fold(fold(state ^ u64::from_le_bytes(last), B), A)
}

/// Builds hashers with one seed. `default` draws a new seed.
#[derive(Clone, Copy, Debug)]
pub struct Seed(u64);

impl Default for Seed {
    fn default() -> Seed {
        Seed(RandomState::new().hash_one(0u64))
    }
}

impl Seed {
    /// Returns the hash of `bytes` in the name space `space`.
    pub fn within(self, space: u64, bytes: &[u8]) -> u64 {
        hash(self.0 ^ space.wrapping_mul(0x9e37_79b9_7f4a_7c15), bytes)
    }
}

impl BuildHasher for Seed {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold(self.0)
    }
}

/// The state of a hash that is being computed.
pub struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(self.0, bytes);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        // The rotation distinguishes `a, b` from `b, a`.
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_spread_and_seeds_differ() {
        let (one, other) = (Seed(1), Seed(2));
        let mut counts = [0u32; 64];
        for number in 0..6400u64 {
            counts[one.within(16, &number.to_be_bytes()) as usize % 64] += 1;
        }
        assert!(counts.iter().all(|count| (50..160).contains(count)), "{counts:?}");
        assert_ne!(one.within(16, b"key"), other.within(16, b"key"));
        assert_ne!(one.within(16, b"key"), one.within(17, b"key"));
        assert_eq!(one.hash_one((16u32, b"key".as_slice())), one.hash_one((16u32, Box::<[u8]>::from(*b"key"))));
    }
}
