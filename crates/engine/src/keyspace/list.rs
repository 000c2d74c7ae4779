//! Bytes of a list: its record, which holds both ends, and the chunks between them.
//!
//! ```text
//!   packed    flags u8 (0) | count varint | items                                      a list of one record: all items are its head
//!   fields    levels u8 | head count u16 | head bytes u16 | tail count u16 | head | tail        behind count and version id of a record in format 3
//!   chunk     count u16 | items: length varint, bytes                                  at most `CHUNK_MAX` bytes, or one item
//!             item                                                                     with flag RAW: one item of more than `ENDS_MAX` bytes, of any size
//! ```
//! Chunks are elements in the order of their positions. A list without chunks is packed, unless its key leaves no room. A push or a pop changes the record alone
//! as long as the ends take it: together they have at most `ENDS_MAX` bytes.

use crate::error::{Error, Result};
use crate::keyspace::packed::{push_varint, split_plain, take_item, varint_len};
use crate::keyspace::record::{Body, INLINE_MAX, Kind, Meta, RAW};

/// Most bytes of both ends together, and of an item in a chunk with others.
pub(crate) const ENDS_MAX: usize = 1100;
/// An end that has grown too long keeps about so many bytes when the rest becomes a chunk.
pub(crate) const END_KEPT: usize = 200;
/// Most bytes of a chunk of several items.
pub(crate) const CHUNK_MAX: usize = 1000;
const FIELDS: usize = 7;
const _: () = assert!(FIELDS + ENDS_MAX <= INLINE_MAX && 2 + ENDS_MAX <= INLINE_MAX && 4 + ENDS_MAX <= INLINE_MAX);

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Head,
    Tail,
}

impl End {
    pub fn other(self) -> End {
        if self == End::Head { End::Tail } else { End::Head }
    }
}

/// Returns the bytes of an item of this length.
pub(crate) fn item_len(len: usize) -> usize {
    varint_len(len).saturating_add(len)
}

/// Returns whether an item becomes a chunk of its own.
pub(crate) fn is_large(len: usize) -> bool {
    item_len(len) > ENDS_MAX
}

/// Items one behind the other.
#[derive(Clone, Default, Debug)]
pub(crate) struct Items {
    pub count: usize,
    pub bytes: Vec<u8>,
}

fn broken() -> Error {
    Error::corrupt("a list has an item of unknown form")
}

impl Items {
    pub fn new(count: usize, bytes: &[u8]) -> Items {
        Items { count, bytes: bytes.to_vec() }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns where each item's bytes are.
    pub fn spans(&self, spans: &mut Vec<(u32, u32)>) -> Result<()> {
        spans.clear();
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let item = take_item(&mut rest).ok_or_else(broken)?;
            let end = self.bytes.len() - rest.len();
            spans.push(((end - item.len()) as u32, end as u32));
        }
        if spans.len() == self.count { Ok(()) } else { Err(broken()) }
    }

    /// Adds an item as the first or the last one.
    pub fn push(&mut self, end: End, item: &[u8]) {
        self.count += 1;
        if end == End::Tail {
            push_varint(&mut self.bytes, item.len() as u64);
            self.bytes.extend_from_slice(item);
            return;
        }
        let mut head = Vec::with_capacity(item_len(item.len()));
        push_varint(&mut head, item.len() as u64);
        head.extend_from_slice(item);
        self.bytes.splice(0..0, head);
    }

    /// Returns the offset at which the item of this index begins.
    fn offset(&self, index: usize) -> Result<usize> {
        let mut rest = self.bytes.as_slice();
        for _ in 0..index {
            take_item(&mut rest).ok_or_else(broken)?;
        }
        Ok(self.bytes.len() - rest.len())
    }

    /// Takes the first or the last `count` items.
    pub fn take(&mut self, end: End, count: usize) -> Result<Items> {
        let count = count.min(self.count);
        let at = self.offset(if end == End::Head { count } else { self.count - count })?;
        let behind = self.bytes.split_off(at);
        let (taken, kept) = if end == End::Head {
            (std::mem::take(&mut self.bytes), behind)
        } else {
            (behind, std::mem::take(&mut self.bytes))
        };
        self.bytes = kept;
        self.count -= count;
        Ok(Items { count, bytes: taken })
    }

