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

mod background;
pub(crate) mod claims;
mod counts;
mod cursors;
mod databases;
mod expiry;
mod flush;
pub(crate) mod joint;
mod key;
pub(crate) mod locks;
mod purge;
pub(crate) mod record;
mod scan;
mod unit;
pub(crate) mod value;
mod watch;
mod write;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use os::Clock;
use pager::Lsn;
use stdx::memory;
use stdx::prng::Prng;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::DATABASES;
use crate::error::{Error, Result};
use crate::keyspace::background::BackgroundSignal;
use crate::keyspace::claims::KeyLocks;
use crate::keyspace::counts::Counts;
use crate::keyspace::cursors::Cursors;
use crate::keyspace::databases::Databases;
use crate::keyspace::key::TreeKey;
use crate::keyspace::locks::{LockStripes, Stripe, StripeSet};
use crate::keyspace::record::{Body, Meta};
use crate::keyspace::unit::{Mode, TxnStripes, check_database};
use crate::keyspace::value::NewBody;
use crate::keyspace::watch::{Touch, WatchRegistry};
use crate::keyspace::write::{RecordChange, RecordPut};
use crate::rows::lock;
use crate::txn::{Counted, PageChanges, Recovery, Store, first_id};

pub(crate) use databases::{DatabaseMap, MAP_KEY};
pub(crate) use key::meta_of;
pub(crate) use purge::{
    MAP_GARBAGE, QUEUED_RUNS_MAX, Queued, encode_queued_pages, encode_version, is_version_key, queue_key_of_pages,
    version_key,
};
pub(crate) use write::Segments;

pub use background::Progress;
pub use record::Kind;
pub use unit::{Entry, Expire, Form, KeySet, KeyTransaction};
pub use watch::WatchSet;

/// Longest value, and longest key: Redis's own limit.
pub const VALUE_MAX: u64 = 512 << 20;

/// Optimistic tries of a reading unit before it takes its locks.
const READ_TRIES: usize = 8;

/// Bytes that a door puts behind a value.
const LINE_END: usize = 2;

pub struct Keyspace {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) locks: LockStripes,
    /// Who beside units has a say in which keys may change.
    pub(crate) claims: Arc<KeyLocks>,
    pub(crate) databases: Databases,
    pub(crate) counts: Counts,
    pub(crate) watched: WatchRegistry,
    pub(crate) cursors: Cursors,
    pub(crate) background: BackgroundSignal,
    pub(crate) prng: Mutex<Prng>,
    active_expire: AtomicBool,
    /// Until then nothing expires in the background, ms since 1970.
    expire_paused_until_ms: AtomicU64,
    /// Background work of the engine's other parts, which shares the thread: called with a number of records.
    pub(crate) others: OnceLock<Others>,
}

pub(crate) type Others = Box<dyn Fn(usize) -> Result<Progress> + Send + Sync>;

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

/// Sets the cursors' random numbers apart from the others of the same seed.
const CURSORS: u64 = 0x5ca9;

