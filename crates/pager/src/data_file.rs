//! The pages of a local folder: written to the double-write file, then in place, then synced.
//!
//! If the write in place or its sync fails, a torn page may need its copy in the double-write file. So the batch is written again before the next one
//! replaces it there.

use std::sync::Arc;

use os::Device;

use crate::double_write::DoubleWrite;
use crate::error::{Error, Result};
use crate::page::{PAGE_BYTES, PageId};
use crate::page_store::PageStore;

/// The data file and its double-write file.
pub struct DataFile {
    data: Arc<dyn Device>,
    double_write: DoubleWrite,
    /// Pages with headers of a batch that is in the double-write file but may not be in place.
    unsettled: Vec<PageId>,
}

impl DataFile {
    pub fn new(data: Arc<dyn Device>, double_write: DoubleWrite) -> DataFile {
        DataFile { data, double_write, unsettled: Vec::new() }
    }

    /// Writes pages in place, adjacent ones in one write, and syncs. Their bytes begin at the second block.
    fn write_in_place(&self, blocks: &[u8], pages: &[PageId]) -> Result<()> {
        let bytes = &blocks[PAGE_BYTES..];
        let mut writes: Vec<(u64, &[u8])> = Vec::new();
        let mut start = 0;
        for at in 1..=pages.len() {
            if at == pages.len() || pages[at] != pages[at - 1] + 1 {
                writes.push((pages[start] * PAGE_BYTES as u64, &bytes[start * PAGE_BYTES..at * PAGE_BYTES]));
                start = at;
            }
        }
        self.data.write_many(&writes).map_err(|error| Error::io("writing pages", error))?;
        self.data.sync().map_err(|error| Error::io("syncing the data file", error))
    }
}

impl PageStore for DataFile {
    fn settle(&mut self, blocks: &[u8]) -> Result<()> {
        if !self.unsettled.is_empty() {
            self.write_in_place(blocks, &self.unsettled)?;
            self.unsettled.clear();
        }
        Ok(())
    }

    fn write_batch(&mut self, blocks: &mut [u8], pages: &[PageId], with_header: usize) -> Result<()> {
        let (headed, units) = pages.split_at(with_header);
        self.double_write.write(blocks, headed, units.iter().copied())?;
        let result = self.write_in_place(blocks, pages);
        if result.is_err() {
            self.unsettled.extend(headed);
        }
        result
    }
}
