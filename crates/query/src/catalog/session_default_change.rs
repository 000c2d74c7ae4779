//! Changes of the settings of new sessions, as a part of a change of definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datum::Result;
use engine::rows::Strength;

use crate::catalog::Writing;
use crate::catalog::changes::lay_over;
use crate::catalog::record::put_pieces;
use crate::catalog::session_default::{DefaultsKey, encode};

impl Writing<'_> {
    /// Locks a record to the end of the transaction, and returns it as the last one who had the lock has left it.
    pub fn session_defaults(&mut self, key: DefaultsKey) -> Result<Option<Arc<[String]>>> {
        self.lock(&[&b"L\0"[..], &key.bytes()].concat(), Strength::Exclusive)?;
        match self.pending.changes.session_defaults.get(&key) {
            Some(own) => Ok(own.clone()),
            None => Ok(self.catalog.published().session_defaults.get(&key).cloned()),
        }
    }

    /// Stores a record that `session_defaults` has locked, or removes it if there are no texts.
    pub fn put_session_defaults(&mut self, key: DefaultsKey, texts: Vec<String>) -> Result<()> {
        let texts: Option<Arc<[String]>> = (!texts.is_empty()).then(|| texts.into());
        put_pieces(&mut self.txn, &key.bytes(), texts.as_deref().map(encode).as_deref())?;
        self.changes().session_defaults.insert(key, texts.clone());
        lay_over(&BTreeMap::from([(key, texts)]), &mut self.snapshot.session_defaults);
        Ok(())
    }

    /// Removes the records that `is_gone` holds for.
    pub fn drop_session_defaults(&mut self, is_gone: impl Fn(DefaultsKey) -> bool) -> Result<()> {
        let known = self.catalog.published();
        let keys = known.session_defaults.keys().chain(self.snapshot.session_defaults.keys());
        let gone: BTreeSet<DefaultsKey> = keys.copied().filter(|key| is_gone(*key)).collect();
        for key in gone {
            if self.session_defaults(key)?.is_some() {
                self.put_session_defaults(key, Vec::new())?;
            }
        }
        Ok(())
    }
}
