//! Who writes and who wants nothing written: LOCK TABLES ... READ keeps writers out of a table, FLUSH TABLES WITH READ LOCK keeps DDL out of everything. Many may want
//! stillness at once (QU-11), and many may write at once, but never one of each: whoever wants stillness says so first, which keeps new writers out, and waits for those that are in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use stdx::sync::{Condvar, Mutex};
use stdx::wait::{self, Reason};

pub static TABLE_LOCK: Reason = Reason::bounded("table_lock");

/// How often who waits looks up.
pub(super) const STEP: Duration = Duration::from_millis(100);

/// Why to wait no longer.
pub(super) fn gives_up(left: Duration, is_killed: &dyn Fn() -> bool) -> Option<Fault> {
    if is_killed() {
        return Some(Fault::Interrupted);
    }
    left.is_zero().then_some(Fault::LockTimeout)
}

/// One who wants stillness; below are the writers.
const ONE: u64 = 1 << 32;

#[derive(Debug, Default)]
pub struct Stillness {
    word: AtomicU64,
    waiting: Mutex<()>,
    moved: Condvar,
}

impl Stillness {
    /// Comes in to write.
    pub fn write(&self, patience: Duration, is_killed: &dyn Fn() -> bool) -> Result<()> {
        if self.word.fetch_add(1, Ordering::AcqRel) < ONE {
            return Ok(());
        }
        self.written();
        self.wait_until(patience, is_killed, || {
            self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| (word < ONE).then_some(word + 1)).is_ok()
        })
    }

    pub fn written(&self) {
        if self.word.fetch_sub(1, Ordering::AcqRel) >= ONE {
            self.notify();
        }
    }

    /// From here on nobody writes, until `end`.
    pub fn begin(&self, patience: Duration, is_killed: &dyn Fn() -> bool) -> Result<()> {
        if self.word.fetch_add(ONE, Ordering::AcqRel).is_multiple_of(ONE) {
            return Ok(());
        }
        let waited = self.wait_until(patience, is_killed, || self.word.load(Ordering::Acquire).is_multiple_of(ONE));
        if waited.is_err() {
            self.end();
        }
        waited
    }

    pub fn end(&self) {
        self.word.fetch_sub(ONE, Ordering::AcqRel);
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
    fn stillness_and_writers_keep_each_other_out() {
        let still = Stillness::default();
        let soon = Duration::from_millis(20);
        let never = || false;
        still.write(soon, &never).expect("nobody is there");
        still.write(soon, &never).expect("writers are many");
        assert_eq!(still.begin(soon, &never).expect_err("they write"), Fault::LockTimeout);
        still.written();
        still.written();
        still.begin(soon, &never).expect("nobody writes");
        still.begin(soon, &never).expect("many may want it");
        assert_eq!(still.write(soon, &never).expect_err("it is still"), Fault::LockTimeout);
        still.end();
        assert_eq!(still.write(soon, &never).expect_err("for the other one"), Fault::LockTimeout);
        still.end();
        still.write(soon, &never).expect("nobody wants it any more");
    }
}
