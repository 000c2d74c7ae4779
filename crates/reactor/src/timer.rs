//! What is to be run later. One heap and one timer descriptor for the pool; an idle pool without timers never wakes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use stdx::sync::Mutex;

use crate::sys::TimerFd;

type Action = Box<dyn FnOnce() + Send>;

struct Entry {
    due: Instant,
    sequence: u64,
    action: Action,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.sequence).cmp(&(other.due, other.sequence))
    }
}

#[derive(Default)]
struct Heap {
    entries: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
}

pub struct Timers {
    heap: Mutex<Heap>,
    pub fd: TimerFd,
}

impl Timers {
    pub fn new() -> std::io::Result<Timers> {
        Ok(Timers { heap: Mutex::default(), fd: TimerFd::new()? })
    }

    pub fn add(&self, delay: Duration, action: Action) {
        let mut heap = self.heap.lock();
        let due = Instant::now() + delay;
        heap.sequence += 1;
        let sequence = heap.sequence;
        let first = heap.entries.peek().is_none_or(|Reverse(entry)| due < entry.due);
        heap.entries.push(Reverse(Entry { due, sequence, action }));
        if first {
            self.fd.arm(delay);
        }
    }

    /// Takes what is due and arms the descriptor for the next.
    pub fn due(&self) -> Vec<Action> {
        let mut heap = self.heap.lock();
        let now = Instant::now();
        let mut actions = Vec::new();
        while heap.entries.peek().is_some_and(|Reverse(entry)| entry.due <= now) {
            actions.push(heap.entries.pop().expect("peeked").0.action);
        }
        if let Some(Reverse(entry)) = heap.entries.peek() {
            self.fd.arm(entry.due.saturating_duration_since(now));
        }
        actions
    }
}
