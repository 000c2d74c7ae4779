//! How much stack the calling thread has left.
//!
//! Code that recurses over input from a client asks before it descends, and returns an error instead of overflowing the stack (SX-6). A thread that serves clients registers the size of its stack with
//! `register`. Any other thread is assumed to have `UNREGISTERED` bytes below its first question, which is half of Rust's default.
//!
//! The lowest address that was asked about is recorded, so that the owner of the thread can return pages to the kernel that a single deep statement has touched.

use std::cell::Cell;

/// Reserved at either end of a registered stack: thread-local storage and the guard page, and frames of code that does not ask.
const MARGIN: usize = 128 << 10;
const UNREGISTERED: usize = 1 << 20;

#[derive(Clone, Copy)]
struct Bounds {
    /// No frame may reach below this address; 0 means not known yet.
    end: usize,
    /// The address at which the stack was registered or the first question was asked.
    top: usize,
    /// The lowest address that was asked about since the last `take_high_water`.
    low: usize,
}

thread_local! {
    static BOUNDS: Cell<Bounds> = const { Cell::new(Bounds { end: 0, top: 0, low: usize::MAX }) };
}

/// Returns the address of a local variable of this call.
#[inline]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

/// Registers the size of the calling thread's stack. Called from the first function of the thread.
pub fn register(size: usize) {
    let top = here();
    BOUNDS.set(Bounds { end: top.saturating_sub(size.saturating_sub(MARGIN)), top, low: usize::MAX });
}

/// Returns the current address and the bounds, and records the address.
fn observe() -> (usize, Bounds) {
    let (here, mut bounds) = (here(), BOUNDS.get());
    if bounds.top == 0 {
        (bounds.top, bounds.end) = (here, here.saturating_sub(UNREGISTERED));
    }
    bounds.low = bounds.low.min(here);
    BOUNDS.set(bounds);
    (here, bounds)
}

/// Returns how many bytes of stack the calling thread may still use.
pub fn remaining() -> usize {
    let (here, bounds) = observe();
    here.saturating_sub(bounds.end)
}

/// Returns true if half of the stack is free.
#[inline]
pub fn is_half_free() -> bool {
    let (here, bounds) = observe();
    here.saturating_sub(bounds.end) >= (bounds.top - bounds.end) / 2
}

/// Returns true if the caller may use `bytes` of stack.
#[inline]
pub fn has_remaining(bytes: usize) -> bool {
    remaining() >= bytes
}

/// Records that the caller is about to use `bytes` of stack in code that does not ask.
pub fn note_use(bytes: usize) {
    let mut bounds = BOUNDS.get();
    bounds.low = bounds.low.min(here().saturating_sub(bytes));
    BOUNDS.set(bounds);
}

/// Returns how far below the caller's frame the stack has been used since the last call, as far as code asked or called `note_use`, and the address at which the stack ends. None if the stack was
/// neither registered nor asked about.
pub fn take_high_water() -> Option<(usize, usize)> {
    let (here, bounds) = (here(), BOUNDS.get());
    BOUNDS.set(Bounds { low: usize::MAX, ..bounds });
    (bounds.top > 0).then(|| (here.saturating_sub(bounds.low), bounds.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn descend(left: usize) -> usize {
        let local = std::hint::black_box([left; 64]);
        if !has_remaining(64 << 10) || left == 0 {
            return 0;
        }
        descend(left - 1) + usize::from(local[1] == left)
    }

    #[test]
    fn recursion_that_asks_ends_before_the_stack_does() {
        let size = 1 << 20;
        let deep = std::thread::Builder::new().stack_size(size).spawn(move || {
            register(size);
            let depth = descend(usize::MAX);
            (depth, take_high_water().expect("registered").0, take_high_water().expect("registered").0)
        });
        let (depth, low, after) = deep.unwrap().join().unwrap();
        assert!((500..1 << 14).contains(&depth), "{depth}");
        assert!((600 << 10..1 << 20).contains(&low), "{low}");
        assert_eq!(after, 0);
    }

    #[test]
    fn a_thread_that_did_not_register_has_some_room() {
        std::thread::spawn(|| assert!(has_remaining(UNREGISTERED - 4096) && !has_remaining(UNREGISTERED + 1)))
            .join()
            .unwrap();
    }
}
