//! The losers of the last crash that are undone beside the service.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use pager::TxnId;
use stdx::sync::Mutex;
use stdx::sync::atomic::AtomicU64;

use crate::error::Result;
use crate::rows::row::summarize;
use crate::rows::run::{Runs, UndoRun, UndoStep};
use crate::store::trees::{MapId, QUEUE};

/// A loser as recovery found it.
pub(crate) struct RecoveredLoser {
    pub id: TxnId,
    /// The images in memory, one for each row and each purge queue entry. If there are runs, these are the youngest.
    pub tail: Vec<UndoStep>,
    /// The other images, oldest run first. Within a run each row comes once.
    pub runs: Vec<UndoRun>,
    /// Maps that it has changed.
    pub maps: BTreeSet<MapId>,
}

/// A transaction of a former opening that is being rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollingBack {
    pub id: TxnId,
    /// Rows and entries that are restored, and their number.
    pub done: u64,
    pub changes: u64,
}

/// The part of a loser's state that other threads read.
pub(crate) struct OpenLoser {
    pub id: TxnId,
    pub maps: BTreeSet<MapId>,
    pub changes: u64,
    pub done: AtomicU64,
}

/// The part of a loser's state that the undo thread uses.
pub(crate) struct LoserWork {
    pub open: Arc<OpenLoser>,
    pub tail: Vec<UndoStep>,
    pub tail_bytes: u64,
    /// Number of entries of `tail` that are restored.
    pub at: usize,
    pub runs: Runs,
    /// Number of runs that are left, the youngest of them next, and of its blocks that are done.
    pub left: usize,
    pub blocks: usize,
}

#[derive(Default)]
pub(crate) struct LoserList {
    pub open: Mutex<Vec<Arc<OpenLoser>>>,
    /// The smallest first, so that most losers end soon. Locked during a step of undo.
    pub work: Mutex<VecDeque<LoserWork>>,
    pub error: Mutex<Option<String>>,
}

impl LoserList {
    /// Returns a loser with changes in the map that are not undone yet.
    pub fn in_map(&self, map: MapId) -> Option<TxnId> {
        self.open.lock().iter().find(|open| open.maps.contains(&map)).map(|open| open.id)
    }

    /// Returns the version ids of long values to which undo may add or remove a reference. No undo may run meanwhile.
    pub fn values(&self) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        let mut note = |map: MapId, key: &[u8], image: Option<&[u8]>| -> Result<()> {
            if map == QUEUE {
                found.extend(key.get(1..).and_then(|version| version.try_into().ok()).map(u64::from_be_bytes));
            } else if let Some(image) = image {
                found.extend(summarize(image)?.segments.map(|(version, _)| version));
            }
            Ok(())
        };
        for work in &*self.work.lock() {
            work.tail.iter().try_for_each(|step| note(step.map, &step.key, step.before.as_deref()))?;
            for run in &*work.runs.read() {
                run.each(|entry| note(entry.map, entry.key, entry.before))?;
            }
        }
        Ok(found)
    }
}
