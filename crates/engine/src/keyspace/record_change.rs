//! The one way in which a meta record changes: the old record decides, under the leaf's latch, which pages become free.

use btree::OldRecord;
use pager::Run;

use crate::error::Result;
use crate::keyspace::field_times;
use crate::keyspace::record;
use crate::keyspace::record::{Body, Head, Kind, Meta};
use crate::txn::page_changes::PageChanges;

/// A change of a key's expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expire {
    /// Unchanged. A new key has no expiry time.
    Keep,
    None,
    /// Milliseconds since 1970. The key is absent when the clock shows more.
    At(u64),
}

/// Why a record is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Removal {
    Deleted,
    Expired,
    /// Its value has another name now, with its pages.
    Renamed,
}

/// A new meta record.
pub(crate) struct RecordPut<'a> {
    pub kind: Kind,
    pub form: u8,
    pub expire: Expire,
    pub key_len: u32,
    pub body: Body<'a>,
    /// Reserved pages that the body refers to for the first time.
    pub allocated: &'a [Run],
    /// The body may refer to pages of the old record.
    pub shares_pages: bool,
    /// The value stays the same, so watchers are not marked.
    pub unseen: bool,
    /// The change has nothing for those who wait for the key.
    pub is_idle: bool,
    /// The record shares most of its bytes with the old one, though it is no collection's.
    pub is_similar: bool,
}

impl RecordPut<'_> {
    pub fn new(form: u8, expire: Expire, key_len: usize) -> Self {
        RecordPut {
            kind: Kind::String,
            form,
            expire,
            key_len: key_len as u32,
            body: Body::Inline(&[]),
            allocated: &[],
            shares_pages: false,
            unseen: false,
            is_idle: false,
            is_similar: false,
        }
    }
}

pub(crate) enum RecordChange<'a> {
    Put(RecordPut<'a>),
    Remove(Removal),
}

/// Facts about the record that was replaced or removed.
#[derive(Clone, Default)]
pub(crate) struct Replaced {
    pub existed: bool,
    /// The type of the old value.
    pub kind: Option<Kind>,
    pub expire: Option<u64>,
    /// The version id of the old value's elements, if no record refers to it any more.
    pub orphaned: Option<u64>,
    new_expire: Option<u64>,
    pub needs_txn: bool,
    /// The least expiry times of the old and the new hash's fields.
    field_times: (Option<u64>, Option<u64>),
    /// The record of the old hash, if fields of it were due.
    pub due_hash: Option<Box<[u8]>>,
}

impl Replaced {
    /// Describes a replacement that leaves pages, version id and expiry times as they are.
    pub fn in_place(old: Option<&Head>) -> Replaced {
        let expire = old.and_then(|old| old.expire);
        let kind = old.map(|old| old.kind);
        Replaced { existed: old.is_some(), kind, expire, new_expire: expire, ..Replaced::default() }
    }

    /// Returns the old record's expiry time if the new record has another one.
    pub fn stale_time(&self) -> Option<u64> {
        self.expire.filter(|old| Some(*old) != self.new_expire)
    }

    /// Returns the least expiry time of the old hash's fields if the new one has another.
    pub fn stale_field_time(&self) -> Option<u64> {
        self.field_times.0.filter(|old| Some(*old) != self.field_times.1)
    }
}

/// Changes the record under its leaf's latch. With `alone`, a change that needs a transaction is not made, and `needs_txn` is set.
pub(crate) fn apply(
    old: Option<&OldRecord<'_>>,
    pages: &mut PageChanges<'_, '_>,
    target: &RecordChange<'_>,
    now: u64,
    alone: bool,
) -> Result<Replaced> {
    let meta = old.map(|old| Meta::parse(old.value)).transpose()?;
    let mut facts = Replaced { existed: old.is_some(), ..Replaced::default() };
    let mut dropped = Vec::new();
    if let Some(meta) = &meta {
        (facts.kind, facts.expire) = (Some(meta.head.kind), meta.head.expire);
        facts.field_times.0 = field_times::least(meta)?;
        if facts.field_times.0.is_some_and(|least| now > least) {
            facts.due_hash = old.as_ref().map(|old| old.value.into());
        }
        let (keeps_pages, keeps_version) = match target {
            RecordChange::Put(put) => (put.shares_pages, put.body.version() == meta.body.version()),
            RecordChange::Remove(why) => (false, *why == Removal::Renamed),
        };
        facts.orphaned = meta.body.version().filter(|_| !keeps_version);
        if facts.orphaned.is_some() && alone {
            facts.needs_txn = true;
            return Ok(facts);
        }
        if !matches!(target, RecordChange::Remove(Removal::Renamed)) {
            let kept: Vec<_> = match target {
                RecordChange::Put(put) if keeps_pages => put.body.runs().collect(),
                _ => Vec::new(),
            };
            let is_kept = |page| kept.iter().any(|run| (run.first..run.first + u64::from(run.pages)).contains(&page));
            dropped = record::without(meta.body.runs(), is_kept);
        }
    }
    match target {
        RecordChange::Put(put) => {
            facts.new_expire = match put.expire {
                Expire::Keep => meta.filter(|meta| !meta.is_expired(now)).and_then(|meta| meta.head.expire),
                Expire::None => None,
                Expire::At(time) => Some(time),
            };
            let head = Head { kind: put.kind, form: put.form, expire: facts.new_expire, key_len: put.key_len };
            facts.field_times.1 = field_times::least(&Meta { head, body: put.body })?;
            let is_similar = put.is_similar || put.kind != Kind::String;
            put.body.with_bytes(|one, two| {
                let head = head.bytes(&put.body);
                let parts = [head.as_slice(), one, two];
                if is_similar { pages.change.put_similar(&parts) } else { pages.change.put(&parts) }
            });
            pages.allocated(put.allocated);
        }
        RecordChange::Remove(_) if facts.existed => pages.change.delete(),
        RecordChange::Remove(_) => {}
    }
    pages.dropped(dropped);
    Ok(facts)
}
