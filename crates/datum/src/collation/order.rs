//! Comparison and sort keys.
//!
//! A key is a string of weights with an end mark, so that no key is the beginning of another (DA-1, DA-3). A collation of several levels has the weights of each
//! level in turn, each with an end mark. The hard part is PAD SPACE, under which a string
//! behaves as if it were followed by infinitely many spaces. Its key therefore encodes a run of spaces by whether the next weight is less or more than a
//! space, and then by its length. The end is a space that is followed by more spaces: `space 1 length` < `space 2` (the end) < `space 3 length`.

use std::cmp::Ordering;

use super::table::{self, Table};
use super::{Collation, Weights};

/// The byte behind a run of spaces in a key: how the next weight compares to a space.
const LESS_FOLLOWS: u8 = 1;
const END: u8 = 2;
const MORE_FOLLOWS: u8 = 3;

impl Collation {
    /// Compares two strings of UTF-8 or of bytes.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match (table::of(self), self.pads()) {
            (None, false) => a.cmp(b),
            (None, true) => {
                let common = a.len().min(b.len());
                a[..common]
                    .cmp(&b[..common])
                    .then_with(|| rest_order(a[common..].iter().copied(), b[common..].iter().copied(), b' '))
            }
            (Some(_), _) if a == b => Ordering::Equal,
            (Some(table), pads) => table::further(self).fold(compare_weights(table, pads, a, b), |order, table| {
                order.then_with(|| compare_weights(table, false, a, b))
            }),
        }
    }

    pub fn equal(self, a: &[u8], b: &[u8]) -> bool {
        match self.weights() {
            Weights::Bytes if !self.pads() => a == b,
            _ => self.compare(a, b).is_eq(),
        }
    }

    /// Appends bytes that compare as the strings do (DA-1). No sort key is the beginning of another.
    pub fn sort_key(self, text: &[u8], out: &mut Vec<u8>) {
        match (table::of(self), self.pads()) {
            (None, false) => {
                out.reserve(text.len() + 2);
                let mut rest = text;
                while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
                    out.extend_from_slice(&rest[..zero]);
                    out.extend_from_slice(&[0, 0xFF]);
                    rest = &rest[zero + 1..];
                }
                out.extend_from_slice(rest);
                out.extend_from_slice(&[0, 0]);
            }
            (None, true) => padded_key(text.iter().copied(), b' ', |byte, out| out.push(byte), out),
            (Some(table), false) => {
                for table in std::iter::once(table).chain(table::further(self)) {
                    let rest = plain_key(table, text, out);
                    Stream::new(table, rest).for_each(|weight| out.extend_from_slice(&weight.to_be_bytes()));
                    out.extend_from_slice(&[0, 0]);
                }
            }
            (Some(table), true) => {
                let write = |weight: u16, out: &mut Vec<u8>| out.extend_from_slice(&weight.to_be_bytes());
                padded_key(Stream::new(table, text), table.space, write, out);
            }
        }
    }

    /// Returns the first eight bytes of the sort key where the first characters have one weight each. The key is longer than that. `None` for texts that
    /// would need the whole computation.
    pub fn sort_key_start(self, text: &[u8]) -> Option<[u8; 8]> {
        let Some(table) = table::of(self) else {
            let start = *text.first_chunk::<8>()?;
            return start.iter().all(|byte| *byte != 0 && !(self.pads() && *byte == b' ')).then_some(start);
        };
        let mut start = [0; 8];
        for (place, byte) in start.as_chunks_mut::<2>().0.iter_mut().zip(text.first_chunk::<4>()?) {
            let weight = table.single[usize::from(*byte)];
            if weight == 0 || (self.pads() && weight == table.space) {
                return None;
            }
            *place = weight.to_be_bytes();
        }
        Some(start)
    }

    /// Returns the length of the sort key at the beginning of a byte string, which `byte` reads by position. `None` where the string ends first.
    pub fn sort_key_length(self, byte: impl Fn(usize) -> Option<u8>) -> Option<usize> {
        let table = table::of(self);
        let unit = if table.is_some() { 2 } else { 1 };
        let blank = table.map_or([b' ', 0], |table| table.space.to_be_bytes());
        let mut at = 0;
        let mut levels = 1 + table::further(self).count();
        loop {
            let first = byte(at)?;
            let second = if unit == 2 { byte(at + 1)? } else { 0 };
            at += unit;
            match (self.pads(), unit) {
                (false, 1) if first == 0 => {
                    let is_end = byte(at)? == 0;
                    at += 1;
                    if is_end {
                        return Some(at);
                    }
                }
                (false, _) if [first, second] == [0, 0] && unit == 2 => {
                    levels -= 1;
                    if levels == 0 {
                        return Some(at);
                    }
                }
                (true, _) if [first, second] == blank => {
                    let follows = byte(at)?;
                    at += 1;
                    let more = match follows {
                        END => return Some(at),
                        LESS_FOLLOWS => 255,
                        _ => 0,
                    };
                    while byte(at)? == more {
                        at += 1;
                    }
                    at += 1;
                }
                _ => {}
            }
        }
    }

    /// Returns how many bytes at the beginning of a text are ASCII characters other than `wanted`, case and accent as the collation has them. For pattern
    /// matching that skips ahead.
    pub fn unlike(self, wanted: char, text: &[u8]) -> usize {
        let Ok(wanted) = u8::try_from(wanted) else { return 0 };
        let differs = |table: &Table, byte: u8| table.single[usize::from(byte)] != table.single[usize::from(wanted)];
        let is_other = |byte: &u8| match table::of(self) {
            None => *byte != wanted,
            Some(table) => {
                *byte != wanted && std::iter::once(table).chain(table::further(self)).any(|table| differs(table, *byte))
            }
        };
        if wanted.is_ascii() { text.iter().take_while(|byte| byte.is_ascii() && is_other(byte)).count() } else { 0 }
    }

    /// True where two characters have the same weights.
    pub fn same_char(self, a: char, b: char) -> bool {
        if a == b {
            return true;
        }
        let Some(table) = table::of(self) else {
            return false;
        };
        let same = |table: &Table| {
            if a.is_ascii() && b.is_ascii() {
                let (a, b) = (table.single[a as usize], table.single[b as usize]);
                return a == b && a != 0;
            }
            let of = |c| {
                let mut weights = Vec::new();
                table.weights(c, |weight| weights.push(weight));
                weights
            };
            of(a) == of(b)
        };
        same(table) && table::further(self).all(same)
    }
}

