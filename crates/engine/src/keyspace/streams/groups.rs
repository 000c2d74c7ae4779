//! Groups of a stream and their consumers.
//!
//! ```text
//!   kind 25   name                       ->  id u32 | last id | entries read i64 | pending u64 | consumers u32 | next consumer u32
//!   kind 28   group u32 | name           ->  consumer u32
//!   kind 29   group u32 | consumer u32   ->  seen u64 | active u64 | pending u64 | name                    times in milliseconds since 1970
//! ```
//! Numbers of groups and of consumers are not used again, so what a removed one leaves to the background is found by nobody.

use std::collections::BTreeMap;
use std::ops::Bound;

use btree::ScanState;

use crate::error::{Error, Result};
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::key::{self, CONSUMER, CONSUMER_NAME, GROUP, OWNED, PENDING, SHORT_MEMBER_MAX, TreeKey};
use crate::keyspace::key_txn::KeyTransaction;
use crate::keyspace::record::Meta;
use crate::keyspace::record_walk::RecordWalk;
use crate::keyspace::streams::chunk::Fields;
use crate::keyspace::streams::pending::{Pending, PendingList, PendingWalk};
use crate::keyspace::streams::stream::Stream;
use crate::keyspace::streams::stream_id::StreamId;

/// A consumer group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    pub name: Vec<u8>,
    pub(crate) id: u32,
    /// The last entry that was delivered.
    pub last_id: StreamId,
    /// Number of entries up to the last one; negative if it is not known.
    pub entries_read: i64,
    pub pending: u64,
    pub consumers: u32,
    next_consumer: u32,
}

/// A consumer of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consumer {
    pub name: Vec<u8>,
    /// Its number in the group, which pending entries name.
    pub id: u32,
    pub seen_ms: u64,
    /// When it last got an entry; 0 if it never did.
    pub active_ms: u64,
    pub pending: u64,
}

impl Group {
    fn encode(&self) -> Vec<u8> {
        let mut out = self.id.to_le_bytes().to_vec();
        out.extend_from_slice(&self.last_id.to_bytes());
        out.extend_from_slice(&self.entries_read.to_le_bytes());
        out.extend_from_slice(&self.pending.to_le_bytes());
        out.extend_from_slice(&self.consumers.to_le_bytes());
        out.extend_from_slice(&self.next_consumer.to_le_bytes());
        out
    }

    pub(crate) fn parse(name: &[u8], payload: &[u8]) -> Result<Group> {
        let mut fields = Fields(payload);
        let mut take = || {
            let (id, last_id, entries_read) = (fields.u32()?, fields.id()?, fields.u64()? as i64);
            let (pending, consumers, next_consumer) = (fields.u64()?, fields.u32()?, fields.u32()?);
            let name = name.to_vec();
            Some(Group { name, id, last_id, entries_read, pending, consumers, next_consumer })
        };
        take().ok_or_else(|| Error::corrupt("a stream's group of unknown form"))
    }
}

impl Consumer {
    fn encode(&self) -> Vec<u8> {
        let times = [self.seen_ms.to_le_bytes(), self.active_ms.to_le_bytes(), self.pending.to_le_bytes()];
        [&times.concat()[..], &self.name].concat()
    }

    pub(crate) fn parse(id: u32, payload: &[u8]) -> Result<Consumer> {
        let mut fields = Fields(payload);
        let mut take = || {
            let (seen_ms, active_ms, pending) = (fields.u64()?, fields.u64()?, fields.u64()?);
            Some(Consumer { name: fields.0.to_vec(), id, seen_ms, active_ms, pending })
        };
        take().ok_or_else(|| Error::corrupt("a consumer of unknown form"))
    }
}

/// A walk over the groups of a stream, or over the consumers of a group, in the order of their names.
pub struct NamedWalk {
    records: RecordWalk,
    version: u64,
    group: u32,
}

impl NamedWalk {
    /// Returns the next group.
    pub fn next_group(&mut self, txn: &KeyTransaction<'_>) -> Result<Option<Group>> {
        let Some((key, record)) = self.records.next(txn)? else { return Ok(None) };
        txn.group_of_record(key, record).map(Some)
    }

    /// Returns the next consumer.
    pub fn next_consumer(&mut self, txn: &KeyTransaction<'_>) -> Result<Option<Consumer>> {
        let (version, group) = (self.version, self.group);
        let Some((_, record)) = self.records.next(txn)? else { return Ok(None) };
        let id = Fields(&txn.sub_payload(record)?).u32();
        let id = id.ok_or_else(|| Error::corrupt("the number of a consumer is missing"))?;
        txn.consumer_at(version, group, id)
    }
}

