//! Changing sorted sets: scores, ranges of ranks.
//!
//! Each changed member of a sorted set of elements is written twice, by hash and by score, and the levels over the latter once for each command; all of it and
//! the record with the count are one record transaction (EN-72).

use std::ops::Range;

use crate::error::{Error, Result};
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::key;
use crate::keyspace::key::{ELEMENTS, SCORE, SHORT_MEMBER_MAX, TreeKey};
use crate::keyspace::key_txn::{Entry, KeyPlace, KeyTransaction};
use crate::keyspace::levels::Levels;
use crate::keyspace::members_write::of_kind;
use crate::keyspace::packed::{PackLimits, PackedItems, packed_part};
use crate::keyspace::record::{Body, Kind, Meta};
use crate::keyspace::record_change::{Expire, RecordChange, RecordPut, Removal};
use crate::keyspace::score;
use crate::keyspace::sorted::SortedElements;

/// Members that a removal takes from a sorted set one by one. Beyond it the members that stay are built anew, since the images of a transaction are in memory:
/// some 300 bytes for a member.
const REMOVED_MAX: u64 = 128 << 10;
/// Members from which on they are built anew if that is less work.
const REBUILT_MIN: u64 = 4096;
/// Members that a removal reads before it removes them.
const REMOVAL_STEP: u64 = 1024;

/// The outcome of a change of scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoresPut {
    /// New members.
    pub added: u64,
    /// Members that have another score than before.
    pub updated: u64,
}

/// Chooses the new score of a member, by its number and its present score; `None` leaves it as it is.
pub type ChooseScore<'f> = &'f mut dyn FnMut(usize, Option<f64>) -> Option<f64>;

/// The elements by score of a sorted set that is being changed.
pub(crate) struct ScoreIndex<'k> {
    version: u64,
    levels: Levels<'k>,
    count: u64,
    /// Number of members from which on there are levels.
    elements_max: u64,
}

