//! What could have been in std.
pub mod counter;
pub mod histogram;
pub mod padded;
pub mod prng;
pub mod slot;
pub mod sync;
pub mod wait;
pub mod watermark;

/// Asks for the cache line of `value`.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect on memory; the address is that of a live value.
    unsafe {
        std::arch::x86_64::_mm_prefetch(std::ptr::from_ref(value).cast(), std::arch::x86_64::_MM_HINT_T0)
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
