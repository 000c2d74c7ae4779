//! Objects into which a database is copied.
//!
//! Hard part: an earlier copy that was interrupted. Its process may be frozen, and its last writes may still be under way. So a copy has an epoch of its own, greater than
//! that of any earlier one, and claims root, log and length as an opening does. Each object of the pages gets the new epoch, whether it has bytes or not; from
//! then on nothing of the earlier copy arrives.

use std::sync::Arc;

use os::ObjectStore;

use crate::error::{Error, Result};
use crate::root::{Root, RootRecord};
use crate::shared::SharedStorage;
use crate::shared::log::LogObjects;
use crate::shared::object::OpeningObjects;
use crate::shared::pages::PageObjects;
use crate::shared::root::RootObject;
use crate::wal::log_store::LogStore;

/// The objects of a database that is being copied into.
pub(crate) struct TargetObjects {
    root: RootObject,
    pub log: Arc<dyn LogStore>,
    pages: PageObjects,
}

impl SharedStorage {
    /// Claims the objects for a copy, and notes at the root that it has begun. `root` has the least boot number that the copy may have; the one that it has is returned with the objects.
    /// An interrupted copy is replaced if `overwrites` is set.
    pub(crate) fn begin_copy(
        &self,
        root: RootRecord,
        bytes: u64,
        segment_bytes: u64,
        overwrites: bool,
    ) -> Result<(TargetObjects, u64)> {
        let objects: Arc<dyn ObjectStore> = Arc::new(OpeningObjects::new(self.objects.clone(), self.on_end.clone()));
        let of_root = RootObject::new(objects.clone());
        let mut boot = root.boot;
        if let Some(found) = of_root.get()? {
            if !found.is_incomplete {
                return Err(Error::Format("there is a database already: choose another name".into()));
            }
            if !overwrites {
                found.check_complete()?;
            }
            boot = boot.max(found.boot + 1);
        }
        of_root.replace(RootRecord { boot, is_incomplete: true, ..root })?;
        let log = LogObjects::new(objects.clone(), boot, root.database, segment_bytes);
        log.fence()?;
        let pages = PageObjects::open(objects, boot, self.object_pages)?;
        // The greater length of an earlier copy stays until its objects have been replaced.
        pages.extend(bytes).map_err(|error| Error::io("noting the length of the pages", error))?;
        Ok((TargetObjects { root: of_root, log: Arc::new(log), pages }, boot))
    }
}

impl TargetObjects {
    pub fn set_root(&self, root: RootRecord) -> Result<()> {
        self.root.replace(root)
    }

    /// Returns the bytes of one object of the pages, and how many objects there are, those of an earlier copy included.
    pub fn layout(&self) -> (u64, u64) {
        let bytes = self.pages.object_bytes();
        (bytes, os::Device::len(&self.pages).div_ceil(bytes))
    }

    pub fn write(&self, object: u64, bytes: &[u8]) -> Result<()> {
        self.pages.replace_object(object, bytes)
    }

    pub fn set_length(&self, bytes: u64) -> Result<()> {
        self.pages.set_length(bytes)
    }
}
