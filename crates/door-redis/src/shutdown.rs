//! SHUTDOWN, and the stop that a signal asks for.
//!
//! ```text
//!   SHUTDOWN ──► asked ──► Host::request_stop ─┐
//!                                              ├─► RedisDoor::prepare_stop: followers catch up ─► RDB file, if asked for ─► the doors close
//!   SIGTERM, SIGINT ───────────────────────────┘          │ ABORT                    │ it fails, without FORCE
//!                                                         └──────► the server goes on, and those who wait get an error
//! ```
//! Everything acknowledged is in the WAL, so a stop needs no file. The thread that stops the server prepares it; clients that have sent SHUTDOWN are parked.

use std::time::Duration;

use stdx::sync::{Condvar, Mutex};

use crate::saves::{SaveReply, SaveSlot};

pub(crate) mod prepare;

/// How often acknowledgements and the file are looked at.
const STEP: Duration = Duration::from_millis(10);
const FAILED: &str = "ERR Errors trying to SHUTDOWN. Check logs.";

/// How the server is to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StopOptions {
    /// SAVE: it writes an RDB file before.
    pub saves: bool,
    /// NOW: it does not wait for followers.
    pub is_now: bool,
    /// FORCE: it stops although the file cannot be written.
    pub is_forced: bool,
}

impl StopOptions {
    /// Reads the value of `shutdown-on-sigterm` or `shutdown-on-sigint`.
    fn of_signal(words: &str) -> StopOptions {
        let has = |word| words.split(' ').any(|one| one == word);
        StopOptions { saves: has("save"), is_now: has("now"), is_forced: has("force") }
    }
}

/// How far a stop is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StopStage {
    #[default]
    Running,
    /// A client has asked, and the thread that stops the server has not heard of it.
    Asked,
    /// Followers catch up, until this wall time at most.
    CatchingUp {
        until_ms: u64,
    },
    Saving,
    /// The doors close.
    Final,
}

#[derive(Default)]
struct StopState {
    stage: StopStage,
    options: StopOptions,
    is_aborted: bool,
    /// The clients that wait for the end of the server.
    waiting: Vec<SaveSlot>,
}

/// The stop of the server.
#[derive(Default)]
pub(crate) struct Shutdown {
    state: Mutex<StopState>,
    /// It was aborted.
    aborted: Condvar,
}

impl Shutdown {
    /// Returns until when followers are waited for, if they are.
    pub fn waits_until_ms(&self) -> Option<u64> {
        match self.state.lock().stage {
            StopStage::CatchingUp { until_ms } => Some(until_ms),
            _ => None,
        }
    }

    /// Lets a client wait for the end of the server. Returns true if nobody has asked for that before.
    pub fn ask(&self, options: StopOptions, slot: SaveSlot) -> bool {
        let mut state = self.state.lock();
        state.waiting.push(slot);
        let is_first = state.stage == StopStage::Running;
        if is_first {
            (state.stage, state.options, state.is_aborted) = (StopStage::Asked, options, false);
        }
        is_first
    }

    /// Aborts the stop while followers are waited for, or before. Returns the error if there is none, or it is too late.
    pub fn abort(&self) -> Result<(), &'static str> {
        let mut state = self.state.lock();
        match state.stage {
            StopStage::Running => Err("ERR No shutdown in progress."),
            StopStage::Asked | StopStage::CatchingUp { .. } => {
                state.is_aborted = true;
                self.aborted.notify_all();
                Ok(())
            }
            StopStage::Saving | StopStage::Final => Err("ERR The shutdown can no longer be aborted."),
        }
    }

    /// Goes to the next stage. Returns false if the stop was aborted.
    fn enter(&self, stage: StopStage) -> bool {
        let mut state = self.state.lock();
        if !state.is_aborted {
            state.stage = stage;
        }
        !state.is_aborted
    }

    /// Waits for a step. Returns false if the stop was aborted.
    fn step(&self) -> bool {
        let state = self.state.lock();
        if state.is_aborted {
            return false;
        }
        let (state, _) = self.aborted.wait_timeout(state, STEP);
        !state.is_aborted
    }

    /// Takes the options of the client that has asked, or those of the signal.
    fn options(&self, of_signal: &str) -> StopOptions {
        let mut state = self.state.lock();
        if state.stage == StopStage::Running {
            (state.stage, state.options, state.is_aborted) =
                (StopStage::Asked, StopOptions::of_signal(of_signal), false);
        }
        state.options
    }

    /// The server goes on, and those who wait get an error.
    fn give_up(&self) {
        let mut state = self.state.lock();
        let waiting = std::mem::take(&mut *state).waiting;
        waiting.iter().for_each(|slot| slot.answer(SaveReply::Failed(FAILED.to_owned())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_can_be_aborted_until_it_saves() {
        let shutdown = Shutdown::default();
        assert_eq!(shutdown.abort(), Err("ERR No shutdown in progress."));
        assert!(shutdown.ask(StopOptions::default(), SaveSlot::new(None)));
        let now = StopOptions { is_now: true, ..StopOptions::default() };
        assert!(!shutdown.ask(now, SaveSlot::new(None)), "one is under way");
        assert_eq!(shutdown.state.lock().options, StopOptions::default());
        assert_eq!(shutdown.abort(), Ok(()));
        assert!(!shutdown.enter(StopStage::Saving));
        shutdown.give_up();
        assert!(shutdown.ask(now, SaveSlot::new(None)), "the next one begins anew");
        assert!(shutdown.enter(StopStage::Saving));
        assert_eq!(shutdown.abort(), Err("ERR The shutdown can no longer be aborted."));
        assert_eq!(shutdown.waits_until_ms(), None);
    }
}
