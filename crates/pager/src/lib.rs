//! Pages that survive a crash: frames, latches, the log, checkpoint, recovery. Start with README.md beside this crate.

mod access;
mod aside;
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
mod lane;
pub mod log;
mod mtr;
pub mod page;
mod pager;
mod pool;
mod recovery;
mod space;
mod table;

pub use aside::{Aside, Spending};
pub use backup::Backup;
pub use control::FORMAT;
pub use counts::Counts;
pub use error::{Error, Result};
pub use fetch::Then;
pub use guard::{Exclusive, Optimistic, Remembered, Shared};
pub use lane::Lane;
pub use log::read::Until;
pub use log::record::{Ignore, Observer, Record, Redo, RedoTable};
pub use mtr::Mtr;
pub use page::{Lsn, NO_PAGE, PAGE_BYTES, PAGE_WORDS, PageId, PageRef, TxnId};
pub use pager::{Background, Between, LogPin, Opened, Options, Pager};
pub use recovery::Recovered;
pub use space::{Run, WELL_KNOWN, decode as decode_space};

/// File of the pages.
pub const DATA_FILE: &str = "data";
/// File of the double write.
pub const DOUBLE_WRITE_FILE: &str = "doublewrite";
