//! Tables that forget what has not been asked for in a while.
//!
//! Two generations: what is put in or asked for stands in the younger. When that is full it becomes the older, and what still stood in the older is forgotten. So the last `capacity` that were
//! asked for are there, at most twice as many in all, and nothing is ever searched for the oldest.

use std::borrow::Borrow;
use std::hash::Hash;

use crate::hash::Map;
use crate::padded::Padded;
use crate::sync::Mutex;
use crate::thread_number;

#[derive(Debug)]
pub struct GenerationCache<K, V> {
    young: Map<K, V>,
    old: Map<K, V>,
    capacity: usize,
}

impl<K: Hash + Eq, V: Clone> GenerationCache<K, V> {
    /// `capacity`: so many of those asked for last are kept, one at least.
    pub fn new(capacity: usize) -> GenerationCache<K, V> {
        GenerationCache { young: Map::default(), old: Map::default(), capacity: capacity.max(1) }
    }

    pub fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.insert(key, value.clone());
        Some(value)
    }

    /// In the place of what the key had.
    pub fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.capacity && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

/// A table for each thread, or few of them: neither it nor the counts of who holds what it keeps go from processor to processor. Each finds what its own thread has put in; keys are bytes in one of
/// many spaces.
pub struct ShardedCache<V> {
    shards: Box<[Padded<Mutex<Shard<V>>>]>,
}

const SHARDS_MAX: usize = 64;

struct Shard<V> {
    table: GenerationCache<Box<[u8]>, V>,
    /// Memory for a key.
    key: Vec<u8>,
}

impl<V: Clone> ShardedCache<V> {
    /// `capacity`: of each shard, as of `GenerationCache::new`.
    pub fn new(capacity: usize) -> ShardedCache<V> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let shard = |_| Padded(Mutex::new(Shard { table: GenerationCache::new(capacity), key: Vec::new() }));
        ShardedCache { shards: (0..processors.next_power_of_two().min(SHARDS_MAX)).map(shard).collect() }
    }

    pub fn get(&self, space: u64, key: &[u8]) -> Option<V> {
        let shard = &mut *self.shard().lock();
        shard.put_key(space, key);
        shard.table.get(&shard.key[..])
    }

    pub fn insert(&self, space: u64, key: &[u8], value: V) {
        let shard = &mut *self.shard().lock();
        shard.put_key(space, key);
        shard.table.insert(shard.key.as_slice().into(), value);
    }

    /// Forgets everything but what other threads are looking for right now.
    pub fn clear(&self) {
        for shard in &self.shards {
            let Some(mut shard) = shard.0.try_lock() else { continue };
            let capacity = shard.table.capacity;
            let table = std::mem::replace(&mut shard.table, GenerationCache::new(capacity));
            drop(shard);
            drop(table);
        }
    }

    fn shard(&self) -> &Mutex<Shard<V>> {
        &self.shards[thread_number::current() % self.shards.len()].0
    }
}

impl<V> Shard<V> {
    fn put_key(&mut self, space: u64, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(&space.to_le_bytes());
        self.key.extend_from_slice(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_space_does_not_see_into_another() {
        let table: ShardedCache<u32> = ShardedCache::new(8);
        table.insert(1, b"key", 10);
        table.insert(2, b"key", 20);
        assert_eq!((table.get(1, b"key"), table.get(2, b"key"), table.get(3, b"key")), (Some(10), Some(20), None));
    }

    #[test]
    fn the_last_that_were_asked_for_stay_and_no_more_than_twice_as_many() {
        let mut recent: GenerationCache<u32, u32> = GenerationCache::new(4);
        for key in 0..100 {
            recent.insert(key, key * 2);
            assert!(recent.young.len() + recent.old.len() <= 8);
            let last = key.saturating_sub(3);
            assert!((last..=key).all(|known| recent.get(&known) == Some(known * 2)), "after {key}");
        }
        assert_eq!(recent.get(&50), None);
    }

    #[test]
    fn what_is_asked_for_all_the_time_is_never_forgotten() {
        let mut recent: GenerationCache<Box<str>, u32> = GenerationCache::new(2);
        recent.insert("hot".into(), 1);
        for key in 0..50 {
            recent.insert(key.to_string().into(), key);
            assert_eq!(recent.get("hot"), Some(1));
        }
    }

    #[test]
    fn the_newest_value_counts_whichever_generation_had_the_key() {
        let mut recent: GenerationCache<u32, u32> = GenerationCache::new(2);
        for key in 0..3 {
            recent.insert(key, 0);
        }
        recent.insert(0, 1);
        assert_eq!(recent.get(&0), Some(1));
        for key in 10..20 {
            recent.insert(key, 0);
            assert_eq!(recent.get(&0), Some(1));
        }
    }
}
