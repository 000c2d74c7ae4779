//! Byte strings in a hash table, numbered in the order in which they came: the keys of groups, and of a join's right side.
//!
//! All keys lie in one buffer, so a key takes no allocation of its own.

use stdx::hash::Seed;

#[derive(Default)]
pub struct KeyTable {
    seed: Seed,
    bytes: Vec<u8>,
    /// Of each key, where it ends in `bytes`.
    ends: Vec<usize>,
    /// The upper half of a key's hash, and below it the key's number plus one; 0 is free. A power of two of them, at most half of which are taken.
    slots: Vec<u64>,
}

/// The hash of a key that a table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(u64);

/// The lower half of a slot.
const NUMBER: u64 = u32::MAX as u64;
const SLOTS_MIN: usize = 16;

impl KeyTable {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, number: usize) -> &[u8] {
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[from..self.ends[number]]
    }

    /// Returns the key's number, if the table has it.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.search(key).ok()
    }

    /// Returns the key's number, or the hash by which `add` adds it.
    pub fn search(&self, key: &[u8]) -> Result<usize, KeyHash> {
        let hash = self.seed.within(0, key) & !NUMBER;
        if self.slots.is_empty() {
            return Err(KeyHash(hash));
        }
        for at in self.probe(hash) {
            let slot = self.slots[at];
            let Some(number) = (slot & NUMBER).checked_sub(1) else { break };
            if slot & !NUMBER == hash && self.get(number as usize) == key {
                return Ok(number as usize);
            }
        }
        Err(KeyHash(hash))
    }

    /// Adds a key that the table does not have, and returns its number. The hash is that of `search`.
    pub fn add(&mut self, key: &[u8], KeyHash(hash): KeyHash) -> usize {
        debug_assert_eq!(self.search(key), Err(KeyHash(hash)));
        let number = self.ends.len();
        assert!((number as u64) < NUMBER - 1);
        if 2 * (number + 1) > self.slots.len() {
            let slots = vec![0; SLOTS_MIN.max(2 * self.slots.len())];
            let taken = std::mem::replace(&mut self.slots, slots);
            taken.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.put(slot));
        }
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.put(hash | (number as u64 + 1));
        number
    }

    /// Iterates over the places where a key of the hash may be, in order.
    fn probe(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        let first = (hash >> 32) as usize;
        (0..=mask).map(move |step| (first + step) & mask)
    }

    fn put(&mut self, slot: u64) {
        let free = self.probe(slot).find(|at| self.slots[*at] == 0);
        if let Some(at) = free {
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use stdx::prng::Prng;

    use super::*;

    #[test]
    fn a_key_has_one_number_and_a_number_one_key() {
        let (mut table, mut known, mut prng) = (KeyTable::default(), HashMap::new(), Prng::new(7));
        assert_eq!(table.find(b""), None);
        for _ in 0..20_000 {
            let length = (prng.next_u64() % 4) as usize;
            let key = prng.next_u64().to_le_bytes()[..length].to_vec();
            assert_eq!(table.find(&key), known.get(&key).copied());
            if let Err(hash) = table.search(&key) {
                assert_eq!(table.add(&key, hash), known.len());
                known.insert(key, known.len());
            }
        }
        assert_eq!(table.len(), known.len());
        assert!(known.len() > 1000);
        assert!(known.iter().all(|(key, number)| table.get(*number) == key));
    }
}
