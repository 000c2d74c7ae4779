//! The context of the calling worker thread: its group, its progress, and whether it drains the group's local run queue.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::progress::Progress;
use crate::state::Group;

thread_local! {
    static GROUP: RefCell<Option<Arc<Group>>> = const { RefCell::new(None) };
    static PROGRESS: RefCell<Option<Arc<Progress>>> = const { RefCell::new(None) };
    /// The thread drains its group's local run queue, so it will look there again.
    static DRAINS: Cell<bool> = const { Cell::new(false) };
    /// Announced waits that the thread is in.
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

/// Sets the context of a thread that begins to work for `group`.
pub(crate) fn enter(group: Arc<Group>, progress: Arc<Progress>) {
    GROUP.set(Some(group));
    PROGRESS.set(Some(progress));
}

/// Clears the context.
pub(crate) fn leave() {
    PROGRESS.set(None);
    GROUP.set(None);
}

/// Calls `action` with the group of the calling thread. Returns None in other threads.
pub(crate) fn with_group<T>(action: impl FnOnce(&Arc<Group>) -> T) -> Option<T> {
    GROUP.with_borrow(|group| group.as_ref().map(action))
}

/// Calls `action` with the progress of the calling thread. Returns None in other threads.
pub(crate) fn with_progress<T>(action: impl FnOnce(&Progress) -> T) -> Option<T> {
    PROGRESS.with_borrow(|progress| progress.as_ref().map(|progress| action(progress)))
}

/// Records that the calling thread begins a piece of work.
pub(crate) fn begin_work() {
    record(Progress::begin);
}

/// Records that the calling thread is about to wait.
pub(crate) fn begin_rest() {
    record(Progress::rest);
}

fn record(step: fn(&Progress) -> bool) {
    if with_progress(step) == Some(true) {
        with_group(|group| group.workers.unstuck());
    }
}

pub(crate) fn set_draining(drains: bool) {
    DRAINS.set(drains);
}

pub(crate) fn begin_wait() {
    WAITS.set(WAITS.get() + 1);
}

pub(crate) fn end_wait() {
    WAITS.set(WAITS.get() - 1);
}

/// Returns true if the calling thread drains the local run queue of `group` and is in no announced wait, so that it will run work that it adds there (RE-14).
pub(crate) fn drains_local_queue_of(group: &Group) -> bool {
    DRAINS.get() && WAITS.get() == 0 && with_group(|own| std::ptr::eq(&**own, group)) == Some(true)
}
