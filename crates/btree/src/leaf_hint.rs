//! Leaf hints: the leaves of many keys are located before the first of the keys is used.
//!
//! The keys descend side by side, one level at a time, so that their cache misses overlap. The result for each key is the leaf and its version, or the page
//! that has to be read first; nothing here waits for the disk. A later `get_with_hint` or `modify_with_hint` starts at the leaf: if its version has not
//! changed it still covers the key (BT-6), and the descent is saved. If it has changed, its fences tell (BT-10).

use std::cmp::Ordering;

use pager::{Error, Exclusive, Optimistic, PageId, PageStamp, ReadCallback, Result};

use crate::node::{Found, Node, Words};
use crate::search::{Descent, Seek, TRIES_MAX};
use crate::tree::{LatchMode, ReadMode, Tree};

/// Keys that descend side by side.
const GROUP: usize = 16;
/// Cache lines prefetched per page: a leaf's header and slots, an inner node's, a record.
const LEAF_LINES: usize = 4;
const INNER_LINES: usize = 13;
const RECORD_LINES: usize = 3;
/// Leaves of a range that are requested at once. Of a range without an end only the next ones, since it is unknown how far the reader will go.
const LEAVES_MAX: usize = 16;
const LEAVES_OPEN: usize = 2;

/// Where a key's leaf is.
#[derive(Clone, Copy, Debug, Default)]
pub enum LeafHint {
    /// Unknown: something changed during the descent.
    #[default]
    Unknown,
    /// The leaf that covered the key.
    Leaf(PageStamp),
    /// A page on the way to the leaf that is not in memory.
    Missing(PageId),
}

impl LeafHint {
    /// Returns the page that has to be read first.
    pub fn missing_page(self) -> Option<PageId> {
        if let LeafHint::Missing(page) = self { Some(page) } else { None }
    }
}

impl Tree {
    /// Appends one hint per key to `hints`, and prefetches the cache lines that reading the keys will touch.
    pub fn locate_leaves<K: AsRef<[u8]>>(&self, keys: &[K], hints: &mut Vec<LeafHint>) {
        for group in keys.chunks(GROUP) {
            let start = hints.len();
            hints.resize(start + group.len(), LeafHint::Unknown);
            self.locate_group(group, &mut hints[start..]);
        }
    }

    /// Reads the missing pages of the hints together: one wait.
    pub fn read_missing(&self, hints: &[LeafHint]) {
        let absent = absent(hints);
        if !absent.is_empty() {
            self.pager.prefetch_many(&absent);
        }
    }

    /// Starts reading the missing pages of the hints, and runs for each of them the next of `callbacks` when it is in memory. Does not wait.
    pub fn fetch_missing(&self, hints: &[LeafHint], callbacks: Vec<ReadCallback>) {
        self.pager.fetch(absent(hints).into_iter().zip(callbacks));
    }

    /// Returns the pages that reading `from <= key < to` needs first and that are not in memory: one inner page, or leaves at the start of the range
    /// (at its end if `is_backward`). Does not wait. The list is empty if they have come in meanwhile.
    pub fn missing_pages(&self, from: &[u8], to: Option<&[u8]>, is_backward: bool) -> Vec<PageId> {
        let seek = match to {
            _ if !is_backward => Seek::At(from),
            Some(to) => Seek::Before(to),
            None => Seek::Last,
        };
        for _ in 0..TRIES_MAX {
            let mut descent = Descent { read_mode: ReadMode::CachedOnly, ..Descent::default() };
            match self.descend_optimistic(seek, 1, &mut descent) {
                Err(Error::PageMiss(page)) => return vec![page],
                Err(_) => break,
                Ok(None) => {}
                Ok(Some(parent)) => {
                    let leaves = leaves_of(Node(parent.page()), from, to, is_backward);
                    if parent.validate() {
                        return leaves.into_iter().filter(|leaf| !self.pager.is_resident(*leaf)).collect();
                    }
                }
            }
        }
        Vec::new()
    }

    /// Like `get`, starting at the leaf of the hint.
    #[inline]
    pub fn get_with_hint(&self, hint: LeafHint, key: &[u8], out: &mut Vec<u8>) -> Result<Found> {
        match self.get_at_hint(hint, key, out)? {
            Some(found) => Ok(found),
            None if matches!(hint, LeafHint::Leaf(_)) => Ok(self.get_and_locate(hint, key, out)?.0),
            None => self.get(key, out),
        }
    }

    /// Reads one key, starting at the leaf of a hint that may be another key's. Appends the value to `out`, and returns where it was.
    pub fn get_and_locate(&self, hint: LeafHint, key: &[u8], out: &mut Vec<u8>) -> Result<(Found, LeafHint)> {
        let start = out.len();
        if self.mode == LatchMode::Optimistic {
            let mut hint = hint;
            for _ in 0..TRIES_MAX {
                let at_hint = self.leaf_around(std::mem::take(&mut hint), key);
                let leaf = match at_hint {
                    Some(leaf) => Some(leaf),
                    None => self.descend_optimistic(Seek::At(key), 0, &mut Descent::default())?,
                };
                let Some(leaf) = leaf else { continue };
                let found = Node(leaf.page()).get(key, out);
                if leaf.validate() {
                    return Ok((found, LeafHint::Leaf(leaf.stamp())));
                }
                out.truncate(start);
            }
        }
        Ok((self.get(key, out)?, LeafHint::Unknown))
    }

