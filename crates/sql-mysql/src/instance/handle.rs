//! A MySQL session's handle: its entry in the list of sessions (`query::session::registry`), with MySQL's counters.

use std::ops::Deref;

use crate::instance::count::{Count, Counts};
use query::exec::monitor::{Monitor, RowAccess};
use query::session::registry::{SessionEntry, SessionHandle};

pub use query::session::interrupts::{Kill, Wake};
pub use query::session::registry::ProcessListRow;

/// A session as others see it.
pub struct Handle {
    entry: SessionEntry,
    /// The counters of the session.
    pub(crate) counts: Counts,
}

impl Deref for Handle {
    type Target = SessionEntry;

    fn deref(&self) -> &SessionEntry {
        &self.entry
    }
}

impl SessionHandle for Handle {
    fn entry(&self) -> &SessionEntry {
        &self.entry
    }

    fn changes(&self) -> u64 {
        self.counts.changes()
    }
}

impl Handle {
    pub(crate) fn new(connection_id: u64, user: String, host: String) -> Handle {
        Handle { entry: SessionEntry::new(connection_id, user, host), counts: Counts::default() }
    }
}

impl Monitor for Handle {
    fn count(&self, access: RowAccess, times: u64) {
        let count = match access {
            RowAccess::Insert => Count::HandlerWrite,
            RowAccess::Update => Count::HandlerUpdate,
            RowAccess::Delete => Count::HandlerDelete,
            RowAccess::ReadFirst => Count::HandlerReadFirst,
            RowAccess::ReadKey => Count::HandlerReadKey,
            RowAccess::ReadLast => Count::HandlerReadLast,
            RowAccess::ReadNext => Count::HandlerReadNext,
            RowAccess::ReadPrev => Count::HandlerReadPrev,
            RowAccess::ReadSequential => Count::HandlerReadRndNext,
        };
        self.counts.add_many(count, times);
    }

    fn is_cancelled(&self) -> bool {
        self.killed() != Kill::No
    }

    fn show_state(&self, state: Option<String>) {
        self.show(|shown| shown.state = state);
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "session {}", self.connection_id)
    }
}
