//! The purge list: what committed transactions left behind, in the order of their commits.

use std::sync::Arc;

use os::Device;
use pager::{Lsn, TxnId};

use crate::rows::run::{UndoRun, UndoStep};
use crate::rows::versions::VersionBatch;

/// A committed transaction with its remains.
pub(crate) struct CommittedTxn {
    pub id: TxnId,
    pub lsn: Lsn,
    /// Its steps: those in memory, and runs of the others, oldest first.
    pub tail: Vec<UndoStep>,
    pub runs: Vec<Arc<UndoRun>>,
    /// It replaced long values, whose purge queue entries `Store::held` protects.
    pub holds_values: bool,
}

/// A batch of versions in the purge list.
pub(crate) struct SpilledBatch {
    /// The last of its commits.
    pub lsn: Lsn,
    pub batch: Arc<VersionBatch>,
    /// Those of its transactions that replaced long values (`CommittedTxn::holds_values`).
    pub holds_values: Vec<TxnId>,
}

/// An item of the purge list.
pub(crate) enum PurgeItem {
    Transaction(CommittedTxn),
    Batch(SpilledBatch),
}

impl PurgeItem {
    /// Returns the commit after which no snapshot needs the item.
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
