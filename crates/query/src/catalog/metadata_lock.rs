//! The metadata lock of a table: keeps its definition while statements and transactions use it, and them out while DDL
//! changes it. MySQL calls this MDL.
//!
//! QU-10: a transaction holds the lock shared from before the first read of the definition to its end. DDL holds it
//! exclusively from before its change until the new definition is published. A session may hold it both ways.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use stdx::sync::{Condvar, Mutex};
use stdx::wait;

use crate::catalog::table_lock::{STEP, TABLE_LOCK, gives_up};

/// The bit of an exclusive holder or waiter; below it is the number of shared holders.
const EXCLUSIVE: u64 = 1 << 63;

#[derive(Debug, Default)]
pub struct MetadataLock {
    word: AtomicU64,
    /// The session that holds the lock exclusively, or has claimed it and waits for shared holders to go. 0: none, or one
    /// that takes no part in the search for deadlocks.
    claimant: AtomicU64,
    waiting: Mutex<()>,
    moved: Condvar,
}

impl MetadataLock {
    /// Acquires the lock shared. An exclusive waiter goes before new shared holders. Fails after `patience`, when
    /// `is_killed` says so, or if too many threads wait.
    pub fn acquire_shared(&self, patience: Duration, is_killed: &dyn Fn() -> bool) -> Result<()> {
        if self.try_acquire_shared() {
            return Ok(());
        }
        let until = Instant::now() + patience;
        let mut guard = self.waiting.lock();
        loop {
            if self.word.fetch_add(1, Ordering::AcqRel) & EXCLUSIVE == 0 {
                return Ok(());
            }
            if self.word.fetch_sub(1, Ordering::AcqRel) & !EXCLUSIVE == 1 {
                self.moved.notify_all();
            }
            let left = until.saturating_duration_since(Instant::now());
            if let Some(reason) = gives_up(left, is_killed) {
                return Err(reason);
            }
            let Some(_waiting) = wait::try_announce(&TABLE_LOCK) else { return Err(Fault::TooManyWaits) };
            guard = self.moved.wait_timeout(guard, left.min(STEP)).0;
        }
    }

    /// Acquires the lock shared if nobody holds or claims it exclusively.
    pub fn try_acquire_shared(&self) -> bool {
        let is_free = self.word.fetch_add(1, Ordering::AcqRel) & EXCLUSIVE == 0;
        if !is_free {
            self.release_shared();
        }
        is_free
    }

    pub fn release_shared(&self) {
        let before = self.word.fetch_sub(1, Ordering::AcqRel);
        if before & EXCLUSIVE != 0 {
            let _guard = self.waiting.lock();
            self.moved.notify_all();
        }
    }

    /// Acquires the lock exclusively: keeps out new shared holders and waits until the present ones are gone. Fails as
    /// `acquire_shared` does, and then readmits shared holders.
    pub fn acquire_exclusive(&self, patience: Duration, is_killed: &dyn Fn() -> bool) -> Result<()> {
        self.acquire_exclusive_beside(0, 0, patience, is_killed)
    }

    /// Does the same for the session `claimant`, which holds the lock shared `own` times and goes on to hold it so.
    pub fn acquire_exclusive_beside(
        &self,
        own: u64,
        claimant: u64,
        patience: Duration,
        is_killed: &dyn Fn() -> bool,
    ) -> Result<()> {
        let until = Instant::now() + patience;
        let mut guard = self.waiting.lock();
        let mut is_mine = false;
        loop {
            if !is_mine {
                is_mine = self.word.fetch_or(EXCLUSIVE, Ordering::AcqRel) & EXCLUSIVE == 0;
                if is_mine {
                    self.claimant.store(claimant, Ordering::Release);
                }
            }
            if is_mine && self.word.load(Ordering::Acquire) & !EXCLUSIVE == own {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            let waiting = match gives_up(left, is_killed) {
                Some(reason) => Err(reason),
                None => wait::try_announce(&TABLE_LOCK).ok_or(Fault::TooManyWaits),
            };
            if waiting.is_err() && is_mine {
                self.claimant.store(0, Ordering::Release);
                self.word.fetch_and(!EXCLUSIVE, Ordering::AcqRel);
                self.moved.notify_all();
            }
            let _waiting = waiting?;
            // `release_shared` notifies under the mutex; the step is for failed attempts of `acquire_shared`, which do
            // not.
            guard = self.moved.wait_timeout(guard, left.min(STEP)).0;
        }
    }

    pub fn release_exclusive(&self) {
        let _guard = self.waiting.lock();
        self.claimant.store(0, Ordering::Release);
        self.word.fetch_and(!EXCLUSIVE, Ordering::AcqRel);
        self.moved.notify_all();
    }

    pub fn claimant(&self) -> u64 {
        self.claimant.load(Ordering::Acquire)
    }
}
