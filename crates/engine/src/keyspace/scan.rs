//! Scans over the keys of a database: SCAN, KEYS, RANDOMKEY.
//!
//! A scan takes no locks. A record that it reads may belong to a transaction that is rolled back a moment later: a key that never existed, or, worse, the gap
//! of a key that existed all the time (EN-56). So after each stretch it checks whether a transaction that removes keys was open, or one was rolled back,
//! meanwhile. If so, it reads the stretch again. If the stripe of a key that it found has changed since the stretch began, it reads that key again.
//!
//! The position of a SCAN between calls is kept in `cursors.rs`.

use std::ops::Bound;

use btree::Batch;
use pager::Lsn;
use stdx::sync::atomic::Ordering;
use stdx::sync::thread;

use crate::error::{Error, Result};
use crate::keyspace::field_times;
use crate::keyspace::key;
use crate::keyspace::key::{LONG_KEY_PREFIX, META_LONG, META_SHORT, SPACE_BYTES, TreeKey};
use crate::keyspace::key_txn::{KeyTransaction, Mode};
use crate::keyspace::record::{Kind, Meta};
use crate::keyspace::stripes::{LockStripes, TxnStripes};

/// Maximum number of records that one leaf contributes to a batch.
const STRETCH_MAX: usize = 1024;
/// Levels of the tree that reading ahead may have to read before the leaves.
const SCAN_AHEAD_TRIES: usize = 4;
/// How often one stretch is read before all stripes are taken for it.
const TRIES: usize = 16;

/// A key found by a scan, as of a moment at which it existed.
struct FoundKey {
    key: Vec<u8>,
    kind: Kind,
}

/// One stretch of a scan.
struct Stretch {
    found: Vec<FoundKey>,
    /// Number of records read, expired ones included.
    read_count: usize,
    /// Tree key of the last record; `None` if the end was reached.
    last: Option<Vec<u8>>,
}

