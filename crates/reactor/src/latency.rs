//! How long the steps of the pool take, for all doors: histograms that are cheap enough to be left on, and can be switched off.
//!
//! A timestamp that was taken while they were off is 0, and recording from 0 does nothing, so switching needs no care anywhere. The cost is the clock. It is read once for several measurements where
//! that is possible, such as a receive that is both the first and the last of its event.

use std::time::{Duration, Instant};

use stdx::histogram::Histogram;
use stdx::sync::atomic::{AtomicBool, Ordering};

pub struct Latencies {
    is_on: AtomicBool,
    start: Instant,
    /// From enqueueing work to the thread that takes it.
    pub work_queue: Histogram,
    /// From the beginning of a round, when its events were known, to the first bytes of a connection.
    pub recv_first: Histogram,
    /// From there to the receive that emptied the socket.
    pub recv_all: Histogram,
    /// From a request to an idle session to its run.
    pub schedule: Histogram,
    /// The action of a timer.
    pub timer: Histogram,
    /// The end of a connection.
    pub fin: Histogram,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            is_on: AtomicBool::new(true),
            start: Instant::now(),
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

    /// Returns the time since the pool was made.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns `elapsed` as a timestamp in nanoseconds, never 0; or 0 while the histograms are off.
    pub(crate) fn timestamp(&self, elapsed: Duration) -> u64 {
        if self.is_on() { elapsed.as_nanos() as u64 | 1 } else { 0 }
    }

    /// Returns the timestamp of the present moment.
    pub(crate) fn now(&self) -> u64 {
        if self.is_on() { self.timestamp(self.elapsed()) } else { 0 }
    }

    /// Records the time since a timestamp. Does nothing if it is 0.
    pub(crate) fn record(&self, into: &Histogram, since: u64) {
        if since != 0 {
            into.record((self.elapsed().as_nanos() as u64).saturating_sub(since));
        }
    }

    /// Returns the histograms under XRPC's names.
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
    fn a_timestamp_of_a_time_when_they_were_off_is_not_recorded() {
        let latency = Latencies::default();
        latency.switch(false);
        let since = latency.now();
        latency.switch(true);
        latency.record(&latency.timer, since);
        assert_eq!((since, latency.timer.snapshot().count), (0, 0));
        latency.record(&latency.timer, latency.now());
        assert_eq!(latency.timer.snapshot().count, 1);
    }
}