impl Keyspace {
    /// Not to be used before `settle`; but the checkpoint's hook may already be.
    pub(crate) fn new(store: Arc<Store>, clock: Arc<dyn Clock>, row_locks: lock::LockTable, seed: u64) -> Keyspace {
        let locks = LockStripes::new();
        locks.lock(locks::ALL);
        let counts = Counts::new(store.pager.checkpoint_lsn());
        let claims = KeyLocks::new(store.records.clone(), row_locks, first_id(&store.pager));
        Keyspace {
            store,
            clock,
            locks,
            claims: Arc::new(claims),
            databases: Databases::default(),
            counts,
            watched: WatchRegistry::new(),
            cursors: Cursors::new(Prng::new(seed ^ CURSORS).next_u64()),
            background: BackgroundSignal::default(),
            prng: Mutex::new(Prng::new(seed)),
            active_expire: AtomicBool::new(true),
            expire_paused_until_ms: AtomicU64::new(0),
            others: OnceLock::new(),
        }
    }

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
                let held = self.locks.hold(stripe);
                let tree_key = TreeKey::new(self.databases.space(db), key);
                let got = self.try_get(btree::LeafHint::Unknown, &tree_key, held.lsn(), out, &frame);
                return got.inspect(|got| self.count_get(*got));
            }
            let seen = self.locks.observe(stripe);
            let got = if self.databases.space(db) == space {
                self.try_get(ahead.of(space, stripe), &tree_key, seen, out, &frame)
            } else {
                Err(Error::Misuse("the database was renewed meanwhile"))
            };
            if self.locks.validate(stripe, seen) {
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
            let gate = unit::gate_of(&found, Some(&meta), stripe_lsn, self.databases.mapped());
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
            |old, change| write::apply(old.as_ref(), &mut PageChanges::alone(change), &target, now, true),
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
                let mut unit = KeyTransaction::new(self, Self::stripes_of(keys)?, Mode::Optimistic, false, now);
                let result = f(&mut unit);
                if unit.is_current() {
                    unit.count_lookups();
                    return result.map(|result| (result, unit.gate()));
                }
                self.store.metrics.read_retries.add(1);
            }
        }
        let mut unit = KeyTransaction::new(self, Self::stripes(locks)?, Mode::Locked, false, now);
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

    pub(crate) fn stripes(locks: KeySet<'_>) -> Result<TxnStripes> {
        match locks {
            KeySet::Keys(keys) => Self::stripes_of(keys),
            KeySet::All => Ok(TxnStripes::All(Vec::new())),
        }
    }

    fn stripes_of(keys: &[(u8, &[u8])]) -> Result<TxnStripes> {
        for (db, _) in keys {
            check_database(*db)?;
        }
        // The stripe depends on the key's name within its database only, not on the keyspace number.
        let stripe = |(db, key): &(u8, &[u8])| LockStripes::stripe(*db, TreeKey::new(0, key).suffix());
        Ok(TxnStripes::Some(StripeSet::collect(keys.iter().map(stripe))))
    }

    /// A writing unit over one key known by its tree key, for the background.
    pub(crate) fn lock_one(&self, db: u8, tree_key: &TreeKey, now: u64) -> KeyTransaction<'_> {
        let stripe = LockStripes::stripe(db, tree_key.suffix());
        KeyTransaction::new(
            self,
            TxnStripes::Some(StripeSet::collect(std::iter::once(stripe))),
            Mode::Writing,
            false,
            now,
        )
    }

    /// A unit that holds a key and changes nothing.
    pub(crate) fn lock_to_read(&self, db: u8, key: &[u8]) -> Result<KeyTransaction<'_>> {
        Ok(KeyTransaction::new(self, Self::stripes_of(&[(db, key)])?, Mode::Locked, false, self.clock.wall_ms()))
    }

    /// Runs `f` with a key's suffix, time to go and the clock while the key's stripe is held.
    pub(crate) fn while_locked<R>(
        &self,
        db: u8,
        key: &[u8],
        f: impl FnOnce(&[u8], Option<u64>, u64) -> R,
    ) -> Result<R> {
        let unit = self.lock_to_read(db, key)?;
        let place = unit.place(db, key)?;
        let mut record = Vec::new();
        self.store.records.get(place.key.as_slice(), &mut record)?;
        let expire = if record.is_empty() { None } else { Meta::parse(&record)?.head.expire };
        let result = f(place.key.suffix(), expire, unit.now_ms());
        unit.commit()?;
        Ok(result)
    }

    /// An empty set of watched keys, for a session to keep.
    pub fn watch_set(self: &Arc<Self>) -> WatchSet {
        WatchSet::new(self.clone())
    }

    /// Turns the removal of expired keys in the background on or off. Off, they stay on disk but are as absent as before.
    pub fn set_active_expire(&self, on: bool) {
        self.active_expire.store(on, Ordering::Relaxed);
        self.background.wake();
    }

    /// Removes no expired keys in the background until `until_ms`, ms since 1970; 0 ends such a pause.
    pub fn pause_expire(&self, until_ms: u64) {
        self.expire_paused_until_ms.store(until_ms, Ordering::Relaxed);
        self.background.wake();
    }

    /// Why expired keys stay for now: since it is turned off (`Some(None)`), or for so many milliseconds more.
    fn expire_rests(&self) -> Option<Option<u64>> {
        if !self.active_expire.load(Ordering::Relaxed) {
            return Some(None);
        }
        let left = self.expire_paused_until_ms.load(Ordering::Relaxed).saturating_sub(self.clock.wall_ms());
        (left > 0).then_some(Some(left))
    }

    /// How often a thread slept until a key was given back.
    pub fn lock_waits(&self) -> u64 {
        self.locks.waits.get()
    }

    /// The checkpoint's hook.
    pub(crate) fn cut(&self, threaded: bool) -> Lsn {
        counts::cut(&self.counts, &self.locks, &self.databases, &self.store, threaded)
    }

    /// Undo is through: reads the map of databases and takes over the counts. From here on checkpoints cut them.
    pub(crate) fn settle(&self, recovery: &Recovery) -> Result<()> {
        self.databases.load(&self.store)?;
        self.databases.skip_to(recovery.next_space(), &self.store)?;
        for db in 0..DATABASES {
            let counted = recovery.counts().get(&self.databases.space(db));
            self.counts.set(db, counted.copied().unwrap_or_default());
        }
        self.locks.unlock(locks::ALL, 0);
        Ok(())
    }

    pub(crate) fn counted(&self, db: u8) -> Counted {
        self.counts.get(db)
    }

    pub(crate) fn database_of(&self, space: u32) -> Option<u8> {
        self.databases.database_of(space)
    }

    pub(crate) fn has_expiry_entry(&self, time: u64, tree_key: &[u8]) -> Result<bool> {
        Ok(self.store.expiry.get(&expiry::entry(time, tree_key), &mut Vec::new())?.present)
    }
}
