//! The handle of a tree: creating, opening, limits. The operations are in the files that the README lists.

use std::sync::Arc;

use pager::{Error, Exclusive, Lsn, PageId, Pager, Result};

use crate::node;
use crate::node::edit::{Builder, Shape};

/// Id of a tree in its pages and records.
pub type TreeId = u32;

/// How a descent protects the nodes it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchMode {
    /// Without a latch above the leaf: versions are validated instead.
    Optimistic,
    /// With shared latches, one at a time: the plain B-link tree. The oracle in tests, and the fallback after eight failed optimistic tries.
    Latched,
}

/// A handle of one tree. Clones refer to the same tree.
#[derive(Clone)]
pub struct Tree {
    pub(crate) pager: Arc<Pager>,
    pub(crate) id: TreeId,
    pub(crate) root: PageId,
    pub(crate) mode: LatchMode,
}

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMode {
    /// A page that is not in memory is read.
    #[default]
    MayRead,
    /// A page that is not in memory is `Error::PageMiss`.
    CachedOnly,
}

/// Bit of a version word: the record was written inside a transaction.
pub const WORD_TXN: u64 = 1 << 63;

/// Called at the beginning of each operation on records, without a latch (BT-12). It does not end the computation, since an undo must
/// go through; the layer above does that, with an error of its own.
#[inline]
pub(crate) fn let_others_run() {
    let _ = stdx::wait::check_for_interrupts();
}

impl Tree {
    /// Longest key and value, in bytes.
    pub const KEY_MAX: usize = node::limits(node::PAGE_WORDS).0;
    pub const VALUE_MAX: usize = node::limits(node::PAGE_WORDS).1;

    /// Creates an empty tree on a newly allocated page.
    pub fn create(pager: &Arc<Pager>, id: TreeId) -> Result<Tree> {
        Tree::create_sized(pager, id, None, node::PAGE_WORDS)
    }

    /// Creates an empty tree with its root on a page that the caller owns, such as `Pager::well_known`.
    pub fn create_at(pager: &Arc<Pager>, id: TreeId, root: PageId) -> Result<Tree> {
        Tree::create_sized(pager, id, Some(root), node::PAGE_WORDS)
    }

    /// Creates a tree that uses only the first `end` words of each page, so that few records make it split. For tests; keys and values must be within
    /// `Tree::limits(end)`.
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

    /// Opens an existing tree. Reads nothing.
    pub fn open(pager: &Arc<Pager>, id: TreeId, root: PageId) -> Tree {
        Tree { pager: pager.clone(), id, root, mode: LatchMode::Optimistic }
    }

    /// Returns the tree with another latch mode. Handles of both modes may be used at the same time.
    pub fn with_latch_mode(mut self, mode: LatchMode) -> Tree {
        self.mode = mode;
        self
    }

    /// Returns the longest key and value of a tree created with `create_sized(.., end)`.
    pub fn limits(end: usize) -> (usize, usize) {
        node::limits(end)
    }

    pub fn id(&self) -> TreeId {
        self.id
    }

    /// Returns the root's page, which stays the same for the life of the tree.
    pub fn root(&self) -> PageId {
        self.root
    }

    pub fn pager(&self) -> &Arc<Pager> {
        &self.pager
    }

    pub(crate) fn corrupt(&self, pid: PageId, what: &str) -> Error {
        Error::corrupt_page(pid, format!("tree {}: {what}", self.id))
    }

    /// Verifies that the latched page is a sound node of this tree.
    pub(crate) fn verify_node(&self, page: &Exclusive<'_>) -> Result<()> {
        node::Node(page.page()).verify(self.id).map_err(|what| self.corrupt(page.pid(), what))
    }
}

/// Returns the version word of a record written by the mini-transaction that ends at `lsn`.
pub(crate) fn version_word(lsn: Lsn, in_txn: bool) -> u64 {
    debug_assert!(lsn & WORD_TXN == 0);
    lsn | if in_txn { WORD_TXN } else { 0 }
}
