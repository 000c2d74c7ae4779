//! One batch of the cleaner.

use os::{Aligned, Device};

use crate::double_write::{DoubleWrite, PAGES_MAX};
use crate::error::{Error, Result};
use crate::page::{PAGE_BYTES, PageId};

/// Units of values written with one sync: they need no double write, so its size does not bound them.
pub(crate) const BATCH_MAX: usize = 1024;
const _: () = assert!(BATCH_MAX >= PAGES_MAX);

/// State of the one who cleans; there is one at a time.
pub(crate) struct BatchWriter {
    double_write: DoubleWrite,
    /// Block 0 is the double write's header, then the pages, those with headers first.
    buffer: Aligned,
    /// The pages with headers of a batch that is in the double write but not surely at home: it is written again before another takes its place there.
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

    /// The place of the n-th page of the batch.
    pub fn page_mut(&mut self, nth: usize) -> &mut [u8] {
        &mut self.buffer.as_mut_slice()[(1 + nth) * PAGE_BYTES..][..PAGE_BYTES]
    }

    /// Writes an unsettled batch again.
    pub fn rewrite_unsettled(&mut self, data: &dyn Device) -> Result<()> {
        if !self.unsettled.is_empty() {
            self.write_home(data, &self.unsettled)?;
            self.unsettled.clear();
        }
        Ok(())
    }

    /// Writes the batch: the first `with_header` of `copied` to the double-write file, then all to their places.
    pub fn write(&mut self, data: &dyn Device, copied: &[CopiedPage], with_header: usize) -> Result<()> {
        let pids: Vec<PageId> = copied[..with_header].iter().map(|page| page.pid).collect();
        let raw = copied[with_header..].iter().map(|page| page.pid);
        self.double_write.write(self.buffer.as_mut_slice(), &pids, raw)?;
        let result = self.write_home(data, copied);
        if result.is_err() {
            self.unsettled.extend(copied[..with_header].iter().cloned());
        }
        result
    }

    /// Writes the copies to their places, neighbours in one write, and syncs.
    fn write_home(&self, data: &dyn Device, copied: &[CopiedPage]) -> Result<()> {
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
