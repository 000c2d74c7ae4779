//! The version store: older versions of rows, for snapshots that must not see the newest.
//!
//! The newest version is in the tree, behind eight bytes that name its creator. A transaction that changes a row for the first time puts the version that it
//! finds here, under the latch of the row's leaf. So a reader of the new version finds the one before (EN-13). Nothing of this is durable; after a crash there
//! are no snapshots.
//!
//! ```text
//!   in the tree      replaced, newest first: each names its creator, and is found by the transaction that replaced it
//!   v9 (by T9)  ──►  v8 (by T8)  ──►  v7  ──►  v6  ──►  v5  ──►  v4  ──►  v3  ──►  v2  ──►  v1        a step
//!                          └───────────────────► v5 ───────────────────► v2                          jumps
//! ```
//! Snapshots keep all versions of a row that is changed again and again, perhaps by thousands of sessions that wait for it. So a version also has a jump over
//! many older ones, as in Myers' "An applicative random-access stack" (1983), and a reader reaches any of n versions in about 2 log n steps (EN-99). Versions
//! that have left memory for a file are passed one by one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroU64;
use std::sync::Arc;

use pager::TxnId;
use stdx::hash::Seed;
use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Mutex, RwLock};

use crate::error::Result;
use crate::rows::row::RowHead;
use crate::rows::run::{Runs, UndoRun, version_hash};
use crate::store::trees::MapId;

const SHARDS: usize = 64;
/// Approximate memory of an image beside its bytes.
const OVERHEAD: usize = 128;

/// A version that has been replaced.
struct OldVersion {
    map: MapId,
    key: Box<[u8]>,
    /// The transaction that replaced it.
    by: TxnId,
    record: Box<[u8]>,
    jump: Jump,
}

impl OldVersion {
    fn is(&self, map: MapId, key: &[u8], by: TxnId) -> bool {
        self.by == by && self.map == map && *self.key == *key
    }
}

/// A way from one version of a row to an older one, past those in between.
#[derive(Clone, Copy)]
struct Jump {
    /// The creator of the version that it leads to.
    to: TxnId,
    /// Number of versions that it passes, that one included.
    span: u32,
    /// The transaction that replaced the oldest of them which ends a row (`RowHead::ends_row`).
    end: Option<NonZeroU64>,
}

impl Jump {
    /// Returns the jump over the one version that `by` replaces.
    fn step(head: RowHead, by: TxnId) -> Jump {
        Jump { to: head.creator, span: 1, end: NonZeroU64::new(by).filter(|_| head.ends_row()) }
    }

    /// Joins jumps that follow one another.
    fn join(self, next: Jump) -> Jump {
        Jump { to: next.to, span: self.span.saturating_add(next.span), end: next.end.or(self.end) }
    }
}

/// Where a way down the versions of a row has led (`VersionStore::descend`).
pub(crate) struct Descent {
    /// The version that was looked for, as a record; `None` if there is none.
    pub found: Option<Vec<u8>>,
    /// The transaction that replaced the oldest of the versions passed which ends a row.
    pub end: Option<TxnId>,
    /// Number of versions that were looked at.
    pub steps: u64,
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

/// By `version_hash`.
type Versions = HashMap<u64, Vec<OldVersion>, Seed>;
type VersionShard = Mutex<Versions>;

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
        shard.get(&version_hash(hash, by))?.iter().find(|old| old.is(map, key, by)).map(read)
    }

    /// Returns the approximate memory that old versions take.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds `record`, which `by` replaces. Called under the latch of the row's leaf. Fails if it is not the record of a row.
    pub fn push(&self, map: MapId, key: &[u8], by: TxnId, record: &[u8]) -> Result<()> {
        let step = Jump::step(RowHead::parse(record)?.0, by);
        self.bytes.fetch_add(cost(key, record), Ordering::Relaxed);
        let (hash, shard) = self.place(map, key);
        let mut shard = shard.lock();
        let jump = Self::jump_over(&shard, (map, key, hash), step);
        let old = OldVersion { map, key: key.into(), by, record: record.into(), jump };
        shard.entry(version_hash(hash, by)).or_insert_with(|| Vec::with_capacity(1)).push(old);
        Ok(())
    }

    /// Returns the jump of a new version: over the next two jumps if these are equally long, otherwise a step. So the jumps are as the digits of a skew-binary
    /// number, and few of them lead from any version to any older one.
    fn jump_over(shard: &Versions, (map, key, hash): (MapId, &[u8], u64), step: Jump) -> Jump {
        let jump_of = |by: TxnId| {
            let olds = shard.get(&version_hash(hash, by))?;
            olds.iter().find(|old| old.is(map, key, by)).map(|old| old.jump)
        };
        let Some(first) = jump_of(step.to) else { return step };
        match jump_of(first.to) {
            Some(second) if second.span == first.span => step.join(first).join(second),
            _ => step,
        }
    }

    /// Goes from the version of `creator` down to the newest older one which `stops` accepts.
    ///
    /// `stops` is given the creators of versions, and accepts all that are older than one that it accepts. A transaction that is rolled back meanwhile leaves no
    /// way down.
    pub fn descend(&self, map: MapId, key: &[u8], creator: TxnId, stops: impl Fn(TxnId) -> bool) -> Result<Descent> {
        let (mut at, mut way) = (creator, Descent { found: None, end: None, steps: 0 });
        let mut record = Vec::new();
        loop {
            way.steps += 1;
            record.clear();
            let in_memory = self.in_memory(map, key, at, |old| {
                record.extend_from_slice(&old.record);
                old.jump
            });
            if in_memory.is_none() {
                match self.in_files(map, key, at)? {
                    Some(replaced) => record = replaced,
                    None => return Ok(way),
                }
            }
            let head = RowHead::parse(&record)?.0;
            if stops(head.creator) {
                way.found = Some(record);
                return Ok(way);
            }
            let is_passed = |jump: &Jump| jump.span > 1 && !stops(jump.to);
            let Jump { to, end, .. } = in_memory.filter(is_passed).unwrap_or(Jump::step(head, at));
            way.end = end.map(NonZeroU64::get).or(way.end);
            at = to;
        }
    }

    /// Returns the version that `by` has replaced.
    pub fn replaced(&self, map: MapId, key: &[u8], by: TxnId) -> Result<Option<Vec<u8>>> {
        match self.in_memory(map, key, by, |old| old.record.to_vec()) {
            Some(record) => Ok(Some(record)),
            None => self.in_files(map, key, by),
        }
    }

    /// Does the same where it is not in memory.
    fn in_files(&self, map: MapId, key: &[u8], by: TxnId) -> Result<Option<Vec<u8>>> {
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
        let Entry::Occupied(mut olds) = shard.entry(version_hash(hash, by)) else { return };
        olds.get_mut().retain(|old| {
            let goes = old.is(map, key, by);
            if goes {
                self.bytes.fetch_sub(cost(key, &old.record), Ordering::Relaxed);
            }
            !goes
        });
        if olds.get().is_empty() {
            olds.remove();
        }
    }
}

#[cfg(test)]
mod tests;
