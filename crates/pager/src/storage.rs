//! The storage of a database that is being opened: what a local folder and shared objects give alike.

use std::sync::Arc;

use os::{Device, Folder};

use crate::page::PageId;
use crate::page_store::PageStore;
use crate::root::{Root, RootRecord};
use crate::wal::log_store::LogStore;

/// The parts of a database, before recovery.
pub(crate) struct Storage {
    pub root: Box<dyn Root>,
    /// The content of the root.
    pub control: RootRecord,
    pub log: Arc<dyn LogStore>,
    /// The pages, for reading and growing.
    pub data: Arc<dyn Device>,
    pub pages: Box<dyn PageStore>,
    /// For files that do not outlive the opening.
    pub folder: Arc<dyn Folder>,
    /// There is nothing to recover.
    pub created: bool,
    /// Pages that have been repaired.
    pub repaired: Vec<PageId>,
    /// The boot number in `control` is this opening's. Otherwise recovery comes first, so that one that fails changes nothing.
    pub is_claimed: bool,
    /// Recovery writes every page that it meets (PG-31).
    pub rewrites_redone: bool,
}
