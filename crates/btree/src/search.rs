//! The descent: from the root to the node that covers a key.
//!
//! Optimistic: no latch. Each step reads the child's version before it validates the parent again; so at one moment both were as seen, and the child is the
//! right one (BT-6). The child's fences then need no check, unless a split to its right is not posted yet.
//! Latched: one shared latch at a time (BT-4). Between releasing the parent and latching the child anything may happen, so the fences are always compared:
//! below the low fence the descent restarts, at or above the high one it moves right.

use std::cmp::Ordering;

use pager::{Exclusive, Optimistic, PageId, PageRef, Result, Shared};

use crate::node::{Found, Node, Words};
use crate::tree::{LatchMode, ReadMode, Tree, let_others_run};

/// Failed optimistic tries after which latches are taken.
pub(crate) const TRIES_MAX: usize = 8;
/// Moves to the right after which an optimistic descent assumes a torn page.
const MOVES_MAX: usize = 64;
/// Moves to the right under latches that only a damaged chain requires.
const LATCHED_MOVES_MAX: usize = 1 << 20;

/// The target of a descent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seek<'k> {
    /// The node that covers this key.
    At(&'k [u8]),
    /// The node that covers the greatest keys below this one.
    Before(&'k [u8]),
    /// The last node.
    Last,
    /// A node that covers a part of the range `from <= key < to`, chosen by `draw`.
    Random { from: &'k [u8], to: Option<&'k [u8]>, draw: u64 },
}

impl Seek<'_> {
    /// Returns whether the node ends before the target.
    fn is_beyond(self, node: Node<impl Words>) -> bool {
        match self {
            Seek::At(key) => node.compare_high(key) != Ordering::Greater,
            Seek::Before(key) => node.compare_high(key) == Ordering::Less,
            Seek::Last => !node.is_last(),
            Seek::Random { from, .. } => node.compare_high(from) != Ordering::Greater,
        }
    }

    /// Returns whether the node begins after the target.
    fn is_behind(self, node: Node<impl Words>) -> bool {
        match self {
            Seek::At(key) => node.compare_low(key) == Ordering::Greater,
            Seek::Before(key) => node.compare_low(key) != Ordering::Less,
            Seek::Last => false,
            Seek::Random { to, .. } => to.is_some_and(|to| node.compare_low(to) != Ordering::Less),
        }
    }

    #[inline(always)]
    fn child(self, node: Node<impl Words>) -> usize {
        match self {
            Seek::At(key) => node.child_at(key),
            Seek::Before(key) => node.child_before(key),
            Seek::Last => node.count().saturating_sub(1),
            Seek::Random { from, to, draw } => {
                let (first, last) = node.children_of(from, to);
                // Each level uses other bits of the number.
                let draw = draw.rotate_left(17 * u32::from(node.level())) >> 16;
                first + (draw % (last.saturating_sub(first) as u64 + 1)) as usize
            }
        }
    }
}

/// Parameters and findings of a descent.
#[derive(Default)]
pub(crate) struct Descent {
    /// Pages that the caller holds under X. Only a damaged pointer leads to them, and waiting there would never end.
    pub(crate) held: [PageId; 2],
    /// A split on the way whose second step is missing. A writer completes it afterwards (BT-5).
    pub(crate) incomplete: Option<PageId>,
    pub(crate) read_mode: ReadMode,
}

impl Descent {
    /// Returns the parameters of a descent to a parent of the pages `held`.
    pub(crate) fn above(held: [PageId; 2]) -> Descent {
        Descent { held, ..Descent::default() }
    }
}

/// A page under a shared or exclusive latch.
pub(crate) enum LatchedPage<'p> {
    Shared(Shared<'p>),
    Exclusive(Exclusive<'p>),
}

impl LatchedPage<'_> {
    pub(crate) fn pid(&self) -> PageId {
        match self {
            LatchedPage::Shared(guard) => guard.pid(),
            LatchedPage::Exclusive(guard) => guard.pid(),
        }
    }

    pub(crate) fn page(&self) -> PageRef<'_> {
        match self {
            LatchedPage::Shared(guard) => guard.page(),
            LatchedPage::Exclusive(guard) => guard.page(),
        }
    }
}

impl Tree {
    /// Reads one key and appends the value to `out`.
    pub fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<Found> {
        self.get_in_mode(ReadMode::MayRead, key, out)
    }

