//! Pages that survive a crash: buffer pool, latches, WAL, checkpoint, recovery. Start with README.md beside this crate.

mod access;
mod background;
mod backup;
mod buffer_pool;
mod checkpoint;
mod clean;
mod control;
mod counts;
mod double_write;
mod error;
mod extent;
mod fetch;
mod frame;
mod guard;
mod mtr;
mod open;
pub mod page;
mod page_table;
mod pager;
mod parking_lot;
mod read_queue;
mod reader_pool;
mod recovery;
mod redo;
mod space;
mod space_map;
mod undo_reserve;
mod undo_scope;
pub mod wal;
mod write_batch;

pub use backup::Backup;
pub use checkpoint::WalPin;
pub use control::FORMAT;
pub use counts::Counts;
pub use error::{Error, Result};
pub use guard::{Exclusive, Optimistic, PageStamp, Shared};
pub use mtr::Mtr;
pub use open::Opened;
pub use page::{Lsn, NO_PAGE, PAGE_BYTES, PAGE_WORDS, PageId, PageRef, TxnId};
pub use pager::{Background, InterleaveHook, Options, Pager};
pub use read_queue::ReadQueue;
pub use reader_pool::ReadCallback;
pub use recovery::RecoveryReport;
pub use redo::{Redo, RedoTable};
pub use space_map::{Run, WELL_KNOWN, decode as decode_space};
pub use undo_reserve::UndoReserve;
pub use undo_scope::UndoScope;
pub use wal::read::RecoveryTarget;
pub use wal::record::{NoObserver, Observer, Record};

/// Name of the file of the pages.
pub const DATA_FILE: &str = "data";
/// Name of the double-write file.
pub const DOUBLE_WRITE_FILE: &str = "doublewrite";
