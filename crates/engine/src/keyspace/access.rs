//! Keys and values of sixteen databases in one tree.
//!
//! What a door calls: `get` and `set` for the two commands that are most of all traffic, `read` and `write` for everything else. Both take the keys of a
//! command, or of a whole EXEC, and run a closure over a `KeyTransaction` that sees and changes them as of one moment.
//!
//! ```text
//!   get    observe the stripe | one descent, value copied out | stripe unchanged? else again
//!   set    [big value written to its pages] | take the stripe | one descent: old record out, new one in, one log record | give the stripe back
//!   write  take the stripes in ascending order | closure | COMMIT if there is a transaction | give them back
//! ```

use std::cell::RefCell;
use std::ops::Range;

use pager::Lsn;
use stdx::memory;

use crate::error::{Error, Result};
use crate::keyspace::key::{DATABASES, KeySet, TreeKey, VALUE_MAX, check_database};
use crate::keyspace::key_txn::stripes;
use crate::keyspace::key_txn::{KeyTransaction, Mode, gate_of, stripes_of};
use crate::keyspace::record::{Body, Kind, Meta};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, apply};
use crate::keyspace::segments::Segments;
use crate::keyspace::state::Keyspace;
use crate::keyspace::stripes::{LockStripes, Stripe};
use crate::keyspace::value::NewBody;
use crate::keyspace::watch_registry::Touch;
use crate::keyspace::{expiry, key, record};
use crate::store::wal::Counted;
use crate::txn::page_changes::PageChanges;

/// Optimistic tries of a reading unit before it takes its locks.
const READ_TRIES: usize = 8;

/// Bytes that a door puts behind a value.
const LINE_END: usize = 2;

