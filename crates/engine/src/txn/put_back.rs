//! Undo of a transaction: restores before-images and frees the pages of what they replace.

use pager::{Lsn, TxnId};

use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::images::Images;
use crate::store::purge_queue::{MAP_GARBAGE, encode_version, is_version_key};
use crate::store::trees::{CATALOG, EXPIRY, MAPS, QUEUE, RECORDS};
use crate::txn::page_refs::PageRefs;

impl Store {
    /// Restores the images and logs ABORT. Idempotent: after any part of it the whole may run again (EN-4).
    pub fn undo(&self, txn: TxnId, images: &Images) -> Result<Lsn> {
        self.put_back(txn, images, images)?;
        Ok(self.log_abort(txn))
    }

    /// Restores images. `directory` has those of the directory of maps, whether or not they are among `images`.
    ///
    /// The WAL records for rows and the purge queue name no transaction, so recovery does not take them for steps to be undone in turn (EN-28). Records of keys
    /// name it, since keys are counted when their transaction commits.
    pub fn put_back(&self, txn: TxnId, images: &Images, directory: &Images) -> Result<()> {
        let _undoing = self.pager.enter_undo();
        let mut names = PageRefs::of(self, images)?;
        let made = |map: &[u8]| directory.get(&(MAPS, map.to_vec())).is_some_and(Option::is_none);
        for ((tree_id, key), image) in images {
            match *tree_id {
                // A map that this transaction created stays garbage, whoever wrote the entry.
                QUEUE if key[0] == MAP_GARBAGE && made(&key[1..]) => continue,
                MAPS if image.is_none() => self.discard_map(key, txn)?,
                _ => {}
            }
            let tree = self.tree(*tree_id).ok_or_else(|| Error::corrupt(format!("undo of unknown tree {tree_id}")))?;
            let named = matches!(*tree_id, CATALOG | RECORDS | EXPIRY).then_some(txn);
            // Purge skips the entry until the transaction is decided (EN-12).
            let queued = encode_version(txn);
            let is_queued = *tree_id == QUEUE && is_version_key(key) && image.is_some();
            let image = if is_queued { Some(&queued[..]) } else { image.as_deref() };
            let done = tree.modify(key, named, |old, change| -> Result<()> {
                let current = old.map(|old| old.value);
                if current == image {
                    return Ok(());
                }
                if let (RECORDS, Some(current)) = (*tree_id, current) {
                    for run in names.drop(current)? {
                        change.free(run.first, run.pages);
                    }
                }
                match image {
                    Some(image) => change.put(&[image]),
                    None => change.delete(),
                }
                Ok(())
            })?;
            done.result?;
        }
        Ok(())
    }
}
