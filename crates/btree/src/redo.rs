//! The tree's WAL records. Each changes one page, refers to keys instead of positions, and begins with the tree's id.
//!
//! ```text
//! 0x10 insert   tree u32 | key length u16 | value length u16 | key | value
//! 0x11 update   the same [ | word before u64 | length before u64 ] key | value [ | value before ]     in [ ]: only inside a transaction
//! 0x12 delete   the same, value length 0
//! 0x13 erase    tree u32 | length of from u16 | length of to u16 | 1 if there is no upper bound, u64 | from | to
//! 0x14 truncate tree u32 | key length u16 | 0 u16 | right page u64 | separator
//! 0x15 post     tree u32 | key length u16 | 0 u16 | child page u64 | separator
//! 0x16 clear    tree u32 | 0 u32
//! 0x17 extend   tree u32 | key length u16 | 0 u16 | right page u64 | high fence; right page 0 and no fence: up to infinity
//! 0x18 unpost   tree u32 | key length u16 | 0 u16 | child page u64 | separator
//! 0x19 retire   tree u32 | 0 u32
//! 0x1A patch    tree u32 | key length u16 | splices u16 [ | word before u64 | length before u64 ] key | splices {at, removed, inserted: u16}
//!               | inserted bytes [ | value before ]     an update whose value is the old one with these splices
//! ```
//! Hard part: redo must leave exactly the words that the first execution left (BT-8), or the next record may not fit, since it relies on the free room. So
//! both run the functions of `node/edit.rs`, on pages that are equal word by word.

use pager::{Error, Exclusive, Record, Result};

use crate::node::{DELETED, Node, SPLIT_INCOMPLETE};
use crate::patch::Patch;
use crate::tree::{TreeId, version_word};

pub(crate) const INSERT: u8 = 0x10;
pub(crate) const UPDATE: u8 = 0x11;
pub(crate) const DELETE: u8 = 0x12;
pub(crate) const ERASE: u8 = 0x13;
pub(crate) const TRUNCATE: u8 = 0x14;
pub(crate) const POST: u8 = 0x15;
pub(crate) const CLEAR: u8 = 0x16;
pub(crate) const EXTEND: u8 = 0x17;
pub(crate) const UNPOST: u8 = 0x18;
pub(crate) const RETIRE: u8 = 0x19;
pub(crate) const PATCH: u8 = 0x1A;

/// The kinds of this crate's records.
pub const KINDS: std::ops::Range<u8> = 0x10..0x20;

/// The kind of a change of one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    Insert,
    Update,
    /// An update of which the record has the differences only.
    Patch,
    Delete,
}

/// A change of one key as its WAL record describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyChange<'r> {
    pub tree: TreeId,
    pub kind: ChangeKind,
    pub key: &'r [u8],
    /// The value after the change; `None` for a delete and for a patch.
    pub after: Option<&'r [u8]>,
    /// The differences of a patch.
    pub patch: Option<Patch<'r>>,
    /// Version word and value before the change: only in records of transactions, and not of inserts.
    pub before: Option<(u64, &'r [u8])>,
}

/// Decodes a change of a key. `None` for records of other kinds or of impossible lengths.
pub fn decode<'r>(record: &Record<'r>) -> Option<KeyChange<'r>> {
    let kind = match record.kind {
        INSERT => ChangeKind::Insert,
        UPDATE => ChangeKind::Update,
        PATCH => ChangeKind::Patch,
        DELETE => ChangeKind::Delete,
        _ => return None,
    };
    let (head, mut rest) = record.body.split_at_checked(8)?;
    let (tree, key_len, value_len) = head_fields(head);
    let mut before_head = None;
    if record.txn.is_some() && kind != ChangeKind::Insert {
        let (head, tail) = rest.split_at_checked(16)?;
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        before_head = Some((word(0), usize::try_from(word(8)).ok()?));
        rest = tail;
    }
    let (key, behind) = rest.split_at_checked(key_len)?;
    rest = behind;
    let (mut patch, mut after) = (None, None);
    if kind == ChangeKind::Patch {
        let (taken, behind) = Patch::take(rest, value_len)?;
        (patch, rest) = (Some(taken), behind);
    } else {
        let (value, behind) = rest.split_at_checked(value_len)?;
        (after, rest) = ((kind != ChangeKind::Delete).then_some(value), behind);
    }
    let before = match before_head {
        Some((word, len)) => Some((word, rest.get(..len)?)),
        None => None,
    };
    Some(KeyChange { tree, kind, key, after, patch, before })
}

fn head_fields(head: &[u8]) -> (u32, usize, usize) {
    let tree = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
    let len = |at: usize| usize::from(u16::from_le_bytes(head[at..at + 2].try_into().expect("two bytes")));
    (tree, len(4), len(6))
}

/// Encodes the first eight bytes of every body.
pub(crate) fn head(tree: TreeId, first: usize, second: usize) -> [u8; 8] {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&tree.to_le_bytes());
    head[4..6].copy_from_slice(&u16::try_from(first).expect("keys are short").to_le_bytes());
    head[6..].copy_from_slice(&u16::try_from(second).expect("values are short").to_le_bytes());
    head
}

