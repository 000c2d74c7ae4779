//! The keys that a transaction of rows has changed and not committed yet. They are in memory only.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// A string as a transaction sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    pub value: Arc<[u8]>,
    /// Milliseconds since 1970. The key is absent when the clock shows more.
    pub expire_at_ms: Option<u64>,
}

impl KeyValue {
    pub(crate) fn is_expired(&self, now_ms: u64) -> bool {
        self.expire_at_ms.is_some_and(|time| now_ms > time)
    }
}

/// Database and key.
pub(crate) type KeyName = (u8, Box<[u8]>);

/// The new state of each changed key; `None`: deleted.
#[derive(Default)]
pub(crate) struct KeyChanges {
    pub now: BTreeMap<KeyName, Option<KeyValue>>,
    /// The state that each change has replaced; `None`: it was the first of its key.
    before: Vec<(KeyName, Option<Option<KeyValue>>)>,
}

impl KeyChanges {
    pub fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    /// Returns the number of changes.
    pub fn count(&self) -> usize {
        self.before.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&KeyName, &Option<KeyValue>)> {
        self.now.iter()
    }

    pub fn change(&mut self, name: KeyName, to: Option<KeyValue>) {
        let before = self.now.insert(name.clone(), to);
        self.before.push((name, before));
    }

    pub fn undo_to(&mut self, count: usize) {
        while self.before.len() > count {
            let Some((name, before)) = self.before.pop() else { return };
            match (self.now.entry(name), before) {
                (Entry::Occupied(mut entry), Some(before)) => drop(entry.insert(before)),
                (Entry::Occupied(entry), None) => drop(entry.remove()),
                (Entry::Vacant(_), _) => {}
            }
        }
    }
}
