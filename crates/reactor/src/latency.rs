//! How long things take inside the pool, for all doors: histograms that can be left on, and switched off.
//!
//! A time that was begun while they were off is 0, and recording from 0 does nothing, so switching needs no care anywhere. What it costs is the clock: it is read once for what can be told from one
//! reading, such as a receive that is the first of its event and the last too.

use std::time::{Duration, Instant};

use stdx::histogram::Histogram;
use stdx::sync::atomic::{AtomicBool, Ordering};

pub struct Latencies {
    is_on: AtomicBool,
    born: Instant,
    /// From queueing to a thread that takes it.
    pub work_queue: Histogram,
    /// From a round's start, which is when its events were known, to the first bytes of a connection.
    pub recv_first: Histogram,
    /// To the receive that left its socket empty.
    pub recv_all: Histogram,
    /// From a request to an idle session to its run.
    pub schedule: Histogram,
    /// What a timer does.
    pub timer: Histogram,
    /// The end of a connection.
    pub fin: Histogram,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            is_on: AtomicBool::new(true),
            born: Instant::now(),
            work_queue: Histogram::new(),
            recv_first: Histogram::new(),
            recv_all: Histogram::new(),
            schedule: Histogram::new(),
            timer: Histogram::new(),
            fin: Histogram::new(),
        }
    }
}

impl Latencies {
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub fn switch(&self, on: bool) {
        self.is_on.store(on, Ordering::Relaxed);
    }

    /// Since the pool was made.
    pub(crate) fn elapsed(&self) -> Duration {
        self.born.elapsed()
    }

    /// That moment in nanoseconds, never 0; 0 while nothing is measured.
    pub(crate) fn moment(&self, elapsed: Duration) -> u64 {
        if self.is_on() { elapsed.as_nanos() as u64 | 1 } else { 0 }
    }

    /// The same of now.
    pub(crate) fn now(&self) -> u64 {
        if self.is_on() { self.moment(self.elapsed()) } else { 0 }
    }

    /// Records what has gone by since then.
    pub(crate) fn record(&self, into: &Histogram, since: u64) {
        if since != 0 {
            into.record((self.elapsed().as_nanos() as u64).saturating_sub(since));
        }
    }

    /// By the names that XRPC has for them.
    pub fn named(&self) -> [(&'static str, &Histogram); 6] {
        [
            ("work queue", &self.work_queue),
            ("recv first", &self.recv_first),
            ("recv all", &self.recv_all),
            ("schedule", &self.schedule),
            ("timer", &self.timer),
            ("fin", &self.fin),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_while_they_were_off_is_not_recorded() {
        let times = Latencies::default();
        times.switch(false);
        let since = times.now();
        times.switch(true);
        times.record(&times.timer, since);
        assert_eq!((since, times.timer.snapshot().count), (0, 0));
        times.record(&times.timer, times.now());
        assert_eq!(times.timer.snapshot().count, 1);
    }
}
