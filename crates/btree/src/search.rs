//! The way down: from the root to the node that covers a key.
//!
//! Optimistic: no latch. Each step reads the child's version before it checks the parent's once more; so at one moment both were as we
//! saw them, and the child is the right one (BT-6). Then the child's fences need no look, unless a split to its right is not posted yet.
//! Latched: one shared latch at a time (BT-4). Between letting go of the parent and holding the child anything may happen, so the fences
//! are always compared: below the low one means start again, at or above the high one means move right.

use std::cmp::Ordering;

use pager::{Exclusive, Optimistic, PageId, PageRef, Result, Shared};

use crate::node::{Node, Words};
use crate::tree::{Found, LatchMode, ReadMode, Tree};

/// Failed optimistic tries after which latches are taken.
pub(crate) const TRIES_MAX: usize = 8;
/// Steps to the right that an optimistic descent makes before it suspects rubbish.
const MOVES_MAX: usize = 64;
/// Steps to the right under latches that only a damaged chain needs.
const LATCHED_MOVES_MAX: usize = 1 << 20;

/// What a descent looks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seek<'k> {
    /// The node that covers this key.
    At(&'k [u8]),
    /// The node that covers the greatest keys below this one.
    Before(&'k [u8]),
    /// The last node.
    Last,
    /// Some node that has a part of the range `from <= key < to`; `draw` decides which.
    Random { from: &'k [u8], to: Option<&'k [u8]>, draw: u64 },
}

impl Seek<'_> {
    /// The node ends before what is sought.
    fn is_beyond(self, node: Node<impl Words>) -> bool {
        match self {
            Seek::At(key) => node.compare_high(key) != Ordering::Greater,
            Seek::Before(key) => node.compare_high(key) == Ordering::Less,
            Seek::Last => !node.is_last(),
            Seek::Random { from, .. } => node.compare_high(from) != Ordering::Greater,
        }
    }

    /// The node begins after what is sought.
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
                // Another part of the number decides on each level.
                let draw = draw.rotate_left(17 * u32::from(node.level())) >> 16;
                first + (draw % (last.saturating_sub(first) as u64 + 1)) as usize
            }
        }
    }
}

/// What a descent takes along and brings back.
#[derive(Default)]
pub(crate) struct Descent {
    /// Pages that the caller has under X already. Only a damaged pointer leads to them, and to wait there would be for ever.
    pub(crate) held: [PageId; 2],
    /// A split met on the way whose second step is missing; whoever changes the tree completes it afterwards (BT-5).
    pub(crate) incomplete: Option<PageId>,
    pub(crate) read_mode: ReadMode,
}

impl Descent {
    /// For a descent that goes above `held`.
    pub(crate) fn above(held: [PageId; 2]) -> Descent {
        Descent { held, ..Descent::default() }
    }
}

