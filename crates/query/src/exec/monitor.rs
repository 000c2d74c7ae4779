//! A running statement as other sessions see it: its counters and progress, and how they cancel it.

/// A kind of counted row access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowAccess {
    Insert,
    Update,
    Delete,
    /// The first entry of an index or of a table.
    ReadFirst,
    /// A lookup of one key, or of the start of a range.
    ReadKey,
    ReadLast,
    /// The next entry of a range.
    ReadNext,
    ReadPrev,
    /// The next row of a full scan.
    ReadSequential,
}

/// The session's view of a running statement. Called in the session's thread.
pub trait Monitor: Send + Sync {
    fn count(&self, access: RowAccess, times: u64);

    /// Returns whether the statement must end: it was cancelled, or its client has left.
    fn is_cancelled(&self) -> bool;

    /// Shows the current state of the statement, or ends it (`None`).
    fn show_state(&self, state: Option<String>);
}
