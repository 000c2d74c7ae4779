//! What a command sees and changes: several keys as of one moment.
//!
//! A unit runs in one of three ways. Optimistic: it reads without storing anything, and its owner runs it again if a stripe changed meanwhile. Locked:
//! it reads under its stripes, after too many such tries. Writing: it holds its stripes until commit or rollback.
//!
//! A writing unit that changes one key needs no transaction: its one log record is all or nothing by itself. It gets one as soon as a second record must
//! stand or fall with the first: when the caller announced several keys, or when a value of many records comes or goes.

use std::ops::Range;

use pager::Lsn;

use crate::DATABASES;
use crate::error::{Error, Result};
use crate::keyspace::databases::DatabaseMap;
use crate::keyspace::key::TreeKey;
use crate::keyspace::locks::{ALL, LockStripes, STRIPES, Stripe, StripeSet};
use crate::keyspace::record::{Body, EXTENT_MAX, INLINE_MAX, Kind, Meta, NOT_INT, RAW};
use crate::keyspace::value::{self, NewBody};
use crate::keyspace::watch::Touch;
use crate::keyspace::write::{RecordChange, RecordPut, Segments};
use crate::keyspace::{Keyspace, VALUE_MAX};
use crate::txn::{Counted, Deltas, RECORDS, RecordTxn};

/// Bit of a version word: written inside a transaction, so the word is not the LSN that decides (E2).
const IN_TXN: u64 = 1 << 63;

/// When a key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expire {
    /// As before; an absent key has no time.
    Keep,
    None,
    /// Milliseconds since 1970. The key is gone when the clock shows more.
    At(u64),
}

/// What OBJECT ENCODING shall say of a string; the bytes are stored alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As after SET: int, embstr or raw.
    Auto,
    /// As after INCRBYFLOAT: embstr or raw.
    NotInt,
    /// As after APPEND, SETRANGE, SETBIT: raw.
    Raw,
}

impl Form {
    fn bits(self) -> u8 {
        match self {
            Form::Auto => 0,
            Form::NotInt => NOT_INT,
            Form::Raw => RAW,
        }
    }
}

/// A key that is there and has not expired.
#[derive(Clone, Debug)]
pub struct Entry {
    pub kind: Kind,
    pub expire_at_ms: Option<u64>,
    /// Bytes of a string.
    pub len: u64,
    /// The record's version word.
    pub word: u64,
    record: Vec<u8>,
}

impl Entry {
    /// What OBJECT ENCODING says.
    pub fn encoding(&self) -> &'static str {
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

    /// Bytes that the key takes on disk and, while it is cached, in memory: its record and its pages.
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

/// True if the bytes are what printing some i64 gives.
fn is_canonical_int(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|text| text.parse::<i64>().ok()).is_some_and(|number| number.to_string().as_bytes() == bytes)
}

/// Which keys a unit may touch.
#[derive(Clone, Copy)]
pub enum KeySet<'a> {
    /// These, in any order, repeated or not.
    Keys(&'a [(u8, &'a [u8])]),
    /// Every key of every database: FLUSHALL, SWAPDB, and units with SCAN, KEYS or RANDOMKEY among other commands.
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Optimistic,
    Locked,
    Writing,
}

/// TxnStripes of a unit with the LSN each had when it was taken or observed.
pub(crate) enum TxnStripes {
    Some(StripeSet),
    All(Vec<Lsn>),
}

impl TxnStripes {
    pub fn lsn(&self, stripe: Stripe) -> Option<Lsn> {
        match self {
            TxnStripes::Some(set) => set.lsn(stripe),
            TxnStripes::All(lsns) => Some(lsns[stripe as usize]),
        }
    }

    fn observe(&mut self, locks: &LockStripes) {
        if let TxnStripes::Some(set) = self {
            for (stripe, lsn) in set.as_mut_slice() {
                *lsn = locks.observe(*stripe);
            }
        }
    }

