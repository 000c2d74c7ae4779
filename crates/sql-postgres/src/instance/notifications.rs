//! LISTEN and NOTIFY: who listens where, and the notifications that wait for their listeners.
//!
//! A transaction that notifies, or begins to listen, commits under one lock of the database, so notifications arrive everywhere in the order of the commits (PS-7). Each carries its durability LSN: a listener sees it when the
//! sender's commit is on disk.
//!
//! A listener's queue is bounded. One that does not read is cut, with a line in the log, and holds up nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use engine::Lsn;
use query::session::interrupts::Wake;
use stdx::sync::atomic::{AtomicBool, Ordering};
use stdx::sync::{Mutex, MutexGuard};

/// A message to the listeners of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The process id of the sender.
    pub pid: u32,
    pub channel: Arc<str>,
    pub payload: Arc<str>,
}

/// The most bytes that wait for one listener.
pub const QUEUE_BYTES_MAX: usize = 16 << 20;

/// The bytes of a notification without its texts.
const ENTRY_BYTES: usize = 64;

impl Notification {
    pub fn bytes(&self) -> usize {
        ENTRY_BYTES + self.channel.len() + self.payload.len()
    }
}

/// A session that listens.
#[derive(Default)]
pub struct Listener {
    queue: Mutex<Queue>,
    has_waiting: AtomicBool,
    /// Tells the door that something waits.
    wake: OnceLock<Wake>,
    pub pid: u32,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Notification>,
    bytes: usize,
    /// Of the last one.
    lsn: Lsn,
    is_cut: bool,
}

impl Listener {
    pub fn new(pid: u32) -> Listener {
        Listener { pid, ..Listener::default() }
    }

    pub fn on_notification(&self, wake: Wake) {
        let _ = self.wake.set(wake);
    }

    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.has_waiting.load(Ordering::Acquire)
    }

    /// Takes what waits, and its durability LSN.
    pub fn take(&self) -> (VecDeque<Notification>, Lsn) {
        let mut queue = self.queue.lock();
        self.has_waiting.store(false, Ordering::Release);
        queue.bytes = 0;
        (std::mem::take(&mut queue.waiting), queue.lsn)
    }

    /// Adds notifications. Returns false if they are too many, once.
    fn add<'n>(&self, notifications: impl Iterator<Item = &'n Notification>, lsn: Lsn) -> bool {
        let mut queue = self.queue.lock();
        if queue.is_cut {
            return true;
        }
        for notification in notifications {
            queue.bytes += notification.bytes();
            if queue.bytes > QUEUE_BYTES_MAX {
                *queue = Queue { is_cut: true, ..Queue::default() };
                return false;
            }
            queue.waiting.push_back(notification.clone());
        }
        queue.lsn = queue.lsn.max(lsn);
        self.has_waiting.store(true, Ordering::Release);
        drop(queue);
        if let Some(wake) = self.wake.get() {
            wake();
        }
        true
    }

    fn bytes(&self) -> usize {
        self.queue.lock().bytes
    }
}

/// The channels of each database with their listeners.
type Listeners = HashMap<Arc<str>, HashMap<Arc<str>, Vec<Arc<Listener>>>>;

/// The sessions that listen, by database and channel.
#[derive(Default)]
pub struct Channels {
    listeners: Mutex<Listeners>,
    order: Mutex<()>,
}

impl Channels {
    /// Orders the commit of a transaction among others that notify or listen.
    pub fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock()
    }

    pub fn listen(&self, database: &str, channel: &Arc<str>, listener: &Arc<Listener>) {
        let mut all = self.listeners.lock();
        let of_database = match all.contains_key(database) {
            true => all.get_mut(database),
            false => Some(all.entry(database.into()).or_default()),
        };
        if let Some(channels) = of_database {
            channels.entry(channel.clone()).or_default().push(listener.clone());
        }
    }

    pub fn unlisten(&self, database: &str, channel: &str, listener: &Arc<Listener>) {
        let mut all = self.listeners.lock();
        let Some(channels) = all.get_mut(database) else { return };
        if let Some(listeners) = channels.get_mut(channel) {
            listeners.retain(|known| !Arc::ptr_eq(known, listener));
            if listeners.is_empty() {
                channels.remove(channel);
            }
        }
        if channels.is_empty() {
            all.remove(database);
        }
    }

    /// Gives the notifications of a commit to their listeners. Returns the listeners whose queues are full, which are to be cut.
    pub fn publish(&self, database: &str, sent: &[Notification], lsn: Lsn) -> Vec<Arc<Listener>> {
        let mut meant: Vec<(Arc<Listener>, Vec<&Notification>)> = Vec::new();
        {
            let all = self.listeners.lock();
            let Some(channels) = all.get(database) else { return Vec::new() };
            let mut places: HashMap<*const Listener, usize> = HashMap::new();
            for notification in sent {
                for listener in channels.get(&notification.channel).into_iter().flatten() {
                    let at = *places.entry(Arc::as_ptr(listener)).or_insert_with(|| {
                        meant.push((listener.clone(), Vec::new()));
                        meant.len() - 1
                    });
                    meant[at].1.push(notification);
                }
            }
        }
        let is_full = |(listener, list): (Arc<Listener>, Vec<&Notification>)| {
            (!listener.add(list.into_iter(), lsn)).then_some(listener)
        };
        meant.into_iter().filter_map(is_full).collect()
    }

    /// Returns how full the fullest queue is, from 0 to 1.
    pub fn usage(&self) -> f64 {
        let all = self.listeners.lock();
        let listeners = all.values().flat_map(|channels| channels.values()).flatten();
        let most = listeners.map(|listener| listener.bytes()).max().unwrap_or(0);
        most as f64 / QUEUE_BYTES_MAX as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(payload: &str) -> Notification {
        Notification { pid: 1, channel: "c".into(), payload: payload.into() }
    }

    #[test]
    fn a_listener_that_does_not_read_is_cut_once_and_keeps_nothing() {
        let channels = Channels::default();
        let listener = Arc::new(Listener::new(7));
        channels.listen("d", &"c".into(), &listener);
        let long = [notification(&"x".repeat(7000))];
        let mut cut = 0;
        for _ in 0..QUEUE_BYTES_MAX / 7000 + 10 {
            cut += channels.publish("d", &long, 1).len();
        }
        assert_eq!(cut, 1);
        assert!(listener.take().0.is_empty());
        assert!(channels.usage() == 0.0);
    }

    #[test]
    fn departure_leaves_no_trace_of_a_listener() {
        let channels = Channels::default();
        let listener = Arc::new(Listener::new(7));
        channels.listen("d", &"c".into(), &listener);
        assert!(channels.publish("other", &[notification("a")], 1).is_empty());
        assert!(!listener.has_waiting());
        channels.publish("d", &[notification("a"), notification("b")], 5);
        let (taken, lsn) = listener.take();
        assert_eq!((taken.len(), lsn), (2, 5));
        channels.unlisten("d", "c", &listener);
        assert!(channels.listeners.lock().is_empty());
        assert_eq!(Arc::strong_count(&listener), 1);
    }
}
