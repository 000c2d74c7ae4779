//! Undo of the last crash's losers, beside the service.
//!
//! ```text
//!   redo     oldest before-images of each loser, in memory or in runs                                 (`recovery`)
//!   adopt    its id is ACTIVE in the transaction status table, its images are versions that readers find        then the doors open
//!   step     some rows are restored, without locks; any transaction may change them from here on
//!   end      ABORT | versions withdrawn | ABORTED
//! ```
//! To others a loser is an open transaction: its id in a record is the row lock, and readers find the version before.
//!
//! Hard part: undo meets rows that the loser no longer owns. The loser may have undone them itself before the crash, by a savepoint or an interrupted rollback;
//! or an earlier opening has, whose undo was interrupted by the next crash. Others may have changed and committed them since. So this undo checks ownership: a
//! row is restored only if its record names the loser, and a purge queue entry is removed only if it names the loser (EN-33). That makes locks and WAL records
//! of progress unnecessary: a restored row is free at once, and the order of the WAL says for each row whether it has been restored.
//!
//! Only losers that changed nothing but rows of tables come here. Those that changed keys, definitions or the directory of maps are undone before the doors
//! open.

use std::sync::Arc;

use btree::Tree;
use pager::TxnId;
use stdx::sync::RwLock;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::rows::loser_list::{LoserWork, OpenLoser, RecoveredLoser, RollingBack};
use crate::rows::row::RowHead;
use crate::rows::run::Runs;
use crate::rows::state::Rows;
use crate::store::purge_queue::{encode_version, is_version_key};
use crate::store::trees::{MapId, QUEUE};

/// After this many undone changes, waiters of the loser try again.
const WAKE_EVERY: u64 = 16_384;

impl Rows {
    /// Takes over the losers. To be called before the first read.
    pub(crate) fn adopt(&self, losers: Vec<RecoveredLoser>) -> Result<()> {
        self.statuses.recover(losers.iter().map(|lost| lost.id).collect());
        let mut all: Vec<LoserWork> = losers.into_iter().map(|lost| self.adopt_one(lost)).collect::<Result<_>>()?;
        all.sort_by_key(|work| work.open.changes);
        *self.losers.open.lock() = all.iter().map(|work| work.open.clone()).collect();
        *self.losers.work.lock() = all.into();
        Ok(())
    }

    fn adopt_one(&self, RecoveredLoser { id, tail, runs, maps }: RecoveredLoser) -> Result<LoserWork> {
        for step in tail.iter().filter(|step| step.is_version) {
            let before = step.before.as_ref().expect("a version is an image");
            self.versions.push(step.map, &step.key, id, before)?;
        }
        let tail_bytes = tail.iter().map(|step| step.bytes() as u64).sum();
        self.budget.add(tail_bytes);
        let written: u64 = runs.iter().map(|run| u64::from(run.steps)).sum();
        let open = OpenLoser { id, maps, changes: tail.len() as u64 + written, done: AtomicU64::new(0) };
        let left = runs.len();
        let runs: Runs = Arc::new(RwLock::new(runs.into_iter().map(Arc::new).collect()));
        if left > 0 {
            self.versions.publish(id, &runs);
        }
        Ok(LoserWork { open: Arc::new(open), tail, tail_bytes, at: 0, runs, left, blocks: 0 })
    }

    /// Returns the losers that are not undone yet.
    pub fn rolling_back(&self) -> Vec<RollingBack> {
        let of = |open: &Arc<OpenLoser>| {
            let OpenLoser { id, changes, done, .. } = &**open;
            RollingBack { id: *id, done: done.load(Ordering::Relaxed), changes: *changes }
        };
        self.losers.open.lock().iter().map(of).collect()
    }

    /// Returns true for a loser that is not undone yet.
    pub(crate) fn is_rolling_back(&self, id: TxnId) -> bool {
        self.statuses.is_loser(id) && self.statuses.is_open(id)
    }

    /// Returns the version ids of long values that those losers have written or replaced. During the undo such a value may have no reference, or two.
    pub(crate) fn values_rolling_back(&self) -> Result<Vec<u64>> {
        self.losers.values()
    }