    fn lock(&mut self, locks: &LockStripes) {
        match self {
            TxnStripes::Some(set) => {
                for (stripe, lsn) in set.as_mut_slice() {
                    *lsn = locks.lock(*stripe);
                }
            }
            TxnStripes::All(lsns) => {
                let all = locks.lock(ALL);
                lsns.extend((0..STRIPES as Stripe).map(|stripe| locks.lock(stripe)));
                lsns.push(all);
            }
        }
    }

    fn unlock(&self, locks: &LockStripes, changed: Option<Lsn>) {
        let after = |before: Lsn| changed.map_or(before, |lsn| lsn.max(before));
        match self {
            TxnStripes::Some(set) => {
                for (stripe, lsn) in set.as_slice() {
                    locks.unlock(*stripe, after(*lsn));
                }
            }
            TxnStripes::All(lsns) => {
                for (stripe, lsn) in lsns.iter().enumerate() {
                    locks.unlock(stripe as Stripe, after(*lsn));
                }
            }
        }
    }
}

/// A key's place, and how much log must be durable before its absence may be shown.
pub(crate) struct KeyPlace {
    pub db: u8,
    pub space: u32,
    pub key: TreeKey,
    pub stripe_lsn: Lsn,
}

/// Why a record is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Removal {
    Deleted,
    Expired,
    /// It stands under another key now, with its pages.
    Renamed,
}

/// The map of databases and its counts before the unit changed them, and how many expiry entries it had added by then.
pub(crate) struct BeforeRemap {
    pub map: DatabaseMap,
    pub counts: Vec<Counted>,
    pub entries: usize,
}

