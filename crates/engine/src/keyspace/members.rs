//! Reading hashes, sets and sorted sets: one field, a walk over all members, a random member.
//!
//! A collection is in packed form (`packed`), or its elements are records under a version id, in the order of their members' hashes. The caller has looked up
//! the key and checked its type.
//!
//! A due field of a hash is absent: no walk, no lookup and no draw gives it (`field_times`).
//!
//! Hard part: a reader without locks may meet elements that are being removed. All that it reads is discarded then, because the stripe's word has changed
//! (EN-48); so every loop here is bounded.

use std::ops::{Bound, Range};
use std::rc::Rc;

use btree::{Batch, ReadMode, ScanState};

use crate::error::{Error, Result};
use crate::keyspace::field_times;
use crate::keyspace::key;
use crate::keyspace::key::{FIELD, HASHES, MEMBER, SCORED_MEMBER, TreeKey};
use crate::keyspace::key_txn::{Entry, KeyTransaction};
use crate::keyspace::packed;
use crate::keyspace::packed::{Layout, Packed, packed_part};
use crate::keyspace::record;
use crate::keyspace::record::{Body, Kind, Meta};
use crate::keyspace::streams::chunk::StreamState;

/// Mean number of elements in an interval of hashes from which a random member is drawn, and the number up to which the draw is exactly uniform.
const INTERVAL_MEAN: u64 = 32;
const INTERVAL_MAX: u64 = 80;
/// Maximum number of draws. Each succeeds with a probability of about 0.4.
const DRAWS: usize = 1000;

/// Returns the kind of the elements of a collection.
pub(crate) fn element_kind(kind: Kind) -> u8 {
    match kind {
        Kind::Hash => FIELD,
        Kind::ZSet => SCORED_MEMBER,
        _ => MEMBER,
    }
}

/// A walk over the members of a hash, a set or a sorted set, in the order of their hashes where they are elements.
pub struct MemberWalk {
    kind: Kind,
    source: WalkSource,
    /// The current member, if it is too long for its tree key.
    long: Vec<u8>,
}

enum WalkSource {
    Packed { layout: Layout, items: Vec<u8>, at: usize },
    Elements { state: ScanState, batch: Batch, at: usize },
}

/// A member that a walk has found.
pub struct MemberItem<'w> {
    pub member: &'w [u8],
    pub value: ItemValue<'w>,
    /// The member's hash. `None` in packed form.
    pub hash: Option<u64>,
    /// The expiry time of a field, in milliseconds since 1970.
    pub expire_at_ms: Option<u64>,
}

/// The value of a field, or the eight bytes of a score; nothing for a member of a set.
#[derive(Clone, Copy)]
pub enum ItemValue<'w> {
    Bytes(&'w [u8]),
    /// The record of an element.
    Record(&'w [u8]),
}

impl MemberWalk {
    /// Returns the next member.
    pub fn next(&mut self, txn: &KeyTransaction<'_>) -> Result<Option<MemberItem<'_>>> {
        let is_due = |time: Option<u64>| time.is_some_and(|time| txn.now > time);
        match &mut self.source {
            WalkSource::Packed { layout, items, at } => loop {
                let mut rest = &items[*at..];
                if rest.is_empty() {
                    return Ok(None);
                }
                let item = layout.take(&mut rest)?;
                *at = items.len() - rest.len();
                if !is_due(item.time) {
                    let (member, value) = (item.member, ItemValue::Bytes(item.value));
                    return Ok(Some(MemberItem { member, value, hash: None, expire_at_ms: item.time }));
                }
            },
            WalkSource::Elements { state, batch, at } => {
                let mut time = None;
                loop {
                    if *at == batch.len() {
                        *at = 0;
                        txn.check_for_interrupts()?;
                        if !state.next_batch(&txn.keyspace.store.records, ReadMode::MayRead, batch)? {
                            return Ok(None);
                        }
                    }
                    if self.kind == Kind::Hash {
                        time = record::time_of_element(batch.get(*at).value);
                    }
                    *at += 1;
                    if !is_due(time) {
                        break;
                    }
                }
                let record = batch.get(*at - 1);
                let parsed = key::parse_member(record.key)?;
                let member = match parsed.short {
                    Some(member) => member,
                    None => {
                        txn.long_member(record.value, &mut self.long)?;
                        &self.long
                    }
                };
                let (value, hash) = (ItemValue::Record(record.value), Some(parsed.hash));
                Ok(Some(MemberItem { member, value, hash, expire_at_ms: time }))
            }
        }
    }
}

impl ItemValue<'_> {
    /// Returns the value as an entry, which `KeyTransaction::value` reads.
    pub fn to_entry(self) -> Result<Entry> {
        match self {
            ItemValue::Bytes(bytes) => Ok(packed_entry(bytes, None)),
            ItemValue::Record(record) => element_entry(record.to_vec(), 0),
        }
    }

    /// Returns the value's bytes if its record holds them.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            ItemValue::Bytes(bytes) => Some(bytes),
            ItemValue::Record(record) => match Meta::parse(record).ok()? {
                Meta { head, body: Body::Inline(payload) } => payload.get(head.key_len as usize..),
                _ => None,
            },
        }
    }
}

