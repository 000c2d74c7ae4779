//! Ordered bytes on pages: a B-link tree with optimistic lock coupling. Start with README.md beside this crate.
//! Files in reading order: node, search, ahead, insert, split, delete, scan, estimate, redo, check.
#![forbid(unsafe_code)]

mod ahead;
mod check;
mod delete;
mod estimate;
mod insert;
#[cfg(all(test, loom))]
mod model;
mod node;
pub mod redo;
mod scan;
mod search;
mod split;
mod tree;

pub use ahead::Ahead;
pub use check::Report;
pub use delete::{Freed, Purge};
pub use estimate::Extent;
pub use insert::{Change, Done, Old};
pub use scan::{Batch, Entry, Hit, Scan, Span};
pub use tree::{Found, Mode, Reach, Tree, TreeId, WORD_TXN};

/// First byte of every page of a tree.
pub(crate) const PAGE_KIND: u8 = pager::page::kind::TREE;
