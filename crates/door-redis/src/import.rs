//! Import of files that Redis has written.
//!
//! ```text
//!   file ──► rdb::read_file ──► `Loader`: keys of staged databases ──► checksum, counts ──► functions ──► staged databases replace those of the file
//!                                      └── an error: the staged databases go, and nothing has changed
//! ```
//! It runs beside the service: nobody sees a key before the last step, which is one record of the WAL (DR-12).

use std::io::Read;

use engine::{DATABASES, Error, Replace};

use crate::door::RedisDoor;
use crate::import::loader::Loader;
use crate::scripts::libraries::Policy;

mod loader;
mod outcome;

pub use outcome::{ImportError, Imported};

/// Wait reason: what was imported is not on disk yet.
static IMPORT: stdx::wait::Reason = stdx::wait::Reason::new("import");

impl RedisDoor {
    /// Imports an RDB file: all of it or nothing. Databases of which the file has keys are replaced; they must be empty if `replace` says so, and libraries of
    /// functions new. Calls `progress` after each key with the number of bytes read. Returns when everything is on disk.
    pub fn import(
        &self,
        input: impl Read,
        replace: Replace,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, ImportError> {
        let shared = &self.shared;
        let staging = shared.keyspace.stage().map_err(conflict)?;
        let mut loader = Loader::new(shared, &staging, replace);
        rdb::read_file(input, &mut |event, at| loader.take(event, at, progress))?;
        let (imported, codes) = loader.end()?;
        let mut lsn = 0;
        if !codes.is_empty() {
            let policy = if replace == Replace::All { Policy::Replace } else { Policy::Append };
            let codes: Vec<&[u8]> = codes.iter().map(Vec::as_slice).collect();
            let added = shared.libraries.add(shared, &codes, policy);
            lsn = added.map_err(|text| ImportError::Conflict(text.trim_start_matches("ERR ").to_owned()))?.1;
        }
        let has_keys = |db: &u8| imported.keys[usize::from(*db)] > 0;
        let databases: Vec<u8> = (0..DATABASES).filter(has_keys).collect();
        lsn = lsn.max(staging.publish(&databases, replace).map_err(conflict)?);
        let _waiting = stdx::wait::announce(&IMPORT);
        shared.engine.durable().wait(lsn);
        Ok(imported)
    }
}

fn conflict(error: Error) -> ImportError {
    match error {
        Error::Invalid(text) => ImportError::Conflict(text),
        error => ImportError::Engine(error),
    }
}
