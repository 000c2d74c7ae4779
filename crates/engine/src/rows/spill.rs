//! Old versions of committed transactions, written to files while a snapshot keeps them.
//!
//! ```text
//!   commit   CommittedTxn { steps }                    versions in memory                               the purge list
//!   spill    [CommittedTxn, CommittedTxn, ..] ──► one run, each entry with its creator ──► SpilledBatch in the list, versions leave memory
//!   purge    the youngest of the batch is older than every snapshot: deleted rows are removed, the run is withdrawn
//! ```
//! A long read (a dump, a report) keeps every version that is replaced meanwhile. Their memory is limited. Beyond the limit the background thread writes the
//! oldest of them out, many transactions to a run, and a read that needs one finds it there (EN-36). Only the transaction's entry in the transaction status
//! table stays in memory then.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::rows::purge_list::{CommittedTxn, PurgeItem, SpillFile, SpilledBatch};
use crate::rows::run::failed;
use crate::rows::run::{UndoRun, UndoStep, Writers, scratch};
use crate::rows::state::Rows;
use crate::rows::versions::VersionBatch;

/// A file takes runs up to about this size; then the next one is begun, so that space is released file by file.
const FILE_BYTES: u64 = 256 << 20;
/// Bounds of a batch, which is copied once while it is written.
const BATCH_MIN: u64 = 64 << 10;
const BATCH_MAX: u64 = 32 << 20;
/// Space that must stay free on the disk beside what is written.
const FREE_MIN: u64 = 64 << 20;

/// Transactions taken out of the purge list.
struct TakenTxns {
    /// Their position in the list.
    at: usize,
    ended: Vec<CommittedTxn>,
}

impl Rows {
    /// Writes out the oldest versions in memory if they exceed the limit. Returns whether anything was done.
    ///
    /// If they cannot be written, because the disk is full or nearly so, the oldest snapshot is given up instead.
    pub(crate) fn spill_versions(&self) -> Result<bool> {
        let max = self.versions_max;
        if self.versions.bytes() <= max {
            return Ok(false);
        }
        // One at a time: a second caller has nothing to add.
        let Some(mut file) = self.spill_file.try_lock() else { return Ok(false) };
        let Some(taken) = self.take_oldest(max) else { return Ok(false) };
        match self.write_batch(&mut file, &taken.ended) {
            Ok(spilled) => {
                let mut ended = self.ended.lock();
                let at = taken.at.min(ended.len());
                ended.insert(at, PurgeItem::Batch(spilled));
                // Transactions with runs of their own stay in the list for these.
                let with_runs = taken.ended.into_iter().filter(|one| !one.runs.is_empty());
                for (nth, one) in with_runs.enumerate() {
                    ended.insert(at + 1 + nth, PurgeItem::Transaction(CommittedTxn { tail: Vec::new(), ..one }));
                }
                Ok(true)
            }
            Err(error) => {
                let mut ended = self.ended.lock();
                let at = taken.at.min(ended.len());
                for (nth, one) in taken.ended.into_iter().enumerate() {
                    ended.insert(at + nth, PurgeItem::Transaction(one));
                }
                drop(ended);
                match error {
                    Error::DiskFull => {
                        self.snapshots.expire(self.oldest_snapshot());
                        Ok(true)
                    }
                    error => Err(error),
                }
            }
        }
    }

