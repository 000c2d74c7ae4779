//! The packed form: a small hash, set or sorted set in the payload of its one record.
//!
//! ```text
//!   flags u8 (0) | count varint | items: length varint, bytes     hash: field, value, in the order of insertion; set: member, in numeric order while all are integers;
//!                                                              sorted set: score f64 without a length, member, in ascending order
//! ```
//! A varint has seven bits per byte, the least significant ones first, and its last byte is below 128. A packed form, with the key if that is long, is at most
//! `INLINE_MAX` bytes. Searching it is linear.

use crate::error::{Error, Result};
use crate::keyspace::record::{Kind, RAW};
use crate::keyspace::score;

/// Bytes of a score, which is the value of a member of a sorted set.
pub(crate) const SCORE_BYTES: usize = 8;

/// When a collection's encoding changes for OBJECT ENCODING, as Redis' parameters say. The bytes are stored alike.
#[derive(Clone, Copy, Debug)]
pub struct PackLimits {
    /// Greatest number of fields or members of a listpack, or members of an intset.
    pub entries: u64,
    /// Longest field, value and member of a listpack.
    pub value: u64,
}

impl PackLimits {
    /// Changes no encoding.
    pub(crate) const KEEP: PackLimits = PackLimits { entries: u64::MAX, value: u64::MAX };

    /// Returns the form bits of a collection of `count` members, one of which is this new one.
    pub(crate) fn form(&self, kind: Kind, count: u64, member: &[u8], value: &[u8]) -> u8 {
        let is_plain = match kind {
            Kind::Set => integer(member).is_some(),
            Kind::ZSet => member.len() as u64 <= self.value,
            _ => member.len() as u64 <= self.value && value.len() as u64 <= self.value,
        };
        if is_plain && count <= self.entries { 0 } else { RAW }
    }
}

/// Returns the number that the bytes are the canonical decimal text of.
pub(crate) fn integer(bytes: &[u8]) -> Option<i64> {
    const TEXT_MAX: usize = 20;
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let is_canonical = bytes.len() <= TEXT_MAX
        && digits.iter().all(u8::is_ascii_digit)
        && (digits.first().is_some_and(|first| *first != b'0') || bytes == b"0");
    if is_canonical { std::str::from_utf8(bytes).ok()?.parse().ok() } else { None }
}

pub(crate) fn varint_len(mut value: usize) -> usize {
    let mut len = 1;
    while value >= 128 {
        value >>= 7;
        len += 1;
    }
    len
}

pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a varint of at most 64 bits from the front.
#[inline]
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    const BYTES_MAX: u32 = 10;
    // Most lengths are one byte.
    if let [byte @ ..=127, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*byte));
    }
    let mut value = 0;
    for at in 0..BYTES_MAX {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 127);
        value |= bits.checked_shl(7 * at).filter(|shifted| shifted >> (7 * at) == bits)?;
        if byte & 128 == 0 {
            return Some(value);
        }
    }
    None
}

#[inline]
pub(crate) fn take_item<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(bytes)?).ok()?;
    let (item, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(item)
}

/// Takes a member, and its value if the kind has values, from the front.
pub(crate) fn take<'a>(kind: Kind, bytes: &mut &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    let mut take = || match kind {
        Kind::Hash => Some((take_item(bytes)?, take_item(bytes)?)),
        Kind::ZSet => {
            let (score, rest) = bytes.split_at_checked(SCORE_BYTES)?;
            *bytes = rest;
            Some((take_item(bytes)?, score))
        }
        _ => Some((take_item(bytes)?, &[][..])),
    };
    take().ok_or_else(|| Error::corrupt("a packed collection has an item of unknown form"))
}

/// Splits the payload of a packed collection, without the key, into count and items.
pub(crate) fn split(payload: &[u8]) -> Result<(u64, &[u8])> {
    let split = || {
        let (0, mut rest) = payload.split_first().map(|(flags, rest)| (*flags, rest))? else { return None };
        let count = take_varint(&mut rest)?;
        Some((count, rest))
    };
    split().ok_or_else(|| Error::corrupt("a packed collection of unknown form"))
}

