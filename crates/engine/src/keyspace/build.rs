//! Building a collection: packed as long as it fits, then as elements under a version id that no key refers to yet.
//!
//! Elements are written outside of any transaction, without before-images, as the segments of a long value are: the version id is in the purge queue meanwhile,
//! and the transaction that makes the collection reachable removes the queue's entry (EN-8). So memory does not grow with the collection.

use std::ops::{Bound, Range};

use btree::{Batch, OldRecord};

use crate::error::{Error, Result};
use crate::keyspace::field_times;
use crate::keyspace::field_times::{FIELD_TIME_MAX, FieldTimes};
use crate::keyspace::key;
use crate::keyspace::key::{SCORE, SCORED_MEMBER, TreeKey};
use crate::keyspace::key_txn::KeyTransaction;
use crate::keyspace::levels::{LevelBuild, LevelEntries};
use crate::keyspace::members::element_kind;
use crate::keyspace::packed::{PackLimits, PackedItem, PackedItems};
use crate::keyspace::record::{Body, EXTENT_MAX, INLINE_MAX, Kind, Meta};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, apply};
use crate::keyspace::score;
use crate::keyspace::segments::Segments;
use crate::keyspace::state::Keyspace;
use crate::keyspace::value::NewBody;
use crate::store::Store;
use crate::store::purge_queue::{encode_version, version_key};
use crate::txn::page_changes::PageChanges;

/// Reads a range of a value that is being stored.
pub(crate) type ReadPart<'r> = &'r dyn Fn(Range<u64>, &mut Vec<u8>) -> Result<()>;

/// A hash, a set or a sorted set that no key refers to yet.
pub struct Build<'k> {
    pub(crate) kind: Kind,
    pub(crate) form: u8,
    /// The key, if its record has to contain it.
    stored_key: Vec<u8>,
    limits: PackLimits,
    pub(crate) state: BuildState<'k>,
    keyspace: &'k Keyspace,
}

pub(crate) enum BuildState<'k> {
    Packed(PackedItems),
    Elements {
        version: Segments<'k>,
        count: u64,
        /// Number of fields that have an expiry time.
        timed: u64,
    },
}

impl<'k> KeyTransaction<'k> {
    /// Begins to build a collection for a key.
    pub fn build(&self, db: u8, key: &[u8], kind: Kind, limits: PackLimits) -> Result<Build<'k>> {
        self.place(db, key)?;
        self.must_write()?;
        Ok(self.keyspace.build(key, kind, limits))
    }
}

impl Keyspace {
    /// Begins to build a collection for a key of any database.
    pub(crate) fn build(&self, key: &[u8], kind: Kind, limits: PackLimits) -> Build<'_> {
        let stored_key = if key.len() > key::SHORT_KEY_MAX { key.to_vec() } else { Vec::new() };
        let state = BuildState::Packed(PackedItems::new(kind));
        Build { kind, form: 0, stored_key, limits, state, keyspace: self }
    }
}

impl<'k> KeyTransaction<'k> {
    /// Begins to build a collection that no key will refer to: a result that is too large for memory. Purge removes it once it is dropped.
    pub fn build_unnamed(&self, kind: Kind) -> Build<'k> {
        let state = BuildState::Packed(PackedItems::new(kind));
        let stored_key = Vec::new();
        Build { kind, form: 0, stored_key, limits: PackLimits::KEEP, state, keyspace: self.keyspace }
    }
}

