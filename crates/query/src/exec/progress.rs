//! How far a statement over many rows has come, for the process list. Nobody asks for it: it is told ten times a second, and a statement that takes less says nothing.

use std::time::{Duration, Instant};

use crate::exec::host::Host;

/// Rows between two looks at the clock.
const LOOK: u64 = 256;
/// Time between two words.
const STEP: Duration = Duration::from_millis(100);

pub struct Progress {
    stage: &'static str,
    of: Of,
    done: u64,
    look_at: u64,
    /// When something was told, or would have been first.
    told: Option<Instant>,
}

/// How many rows there are in all.
#[derive(Clone, Copy)]
pub enum Of {
    Exactly(u64),
    /// As the planner guesses, or the table's statistics; nobody knows it where it is less than what is done.
    About(u64),
    Unknown,
}

impl Progress {
    pub fn begin(stage: &'static str, of: Of) -> Progress {
        Progress { stage, of, done: 0, look_at: LOOK, told: None }
    }

    /// Adds rows to those done.
    pub fn add(&mut self, rows: usize, host: &Host) {
        self.done += rows as u64;
        if self.done < self.look_at {
            return;
        }
        self.look_at = self.done + LOOK;
        let now = Instant::now();
        let told = *self.told.get_or_insert(now);
        if now - told >= STEP {
            self.told = Some(now);
            self.tell(host);
        }
    }

    /// All rows are done, and something else begins with them that no number is known of.
    pub fn turn(&mut self, stage: &'static str, host: &Host) {
        (self.stage, self.of) = (stage, Of::Unknown);
        if self.told.is_some() {
            self.tell(host);
        }
    }

    /// Takes back the shown state; the statement goes on.
    pub fn end(&self, host: &Host) {
        if self.told.is_some() {
            host.monitor.show_state(None);
        }
    }

    fn tell(&self, host: &Host) {
        let state = self.state();
        host.monitor.show_state(Some(state));
    }

    fn state(&self) -> String {
        let (stage, done) = (self.stage, self.done);
        match self.of {
            Of::Exactly(all) => format!("{stage} ({done} of {all} rows)"),
            Of::About(all) if all > done => format!("{stage} ({done} of about {all} rows)"),
            Of::About(_) | Of::Unknown => format!("{stage} ({done} rows)"),
        }
    }
}
