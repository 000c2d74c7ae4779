//! Buffers for direct I/O, which requires aligned memory.

const ALIGNMENT: usize = 4096;

/// A zeroed buffer of fixed size whose address is a multiple of 4,096.
pub struct Aligned {
    /// The buffer and up to `ALIGNMENT - 1` bytes before it. A vector and no boxed slice: the kernel may write into the memory while this value moves (OS-3).
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// Allocates a buffer of `len` bytes.
    pub fn with_capacity(len: usize) -> Aligned {
        let bytes = vec![0; len + ALIGNMENT - 1];
        let start = bytes.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        Aligned { bytes, start, len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_of_the_size_asked_for() {
        for len in [0, 1, 4096, 100_000] {
            let buffer = Aligned::with_capacity(len);
            assert_eq!(buffer.as_slice().as_ptr().addr() % ALIGNMENT, 0);
            assert_eq!((buffer.len(), buffer.as_slice().len()), (len, len));
            assert!(buffer.as_slice().iter().all(|byte| *byte == 0));
        }
    }
}