/// Encodes the second part of a body with a before-image.
pub(crate) fn before_head(word: u64, len: usize) -> [u8; 16] {
    let mut head = [0; 16];
    head[..8].copy_from_slice(&word.to_le_bytes());
    head[8..].copy_from_slice(&(len as u64).to_le_bytes());
    head
}

/// A change of the tree's structure.
struct Structural<'r> {
    page: u64,
    first: &'r [u8],
    second: &'r [u8],
}

fn structural<'r>(body: &'r [u8]) -> Option<Structural<'r>> {
    let (head, rest) = body.split_at_checked(8)?;
    let (_, first_len, second_len) = head_fields(head);
    let (page, rest) = rest.split_at_checked(8)?;
    let (first, rest) = rest.split_at_checked(first_len)?;
    let second = rest.get(..second_len)?;
    Some(Structural { page: u64::from_le_bytes(page.try_into().expect("eight bytes")), first, second })
}

struct TreeRedo;

/// Returns the redo function of the tree's records, to be registered for `KINDS`.
pub fn redo() -> impl pager::Redo {
    TreeRedo
}

impl pager::Redo for TreeRedo {
    fn verify(&self, page: &Exclusive<'_>, record: &Record<'_>) -> Result<()> {
        let node = node_of(page, record)?;
        node.verify_records().map_err(|what| wrong(page, record, what))
    }

    fn apply(&self, page: &Exclusive<'_>, record: &Record<'_>) -> Result<()> {
        let node = node_of(page, record)?;
        match decode(record) {
            Some(change) => apply_change(node, record, &change),
            None => apply_structural(node, record),
        }
        .map_err(|what| wrong(page, record, what))
    }
}

/// Returns the page as a node of the tree that the record names.
fn node_of<'p>(page: &'p Exclusive<'p>, record: &Record<'_>) -> Result<Node<&'p Exclusive<'p>>> {
    let tree = record.body.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let tree = tree.ok_or_else(|| wrong(page, record, "a record without a tree"))?;
    let node = Node(page);
    node.verify(tree).map_err(|what| wrong(page, record, what))?;
    Ok(node)
}

fn wrong(page: &Exclusive<'_>, record: &Record<'_>, what: &str) -> Error {
    let what = format!("{what} (redo of kind {:#x}, LSN {})", record.kind, record.lsn_end);
    Error::corrupt_page(page.pid(), what)
}

fn apply_change(node: Node<&Exclusive<'_>>, record: &Record<'_>, change: &KeyChange<'_>) -> Result<(), &'static str> {
    if node.level() != 0 || !node.covers(change.key) {
        return Err("the key does not belong to the page");
    }
    let place = node.search(change.key);
    if place.is_ok() != (change.kind != ChangeKind::Insert) {
        return Err("the key is there but should not be, or the reverse");
    }
    let put = |value: &[u8]| {
        let version = version_word(record.lsn_end, record.txn.is_some());
        if node.put(place, change.key, value, version) { Ok(()) } else { Err("no room for a record that had room") }
    };
    match (change.after, change.patch, place) {
        (Some(value), ..) => return put(value),
        (None, Some(patch), Ok(index)) => {
            let (mut old, mut value) = (Vec::new(), Vec::new());
            node.push_value(index, &mut old);
            patch.apply(&old, &mut value).ok_or("a patch of a longer value")?;
            return put(&value);
        }
        (None, None, Ok(index)) => node.remove(index),
        (None, _, Err(_)) => unreachable!("a patch and a delete need the key, checked above"),
    }
    Ok(())
}

fn apply_structural(node: Node<&Exclusive<'_>>, record: &Record<'_>) -> Result<(), &'static str> {
    match record.kind {
        CLEAR => {
            node.set_flags(node.flags() & !SPLIT_INCOMPLETE);
            return Ok(());
        }
        RETIRE => {
            node.set_flags(node.flags() | DELETED);
            return Ok(());
        }
        _ => {}
    }
    let Structural { page, first, second } = structural(record.body).ok_or("a record of impossible length")?;
    if record.kind != EXTEND && !node.covers(first) {
        return Err("the key does not belong to the page");
    }
    match record.kind {
        ERASE if node.level() == 0 => {
            let (from, to) = node.range(first, (page == 0).then_some(second));
            node.remove_range(from, to);
        }
        TRUNCATE if node.compare_low(first) == std::cmp::Ordering::Less => node.truncate(first, page),
        EXTEND => {
            let high = (page != 0).then_some(first);
            if high.is_some_and(|high| node.compare_low(high) != std::cmp::Ordering::Less) || !node.can_extend(high) {
                return Err("the neighbour's range cannot be taken over");
            }
            node.extend(high, page);
        }
        POST if node.level() > 0 => match node.search(first) {
            Err(index) if node.put_child(index, first, page) => {}
            _ => return Err("no place for a child that had one"),
        },
        UNPOST if node.level() > 0 => match node.search(first) {
            Ok(index) if node.child(index) == page => node.remove(index),
            _ => return Err("the child is not there"),
        },
        _ => return Err("a record that does not fit the page"),
    }
    Ok(())
}
