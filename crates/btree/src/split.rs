//! Splits: making room in two steps, each of which leaves a correct tree.
//!
//! ```text
//!   before            P [ .. N .. ]          N [ a b c d e f ] -> R
//!   after step one    P [ .. N .. ]          N [ a b c | d ]! -> M [ d e f ] -> R        ! = SPLIT_INCOMPLETE
//!   after step two    P [ .. N d M .. ]      N [ a b c | d ]  -> M [ d e f ] -> R
//! ```
//! Step one is one mini-transaction: the image of M and "truncate N". Step two is another: "post (d, M)" in the parent and "clear" in N (BT-5). In between,
//! keys of M are found through N's right link. If N is split again meanwhile, the new node between N and M inherits the flag, since it is now the one whose
//! right neighbour is missing in the parent. The root keeps its page: its content moves to two new children.

use pager::{Exclusive, PageId, Result};

use crate::node::edit::{Builder, Room, Shape, Snapshot, separator};
use crate::node::{LEAF_HEAD, Node, Position, SPLIT_INCOMPLETE, Words, words_of};
use crate::redo;
use crate::search::{Descent, Seek};
use crate::tree::Tree;

/// Consecutive inserts, each directly after the previous one, that count as an ascending run.
const RUN_MIN: usize = 3;

/// Splits after which making room is given up: eight halvings suffice for a node with the most records possible, only damage needs more.
const SPLITS_MAX: usize = 16;

/// The nodes latched after making room: the one to change, and those whose right neighbours have to be posted.
pub(crate) struct SplitResult<'p> {
    pub target: Exclusive<'p>,
    pub unposted: Vec<Exclusive<'p>>,
}

/// The entry that needs room in a node.
#[derive(Clone, Copy)]
pub(crate) enum NewEntry<'k> {
    /// A leaf record: key, length of its value.
    Record(&'k [u8], usize),
    /// A child in an inner node, by its separator.
    Child(&'k [u8]),
}

impl<'k> NewEntry<'k> {
    fn key(self) -> &'k [u8] {
        match self {
            NewEntry::Record(key, _) | NewEntry::Child(key) => key,
        }
    }

    fn room(self, node: Node<impl Words>, place: Position) -> Room {
        match self {
            NewEntry::Record(key, value_len) => node.room(place, key, value_len),
            NewEntry::Child(key) => node.room_for_child(key),
        }
    }

    /// Returns the words of the new record with its slot.
    fn words(self, prefix: usize) -> usize {
        match self {
            NewEntry::Record(key, value_len) => 1 + LEAF_HEAD + words_of(key.len() - prefix) + words_of(value_len),
            NewEntry::Child(key) => 2 + words_of(key.len() - prefix),
        }
    }
}