impl KeyTransaction<'_> {
    /// Calls `f` with about `count` keys from a cursor on. Returns the next cursor, 0 at the end.
    pub fn scan(&mut self, db: u8, cursor: u64, count: usize, mut f: impl FnMut(&[u8], Kind)) -> Result<u64> {
        let db = self.slot(db)?;
        let space = self.keyspace.databases.space(db);
        let from = self.scan_start(space, cursor);
        let stretch = self.walk(db, &from, &key::bound(space + 1), count.max(1))?;
        for found in &stretch.found {
            f(&found.key, found.kind);
        }
        Ok(stretch.last.map_or(0, |last| self.keyspace.cursors.put(cursor, &last[SPACE_BYTES..])))
    }

    /// Reads the leaves that `scan` reads first and that are not in memory together, so that it waits once. For a reader of all keys: others would read too much.
    pub fn scan_ahead(&mut self, db: u8, cursor: u64) -> Result<()> {
        let db = self.slot(db)?;
        let space = self.keyspace.databases.space(db);
        let from = self.scan_start(space, cursor);
        let records = &self.keyspace.store.records;
        for _ in 0..SCAN_AHEAD_TRIES {
            // First an inner node, if one is missing.
            let missing = records.missing_pages(&from, Some(&key::bound(space + 1)), false);
            if missing.is_empty() {
                break;
            }
            self.keyspace.store.pager.prefetch_many(&missing);
        }
        Ok(())
    }

    /// Returns the position of a cursor in the tree.
    fn scan_start(&self, space: u32, cursor: u64) -> Vec<u8> {
        let mut from = key::bound(space).to_vec();
        match self.keyspace.cursors.get(cursor) {
            Some(suffix) => {
                from.extend_from_slice(&suffix);
                from.push(0);
            }
            None if cursor != 0 => self.keyspace.store.metrics.scan_restarts.add(1),
            None => {}
        }
        from
    }

    /// Calls `f` with all keys that begin with `prefix`.
    pub fn keys(&mut self, db: u8, prefix: &[u8], mut f: impl FnMut(&[u8], Kind)) -> Result<()> {
        let db = self.slot(db)?;
        let space = self.keyspace.databases.space(db);
        for kind in [META_SHORT, META_LONG] {
            let of_kind = [&key::bound(space)[..], &[kind]].concat();
            let known = if kind == META_LONG { &prefix[..prefix.len().min(LONG_KEY_PREFIX)] } else { prefix };
            let mut from = [&of_kind, known].concat();
            let to = key::after_prefix(&from).unwrap_or_else(|| key::bound(space + 1).to_vec());
            loop {
                let stretch = self.walk(db, &from, &to, 1024)?;
                for found in stretch.found.iter().filter(|found| found.key.starts_with(prefix)) {
                    f(&found.key, found.kind);
                }
                let Some(mut last) = stretch.last else { break };
                last.push(0);
                from = last;
            }
        }
        Ok(())
    }

    /// Returns some key of the database, each with about the same probability.
    pub fn random_key(&mut self, db: u8) -> Result<Option<Vec<u8>>> {
        const DRAWS: usize = 100;
        let db = self.slot(db)?;
        let space = self.keyspace.databases.space(db);
        let (from, to) = (key::bound(space), key::bound(space + 1));
        for _ in 0..DRAWS {
            let drawn = {
                let mut prng = self.keyspace.prng.lock();
                self.keyspace.store.records.random(&from, Some(&to), &mut prng)?
            };
            let Some(drawn) = drawn else { return Ok(None) };
            if let Some(found) = self.read_one(db, space, &drawn.key)? {
                return Ok(Some(found.key));
            }
        }
        // Nearly all keys have expired: take the first one that has not.
        let mut from = from.to_vec();
        loop {
            let stretch = self.walk(db, &from, &to, 1024)?;
            if let Some(found) = stretch.found.into_iter().next() {
                return Ok(Some(found.key));
            }
            let Some(mut last) = stretch.last else { return Ok(None) };
            last.push(0);
            from = last;
        }
    }

    /// Reads about `count` records of `from..to`, consistently with all transactions.
    fn walk(&mut self, db: u8, from: &[u8], to: &[u8], count: usize) -> Result<Stretch> {
        if matches!(self.stripes, TxnStripes::All(_)) {
            return self.stretch(db, from, to, count, Lsn::MAX);
        }
        self.must_not_write()?;
        let store = &self.keyspace.store;
        for _ in 0..TRIES {
            let undone = store.undone.load(Ordering::Acquire);
            if store.removing.load(Ordering::Acquire) != 0 {
                thread::yield_now();
                continue;
            }
            let head = store.pager.wal_head();
            let stretch = self.stretch(db, from, to, count, head);
            if store.removing.load(Ordering::Acquire) == 0 && store.undone.load(Ordering::Acquire) == undone {
                self.durability_lsn = self.durability_lsn.max(store.pager.wal_head());
                return stretch;
            }
        }
        // A transaction of its own holds every stripe for this one stretch.
        let mut locked = KeyTransaction::new(self.keyspace, TxnStripes::All(Vec::new()), Mode::Locked, false, self.now);
        let stretch = locked.stretch(db, from, to, count, Lsn::MAX);
        self.durability_lsn = self.durability_lsn.max(store.pager.wal_head());
        stretch
    }

    /// Fails in a writing transaction: other threads may hold the stripes that the scan would have to wait for, and wait for ours.
    fn must_not_write(&self) -> Result<()> {
        if self.mode == Mode::Optimistic {
            Ok(())
        } else {
            Err(Error::Misuse("SCAN, KEYS or RANDOMKEY in a transaction that holds some stripes but not all"))
        }
    }

    /// Reads one stretch. Keys whose stripe has changed after `head` are read again one by one.
    fn stretch(&mut self, db: u8, from: &[u8], to: &[u8], count: usize, head: Lsn) -> Result<Stretch> {
        let space = self.keyspace.databases.space(db);
        let scan = self.keyspace.store.records.scan(Bound::Included(from), Bound::Excluded(to));
        let mut scan = scan.with_limit(count.min(STRETCH_MAX));
        let mut stretch = Stretch { found: Vec::new(), read_count: 0, last: None };
        let mut batch = Batch::new();
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                if stretch.read_count == count {
                    return Ok(stretch);
                }
                stretch.read_count += 1;
                stretch.last = Some(record.key.to_vec());
                let suffix = &record.key[SPACE_BYTES..];
                let stripe = LockStripes::stripe(db, suffix);
                let settled = head == Lsn::MAX || self.keyspace.stripes.is_settled(stripe, head);
                let meta = Meta::parse(record.value)?;
                // Whether a hash of which fields are due is absent may depend on other records, which belong to the same moment.
                let has_due = field_times::least(&meta)?.is_some_and(|least| self.now > least);
                let found = if settled && meta.head.key_len == 0 && !has_due {
                    self.live(suffix, record.value)?
                } else {
                    self.read_one(db, space, record.key)?
                };
                stretch.found.extend(found);
            }
        }
        stretch.last = None;
        Ok(stretch)
    }

    fn live(&self, suffix: &[u8], value: &[u8]) -> Result<Option<FoundKey>> {
        let meta = Meta::parse(value)?;
        if meta.is_expired(self.now) || field_times::are_all_due(&self.keyspace.store, &meta, self.now)? {
            return Ok(None);
        }
        Ok(Some(FoundKey { key: self.user_key(suffix, &meta)?, kind: meta.head.kind }))
    }

    /// Reads one key under its stripe.
    fn read_one(&mut self, db: u8, space: u32, tree_key: &[u8]) -> Result<Option<FoundKey>> {
        let key = TreeKey::from_bytes(tree_key);
        let stripe = LockStripes::stripe(db, key.suffix());
        let held = matches!(self.stripes, TxnStripes::All(_));
        if !held {
            self.must_not_write()?;
        }
        loop {
            let seen = if held { 0 } else { self.keyspace.stripes.observe(stripe) };
            let mut value = Vec::new();
            let found = if self.keyspace.databases.space(db) != space {
                Ok(None)
            } else if self.keyspace.store.records.get(key.as_slice(), &mut value)?.present {
                self.live(key.suffix(), &value)
            } else {
                Ok(None)
            };
            if held || self.keyspace.stripes.validate(stripe, seen) {
                self.durability_lsn = self.durability_lsn.max(self.keyspace.store.pager.wal_head());
                return found;
            }
        }
    }
}
