//! A key transaction: what a command, or a whole EXEC, sees and changes of several keys as of one moment (EN-1).
//!
//! It runs in one of three modes. Optimistic: it reads without storing anything, and its caller runs it again if a stripe has changed meanwhile. Locked: it
//! reads under its stripes, after too many optimistic tries. Writing: it holds its stripes until commit or rollback.
//!
//! A writing key transaction that changes one key needs no record transaction, because its one WAL record is atomic by itself. It begins one as soon as a
//! second record must be changed atomically with the first: when the caller announced several keys, or when a value in segments is added or removed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use btree::LeafHint;
use pager::Lsn;

use crate::error::{Error, Result};
use crate::keyspace::databases::DatabaseMap;
use crate::keyspace::effects::EffectLog;
use crate::keyspace::field_times;
use crate::keyspace::kept_record::{KeptRecord, PipelineRun};
use crate::keyspace::key::{DATABASES, ELEMENTS, KeySet, TreeKey, VALUE_MAX, check_database, check_slot};
use crate::keyspace::key_events::{KeyEvent, event_class};
use crate::keyspace::levels::Levels;
use crate::keyspace::record::{Body, Kind, Meta, NOT_INT, RAW};
use crate::keyspace::record_change::Expire;
use crate::keyspace::state::Keyspace;
use crate::keyspace::stripes::{LockStripes, Stripe, StripeSet, TxnStripes};
use crate::keyspace::watch_registry::{Name, Touch};
use crate::keyspace::writer_number::EVERYBODY;
use crate::store::wal::{Counted, Deltas};
use crate::txn::record_txn::RecordTxn;

/// Bit of a version word: the record was written inside a transaction, so the word is not the LSN that decided it (EN-2).
const IN_TXN: u64 = 1 << 63;

/// A key that exists and has not expired.
#[derive(Clone, Debug)]
pub struct Entry {
    pub kind: Kind,
    pub expire_at_ms: Option<u64>,
    /// Length of a string in bytes.
    pub len: u64,
    /// The record's version word.
    pub word: u64,
    pub(crate) record: Rc<Vec<u8>>,
}

impl Entry {
    /// Returns the answer of OBJECT ENCODING.
    pub fn encoding(&self) -> &'static str {
        if self.kind == Kind::List {
            return "quicklist";
        }
        match (self.kind, Meta::parse(&self.record).is_ok_and(|meta| meta.head.form & RAW != 0)) {
            (Kind::Hash | Kind::Set, true) => return "hashtable",
            (Kind::Hash | Kind::ZSet, false) => return "listpack",
            (Kind::ZSet, true) => return "skiplist",
            (Kind::Set, false) => return "intset",
            (Kind::Stream, _) => return "stream",
            _ => {}
        }
        const INT_MAX: u64 = 20;
        const EMBSTR_MAX: u64 = 44;
        let Ok(meta) = Meta::parse(&self.record) else { return "raw" };
        if meta.head.form & RAW != 0 || self.len > EMBSTR_MAX {
            return "raw";
        }
        let Body::Inline(payload) = meta.body else { return "embstr" };
        let value = &payload[meta.head.key_len as usize..];
        if meta.head.form & NOT_INT == 0 && self.len <= INT_MAX && is_canonical_int(value) { "int" } else { "embstr" }
    }

    /// Returns the bytes that the key takes on disk and, while it is cached, in memory: its record and its pages.
    pub fn memory(&self) -> u64 {
        let own = self.record.len() as u64;
        let Ok(meta) = Meta::parse(&self.record) else { return own };
        let pages: u64 = meta.body.runs().map(|run| u64::from(run.pages)).sum();
        match meta.body {
            Body::Segments { len, .. } => own + len.next_multiple_of(pager::PAGE_BYTES as u64),
            _ => own + pages * pager::PAGE_BYTES as u64,
        }
    }
}

/// Returns true if the bytes are the decimal text of an i64, as it would be printed.
fn is_canonical_int(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|text| text.parse::<i64>().ok()).is_some_and(|number| number.to_string().as_bytes() == bytes)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Optimistic,
    Locked,
    Writing,
}