impl Build<'_> {
    pub(crate) fn stored_key(&self) -> &[u8] {
        &self.stored_key
    }

    /// Starts with these items.
    pub(crate) fn start(&mut self, form: u8, items: PackedItems) {
        (self.form, self.state) = (form, BuildState::Packed(items));
    }

    /// Writes the items as elements if they do not fit into one record.
    pub(crate) fn settle(&mut self) -> Result<()> {
        match &self.state {
            BuildState::Packed(items) if items.len() + self.stored_key.len() > INLINE_MAX => self.unpack(),
            _ => Ok(()),
        }
    }

    /// Returns the number of members.
    pub fn count(&self) -> u64 {
        match &self.state {
            BuildState::Packed(items) => items.count as u64,
            BuildState::Elements { count, .. } => *count,
        }
    }

    /// Adds a field with its value, a member of a set, or a member of a sorted set with the eight bytes of its score. A field that is there gets the new value. Returns true if it is new.
    pub fn put(&mut self, member: &[u8], value: &[u8]) -> Result<bool> {
        self.put_until(member, value, None)
    }

    /// Adds a field of a hash that expires at a time, at most `FIELD_TIME_MAX`, in milliseconds since 1970.
    pub fn put_until(&mut self, member: &[u8], value: &[u8], expire_at_ms: Option<u64>) -> Result<bool> {
        let read = |range: Range<u64>, out: &mut Vec<u8>| {
            out.extend_from_slice(&value[range.start as usize..range.end as usize]);
            Ok(())
        };
        let is_new = self.put_read(member, value.len() as u64, expire_at_ms, &read)?;
        self.form |= self.limits.form(self.kind, self.count(), member, value);
        Ok(is_new)
    }

    /// Adds a value of any size, which `read` reads.
    pub(crate) fn put_read(&mut self, member: &[u8], len: u64, time: Option<u64>, read: ReadPart<'_>) -> Result<bool> {
        assert!(time.is_none_or(|time| self.kind == Kind::Hash && time <= FIELD_TIME_MAX));
        if let BuildState::Packed(items) = &mut self.state {
            let most = |items: &PackedItems| match time {
                Some(_) => items.len_with_time(member, len as usize),
                None => items.len_with(member, len as usize),
            };
            if len <= INLINE_MAX as u64 && most(items) + self.stored_key.len() <= INLINE_MAX {
                let mut value = Vec::with_capacity(len as usize);
                read(0..len, &mut value)?;
                return items.put_until(member, &value, time);
            }
            self.unpack()?;
        }
        let BuildState::Elements { version, count, timed } = &mut self.state else { unreachable!("unpacked above") };
        let put = put_element(self.keyspace, version.version(), self.kind, member, (len, time), read)?;
        *count += u64::from(put.is_new);
        *timed = *timed + u64::from(time.is_some()) - u64::from(put.was_timed);
        Ok(put.is_new)
    }

    /// Returns the score of a member that was added to a sorted set.
    pub(crate) fn score(&self, member: &[u8]) -> Result<Option<f64>> {
        match &self.state {
            BuildState::Packed(items) => items.value(member)?.map(score::of_value).transpose(),
            BuildState::Elements { version, .. } => stored_score(self.keyspace, version.version(), member),
        }
    }

    /// Builds the levels of a sorted set. Returns the fields of the kind for the collection's record.
    pub(crate) fn finish(&self) -> Result<Vec<u8>> {
        let BuildState::Elements { version, count, timed } = &self.state else { return Ok(Vec::new()) };
        if *timed > 0 {
            let least = field_times::first_time(&self.keyspace.store, version.version())?;
            let least = least.ok_or_else(|| Error::corrupt("a field has an expiry time, but no element by time"))?;
            return Ok(FieldTimes::bytes(Some(FieldTimes { timed: *timed, least })));
        }
        if self.kind != Kind::ZSet {
            return Ok(Vec::new());
        }
        let (records, sizes) = (&self.keyspace.store.records, self.keyspace.level_sizes);
        if *count <= sizes.elements {
            return Ok(vec![0]);
        }
        let version = version.version();
        let (from, end) = (key::element_of(version, SCORE, &[]), key::element_of(version, SCORE + 1, &[]));
        let mut levels = LevelBuild::new(records, version, LevelEntries::Elements(SCORE), sizes);
        let (mut scan, mut batch) = (records.scan(Bound::Included(&from), Bound::Excluded(&end)), Batch::new());
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                levels.push(&record.key[key::ELEMENT_PREFIX..], 1)?;
            }
        }
        Ok(vec![levels.finish()?])
    }

    /// Writes the packed items as elements of a new version id, together with the key if that is long.
    fn unpack(&mut self) -> Result<()> {
        let BuildState::Packed(items) = &self.state else { return Ok(()) };
        let keyspace = self.keyspace;
        keyspace.ensure_member_hash()?;
        let stored_key = &self.stored_key;
        let version = Segments::write(&keyspace.store, stored_key.len() as u64, |range, out| {
            out.extend_from_slice(&stored_key[range.start as usize..range.end as usize]);
            Ok(())
        })
        .inspect_err(|_| keyspace.wake())?;
        let (mut rest, mut count, mut timed) = (items.bytes(), 0, 0);
        while !rest.is_empty() {
            let PackedItem { member, value, time } = items.layout().take(&mut rest)?;
            let read = |range: Range<u64>, out: &mut Vec<u8>| {
                out.extend_from_slice(&value[range.start as usize..range.end as usize]);
                Ok(())
            };
            let len = value.len() as u64;
            count += u64::from(put_element(keyspace, version.version(), self.kind, member, (len, time), &read)?.is_new);
            timed += u64::from(time.is_some());
        }
        self.state = BuildState::Elements { version, count, timed };
        Ok(())
    }
}