    /// Returns how many items at this end have at most `most` bytes together.
    pub fn fitting(&self, end: End, most: usize) -> Result<usize> {
        let (mut rest, mut count) = (self.bytes.as_slice(), 0);
        let spare = self.bytes.len().saturating_sub(most);
        while !rest.is_empty() {
            let at = self.bytes.len() - rest.len();
            if end == End::Tail && at >= spare {
                return Ok(self.count - count);
            }
            take_item(&mut rest).ok_or_else(broken)?;
            if end == End::Head && self.bytes.len() - rest.len() > most {
                return Ok(count);
            }
            count += 1;
        }
        Ok(if end == End::Head { count } else { 0 })
    }

    /// Joins other items to this end.
    pub fn join(&mut self, end: End, other: Items) {
        self.count += other.count;
        if end == End::Tail {
            self.bytes.extend_from_slice(&other.bytes);
        } else {
            let behind = std::mem::replace(&mut self.bytes, other.bytes);
            self.bytes.extend_from_slice(&behind);
        }
    }
}

/// The contents of a chunk.
#[derive(Clone, Debug)]
pub(crate) enum ListChunk<'a> {
    Items(Items),
    /// One item, in its record.
    Large(Meta<'a>),
}

impl<'a> ListChunk<'a> {
    pub fn parse(record: &'a [u8]) -> Result<ListChunk<'a>> {
        let meta = Meta::parse(record)?;
        if meta.head.form & RAW != 0 {
            return Ok(ListChunk::Large(meta));
        }
        let parse = || {
            let Body::Inline(payload) = meta.body else { return None };
            let (count, items) = payload.split_first_chunk::<2>()?;
            Some(ListChunk::Items(Items::new(usize::from(u16::from_le_bytes(*count)), items)))
        };
        parse().filter(|_| meta.head.kind == Kind::String).ok_or_else(|| Error::corrupt("a chunk of unknown form"))
    }

    /// Returns the number of items of a chunk.
    pub fn count_of(record: &[u8]) -> Result<u64> {
        Ok(match ListChunk::parse(record)? {
            ListChunk::Items(items) => items.count as u64,
            ListChunk::Large(_) => 1,
        })
    }
}

/// Returns the payload of a chunk of items.
pub(crate) fn chunk_payload(items: &Items) -> Vec<u8> {
    [&(items.count as u16).to_le_bytes()[..], &items.bytes].concat()
}

/// A list's record.
#[derive(Clone, Debug)]
pub(crate) struct ListRecord {
    pub count: u64,
    /// The version id of the chunks. `None` if the list is packed.
    pub version: Option<u64>,
    pub levels: u8,
    pub head: Items,
    pub tail: Items,
}

impl ListRecord {
    pub fn new() -> ListRecord {
        ListRecord { count: 0, version: None, levels: 0, head: Items::default(), tail: Items::default() }
    }

    pub fn parse(meta: &Meta<'_>) -> Result<ListRecord> {
        if meta.head.kind != Kind::List {
            return Err(Error::Misuse("a key of another type as a list"));
        }
        match meta.body {
            Body::Inline(payload) => {
                let (count, items) = split_plain(&payload[meta.head.key_len as usize..])?;
                Ok(ListRecord { count, head: Items::new(count as usize, items), ..ListRecord::new() })
            }
            Body::Elements { count, version, fields } => {
                let parse = || {
                    let (fixed, items) = fields.split_first_chunk::<FIELDS>()?;
                    let word = |at: usize| usize::from(u16::from_le_bytes([fixed[at], fixed[at + 1]]));
                    let (head, tail) = items.split_at_checked(word(3))?;
                    let (head, tail) = (Items::new(word(1), head), Items::new(word(5), tail));
                    Some(ListRecord { count, version: Some(version), levels: fixed[0], head, tail })
                };
                parse()
                    .filter(|list| list.head.count + list.tail.count <= list.count as usize)
                    .ok_or_else(|| Error::corrupt("the record of a list of unknown form"))
            }
            _ => Err(Error::corrupt("the record of a list in another format")),
        }
    }

