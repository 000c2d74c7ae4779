//! Giving space back: removing whole ranges, and leaves that have become empty.
//!
//! A node R leaves the tree by being joined to its left neighbour N under the same parent P. N takes R's high fence and right link (and, for inner nodes,
//! its children), P loses R's separator, R is marked DELETED and its page is freed (BT-7). All of that is one mini-transaction, with N, R, P latched in
//! this order (BT-4). Only empty leaves are joined. Inner nodes are joined when both together fill at most three quarters of a node, which happens when
//! their leaves are gone. Two neighbours with different parents wait until those are joined.

use std::cmp::Ordering;

use pager::{Exclusive, PageId, Result};

use crate::node::edit::{Builder, Shape, Snapshot};
use crate::node::{DELETED, Node};
use crate::redo;
use crate::search::{Descent, Seek};
use crate::tree::Tree;

/// Outcome of an attempt to join two neighbours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    Done,
    /// The two have different parents.
    Cousins,
    Refused,
}

/// The removal of a range, done in steps. Nothing is latched between steps, and records inserted into the range meanwhile may stay.
pub struct RangeDelete<'t> {
    tree: &'t Tree,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    position: Vec<u8>,
    /// Records removed and pages freed so far.
    pub records: u64,
    pub pages: u64,
    /// `pages` when this pass began. Passes are repeated until one frees nothing: joining parents lets more leaves be joined.
    pages_before_pass: u64,
    is_done: bool,
}

/// Pages to free in the same mini-transaction as a record that names them.
#[derive(Default)]
pub struct Freed(Vec<(PageId, u32)>);

impl Freed {
    pub fn free(&mut self, first: PageId, pages: u32) {
        self.0.push((first, pages));
    }
}

/// Result of removing a range from one leaf, and the leaf's fences.
struct Erased {
    records: u64,
    is_empty: bool,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl Tree {
    /// Starts the removal of the records `from <= key < to` and of the leaves that become empty.
    pub fn delete_range(&self, from: &[u8], to: Option<&[u8]>) -> RangeDelete<'_> {
        RangeDelete {
            tree: self,
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
            position: from.to_vec(),
            records: 0,
            pages: 0,
            pages_before_pass: 0,
            is_done: to.is_some_and(|to| to <= from),
        }
    }

    /// Returns all pages of a tree that no other thread uses, so that the caller can free what `delete_range` has left.
    pub fn pages(&self) -> Result<Vec<PageId>> {
        let mut pages = Vec::new();
        let mut first = self.root;
        loop {
            let (mut pid, mut below) = (first, None);
            loop {
                if pages.contains(&pid) {
                    return Err(self.corrupt(pid, "BT-3: reached twice"));
                }
                pages.push(pid);
                let page = self.pager.shared(pid)?;
                let node = Node(page.page());
                node.verify(self.id).and_then(|()| node.verify_records()).map_err(|what| self.corrupt(pid, what))?;
                if pid == first && node.level() > 0 {
                    below = Some(node.child(0));
                }
                if node.high().is_none() {
                    break;
                }
                pid = node.right();
            }
            match below {
                Some(child) => first = child,
                None => return Ok(pages),
            }
        }
    }

    /// Joins the empty leaf that begins at `low` to its left neighbour if possible. Called after a delete; a failure is harmless.
    #[cold]
    pub(crate) fn unlink_empty_leaf(&self, low: &[u8]) -> Result<bool> {
        self.join_with_parents(low, 0)
    }

    fn join_with_parents(&self, low: &[u8], level: u8) -> Result<bool> {
        if low.is_empty() {
            return Ok(false);
        }
        match self.join(low, level)? {
            Join::Done => Ok(true),
            Join::Refused => Ok(false),
            Join::Cousins => Ok(self.join_with_parents(low, level + 1)? && self.join(low, level)? == Join::Done),
        }
    }

    /// Joins the node at `level` that begins at `low` to its left neighbour.
    fn join(&self, low: &[u8], level: u8) -> Result<Join> {
        let mut descent = Descent::default();
        let left = self.exclusive(Seek::Before(low), level, &mut descent)?;
        if left.pid() == self.root || Node(&left).compare_high(low) != Ordering::Equal {
            return Ok(Join::Refused);
        }
        if Node(&left).right() == left.pid() {
            return Err(self.corrupt(left.pid(), "BT-3: a right link leads back"));
        }
        let right = self.pager.exclusive(Node(&left).right())?;
        self.verify_node(&right)?;
        let (l, r) = (Node(&left), Node(&right));
        if l.is_incomplete() || r.is_incomplete() || r.level() != level || r.compare_low(low) != Ordering::Equal {
            return Ok(Join::Refused);
        }
        self.verify_records(&left)?;
        self.verify_records(&right)?;
        let fits =
            if level == 0 { r.count() == 0 && l.can_extend(r.high().as_deref()) } else { self.fits_in_one_node(l, r) };
        if !fits {
            return Ok(Join::Refused);
        }
        let parent = self.exclusive(Seek::At(low), level + 1, &mut Descent::above([left.pid(), right.pid()]))?;
        let p = Node(&parent);
        if p.compare_low(low) == Ordering::Equal {
            return Ok(Join::Cousins);
        }
        let Ok(index) = p.search(low) else {
            return Err(
                self.corrupt(parent.pid(), "a node without INCOMPLETE whose right neighbour is not in the parent")
            );
        };
        if p.child(index) != right.pid() {
            return Err(self.corrupt(parent.pid(), "a separator points to another child than the right link"));
        }
        if p.child(index - 1) != left.pid() {
            // The left node comes from an unfinished split: it is not in the parent yet (BT-5).
            drop((parent, right, left));
            self.complete_split(descent);
            return Ok(Join::Refused);
        }
        self.verify_records(&parent)?;
        self.unlink(&left, &right, &parent, low, index);
        Ok(Join::Done)
    }

