//! Atomic changes of several records of the shared trees, and how they are undone. Transactions of rows are in `rows/`; they use the same undo.

pub mod page_changes;
mod page_refs;
mod put_back;
pub mod record_txn;
pub mod undo_cost;
