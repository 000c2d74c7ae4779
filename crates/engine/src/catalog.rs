//! The catalog tree: settings, accounts and the map of databases. docs/formats/keyspace.md has the table of its keys.
//!
//! ```text
//!   "databases"                       keyspace of each database (keyspace/databases.rs)
//!   "account" 0 name 0 part u16 BE    an account, in parts of at most 1200 bytes (accounts.rs)
//!   "setting" 0 name                  a setting that CONFIG REWRITE keeps
//! ```

use std::ops::Bound;
use std::sync::Arc;

use btree::Batch;
use pager::Lsn;

use crate::error::{Error, Result};
use crate::store::Store;

const SETTING: &[u8] = b"setting\0";
const NAME_MAX: usize = 256;
const TEXT_MAX: usize = 1200;

/// Returns all catalog records whose key begins with `prefix`.
pub(crate) fn with_prefix(store: &Store, prefix: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut scan = store.catalog.scan(Bound::Included(prefix), Bound::Unbounded);
    let mut batch = Batch::new();
    while scan.next_batch(&mut batch)? {
        for record in batch.iter() {
            if !record.key.starts_with(prefix) {
                return Ok(found);
            }
            found.push((record.key.to_vec(), record.value.to_vec()));
        }
    }
    Ok(found)
}

/// Settings that survive a restart, as pairs of texts. The engine does not interpret them.
pub struct Settings {
    store: Arc<Store>,
}

impl Settings {
    pub(crate) fn new(store: Arc<Store>) -> Settings {
        Settings { store }
    }

    fn key(name: &str) -> Result<Vec<u8>> {
        if name.is_empty() || name.len() > NAME_MAX || name.contains('\0') {
            return Err(Error::Invalid(format!("a setting's name must have 1 to {NAME_MAX} bytes and no zero byte")));
        }
        Ok([SETTING, name.as_bytes()].concat())
    }

    pub fn get(&self, name: &str) -> Result<Option<String>> {
        let mut value = Vec::new();
        if !self.store.catalog.get(&Self::key(name)?, &mut value)?.present {
            return Ok(None);
        }
        String::from_utf8(value).map(Some).map_err(|_| Error::corrupt("a setting is not valid UTF-8"))
    }

    /// Stores a setting. Returns the LSN at which it is durable.
    pub fn set(&self, name: &str, value: &str) -> Result<Lsn> {
        if value.len() > TEXT_MAX {
            return Err(Error::TooLarge { what: "setting", limit: TEXT_MAX as u64 });
        }
        self.store.pager.admit()?;
        let done = self.store.catalog.modify(&Self::key(name)?, None, |_, change| change.put(&[value.as_bytes()]))?;
        Ok(done.lsn)
    }

    pub fn remove(&self, name: &str) -> Result<Lsn> {
        self.store.pager.admit()?;
        let done = self.store.catalog.modify(&Self::key(name)?, None, |old, change| {
            if old.is_some() {
                change.delete();
            }
        })?;
        Ok(done.lsn)
    }

    /// Returns all settings in the order of their names.
    pub fn list(&self) -> Result<Vec<(String, String)>> {
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).map_err(|_| Error::corrupt("a setting is not valid UTF-8"))
        };
        let pairs = with_prefix(&self.store, SETTING)?;
        pairs.iter().map(|(key, value)| Ok((text(&key[SETTING.len()..])?, text(value)?))).collect()
    }
}
