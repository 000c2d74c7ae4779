//! The hash by which keys that clients have written are spread over shards, and found in them.
//!
//! Somebody could make many keys that fall together and every look at them slow. Against that stands the seed: drawn at each start, never shown, and mixed in before the first byte by a
//! multiplication whose upper half is folded down, so that which keys fall together cannot be worked out beforehand. No reply tells a hash, and time tells little of a
//! shard's list behind a socket. SipHash would promise more and cost five times as much, under the latch of a leaf.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A table whose keys come from outside.
pub type Map<K, V> = std::collections::HashMap<K, V, Seed>;
/// The same without values.
pub type Set<K> = std::collections::HashSet<K, Seed>;

/// A quick hash of eight bytes at a time: multiply to 128 bits and fold. It spreads keys over shards of what is in memory; nothing durable depends on it.
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

/// Makes hashes of one seed.
#[derive(Clone, Copy, Debug)]
pub struct Seed(u64);

impl Default for Seed {
    fn default() -> Seed {
        Seed(RandomState::new().hash_one(0u64))
    }
}

impl Seed {
    /// Of bytes in one of many spaces.
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

/// The state of one hash under way.
pub struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(self.0, bytes);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        // The rotation makes `a, b` another one than `b, a`.
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