impl Tree {
    /// Splits `node` until the entry has room, and returns the node where it has. All splits are in the WAL on return; the caller does their second
    /// steps with `post`. On an error nothing is lost: completed splits remain.
    pub(crate) fn make_room<'p>(&'p self, node: Exclusive<'p>, entry: NewEntry<'_>) -> Result<SplitResult<'p>> {
        let mut split = SplitResult { target: node, unposted: Vec::new() };
        for _ in 0..SPLITS_MAX {
            let node = Node(split.target.page());
            if entry.key().len() < node.prefix_len() {
                return Err(self.corrupt(split.target.pid(), "BT-1: the prefix is longer than a key"));
            }
            let place = node.search(entry.key());
            match entry.room(node, place) {
                Room::None => {}
                Room::Compacted => {
                    self.verify_records(&split.target)?;
                    return Ok(split);
                }
                Room::InPlace | Room::Gap => return Ok(split),
            }
            self.verify_records(&split.target)?;
            let Some(cut) = Cut::choose(node, place, entry) else {
                return Err(self.corrupt(split.target.pid(), "no room for a record in a node that cannot be split"));
            };
            let is_right = entry.key() >= cut.separator.as_slice();
            let (left, right) = if split.target.pid() == self.root {
                self.split_root(&split.target, &cut)?
            } else {
                let right = self.split(&split.target, &cut)?;
                (split.target, right)
            };
            let (target, other) = if is_right { (right, left) } else { (left, right) };
            if Node(other.page()).is_incomplete() {
                split.unposted.push(other);
            }
            split.target = target;
        }
        Err(self.corrupt(split.target.pid(), "splitting makes no room"))
    }

    /// Does step one. Returns the new right node.
    fn split<'p>(&'p self, left: &Exclusive<'p>, cut: &Cut) -> Result<Exclusive<'p>> {
        let mut mtr = self.pager.mtr();
        let pid = mtr.allocate(1, left.pid())?;
        let right = mtr.fresh(pid)?;
        self.build(&right, Node(left), cut, true, Node(left).flags() & SPLIT_INCOMPLETE, Node(left).right());
        Node(left).truncate(&cut.separator, pid);
        mtr.image(&right);
        let head = redo::head(self.id, cut.separator.len(), 0);
        mtr.record(left, redo::TRUNCATE, None, &[&head, &pid.to_le_bytes(), &cut.separator]);
        mtr.commit();
        Ok(right)
    }

    /// Makes the root the parent of two new nodes that share its records: both steps at once. Returns the two.
    fn split_root<'p>(&'p self, root: &Exclusive<'p>, cut: &Cut) -> Result<(Exclusive<'p>, Exclusive<'p>)> {
        let mut mtr = self.pager.mtr();
        let left_pid = mtr.allocate(1, root.pid())?;
        let right_pid = mtr.allocate(1, left_pid)?;
        let left = mtr.fresh(left_pid)?;
        let right = mtr.fresh(right_pid)?;
        self.build(&left, Node(root), cut, false, 0, right_pid);
        self.build(&right, Node(root), cut, true, 0, 0);
        let old = Node(root);
        let level = old.level() + 1;
        let mut builder = Builder::begin(root, &Shape { level, flags: 0, ..old.shape(&[], None) });
        builder.child(&[], left_pid);
        builder.child(&cut.separator, right_pid);
        builder.finish((0, 0));
        mtr.image(&left);
        mtr.image(&right);
        mtr.image(root);
        mtr.commit();
        Ok((left, right))
    }

    /// Writes one side of `node` to a fresh page.
    fn build(
        &self,
        page: &Exclusive<'_>,
        node: Node<&Exclusive<'_>>,
        cut: &Cut,
        is_right: bool,
        flags: u16,
        right: PageId,
    ) {
        let snapshot = Snapshot::of(node);
        let old = snapshot.node();
        let (low, high) = (old.low(), old.high());
        let shape = if is_right {
            Shape { flags, right, ..old.shape(&cut.separator, high.as_deref()) }
        } else {
            Shape { flags, right, ..old.shape(&low, Some(&cut.separator)) }
        };
        let range = if is_right { cut.at..old.count() } else { 0..cut.at };
        let run = (range.len().saturating_sub(1), old.insert_run().1);
        let mut builder = Builder::begin(page, &shape);
        for index in range {
            builder.append(old, index);
        }
        builder.finish(run);
    }

    /// Does step two, and the same for every parent that has to be split for it. `left` is any latched node of this tree.
    ///
    /// Latches are taken upwards and to the right only, so there is no deadlock (BT-4).
    pub(crate) fn post(&self, left: Exclusive<'_>) -> Result<()> {
        let node = Node(&left);
        if !node.is_incomplete() {
            return Ok(());
        }
        let (Some(separator), right) = (node.high(), node.right()) else {
            return Err(self.corrupt(left.pid(), "a split without a right neighbour"));
        };
        let level = node.level() + 1;
        let parent = self.exclusive(Seek::At(&separator), level, &mut Descent::above([left.pid(), 0]))?;
        let SplitResult { target, unposted } = self.make_room(parent, NewEntry::Child(&separator))?;
        let parent = Node(&target);
        let Err(index) = parent.search(&separator) else {
            return Err(self.corrupt(target.pid(), "an incomplete split is posted already"));
        };
        let put = parent.put_child(index, &separator, right);
        assert!(put, "room was made");
        node.set_flags(node.flags() & !SPLIT_INCOMPLETE);
        let mut mtr = self.pager.mtr();
        let head = redo::head(self.id, separator.len(), 0);
        mtr.record(&target, redo::POST, None, &[&head, &right.to_le_bytes(), &separator]);
        mtr.record(&left, redo::CLEAR, None, &[&redo::head(self.id, 0, 0)]);
        mtr.commit();
        drop(left);
        self.post_all(SplitResult { target, unposted })
    }

    /// Posts the splits that `make_room` left.
    pub(crate) fn post_all(&self, split: SplitResult<'_>) -> Result<()> {
        for left in split.unposted {
            self.post(left)?;
        }
        self.post(split.target)
    }

    /// Completes a split that a descent met, if it is still incomplete. A failure is harmless: the next writer that meets it tries again.
    pub(crate) fn complete_split(&self, descent: Descent) {
        if let Some(pid) = descent.incomplete {
            self.complete_split_at(pid);
        }
    }

    #[cold]
    fn complete_split_at(&self, pid: PageId) {
        // No page of the tree is latched here, so this page may be anything by now: then it is left alone.
        let Ok(page) = self.pager.exclusive(pid) else { return };
        if Node(page.page()).verify(self.id).is_ok() {
            let _ = self.post(page);
        }
    }
}

