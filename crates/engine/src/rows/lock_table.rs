//! The lock table: locks that no record shows. Rows read to be changed later, rows read to stay as they are, ranges into which no other transaction may insert.
//!
//! A row that a transaction has changed needs no entry, since its record names the creator. Entries belong to a transaction and count while it is open, so a
//! lock ends at the moment its transaction is decided; the entries are removed afterwards.
//!
//! ```text
//!   few locks of a transaction      an entry for each, with its key
//!   escalated_locks                            `EscalatedLocks`: for each map and shard the hashes of the keys, some 16 bytes a lock
//!   more than the memory limit      the hashes of a shard are dropped: the transaction then holds all rows of that shard of the map that no other transaction holds
//! ```
//! Two keys with one hash are locked together: that locks too much, never too little.
//!
//! Hard part: a writer checks the table under the latch of the row's leaf; a locking reader reads the record after it has added its entry. A full fence on each
//! side makes one of them see the other (EN-17).

use std::collections::{HashMap, HashSet};

use pager::TxnId;
use stdx::hash::Seed;
use stdx::sync::atomic::{AtomicU64, Ordering, fence};
use stdx::sync::{Mutex, RwLock};

use crate::store::maps::RowMap;
use crate::store::trees::MapId;

/// Default number of partitions.
pub(crate) const PARTITIONS: usize = 64;
/// Number of locks by key that a transaction may always have, and that it may have while there is memory.
const EXACT_MIN: usize = 128;
const EXACT_MAX: usize = 8192;
/// A new range is joined to one of the same transaction among this escalated_locks last ranges of the map, so that the ranges of a scan that locks step by step
/// become one.
const RANGES_JOINED: usize = 16;
/// Approximate memory of a lock by key, and of a hash.
const EXACT_BYTES: u64 = 256;
const HASH_BYTES: u64 = 16;

/// The strength of a row lock: what other transactions may not do meanwhile. A stronger lock conflicts with everything with which a weaker one does.
///
/// ```text
///                  key-shared  shared  no-key exclusive  exclusive
///   key-shared                                            conflict      the row keeps its key
///   shared                             conflict           conflict      the row stays as it is
///   no-key exclusive          conflict conflict           conflict      for a change that keeps the key
///   exclusive        conflict conflict conflict           conflict      for any change
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    KeyShared,
    Shared,
    NoKeyExclusive,
    Exclusive,
}

const STRENGTHS: [Strength; 4] = [Strength::KeyShared, Strength::Shared, Strength::NoKeyExclusive, Strength::Exclusive];

impl Strength {
    /// Returns whether the locks of two transactions exclude each other.
    pub fn conflicts_with(self, other: Strength) -> bool {
        self as usize + other as usize >= STRENGTHS.len() - 1
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLock {
    pub map: MapId,
    pub key: Box<[u8]>,
    pub strength: Strength,
}

/// A lock of an open transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldLock {
    Row(RowLock),
    /// `count` rows of a map, without their keys. `None`: all rows of a part of the map that no other transaction holds.
    Rows {
        map: MapId,
        strength: Strength,
        count: Option<u64>,
    },
    /// No other transaction may insert rows from `from` on, and before `to`.
    Range {
        map: MapId,
        from: Vec<u8>,
        to: Option<Vec<u8>>,
    },
}

#[derive(Clone, Copy)]
struct Holder {
    txn: TxnId,
    strength: Strength,
    /// The transaction locked this very row, and not just all rows that no other transaction holds.
    is_by_key: bool,
}

/// A lock by key.
struct RowLockEntry {
    map: MapId,
    key: Box<[u8]>,
    holder: Holder,
}

impl RowLockEntry {
    fn is_of(&self, map: MapId, key: &[u8]) -> bool {
        self.map == map && *self.key == *key
    }
}

/// A lock of the range `from <= key < to`.
struct RangeLock {
    txn: TxnId,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl RangeLock {
    /// Extends the range by one that overlaps or touches it. Returns false if there is a gap between them.
    fn join(&mut self, from: &[u8], to: Option<&[u8]>) -> bool {
        let begins_before_end = |from: &[u8], to: Option<&[u8]>| to.is_none_or(|to| *from <= *to);
        if !begins_before_end(from, self.to.as_deref()) || !begins_before_end(&self.from, to) {
            return false;
        }
        if *from < *self.from {
            self.from = from.to_vec();
        }
        match (&self.to, to) {
            (Some(end), Some(to)) if *to > **end => self.to = Some(to.to_vec()),
            (Some(_), None) => self.to = None,
            _ => {}
        }
        true
    }
}

/// Escalated locks of one strength.
enum LockSet {
    Hashes(HashSet<u64, Seed>),
    /// All rows that no other transaction holds.
    All,
}

impl LockSet {
    fn has(&self, hash: u64) -> bool {
        match self {
            LockSet::Hashes(hashes) => hashes.contains(&hash),
            LockSet::All => true,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, LockSet::Hashes(hashes) if hashes.is_empty())
    }
}

/// The locks of a transaction with escalated_locks, in one shard of one map.
struct EscalatedLocks {
    txn: TxnId,
    map: MapId,
    /// By strength.
    sets: [LockSet; STRENGTHS.len()],
}

impl EscalatedLocks {
    fn holder(&self, hash: u64) -> Option<Holder> {
        let of = |set: &LockSet, strength| {
            let is_by_key = matches!(set, LockSet::Hashes(_));
            set.has(hash).then_some(Holder { txn: self.txn, strength, is_by_key })
        };
        STRENGTHS.into_iter().rev().find_map(|strength| of(&self.sets[strength as usize], strength))
    }