/// A key's tree key, and the durability LSN of its absence.
pub(crate) struct KeyPlace {
    pub db: u8,
    pub space: u32,
    pub key: TreeKey,
    pub stripe_lsn: Lsn,
    /// The user key, if the tree key does not contain it and somebody listens to events or effects.
    pub long_name: Option<Box<[u8]>>,
}

impl KeyPlace {
    /// Returns the user key, for an event.
    pub fn name(&self) -> Box<[u8]> {
        self.long_name.clone().unwrap_or_else(|| self.key.suffix()[1..].into())
    }
}

/// The map of databases and its counts before the transaction changed them, and how many expiry entries it had added by then.
pub(crate) struct BeforeRemap {
    pub map: DatabaseMap,
    pub counts: Vec<Counted>,
    pub entries: usize,
}

/// The keys that a growing key transaction lacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WantedKeys {
    One(u8, Vec<u8>),
    All,
}

/// How a key transaction takes keys beside those that it began with (EN-79).
#[derive(Default)]
pub(crate) struct Growth {
    /// Stripes that it has taken since, with their LSNs.
    stripes: RefCell<Vec<(Stripe, Lsn)>>,
    /// Keys that it could not take.
    pub wanted: RefCell<Option<WantedKeys>>,
}

pub struct KeyTransaction<'k> {
    pub(crate) keyspace: &'k Keyspace,
    /// The time that decides which keys have expired: the clock at the beginning, or 0 where none has: in staged databases, and for a writer that follows
    /// another server.
    pub(crate) now: u64,
    clock_ms: u64,
    pub(crate) mode: Mode,
    pub(crate) stripes: TxnStripes,
    pub(crate) several: bool,
    /// A record was changed without a record transaction, in a pipeline by the running command.
    pub(crate) changed: bool,
    pub(crate) record_txn: Option<RecordTxn<'k>>,
    /// The durability LSN of everything read so far.
    pub(crate) durability_lsn: Lsn,
    /// End of the last WAL record that was written without a record transaction.
    pub(crate) last: Lsn,
    /// Expiry entries that are stale if the transaction commits, and if it does not.
    pub(crate) stale_if_committed: Vec<Vec<u8>>,
    pub(crate) stale_if_aborted: Vec<Vec<u8>>,
    pub(crate) before_remap: Option<BeforeRemap>,
    /// The background thread has something to remove, whether the transaction commits or not.
    pub(crate) leaves_garbage: bool,
    /// The last record that was to be written is in the tree, even if a later step failed.
    pub(crate) placed: bool,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Events to announce at the commit.
    pub(crate) events: Vec<KeyEvent>,
    /// Its changes of keys, if they are recorded.
    pub(crate) effects: EffectLog,
    /// Changed keys that clients wait for, in the order of the changes.
    pub(crate) ready: Vec<Name>,
    /// It runs under the stripes of another transaction, which takes them back.
    is_nested: bool,
    /// Its databases are the staged ones.
    pub(crate) is_staged: bool,
    /// The number under which it writes (EN-89).
    pub(crate) writer: u64,
    /// It may take more keys.
    pub(crate) growth: Option<Growth>,
    /// Its stripes are marked as held for long, with this number.
    busy_cause: Cell<Option<u32>>,
    /// The meta record that was read last. Its stripe is held.
    pub(crate) kept: Option<KeptRecord>,
    /// The levels over a sorted set's elements that belong to the kept record, if it is ahead of the tree.
    pub(crate) kept_levels: Option<(u64, Levels<'k>)>,
    /// The element that was looked up last, and its leaf.
    near: RefCell<Option<(TreeKey, LeafHint)>>,
    /// It runs the commands of a pipeline.
    pub(crate) pipeline: Option<PipelineRun>,
    open: bool,
}

