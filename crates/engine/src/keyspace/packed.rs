//! The packed form: a small hash, set or sorted set in the payload of its one record.
//!
//! ```text
//!   flags u8 | count varint | items: length varint, bytes     hash: field, value, in the order of insertion; set: member, in numeric order while all are integers;
//!                                                          sorted set: score f64 without a length, member, in ascending order
//!   flag 1: a hash of which some field expires; behind each value is the field's expiry time, varint, or 0
//! ```
//! A varint has seven bits per byte, the least significant ones first, and its last byte is below 128. A packed form, with the key if that is long, is at most
//! `INLINE_MAX` bytes. Searching it is linear.

use crate::error::{Error, Result};
use crate::keyspace::record::{Kind, Meta, RAW};
use crate::keyspace::score;

/// Bytes of a score, which is the value of a member of a sorted set.
pub(crate) const SCORE_BYTES: usize = 8;

/// Flag of a packed hash: each item ends with its field's expiry time.
const TIMED: u8 = 1;

/// Most bytes of an expiry time, which is less than 2^49.
const TIME_BYTES_MAX: usize = 7;

/// Returns the part of a packed collection's payload behind the key.
pub(crate) fn packed_part<'a>(meta: &Meta<'_>, payload: &'a [u8]) -> &'a [u8] {
    &payload[meta.head.key_len as usize..]
}

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

/// Takes a member, and its value if the kind has values, from the front of items without expiry times.
pub(crate) fn take<'a>(kind: Kind, bytes: &mut &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    let item = Layout { kind, is_timed: false }.take(bytes)?;
    Ok((item.member, item.value))
}

/// How the items of a packed collection are written.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub kind: Kind,
    /// Items end with an expiry time.
    pub is_timed: bool,
}

/// An item of a packed collection.
pub(crate) struct PackedItem<'a> {
    pub member: &'a [u8],
    pub value: &'a [u8],
    /// The expiry time of a field, in milliseconds since 1970.
    pub time: Option<u64>,
}

impl Layout {
    /// Takes an item from the front.
    pub fn take<'a>(self, bytes: &mut &'a [u8]) -> Result<PackedItem<'a>> {
        let mut take = || {
            let (member, value) = match self.kind {
                Kind::Hash => (take_item(bytes)?, take_item(bytes)?),
                Kind::ZSet => {
                    let (score, rest) = bytes.split_at_checked(SCORE_BYTES)?;
                    *bytes = rest;
                    (take_item(bytes)?, score)
                }
                _ => (take_item(bytes)?, &[][..]),
            };
            let time = if self.is_timed { take_varint(bytes)? } else { 0 };
            Some(PackedItem { member, value, time: (time > 0).then_some(time) })
        };
        take().ok_or_else(|| Error::corrupt("a packed collection has an item of unknown form"))
    }

    fn push(self, out: &mut Vec<u8>, item: &PackedItem<'_>) {
        if self.kind == Kind::ZSet {
            out.extend_from_slice(item.value);
        }
        push_varint(out, item.member.len() as u64);
        out.extend_from_slice(item.member);
        if self.kind == Kind::Hash {
            push_varint(out, item.value.len() as u64);
            out.extend_from_slice(item.value);
        }
        if self.is_timed {
            push_varint(out, item.time.unwrap_or(0));
        }
    }
}

/// A packed collection, without the key.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    pub count: u64,
    pub is_timed: bool,
    pub items: &'a [u8],
}

/// Splits the payload of a packed collection, without the key.
pub(crate) fn split(payload: &[u8]) -> Result<Packed<'_>> {
    let split = || {
        let (flags @ (0 | TIMED), mut items) = payload.split_first().map(|(flags, rest)| (*flags, rest))? else {
            return None;
        };
        let count = take_varint(&mut items)?;
        Some(Packed { count, is_timed: flags == TIMED, items })
    };
    split().ok_or_else(|| Error::corrupt("a packed collection of unknown form"))
}

/// Splits the payload of a packed collection whose items have no expiry times into count and items.
pub(crate) fn split_plain(payload: &[u8]) -> Result<(u64, &[u8])> {
    match split(payload)? {
        Packed { is_timed: false, count, items } => Ok((count, items)),
        _ => Err(Error::corrupt("a packed collection with expiry times that is no hash")),
    }
}

/// Returns the least expiry time of a packed hash's fields, if any has one.
pub(crate) fn least_time(payload: &[u8]) -> Result<Option<u64>> {
    if payload.first() != Some(&TIMED) {
        return Ok(None);
    }
    let mut least = None;
    each_time(payload, |time| least = [least, time].into_iter().flatten().min())?;
    Ok(least)
}

/// Returns the number of fields of a packed hash that are due: whose expiry time is before now.
pub(crate) fn due_count(payload: &[u8], now: u64) -> Result<u64> {
    let mut due = 0;
    if payload.first() == Some(&TIMED) {
        each_time(payload, |time| due += u64::from(time.is_some_and(|time| now > time)))?;
    }
    Ok(due)
}