    pub fn end(&mut self, end: End) -> &mut Items {
        if end == End::Head { &mut self.head } else { &mut self.tail }
    }

    /// Returns the number of items in chunks.
    pub fn in_chunks(&self) -> u64 {
        self.count - (self.head.count + self.tail.count) as u64
    }

    pub fn ends_len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Returns the length of the packed form without the key.
    pub fn packed_len(&self) -> usize {
        1 + varint_len(self.count as usize) + self.ends_len()
    }

    /// Appends the packed form.
    pub fn encode_packed(&self, out: &mut Vec<u8>) {
        out.push(0);
        push_varint(out, self.count);
        out.extend_from_slice(&self.head.bytes);
        out.extend_from_slice(&self.tail.bytes);
    }

    /// Returns the fields of a record in format 3.
    pub fn fields(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIELDS + self.ends_len());
        out.push(self.levels);
        for number in [self.head.count, self.head.len(), self.tail.count] {
            out.extend_from_slice(&(number as u16).to_le_bytes());
        }
        out.extend_from_slice(&self.head.bytes);
        out.extend_from_slice(&self.tail.bytes);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(texts: &[&str]) -> Items {
        let mut items = Items::default();
        texts.iter().for_each(|text| items.push(End::Tail, text.as_bytes()));
        items
    }

    fn texts(items: &Items) -> Vec<String> {
        let mut spans = Vec::new();
        items.spans(&mut spans).unwrap();
        let text =
            |(from, to): &(u32, u32)| String::from_utf8(items.bytes[*from as usize..*to as usize].to_vec()).unwrap();
        spans.iter().map(text).collect()
    }

    #[test]
    fn items_are_pushed_taken_and_joined_at_both_ends() {
        let mut all = items(&["b", "c"]);
        all.push(End::Head, b"a");
        all.push(End::Tail, &[b'd'; 200]);
        assert_eq!(all.len(), 2 + 2 + 2 + 202);
        let last = all.take(End::Tail, 1).unwrap();
        assert_eq!((last.count, last.len(), texts(&all)), (1, 202, ["a", "b", "c"].map(String::from).to_vec()));
        let first = all.take(End::Head, 2).unwrap();
        assert_eq!((texts(&first), texts(&all)), (vec!["a".into(), "b".into()], vec!["c".to_string()]));
        all.join(End::Head, first);
        all.join(End::Tail, items(&["x"]));
        assert_eq!(texts(&all), ["a", "b", "c", "x"].map(String::from));
    }

    #[test]
    fn items_that_fit_are_counted_from_both_ends() {
        let all = items(&["a", "bbb", "cc"]);
        let count = |end, most| all.fitting(end, most).unwrap();
        assert_eq!(
            [count(End::Head, 1), count(End::Head, 2), count(End::Head, 6), count(End::Head, 100)],
            [0, 1, 2, 3]
        );
        assert_eq!(
            [count(End::Tail, 2), count(End::Tail, 3), count(End::Tail, 7), count(End::Tail, 100)],
            [0, 1, 2, 3]
        );
    }

    #[test]
    fn a_record_reads_as_it_was_written_and_a_cut_one_is_refused() {
        let list = ListRecord { count: 9, version: Some(7), levels: 2, head: items(&["a", ""]), tail: items(&["zz"]) };
        let fields = list.fields();
        let read = |fields: &[u8]| {
            let head = crate::keyspace::record::Head { kind: Kind::List, form: 0, expire: None, key_len: 0 };
            ListRecord::parse(&Meta { head, body: Body::Elements { count: 9, version: 7, fields } })
        };
        let again = read(&fields).unwrap();
        assert_eq!(
            (again.levels, texts(&again.head), texts(&again.tail)),
            (2, vec!["a".into(), String::new()], vec!["zz".to_string()])
        );
        assert_eq!(again.in_chunks(), 6);
        assert!(read(&fields[..6]).is_err() && read(&fields[..9]).is_err());
    }
}
