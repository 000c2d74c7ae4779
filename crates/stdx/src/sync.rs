//! Atomics, mutexes and threads: std's, or those of the model checker under `--cfg loom`.
//!
//! Locks are not poisoned: asserts protect the data that they guard. A condition variable asserts that its wait was announced (SX-5).

#[cfg(not(loom))]
mod imp {
    pub mod atomic {
        pub use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    }
    pub use std::sync::Arc;
    pub(super) use std::sync::{
        Condvar as RawCondvar, Mutex as RawMutex, MutexGuard as RawGuard, RwLock as RawRwLock,
        RwLockReadGuard as RawRead, RwLockWriteGuard as RawWrite,
    };
    pub use std::{hint, thread};
}

#[cfg(loom)]
mod imp {
    pub mod atomic {
        pub use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    }
    pub use loom::sync::Arc;
    pub(super) use loom::sync::{
        Condvar as RawCondvar, Mutex as RawMutex, MutexGuard as RawGuard, RwLock as RawRwLock,
        RwLockReadGuard as RawRead, RwLockWriteGuard as RawWrite,
    };
    pub use loom::{hint, thread};
}

pub use imp::{Arc, atomic, hint, thread};

pub type MutexGuard<'a, T> = imp::RawGuard<'a, T>;
pub type ReadGuard<'a, T> = imp::RawRead<'a, T>;
pub type WriteGuard<'a, T> = imp::RawWrite<'a, T>;

#[derive(Default, Debug)]
pub struct Mutex<T>(imp::RawMutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(imp::RawMutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Returns None if the mutex is held.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poison)) => Some(poison.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

#[derive(Default, Debug)]
pub struct RwLock<T>(imp::RawRwLock<T>);

impl<T> RwLock<T> {
    pub fn new(value: T) -> RwLock<T> {
        RwLock(imp::RawRwLock::new(value))
    }

    pub fn read(&self) -> ReadGuard<'_, T> {
        self.0.read().unwrap_or_else(|poison| poison.into_inner())
    }

    pub fn write(&self) -> WriteGuard<'_, T> {
        self.0.write().unwrap_or_else(|poison| poison.into_inner())
    }
}

#[derive(Default, Debug)]
pub struct Condvar(imp::RawCondvar);

impl Condvar {
    pub fn new() -> Condvar {
        Condvar(imp::RawCondvar::new())
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        crate::wait::assert_announced();
        self.0.wait(guard).unwrap_or_else(|poison| poison.into_inner())
    }

    /// Returns the guard, and true if the time ran out.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: std::time::Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        crate::wait::assert_announced();
        let (guard, result) = self.0.wait_timeout(guard, timeout).unwrap_or_else(|poison| poison.into_inner());
        (guard, result.timed_out())
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
