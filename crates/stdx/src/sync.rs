pub mod atomic {
    pub use std::sync::atomic::*;
}
pub use std::sync::Arc;
pub use std::{hint, thread};
#[derive(Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);
pub type MutexGuard<'a, T> = std::sync::MutexGuard<'a, T>;
impl<T> Mutex<T> {
    pub fn new(v: T) -> Self {
        Mutex(std::sync::Mutex::new(v))
    }
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}
#[derive(Default)]
pub struct Condvar(std::sync::Condvar);
impl Condvar {
    pub fn new() -> Self {
        Condvar(std::sync::Condvar::new())
    }
    pub fn wait<'a, T>(&self, g: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(g).unwrap_or_else(|e| e.into_inner())
    }
    pub fn wait_timeout<'a, T>(&self, g: MutexGuard<'a, T>, d: std::time::Duration) -> (MutexGuard<'a, T>, bool) {
        let (g, t) = self.0.wait_timeout(g, d).unwrap_or_else(|e| e.into_inner());
        (g, t.timed_out())
    }
    pub fn notify_one(&self) {
        self.0.notify_one()
    }
    pub fn notify_all(&self) {
        self.0.notify_all()
    }
}