    /// Takes the oldest transactions whose versions are in memory and needed out of the list. Returns `None` if they are too few to be worth a run: then
    /// versions of open transactions take the memory.
    fn take_oldest(&self, max: u64) -> Option<TakenTxns> {
        let oldest = self.oldest_snapshot();
        let limit = (max / 4).clamp(BATCH_MIN, BATCH_MAX);
        let mut queue = self.ended.lock();
        let is_in_memory = |left: &PurgeItem| matches!(left, PurgeItem::Transaction(ended) if !ended.tail.is_empty());
        let at = queue.iter().position(|left| left.lsn() > oldest && is_in_memory(left))?;
        let (mut count, mut bytes) = (0, 0);
        for left in queue.iter().skip(at) {
            let PurgeItem::Transaction(ended) = left else { break };
            if bytes >= limit {
                break;
            }
            (count, bytes) = (count + 1, bytes + self.bytes_of(ended));
        }
        if bytes < limit.min(max / 4) / 2 {
            return None;
        }
        let ended = queue.drain(at..at + count).map(|left| match left {
            PurgeItem::Transaction(ended) => ended,
            PurgeItem::Batch(_) => unreachable!("the loop above ends at a batch"),
        });
        Some(TakenTxns { at, ended: ended.collect() })
    }

    /// Returns the approximate memory of a transaction's versions and steps.
    fn bytes_of(&self, ended: &CommittedTxn) -> u64 {
        let versions = ended.tail.iter().map(|step| self.versions.size_of(step.map, &step.key, ended.id));
        versions.sum::<u64>() + (ended.tail.len() * size_of::<UndoStep>()) as u64
    }

    /// Writes what the transactions have replaced to one run, and removes it from memory (EN-36).
    fn write_batch(&self, file: &mut SpillFile, all: &[CommittedTxn]) -> Result<SpilledBatch> {
        let (mut steps, mut writers, mut bytes) = (Vec::new(), Vec::new(), 0);
        for ended in all {
            for step in &ended.tail {
                let before = if step.is_version { self.versions.image(step.map, &step.key, ended.id) } else { None };
                let step = UndoStep { is_version: before.is_some(), before, ..step.clone() };
                bytes += step.bytes() as u64;
                steps.push(step);
                writers.push(ended.id);
            }
        }
        let folder = self.store.pager.folder();
        // The files may take as much space as is still free, and no more.
        let free = folder.free_bytes().map_err(failed)?;
        if free < FREE_MIN.saturating_add(bytes).max(self.versions.file_bytes()) {
            return Err(Error::DiskFull);
        }
        let (device, from) = match file.file.take().filter(|(_, end)| *end < FILE_BYTES) {
            Some(file) => file,
            None => (scratch(folder.as_ref())?, 0),
        };
        let run = UndoRun::write(
            &device,
            from,
            steps.iter().map(UndoStep::by_ref),
            Writers::Each(&writers),
            self.versions.seed(),
        )?;
        file.file = Some((device, run.end()));
        let ids = || all.iter().map(|ended| ended.id);
        let (first, last) = (ids().min().unwrap_or(0), ids().max().unwrap_or(0));
        let batch = Arc::new(VersionBatch { first, last, run });
        self.versions.publish_batch(&batch);
        for (step, writer) in steps.iter().zip(&writers).filter(|(step, _)| step.is_version) {
            self.versions.remove(step.map, &step.key, *writer);
        }
        Ok(SpilledBatch {
            lsn: all.iter().map(|ended| ended.lsn).max().unwrap_or(0),
            batch,
            holds_values: all
                .iter()
                .filter(|ended| ended.holds_values && ended.runs.is_empty())
                .map(|ended| ended.id)
                .collect(),
        })
    }

    /// Purges a batch that no snapshot needs any more. Returns the number of its steps. Idempotent.
    pub(crate) fn forget_batch(&self, spilled: &SpilledBatch) -> Result<usize> {
        let run = &spilled.batch.run;
        if run.deletes > 0 {
            run.each(
                |entry| if entry.deletes() { self.remove_deleted(entry.map, entry.key, entry.by) } else { Ok(()) },
            )?;
        }
        self.versions.withdraw_batch(&spilled.batch);
        if !spilled.holds_values.is_empty() {
            let mut held = self.store.held.lock();
            for id in &spilled.holds_values {
                held.remove(id);
            }
            drop(held);
            (self.wake)();
        }
        Ok(run.steps as usize)
    }
}
