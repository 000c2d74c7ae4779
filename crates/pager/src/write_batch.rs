//! One batch of the cleaner: the copies of its pages, their write to the double-write file and in place.
//!
//! If the write in place or its sync fails, a torn page may need its copy in the double-write file. So the batch is written again before the next one
//! replaces it there.

use os::{Aligned, Device};

use crate::double_write::{DoubleWrite, PAGES_MAX};
use crate::error::{Error, Result};
use crate::page::{PAGE_BYTES, PageId};

/// Units of values written with one sync. They skip the double-write file, so its size does not limit them.
pub(crate) const BATCH_MAX: usize = 1024;
const _: () = assert!(BATCH_MAX >= PAGES_MAX);

/// Buffer and double-write file of the cleaner. One thread at a time uses it.
pub(crate) struct BatchWriter {
    double_write: DoubleWrite,
    /// Block 0 is the header of the double-write file, then the pages, those with headers first.
    buffer: Aligned,
    /// Pages with headers of a batch that is in the double-write file but may not be in place: written again before another batch takes its place.
    unsettled: Vec<CopiedPage>,
}

/// A page copied out and waiting to be written.
#[derive(Clone)]
pub(crate) struct CopiedPage {
    pub(crate) pid: PageId,
    pub(crate) frame: usize,
}

impl BatchWriter {
    pub fn new(double_write: DoubleWrite) -> BatchWriter {
        let buffer = Aligned::with_capacity((1 + BATCH_MAX) * PAGE_BYTES);
        BatchWriter { double_write, buffer, unsettled: Vec::new() }
    }

    /// Returns the buffer of the n-th page of the batch.
    pub fn page_mut(&mut self, nth: usize) -> &mut [u8] {
        &mut self.buffer.as_mut_slice()[(1 + nth) * PAGE_BYTES..][..PAGE_BYTES]
    }

    /// Writes the previous batch in place again if its write failed.
    pub fn rewrite_unsettled(&mut self, data: &dyn Device) -> Result<()> {
        if !self.unsettled.is_empty() {
            self.write_in_place(data, &self.unsettled)?;
            self.unsettled.clear();
        }
        Ok(())
    }

    /// Writes the batch: the first `with_header` of `copied` to the double-write file, then all pages in place, and syncs.
    pub fn write(&mut self, data: &dyn Device, copied: &[CopiedPage], with_header: usize) -> Result<()> {
        let pids: Vec<PageId> = copied[..with_header].iter().map(|page| page.pid).collect();
        let raw = copied[with_header..].iter().map(|page| page.pid);
        self.double_write.write(self.buffer.as_mut_slice(), &pids, raw)?;
        let result = self.write_in_place(data, copied);
        if result.is_err() {
            self.unsettled.extend(copied[..with_header].iter().cloned());
        }
        result
    }

    /// Writes the copies in place, adjacent pages in one write, and syncs.
    fn write_in_place(&self, data: &dyn Device, copied: &[CopiedPage]) -> Result<()> {
        let pages = &self.buffer.as_slice()[PAGE_BYTES..];
        let mut writes: Vec<(u64, &[u8])> = Vec::new();
        let mut start = 0;
        for at in 1..=copied.len() {
            if at == copied.len() || copied[at].pid != copied[at - 1].pid + 1 {
                writes.push((copied[start].pid * PAGE_BYTES as u64, &pages[start * PAGE_BYTES..at * PAGE_BYTES]));
                start = at;
            }
        }
        data.write_many(&writes).map_err(|error| Error::io("writing pages", error))?;
        data.sync().map_err(|error| Error::io("syncing the data file", error))
    }
}
