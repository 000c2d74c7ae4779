//! LOSERS.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use pager::TxnId;
use stdx::sync::Mutex;
use stdx::sync::atomic::AtomicU64;

use crate::error::Result;
use crate::rows::row::summarize;
use crate::rows::run::{Runs, UndoRun, UndoStep};
use crate::store::trees::{MapId, QUEUE};

/// A loser as recovery has found it.
pub(crate) struct RecoveredLoser {
    pub id: TxnId,
    /// The images that are in memory, each row and each entry of the purge queue once; the youngest, if there are runs.
    pub tail: Vec<UndoStep>,
    /// Those that are not, oldest run first; within a run each row once.
    pub runs: Vec<UndoRun>,
    /// OpenMaps that it has changed.
    pub maps: BTreeSet<MapId>,
}

/// A transaction of a former opening that is being rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollingBack {
    pub id: TxnId,
    /// Rows and entries that are done, and how many there are.
    pub done: u64,
    pub changes: u64,
}

/// A loser, as others may see it.
pub(crate) struct OpenLoser {
    pub id: TxnId,
    pub maps: BTreeSet<MapId>,
    pub changes: u64,
    pub done: AtomicU64,
}

/// What the one who undoes it knows.
pub(crate) struct LoserWork {
    pub open: Arc<OpenLoser>,
    pub tail: Vec<UndoStep>,
    pub tail_bytes: u64,
    /// How many of `tail` are done.
    pub at: usize,
    pub runs: Runs,
    /// Runs that are left, the youngest of them next; and how many of its blocks are done.
    pub left: usize,
    pub blocks: usize,
}

#[derive(Default)]
pub(crate) struct LoserList {
    pub open: Mutex<Vec<Arc<OpenLoser>>>,
    /// Smallest first, so that most of them are over soon. HeldLock while one undoes.
    pub work: Mutex<VecDeque<LoserWork>>,
    pub error: Mutex<Option<String>>,
}

impl LoserList {
    /// A loser with changes in the map that are not all put back.
    pub fn in_map(&self, map: MapId) -> Option<TxnId> {
        self.open.lock().iter().find(|open| open.maps.contains(&map)).map(|open| open.id)
    }

    /// Long values that undo may give a name to, or take one from. Nobody undoes meanwhile.
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
