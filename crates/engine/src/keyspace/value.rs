//! Payloads that do not fit into a record: writing, reading and patching their pages.
//!
//! A page of a value is written once, before any record refers to it, and never changed in place. A patch writes the touched units elsewhere, and the record
//! refers to them from then on (EN-51). Pages are only reserved in memory until the mini-transaction of the record allocates them (EN-52). If anything fails in
//! between, dropping `ReservedPages` releases them.
//!
//! Hard part: a reader without locks may follow a record to pages that are already freed and hold other data. It then reads garbage or gets an error. Both are
//! discarded, because the word of the key's stripe has changed (EN-48). So this code must check the bounds of everything it reads.

use std::ops::Range;

use pager::{NO_PAGE, PAGE_BYTES, PageId, Pager, Run};

use crate::error::{Error, Result};
use crate::keyspace::record::{Body, EXTENT_MAX, Extent, INLINE_MAX, RUNS_MAX};
use crate::keyspace::{key, record};
use crate::store::Store;

#[cfg(test)]
mod tests;

/// Pages taken for a value that no record refers to yet.
pub(crate) struct ReservedPages<'p> {
    pager: &'p Pager,
    runs: Vec<Run>,
}

impl<'p> ReservedPages<'p> {
    pub fn new(pager: &'p Pager) -> ReservedPages<'p> {
        ReservedPages { pager, runs: Vec::new() }
    }

    /// Takes `pages` pages, in one run if possible, otherwise in a few.
    fn take(&mut self, pages: usize) -> Result<Vec<Run>> {
        let mut taken = Vec::new();
        let mut left = pages as u32;
        while left > 0 {
            let mut want = left;
            let first = loop {
                match self.pager.reserve(want, NO_PAGE) {
                    Ok(first) => break first,
                    Err(pager::Error::DiskFull { .. }) if want > 1 && taken.len() < RUNS_MAX => want /= 2,
                    Err(error) => return Err(error.into()),
                }
            };
            let run = Run { first, pages: want };
            self.runs.push(run);
            taken.push(run);
            left -= want;
        }
        Ok(taken)
    }

    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Keeps the pages: the mini-transaction that allocates them is in the WAL.
    pub fn settle(mut self) {
        self.runs.clear();
    }
}

impl Drop for ReservedPages<'_> {
    fn drop(&mut self) {
        for run in &self.runs {
            self.pager.unreserve(run.first, run.pages);
        }
    }
}

/// The body of a new record, with the pages that it will refer to.
pub(crate) struct NewBody<'p> {
    bytes: Vec<u8>,
    is_extent: bool,
    pub reserved: ReservedPages<'p>,
}

impl<'p> NewBody<'p> {
    fn inline(pager: &'p Pager, bytes: Vec<u8>) -> NewBody<'p> {
        NewBody { bytes, is_extent: false, reserved: ReservedPages::new(pager) }
    }

    pub fn body(&self) -> Body<'_> {
        if self.is_extent {
            Body::Extent(Extent::parse(&self.bytes).expect("encoded here"))
        } else {
            Body::Inline(&self.bytes)
        }
    }

