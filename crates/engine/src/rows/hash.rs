//! The hash by which rows are spread over shards, and found in them.
//!
//! Keys are written by clients, so somebody could make many that fall together and every look at them slow. Against that stands the seed: drawn at each start, never shown, and mixed in
//! before the first byte by a multiplication whose upper half is folded down, so that which keys fall together cannot be worked out beforehand. No reply tells a hash, and time tells little of a
//! shard's list behind a socket. SipHash would promise more and cost five times as much, under the latch of a leaf.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::keyspace::locks::hash;
use crate::rows::MapId;

/// Makes hashes of one seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u64);

impl Default for Seed {
    fn default() -> Seed {
        Seed(RandomState::new().hash_one(0u64))
    }
}

impl Seed {
    /// Of a row.
    pub fn row(self, map: MapId, key: &[u8]) -> u64 {
        hash(self.0 ^ u64::from(map).wrapping_mul(0x9e37_79b9_7f4a_7c15), key)
    }
}

impl BuildHasher for Seed {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold(self.0)
    }
}

/// The state of one hash under way.
pub(crate) struct Fold(u64);

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
            counts[one.row(16, &number.to_be_bytes()) as usize % 64] += 1;
        }
        assert!(counts.iter().all(|count| (50..160).contains(count)), "{counts:?}");
        assert_ne!(one.row(16, b"key"), other.row(16, b"key"));
        assert_ne!(one.row(16, b"key"), one.row(17, b"key"));
        assert_eq!(one.hash_one((16u32, b"key".as_slice())), one.hash_one((16u32, Box::<[u8]>::from(*b"key"))));
    }
}
