//! What rows looked like before: images in memory, for snapshots that must not see the newest.
//!
//! The newest version stands in the tree, behind eight bytes that say who wrote it. A transaction that changes a row it has not written puts what it finds
//! here, under the latch of the row's leaf: whoever reads the new version finds the one before (EN-13). Nothing of this is durable; after a crash there are no snapshots.

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
/// What an image costs beside its bytes, about.
const OVERHEAD: usize = 96;

/// A version that another one has replaced.
struct OldVersion {
    map: MapId,
    key: Box<[u8]>,
    /// Who replaced it.
    by: TxnId,
    record: Box<[u8]>,
}

impl OldVersion {
    fn is_of(&self, map: MapId, key: &[u8]) -> bool {
        self.map == map && *self.key == *key
    }
}

/// VersionStore that transactions with ids of a range have replaced.
pub(crate) struct VersionBatch {
    pub first: TxnId,
    pub last: TxnId,
    pub run: UndoRun,
}

impl VersionBatch {
    /// May it hold versions that `by` has replaced?
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
    /// What transactions have written out (EN-29), and how many they are.
    runs: RwLock<HashMap<TxnId, Runs>>,
    /// What committed transactions have replaced and the background has written out (EN-36), about in the order of commits.
    batches: RwLock<Vec<Arc<VersionBatch>>>,
    /// Runs and batches.
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
    /// `seed`: that of runs which are already written.
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

    /// The hash of a row, and its shard.
    fn place(&self, map: MapId, key: &[u8]) -> (u64, &VersionShard) {
        let hash = self.seed.within(map.into(), key);
        // Other bits than those that the shard's table goes by.
        (hash, &self.shards[(hash >> 40) as usize % SHARDS])
    }

    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// What `by` has replaced is found in its runs too.
    pub fn publish(&self, by: TxnId, runs: &Runs) {
        if self.runs.write().insert(by, runs.clone()).is_none() {
            self.run_count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Nobody needs the runs of `by` any more.
    pub fn withdraw(&self, by: TxnId) {
        if self.run_count.load(Ordering::SeqCst) > 0 && self.runs.write().remove(&by).is_some() {
            self.run_count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// What the batch's transactions have replaced is found in its run too.
    pub fn publish_batch(&self, batch: &Arc<VersionBatch>) {
        self.file_bytes.fetch_add(batch.run.bytes(), Ordering::Relaxed);
        self.batches.write().push(batch.clone());
        self.run_count.fetch_add(1, Ordering::SeqCst);
    }

    /// Nobody needs the batch any more.
    pub fn withdraw_batch(&self, batch: &Arc<VersionBatch>) {
        let mut batches = self.batches.write();
        let Some(at) = batches.iter().position(|known| Arc::ptr_eq(known, batch)) else { return };
        batches.remove(at);
        self.run_count.fetch_sub(1, Ordering::SeqCst);
        self.file_bytes.fetch_sub(batch.run.bytes(), Ordering::Relaxed);
    }

    /// Bytes of files that old versions of committed transactions take.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// Memory that what `by` has replaced of a row takes, about; 0: it is not in memory.
    pub fn size_of(&self, map: MapId, key: &[u8], by: TxnId) -> u64 {
        self.in_memory(map, key, by, |old| cost(&old.key, &old.record)).unwrap_or(0)
    }

    /// The version of a row that `by` has replaced, if it is in memory.
    pub fn image(&self, map: MapId, key: &[u8], by: TxnId) -> Option<Box<[u8]>> {
        self.in_memory(map, key, by, |old| old.record.clone())
    }

    fn in_memory<T>(&self, map: MapId, key: &[u8], by: TxnId, read: impl FnOnce(&OldVersion) -> T) -> Option<T> {
        let (hash, shard) = self.place(map, key);
        let shard = shard.lock();
        let mut olds = shard.get(&hash).into_iter().flatten();
        olds.find(|old| old.by == by && old.is_of(map, key)).map(read)
    }

    /// Memory that old versions take, about.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// `by` replaces `record`. Called under the latch of the row's leaf.
    pub fn push(&self, map: MapId, key: &[u8], by: TxnId, record: &[u8]) {
        self.bytes.fetch_add(cost(key, record), Ordering::Relaxed);
        let old = OldVersion { map, key: key.into(), by, record: record.into() };
        let (hash, shard) = self.place(map, key);
        shard.lock().entry(hash).or_default().push(old);
    }

    /// The newest version before that of `writer` which `sees` accepts, as a record.
    ///
    /// Each step goes from a version to the one it replaced. Whoever is taken back meanwhile leaves no step, and what lies further back is not what he had replaced.
    pub fn find(&self, map: MapId, key: &[u8], writer: TxnId, sees: impl Fn(TxnId) -> bool) -> Result<Option<Vec<u8>>> {
        let mut by = writer;
        loop {
            let Some(record) = self.replaced(map, key, by)? else { return Ok(None) };
            by = RowHead::parse(&record)?.0.writer;
            if sees(by) {
                return Ok(Some(record));
            }
        }
    }

    /// What `by` has replaced.
    fn replaced(&self, map: MapId, key: &[u8], by: TxnId) -> Result<Option<Vec<u8>>> {
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

    /// Forgets what `by` replaced.
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
        [&RowHead { writer, is_delete_marked, is_long: false }.bytes(), value].concat()
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
