//! LockTable that no record shows: rows read to be changed later, rows read to stay as they are, ranges that must stay as they are.
//!
//! A row that a transaction has changed needs no entry here, for its record names the writer. Entries belong to a transaction and count while it is
//! open, so a lock ends at the very moment its transaction is decided; the entries are swept up afterwards.
//!
//! ```text
//!   few locks of a transaction      an entry for each, with its key
//!   many                            `EscalatedLocks`: for each map and shard the hashes of the keys, some 16 bytes a lock
//!   more than memory is given       the hashes of a shard are let go, and all rows of that shard of the map are its own that nobody else has
//! ```
//! Two keys with one hash are locked together: that locks too much, never too little.
//!
//! Hard part: a writer looks here under the latch of the row's leaf, whoever locks looks at the record after putting the entry in, and both with a full fence between:
//! one of them sees the other (EN-17).

use std::collections::{HashMap, HashSet};

use pager::TxnId;
use stdx::hash::Seed;
use stdx::sync::atomic::{AtomicU64, Ordering, fence};
use stdx::sync::{Mutex, RwLock};

use crate::store::maps::RowMap;
use crate::store::trees::MapId;

/// Partitions where nobody says how many.
pub(crate) const PARTITIONS: usize = 64;
/// So many entries with keys a transaction may always have, and so many if there is room.
const EXACT_MIN: usize = 128;
const EXACT_MAX: usize = 8192;
/// A new range is joined to one of the same transaction among so many of the map's last ranges: those of a scan that locks step by step become one.
const RANGES_JOINED: usize = 16;
/// What an entry with its key takes in memory, and a hash, about.
const EXACT_BYTES: u64 = 256;
const HASH_BYTES: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    Shared,
    Exclusive,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLock {
    pub map: MapId,
    pub key: Box<[u8]>,
    pub strength: Strength,
}

/// What an open transaction has locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldLock {
    Row(RowLock),
    /// So many rows of a map, without their keys. None: all that nobody else has, of a part of the map.
    Rows {
        map: MapId,
        strength: Strength,
        count: Option<u64>,
    },
    /// Nobody else puts a new row in from here on, and before the other end.
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
    /// This very row is meant, not just all that nobody else has.
    is_sure: bool,
}

/// A lock with its key.
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

/// `from <= key < to`.
struct RangeLock {
    txn: TxnId,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl RangeLock {
    /// Extends the range by one that overlaps or touches it. False: there is a gap between them.
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

/// LockTable of one strength without their keys.
enum LockSet {
    Hashes(HashSet<u64, Seed>),
    /// Whatever nobody else has.
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

/// The locks of a transaction with many, in one shard of one map.
struct EscalatedLocks {
    txn: TxnId,
    map: MapId,
    shared: LockSet,
    exclusive: LockSet,
}

impl EscalatedLocks {
    fn holder(&self, hash: u64) -> Option<Holder> {
        let of = |set: &LockSet, strength| {
            let is_sure = matches!(set, LockSet::Hashes(_));
            set.has(hash).then_some(Holder { txn: self.txn, strength, is_sure })
        };
        of(&self.exclusive, Strength::Exclusive).or_else(|| of(&self.shared, Strength::Shared))
    }

    /// All were given back.
    fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.exclusive.is_empty()
    }

    fn set(&mut self, strength: Strength) -> &mut LockSet {
        if strength == Strength::Shared { &mut self.shared } else { &mut self.exclusive }
    }
}

struct LockShard {
    /// By the row's hash.
    rows: HashMap<u64, Vec<RowLockEntry>, Seed>,
    many: Vec<EscalatedLocks>,
}

impl LockShard {
    /// LockTable of the row that have its key, those of transactions that are decided included.
    fn exact(&self, map: MapId, key: &[u8], hash: u64) -> impl Iterator<Item = Holder> {
        let of_hash = self.rows.get(&hash).into_iter().flatten();
        of_hash.filter(move |exact| exact.is_of(map, key)).map(|exact| exact.holder)
    }

    /// Those without.
    fn in_many(&self, map: MapId, hash: u64) -> impl Iterator<Item = Holder> {
        let of_map = self.many.iter().filter(move |many| many.map == map);
        of_map.filter_map(move |many| many.holder(hash))
    }

    fn holders(&self, map: MapId, key: &[u8], hash: u64) -> impl Iterator<Item = Holder> {
        self.exact(map, key, hash).chain(self.in_many(map, hash))
    }
}

/// How a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    /// The transaction had it before.
    AlreadyHeld,
    Exact,
    Escalated,
}

/// Who asks for a lock.
#[derive(Clone, Copy)]
pub(crate) struct Requester {
    pub txn: TxnId,
    pub strength: Strength,
    /// How many locks with keys it has.
    pub exact: usize,
    /// It has written the row and puts it back: what others claim in bulk does not stand against that.
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
        let shard = || Mutex::new(LockShard { rows: HashMap::with_hasher(seed), many: Vec::new() });
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

