//! The interface for doors: `get` and `set` for the two most frequent commands, `read` and `write` for all others. The latter take the keys of a command, or of
//! a whole EXEC, and run a closure over a `KeyTransaction`.
//!
//! ```text
//!   get    observe the stripe | one descent, value copied out | stripe unchanged? otherwise again
//!   set    [large value written to its pages] | take the stripe | one descent: old record out, new one in, one WAL record | release the stripe
//!   write  take the stripes in ascending order | closure | COMMIT if there is a transaction | release them
//! ```

use std::cell::RefCell;
use std::ops::Range;

use pager::Lsn;
use stdx::memory;

use crate::error::{Error, Result};
use crate::keyspace::ahead::Ahead;
use crate::keyspace::effects::{EffectLog, KeyEffect};
use crate::keyspace::key::{DATABASES, KeySet, TreeKey, VALUE_MAX, check_database};
use crate::keyspace::key_events::{KeyEvent, event_class};
use crate::keyspace::key_txn::stripes;
use crate::keyspace::key_txn::{Growth, KeyTransaction, Mode, WantedKeys, durability_lsn_of, stripes_of};
use crate::keyspace::record::{Body, Kind, Meta};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, Replaced, apply};
use crate::keyspace::segments::Segments;
use crate::keyspace::state::Keyspace;
use crate::keyspace::stripes::LockStripes;
use crate::keyspace::value::NewBody;
use crate::keyspace::watch_registry::Touch;
use crate::keyspace::writer_number::EVERYBODY;
use crate::keyspace::{expiry, key, record};
use crate::store::wal::Counted;
use crate::txn::page_changes::PageChanges;

/// Optimistic tries before a reading transaction takes its stripes.
const READ_TRIES: usize = 8;

/// Runs of a growing key transaction before it takes all keys.
const GROWING_RUNS_MAX: usize = 4;

/// Bytes that a door appends to a value.
const LINE_END: usize = 2;

