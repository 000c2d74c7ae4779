//! What clients have sent and name by a digest: one cache for the whole server, in shards, each of which forgets what has not been asked for longest.
//!
//! In front of it stands a table for each thread, with copies: otherwise its locks, and the counts of what it hands out, would go from processor to processor with each request. Whenever a digest comes
//! to stand for something, `meanings` moves, and copies from before are not found any more.
//!
//! Whoever sends text with a digest decides what the digest stands for, for everybody: as in the server that this protocol comes from. A digest reaches what it names through the rights of who asks.

use std::hash::BuildHasher;
use std::sync::Arc;

use stdx::cache::ShardedCache;
use stdx::counter::Counter;
use stdx::hash::{Map, Seed};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

/// So many copies are kept for a thread, of those that were asked for last.
const NEAR: usize = 512;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub entries: usize,
    pub shards: usize,
    /// What is longer is executed and not kept.
    pub bytes_max: usize,
}

pub struct Digests {
    shards: Box<[Mutex<Shard>]>,
    /// Clients choose digests, and could choose them all for one shard.
    hasher: Seed,
    shard_entries: usize,
    bytes_max: usize,
    /// By the number of `meanings` and the digest.
    near: ShardedCache<Arc<[u8]>>,
    meanings: AtomicU64,
    pub hits: Counter,
    pub misses: Counter,
    pub evicted: Counter,
}

#[derive(Default)]
struct Shard {
    kept: Map<Box<[u8]>, Kept>,
    /// Moves with each look.
    now: u64,
}

struct Kept {
    bytes: Arc<[u8]>,
    used: u64,
}

impl Digests {
    pub fn new(limits: Limits) -> Digests {
        let count = limits.shards.max(1);
        Digests {
            shards: (0..count).map(|_| Mutex::default()).collect(),
            hasher: Seed::default(),
            shard_entries: limits.entries.div_ceil(count).max(1),
            bytes_max: limits.bytes_max,
            near: ShardedCache::new(NEAR.min(limits.entries.max(1))),
            meanings: AtomicU64::new(0),
            hits: Counter::default(),
            misses: Counter::default(),
            evicted: Counter::default(),
        }
    }

    fn shard(&self, digest: &[u8]) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(digest) as usize % self.shards.len()]
    }

    pub fn get(&self, digest: &[u8]) -> Option<Arc<[u8]>> {
        // Before the look at what all share: what is put in afterwards moves it.
        let meanings = self.meanings.load(Ordering::Acquire);
        let found = self.near.get(meanings, digest).or_else(|| {
            let copy: Arc<[u8]> = (*self.shared(digest)?).into();
            self.near.insert(meanings, digest, copy.clone());
            Some(copy)
        });
        if found.is_some() {
            self.hits.add(1)
        } else {
            self.misses.add(1)
        }
        found
    }

    fn shared(&self, digest: &[u8]) -> Option<Arc<[u8]>> {
        let mut shard = self.shard(digest).lock();
        shard.now += 1;
        let now = shard.now;
        let kept = shard.kept.get_mut(digest)?;
        kept.used = now;
        Some(kept.bytes.clone())
    }

    /// From here on the digest stands for these bytes. Returns them as they are kept.
    pub fn keep(&self, digest: &[u8], bytes: &[u8]) -> Arc<[u8]> {
        if bytes.len() > self.bytes_max || digest.len() > self.bytes_max {
            return bytes.into();
        }
        let mut shard = self.shard(digest).lock();
        shard.now += 1;
        let used = shard.now;
        if let Some(kept) = shard.kept.get_mut(digest) {
            kept.used = used;
            if *kept.bytes != *bytes {
                kept.bytes = bytes.into();
                self.meanings.fetch_add(1, Ordering::Release);
            }
            return kept.bytes.clone();
        }
        if shard.kept.len() >= self.shard_entries {
            let oldest = shard.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(digest, _)| digest.clone());
            if let Some(oldest) = oldest {
                shard.kept.remove(&oldest);
                self.evicted.add(1);
            }
        }
        let bytes: Arc<[u8]> = bytes.into();
        shard.kept.insert(digest.into(), Kept { bytes: bytes.clone(), used });
        self.meanings.fetch_add(1, Ordering::Release);
        bytes
    }

    /// How many are known.
    pub fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().kept.len()).sum()
    }

    pub fn clear(&self) {
        self.shards.iter().for_each(|shard| shard.lock().kept.clear());
        self.meanings.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(entries: usize, shards: usize) -> Digests {
        Digests::new(Limits { entries, shards, bytes_max: 10 })
    }

    #[test]
    fn what_was_sent_last_is_what_a_digest_stands_for() {
        let digests = digests(8, 2);
        assert_eq!(digests.get(b"d"), None);
        digests.keep(b"d", b"one");
        digests.keep(b"d", b"two");
        assert_eq!(digests.get(b"d").as_deref(), Some(&b"two"[..]));
        digests.keep(b"long", b"eleven bytes");
        assert_eq!((digests.get(b"long"), digests.count()), (None, 1));
        assert_eq!((digests.hits.get(), digests.misses.get(), digests.evicted.get()), (1, 2, 0));
        digests.clear();
        assert_eq!(digests.count(), 0);
    }

    #[test]
    fn a_shard_forgets_what_was_not_asked_for_longest() {
        let digests = digests(3, 1);
        for name in [b"a", b"b", b"c"] {
            digests.keep(name, name);
        }
        digests.get(b"a");
        digests.keep(b"d", b"d");
        assert_eq!(digests.get(b"b"), None);
        assert!([b"a", b"c", b"d"].iter().all(|name| digests.get(*name).is_some()));
        assert_eq!(digests.evicted.get(), 1);
    }

    #[test]
    fn copies_at_hand_stand_for_nothing_old() {
        let digests = digests(2, 1);
        digests.keep(b"d", b"one");
        assert_eq!(digests.get(b"d").as_deref(), Some(&b"one"[..]));
        digests.keep(b"d", b"two");
        assert_eq!(digests.get(b"d").as_deref(), Some(&b"two"[..]));
        // Forgotten by those who come, taken up again as another.
        digests.keep(b"e", b"e");
        digests.keep(b"f", b"f");
        assert_eq!(digests.get(b"d"), None);
        digests.keep(b"d", b"three");
        assert_eq!(digests.get(b"d").as_deref(), Some(&b"three"[..]));
        digests.clear();
        assert_eq!(digests.get(b"d"), None);
    }

    #[test]
    fn a_flood_takes_no_more_than_there_is_room_for() {
        let digests = digests(64, 16);
        (0..10_000u32).for_each(|number| drop(digests.keep(&number.to_le_bytes(), b"x")));
        assert!(digests.count() <= 64);
        assert!(digests.evicted.get() >= 9_936);
    }
}
