//! A database in storage that several nodes reach (docs/decisions/0037-three-seams-to-shared-storage.md).
//!
//! ```text
//!   root                 RootRecord; its epoch is the boot number
//!   log/first            number of the first segment that is kept
//!   log/<number>         a segment, in the format of the local files
//!   size                 length of the pages in bytes, pages of an object
//!   page/<id / pages>    1,024 pages, unless the database was created with another number; absent bytes read as zero
//! ```
//! An opening claims the database by replacing boot number n at the root by n + 1, then seals the log, then recovers. From then on no write of an earlier
//! opening changes what this one relies on (PG-29 to PG-32, PG-34, PG-35). Nothing is ever found by listing objects.

mod log;
mod object;
mod pages;
mod root;
mod target;

use std::sync::Arc;

use os::{Folder, ObjectStore};

use crate::error::{Error, Result};
use crate::page_store::PageStore;
use crate::pager::Options;
use crate::root::Root;
use crate::shared::log::LogObjects;
pub use crate::shared::object::EndHook;
use crate::shared::object::OpeningObjects;
use crate::shared::pages::PageObjects;
use crate::shared::root::RootObject;
pub(crate) use crate::shared::target::TargetObjects;
use crate::space_map;
use crate::storage::Storage;
use crate::wal::FIRST_LSN;
use crate::wal::log_store::LogStore;

/// Where a shared database lies.
#[derive(Clone)]
pub struct SharedStorage {
    /// The objects of this database alone.
    pub objects: Arc<dyn ObjectStore>,
    /// A folder of this node, for files that do not outlive the opening.
    pub scratch: Arc<dyn Folder>,
    /// Pages of an object, for a new database.
    pub object_pages: u64,
    /// Called when the opening has ended, before anybody learns of it. A process has nothing left to do then.
    pub on_end: Option<EndHook>,
    /// For simulation: leaves out a part of the fence, so that the loss can be seen.
    pub unfenced: Option<Unfenced>,
}

/// A part of the fence that is the pager's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfenced {
    /// Recovery leaves pages that it finds up to date as they are (PG-31).
    Redone,
    /// An opening goes on after a write whose outcome is not known (PG-34).
    Doubt,
}

impl SharedStorage {
    /// Pages of an object where nothing else is asked for: 4 MiB.
    pub const OBJECT_PAGES: u64 = 1024;

    /// Returns true if there is a database, or a part of one.
    pub fn exists(objects: &Arc<dyn ObjectStore>) -> Result<bool> {
        Ok(RootObject::new(objects.clone()).get()?.is_some())
    }

    /// Claims the database, or creates it with the id `random`, and seals its log. `Err(Fenced)` if another node was quicker.
    pub(crate) fn open(&self, options: &Options, random: u64) -> Result<Storage> {
        let root = RootObject::new(self.objects.clone());
        let (control, is_new) = root.claim(random, options.opens_incomplete)?;
        let objects: Arc<dyn ObjectStore> = match self.unfenced {
            Some(Unfenced::Doubt) => self.objects.clone(),
            _ => Arc::new(OpeningObjects::new(self.objects.clone(), self.on_end.clone())),
        };
        let root = root.through(objects.clone());
        let log = LogObjects::new(objects.clone(), control.boot, control.database, options.segment_bytes);
        log.fence()?;
        let pages = PageObjects::open(objects, control.boot, self.object_pages)?;
        let created = is_new || (control.checkpoint == FIRST_LSN && log.segments()?.is_empty());
        if created {
            pages.extend(space_map::FIRST_BYTES).map_err(|error| Error::io("creating the pages", error))?;
        }
        let pages = Arc::new(pages);
        Ok(Storage {
            root: Box::new(root),
            control,
            log: Arc::new(log),
            data: pages.clone(),
            pages: Box::new(pages) as Box<dyn PageStore>,
            folder: self.scratch.clone(),
            created,
            repaired: Vec::new(),
            is_claimed: true,
            rewrites_redone: self.unfenced != Some(Unfenced::Redone),
        })
    }
}