fn packed_entry(value: &[u8], expire_at_ms: Option<u64>) -> Entry {
    let record = Rc::new([&[0, 0], value].concat());
    Entry { kind: Kind::String, expire_at_ms, len: value.len() as u64, word: 0, record }
}

fn element_entry(record: Vec<u8>, word: u64) -> Result<Entry> {
    let meta = Meta::parse(&record)?;
    let (kind, expire_at_ms, len) = (meta.head.kind, meta.head.expire, meta.len());
    Ok(Entry { kind, expire_at_ms, len, word, record: Rc::new(record) })
}

impl Entry {
    /// Returns the number of fields, members or entries. Those of a hash that are due count (`KeyTransaction::live_count`).
    pub fn count(&self) -> Result<u64> {
        let meta = Meta::parse(&self.record)?;
        match meta.body {
            Body::Elements { count, .. } => Ok(count),
            Body::Inline(payload) if self.kind == Kind::Stream => StreamState::tail_live(packed_part(&meta, payload)),
            Body::Inline(payload) if self.kind != Kind::String => Ok(packed::split(packed_part(&meta, payload))?.count),
            _ => Err(Error::Misuse("count() of a key that is no collection")),
        }
    }

    /// Returns true if the elements are records of their own.
    pub fn has_elements(&self) -> bool {
        Meta::parse(&self.record).is_ok_and(|meta| matches!(meta.body, Body::Elements { .. }))
    }
}