pub struct KeyTransaction<'k> {
    pub(crate) keyspace: &'k Keyspace,
    pub(crate) now: u64,
    pub(crate) mode: Mode,
    pub(crate) stripes: TxnStripes,
    several: bool,
    /// A record was changed without a transaction.
    pub(crate) changed: bool,
    pub(crate) txn: Option<RecordTxn<'k>>,
    /// The log up to here must be durable before what the unit read may be shown.
    pub(crate) gate: Lsn,
    /// End of the last record that the unit itself logged without a transaction.
    pub(crate) last: Lsn,
    /// Expiry entries that are wrong if the transaction commits, and if it does not.
    pub(crate) stale_if_committed: Vec<Vec<u8>>,
    pub(crate) stale_if_aborted: Vec<Vec<u8>>,
    pub(crate) before_remap: Option<BeforeRemap>,
    /// The background has something to remove, whichever way the unit ends.
    pub(crate) leaves_garbage: bool,
    /// The last record that was to be written is in the tree, whatever failed behind it.
    pub(crate) placed: bool,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
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
        match mode {
            Mode::Optimistic => stripes.observe(&keyspace.locks),
            Mode::Locked | Mode::Writing => stripes.lock(&keyspace.locks),
        }
        KeyTransaction {
            keyspace,
            now,
            mode,
            stripes,
            several,
            changed: false,
            txn: None,
            gate: 0,
            last: 0,
            stale_if_committed: Vec::new(),
            stale_if_aborted: Vec::new(),
            before_remap: None,
            leaves_garbage: false,
            placed: false,
            hits: 0,
            misses: 0,
            open: true,
        }
    }

    /// The wall clock when the unit began, in milliseconds since 1970. It stands still during the unit.
    pub fn now_ms(&self) -> u64 {
        self.now
    }

    /// How much of the log must be durable before anything the unit has read so far may be shown.
    pub fn gate(&self) -> Lsn {
        self.gate.max(self.last)
    }

    /// Finds a key, for a command that reads it: counts a hit or a miss.
    pub fn get(&mut self, db: u8, key: &[u8]) -> Result<Option<Entry>> {
        let found = self.peek(db, key)?;
        match found {
            Some(_) => self.hits += 1,
            None => self.misses += 1,
        }
        Ok(found)
    }

    /// Finds a key, for a command that goes on to change it.
    pub fn peek(&mut self, db: u8, key: &[u8]) -> Result<Option<Entry>> {
        let place = self.place(db, key)?;
        self.entry(&place)
    }

    pub fn exists(&mut self, db: u8, key: &[u8]) -> Result<bool> {
        Ok(self.get(db, key)?.is_some())
    }

    /// Appends a range of a string, cut to its length.
    pub fn value(&mut self, entry: &Entry, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let meta = Meta::parse(&entry.record)?;
        if meta.head.kind != Kind::String {
            return Err(Error::Misuse("value() of a key that is no string"));
        }
        let range = range.start..range.end.min(entry.len);
        if range.is_empty() {
            return Ok(());
        }
        let skip = u64::from(meta.head.key_len);
        self.keyspace.store.read_payload(&meta.body, range.start + skip..range.end + skip, out)
    }

    /// SET: whatever the key held is gone.
    pub fn put_string(&mut self, db: u8, key: &[u8], value: &[u8], expire: Expire) -> Result<()> {
        self.put_string_as(db, key, value, expire, Form::Auto)
    }

    pub fn put_string_as(&mut self, db: u8, key: &[u8], value: &[u8], expire: Expire, form: Form) -> Result<()> {
        let place = self.place(db, key)?;
        self.must_write()?;
        check_len(value.len() as u64)?;
        let stored_key: &[u8] = if place.key.is_long() { key } else { &[] };
        let len = stored_key.len() + value.len();
        let mut put = RecordPut::new(form.bits(), expire, stored_key.len());
        if len > EXTENT_MAX {
            let segment = |range: Range<u64>, out: &mut Vec<u8>| {
                let range = range.start as usize..range.end as usize;
                let of_key = range.start.min(stored_key.len())..range.end.min(stored_key.len());
                out.extend_from_slice(&stored_key[of_key]);
                let skipped = |at: usize| at.saturating_sub(stored_key.len());
                out.extend_from_slice(&value[skipped(range.start)..skipped(range.end)]);
                Ok(())
            };
            let segments = self.write_segments(len as u64, segment)?;
            return self.put_segments(&place, put, segments);
        }
        let joined;
        let payload = if stored_key.is_empty() {
            value
        } else {
            joined = [stored_key, value].concat();
            &joined
        };
        if len <= INLINE_MAX {
            put.body = Body::Inline(payload);
            return self.write(&place, &RecordChange::Put(put)).map(drop);
        }
        let fresh = NewBody::write(&self.keyspace.store.pager, payload)?;
        self.put_fresh(&place, put, fresh)
    }

    /// Puts bytes at an offset of a string, which grows if need be; a gap is zeros, an absent key an empty string. Returns the new length.
    ///
    /// Only the touched pages of a big value are written. APPEND is a patch at the end.
    pub fn patch_string(&mut self, db: u8, key: &[u8], offset: u64, bytes: &[u8]) -> Result<u64> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let entry = self.entry(&place)?;
        let old_len = entry.as_ref().map_or(0, |entry| entry.len);
        if bytes.is_empty() {
            return Ok(old_len);
        }
        let len = old_len.max(offset.saturating_add(bytes.len() as u64));
        check_len(len)?;
        let stored_key: &[u8] = if place.key.is_long() { key } else { &[] };
        let skip = stored_key.len() as u64;
        let body = match &entry {
            Some(entry) => Meta::parse(&entry.record)?.body,
            None => Body::Inline(stored_key),
        };
        if entry.as_ref().is_some_and(|entry| entry.kind != Kind::String) {
            return Err(Error::Misuse("patch_string() of a key that is no string"));
        }
        let expire = if entry.is_some() { Expire::Keep } else { Expire::None };
        let mut put = RecordPut::new(RAW, expire, stored_key.len());
        put.shares_pages = true;
        match body {
            Body::Segments { version, .. } => {
                let patched = self.patch_segments(&place, put, version, skip + old_len, skip + offset, bytes);
                patched.inspect_err(|error| self.breaks(error))?;
            }
            body if skip + len <= EXTENT_MAX as u64 => {
                let fresh = value::patch(&self.keyspace.store.pager, &body, (skip + offset) as usize, bytes)?;
                self.put_fresh(&place, put, fresh)?;
            }
            body => {
                let store = &self.keyspace.store;
                let compose = |range: Range<u64>, out: &mut Vec<u8>| {
                    value::compose(store, &body, skip + offset, bytes, range, out)
                };
                put.shares_pages = false;
                let segments = self.write_segments(skip + len, compose)?;
                self.put_segments(&place, put, segments)?;
            }
        }
        Ok(len)
    }

    /// Removes a key. Takes the same time whatever its size.
    pub fn delete(&mut self, db: u8, key: &[u8]) -> Result<bool> {
        let place = self.place(db, key)?;
        self.must_write()?;
        self.remove(&place, Removal::Deleted)
    }

    /// Gives a key another time to go, or none. False if there is no such key.
    pub fn set_expire(&mut self, db: u8, key: &[u8], at_ms: Option<u64>) -> Result<bool> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let Some(entry) = self.entry(&place)? else { return Ok(false) };
        let expire = at_ms.map_or(Expire::None, Expire::At);
        self.put_again(&place, &entry, expire)?;
        Ok(true)
    }

    /// Gives a key another name, in another database or in the same; what stood there is gone. False if there is no such key.
    pub fn rename(&mut self, from: (u8, &[u8]), to: (u8, &[u8])) -> Result<bool> {
        let (source, target) = (self.place(from.0, from.1)?, self.place(to.0, to.1)?);
        self.must_write()?;
        let Some(entry) = self.entry(&source)? else { return Ok(false) };
        if from == to {
            return Ok(true);
        }
        self.begin()?;
        let expire = entry.expire_at_ms.map_or(Expire::None, Expire::At);
        if source.key.is_long() || target.key.is_long() {
            // The payload of a long key starts with the key: it is another payload under another name.
            self.copy_value(&entry, to, expire)?;
            let removed = self.remove(&source, Removal::Deleted);
            removed.inspect_err(|error| self.breaks(error))?;
        } else {
            let renamed = self.move_record(&source, &target, &entry, expire);
            renamed.inspect_err(|error| self.breaks(error))?;
        }
        Ok(true)
    }

    /// In the order in which undo knows all names of the value's pages wherever the log ends (E8).
    fn move_record(&mut self, source: &KeyPlace, target: &KeyPlace, entry: &Entry, expire: Expire) -> Result<()> {
        let is_own = self.txn.as_ref().is_some_and(|txn| txn.has_changed(RECORDS, source.key.as_slice()));
        if is_own {
            // No image may name the pages. Both records do until the old one goes, and undo finds both.
            self.put_again(target, entry, expire)?;
            self.remove(source, Removal::Renamed)?;
        } else {
            // The image names the pages. Were the new record first, undo would find only that one, and free what the old one names.
            self.remove(source, Removal::Renamed)?;
            self.put_again(target, entry, expire)?;
        }
        Ok(())
    }

    /// Copies a key with its time; what stood at the target is gone. False if there is no such key.
    pub fn copy(&mut self, from: (u8, &[u8]), to: (u8, &[u8])) -> Result<bool> {
        let (source, _) = (self.place(from.0, from.1)?, self.place(to.0, to.1)?);
        self.must_write()?;
        let Some(entry) = self.entry(&source)? else { return Ok(false) };
        if from != to {
            let expire = entry.expire_at_ms.map_or(Expire::None, Expire::At);
            self.copy_value(&entry, to, expire)?;
        }
        Ok(true)
    }

    /// Makes OBJECT ENCODING of a string say "raw", as Redis does when it makes ready to change one in place, also if nothing changes then. Watchers are not marked.
    pub fn make_raw(&mut self, db: u8, key: &[u8]) -> Result<()> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let Some(entry) = self.entry(&place)? else { return Ok(()) };
        if entry.encoding() == "raw" {
            return Ok(());
        }
        let expire = entry.expire_at_ms.map_or(Expire::None, Expire::At);
        let meta = Meta::parse(&entry.record)?;
        let mut put = RecordPut::new(meta.head.form | RAW, expire, meta.head.key_len as usize);
        (put.kind, put.body, put.shares_pages, put.unseen) = (meta.head.kind, meta.body, true, true);
        self.write(&place, &RecordChange::Put(put)).map(drop)
    }

    /// Marks the watchers of a key as if it had changed.
    pub fn touch(&mut self, db: u8, key: &[u8]) -> Result<()> {
        let place = self.place(db, key)?;
        self.touched(&place, Touch::Changed);
        Ok(())
    }

    /// Keys of a database, those included that have expired but are not removed yet.
    pub fn count(&mut self, db: u8) -> Result<u64> {
        Ok(self.counted(db)?.keys.max(0) as u64)
    }

    /// Keys of a database that have a time to go.
    pub fn expires(&mut self, db: u8) -> Result<u64> {
        Ok(self.counted(db)?.expiries.max(0) as u64)
    }

    fn counted(&mut self, db: u8) -> Result<Counted> {
        check_database(db)?;
        let mut counted = self.keyspace.counts.get(db);
        let space = self.keyspace.databases.space(db);
        let own = self.txn.iter().flat_map(|txn| txn.deltas()).filter(|delta| delta.0 == space);
        for (_, keys, expiries) in own {
            counted.keys += keys;
            counted.expiries += expiries;
        }
        self.gate = self.gate.max(self.keyspace.store.pager.wal_head());
        Ok(counted)
    }

    // Below: what the other files of this folder build on.

    pub(crate) fn place(&self, db: u8, key: &[u8]) -> Result<KeyPlace> {
        check_database(db)?;
        if key.len() as u64 > VALUE_MAX {
            return Err(Error::TooLarge { what: "key", limit: VALUE_MAX });
        }
        let space = self.keyspace.databases.space(db);
        self.place_of(db, space, TreeKey::new(space, key))
    }

    pub(crate) fn place_of(&self, db: u8, space: u32, key: TreeKey) -> Result<KeyPlace> {
        let lsn = self.stripes.lsn(LockStripes::stripe(db, key.suffix()));
        let stripe_lsn = lsn.ok_or(Error::Misuse("a key that is not among the unit's locks"))?;
        Ok(KeyPlace { db, space, key, stripe_lsn })
    }

    pub(crate) fn must_write(&self) -> Result<()> {
        if self.mode == Mode::Writing { Ok(()) } else { Err(Error::Misuse("a change in a unit that only reads")) }
    }

    /// The key at a place, unless it has expired.
    pub(crate) fn entry(&mut self, place: &KeyPlace) -> Result<Option<Entry>> {
        let mut record = Vec::new();
        let found = self.keyspace.store.records.get(place.key.as_slice(), &mut record)?;
        let meta = if found.present { Some(Meta::parse(&record)?) } else { None };
        let mapped = self.keyspace.databases.mapped();
        self.gate = self.gate.max(gate_of(&found, meta.as_ref(), place.stripe_lsn, mapped));
        let Some(meta) = meta.filter(|meta| !meta.is_expired(self.now)) else { return Ok(None) };
        let (kind, expire_at_ms, len) = (meta.head.kind, meta.head.expire, meta.len());
        Ok(Some(Entry { kind, expire_at_ms, len, word: found.word, record }))
    }

    /// The key that a record stands for: a long one is in its payload.
    pub(crate) fn user_key(&self, suffix: &[u8], meta: &Meta<'_>) -> Result<Vec<u8>> {
        if meta.head.key_len == 0 {
            return Ok(suffix[1..].to_vec());
        }
        let mut key = Vec::with_capacity(meta.head.key_len as usize);
        self.keyspace.store.read_payload(&meta.body, 0..u64::from(meta.head.key_len), &mut key)?;
        Ok(key)
    }

    /// From here on all changes stand or fall together.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if self.txn.is_none() {
            if self.changed {
                return Err(Error::Misuse("a second change in a unit that announced one"));
            }
            self.txn = Some(self.keyspace.store.begin());
        }
        Ok(())
    }

    /// A command has stopped half-way: the unit can only be taken back.
    fn breaks(&mut self, error: &Error) {
        if let Some(txn) = &mut self.txn {
            txn.breaks(error);
        }
    }

    /// To be called before a change: what was announced decides whether it needs a transaction.
    pub(crate) fn before_change(&mut self) -> Result<()> {
        self.must_write()?;
        if self.several || self.changed { self.begin() } else { Ok(()) }
    }

    /// The same value under the same or another key.
    fn put_again(&mut self, place: &KeyPlace, entry: &Entry, expire: Expire) -> Result<()> {
        let meta = Meta::parse(&entry.record)?;
        let mut put = RecordPut::new(meta.head.form, expire, meta.head.key_len as usize);
        put.kind = meta.head.kind;
        put.body = meta.body;
        put.shares_pages = true;
        self.write(place, &RecordChange::Put(put)).map(drop)
    }

    fn put_fresh(&mut self, place: &KeyPlace, put: RecordPut<'_>, fresh: NewBody<'k>) -> Result<()> {
        let put = RecordPut { body: fresh.body(), allocated: fresh.reserved.runs(), ..put };
        self.placed = false;
        let result = self.write(place, &RecordChange::Put(put));
        if self.placed {
            // Also when something failed after that: the pages are the record's, and taking it back frees them.
            fresh.reserved.settle();
        }
        result.map(drop)
    }

    fn write_segments(
        &mut self,
        len: u64,
        read: impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Segments<'k>> {
        self.leaves_garbage = true;
        Segments::write(&self.keyspace.store, len, read)
    }

    /// Writes another copy of a value, of whatever size.
    fn copy_value(&mut self, entry: &Entry, to: (u8, &[u8]), expire: Expire) -> Result<()> {
        let meta = Meta::parse(&entry.record)?;
        let target = self.place(to.0, to.1)?;
        let stored_key: &[u8] = if target.key.is_long() { to.1 } else { &[] };
        let old_skip = u64::from(meta.head.key_len);
        let skip = stored_key.len() as u64;
        let len = skip + entry.len;
        let store = &self.keyspace.store;
        let read = |range: Range<u64>, out: &mut Vec<u8>| {
            let of_key = range.start.min(skip) as usize..range.end.min(skip) as usize;
            out.extend_from_slice(&stored_key[of_key]);
            let of_value = range.start.max(skip) - skip + old_skip..range.end.max(skip) - skip + old_skip;
            store.read_payload(&meta.body, of_value, out)
        };
        let mut put = RecordPut::new(meta.head.form, expire, stored_key.len());
        if len > EXTENT_MAX as u64 {
            let segments = self.write_segments(len, read)?;
            return self.put_segments(&target, put, segments);
        }
        let mut payload = Vec::with_capacity(len as usize);
        read(0..len, &mut payload)?;
        if payload.len() <= INLINE_MAX {
            put.body = Body::Inline(&payload);
            return self.write(&target, &RecordChange::Put(put)).map(drop);
        }
        let fresh = NewBody::write(&store.pager, &payload)?;
        self.put_fresh(&target, put, fresh)
    }

    /// Removes a record by its tree key, for the background. The unit holds its stripe.
    pub(crate) fn remove_record(&mut self, db: u8, key: TreeKey, why: Removal) -> Result<bool> {
        let space = self.keyspace.databases.space(db);
        let place = self.place_of(db, space, key)?;
        self.remove(&place, why)
    }

    /// True if there was a key that had not expired.
    fn remove(&mut self, place: &KeyPlace, why: Removal) -> Result<bool> {
        let facts = self.write(place, &RecordChange::Remove(why))?;
        if !facts.existed {
            self.gate = self.gate.max(place.stripe_lsn);
        }
        let expired = facts.expire.is_some_and(|expire| self.now > expire);
        if facts.existed && expired {
            self.keyspace.store.metrics.expired.add(1);
        }
        Ok(facts.existed && !expired)
    }

    pub(crate) fn touched(&self, place: &KeyPlace, touch: Touch) {
        if self.keyspace.watched.is_watched() {
            self.keyspace.watched.touch(place.db, place.key.suffix(), touch);
        }
    }

    /// True if nothing that the unit looked at has changed since it began.
    pub(crate) fn is_current(&self) -> bool {
        let TxnStripes::Some(set) = &self.stripes else { return true };
        set.as_slice().iter().all(|(stripe, lsn)| self.keyspace.locks.validate(*stripe, *lsn))
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

    /// Decides everything the unit did and gives its stripes back. Returns its gate.
    pub(crate) fn commit(mut self) -> Result<Lsn> {
        let Some(txn) = self.txn.take() else {
            self.end((self.last != 0).then_some(self.last));
            return Ok(self.gate());
        };
        match txn.commit() {
            Ok((lsn, deltas)) => {
                self.decided(lsn, deltas);
                Ok(self.gate())
            }
            Err(error) => {
                self.undone();
                Err(error)
            }
        }
    }

    /// The transaction is committed at `lsn`: counts, and gives the stripes back.
    pub(crate) fn decided(&mut self, lsn: Lsn, deltas: Deltas) {
        for (space, keys, expiries) in deltas {
            if let Some(db) = self.keyspace.databases.database_of(space) {
                self.keyspace.counts.add(db, space, Counted { keys, expiries }, lsn);
            }
        }
        for entry in std::mem::take(&mut self.stale_if_committed) {
            // One that stays is found out when its time comes.
            let _ = self.keyspace.remove_expiry_if_stale(&entry);
        }
        self.last = self.last.max(lsn);
        if self.before_remap.is_some() {
            self.keyspace.databases.decided(lsn);
        }
        self.end((self.last != 0).then_some(self.last));
    }

    /// Takes everything back and gives the stripes back.
    pub(crate) fn abort(mut self) {
        if let Some(txn) = self.txn.take() {
            txn.abort();
        }
        self.undone();
    }

    /// The transaction has been rolled back: the rest of what it left behind.
    pub(crate) fn undone(&mut self) {
        if let Some(before) = self.before_remap.take() {
            // The numbers given out stay so: entries of the expiry tree may have them for a while.
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
        // Whatever was logged meanwhile lies below the head.
        self.end(Some(self.keyspace.store.pager.wal_head()));
    }

    fn end(&mut self, changed: Option<Lsn>) {
        if self.mode != Mode::Optimistic {
            self.stripes.unlock(&self.keyspace.locks, changed);
        }
        self.open = false;
        if self.leaves_garbage {
            self.keyspace.background.wake();
        }
    }
}

impl Drop for KeyTransaction<'_> {
    /// A panic in the caller's code, or an optimistic unit at its end.
    fn drop(&mut self) {
        if !self.open || self.mode == Mode::Optimistic {
            return;
        }
        drop(self.txn.take());
        self.undone();
    }
}

/// How much of the log must be durable before a lookup's result may be shown (E2). `mapped`: what says that the record belongs to the database.
pub(crate) fn gate_of(found: &btree::Found, meta: Option<&Meta<'_>>, stripe_lsn: Lsn, mapped: Lsn) -> Lsn {
    match meta {
        Some(meta) if found.word & IN_TXN == 0 && meta.body.version().is_none() => found.word.max(mapped),
        _ => stripe_lsn,
    }
}

pub(crate) fn check_database(db: u8) -> Result<()> {
    if db < DATABASES { Ok(()) } else { Err(Error::Misuse("a database number beyond the last one")) }
}

fn check_len(len: u64) -> Result<()> {
    if len > VALUE_MAX { Err(Error::TooLarge { what: "value", limit: VALUE_MAX }) } else { Ok(()) }
}
