//! Serving waiters (`waiters`): the thread whose transaction changed a key runs the closures of the key's tickets, whichever door the change came through.
//!
//! ```text
//!   commit decided ─► for each changed key that is waited for, for each of its tickets, oldest first:
//!                        stripe of its other key (BLMOVE's target) free? no: the key is deferred
//!                        a key transaction under the stripes that are held: look, claim, change, commit; its changes may ready further keys
//!                  ─► stripes released ─► deferred keys: the same under stripes taken in order
//! ```
//! Hard part: the stripes stay held from the change to the service, so no other command takes the element in between, and the element goes to the ticket that came
//! first (EN-76). A further stripe may be out of order, so it is only tried (EN-6). No key of a transaction of SQL is waited for with stripes held (EN-40).

use std::collections::VecDeque;
use std::sync::Arc;

use pager::Lsn;

use crate::error::{Error, Result};
use crate::keyspace::key::{KeySet, TreeKey};
use crate::keyspace::key_txn::{KeyTransaction, Mode};
use crate::keyspace::record::Kind;
use crate::keyspace::state::Keyspace;
use crate::keyspace::stripes::{LockStripes, TxnStripes};
use crate::keyspace::waiters::{TicketPlace, WaitTicket};
use crate::keyspace::watch_registry::Name;

/// The outcome of asking a ticket about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// The ticket was claimed and its reply is written.
    Served,
    /// The key has nothing for this ticket, but may have for later ones.
    Waits,
    /// The key has nothing for any ticket of this kind and class.
    Exhausted,
}

/// The right to end a wait by serving it.
pub struct Claim<'t>(&'t WaitTicket);

impl Claim<'_> {
    /// Ends the wait. Returns false if it has ended in another way: then nothing must be changed (EN-75). To be called before the first change, once it is certain
    /// that there is something to serve.
    pub fn take(&self) -> bool {
        self.0.claim()
    }
}

/// Looks at a key, and if it has something for the ticket, claims the ticket, makes the changes and keeps the reply. Runs in a key transaction of its own that
/// holds the key's stripe and that of the ticket's other key.
pub type Serve = Box<dyn Fn(&mut KeyTransaction<'_>, &[u8], &Claim<'_>) -> Result<Serving> + Send + Sync>;

/// Called once when a claimed ticket's transaction is decided, with the durability LSN of the reply. Stripes are held, so it must neither wait nor use keys.
pub type Served = Box<dyn Fn(Result<Lsn>) + Send + Sync>;

/// A wait that a client begins.
pub struct KeyWait {
    /// The type that a key must have to be of use.
    pub kind: Kind,
    /// Waits of one class wait for the same: a key that has nothing for one of them has nothing for those behind it.
    pub class: Box<[u8]>,
    pub keys: Vec<Box<[u8]>>,
    /// Another key that serving changes.
    pub also: Option<Box<[u8]>>,
    pub serve: Serve,
    pub served: Served,
}

struct Actions {
    serve: Serve,
    served: Served,
}

/// A key whose tickets could not be served with the producer's stripes held, since another key of a ticket is in use.
#[derive(Clone, Debug)]
pub struct Deferred(Name);