/// Appends the weights of the ASCII characters at the beginning in one pass, and returns the rest of the text.
fn plain_key<'t>(table: &Table, text: &'t [u8], out: &mut Vec<u8>) -> &'t [u8] {
    let start = out.len();
    out.resize(start + 2 * text.len(), 0);
    let mut all = true;
    for (place, byte) in out[start..].as_chunks_mut::<2>().0.iter_mut().zip(text) {
        let weight = table.single[usize::from(*byte)];
        *place = weight.to_be_bytes();
        all &= weight != 0;
    }
    if all {
        return &[];
    }
    let plain = text.iter().take_while(|byte| table.single[usize::from(**byte)] != 0).count();
    out.truncate(start + 2 * plain);
    &text[plain..]
}

fn compare_weights(table: &Table, pads: bool, a: &[u8], b: &[u8]) -> Ordering {
    // The common case: ASCII characters with one weight each, up to the first difference.
    let mut same = 0;
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (table.single[usize::from(*a)], table.single[usize::from(*b)]);
        if a == 0 || b == 0 {
            break;
        }
        if a != b {
            return a.cmp(&b);
        }
        same += 1;
    }
    let (mut left, mut right) = (Stream::new(table, &a[same..]), Stream::new(table, &b[same..]));
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return a.cmp(&b),
            (None, None) => return Ordering::Equal,
            (None, Some(_)) if !pads => return Ordering::Less,
            (Some(_), None) if !pads => return Ordering::Greater,
            (None, Some(b)) => return rest_order(std::iter::empty(), std::iter::once(b).chain(right), table.space),
            (Some(a), None) => return rest_order(std::iter::once(a).chain(left), std::iter::empty(), table.space),
        }
    }
}

/// Compares the rest of one side with spaces, where the other side has ended.
fn rest_order<W: Ord + Copy>(a: impl Iterator<Item = W>, b: impl Iterator<Item = W>, space: W) -> Ordering {
    let a = a.map(|weight| weight.cmp(&space)).find(|order| order.is_ne());
    let b = b.map(|weight| space.cmp(&weight)).find(|order| order.is_ne());
    a.or(b).unwrap_or(Ordering::Equal)
}

fn padded_key<W: Ord + Copy>(
    weights: impl Iterator<Item = W>,
    space: W,
    write: impl Fn(W, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let mut run = 0usize;
    for weight in weights {
        if weight == space {
            run += 1;
            continue;
        }
        if run > 0 {
            write(space, out);
            let more = weight > space;
            out.push(if more { MORE_FOLLOWS } else { LESS_FOLLOWS });
            write_run(run, more, out);
            run = 0;
        }
        write(weight, out);
    }
    write(space, out);
    out.push(END);
}

/// Appends the length of a run. A longer run is closer to infinitely many spaces: greater where less follows, smaller where more follows.
fn write_run(mut run: usize, more: bool, out: &mut Vec<u8>) {
    let turn = |byte: u8| if more { !byte } else { byte };
    while run >= 255 {
        out.push(turn(255));
        run -= 255;
    }
    out.push(turn(run as u8));
}

/// The weights of a string.
struct Stream<'t> {
    table: &'t Table,
    rest: &'t [u8],
    /// Weights of the current character that are left, in reverse.
    pending: Vec<u16>,
}

impl<'t> Stream<'t> {
    fn new(table: &'t Table, text: &'t [u8]) -> Stream<'t> {
        Stream { table, rest: text, pending: Vec::new() }
    }

    /// Returns the next character. A byte that begins none stands for the character with its number.
    fn decode(&mut self) -> Option<char> {
        let head = &self.rest[..self.rest.len().min(4)];
        let valid = match std::str::from_utf8(head) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or(""),
        };
        let c = valid.chars().next().or_else(|| head.first().map(|byte| char::from(*byte)))?;
        let length = if valid.is_empty() { 1 } else { c.len_utf8() };
        self.rest = &self.rest[length..];
        Some(c)
    }
}

impl Iterator for Stream<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if let Some(weight) = self.pending.pop() {
            return Some(weight);
        }
        loop {
            if let [first, rest @ ..] = self.rest {
                let weight = self.table.single[usize::from(*first)];
                if weight != 0 {
                    self.rest = rest;
                    return Some(weight);
                }
            }
            let c = self.decode()?;
            let pending = &mut self.pending;
            self.table.weights(c, |weight| pending.push(weight));
            pending.reverse();
            if let Some(weight) = pending.pop() {
                return Some(weight);
            }
        }
    }
}
