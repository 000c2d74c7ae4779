//! Ordered bytes on pages: a B-link tree with optimistic lock coupling. Start with README.md beside this crate.
#![forbid(unsafe_code)]

mod check;
mod count;
mod delete;
mod estimate;
mod insert;
mod leaf_hint;
#[cfg(all(test, loom))]
mod loom_model;
mod node;
mod patch;
pub mod redo;
mod scan;
mod search;
mod split;
mod tree;

pub use check::Report;
pub use delete::{Freed, RangeDelete};
pub use estimate::RangeEstimate;
pub use insert::{Change, Modified, OldRecord};
pub use leaf_hint::LeafHint;
pub use node::Found;
pub use patch::Patch;
pub use scan::{Batch, Entry, OwnedEntry, Scan, ScanState};
pub use tree::{LatchMode, ReadMode, Tree, TreeId, WORD_TXN};
