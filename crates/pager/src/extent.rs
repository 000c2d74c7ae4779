//! Raw extents: runs of 4 KiB units without headers, so that a value of 16 KiB takes exactly four units.
//!
//! A unit passes through the buffer pool like a page but has no room for an LSN or a checksum: its LSN is in the frame, its checksum in the record that
//! names the extent. Torn units are repaired by redo, since the WAL holds the whole unit until its write is known to be on disk; so units skip the
//! double-write file (PG-7). An extent is written once, before any record names it, and is never changed in place.

use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::frame::{CLEAN, FREED, RAW, UNVERIFIED};
use crate::guard::Exclusive;
use crate::page::{Lsn, PAGE_BYTES, PageId};
use crate::pager::Pager;
use crate::space_map::Run;
use crate::wal::record::{self, FLAG_END, kind};

/// Units that are logged with one append.
const UNITS_PER_RECORD_RUN: usize = 16;

impl Pager {
    /// Fills the units of a reserved extent from `unit` on and logs them. They stay unreachable until a mini-transaction names the extent. `data` is a
    /// multiple of `PAGE_BYTES`.
    ///
    /// Returns the end of the last record. The bytes are copied once into the WAL ring and once into the frames.
    pub fn extent_write(&self, first: PageId, unit: u32, data: &[u8]) -> Result<Lsn> {
        assert!(data.len().is_multiple_of(PAGE_BYTES) && !data.is_empty());
        let mut end = 0;
        for (at, units) in data.chunks(UNITS_PER_RECORD_RUN * PAGE_BYTES).enumerate() {
            end = self.write_units(first + u64::from(unit) + (at * UNITS_PER_RECORD_RUN) as u64, units)?;
        }
        Ok(end)
    }

    fn write_units(&self, first: PageId, data: &[u8]) -> Result<Lsn> {
        let mut frames: Vec<Exclusive<'_>> = Vec::with_capacity(UNITS_PER_RECORD_RUN);
        let mut headers = Vec::with_capacity(UNITS_PER_RECORD_RUN * record::HEADER_BYTES);
        let count = data.len() / PAGE_BYTES;
        for (at, unit) in data.chunks_exact(PAGE_BYTES).enumerate() {
            let pid = first + at as u64;
            let frame = self.fresh_frame(pid, true)?;
            frame.copy_in(unit);
            frames.push(frame);
            record::encode_header(&mut headers, kind::EXTENT_UNIT, pid, PAGE_BYTES, at + 1 == count);
        }
        let mut parts: Vec<&[u8]> = Vec::with_capacity(count * 2);
        for (header, unit) in headers.chunks_exact(record::HEADER_BYTES).zip(data.chunks_exact(PAGE_BYTES)) {
            parts.extend([header, unit]);
        }
        debug_assert!(headers[headers.len() - record::HEADER_BYTES + 5] & FLAG_END != 0);
        crate::counts::count(|counts| {
            counts.wal_records += count as u64;
            counts.wal_images += count as u64;
            counts.wal_bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        });
        let end = self.wal().append(&parts, |start, end| {
            for frame in &frames {
                frame.header().mark_dirty(start, end);
            }
        });
        self.run_interleave_hook();
        Ok(end)
    }

    /// Reads whole units of an extent, from `unit` on, into `out`. `crc` has one crc32c per unit; a unit that came from disk is verified once.
    ///
    /// Under an optimistic read the extent may have been freed in the meantime. Then this fails or returns other bytes, and the caller's validation
    /// fails as well.
    pub fn extent_read(&self, first: PageId, unit: u32, out: &mut [u8], crc: &[u32]) -> Result<()> {
        let first = first + u64::from(unit);
        assert_eq!(out.len(), crc.len() * PAGE_BYTES);
        self.extent_prefetch(first, crc.len());
        for (at, unit) in out.chunks_exact_mut(PAGE_BYTES).enumerate() {
            let pid = first + at as u64;
            let frame = self.shared_as(pid, true)?;
            frame.page().copy_out(unit);
            let flags = &self.pool.frames[frame.frame].flags;
            if flags.load(Ordering::Relaxed) & UNVERIFIED != 0 {
                let found = crc32c::crc32c(unit);
                if found != crc[at] {
                    return Err(Error::corrupt_page(
                        pid,
                        format!("checksum of a value's unit {found:#x}, expected {:#x}", crc[at]),
                    ));
                }
                flags.fetch_and(!UNVERIFIED, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Marks the units of a freed run as needing no write (PG-8, PG-27), where they are in memory and unlatched. `end` is the end of the mini-transaction that
    /// freed them.
    pub(crate) fn discard_freed_units(&self, run: Run, end: Lsn) {
        for pid in run.first..run.first + u64::from(run.pages) {
            let Some(frame) = self.pool.find(pid) else { continue };
            let header = &self.pool.frames[frame];
            if header.rec_lsn.load(Ordering::Relaxed) == CLEAN || !header.try_exclusive() {
                continue;
            }
            let guard = Exclusive { pool: &self.pool, frame };
            let flags = header.flags.load(Ordering::Relaxed);
            if guard.header().pid.load(Ordering::Relaxed) == pid && flags & RAW != 0 {
                header.page_lsn.store(end, Ordering::Release);
                header.flags.store(flags | FREED, Ordering::Relaxed);
            }
        }
    }

    /// Reads the absent units of a run together.
    fn extent_prefetch(&self, first: PageId, count: usize) {
        let absent: Vec<PageId> = (first..first + count as u64).filter(|pid| !self.is_resident(*pid)).collect();
        if absent.len() > 1 && absent.last().is_some_and(|last| (last + 1) * PAGE_BYTES as u64 <= self.pool.data.len())
        {
            for pids in absent.chunks((self.pool.frames.len() / 16).clamp(1, 64)) {
                self.load_together(pids, true);
            }
        }
    }
}
