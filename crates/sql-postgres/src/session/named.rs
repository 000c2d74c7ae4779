//! The prepared statements or the portals of a session, by name.
//!
//! Nearly every message of the extended protocol is about the unnamed one, which lies outside of the table: no hash is computed for it, and a session that uses no other has no table.

use stdx::hash::Map;

/// The space that is kept when all values are removed.
const KEPT: usize = 28;

#[derive(Debug)]
pub(super) struct Named<T> {
    unnamed: Option<T>,
    named: Map<String, T>,
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named { unnamed: None, named: Map::default() }
    }
}

impl<T> Named<T> {
    pub fn get(&self, name: &str) -> Option<&T> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) }
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        if name.is_empty() { self.unnamed.as_mut() } else { self.named.get_mut(name) }
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Adds a value, and returns the one of that name before it.
    pub fn insert(&mut self, name: String, value: T) -> Option<T> {
        if name.is_empty() { self.unnamed.replace(value) } else { self.named.insert(name, value) }
    }

    pub fn remove(&mut self, name: &str) -> Option<T> {
        if name.is_empty() { self.unnamed.take() } else { self.named.remove(name) }
    }

    pub fn is_empty(&self) -> bool {
        self.unnamed.is_none() && self.named.is_empty()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut T)> {
        let unnamed = self.unnamed.as_mut().map(|value| ("", value));
        unnamed.into_iter().chain(self.named.iter_mut().map(|(name, value)| (&**name, value)))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// Keeps the values for which `keeps` returns true.
    pub fn retain(&mut self, mut keeps: impl FnMut(&str, &mut T) -> bool) {
        if self.unnamed.as_mut().is_some_and(|value| !keeps("", value)) {
            self.unnamed = None;
        }
        self.named.retain(|name, value| keeps(name, value));
    }

    /// Removes all values. A client that had many keeps no table of their size.
    pub fn clear(&mut self) {
        self.unnamed = None;
        if self.named.capacity() > KEPT {
            self.named = Map::with_hasher(*self.named.hasher());
        }
        self.named.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unnamed_one_is_as_any_other() {
        let mut all = Named::default();
        for name in ["", "a", "b"] {
            assert_eq!(all.insert(name.to_owned(), 1), None);
            assert_eq!(all.insert(name.to_owned(), 2), Some(1));
            assert!(all.contains_key(name));
            all.get_mut(name).into_iter().for_each(|value| *value += name.len());
        }
        all.retain(|name, value| name != "b" && *value > 0);
        assert_eq!(["", "a", "b"].map(|name| all.get(name).copied()), [Some(2), Some(3), None]);
        assert_eq!((all.remove(""), all.remove("")), (Some(2), None));
        for nth in 0..100 {
            all.insert(format!("n{nth}"), nth);
        }
        all.clear();
        assert!(!all.contains_key("a") && all.named.capacity() <= KEPT);
    }
}
