//! Caches that evict entries which have not been asked for in a while.
//!
//! A cache has two generations. An insertion or a hit puts the entry into the young one. When the young generation is full it becomes the old one, and the entries of the previous old generation
//! are dropped. So the last `capacity` keys that were asked for are present, there are at most twice as many entries in all (SX-7), and eviction never searches for the oldest entry.

use std::borrow::Borrow;
use std::hash::Hash;

use crate::hash::Map;
use crate::padded::Padded;
use crate::sync::Mutex;
use crate::thread_number;

/// A cache of two generations.
#[derive(Debug)]
pub struct GenerationCache<K, V> {
    young: Map<K, V>,
    old: Map<K, V>,
    capacity: usize,
}

impl<K: Hash + Eq, V: Clone> GenerationCache<K, V> {
    /// Makes a cache that keeps the last `capacity` keys that were asked for, at least one.
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

    /// Inserts or replaces the value of `key`.
    pub fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.capacity && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

/// One `GenerationCache` per thread or per few threads. Neither a cache nor the reference counts of its values move between processors. A thread finds what threads of its own shard have inserted.
/// Keys are bytes within a name space.
pub struct ShardedCache<V> {
    shards: Box<[Padded<Mutex<CacheShard<V>>>]>,
}

const SHARDS_MAX: usize = 64;

struct CacheShard<V> {
    table: GenerationCache<Box<[u8]>, V>,
    /// A buffer in which the key of a lookup is built.
    key: Vec<u8>,
}

impl<V: Clone> ShardedCache<V> {
    /// `capacity` is that of each shard, as in `GenerationCache::new`.
    pub fn new(capacity: usize) -> ShardedCache<V> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let shard = |_| Padded(Mutex::new(CacheShard { table: GenerationCache::new(capacity), key: Vec::new() }));
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

    /// Empties the cache, except for shards that other threads are using right now: a caller that claims memory must not wait for them.
    pub fn clear(&self) {
        for shard in &self.shards {
            let Some(mut shard) = shard.0.try_lock() else { continue };
            let capacity = shard.table.capacity;
            let table = std::mem::replace(&mut shard.table, GenerationCache::new(capacity));
            drop(shard);
            drop(table);
        }
    }

    fn shard(&self) -> &Mutex<CacheShard<V>> {
        &self.shards[thread_number::current() % self.shards.len()].0
    }
}

impl<V> CacheShard<V> {
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
    fn name_spaces_are_separate() {
        let table: ShardedCache<u32> = ShardedCache::new(8);
        table.insert(1, b"key", 10);
        table.insert(2, b"key", 20);
        assert_eq!((table.get(1, b"key"), table.get(2, b"key"), table.get(3, b"key")), (Some(10), Some(20), None));
    }

    #[test]
    fn the_last_keys_stay_and_at_most_twice_as_many_entries() {
        let mut cache: GenerationCache<u32, u32> = GenerationCache::new(4);
        for key in 0..100 {
            cache.insert(key, key * 2);
            assert!(cache.young.len() + cache.old.len() <= 8);
            let last = key.saturating_sub(3);
            assert!((last..=key).all(|known| cache.get(&known) == Some(known * 2)), "after {key}");
        }
        assert_eq!(cache.get(&50), None);
    }

    #[test]
    fn a_key_in_constant_use_is_never_evicted() {
        let mut cache: GenerationCache<Box<str>, u32> = GenerationCache::new(2);
        cache.insert("hot".into(), 1);
        for key in 0..50 {
            cache.insert(key.to_string().into(), key);
            assert_eq!(cache.get("hot"), Some(1));
        }
    }

    #[test]
    fn the_newest_value_wins_whichever_generation_had_the_key() {
        let mut cache: GenerationCache<u32, u32> = GenerationCache::new(2);
        for key in 0..3 {
            cache.insert(key, 0);
        }
        cache.insert(0, 1);
        assert_eq!(cache.get(&0), Some(1));
        for key in 10..20 {
            cache.insert(key, 0);
            assert_eq!(cache.get(&0), Some(1));
        }
    }
}
