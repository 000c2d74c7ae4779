//! PURGELIST.

use std::sync::Arc;

use os::Device;
use pager::{Lsn, TxnId};

use crate::rows::run::{UndoRun, UndoStep};
use crate::rows::versions::VersionBatch;

/// A committed transaction with what it has left behind.
pub(crate) struct CommittedTxn {
    pub id: TxnId,
    pub lsn: Lsn,
    /// Its steps: those in memory, and runs of those that are not, oldest first.
    pub tail: Vec<UndoStep>,
    pub runs: Vec<Arc<UndoRun>>,
    /// Long values that it replaced stand in the purge queue, and `Store::held` keeps the background from them.
    pub holds_values: bool,
}

/// A batch in the queue of the purge.
pub(crate) struct SpilledBatch {
    /// The last of its commits.
    pub lsn: Lsn,
    pub batch: Arc<VersionBatch>,
    /// Those of its transactions that have replaced long values (`CommittedTxn::holds_values`).
    pub holds_values: Vec<TxnId>,
}

/// What the purge still has to do, in the order of commits.
pub(crate) enum PurgeItem {
    Transaction(CommittedTxn),
    Batch(SpilledBatch),
}

impl PurgeItem {
    /// The commit behind which nobody may need it.
    pub fn lsn(&self) -> Lsn {
        match self {
            PurgeItem::Transaction(ended) => ended.lsn,
            PurgeItem::Batch(spilled) => spilled.lsn,
        }
    }

    pub fn is_in_files(&self) -> bool {
        match self {
            PurgeItem::Transaction(ended) => !ended.runs.is_empty(),
            PurgeItem::Batch(_) => true,
        }
    }
}

/// The file that the next run goes to, and its length.
#[derive(Default)]
pub(crate) struct SpillFile {
    pub file: Option<(Arc<dyn Device>, u64)>,
}
