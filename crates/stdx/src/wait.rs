//! Announced waits: a thread that is about to block tells the owner of the thread.
//!
//! The owner of threads (the pool, a simulator) installs a hook in each of them. Code that is about to block holds the result of `announce` while it blocks. So the pool keeps enough threads
//! runnable, and the blocking code does not know that there is a pool (SX-5).
//!
//! There are two kinds of waits. A transient wait ends by itself (a disk read, a latch) and may always begin. A bounded wait lasts as long as a client likes (a lock, SLEEP). It needs one of
//! a limited number of wait slots, and must not begin without one: `try_announce`.
//!
//! The same owner may interrupt computations: `check_for_interrupts`.

use std::cell::Cell;

/// Why a thread waits. Each constant is defined where the wait happens.
#[derive(Debug)]
pub struct Reason {
    pub name: &'static str,
    /// Clients decide when the wait ends, so it takes a wait slot.
    pub is_bounded: bool,
}

impl Reason {
    /// Makes the reason of a transient wait, which ends by itself soon.
    pub const fn new(name: &'static str) -> Reason {
        Reason { name, is_bounded: false }
    }

    /// Makes the reason of a bounded wait, whose end a client decides: a SLEEP, or another session's lock.
    pub const fn bounded(name: &'static str) -> Reason {
        Reason { name, is_bounded: true }
    }
}

/// The beginning or the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Begin,
    End,
}

/// Called in the waiting thread just before and just after the wait. It returns false only at the beginning of a bounded wait: no wait slot is free, and the wait must not begin.
pub type Hook = fn(&'static Reason, Edge) -> bool;

thread_local! {
    static HOOK: Cell<Option<Hook>> = const { Cell::new(None) };
    static INTERRUPT_HOOK: Cell<Option<InterruptHook>> = const { Cell::new(None) };
    /// The number of announced waits that the thread is in.
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

/// Sets or clears the calling thread's hook.
pub fn install(hook: Option<Hook>) {
    HOOK.set(hook);
}

/// Called now and then in a thread that computes. It returns false if the computation must end.
pub type InterruptHook = fn() -> bool;

/// Sets or clears the calling thread's interrupt hook.
pub fn install_interrupt_hook(hook: Option<InterruptHook>) {
    INTERRUPT_HOOK.set(hook);
}

/// Calls the interrupt hook. A long computation calls it where it checks for cancellation. The owner of the thread may use the call to move work that the thread has not begun to other threads.
/// Returns false if the computation must end with an error, because all threads compute and none is left for others.
#[inline]
#[must_use = "a computation that must end ends with an error"]
pub fn check_for_interrupts() -> bool {
    INTERRUPT_HOOK.get().is_none_or(|hook| hook())
}

/// An announced wait. Dropping it ends the wait.
#[must_use = "the wait ends when this is dropped"]
pub struct Waiting {
    reason: &'static Reason,
    hook: Option<Hook>,
}

/// Announces a transient wait. Panics if `reason` is bounded.
pub fn announce(reason: &'static Reason) -> Waiting {
    assert!(!reason.is_bounded, "the wait {} is bounded and needs a wait slot", reason.name);
    let hook = HOOK.get();
    if let Some(hook) = hook {
        hook(reason, Edge::Begin);
    }
    WAITS.set(WAITS.get() + 1);
    Waiting { reason, hook }
}

/// Announces a wait that may be bounded. Returns None if it must not begin, because as many threads wait as are allowed to.
pub fn try_announce(reason: &'static Reason) -> Option<Waiting> {
    let hook = HOOK.get();
    if hook.is_some_and(|hook| !hook(reason, Edge::Begin)) {
        return None;
    }
    WAITS.set(WAITS.get() + 1);
    Some(Waiting { reason, hook })
}

/// Marks the calling thread of a pool as idle: it blocks because it has no work, not inside a request. No hook is called.
#[must_use = "the thread is idle until this is dropped"]
pub fn idle() -> Idle {
    WAITS.set(WAITS.get() + 1);
    Idle(())
}

/// An idle period. Dropping it ends the period.
pub struct Idle(());

impl Drop for Idle {
    fn drop(&mut self) {
        WAITS.set(WAITS.get() - 1);
    }
}

/// Panics in a debug build if a thread of a pool is about to block in a wait that it has not announced (SX-5).
#[inline]
pub(crate) fn assert_announced() {
    debug_assert!(
        HOOK.get().is_none() || WAITS.get() > 0,
        "SX-5: a thread of the pool blocks in a wait that is not announced"
    );
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITS.set(WAITS.get() - 1);
        if let Some(hook) = self.hook {
            hook(self.reason, Edge::End);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static SEEN: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    }
    static REASON: Reason = Reason::new("test");

    #[test]
    fn a_hook_is_called_at_both_edges_in_its_own_thread() {
        install(Some(|reason, edge| {
            assert_eq!(reason.name, "test");
            let (begun, ended) = SEEN.get();
            SEEN.set(if edge == Edge::Begin { (begun + 1, ended) } else { (begun, ended + 1) });
            true
        }));
        {
            let _outer = announce(&REASON);
            assert_eq!(SEEN.get(), (1, 0));
            std::thread::spawn(|| drop(announce(&REASON))).join().unwrap();
        }
        install(None);
        drop(announce(&REASON));
        assert_eq!(SEEN.get(), (1, 1));
    }

    #[test]
    fn a_bounded_wait_without_a_slot_does_not_begin() {
        static BOUNDED: Reason = Reason::bounded("test");
        install(Some(|_, edge| edge == Edge::End));
        assert!(try_announce(&BOUNDED).is_none());
        install(None);
        assert!(try_announce(&BOUNDED).is_some());
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_thread_of_a_pool_must_announce_what_it_blocks_in() {
        let blocks = |prepare: fn() -> Option<Waiting>| {
            std::thread::spawn(move || {
                let _waiting = prepare();
                let (lock, condvar) = (crate::sync::Mutex::new(()), crate::sync::Condvar::new());
                drop(condvar.wait_timeout(lock.lock(), std::time::Duration::ZERO));
            })
            .join()
            .is_ok()
        };
        assert!(blocks(|| None), "a thread without a pool may block");
        assert!(!blocks(|| {
            install(Some(|_, _| true));
            None
        }));
        assert!(blocks(|| {
            install(Some(|_, _| true));
            Some(announce(&REASON))
        }));
    }
}
