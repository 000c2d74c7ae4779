//! Bytes of a meta record and of an element: what the tree stores under a key.
//!
//! ```text
//!   meta      kind | format << 4   flags   [expire u64, ms since 1970]   [key length u32]   body
//!             flags: 1 EXPIRES  2 LONG_KEY (the payload starts with the whole key)  4 NOT_INT  8 RAW
//!   element   as the meta record of a string, with the expiry time of a field; of a segment, flags are 0; of a member that is too long for a tree key, the payload starts with the member
//!   body      0 INLINE    payload
//!             1 EXTENT    payload length u32 | run count u8 | runs: first page u48, units u8 | crc32c u32 of each unit | tail
//!             2 SEGMENTS  payload length u64 | version id u64
//!             3 ELEMENTS  count u64 | version id u64 | fields of the kind   a collection; its elements are records of their own
//! ```
//! Every record of the tree begins with such a head, elements included. So purge, undo and the checker find the pages and the version id that a record refers
//! to without knowing what it is (EN-61).
//!
//! All numbers are little-endian. A payload of up to 1200 bytes is inline. A payload of up to 256 KiB is stored in units of 4 KiB; if its last bytes are no
//! more than 512, they stay in the record as the tail. A longer payload is cut into segments of 256 KiB, each a record of its own in one of the first two
//! formats. A small hash or set is inline (`packed`); a larger one is in format 3, and a long key is then in segments of the same version id.

use pager::{PAGE_BYTES, PageId, Run};

use crate::error::{Error, Result};

pub(crate) const INLINE_MAX: usize = 1200;
pub(crate) const EXTENT_MAX: usize = 256 << 10;
pub(crate) const TAIL_MAX: usize = 512;
pub(crate) const UNITS_MAX: usize = EXTENT_MAX / PAGE_BYTES;
/// Maximum number of runs of an extent. A change that would exceed it writes the extent anew in one piece.
pub(crate) const RUNS_MAX: usize = 32;

const HEADER_MAX: usize = 2 + 8 + 4;
const RUN_BYTES: usize = 7;
const EXTENT_RECORD_MAX: usize = HEADER_MAX + 5 + RUNS_MAX * RUN_BYTES + UNITS_MAX * 4 + TAIL_MAX;
const _: () =
    assert!(HEADER_MAX + 16 + INLINE_MAX <= btree::Tree::VALUE_MAX && EXTENT_RECORD_MAX <= btree::Tree::VALUE_MAX);

const INLINE: u8 = 0;
const EXTENT: u8 = 1;
const SEGMENTS: u8 = 2;
const ELEMENTS: u8 = 3;

const EXPIRES: u8 = 1;
const LONG_KEY: u8 = 2;
pub(crate) const NOT_INT: u8 = 4;
pub(crate) const RAW: u8 = 8;

/// Bytes of the fields of a hash that has elements and a field that expires (`field_times`).
pub(crate) const HASH_TIMES: usize = 16;

/// The type of a key's value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    String,
    List,
    Set,
    ZSet,
    Hash,
    Stream,
}

impl Kind {
    const ALL: [Kind; 6] = [Kind::String, Kind::List, Kind::Set, Kind::ZSet, Kind::Hash, Kind::Stream];

    /// Returns the word that TYPE answers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::List => "list",
            Kind::Set => "set",
            Kind::ZSet => "zset",
            Kind::Hash => "hash",
            Kind::Stream => "stream",
        }
    }
}

/// The header of a meta record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub kind: Kind,
    /// The bits NOT_INT and RAW.
    pub form: u8,
    pub expire: Option<u64>,
    /// Length of the key at the beginning of the payload; 0 if the payload does not contain it.
    pub key_len: u32,
}

impl Head {
    /// Appends the header. The body's bytes, in the given format, must follow.
    fn encode(&self, format: u8, out: &mut HeadBytes) {
        let flags =
            self.form | if self.expire.is_some() { EXPIRES } else { 0 } | if self.key_len > 0 { LONG_KEY } else { 0 };
        out.push(&[self.kind as u8 | format << 4, flags]);
        if let Some(expire) = self.expire {
            out.push(&expire.to_le_bytes());
        }
        if self.key_len > 0 {
            out.push(&self.key_len.to_le_bytes());
        }
    }

    pub fn bytes(&self, body: &Body<'_>) -> HeadBytes {
        let mut out = HeadBytes { bytes: [0; HEADER_MAX], len: 0 };
        self.encode(body.format(), &mut out);
        out
    }
}