impl<'k> KeyTransaction<'k> {
    fn group_key(version: u64, name: &[u8]) -> TreeKey {
        key::sub_element(version, GROUP, &key::named(&[], name))
    }

    fn consumer_key(version: u64, group: u32, consumer: u32) -> TreeKey {
        key::sub_element(version, CONSUMER, &[group.to_be_bytes(), consumer.to_be_bytes()].concat())
    }

    fn consumer_name_key(version: u64, group: u32, name: &[u8]) -> TreeKey {
        key::sub_element(version, CONSUMER_NAME, &key::named(&group.to_be_bytes(), name))
    }

    pub(crate) fn group_of_record(&self, tree_key: &[u8], record: &[u8]) -> Result<Group> {
        let key_len = u64::from(Meta::parse(record)?.head.key_len);
        let payload = self.sub_payload(record)?;
        if key_len == 0 {
            return Group::parse(key::sub_key(tree_key), &payload);
        }
        Group::parse(&self.sub_part(record, 0..key_len)?, &payload)
    }

    /// Returns a group by its name.
    pub fn group(&self, stream: &Stream<'_>, name: &[u8]) -> Result<Option<Group>> {
        let Some(version) = stream.version.filter(|_| stream.state.groups > 0) else { return Ok(None) };
        let payload = self.sub(&Self::group_key(version, name))?;
        payload.map(|payload| Group::parse(name, &payload)).transpose()
    }

    /// Begins a walk over the groups.
    pub fn groups(&self, stream: &Stream<'_>) -> NamedWalk {
        let version = stream.version.unwrap_or_default();
        let records =
            RecordWalk::new(stream.version.map(|version| prefix_scan(&key::sub_element(version, GROUP, &[]))));
        NamedWalk { records, version, group: 0 }
    }

    /// Begins a walk over the consumers of a group.
    pub fn consumers(&self, stream: &Stream<'_>, group: &Group) -> NamedWalk {
        let version = stream.version.unwrap_or_default();
        let scan = prefix_scan(&key::sub_element(version, CONSUMER_NAME, &group.id.to_be_bytes()));
        let records = RecordWalk::new(Some(scan));
        NamedWalk { records, version, group: group.id }
    }

    /// Adds a group, whose name must be free.
    pub fn create_group(
        &mut self,
        stream: &mut Stream<'k>,
        name: &[u8],
        last_id: StreamId,
        entries_read: i64,
    ) -> Result<()> {
        let id = stream.state.next_group;
        stream.state.next_group = id.checked_add(1).ok_or(Error::TooLarge { what: "group", limit: u32::MAX.into() })?;
        stream.state.groups += 1;
        let group =
            Group { name: name.to_vec(), id, last_id, entries_read, pending: 0, consumers: 0, next_consumer: 0 };
        self.store_group(stream, &group)?;
        if self.records_effects() {
            let key = stream.place.name();
            let effect = KeyEffect::CreateGroup { key: &key, group: name, last: last_id, entries_read };
            self.effect(stream.place.db, effect);
        }
        Ok(())
    }

    /// Stores a group that has changed.
    pub fn put_group(&mut self, stream: &mut Stream<'k>, group: &Group) -> Result<()> {
        self.store_group(stream, group)?;
        if self.records_effects() {
            let (key, last, entries_read) = (stream.place.name(), group.last_id, group.entries_read);
            let effect = KeyEffect::SetGroup { key: &key, group: &group.name, last, entries_read };
            self.effect(stream.place.db, effect);
        }
        Ok(())
    }

    fn store_group(&mut self, stream: &mut Stream<'k>, group: &Group) -> Result<()> {
        let version = self.version_of(stream)?;
        let stored: &[u8] = if group.name.len() > SHORT_MEMBER_MAX { &group.name } else { &[] };
        self.put_sub(&stream.place, Self::group_key(version, &group.name), stored, &group.encode())
    }

    /// Removes a group with its consumers and pending entries, in the same time whatever their number.
    pub fn destroy_group(&mut self, stream: &mut Stream<'k>, group: &Group) -> Result<()> {
        let version = self.version_of(stream)?;
        stream.state.groups -= 1;
        stream.is_ready = true;
        self.remove_sub(&stream.place, Self::group_key(version, &group.name))?;
        for kind in [PENDING, OWNED, CONSUMER_NAME, CONSUMER] {
            let from = key::sub_element(version, kind, &group.id.to_be_bytes());
            let to = key::after_prefix(from.as_slice()).expect("a kind is below 255");
            self.remove_subs(&stream.place, from.as_slice(), &to)?;
        }
        if self.records_effects() {
            let key = stream.place.name();
            self.effect(stream.place.db, KeyEffect::DestroyGroup { key: &key, group: &group.name });
        }
        Ok(())
    }

