//! A listpack: strings and integers one behind the other, each followed by its own length.

use std::borrow::Cow;

use super::{Rule, little_endian, take};
use crate::source::decimal;

const HEAD_BYTES: usize = 6;
const END: u8 = 0xff;
/// The count of a listpack with more items than fit into two bytes.
const COUNT_UNKNOWN: u16 = u16::MAX;
/// The longest text of an integer of eight bytes.
const INTEGER_MAX: usize = 20;
/// The largest score that is written as an integer.
const SCORE_INTEGER_MAX: f64 = (1u64 << 62) as f64;
const RULE: Rule = "a listpack is damaged";

/// An item of a packed string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Item<'b> {
    Bytes(&'b [u8]),
    Integer(i64),
}

impl<'b> Item<'b> {
    /// Returns the bytes that a client sees.
    pub fn text(self) -> Cow<'b, [u8]> {
        match self {
            Item::Bytes(bytes) => Cow::Borrowed(bytes),
            Item::Integer(integer) => decimal(integer),
        }
    }

    pub fn integer(self) -> Option<i64> {
        match self {
            Item::Integer(integer) => Some(integer),
            Item::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        }
    }
}

/// Builds a listpack.
pub struct Listpack {
    bytes: Vec<u8>,
    count: usize,
}

impl Default for Listpack {
    fn default() -> Listpack {
        Listpack { bytes: vec![0; HEAD_BYTES], count: 0 }
    }
}

impl Listpack {
    /// Appends a string, as an integer if it is the canonical text of one.
    pub fn push(&mut self, bytes: &[u8]) {
        match canonical_integer(bytes) {
            Some(integer) => self.push_integer(integer),
            None => self.push_bytes(bytes),
        }
    }

    /// Appends a score: as an integer if it is one, otherwise as `text`, which is its "%.17g".
    pub fn push_score(&mut self, score: f64, text: &[u8]) {
        match score == score.trunc() && score.abs() <= SCORE_INTEGER_MAX {
            true => self.push_integer(score as i64),
            false => self.push(text),
        }
    }

    pub fn push_integer(&mut self, integer: i64) {
        let start = self.bytes.len();
        let le = integer.to_le_bytes();
        match integer {
            0..=127 => self.bytes.push(integer as u8),
            -4096..=4095 => self.bytes.extend([0xc0 | (integer >> 8 & 0x1f) as u8, integer as u8]),
            -32768..=32767 => self.wide(0xf1, &le[..2]),
            -8_388_608..=8_388_607 => self.wide(0xf2, &le[..3]),
            -2_147_483_648..=2_147_483_647 => self.wide(0xf3, &le[..4]),
            _ => self.wide(0xf4, &le),
        }
        self.end_item(start);
    }