impl Drop for Build<'_> {
    /// If no key refers to the elements, the background finds them in the purge queue.
    fn drop(&mut self) {
        if matches!(self.state, BuildState::Elements { .. }) {
            self.keyspace.wake();
        }
    }
}

/// Facts about an element that was put.
#[derive(Default)]
struct ElementPut {
    is_new: bool,
    /// There was a field with an expiry time.
    was_timed: bool,
}

/// Writes a field or a member, with the length of its value and the field's expiry time, under a version id that no key refers to.
fn put_element(
    keyspace: &Keyspace,
    version: u64,
    kind: Kind,
    member: &[u8],
    (len, time): (u64, Option<u64>),
    read: ReadPart<'_>,
) -> Result<ElementPut> {
    let hash = keyspace.member_hash.of(member).expect("drawn before the first element");
    let tree_key = key::member(version, element_kind(kind), hash, member);
    let stored: &[u8] = if member.len() > key::SHORT_MEMBER_MAX { member } else { &[] };
    if kind == Kind::ZSet {
        let mut value = Vec::new();
        read(0..len, &mut value)?;
        let score = score::of_value(&value)?;
        if stored.is_empty() {
            let is_new = put_scored(keyspace, (version, member, hash), &tree_key, &value, score)?;
            return Ok(ElementPut { is_new, was_timed: false });
        }
        let old = keyspace.stored_score(&tree_key)?;
        put_score(keyspace, (version, member, hash), old, score)?;
    }
    let (mut old, may_have_segments) = (Vec::new(), kind == Kind::Hash || !stored.is_empty());
    let store = &keyspace.store;
    let mut was_timed = false;
    if may_have_segments && store.records.get(tree_key.as_slice(), &mut old)?.present {
        let old = Meta::parse(&old)?;
        if let Some(orphan) = old.body.version() {
            store.queue.modify(&version_key(orphan), None, |_, change| change.put(&[&encode_version(0)]))?;
        }
        if let Some(old_time) = old.head.expire {
            was_timed = true;
            let by_time = key::due_field(version, old_time, tree_key.as_slice());
            store.records.modify(&by_time, None, |_, change| change.delete())?;
        }
    }
    if let Some(time) = time {
        put_unnamed(store, &key::due_field(version, time, tree_key.as_slice()), RecordPut::new(0, Expire::None, 0))?;
    }
    let is_new = put_new_element_until(store, &tree_key, (stored, time), len, read)?;
    Ok(ElementPut { is_new, was_timed })
}

/// Writes an element under a version id that no key refers to: `stored`, followed by `len` bytes that `read` reads. Returns true if it is new.
///
/// Nobody reads the element before the version has a key, so steps of one mini-transaction each suffice; after a crash all of them are garbage.
pub(crate) fn put_new_element(
    store: &Store,
    tree_key: &TreeKey,
    stored: &[u8],
    len: u64,
    read: ReadPart<'_>,
) -> Result<bool> {
    put_new_element_until(store, tree_key, (stored, None), len, read)
}

