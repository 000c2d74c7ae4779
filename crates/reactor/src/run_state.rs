//! The run state of a connection: which thread may run it, and which events it has to look at.
//!
//! ```text
//!   word:  RUNNING | events (READ, WRITE, RELEASE, WAKE, PUSH, KILL, ...)
//!
//!   notify(bits):  old = word |= bits | RUNNING;   RUNNING was clear? the caller runs the connection : its runner will see the bits
//!   run:           loop { bits = swap(RUNNING); handle bits;  CAS(RUNNING -> 0)? done : new bits have come, repeat }
//! ```
//! So two threads never run one connection, no thread waits for the runner, and no event is lost (RE-1). It is XRPC's try-lock and recheck
//! with both flags in one word.

use stdx::sync::atomic::{AtomicU32, Ordering};

const RUNNING: u32 = 1;
pub(crate) const READ: u32 = 2;
pub(crate) const WRITE: u32 = 4;
/// The watermark may have passed the durability LSN of a reply.
pub(crate) const RELEASE: u32 = 8;
pub(crate) const WAKE: u32 = 16;
/// The mailbox has replies.
pub(crate) const PUSH: u32 = 32;
pub(crate) const KILL: u32 = 64;
/// Close as soon as all output is sent.
pub(crate) const DRAIN: u32 = 128;
/// Continue with input that fairness left in the socket.
pub(crate) const RESUME: u32 = 256;
/// The input holds requests that were received and not served.
pub(crate) const SERVE: u32 = 512;
/// The peer sends no more: the last received bytes precede the end of the stream.
pub(crate) const END: u32 = 1024;
/// The session has asked to be served, without input.
pub(crate) const ASK: u32 = 2048;

#[derive(Default)]
pub(crate) struct RunState(AtomicU32);

impl RunState {
    /// Makes a state in which the maker of the connection is the runner.
    pub fn running() -> RunState {
        RunState(AtomicU32::new(RUNNING))
    }

    /// Releases the connection unconditionally and returns the events that have come meanwhile. The caller has to pass them on. Only the runner calls this.
    pub fn release_with_events(&self) -> u32 {
        self.0.swap(0, Ordering::AcqRel) & !RUNNING
    }

    /// Adds events. Returns true if the caller has become the runner.
    pub fn notify(&self, bits: u32) -> bool {
        self.0.fetch_or(bits | RUNNING, Ordering::AcqRel) & RUNNING == 0
    }

    /// Takes all events. Only the runner calls this.
    pub fn take(&self) -> u32 {
        self.0.swap(RUNNING, Ordering::AcqRel) & !RUNNING
    }

    /// Clears events that the runner is about to handle. Left set, they would look like new ones at the end of the run. Only the runner calls this.
    pub fn clear(&self, bits: u32) {
        self.0.fetch_and(!bits | RUNNING, Ordering::AcqRel);
    }

    /// Releases the connection. Returns false, and the caller stays the runner, if events have come since `take`.
    pub fn release(&self) -> bool {
        self.0.compare_exchange(RUNNING, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use stdx::sync::{Arc, thread};

    /// RE-1: two threads bring events. Each event is seen, and the two threads never run the connection at once.
    #[test]
    fn loom_every_event_is_seen_by_one_runner_at_a_time() {
        loom::model(|| {
            let state = Arc::new(RunState::default());
            let runners = Arc::new(AtomicU32::new(0));
            let seen = Arc::new(AtomicU32::new(0));
            let tasks: Vec<_> = [READ, WRITE]
                .into_iter()
                .map(|bit| {
                    let (state, runners, seen) = (state.clone(), runners.clone(), seen.clone());
                    thread::spawn(move || {
                        if !state.notify(bit) {
                            return;
                        }
                        loop {
                            assert_eq!(runners.fetch_add(1, Ordering::Relaxed), 0);
                            seen.fetch_or(state.take(), Ordering::Relaxed);
                            runners.fetch_sub(1, Ordering::Relaxed);
                            if state.release() {
                                return;
                            }
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.join().unwrap();
            }
            assert_eq!(seen.load(Ordering::Relaxed), READ | WRITE);
        });
    }
}
