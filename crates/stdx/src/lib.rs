//! Small pieces that could have been in std. Anything new here must pass that one question. Start with README.md.

pub mod cache;
pub mod counter;
pub mod hash;
pub mod histogram;
pub mod memory;
pub mod padded;
pub mod parker;
pub mod prng;
pub mod stack;
pub mod sync;
pub mod thread_number;
pub mod wait;
pub mod watermark;

/// Prefetches the cache line of `value`.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes nothing but the cache, and the address is that of a live value.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
