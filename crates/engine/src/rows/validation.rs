//! Validation of a serializable transaction's reads at its commit (optimistic concurrency control over a snapshot).
//!
//! ```text
//!   reads        the snapshot's; each is noted in the read set (`read_set`)
//!   commit       validate ─► serial mutex ─► validate again the maps with a serializable commit since ─► COMMIT ─► count the commit at its maps ─► release
//! ```
//! Hard part: between validation and COMMIT no other serializable transaction may commit a change of what was read. The scan of a large read set holds no lock;
//! it reads each map's count of serializable commits before the map. A commit raises the counts under the mutex, after its COMMIT record. So a count that is
//! unchanged under the mutex proves that no serializable transaction has committed a change of the map since the scan began, and the mutex is held until COMMIT
//! is written (EN-66, EN-67).

use std::collections::HashMap;
use std::ops::Bound;

use btree::{Batch, ReadMode, ScanState};
use pager::TxnId;
use stdx::sync::MutexGuard;
use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::rows::read_set::ReadSet;
use crate::rows::request::Isolation;
use crate::rows::row::RowHead;
use crate::rows::state::Rows;
use crate::rows::status_table::Status;
use crate::rows::transaction::{Transaction, Writer};
use crate::rows::visibility::{Snapshot, Visibility};
use crate::store::maps::RowMap;
use crate::store::trees::MapId;

/// How often changed maps are validated without the mutex before they are validated under it.
const ROUNDS: usize = 3;

/// Counts of serializable commits, as they were before the maps were validated.
type Validated = HashMap<MapId, u64>;

impl Transaction {
    /// Notes everything that the transaction reads, and makes its commit fail with `Error::ReadWriteDependency` if another transaction has changed any of it since
    /// the snapshot, which is taken now. Called before the first read.
    pub fn validate_reads(&mut self) {
        self.seen();
        self.reads = Some(Box::default());
    }

    /// Returns whether the commit validates what the transaction reads.
    pub fn validates_reads(&self) -> bool {
        self.reads.is_some()
    }

    /// Notes that the keys from `from` on and before `to` were read.
    pub(crate) fn note_range(&mut self, map: MapId, from: &[u8], to: Option<&[u8]>) {
        let Some(reads) = &mut self.reads else { return };
        let is_short = self.rows.read_bytes.load(Ordering::Relaxed) >= self.rows.locks.read_bytes_max();
        let (before, after) = reads.add(map, from, to, is_short);
        self.rows.read_bytes.fetch_add(after.wrapping_sub(before) as u64, Ordering::Relaxed);
    }

    /// Notes that a key was looked up.
    pub(crate) fn note_key(&mut self, map: MapId, key: &[u8]) {
        if self.reads.is_some() {
            self.note_range(map, key, Some(&[key, &[0][..]].concat()));
        }
    }

    /// Forgets the read set at the end of the transaction.
    pub(crate) fn drop_reads(&mut self) {
        if let Some(reads) = self.reads.take() {
            self.rows.read_bytes.fetch_sub(reads.bytes() as u64, Ordering::Relaxed);
        }
    }