pub(crate) struct HeadBytes {
    bytes: [u8; HEADER_MAX],
    len: usize,
}

impl HeadBytes {
    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The body of a record, borrowed from its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    Inline(&'a [u8]),
    Extent(Extent<'a>),
    Segments {
        len: u64,
        version: u64,
    },
    /// The elements of a collection are records under the version id.
    Elements {
        count: u64,
        version: u64,
        /// At most `INLINE_MAX` bytes that the kind defines. A set has none, and a hash of which no field expires.
        fields: &'a [u8],
    },
}

impl<'a> Body<'a> {
    fn format(&self) -> u8 {
        match self {
            Body::Inline(_) => INLINE,
            Body::Extent(_) => EXTENT,
            Body::Segments { .. } => SEGMENTS,
            Body::Elements { .. } => ELEMENTS,
        }
    }

    fn parse(format: u8, bytes: &'a [u8]) -> Option<Body<'a>> {
        match format {
            INLINE => Some(Body::Inline(bytes)),
            EXTENT => Extent::parse(bytes).map(Body::Extent),
            SEGMENTS => {
                let (len, version) = bytes.split_at_checked(8)?;
                let version = u64::from_le_bytes(version.try_into().ok()?);
                Some(Body::Segments { len: u64::from_le_bytes(len.try_into().ok()?), version })
            }
            ELEMENTS => {
                let (count, rest) = bytes.split_first_chunk::<8>()?;
                let (version, fields) = rest.split_first_chunk::<8>()?;
                let (count, version) = (u64::from_le_bytes(*count), u64::from_le_bytes(*version));
                Some(Body::Elements { count, version, fields })
            }
            _ => None,
        }
    }

    pub fn payload_len(&self) -> u64 {
        match self {
            Body::Inline(bytes) => bytes.len() as u64,
            Body::Extent(extent) => u64::from(extent.len),
            Body::Segments { len, .. } => *len,
            Body::Elements { .. } => 0,
        }
    }

    /// Returns the runs of pages that the record itself refers to.
    pub fn runs(&self) -> impl Iterator<Item = Run> + use<'a> {
        let extent = match self {
            Body::Extent(extent) => Some(*extent),
            _ => None,
        };
        extent.into_iter().flat_map(|extent| extent.runs())
    }

    pub fn version(&self) -> Option<u64> {
        match self {
            Body::Segments { version, .. } | Body::Elements { version, .. } => Some(*version),
            _ => None,
        }
    }

    /// Calls `f` with the body's bytes, as they follow a header, in two parts.
    pub fn with_bytes<R>(&self, f: impl FnOnce(&[u8], &[u8]) -> R) -> R {
        match self {
            Body::Inline(bytes) => f(bytes, &[]),
            Body::Extent(extent) => f(extent.bytes, &[]),
            Body::Segments { len, version } => f(&len.to_le_bytes(), &version.to_le_bytes()),
            Body::Elements { count, version, fields } => {
                let mut words = [0; 16];
                words[..8].copy_from_slice(&count.to_le_bytes());
                words[8..].copy_from_slice(&version.to_le_bytes());
                f(&words, fields)
            }
        }
    }
}

/// A payload on pages of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent<'a> {
    pub len: u32,
    runs: &'a [u8],
    crcs: &'a [u8],
    pub tail: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Extent<'a> {
    pub fn parse(bytes: &'a [u8]) -> Option<Extent<'a>> {
        let len = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        let run_count = usize::from(*bytes.get(4)?);
        let units = units(len as usize);
        let (runs, rest) = bytes[5..].split_at_checked(run_count * RUN_BYTES)?;
        let (crcs, tail) = rest.split_at_checked(units * 4)?;
        let extent = Extent { len, runs, crcs, tail, bytes };
        let fits = extent.runs().map(|run| run.pages as usize).sum::<usize>() == units
            && tail.len() == len as usize - (len as usize).min(units * PAGE_BYTES)
            && len as usize <= EXTENT_MAX;
        fits.then_some(extent)
    }

    pub fn unit_count(&self) -> usize {
        self.crcs.len() / 4
    }

    pub fn runs(&self) -> impl Iterator<Item = Run> + use<'a> {
        self.runs.chunks_exact(RUN_BYTES).map(|run| {
            let mut first = [0; 8];
            first[..6].copy_from_slice(&run[..6]);
            Run { first: u64::from_le_bytes(first), pages: u32::from(run[6]) }
        })
    }

    pub fn crc(&self, unit: usize) -> u32 {
        u32::from_le_bytes(self.crcs[unit * 4..][..4].try_into().expect("four bytes"))
    }

    /// Returns the page of every unit, in order.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + use<'a> {
        self.runs().flat_map(|run| run.first..run.first + u64::from(run.pages))
    }

