//! Locks that no record shows: rows read to be changed later, rows read to stay as they are, ranges that must stay as they are.
//!
//! A row that a transaction has changed needs no entry here, for its record names the writer. Entries belong to a transaction and count while it is
//! open, so a lock ends at the very moment its transaction is decided; the entries are swept up afterwards.
//!
//! Hard part: a writer looks here under the latch of the row's leaf, whoever locks looks at the record after putting the entry in, and both with a full fence between:
//! one of them sees the other (M5).

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use pager::TxnId;
use stdx::sync::atomic::{Ordering, fence};
use stdx::sync::{Mutex, RwLock};

use crate::rows::MapId;
use crate::rows::maps::Map;

const SHARDS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    Shared,
    Exclusive,
}

#[derive(Clone, Copy)]
struct Holder {
    txn: TxnId,
    strength: Strength,
}

/// `from <= key < to`.
struct Range {
    txn: TxnId,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

type Key = (MapId, Box<[u8]>);

type Shard = Mutex<HashMap<Key, Vec<Holder>>>;

pub(crate) struct Locks {
    shards: Box<[Shard]>,
    ranges: RwLock<HashMap<MapId, Vec<Range>>>,
    hasher: RandomState,
}

impl Default for Locks {
    fn default() -> Self {
        Locks {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            ranges: RwLock::default(),
            hasher: RandomState::new(),
        }
    }
}

impl Locks {
    fn shard(&self, map: MapId, key: &[u8]) -> &Shard {
        &self.shards[self.hasher.hash_one((map, key)) as usize % SHARDS]
    }

    /// Takes the lock, or names an open transaction that is in the way. True: `txn` had no entry for the row before.
    pub fn take(
        &self,
        map: &Map,
        key: &[u8],
        txn: TxnId,
        strength: Strength,
        is_open: impl Fn(TxnId) -> bool,
    ) -> Result<bool, TxnId> {
        let mut shard = self.shard(map.id, key).lock();
        let holders = shard.entry((map.id, key.into())).or_default();
        holders.retain(|holder| holder.txn == txn || is_open(holder.txn));
        let in_the_way = |holder: &&Holder| holder.txn != txn && conflict(holder.strength, strength);
        if let Some(holder) = holders.iter().find(in_the_way) {
            return Err(holder.txn);
        }
        let is_new = match holders.iter_mut().find(|holder| holder.txn == txn) {
            Some(own) => {
                if strength == Strength::Exclusive {
                    own.strength = strength;
                }
                false
            }
            None => {
                holders.push(Holder { txn, strength });
                true
            }
        };
        if is_new {
            map.row_locks.fetch_add(1, Ordering::SeqCst);
        }
        drop(shard);
        fence(Ordering::SeqCst);
        Ok(is_new)
    }

    /// An open transaction other than `txn` that locks the row. Called under the latch of the row's leaf.
    pub fn holder(&self, map: &Map, key: &[u8], txn: TxnId, is_open: impl Fn(TxnId) -> bool) -> Option<TxnId> {
        fence(Ordering::SeqCst);
        if map.row_locks.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let shard = self.shard(map.id, key).lock();
        let holders = shard.get(&(map.id, key.into()) as &Key)?;
        holders.iter().map(|holder| holder.txn).find(|holder| *holder != txn && is_open(*holder))
    }

    /// Sweeps up an entry.
    pub fn drop_row(&self, map: &Map, key: &[u8], txn: TxnId) {
        let mut shard = self.shard(map.id, key).lock();
        let owned = (map.id, key.into());
        if let Some(holders) = shard.get_mut(&owned as &Key) {
            holders.retain(|holder| holder.txn != txn);
            if holders.is_empty() {
                shard.remove(&owned);
            }
        }
        drop(shard);
        map.row_locks.fetch_sub(1, Ordering::SeqCst);
    }

    /// Until `txn` is decided nobody else puts a new row into `from <= key < to`.
    pub fn take_range(&self, map: &Map, from: &[u8], to: Option<&[u8]>, txn: TxnId) {
        let range = Range { txn, from: from.to_vec(), to: to.map(<[u8]>::to_vec) };
        self.ranges.write().entry(map.id).or_default().push(range);
        map.range_locks.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// An open transaction other than `txn` whose range holds the key. Called under the latch of the row's leaf, before a row is put in.
    pub fn range_holder(&self, map: &Map, key: &[u8], txn: TxnId, is_open: impl Fn(TxnId) -> bool) -> Option<TxnId> {
        fence(Ordering::SeqCst);
        if map.range_locks.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let ranges = self.ranges.read();
        let holds = |range: &&Range| *range.from <= *key && range.to.as_ref().is_none_or(|to| *key < **to);
        let others = ranges.get(&map.id)?.iter().filter(|range| range.txn != txn);
        others.filter(holds).map(|range| range.txn).find(|holder| is_open(*holder))
    }

    /// Sweeps up the ranges of a transaction.
    pub fn drop_ranges(&self, map: &Map, txn: TxnId) {
        let mut ranges = self.ranges.write();
        let Some(of_map) = ranges.get_mut(&map.id) else { return };
        let before = of_map.len();
        of_map.retain(|range| range.txn != txn);
        map.range_locks.fetch_sub((before - of_map.len()) as u64, Ordering::SeqCst);
        if of_map.is_empty() {
            ranges.remove(&map.id);
        }
    }
}

fn conflict(a: Strength, b: Strength) -> bool {
    a == Strength::Exclusive || b == Strength::Exclusive
}