    pub(crate) fn consumer_at(&self, version: u64, group: u32, id: u32) -> Result<Option<Consumer>> {
        let payload = self.sub(&Self::consumer_key(version, group, id))?;
        payload.map(|payload| Consumer::parse(id, &payload)).transpose()
    }

    /// Returns a consumer by its number.
    pub fn consumer_by_id(&self, stream: &Stream<'_>, group: &Group, id: u32) -> Result<Option<Consumer>> {
        self.consumer_at(stream.version.unwrap_or_default(), group.id, id)
    }

    /// Returns a consumer by its name.
    pub fn consumer(&self, stream: &Stream<'_>, group: &Group, name: &[u8]) -> Result<Option<Consumer>> {
        let version = stream.version.unwrap_or_default();
        let id = self.sub(&Self::consumer_name_key(version, group.id, name))?;
        match id.and_then(|id| Fields(&id).u32()) {
            Some(id) => self.consumer_at(version, group.id, id),
            None => Ok(None),
        }
    }

    /// Adds a consumer, whose name must be free. The caller stores the group and the consumer.
    pub fn create_consumer(&mut self, stream: &mut Stream<'k>, group: &mut Group, name: &[u8]) -> Result<Consumer> {
        let version = self.version_of(stream)?;
        let id = group.next_consumer;
        group.next_consumer = id.checked_add(1).ok_or(Error::TooLarge { what: "consumer", limit: u32::MAX.into() })?;
        group.consumers += 1;
        let key = Self::consumer_name_key(version, group.id, name);
        self.put_sub(&stream.place, key, &[], &id.to_le_bytes())?;
        if self.records_effects() {
            let key = stream.place.name();
            let effect = KeyEffect::CreateConsumer { key: &key, group: &group.name, consumer: name };
            self.effect(stream.place.db, effect);
        }
        Ok(Consumer { name: name.to_vec(), id, seen_ms: self.now_ms(), active_ms: 0, pending: 0 })
    }

    /// Stores a consumer that has changed.
    pub fn put_consumer(&mut self, stream: &mut Stream<'k>, group: &Group, consumer: &Consumer) -> Result<()> {
        let version = self.version_of(stream)?;
        self.put_sub(&stream.place, Self::consumer_key(version, group.id, consumer.id), &[], &consumer.encode())
    }

    /// Removes a consumer with its pending entries. The caller stores the group.
    pub fn delete_consumer(&mut self, stream: &mut Stream<'k>, group: &mut Group, consumer: &Consumer) -> Result<()> {
        let version = self.version_of(stream)?;
        let owned = PendingList::of_consumer(version, group.id, consumer.id);
        let (mut walk, mut gone) = (self.pending_from(owned, StreamId::MIN)?, Vec::new());
        while let Some(item) = walk.next(self)? {
            gone.push((item.id, None));
        }
        self.change_pending(&stream.place, PendingList::of_group(version, group.id), &gone)?;
        let (from, to) = owned.bounds();
        self.remove_subs(&stream.place, from.as_slice(), &to)?;
        self.remove_sub(&stream.place, Self::consumer_name_key(version, group.id, &consumer.name))?;
        self.remove_sub(&stream.place, Self::consumer_key(version, group.id, consumer.id))?;
        group.pending = group.pending.saturating_sub(gone.len() as u64);
        group.consumers = group.consumers.saturating_sub(1);
        if self.records_effects() {
            let key = stream.place.name();
            let effect = KeyEffect::DeleteConsumer { key: &key, group: &group.name, consumer: &consumer.name };
            self.effect(stream.place.db, effect);
        }
        Ok(())
    }

    /// Begins a walk over the pending entries of a group.
    pub fn group_pending(&self, stream: &Stream<'_>, group: &Group, from: StreamId) -> Result<PendingWalk> {
        self.pending_from(PendingList::of_group(stream.version.unwrap_or_default(), group.id), from)
    }

    /// Returns the id of a group's last pending entry.
    pub fn last_pending(&self, stream: &Stream<'_>, group: &Group) -> Result<Option<StreamId>> {
        let last = self.last_of(PendingList::of_group(stream.version.unwrap_or_default(), group.id))?;
        Ok(last.map(|item| item.id))
    }

