//! Many keys looked for at once, before the first of them is used.
//!
//! The keys go down side by side, a level at a time, so that their cache misses overlap. What comes out says for each key where its leaf is, as of which version,
//! or which page has to be read first; nothing here waits for the disk. A later `get_with_hint` or `modify_with_hint` begins at the leaf: if its version has not moved, it is
//! still the leaf that covers the key (BT-6), and the descent is saved.

use std::cmp::Ordering;

use pager::{Error, Exclusive, Optimistic, PageId, PageStamp, ReadCallback, Result};

use crate::node::Node;
use crate::search::{Descent, Seek, TRIES_MAX};
use crate::tree::{Found, LatchMode, ReadMode, Tree};

/// Keys that go down side by side.
const GROUP: usize = 16;
/// Cache lines of a page that a look begins with: a leaf's header and slots, an inner node's, and a record.
const LEAF_LINES: usize = 4;
const INNER_LINES: usize = 13;
const RECORD_LINES: usize = 3;
/// Leaves of a range that are asked for at once; of one that has no end, the next ones only, for nobody knows how far its reader goes.
const LEAVES_MAX: usize = 16;
const LEAVES_OPEN: usize = 2;

/// What is known of a key's leaf.
#[derive(Clone, Copy, Debug, Default)]
pub enum LeafHint {
    /// Nothing: something changed on the way.
    #[default]
    Unknown,
    /// The leaf that covered the key.
    Leaf(PageStamp),
    /// A page on the way to it that is not in memory.
    Missing(PageId),
}

impl LeafHint {
    /// The page that has to be read first.
    pub fn missing_page(self) -> Option<PageId> {
        if let LeafHint::Missing(page) = self { Some(page) } else { None }
    }
}

impl Tree {
    /// Appends to `ahead` what is known of each key's leaf, and asks for the cache lines that reading them will touch.
    pub fn locate_leaves<K: AsRef<[u8]>>(&self, keys: &[K], ahead: &mut Vec<LeafHint>) {
        for group in keys.chunks(GROUP) {
            let start = ahead.len();
            ahead.resize(start + group.len(), LeafHint::Unknown);
            self.locate_group(group, &mut ahead[start..]);
        }
    }

    /// Reads the pages that are absent for `ahead` together: waits once.
    pub fn read_missing(&self, ahead: &[LeafHint]) {
        let absent = absent(ahead);
        if !absent.is_empty() {
            self.pager.prefetch_many(&absent);
        }
    }

    /// Has the pages read that are absent for `ahead`, and calls for each of them one of `thens`, in order, when it is in memory. Does not wait.
    pub fn fetch_missing(&self, ahead: &[LeafHint], thens: Vec<ReadCallback>) {
        self.pager.fetch(absent(ahead).into_iter().zip(thens));
    }

