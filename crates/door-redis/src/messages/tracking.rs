//! Client-side caching: the clients that hear of changes of the keys that they have read (CLIENT TRACKING).
//!
//! ```text
//!   a client reads keys   its id is entered under each key, then the keys are read
//!   a key changes         the thread that commits takes the key's entry out, with the key's stripe held, and tells each client in it
//!   BCAST                 no entries: a client is told of all keys with one of its prefixes
//! ```
//! An entry is made before the read (DR-14). So a change either precedes the read, which then sees it, or finds the entry; and the invalidation follows the reply of the read in
//! the client's output (DR-15). As in Redis, entries name keys without their database.
//!
//! The table holds `tracking-table-max-keys` keys, and as many clients under them as memory allows (DR-16). An entry that does not fit takes another key out, whose clients are told as
//! if it had changed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use engine::{KeyEvent, event_class};
use stdx::memory;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicUsize, Ordering};

use crate::clients::{Client, Clients};
use crate::messages::delivery::{Delivery, Message};
use crate::messages::tracking_state::TrackingState;
use crate::reply::Reply;

const PARTITIONS: usize = 64;

/// Approximate memory of an entry besides its key, and of a client in it.
const ENTRY_BYTES: usize = 160;

/// The client whose request a thread runs.
#[derive(Clone, Copy, Default)]
struct RunningRequest {
    /// 0: none.
    client: u64,
    /// The run of its transaction (`KeyReads`); 0: none.
    run: u64,
    /// The thread serves the client's wait, and runs a request of another one.
    is_other: bool,
}

/// Messages that come to the client whose request runs, because of that request.
#[derive(Default)]
pub struct OwnMessages {
    /// About keys that other clients have entered, which redirect their messages.
    pub before_reply: Vec<Arc<[u8]>>,
    pub after_reply: Vec<Arc<[u8]>>,
}

thread_local! {
    static RUNNING: Cell<RunningRequest> = const { Cell::new(RunningRequest { client: 0, run: 0, is_other: false }) };
    static OWN: RefCell<OwnMessages> = RefCell::default();
    /// Messages to the clients whose waits the thread serves, until their replies are written.
    static OF_WAITS: RefCell<Vec<(u64, Arc<[u8]>)>> = RefCell::default();
}

/// Marks the changes of the calling thread as those of a client's request, until it is dropped.
pub struct Origin(RunningRequest);

impl Origin {
    pub fn request(client: u64) -> Origin {
        Origin(RUNNING.replace(RunningRequest { client, ..RunningRequest::default() }))
    }

    /// Marks them as those of a client whose wait the thread serves.
    pub fn wait(client: u64) -> Origin {
        Origin(RUNNING.replace(RunningRequest { client, run: 0, is_other: true }))
    }

    /// Returns the messages that have come to a client because of the service of its wait.
    pub fn finish_wait(client: u64) -> Vec<Arc<[u8]>> {
        OF_WAITS.with_borrow_mut(|all| all.extract_if(.., |(id, _)| *id == client).map(|(_, bytes)| bytes).collect())
    }

    /// Begins a run of the request's transaction, which may be repeated.
    pub fn begin_run(run: u64) {
        RUNNING.set(RunningRequest { run, ..RUNNING.get() });
    }

    /// Returns the messages that have come to the client itself.
    pub fn finish(self) -> OwnMessages {
        OWN.take()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}

/// A read of a key.
#[derive(Clone, Copy, Default)]
pub struct KeyRead {
    /// The run of the client's transaction, if it is part of one.
    pub run: u64,
    /// How often the transaction has changed the key before. These changes do not invalidate the read.
    pub changes: u32,
}

/// A client's reads of a key: a bit for each number of changes that precede one of them in the transaction. Bit 0 stands for those before the transaction, too.
#[derive(Clone, Copy)]
struct KeyReads {
    run: u64,
    bits: u64,
}

impl KeyReads {
    fn of(read: KeyRead) -> KeyReads {
        // A read behind more changes is invalidated by a later one of them, which costs a needless message.
        KeyReads { run: read.run, bits: 1 << read.changes.min(63) }
    }

    fn add(&mut self, read: KeyRead) {
        let new = KeyReads::of(read);
        let old = if self.run == read.run { self.bits } else { 1 };
        *self = KeyReads { bits: old | new.bits, ..new };
    }

