//! The root as an object. Its epoch is the number of times that it was written, and every write names the version that it replaces.
//!
//! Hard part: the claim must not take back a checkpoint. The former writer may move it between the claimant's `get` and its claim, and drop the segments before it; its
//! boot number is still in force then, so a comparison of boot numbers alone would let the claim put the older checkpoint back (PG-29).

use std::sync::Arc;

use os::{Guard, ObjectError, ObjectStore};
use stdx::sync::Mutex;

use crate::control::FORMAT;
use crate::error::{Error, Result};
use crate::page::PAGE_BYTES;
use crate::root::{Root, RootRecord};
use crate::shared::object::failed;
use crate::wal::FIRST_LSN;

const NAME: &str = "root";
const MAGIC: u64 = u64::from_le_bytes(*b"BELUGART");
/// Instead of `MAGIC` until a copy into the database is complete. Versions that do not know it take the root for damaged.
const INCOMPLETE: u64 = u64::from_le_bytes(*b"BELUGAIR");
const WORDS: usize = 8;
const BYTES: usize = WORDS * 8 + 8;

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

fn encode(root: RootRecord, version: u64) -> [u8; BYTES] {
    let RootRecord { database, checkpoint, boot, consistent, is_incomplete } = root;
    let mut bytes = [0; BYTES];
    let magic = if is_incomplete { INCOMPLETE } else { MAGIC };
    let words: [u64; WORDS] = [magic, FORMAT, PAGE_BYTES as u64, version, database, checkpoint, boot, consistent];
    for (at, word) in words.into_iter().enumerate() {
        bytes[at * 8..][..8].copy_from_slice(&word.to_le_bytes());
    }
    let crc = u64::from(crc32c::crc32c(&bytes[..WORDS * 8]));
    bytes[WORDS * 8..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; BYTES]) -> Result<(u64, RootRecord)> {
    let word = |at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight bytes"));
    if ![MAGIC, INCOMPLETE].contains(&word(0)) || word(WORDS) != u64::from(crc32c::crc32c(&bytes[..WORDS * 8])) {
        return Err(Error::Format("the object 'root' is damaged, or it is not Beluga's: restore a backup".into()));
    }
    if word(1) > FORMAT || word(2) != PAGE_BYTES as u64 {
        return Err(Error::Format(format!(
            "the shared database has format {} and pages of {} bytes, this Beluga reads formats up to {FORMAT} and pages of {PAGE_BYTES}",
            word(1),
            word(2)
        )));
    }
    let root = RootRecord {
        database: word(4),
        checkpoint: word(5),
        boot: word(6),
        consistent: word(7),
        is_incomplete: word(0) == INCOMPLETE,
    };
    Ok((word(3), root))
}

impl Root for RootObject {
    fn get(&self) -> Result<Option<RootRecord>> {
        let mut bytes = [0; BYTES];
        match self.objects.read(NAME, 0, &mut bytes) {
            Ok(_) => {
                let (version, root) = decode(&bytes)?;
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
        match self.objects.write(NAME, guard, *version + 1, &[(0, &encode(next, *version + 1))]) {
            Ok(()) => {
                *version += 1;
                Ok(())
            }
            Err(ObjectError::Exists) => Err(failed("creating the root", ObjectError::Fenced)),
            Err(error) => Err(failed("writing the root", error)),
        }
    }
}
