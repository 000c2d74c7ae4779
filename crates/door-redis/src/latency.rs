//! The latency monitor: samples of events that took at least `latency-monitor-threshold`.
//!
//! Two events are monitored: `command`, and `fast-command` for commands with the flag `fast`.

use std::collections::BTreeMap;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

/// Number of samples kept per event, as in Redis.
const SAMPLES: usize = 160;
const OFF: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub unix_seconds: u64,
    pub milliseconds: u64,
}

#[derive(Clone, Default)]
pub struct Event {
    /// Oldest first. One per second: a longer sample of the same second replaces a shorter one.
    pub samples: Vec<Sample>,
    pub milliseconds_max: u64,
}

pub struct Monitor {
    events: Mutex<BTreeMap<&'static str, Event>>,
    threshold_ns: AtomicU64,
}

impl Default for Monitor {
    fn default() -> Monitor {
        Monitor { events: Mutex::default(), threshold_ns: AtomicU64::new(OFF) }
    }
}

impl Monitor {
    /// Zero means off.
    pub fn set_threshold_ms(&self, milliseconds: u64) {
        let threshold = if milliseconds == 0 { OFF } else { milliseconds.saturating_mul(1_000_000) };
        self.threshold_ns.store(threshold, Ordering::Relaxed);
    }

    pub fn is_on(&self) -> bool {
        self.threshold_ns.load(Ordering::Relaxed) != OFF
    }

    #[inline]
    pub fn is_slow(&self, nanoseconds: u64) -> bool {
        nanoseconds >= self.threshold_ns.load(Ordering::Relaxed)
    }

    pub fn add(&self, event: &'static str, unix_seconds: u64, milliseconds: u64) {
        let mut events = self.events.lock();
        let event = events.entry(event).or_default();
        event.milliseconds_max = event.milliseconds_max.max(milliseconds);
        match event.samples.last_mut() {
            Some(last) if last.unix_seconds == unix_seconds => last.milliseconds = last.milliseconds.max(milliseconds),
            _ => {
                if event.samples.len() == SAMPLES {
                    event.samples.remove(0);
                }
                event.samples.push(Sample { unix_seconds, milliseconds });
            }
        }
    }

    pub fn all(&self) -> Vec<(&'static str, Event)> {
        self.events.lock().iter().map(|(name, event)| (*name, event.clone())).collect()
    }

    pub fn get(&self, name: &[u8]) -> Option<Event> {
        self.all().into_iter().find(|(event, _)| name.eq_ignore_ascii_case(event.as_bytes())).map(|(_, event)| event)
    }

    /// Removes the samples of one event, or of all. Returns the number of events.
    pub fn reset(&self, name: Option<&[u8]>) -> usize {
        let mut events = self.events.lock();
        let before = events.len();
        events.retain(|event, _| name.is_some_and(|name| !name.eq_ignore_ascii_case(event.as_bytes())));
        before - events.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_keeps_its_longest_sample_and_old_ones_leave() {
        let monitor = Monitor::default();
        assert!(!monitor.is_slow(u64::MAX - 1), "off at first");
        monitor.set_threshold_ms(5);
        assert!(monitor.is_slow(5_000_000));
        assert!(!monitor.is_slow(4_999_999));
        for (second, milliseconds) in [(1, 7), (1, 9), (1, 8), (2, 6)] {
            monitor.add("command", second, milliseconds);
        }
        let event = monitor.get(b"command").expect("there are samples");
        let samples = [Sample { unix_seconds: 1, milliseconds: 9 }, Sample { unix_seconds: 2, milliseconds: 6 }];
        assert_eq!((event.samples.as_slice(), event.milliseconds_max), (&samples[..], 9));
        (3..200).for_each(|second| monitor.add("command", second, 6));
        let event = monitor.get(b"command").expect("there are samples");
        assert_eq!((event.samples.len(), event.samples[0].unix_seconds, event.milliseconds_max), (SAMPLES, 40, 9));
        assert_eq!((monitor.reset(Some(b"nothing")), monitor.reset(None), monitor.reset(None)), (0, 1, 0));
    }
}