thread_local! {
    /// The record that a GET reads. It is copied out of the tree first, so that the reply is copied once more and not moved.
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The outcome of a GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Missing,
    WrongType(Kind),
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Got {
    pub found: Found,
    /// The durability LSN of the answer.
    pub durability_lsn: Lsn,
}

impl Keyspace {
    /// Runs GET. If the key holds a string, calls `frame` with its length, which may write a header, and then appends the value to `out`.
    pub fn get(&self, db: u8, key: &[u8], out: &mut Vec<u8>, frame: impl Fn(&mut Vec<u8>, usize)) -> Result<Got> {
        self.get_at(Ahead::default(), db, key, out, frame)
    }

    /// Runs `get` with what `look_ahead` found out about the key.
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
                // Writers of the key leave no moment to read a value of this size, so they have to wait for once.
                let held = self.stripes.hold(stripe)?;
                let tree_key = TreeKey::new(self.databases.space(db), key);
                let got = self.try_get(btree::LeafHint::Unknown, &tree_key, held.lsn(), out, &frame);
                return got.inspect(|got| self.count_get(*got, db, key));
            }
            let seen = self.stripes.observe_unless_busy(stripe)?;
            let got = if self.databases.space(db) == space {
                self.try_get(ahead.of(space, stripe), &tree_key, seen, out, &frame)
            } else {
                Err(Error::Misuse("the database was flushed or swapped meanwhile"))
            };
            if self.stripes.validate(stripe, seen) {
                return got.inspect(|got| self.count_get(*got, db, key));
            }
            out.truncate(base);
            self.store.metrics.read_retries.add(1);
        }
        unreachable!("the last attempt holds the key")
    }

    #[inline]
    fn count_get(&self, got: Got, db: u8, key: &[u8]) {
        let metrics = &self.store.metrics;
        let counter = if got.found == Found::Missing { &metrics.misses } else { &metrics.hits };
        counter.add(1);
        if got.found == Found::Missing && self.events.wants(event_class::MISS) {
            let event = KeyEvent { db, class: event_class::MISS, name: "keymiss", key: key.into() };
            self.events.announce(&[event], got.durability_lsn);
        }
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
                return Ok(Got { found: Found::Missing, durability_lsn: stripe_lsn });
            }
            let meta = Meta::parse(record)?;
            let durability_lsn = durability_lsn_of(&found, Some(&meta), stripe_lsn, self.databases.mapped());
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
            Ok(Got { found, durability_lsn })
        })
    }

    /// Runs SET without conditions. Returns the durability LSN of its answer.
    ///
    /// A value of up to 256 KiB takes one descent; its pages, if it needs any, are written before the stripe is taken.
    pub fn set(&self, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<Lsn> {
        self.set_at(Ahead::default(), db, key, value, expire)
    }

    /// Runs `set` with what `look_ahead` found out about the key.
    pub fn set_at(&self, ahead: Ahead, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<Lsn> {
        check_database(db)?;
        if key.len() > key::SHORT_KEY_MAX || value.len() as u64 > VALUE_MAX {
            return self.set_by_key_txn(db, key, value, expire);
        }
        self.store.pager.admit()?;
        if value.len() > record::EXTENT_MAX {
            return self.set_segments(db, key, value, expire);
        }
        if value.len() <= record::INLINE_MAX {
            let put = RecordPut { body: Body::Inline(value), ..RecordPut::new(0, expire, 0) };
            return match self.try_set(ahead, db, key, put)? {
                Some(lsn) => Ok(lsn),
                None => self.set_by_key_txn(db, key, value, expire),
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
                self.set_by_key_txn(db, key, value, expire)
            }
        }
    }

    /// Stores a value in segments. They are written before the stripe is taken, so neither another command nor a checkpoint waits for them.
    fn set_segments(&self, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<Lsn> {
        let read = |range: Range<u64>, out: &mut Vec<u8>| {
            out.extend_from_slice(&value[range.start as usize..range.end as usize]);
            Ok(())
        };
        let segments =
            Segments::write(&self.store, value.len() as u64, read).inspect_err(|_| self.background.wake())?;
        let put = |key_txn: &mut KeyTransaction<'_>| {
            let place = key_txn.place(db, key)?;
            key_txn.put_segments(&place, RecordPut::new(0, expire, 0), segments)?;
            key_txn.effect(db, KeyEffect::Set { key, value, expire });
            key_txn.notify_set(db, key, expire);
            Ok(())
        };
        Ok(self.write::<(), Error>(KeySet::Keys(&[(db, key)]), false, put)?.1)
    }

    fn set_by_key_txn(&self, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<Lsn> {
        let put = |key_txn: &mut KeyTransaction<'_>| {
            key_txn.put_string(db, key, value, expire)?;
            key_txn.notify_set(db, key, expire);
            Ok(())
        };
        Ok(self.write::<(), Error>(KeySet::Keys(&[(db, key)]), false, put)?.1)
    }

    /// Stores a value in the key's one record. Returns `None` if that needs a key transaction, because the old value is in segments or clients wait for the key.
    fn try_set(&self, ahead: Ahead, db: u8, key: &[u8], put: RecordPut<'_>) -> Result<Option<Lsn>> {
        let expire = put.expire;
        let mut space = self.databases.space(db);
        let mut tree_key = TreeKey::new(space, key);
        let stripe = LockStripes::stripe(db, tree_key.suffix());
        let mut held = self.hold_unlocked(db, &tree_key, stripe)?;
        self.writer.check(EVERYBODY)?;
        if self.databases.space(db) != space {
            space = self.databases.space(db);
            tree_key = TreeKey::new(space, key);
        }
        if self.waiters.any() && self.waiters.has(db, tree_key.suffix()) {
            return Ok(None);
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
            // The change is made, whatever happens to the entry: one that remains is recognised as stale when its time comes.
            let _ = self.remove_expiry(&expiry::entry(time, tree_key.as_slice()));
        }
        if let Some(time) = facts.stale_field_time() {
            let _ = self.remove_expiry(&expiry::entry_of_fields(time, tree_key.as_slice()));
        }
        if self.watched.is_watched() {
            self.watched.touch(db, tree_key.suffix(), Touch::Changed);
        }
        if self.effects.is_on() {
            self.append_set((db, key), target, &facts, done.lsn)?;
        }
        if self.events.any() {
            self.announce_set(db, key, expire, &facts, done.lsn);
        }
        Ok(Some(done.lsn))
    }

    /// Passes on the effect of a SET of one record. Its stripe is held.
    #[cold]
    fn append_set(&self, (db, key): (u8, &[u8]), change: RecordChange<'_>, facts: &Replaced, lsn: Lsn) -> Result<()> {
        let (RecordChange::Put(put), mut log) = (change, EffectLog::default()) else { return Ok(()) };
        if facts.expire.is_some_and(|time| self.clock.wall_ms() > time) {
            self.effects.record(&mut log, db, &KeyEffect::Delete { key });
        }
        let mut value = Vec::new();
        match put.body {
            Body::Inline(bytes) => value.extend_from_slice(bytes),
            body => self.store.read_payload(&body, 0..body.payload_len(), &mut value)?,
        }
        self.effects.record(&mut log, db, &KeyEffect::Set { key, value: &value, expire: put.expire });
        self.effects.append(&mut log, lsn);
        Ok(())
    }

    /// Announces a SET of one record. Its stripe is held.
    #[cold]
    fn announce_set(&self, db: u8, key: &[u8], expire: Expire, facts: &Replaced, lsn: Lsn) {
        let was_expired = facts.expire.is_some_and(|time| self.clock.wall_ms() > time);
        let events = [
            (was_expired, event_class::EXPIRED, "expired"),
            (was_expired || !facts.existed, event_class::NEW, "new"),
            (true, event_class::STRING, "set"),
            (true, event_class::CHANGED, ""),
            (matches!(expire, Expire::At(_)), event_class::GENERIC, "expire"),
        ];
        let wanted = events.into_iter().filter(|(is, class, _)| *is && self.events.wants(*class));
        let events: Vec<_> = wanted.map(|(_, class, name)| KeyEvent { db, class, name, key: key.into() }).collect();
        self.events.announce(&events, lsn);
    }

    /// Appends to `ahead` where each key's record is, and prefetches pages that are in memory into the processor's cache. Does not block.
    pub fn look_ahead(&self, keys: &[(u8, &[u8])], ahead: &mut Vec<Ahead>) {
        let space = |db: u8| if db < DATABASES { self.databases.space(db) } else { key::ELEMENTS };
        let spaces: Vec<u32> = keys.iter().map(|(db, _)| space(*db)).collect();
        let tree_keys: Vec<TreeKey> =
            keys.iter().zip(&spaces).map(|((_, key), space)| TreeKey::new(*space, key)).collect();
        let mut found = Vec::with_capacity(keys.len());
        self.store.records.locate_leaves(&tree_keys, &mut found);
        let stripes = keys.iter().zip(&tree_keys).map(|((db, _), key)| LockStripes::stripe(*db, key.suffix()));
        let found = spaces.into_iter().zip(stripes).zip(found);
        ahead.extend(found.map(|((space, stripe), at)| Ahead::new(space, stripe, at)));
    }

    /// Reads the pages that `look_ahead` found missing, all at once. Blocks until they are read.
    pub fn fetch_now(&self, ahead: &[Ahead]) {
        let ahead: Vec<btree::LeafHint> = ahead.iter().map(|ahead| ahead.leaf()).collect();
        self.store.records.read_missing(&ahead);
    }

    /// Requests the pages that `look_ahead` found missing, and calls for each of them one of `thens`, in order, when it is in memory. Does not block.
    pub fn fetch(&self, ahead: &[Ahead], thens: Vec<pager::ReadCallback>) {
        let ahead: Vec<btree::LeafHint> = ahead.iter().map(|ahead| ahead.leaf()).collect();
        self.store.records.fetch_missing(&ahead, thens);
    }

    /// Runs a reading key transaction. `f` may run several times; its result is kept only if no key of the set changed meanwhile.
    ///
    /// Returns the result and its durability LSN.
    pub fn read<R, E: From<Error>>(
        &self,
        locks: KeySet<'_>,
        mut f: impl FnMut(&mut KeyTransaction<'_>) -> Result<R, E>,
    ) -> Result<(R, Lsn), E> {
        let now = self.clock.wall_ms();
        if let KeySet::Keys(keys) = locks {
            for _ in 0..READ_TRIES {
                let stripes = stripes_of(keys)?;
                let mut key_txn = KeyTransaction::new_unless_busy(self, stripes, Mode::Optimistic, false, now)?;
                let result = f(&mut key_txn);
                if key_txn.is_current() {
                    key_txn.count_lookups();
                    key_txn.announce();
                    return result.map(|result| (result, key_txn.durability_lsn()));
                }
                self.store.metrics.read_retries.add(1);
            }
        }
        self.read_locked(locks, f)
    }

    /// Runs a reading key transaction under the stripes of its keys. It may register a wait (EN-74).
    pub fn read_locked<R, E: From<Error>>(
        &self,
        locks: KeySet<'_>,
        mut f: impl FnMut(&mut KeyTransaction<'_>) -> Result<R, E>,
    ) -> Result<(R, Lsn), E> {
        let now = self.clock.wall_ms();
        let mut key_txn = KeyTransaction::new_unless_busy(self, stripes(locks)?, Mode::Locked, false, now)?;
        let result = f(&mut key_txn)?;
        key_txn.count_lookups();
        Ok((result, key_txn.commit()?))
    }

    /// Runs a writing key transaction that may touch keys beside the given ones: it takes them while it runs, if it need not wait for them. Otherwise, and if
    /// it needs all keys, it is rolled back, and `f` runs again with them (EN-79). None stands for all keys.
    pub fn write_growing<R, E: From<Error>>(
        &self,
        keys: Option<Vec<(u8, &[u8])>>,
        mut f: impl FnMut(&mut KeyTransaction<'_>) -> Result<R, E>,
    ) -> Result<(R, Lsn), E> {
        let mut more: Vec<(u8, Vec<u8>)> = Vec::new();
        let mut keys = keys;
        for run in 1.. {
            let all = keys.as_ref().map(|keys| {
                let more = more.iter().map(|(db, key)| (*db, key.as_slice()));
                keys.iter().copied().chain(more).collect::<Vec<_>>()
            });
            let mut key_txn = self.begin_unlocked(all.as_deref().map_or(KeySet::All, KeySet::Keys), true)?;
            key_txn.growth = Some(Growth::default());
            let result = f(&mut key_txn);
            let wanted = key_txn.growth.as_mut().and_then(|growth| growth.wanted.take());
            match (wanted, result) {
                (None, result) => {
                    if result.is_ok() {
                        key_txn.count_lookups();
                    }
                    return key_txn.end_with(result);
                }
                (Some(wanted), _) => {
                    key_txn.abort();
                    self.store.metrics.key_txn_reruns.add(1);
                    match wanted {
                        WantedKeys::One(db, key) if run < GROWING_RUNS_MAX => more.push((db, key)),
                        _ => keys = None,
                    }
                }
            }
        }
        unreachable!("a transaction that holds all keys lacks none")
    }

    /// Runs a writing key transaction, which holds its keys. With `several` it may change more than one key, atomically also over a crash.
    ///
    /// An error of `f` rolls back. Without `several`, the one change must be the last thing that `f` does, because it cannot be rolled back.
    pub fn write<R, E: From<Error>>(
        &self,
        locks: KeySet<'_>,
        several: bool,
        f: impl FnOnce(&mut KeyTransaction<'_>) -> Result<R, E>,
    ) -> Result<(R, Lsn), E> {
        let mut key_txn = self.begin_unlocked(locks, several)?;
        let result = f(&mut key_txn);
        if result.is_ok() {
            key_txn.count_lookups();
        }
        key_txn.end_with(result)
    }
}