    /// Returns the page of the hint if it is in memory and is the leaf that covers the key now, whatever the hint was made for (BT-10). A value
    /// read there counts only if the view then validates.
    fn leaf_around(&self, hint: LeafHint, key: &[u8]) -> Option<Optimistic<'_>> {
        let LeafHint::Leaf(stamp) = hint else { return None };
        let leaf = self.pager.optimistic_cached(stamp.pid()).ok()?;
        let node = Node(leaf.page());
        (node.is_of(self.id, 0) && node.covers(key)).then_some(leaf)
    }

    /// Gets the record from the leaf of the hint. `None`: the leaf is unknown or has changed.
    #[inline]
    pub fn get_at_hint(&self, hint: LeafHint, key: &[u8], out: &mut Vec<u8>) -> Result<Option<Found>> {
        if let LeafHint::Leaf(stamp) = hint
            && let Some(leaf) = self.pager.revalidate(stamp)
        {
            let start = out.len();
            let found = Node(leaf.page()).get(key, out);
            let covers = !cfg!(debug_assertions) || Node(leaf.page()).covers(key);
            if leaf.validate() {
                if !covers {
                    return Err(self.corrupt(leaf.pid(), "BT-6: the leaf of a hint does not cover its key"));
                }
                return Ok(Some(found));
            }
            out.truncate(start);
        }
        Ok(None)
    }

    /// Returns the leaf of `key` under the exclusive latch, if the leaf of the hint still covers the key.
    pub(crate) fn exclusive_at(
        &self,
        hint: LeafHint,
        key: &[u8],
        descent: &mut Descent,
    ) -> Result<Option<Exclusive<'_>>> {
        let LeafHint::Leaf(stamp) = hint else { return Ok(None) };
        if self.mode != LatchMode::Optimistic {
            return Ok(None);
        }
        let view = self.pager.revalidate(stamp).or_else(|| self.leaf_around(hint, key));
        let Some(guard) = view.and_then(Optimistic::upgrade) else { return Ok(None) };
        self.verify_node(&guard)?;
        let leaf = Node(guard.page());
        if cfg!(debug_assertions) && !leaf.covers(key) {
            return Err(self.corrupt(guard.pid(), "BT-6: the leaf of a hint does not cover its key"));
        }
        if leaf.is_incomplete() {
            descent.incomplete = Some(guard.pid());
        }
        Ok(Some(guard))
    }

    fn locate_group<K: AsRef<[u8]>>(&self, keys: &[K], hints: &mut [LeafHint]) {
        let Ok(root) = self.pager.optimistic(self.root) else { return };
        let mut views = [Some(root); GROUP];
        for level in (1..=Node(root.page()).level()).rev() {
            let mut next = [0; GROUP];
            for (at, key) in keys.iter().enumerate() {
                let Some(view) = views[at] else { continue };
                match self.child_for(view, level, key.as_ref()) {
                    Some(child) => {
                        next[at] = child;
                        self.pager.prefetch_lines(child, if level == 1 { LEAF_LINES } else { INNER_LINES });
                    }
                    None => views[at] = None,
                }
            }
            for at in 0..keys.len() {
                let Some(parent) = views[at] else { continue };
                views[at] = None;
                if !self.pager.is_resident(next[at]) {
                    hints[at] = LeafHint::Missing(next[at]);
                } else if let Ok(child) = self.pager.optimistic(next[at])
                    && parent.validate()
                {
                    // Both were as seen at one moment (BT-6).
                    views[at] = Some(child);
                }
            }
        }
        for (at, key) in keys.iter().enumerate() {
            let Some(view) = views[at] else { continue };
            let leaf = Node(view.page());
            if leaf.is_of(self.id, 0) && !must_move_right(leaf, key.as_ref()) {
                let record = leaf.probable_offset(key.as_ref());
                (0..RECORD_LINES).for_each(|line| view.page().prefetch(record + line * 8));
                hints[at] = LeafHint::Leaf(view.stamp());
            }
        }
    }

    /// Returns the child of an inner node that covers `key`. `None` if something changed or the key moved right.
    #[inline]
    fn child_for(&self, view: Optimistic<'_>, level: u8, key: &[u8]) -> Option<PageId> {
        let node = Node(view.page());
        if !node.is_of(self.id, level) || must_move_right(node, key) {
            return None;
        }
        let child = node.child(node.child_at(key));
        view.validate().then_some(child)
    }
}

/// Returns the first leaves of the range in reading order. The page may be torn (BT-9).
fn leaves_of(parent: Node<impl Words>, from: &[u8], to: Option<&[u8]>, is_backward: bool) -> Vec<PageId> {
    let (first, last) = parent.children_of(from, to);
    let is_open = if is_backward { from.is_empty() } else { to.is_none() };
    let most = if is_open { LEAVES_OPEN } else { LEAVES_MAX };
    let count = (last + 1).saturating_sub(first).min(most);
    let at = |nth: usize| if is_backward { last - nth } else { first + nth };
    (0..count).map(|nth| parent.child(at(nth))).collect()
}

fn absent(hints: &[LeafHint]) -> Vec<PageId> {
    hints.iter().filter_map(|hint| hint.missing_page()).collect()
}

/// Returns whether the node has a split that its parent lacks, and the key belongs to the new half.
#[inline]
fn must_move_right(node: Node<impl Words>, key: &[u8]) -> bool {
    node.is_incomplete() && node.compare_high(key) != Ordering::Greater
}
