//! The directory of maps: which trees exist beside those that every database has.
//!
//! ```text
//!   tree 5, MAPS     map u32 BE  ->  root page u64 LE                          one record for each map; changed inside transactions like any record
//!   purge queue      3 | map u32 BE  ->  transaction u64 | root page u64       a map that no directory record names any more
//! ```
//! A map's root page is allocated by the mini-transaction that writes its directory record. If a transaction that created a map is rolled back, an entry in the
//! purge queue is written before the directory record is deleted, and purge handles the entry only when ABORT is in the WAL. A rollback to a savepoint does the
//! same, and purge waits for the end of the transaction (EN-60). A transaction that drops a map writes the entry as one of its changes (EN-8).

use std::ops::Bound;

use btree::{Batch, Tree};
use pager::{PageId, TxnId};

use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::purge_queue::{MAP_GARBAGE, Queued, queued_map};
use crate::store::trees::{FIRST_MAP, MapId};

pub(crate) fn map_key(map: MapId) -> [u8; 4] {
    map.to_be_bytes()
}

pub(crate) fn parse_map(key: &[u8], value: &[u8]) -> Result<(MapId, PageId)> {
    let bad = || Error::corrupt("a record in the directory of maps cannot be parsed");
    let map = MapId::from_be_bytes(key.try_into().map_err(|_| bad())?);
    Ok((map, PageId::from_le_bytes(value.try_into().map_err(|_| bad())?)))
}

impl Store {
    /// Opens all maps of the directory. Maps in the purge queue keep their numbers as well.
    pub fn load_maps(&self) -> Result<()> {
        self.maps.keep_numbers_below(FIRST_MAP);
        let mut batch = Batch::new();
        let mut scan = self.maps_tree.scan(Bound::Unbounded, Bound::Unbounded);
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                let (map, root) = parse_map(record.key, record.value)?;
                self.maps.add(Tree::open(&self.pager, map, root));
            }
        }
        for tree in self.garbage_maps()? {
            self.maps.keep_numbers_below(tree.id() + 1);
        }
        Ok(())
    }

    /// Returns the trees of maps in the purge queue, whose pages are still allocated.
    pub(crate) fn garbage_maps(&self) -> Result<Vec<Tree>> {
        let mut found = Vec::new();
        let mut batch = Batch::new();
        let mut scan = self.queue.scan(Bound::Included(&[MAP_GARBAGE]), Bound::Excluded(&[MAP_GARBAGE + 1]));
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                if let Queued::Map { map, root, .. } = Queued::parse(record.key, record.value)? {
                    found.push(Tree::open(&self.pager, map, root));
                }
            }
        }
        Ok(found)
    }

    /// Makes the map of directory record `key` garbage, as part of the rollback of `txn`, which created it, or of a part of it. Idempotent until the transaction
    /// is decided.
    pub(crate) fn discard_map(&self, key: &[u8], txn: TxnId) -> Result<()> {
        let mut value = Vec::new();
        if !self.maps_tree.get(key, &mut value)?.present {
            // This was done before a crash, and the entry exists.
            return Ok(());
        }
        let (map, root) = parse_map(key, &value)?;
        let (key, value) = queued_map(map, root, txn);
        self.queue.modify(&key, None, |_, change| change.put(&[&value]))?;
        Ok(())
    }
}
