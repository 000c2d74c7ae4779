//! A thread that must wait says so.
//!
//! Whoever runs threads (the pool, a simulator) installs a hook in each; code that is about to sleep brackets the sleep with `announce`. So the pool can
//! keep enough threads runnable without the sleeper knowing that there is a pool.
//!
//! Two kinds of waits: a transient one ends by itself (a disk, a latch) and always may begin. A bounded one may last as long as others like (a lock, a SLEEP), so it needs one of a
//! limited number of wait slots, and whoever gets none must not wait: `try_announce`.

use std::cell::Cell;

/// Why a thread waits. The constants live where the wait happens; the pool only counts by name.
#[derive(Debug)]
pub struct Reason {
    pub name: &'static str,
    /// Others decide when the wait ends, so it takes a wait slot.
    pub is_bounded: bool,
}

impl Reason {
    /// Something that comes about by itself, soon.
    pub const fn new(name: &'static str) -> Reason {
        Reason { name, is_bounded: false }
    }

    /// Something that a client decides: its own SLEEP, or another session's lock.
    pub const fn bounded(name: &'static str) -> Reason {
        Reason { name, is_bounded: true }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Begin,
    End,
}

/// Called in the waiting thread, just before and just after. False, which only a bounded wait gets at its beginning: no wait slot is free, and there is no wait.
pub type Hook = fn(&'static Reason, Edge) -> bool;

thread_local! {
    static HOOK: Cell<Option<Hook>> = const { Cell::new(None) };
    static INTERRUPT_HOOK: Cell<Option<InterruptHook>> = const { Cell::new(None) };
    /// Announced waits that the thread is in.
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

/// Sets or clears the calling thread's hook.
pub fn install(hook: Option<Hook>) {
    HOOK.set(hook);
}

/// Called now and then in a thread that computes. False: the computation must end.
pub type InterruptHook = fn() -> bool;

/// Sets or clears what the calling thread does when it computes for long.
pub fn install_interrupt_hook(check_for_interrupts: Option<InterruptHook>) {
    INTERRUPT_HOOK.set(check_for_interrupts);
}

/// To be called where a long computation looks whether it was cancelled: whoever runs the thread may take from it what it has not begun yet. False: the computation must end with an error, for so many
/// others compute that no thread is left.
#[inline]
#[must_use = "a computation that must end ends with an error"]
pub fn check_for_interrupts() -> bool {
    INTERRUPT_HOOK.get().is_none_or(|check_for_interrupts| check_for_interrupts())
}

/// Lives as long as the wait.
#[must_use = "the wait ends when this is dropped"]
pub struct Waiting {
    reason: &'static Reason,
    hook: Option<Hook>,
}

/// Announces a transient wait.
pub fn announce(reason: &'static Reason) -> Waiting {
    assert!(!reason.is_bounded, "{} needs a wait slot", reason.name);
    let hook = HOOK.get();
    if let Some(hook) = hook {
        hook(reason, Edge::Begin);
    }
    WAITS.set(WAITS.get() + 1);
    Waiting { reason, hook }
}

/// Announces a bounded wait. None: it must not begin, because as many threads wait as may.
pub fn try_announce(reason: &'static Reason) -> Option<Waiting> {
    let hook = HOOK.get();
    if hook.is_some_and(|hook| !hook(reason, Edge::Begin)) {
        return None;
    }
    WAITS.set(WAITS.get() + 1);
    Some(Waiting { reason, hook })
}

/// The calling thread belongs to a pool and sleeps because it has nothing to do: no wait inside a request.
#[must_use = "the thread is idle until this is dropped"]
pub fn idle() -> Idle {
    WAITS.set(WAITS.get() + 1);
    Idle(())
}

pub struct Idle(());

impl Drop for Idle {
    fn drop(&mut self) {
        WAITS.set(WAITS.get() - 1);
    }
}

/// A debug build ends here if a thread of a pool is about to block in a wait that it has not announced.
#[inline]
pub(crate) fn assert_announced() {
    debug_assert!(
        HOOK.get().is_none() || WAITS.get() > 0,
        "a thread of the pool blocks in a wait that is not announced"
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
    fn a_hook_hears_both_edges_of_its_own_thread() {
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
                let (lock, bell) = (crate::sync::Mutex::new(()), crate::sync::Condvar::new());
                drop(bell.wait_timeout(lock.lock(), std::time::Duration::ZERO));
            })
            .join()
            .is_ok()
        };
        assert!(blocks(|| None), "no pool");
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
