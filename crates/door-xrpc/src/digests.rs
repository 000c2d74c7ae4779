//! The digest cache: statements and plans that clients have sent and refer to by a digest. There is one cache for the whole server, in shards; each shard
//! evicts the entry that has been unused the longest.
//!
//! In front of it each thread has a table of copies. Without it the shards' locks and the reference counts of entries would move between processors with each
//! request. Whenever a digest gets a meaning, `meanings` is incremented, and older copies are no longer found.
//!
//! A client that sends text with a digest defines the digest for all clients, as in the server that this protocol comes from. The text is executed with the
//! privileges of the client that refers to it.

use std::hash::BuildHasher;
use std::sync::Arc;

use stdx::cache::ShardedCache;
use stdx::counter::Counter;
use stdx::hash::{Map, Seed};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

/// Copies kept for each thread: the most recently used.
const NEAR: usize = 512;

/// The limits of the cache.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub entries: usize,
    pub shards: usize,
    /// Longer texts are executed and not cached.
    pub bytes_max: usize,
}

pub struct Digests {
    shards: Box<[Mutex<Shard>]>,
    /// A random hash seed: clients choose digests, and could otherwise choose them all for one shard.
    hasher: Seed,
    shard_entries: usize,
    bytes_max: usize,
    /// The threads' copies, by `meanings` and digest.
    near: ShardedCache<Arc<[u8]>>,
    meanings: AtomicU64,
    pub hits: Counter,
    pub misses: Counter,
    pub evicted: Counter,
}

/// The bytes that a digest stood for when it was looked up, for code that keeps what it has made of them.
pub struct Meaning {
    bytes: Arc<[u8]>,
    /// The value of `Digests::meanings` at which this was right.
    confirmed: AtomicU64,
}

impl Meaning {
    /// Makes the meaning of bytes for which no digest stands.
    pub fn unnamed(bytes: &[u8]) -> Meaning {
        Meaning { bytes: bytes.into(), confirmed: AtomicU64::new(u64::MAX) }
    }

    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }
}

#[derive(Default)]
struct Shard {
    kept: Map<Box<[u8]>, Kept>,
    /// Incremented with each lookup.
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
        self.find(digest).map(|meaning| meaning.bytes)
    }

    /// Does the same as `get`, and returns the bytes as a meaning that `confirms` can check.
    pub fn find(&self, digest: &[u8]) -> Option<Meaning> {
        let found = self.look_up(digest);
        if found.is_some() {
            self.hits.add(1)
        } else {
            self.misses.add(1)
        }
        found
    }

    /// Returns whether the digest still stands for these bytes. Mostly it compares two numbers: as long as no digest gets another meaning.
    pub fn confirms(&self, digest: &[u8], meaning: &Meaning) -> bool {
        let is_same = self.meanings.load(Ordering::Acquire) == meaning.confirmed.load(Ordering::Relaxed)
            || self.look_up(digest).is_some_and(|found| {
                let is_same = Arc::ptr_eq(&found.bytes, &meaning.bytes) || found.bytes == meaning.bytes;
                if is_same {
                    meaning.confirmed.store(found.confirmed.into_inner(), Ordering::Relaxed);
                }
                is_same
            });
        self.hits.add(is_same.into());
        is_same
    }

    fn look_up(&self, digest: &[u8]) -> Option<Meaning> {
        // `meanings` is read before the shared table: an entry that is inserted afterwards increments it.
        let meanings = self.meanings.load(Ordering::Acquire);
        let found = self.near.get(meanings, digest).or_else(|| {
            let copy: Arc<[u8]> = (*self.shared(digest)?).into();
            self.near.insert(meanings, digest, copy.clone());
            Some(copy)
        });
        found.map(|bytes| Meaning { bytes, confirmed: AtomicU64::new(meanings) })
    }

    fn shared(&self, digest: &[u8]) -> Option<Arc<[u8]>> {
        let mut shard = self.shard(digest).lock();
        shard.now += 1;
        let now = shard.now;
        let kept = shard.kept.get_mut(digest)?;
        kept.used = now;
        Some(kept.bytes.clone())
    }

    /// Defines the digest and returns its meaning.
    pub fn keep(&self, digest: &[u8], bytes: &[u8]) -> Meaning {
        if bytes.len() > self.bytes_max || digest.len() > self.bytes_max {
            return Meaning::unnamed(bytes);
        }
        // Read before the entry may change, as in `look_up`.
        let confirmed = AtomicU64::new(self.meanings.load(Ordering::Acquire));
        let mut shard = self.shard(digest).lock();
        shard.now += 1;
        let used = shard.now;
        if let Some(kept) = shard.kept.get_mut(digest) {
            kept.used = used;
            if *kept.bytes != *bytes {
                kept.bytes = bytes.into();
                self.meanings.fetch_add(1, Ordering::Release);
            }
            return Meaning { bytes: kept.bytes.clone(), confirmed };
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
        Meaning { bytes, confirmed }
    }

    /// Returns the number of entries.
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
        // Evicted by later entries, then defined again with another text.
        digests.keep(b"e", b"e");
        digests.keep(b"f", b"f");
        assert_eq!(digests.get(b"d"), None);
        digests.keep(b"d", b"three");
        assert_eq!(digests.get(b"d").as_deref(), Some(&b"three"[..]));
        digests.clear();
        assert_eq!(digests.get(b"d"), None);
    }

    #[test]
    fn a_meaning_is_confirmed_until_the_digest_stands_for_something_else() {
        let digests = digests(2, 1);
        digests.keep(b"d", b"one");
        let meaning = digests.find(b"d").unwrap();
        assert!(digests.confirms(b"d", &meaning));
        digests.keep(b"e", b"other");
        assert!(digests.confirms(b"d", &meaning) && digests.confirms(b"d", &meaning), "after another digest's change");
        digests.keep(b"d", b"two");
        assert!(!digests.confirms(b"d", &meaning));
        digests.keep(b"d", b"one");
        assert!(digests.confirms(b"d", &meaning));
        digests.clear();
        assert!(!digests.confirms(b"d", &meaning));
        assert_eq!(
            (digests.hits.get(), digests.misses.get()),
            (5, 0),
            "an entry that is not confirmed is looked up next"
        );
    }

    #[test]
    fn a_flood_takes_no_more_than_there_is_room_for() {
        let digests = digests(64, 16);
        (0..10_000u32).for_each(|number| drop(digests.keep(&number.to_le_bytes(), b"x")));
        assert!(digests.count() <= 64);
        assert!(digests.evicted.get() >= 9_936);
    }
}