impl<'k> KeyTransaction<'k> {
    pub(crate) fn new(
        keyspace: &'k Keyspace,
        mut stripes: TxnStripes,
        mode: Mode,
        several: bool,
        now: u64,
    ) -> KeyTransaction<'k> {
        debug_assert!(mode != Mode::Optimistic, "a reader that stores nothing gives up on a busy stripe");
        stripes.lock(&keyspace.stripes);
        KeyTransaction::with_stripes(keyspace, stripes, mode, several, now)
    }

    /// Begins a transaction, or gives up if a stripe is held for long.
    pub(crate) fn new_unless_busy(
        keyspace: &'k Keyspace,
        mut stripes: TxnStripes,
        mode: Mode,
        several: bool,
        now: u64,
    ) -> Result<KeyTransaction<'k>> {
        match mode {
            Mode::Optimistic => stripes.observe(&keyspace.stripes)?,
            Mode::Locked | Mode::Writing => stripes.lock_unless_busy(&keyspace.stripes)?,
        }
        Ok(KeyTransaction::with_stripes(keyspace, stripes, mode, several, now))
    }

    fn with_stripes(
        keyspace: &'k Keyspace,
        stripes: TxnStripes,
        mode: Mode,
        several: bool,
        now: u64,
    ) -> KeyTransaction<'k> {
        KeyTransaction {
            keyspace,
            now,
            clock_ms: now,
            mode,
            stripes,
            several,
            changed: false,
            record_txn: None,
            durability_lsn: 0,
            last: 0,
            stale_if_committed: Vec::new(),
            stale_if_aborted: Vec::new(),
            before_remap: None,
            leaves_garbage: false,
            placed: false,
            hits: 0,
            misses: 0,
            events: Vec::new(),
            effects: EffectLog::default(),
            ready: Vec::new(),
            is_nested: false,
            is_staged: false,
            writer: EVERYBODY,
            growth: None,
            busy_cause: Cell::new(None),
            kept: None,
            kept_levels: None,
            near: RefCell::new(None),
            pipeline: None,
            open: true,
        }
    }

    /// Begins a writing transaction under stripes that another one holds, and that stay held at its end.
    pub(crate) fn nested(keyspace: &'k Keyspace, held: TxnStripes, several: bool, now: u64) -> KeyTransaction<'k> {
        let mut nested = Self::new(keyspace, TxnStripes::default(), Mode::Writing, several, now);
        (nested.stripes, nested.is_nested) = (held, true);
        nested
    }

    /// For long computations: lets the other clients of the thread be served by others, and ends the computation with
    /// `Error::TooManyComputations` if no other thread is left, unless a change has been made that cannot be rolled back.
    pub fn check_for_interrupts(&self) -> Result<()> {
        match stdx::wait::check_for_interrupts() || self.changed {
            true => Ok(()),
            false => Err(Error::TooManyComputations),
        }
    }

    /// Returns the wall clock at the beginning of the transaction, in milliseconds since 1970. It does not move during the transaction (EN-3).
    pub fn now_ms(&self) -> u64 {
        self.clock_ms
    }

    /// Returns whether a key with this expiry time has expired.
    pub fn is_over(&self, expires_at_ms: u64) -> bool {
        expires_at_ms <= self.now
    }

    /// Returns the durability LSN of everything read so far.
    pub fn durability_lsn(&self) -> Lsn {
        self.durability_lsn.max(self.last)
    }

    /// Returns the place in the map of databases that a number means in this transaction.
    pub(crate) fn slot(&self, db: u8) -> Result<u8> {
        check_database(db)?;
        Ok(if self.is_staged { db + DATABASES } else { db })
    }

    pub(crate) fn place(&self, db: u8, key: &[u8]) -> Result<KeyPlace> {
        let db = self.slot(db)?;
        if key.len() as u64 > VALUE_MAX {
            return Err(Error::TooLarge { what: "key", limit: VALUE_MAX });
        }
        let space = self.keyspace.databases.space(db);
        let tree_key = TreeKey::new(space, key);
        if let Some(growth) = &self.growth {
            self.grow(growth, db, key, &tree_key)?;
        }
        let mut place = self.place_of(db, space, tree_key)?;
        if place.key.is_long() && self.keyspace.needs_names() {
            place.long_name = Some(key.into());
        }
        Ok(place)
    }

    pub(crate) fn place_of(&self, db: u8, space: u32, key: TreeKey) -> Result<KeyPlace> {
        let stripe = LockStripes::stripe(db, key.suffix());
        let lsn = self.stripes.lsn(stripe).or_else(|| self.growth.as_ref()?.lsn(stripe));
        let stripe_lsn = lsn.ok_or(Error::Misuse("a key outside the transaction's key set"))?;
        Ok(KeyPlace { db, space, key, stripe_lsn, long_name: None })
    }

    /// Takes a key that the transaction did not begin with. It must not wait for it, because it holds others.
    fn grow(&self, growth: &Growth, db: u8, key: &[u8], tree_key: &TreeKey) -> Result<()> {
        let stripe = LockStripes::stripe(db, tree_key.suffix());
        let want = || {
            growth.wanted.borrow_mut().get_or_insert_with(|| WantedKeys::One(db, key.to_vec()));
            Err(Error::MoreKeys)
        };
        if self.stripes.lsn(stripe).or_else(|| growth.lsn(stripe)).is_none() {
            match self.keyspace.stripes.try_lock(stripe) {
                Some(lsn) => growth.stripes.borrow_mut().push((stripe, lsn)),
                None => return want(),
            }
            if let Some(cause) = self.busy_cause.get() {
                self.keyspace.stripes.mark_busy(stripe, cause);
            }
        }
        // The stripe may be held for another key.
        let key_locks = &self.keyspace.key_locks;
        if key_locks.any() && key_locks.holder(db, tree_key.suffix()).is_some() {
            return want();
        }
        Ok(())
    }

    /// Checks that the transaction holds all keys. A growing one runs again with all of them if it does not.
    pub fn require_all(&self) -> Result<()> {
        match (&self.stripes, &self.growth) {
            (TxnStripes::All(_), _) => Ok(()),
            (_, Some(growth)) => {
                *growth.wanted.borrow_mut() = Some(WantedKeys::All);
                Err(Error::MoreKeys)
            }
            _ => Err(Error::Misuse("a key outside the transaction's key set")),
        }
    }

    /// Returns whether the transaction has to run again with more keys.
    pub fn lacks_keys(&self) -> bool {
        self.growth.as_ref().is_some_and(|growth| growth.wanted.borrow().is_some())
    }

    /// Returns whether the transaction has changed a record.
    pub fn has_changed(&self) -> bool {
        self.changed || self.record_txn.is_some()
    }

    /// Says that the transaction takes long. A command that waits for one of its keys gives up from now on, with `Error::Busy(cause)` (EN-80).
    pub fn declare_busy(&self, cause: u32) {
        self.busy_cause.set(Some(cause));
        self.for_each_stripe(|stripe| self.keyspace.stripes.mark_busy(stripe, cause));
    }

    /// Adds the stripes that it has taken meanwhile to those that it began with.
    fn absorb_growth(&mut self) {
        if let Some(growth) = &self.growth
            && let TxnStripes::Some(set) = &mut self.stripes
        {
            set.extend(growth.stripes.take());
        }
    }

    fn for_each_stripe(&self, mut f: impl FnMut(Stripe)) {
        self.stripes.for_each(&mut f);
        if let Some(growth) = &self.growth {
            growth.stripes.borrow().iter().for_each(|(stripe, _)| f(*stripe));
        }
    }

    pub(crate) fn must_write(&self) -> Result<()> {
        if self.mode != Mode::Writing {
            return Err(Error::Misuse("a change in a transaction that only reads"));
        }
        if self.is_staged { Ok(()) } else { self.keyspace.writer.check(self.writer) }
    }

    /// Reads the key at a place, unless it has expired or is a hash of which all fields have.
    pub(crate) fn entry(&mut self, place: &KeyPlace) -> Result<Option<Entry>> {
        if self.mode == Mode::Writing && place.space != ELEMENTS {
            return self.kept_entry(place);
        }
        let mut record = Vec::new();
        let found = self.keyspace.store.records.get(place.key.as_slice(), &mut record)?;
        self.entry_of(place, &found, found.present.then(|| Rc::new(record)))
    }

    /// Does the same with the record that the transaction keeps.
    fn kept_entry(&mut self, place: &KeyPlace) -> Result<Option<Entry>> {
        if let Some(kept) = self.kept.as_ref().filter(|kept| kept.is_of(place.space, &place.key)) {
            let found = btree::Found { present: kept.record.is_some(), word: kept.word };
            let record = kept.record.clone();
            return self.entry_of(place, &found, record);
        }
        self.write_kept_before(None)?;
        let stripe = LockStripes::stripe(place.db, place.key.suffix());
        let ahead = self.pipeline.as_ref().map_or(LeafHint::Unknown, |run| run.ahead.of(place.space, stripe));
        let mut record = Vec::new();
        let (found, leaf) = self.keyspace.store.records.get_and_locate(ahead, place.key.as_slice(), &mut record)?;
        let record = found.present.then(|| Rc::new(record));
        self.kept = Some(KeptRecord {
            db: place.db,
            space: place.space,
            key: place.key.clone(),
            record: record.clone(),
            word: found.word,
            leaf,
            changed_by: None,
            is_similar: false,
        });
        self.entry_of(place, &found, record)
    }

    fn entry_of(
        &mut self,
        place: &KeyPlace,
        found: &btree::Found,
        record: Option<Rc<Vec<u8>>>,
    ) -> Result<Option<Entry>> {
        let meta = record.as_ref().map(|record| Meta::parse(record)).transpose()?;
        let mapped = self.keyspace.databases.mapped();
        self.durability_lsn =
            self.durability_lsn.max(durability_lsn_of(found, meta.as_ref(), place.stripe_lsn, mapped));
        let Some(meta) = meta.filter(|meta| !meta.is_expired(self.now)) else { return Ok(None) };
        if field_times::are_all_due(&self.keyspace.store, &meta, self.now)? {
            if self.mode == Mode::Writing {
                // The change that may follow begins with an absent key.
                self.effect_of_removal(place);
            }
            return Ok(None);
        }
        let (kind, expire_at_ms, len) = (meta.head.kind, meta.head.expire, meta.len());
        Ok(record.map(|record| Entry { kind, expire_at_ms, len, word: found.word, record }))
    }

    /// Reads the record of an element, which a command may go on to change.
    pub(crate) fn element(&self, key: &TreeKey, record: &mut Vec<u8>) -> Result<btree::Found> {
        let records = &self.keyspace.store.records;
        if self.mode != Mode::Writing {
            return Ok(records.get(key.as_slice(), record)?);
        }
        let (found, leaf) = records.get_and_locate(LeafHint::Unknown, key.as_slice(), record)?;
        *self.near.borrow_mut() = Some((key.clone(), leaf));
        Ok(found)
    }

    /// Returns the leaf of a record that the transaction is about to change, if it has looked it up before.
    pub(crate) fn leaf_of(&self, place: &KeyPlace) -> LeafHint {
        if place.space != ELEMENTS {
            return self
                .kept
                .as_ref()
                .filter(|kept| kept.is_of(place.space, &place.key))
                .map_or(LeafHint::Unknown, |kept| kept.leaf);
        }
        let near = self.near.borrow();
        let leaf = near.as_ref().filter(|(key, _)| key.as_slice() == place.key.as_slice());
        leaf.map_or(LeafHint::Unknown, |(_, leaf)| *leaf)
    }

    /// Returns the user key of a record. A long one is in the record's payload.
    pub(crate) fn user_key(&self, suffix: &[u8], meta: &Meta<'_>) -> Result<Vec<u8>> {
        if meta.head.key_len == 0 {
            return Ok(suffix[1..].to_vec());
        }
        let mut key = Vec::with_capacity(meta.head.key_len as usize);
        self.keyspace.store.read_payload(&meta.key_body(), 0..u64::from(meta.head.key_len), &mut key)?;
        Ok(key)
    }

    /// Begins a record transaction: from here on all changes are atomic together.
    pub fn begin(&mut self) -> Result<()> {
        if self.record_txn.is_none() {
            if self.changed {
                return Err(Error::Misuse("a second change in a transaction that announced one"));
            }
            self.record_txn = Some(RecordTxn::begin(&self.keyspace.store));
            if let Some(run) = &mut self.pipeline {
                run.unsettle();
            }
        }
        Ok(())
    }

    /// Marks the transaction as broken: a command has stopped half-way, so it can only be rolled back.
    pub(crate) fn mark_broken(&mut self, error: &Error) {
        if let Some(txn) = &mut self.record_txn {
            txn.mark_broken(error);
        }
    }

    /// Prepares for a change. Begins a record transaction if the caller announced several changes.
    pub(crate) fn before_change(&mut self) -> Result<()> {
        self.must_write()?;
        if self.several || self.changed { self.begin() } else { Ok(()) }
    }

    pub(crate) fn touched(&mut self, place: &KeyPlace, touch: Touch) {
        // An element has no name that could be watched: its meta record is touched.
        if place.space == ELEMENTS {
            return;
        }
        if self.keyspace.watched.is_watched() {
            self.keyspace.watched.touch(place.db, place.key.suffix(), touch);
        }
        self.notify_at(place, event_class::CHANGED, "");
    }

    /// Notes a changed key, which now has a value of one type and had one of another, if clients wait for it (EN-76). The end of a stream ends some waits.
    #[inline]
    pub(crate) fn readied(&mut self, place: &KeyPlace, kind: Option<Kind>, old: Option<Kind>) {
        if place.space != ELEMENTS
            && self.keyspace.waiters.any()
            && (matches!(kind, Some(Kind::List | Kind::ZSet | Kind::Stream)) || old == Some(Kind::Stream))
        {
            self.ready_if_awaited((place.db, place.key.suffix().to_vec()));
        }
    }

    #[cold]
    pub(crate) fn ready_if_awaited(&mut self, name: Name) {
        if self.ready.last() != Some(&name) && self.keyspace.waiters.has(name.0, &name.1) {
            self.ready.push(name);
        }
    }

    /// Returns true if no key that the transaction may touch has changed since it began.
    pub(crate) fn is_current(&self) -> bool {
        let TxnStripes::Some(set) = &self.stripes else { return true };
        set.as_slice().iter().all(|(stripe, lsn)| self.keyspace.stripes.validate(*stripe, *lsn))
    }

    /// Records what a command does to a key, for those who listen. It is announced at the commit.
    #[inline]
    pub fn notify(&mut self, db: u8, key: &[u8], class: u32, name: &'static str) {
        if !self.is_staged && self.keyspace.events.wants(class) {
            self.events.push(KeyEvent { db, class, name, key: key.into() });
        }
    }

    /// Records that a command has set a string.
    pub fn notify_set(&mut self, db: u8, key: &[u8], expire: Expire) {
        self.notify(db, key, event_class::STRING, "set");
        if matches!(expire, Expire::At(_)) {
            self.notify(db, key, event_class::GENERIC, "expire");
        }
    }

    /// Records that a key at a place has expired or is new.
    pub(crate) fn notify_at(&mut self, place: &KeyPlace, class: u32, name: &'static str) {
        if place.space != ELEMENTS && !self.is_staged && self.keyspace.events.wants(class) {
            self.events.push(KeyEvent { db: place.db, class, name, key: place.name() });
        }
    }

    /// Returns how often the transaction has changed a key of this name so far, if the class CHANGED is wanted.
    pub fn count_changes(&self, key: &[u8]) -> u32 {
        self.events.iter().filter(|event| event.class == event_class::CHANGED && *event.key == *key).count() as u32
    }

    /// Announces the events and the effects. The transaction is decided and holds its stripes (EN-65).
    pub(crate) fn announce(&mut self) {
        self.append_effects();
        if !self.events.is_empty() {
            self.keyspace.events.announce(&std::mem::take(&mut self.events), self.durability_lsn());
        }
    }

    pub(crate) fn count_lookups(&self) {
        let metrics = &self.keyspace.store.metrics;
        if self.hits > 0 {
            metrics.hits.add(self.hits);
        }
        if self.misses > 0 {
            metrics.misses.add(self.misses);
        }
    }

    /// Commits, and releases the stripes. Returns the durability LSN.
    pub(crate) fn commit(mut self) -> Result<Lsn> {
        self.decide()?;
        Ok(self.durability_lsn())
    }

    /// Does the same for a transaction that somebody else owns.
    pub(crate) fn decide(&mut self) -> Result<()> {
        self.absorb_growth();
        let Some(txn) = self.record_txn.take() else {
            self.announce();
            self.finish();
            return Ok(());
        };
        match txn.commit() {
            Ok((lsn, deltas)) => {
                self.decided(lsn, deltas);
                Ok(())
            }
            Err(error) => {
                self.undone();
                Err(error)
            }
        }
    }

    /// Ends the transaction after its decision: serves those who wait for its keys, and releases the stripes.
    pub(crate) fn finish(&mut self) {
        let deferred = if self.is_nested { Vec::new() } else { self.serve_waiters() };
        self.end_served();
        if !deferred.is_empty() {
            self.keyspace.serve_deferred(deferred);
        }
    }

    /// Releases the stripes of a decided transaction.
    pub(crate) fn end_served(&mut self) {
        self.end((self.last != 0).then_some(self.last));
    }

    /// Ends the transaction after its commit at `lsn`: updates the counts, and releases the stripes.
    pub(crate) fn decided(&mut self, lsn: Lsn, deltas: Deltas) {
        for (space, keys, expiries) in deltas {
            if let Some(db) = self.keyspace.databases.database_of(space) {
                self.keyspace.counts.add(db, space, Counted { keys, expiries }, lsn);
            }
        }
        for entry in std::mem::take(&mut self.stale_if_committed) {
            // An entry that remains is recognised as stale when its time comes.
            let _ = self.keyspace.remove_expiry_if_stale(&entry);
        }
        self.last = self.last.max(lsn);
        if self.before_remap.is_some() {
            self.keyspace.databases.decided(lsn);
        }
        self.announce();
        self.finish();
    }

    /// Commits after a success and rolls back after an error. Returns the result with the durability LSN.
    pub(crate) fn end_with<R, E: From<Error>>(self, result: Result<R, E>) -> Result<(R, Lsn), E> {
        match result {
            Ok(result) => Ok((result, self.commit()?)),
            Err(error) => {
                self.abort();
                Err(error)
            }
        }
    }

    /// Rolls back, and releases the stripes.
    pub(crate) fn abort(mut self) {
        self.roll_back();
    }

    /// Does the same for a transaction that somebody else owns.
    pub(crate) fn roll_back(&mut self) {
        self.ready.clear();
        self.effects = EffectLog::default();
        if let Some(txn) = self.record_txn.take() {
            txn.abort();
        }
        self.undone();
    }

    /// Ends the transaction after its rollback: removes stale expiry entries, restores the map of databases, and releases the stripes.
    pub(crate) fn undone(&mut self) {
        if let Some(before) = self.before_remap.take() {
            // Numbers that were given out stay given out: entries of the expiry tree may have them for a while.
            let next = self.keyspace.databases.map().next;
            self.keyspace.databases.set(&DatabaseMap { next, ..before.map });
            for (db, counted) in before.counts.into_iter().enumerate() {
                self.keyspace.counts.set(db as u8, counted);
            }
            for entry in &self.stale_if_aborted[before.entries..] {
                self.keyspace.recount_expiry(entry);
            }
        }
        for entry in std::mem::take(&mut self.stale_if_aborted) {
            let _ = self.keyspace.remove_expiry_if_stale(&entry);
        }
        if self.changed {
            // The one change outside a record transaction stays.
            self.lose_effects();
            self.append_effects();
        }
        // Whatever was logged meanwhile lies below the head.
        self.end(Some(self.keyspace.store.pager.wal_head()));
    }

    fn end(&mut self, changed: Option<Lsn>) {
        self.absorb_growth();
        if self.is_nested {
            self.stripes.raise(changed.unwrap_or(0));
        } else if self.mode != Mode::Optimistic {
            if self.busy_cause.take().is_some() {
                self.stripes.for_each(|stripe| self.keyspace.stripes.unmark_busy(stripe));
            }
            self.stripes.unlock(&self.keyspace.stripes, changed);
        }
        self.open = false;
        if self.leaves_garbage {
            self.keyspace.background.wake();
        }
    }
}