/// The place where a node is cut in two.
struct Cut {
    /// First record of the right side.
    at: usize,
    separator: Vec<u8>,
}

impl Cut {
    /// Chooses a cut. `None` if the node has too few records or they are not in order, which never happens in a sound tree.
    fn choose(node: Node<impl Words>, place: Position, entry: NewEntry<'_>) -> Option<Cut> {
        let count = node.count();
        let (index, replaced) = match place {
            Ok(index) => (index, true),
            Err(index) => (index, false),
        };
        if node.level() > 0 {
            let at = Cut::balanced(node, index, replaced, entry)?;
            let separator = node.key(at);
            let is_inside = separator > node.low() && node.compare_high(&separator).is_gt();
            return is_inside.then_some(Cut { at, separator });
        }
        let (last, run) = node.insert_run();
        let is_run = !replaced && run >= RUN_MIN && index == last + 1;
        let at = match count {
            0 => return None,
            // The new record goes to a side of its own.
            1 if replaced => return None,
            1 => index,
            // An ascending run leaves full nodes behind.
            _ if is_run && index == count && Cut::keeps_all(node, entry.key()) => count,
            _ if is_run => index.clamp(1, count - 1),
            _ => Cut::balanced(node, index, replaced, entry)?,
        };
        // At the edges the new key is the neighbour; elsewhere it sorts on its own side of any key between the two records.
        let left = if at == 0 { entry.key().to_vec() } else { node.key(at - 1) };
        let right = if at == count { entry.key().to_vec() } else { node.key(at) };
        Some(Cut { at, separator: separator(&left, &right)?.to_vec() })
    }

    /// Returns the cut that leaves both sides about equally full, the new record included.
    fn balanced(node: Node<impl Words>, index: usize, replaced: bool, entry: NewEntry<'_>) -> Option<usize> {
        let (count, new) = (node.count(), entry.words(node.prefix_len()));
        let words = |at: usize| match at == index {
            true if replaced => new,
            true => new + 1 + node.record_words(at),
            false => 1 + node.record_words(at),
        };
        let total: usize = (0..count).map(words).sum::<usize>() + if index == count { new } else { 0 };
        let mut left = 0;
        let best = (1..count).map(|at| {
            left += words(at - 1);
            (left.abs_diff(total - left), at)
        });
        best.min().map(|(_, at)| at)
    }

    /// Returns whether the left side can keep all records although its high fence becomes the separator to `key`.
    fn keeps_all(node: Node<impl Words>, key: &[u8]) -> bool {
        let (low, last) = (node.low(), node.key(node.count() - 1));
        let Some(separator) = separator(&last, key) else { return false };
        let shape = node.shape(&low, Some(separator));
        node.words_with_prefix(shape.prefix_len()) <= shape.room()
    }
}