/// Does the same for a field that expires.
fn put_new_element_until(
    store: &Store,
    tree_key: &TreeKey,
    (stored, time): (&[u8], Option<u64>),
    len: u64,
    read: ReadPart<'_>,
) -> Result<bool> {
    let payload_len = stored.len() as u64 + len;
    let read = |range: Range<u64>, out: &mut Vec<u8>| read_behind(stored, range, out, read);
    let mut put = RecordPut::new(0, time.map_or(Expire::None, Expire::At), stored.len());
    store.pager.admit()?;
    if payload_len > EXTENT_MAX as u64 {
        let segments = Segments::write(store, payload_len, read)?;
        put.body = Body::Segments { len: segments.len, version: segments.version() };
        let is_new = put_unnamed(store, tree_key.as_slice(), put)?;
        store.queue.modify(&version_key(segments.version()), None, |_, change| change.delete())?;
        return Ok(is_new);
    }
    let mut payload = Vec::with_capacity(payload_len as usize);
    read(0..payload_len, &mut payload)?;
    if payload.len() <= INLINE_MAX {
        put.body = Body::Inline(&payload);
        return put_unnamed(store, tree_key.as_slice(), put);
    }
    let fresh = NewBody::write(&store.pager, &payload)?;
    let put = RecordPut { body: fresh.body(), allocated: fresh.reserved.runs(), ..put };
    let is_new = put_unnamed(store, tree_key.as_slice(), put)?;
    fresh.reserved.settle();
    Ok(is_new)
}

fn stored_score(keyspace: &Keyspace, version: u64, member: &[u8]) -> Result<Option<f64>> {
    let hash = keyspace.member_hash.of(member).expect("drawn before the first element");
    keyspace.stored_score(&key::member(version, SCORED_MEMBER, hash, member))
}

/// A member of a sorted set of this version id, with its hash.
type VersionMember<'m> = (u64, &'m [u8], u64);

/// Writes both elements of a short member of a sorted set: one descent each, and one more if it had another score. Returns true if it is new.
fn put_scored(
    keyspace: &Keyspace,
    of: VersionMember<'_>,
    tree_key: &TreeKey,
    value: &[u8],
    score: f64,
) -> Result<bool> {
    let target = RecordChange::Put(RecordPut { body: Body::Inline(value), ..RecordPut::new(0, Expire::None, 0) });
    let done = keyspace.store.records.modify(tree_key.as_slice(), None, |old: Option<OldRecord<'_>>, change| {
        let old_score = old.as_ref().map(|old| match Meta::parse(old.value)?.body {
            Body::Inline(value) => score::of_value(value),
            _ => Err(Error::corrupt("a short member of a sorted set with pages")),
        });
        apply(old.as_ref(), &mut PageChanges::alone(change), &target, 0, false)?;
        old_score.transpose()
    })?;
    let old = done.result?;
    put_score(keyspace, of, old, score)?;
    Ok(old.is_none())
}

/// Writes the element by score of a member, and removes that by its old score.
fn put_score(
    keyspace: &Keyspace,
    (version, member, hash): VersionMember<'_>,
    old: Option<f64>,
    score: f64,
) -> Result<()> {
    let records = &keyspace.store.records;
    if let Some(old) = old {
        let old = key::element_of(version, SCORE, &score::sub_key(old, member));
        records.modify(&old, None, |_, change| change.delete())?;
    }
    let tree_key = key::element_of(version, SCORE, &score::sub_key(score, member));
    let payload = score::payload(score, (member.len() > key::SHORT_MEMBER_MAX).then_some(hash));
    let put = RecordPut { body: Body::Inline(&payload), ..RecordPut::new(0, Expire::None, 0) };
    put_unnamed(&keyspace.store, &tree_key, put).map(drop)
}

fn put_unnamed(store: &Store, tree_key: &[u8], put: RecordPut<'_>) -> Result<bool> {
    let target = RecordChange::Put(put);
    let done = store.records.modify(tree_key, None, |old: Option<OldRecord<'_>>, change| {
        apply(old.as_ref(), &mut PageChanges::alone(change), &target, 0, false)
    })?;
    Ok(!done.result?.existed)
}

/// Appends a range of `stored` followed by a value.
pub(crate) fn read_behind(stored: &[u8], range: Range<u64>, out: &mut Vec<u8>, read: ReadPart<'_>) -> Result<()> {
    let skip = stored.len() as u64;
    out.extend_from_slice(&stored[range.start.min(skip) as usize..range.end.min(skip) as usize]);
    let of_value = range.start.max(skip) - skip..range.end.max(skip) - skip;
    if of_value.is_empty() { Ok(()) } else { read(of_value, out) }
}