    fn wide(&mut self, head: u8, bytes: &[u8]) {
        self.bytes.push(head);
        self.bytes.extend_from_slice(bytes);
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        let start = self.bytes.len();
        match bytes.len() {
            len @ 0..64 => self.bytes.push(0x80 | len as u8),
            len @ 64..4096 => self.bytes.extend([0xe0 | (len >> 8) as u8, len as u8]),
            len => {
                self.bytes.push(0xf0);
                self.bytes.extend((len as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(bytes);
        self.end_item(start);
    }

    /// Writes the length of the item that began at `start`, so that it can be read backwards.
    fn end_item(&mut self, start: usize) {
        let (back, count) = back_length(self.bytes.len() - start);
        self.bytes.extend(&back[..count]);
        self.count += 1;
    }

    /// Appends the items of another listpack.
    pub(crate) fn append(&mut self, other: &Listpack) {
        self.bytes.extend(&other.bytes[HEAD_BYTES..]);
        self.count += other.count;
    }

    /// Returns the length in bytes if it ended here.
    pub fn len(&self) -> usize {
        self.bytes.len() + 1
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the listpack's bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let total = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&total.to_le_bytes());
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        self.bytes[4..6].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

fn canonical_integer(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > INTEGER_MAX || !bytes.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-') {
        return None;
    }
    let integer: i64 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    (integer.to_string().as_bytes() == bytes).then_some(integer)
}

/// Returns the bytes that follow an item of `len` bytes, and how many they are: seven bits in each, the highest first.
fn back_length(len: usize) -> ([u8; 5], usize) {
    let count = match len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    let mut bytes = [0; 5];
    for (at, byte) in bytes[..count].iter_mut().enumerate() {
        *byte = (len >> (7 * (count - 1 - at)) & 0x7f) as u8 | if at > 0 { 0x80 } else { 0 };
    }
    (bytes, count)
}

/// Reads the items of a listpack.
pub(crate) struct ListpackItems<'b> {
    rest: &'b [u8],
    /// Items left by the head's count, if it says one.
    left: Option<u16>,
}

impl<'b> ListpackItems<'b> {
    pub fn new(bytes: &'b [u8]) -> Result<ListpackItems<'b>, Rule> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or(RULE)?;
        let total = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let count = u16::from_le_bytes([head[4], head[5]]);
        if total as usize != bytes.len() {
            return Err("a listpack has not the length it claims");
        }
        Ok(ListpackItems { rest, left: (count != COUNT_UNKNOWN).then_some(count) })
    }

    /// Returns the next item, or `None` behind the last one.
    pub fn next(&mut self) -> Result<Option<Item<'b>>, Rule> {
        if self.rest == [END] {
            return match self.left {
                None | Some(0) => Ok(None),
                Some(_) => Err("a listpack has not the items it claims"),
            };
        }
        let start = self.rest;
        let item = self.item().ok_or(RULE)?;
        let (back, count) = back_length(start.len() - self.rest.len());
        let (found, rest) = self.rest.split_at_checked(count).ok_or(RULE)?;
        if found != &back[..count] {
            return Err(RULE);
        }
        self.rest = rest;
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1).ok_or("a listpack has not the items it claims")?;
        }
        Ok(Some(item))
    }

    fn item(&mut self) -> Option<Item<'b>> {
        let [first] = take(&mut self.rest)?;
        let length = match first {
            0..=0x7f => return Some(Item::Integer(first.into())),
            0x80..=0xbf => usize::from(first & 0x3f),
            0xc0..=0xdf => {
                let [low] = take(&mut self.rest)?;
                let number = i64::from(first & 0x1f) << 8 | i64::from(low);
                return Some(Item::Integer(if number >= 1 << 12 { number - (1 << 13) } else { number }));
            }
            0xe0..=0xef => {
                let [low] = take(&mut self.rest)?;
                usize::from(first & 0x0f) << 8 | usize::from(low)
            }
            0xf0 => u32::from_le_bytes(take(&mut self.rest)?) as usize,
            0xf1 => return self.integer(2),
            0xf2 => return self.integer(3),
            0xf3 => return self.integer(4),
            0xf4 => return self.integer(8),
            _ => return None,
        };
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Item::Bytes(bytes))
    }

    fn integer(&mut self, width: usize) -> Option<Item<'b>> {
        let (bytes, rest) = self.rest.split_at_checked(width)?;
        self.rest = rest;
        Some(Item::Integer(little_endian(bytes)))
    }

    /// Reads the next item, which must be there.
    pub fn require(&mut self) -> Result<Item<'b>, Rule> {
        self.next()?.ok_or(RULE)
    }

    /// Reads the next item, which must be an integer.
    pub fn require_integer(&mut self) -> Result<i64, Rule> {
        self.require()?.integer().ok_or(RULE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Rule> {
        let mut items = ListpackItems::new(bytes)?;
        let mut found = Vec::new();
        while let Some(item) = items.next()? {
            found.push(item.text().into_owned());
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn items_are_read_as_written(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..5000), 0..6),
            numbers in proptest::collection::vec((any::<i64>(), 0u32..64), 0..40),
        ) {
            let mut items = texts;
            items.extend(numbers.iter().map(|(number, shift)| (number >> shift).to_string().into_bytes()));
            let mut pack = Listpack::default();
            items.iter().for_each(|item| pack.push(item));
            prop_assert_eq!(all(&pack.end()), Ok(items));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 6..64), count in 0u16..8) {
            let total = bytes.len() as u32;
            bytes[..4].copy_from_slice(&total.to_le_bytes());
            bytes[4..6].copy_from_slice(&count.to_le_bytes());
            *bytes.last_mut().expect("six bytes") = END;
            if let Ok(items) = all(&bytes) {
                prop_assert_eq!(items.len(), usize::from(count));
            }
        }
    }

    #[test]
    fn long_items_are_followed_by_their_length_in_more_bytes() {
        for len in [127, 16_382, 16_383, 2_097_150, 2_097_151] {
            let (bytes, count) = back_length(len);
            let read = bytes[..count].iter().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
            assert_eq!(read, len);
        }
    }
}
