//! Definitions for a transaction whose snapshot is older than one of a table's maps.
//!
//! QU-63: an index that was filled after the snapshot neither leads to rows nor proves that they are unique; the rows themselves are read as if it did not exist. Changes go through it as through any other. A
//! definition that says so is bound to for one run only, and a plan of the definition without it never runs under such a snapshot (`Bindings::are_current`). An index beside rows that the snapshot does not see
//! either finds none of them, as a scan does, so it stays in use.
//!
//! Where a change of the definition wrote rows anew that are still the same, a reader under an older snapshot fails instead of finding none.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::rows::SeenMaps;

use crate::catalog::table::Table;

impl Table {
    /// Returns whether the snapshot sees the rows, and every index as they are.
    pub(crate) fn is_seen_by(&self, seen: &SeenMaps) -> bool {
        seen.sees(self.map) && self.indexes.iter().all(|index| seen.sees(index.map))
    }

    /// Notes that the rows of this map are those of the map before it, in another form.
    pub fn note_moved_rows(&self) {
        self.live.moved.store(self.map, Ordering::Release);
    }

    /// Returns whether the rows were there before the table's map.
    pub(crate) fn has_moved_rows(&self) -> bool {
        self.live.moved.load(Ordering::Acquire) == self.map
    }

    /// Returns the definition for the snapshot, and whether it is another one.
    pub fn seen_by(table: &Arc<Table>, seen: &SeenMaps) -> (Arc<Table>, bool) {
        if table.is_seen_by(seen) {
            return (table.clone(), false);
        }
        let mut own = Table { version: table.version, ..table.copy() };
        own.is_unseen = !seen.sees(table.map);
        for index in own.indexes.iter_mut().filter(|_| !own.is_unseen) {
            index.is_unseen = !seen.sees(index.map);
        }
        (Arc::new(own.with_derived_fields()), true)
    }
}
