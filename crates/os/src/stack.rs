//! The pages of a thread's stack: which of them are small pages, and which of them the kernel may take back.

use rustix::mm::Advice;

/// Bytes below the caller's frame that are kept, for the calls of this module and for a signal handler (OS-5).
const KEPT: usize = 64 << 10;
const PAGE: usize = 4096;

/// Returns the whole pages between `end` and the frames in use, as address and length.
fn below(end: usize) -> Option<(usize, usize)> {
    let local = 0_u8;
    let here = std::ptr::from_ref(std::hint::black_box(&local)).addr();
    let (from, to) = (end.next_multiple_of(PAGE), here.saturating_sub(KEPT) / PAGE * PAGE);
    (from < to).then_some((from, to - from))
}

/// Returns the unused pages of the calling thread's stack to the kernel. `end` is the lowest address of the stack, as `stdx::stack` reports it.
pub fn release(end: usize) {
    advise(end, Advice::LinuxDontNeed);
}

/// Requests small pages for the calling thread's stack. Where the kernel uses huge pages for every mapping that is large enough, each thread would begin with two megabytes.
pub fn small_pages(end: usize) {
    advise(end, Advice::LinuxNoHugepage);
}

fn advise(end: usize, advice: Advice) {
    let Some((from, len)) = below(end) else { return };
    if cfg!(miri) {
        return;
    }
    // SAFETY: OS-5: the range is part of the calling thread's own stack, between its end and KEPT bytes below the current frame. Stacks grow down and no other thread uses this one, so no
    // live value is there. A page that was returned reads as zeros when a later frame touches it.
    let _ = unsafe { rustix::mm::madvise(std::ptr::with_exposed_provenance_mut(from), len, advice) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn touch(left: usize) -> usize {
        let page = std::hint::black_box([1_u8; PAGE]);
        if left == 0 { 0 } else { touch(left - 1) + usize::from(page[left % PAGE]) }
    }

    fn resident() -> usize {
        let statm = std::fs::read_to_string("/proc/thread-self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[test]
    #[cfg_attr(miri, ignore)]
    fn pages_of_a_deep_call_are_given_back() {
        let size = 64 << 20;
        let thread = std::thread::Builder::new().stack_size(size).spawn(move || {
            stdx::stack::register(size);
            let (_, end) = stdx::stack::take_high_water().unwrap();
            small_pages(end);
            assert_eq!(touch(10_000), 10_000);
            let full = resident();
            release(end);
            assert!(resident() + 5000 < full, "{full} pages, then {}", resident());
            assert_eq!(touch(10_000), 10_000);
        });
        thread.unwrap().join().unwrap();
    }
}