    /// Memory that locks take, about.
    pub fn bytes(&self) -> u64 {
        self.exact.load(Ordering::Relaxed) * EXACT_BYTES + self.hashes.load(Ordering::Relaxed) * HASH_BYTES
    }

    /// LockTable with keys may take a quarter, those without the rest.
    fn is_full(&self, taken: u64, parts: u64) -> bool {
        taken > self.bytes_max.load(Ordering::Relaxed) / 4 * parts
    }

    /// The hash of a row, and its shard.
    fn place(&self, map: MapId, key: &[u8]) -> (u64, &Mutex<LockShard>) {
        let hash = self.seed.within(map.into(), key);
        // Other bits than those that the shard's tables go by.
        (hash, &self.shards[(hash >> 40) as usize % self.shards.len()])
    }

    /// Takes the lock, or names an open transaction that is in the way.
    pub fn take(
        &self,
        map: &RowMap,
        key: &[u8],
        requester: Requester,
        is_open: impl Fn(TxnId) -> bool,
    ) -> Result<Acquired, TxnId> {
        let (hash, shard) = self.place(map.id, key);
        let mut shard = shard.lock();
        let own = || shard.holders(map.id, key, hash).filter(|holder| holder.txn == requester.txn);
        let is_enough = |own: &Holder| own.strength == Strength::Exclusive || own.strength == requester.strength;
        if own().any(|own| own.is_sure && is_enough(&own)) {
            return Ok(Acquired::AlreadyHeld);
        }
        let in_the_way = |holder: &Holder| {
            holder.txn != requester.txn && conflict(holder.strength, requester.strength) && is_open(holder.txn)
        };
        let in_many = || shard.in_many(map.id, hash).filter(|_| !requester.owns);
        if let Some(holder) = shard.exact(map.id, key, hash).chain(in_many()).find(in_the_way) {
            return Err(holder.txn);
        }
        if own().any(|own| is_enough(&own)) {
            return Ok(Acquired::AlreadyHeld);
        }
        let has_weaker = own().next().is_some();
        let is_full = || self.is_full(self.exact.load(Ordering::Relaxed) * EXACT_BYTES, 1);
        let is_many = requester.exact >= EXACT_MAX || (requester.exact >= EXACT_MIN && is_full());
        let taken = if has_weaker {
            self.strengthen(&mut shard, map, key, hash, requester.txn);
            Acquired::AlreadyHeld
        } else if is_many {
            self.add_to_many(&mut shard, map, hash, requester);
            Acquired::Escalated
        } else {
            let holder = Holder { txn: requester.txn, strength: requester.strength, is_sure: true };
            shard.rows.entry(hash).or_default().push(RowLockEntry { map: map.id, key: key.into(), holder });
            self.exact.fetch_add(1, Ordering::Relaxed);
            map.row_locks.fetch_add(1, Ordering::SeqCst);
            Acquired::Exact
        };
        drop(shard);
        fence(Ordering::SeqCst);
        Ok(taken)
    }

    /// A shared lock that the transaction has becomes an exclusive one.
    fn strengthen(&self, shard: &mut LockShard, map: &RowMap, key: &[u8], hash: u64, txn: TxnId) {
        let is_own = |exact: &&mut RowLockEntry| exact.holder.txn == txn && exact.is_of(map.id, key);
        if let Some(own) = shard.rows.get_mut(&hash).and_then(|of_hash| of_hash.iter_mut().find(is_own)) {
            own.holder.strength = Strength::Exclusive;
            return;
        }
        let requester = Requester { txn, strength: Strength::Exclusive, exact: 0, owns: false };
        self.add_to_many(shard, map, hash, requester);
    }

