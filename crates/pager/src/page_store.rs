//! The seam between the cleaner and the storage of pages (docs/decisions/0037-three-seams-to-shared-storage.md).
//!
//! Pages are read through the buffer pool's `Device`, and written in batches through this trait. Storage that replaces a page as a whole needs no double write;
//! one that tears pages has to see to it that they can be restored.

use crate::error::Result;
use crate::page::PageId;

/// Where the pages of a database are written. One thread at a time uses it.
pub trait PageStore: Send {
    /// Completes the previous batch if its write has failed. `blocks` are still those of that batch.
    fn settle(&mut self, blocks: &[u8]) -> Result<()>;
    /// Writes a batch; it is durable on return. The bytes of the n-th of `pages` are block n + 1 of `blocks`; block 0 is the store's.
    ///
    /// The first `with_header` pages have a header and a checksum: a crash leaves each of them old or new. The others are units of values, which it may tear (PG-7).
    /// Each of both parts is in ascending order.
    fn write_batch(&mut self, blocks: &mut [u8], pages: &[PageId], with_header: usize) -> Result<()>;
}
