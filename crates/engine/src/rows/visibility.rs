//! Which versions of rows a snapshot sees.

use pager::{Lsn, TxnId};

use crate::rows::state::Rows;
use crate::rows::status_table::Status;

/// A snapshot: transactions that committed at or before `lsn` are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub lsn: Lsn,
    /// Transactions with smaller ids were decided before `lsn`.
    pub low: TxnId,
}

/// Whether a version is visible.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    /// Visible, and durable at this position.
    Yes(Lsn),
    No,
    /// Visible if the record is still the same (EN-15).
    IfUnchanged,
}

impl Rows {
    pub(super) fn visibility(&self, creator: TxnId, snapshot: Snapshot, me: Option<TxnId>) -> Visibility {
        if (creator < snapshot.low && !self.statuses.is_loser(creator)) || Some(creator) == me {
            return Visibility::Yes(0);
        }
        match self.statuses.status(creator) {
            Status::Committed(lsn) if lsn <= snapshot.lsn => Visibility::Yes(lsn),
            Status::Committed(_) | Status::Active | Status::Aborted => Visibility::No,
            Status::Past => Visibility::IfUnchanged,
        }
    }
}
