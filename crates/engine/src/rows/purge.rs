//! Forgetting: old versions that no snapshot can see, and the records of deleted rows.
//!
//! What a transaction has replaced is needed as long as a snapshot is older than its commit. The record of a deleted row goes when, besides, the commit is durable: so who finds no record
//! at all need not wait for the log (M7).

use pager::{Lsn, TxnId};
use stdx::sync::atomic::Ordering;

use crate::error::Result;
use crate::keyspace::Progress;
use crate::rows::version::Head;
use crate::rows::{MapId, Rows};

/// How soon to look again for what a snapshot or the log holds up, in milliseconds.
const SOON_MS: u64 = 20;
/// A commit clears away what has gathered when there are so many; to look who still reads costs a step for each session.
const GATHERED: usize = 16;
const COMMIT_BUDGET: usize = 256;

/// A committed transaction with what it has left behind.
pub(crate) struct Ended {
    pub id: TxnId,
    pub lsn: Lsn,
    /// Rows that it changed.
    pub keys: Vec<(MapId, Box<[u8]>)>,
    /// Rows that it deleted.
    pub ghosts: Vec<(MapId, Box<[u8]>)>,
    /// Long values that it replaced stand in the purge queue, and `Store::held` keeps the background from them.
    pub holds_values: bool,
}

impl Rows {
    /// A transaction is committed: what it has replaced waits for its time, and a little of what has waited is cleared away.
    pub(crate) fn end(&self, ended: Ended) {
        let gathered = {
            let mut all = self.ended.lock();
            all.push_back(ended);
            all.len()
        };
        // What fails here is left to the background.
        if !gathered.is_multiple_of(GATHERED) || !matches!(self.purge(COMMIT_BUDGET), Ok(true)) {
            (self.ring)();
        }
    }

    /// One step of the background, of about so many rows.
    pub(crate) fn background_step(&self, budget: usize) -> Result<Progress> {
        let before = self.ended.lock().len();
        let is_empty = self.purge(budget)?;
        if self.ended.lock().len() < before {
            // There may be more, and what was held up before is not any more.
            return Ok(Progress::more());
        }
        Ok(if is_empty { Progress::idle(None) } else { Progress::idle(Some(SOON_MS)) })
    }

    /// Commits up to here are seen by every snapshot, and durable.
    fn purgeable(&self) -> Lsn {
        self.oldest_snapshot().min(self.store.pager.durable().get())
    }

    /// True if nothing is left.
    fn purge(&self, budget: usize) -> Result<bool> {
        let purgeable = self.purgeable();
        self.kept.store(purgeable, Ordering::Relaxed);
        self.slots.advance(self.store.pager.durable().get(), purgeable);
        let mut done = 0;
        while done < budget {
            let ended = {
                let mut ended = self.ended.lock();
                if ended.front().is_none_or(|front| front.lsn > purgeable) {
                    break;
                }
                ended.pop_front().expect("looked at above")
            };
            done += 1 + ended.keys.len();
            if let Err(error) = self.forget(&ended) {
                self.ended.lock().push_front(ended);
                return Err(error);
            }
        }
        self.keep_within_limit();
        Ok(self.ended.lock().is_empty())
    }

    /// May run twice.
    fn forget(&self, ended: &Ended) -> Result<()> {
        for (map, key) in &ended.keys {
            self.versions.remove(*map, key, ended.id);
        }
        let ghost = Head { writer: ended.id, is_ghost: true, is_long: false }.bytes();
        for (map, key) in &ended.ghosts {
            let Some(map) = self.store.maps.get(*map) else { continue };
            map.tree.modify(key, None, |old, change| {
                if old.is_some_and(|old| old.value == ghost) {
                    change.delete();
                }
            })?;
        }
        if ended.holds_values {
            self.store.held.lock().remove(&ended.id);
            (self.wake)();
        }
        Ok(())
    }

    /// Gives up the oldest snapshot if it makes old versions take too much memory.
    fn keep_within_limit(&self) {
        if self.versions.bytes() <= self.versions_max.load(Ordering::Relaxed) {
            return;
        }
        let (oldest, durable) = (self.oldest_snapshot(), self.store.pager.durable().get());
        let is_in_the_way = self.ended.lock().front().is_some_and(|front| front.lsn > oldest && front.lsn <= durable);
        if is_in_the_way {
            self.snapshots.expire(oldest);
        }
    }
}