impl KeyTransaction<'_> {
    /// Reads the member that an element's record starts with.
    pub(crate) fn long_member(&self, record: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let meta = Meta::parse(record)?;
        out.clear();
        self.keyspace.store.read_payload(&meta.body, 0..u64::from(meta.head.key_len), out)
    }

    /// Returns the tree key of a member; `None` if the database has no elements yet.
    pub(crate) fn member_key(&self, version: u64, kind: Kind, member: &[u8]) -> Option<TreeKey> {
        let hash = self.keyspace.member_hash.of(member)?;
        Some(key::member(version, element_kind(kind), hash, member))
    }

    /// Returns the hash of a member, in whose order walks over elements go; `None` if the database has no elements yet.
    pub fn member_hash(&self, member: &[u8]) -> Option<u64> {
        self.keyspace.member_hash.of(member)
    }

    /// Returns the number of fields, members or entries. It takes a time in proportion to the due fields of a hash, which do not count.
    pub fn live_count(&self, entry: &Entry) -> Result<u64> {
        let due = field_times::due_count(&self.keyspace.store, &Meta::parse(&entry.record)?, self.now)?;
        Ok(entry.count()?.saturating_sub(due))
    }

    /// Returns the least expiry time of a hash's fields, due ones included, in milliseconds since 1970; `None` if none expires.
    pub fn least_field_time(&self, entry: &Entry) -> Result<Option<u64>> {
        field_times::least(&Meta::parse(&entry.record)?)
    }

    /// Returns the value of a field with its expiry time, or a member of a set, without a value.
    pub fn member(&self, entry: &Entry, member: &[u8]) -> Result<Option<Entry>> {
        let found = self.member_or_due(entry, member)?;
        Ok(found.filter(|found| found.expire_at_ms.is_none_or(|time| self.now <= time)))
    }

    /// Does the same for a field that may be due.
    pub(crate) fn member_or_due(&self, entry: &Entry, member: &[u8]) -> Result<Option<Entry>> {
        let meta = Meta::parse(&entry.record)?;
        match meta.body {
            Body::Elements { version, .. } => {
                let Some(key) = self.member_key(version, entry.kind, member) else { return Ok(None) };
                let mut record = Vec::new();
                let found = self.element(&key, &mut record)?;
                if found.present { element_entry(record, found.word).map(Some) } else { Ok(None) }
            }
            Body::Inline(payload) => {
                let Packed { is_timed, items: mut rest, .. } = packed::split(packed_part(&meta, payload))?;
                let layout = Layout { kind: entry.kind, is_timed };
                while !rest.is_empty() {
                    let item = layout.take(&mut rest)?;
                    if item.member == member {
                        return Ok(Some(packed_entry(item.value, item.time)));
                    }
                }
                Ok(None)
            }
            _ => Err(Error::corrupt("a collection that is neither packed nor has elements")),
        }
    }

    /// Begins a walk over all members.
    pub fn members(&self, entry: &Entry) -> Result<MemberWalk> {
        self.members_between(entry, 0..HASHES)
    }

    /// Begins a walk over the elements whose hash is at least `from`. In packed form all members are walked.
    pub fn members_from(&self, entry: &Entry, from: u64) -> Result<MemberWalk> {
        self.members_between(entry, from..HASHES)
    }

    fn members_between(&self, entry: &Entry, hashes: Range<u64>) -> Result<MemberWalk> {
        let meta = Meta::parse(&entry.record)?;
        let source = match meta.body {
            Body::Elements { version, .. } => {
                let bound = |hash: u64| key::member_bound(version, element_kind(entry.kind), hash.min(HASHES));
                let (from, to) = (bound(hashes.start), bound(hashes.end));
                let state = ScanState::new(Bound::Included(&from[..]), Bound::Excluded(&to[..]), false);
                WalkSource::Elements { state, batch: Batch::new(), at: 0 }
            }
            Body::Inline(payload) => {
                let Packed { is_timed, items, .. } = packed::split(packed_part(&meta, payload))?;
                WalkSource::Packed { layout: Layout { kind: entry.kind, is_timed }, items: items.to_vec(), at: 0 }
            }
            _ => return Err(Error::corrupt("a collection that is neither packed nor has elements")),
        };
        Ok(MemberWalk { kind: entry.kind, source, long: Vec::new() })
    }

    /// Returns a random number below `bound`.
    pub fn draw(&self, bound: u64) -> u64 {
        self.keyspace.prng.lock().below(bound.max(1))
    }

    /// Returns a random member and its value, each member with the same probability; `None` if there is none.
    ///
    /// It chooses one of so many equal intervals of hashes that each has about 32 elements, and accepts it with a probability in proportion to its elements.
    pub fn random_member(&self, entry: &Entry) -> Result<Option<(Vec<u8>, Entry)>> {
        let (count, live) = (entry.count()?, self.live_count(entry)?);
        // Where most fields are due, nearly every interval would be drawn in vain.
        if !entry.has_elements() || live < count / 4 {
            let mut walk = self.members(entry)?;
            for _ in 0..self.draw(live) {
                walk.next(self)?;
            }
            return owned(walk.next(self)?);
        }
        let intervals = (count / INTERVAL_MEAN).max(1);
        let bound = |interval: u64| (u128::from(HASHES) * u128::from(interval) / u128::from(intervals)) as u64;
        for _ in 0..DRAWS {
            let interval = self.draw(intervals);
            let hashes = bound(interval)..bound(interval + 1);
            if live == count {
                match self.draw_counted(entry, hashes, intervals == 1)? {
                    Some(drawn) => return Ok(Some(drawn)),
                    None => continue,
                }
            }
            let mut found = 0;
            let mut walk = self.members_between(entry, hashes.clone())?;
            while walk.next(self)?.is_some() {
                found += 1;
            }
            let accepted = if intervals == 1 { found > 0 } else { self.draw(INTERVAL_MAX) < found };
            if accepted {
                let mut walk = self.members_between(entry, hashes)?;
                for _ in 0..self.draw(found) {
                    walk.next(self)?;
                }
                return owned(walk.next(self)?);
            }
        }
        owned(self.members(entry)?.next(self)?)
    }

    /// Accepts an interval of hashes as `random_member` does and draws one of its elements, none of which is due. They are counted by the tree, and not read.
    fn draw_counted(&self, entry: &Entry, hashes: Range<u64>, is_only: bool) -> Result<Option<(Vec<u8>, Entry)>> {
        let Body::Elements { version, .. } = Meta::parse(&entry.record)?.body else {
            return Err(Error::Misuse("a packed collection"));
        };
        let bound = |hash: u64| key::member_bound(version, element_kind(entry.kind), hash.min(HASHES));
        let (from, to) = (bound(hashes.start), bound(hashes.end));
        let records = &self.keyspace.store.records;
        let found = records.count(&from, Some(&to), u64::MAX)?;
        if found == 0 || !is_only && self.draw(INTERVAL_MAX) >= found {
            return Ok(None);
        }
        let Some(tree_key) = records.skip(&from, Some(&to), self.draw(found))? else { return Ok(None) };
        let (mut record, mut member) = (Vec::new(), Vec::new());
        if !self.element(&TreeKey::from_bytes(&tree_key), &mut record)?.present {
            return Ok(None);
        }
        match key::parse_member(&tree_key)?.short {
            Some(short) => member.extend_from_slice(short),
            None => self.long_member(&record, &mut member)?,
        }
        Ok(Some((member, element_entry(record, 0)?)))
    }

    /// Returns the bytes of a key: its record, and those of its elements as the mean of some.
    pub fn memory(&self, entry: &Entry, samples: u64) -> Result<u64> {
        let own = entry.memory();
        if entry.kind == Kind::List {
            return self.list_memory(entry, samples);
        }
        if !entry.has_elements() {
            return Ok(own);
        }
        if entry.kind == Kind::Stream {
            return Ok(own + self.elements_memory(entry, samples)?);
        }
        let (count, mut walk) = (entry.count()?, self.members(entry)?);
        let (mut seen, mut bytes) = (0, 0);
        while seen < samples.max(1)
            && let Some(item) = walk.next(self)?
        {
            let element = item.value.to_entry()?.memory();
            bytes += element + item.member.len() as u64;
            seen += 1;
        }
        Ok(own + (u128::from(bytes) * u128::from(count) / u128::from(seen.max(1))) as u64)
    }
}

fn owned(item: Option<MemberItem<'_>>) -> Result<Option<(Vec<u8>, Entry)>> {
    item.map(|item| Ok((item.member.to_vec(), item.value.to_entry()?))).transpose()
}