    fn add_to_many(&self, shard: &mut LockShard, map: &RowMap, hash: u64, requester: Requester) {
        let is_own = |many: &EscalatedLocks| (many.txn, many.map) == (requester.txn, map.id);
        let at = shard.many.iter().position(is_own).unwrap_or_else(|| {
            let none = || LockSet::Hashes(HashSet::with_hasher(self.seed));
            shard.many.push(EscalatedLocks { txn: requester.txn, map: map.id, shared: none(), exclusive: none() });
            map.row_locks.fetch_add(1, Ordering::SeqCst);
            shard.many.len() - 1
        });
        let is_full = self.is_full(self.hashes.load(Ordering::Relaxed) * HASH_BYTES, 3);
        let set = shard.many[at].set(requester.strength);
        let LockSet::Hashes(hashes) = set else { return };
        if is_full && hashes.len() >= EXACT_MIN / 8 {
            self.hashes.fetch_sub(hashes.len() as u64, Ordering::Relaxed);
            *set = LockSet::All;
        } else if hashes.insert(hash) {
            self.hashes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An open transaction other than `txn` whose lock on the row conflicts with `strength`. Called under the latch of the row's leaf. `owns`: `txn` has written the row.
    pub fn holder(
        &self,
        map: &RowMap,
        key: &[u8],
        (txn, strength): (TxnId, Strength),
        owns: bool,
        is_open: impl Fn(TxnId) -> bool,
    ) -> Option<TxnId> {
        fence(Ordering::SeqCst);
        if map.row_locks.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let (hash, shard) = self.place(map.id, key);
        let shard = shard.lock();
        let has = |own: Holder| own.txn == txn && own.strength == Strength::Exclusive && own.is_sure;
        let in_the_way = |other: &Holder| other.txn != txn && conflict(other.strength, strength) && is_open(other.txn);
        // Whoever has it for himself has it from before others claimed all: they mean the rest.
        let other = if owns || shard.holders(map.id, key, hash).any(has) {
            shard.exact(map.id, key, hash).find(in_the_way)
        } else {
            shard.holders(map.id, key, hash).find(in_the_way)
        };
        other.map(|other| other.txn)
    }

    /// Gives a lock back that was just taken.
    pub fn give_back(&self, map: &RowMap, key: &[u8], txn: TxnId, taken: Acquired) {
        match taken {
            Acquired::AlreadyHeld => {}
            Acquired::Exact => self.drop_row(map, key, txn),
            Acquired::Escalated => {
                let (hash, shard) = self.place(map.id, key);
                let mut shard = shard.lock();
                let Some(many) = shard.many.iter_mut().find(|many| (many.txn, many.map) == (txn, map.id)) else {
                    return;
                };
                for set in [&mut many.shared, &mut many.exclusive] {
                    if let LockSet::Hashes(hashes) = set
                        && hashes.remove(&hash)
                    {
                        self.hashes.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// An open transaction that locks any row of the map.
    pub fn any_holder(&self, map: &RowMap, is_open: impl Fn(TxnId) -> bool) -> Option<TxnId> {
        self.shards.iter().find_map(|shard| {
            let shard = shard.lock();
            let exact = shard.rows.values().flatten().filter(|exact| exact.map == map.id);
            let many = shard.many.iter().filter(|many| many.map == map.id && !many.is_empty());
            let mut holders = exact.map(|exact| exact.holder.txn).chain(many.map(|many| many.txn));
            holders.find(|holder| is_open(*holder))
        })
    }

    /// All locks of open transactions, of one shard after another.
    pub fn list(&self, is_open: impl Fn(TxnId) -> bool) -> Vec<(TxnId, HeldLock)> {
        let mut all = Vec::new();
        let mut many: HashMap<(TxnId, MapId, bool), Option<u64>> = HashMap::new();
        for shard in &self.shards {
            let shard = shard.lock();
            for exact in shard.rows.values().flatten().filter(|exact| is_open(exact.holder.txn)) {
                let (map, key, strength) = (exact.map, exact.key.clone(), exact.holder.strength);
                all.push((exact.holder.txn, HeldLock::Row(RowLock { map, key, strength })));
            }
            for one in shard.many.iter().filter(|many| is_open(many.txn)) {
                for (set, is_shared) in [(&one.shared, true), (&one.exclusive, false)] {
                    let sum = many.entry((one.txn, one.map, is_shared)).or_insert(Some(0));
                    *sum = match set {
                        LockSet::Hashes(hashes) => sum.map(|sum| sum + hashes.len() as u64),
                        LockSet::All => None,
                    };
                }
            }
        }
        for ((txn, map, is_shared), count) in many.into_iter().filter(|(_, count)| *count != Some(0)) {
            let strength = if is_shared { Strength::Shared } else { Strength::Exclusive };
            all.push((txn, HeldLock::Rows { map, strength, count }));
        }
        for (map, ranges) in &*self.ranges.read() {
            for range in ranges.iter().filter(|range| is_open(range.txn)) {
                all.push((range.txn, HeldLock::Range { map: *map, from: range.from.clone(), to: range.to.clone() }));
            }
        }
        all
    }

    /// Sweeps up an entry.
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

    /// Sweeps up the locks without keys.
    pub fn drop_many(&self, map: &RowMap, txn: TxnId) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            let Some(at) = shard.many.iter().position(|many| (many.txn, many.map) == (txn, map.id)) else { continue };
            let many = shard.many.swap_remove(at);
            drop(shard);
            for set in [&many.shared, &many.exclusive] {
                if let LockSet::Hashes(hashes) = set {
                    self.hashes.fetch_sub(hashes.len() as u64, Ordering::Relaxed);
                }
            }
            map.row_locks.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Until `txn` is decided nobody else puts a new row into `from <= key < to`.
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

    /// An open transaction other than `txn` whose range holds the key. Called under the latch of the row's leaf, before a row is put in.
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

    /// Sweeps up the ranges of a transaction.
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

fn conflict(a: Strength, b: Strength) -> bool {
    a == Strength::Exclusive || b == Strength::Exclusive
}
