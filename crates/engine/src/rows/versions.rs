//! The version store: older versions of rows, for snapshots that must not see the newest.
//!
//! The newest version is in the tree, behind eight bytes that name its creator. A transaction that changes a row for the first time puts the version that it
//! finds here, under the latch of the row's leaf. So a reader of the new version finds the one before (EN-13). Nothing of this is durable; after a crash there
//! are no snapshots.

use std::collections::HashMap;
use std::sync::Arc;

use pager::TxnId;
use stdx::hash::Seed;
use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Mutex, RwLock};

use crate::error::Result;
use crate::rows::row::RowHead;
use crate::rows::run::{Runs, UndoRun};
use crate::store::trees::MapId;

const SHARDS: usize = 64;
/// Approximate memory of an image beside its bytes.
const OVERHEAD: usize = 96;

/// A version that has been replaced.
struct OldVersion {
    map: MapId,
    key: Box<[u8]>,
    /// The transaction that replaced it.
    by: TxnId,
    record: Box<[u8]>,
}

impl OldVersion {
    fn is_of(&self, map: MapId, key: &[u8]) -> bool {
        self.map == map && *self.key == *key
    }
}

/// Versions that were replaced by transactions with ids of a range, in a run.
pub(crate) struct VersionBatch {
    pub first: TxnId,
    pub last: TxnId,
    pub run: UndoRun,
}

impl VersionBatch {
    /// Returns true if it may hold versions that `by` has replaced.
    pub fn may_be_of(&self, by: TxnId) -> bool {
        (self.first..=self.last).contains(&by)
    }
}

/// By the row's hash.
type VersionShard = Mutex<HashMap<u64, Vec<OldVersion>, Seed>>;

pub(crate) struct VersionStore {
    shards: Box<[VersionShard]>,
    seed: Seed,
    bytes: AtomicU64,
    /// Runs of transactions that wrote out their versions (EN-29).
    runs: RwLock<HashMap<TxnId, Runs>>,
    /// Batches of versions that the background thread wrote out (EN-36), about in the order of commits.
    batches: RwLock<Vec<Arc<VersionBatch>>>,
    /// Number of runs and batches.
    run_count: AtomicU64,
    file_bytes: AtomicU64,
}

impl Default for VersionStore {
    fn default() -> Self {
        VersionStore::new(Seed::default())
    }
}

fn cost(key: &[u8], record: &[u8]) -> u64 {
    (key.len() + record.len() + OVERHEAD) as u64
}

impl VersionStore {
    /// Creates a store. `seed` is that of runs that are already written.
    pub fn new(seed: Seed) -> VersionStore {
        VersionStore {
            shards: (0..SHARDS).map(|_| Mutex::new(HashMap::with_hasher(seed))).collect(),
            seed,
            bytes: AtomicU64::new(0),
            runs: RwLock::default(),
            batches: RwLock::default(),
            run_count: AtomicU64::new(0),
            file_bytes: AtomicU64::new(0),
        }
    }

