//! Purge: removes old versions that no snapshot can see, and the records of deleted rows.
//!
//! A replaced version is needed as long as a snapshot is older than the replacing commit. The record of a deleted row is removed when, besides, the commit is
//! durable. So a reader that finds no record has no durability LSN to wait for (EN-19).

use pager::{Lsn, TxnId};
use stdx::sync::atomic::Ordering;

use crate::error::Result;
use crate::keyspace::background_signal::Progress;
use crate::rows::purge_list::{CommittedTxn, PurgeItem};
use crate::rows::row::RowHead;
use crate::rows::state::Rows;
use crate::store::trees::MapId;

/// When to retry what a snapshot or the WAL delays, in milliseconds.
const SOON_MS: u64 = 20;
/// A commit purges when the list has grown to a multiple of this. Scanning the snapshot registry costs a step for each session.
const GATHERED: usize = 16;
const COMMIT_BUDGET: usize = 256;

/// Which thread purges. Remains in files are left to the background thread; a commit does not read them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purger {
    Commit,
    Background,
}

impl Rows {
    /// Adds a committed transaction to the purge list, and sometimes purges a little.
    pub(crate) fn end(&self, ended: CommittedTxn) {
        let gathered = {
            let mut all = self.ended.lock();
            all.push_back(PurgeItem::Transaction(ended));
            all.len()
        };
        // If this fails, it is left to the background thread.
        if !gathered.is_multiple_of(GATHERED) || !matches!(self.purge(Purger::Commit, COMMIT_BUDGET), Ok((_, true))) {
            (self.wake_soon)();
        }
    }

    /// Runs one background step of about `budget` rows.
    pub(crate) fn background_step(&self, budget: usize) -> Result<Progress> {
        let (has_done, is_empty) = self.purge(Purger::Background, budget)?;
        if has_done {
            // There may be more, and what was delayed may not be any more.
            return Ok(Progress::more());
        }
        Ok(if is_empty { Progress::idle(None) } else { Progress::idle(Some(SOON_MS)) })
    }

    /// Returns an LSN such that every snapshot sees commits up to it, and they are durable.
    fn purgeable(&self) -> Lsn {
        self.oldest_snapshot().min(self.store.pager.durable().get())
    }

    /// Purges. Returns whether anything was done, and whether the list is empty now.
    fn purge(&self, purger: Purger, budget: usize) -> Result<(bool, bool)> {
        let purgeable = self.purgeable();
        self.kept.store(purgeable, Ordering::Relaxed);
        self.statuses.advance(self.store.pager.durable().get(), purgeable);
        let mut done = 0;
        while done < budget {
            let mut left = {
                let mut ended = self.ended.lock();
                let waits =
                    |front: &PurgeItem| front.lsn() > purgeable || (purger == Purger::Commit && front.is_in_files());
                if ended.front().is_none_or(waits) {
                    break;
                }
                ended.pop_front().expect("checked above")
            };
            let forgotten = match &mut left {
                PurgeItem::Transaction(ended) => self.forget(ended),
                PurgeItem::Batch(spilled) => self.forget_batch(spilled),
            };
            match forgotten {
                Ok(steps) => done += 1 + steps,
                Err(error) => {
                    self.ended.lock().push_front(left);
                    return Err(error);
                }
            }
            if matches!(&left, PurgeItem::Transaction(ended) if !ended.runs.is_empty()) {
                self.ended.lock().push_front(left);
            }
        }
        let has_spilled = purger == Purger::Background && budget > 0 && self.spill_versions()?;
        Ok((done > 0 || has_spilled, self.ended.lock().is_empty()))
    }

    /// Purges one run, or the rest of a transaction. Returns the number of steps. Idempotent.
    fn forget(&self, ended: &mut CommittedTxn) -> Result<usize> {
        if let Some(run) = ended.runs.last() {
            run.each(
                |entry| if entry.deletes() { self.remove_deleted(entry.map, entry.key, ended.id) } else { Ok(()) },
            )?;
            let steps = run.steps as usize;
            ended.runs.pop();
            if !ended.runs.is_empty() {
                return Ok(steps);
            }
        }
        self.versions.withdraw(ended.id);
        for step in &ended.tail {
            if step.is_version {
                self.versions.remove(step.map, &step.key, ended.id);
            }
            if step.deletes {
                self.remove_deleted(step.map, &step.key, ended.id)?;
            }
        }
        if ended.holds_values {
            self.store.held.lock().remove(&ended.id);
            (self.wake)();
        }
        Ok(ended.tail.len())
    }

    /// Removes the record of a row that `by` has deleted, if it is unchanged.
    pub(crate) fn remove_deleted(&self, map: MapId, key: &[u8], by: TxnId) -> Result<()> {
        let is_its = |head: RowHead| head.creator == by && head.is_delete_marked;
        let Some(map) = self.store.maps.get(map) else { return Ok(()) };
        map.tree.modify(key, None, |old, change| {
            if old.is_some_and(|old| RowHead::parse(old.value).is_ok_and(|(head, _)| is_its(head))) {
                change.delete();
            }
        })?;
        Ok(())
    }
}
