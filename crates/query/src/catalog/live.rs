//! What all versions of a table share: the gate between statements and DDL, AUTO_INCREMENT, row ids, a guess at the number of rows.
//!
//! C1: whoever uses a table holds its gate shared from before the first look at the definition to the end of the transaction; DDL holds it alone from before its change to after
//! the new definition is published. A counter of AUTO_INCREMENT is never below what the catalog says; the catalog runs ahead of it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stdx::sync::{Condvar, Mutex};
use stdx::wait::{self, Reason};

use crate::catalog::still::Stillness;
use crate::error::{self, Result};

pub static TABLE_LOCK: Reason = Reason::of_others("table_lock");

/// The gate's word: whether it is closed, and how many are inside.
const CLOSED: u64 = 1 << 63;

#[derive(Debug, Default)]
pub struct Live {
    word: AtomicU64,
    waiting: Mutex<()>,
    moved: Condvar,
    /// Who writes its rows, and who keeps writers out.
    pub still: Stillness,
    /// The version that is current.
    pub version: AtomicU64,
    pub auto: Mutex<Auto>,
    /// The next hidden row id; 0: not looked for yet.
    pub row_id: Mutex<u64>,
    /// Foreign keys of its rows were not always checked: the catalog says so too.
    pub unchecked: AtomicBool,
    /// About how many rows there are; negative: not known.
    rows: AtomicI64,
}

/// The counter of AUTO_INCREMENT.
#[derive(Debug, Default)]
pub struct Auto {
    /// The next number; 0: not loaded.
    pub next: u64,
    /// Numbers below are spoken for in the catalog.
    pub reserved: u64,
}

/// How often who waits looks up.
pub(super) const STEP: Duration = Duration::from_millis(100);

/// Why to wait no longer.
pub(super) fn gives_up(left: Duration, is_killed: &dyn Fn() -> bool) -> Option<error::SqlError> {
    if is_killed() {
        return Some(error::QUERY_INTERRUPTED.bare());
    }
    left.is_zero().then(|| error::LOCK_WAIT_TIMEOUT.bare())
}

impl Live {
    pub fn new(version: u64) -> Live {
        Live { version: AtomicU64::new(version), rows: AtomicI64::new(-1), ..Live::default() }
    }

    /// Goes in, if the gate is open within the time.
    pub fn enter(&self, patience: Duration, is_killed: &dyn Fn() -> bool) -> Result<()> {
        if self.word.fetch_add(1, Ordering::AcqRel) & CLOSED == 0 {
            return Ok(());
        }
        self.leave();
        let until = Instant::now() + patience;
        let mut guard = self.waiting.lock();
        loop {
            if self.word.fetch_add(1, Ordering::AcqRel) & CLOSED == 0 {
                return Ok(());
            }
            if self.word.fetch_sub(1, Ordering::AcqRel) & !CLOSED == 1 {
                self.moved.notify_all();
            }
            let left = until.saturating_duration_since(Instant::now());
            if let Some(reason) = gives_up(left, is_killed) {
                return Err(reason);
            }
            let _waiting = wait::announce(&TABLE_LOCK);
            guard = self.moved.wait_timeout(guard, left.min(STEP)).0;
        }
    }

    pub fn leave(&self) {
        let before = self.word.fetch_sub(1, Ordering::AcqRel);
        if before & CLOSED != 0 {
            let _guard = self.waiting.lock();
            self.moved.notify_all();
        }
    }

    /// Closes the gate and waits until nobody is inside.
    pub fn close(&self, patience: Duration, is_killed: &dyn Fn() -> bool) -> Result<()> {
        let until = Instant::now() + patience;
        let mut guard = self.waiting.lock();
        let mut closed = false;
        loop {
            if !closed {
                closed = self.word.fetch_or(CLOSED, Ordering::AcqRel) & CLOSED == 0;
            }
            if closed && self.word.load(Ordering::Acquire) & !CLOSED == 0 {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if let Some(reason) = gives_up(left, is_killed) {
                if closed {
                    self.word.fetch_and(!CLOSED, Ordering::AcqRel);
                    self.moved.notify_all();
                }
                return Err(reason);
            }
            let _waiting = wait::announce(&TABLE_LOCK);
            // Whoever leaves notifies under the mutex; the step is for those who fail to enter without it.
            guard = self.moved.wait_timeout(guard, left.min(STEP)).0;
        }
    }

    pub fn open(&self) {
        let _guard = self.waiting.lock();
        self.word.fetch_and(!CLOSED, Ordering::AcqRel);
        self.moved.notify_all();
    }

    pub fn rows(&self) -> Option<u64> {
        u64::try_from(self.rows.load(Ordering::Relaxed)).ok()
    }

    pub fn set_rows(&self, rows: u64) {
        self.rows.store(rows as i64, Ordering::Relaxed);
    }

    pub fn add_rows(&self, more: i64) {
        let _ = self
            .rows
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rows| (rows >= 0).then(|| (rows + more).max(0)));
    }
}
