//! One batch of the cleaner: the copies of its pages, and the storage that they are written to.

use os::Aligned;

use crate::double_write::PAGES_MAX;
use crate::error::Result;
use crate::page::{PAGE_BYTES, PageId};
use crate::page_store::PageStore;

/// Units of values written with one sync. They skip the double-write file, so its size does not limit them.
pub(crate) const BATCH_MAX: usize = 1024;
const _: () = assert!(BATCH_MAX >= PAGES_MAX);

/// Buffer and page storage of the cleaner. One thread at a time uses it.
pub(crate) struct BatchWriter {
    store: Box<dyn PageStore>,
    /// Block 0 is the store's, then the pages, those with headers first.
    buffer: Aligned,
}

/// A page copied out and waiting to be written.
pub(crate) struct CopiedPage {
    pub(crate) pid: PageId,
    pub(crate) frame: usize,
}

impl BatchWriter {
    pub fn new(store: Box<dyn PageStore>) -> BatchWriter {
        BatchWriter { store, buffer: Aligned::with_capacity((1 + BATCH_MAX) * PAGE_BYTES) }
    }

    /// Returns the buffer of the n-th page of the batch.
    pub fn page_mut(&mut self, nth: usize) -> &mut [u8] {
        &mut self.buffer.as_mut_slice()[(1 + nth) * PAGE_BYTES..][..PAGE_BYTES]
    }

    /// Completes the previous batch if its write failed. To be called before the buffer gets other pages.
    pub fn settle(&mut self) -> Result<()> {
        self.store.settle(self.buffer.as_slice())
    }

    /// Writes the batch, of which the first `with_header` pages have headers.
    pub fn write(&mut self, copied: &[CopiedPage], with_header: usize) -> Result<()> {
        let pages: Vec<PageId> = copied.iter().map(|page| page.pid).collect();
        self.store.write_batch(self.buffer.as_mut_slice(), &pages, with_header)
    }
}
