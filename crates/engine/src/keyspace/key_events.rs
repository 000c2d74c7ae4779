//! Events of keys, for those who listen to changes.
//!
//! A command names what it does to a key (`KeyTransaction::notify`). The events of a key transaction are kept until its commit and announced while it still holds its stripes: so the events of a key have the order of its changes,
//! and whoever reads the key later has got the event before, or gets it while it reads (EN-65). An event comes with the durability LSN of its change. A rollback drops it.
//!
//! Keys that expire and keys that are new are noticed here, whatever the command. Nothing is kept while nobody listens: a writer reads one word.

use std::sync::OnceLock;

use pager::Lsn;
use stdx::sync::atomic::{AtomicU32, Ordering};

/// Classes of events, which a listener asks for.
pub mod event_class {
    pub const GENERIC: u32 = 1 << 2;
    pub const STRING: u32 = 1 << 3;
    pub const LIST: u32 = 1 << 4;
    pub const SET: u32 = 1 << 5;
    pub const HASH: u32 = 1 << 6;
    pub const SORTED_SET: u32 = 1 << 7;
    pub const EXPIRED: u32 = 1 << 8;
    pub const EVICTED: u32 = 1 << 9;
    pub const STREAM: u32 = 1 << 10;
    /// A command that reads did not find its key.
    pub const MISS: u32 = 1 << 11;
    pub const MODULE: u32 = 1 << 13;
    pub const NEW: u32 = 1 << 14;
    /// The value of a key has changed, in whatever way: WATCH would notice it. The event has no name.
    pub const CHANGED: u32 = 1 << 30;
    /// FLUSHDB, FLUSHALL or SWAPDB replaced the contents of a database. The event names no key.
    pub const CONTENTS: u32 = 1 << 31;
}

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEvent {
    pub db: u8,
    pub class: u32,
    pub name: &'static str,
    pub key: Box<[u8]>,
}

type Listener = Box<dyn Fn(&[KeyEvent], Lsn) + Send + Sync>;

/// The listener to events of keys, and the classes that it asks for.
#[derive(Default)]
pub struct KeyEvents {
    wanted: AtomicU32,
    listener: OnceLock<Listener>,
}

impl KeyEvents {
    /// Registers the listener. It is called by the threads that commit, with stripes held, so it must neither wait nor use keys. Later registrations are ignored.
    pub fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// Sets the classes that the listener asks for, for transactions that begin later.
    pub fn want(&self, classes: u32) {
        self.wanted.store(classes, Ordering::SeqCst);
    }

    #[inline]
    pub fn wants(&self, classes: u32) -> bool {
        self.wanted.load(Ordering::SeqCst) & classes != 0
    }

    /// Returns true if any class is wanted.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.wants(u32::MAX)
    }

    pub(crate) fn announce(&self, events: &[KeyEvent], lsn: Lsn) {
        if let (Some(listener), false) = (self.listener.get(), events.is_empty()) {
            listener(events, lsn);
        }
    }
}
