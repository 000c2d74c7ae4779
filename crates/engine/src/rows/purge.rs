//! Forgetting: old versions that no snapshot can see, and the records of deleted rows.
//!
//! What a transaction has replaced is needed as long as a snapshot is older than its commit. The record of a deleted row goes when, besides, the commit is durable: so who finds no record
//! at all need not wait for the log (EN-19).

use pager::{Lsn, TxnId};
use stdx::sync::atomic::Ordering;

use crate::error::Result;
use crate::keyspace::background_signal::Progress;
use crate::rows::purge_list::{CommittedTxn, PurgeItem};
use crate::rows::row::RowHead;
use crate::rows::state::Rows;
use crate::store::trees::MapId;

/// How soon to look again for what a snapshot or the log holds up, in milliseconds.
const SOON_MS: u64 = 20;
/// A commit clears away what has gathered when there are so many; to look who still reads costs a step for each session.
const GATHERED: usize = 16;
const COMMIT_BUDGET: usize = 256;

/// Who clears away: what is in files is for the background, a commit does not read them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purger {
    Commit,
    Background,
}

impl Rows {
    /// A transaction is committed: what it has replaced waits for its time, and a little of what has waited is cleared away.
    pub(crate) fn end(&self, ended: CommittedTxn) {
        let gathered = {
            let mut all = self.ended.lock();
            all.push_back(PurgeItem::Transaction(ended));
            all.len()
        };
        // What fails here is left to the background.
        if !gathered.is_multiple_of(GATHERED) || !matches!(self.purge(Purger::Commit, COMMIT_BUDGET), Ok((_, true))) {
            (self.ring)();
        }
    }

    /// One step of the background, of about so many rows.
    pub(crate) fn background_step(&self, budget: usize) -> Result<Progress> {
        let (has_done, is_empty) = self.purge(Purger::Background, budget)?;
        if has_done {
            // There may be more, and what was held up before is not any more.
            return Ok(Progress::more());
        }
        Ok(if is_empty { Progress::idle(None) } else { Progress::idle(Some(SOON_MS)) })
    }

    /// Commits up to here are seen by every snapshot, and durable.
    fn purgeable(&self) -> Lsn {
        self.oldest_snapshot().min(self.store.pager.durable().get())
    }

    /// Has it done something, and is nothing left?
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
                ended.pop_front().expect("looked at above")
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

    /// Forgets one run, or the rest. Returns how many steps those were. May run twice.
    fn forget(&self, ended: &mut CommittedTxn) -> Result<usize> {
        if let Some(run) = ended.runs.last() {
            run.each(|entry| if entry.deletes() { self.bury(entry.map, entry.key, ended.id) } else { Ok(()) })?;
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
                self.bury(step.map, &step.key, ended.id)?;
            }
        }
        if ended.holds_values {
            self.store.held.lock().remove(&ended.id);
            (self.wake)();
        }
        Ok(ended.tail.len())
    }

    /// Removes the record of a row that `by` has deleted, if it still is that.
    pub(crate) fn bury(&self, map: MapId, key: &[u8], by: TxnId) -> Result<()> {
        let ghost = RowHead { writer: by, is_delete_marked: true, is_long: false }.bytes();
        let Some(map) = self.store.maps.get(map) else { return Ok(()) };
        map.tree.modify(key, None, |old, change| {
            if old.is_some_and(|old| old.value == ghost) {
                change.delete();
            }
        })?;
        Ok(())
    }
}
