//! Memory that direct I/O accepts.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const ALIGNMENT: usize = 4096;

/// A buffer of fixed size, zero at birth, whose address is a multiple of 4,096.
pub struct Aligned {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer is owned by this value alone, like a boxed slice.
unsafe impl Send for Aligned {}
// SAFETY: shared references only read.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// A buffer of `len` bytes.
    pub fn with_capacity(len: usize) -> Aligned {
        let layout = Aligned::layout(len);
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc_zeroed(layout) };
        Aligned { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), len }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len.max(1), ALIGNMENT).expect("a size that fits in memory")
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len` bytes were allocated, and zeroed, at `start`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated by `with_capacity` with this very layout.
        unsafe { dealloc(self.start.as_ptr(), Aligned::layout(self.len)) }
    }
}
