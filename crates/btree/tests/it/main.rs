//! The tree on a pager over a simulated disk: against a model, from many threads, across crashes.

mod count;
mod estimate;
mod faults;
mod model;
mod redo;
mod threads;

use std::sync::Arc;

use btree::{LatchMode, Tree};
use pager::{Background, NoObserver, Options, Pager, RedoTable};

/// Opens a fresh pager on `folder`.
pub fn open_pager(folder: Arc<os::SimFolder>, background: Background) -> Arc<Pager> {
    let options = Options {
        frame_bytes: 16 << 20,
        ring_bytes: 1 << 20,
        segment_bytes: 4 << 20,
        checkpoint_distance: 64 << 20,
        background,
        ..Options::default()
    };
    let redo = RedoTable::new().own(btree::redo::KINDS, btree::redo::redo());
    let clock = Arc::new(os::SimClock::new(1));
    Pager::open(folder, clock, options, redo, &mut NoObserver, 7, &|_| {}).expect("opens").pager
}

/// Creates a tree whose pages end at word `end`.
pub fn small_tree(pager: &Arc<Pager>, end: usize, mode: LatchMode) -> Tree {
    Tree::create_sized(pager, 3, None, end).expect("created").with_latch_mode(mode)
}

pub fn put(tree: &Tree, key: &[u8], value: &[u8]) -> u64 {
    tree.modify(key, None, |_, change| change.put(&[value])).expect("put").lsn
}

pub fn delete(tree: &Tree, key: &[u8]) -> bool {
    tree.modify(key, None, |old, change| {
        change.delete();
        old.is_some()
    })
    .expect("delete")
    .result
}

pub fn get(tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    tree.get(key, &mut out).expect("get").present.then_some(out)
}

#[track_caller]
pub fn assert_sound(tree: &Tree) -> btree::Report {
    let report = tree.check().expect("readable");
    assert!(report.is_sound(), "{:#?}", report.violations);
    report
}