/// A page under either latch.
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
    /// Reads one key: appends the value to `out`.
    pub fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<Found> {
        self.get_in_mode(ReadMode::MayRead, key, out)
    }

    /// The same, going as far as `read_mode` says.
    pub fn get_in_mode(&self, read_mode: ReadMode, key: &[u8], out: &mut Vec<u8>) -> Result<Found> {
        let start = out.len();
        self.read(read_mode, Seek::At(key), |leaf| {
            out.truncate(start);
            leaf.get(key, out)
        })
    }

    /// Runs `look` on the leaf that `seek` leads to and returns what it saw there at one moment. `look` may run several times, and on
    /// rubbish whose result is then dropped.
    ///
    /// Who keeps failing takes latches in the end, and then waits for pages too, whatever `read_mode` says.
    #[inline]
    pub(crate) fn read<R>(
        &self,
        read_mode: ReadMode,
        seek: Seek<'_>,
        mut look: impl FnMut(Node<PageRef<'_>>) -> R,
    ) -> Result<R> {
        if self.mode == LatchMode::Optimistic {
            for _ in 0..TRIES_MAX {
                let mut walk = Descent { read_mode, ..Descent::default() };
                let Some(leaf) = self.descend_optimistic(seek, 0, &mut walk)? else { continue };
                let result = look(Node(leaf.page()));
                if leaf.validate() {
                    return Ok(result);
                }
            }
        }
        match self.descend_latched(seek, 0, false, &mut Descent::default())? {
            LatchedPage::Shared(leaf) => Ok(look(Node(leaf.page()))),
            LatchedPage::Exclusive(_) => unreachable!("asked for a shared latch"),
        }
    }

    /// The same of the leaf that somebody's right link named a while ago, if it begins at `low` (BT-10). None: it does not, or cannot be read; go down.
    pub(crate) fn read_right_neighbour<R>(
        &self,
        read_mode: ReadMode,
        leaf: PageId,
        low: &[u8],
        mut look: impl FnMut(Node<PageRef<'_>>) -> R,
    ) -> Option<R> {
        if self.mode != LatchMode::Optimistic {
            return None;
        }
        let sight = self.page(read_mode, leaf).ok()?;
        let node = Node(sight.page());
        if !node.is_of(self.id, 0) || node.compare_low(low) != Ordering::Equal {
            return None;
        }
        let result = look(node);
        sight.validate().then_some(result)
    }

    /// The node at `level` that `seek` leads to, under the exclusive latch and sound.
    pub(crate) fn exclusive(&self, seek: Seek<'_>, level: u8, walk: &mut Descent) -> Result<Exclusive<'_>> {
        if self.mode == LatchMode::Optimistic {
            for _ in 0..TRIES_MAX {
                let Some(node) = self.descend_optimistic(seek, level, walk)? else { continue };
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
        match self.descend_latched(seek, level, true, walk)? {
            LatchedPage::Exclusive(guard) => Ok(guard),
            LatchedPage::Shared(_) => unreachable!("asked for an exclusive latch"),
        }
    }

    /// One optimistic descent. The node returned was the right one when its version was taken; None means that something changed on the way.
    #[inline]
    pub(crate) fn descend_optimistic(
        &self,
        seek: Seek<'_>,
        level: u8,
        walk: &mut Descent,
    ) -> Result<Option<Optimistic<'_>>> {
        let mut sight = self.page(walk.read_mode, self.root)?;
        let mut node = Node(sight.page());
        let mut expected = node.level();
        let mut moves = 0;
        loop {
            if !node.is_of(self.id, expected) {
                return Ok(None);
            }
            let incomplete = node.is_incomplete();
            if incomplete {
                walk.incomplete = Some(sight.pid());
            }
            let next = if (incomplete || moves > 0) && seek.is_beyond(node) {
                moves += 1;
                if moves > MOVES_MAX {
                    return Ok(None);
                }
                node.right()
            } else if expected == level {
                return Ok(Some(sight));
            } else if expected < level {
                return Ok(None);
            } else {
                moves = 0;
                expected -= 1;
                node.child(seek.child(node))
            };
            if !sight.validate() {
                return Ok(None);
            }
            if walk.held.contains(&next) {
                return Err(self.corrupt(sight.pid(), "BT-3: a pointer leads back down"));
            }
            self.pager.prefetch_lines(next, 4);
            let below = match self.page(walk.read_mode, next) {
                Ok(below) => below,
                Err(_) if !sight.validate() => return Ok(None),
                Err(error) => return Err(error),
            };
            if !sight.validate() {
                return Ok(None);
            }
            sight = below;
            node = Node(sight.page());
        }
    }

    fn page(&self, read_mode: ReadMode, pid: PageId) -> Result<Optimistic<'_>> {
        match read_mode {
            ReadMode::MayRead => self.pager.optimistic(pid),
            ReadMode::CachedOnly => self.pager.optimistic_cached(pid),
        }
    }

    /// One latched descent after the other until one arrives.
    pub(crate) fn descend_latched(
        &self,
        seek: Seek<'_>,
        level: u8,
        exclusive: bool,
        walk: &mut Descent,
    ) -> Result<LatchedPage<'_>> {
        loop {
            if let Some(held) = self.try_descend_latched(seek, level, exclusive, walk)? {
                return Ok(held);
            }
        }
    }

    /// None if a node left the tree between reading the pointer to it and latching it.
    fn try_descend_latched(
        &self,
        seek: Seek<'_>,
        level: u8,
        exclusive: bool,
        walk: &mut Descent,
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
                walk.incomplete = Some(pid);
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
            if walk.held.contains(&next) || next == pid {
                return Err(self.corrupt(pid, "BT-3: a pointer leads back"));
            }
            if let LatchedPage::Exclusive(_) = held {
                // To the right, and the left neighbour is still held: nothing can happen in between.
                held = acquire(next, true)?;
                pid = next;
                self.check_target(Node(held.page()), seek, expected).map_err(|what| self.corrupt(pid, what))?;
                continue;
            }
            // This sight is taken under the latch, so it is of the very page that holds the pointer.
            let pointer = self.pager.optimistic(pid)?;
            drop(held);
            held = match acquire(next, expected == level) {
                Ok(held) => held,
                Err(_) if !pointer.validate() => return Ok(None),
                Err(error) => return Err(error),
            };
            pid = next;
            if let Err(what) = self.check_target(Node(held.page()), seek, expected) {
                // A pointer that still stands leads to a node that is still there.
                return if pointer.validate() { Err(self.corrupt(pid, what)) } else { Ok(None) };
            }
        }
    }

    /// What is wrong with a latched node as the destination of a pointer.
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

    /// Before a node is rebuilt from itself: its records must add up.
    pub(crate) fn verify_records(&self, page: &Exclusive<'_>) -> Result<()> {
        Node(page.page()).verify_records().map_err(|what| self.corrupt(page.pid(), what))
    }
}