    /// Notes a change of a key by a run of the client's own. Returns whether it invalidates a read, and the reads that follow it.
    fn changed(self, run: u64) -> (bool, Option<KeyReads>) {
        if run == 0 || self.run != run {
            return (true, None);
        }
        let later = KeyReads { bits: self.bits >> 1, ..self };
        (self.bits & 1 != 0, (later.bits != 0).then_some(later))
    }
}

/// The clients of a key, by id.
type KeyReaders = BTreeMap<u64, KeyReads>;
type Readers = HashMap<Box<[u8]>, KeyReaders>;

/// The changed keys with a prefix, for a client that asked for it.
type OfPrefix<'k> = (Arc<Client>, Vec<&'k [u8]>);

/// The clients of BCAST mode by prefix.
#[derive(Default)]
struct Prefixes {
    clients: HashMap<Box<[u8]>, BTreeMap<u64, Arc<Client>>>,
    /// How many prefixes have a length.
    lengths: BTreeMap<usize, usize>,
}

/// The clients that track, and the keys that they have read.
pub struct TrackingTable {
    hashes: RandomState,
    partitions: [Mutex<Readers>; PARTITIONS],
    keys: AtomicUsize,
    items: AtomicUsize,
    keys_max: AtomicUsize,
    prefixes: Mutex<Prefixes>,
    /// Clients that track.
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    client_count: AtomicUsize,
}

impl Default for TrackingTable {
    fn default() -> TrackingTable {
        TrackingTable {
            hashes: RandomState::new(),
            partitions: std::array::from_fn(|_| Mutex::default()),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            keys_max: AtomicUsize::new(1_000_000),
            prefixes: Mutex::default(),
            clients: Mutex::default(),
            client_count: AtomicUsize::new(0),
        }
    }
}

/// Numbers of the table, for INFO.
pub struct TrackingCounts {
    pub keys: usize,
    pub items: usize,
    pub prefixes: usize,
}

