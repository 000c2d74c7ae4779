//! A number that only grows, with waiters, listeners and requests. The durable end of the WAL is one.
//!
//! Hard part: a waiter must not sleep through the advance that it waits for. It registers under the mutex before its last look at the value. `advance` raises the value first and then looks for
//! registered waiters. A SeqCst fence in between on both sides makes one of them see the other (SX-2).
//!
//! Raising the number may cost a disk write. A waiter therefore requests a value, and the thread that raises the number parks in `producer` until there is a request (SX-3).

use std::time::{Duration, Instant};

use crate::parker::{Depth, Parker};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, Mutex, RwLock};

type Listener = Box<dyn Fn(u64) + Send + Sync>;

pub struct Watermark {
    value: AtomicU64,
    /// The greatest value that was requested.
    requested: AtomicU64,
    /// Where the thread that raises the number parks.
    pub producer: Parker,
    /// Threads that are blocked in `wait` and `wait_timeout`.
    waiters: AtomicUsize,
    /// Waiters without a thread that were added since the last `take_async_waiters`.
    async_waiters: AtomicUsize,
    blocked: (Mutex<()>, Condvar),
    listeners: RwLock<Vec<Listener>>,
}

impl Watermark {
    pub fn new(value: u64) -> Watermark {
        Watermark {
            value: AtomicU64::new(value),
            requested: AtomicU64::new(value),
            producer: Parker::new(),
            waiters: AtomicUsize::new(0),
            async_waiters: AtomicUsize::new(0),
            blocked: (Mutex::new(()), Condvar::new()),
            listeners: RwLock::new(Vec::new()),
        }
    }

    #[inline]
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }

    /// Raises the number, wakes its waiters, then calls the listeners in this thread. A value that is not above the current one is ignored.
    pub fn advance(&self, value: u64) {
        if self.value.fetch_max(value, Ordering::AcqRel) >= value {
            return;
        }
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) > 0 {
            drop(self.blocked.0.lock());
            self.blocked.1.notify_all();
        }
        for listener in self.listeners.read().iter() {
            listener(value);
        }
    }

    /// Requests that the number reach `value` soon. A waiter without a thread calls it before it waits; `wait` and `wait_timeout` call it themselves.
    #[inline]
    pub fn request(&self, value: u64) {
        if self.get() >= value || self.requested.fetch_max(value, Ordering::SeqCst) >= value {
            return;
        }
        fence(Ordering::SeqCst);
        if self.producer.depth() != Depth::Awake {
            self.producer.unpark();
        }
    }

    /// Returns the greatest value that was requested.
    #[inline]
    pub fn requested(&self) -> u64 {
        self.requested.load(Ordering::SeqCst)
    }

    /// Counts a waiter without a thread, such as a reply that a listener will release. The producer decides by their number how often it raises the watermark.
    #[inline]
    pub fn add_async_waiter(&self) {
        self.async_waiters.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many waiters were added since the last call.
    pub fn take_async_waiters(&self) -> usize {
        self.async_waiters.swap(0, Ordering::Relaxed)
    }

    /// Blocks until the number is at least `value`.
    pub fn wait(&self, value: u64) {
        if self.get() >= value {
            return;
        }
        self.request(value);
        let mut guard = self.blocked.0.lock();
        self.waiters.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while self.get() < value {
            guard = self.blocked.1.wait(guard);
        }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Does the same as `wait`, for at most `timeout`. Returns false if the time ran out first.
    pub fn wait_timeout(&self, value: u64, timeout: Duration) -> bool {
        if self.get() >= value {
            return true;
        }
        self.request(value);
        let until = Instant::now() + timeout;
        let mut guard = self.blocked.0.lock();
        self.waiters.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut reached = self.get() >= value;
        while !reached {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            guard = self.blocked.1.wait_timeout(guard, left).0;
            reached = self.get() >= value;
        }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        reached
    }

    /// Registers a listener. It is called with the new value after every advance, in the advancing thread. Values may arrive out of order when several threads advance.
    pub fn listen(&self, listener: Listener) {
        self.listeners.write().push(listener);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::Arc;

    #[test]
    fn it_never_goes_back_and_listeners_hear_each_advance() {
        let mark = Watermark::new(5);
        let heard = Arc::new(AtomicU64::new(0));
        let sum = heard.clone();
        mark.listen(Box::new(move |value| {
            sum.fetch_add(value, Ordering::Relaxed);
        }));
        mark.advance(7);
        mark.advance(6);
        mark.advance(9);
        assert_eq!((mark.get(), heard.load(Ordering::Relaxed)), (9, 16));
    }

    #[test]
    fn waiters_wake_at_their_value() {
        let mark = Watermark::new(0);
        assert!(!mark.wait_timeout(1, Duration::from_millis(5)));
        std::thread::scope(|scope| {
            for value in 1..=8 {
                let mark = &mark;
                scope.spawn(move || {
                    mark.wait(value * 10);
                    assert!(mark.get() >= value * 10);
                });
            }
            for value in 1..=80 {
                mark.advance(value);
            }
        });
        assert!(mark.wait_timeout(80, Duration::ZERO));
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::{Arc, thread};

    #[test]
    fn loom_no_wake_up_is_lost() {
        loom::model(|| {
            let mark = Arc::new(Watermark::new(0));
            let advancer = {
                let mark = mark.clone();
                thread::spawn(move || mark.advance(1))
            };
            mark.wait(1);
            assert_eq!(mark.get(), 1);
            advancer.join().unwrap();
        });
    }

    #[test]
    fn loom_no_request_is_slept_through() {
        loom::model(|| {
            let mark = Arc::new(Watermark::new(0));
            let producer = {
                let mark = mark.clone();
                thread::spawn(move || {
                    while mark.requested() == 0 {
                        mark.producer.park(Depth::Light, || mark.requested() > 0);
                    }
                    mark.advance(1);
                })
            };
            mark.wait(1);
            producer.join().unwrap();
        });
    }
}
