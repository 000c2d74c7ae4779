//! Pages that survive a crash: frames, latches, the log, checkpoint, recovery. Start with README.md beside this crate.

mod access;
mod backup;
mod clean;
mod control;
mod counts;
mod doublewrite;
mod error;
mod extent;
mod fetch;
mod frame;
mod guard;
mod mtr;
pub mod page;
mod pager;
mod pool;
mod read_queue;
mod recovery;
mod space;
mod table;
mod undo_reserve;
pub mod wal;

pub use backup::Backup;
pub use control::FORMAT;
pub use counts::Counts;
pub use error::{Error, Result};
pub use fetch::ReadCallback;
pub use guard::{Exclusive, Optimistic, PageStamp, Shared};
pub use mtr::Mtr;
pub use page::{Lsn, NO_PAGE, PAGE_BYTES, PAGE_WORDS, PageId, PageRef, TxnId};
pub use pager::{Background, InterleaveHook, Opened, Options, Pager, WalPin};
pub use read_queue::ReadQueue;
pub use recovery::RecoveryReport;
pub use space::{Run, WELL_KNOWN, decode as decode_space};
pub use undo_reserve::{UndoReserve, UndoScope};
pub use wal::read::RecoveryTarget;
pub use wal::record::{NoObserver, Observer, Record, Redo, RedoTable};

/// File of the pages.
pub const DATA_FILE: &str = "data";
/// File of the double write.
pub const DOUBLE_WRITE_FILE: &str = "doublewrite";