    /// The pages that reading `from <= key < to` will want first and that are not in memory: a page on the way down, or leaves below the node that the range begins in (backward, ends in). Waits
    /// for nothing. None may be wanting, if they have come meanwhile.
    pub fn missing_pages(&self, from: &[u8], to: Option<&[u8]>, is_backward: bool) -> Vec<PageId> {
        let seek = match to {
            _ if !is_backward => Seek::At(from),
            Some(to) => Seek::Before(to),
            None => Seek::Last,
        };
        for _ in 0..TRIES_MAX {
            let mut walk = Descent { read_mode: ReadMode::CachedOnly, ..Descent::default() };
            match self.descend_optimistic(seek, 1, &mut walk) {
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

    /// `get` of a key of which `locate_leaves` said `ahead`.
    #[inline]
    pub fn get_with_hint(&self, ahead: LeafHint, key: &[u8], out: &mut Vec<u8>) -> Result<Found> {
        if let LeafHint::Leaf(remembered) = ahead
            && let Some(leaf) = self.pager.revalidate(remembered)
        {
            let start = out.len();
            let found = Node(leaf.page()).get(key, out);
            let covers = !cfg!(debug_assertions) || Node(leaf.page()).covers(key);
            if leaf.validate() {
                if !covers {
                    return Err(self.corrupt(leaf.pid(), "BT-6: the leaf remembered for a key does not cover it"));
                }
                return Ok(found);
            }
            out.truncate(start);
        }
        self.get(key, out)
    }

    /// The leaf of `key` under the exclusive latch, if nothing has changed in it since.
    pub(crate) fn exclusive_at(
        &self,
        ahead: LeafHint,
        key: &[u8],
        walk: &mut Descent,
    ) -> Result<Option<Exclusive<'_>>> {
        let LeafHint::Leaf(remembered) = ahead else { return Ok(None) };
        if self.mode != LatchMode::Optimistic {
            return Ok(None);
        }
        let Some(guard) = self.pager.revalidate(remembered).and_then(Optimistic::upgrade) else { return Ok(None) };
        self.verify_node(&guard)?;
        let leaf = Node(guard.page());
        if cfg!(debug_assertions) && !leaf.covers(key) {
            return Err(self.corrupt(guard.pid(), "BT-6: the leaf remembered for a key does not cover it"));
        }
        if leaf.is_incomplete() {
            walk.incomplete = Some(guard.pid());
        }
        Ok(Some(guard))
    }

    fn locate_group<K: AsRef<[u8]>>(&self, keys: &[K], ahead: &mut [LeafHint]) {
        let Ok(root) = self.pager.optimistic(self.root) else { return };
        let mut sights = [Some(root); GROUP];
        for level in (1..=Node(root.page()).level()).rev() {
            let mut next = [0; GROUP];
            for (at, key) in keys.iter().enumerate() {
                let Some(sight) = sights[at] else { continue };
                match self.child_for(sight, level, key.as_ref()) {
                    Some(child) => {
                        next[at] = child;
                        self.pager.prefetch_lines(child, if level == 1 { LEAF_LINES } else { INNER_LINES });
                    }
                    None => sights[at] = None,
                }
            }
            for at in 0..keys.len() {
                let Some(parent) = sights[at] else { continue };
                sights[at] = None;
                if !self.pager.is_resident(next[at]) {
                    ahead[at] = LeafHint::Missing(next[at]);
                } else if let Ok(child) = self.pager.optimistic(next[at])
                    && parent.validate()
                {
                    // Both were as seen at one moment (BT-6).
                    sights[at] = Some(child);
                }
            }
        }
        for (at, key) in keys.iter().enumerate() {
            let Some(sight) = sights[at] else { continue };
            let leaf = Node(sight.page());
            if leaf.is_of(self.id, 0) && !must_move_right(leaf, key.as_ref()) {
                let record = leaf.probable_offset(key.as_ref());
                (0..RECORD_LINES).for_each(|line| sight.page().prefetch(record + line * 8));
                ahead[at] = LeafHint::Leaf(sight.stamp());
            }
        }
    }

    /// The child of an inner node that covers `key`; None if something changed or the way leads to the right.
    #[inline]
    fn child_for(&self, sight: Optimistic<'_>, level: u8, key: &[u8]) -> Option<PageId> {
        let node = Node(sight.page());
        if !node.is_of(self.id, level) || must_move_right(node, key) {
            return None;
        }
        let child = node.child(node.child_at(key));
        sight.validate().then_some(child)
    }
}

/// The first leaves of the range, in the order in which they will be read. May meet rubbish (BT-9).
fn leaves_of(parent: Node<impl crate::node::Words>, from: &[u8], to: Option<&[u8]>, is_backward: bool) -> Vec<PageId> {
    let (first, last) = parent.children_of(from, to);
    let is_open = if is_backward { from.is_empty() } else { to.is_none() };
    let most = if is_open { LEAVES_OPEN } else { LEAVES_MAX };
    let count = (last + 1).saturating_sub(first).min(most);
    let at = |nth: usize| if is_backward { last - nth } else { first + nth };
    (0..count).map(|nth| parent.child(at(nth))).collect()
}

fn absent(ahead: &[LeafHint]) -> Vec<PageId> {
    ahead.iter().filter_map(|ahead| ahead.missing_page()).collect()
}

/// The node has split and its parent does not know yet, and the key went to the new half.
#[inline]
fn must_move_right(node: Node<impl crate::node::Words>, key: &[u8]) -> bool {
    node.is_incomplete() && node.compare_high(key) != Ordering::Greater
}
