//! Changing one key: one descent, the caller's decision under the leaf's latch, one mini-transaction.
//!
//! Hard part: the caller's function runs only once, since it may have effects, but whether the leaf has room is known only after it has run. So the leaf
//! stays latched from then on and is split in place if needed; nothing restarts.

use std::cell::Cell;

use pager::{Exclusive, Lsn, PageId, Result, TxnId};

use crate::leaf_hint::LeafHint;
use crate::node::{Node, Position, words_of};
use crate::patch;
use crate::redo;
use crate::search::{Descent, Seek};
use crate::split::{NewEntry, SplitResult};
use crate::tree::{Tree, let_others_run, version_word};

/// A record before its change.
#[derive(Clone, Copy, Debug)]
pub struct OldRecord<'a> {
    pub word: u64,
    pub value: &'a [u8],
}

/// The change that the caller of `modify` requests.
pub struct Change {
    action: Action,
    /// The value shares most of its bytes with the one before.
    is_similar: bool,
    buffers: Box<Buffers>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Nothing,
    Put,
    Delete,
}

/// Buffers that a thread keeps from one change to the next.
#[derive(Default)]
struct Buffers {
    old: Vec<u8>,
    value: Vec<u8>,
    patch: Vec<u8>,
    allocated: Vec<(PageId, u32)>,
    freed: Vec<(PageId, u32)>,
}

thread_local! {
    static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

impl Change {
    /// Inserts the record, or replaces its value, by the concatenated `parts`. The last call of `put` and `delete` counts.
    pub fn put(&mut self, parts: &[&[u8]]) {
        (self.action, self.is_similar) = (Action::Put, false);
        self.buffers.value.clear();
        for part in parts {
            self.buffers.value.extend_from_slice(part);
        }
        assert!(self.buffers.value.len() <= Tree::VALUE_MAX, "values beyond VALUE_MAX go to an extent");
    }

    /// Does the same with a value that shares most of its bytes with the one before: the WAL gets the differences, if they are shorter.
    pub fn put_similar(&mut self, parts: &[&[u8]]) {
        self.put(parts);
        self.is_similar = true;
    }

    /// Removes the record if it exists.
    pub fn delete(&mut self) {
        self.action = Action::Delete;
    }

    /// Returns the length of the value after the change. `before` is its current length, 0 if there is no record.
    pub fn len_after(&self, before: usize) -> usize {
        match self.action {
            Action::Nothing => before,
            Action::Put => self.buffers.value.len(),
            Action::Delete => 0,
        }
    }

    /// Frees a run of pages with this change.
    pub fn free(&mut self, first: PageId, pages: u32) {
        self.buffers.freed.push((first, pages));
    }

    /// Makes a reserved run (`Pager::reserve`) real with this change. If `modify` fails the run is still reserved.
    pub fn allocated(&mut self, first: PageId, pages: u32) {
        self.buffers.allocated.push((first, pages));
    }
}

/// The outcome of `modify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modified<R> {
    pub result: R,
    /// End of the change in the WAL; 0 if nothing was changed.
    pub lsn: Lsn,
}