    /// Validates the reads of a transaction that is about to commit. Returns the mutex of serializable commits, to be held until COMMIT is written; `None` if the
    /// transaction is not serializable, or has neither changed nor locked anything: its snapshot is a state between two serializable commits, where it has its
    /// place in the serial order (EN-66).
    pub(crate) fn enter_serial_order<'r>(&mut self, rows: &'r Rows) -> Result<Option<MutexGuard<'r, ()>>> {
        if self.isolation() != Isolation::Serializable || self.writer.is_none() {
            return Ok(None);
        }
        let Some(reads) = self.reads.take() else { return Ok(Some(rows.serial.lock())) };
        let validated = self.validate(rows, &reads);
        self.reads = Some(reads);
        validated.map(Some)
    }

    fn validate<'r>(&mut self, rows: &'r Rows, reads: &ReadSet) -> Result<MutexGuard<'r, ()>> {
        let mut validated = Validated::new();
        for _ in 0..ROUNDS {
            if !self.validate_changed(rows, reads, &mut validated)? {
                break;
            }
        }
        let serial = rows.serial.lock();
        self.validate_changed(rows, reads, &mut validated)?;
        Ok(serial)
    }

    /// Validates the maps that are not in `validated`, or have had a serializable commit since. Returns whether there were any.
    fn validate_changed(&mut self, rows: &Rows, reads: &ReadSet, validated: &mut Validated) -> Result<bool> {
        let mut were_any = false;
        for id in reads.maps() {
            // A map that is gone was the transaction's own: it holds the metadata locks of the others.
            let Some(map) = rows.store.maps.get(id) else { continue };
            let commits = map.serial_commits.load(Ordering::SeqCst);
            if validated.insert(id, commits) != Some(commits) {
                were_any = true;
                reads.ranges(id).try_for_each(|(from, to)| self.validate_range(rows, &map, from, to))?;
            }
        }
        Ok(were_any)
    }

    fn validate_range(&mut self, rows: &Rows, map: &RowMap, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let (snapshot, me) = (self.seen(), self.id());
        let mut span = ScanState::new(Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded), false);
        let mut batch = Batch::new();
        while span.next_batch(&map.tree, ReadMode::MayRead, &mut batch)? {
            if self.is_cancelled() {
                return Err(Error::Cancelled);
            }
            for index in 0..batch.len() {
                let record = batch.get(index);
                let creator = RowHead::parse(record.value)?.0.creator;
                let is_seen = Some(creator) != me
                    && matches!(rows.visibility_in(map, creator, snapshot, None), Visibility::Yes(_));
                if !is_seen && !rows.is_as_seen(map, record.key, snapshot, me)? {
                    return Err(Error::ReadWriteDependency);
                }
            }
        }
        Ok(())
    }
}

impl Rows {
    /// Returns whether the newest committed version of a record is the one that the snapshot sees. Changes of open transactions, and those of `me`, are not
    /// committed: what they have replaced counts.
    fn is_as_seen(&self, map: &RowMap, key: &[u8], snapshot: Snapshot, me: Option<TxnId>) -> Result<bool> {
        let mut record = Vec::new();
        'again: loop {
            record.clear();
            let found = map.tree.get(key, &mut record)?;
            if !found.present {
                // A record that the snapshot sees, or whose deletion it does not see, stays (EN-19).
                return Ok(true);
            }
            let mut creator = RowHead::parse(&record)?.0.creator;
            loop {
                if Some(creator) != me {
                    match (self.visibility_in(map, creator, snapshot, None), self.statuses.status(creator)) {
                        (Visibility::Yes(_), _) => return Ok(true),
                        (Visibility::IfUnchanged, _) if self.is_unchanged(map, key, found.word)? => return Ok(true),
                        (Visibility::IfUnchanged, _) | (_, Status::Past) => continue 'again,
                        (Visibility::No, Status::Committed(_)) => return Ok(false),
                        (Visibility::No, Status::Active | Status::Aborted) => {}
                    }
                }
                match self.versions.replaced(map.id, key, creator)? {
                    Some(before) => creator = RowHead::parse(&before)?.0.creator,
                    None if self.snapshots.is_expired(snapshot.lsn) => return Err(Error::SnapshotTooOld),
                    // The record is new.
                    None if self.is_unchanged(map, key, found.word)? => return Ok(true),
                    None => continue 'again,
                }
            }
        }
    }

    /// Counts a serializable commit at the maps that it has changed. Called under the mutex, after COMMIT.
    pub(crate) fn count_serial_commit(writer: &Writer) {
        for map in writer.changed.iter().flat_map(HashMap::values) {
            map.serial_commits.fetch_add(1, Ordering::SeqCst);
        }
    }
}
