//! The effects of a key transaction, recorded by its primitives (`effects`).

use std::ops::Range;

use crate::error::Result;
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::key_txn::{KeyPlace, KeyTransaction};
use crate::keyspace::record::{Kind, Meta};

impl KeyTransaction<'_> {
    /// Returns whether effects of this transaction are recorded.
    #[inline]
    pub(crate) fn records_effects(&self) -> bool {
        self.keyspace.effects.is_on() && !self.is_staged
    }

    /// Records what has just been done.
    #[inline]
    pub(crate) fn effect(&mut self, db: u8, effect: KeyEffect<'_>) {
        if self.records_effects() {
            self.keyspace.effects.record(&mut self.effects, db, &effect);
        }
    }

    /// Records the removal of the key at a place, which no primitive has requested.
    pub(crate) fn effect_of_removal(&mut self, place: &KeyPlace) {
        if self.records_effects() {
            self.effect(place.db, KeyEffect::Delete { key: &place.name() });
        }
    }

    /// Runs changes that one effect describes as a whole.
    pub fn as_one_effect<R, E>(
        &mut self,
        db: u8,
        effect: &KeyEffect<'_>,
        f: impl FnOnce(&mut Self) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let result = self.without_effects(f);
        if result.is_ok() && self.records_effects() {
            self.keyspace.effects.record(&mut self.effects, db, effect);
        }
        result
    }

    /// Runs changes of which the effects are recorded by the caller.
    pub(crate) fn without_effects<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.effects.muted += 1;
        let result = f(self);
        self.effects.muted -= 1;
        result
    }

    /// Records the removal of an expired key whose record is still there, before the effects of what replaces it. For values whose parts are recorded before
    /// their meta record is written: the effects of the write itself come too late (EN-96).
    pub(crate) fn effect_of_expired(&mut self, place: &KeyPlace) -> Result<()> {
        let mut record = Vec::new();
        if self.keyspace.store.records.get(place.key.as_slice(), &mut record)?.present
            && Meta::parse(&record)?.is_expired(self.now_ms())
        {
            self.effect_of_removal(place);
        }
        Ok(())
    }

    /// Passes the effects on. The transaction is decided and holds its stripes (EN-97).
    #[inline]
    pub(crate) fn append_effects(&mut self) {
        if !self.effects.is_empty() {
            let lsn = self.durability_lsn();
            self.keyspace.effects.append(&mut self.effects, lsn);
        }
    }

    /// Makes a gap: the transaction has changed something that its effects do not tell.
    pub(crate) fn lose_effects(&mut self) {
        if self.records_effects() {
            self.effects.lose();
        }
    }

    /// Records the whole hash, set or sorted set at a key, instead of whatever was there.
    pub(crate) fn effect_of_members(&mut self, db: u8, key: &[u8]) -> Result<()> {
        if !self.records_effects() {
            return Ok(());
        }
        self.effect(db, KeyEffect::Delete { key });
        let Some(entry) = self.peek(db, key)? else { return Ok(()) };
        let (mut walk, mut some, mut times) = (self.members(&entry)?, MembersOfEffect::default(), Vec::new());
        while let Some(item) = walk.next(self)? {
            let start = some.bytes.len();
            some.bytes.extend_from_slice(item.member);
            let middle = some.bytes.len();
            match item.value.bytes() {
                Some(value) => some.bytes.extend_from_slice(value),
                None => {
                    let value = item.value.to_entry()?;
                    self.value_part(&value, 0..value.len, &mut some.bytes)?;
                }
            }
            some.spans.push((start..middle, middle..some.bytes.len()));
            if let Some(time) = item.expire_at_ms {
                times.push((time, item.member.to_vec()));
            }
            if some.bytes.len() >= EFFECT_BYTES || some.spans.len() >= EFFECT_ITEMS {
                self.effect_of_some(db, key, entry.kind, &mut some)?;
            }
            if self.effects.batch.is_lost {
                return Ok(());
            }
        }
        self.effect_of_some(db, key, entry.kind, &mut some)?;
        for (time, field) in &times {
            self.effect(db, KeyEffect::FieldsExpireAt { key, fields: &[field], at_ms: Some(*time) });
        }
        if let Some(at_ms) = entry.expire_at_ms {
            self.effect(db, KeyEffect::ExpireAt { key, at_ms: Some(at_ms) });
        }
        Ok(())
    }

    fn effect_of_some(&mut self, db: u8, key: &[u8], kind: Kind, some: &mut MembersOfEffect) -> Result<()> {
        let items: Vec<(&[u8], &[u8])> =
            some.spans.iter().map(|(name, value)| (&some.bytes[name.clone()], &some.bytes[value.clone()])).collect();
        if kind == Kind::ZSet {
            let scored: Result<Vec<(f64, &[u8])>> =
                items.iter().map(|(member, value)| Ok((crate::keyspace::score::of_value(value)?, *member))).collect();
            let scored = scored?;
            if !scored.is_empty() {
                self.effect(db, KeyEffect::PutScores { key, items: &scored });
            }
        } else if !items.is_empty() {
            self.effect(db, KeyEffect::PutMembers { key, kind, items: &items });
        }
        some.spans.clear();
        some.bytes.clear();
        Ok(())
    }
}

/// Most bytes and most members in an effect of a whole collection, but for one member more.
const EFFECT_BYTES: usize = 64 << 10;
const EFFECT_ITEMS: usize = 512;

/// Members with their values.
#[derive(Default)]
struct MembersOfEffect {
    bytes: Vec<u8>,
    spans: Vec<(Range<usize>, Range<usize>)>,
}
