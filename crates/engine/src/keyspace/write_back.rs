//! How a pipeline changes a meta record in memory, and writes it once (EN-95).
//!
//! ```text
//!   LPUSH l a | LPUSH l b | RPOP l      the kept record of l changes three times; the tree gets it once
//!   LPUSH l a | INCR n                  the record of l is written when n is read
//!   SADD s a | SADD s b                 the elements of a and b are written at once, within a record transaction; the count once, before COMMIT
//! ```
//! Hard part: the order of changes. A record is written before a change of anything else, unless both are in one record transaction. So the WAL ends behind a
//! command, never within one, and never between a later command and an earlier one.

use std::rc::Rc;

use crate::error::{Error, Result};
use crate::keyspace::field_times;
use crate::keyspace::key_txn::{KeyPlace, KeyTransaction};
use crate::keyspace::record::{Body, Head, Kind, Meta};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, Replaced};
use crate::keyspace::stripes::LockStripes;

impl KeyTransaction<'_> {
    /// Changes the kept record in memory. Returns `None`, having done nothing, if the change must go to the tree: it has to do with pages, a version id or an
    /// expiry time, or it is no change of the kept record.
    pub(crate) fn keep(&mut self, place: &KeyPlace, target: &RecordChange<'_>) -> Result<Option<Replaced>> {
        let (Some(_), RecordChange::Put(put)) = (&self.pipeline, target) else { return Ok(None) };
        let Some(kept) = self.kept.as_ref().filter(|kept| kept.is_of(place.space, &place.key)) else { return Ok(None) };
        let old = kept.record.as_ref().map(|record| Meta::parse(record)).transpose()?;
        if !self.may_keep(old.as_ref(), put)? {
            return Ok(None);
        }
        let old = old.map(|old| old.head);
        let head = Head {
            kind: put.kind,
            form: put.form,
            expire: old.as_ref().and_then(|old| old.expire),
            key_len: put.key_len,
        };
        let record = put.body.with_bytes(|one, two| [head.bytes(&put.body).as_slice(), one, two].concat());
        self.must_write()?;
        if self.several {
            self.begin()?;
        }
        let (Some(kept), Some(run)) = (&mut self.kept, &mut self.pipeline) else { unreachable!("looked at above") };
        run.unsettle();
        kept.record = Some(Rc::new(record));
        kept.changed_by = Some(run.running.command);
        kept.is_similar = put.is_similar || put.kind != Kind::String;
        self.placed = true;
        let facts = Replaced::in_place(old.as_ref());
        self.after_write(place, target, &facts)?;
        Ok(Some(facts))
    }

    fn may_keep(&self, old: Option<&Meta<'_>>, put: &RecordPut<'_>) -> Result<bool> {
        let is_plain = |body: &Body<'_>| matches!(body, Body::Inline(_) | Body::Elements { .. });
        let version = old.and_then(|old| old.body.version());
        let keeps_time = match put.expire {
            Expire::Keep => true,
            Expire::None => old.is_none_or(|old| old.head.expire.is_none()),
            Expire::At(_) => false,
        };
        let is_simple = put.allocated.is_empty()
            && is_plain(&put.body)
            && put.body.version() == version
            && keeps_time
            && old.is_none_or(|old| is_plain(&old.body) && !old.is_expired(self.now));
        Ok(is_simple
            && field_times::least_of(put.kind, &put.body, put.key_len)?.is_none()
            && old.map_or(Ok(None), field_times::least)?.is_none())
    }

    /// Writes the kept record, if it is ahead of the tree, before another change: of the record at a place, or, with `None`, of what is not known yet.
    pub(crate) fn write_kept_before(&mut self, place: Option<&KeyPlace>) -> Result<()> {
        let (Some(run), Some(kept)) = (&self.pipeline, &self.kept) else { return Ok(()) };
        let Some(changed_by) = kept.changed_by else { return Ok(()) };
        let is_same = place.is_some_and(|place| kept.is_of(place.space, &place.key));
        // The running command is atomic.
        if changed_by == run.running.command || self.several && place.is_some() {
            self.begin()?;
        }
        // Within a record transaction the order does not matter.
        if self.record_txn.is_some() && place.is_some() && !is_same { Ok(()) } else { self.write_kept() }
    }

    /// Writes the kept record and the levels that belong to it, if it is ahead of the tree.
    pub(crate) fn write_kept(&mut self) -> Result<()> {
        if self.kept.as_ref().is_none_or(|kept| kept.changed_by.is_none()) {
            return Ok(());
        }
        let Some(mut kept) = self.kept.take() else { return Ok(()) };
        let stripe = LockStripes::stripe(kept.db, kept.key.suffix());
        let stripe_lsn = self.stripes.lsn(stripe).ok_or(Error::Misuse("a key outside the transaction's key set"))?;
        let place = KeyPlace { db: kept.db, space: kept.space, key: kept.key.clone(), stripe_lsn, long_name: None };
        if let Some((_, mut levels)) = self.kept_levels.take() {
            assert!(self.record_txn.is_some(), "EN-95: levels and their record change in one transaction");
            self.write_level_changes(&place, &mut levels)?;
        }
        let record = kept.record.clone().ok_or(Error::Misuse("a removal is not kept"))?;
        let Meta { head, body } = Meta::parse(&record)?;
        let mut put = RecordPut::new(head.form, Expire::Keep, head.key_len as usize);
        (put.kind, put.body, put.is_similar) = (head.kind, body, kept.is_similar);
        let changed = self.changed;
        let facts = self.write_record(&place, &RecordChange::Put(put), kept.leaf)?;
        assert!(!facts.needs_txn, "EN-95: a kept record has the version id of the one in the tree");
        // It is the change of commands that have ended.
        self.changed = changed;
        if self.record_txn.is_none()
            && let Some(run) = &mut self.pipeline
        {
            run.unsettled = None;
        }
        kept.changed_by = None;
        self.kept = Some(kept);
        Ok(())
    }
}
