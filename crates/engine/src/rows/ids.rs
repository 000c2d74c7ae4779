//! Ids of transactions as other systems show them: which ones a snapshot sees, and how one has ended.

use pager::{Lsn, TxnId};

use crate::error::Result;
use crate::rows::state::Rows;
use crate::rows::status_table::Status;
use crate::rows::transaction::Transaction;

/// The transactions that a snapshot sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenIds {
    /// Transactions with smaller ids are decided.
    pub first: TxnId,
    /// Transactions with this id and greater ones are not seen.
    pub end: TxnId,
    /// The ids between them, ascending, whose transactions are not seen because they were open or have committed later. The transaction's own is not among them.
    pub unseen: Vec<TxnId>,
    /// The durability LSN of what this tells.
    pub durability_lsn: Lsn,
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    Open,
    /// Durable at this position.
    Committed(Lsn),
    Aborted,
    /// Decided so long ago that the outcome is no longer kept, or an id that no transaction of rows has had.
    Forgotten,
    /// The id has not been given out.
    Unborn,
}

impl Transaction {
    /// Returns the transaction's id. One that has changed and locked nothing gets its id now.
    pub fn assigned_id(&mut self) -> Result<TxnId> {
        Ok(self.writer()?.id)
    }

    /// Returns which transactions the snapshot of plain reads sees. Takes the snapshot.
    pub fn seen_ids(&mut self) -> SeenIds {
        let snapshot = self.seen();
        let own = self.id();
        let (end, mut unseen) = self.rows.statuses.unseen_at(snapshot.lsn, snapshot.low);
        let first = unseen.iter().copied().chain(own).min().map_or(end, |id| id.min(end));
        unseen.retain(|id| Some(*id) != own);
        SeenIds { first, end, unseen, durability_lsn: snapshot.lsn }
    }
}

impl Rows {
    /// Returns how the transaction with an id has ended.
    pub fn outcome(&self, id: TxnId) -> TransactionOutcome {
        if id >= self.statuses.next() {
            return TransactionOutcome::Unborn;
        }
        match self.statuses.status(id) {
            Status::Active => TransactionOutcome::Open,
            Status::Committed(lsn) => TransactionOutcome::Committed(lsn),
            Status::Aborted => TransactionOutcome::Aborted,
            Status::Past => TransactionOutcome::Forgotten,
        }
    }
}