/// The keys that a message names; None after the contents of a database were replaced.
type Invalid<'k> = Option<&'k [&'k [u8]]>;

impl TrackingTable {
    /// Sets how many keys the table holds; 0 for any number.
    pub fn set_keys_max(&self, keys: u64) {
        self.keys_max.store(if keys == 0 { usize::MAX } else { keys as usize }, Ordering::Relaxed);
    }

    /// Returns the number of clients that track.
    #[inline]
    pub fn client_count(&self) -> usize {
        self.client_count.load(Ordering::Relaxed)
    }

    pub fn counts(&self) -> TrackingCounts {
        let prefixes = self.prefixes.lock().clients.len();
        TrackingCounts { keys: self.keys.load(Ordering::Relaxed), items: self.items.load(Ordering::Relaxed), prefixes }
    }

    /// Runs `f` with whether any client tracks, which does not change meanwhile.
    pub fn while_counted(&self, f: impl FnOnce(bool)) {
        f(!self.clients.lock().is_empty());
    }

    /// Adds a client that tracks, or its new prefixes.
    pub fn join(&self, client: &Arc<Client>, prefixes: &[Box<[u8]>]) {
        {
            let mut clients = self.clients.lock();
            clients.insert(client.id, client.clone());
            self.client_count.store(clients.len(), Ordering::Relaxed);
        }
        let mut all = self.prefixes.lock();
        let Prefixes { clients, lengths } = &mut *all;
        for prefix in prefixes {
            let of_prefix = clients.entry(prefix.clone()).or_insert_with(|| {
                *lengths.entry(prefix.len()).or_default() += 1;
                BTreeMap::new()
            });
            of_prefix.insert(client.id, client.clone());
        }
    }

    /// Removes a client. Its entries go when their keys change, or with the last client.
    pub fn leave(&self, client: &Client) {
        let state = std::mem::take(&mut *client.tracking.lock());
        {
            let mut clients = self.clients.lock();
            clients.remove(&client.id);
            self.client_count.store(clients.len(), Ordering::Relaxed);
            if clients.is_empty() {
                // Nobody can enter a key meanwhile: a client joins first.
                self.clear();
            }
        }
        let mut all = self.prefixes.lock();
        let Prefixes { clients, lengths } = &mut *all;
        for prefix in &state.prefixes {
            let Some(of_prefix) = clients.get_mut(prefix) else { continue };
            of_prefix.remove(&client.id);
            if of_prefix.is_empty() {
                clients.remove(prefix);
                let count = lengths.get_mut(&prefix.len()).expect("counted when it was added");
                *count -= 1;
                if *count == 0 {
                    lengths.remove(&prefix.len());
                }
            }
        }
    }

    fn clear(&self) {
        for partition in &self.partitions {
            let mut readers = partition.lock();
            let taken = std::mem::take(&mut *readers);
            self.removed(taken.len(), taken.values().map(BTreeMap::len).sum());
        }
    }

    fn partition(&self, key: &[u8]) -> &Mutex<Readers> {
        &self.partitions[self.hashes.hash_one(key) as usize % PARTITIONS]
    }

    /// Enters a client under a key that it is about to read. Returns a key that had to go for it, and its clients.
    pub fn enter(&self, key: &[u8], id: u64, read: KeyRead) -> Option<(Box<[u8]>, Vec<u64>)> {
        let mut readers = self.partition(key).lock();
        let is_new = !readers.contains_key(key);
        let has_room = memory::claim(ENTRY_BYTES + key.len()).is_ok()
            && (!is_new || self.keys.load(Ordering::Relaxed) < self.keys_max.load(Ordering::Relaxed));
        let of_key = readers.entry(key.into()).or_default();
        let added = !of_key.contains_key(&id);
        of_key.entry(id).and_modify(|reads| reads.add(read)).or_insert(KeyReads::of(read));
        self.keys.fetch_add(usize::from(is_new), Ordering::Relaxed);
        self.items.fetch_add(usize::from(added), Ordering::Relaxed);
        if !added || has_room {
            return None;
        }
        // Any key may go, this one too if it is alone.
        let name = readers.keys().find(|other| ***other != *key).or_else(|| readers.keys().next())?.clone();
        let ids: Vec<u64> = readers.remove(&name)?.into_keys().collect();
        self.removed(1, ids.len());
        Some((name, ids))
    }

    /// Takes a key out if there are too many. Returns it, and its clients.
    pub fn take_excess(&self) -> Option<(Box<[u8]>, Vec<u64>)> {
        if self.keys.load(Ordering::Relaxed) <= self.keys_max.load(Ordering::Relaxed) {
            return None;
        }
        self.partitions.iter().find_map(|partition| {
            let mut readers = partition.lock();
            let name = readers.keys().next()?.clone();
            let ids: Vec<u64> = readers.remove(&name)?.into_keys().collect();
            self.removed(1, ids.len());
            Some((name, ids))
        })
    }

    fn removed(&self, keys: usize, items: usize) {
        self.keys.fetch_sub(keys, Ordering::Relaxed);
        self.items.fetch_sub(items, Ordering::Relaxed);
    }

    /// Tells those concerned what a transaction has changed. It holds its stripes.
    pub fn announce(&self, events: &[KeyEvent], clients: &Clients, delivery: &mut Delivery<'_>) {
        let mut changed: BTreeSet<&[u8]> = BTreeSet::new();
        for event in events {
            if event.class == event_class::CONTENTS {
                self.invalidate_all(clients, delivery);
            } else if event.class == event_class::CHANGED {
                self.invalidate(&event.key, clients, delivery);
                changed.insert(&event.key);
            }
        }
        self.broadcast(&changed, clients, delivery);
    }

    fn invalidate(&self, key: &[u8], clients: &Clients, delivery: &mut Delivery<'_>) {
        let running = RUNNING.get();
        let mut readers = self.partition(key).lock();
        let Some((name, mut ids)) = readers.remove_entry(key) else { return };
        // A client that has read the key behind this change of its own stays.
        let own = ids.remove(&running.client);
        let (is_told, kept) = own.map_or((false, None), |own| own.changed(running.run));
        self.removed(usize::from(kept.is_none()), ids.len() + usize::from(own.is_some() && kept.is_none()));
        let told: Vec<u64> = ids.into_keys().chain(is_told.then_some(running.client)).collect();
        if let Some(reads) = kept {
            readers.insert(name, KeyReaders::from([(running.client, reads)]));
        }
        drop(readers);
        self.tell(key, &told, running.client, clients, delivery);
    }

    /// Tells clients that a key is invalid. Those that want no word of their own changes get none if they are `origin`.
    pub fn tell(&self, key: &[u8], ids: &[u64], origin: u64, clients: &Clients, delivery: &mut Delivery<'_>) {
        let concerned: Vec<Arc<Client>> = {
            let all = self.clients.lock();
            ids.iter().filter_map(|id| all.get(id).cloned()).collect()
        };
        for client in concerned {
            let state = client.tracking.lock().clone();
            if state.is_on && !state.is_broadcast && !(state.is_no_loop && client.id == origin) {
                send(&client, &state, Some(&[key]), clients, delivery);
            }
        }
    }

    fn broadcast(&self, keys: &BTreeSet<&[u8]>, clients: &Clients, delivery: &mut Delivery<'_>) {
        // By prefix and client: one message for each prefix of a client.
        let mut meant: BTreeMap<(Box<[u8]>, u64), OfPrefix<'_>> = BTreeMap::new();
        {
            let all = self.prefixes.lock();
            if all.clients.is_empty() {
                return;
            }
            for key in keys {
                for length in all.lengths.range(..=key.len()).map(|(length, _)| *length) {
                    let prefix = &key[..length];
                    for (id, client) in all.clients.get(prefix).into_iter().flatten() {
                        let new = || (client.clone(), Vec::new());
                        meant.entry((prefix.into(), *id)).or_insert_with(new).1.push(key);
                    }
                }
            }
        }
        let origin = RUNNING.get().client;
        for (client, keys) in meant.into_values() {
            let state = client.tracking.lock().clone();
            if state.is_on && state.is_broadcast && !(state.is_no_loop && client.id == origin) {
                send(&client, &state, Some(&keys), clients, delivery);
            }
        }
    }

    /// Tells all clients that track that every key may have changed.
    fn invalidate_all(&self, clients: &Clients, delivery: &mut Delivery<'_>) {
        self.clear();
        let all: Vec<Arc<Client>> = self.clients.lock().values().cloned().collect();
        for client in all {
            let state = client.tracking.lock().clone();
            if state.is_on {
                send(&client, &state, None, clients, delivery);
            }
        }
    }
}

/// Sends a message about keys to a client, or to the one to which it redirects.
fn send(
    client: &Arc<Client>,
    state: &TrackingState,
    keys: Invalid<'_>,
    clients: &Clients,
    delivery: &mut Delivery<'_>,
) {
    let target = match state.redirect {
        0 => client.clone(),
        id => match clients.find(id) {
            Some(target) => target,
            None => return report_broken(client, id, delivery),
        },
    };
    // RESP2 has messages for subscribers alone.
    let may_read = target.resp3.load(Ordering::Relaxed) || state.redirect != 0 && target.is_subscriber();
    if may_read {
        put(client, &target, |reply: &mut Reply<'_>| write(reply, keys), delivery);
    }
}

fn report_broken(client: &Arc<Client>, id: u64, delivery: &mut Delivery<'_>) {
    client.tracking.lock().is_broken = true;
    if client.resp3.load(Ordering::Relaxed) {
        let write = |reply: &mut Reply<'_>| {
            reply.push(2);
            reply.bulk(b"tracking-redir-broken");
            reply.integer(id as i64);
        };
        put(client, client, write, delivery);
    }
}

/// Delivers a message that one client causes to another one. A client whose own request runs gets it beside its reply.
fn put(cause: &Arc<Client>, target: &Arc<Client>, write: impl Fn(&mut Reply<'_>), delivery: &mut Delivery<'_>) {
    let mut message = Message::new(write);
    let running = RUNNING.get();
    if running.client != target.id || running.is_other && cause.id != target.id {
        return delivery.send(target, &mut message);
    }
    let bytes = message.in_version(target.resp3.load(Ordering::Relaxed)).clone();
    if running.is_other {
        return OF_WAITS.with_borrow_mut(|all| all.push((target.id, bytes)));
    }
    OWN.with_borrow_mut(|own| {
        let list = if cause.id == target.id { &mut own.after_reply } else { &mut own.before_reply };
        list.push(bytes);
    });
}

fn write(reply: &mut Reply<'_>, keys: Invalid<'_>) {
    if reply.resp3 {
        reply.push(2);
        reply.bulk(b"invalidate");
    } else {
        reply.push(3);
        reply.bulk(b"message");
        reply.bulk(b"__redis__:invalidate");
    }
    match keys {
        Some(keys) => {
            reply.array(keys.len());
            keys.iter().for_each(|key| reply.bulk(key));
        }
        None => reply.null(),
    }
}

#[cfg(test)]
mod tests;
