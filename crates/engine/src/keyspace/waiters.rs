//! The registry of waiters: clients that are blocked until one of some keys has something for them.
//!
//! ```text
//!   BLPOP    stripes of its keys | nothing there: a ticket for each key | stripes released, no thread waits
//!   LPUSH    stripe | change, commit | any tickets at all? one load | those of the key, oldest first: served (`serve_waiters`) | stripe released
//! ```
//! Hard part: a wait ends in one of several ways (served, timed out, unblocked, its client gone) that race. One compare-and-swap of the ticket's state decides (EN-75).
//! The server of a ticket claims it before the first change, so a ticket that was given up costs nothing and takes nothing.
//!
//! A ticket carries its closure type-erased, because the registry belongs to the keyspace's state, and the closure gets a key transaction.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use stdx::hash::hash;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::keyspace::record::Kind;
use crate::keyspace::watch_registry::Name;

const PARTITIONS: usize = if cfg!(loom) { 1 } else { 64 };

const WAITING: u32 = 0;
const SERVED: u32 = 1;
const CANCELLED: u32 = 2;

/// The place of a ticket in the queue of a key: those of a kind and a class are in the order in which they came.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TicketPlace {
    pub kind: Kind,
    pub class: Box<[u8]>,
    pub number: u64,
}

impl TicketPlace {
    /// Returns the place before all others.
    pub fn first() -> TicketPlace {
        TicketPlace { kind: Kind::String, class: Box::default(), number: 0 }
    }

    /// Returns the place behind all of the same kind and class.
    pub fn behind_class(self) -> TicketPlace {
        TicketPlace { number: u64::MAX, ..self }
    }
}

/// A client's wait for one of some keys of a database.
pub struct WaitTicket {
    state: AtomicU32,
    /// Its place in the order of all tickets; 0 until it is registered.
    number: AtomicU64,
    /// The type that a key must have to be of use.
    pub(crate) kind: Kind,
    /// Tickets of one class wait for the same.
    class: Box<[u8]>,
    pub(crate) db: u8,
    /// The keys, each with the suffix of its tree key.
    pub(crate) keys: Vec<(Box<[u8]>, Vec<u8>)>,
    /// Another key that serving changes.
    pub(crate) also: Option<(Box<[u8]>, Vec<u8>)>,
    pub(crate) actions: Box<dyn Any + Send + Sync>,
}

impl WaitTicket {
    pub(crate) fn with(
        (kind, class): (Kind, Box<[u8]>),
        db: u8,
        keys: Vec<(Box<[u8]>, Vec<u8>)>,
        also: Option<(Box<[u8]>, Vec<u8>)>,
        actions: Box<dyn Any + Send + Sync>,
    ) -> WaitTicket {
        WaitTicket { state: AtomicU32::new(WAITING), number: AtomicU64::new(0), kind, class, db, keys, also, actions }
    }

    fn leave(&self, to: u32) -> bool {
        self.state.compare_exchange(WAITING, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends the wait by serving it. Returns false if it has ended (EN-75).
    pub(crate) fn claim(&self) -> bool {
        self.leave(SERVED)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.state.load(Ordering::Acquire) == WAITING
    }

    pub(crate) fn is_served(&self) -> bool {
        self.state.load(Ordering::Acquire) == SERVED
    }

    pub(crate) fn place(&self) -> TicketPlace {
        TicketPlace { kind: self.kind, class: self.class.clone(), number: self.number.load(Ordering::Relaxed) }
    }
}

/// The tickets of a key.
type TicketQueue = BTreeMap<TicketPlace, Arc<WaitTicket>>;

pub(crate) struct Waiters {
    partitions: Vec<Mutex<HashMap<Name, TicketQueue>>>,
    /// Entries in all partitions. Registering holds the key's stripe, so it is exact for a writer that holds the stripe of its key (EN-74).
    count: AtomicUsize,
    last_number: AtomicU64,
    /// How keys are served that may have to wait (`serve_waiters`).
    pub defer: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Waiters {
    pub fn new() -> Waiters {
        Waiters {
            partitions: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
            last_number: AtomicU64::new(0),
            defer: OnceLock::new(),
        }
    }

    fn partition(&self, db: u8, suffix: &[u8]) -> &Mutex<HashMap<Name, TicketQueue>> {
        &self.partitions[hash(u64::from(db), suffix) as usize % PARTITIONS]
    }

    /// Returns true if any ticket waits for any key. Exact for a key whose stripe the caller holds.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) != 0
    }

    /// Returns true if a ticket waits for the key.
    pub fn has(&self, db: u8, suffix: &[u8]) -> bool {
        self.partition(db, suffix).lock().contains_key(&(db, suffix.to_vec()))
    }

    /// Registers a ticket. The stripes of all its keys must be held, and the caller has found nothing there since it took them (EN-74).
    pub fn add(&self, ticket: &Arc<WaitTicket>) {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        ticket.number.store(number, Ordering::Relaxed);
        for (_, suffix) in &ticket.keys {
            let mut partition = self.partition(ticket.db, suffix).lock();
            let queue = partition.entry((ticket.db, suffix.clone())).or_default();
            if queue.insert(ticket.place(), ticket.clone()).is_none() {
                self.count.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Gives a wait up. Returns false if it has been served, so that its reply comes.
    pub fn cancel(&self, ticket: &WaitTicket) -> bool {
        let is_cancelled = ticket.leave(CANCELLED);
        if is_cancelled {
            self.remove(ticket);
        }
        is_cancelled
    }

    /// Removes a ticket that has ended.
    pub fn remove(&self, ticket: &WaitTicket) {
        for (_, suffix) in &ticket.keys {
            let name = (ticket.db, suffix.clone());
            let mut partition = self.partition(ticket.db, suffix).lock();
            let Some(queue) = partition.get_mut(&name) else { continue };
            if queue.remove(&ticket.place()).is_some() {
                self.count.fetch_sub(1, Ordering::Release);
            }
            if queue.is_empty() {
                partition.remove(&name);
            }
        }
    }

    /// Returns the first ticket of a key behind this place.
    pub fn next(&self, name: &Name, after: &TicketPlace) -> Option<Arc<WaitTicket>> {
        let partition = self.partition(name.0, &name.1).lock();
        let mut later = partition.get(name)?.range::<TicketPlace, _>((Bound::Excluded(after), Bound::Unbounded));
        later.next().map(|(_, ticket)| ticket.clone())
    }

    /// Returns the names of all keys of a database that are waited for.
    pub fn names(&self, db: u8) -> Vec<Name> {
        let names = |partition: &Mutex<HashMap<Name, TicketQueue>>| {
            partition.lock().keys().filter(|name| name.0 == db).cloned().collect::<Vec<_>>()
        };
        self.partitions.iter().flat_map(names).collect()
    }
}

#[cfg(test)]
mod tests;
