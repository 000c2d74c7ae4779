//! The keys that a transaction of rows has changed and not committed yet. They are in memory only.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::keyspace::record::Kind;

/// A string as a transaction sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    pub value: Arc<[u8]>,
    /// Milliseconds since 1970. The key is absent when the clock shows more.
    pub expire_at_ms: Option<u64>,
}

impl KeyValue {
    pub(crate) fn is_expired(&self, now_ms: u64) -> bool {
        is_over(self.expire_at_ms, now_ms)
    }
}

fn is_over(expire_at_ms: Option<u64>, now_ms: u64) -> bool {
    expire_at_ms.is_some_and(|time| now_ms > time)
}

/// A collection at a key: its type, the number of its elements and its expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    pub kind: Kind,
    pub count: u64,
    pub expire_at_ms: Option<u64>,
}

/// The changes of a collection.
///
/// An element has a name that stays its own until the end of the transaction: its field or member; in a list a number, which is the index that it had at the
/// first change. Items that are added at the ends of a list have the numbers next to those.
#[derive(Debug)]
pub struct ElementChanges {
    pub(crate) kind: Kind,
    /// The committed elements are beneath the changes. Otherwise the key had none, or they are replaced.
    pub(crate) keeps: bool,
    /// The new value of each changed element; `None`: removed.
    pub(crate) items: BTreeMap<Box<[u8]>, Option<Arc<[u8]>>>,
    pub(crate) count: u64,
    pub(crate) expire_at_ms: Option<u64>,
    pub(crate) sets_expiry: bool,
    /// Of a list: the numbers of its items, and how many committed ones there are.
    pub(crate) numbers: Range<i64>,
    pub(crate) committed: u64,
}

impl ElementChanges {
    fn new(kind: Kind, committed: Option<Collection>) -> ElementChanges {
        let count = committed.map_or(0, |committed| committed.count);
        ElementChanges {
            kind,
            keeps: committed.is_some(),
            items: BTreeMap::new(),
            count,
            expire_at_ms: committed.and_then(|committed| committed.expire_at_ms),
            sets_expiry: false,
            numbers: 0..count as i64,
            committed: count,
        }
    }

    /// Returns whether the committed elements are beneath the changes.
    pub fn keeps_committed(&self) -> bool {
        self.keeps
    }

    /// Returns the new value of an element, or `Some(None)` if it is removed.
    pub fn item(&self, name: &[u8]) -> Option<Option<&[u8]>> {
        self.items.get(name).map(Option::as_deref)
    }

    /// Returns the changed elements that exist and whose names follow one, in order.
    pub fn items_after(&self, name: Option<&[u8]>) -> impl Iterator<Item = (&[u8], &[u8])> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = name.map_or(Unbounded, Excluded);
        let items = self.items.range::<[u8], _>((from, Unbounded));
        items.filter_map(|(name, value)| Some((&**name, value.as_deref()?)))
    }

    /// Returns the numbers of a list's items.
    pub fn numbers(&self) -> Range<i64> {
        self.numbers.clone()
    }

    pub fn collection(&self) -> Collection {
        Collection { kind: self.kind, count: self.count, expire_at_ms: self.expire_at_ms }
    }
}

/// Returns the name of a list's item. Names order as the numbers do.
pub fn item_name(number: i64) -> [u8; 8] {
    ((number as u64) ^ (1 << 63)).to_be_bytes()
}

/// Returns the number of an item of this name.
pub fn item_number(name: &[u8]) -> Option<i64> {
    Some((u64::from_be_bytes(name.try_into().ok()?) ^ (1 << 63)) as i64)
}

/// The new state of a key.
#[derive(Debug)]
pub(crate) enum KeyChange {
    Deleted,
    String(KeyValue),
    Elements(ElementChanges),
}

impl KeyChange {
    /// Returns whether the key is there.
    pub fn is_present(&self, now_ms: u64) -> bool {
        match self {
            KeyChange::Deleted => false,
            KeyChange::String(value) => !value.is_expired(now_ms),
            KeyChange::Elements(changes) => !is_over(changes.expire_at_ms, now_ms),
        }
    }
}

/// Database and key.
pub(crate) type KeyName = (u8, Box<[u8]>);

/// The state that a change has replaced.
enum Before {
    /// `None`: it was the first change of its key.
    Key(Option<KeyChange>),
    Element {
        name: Box<[u8]>,
        value: Option<Option<Arc<[u8]>>>,
        count: u64,
        numbers: Range<i64>,
    },
    Expiry {
        at_ms: Option<u64>,
        is_set: bool,
    },
}