    /// Appends the bytes that `parse` reads.
    pub fn encode(len: u32, runs: &[Run], crcs: &[u32], tail: &[u8], out: &mut Vec<u8>) {
        assert!(runs.len() <= RUNS_MAX && crcs.len() == units(len as usize));
        out.extend_from_slice(&len.to_le_bytes());
        out.push(runs.len() as u8);
        for run in runs {
            out.extend_from_slice(&run.first.to_le_bytes()[..6]);
            out.push(run.pages as u8);
        }
        for crc in crcs {
            out.extend_from_slice(&crc.to_le_bytes());
        }
        out.extend_from_slice(tail);
    }
}

/// Returns the number of units of a payload of `len` bytes that is not inline. The rest is the tail.
pub(crate) fn units(len: usize) -> usize {
    let rest = len % PAGE_BYTES;
    len / PAGE_BYTES + usize::from(rest > TAIL_MAX)
}

/// A parsed meta record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta<'a> {
    pub head: Head,
    pub body: Body<'a>,
}

impl<'a> Meta<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Meta<'a>> {
        Self::try_parse(bytes).ok_or_else(|| {
            Error::corrupt(format!("meta record of unknown form: {:02x?}", &bytes[..bytes.len().min(24)]))
        })
    }

    #[inline]
    fn try_parse(bytes: &'a [u8]) -> Option<Meta<'a>> {
        let ([tag, flags], mut rest) = bytes.split_first_chunk::<2>()?;
        let kind = *Kind::ALL.get(usize::from(tag & 15))?;
        let mut expire = None;
        if flags & EXPIRES != 0 {
            let (time, after) = rest.split_first_chunk::<8>()?;
            (expire, rest) = (Some(u64::from_le_bytes(*time)), after);
        }
        let mut key_len = 0;
        if flags & LONG_KEY != 0 {
            let (len, after) = rest.split_first_chunk::<4>()?;
            (key_len, rest) = (u32::from_le_bytes(*len), after);
        }
        let head = Head { kind, form: flags & (NOT_INT | RAW), expire, key_len };
        let body = Body::parse(tag >> 4, rest)?;
        let fits = match (kind, body) {
            (Kind::String, Body::Elements { .. }) => false,
            (Kind::Set, Body::Elements { fields, .. }) => fields.is_empty(),
            (Kind::Hash, Body::Elements { fields, .. }) => fields.is_empty() || fields.len() == HASH_TIMES,
            (Kind::ZSet, Body::Elements { fields, .. }) => fields.len() == 1,
            (_, Body::Elements { fields, .. }) => fields.len() <= INLINE_MAX,
            (Kind::String, _) | (_, Body::Inline(_)) => body.payload_len() >= u64::from(key_len),
            _ => false,
        };
        fits.then_some(Meta { head, body })
    }

    /// Returns the length of the value without the key; 0 if its elements are records of their own.
    pub fn len(&self) -> u64 {
        self.body.payload_len().saturating_sub(u64::from(self.head.key_len))
    }

    /// Returns the body whose payload starts with the key, if the record has a long one.
    pub fn key_body(&self) -> Body<'a> {
        match self.body {
            Body::Elements { version, .. } => Body::Segments { len: u64::from(self.head.key_len), version },
            body => body,
        }
    }

    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.head.expire.is_some_and(|expire| now_ms > expire)
    }
}

/// Returns the expiry time of the field whose element this is.
#[inline]
pub(crate) fn time_of_element(bytes: &[u8]) -> Option<u64> {
    let ([_, flags], rest) = bytes.split_first_chunk::<2>()?;
    if flags & EXPIRES == 0 { None } else { rest.first_chunk::<8>().map(|time| u64::from_le_bytes(*time)) }
}

/// Returns the header of a segment record.
pub(crate) fn segment_head(body: &Body<'_>) -> [u8; 2] {
    [body.format() << 4, 0]
}

pub(crate) fn parse_segment(bytes: &[u8]) -> Result<Body<'_>> {
    let body = bytes.split_first_chunk::<2>().and_then(|([tag, flags], rest)| match (tag >> 4, flags) {
        (format @ (INLINE | EXTENT), 0) => Body::parse(format, rest),
        _ => None,
    });
    body.ok_or_else(|| Error::corrupt("segment record of unknown form"))
}