/// The items of a collection in packed form, to be changed.
pub(crate) struct PackedItems {
    kind: Kind,
    pub count: usize,
    bytes: Vec<u8>,
}

impl PackedItems {
    pub fn new(kind: Kind) -> PackedItems {
        PackedItems { kind, count: 0, bytes: Vec::new() }
    }

    pub fn parse(kind: Kind, payload: &[u8]) -> Result<PackedItems> {
        let (count, items) = split(payload)?;
        Ok(PackedItems { kind, count: count as usize, bytes: items.to_vec() })
    }

    /// Returns the length of the packed form.
    pub fn len(&self) -> usize {
        1 + varint_len(self.count) + self.bytes.len()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn item_len(&self, member: &[u8], value_len: usize) -> usize {
        let value = match self.kind {
            Kind::Hash => varint_len(value_len) + value_len,
            Kind::ZSet => SCORE_BYTES,
            _ => 0,
        };
        varint_len(member.len()) + member.len() + value
    }

    /// Returns the most bytes that the packed form can have after `put`.
    pub fn len_with(&self, member: &[u8], value_len: usize) -> usize {
        self.len().saturating_add(1 + self.item_len(member, value_len))
    }

    /// Returns where the member's item is.
    fn find(&self, member: &[u8]) -> Result<Option<std::ops::Range<usize>>> {
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let start = self.bytes.len() - rest.len();
            if take(self.kind, &mut rest)?.0 == member {
                return Ok(Some(start..self.bytes.len() - rest.len()));
            }
        }
        Ok(None)
    }

    /// Adds a member, or replaces its value in place. Returns true if it is new.
    pub fn put(&mut self, member: &[u8], value: &[u8]) -> Result<bool> {
        let mut item = Vec::with_capacity(self.item_len(member, value.len()));
        if self.kind == Kind::ZSet {
            item.extend_from_slice(value);
        }
        push_varint(&mut item, member.len() as u64);
        item.extend_from_slice(member);
        if self.kind == Kind::Hash {
            push_varint(&mut item, value.len() as u64);
            item.extend_from_slice(value);
        }
        let found = self.find(member)?;
        match &found {
            Some(place) => drop(self.bytes.splice(place.clone(), item)),
            None => {
                self.bytes.extend_from_slice(&item);
                self.count += 1;
            }
        }
        Ok(found.is_none())
    }

    /// Removes a member. Returns true if it was there.
    pub fn remove(&mut self, member: &[u8]) -> Result<bool> {
        let found = self.find(member)?;
        if let Some(place) = &found {
            drop(self.bytes.drain(place.clone()));
            self.count -= 1;
        }
        Ok(found.is_some())
    }

    /// Returns the value of a member.
    pub fn value(&self, member: &[u8]) -> Result<Option<&[u8]>> {
        let found = self.find(member)?;
        found.map(|place| Ok(take(self.kind, &mut &self.bytes[place])?.1)).transpose()
    }

    /// Appends the packed form. Members of a set that are all integers are sorted, and those of a sorted set always.
    pub fn encode(&self, form: u8, out: &mut Vec<u8>) -> Result<()> {
        out.push(0);
        push_varint(out, self.count as u64);
        if self.kind == Kind::ZSet {
            return self.encode_by_score(form, out);
        }
        if self.kind != Kind::Set || form & RAW != 0 {
            out.extend_from_slice(&self.bytes);
            return Ok(());
        }
        let (mut rest, mut members) = (self.bytes.as_slice(), Vec::with_capacity(self.count));
        while !rest.is_empty() {
            let member = take(self.kind, &mut rest)?.0;
            members.push((integer(member), member));
        }
        members.sort_unstable();
        for (_, member) in members {
            push_varint(out, member.len() as u64);
            out.extend_from_slice(member);
        }
        Ok(())
    }