    /// Does the join; everything has been checked.
    fn unlink(&self, left: &Exclusive<'_>, right: &Exclusive<'_>, parent: &Exclusive<'_>, low: &[u8], index: usize) {
        let (l, r, p) = (Node(left), Node(right), Node(parent));
        let mut mtr = self.pager.mtr();
        let (high, next) = (r.high(), r.right());
        if r.level() == 0 {
            l.extend(high.as_deref(), next);
            let high = high.as_deref().unwrap_or_default();
            mtr.record(left, redo::EXTEND, None, &[&redo::head(self.id, high.len(), 0), &next.to_le_bytes(), high]);
        } else {
            append_children(l, r, high.as_deref(), next);
            mtr.image(left);
        }
        p.remove(index);
        let head = redo::head(self.id, low.len(), 0);
        mtr.record(parent, redo::UNPOST, None, &[&head, &right.pid().to_le_bytes(), low]);
        r.set_flags(r.flags() | DELETED);
        mtr.record(right, redo::RETIRE, None, &[&redo::head(self.id, 0, 0)]);
        mtr.free(right.pid(), 1);
        mtr.commit();
    }

    /// Returns whether two inner neighbours would fill at most three quarters of a node.
    fn fits_in_one_node(&self, left: Node<&Exclusive<'_>>, right: Node<&Exclusive<'_>>) -> bool {
        let (low, high) = (left.low(), right.high());
        let shape = left.shape(&low, high.as_deref());
        let prefix = shape.prefix_len();
        left.words_with_prefix(prefix) + right.words_with_prefix(prefix) <= shape.room() / 4 * 3
    }

    /// Removes the records of one leaf that lie in the range.
    fn erase(&self, from: &[u8], to: Option<&[u8]>, mut each: impl FnMut(&[u8], &[u8], &mut Freed)) -> Result<Erased> {
        self.pager.admit()?;
        let mut descent = Descent::default();
        let leaf = self.exclusive(Seek::At(from), 0, &mut descent)?;
        self.verify_records(&leaf)?;
        let node = Node(&leaf);
        let (start, end) = node.range(from, to);
        if start < end {
            let mut freed = Freed::default();
            let mut value = Vec::new();
            for index in start..end {
                value.clear();
                node.push_value(index, &mut value);
                each(&node.key(index), &value, &mut freed);
            }
            let mut mtr = self.pager.mtr();
            for (first, pages) in freed.0 {
                mtr.free(first, pages);
            }
            // The bounds as this leaf has them: redo searches the first one in the page.
            let low = node.key(start);
            let (is_open, high) = (u64::from(to.is_none()), to.unwrap_or_default());
            let head = redo::head(self.id, low.len(), high.len());
            mtr.record(&leaf, redo::ERASE, None, &[&head, &is_open.to_le_bytes(), &low, high]);
            node.remove_range(start, end);
            mtr.commit();
        }
        let records = end.saturating_sub(start) as u64;
        let outcome = Erased { records, is_empty: node.count() == 0, low: node.low(), high: node.high() };
        drop(leaf);
        self.complete_split(descent);
        Ok(outcome)
    }
}

/// Appends the children of the right neighbour to the left node.
fn append_children(left: Node<&Exclusive<'_>>, right: Node<&Exclusive<'_>>, high: Option<&[u8]>, next: PageId) {
    let old = Snapshot::of(left);
    let old = old.node();
    let low = old.low();
    let mut builder = Builder::begin(left.0, &Shape { high, right: next, ..old.shape(&low, None) });
    for index in 0..old.count() {
        builder.append(old, index);
    }
    for index in 0..right.count() {
        builder.append(right, index);
    }
    builder.finish(old.insert_run());
}

impl RangeDelete<'_> {
    /// Works on up to `leaves` leaves. `each` gets key and value of every record before its removal and may free the pages that the record names.
    /// Returns true when the whole range is done.
    pub fn step(&mut self, leaves: usize, mut each: impl FnMut(&[u8], &[u8], &mut Freed)) -> Result<bool> {
        for _ in 0..leaves {
            if self.is_done {
                break;
            }
            let erased = self.tree.erase(&self.position, self.to.as_deref(), &mut each)?;
            self.records += erased.records;
            if erased.is_empty && self.tree.unlink_empty_leaf(&erased.low)? {
                self.pages += 1;
            }
            match erased.high {
                Some(high) if high <= self.position => {
                    return Err(self.tree.corrupt(self.tree.root, "BT-1: a leaf ends before it begins"));
                }
                Some(high) if self.to.as_ref().is_none_or(|to| high < *to) => self.position = high,
                _ if self.pages > self.pages_before_pass => {
                    self.pages_before_pass = self.pages;
                    self.position.clone_from(&self.from);
                }
                _ => self.is_done = true,
            }
        }
        Ok(self.is_done)
    }
}