/// Returns the pages that a meta record or an element refers to. (An element parses as the meta record of a string.)
pub(crate) fn pages_of(bytes: &[u8]) -> Result<Vec<PageId>> {
    let meta = Meta::parse(bytes)?;
    Ok(meta.body.runs().flat_map(|run| run.first..run.first + u64::from(run.pages)).collect())
}

/// Joins pages, in order, into runs.
pub(crate) fn runs_of(pages: impl Iterator<Item = PageId>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if run.first + u64::from(run.pages) == page && run.pages < u32::from(u8::MAX) => run.pages += 1,
            _ => runs.push(Run { first: page, pages: 1 }),
        }
    }
    runs
}

/// Returns `runs` without the pages for which `keep` returns true.
pub(crate) fn without(runs: impl Iterator<Item = Run>, keep: impl Fn(PageId) -> bool) -> Vec<Run> {
    runs_of(runs.flat_map(|run| run.first..run.first + u64::from(run.pages)).filter(|page| !keep(*page)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(expire: Option<u64>, key_len: u32) -> Head {
        Head { kind: Kind::String, form: RAW, expire, key_len }
    }

    fn meta_bytes(head: Head, body: Body<'_>) -> Vec<u8> {
        body.with_bytes(|a, b| [head.bytes(&body).as_slice(), a, b].concat())
    }

    #[test]
    fn meta_records_parse_as_they_were_encoded() {
        let mut extent = Vec::new();
        let runs = [Run { first: 9, pages: 3 }, Run { first: 1 << 40, pages: 1 }];
        Extent::encode(4 * 4096 + 17, &runs, &[1, 2, 3, 4], &[7; 17], &mut extent);
        let bodies = [
            Body::Inline(b"0123456789"),
            Body::Extent(Extent::parse(&extent).unwrap()),
            Body::Segments { len: 1 << 29, version: 77 },
        ];
        for body in bodies {
            for head in [head(None, 0), head(Some(123456789), 0), head(Some(1), 10), head(None, 7)] {
                let bytes = meta_bytes(head, body);
                let meta = Meta::parse(&bytes).unwrap();
                assert_eq!(meta.head, head);
                assert_eq!(meta.len(), body.payload_len() - u64::from(head.key_len));
                assert_eq!(meta.body.runs().collect::<Vec<_>>(), body.runs().collect::<Vec<_>>());
                assert_eq!(meta.body.version(), body.version());
            }
        }
        let Body::Extent(extent) = bodies[1] else { unreachable!() };
        assert_eq!(extent.pages().collect::<Vec<_>>(), [9, 10, 11, 1 << 40]);
        assert_eq!((extent.crc(3), extent.tail.len()), (4, 17));
    }

    #[test]
    fn cut_records_are_refused() {
        let mut extent = Vec::new();
        Extent::encode(4096, &[Run { first: 9, pages: 1 }], &[1], &[], &mut extent);
        let bytes = meta_bytes(head(Some(5), 3), Body::Extent(Extent::parse(&extent).unwrap()));
        for len in 0..bytes.len() {
            assert!(Meta::parse(&bytes[..len]).is_err(), "{len}");
        }
        assert!(Meta::parse(&[[0x30, 0].as_slice(), &[0; 16]].concat()).is_err(), "a string has no elements");
        assert!(Meta::parse(&[[0x34, 0].as_slice(), &[0; 16]].concat()).is_ok() && Meta::parse(&[0x34, 0, 1]).is_err());
        let with_segments = |kind: u8| Meta::parse(&[[0x20 | kind, 0].as_slice(), &[0; 16]].concat()).is_ok();
        assert!(!(1..=5).any(with_segments), "a collection has no segments");
        assert!(Meta::parse(&[0x0f, 0]).is_err());
        assert!(parse_segment(&[0x20, 0]).is_err());
    }

    #[test]
    fn runs_join_and_subtract() {
        let runs = runs_of([3, 4, 5, 9, 10, 2].into_iter());
        assert_eq!(runs, [Run { first: 3, pages: 3 }, Run { first: 9, pages: 2 }, Run { first: 2, pages: 1 }]);
        assert_eq!(without(runs.into_iter(), |page| page == 4 || page == 2).len(), 3);
    }

    #[test]
    fn the_last_bytes_become_tail_or_unit() {
        assert_eq!([units(4096), units(4096 + 512), units(4096 + 513), units(1201)], [1, 1, 2, 1]);
        assert_eq!(units(EXTENT_MAX), UNITS_MAX);
    }
}
