//! The read set of a transaction: the ranges of keys that it has read, which its commit validates (`validation`).
//!
//! A key that was looked up is the range that holds it alone, so reads that found nothing count as well. Ranges that overlap or touch become one. A set that takes
//! too much memory is coarsened: neighbouring ranges are joined with the gap between them, in the end to the whole map. So a set may come to cover more than was
//! read, never less (EN-68).

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::store::trees::{FIRST_MAP, MapId};

/// The memory of a read set that is never coarsened.
const BYTES_MIN: usize = 4 << 10;
/// The memory of a read set, while all sets together have less than their limit.
const BYTES_MAX: usize = 256 << 10;
/// Approximate memory of a range beside its keys.
const RANGE_BYTES: usize = 96;

/// The disjoint ranges `from <= key < to` of a map, by `from`.
#[derive(Debug, Default)]
struct MapReads {
    ranges: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

fn range_bytes(from: &[u8], to: Option<&[u8]>) -> usize {
    RANGE_BYTES + from.len() + to.map_or(0, <[u8]>::len)
}

impl MapReads {
    fn covers(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let before = self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(from))).next_back();
        before.is_some_and(|(_, end)| match (end, to) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(end), Some(to)) => *to <= **end,
        })
    }

    fn add(&mut self, from: &[u8], to: Option<&[u8]>) {
        if self.covers(from, to) {
            return;
        }
        let (mut from, mut to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        // The range before it that overlaps or touches it, and all that begin within it.
        let before = self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(&*from))).next_back();
        if let Some((start, end)) = before
            && end.as_ref().is_none_or(|end| *end >= from)
        {
            from = start.clone();
        }
        loop {
            let next = self.ranges.range::<[u8], _>((Bound::Included(&*from), Bound::Unbounded)).next();
            let Some((start, end)) = next.filter(|(start, _)| to.as_ref().is_none_or(|to| *start <= to)) else { break };
            let (start, end) = (start.clone(), end.clone());
            self.ranges.remove(&start);
            self.bytes -= range_bytes(&start, end.as_deref());
            to = to.zip(end).map(|(to, end)| to.max(end));
        }
        self.bytes += range_bytes(&from, to.as_deref());
        self.ranges.insert(from, to);
    }

    /// Joins every second range with the one behind it, gap included. A single range becomes the whole map.
    fn coarsen(&mut self) {
        let ranges = std::mem::take(&mut self.ranges);
        self.bytes = 0;
        if ranges.len() <= 1 {
            return self.add(&[], None);
        }
        let mut ranges = ranges.into_iter();
        while let Some((from, to)) = ranges.next() {
            let to = ranges.next().map_or(to, |(_, to)| to);
            self.bytes += range_bytes(&from, to.as_deref());
            self.ranges.insert(from, to);
        }
    }

    fn is_whole(&self) -> bool {
        self.ranges.get(&[][..]).is_some_and(Option::is_none)
    }
}

#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    maps: HashMap<MapId, MapReads>,
    bytes: usize,
}

impl ReadSet {
    /// Adds the range `from <= key < to`. `is_short`: all sets together have reached their limit. Returns the memory of the set before and after.
    pub fn add(&mut self, map: MapId, from: &[u8], to: Option<&[u8]>, is_short: bool) -> (usize, usize) {
        // The shared trees have no snapshot: definitions are read as they are.
        if map < FIRST_MAP {
            return (self.bytes, self.bytes);
        }
        let before = self.bytes;
        let reads = self.maps.entry(map).or_default();
        let of_map = reads.bytes;
        reads.add(from, to);
        self.bytes = self.bytes - of_map + reads.bytes;
        if self.bytes > if is_short { BYTES_MIN } else { BYTES_MAX } {
            self.coarsen(if is_short { BYTES_MIN } else { BYTES_MAX } / 2);
        }
        (before, self.bytes)
    }

    /// Coarsens the map with the most memory until the set has no more than `most` bytes, or covers whole maps only.
    fn coarsen(&mut self, most: usize) {
        while self.bytes > most {
            let largest = self.maps.values_mut().filter(|reads| !reads.is_whole()).max_by_key(|reads| reads.bytes);
            let Some(reads) = largest else { return };
            let of_map = reads.bytes;
            reads.coarsen();
            self.bytes = self.bytes - of_map + reads.bytes;
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn maps(&self) -> impl Iterator<Item = MapId> {
        self.maps.keys().copied()
    }

    /// Returns the ranges of a map.
    pub fn ranges(&self, map: MapId) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let of_map = self.maps.get(&map).into_iter().flat_map(|reads| &reads.ranges);
        of_map.map(|(from, to)| (&from[..], to.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use stdx::prng::Prng;

    use super::*;

    const MAP: MapId = FIRST_MAP + 3;

    fn covers(set: &ReadSet, map: MapId, key: &[u8]) -> bool {
        set.ranges(map).any(|(from, to)| *from <= *key && to.is_none_or(|to| *key < *to))
    }

    #[test]
    fn ranges_that_touch_become_one_and_others_stay_apart() {
        let mut set = ReadSet::default();
        for (from, to) in [("d", "e"), ("a", "b"), ("b", "c"), ("x", "y"), ("d", "e")] {
            set.add(MAP, from.as_bytes(), Some(to.as_bytes()), false);
        }
        let known: Vec<_> = set.ranges(MAP).collect();
        assert_eq!(known, [(&b"a"[..], Some(&b"c"[..])), (b"d", Some(b"e")), (b"x", Some(b"y"))]);
        set.add(MAP, b"b", Some(b"f"), false);
        set.add(MAP, b"g", None, false);
        assert_eq!(set.ranges(MAP).collect::<Vec<_>>(), [(&b"a"[..], Some(&b"f"[..])), (b"g", None)]);
        set.add(FIRST_MAP - 1, b"a", None, false);
        assert_eq!(set.maps().collect::<Vec<_>>(), [MAP], "definitions are not part of it");
    }

    #[test]
    fn a_set_covers_all_that_was_read_within_its_bound() {
        for seed in 0..40 {
            let mut prng = Prng::new(seed);
            let (mut set, mut read) = (ReadSet::default(), Vec::new());
            let is_short = seed % 2 == 0;
            for _ in 0..4000 {
                let map = MAP + prng.below(3) as MapId;
                let key = vec![prng.below(256) as u8; 1 + prng.below(200) as usize];
                let end = [&key[..], &[0]].concat();
                let (before, after) = set.add(map, &key, Some(&end), is_short);
                assert_eq!(after, set.bytes(), "seed {seed}");
                assert!(after <= BYTES_MAX && (before <= BYTES_MIN || !is_short), "seed {seed}: {before} {after}");
                read.push((map, key));
            }
            let lost = read.iter().filter(|(map, key)| !covers(&set, *map, key)).count();
            assert_eq!(lost, 0, "seed {seed}: EN-68");
            let bytes: usize = set.maps().flat_map(|map| set.ranges(map)).map(|(from, to)| range_bytes(from, to)).sum();
            assert_eq!(bytes, set.bytes(), "seed {seed}");
        }
    }
}
