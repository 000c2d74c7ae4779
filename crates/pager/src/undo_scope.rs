//! The scope of a rollback, per thread: inside it, reserved pages and WAL bytes may be used.

use std::cell::Cell;

thread_local! {
    static UNDO_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While this lives, its thread may allocate pages reserved for undo, whichever transaction reserved them.
pub struct UndoScope(());

impl UndoScope {
    pub(crate) fn enter() -> UndoScope {
        UNDO_DEPTH.set(UNDO_DEPTH.get() + 1);
        UndoScope(())
    }
}

impl Drop for UndoScope {
    fn drop(&mut self) {
        UNDO_DEPTH.set(UNDO_DEPTH.get() - 1);
    }
}

pub(crate) fn is_undoing() -> bool {
    UNDO_DEPTH.get() > 0
}