    /// Writes a payload of at most 256 KiB.
    pub fn write(pager: &'p Pager, payload: &[u8]) -> Result<NewBody<'p>> {
        if payload.len() <= INLINE_MAX {
            return Ok(Self::inline(pager, payload.to_vec()));
        }
        assert!(payload.len() <= EXTENT_MAX);
        let mut reserved = ReservedPages::new(pager);
        let unit_count = record::units(payload.len());
        let (on_pages, tail) = payload.split_at(payload.len().min(unit_count * PAGE_BYTES));
        let runs = reserved.take(unit_count)?;
        if runs.len() > RUNS_MAX {
            return Err(Error::DiskFull);
        }
        let mut crcs = Vec::with_capacity(unit_count);
        let mut rest = on_pages;
        for run in &runs {
            let (part, after) = rest.split_at(rest.len().min(run.pages as usize * PAGE_BYTES));
            write_run(pager, run.first, part, &mut crcs)?;
            rest = after;
        }
        let mut bytes = Vec::with_capacity(5 + runs.len() * 7 + crcs.len() * 4 + tail.len());
        Extent::encode(payload.len() as u32, &runs, &crcs, tail, &mut bytes);
        Ok(NewBody { bytes, is_extent: true, reserved })
    }
}

/// Writes `part` to the pages from `first` on, and fills the last unit with zeros.
fn write_run(pager: &Pager, first: PageId, part: &[u8], crcs: &mut Vec<u32>) -> Result<()> {
    let (whole, rest) = part.split_at(part.len() - part.len() % PAGE_BYTES);
    crcs.extend(whole.chunks_exact(PAGE_BYTES).map(crc32c::crc32c));
    if !whole.is_empty() {
        pager.extent_write(first, 0, whole)?;
    }
    if !rest.is_empty() {
        let mut last = [0; PAGE_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        crcs.push(crc32c::crc32c(&last));
        pager.extent_write(first, (whole.len() / PAGE_BYTES) as u32, &last)?;
    }
    Ok(())
}

/// Appends `range` of an extent's payload to `out`.
fn read_extent(pager: &Pager, extent: &Extent<'_>, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
    let on_pages = extent.unit_count() * PAGE_BYTES;
    if range.start < on_pages && !range.is_empty() {
        let end = range.end.min(on_pages);
        let units = range.start / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        let base = out.len();
        out.resize(base + units.len() * PAGE_BYTES, 0);
        let mut unit = 0;
        for run in extent.runs() {
            let of_run = unit..unit + run.pages as usize;
            let wanted = units.start.max(of_run.start)..units.end.min(of_run.end);
            if !wanted.is_empty() {
                let crcs: Vec<u32> = wanted.clone().map(|unit| extent.crc(unit)).collect();
                let at = base + (wanted.start - units.start) * PAGE_BYTES;
                let target = &mut out[at..at + wanted.len() * PAGE_BYTES];
                pager.extent_read(run.first, (wanted.start - of_run.start) as u32, target, &crcs)?;
            }
            unit = of_run.end;
        }
        let skip = range.start - units.start * PAGE_BYTES;
        if skip > 0 {
            out.copy_within(base + skip.., base);
        }
        out.truncate(base + end - range.start);
    }
    if range.end > on_pages {
        let from = range.start.max(on_pages) - on_pages;
        let tail = extent.tail.get(from..range.end - on_pages);
        out.extend_from_slice(tail.ok_or_else(|| Error::corrupt("tail of a value is too short"))?);
    }
    Ok(())
}

/// Reads every page of a record's value. Returns the error of each damaged one.
pub(crate) fn damage(pager: &Pager, body: &Body<'_>) -> Vec<pager::Error> {
    let Body::Extent(extent) = body else { return Vec::new() };
    let pages = extent.runs().flat_map(|run| (0..run.pages).map(move |at| (run.first, at)));
    let mut unit = vec![0; PAGE_BYTES];
    pages
        .enumerate()
        .filter_map(|(index, (first, at))| pager.extent_read(first, at, &mut unit, &[extent.crc(index)]).err())
        .collect()
}

/// Appends `range` of the payload of a record without segments.
fn read_plain(pager: &Pager, body: &Body<'_>, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
    match body {
        Body::Inline(bytes) => {
            let bytes = bytes.get(range).ok_or_else(|| Error::corrupt("value is shorter than its length"))?;
            out.extend_from_slice(bytes);
            Ok(())
        }
        Body::Extent(extent) => read_extent(pager, extent, range, out),
        Body::Segments { .. } | Body::Elements { .. } => Err(Error::corrupt("a payload in other records")),
    }
}

/// Writes the body that results from putting `with` into `old` at `at`. A gap is filled with zeros. Pages of untouched units are shared with `old`.
pub(crate) fn patch<'p>(pager: &'p Pager, old: &Body<'_>, at: usize, with: &[u8]) -> Result<NewBody<'p>> {
    let old_len = old.payload_len() as usize;
    let len = old_len.max(at + with.len());
    assert!(len <= EXTENT_MAX);
    let patch = Patch { pager, old, old_len, at, with };
    if let (Body::Extent(extent), true) = (old, len > INLINE_MAX)
        && let Some(fresh) = patch.units(extent, len)?
    {
        return Ok(fresh);
    }
    let mut payload = Vec::with_capacity(len);
    patch.compose(0..len, &mut payload)?;
    NewBody::write(pager, &payload)
}

/// Appends `range` of the payload that results from putting `with` into `old` at `at`.
pub(crate) fn compose(
    store: &Store,
    old: &Body<'_>,
    at: u64,
    with: &[u8],
    range: Range<u64>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let base = out.len();
    let kept = range.start..range.end.min(old.payload_len());
    if !kept.is_empty() {
        store.read_payload(old, kept, out)?;
    }
    out.resize(base + (range.end - range.start) as usize, 0);
    let (from, to) = (range.start.max(at), range.end.min(at + with.len() as u64));
    if from < to {
        let target = base + (from - range.start) as usize..base + (to - range.start) as usize;
        out[target].copy_from_slice(&with[(from - at) as usize..(to - at) as usize]);
    }
    Ok(())
}

struct Patch<'a, 'p> {
    pager: &'p Pager,
    old: &'a Body<'a>,
    old_len: usize,
    at: usize,
    with: &'a [u8],
}

impl<'p> Patch<'_, 'p> {
    /// Appends `range` of the new payload.
    fn compose(&self, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let base = out.len();
        let kept = range.start..range.end.min(self.old_len);
        if !kept.is_empty() {
            read_plain(self.pager, self.old, kept, out)?;
        }
        out.resize(base + range.len(), 0);
        let (from, to) = (range.start.max(self.at), range.end.min(self.at + self.with.len()));
        if from < to {
            out[base + from - range.start..base + to - range.start]
                .copy_from_slice(&self.with[from - self.at..to - self.at]);
        }
        Ok(())
    }

    /// Returns true if the patch leaves the bytes of `range` unchanged.
    fn spares(&self, range: &Range<usize>) -> bool {
        let changed = self.at.min(self.old_len)..self.at + self.with.len();
        range.end <= changed.start || range.start >= changed.end
    }

    /// Writes only the touched units. Returns `None` if the extent would have too many runs.
    fn units(&self, extent: &Extent<'_>, len: usize) -> Result<Option<NewBody<'p>>> {
        let unit_count = record::units(len);
        let old_pages: Vec<PageId> = extent.pages().collect();
        let (mut pages, mut crcs) = (Vec::with_capacity(unit_count), Vec::with_capacity(unit_count));
        let mut reserved = ReservedPages::new(self.pager);
        let range_of = |unit: usize| unit * PAGE_BYTES..len.min((unit + 1) * PAGE_BYTES);
        let mut unit = 0;
        while unit < unit_count {
            if unit < old_pages.len() && self.spares(&range_of(unit)) {
                pages.push(old_pages[unit]);
                crcs.push(extent.crc(unit));
                unit += 1;
                continue;
            }
            let from = unit;
            while unit < unit_count && (unit >= old_pages.len() || !self.spares(&range_of(unit))) {
                unit += 1;
            }
            let mut bytes = Vec::with_capacity((unit - from) * PAGE_BYTES);
            self.compose(from * PAGE_BYTES..range_of(unit - 1).end, &mut bytes)?;
            let mut rest = bytes.as_slice();
            for run in reserved.take(unit - from)? {
                let (part, after) = rest.split_at(rest.len().min(run.pages as usize * PAGE_BYTES));
                write_run(self.pager, run.first, part, &mut crcs)?;
                pages.extend(run.first..run.first + u64::from(run.pages));
                rest = after;
            }
        }
        let runs = record::runs_of(pages.into_iter());
        if runs.len() > RUNS_MAX {
            return Ok(None);
        }
        let mut tail = Vec::new();
        if unit_count * PAGE_BYTES < len {
            self.compose(unit_count * PAGE_BYTES..len, &mut tail)?;
        }
        let mut bytes = Vec::new();
        Extent::encode(len as u32, &runs, &crcs, &tail, &mut bytes);
        Ok(Some(NewBody { bytes, is_extent: true, reserved }))
    }
}

impl Store {
    /// Appends `range` of a payload. `range` must lie within the payload.
    pub fn read_payload(&self, body: &Body<'_>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let Body::Segments { version, .. } = body else {
            return read_plain(&self.pager, body, range.start as usize..range.end as usize, out);
        };
        let mut at = range.start;
        while at < range.end {
            let index = at / EXTENT_MAX as u64;
            let start = index * EXTENT_MAX as u64;
            let end = range.end.min(start + EXTENT_MAX as u64);
            self.read_segment(*version, index as u32, (at - start) as usize..(end - start) as usize, out)?;
            at = end;
        }
        Ok(())
    }

    /// Appends `range` of a segment. Missing bytes at a segment's end are zeros.
    fn read_segment(&self, version: u64, index: u32, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let mut bytes = Vec::new();
        let body = self.segment(version, index, &mut bytes)?;
        let base = out.len();
        let stored = range.start..range.end.min(body.payload_len() as usize);
        if !stored.is_empty() {
            read_plain(&self.pager, &body, stored, out)?;
        }
        out.resize(base + range.len(), 0);
        Ok(())
    }

    /// Reads the record of a segment into `bytes` and returns its body.
    pub fn segment<'b>(&self, version: u64, index: u32, bytes: &'b mut Vec<u8>) -> Result<Body<'b>> {
        bytes.clear();
        let found = self.records.get(&key::element(version, key::SEGMENT, index), bytes)?;
        if !found.present {
            return Err(Error::corrupt(format!("segment {index} of the value with version {version} is missing")));
        }
        record::parse_segment(bytes)
    }
}
