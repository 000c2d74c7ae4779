//! What clients have sent and name by a digest: one cache for the whole server, in shards, each of which forgets what has not been asked for longest.
//!
//! Whoever sends text with a digest decides what the digest stands for, for everybody: as in the server that this protocol comes from. A digest reaches what it names through the rights of who asks.

use std::hash::BuildHasher;
use std::sync::Arc;

use stdx::counter::Counter;
use stdx::hash::{Map, Seed};
use stdx::sync::Mutex;

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
            hits: Counter::default(),
            misses: Counter::default(),
            evicted: Counter::default(),
        }
    }

    fn shard(&self, digest: &[u8]) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(digest) as usize % self.shards.len()]
    }

    pub fn get(&self, digest: &[u8]) -> Option<Arc<[u8]>> {
        let mut shard = self.shard(digest).lock();
        shard.now += 1;
        let now = shard.now;
        let found = shard.kept.get_mut(digest).map(|kept| {
            kept.used = now;
            kept.bytes.clone()
        });
        drop(shard);
        if found.is_some() {
            self.hits.add(1)
        } else {
            self.misses.add(1)
        }
        found
    }

    /// From here on the digest stands for these bytes. Returns them as they are kept: the same as long as the digest stands for the same.
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
        bytes
    }

    /// How many are known.
    pub fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().kept.len()).sum()
    }

    pub fn clear(&self) {
        self.shards.iter().for_each(|shard| shard.lock().kept.clear());
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
    fn a_flood_takes_no_more_than_there_is_room_for() {
        let digests = digests(64, 16);
        (0..10_000u32).for_each(|number| drop(digests.keep(&number.to_le_bytes(), b"x")));
        assert!(digests.count() <= 64);
        assert!(digests.evicted.get() >= 9_936);
    }
}