    fn encode_by_score(&self, form: u8, out: &mut Vec<u8>) -> Result<()> {
        let (mut rest, mut members) = (self.bytes.as_slice(), Vec::with_capacity(self.count));
        while !rest.is_empty() {
            let (member, score) = take(self.kind, &mut rest)?;
            let score = score::stored(score::of_value(score)?, form);
            members.push((score::sortable(score), member, score.to_le_bytes()));
        }
        members.sort_unstable();
        for (_, member, score) in members {
            out.extend_from_slice(&score);
            push_varint(out, member.len() as u64);
            out.extend_from_slice(member);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(kind: Kind, payload: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (_, mut rest) = split(payload).unwrap();
        let mut found = Vec::new();
        while !rest.is_empty() {
            let (member, value) = take(kind, &mut rest).unwrap();
            found.push((member.to_vec(), value.to_vec()));
        }
        found
    }

    #[test]
    fn fields_keep_their_order_and_change_in_place() {
        let mut items = PackedItems::new(Kind::Hash);
        assert!(items.put(b"b", b"1").unwrap() && items.put(b"a", &[7; 200]).unwrap() && items.put(b"", b"").unwrap());
        assert!(!items.put(b"b", b"longer").unwrap());
        let mut payload = Vec::new();
        items.encode(0, &mut payload).unwrap();
        assert_eq!(payload.len(), items.len());
        let expected = [(b"b".to_vec(), b"longer".to_vec()), (b"a".to_vec(), vec![7; 200]), (vec![], vec![])];
        assert_eq!(list(Kind::Hash, &payload), expected);
        let mut again = PackedItems::parse(Kind::Hash, &payload).unwrap();
        assert!(again.remove(b"a").unwrap() && !again.remove(b"a").unwrap());
        assert_eq!(again.count, 2);
    }

    #[test]
    fn members_that_are_all_integers_are_sorted_as_numbers() {
        let mut items = PackedItems::new(Kind::Set);
        for member in [&b"10"[..], b"9", b"-3", b"9"] {
            items.put(member, &[]).unwrap();
        }
        let mut payload = Vec::new();
        items.encode(0, &mut payload).unwrap();
        let members: Vec<Vec<u8>> = list(Kind::Set, &payload).into_iter().map(|(member, _)| member).collect();
        assert_eq!(members, [&b"-3"[..], b"9", b"10"]);
    }

    #[test]
    fn members_of_a_sorted_set_are_sorted_by_score_and_then_by_bytes() {
        let mut items = PackedItems::new(Kind::ZSet);
        for (member, score) in [(&b"b"[..], 1.0f64), (b"z", -2.5), (b"a", 1.0), (b"m", f64::INFINITY), (b"b", 1.0)] {
            items.put(member, &score.to_le_bytes()).unwrap();
        }
        assert!(items.put(b"n", &0f64.to_le_bytes()).unwrap() && !items.put(b"n", &(-0f64).to_le_bytes()).unwrap());
        assert_eq!(items.value(b"n").unwrap(), Some(&(-0f64).to_le_bytes()[..]));
        let mut payload = Vec::new();
        items.encode(0, &mut payload).unwrap();
        assert_eq!(payload.len(), items.len());
        let members: Vec<Vec<u8>> = list(Kind::ZSet, &payload).into_iter().map(|(member, _)| member).collect();
        assert_eq!(members, [&b"z"[..], b"n", b"a", b"b", b"m"]);
    }

    #[test]
    fn cut_payloads_are_refused() {
        assert!(split(&[]).is_err() && split(&[1, 0]).is_err() && split(&[0, 0x80]).is_err());
        assert!(take(Kind::Hash, &mut &[1, b'a'][..]).is_err() && take(Kind::Set, &mut &[2, b'a'][..]).is_err());
    }

    #[test]
    fn only_canonical_numbers_are_integers() {
        let texts = [&b"0"[..], b"-1", b"9223372036854775807", b"", b"-", b"-0", b"01", b"+1", b"9223372036854775808"];
        let found: Vec<bool> = texts.iter().map(|text| integer(text).is_some()).collect();
        assert_eq!(found, [true, true, true, false, false, false, false, false, false]);
    }
}