impl KeyTransaction<'_> {
    /// Registers a wait. The transaction holds the keys' stripes, has found nothing there, and changes nothing (EN-74).
    pub fn wait(&mut self, db: u8, wait: KeyWait) -> Result<Arc<WaitTicket>> {
        if self.mode == Mode::Optimistic {
            return Err(Error::Misuse("a wait in a transaction that holds no stripes"));
        }
        let named = |key: Box<[u8]>| {
            let suffix = TreeKey::new(0, &key).suffix().to_vec();
            (key, suffix)
        };
        let keys: Vec<_> = wait.keys.into_iter().map(named).collect();
        for (key, _) in &keys {
            self.place(db, key)?;
        }
        let actions = Box::new(Actions { serve: wait.serve, served: wait.served });
        let ticket = Arc::new(WaitTicket::with((wait.kind, wait.class), db, keys, wait.also.map(named), actions));
        self.keyspace.waiters.add(&ticket);
        Ok(ticket)
    }

    /// Serves the tickets of the keys that the transaction has changed. It is decided and holds its stripes. Returns the keys that must be served later.
    pub(crate) fn serve_waiters(&mut self) -> Vec<Deferred> {
        if self.ready.is_empty() {
            return Vec::new();
        }
        self.stripes.raise(self.last);
        let mut ready = VecDeque::from(std::mem::take(&mut self.ready));
        let mut deferred = Vec::new();
        while let Some(name) = ready.pop_front() {
            if !self.serve_key(&name, &mut ready) {
                deferred.push(Deferred(name));
            }
        }
        deferred
    }

    /// Serves the tickets of a key, and appends the keys that this has changed. Returns false if one of them must be served later, and those behind it too.
    fn serve_key(&mut self, name: &Name, ready: &mut VecDeque<Name>) -> bool {
        let waiters = &self.keyspace.waiters;
        let mut after = TicketPlace::first();
        while let Some(ticket) = waiters.next(name, &after) {
            after = ticket.place();
            if !ticket.is_waiting() {
                continue;
            }
            if !self.hold_also(&ticket) {
                return false;
            }
            if self.serve_ticket(&ticket, name, ready) == Serving::Exhausted {
                after = after.behind_class();
            }
        }
        true
    }

    /// Takes the stripe of the ticket's other key, if that is possible without waiting.
    fn hold_also(&mut self, ticket: &WaitTicket) -> bool {
        let Some((_, suffix)) = &ticket.also else { return true };
        let keyspace = self.keyspace;
        self.stripes.try_add(&keyspace.stripes, LockStripes::stripe(ticket.db, suffix))
            && !(keyspace.key_locks.any() && keyspace.key_locks.holder(ticket.db, suffix).is_some())
    }

    fn serve_ticket(&mut self, ticket: &WaitTicket, name: &Name, ready: &mut VecDeque<Name>) -> Serving {
        let actions: &Actions = ticket.actions.downcast_ref().expect("registered by `wait`");
        let Some((key, _)) = ticket.keys.iter().find(|(_, suffix)| *suffix == name.1) else { return Serving::Waits };
        let stripes = std::mem::take(&mut self.stripes);
        let mut nested = KeyTransaction::nested(self.keyspace, stripes, ticket.also.is_some(), self.now_ms());
        let asked = (actions.serve)(&mut nested, key, &Claim(ticket));
        let asked = match asked {
            Ok(serving) => nested.decide().map(|()| serving),
            Err(error) => {
                nested.roll_back();
                Err(error)
            }
        };
        let lsn = nested.durability_lsn();
        ready.extend(std::mem::take(&mut nested.ready));
        self.stripes = std::mem::take(&mut nested.stripes);
        match asked {
            Ok(Serving::Served) => (actions.served)(Ok(lsn)),
            Ok(other) => return other,
            Err(error) => {
                // It may have failed before its claim. The wait ends with the error in both cases, unless its client has given it up.
                if !ticket.claim() && !ticket.is_served() {
                    return Serving::Waits;
                }
                (actions.served)(Err(error));
            }
        }
        self.keyspace.waiters.remove(ticket);
        Serving::Served
    }
}

impl Keyspace {
    /// Gives up a wait. Returns false if it has been served: then its reply is there, or comes at once.
    pub fn cancel_wait(&self, ticket: &WaitTicket) -> bool {
        self.waiters.cancel(ticket)
    }

    /// Sets how a key is served whose service may have to wait for a transaction of SQL: `defer` lets another thread call `serve_now`. Without it, the producer waits.
    pub fn defer_waits(&self, defer: Box<dyn Fn(Deferred) + Send + Sync>) {
        let _ = self.waiters.defer.set(Box::new(defer));
    }

    pub(crate) fn serve_deferred(&self, deferred: Vec<Deferred>) {
        for one in deferred {
            match self.waiters.defer.get().and_then(|defer| defer.downcast_ref::<Defer>()) {
                Some(defer) if self.key_locks.any() => defer(one),
                _ => self.serve_now(one),
            }
        }
    }

    /// Serves the tickets of a deferred key, under stripes that are taken in order. May wait for a transaction of SQL.
    pub fn serve_now(&self, deferred: Deferred) {
        let mut names = VecDeque::from([deferred.0]);
        while let Some(name) = names.pop_front() {
            let mut after = TicketPlace::first();
            while let Some(ticket) = self.waiters.next(&name, &after) {
                let Some((key, _)) = ticket.keys.iter().find(|(_, suffix)| *suffix == name.1) else { break };
                let keys = [Some(key), ticket.also.as_ref().map(|(key, _)| key)];
                let keys: Vec<(u8, &[u8])> = keys.into_iter().flatten().map(|key| (ticket.db, &**key)).collect();
                let mut key_txn = match self.begin_unlocked(KeySet::Keys(&keys), true) {
                    Ok(key_txn) => key_txn,
                    Err(Error::LockTimeout) => continue,
                    Err(_) => return,
                };
                let place = ticket.place();
                key_txn.ready.push(name.clone());
                let later = key_txn.serve_waiters();
                key_txn.end_served();
                // Served up to a ticket whose other key is in use; this one's was not.
                let is_stuck = later.iter().any(|Deferred(other)| *other == name);
                names.extend(later.into_iter().map(|Deferred(other)| other).filter(|other| *other != name));
                if !is_stuck {
                    break;
                }
                after = if ticket.is_waiting() { place } else { TicketPlace { number: 0, ..place } };
            }
        }
    }
}

type Defer = Box<dyn Fn(Deferred) + Send + Sync>;

impl Default for TxnStripes {
    fn default() -> TxnStripes {
        TxnStripes::Some(Default::default())
    }
}