    /// Like `get`, with a read mode.
    pub fn get_in_mode(&self, read_mode: ReadMode, key: &[u8], out: &mut Vec<u8>) -> Result<Found> {
        let_others_run();
        let start = out.len();
        self.read(read_mode, Seek::At(key), |leaf| {
            out.truncate(start);
            leaf.get(key, out)
        })
    }

    /// Runs `visit` on the leaf of `seek` and returns a result that was consistent at one moment. `visit` may run several times, and on torn pages; such
    /// results are dropped.
    ///
    /// After eight failed tries the leaf is latched, and absent pages are read then, whatever `read_mode` says.
    #[inline]
    pub(crate) fn read<R>(
        &self,
        read_mode: ReadMode,
        seek: Seek<'_>,
        mut visit: impl FnMut(Node<PageRef<'_>>) -> R,
    ) -> Result<R> {
        if self.mode == LatchMode::Optimistic {
            for _ in 0..TRIES_MAX {
                let mut descent = Descent { read_mode, ..Descent::default() };
                let Some(leaf) = self.descend_optimistic(seek, 0, &mut descent)? else { continue };
                let result = visit(Node(leaf.page()));
                if leaf.validate() {
                    return Ok(result);
                }
            }
        }
        match self.descend_latched(seek, 0, false, &mut Descent::default())? {
            LatchedPage::Shared(leaf) => Ok(visit(Node(leaf.page()))),
            LatchedPage::Exclusive(_) => unreachable!("asked for a shared latch"),
        }
    }

    /// Like `read`, on the leaf that a right link named some time ago, if it begins at `low` (BT-10). `None` if it does not or cannot be read: the
    /// caller descends.
    pub(crate) fn read_right_neighbour<R>(
        &self,
        read_mode: ReadMode,
        leaf: PageId,
        low: &[u8],
        mut visit: impl FnMut(Node<PageRef<'_>>) -> R,
    ) -> Option<R> {
        if self.mode != LatchMode::Optimistic {
            return None;
        }
        let view = self.page(read_mode, leaf).ok()?;
        let node = Node(view.page());
        if !node.is_of(self.id, 0) || node.compare_low(low) != Ordering::Equal {
            return None;
        }
        let result = visit(node);
        view.validate().then_some(result)
    }

    /// Returns the node at `level` that `seek` leads to, under the exclusive latch and verified.
    pub(crate) fn exclusive(&self, seek: Seek<'_>, level: u8, descent: &mut Descent) -> Result<Exclusive<'_>> {
        if self.mode == LatchMode::Optimistic {
            for _ in 0..TRIES_MAX {
                let Some(node) = self.descend_optimistic(seek, level, descent)? else { continue };
                if let Some(guard) = node.upgrade() {
                    self.verify_node(&guard)?;
                    let node = Node(guard.page());
                    if cfg!(debug_assertions) && (seek.is_beyond(node) || seek.is_behind(node)) {
                        return Err(
                            self.corrupt(guard.pid(), "BT-6: a descent ended at a node that does not cover its key")
                        );
                    }
                    return Ok(guard);
                }
            }
        }
        match self.descend_latched(seek, level, true, descent)? {
            LatchedPage::Exclusive(guard) => Ok(guard),
            LatchedPage::Shared(_) => unreachable!("asked for an exclusive latch"),
        }
    }

    /// Does one optimistic descent. The node returned was the right one when its version was taken; `None` means that something changed on the way.
    #[inline]
    pub(crate) fn descend_optimistic(
        &self,
        seek: Seek<'_>,
        level: u8,
        descent: &mut Descent,
    ) -> Result<Option<Optimistic<'_>>> {
        let mut view = self.page(descent.read_mode, self.root)?;
        let mut node = Node(view.page());
        let mut expected = node.level();
        let mut moves = 0;
        loop {
            if !node.is_of(self.id, expected) {
                return Ok(None);
            }
            let incomplete = node.is_incomplete();
            if incomplete {
                descent.incomplete = Some(view.pid());
            }
            let next = if (incomplete || moves > 0) && seek.is_beyond(node) {
                moves += 1;
                if moves > MOVES_MAX {
                    return Ok(None);
                }
                node.right()
            } else if expected == level {
                return Ok(Some(view));
            } else if expected < level {
                return Ok(None);
            } else {
                moves = 0;
                expected -= 1;
                node.child(seek.child(node))
            };
            if !view.validate() {
                return Ok(None);
            }
            if descent.held.contains(&next) {
                return Err(self.corrupt(view.pid(), "BT-3: a pointer leads back down"));
            }
            self.pager.prefetch_lines(next, 4);
            let below = match self.page(descent.read_mode, next) {
                Ok(below) => below,
                Err(_) if !view.validate() => return Ok(None),
                Err(error) => return Err(error),
            };
            if !view.validate() {
                return Ok(None);
            }
            view = below;
            node = Node(view.page());
        }
    }

    fn page(&self, read_mode: ReadMode, pid: PageId) -> Result<Optimistic<'_>> {
        match read_mode {
            ReadMode::MayRead => self.pager.optimistic(pid),
            ReadMode::CachedOnly => self.pager.optimistic_cached(pid),
        }
    }

    /// Repeats latched descents until one arrives.
    pub(crate) fn descend_latched(
        &self,
        seek: Seek<'_>,
        level: u8,
        exclusive: bool,
        descent: &mut Descent,
    ) -> Result<LatchedPage<'_>> {
        loop {
            if let Some(held) = self.try_descend_latched(seek, level, exclusive, descent)? {
                return Ok(held);
            }
        }
    }

