//! A value of any type, read as a sequence of events.

use std::io::Read;

use crate::error::Result;
use crate::packed::{Item, ListpackItems, Rule, ZiplistItems, ZipmapItems, read_intset};
use crate::source::{Source, decimal};
use crate::stream::{self, StreamEvent};
use crate::types as t;

/// The type of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    String,
    List,
    Set,
    SortedSet,
    Hash,
    Stream,
}

/// A part of a value. A string is one event; other values are as many as they have elements. Whether members are unique is not checked (RD-2): the code that
/// stores them sees it.
#[derive(Debug, PartialEq)]
pub enum Event<'a> {
    String(&'a [u8]),
    /// The next item of a list.
    Item(&'a [u8]),
    Member(&'a [u8]),
    /// A member of a sorted set; its score is a number.
    Scored(&'a [u8], f64),
    /// A field of a hash, its value, and the time in milliseconds when it expires.
    Field(&'a [u8], &'a [u8], Option<u64>),
    Stream(StreamEvent<'a>),
}

/// Returns the kind that the byte before a value says, or `None` for one that is not read: modules and unknown types.
fn kind_of(number: u8) -> Option<Kind> {
    Some(match number {
        t::STRING => Kind::String,
        t::LIST | t::LIST_ZIPLIST | t::LIST_QUICKLIST | t::LIST_QUICKLIST_2 => Kind::List,
        t::SET | t::SET_INTSET | t::SET_LISTPACK => Kind::Set,
        t::ZSET | t::ZSET_2 | t::ZSET_ZIPLIST | t::ZSET_LISTPACK => Kind::SortedSet,
        t::HASH | t::HASH_ZIPMAP | t::HASH_ZIPLIST | t::HASH_LISTPACK => Kind::Hash,
        t::HASH_TIMES_RC | t::HASH_LISTPACK_TIMES_RC | t::HASH_TIMES | t::HASH_LISTPACK_TIMES => Kind::Hash,
        t::STREAM_LISTPACKS | t::STREAM_LISTPACKS_2 | t::STREAM_LISTPACKS_3 => Kind::Stream,
        _ => return None,
    })
}

/// A reader of values that hands their parts to a closure.
struct Values<'s, 'e, R, E> {
    source: &'s mut Source<R>,
    emit: &'e mut dyn FnMut(Event<'_>) -> std::result::Result<(), E>,
}

/// Reads a value of the type that `number` says and hands its parts to `emit`, in order. Stops at the first error, `emit`'s own included; what was handed over
/// until then must be forgotten.
///
/// A collection without elements is an error, as no key holds one; a stream may be empty.
pub fn read_value<R: Read, E: From<crate::Error>>(
    source: &mut Source<R>,
    number: u8,
    emit: &mut dyn FnMut(Event<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<Kind, E> {
    let kind = kind_of(number).ok_or_else(|| source.unsupported("the value's type", number))?;
    let mut values = Values { source, emit };
    match kind {
        Kind::String => values.string()?,
        Kind::Stream => stream::read(values.source, number, &mut |event| (values.emit)(Event::Stream(event)))?,
        _ if values.collection(number)? == 0 => return Err(values.source.bad("a collection has no elements").into()),
        _ => {}
    }
    Ok(kind)
}

impl<R: Read, E: From<crate::Error>> Values<'_, '_, R, E> {
    fn string(&mut self) -> std::result::Result<(), E> {
        let bytes = self.source.string()?;
        (self.emit)(Event::String(&bytes))
    }

    /// Returns how many elements were read.
    fn collection(&mut self, number: u8) -> std::result::Result<u64, E> {
        match number {
            t::LIST => self.plain(|values| values.item()),
            t::SET => self.plain(|values| values.member()),
            t::ZSET => self.plain(|values| values.scored(Source::text_score)),
            t::ZSET_2 => self.plain(|values| values.scored(Source::score)),
            t::HASH => self.plain(|values| values.field()),
            t::LIST_QUICKLIST => self.plain_of_packed(|values| values.ziplist(1)),
            t::LIST_QUICKLIST_2 => self.plain_of_packed(|values| values.container()),
            t::LIST_ZIPLIST => self.ziplist(1),
            t::ZSET_ZIPLIST | t::HASH_ZIPLIST => self.ziplist(number),
            t::SET_LISTPACK | t::ZSET_LISTPACK | t::HASH_LISTPACK => self.listpack(number),
            t::SET_INTSET => self.intset(),
            t::HASH_ZIPMAP => self.zipmap(),
            t::HASH_TIMES | t::HASH_TIMES_RC => self.fields_with_times(number == t::HASH_TIMES),
            _ => {
                if number == t::HASH_LISTPACK_TIMES {
                    self.source.time()?;
                }
                self.listpack(number)
            }
        }
    }

    /// Reads a count and as many elements.
    fn plain(
        &mut self,
        mut element: impl FnMut(&mut Self) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let count = self.source.length()?;
        (0..count).try_for_each(|_| element(self))?;
        Ok(count)
    }

    /// Reads a count and as many packed strings; returns how many elements they have together.
    fn plain_of_packed(
        &mut self,
        mut part: impl FnMut(&mut Self) -> std::result::Result<u64, E>,
    ) -> std::result::Result<u64, E> {
        let count = self.source.length()?;
        (0..count).try_fold(0, |sum, _| Ok(sum + part(self)?))
    }

    fn item(&mut self) -> std::result::Result<(), E> {
        let bytes = self.source.string()?;
        (self.emit)(Event::Item(&bytes))
    }

    fn member(&mut self) -> std::result::Result<(), E> {
        let bytes = self.source.string()?;
        (self.emit)(Event::Member(&bytes))
    }

    fn scored(&mut self, score: impl Fn(&mut Source<R>) -> Result<f64>) -> std::result::Result<(), E> {
        let member = self.source.string()?;
        let score = score(self.source)?;
        if score.is_nan() {
            return Err(self.source.bad("a score is no number").into());
        }
        (self.emit)(Event::Scored(&member, score))
    }

    fn field(&mut self) -> std::result::Result<(), E> {
        let field = self.source.string()?;
        let value = self.source.string()?;
        (self.emit)(Event::Field(&field, &value, None))
    }

    /// Times are relative to the least one, except in the format of a release candidate.
    fn fields_with_times(&mut self, is_relative: bool) -> std::result::Result<u64, E> {
        let least = if is_relative { self.source.time()? } else { 1 };
        self.plain(|values| {
            let time = match values.source.length()? {
                0 => None,
                time => Some(
                    (time - 1).checked_add(least).ok_or_else(|| values.source.bad("a field's time is too large"))?,
                ),
            };
            let field = values.source.string()?;
            let value = values.source.string()?;
            (values.emit)(Event::Field(&field, &value, time))
        })
    }

    /// Reads a node of a list: one item as it is (1), or a listpack (2).
    fn container(&mut self) -> std::result::Result<u64, E> {
        match self.source.length()? {
            1 => self.item().map(|()| 1),
            2 => self.listpack(t::LIST),
            _ => Err(self.source.bad("a node of a list of an unknown form").into()),
        }
    }

    fn listpack(&mut self, number: u8) -> std::result::Result<u64, E> {
        let bytes = self.source.string()?;
        let mut items = ListpackItems::new(&bytes).map_err(|rule| self.source.bad(rule))?;
        self.elements(number, &mut || items.next())
    }

    fn ziplist(&mut self, number: u8) -> std::result::Result<u64, E> {
        let bytes = self.source.string()?;
        let mut items = ZiplistItems::new(&bytes).map_err(|rule| self.source.bad(rule))?;
        self.elements(number, &mut || items.next())
    }

    /// Hands over the elements of a packed string, each of one, two or three items.
    fn elements<'b>(
        &mut self,
        number: u8,
        next: &mut dyn FnMut() -> std::result::Result<Option<Item<'b>>, Rule>,
    ) -> std::result::Result<u64, E> {
        let mut count = 0;
        while let Some(first) = next().map_err(|rule| self.source.bad(rule))? {
            let first = first.text();
            let mut more = || match next() {
                Ok(Some(item)) => Ok(item),
                Ok(None) => Err(self.source.bad("the last element of a packed collection is not whole")),
                Err(rule) => Err(self.source.bad(rule)),
            };
            match number {
                t::LIST => (self.emit)(Event::Item(&first))?,
                t::SET_LISTPACK => (self.emit)(Event::Member(&first))?,
                t::ZSET_LISTPACK | t::ZSET_ZIPLIST => {
                    let score = packed_score(more()?).ok_or_else(|| self.source.bad("a score is no number"))?;
                    (self.emit)(Event::Scored(&first, score))?;
                }
                t::HASH_LISTPACK_TIMES | t::HASH_LISTPACK_TIMES_RC => {
                    let value = more()?.text();
                    let time = more()?.integer().and_then(|time| u64::try_from(time).ok());
                    let time = time.ok_or_else(|| self.source.bad("a field's time is no time"))?;
                    (self.emit)(Event::Field(&first, &value, (time > 0).then_some(time)))?;
                }
                _ => {
                    let value = more()?.text();
                    (self.emit)(Event::Field(&first, &value, None))?;
                }
            }
            count += 1;
        }
        Ok(count)
    }

    fn intset(&mut self) -> std::result::Result<u64, E> {
        let bytes = self.source.string()?;
        let mut count = 0;
        for number in read_intset(&bytes).map_err(|rule| self.source.bad(rule))? {
            (self.emit)(Event::Member(&decimal(number)))?;
            count += 1;
        }
        Ok(count)
    }

    fn zipmap(&mut self) -> std::result::Result<u64, E> {
        let bytes = self.source.string()?;
        let mut items = ZipmapItems::new(&bytes).map_err(|rule| self.source.bad(rule))?;
        let mut count = 0;
        while let Some((field, value)) = items.next().map_err(|rule| self.source.bad(rule))? {
            (self.emit)(Event::Field(field, value, None))?;
            count += 1;
        }
        Ok(count)
    }
}

impl<R: Read> Source<R> {
    fn score(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// Reads a score as text behind its length, or one of three lengths that stand for no number.
    fn text_score(&mut self) -> Result<f64> {
        match self.byte()? {
            253 => Ok(f64::NAN),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            length => {
                let text = self.bytes(length.into())?;
                let text = std::str::from_utf8(&text).ok();
                text.and_then(|text| text.trim().parse().ok()).ok_or_else(|| self.bad("a score is no number"))
            }
        }
    }
}

/// Returns the score in a packed string. Redis writes an integer, or `%.17g`, where infinity is `inf`.
fn packed_score(item: Item<'_>) -> Option<f64> {
    match item {
        Item::Integer(integer) => Some(integer as f64),
        Item::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok().filter(|score: &f64| !score.is_nan()),
    }
}