    /// Returns true while a loser has changes in the map that are not undone. The map cannot be dropped until then.
    pub fn is_rolling_back_in(&self, map: MapId) -> bool {
        self.losers.in_map(map).is_some()
    }

    /// Returns why the undo does not advance, if it does not. It is retried.
    pub fn rolling_back_error(&self) -> Option<String> {
        self.losers.error.lock().clone()
    }

    /// Undoes about `budget` changes. Returns true if there are more. After an error the next call tries the same change again.
    pub(crate) fn undo_step(&self, budget: usize) -> Result<bool> {
        let mut all = self.losers.work.lock();
        let Some(work) = all.front_mut() else { return Ok(false) };
        let (id, before) = (work.open.id, work.open.done.load(Ordering::Relaxed));
        let done = self.undo_some(work, budget);
        if before / WAKE_EVERY != work.open.done.load(Ordering::Relaxed) / WAKE_EVERY {
            // A transaction that waits for a row may find that it has been restored.
            self.statuses.released(id);
        }
        *self.losers.error.lock() = done.as_ref().err().map(Error::to_string);
        if done? {
            let work = all.pop_front().expect("checked above");
            self.end_loser(work);
        }
        Ok(!all.is_empty())
    }

    /// Undoes some changes of a loser, youngest images first (EN-28). Returns true if nothing is left.
    fn undo_some(&self, work: &mut LoserWork, budget: usize) -> Result<bool> {
        let id = work.open.id;
        if work.at < work.tail.len() {
            let to = work.tail.len().min(work.at + budget.max(1));
            for step in &work.tail[work.at..to] {
                self.restore(id, step.map, &step.key, step.before.as_deref())?;
            }
            work.open.done.fetch_add((to - work.at) as u64, Ordering::Relaxed);
            work.at = to;
            return Ok(false);
        }
        let Some(run) = work.left.checked_sub(1).map(|at| work.runs.read()[at].clone()) else { return Ok(true) };
        if work.blocks == run.block_count() {
            (work.left, work.blocks) = (work.left - 1, 0);
            return Ok(false);
        }
        let mut count = 0;
        run.each_of_block(work.blocks, |entry| {
            count += 1;
            self.restore(id, entry.map, entry.key, entry.before)
        })?;
        work.blocks += 1;
        work.open.done.fetch_add(count, Ordering::Relaxed);
        Ok(false)
    }

    /// Restores one record, if the loser owns it (EN-33). It needs disk space as any change does, since the loser's undo reserve was lost in the crash.
    fn restore(&self, loser: TxnId, map: MapId, key: &[u8], image: Option<&[u8]>) -> Result<()> {
        let store = &self.store;
        let tree: Tree = store
            .tree(map)
            .ok_or_else(|| Error::corrupt(format!("undo of transaction {loser} in unknown map {map}")))?;
        store.pager.admit()?;
        // Purge skips a value that comes back to its queue until ABORT is in the WAL (EN-12).
        let queued = encode_version(loser);
        let is_queue = map == QUEUE;
        let image = if is_queue && is_version_key(key) { image.map(|_| &queued[..]) } else { image };
        let done = tree.modify(key, None, |old, change| -> Result<()> {
            let current = old.map(|old| old.value);
            let is_its_own = match current {
                Some(current) if is_queue => current.starts_with(&queued),
                // No other transaction uses a value that the loser has removed from the queue.
                None => is_queue,
                Some(current) => RowHead::parse(current)?.0.creator == loser,
            };
            match image {
                _ if current == image => {}
                Some(image) if is_its_own => change.put(&[image]),
                None if is_its_own => change.delete(),
                _ => {}
            }
            Ok(())
        })?;
        done.result
    }

    /// Ends a loser whose changes are all undone.
    fn end_loser(&self, work: LoserWork) {
        let id = work.open.id;
        self.store.log_abort(id);
        let versions = work.tail.iter().filter(|step| step.is_version);
        versions.for_each(|step| self.versions.remove(step.map, &step.key, id));
        self.versions.withdraw(id);
        self.budget.sub(work.tail_bytes);
        // Waiters of the loser read the list again, so it is removed from there first.
        self.losers.open.lock().retain(|open| open.id != id);
        self.statuses.aborted(id);
        self.store.delist(id);
        // Values that it has written are garbage now.
        (self.wake)();
    }
}