fn each_time(payload: &[u8], mut f: impl FnMut(Option<u64>)) -> Result<()> {
    let Packed { is_timed, items: mut rest, .. } = split(payload)?;
    while !rest.is_empty() {
        f(Layout { kind: Kind::Hash, is_timed }.take(&mut rest)?.time);
    }
    Ok(())
}

/// The items of a collection in packed form, to be changed.
pub(crate) struct PackedItems {
    layout: Layout,
    pub count: usize,
    bytes: Vec<u8>,
}

impl PackedItems {
    pub fn new(kind: Kind) -> PackedItems {
        PackedItems { layout: Layout { kind, is_timed: false }, count: 0, bytes: Vec::new() }
    }

    pub fn parse(kind: Kind, payload: &[u8]) -> Result<PackedItems> {
        let Packed { count, is_timed, items } = split(payload)?;
        if is_timed && kind != Kind::Hash {
            return Err(Error::corrupt("a packed collection with expiry times that is no hash"));
        }
        Ok(PackedItems { layout: Layout { kind, is_timed }, count: count as usize, bytes: items.to_vec() })
    }

    /// Returns the length of the packed form, or more if no field expires any more.
    pub fn len(&self) -> usize {
        1 + varint_len(self.count) + self.bytes.len()
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn item_len(&self, member: &[u8], value_len: usize) -> usize {
        let value = match self.layout.kind {
            Kind::Hash => varint_len(value_len) + value_len,
            Kind::ZSet => SCORE_BYTES,
            _ => 0,
        };
        varint_len(member.len()) + member.len() + value + if self.layout.is_timed { TIME_BYTES_MAX } else { 0 }
    }

    /// Returns the most bytes that the packed form can have after `put`.
    pub fn len_with(&self, member: &[u8], value_len: usize) -> usize {
        self.len().saturating_add(1 + self.item_len(member, value_len))
    }

    /// Returns the most bytes that the packed form can have after `put_until`.
    pub fn len_with_time(&self, member: &[u8], value_len: usize) -> usize {
        let times = if self.layout.is_timed { 0 } else { self.count + TIME_BYTES_MAX };
        self.len_with(member, value_len).saturating_add(times)
    }

    /// Returns where the member's item is, and the item.
    fn find(&self, member: &[u8]) -> Result<Option<(std::ops::Range<usize>, PackedItem<'_>)>> {
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let start = self.bytes.len() - rest.len();
            let item = self.layout.take(&mut rest)?;
            if item.member == member {
                return Ok(Some((start..self.bytes.len() - rest.len(), item)));
            }
        }
        Ok(None)
    }

    #[cfg(test)]
    fn put(&mut self, member: &[u8], value: &[u8]) -> Result<bool> {
        self.put_until(member, value, None)
    }

    /// Adds a member, or replaces its value in place, and with it a field's expiry time. Returns true if it is new.
    pub fn put_until(&mut self, member: &[u8], value: &[u8], time: Option<u64>) -> Result<bool> {
        if time.is_some() {
            self.set_layout(true)?;
        }
        let mut item = Vec::with_capacity(self.item_len(member, value.len()));
        self.layout.push(&mut item, &PackedItem { member, value, time });
        let found = self.find(member)?.map(|(place, _)| place);
        match &found {
            Some(place) => drop(self.bytes.splice(place.clone(), item)),
            None => {
                self.bytes.extend_from_slice(&item);
                self.count += 1;
            }
        }
        Ok(found.is_none())
    }

    /// Writes all items again, with or without expiry times.
    fn set_layout(&mut self, is_timed: bool) -> Result<()> {
        if self.layout.is_timed == is_timed {
            return Ok(());
        }
        let layout = Layout { is_timed, ..self.layout };
        let (mut rest, mut bytes) = (self.bytes.as_slice(), Vec::with_capacity(self.bytes.len() + self.count));
        while !rest.is_empty() {
            layout.push(&mut bytes, &self.layout.take(&mut rest)?);
        }
        (self.layout, self.bytes) = (layout, bytes);
        Ok(())
    }

    /// Returns the expiry time of a field, if it has one; the outer `None`: there is no such field.
    pub fn time(&self, field: &[u8]) -> Result<Option<Option<u64>>> {
        Ok(self.find(field)?.map(|(_, item)| item.time))
    }

    /// Changes the expiry time of a field.
    pub fn set_time(&mut self, field: &[u8], time: Option<u64>) -> Result<()> {
        let Some((_, item)) = self.find(field)? else { return Ok(()) };
        let value = item.value.to_vec();
        self.put_until(field, &value, time).map(drop)
    }

    /// Returns the names of the fields whose expiry time is before now.
    pub fn due(&self, now: u64) -> Result<Vec<Vec<u8>>> {
        let (mut rest, mut due) = (if self.layout.is_timed { self.bytes.as_slice() } else { &[] }, Vec::new());
        while !rest.is_empty() {
            let item = self.layout.take(&mut rest)?;
            if item.time.is_some_and(|time| now > time) {
                due.push(item.member.to_vec());
            }
        }
        Ok(due)
    }

