//! The tree as its users hold it.

use std::sync::Arc;

use pager::{Error, Exclusive, Lsn, PageId, Pager, Result};

use crate::node;
use crate::node::edit::{Builder, Shape};

/// Names a tree in its pages and records.
pub type TreeId = u32;

/// How pages are looked at on the way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchMode {
    /// No latch until the leaf; versions are checked instead.
    Optimistic,
    /// Shared latches, one at a time: the plain B-link tree. The oracle in tests, and what eight failed tries fall back to.
    Latched,
}

/// A handle of one tree. Clones are handles of the same tree.
#[derive(Clone)]
pub struct Tree {
    pub(crate) pager: Arc<Pager>,
    pub(crate) id: TreeId,
    pub(crate) root: PageId,
    pub(crate) mode: LatchMode,
}

/// How far a read goes for a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMode {
    /// It waits until the page has come.
    #[default]
    MayRead,
    /// A page that is not in memory is `Error::PageMiss`.
    CachedOnly,
}

/// What a read of one key found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub present: bool,
    /// The record's version word; for an absent key the LSN of the leaf, which is at least that of its removal.
    pub word: u64,
}

/// Bit of a version word: the record was written inside a transaction.
pub const WORD_TXN: u64 = 1 << 63;

impl Tree {
    /// Longest key and value.
    pub const KEY_MAX: usize = node::limits(node::PAGE_WORDS).0;
    pub const VALUE_MAX: usize = node::limits(node::PAGE_WORDS).1;

    /// Makes an empty tree on a newly allocated page.
    pub fn create(pager: &Arc<Pager>, id: TreeId) -> Result<Tree> {
        Tree::create_sized(pager, id, None, node::PAGE_WORDS)
    }

    /// Makes an empty tree with its root on a page that the caller owns, such as `Pager::well_known`.
    pub fn create_at(pager: &Arc<Pager>, id: TreeId, root: PageId) -> Result<Tree> {
        Tree::create_sized(pager, id, Some(root), node::PAGE_WORDS)
    }

    /// Makes a tree that uses only the first `end` words of each page, so that few records already make it split. For tests; keys
    /// and values must then keep within `Tree::limits(end)`.
    pub fn create_sized(pager: &Arc<Pager>, id: TreeId, root: Option<PageId>, end: usize) -> Result<Tree> {
        assert!((node::END_MIN..=node::PAGE_WORDS).contains(&end));
        let mut mtr = pager.mtr();
        let root = match root {
            Some(root) => root,
            None => mtr.allocate(1, pager::NO_PAGE)?,
        };
        let page = mtr.fresh(root)?;
        let shape = Shape { tree: id, level: 0, flags: 0, end, low: &[], high: None, right: 0 };
        Builder::begin(&page, &shape).finish((0, 0));
        mtr.image(&page);
        mtr.commit();
        drop(page);
        Ok(Tree::open(pager, id, root))
    }

    /// A handle of an existing tree. Nothing is read.
    pub fn open(pager: &Arc<Pager>, id: TreeId, root: PageId) -> Tree {
        Tree { pager: pager.clone(), id, root, mode: LatchMode::Optimistic }
    }

    /// The same tree, looked at in another mode. Handles of both modes may be used side by side.
    pub fn with_latch_mode(mut self, mode: LatchMode) -> Tree {
        self.mode = mode;
        self
    }

    /// Longest key and value of a tree made with `create_sized(.., end)`.
    pub fn limits(end: usize) -> (usize, usize) {
        node::limits(end)
    }

    pub fn id(&self) -> TreeId {
        self.id
    }

    /// The root's page; it stays for the life of the tree.
    pub fn root(&self) -> PageId {
        self.root
    }

    pub fn pager(&self) -> &Arc<Pager> {
        &self.pager
    }

    pub(crate) fn corrupt(&self, pid: PageId, what: &str) -> Error {
        Error::corrupt_page(pid, format!("tree {}: {what}", self.id))
    }

    /// Under the latch of `page`: a sound node of this tree, or an error.
    pub(crate) fn verify_node(&self, page: &Exclusive<'_>) -> Result<()> {
        node::Node(page.page()).verify(self.id).map_err(|what| self.corrupt(page.pid(), what))
    }
}

/// The version word of a record that the mini-transaction ending at `lsn` wrote.
pub(crate) fn version_word(lsn: Lsn, in_txn: bool) -> u64 {
    debug_assert!(lsn & WORD_TXN == 0);
    lsn | if in_txn { WORD_TXN } else { 0 }
}