    /// Begins a walk over the ids of a consumer's pending entries.
    pub fn consumer_pending(
        &self,
        stream: &Stream<'_>,
        group: &Group,
        consumer: &Consumer,
        from: StreamId,
    ) -> Result<PendingWalk> {
        let version = stream.version.unwrap_or_default();
        self.pending_from(PendingList::of_consumer(version, group.id, consumer.id), from)
    }

    /// Returns the pending entries of some ids, which are sorted.
    pub fn pending_entries(
        &self,
        stream: &Stream<'_>,
        group: &Group,
        ids: &[StreamId],
    ) -> Result<Vec<Option<Pending>>> {
        let list = PendingList::of_group(stream.version.unwrap_or_default(), group.id);
        self.pending_at(list, ids.iter().copied())
    }

    /// Changes pending entries: each of these ids, which are sorted, becomes pending as said, or is no more. The caller stores the group, and the consumer that it
    /// has. Returns the number of entries that were pending before.
    pub fn set_pending(
        &mut self,
        stream: &mut Stream<'k>,
        group: &mut Group,
        changes: &[(StreamId, Option<Pending>)],
        mut held: Option<&mut Consumer>,
    ) -> Result<u64> {
        let version = self.version_of(stream)?;
        let list = PendingList::of_group(version, group.id);
        let before = self.pending_at(list, changes.iter().map(|(id, _)| *id))?;
        let mut owners = BTreeMap::<u32, Vec<(StreamId, Option<Pending>)>>::new();
        let mut kept = Vec::with_capacity(changes.len());
        for ((id, after), before) in changes.iter().zip(&before) {
            let (old, new) = (before.map(|item| item.consumer), after.map(|item| item.consumer));
            if old != new {
                old.into_iter().for_each(|owner| owners.entry(owner).or_default().push((*id, None)));
                new.into_iter().for_each(|owner| owners.entry(owner).or_default().push((*id, *after)));
            }
            if before != after {
                kept.push((*id, *after));
            }
        }
        self.change_pending(&stream.place, list, &kept)?;
        for (owner, changes) in owners {
            self.change_pending(&stream.place, PendingList::of_consumer(version, group.id, owner), &changes)?;
            let added = changes.iter().filter(|(_, item)| item.is_some()).count() as u64;
            let change = |pending: u64| (pending + added).saturating_sub(changes.len() as u64 - added);
            if let Some(consumer) = held.as_deref_mut().filter(|consumer| consumer.id == owner) {
                consumer.pending = change(consumer.pending);
            } else if let Some(mut consumer) = self.consumer_at(version, group.id, owner)? {
                consumer.pending = change(consumer.pending);
                self.put_consumer(stream, group, &consumer)?;
            }
        }
        let (were, are) = (before.iter().flatten().count(), changes.iter().filter(|(_, item)| item.is_some()).count());
        group.pending = (group.pending + are as u64).saturating_sub(were as u64);
        if self.records_effects() {
            self.effects_of_pending(stream, group, changes, held.as_deref())?;
        }
        Ok(were as u64)
    }

    /// Records changes of pending entries: neighbours that are alike together.
    fn effects_of_pending(
        &mut self,
        stream: &Stream<'_>,
        group: &Group,
        changes: &[(StreamId, Option<Pending>)],
        held: Option<&Consumer>,
    ) -> Result<()> {
        let key = stream.place.name();
        let like = |change: &Option<Pending>| change.map(|item| Pending { id: StreamId::MIN, ..item });
        for alike in changes.chunk_by(|one, next| like(&one.1) == like(&next.1)) {
            let ids: Vec<StreamId> = alike.iter().map(|(id, _)| *id).collect();
            let Some(item) = alike[0].1 else {
                self.effect(stream.place.db, KeyEffect::Acknowledge { key: &key, group: &group.name, ids: &ids });
                continue;
            };
            let stored = match held.filter(|held| held.id == item.consumer) {
                Some(_) => None,
                None => self.consumer_by_id(stream, group, item.consumer)?,
            };
            let Some(consumer) = stored.as_ref().or(held).map(|consumer| &consumer.name[..]) else {
                return Err(Error::corrupt("EN-78: a pending entry of no consumer"));
            };
            let (delivered_ms, deliveries, group) = (item.delivered_ms, item.deliveries, &group.name[..]);
            let effect = KeyEffect::SetPending { key: &key, group, consumer, ids: &ids, delivered_ms, deliveries };
            self.effect(stream.place.db, effect);
        }
        Ok(())
    }
}

fn prefix_scan(prefix: &TreeKey) -> ScanState {
    let to = key::after_prefix(prefix.as_slice()).expect("a kind is below 255");
    ScanState::new(Bound::Included(prefix.as_slice()), Bound::Excluded(&to), false)
}
