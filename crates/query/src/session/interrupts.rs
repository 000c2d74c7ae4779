//! How other threads end a session's statement, its waits, or the session; and how a suspended statement is woken.
//!
//! Flags only: a running statement polls `cancellation` and `is_interrupted`. A thread that sets one wakes the suspended statement afterwards, and a statement that suspends publishes its waker before
//! it reads the flags, so no wake-up is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use stdx::sync::Mutex;

/// The part of a session that a cancel request ends. The order matters: a stronger request replaces a weaker one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kill {
    No,
    /// The running statement ends with an error.
    Query,
    /// The session ends too.
    Connection,
}

/// Called from any thread when a suspended statement may be resumed, perhaps more often than needed.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The client has closed its connection.
const DEPARTED: u8 = 1;
/// All waits of the session end at once: the client has left, or the server stops.
const NO_WAITS: u8 = 2;
/// The running statement changes nothing, so without a client it has no purpose.
const IS_READ: u8 = 4;

/// The requests of other threads to one session.
#[derive(Default)]
pub struct Interrupts {
    kill: AtomicU8,
    /// `DEPARTED`, `NO_WAITS` and `IS_READ`.
    ends: AtomicU8,
    /// Closes the connection.
    close: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
    /// Resumes the suspended statement.
    resume: Mutex<Option<Wake>>,
}

impl Interrupts {
    /// Sets the function that closes the connection. It is called, in any thread, when the session is to end.
    pub fn on_kill(&self, close: Box<dyn Fn() + Send + Sync>) {
        *self.close.lock() = Some(close);
    }

    /// Returns the cancel request in force. A departed client cancels a statement that only reads.
    pub fn killed(&self) -> Kill {
        match self.kill.load(Ordering::Relaxed) {
            0 if self.ends.load(Ordering::Relaxed) & (DEPARTED | IS_READ) == DEPARTED | IS_READ => Kill::Query,
            0 => Kill::No,
            1 => Kill::Query,
            _ => Kill::Connection,
        }
    }

    /// Requests the end of the statement or of the session.
    pub fn kill(&self, how: Kill) {
        self.kill.fetch_max(how as u8, Ordering::SeqCst);
        self.wake_suspended();
        if how == Kill::Connection
            && let Some(close) = &*self.close.lock()
        {
            close();
        }
    }

    /// Records that the client has closed its connection: a statement that only reads ends, and so do the session's waits.
    pub fn depart(&self) {
        self.ends.fetch_or(DEPARTED | NO_WAITS, Ordering::SeqCst);
        self.wake_suspended();
    }

    /// Ends the wait of the running statement and every later wait of the session.
    pub fn end_waits(&self) {
        self.ends.fetch_or(NO_WAITS, Ordering::SeqCst);
        self.wake_suspended();
    }

    /// Returns whether a wait must end, or must not begin.
    pub fn is_interrupted(&self) -> bool {
        self.kill.load(Ordering::SeqCst) != 0 || self.ends.load(Ordering::SeqCst) & NO_WAITS != 0
    }

    /// Records whether the statement that begins only reads.
    pub fn begin_plan(&self, is_read: bool) {
        match is_read {
            true => self.ends.fetch_or(IS_READ, Ordering::Relaxed),
            false => self.ends.fetch_and(!IS_READ, Ordering::Relaxed),
        };
    }

    /// Registers the waker of a suspended statement. It is called at once if its wait must end already.
    pub fn suspend(&self, wake: Wake) {
        *self.resume.lock() = Some(wake);
        if self.is_interrupted() {
            self.wake_suspended();
        }
    }

    /// Removes the waker: the statement runs again, or is gone.
    pub fn resumed(&self) {
        *self.resume.lock() = None;
    }

    fn wake_suspended(&self) {
        let wake = self.resume.lock().clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Drops a request to end a statement that came after the statement's end. Called when a statement begins.
    pub fn forget_query_kill(&self) {
        if self.kill.load(Ordering::Relaxed) == Kill::Query as u8 {
            let _ = self.kill.compare_exchange(Kill::Query as u8, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn counting() -> (Arc<AtomicUsize>, Wake) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        (
            calls,
            Arc::new(move || {
                counted.fetch_add(1, Ordering::SeqCst);
            }),
        )
    }

    #[test]
    fn a_request_before_the_suspension_wakes_it_at_once() {
        let interrupts = Interrupts::default();
        let (calls, wake) = counting();
        interrupts.kill(Kill::Query);
        interrupts.suspend(wake);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        interrupts.resumed();
        interrupts.end_waits();
        assert_eq!(calls.load(Ordering::SeqCst), 1, "the waker was removed");
    }

    #[test]
    fn a_late_query_kill_is_forgotten_and_a_connection_kill_is_not() {
        let interrupts = Interrupts::default();
        interrupts.kill(Kill::Query);
        interrupts.forget_query_kill();
        assert_eq!(interrupts.killed(), Kill::No);
        let (calls, close) = counting();
        interrupts.on_kill(Box::new(move || close()));
        interrupts.kill(Kill::Connection);
        interrupts.kill(Kill::Query);
        interrupts.forget_query_kill();
        assert_eq!((interrupts.killed(), calls.load(Ordering::SeqCst)), (Kill::Connection, 1));
    }

    #[test]
    fn a_departed_client_cancels_reads_only() {
        let interrupts = Interrupts::default();
        interrupts.begin_plan(false);
        interrupts.depart();
        assert_eq!(interrupts.killed(), Kill::No);
        assert!(interrupts.is_interrupted(), "waits end all the same");
        interrupts.begin_plan(true);
        assert_eq!(interrupts.killed(), Kill::Query);
    }
}
