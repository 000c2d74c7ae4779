//! A thread that must wait says so.
//!
//! Whoever runs threads (the pool, a simulator) installs a hook in each; code that is about to sleep brackets the sleep with `announce`. So the pool can
//! keep enough threads runnable without the sleeper knowing that there is a pool.

use std::cell::Cell;

/// Why a thread waits. The constants live where the wait happens; the pool only counts by name.
#[derive(Debug)]
pub struct Reason {
    pub name: &'static str,
    /// The wait ends only when another session's request has run, which needs a thread too; not by a disk or a clock.
    pub needs_others: bool,
}

impl Reason {
    /// Something that comes about by itself.
    pub const fn new(name: &'static str) -> Reason {
        Reason { name, needs_others: false }
    }

    /// Something that another session must do.
    pub const fn of_others(name: &'static str) -> Reason {
        Reason { name, needs_others: true }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Begin,
    End,
}

/// Called in the waiting thread, just before and just after.
pub type Hook = fn(&'static Reason, Edge);

thread_local! {
    static HOOK: Cell<Option<Hook>> = const { Cell::new(None) };
}

/// Sets or clears the calling thread's hook.
pub fn install(hook: Option<Hook>) {
    HOOK.set(hook);
}

/// Lives as long as the wait.
#[must_use = "the wait ends when this is dropped"]
pub struct Waiting {
    reason: &'static Reason,
    hook: Option<Hook>,
}

pub fn announce(reason: &'static Reason) -> Waiting {
    let hook = HOOK.get();
    if let Some(hook) = hook {
        hook(reason, Edge::Begin);
    }
    Waiting { reason, hook }
}

impl Drop for Waiting {
    fn drop(&mut self) {
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
}