impl Tree {
    /// Shows the record of `key` to `f` under the leaf's exclusive latch and does what `f` requests, in one mini-transaction.
    ///
    /// `f` runs once, must be quick and must not access the tree. The new version word is the LSN returned, with `WORD_TXN` set inside a transaction;
    /// the WAL record then also holds the state before. An error means that nothing was changed. Inside a transaction the caller calls `Pager::admit`
    /// itself, since undo must not be refused because the disk is full.
    pub fn modify<R>(
        &self,
        key: &[u8],
        txn: Option<TxnId>,
        f: impl FnOnce(Option<OldRecord<'_>>, &mut Change) -> R,
    ) -> Result<Modified<R>> {
        self.modify_with_hint(LeafHint::Unknown, key, txn, f)
    }

    /// Like `modify`, starting at the leaf of the hint.
    pub fn modify_with_hint<R>(
        &self,
        hint: LeafHint,
        key: &[u8],
        txn: Option<TxnId>,
        f: impl FnOnce(Option<OldRecord<'_>>, &mut Change) -> R,
    ) -> Result<Modified<R>> {
        assert!(key.len() <= Tree::KEY_MAX, "a key longer than KEY_MAX");
        let_others_run();
        if txn.is_none() {
            self.pager.admit()?;
        }
        let mut descent = Descent::default();
        let leaf = match self.exclusive_at(hint, key, &mut descent)? {
            Some(leaf) => leaf,
            None => self.exclusive(Seek::At(key), 0, &mut descent)?,
        };
        let node = Node(leaf.page());
        let place = node.search(key);
        let mut buffers = BUFFERS.take().unwrap_or_default();
        buffers.old.clear();
        let old_word = match place {
            Ok(index) if !node.verify_record(index) => {
                return Err(self.corrupt(leaf.pid(), "BT-1: a record outside the heap"));
            }
            Ok(index) => {
                node.push_value(index, &mut buffers.old);
                Some(node.version(index))
            }
            Err(_) => None,
        };
        let old_value = std::mem::take(&mut buffers.old);
        let mut change = Change { action: Action::Nothing, is_similar: false, buffers };
        let result = f(old_word.map(|word| OldRecord { word, value: &old_value }), &mut change);
        let Change { action, is_similar, mut buffers } = change;
        buffers.old = old_value;
        let patch = match old_word {
            Some(_) if is_similar => patch::encode(&buffers.old, &buffers.value, &mut buffers.patch),
            _ => None,
        };
        let lsn = self.apply_action(leaf, key, txn, place, old_word, action, patch, &mut buffers);
        buffers.allocated.clear();
        buffers.freed.clear();
        BUFFERS.set(Some(buffers));
        self.complete_split(descent);
        Ok(Modified { result, lsn: lsn? })
    }

    #[expect(clippy::too_many_arguments, reason = "the second half of `modify`, which alone calls it")]
    fn apply_action(
        &self,
        leaf: Exclusive<'_>,
        key: &[u8],
        txn: Option<TxnId>,
        place: Position,
        old_word: Option<u64>,
        action: Action,
        patch: Option<usize>,
        buffers: &mut Buffers,
    ) -> Result<Lsn> {
        let mut split = SplitResult { target: leaf, unposted: Vec::new() };
        if action == Action::Put {
            split = self.make_room(split.target, NewEntry::Record(key, buffers.value.len()))?;
        }
        let leaf = &split.target;
        let mut mtr = self.pager.mtr();
        for (first, pages) in &buffers.allocated {
            mtr.allocated(*first, *pages);
        }
        for (first, pages) in &buffers.freed {
            mtr.free(*first, *pages);
        }
        let before_head = redo::before_head(old_word.unwrap_or(0), buffers.old.len());
        let with_before = txn.is_some() && old_word.is_some();
        let (before_head, before): (&[u8], &[u8]) = if with_before { (&before_head, &buffers.old) } else { (&[], &[]) };
        match (action, place) {
            (Action::Put, _) => {
                let (kind, number, logged) = match (patch, old_word) {
                    (Some(splices), _) => (redo::PATCH, splices, &buffers.patch),
                    (None, Some(_)) => (redo::UPDATE, buffers.value.len(), &buffers.value),
                    (None, None) => (redo::INSERT, buffers.value.len(), &buffers.value),
                };
                let head = redo::head(self.id, key.len(), number);
                mtr.record(leaf, kind, txn, &[&head, before_head, key, logged, before]);
                let node = Node(leaf);
                let place = node.search(key);
                let put = node.put(place, key, &buffers.value, 0);
                assert!(put, "room was made");
                let lsn = mtr.commit();
                node.set_version(place.unwrap_or_else(|index| index), version_word(lsn, txn.is_some()));
                // The change itself is done. A split that stays incomplete is completed by the next writer that meets it.
                let _ = self.post_all(split);
                Ok(lsn)
            }
            (Action::Delete, Ok(index)) => {
                let head = redo::head(self.id, key.len(), 0);
                mtr.record(leaf, redo::DELETE, txn, &[&head, before_head, key, before]);
                let node = Node(leaf);
                node.remove(index);
                let lsn = mtr.commit();
                if node.count() == 0 {
                    let low = node.low();
                    drop(split);
                    let _ = self.unlink_empty_leaf(&low);
                }
                Ok(lsn)
            }
            (Action::Delete, Err(_)) | (Action::Nothing, _) => Ok(mtr.commit()),
        }
    }
}

// A value of the greatest length fits into the record's length field and into a node.
const _: () = assert!(Tree::VALUE_MAX < 1 << 16 && words_of(Tree::VALUE_MAX) < crate::node::PAGE_WORDS);
