//! The root as an object. Its epoch is the number of times that it was written, and every write names the version that it replaces.
//!
//! Hard part: the claim must not take back a checkpoint. The former writer may move it between the claimant's `get` and its claim, and drop the segments before it; its
//! boot number is still in force then, so a comparison of boot numbers alone would let the claim put the older checkpoint back (PG-29).

use std::sync::Arc;

use os::{Guard, ObjectError, ObjectStore};
use stdx::sync::Mutex;

use crate::error::{Error, Result};
use crate::root::{Root, RootKind, RootRecord};
use crate::shared::object::failed;
use crate::wal::FIRST_LSN;

const NAME: &str = "root";
const KIND: RootKind = RootKind { of: "the shared database", complete: b"BELUGART", incomplete: b"BELUGAIR" };

/// The root object of a shared database.
pub(super) struct RootObject {
    objects: Arc<dyn ObjectStore>,
    /// The version that was read or written last, 0 if there is none.
    version: Mutex<u64>,
}

impl RootObject {
    pub fn new(objects: Arc<dyn ObjectStore>) -> RootObject {
        RootObject { objects, version: Mutex::new(0) }
    }

    /// Raises the boot number by one, or creates the root with the id `random`. Returns the new content, and true if there was none before.
    ///
    /// A writer that has the database open may move its checkpoint between the reading and the claim. Then the claim is refused, and made again from the newer
    /// root (PG-29). `Err(Fenced)` if another opening has raised the boot number first.
    ///
    /// A database that holds a part of a copy is refused, unless `opens_incomplete` is set.
    pub fn claim(&self, random: u64, opens_incomplete: bool) -> Result<(RootRecord, bool)> {
        let mut found = self.get()?;
        if let Some(root) = found.as_ref().filter(|_| !opens_incomplete) {
            root.check_complete()?;
        }
        let is_new = found.is_none();
        let boot = found.map_or(0, |root| root.boot);
        loop {
            let new =
                || RootRecord { database: random, checkpoint: FIRST_LSN, boot, consistent: 0, is_incomplete: false };
            let root = found.unwrap_or_else(new);
            let claimed = RootRecord { boot: boot + 1, ..root };
            match self.compare_and_set(boot, claimed) {
                Ok(()) => return Ok((claimed, is_new)),
                Err(Error::Fenced { what }) => {
                    found = self.get()?;
                    if found.is_none_or(|root| root.boot != boot) {
                        return Err(Error::Fenced { what });
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the same root, written through `objects`.
    pub fn through(self, objects: Arc<dyn ObjectStore>) -> RootObject {
        RootObject { objects, ..self }
    }
}

impl Root for RootObject {
    fn get(&self) -> Result<Option<RootRecord>> {
        let mut bytes = [0; RootRecord::BYTES];
        match self.objects.read(NAME, 0, &mut bytes) {
            Ok(_) => {
                let (version, root) = RootRecord::decode(&KIND, &bytes)?.ok_or_else(|| {
                    Error::Format("the object 'root' is damaged, or it is not Beluga's: restore a backup".into())
                })?;
                *self.version.lock() = version;
                Ok(Some(root))
            }
            Err(ObjectError::Missing) => Ok(None),
            Err(error) => Err(failed("reading the root", error)),
        }
    }

    fn compare_and_set(&self, boot: u64, next: RootRecord) -> Result<()> {
        assert!(next.boot == boot || next.boot == boot + 1, "PG-29: an opening claims the next boot number");
        self.replace(next)
    }
}

impl RootObject {
    /// Replaces the root that was read or written last, whatever its boot number. `Err(Fenced)` if another one has replaced it since.
    pub fn replace(&self, next: RootRecord) -> Result<()> {
        let mut version = self.version.lock();
        let guard = if *version == 0 { Guard::Absent } else { Guard::Equal(*version) };
        match self.objects.write(NAME, guard, *version + 1, &[(0, &next.encode(&KIND, *version + 1))]) {
            Ok(()) => {
                *version += 1;
                Ok(())
            }
            Err(ObjectError::Exists) => Err(failed("creating the root", ObjectError::Fenced)),
            Err(error) => Err(failed("writing the root", error)),
        }
    }
}
