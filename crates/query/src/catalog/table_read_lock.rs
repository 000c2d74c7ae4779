//! The table read lock: LOCK TABLES ... READ keeps writers out of a table, FLUSH TABLES WITH READ LOCK keeps DDL out of
//! all definitions.
//!
//! There may be many readers or many writers, never both (QU-11). A reader registers first, which keeps new writers
//! out, and then waits for the present writers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use stdx::sync::{Condvar, Mutex};
use stdx::wait::{self, Reason};

/// How long a lock is waited for, and what ends the wait early.
#[derive(Clone, Copy)]
pub struct Patience<'p> {
    pub wait: Duration,
    pub is_interrupted: &'p dyn Fn() -> bool,
}

pub static TABLE_LOCK: Reason = Reason::bounded("table_lock");

/// The interval in which a waiter rechecks its timeout and whether it was killed.
pub(super) const STEP: Duration = Duration::from_millis(100);

/// Returns the error with which a wait ends, if it ends.
pub(super) fn gives_up(left: Duration, is_killed: &dyn Fn() -> bool) -> Option<Fault> {
    if is_killed() {
        return Some(Fault::Interrupted);
    }
    left.is_zero().then_some(Fault::LockTimeout)
}

/// One reader in the upper half of the word; the lower half counts writers.
const READER: u64 = 1 << 32;

#[derive(Debug, Default)]
pub struct TableReadLock {
    word: AtomicU64,
    waiting: Mutex<()>,
    moved: Condvar,
}

impl TableReadLock {
    /// Registers a writer, once there is no reader. Fails after `patience`, when `is_killed` says so, or if too many
    /// threads wait.
    pub fn admit_writer(&self, patience: Duration, is_killed: &dyn Fn() -> bool) -> Result<()> {
        if self.word.fetch_add(1, Ordering::AcqRel) < READER {
            return Ok(());
        }
        self.release_writer();
        self.wait_until(patience, is_killed, || {
            self.word
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| (word < READER).then_some(word + 1))
                .is_ok()
        })
    }

    pub fn release_writer(&self) {
        if self.word.fetch_sub(1, Ordering::AcqRel) >= READER {
            self.notify();
        }
    }

    /// Acquires the lock for a reader: no writer is admitted until `release`. Fails as `admit_writer` does.
    pub fn acquire(&self, patience: Duration, is_killed: &dyn Fn() -> bool) -> Result<()> {
        if self.word.fetch_add(READER, Ordering::AcqRel).is_multiple_of(READER) {
            return Ok(());
        }
        let waited = self.wait_until(patience, is_killed, || self.word.load(Ordering::Acquire).is_multiple_of(READER));
        if waited.is_err() {
            self.release();
        }
        waited
    }

    pub fn release(&self) {
        self.word.fetch_sub(READER, Ordering::AcqRel);
        self.notify();
    }

    fn notify(&self) {
        let _guard = self.waiting.lock();
        self.moved.notify_all();
    }

    fn wait_until(&self, patience: Duration, is_killed: &dyn Fn() -> bool, is_done: impl Fn() -> bool) -> Result<()> {
        let until = Instant::now() + patience;
        let mut guard = self.waiting.lock();
        while !is_done() {
            let left = until.saturating_duration_since(Instant::now());
            if let Some(reason) = gives_up(left, is_killed) {
                return Err(reason);
            }
            let Some(_waiting) = wait::try_announce(&TABLE_LOCK) else { return Err(Fault::TooManyWaits) };
            guard = self.moved.wait_timeout(guard, left.min(STEP)).0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_and_writers_exclude_each_other() {
        let lock = TableReadLock::default();
        let soon = Duration::from_millis(20);
        let never = || false;
        lock.admit_writer(soon, &never).expect("unlocked");
        lock.admit_writer(soon, &never).expect("writers share");
        assert_eq!(lock.acquire(soon, &never).expect_err("two writers"), Fault::LockTimeout);
        lock.release_writer();
        lock.release_writer();
        lock.acquire(soon, &never).expect("no writer");
        lock.acquire(soon, &never).expect("readers share");
        assert_eq!(lock.admit_writer(soon, &never).expect_err("two readers"), Fault::LockTimeout);
        lock.release();
        assert_eq!(lock.admit_writer(soon, &never).expect_err("one reader"), Fault::LockTimeout);
        lock.release();
        lock.admit_writer(soon, &never).expect("no reader");
    }
}