    /// Returns true if all were released.
    fn is_empty(&self) -> bool {
        self.sets.iter().all(LockSet::is_empty)
    }

    fn set(&mut self, strength: Strength) -> &mut LockSet {
        &mut self.sets[strength as usize]
    }
}

struct LockShard {
    /// By the row's hash.
    rows: HashMap<u64, Vec<RowLockEntry>, Seed>,
    escalated_locks: Vec<EscalatedLocks>,
}

impl LockShard {
    /// Locks by key of the row, those of decided transactions included.
    fn exact(&self, map: MapId, key: &[u8], hash: u64) -> impl Iterator<Item = Holder> {
        let of_hash = self.rows.get(&hash).into_iter().flatten();
        of_hash.filter(move |exact| exact.is_of(map, key)).map(|exact| exact.holder)
    }

    /// Escalated locks that cover the row.
    fn escalated(&self, map: MapId, hash: u64) -> impl Iterator<Item = Holder> {
        let of_map = self.escalated_locks.iter().filter(move |escalated_locks| escalated_locks.map == map);
        of_map.filter_map(move |escalated_locks| escalated_locks.holder(hash))
    }

    fn holders(&self, map: MapId, key: &[u8], hash: u64) -> impl Iterator<Item = Holder> {
        self.exact(map, key, hash).chain(self.escalated(map, hash))
    }
}

/// How a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    /// The transaction held it before.
    AlreadyHeld,
    Exact,
    Escalated,
}

/// An open transaction that is in the way, and the strength of its lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocker {
    pub txn: TxnId,
    pub strength: Strength,
}

/// The transaction that asks for a lock.
#[derive(Clone, Copy)]
pub(crate) struct Requester {
    pub txn: TxnId,
    pub strength: Strength,
    /// Number of locks by key that it holds.
    pub exact: usize,
    /// It has created the row's record and restores it: escalated locks of others do not conflict with that (EN-30).
    pub owns: bool,
}

pub(crate) struct LockTable {
    shards: Box<[Mutex<LockShard>]>,
    ranges: RwLock<HashMap<MapId, Vec<RangeLock>>>,
    seed: Seed,
    exact: AtomicU64,
    hashes: AtomicU64,
    bytes_max: AtomicU64,
}

impl LockTable {
    pub fn new(bytes_max: u64, partitions: usize) -> LockTable {
        let seed = Seed::default();
        let shard = || Mutex::new(LockShard { rows: HashMap::with_hasher(seed), escalated_locks: Vec::new() });
        LockTable {
            shards: (0..partitions.max(1)).map(|_| shard()).collect(),
            ranges: RwLock::default(),
            seed,
            exact: AtomicU64::new(0),
            hashes: AtomicU64::new(0),
            bytes_max: AtomicU64::new(bytes_max),
        }
    }

