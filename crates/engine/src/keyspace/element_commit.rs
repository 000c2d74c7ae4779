//! Changed collections of a committing transaction of SQL, stored in the key transaction of its commit.

use std::ops::Bound;

use crate::error::Result;
use crate::keyspace::encoding_limits::EncodingLimits;
use crate::keyspace::key_events::event_class;
use crate::keyspace::key_txn::KeyTransaction;
use crate::keyspace::list::End;
use crate::keyspace::record::Kind;
use crate::keyspace::score;
use crate::rows::key_changes::{ElementChanges, item_name, item_number};

/// The number of elements that are put or removed together.
const TOGETHER: usize = 512;

impl KeyTransaction<'_> {
    /// Stores the changes of a collection.
    pub(crate) fn apply_elements(
        &mut self,
        db: u8,
        key: &[u8],
        changes: &ElementChanges,
        limits: &EncodingLimits,
    ) -> Result<()> {
        if !changes.keeps && self.delete(db, key)? {
            self.notify(db, key, event_class::GENERIC, "del");
        }
        match changes.kind {
            Kind::List => self.apply_items(db, key, changes)?,
            _ => self.apply_members(db, key, changes, limits)?,
        }
        if self.peek(db, key)?.is_none() {
            if changes.keeps {
                self.notify(db, key, event_class::GENERIC, "del");
            }
        } else if changes.sets_expiry && self.set_expire(db, key, changes.expire_at_ms)? {
            let event = if changes.expire_at_ms.is_some() { "expire" } else { "persist" };
            self.notify(db, key, event_class::GENERIC, event);
        }
        Ok(())
    }

    /// Puts before it removes, so that the key does not vanish in between.
    fn apply_members(&mut self, db: u8, key: &[u8], changes: &ElementChanges, limits: &EncodingLimits) -> Result<()> {
        let (class, put_event, removal_event) = match changes.kind {
            Kind::Hash => (event_class::HASH, "hset", "hdel"),
            Kind::ZSet => (event_class::SORTED_SET, "zadd", "zrem"),
            _ => (event_class::SET, "sadd", "srem"),
        };
        let put: Vec<(&[u8], &[u8])> = changes.items_after(None).collect();
        for some in put.chunks(TOGETHER) {
            match changes.kind {
                Kind::Hash => self.put_members(db, key, Kind::Hash, some, limits.hash()).map(drop)?,
                Kind::ZSet => {
                    let scores: Result<Vec<f64>> = some.iter().map(|(_, value)| score::of_value(value)).collect();
                    let (scores, members) = (scores?, some.iter().map(|(member, _)| *member).collect::<Vec<_>>());
                    let choose = &mut |nth: usize, _| scores.get(nth).copied();
                    self.put_scores(db, key, &members, choose, limits.zset()).map(drop)?;
                }
                kind => self.put_members(db, key, kind, some, limits.set_of()).map(drop)?,
            }
        }
        if !put.is_empty() {
            self.notify(db, key, class, put_event);
        }
        let removed: Vec<&[u8]> =
            changes.items.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| &**name).collect();
        let mut count = 0;
        for some in removed.chunks(TOGETHER) {
            count += self.remove_members(db, key, changes.kind, some)?;
        }
        if count > 0 {
            self.notify(db, key, class, removal_event);
        }
        Ok(())
    }

    /// Replaces items while the indexes are still those of the first change, then adds at the ends, then removes there. Of one end, items are either added or
    /// removed.
    fn apply_items(&mut self, db: u8, key: &[u8], changes: &ElementChanges) -> Result<()> {
        let (first, last, committed) = (changes.numbers.start, changes.numbers.end, changes.committed as i64);
        let at = |number: i64| changes.item(&item_name(number)).flatten();
        let is_there = changes.keeps && self.peek(db, key)?.is_some();
        let (from, to) = (item_name(first.clamp(0, committed)), item_name(last.clamp(0, committed)));
        let kept = changes.items.range::<[u8], _>((Bound::Included(&from[..]), Bound::Excluded(&to[..])));
        let replaced = kept.filter_map(|(name, value)| Some((item_number(name)? as u64, value.as_deref()?)));
        let replaced: Vec<(u64, &[u8])> = replaced.collect();
        if is_there {
            for (index, item) in &replaced {
                self.set_item(db, key, *index, item)?;
            }
            if !replaced.is_empty() {
                self.notify(db, key, event_class::LIST, "lset");
            }
        }
        let before: Vec<&[u8]> = (first..last.min(0)).rev().filter_map(at).collect();
        let behind: Vec<&[u8]> = (first.max(committed)..last).filter_map(at).collect();
        for (end, items, event) in [(End::Head, before, "lpush"), (End::Tail, behind, "rpush")] {
            for some in items.chunks(TOGETHER) {
                self.push_items(db, key, end, some)?;
            }
            if !items.is_empty() {
                self.notify(db, key, event_class::LIST, event);
            }
        }
        let (from_head, from_tail) = (first.clamp(0, committed), committed - last.clamp(0, committed));
        for (end, count, event) in [(End::Head, from_head, "lpop"), (End::Tail, from_tail, "rpop")] {
            if is_there && count > 0 {
                self.trim_items(db, key, end, count as u64)?;
                self.notify(db, key, event_class::LIST, event);
            }
        }
        Ok(())
    }
}