impl<'k> KeyTransaction<'k> {
    /// Sets the scores of members of the sorted set at a key, which must be absent or of this kind, as `choose` decides for each.
    pub fn put_scores(
        &mut self,
        db: u8,
        key: &[u8],
        members: &[&[u8]],
        choose: ChooseScore<'_>,
        limits: PackLimits,
    ) -> Result<ScoresPut> {
        if !self.records_effects() {
            return self.put_scores_as(db, key, members, choose, limits);
        }
        let mut items = Vec::new();
        let noting: ChooseScore<'_> = &mut |number, old| {
            let score = choose(number, old).filter(|score| old != Some(*score))?;
            items.push((score, members[number]));
            Some(score)
        };
        let done = self.put_scores_as(db, key, members, noting, limits)?;
        if !items.is_empty() {
            self.effect(db, KeyEffect::PutScores { key, items: &items });
        }
        Ok(done)
    }

    fn put_scores_as(
        &mut self,
        db: u8,
        key: &[u8],
        members: &[&[u8]],
        choose: ChooseScore<'_>,
        limits: PackLimits,
    ) -> Result<ScoresPut> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let entry = self.entry(&place)?;
        let meta = entry.as_ref().map(|entry| of_kind(entry, Kind::ZSet)).transpose()?;
        if let (Some(entry), Some(meta)) = (&entry, &meta)
            && SortedElements::of(meta)?.is_some()
        {
            let done = self.put_indexed(&place, entry, members, choose, limits);
            return done.inspect_err(|error| self.mark_broken(error));
        }
        let (mut build, mut done) = (self.build(db, key, Kind::ZSet, limits)?, ScoresPut::default());
        if let Some(meta) = &meta {
            let Body::Inline(payload) = meta.body else { return Err(Error::corrupt("a sorted set of unknown form")) };
            build.start(meta.head.form, PackedItems::parse(Kind::ZSet, packed_part(meta, payload))?);
        }
        for (number, member) in members.iter().enumerate() {
            let old = build.score(member)?;
            if let Some(score) = choose(number, old).filter(|score| old != Some(*score)) {
                let form = build.form | limits.form(Kind::ZSet, build.count() + u64::from(old.is_none()), member, &[]);
                build.put(member, &score::stored(score, form).to_le_bytes())?;
                done.count(old);
            }
        }
        if done != ScoresPut::default() {
            let expire = if meta.is_some() { Expire::Keep } else { Expire::None };
            self.put_build(&place, build, expire)?;
        }
        Ok(done)
    }

    fn put_indexed(
        &mut self,
        place: &KeyPlace,
        entry: &Entry,
        members: &[&[u8]],
        choose: ChooseScore<'_>,
        limits: PackLimits,
    ) -> Result<ScoresPut> {
        let meta = Meta::parse(&entry.record)?;
        let Some(mut index) = self.score_index(&meta)? else { return Err(Error::Misuse("a packed sorted set")) };
        let (mut done, mut form) = (ScoresPut::default(), meta.head.form);
        for (number, member) in members.iter().enumerate() {
            let old = self.score(entry, member)?;
            let Some(score) = choose(number, old).filter(|score| old != Some(*score)) else { continue };
            self.begin()?;
            form |= limits.form(Kind::ZSet, index.count + u64::from(old.is_none()), member, &[]);
            let score = score::stored(score, form);
            self.put_element(place, index.version, Kind::ZSet, member, &score.to_le_bytes())?;
            if let Some(old) = old {
                self.unindex_score(place, &mut index, old, member)?;
            }
            self.index_score(place, &mut index, score, member)?;
            done.count(old);
        }
        if done != ScoresPut::default() {
            let count = index.count;
            let fields = self.write_levels(place, index)?;
            self.put_count(place, &meta, form, count, &fields)?;
        } else {
            self.put_index_back(index);
        }
        Ok(done)
    }

    /// Returns the elements by score of a sorted set that is not packed, to be changed; `None` for other collections. `write_levels` or `put_index_back` ends
    /// that.
    pub(crate) fn score_index(&mut self, meta: &Meta<'_>) -> Result<Option<ScoreIndex<'k>>> {
        if meta.head.kind != Kind::ZSet {
            return Ok(None);
        }
        let Some(elements) = SortedElements::of(meta)? else { return Ok(None) };
        let SortedElements { count, version, .. } = elements;
        let kept = self.kept_levels.take_if(|(of, _)| *of == version);
        let levels = kept.map_or_else(|| self.keyspace.sorted_levels(elements), |(_, levels)| levels);
        Ok(Some(ScoreIndex { version, levels, count, elements_max: self.keyspace.level_sizes.elements }))
    }

    /// Writes the element by score of a member that has none.
    fn index_score(&mut self, place: &KeyPlace, index: &mut ScoreIndex<'k>, score: f64, member: &[u8]) -> Result<()> {
        let hash = if member.len() > SHORT_MEMBER_MAX { self.member_hash(member) } else { None };
        let (sub, payload) = (score::sub_key(score, member), score::payload(score, hash));
        let put = RecordPut { body: Body::Inline(&payload), ..RecordPut::new(0, Expire::None, 0) };
        let element = element_place(place, &key::element_of(index.version, SCORE, &sub));
        self.write(&element, &RecordChange::Put(put))?;
        index.count += 1;
        // Without levels, their count tells whether some are needed.
        if index.levels.top() > 0 || index.count > index.elements_max { index.levels.added(&sub) } else { Ok(()) }
    }

    /// Removes the element by score of a member.
    pub(crate) fn unindex_score(
        &mut self,
        place: &KeyPlace,
        index: &mut ScoreIndex<'k>,
        score: f64,
        member: &[u8],
    ) -> Result<()> {
        let sub = score::sub_key(score, member);
        let element = element_place(place, &key::element_of(index.version, SCORE, &sub));
        if !self.write(&element, &RecordChange::Remove(Removal::Deleted))?.existed {
            return Err(Error::corrupt("EN-72: a member of a sorted set has no element by score"));
        }
        index.count = index.count.saturating_sub(1);
        index.levels.removed(&sub)
    }

    /// Writes the changed levels, in a pipeline with the collection's record. Returns the fields of that record.
    pub(crate) fn write_levels(&mut self, place: &KeyPlace, mut index: ScoreIndex<'k>) -> Result<Vec<u8>> {
        let fields = vec![index.levels.top()];
        let is_kept = self.kept.as_ref().is_some_and(|kept| kept.is_of(place.space, &place.key));
        if self.pipeline.is_some() && is_kept {
            self.kept_levels = Some((index.version, index.levels));
        } else {
            self.write_level_changes(place, &mut index.levels)?;
        }
        Ok(fields)
    }

    /// Ends the use of an index that was not changed.
    pub(crate) fn put_index_back(&mut self, index: ScoreIndex<'k>) {
        if index.levels.is_changed() {
            self.kept_levels = Some((index.version, index.levels));
        }
    }

    /// Writes the changed records of levels.
    pub(crate) fn write_level_changes(&mut self, place: &KeyPlace, levels: &mut Levels<'_>) -> Result<()> {
        for (key, record) in levels.take_changes() {
            let element = element_place(place, &key);
            let change = match &record {
                Some(record) => {
                    let body = Meta::parse(record)?.body;
                    RecordChange::Put(RecordPut { body, is_similar: true, ..RecordPut::new(0, Expire::None, 0) })
                }
                None => RecordChange::Remove(Removal::Deleted),
            };
            self.write(&element, &change)?;
        }
        Ok(())
    }

    /// Removes the members of a range of ranks from the sorted set at a key, which must be absent or of this kind. The last member takes the key with it.
    /// Returns how many there were.
    pub fn remove_ranks(&mut self, db: u8, key: &[u8], ranks: Range<u64>) -> Result<u64> {
        let place = self.place(db, key)?;
        self.must_write()?;
        let Some(entry) = self.entry(&place)? else { return Ok(0) };
        let meta = of_kind(&entry, Kind::ZSet)?;
        let count = entry.count()?;
        let ranks = ranks.start..ranks.end.min(count);
        let removed = ranks.end.saturating_sub(ranks.start);
        if removed == count {
            self.remove_record_at(&place)?;
            self.effect(db, KeyEffect::Delete { key });
        } else if SortedElements::of(&meta)?.is_some()
            && (removed > REMOVED_MAX || removed > REBUILT_MIN && count - removed < removed / 2)
        {
            self.rebuild_without(&place, (db, key), &entry, ranks.clone())?;
            self.effect(db, KeyEffect::RemoveRanks { key, ranks });
        } else {
            let mut left = removed;
            while left > 0 {
                left -= self.remove_some(db, key, ranks.start, left.min(REMOVAL_STEP))?;
            }
        }
        Ok(removed)
    }

    fn remove_some(&mut self, db: u8, key: &[u8], rank: u64, count: u64) -> Result<u64> {
        let Some(entry) = self.peek(db, key)? else { return Err(Error::corrupt("EN-72: fewer members than counted")) };
        let (mut walk, mut members) = (self.sorted_few(&entry, rank, false, count)?, Vec::new());
        while (members.len() as u64) < count
            && let Some((_, member)) = walk.next(self)?
        {
            members.push(member.to_vec());
        }
        let members: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
        match self.remove_members(db, key, Kind::ZSet, &members)? {
            0 => Err(Error::corrupt("EN-72: fewer members than counted")),
            removed => Ok(removed),
        }
    }

    /// Stores the sorted set without a range of ranks, as new elements.
    fn rebuild_without(
        &mut self,
        place: &KeyPlace,
        (db, key): (u8, &[u8]),
        entry: &Entry,
        ranks: Range<u64>,
    ) -> Result<()> {
        let mut build = self.build(db, key, Kind::ZSet, PackLimits::KEEP)?;
        build.form = Meta::parse(&entry.record)?.head.form;
        let (mut walk, mut rank) = (self.sorted(entry, 0, false)?, 0);
        while rank < ranks.start
            && let Some((score, member)) = walk.next(self)?
        {
            build.put(member, &score.to_le_bytes())?;
            rank += 1;
        }
        let mut walk = self.sorted(entry, ranks.end, false)?;
        while let Some((score, member)) = walk.next(self)? {
            build.put(member, &score.to_le_bytes())?;
        }
        self.put_build(place, build, Expire::Keep)
    }
}

impl ScoresPut {
    fn count(&mut self, old: Option<f64>) {
        match old {
            Some(_) => self.updated += 1,
            None => self.added += 1,
        }
    }
}

/// Returns the place of an element of the key at `of`, whose stripe is held.
fn element_place(of: &KeyPlace, key: &[u8]) -> KeyPlace {
    KeyPlace { db: of.db, space: ELEMENTS, key: TreeKey::from_bytes(key), stripe_lsn: of.stripe_lsn, long_name: None }
}