thread_local! {
    /// The record that a GET looks at: taken out of the tree first, so that what is sent is copied once more and not moved.
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What is known of a key before it is read. Belongs to that key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ahead {
    /// The keyspace number that the key was looked for under.
    space: u32,
    stripe: Stripe,
    at: btree::LeafHint,
}

impl Ahead {
    /// The record's page is not in memory: reading it waits for the disk.
    pub fn is_absent(&self) -> bool {
        matches!(self.at, btree::LeafHint::Missing(_))
    }

    /// What was found counts only for the same keyspace number (the database may have been renewed or swapped). The stripe is compared because it costs
    /// nothing and shows nearly every mix-up of keys, which would otherwise hide a value.
    fn of(self, space: u32, stripe: Stripe) -> btree::LeafHint {
        if self.space == space && self.stripe == stripe { self.at } else { btree::LeafHint::Unknown }
    }
}

/// What a GET found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Missing,
    WrongType(Kind),
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Got {
    pub found: Found,
    /// The log up to here must be durable before the answer is sent.
    pub gate: Lsn,
}

impl Keyspace {
    /// GET. For a string, `frame` is called with its length and may put something before it; then the value is appended to `out`.
    pub fn get(&self, db: u8, key: &[u8], out: &mut Vec<u8>, frame: impl Fn(&mut Vec<u8>, usize)) -> Result<Got> {
        self.get_at(Ahead::default(), db, key, out, frame)
    }

    /// `get` of a key of which `look_ahead` said `ahead`.
    pub fn get_at(
        &self,
        ahead: Ahead,
        db: u8,
        key: &[u8],
        out: &mut Vec<u8>,
        frame: impl Fn(&mut Vec<u8>, usize),
    ) -> Result<Got> {
        check_database(db)?;
        let base = out.len();
        for attempt in 0.. {
            let space = self.databases.space(db);
            let tree_key = TreeKey::new(space, key);
            let stripe = LockStripes::stripe(db, tree_key.suffix());
            if attempt == READ_TRIES {
                // Writers of the key leave no moment for a value of this size: they have to wait for once.
                let held = self.stripes.hold(stripe);
                let tree_key = TreeKey::new(self.databases.space(db), key);
                let got = self.try_get(btree::LeafHint::Unknown, &tree_key, held.lsn(), out, &frame);
                return got.inspect(|got| self.count_get(*got));
            }
            let seen = self.stripes.observe(stripe);
            let got = if self.databases.space(db) == space {
                self.try_get(ahead.of(space, stripe), &tree_key, seen, out, &frame)
            } else {
                Err(Error::Misuse("the database was renewed meanwhile"))
            };
            if self.stripes.validate(stripe, seen) {
                return got.inspect(|got| self.count_get(*got));
            }
            out.truncate(base);
            self.store.metrics.read_retries.add(1);
        }
        unreachable!("the last attempt holds the key")
    }

    #[inline]
    fn count_get(&self, got: Got) {
        let metrics = &self.store.metrics;
        let counter = if got.found == Found::Missing { &metrics.misses } else { &metrics.hits };
        counter.add(1);
    }

    #[inline]
    fn try_get(
        &self,
        ahead: btree::LeafHint,
        tree_key: &TreeKey,
        stripe_lsn: Lsn,
        out: &mut Vec<u8>,
        frame: &impl Fn(&mut Vec<u8>, usize),
    ) -> Result<Got> {
        RECORD.with_borrow_mut(|record| {
            record.clear();
            let found = self.store.records.get_with_hint(ahead, tree_key.as_slice(), record)?;
            if !found.present {
                return Ok(Got { found: Found::Missing, gate: stripe_lsn });
            }
            let meta = Meta::parse(record)?;
            let gate = gate_of(&found, Some(&meta), stripe_lsn, self.databases.mapped());
            let found = if meta.head.expire.is_some() && meta.is_expired(self.clock.wall_ms()) {
                Found::Missing
            } else if meta.head.kind != Kind::String {
                Found::WrongType(meta.head.kind)
            } else {
                let (skip, len) = (meta.head.key_len as usize, meta.len() as usize);
                frame(out, len);
                let _claim = match meta.body {
                    // The output moves when it grows.
                    Body::Segments { .. } => {
                        let claim = memory::claim(out.len() + len).map_err(Error::OutOfMemory)?;
                        out.reserve_exact(len + LINE_END);
                        Some(claim)
                    }
                    _ => None,
                };
                match meta.body {
                    Body::Inline(payload) => out.extend_from_slice(&payload[skip..]),
                    _ => self.store.read_payload(&meta.body, skip as u64..meta.body.payload_len(), out)?,
                }
                Found::Value
            };
            Ok(Got { found, gate })
        })
    }

    /// SET without conditions. Returns the gate of its answer.
    ///
    /// One descent for a value of up to 256 KiB; its pages, if it needs any, are written before the key is taken.
    pub fn set(&self, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<Lsn> {
        self.set_at(Ahead::default(), db, key, value, expire)
    }

    /// `set` of a key of which `look_ahead` said `ahead`.
    pub fn set_at(&self, ahead: Ahead, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<Lsn> {
        check_database(db)?;
        if key.len() > key::SHORT_KEY_MAX || value.len() as u64 > VALUE_MAX {
            return self.set_by_unit(db, key, value, expire);
        }
        self.store.pager.admit()?;
        if value.len() > record::EXTENT_MAX {
            return self.set_segments(db, key, value, expire);
        }
        if value.len() <= record::INLINE_MAX {
            let put = RecordPut { body: Body::Inline(value), ..RecordPut::new(0, expire, 0) };
            return match self.try_set(ahead, db, key, put)? {
                Some(lsn) => Ok(lsn),
                None => self.set_by_unit(db, key, value, expire),
            };
        }
        let fresh = NewBody::write(&self.store.pager, value)?;
        let put = RecordPut { body: fresh.body(), allocated: fresh.reserved.runs(), ..RecordPut::new(0, expire, 0) };
        match self.try_set(ahead, db, key, put)? {
            Some(lsn) => {
                fresh.reserved.settle();
                Ok(lsn)
            }
            None => {
                drop(fresh);
                self.set_by_unit(db, key, value, expire)
            }
        }
    }

    /// All segments are written before the key is taken; so nobody waits for them, nor does a checkpoint.
    fn set_segments(&self, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<Lsn> {
        let read = |range: Range<u64>, out: &mut Vec<u8>| {
            out.extend_from_slice(&value[range.start as usize..range.end as usize]);
            Ok(())
        };
        let segments =
            Segments::write(&self.store, value.len() as u64, read).inspect_err(|_| self.background.wake())?;
        let put = |unit: &mut KeyTransaction<'_>| {
            let place = unit.place(db, key)?;
            unit.put_segments(&place, RecordPut::new(0, expire, 0), segments)
        };
        Ok(self.write::<(), Error>(KeySet::Keys(&[(db, key)]), false, put)?.1)
    }

    fn set_by_unit(&self, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<Lsn> {
        let put = |unit: &mut KeyTransaction<'_>| unit.put_string(db, key, value, expire);
        Ok(self.write::<(), Error>(KeySet::Keys(&[(db, key)]), false, put)?.1)
    }

    /// Puts a record of its own under a short key. None: what stands there has many records, so it takes a transaction.
    fn try_set(&self, ahead: Ahead, db: u8, key: &[u8], put: RecordPut<'_>) -> Result<Option<Lsn>> {
        let mut space = self.databases.space(db);
        let mut tree_key = TreeKey::new(space, key);
        let stripe = LockStripes::stripe(db, tree_key.suffix());
        let mut held = self.hold_unclaimed(db, &tree_key, stripe)?;
        if self.databases.space(db) != space {
            space = self.databases.space(db);
            tree_key = TreeKey::new(space, key);
        }
        let now = if put.expire == Expire::None { 0 } else { self.clock.wall_ms() };
        if let Expire::At(time) = put.expire {
            self.add_expiry(db, &expiry::entry(time, tree_key.as_slice()))?;
        }
        let target = RecordChange::Put(put);
        let done = self.store.records.modify_with_hint(
            ahead.of(space, stripe),
            tree_key.as_slice(),
            None,
            |old, change| apply(old.as_ref(), &mut PageChanges::alone(change), &target, now, true),
        )?;
        held.changed(done.lsn);
        let facts = done.result?;
        if facts.needs_txn {
            return Ok(None);
        }
        if !facts.existed {
            self.counts.add(db, space, Counted { keys: 1, expiries: 0 }, done.lsn);
        }
        if let Some(time) = facts.stale_time() {
            // The change is made, whatever becomes of the entry: one that stays is found out when its time comes.
            let _ = self.remove_expiry(&expiry::entry(time, tree_key.as_slice()));
        }
        if self.watched.is_watched() {
            self.watched.touch(db, tree_key.suffix(), Touch::Changed);
        }
        Ok(Some(done.lsn))
    }

    /// Appends to `ahead` what is known of where each key's record stands, and brings the pages that are in memory near the processor. Waits for nothing.
    pub fn look_ahead(&self, keys: &[(u8, &[u8])], ahead: &mut Vec<Ahead>) {
        let space = |db: u8| if db < DATABASES { self.databases.space(db) } else { key::ELEMENTS };
        let spaces: Vec<u32> = keys.iter().map(|(db, _)| space(*db)).collect();
        let tree_keys: Vec<TreeKey> =
            keys.iter().zip(&spaces).map(|((_, key), space)| TreeKey::new(*space, key)).collect();
        let mut found = Vec::with_capacity(keys.len());
        self.store.records.locate_leaves(&tree_keys, &mut found);
        let stripes = keys.iter().zip(&tree_keys).map(|((db, _), key)| LockStripes::stripe(*db, key.suffix()));
        ahead.extend(spaces.into_iter().zip(stripes).zip(found).map(|((space, stripe), at)| Ahead {
            space,
            stripe,
            at,
        }));
    }

    /// Reads the pages that `look_ahead` found absent, all at once: waits for the disk.
    pub fn fetch_now(&self, ahead: &[Ahead]) {
        let ahead: Vec<btree::LeafHint> = ahead.iter().map(|ahead| ahead.at).collect();
        self.store.records.read_missing(&ahead);
    }

    /// Has the pages read that `look_ahead` found absent, and calls for each of them one of `thens`, in order, when it is in memory. Does not wait.
    pub fn fetch(&self, ahead: &[Ahead], thens: Vec<pager::ReadCallback>) {
        let ahead: Vec<btree::LeafHint> = ahead.iter().map(|ahead| ahead.at).collect();
        self.store.records.fetch_missing(&ahead, thens);
    }

    /// Runs a unit that changes nothing. `f` may run several times; what it returns is kept only if nothing it looked at changed meanwhile.
    ///
    /// The LSN is the gate of everything the unit saw.
    pub fn read<R, E: From<Error>>(
        &self,
        locks: KeySet<'_>,
        mut f: impl FnMut(&mut KeyTransaction<'_>) -> Result<R, E>,
    ) -> Result<(R, Lsn), E> {
        let now = self.clock.wall_ms();
        if let KeySet::Keys(keys) = locks {
            for _ in 0..READ_TRIES {
                let mut unit = KeyTransaction::new(self, stripes_of(keys)?, Mode::Optimistic, false, now);
                let result = f(&mut unit);
                if unit.is_current() {
                    unit.count_lookups();
                    return result.map(|result| (result, unit.gate()));
                }
                self.store.metrics.read_retries.add(1);
            }
        }
        let mut unit = KeyTransaction::new(self, stripes(locks)?, Mode::Locked, false, now);
        let result = f(&mut unit)?;
        unit.count_lookups();
        Ok((result, unit.commit()?))
    }

    /// Runs a unit that holds its keys. `several`: it may change more than one key, all of them or none, also over a crash.
    ///
    /// An error takes everything back. Without `several` the one change is to be the last thing the unit does, for it cannot be taken back.
    pub fn write<R, E: From<Error>>(
        &self,
        locks: KeySet<'_>,
        several: bool,
        f: impl FnOnce(&mut KeyTransaction<'_>) -> Result<R, E>,
    ) -> Result<(R, Lsn), E> {
        let mut unit = self.unclaimed_unit(locks, several)?;
        match f(&mut unit) {
            Ok(result) => {
                unit.count_lookups();
                let gate = unit.commit()?;
                Ok((result, gate))
            }
            Err(error) => {
                unit.abort();
                Err(error)
            }
        }
    }
}
