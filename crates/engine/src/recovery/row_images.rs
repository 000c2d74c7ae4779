//! Before-images of the rows that an undecided transaction changed, close together in memory.
//!
//! ```text
//!   bytes     key image | key image | key | key image | ...      in WAL order
//!   images    map, prefix of the key, place and lengths          in WAL order until they are sorted
//! ```
//! Recovery sees an image for each change and forgets most of them at the next COMMIT. So an image takes no allocation of its own, and images are compared
//! only when they are written out or undone.

use crate::rows::run::StepRef;
use crate::rows::undo::writer_of;
use crate::store::trees::MapId;

struct RowImage {
    map: MapId,
    /// The first bytes of the key, which mostly decide a comparison.
    prefix: u64,
    /// Place of the key in `bytes`; the image is behind it.
    at: usize,
    key_bytes: u16,
    before_bytes: u16,
    has_before: bool,
}

#[derive(Default)]
pub(super) struct RowImages {
    bytes: Vec<u8>,
    images: Vec<RowImage>,
}

impl RowImages {
    /// Adds the image of a row before a change; `None` if the row was not there.
    pub fn push(&mut self, map: MapId, key: &[u8], before: Option<&[u8]>) {
        let bytes_of = |part: &[u8]| u16::try_from(part.len()).expect("keys and values are short");
        self.images.push(RowImage {
            map,
            prefix: prefix_of(key),
            at: self.bytes.len(),
            key_bytes: bytes_of(key),
            before_bytes: bytes_of(before.unwrap_or_default()),
            has_before: before.is_some(),
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(before.unwrap_or_default());
        if key.is_empty() && before.unwrap_or_default().is_empty() {
            // Of two images of a row, the place tells which is older.
            self.bytes.push(0);
        }
    }

    /// Sorts the images by row, and drops all of a row but the oldest.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |image: &RowImage| &bytes[image.at..][..usize::from(image.key_bytes)];
        self.images.sort_unstable_by(|one, other| {
            let by_prefix = (one.map, one.prefix).cmp(&(other.map, other.prefix));
            by_prefix.then_with(|| key(one).cmp(key(other))).then(one.at.cmp(&other.at))
        });
        self.images
            .dedup_by(|next, first| (next.map, next.prefix) == (first.map, first.prefix) && key(next) == key(first));
    }

    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Returns an image as the step of an undo run.
    pub fn step(&self, number: usize) -> StepRef<'_> {
        let image = &self.images[number];
        let (key, rest) = self.bytes[image.at..].split_at(usize::from(image.key_bytes));
        let before = image.has_before.then(|| &rest[..usize::from(image.before_bytes)]);
        let is_version = before.is_some_and(|before| writer_of(image.map, before).is_some());
        StepRef { map: image.map, key, before, is_version, deletes: false }
    }

    pub fn steps(&self) -> impl ExactSizeIterator<Item = StepRef<'_>> {
        (0..self.len()).map(|number| self.step(number))
    }

    /// Forgets the images but keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.images.clear();
    }
}

/// Returns a number that is ordered as the first bytes of keys are: if two of them differ, the keys are in the same order.
fn prefix_of(key: &[u8]) -> u64 {
    let mut prefix = [0; 8];
    let bytes = key.len().min(prefix.len());
    prefix[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(prefix)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use stdx::prng::Prng;

    use super::*;

    #[test]
    fn the_oldest_image_of_each_row_is_left_in_the_order_of_rows() {
        let mut random = Prng::new(7);
        let mut images = RowImages::default();
        for round in 0..40 {
            let mut expected: BTreeMap<(MapId, Vec<u8>), Option<Vec<u8>>> = BTreeMap::new();
            images.clear();
            for nth in 0..random.below(400) {
                // Keys of one length and of several, also such that differ behind the prefix, or in zeros at the end alone.
                let mut key = vec![0; random.below(if round % 2 == 0 { 4 } else { 14 }) as usize];
                key.iter_mut().rev().take(2).for_each(|byte| *byte = random.below(3) as u8);
                let before = (random.below(3) > 0).then(|| vec![nth as u8; random.below(5) as usize]);
                let map = 16 + random.below(2) as MapId;
                images.push(map, &key, before.as_deref());
                expected.entry((map, key)).or_insert(before);
            }
            images.sort();
            let found: Vec<_> =
                images.steps().map(|s| ((s.map, s.key.to_vec()), s.before.map(<[u8]>::to_vec))).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
