//! Import of files that Redis has written: RDB files, and append-only files.
//!
//! ```text
//!   RDB ──► rdb::read_file ──► `Loader` ──► keys of staged databases ──► functions ──► staged databases replace those of the file
//!   AOF ──► `Counted` ──► commands ──► `Replay` ──┘  └── an error: the staged databases go, and nothing has changed
//! ```
//! An append-only file may begin with an RDB file, and may be several files: a base and commands behind it (`manifest`). It all runs beside the service: nobody
//! sees a key before the last step, which is one record of the WAL (DR-12).

use std::io::{BufReader, Read};

use engine::{DATABASES, Error, Replace, Staging};

use crate::door::RedisDoor;
use crate::import::library_list::LibraryList;
use crate::import::loader::Loader;
use crate::import::replay::{Counted, Replay};
use crate::scripts::libraries::Policy;

pub(crate) mod library_list;
pub(crate) mod loader;
mod manifest;
pub(crate) mod outcome;
mod replay;

pub use manifest::read_manifest;
pub use outcome::{ImportError, Imported};

/// Wait reason: what was imported is not on disk yet.
static IMPORT: stdx::wait::Reason = stdx::wait::Reason::new("import");

const BUFFER_BYTES: usize = 1 << 20;

/// A file to import.
pub struct ImportPart<'f> {
    pub name: String,
    pub input: Box<dyn Read + 'f>,
}

impl RedisDoor {
    /// Imports an RDB file, or the parts of an append-only file in their order: all or nothing. Databases of which there are keys are replaced; they must be
    /// empty if `replace` says so, and libraries of functions new. Calls `progress` after each key or command with the number of bytes read. Returns when
    /// everything is on disk.
    pub fn import(
        &self,
        parts: Vec<ImportPart<'_>>,
        replace: Replace,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, ImportError> {
        let shared = &self.shared;
        let staging = shared.keyspace.stage().map_err(conflict)?;
        let (mut imported, mut libraries) = (Imported::default(), LibraryList::default());
        let (count, mut before) = (parts.len(), 0);
        for (at, part) in parts.into_iter().enumerate() {
            let name = part.name.clone();
            let is_last = at + 1 == count;
            let read = self.import_part(part, &staging, replace, &mut libraries, &mut |at| progress(before + at));
            let whole = read.map_err(|error| if count > 1 { error.in_part(&name) } else { error })?;
            if whole.cut_bytes > 0 && !is_last {
                let error = ImportError::File("the file ends in the middle of a command or transaction".into());
                return Err(error.in_part(&name));
            }
            before += whole.bytes;
            imported.expired += whole.expired;
            imported.cut_bytes = whole.cut_bytes;
        }
        if before == 0 {
            return Err(ImportError::File("the file is empty".into()));
        }
        for db in 0..DATABASES {
            imported.keys[usize::from(db)] = staging.key_count(db)?;
        }
        self.publish(staging, imported, &libraries.codes(), replace)
    }

    fn import_part(
        &self,
        part: ImportPart<'_>,
        staging: &Staging<'_>,
        replace: Replace,
        libraries: &mut LibraryList,
        progress: &mut dyn FnMut(u64),
    ) -> Result<PartRead, ImportError> {
        let mut file = Counted { input: BufReader::with_capacity(BUFFER_BYTES, part.input), at: 0 };
        let mut expired = 0;
        let first = file.peek().map_err(rdb::Error::Io)?;
        if first == Some(b'R') {
            let mut loader = Loader::new(&self.shared, staging, replace);
            rdb::read_file(&mut file, &mut |event, at| loader.take(event, at, libraries, progress))?;
            expired = loader.end()?;
        } else if !matches!(first, None | Some(b'*' | b'#')) {
            return Err(ImportError::File("this is neither an RDB file nor an append-only file".into()));
        }
        let whole = Replay::new(&self.shared, staging, libraries).run(&mut file, progress)?;
        Ok(PartRead { bytes: file.at, expired, cut_bytes: file.at - whole })
    }

    /// Shows what was imported.
    fn publish(
        &self,
        staging: Staging<'_>,
        imported: Imported,
        codes: &[&[u8]],
        replace: Replace,
    ) -> Result<Imported, ImportError> {
        let shared = &self.shared;
        let mut lsn = 0;
        if !codes.is_empty() {
            let policy = if replace == Replace::All { Policy::Replace } else { Policy::Append };
            let added = shared.libraries.add(shared, codes, policy);
            lsn = added.map_err(|text| ImportError::Conflict(text.trim_start_matches("ERR ").to_owned()))?.1;
        }
        let has_keys = |db: &u8| imported.keys[usize::from(*db)] > 0;
        let databases: Vec<u8> = (0..DATABASES).filter(has_keys).collect();
        lsn = lsn.max(staging.publish(&databases, replace).map_err(conflict)?);
        let _waiting = stdx::wait::announce(&IMPORT);
        shared.engine.durable().wait(lsn);
        Ok(Imported { libraries: codes.len(), ..imported })
    }
}

/// A part that was read.
struct PartRead {
    bytes: u64,
    expired: u64,
    cut_bytes: u64,
}

fn conflict(error: Error) -> ImportError {
    match error {
        Error::Invalid(text) => ImportError::Conflict(text),
        error => ImportError::Engine(error),
    }
}
