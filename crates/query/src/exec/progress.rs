//! Progress of long statements for the process list. It is published ten times a second, and never for a statement that
//! takes less time.

use std::time::{Duration, Instant};

use crate::exec::host::Host;

/// The number of rows between two checks of the clock.
const LOOK: u64 = 256;
/// The time between two updates.
const STEP: Duration = Duration::from_millis(100);

pub struct Progress {
    stage: &'static str,
    of: Of,
    done: u64,
    look_at: u64,
    /// The time of the last update, or the start.
    told: Option<Instant>,
}

/// The total number of rows.
#[derive(Clone, Copy)]
pub enum Of {
    Exactly(u64),
    /// An estimate of planner or statistics. It is ignored where it is below the number of rows done.
    About(u64),
    Unknown,
}

impl Progress {
    pub fn begin(stage: &'static str, of: Of) -> Progress {
        Progress { stage, of, done: 0, look_at: LOOK, told: None }
    }

    /// Counts rows.
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

    /// Starts another stage, whose number of rows is unknown.
    pub fn turn(&mut self, stage: &'static str, host: &Host) {
        (self.stage, self.of) = (stage, Of::Unknown);
        if self.told.is_some() {
            self.tell(host);
        }
    }

    /// Hides the state; the statement continues.
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