#[derive(Default)]
pub(crate) struct KeyChanges {
    pub now: BTreeMap<KeyName, KeyChange>,
    before: Vec<(KeyName, Before)>,
}

impl KeyChanges {
    pub fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    /// Returns the number of changes.
    pub fn count(&self) -> usize {
        self.before.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&KeyName, &KeyChange)> {
        self.now.iter()
    }

    pub fn change(&mut self, name: KeyName, to: KeyChange) {
        let before = self.now.insert(name.clone(), to);
        self.before.push((name, Before::Key(before)));
    }

    /// Returns the changes of the collection at a key; if there are none, new ones over what is committed there.
    fn elements(&mut self, name: &KeyName, kind: Kind, found: Option<Collection>, now_ms: u64) -> &mut ElementChanges {
        let own = self.now.get(name);
        let is_own = own.is_some_and(|own| matches!(own, KeyChange::Elements(_)) && own.is_present(now_ms));
        if !is_own {
            let committed = found.filter(|_| own.is_none());
            self.change(name.clone(), KeyChange::Elements(ElementChanges::new(kind, committed)));
        }
        match self.now.get_mut(name) {
            Some(KeyChange::Elements(changes)) => changes,
            _ => unreachable!("it has been inserted"),
        }
    }

    /// Adds or replaces an element. `existed`: there is one of that name.
    pub fn put_element(
        &mut self,
        key: KeyName,
        (kind, found, now_ms): (Kind, Option<Collection>, u64),
        (name, value): (&[u8], Arc<[u8]>),
        existed: bool,
    ) {
        let changes = self.elements(&key, kind, found, now_ms);
        let (count, numbers) = (changes.count, changes.numbers.clone());
        let value = changes.items.insert(name.into(), Some(value));
        if !existed {
            changes.count += 1;
            match item_number(name).filter(|_| kind == Kind::List) {
                Some(number) if number < numbers.start => changes.numbers.start = number,
                Some(number) => changes.numbers.end = number + 1,
                None => {}
            }
        }
        self.before.push((key, Before::Element { name: name.into(), value, count, numbers }));
    }

    /// Removes an element, which exists. The last one takes the key with it.
    pub fn remove_element(&mut self, key: KeyName, found: Collection, now_ms: u64, name: &[u8]) {
        let changes = self.elements(&key, found.kind, Some(found), now_ms);
        if changes.count <= 1 {
            return self.change(key, KeyChange::Deleted);
        }
        let (count, numbers) = (changes.count, changes.numbers.clone());
        let value = changes.items.insert(name.into(), None);
        changes.count -= 1;
        if let Some(number) = item_number(name).filter(|_| found.kind == Kind::List) {
            if number == numbers.start {
                changes.numbers.start += 1;
            } else {
                changes.numbers.end = number;
            }
        }
        self.before.push((key, Before::Element { name: name.into(), value, count, numbers }));
    }

    /// Changes the expiry time of a collection.
    pub fn set_expiry(&mut self, key: KeyName, found: Collection, now_ms: u64, at_ms: Option<u64>) {
        let changes = self.elements(&key, found.kind, Some(found), now_ms);
        let before = Before::Expiry { at_ms: changes.expire_at_ms, is_set: changes.sets_expiry };
        (changes.expire_at_ms, changes.sets_expiry) = (at_ms, true);
        self.before.push((key, before));
    }

    pub fn undo_to(&mut self, count: usize) {
        while self.before.len() > count {
            let Some((name, before)) = self.before.pop() else { return };
            match (before, self.now.get_mut(&name)) {
                (Before::Key(Some(before)), _) => drop(self.now.insert(name, before)),
                (Before::Key(None), _) => drop(self.now.remove(&name)),
                (Before::Element { name, value, count, numbers }, Some(KeyChange::Elements(changes))) => {
                    match value {
                        Some(value) => drop(changes.items.insert(name, value)),
                        None => drop(changes.items.remove(&name)),
                    }
                    (changes.count, changes.numbers) = (count, numbers);
                }
                (Before::Expiry { at_ms, is_set }, Some(KeyChange::Elements(changes))) => {
                    (changes.expire_at_ms, changes.sets_expiry) = (at_ms, is_set);
                }
                (Before::Element { .. } | Before::Expiry { .. }, _) => {
                    unreachable!("a key's changes are undone in the opposite order")
                }
            }
        }
    }
}
