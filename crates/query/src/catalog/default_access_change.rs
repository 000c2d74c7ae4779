//! Changes of the privileges of new objects, as a part of a change of definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datum::Result;
use engine::rows::Strength;

use crate::catalog::Writing;
use crate::catalog::changes::lay_over;
use crate::catalog::default_access::{DefaultAccess, DefaultAccessKey};
use crate::catalog::record::put_pieces;

impl Writing<'_> {
    /// Locks a record to the end of the transaction, and returns it as the last one who had the lock has left it.
    pub fn default_access(&mut self, key: DefaultAccessKey) -> Result<Option<Arc<DefaultAccess>>> {
        self.lock(&[&b"L\0"[..], &key.bytes()].concat(), Strength::Exclusive)?;
        match self.pending.changes.default_access.get(&key) {
            Some(own) => Ok(own.clone()),
            None => Ok(self.catalog.published().default_access.get(&key).cloned()),
        }
    }

    /// Stores a record that `default_access` has locked, or removes it.
    pub fn put_default_access(&mut self, key: DefaultAccessKey, access: Option<DefaultAccess>) -> Result<()> {
        put_pieces(&mut self.txn, &key.bytes(), access.as_ref().map(DefaultAccess::encode).as_deref())?;
        let access = access.map(Arc::new);
        self.changes().default_access.insert(key, access.clone());
        lay_over(&BTreeMap::from([(key, access)]), &mut self.snapshot.default_access);
        Ok(())
    }

    /// Removes the records that `is_gone` holds for.
    pub fn drop_default_access(&mut self, is_gone: impl Fn(DefaultAccessKey) -> bool) -> Result<()> {
        let known = self.catalog.published();
        let keys = known.default_access.keys().chain(self.snapshot.default_access.keys());
        let gone: BTreeSet<DefaultAccessKey> = keys.copied().filter(|key| is_gone(*key)).collect();
        for key in gone {
            if self.default_access(key)?.is_some() {
                self.put_default_access(key, None)?;
            }
        }
        Ok(())
    }
}
