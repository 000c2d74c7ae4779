//! The registry of watched keys: which sessions learn that a key was touched.
//!
//! A watched key is registered in one of 64 partitions with the sessions that watch it. A writer looks there only if any key is watched, and marks the watchers
//! while it still holds the key's stripe. Registering takes the same stripe for a moment. So a change either precedes the WATCH, and the client's reads see it,
//! or marks the watcher (EN-5).
//!
//! Expired keys follow Redis 7.0. If a key had expired when it was watched, its later removal is no change for the watcher. If a key expires while it is
//! watched, EXEC treats it as changed, removed or not.

use std::collections::HashMap;
use std::sync::Arc;

use stdx::hash::hash;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const PARTITIONS: usize = 64;

/// A database and the suffix of a tree key.
pub(crate) type Name = (u8, Vec<u8>);

pub(crate) struct Watcher {
    pub dirty: AtomicBool,
}

struct Watched {
    watcher: Arc<Watcher>,
    /// The key existed but had expired when WATCH was called, and has not been removed since.
    expired: bool,
}

/// A change of a key, as far as watchers care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Touch {
    Changed,
    /// The background thread removed the key after its expiry time.
    Expired,
    /// FLUSH or SWAPDB replaced the database's contents. Says whether the key existed before, exists afterwards, and has then expired.
    Replaced {
        before: bool,
        after: bool,
        after_expired: bool,
    },
}

#[derive(Default)]
pub(crate) struct WatchRegistry {
    partitions: Vec<Mutex<HashMap<Name, Vec<Watched>>>>,
    /// Entries in all partitions. Registering holds the key's stripe, so the value is exact for a writer that holds the stripe of its key.
    count: AtomicUsize,
}

impl WatchRegistry {
    pub fn new() -> WatchRegistry {
        WatchRegistry { partitions: (0..PARTITIONS).map(|_| Mutex::default()).collect(), count: AtomicUsize::new(0) }
    }

    fn partition(&self, db: u8, suffix: &[u8]) -> &Mutex<HashMap<Name, Vec<Watched>>> {
        &self.partitions[hash(u64::from(db), suffix) as usize % PARTITIONS]
    }

    pub fn add(&self, watcher: &Arc<Watcher>, name: Name, expired: bool) {
        let mut partition = self.partition(name.0, &name.1).lock();
        partition.entry(name).or_default().push(Watched { watcher: watcher.clone(), expired });
        self.count.fetch_add(1, Ordering::Release);
    }

    pub fn remove(&self, watcher: &Arc<Watcher>, name: &Name) {
        let mut partition = self.partition(name.0, &name.1).lock();
        let Some(list) = partition.get_mut(name) else { return };
        let before = list.len();
        list.retain(|watched| !Arc::ptr_eq(&watched.watcher, watcher));
        self.count.fetch_sub(before - list.len(), Ordering::Release);
        if list.is_empty() {
            partition.remove(name);
        }
    }

    /// Returns true if a writer has to call `touch`. The writer must hold the stripe of its key.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.count.load(Ordering::Acquire) != 0
    }

    /// Marks the watchers of a changed key. The key's stripe must be held.
    pub fn touch(&self, db: u8, suffix: &[u8], touch: Touch) {
        let mut partition = self.partition(db, suffix).lock();
        let Some(list) = partition.get_mut(&(db, suffix.to_vec())) else { return };
        for watched in list {
            if watched.notice(touch) {
                watched.watcher.dirty.store(true, Ordering::Release);
            }
        }
    }

    /// Returns the names of all watched keys of a database.
    pub fn names(&self, db: u8) -> Vec<Vec<u8>> {
        let names = |partition: &Mutex<HashMap<Name, Vec<Watched>>>| {
            partition.lock().keys().filter(|name| name.0 == db).map(|name| name.1.clone()).collect::<Vec<_>>()
        };
        self.partitions.iter().flat_map(names).collect()
    }
}

impl Watched {
    /// Returns true if the change makes the watcher dirty.
    fn notice(&mut self, touch: Touch) -> bool {
        match touch {
            Touch::Changed => true,
            Touch::Expired => !std::mem::take(&mut self.expired),
            Touch::Replaced { before: false, after: false, .. } => false,
            Touch::Replaced { after, after_expired, .. } if self.expired => {
                if !after {
                    self.expired = false;
                }
                after && !after_expired
            }
            Touch::Replaced { before: false, after_expired: true, .. } => {
                self.expired = true;
                false
            }
            Touch::Replaced { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notices(expired: bool, touch: Touch) -> (bool, bool) {
        let mut watched = Watched { watcher: Arc::new(Watcher { dirty: AtomicBool::new(false) }), expired };
        let dirty = watched.notice(touch);
        (dirty, watched.expired)
    }

    #[test]
    fn removal_of_a_key_that_was_expired_when_watched_is_no_change() {
        assert_eq!(notices(false, Touch::Expired), (true, false));
        assert_eq!(notices(true, Touch::Expired), (false, false));
        assert_eq!(notices(true, Touch::Changed), (true, true));
    }

    #[test]
    fn flush_and_swap_follow_the_rules_of_redis() {
        let replaced = |before, after, after_expired| Touch::Replaced { before, after, after_expired };
        assert_eq!(notices(false, replaced(false, false, false)), (false, false));
        assert_eq!(notices(false, replaced(true, false, false)), (true, false));
        assert_eq!(notices(false, replaced(false, true, false)), (true, false));
        assert_eq!(notices(false, replaced(false, true, true)), (false, true));
        assert_eq!(notices(true, replaced(true, false, false)), (false, false));
        assert_eq!(notices(true, replaced(true, true, true)), (false, true));
        assert_eq!(notices(true, replaced(true, true, false)), (true, true));
    }
}
