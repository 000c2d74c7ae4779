//! WATCH: the keys that a session watches (`watch_registry`).

use std::sync::Arc;

use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::error::Result;
use crate::keyspace::state::Keyspace;
use crate::keyspace::watch_registry::{Name, Watcher};

struct WatchedKey {
    key: Vec<u8>,
    name: Name,
    /// The expiry time, if the key had not expired when it was watched.
    expire: Option<u64>,
}

/// The keys that a session watches. They are unregistered on drop.
pub struct WatchSet {
    keyspace: Arc<Keyspace>,
    watcher: Arc<Watcher>,
    keys: Vec<WatchedKey>,
}

impl Keyspace {
    /// Returns an empty set of watched keys, for a session to keep.
    pub fn watch_set(self: &Arc<Self>) -> WatchSet {
        WatchSet::new(self.clone())
    }
}

impl WatchSet {
    pub(crate) fn new(keyspace: Arc<Keyspace>) -> WatchSet {
        WatchSet { keyspace, watcher: Arc::new(Watcher { dirty: AtomicBool::new(false) }), keys: Vec::new() }
    }

    /// Watches a key, once.
    pub fn add(&mut self, db: u8, key: &[u8]) -> Result<()> {
        if self.keys.iter().any(|watched| watched.name.0 == db && watched.key == key) {
            return Ok(());
        }
        let (registry, watcher) = (&self.keyspace.watched, &self.watcher);
        let watched = self.keyspace.while_locked(db, key, |suffix, expire, now| {
            let expired = expire.is_some_and(|expire| now > expire);
            registry.add(watcher, (db, suffix.to_vec()), expired);
            WatchedKey { key: key.to_vec(), name: (db, suffix.to_vec()), expire: expire.filter(|_| !expired) }
        })?;
        self.keys.push(watched);
        Ok(())
    }

    /// Runs UNWATCH: forgets all keys and that any of them was touched.
    pub fn clear(&mut self) {
        for key in self.keys.drain(..) {
            self.keyspace.watched.remove(&self.watcher, &key.name);
        }
        self.watcher.dirty.store(false, Ordering::Relaxed);
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the watched keys. EXEC locks them together with its own, so that nothing changes between `dirty` and its commands.
    pub fn keys(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.keys.iter().map(|key| (key.name.0, key.key.as_slice()))
    }

    /// Returns true if a watched key was touched, or has expired by `now_ms`. To be called inside EXEC's transaction.
    pub fn dirty(&self, now_ms: u64) -> bool {
        self.watcher.dirty.load(Ordering::Acquire)
            || self.keys.iter().any(|key| key.expire.is_some_and(|expire| now_ms > expire))
    }
}

impl Drop for WatchSet {
    fn drop(&mut self) {
        self.clear();
    }
}