    pub fn limit(&self, bytes: u64) {
        self.bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Returns the memory that the read sets of all transactions may take before they are coarsened early.
    pub fn read_bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed) / 4
    }

    /// Returns the approximate memory that locks take.
    pub fn bytes(&self) -> u64 {
        self.exact.load(Ordering::Relaxed) * EXACT_BYTES + self.hashes.load(Ordering::Relaxed) * HASH_BYTES
    }

    /// Returns true if the given use exceeds its part of the limit. Locks by key may take a quarter, escalated locks the rest.
    fn is_full(&self, taken: u64, parts: u64) -> bool {
        taken > self.bytes_max.load(Ordering::Relaxed) / 4 * parts
    }

    /// Returns the hash of a row, and its shard.
    fn place(&self, map: MapId, key: &[u8]) -> (u64, &Mutex<LockShard>) {
        let hash = self.seed.within(map.into(), key);
        // Other bits than those that the shard's tables use.
        (hash, &self.shards[(hash >> 40) as usize % self.shards.len()])
    }

    /// Takes the lock, or returns an open transaction that holds a conflicting one.
    pub fn take(
        &self,
        map: &RowMap,
        key: &[u8],
        requester: Requester,
        is_open: impl Fn(TxnId) -> bool,
    ) -> Result<Acquired, Blocker> {
        let (hash, shard) = self.place(map.id, key);
        let mut shard = shard.lock();
        let own = || shard.holders(map.id, key, hash).filter(|holder| holder.txn == requester.txn);
        let is_enough = |own: &Holder| own.strength >= requester.strength;
        if own().any(|own| own.is_by_key && is_enough(&own)) {
            return Ok(Acquired::AlreadyHeld);
        }
        let conflicting_holder = |holder: &Holder| {
            holder.txn != requester.txn && holder.strength.conflicts_with(requester.strength) && is_open(holder.txn)
        };
        let escalated = || shard.escalated(map.id, hash).filter(|_| !requester.owns);
        let holders = shard.exact(map.id, key, hash).chain(escalated()).filter(conflicting_holder);
        if let Some(blocker) = strongest(holders) {
            return Err(blocker);
        }
        if own().any(|own| is_enough(&own)) {
            return Ok(Acquired::AlreadyHeld);
        }
        let has_weaker = own().next().is_some();
        let is_full = || self.is_full(self.exact.load(Ordering::Relaxed) * EXACT_BYTES, 1);
        let is_escalated = requester.exact >= EXACT_MAX || (requester.exact >= EXACT_MIN && is_full());
        let taken = if has_weaker {
            self.strengthen(&mut shard, map, key, hash, requester);
            Acquired::AlreadyHeld
        } else if is_escalated {
            self.add_escalated(&mut shard, map, hash, requester);
            Acquired::Escalated
        } else {
            let holder = Holder { txn: requester.txn, strength: requester.strength, is_by_key: true };
            shard.rows.entry(hash).or_default().push(RowLockEntry { map: map.id, key: key.into(), holder });
            self.exact.fetch_add(1, Ordering::Relaxed);
            map.row_locks.fetch_add(1, Ordering::SeqCst);
            Acquired::Exact
        };
        drop(shard);
        fence(Ordering::SeqCst);
        Ok(taken)
    }

    /// Turns a lock of the transaction into a stronger one.
    fn strengthen(&self, shard: &mut LockShard, map: &RowMap, key: &[u8], hash: u64, requester: Requester) {
        let is_own = |exact: &&mut RowLockEntry| exact.holder.txn == requester.txn && exact.is_of(map.id, key);
        if let Some(own) = shard.rows.get_mut(&hash).and_then(|of_hash| of_hash.iter_mut().find(is_own)) {
            own.holder.strength = requester.strength;
            return;
        }
        self.add_escalated(shard, map, hash, requester);
    }

    fn add_escalated(&self, shard: &mut LockShard, map: &RowMap, hash: u64, requester: Requester) {
        let is_own =
            |escalated_locks: &EscalatedLocks| (escalated_locks.txn, escalated_locks.map) == (requester.txn, map.id);
        let at = shard.escalated_locks.iter().position(is_own).unwrap_or_else(|| {
            let none = |_| LockSet::Hashes(HashSet::with_hasher(self.seed));
            let sets = STRENGTHS.map(none);
            shard.escalated_locks.push(EscalatedLocks { txn: requester.txn, map: map.id, sets });
            map.row_locks.fetch_add(1, Ordering::SeqCst);
            shard.escalated_locks.len() - 1
        });
        let is_full = self.is_full(self.hashes.load(Ordering::Relaxed) * HASH_BYTES, 3);
        let set = shard.escalated_locks[at].set(requester.strength);
        let LockSet::Hashes(hashes) = set else { return };
        if is_full && hashes.len() >= EXACT_MIN / 8 {
            self.hashes.fetch_sub(hashes.len() as u64, Ordering::Relaxed);
            *set = LockSet::All;
        } else if hashes.insert(hash) {
            self.hashes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns an open transaction other than `txn` whose lock on the row conflicts with `strength`. Called under the latch of the row's leaf. `owned`: the
    /// strength of the change by which `txn` has created the record.
    pub fn holder(
        &self,
        map: &RowMap,
        key: &[u8],
        (txn, strength): (TxnId, Strength),
        owned: Option<Strength>,
        is_open: impl Fn(TxnId) -> bool,
    ) -> Option<Blocker> {
        fence(Ordering::SeqCst);
        if map.row_locks.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let (hash, shard) = self.place(map.id, key);
        let shard = shard.lock();
        let held =
            shard.holders(map.id, key, hash).filter(|own| own.txn == txn && own.is_by_key).map(|own| own.strength);
        let own = held.chain(owned).max();
        let conflicting_holder =
            |other: &Holder| other.txn != txn && other.strength.conflicts_with(strength) && is_open(other.txn);
        // A lock by key was there before others escalated: they hold the rest (EN-30). But key-shared locks may have come to a row that was changed without its key.
        let counts = |other: &Holder| match own {
            Some(own) if own >= strength => false,
            Some(own) => !own.conflicts_with(other.strength),
            None => true,
        };
        let escalated = shard.escalated(map.id, hash).filter(counts);
        strongest(shard.exact(map.id, key, hash).chain(escalated).filter(conflicting_holder))
    }

    /// Releases a lock that was just taken.
    pub fn release(&self, map: &RowMap, key: &[u8], txn: TxnId, taken: Acquired) {
        match taken {
            Acquired::AlreadyHeld => {}
            Acquired::Exact => self.drop_row(map, key, txn),
            Acquired::Escalated => {
                let (hash, shard) = self.place(map.id, key);
                let mut shard = shard.lock();
                let Some(escalated_locks) = shard
                    .escalated_locks
                    .iter_mut()
                    .find(|escalated_locks| (escalated_locks.txn, escalated_locks.map) == (txn, map.id))
                else {
                    return;
                };
                for set in &mut escalated_locks.sets {
                    if let LockSet::Hashes(hashes) = set
                        && hashes.remove(&hash)
                    {
                        self.hashes.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Returns an open transaction that locks any row of the map.
    pub fn any_holder(&self, map: &RowMap, is_open: impl Fn(TxnId) -> bool) -> Option<TxnId> {
        self.shards.iter().find_map(|shard| {
            let shard = shard.lock();
            let exact = shard.rows.values().flatten().filter(|exact| exact.map == map.id);
            let escalated_locks = shard
                .escalated_locks
                .iter()
                .filter(|escalated_locks| escalated_locks.map == map.id && !escalated_locks.is_empty());
            let mut holders =
                exact.map(|exact| exact.holder.txn).chain(escalated_locks.map(|escalated_locks| escalated_locks.txn));
            holders.find(|holder| is_open(*holder))
        })
    }

    /// Lists the locks of open transactions, shard by shard.
    pub fn list(&self, is_open: impl Fn(TxnId) -> bool) -> Vec<(TxnId, HeldLock)> {
        let mut all = Vec::new();
        let mut escalated_locks: HashMap<(TxnId, MapId, usize), Option<u64>> = HashMap::new();
        for shard in &self.shards {
            let shard = shard.lock();
            for exact in shard.rows.values().flatten().filter(|exact| is_open(exact.holder.txn)) {
                let (map, key, strength) = (exact.map, exact.key.clone(), exact.holder.strength);
                all.push((exact.holder.txn, HeldLock::Row(RowLock { map, key, strength })));
            }
            for one in shard.escalated_locks.iter().filter(|escalated_locks| is_open(escalated_locks.txn)) {
                for (strength, set) in one.sets.iter().enumerate() {
                    let sum = escalated_locks.entry((one.txn, one.map, strength)).or_insert(Some(0));
                    *sum = match set {
                        LockSet::Hashes(hashes) => sum.map(|sum| sum + hashes.len() as u64),
                        LockSet::All => None,
                    };
                }
            }
        }
        for ((txn, map, strength), count) in escalated_locks.into_iter().filter(|(_, count)| *count != Some(0)) {
            all.push((txn, HeldLock::Rows { map, strength: STRENGTHS[strength], count }));
        }
        for (map, ranges) in &*self.ranges.read() {
            for range in ranges.iter().filter(|range| is_open(range.txn)) {
                all.push((range.txn, HeldLock::Range { map: *map, from: range.from.clone(), to: range.to.clone() }));
            }
        }
        all
    }

    /// Removes the lock by key of a decided transaction.
    pub fn drop_row(&self, map: &RowMap, key: &[u8], txn: TxnId) {
        let (hash, shard) = self.place(map.id, key);
        let mut shard = shard.lock();
        if let Some(of_hash) = shard.rows.get_mut(&hash) {
            of_hash.retain(|exact| exact.holder.txn != txn || !exact.is_of(map.id, key));
            if of_hash.is_empty() {
                shard.rows.remove(&hash);
            }
        }
        drop(shard);
        self.exact.fetch_sub(1, Ordering::Relaxed);
        map.row_locks.fetch_sub(1, Ordering::SeqCst);
    }

    /// Removes the escalated locks of a decided transaction.
    pub fn drop_escalated(&self, map: &RowMap, txn: TxnId) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            let Some(at) = shard
                .escalated_locks
                .iter()
                .position(|escalated_locks| (escalated_locks.txn, escalated_locks.map) == (txn, map.id))
            else {
                continue;
            };
            let escalated_locks = shard.escalated_locks.swap_remove(at);
            drop(shard);
            for set in &escalated_locks.sets {
                if let LockSet::Hashes(hashes) = set {
                    self.hashes.fetch_sub(hashes.len() as u64, Ordering::Relaxed);
                }
            }
            map.row_locks.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Locks the range `from <= key < to` against inserts by others, until `txn` is decided.
    pub fn take_range(&self, map: &RowMap, from: &[u8], to: Option<&[u8]>, txn: TxnId) {
        let mut ranges = self.ranges.write();
        let of_map = ranges.entry(map.id).or_default();
        let mut own = of_map.iter_mut().rev().take(RANGES_JOINED).filter(|range| range.txn == txn);
        if !own.any(|range| range.join(from, to)) {
            of_map.push(RangeLock { txn, from: from.to_vec(), to: to.map(<[u8]>::to_vec) });
            map.range_locks.fetch_add(1, Ordering::SeqCst);
        }
        drop(ranges);
        fence(Ordering::SeqCst);
    }

    /// Returns an open transaction other than `txn` that locks a range with this key. Called under the latch of the row's leaf, before a row is inserted.
    pub fn range_holder(&self, map: &RowMap, key: &[u8], txn: TxnId, is_open: impl Fn(TxnId) -> bool) -> Option<TxnId> {
        fence(Ordering::SeqCst);
        if map.range_locks.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let ranges = self.ranges.read();
        let holds = |range: &&RangeLock| *range.from <= *key && range.to.as_ref().is_none_or(|to| *key < **to);
        let others = ranges.get(&map.id)?.iter().filter(|range| range.txn != txn);
        others.filter(holds).map(|range| range.txn).find(|holder| is_open(*holder))
    }

    /// Removes the range locks of a decided transaction.
    pub fn drop_ranges(&self, map: &RowMap, txn: TxnId) {
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

/// Returns the holder that blocks most others: a ticket waits for it with good reason (EN-23).
fn strongest(holders: impl Iterator<Item = Holder>) -> Option<Blocker> {
    let strongest = holders.max_by_key(|holder| holder.strength)?;
    Some(Blocker { txn: strongest.txn, strength: strongest.strength })
}
