//! The scope in which a thread undoes.

use std::cell::Cell;

thread_local! {
    static UNDO_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, its thread may take pages that are put aside, whoever did it.
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