    /// Does one latched descent. `None` if a node was removed from the tree between reading the pointer to it and latching it.
    fn try_descend_latched(
        &self,
        seek: Seek<'_>,
        level: u8,
        exclusive: bool,
        descent: &mut Descent,
    ) -> Result<Option<LatchedPage<'_>>> {
        let acquire = |pid, at_target: bool| {
            Ok(if exclusive && at_target {
                LatchedPage::Exclusive(self.pager.exclusive(pid)?)
            } else {
                LatchedPage::Shared(self.pager.shared(pid)?)
            })
        };
        let mut pid = self.root;
        let mut held = acquire(pid, false)?;
        let mut expected = Node(held.page()).level();
        if expected == level && exclusive {
            drop(held);
            held = acquire(pid, true)?;
            if Node(held.page()).level() != level {
                return Ok(None);
            }
        }
        self.check_target(Node(held.page()), seek, expected).map_err(|what| self.corrupt(pid, what))?;
        if expected < level {
            return Err(self.corrupt(pid, "the root is lower than a node that needs a parent"));
        }
        let mut moves = 0;
        loop {
            let node = Node(held.page());
            if node.is_incomplete() {
                descent.incomplete = Some(pid);
            }
            let next = if seek.is_beyond(node) {
                moves += 1;
                if moves > LATCHED_MOVES_MAX {
                    return Err(self.corrupt(pid, "the chain of right links does not end"));
                }
                node.right()
            } else if expected == level {
                return Ok(Some(held));
            } else {
                expected -= 1;
                node.child(seek.child(node))
            };
            if descent.held.contains(&next) || next == pid {
                return Err(self.corrupt(pid, "BT-3: a pointer leads back"));
            }
            if let LatchedPage::Exclusive(_) = held {
                // A move to the right with the left neighbour still latched: nothing can happen in between.
                held = acquire(next, true)?;
                pid = next;
                self.check_target(Node(held.page()), seek, expected).map_err(|what| self.corrupt(pid, what))?;
                continue;
            }
            // This view is taken under the latch, so it is of the page that holds the pointer.
            let pointer = self.pager.optimistic(pid)?;
            drop(held);
            held = match acquire(next, expected == level) {
                Ok(held) => held,
                Err(_) if !pointer.validate() => return Ok(None),
                Err(error) => return Err(error),
            };
            pid = next;
            if let Err(what) = self.check_target(Node(held.page()), seek, expected) {
                // A pointer that still validates leads to a node that is still in the tree.
                return if pointer.validate() { Err(self.corrupt(pid, what)) } else { Ok(None) };
            }
        }
    }

    /// Checks a latched node as the destination of a pointer. `Err` names the problem.
    fn check_target(&self, node: Node<PageRef<'_>>, seek: Seek<'_>, level: u8) -> Result<(), &'static str> {
        node.verify(self.id)?;
        if node.level() != level {
            return Err("a pointer leads to a node of another level");
        }
        if seek.is_behind(node) {
            return Err("a pointer leads to a node of greater keys");
        }
        Ok(())
    }

    /// Verifies the records of a latched node before it is rebuilt from itself.
    pub(crate) fn verify_records(&self, page: &Exclusive<'_>) -> Result<()> {
        Node(page.page()).verify_records().map_err(|what| self.corrupt(page.pid(), what))
    }
}
