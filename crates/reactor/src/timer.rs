//! Timers: one ordered map and one timer descriptor for the pool. An idle pool without timers never wakes.
//!
//! An [`Alarm`] owns its entry and removes it when it is dropped. So a client that begins long waits and abandons them leaves nothing behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stdx::sync::Mutex;

use crate::sys::TimerFd;

type Action = Box<dyn FnOnce() + Send>;
/// The due time of an entry, and its number: two entries may be due at the same moment.
type Key = (Instant, u64);

/// The longest delay. A later moment might not be representable.
const DELAY_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[derive(Default)]
struct Entries {
    by_time: BTreeMap<Key, Action>,
    sequence: u64,
}

pub(crate) struct Timers {
    entries: Mutex<Entries>,
    pub fd: TimerFd,
}

/// A timer that is cancelled when this is dropped.
#[must_use = "dropping it cancels the timer"]
pub struct Alarm {
    timers: Arc<Timers>,
    key: Key,
}

impl Timers {
    pub fn new() -> std::io::Result<Timers> {
        Ok(Timers { entries: Mutex::default(), fd: TimerFd::new()? })
    }

    /// Adds an entry that runs `action` after `delay`.
    pub fn add(&self, delay: Duration, action: Action) -> Key {
        let delay = delay.min(DELAY_MAX);
        let mut entries = self.entries.lock();
        entries.sequence += 1;
        let key = (Instant::now() + delay, entries.sequence);
        let first = entries.by_time.first_key_value().is_none_or(|(first, _)| key < *first);
        entries.by_time.insert(key, action);
        if first {
            self.fd.arm(delay);
        }
        key
    }

    /// Does the same as `add`. Dropping the alarm cancels the timer.
    pub fn alarm(self: &Arc<Self>, delay: Duration, action: Action) -> Alarm {
        Alarm { key: self.add(delay, action), timers: self.clone() }
    }

    /// Takes the actions that are due, in their order, and arms the descriptor for the next entry.
    pub fn due(&self) -> Vec<Action> {
        let mut entries = self.entries.lock();
        let now = Instant::now();
        let later = entries.by_time.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut entries.by_time, later);
        if let Some((first, _)) = entries.by_time.first_key_value() {
            self.fd.arm(first.0.saturating_duration_since(now));
        }
        due.into_values().collect()
    }

    /// Returns the number of entries that are not due yet.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.lock().by_time.len()
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // The descriptor may fire without a due entry; `due` arms it for the next one then. The action is dropped outside of the lock.
        let action = self.timers.entries.lock().by_time.remove(&self.key);
        drop(action);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_alarm_leaves_nothing_behind() {
        let timers = Arc::new(Timers::new().unwrap());
        let alarms: Vec<Alarm> = (0..100).map(|_| timers.alarm(Duration::from_secs(3600), Box::new(|| ()))).collect();
        let kept = timers.alarm(Duration::MAX, Box::new(|| ()));
        assert_eq!(timers.len(), 101);
        drop(alarms);
        assert_eq!(timers.len(), 1);
        drop(kept);
        assert_eq!(timers.len(), 0);
    }

    #[test]
    fn due_actions_come_in_their_order_and_the_others_stay() {
        let timers = Timers::new().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        for (name, delay) in [("later", 3600), ("first", 0), ("second", 0)] {
            let sender = sender.clone();
            timers.add(Duration::from_secs(delay), Box::new(move || sender.send(name).unwrap()));
        }
        timers.due().into_iter().for_each(|action| action());
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["first", "second"]);
        assert_eq!(timers.len(), 1);
    }
}
