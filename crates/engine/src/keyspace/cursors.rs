//! SCAN cursors: a cursor is a number for "behind this key".
//!
//! SCAN guarantees to return every key that exists from its beginning to its end, and for that the last key is enough. Each scan leaves two entries: its
//! position, and the step before it for a client whose reply was lost. So the table holds thousands of scans, not calls, and evicts the cursor of the scan that
//! was idle longest. An evicted cursor, or one given out before a restart, starts again from the first key. That takes longer, never loses a key, and is
//! counted. Numbers start at random, so that a cursor of an earlier run is not taken for another scan's position in this one.

use std::collections::{BTreeMap, HashMap};

use stdx::sync::Mutex;

const CURSORS_MAX: usize = 16 << 10;
/// Clients of some languages keep a cursor in a double, which is exact up to 2^53.
const FIRST_MAX: u64 = 1 << 52;

pub(crate) struct Cursors {
    table: Mutex<CursorTable>,
}

struct CursorTable {
    entries: HashMap<u64, CursorEntry>,
    /// Cursors in the order of their last use.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    next: u64,
}

struct CursorEntry {
    behind: Vec<u8>,
    /// The previous cursor of the scan; 0 if this is its first.
    from: u64,
    /// The latest cursor that followed; 0 if there is none yet.
    to: u64,
    used: u64,
}

impl Cursors {
    /// Creates an empty table. `anywhere` is random.
    pub fn new(anywhere: u64) -> Cursors {
        let next = anywhere % FIRST_MAX + 1;
        Cursors { table: Mutex::new(CursorTable { entries: HashMap::new(), by_use: BTreeMap::new(), uses: 0, next }) }
    }

    /// Returns the suffix after which a scan continues; `None` if the cursor is not known.
    pub fn get(&self, cursor: u64) -> Option<Vec<u8>> {
        let mut table = self.table.lock();
        table.touch(cursor);
        table.entries.get(&cursor).map(|entry| entry.behind.clone())
    }

    /// Returns a cursor for "behind this suffix", for a scan that came from the cursor `from`.
    pub fn put(&self, from: u64, suffix: &[u8]) -> u64 {
        let mut table = self.table.lock();
        // The same step once more: an optimistic read ran again, or the client did not get the reply.
        let to = table.entries.get(&from).map_or(0, |entry| entry.to);
        if table.entries.get(&to).is_some_and(|entry| entry.behind == suffix) {
            table.touch(to);
            return to;
        }
        let cursor = table.next;
        table.next += 1;
        let before = table.entries.get_mut(&from).map_or(0, |entry| {
            entry.to = cursor;
            entry.from
        });
        table.remove(before);
        table.entries.insert(cursor, CursorEntry { behind: suffix.to_vec(), from, to: 0, used: 0 });
        table.touch(cursor);
        if table.entries.len() > CURSORS_MAX
            && let Some((_, oldest)) = table.by_use.pop_first()
        {
            table.entries.remove(&oldest);
        }
        cursor
    }
}

impl CursorTable {
    fn touch(&mut self, cursor: u64) {
        self.uses += 1;
        if let Some(entry) = self.entries.get_mut(&cursor) {
            self.by_use.remove(&entry.used);
            entry.used = self.uses;
            self.by_use.insert(self.uses, cursor);
        }
    }

    fn remove(&mut self, cursor: u64) {
        if let Some(entry) = self.entries.remove(&cursor) {
            self.by_use.remove(&entry.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_scan_outlives_any_number_of_steps_of_a_fast_one() {
        let cursors = Cursors::new(7);
        let slow = cursors.put(0, b"slow");
        let mut fast = cursors.put(0, b"fast");
        for step in 0..3 * CURSORS_MAX {
            fast = cursors.put(fast, step.to_string().as_bytes());
        }
        assert_eq!(cursors.get(slow).as_deref(), Some(&b"slow"[..]));
        assert_eq!(cursors.table.lock().entries.len(), 3, "the fast one keeps where it is and the step before");
    }

    #[test]
    fn the_scan_that_was_idle_longest_is_pushed_out() {
        let cursors = Cursors::new(u64::MAX);
        let (first, second) = (cursors.put(0, b"first"), cursors.put(0, b"second"));
        for other in 0..CURSORS_MAX - 1 {
            assert!(cursors.get(first).is_some(), "in use");
            cursors.put(0, other.to_string().as_bytes());
        }
        assert_eq!(cursors.get(second), None);
        assert_eq!(cursors.get(first).as_deref(), Some(&b"first"[..]));
        let table = cursors.table.lock();
        assert_eq!((table.entries.len(), table.by_use.len()), (CURSORS_MAX, CURSORS_MAX));
    }

    #[test]
    fn a_step_that_is_repeated_has_the_same_cursor() {
        let cursors = Cursors::new(1);
        let one = cursors.put(0, b"a");
        let two = cursors.put(one, b"b");
        assert_eq!(cursors.put(one, b"b"), two);
        let other = cursors.put(one, b"c");
        assert_ne!(other, two, "keys came in between");
        assert_eq!(cursors.get(two).as_deref(), Some(&b"b"[..]), "both ways go on");
    }

    #[test]
    fn a_cursor_of_another_run_is_not_known() {
        let (before, after) = (Cursors::new(1000), Cursors::new(5_000_000));
        let old = before.put(0, b"there");
        after.put(0, b"elsewhere");
        assert_eq!(after.get(old), None);
        assert_eq!(after.get(0), None, "0 is the beginning");
        assert!(Cursors::new(u64::MAX).put(0, b"x") <= FIRST_MAX, "exact in a double");
    }
}