    /// Removes the fields whose expiry time is before now. Returns how many there were.
    pub fn remove_due(&mut self, now: u64) -> Result<usize> {
        if !self.layout.is_timed {
            return Ok(0);
        }
        let (mut rest, mut kept, mut removed) = (self.bytes.as_slice(), Vec::with_capacity(self.bytes.len()), 0);
        while !rest.is_empty() {
            let item = self.layout.take(&mut rest)?;
            if item.time.is_some_and(|time| now > time) {
                removed += 1;
            } else {
                self.layout.push(&mut kept, &item);
            }
        }
        self.count -= removed;
        self.bytes = kept;
        Ok(removed)
    }

    /// Returns the items without expiry times if they have room for such, but no field expires any more.
    fn trimmed(&self) -> Result<Option<PackedItems>> {
        let (mut rest, mut has_time) = (self.bytes.as_slice(), !self.layout.is_timed);
        while !has_time && !rest.is_empty() {
            has_time = self.layout.take(&mut rest)?.time.is_some();
        }
        if has_time {
            return Ok(None);
        }
        let mut trimmed = PackedItems { layout: self.layout, count: self.count, bytes: self.bytes.clone() };
        trimmed.set_layout(false)?;
        Ok(Some(trimmed))
    }

    /// Removes a member. Returns true if it was there.
    pub fn remove(&mut self, member: &[u8]) -> Result<bool> {
        let found = self.find(member)?.map(|(place, _)| place);
        if let Some(place) = &found {
            drop(self.bytes.drain(place.clone()));
            self.count -= 1;
        }
        Ok(found.is_some())
    }

    /// Returns the value of a member.
    pub fn value(&self, member: &[u8]) -> Result<Option<&[u8]>> {
        Ok(self.find(member)?.map(|(_, item)| item.value))
    }

    /// Appends the packed form. Members of a set that are all integers are sorted, and those of a sorted set always.
    pub fn encode(&self, form: u8, out: &mut Vec<u8>) -> Result<()> {
        if let Some(trimmed) = self.trimmed()? {
            return trimmed.encode(form, out);
        }
        out.push(if self.layout.is_timed { TIMED } else { 0 });
        push_varint(out, self.count as u64);
        if self.layout.kind == Kind::ZSet {
            return self.encode_by_score(form, out);
        }
        if self.layout.kind != Kind::Set || form & RAW != 0 {
            out.extend_from_slice(&self.bytes);
            return Ok(());
        }
        let (mut rest, mut members) = (self.bytes.as_slice(), Vec::with_capacity(self.count));
        while !rest.is_empty() {
            let member = take(self.layout.kind, &mut rest)?.0;
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
            let (member, score) = take(self.layout.kind, &mut rest)?;
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
        let mut rest = split(payload).unwrap().items;
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
    fn expiry_times_take_bytes_while_a_field_has_one() {
        let (mut items, mut plain, mut payload) = (PackedItems::new(Kind::Hash), Vec::new(), Vec::new());
        for name in [&b"a"[..], b"b", b"c"] {
            items.put(name, b"1").unwrap();
        }
        items.encode(0, &mut plain).unwrap();
        let bound = items.len_with_time(b"b", 1);
        items.set_time(b"b", Some(1 << 48)).unwrap();
        items.set_time(b"c", Some(70)).unwrap();
        items.encode(0, &mut payload).unwrap();
        assert!(payload.len() == items.len() && payload.len() <= bound, "{} of {bound}", payload.len());
        assert_eq!((least_time(&payload).unwrap(), due_count(&payload, 70).unwrap()), (Some(70), 0));
        assert_eq!((least_time(&plain).unwrap(), due_count(&payload, 71).unwrap()), (None, 1));
        let mut again = PackedItems::parse(Kind::Hash, &payload).unwrap();
        assert_eq!((again.time(b"a").unwrap(), again.time(b"b").unwrap()), (Some(None), Some(Some(1 << 48))));
        assert_eq!((again.remove_due(71).unwrap(), again.count, again.time(b"c").unwrap()), (1, 2, None));
        // A value that is replaced does not expire any more.
        assert!(!again.put(b"b", b"2").unwrap() && again.put(b"c", b"1").unwrap());
        again.put(b"b", b"1").unwrap();
        payload.clear();
        again.encode(0, &mut payload).unwrap();
        assert_eq!(payload, plain);
        assert!(PackedItems::parse(Kind::Set, &[TIMED, 0]).is_err() && split(&[2, 0]).is_err());
    }

    #[test]
    fn cut_payloads_are_refused() {
        assert!(split(&[]).is_err() && split(&[4, 0]).is_err() && split(&[0, 0x80]).is_err());
        assert!(take(Kind::Hash, &mut &[1, b'a'][..]).is_err() && take(Kind::Set, &mut &[2, b'a'][..]).is_err());
    }

    #[test]
    fn only_canonical_numbers_are_integers() {
        let texts = [&b"0"[..], b"-1", b"9223372036854775807", b"", b"-", b"-0", b"01", b"+1", b"9223372036854775808"];
        let found: Vec<bool> = texts.iter().map(|text| integer(text).is_some()).collect();
        assert_eq!(found, [true, true, true, false, false, false, false, false, false]);
    }
}
