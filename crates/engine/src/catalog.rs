//! The catalog tree: settings, accounts and the map of databases. docs/formats/keyspace.md has the table of its keys.
//!
//! ```text
//!   "databases"                       keyspace of each database (keyspace/databases.rs)
//!   "account" 0 name 0 part u16 BE    an account, in parts of at most 1200 bytes (accounts.rs)
//!   "setting" 0 name                  a setting that CONFIG REWRITE keeps
//!   "follow"                          how far another server has been followed (keyspace/follow.rs)
//!   "document" 0 kind 0 name 0 part u16 BE   a text of a door, in parts of at most 1200 bytes
//! ```

use std::ops::Bound;
use std::sync::Arc;

use btree::Batch;
use pager::Lsn;
use stdx::sync::Mutex;

use crate::error::{Error, Result};
use crate::store::Store;
use crate::txn::record_txn::RecordTxn;

const DOCUMENT: &[u8] = b"document\0";
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

/// Texts of doors that survive a restart, of any length, by kind and name. The engine does not interpret them.
pub struct Documents {
    store: Arc<Store>,
    /// Held while documents are changed.
    changing: Mutex<()>,
}

impl Documents {
    pub(crate) fn new(store: Arc<Store>) -> Documents {
        Documents { store, changing: Mutex::new(()) }
    }

    fn prefix(kind: &str, name: &str) -> Result<Vec<u8>> {
        if name.is_empty() || name.len() > NAME_MAX || name.contains('\0') {
            return Err(Error::Invalid(format!("a document's name must have 1 to {NAME_MAX} bytes and no zero byte")));
        }
        Ok([DOCUMENT, kind.as_bytes(), &[0], name.as_bytes(), &[0]].concat())
    }

    /// Returns all documents of a kind, in the order of their names.
    pub fn list(&self, kind: &str) -> Result<Vec<(String, Vec<u8>)>> {
        let prefix = [DOCUMENT, kind.as_bytes(), &[0]].concat();
        let broken = || Error::corrupt("a document has a broken key");
        let mut found: Vec<(String, Vec<u8>)> = Vec::new();
        for (key, part) in with_prefix(&self.store, &prefix)? {
            let name = key[prefix.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
            let name = std::str::from_utf8(name).map_err(|_| broken())?;
            match found.last_mut() {
                Some((last, text)) if last == name => text.extend_from_slice(&part),
                _ => found.push((name.to_owned(), part)),
            }
        }
        Ok(found)
    }

    /// Puts and removes documents, all of them or none. Returns the LSN at which that is durable.
    pub fn change(&self, kind: &str, changes: &[(&str, Option<&[u8]>)]) -> Result<Lsn> {
        self.store.pager.admit()?;
        let _changing = self.changing.lock();
        let mut txn = RecordTxn::begin(&self.store);
        Self::write(&self.store, &mut txn, kind, changes)?;
        Ok(txn.commit()?.0)
    }

    /// Puts and removes documents in a transaction. The caller keeps others from changing documents of this kind until its end.
    pub(crate) fn write(
        store: &Store,
        txn: &mut RecordTxn<'_>,
        kind: &str,
        changes: &[(&str, Option<&[u8]>)],
    ) -> Result<()> {
        for (name, text) in changes {
            let prefix = Self::prefix(kind, name)?;
            let old_count = with_prefix(store, &prefix)?.len();
            let parts: Vec<&[u8]> = text.map_or(Vec::new(), |text| text.chunks(TEXT_MAX).collect());
            if parts.len() > usize::from(u16::MAX) {
                return Err(Error::TooLarge { what: "document", limit: u64::from(u16::MAX) * TEXT_MAX as u64 });
            }
            for at in 0..parts.len().max(old_count) {
                let key = [&prefix[..], &(at as u16).to_be_bytes()].concat();
                txn.change(&store.catalog, &key, |_, pages| match parts.get(at) {
                    Some(part) => pages.change.put(&[part]),
                    None => pages.change.delete(),
                })?;
            }
        }
        Ok(())
    }
}
