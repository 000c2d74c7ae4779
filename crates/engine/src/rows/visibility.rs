//! VIS.

use pager::{Lsn, TxnId};

use crate::rows::state::Rows;
use crate::rows::status_table::Status;

/// What may be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub lsn: Lsn,
    /// Ids below are decided, and were before `lsn`.
    pub low: TxnId,
}

/// Whether a version is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    /// Yes, and durable at this position.
    Yes(Lsn),
    No,
    /// Yes, if the record still is what it was.
    IfItStands,
}

impl Rows {
    pub(super) fn visibility(&self, writer: TxnId, snapshot: Snapshot, me: Option<TxnId>) -> Visibility {
        if (writer < snapshot.low && !self.statuses.is_loser(writer)) || Some(writer) == me {
            return Visibility::Yes(0);
        }
        match self.statuses.status(writer) {
            Status::Committed(lsn) if lsn <= snapshot.lsn => Visibility::Yes(lsn),
            Status::Committed(_) | Status::Active | Status::Aborted => Visibility::No,
            Status::Past => Visibility::IfItStands,
        }
    }
}
