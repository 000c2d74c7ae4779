//! The state that all versions of a table share: its locks, the counters of AUTO_INCREMENT and of row ids, its
//! statistics with their age, and an estimate of its number of rows.
//!
//! The counter of AUTO_INCREMENT is never below the reservation in the catalog, which is written ahead of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stdx::sync::{Mutex, RwLock};

use crate::catalog::statistics::Statistics;
use crate::catalog::table_lock::TableLock;

#[derive(Debug, Default)]
pub struct TableState {
    /// The sessions that use it, and those that keep others from it.
    pub table_lock: TableLock,
    /// The current version.
    version: AtomicU64,
    /// The version that an open transaction has made while others go on to use the current one (QU-65); 0: none.
    private: AtomicU64,
    /// The newest version that was given to a definition, be it published or not. So no two definitions have one
    /// version, even if the first was undone.
    given: AtomicU64,
    pub auto: Mutex<Auto>,
    /// The next hidden row id; 0 if it is not loaded.
    pub row_id: Mutex<u64>,
    /// The last map into which rows were moved that had been there before; no version of the table need have it.
    pub moved: AtomicU32,
    /// Foreign keys were not always checked, as the catalog records.
    pub unchecked: AtomicBool,
    /// The estimated number of rows; negative if unknown.
    rows: AtomicI64,
    known: RwLock<Option<Arc<Statistics>>>,
    /// Incremented when `known` changes, which invalidates plans that were made from older statistics.
    pub age: AtomicU64,
    /// The number of rows changed since the statistics were sampled, and the numbers that make them stale: after
    /// `LEARNT_FOR`, and at once.
    changes: AtomicU64,
    changes_max: AtomicU64,
    changes_soon: AtomicU64,
    learned: Mutex<Option<Instant>>,
    gathering: AtomicBool,
    /// The statistics are from before the last start, so later changes are not counted.
    unsure: AtomicBool,
}

/// The counter of AUTO_INCREMENT.
#[derive(Debug, Default)]
pub struct Auto {
    /// The next number; 0: not loaded.
    pub next: u64,
    /// Numbers below are reserved in the catalog.
    pub reserved: u64,
}

/// The time for which new statistics stay valid, unless very many rows change.
const LEARNT_FOR: Duration = Duration::from_secs(1);

impl TableState {
    pub fn new(version: u64) -> TableState {
        let (version, given) = (AtomicU64::new(version), AtomicU64::new(version));
        TableState { version, given, rows: AtomicI64::new(-1), ..TableState::default() }
    }

    /// Returns the version of a new definition.
    pub fn next_version(&self) -> u64 {
        self.given.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns whether a plan that was bound to this version of the definition may run. Only the session that has made a private version has plans of it.
    pub fn is_current(&self, version: u64) -> bool {
        self.version.load(Ordering::Acquire) == version || self.private.load(Ordering::Acquire) == version
    }

    /// Makes a version the only current one; `u64::MAX` of a table that is gone.
    pub fn put_in_force(&self, version: u64) {
        self.version.store(version, Ordering::Release);
        self.private.store(0, Ordering::Release);
    }

    /// Lets a session use a version of its own beside the current one (QU-65).
    pub(super) fn put_in_force_privately(&self, version: u64) {
        self.private.store(version, Ordering::Release);
    }

    /// Counts a changed row.
    pub fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    pub fn statistics(&self) -> Option<Arc<Statistics>> {
        self.known.read().clone()
    }

    /// Returns whether the statistics are stale.
    pub fn is_old(&self) -> bool {
        let changes = self.changes.load(Ordering::Relaxed);
        changes > self.changes_max.load(Ordering::Relaxed)
            && (changes > self.changes_soon.load(Ordering::Relaxed)
                || self.learned.lock().is_none_or(|learned| learned.elapsed() >= LEARNT_FOR))
    }

    /// Claims the sampling of this table. After true, the caller samples and calls `learn` or `give_up`. Changes from
    /// now on count as later ones.
    pub fn begin_gathering(&self) -> bool {
        let begins = !self.gathering.swap(true, Ordering::AcqRel);
        if begins {
            self.changes.store(0, Ordering::Relaxed);
        }
        begins
    }

    /// Sets the statistics that the catalog has stored.
    pub fn recall(&self, statistics: Statistics) {
        self.learn(Arc::new(statistics));
        self.unsure.store(true, Ordering::Relaxed);
    }

    pub fn is_unsure(&self) -> bool {
        self.unsure.load(Ordering::Relaxed)
    }

    /// Sets the number of rows after a check that the stored statistics still fit.
    pub fn be_sure(&self, rows: u64) {
        self.set_rows(rows);
        self.unsure.store(false, Ordering::Relaxed);
    }

    /// Resets the statistics after all rows were removed.
    pub fn forget(&self) {
        self.set_rows(0);
        *self.known.write() = None;
        self.age.fetch_add(1, Ordering::Release);
    }

    pub fn give_up(&self) {
        self.gathering.store(false, Ordering::Release);
    }

    /// Publishes new statistics. They become stale after some time when a tenth of the rows, or a few more in a small
    /// table, have changed, and at once after many changes. So a small, busy table is neither sampled nor its plans
    /// replaced all the time.
    pub fn learn(&self, statistics: Arc<Statistics>) {
        const FEW: u64 = 16;
        const MANY: u64 = 4_000;
        self.be_sure(statistics.rows);
        self.changes_max.store(statistics.rows / 10 + FEW, Ordering::Relaxed);
        self.changes_soon.store(statistics.rows * 4 + MANY, Ordering::Relaxed);
        *self.learned.lock() = Some(Instant::now());
        *self.known.write() = Some(statistics);
        self.age.fetch_add(1, Ordering::Release);
        self.give_up();
    }

    pub fn rows(&self) -> Option<u64> {
        u64::try_from(self.rows.load(Ordering::Relaxed)).ok()
    }

    pub fn set_rows(&self, rows: u64) {
        self.rows.store(rows as i64, Ordering::Relaxed);
    }

    pub fn add_rows(&self, more: i64) {
        self.note_change();
        let _ = self
            .rows
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rows| (rows >= 0).then(|| (rows + more).max(0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_small_busy_table_is_good_for_a_while() {
        let live = TableState::new(1);
        assert!(!live.is_old());
        live.note_change();
        assert!(live.is_old(), "nothing is known, and there is a change");
        assert!(live.begin_gathering());
        live.learn(Arc::new(Statistics { rows: 1, ..Statistics::default() }));
        (0..100).for_each(|_| live.note_change());
        assert!(!live.is_old(), "it was gathered just now");
        *live.learned.lock() = Instant::now().checked_sub(LEARNT_FOR);
        assert!(live.is_old(), "it was gathered a while ago, and much has changed");
        live.learn(Arc::new(Statistics { rows: 1, ..Statistics::default() }));
        (0..5_000).for_each(|_| live.note_change());
        assert!(live.is_old(), "it is another table by now");
    }
}