impl Growth {
    fn lsn(&self, stripe: Stripe) -> Option<Lsn> {
        self.stripes.borrow().iter().find(|(other, _)| *other == stripe).map(|(_, lsn)| *lsn)
    }
}

impl Drop for KeyTransaction<'_> {
    /// Rolls back after a panic in the caller's code. An optimistic transaction has nothing to undo.
    fn drop(&mut self) {
        if !self.open || self.mode == Mode::Optimistic {
            return;
        }
        drop(self.record_txn.take());
        // The transaction that owns the stripes unwinds too, and has none left to release.
        self.is_nested = false;
        self.undone();
    }
}

/// Returns the durability LSN of a lookup's result (EN-2). `mapped` is the LSN of the map that assigns the keyspace to the database.
pub(crate) fn durability_lsn_of(found: &btree::Found, meta: Option<&Meta<'_>>, stripe_lsn: Lsn, mapped: Lsn) -> Lsn {
    match meta {
        Some(meta) if found.word & IN_TXN == 0 && meta.body.version().is_none() => found.word.max(mapped),
        _ => stripe_lsn,
    }
}

impl Keyspace {
    /// Begins a writing transaction over one key known by its tree key, for the background thread.
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

    /// Begins a reading transaction that holds the stripe of a key.
    pub(crate) fn lock_to_read(&self, db: u8, key: &[u8]) -> Result<KeyTransaction<'_>> {
        let stripes = stripes_of(&[(db, key)])?;
        KeyTransaction::new_unless_busy(self, stripes, Mode::Locked, false, self.clock.wall_ms())
    }

    /// Runs `f` with a key's suffix, its expiry time and the clock, while the key's stripe is held.
    pub(crate) fn while_locked<R>(
        &self,
        db: u8,
        key: &[u8],
        f: impl FnOnce(&[u8], Option<u64>, u64) -> R,
    ) -> Result<R> {
        let key_txn = self.lock_to_read(db, key)?;
        let place = key_txn.place(db, key)?;
        let mut record = Vec::new();
        self.store.records.get(place.key.as_slice(), &mut record)?;
        let expire = if record.is_empty() { None } else { Meta::parse(&record)?.head.expire };
        let result = f(place.key.suffix(), expire, key_txn.now_ms());
        key_txn.commit()?;
        Ok(result)
    }
}

pub(crate) fn stripes(locks: KeySet<'_>) -> Result<TxnStripes> {
    match locks {
        KeySet::Keys(keys) => stripes_of(keys),
        KeySet::All => Ok(TxnStripes::All(Vec::new())),
    }
}

pub(crate) fn stripes_of(keys: &[(u8, &[u8])]) -> Result<TxnStripes> {
    for (slot, _) in keys {
        check_slot(*slot)?;
    }
    // The stripe depends on the key's name within its database only, not on the keyspace number.
    let stripe = |(db, key): &(u8, &[u8])| LockStripes::stripe(*db, TreeKey::new(0, key).suffix());
    Ok(TxnStripes::Some(StripeSet::collect(keys.iter().map(stripe))))
}