    /// Returns the hash of a row, and its shard.
    fn place(&self, map: MapId, key: &[u8]) -> (u64, &VersionShard) {
        let hash = self.seed.within(map.into(), key);
        // Other bits than those that the shard's table uses.
        (hash, &self.shards[(hash >> 40) as usize % SHARDS])
    }

    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Makes the versions in the runs of `by` findable.
    pub fn publish(&self, by: TxnId, runs: &Runs) {
        if self.runs.write().insert(by, runs.clone()).is_none() {
            self.run_count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Removes the runs of `by`, which no reader needs any more.
    pub fn withdraw(&self, by: TxnId) {
        if self.run_count.load(Ordering::SeqCst) > 0 && self.runs.write().remove(&by).is_some() {
            self.run_count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Makes the versions in a batch findable.
    pub fn publish_batch(&self, batch: &Arc<VersionBatch>) {
        self.file_bytes.fetch_add(batch.run.bytes(), Ordering::Relaxed);
        self.batches.write().push(batch.clone());
        self.run_count.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes a batch that no reader needs any more.
    pub fn withdraw_batch(&self, batch: &Arc<VersionBatch>) {
        let mut batches = self.batches.write();
        let Some(at) = batches.iter().position(|known| Arc::ptr_eq(known, batch)) else { return };
        batches.remove(at);
        self.run_count.fetch_sub(1, Ordering::SeqCst);
        self.file_bytes.fetch_sub(batch.run.bytes(), Ordering::Relaxed);
    }

    /// Returns the bytes of files that old versions of committed transactions take.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// Returns the approximate memory of the version of a row that `by` has replaced; 0 if it is not in memory.
    pub fn size_of(&self, map: MapId, key: &[u8], by: TxnId) -> u64 {
        self.in_memory(map, key, by, |old| cost(&old.key, &old.record)).unwrap_or(0)
    }

    /// Returns the version of a row that `by` has replaced, if it is in memory.
    pub fn image(&self, map: MapId, key: &[u8], by: TxnId) -> Option<Box<[u8]>> {
        self.in_memory(map, key, by, |old| old.record.clone())
    }

    fn in_memory<T>(&self, map: MapId, key: &[u8], by: TxnId, read: impl FnOnce(&OldVersion) -> T) -> Option<T> {
        let (hash, shard) = self.place(map, key);
        let shard = shard.lock();
        let mut olds = shard.get(&hash).into_iter().flatten();
        olds.find(|old| old.by == by && old.is_of(map, key)).map(read)
    }

    /// Returns the approximate memory that old versions take.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds `record`, which `by` replaces. Called under the latch of the row's leaf.
    pub fn push(&self, map: MapId, key: &[u8], by: TxnId, record: &[u8]) {
        self.bytes.fetch_add(cost(key, record), Ordering::Relaxed);
        let old = OldVersion { map, key: key.into(), by, record: record.into() };
        let (hash, shard) = self.place(map, key);
        shard.lock().entry(hash).or_default().push(old);
    }

    /// Returns the newest version before that of `creator` which `sees` accepts, as a record.
    ///
    /// Each step goes from a version to the one that it replaced. A transaction that is rolled back meanwhile leaves no step.
    pub fn find(
        &self,
        map: MapId,
        key: &[u8],
        creator: TxnId,
        sees: impl Fn(TxnId) -> bool,
    ) -> Result<Option<Vec<u8>>> {
        let mut by = creator;
        loop {
            let Some(record) = self.replaced(map, key, by)? else { return Ok(None) };
            by = RowHead::parse(&record)?.0.creator;
            if sees(by) {
                return Ok(Some(record));
            }
        }
    }

    /// Returns the version that `by` has replaced.
    pub fn replaced(&self, map: MapId, key: &[u8], by: TxnId) -> Result<Option<Vec<u8>>> {
        if let Some(record) = self.in_memory(map, key, by, |old| old.record.to_vec()) {
            return Ok(Some(record));
        }
        if self.run_count.load(Ordering::SeqCst) == 0 {
            return Ok(None);
        }
        let hash = self.place(map, key).0;
        let batches: Vec<Arc<VersionBatch>> =
            self.batches.read().iter().filter(|batch| batch.may_be_of(by)).cloned().collect();
        for batch in batches {
            if let Some(record) = batch.run.version(map, key, hash, by)? {
                return Ok(Some(record));
            }
        }
        let Some(runs) = self.runs.read().get(&by).cloned() else { return Ok(None) };
        let runs = runs.read().clone();
        for run in runs {
            if let Some(record) = run.version(map, key, hash, by)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Removes the version that `by` has replaced.
    pub fn remove(&self, map: MapId, key: &[u8], by: TxnId) {
        let (hash, shard) = self.place(map, key);
        let mut shard = shard.lock();
        let Some(olds) = shard.get_mut(&hash) else { return };
        olds.retain(|old| {
            let goes = old.by == by && old.is_of(map, key);
            if goes {
                self.bytes.fetch_sub(cost(key, &old.record), Ordering::Relaxed);
            }
            !goes
        });
        if olds.is_empty() {
            shard.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(writer: TxnId, is_delete_marked: bool, value: &[u8]) -> Vec<u8> {
        [
            &RowHead { creator: writer, is_delete_marked, is_long: false, is_new_row: false, keeps_key: false }.bytes(),
            value,
        ]
        .concat()
    }

    #[test]
    fn the_newest_version_that_may_be_seen_is_found() {
        let versions = VersionStore::default();
        versions.push(7, b"k", 20, &record(10, false, b"first"));
        versions.push(7, b"k", 30, &record(20, true, b""));
        let find = |limit: TxnId| versions.find(7, b"k", 30, |writer| writer <= limit).unwrap();
        assert_eq!(find(5), None);
        assert_eq!(RowHead::parse(&find(15).unwrap()).unwrap().1, b"first");
        assert!(RowHead::parse(&find(25).unwrap()).unwrap().0.is_delete_marked);
        assert_eq!(versions.find(8, b"k", 30, |_| true).unwrap(), None);
        assert_eq!(versions.find(7, b"k", 40, |_| true).unwrap(), None, "40 has been taken back and leads nowhere");
        versions.remove(7, b"k", 20);
        assert_eq!(find(15), None);
        versions.remove(7, b"k", 30);
        assert_eq!(versions.bytes(), 0);
        assert!(RowHead::parse(b"short").is_err());
    }
}
