//! How much stack the calling thread has left.
//!
//! Recursion over something a client wrote asks `has_remaining` before it descends, and answers an error instead of overflowing. A thread that serves clients registers its stack's size with
//! `register`; any other thread is assumed to have `UNREGISTERED` bytes below its first question, half of what Rust gives a thread by default.
//!
//! The lowest address that was asked about is kept, so that the owner of the thread can give pages back that a single deep statement has touched.

use std::cell::Cell;

/// Left over at either end of a registered stack: thread-local storage and the guard page above and below, frames of whoever does not ask.
const MARGIN: usize = 128 << 10;
const UNREGISTERED: usize = 1 << 20;

#[derive(Clone, Copy)]
struct Bounds {
    /// No frame may reach below; 0: not known yet.
    end: usize,
    /// Where the registered part begins, or the first question was asked.
    top: usize,
    /// The lowest address that was asked about since `take_high_water`.
    low: usize,
}

thread_local! {
    static BOUNDS: Cell<Bounds> = const { Cell::new(Bounds { end: 0, top: 0, low: usize::MAX }) };
}

/// The address of a local variable of this call.
#[inline]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

/// Says how large the calling thread's stack is. To be called from the first function of the thread.
pub fn register(size: usize) {
    let top = here();
    BOUNDS.set(Bounds { end: top.saturating_sub(size.saturating_sub(MARGIN)), top, low: usize::MAX });
}

fn ask() -> (usize, Bounds) {
    let (here, mut bounds) = (here(), BOUNDS.get());
    if bounds.top == 0 {
        (bounds.top, bounds.end) = (here, here.saturating_sub(UNREGISTERED));
    }
    bounds.low = bounds.low.min(here);
    BOUNDS.set(bounds);
    (here, bounds)
}

/// Bytes that the calling thread may still use.
pub fn remaining() -> usize {
    let (here, bounds) = ask();
    here.saturating_sub(bounds.end)
}

/// Is half of the stack free?
#[inline]
pub fn is_half_free() -> bool {
    let (here, bounds) = ask();
    here.saturating_sub(bounds.end) >= (bounds.top - bounds.end) / 2
}

/// May the caller use so many bytes of stack?
#[inline]
pub fn has_remaining(bytes: usize) -> bool {
    remaining() >= bytes
}

/// Notes that the caller is about to use so many bytes, in code that does not ask.
pub fn note_use(bytes: usize) {
    let mut bounds = BOUNDS.get();
    bounds.low = bounds.low.min(here().saturating_sub(bytes));
    BOUNDS.set(bounds);
}

/// How far below the caller's frame the stack has been used since the last call, as far as anything asked or was expected, and where the stack ends. None: it is not known.
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
