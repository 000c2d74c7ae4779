//! Ordered bytes on pages: a B-link tree with optimistic lock coupling. Start with README.md beside this crate.
#![forbid(unsafe_code)]

// In the order to read them in.
mod node;
mod search;
mod insert;
mod split;
mod delete;
mod scan;
pub mod redo;
mod check;
mod tree;

pub use check::Report;
pub use delete::{Freed, Purge};
pub use insert::{Change, Done, Old};
pub use scan::{Batch, Entry, Hit, Scan};
pub use tree::{Found, Mode, Tree, TreeId, WORD_TXN};

/// First byte of every page of a tree.
pub(crate) const PAGE_KIND: u8 = pager::page::kind::TREE;
