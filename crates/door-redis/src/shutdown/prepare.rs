//! The steps before the doors close: followers catch up, and an RDB file is written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{STEP, StopStage};
use crate::saves::write::{NotBegun, start};
use crate::saves::{SaveKind, SaveReply, SaveSlot};
use crate::shared::Shared;
use crate::source::history::History;

/// How often followers are asked how far they are.
const ASKED_EVERY: Duration = Duration::from_secs(1);

/// Prepares the stop of the server, which a signal or SHUTDOWN has asked for. Returns false if the server is to go on.
pub(crate) fn prepare(shared: &Arc<Shared>, signal: Option<&str>) -> bool {
    let words = signal.map(|name| shared.parameters.text(&format!("shutdown-on-{name}"))).unwrap_or_default();
    let options = shared.shutdown.options(&words);
    let goes_on = |text: &str| {
        shared.host.report(text);
        shared.shutdown.give_up();
        shared.clients.hold_writes(false);
        false
    };
    if !options.is_now && !shared.await_followers() {
        return goes_on("the shutdown was aborted");
    }
    if !shared.shutdown.enter(StopStage::Saving) {
        return goes_on("the shutdown was aborted");
    }
    if options.saves
        && let Err(text) = save_now(shared)
    {
        if !options.is_forced {
            return goes_on(&format!("the server goes on, because its RDB file was not written: {text}"));
        }
        shared.host.report(&format!("the server stops without an RDB file: {text}"));
    }
    shared.shutdown.enter(StopStage::Final)
}

impl Shared {
    /// Holds up commands that write and waits until all followers have acknowledged what was told, for `shutdown-timeout` seconds at most. Returns false if
    /// the stop was aborted.
    fn await_followers(&self) -> bool {
        let timeout = Duration::from_secs(self.parameters.number("shutdown-timeout"));
        if timeout.is_zero() || self.history.count_lagging() == 0 {
            return true;
        }
        let until_ms = self.clock.wall_ms().saturating_add(timeout.as_millis() as u64);
        if !self.shutdown.enter(StopStage::CatchingUp { until_ms }) {
            return false;
        }
        self.host.report("the server waits for its followers before it stops");
        self.clients.hold_writes(true);
        let (begun, mut asked): (Instant, Option<Instant>) = (Instant::now(), None);
        loop {
            if !self.shutdown.step() {
                return false;
            }
            let lagging = self.history.count_lagging();
            if lagging == 0 {
                return true;
            }
            if begun.elapsed() >= timeout {
                self.host.report(&format!("the server stops, and {lagging} followers do not have everything"));
                return true;
            }
            if asked.is_none_or(|at| at.elapsed() >= ASKED_EVERY) {
                self.history.append_command(&[b"REPLCONF", b"GETACK", b"*"], 0);
                asked = Some(Instant::now());
            }
        }
    }
}

/// Writes the RDB file, behind one that is being written.
fn save_now(shared: &Arc<Shared>) -> Result<(), String> {
    let slot = SaveSlot::new(None);
    loop {
        match start(shared, SaveKind::Save, slot.clone()) {
            Ok(()) => break,
            Err(NotBegun::Running(_)) => std::thread::sleep(STEP),
            Err(NotBegun::Failed(text)) => return Err(text),
        }
    }
    loop {
        match slot.take() {
            Some(SaveReply::Failed(text)) => return Err(text),
            Some(_) => return Ok(()),
            None => std::thread::sleep(STEP),
        }
    }
}

impl History {
    /// Returns how many followers that acknowledge have not acknowledged everything that was told of keys, functions and messages.
    fn count_lagging(&self) -> usize {
        let state = self.lock();
        let told = state.told_end;
        state.followers.iter().filter(|follower| !follower.is_mute && follower.acknowledged() < told).count()
    }
}
