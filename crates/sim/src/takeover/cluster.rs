//! The store, the lease, the nodes, and the steps of a history.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use os::{Fate, Lease, LeaseAttempt, LeaseFlaw, Moment, ObjectError, SimClock, SimObjects};
use pager::{Error, Unfenced};
use stdx::prng::Prng;

use crate::takeover::node::Opening;
use crate::takeover::oracle::{CELLS, Oracle};
use crate::takeover::totals::{TakeoverFault, TakeoverSummary};

const NODES: usize = 3;
const LEASE_MS: u64 = 3000;
/// Nodes that are paused at once; one is left to run.
const PAUSED_MAX: usize = NODES - 1;
/// Steps of a history: at least, and how many more are drawn.
const STEPS_MIN: u64 = 30;
const STEPS_MORE: u64 = 60;

/// A computer that may have the database open.
#[derive(Default)]
struct Node {
    opening: Option<Arc<Opening>>,
    /// The client of the opening, also while it is being opened or waits for the lease.
    client: Option<usize>,
    /// The lease as that client has it.
    lease: Option<Arc<Lease>>,
    /// It is in a step, perhaps paused in it.
    is_busy: bool,
}

/// Of a thousand moments at operations: how many kill the client in each of two ways, leave an operation under way without an answer, and pause the client.
#[derive(Clone, Copy)]
struct Hazards {
    deaths: u64,
    failures: u64,
    pauses: u64,
    /// A write under way arrives in one of so many steps.
    late_one_in: u64,
}

struct State {
    random: Prng,
    nodes: [Node; NODES],
    /// The client that got the lease last.
    newest: Option<usize>,
    /// Whether a client is dead, and whether one of its operations has failed without an answer.
    clients: Vec<(bool, bool)>,
    paused: usize,
    values: u64,
    oracle: Oracle,
    trace: Vec<String>,
    violation: Option<String>,
    summary: TakeoverSummary,
}

/// One history being played.
pub struct Cluster {
    store: SimObjects,
    clock: Arc<SimClock>,
    fault: Option<TakeoverFault>,
    hazards: Hazards,
    state: Mutex<State>,
}

impl Cluster {
    pub fn new(seed: u64, fault: Option<TakeoverFault>) -> Arc<Cluster> {
        let store = SimObjects::new();
        match fault {
            Some(TakeoverFault::Root) => store.ignore_guards("root"),
            Some(TakeoverFault::Log) => store.ignore_guards("log/"),
            Some(TakeoverFault::Pages) => store.ignore_guards("page/"),
            Some(TakeoverFault::Holder) => store.ignore_guards("lease"),
            Some(_) | None => {}
        }
        let state = State {
            random: Prng::new(seed),
            nodes: Default::default(),
            newest: None,
            clients: Vec::new(),
            paused: 0,
            values: 0,
            oracle: Oracle::new(),
            trace: Vec::new(),
            violation: None,
            summary: TakeoverSummary { histories: 1, ..TakeoverSummary::default() },
        };
        // In some histories nodes live long, and get no answer more often.
        let hazards = match seed % 4 {
            3 => Hazards { deaths: 1, failures: 20, pauses: 10, late_one_in: 40 },
            _ => Hazards { deaths: 4, failures: 2, pauses: 40, late_one_in: 6 },
        };
        let clock = Arc::new(SimClock::new(1_000_000));
        Arc::new(Cluster { store, clock, fault, hazards, state: Mutex::new(state) })
    }

    /// Lets the store ask this cluster at each operation.
    pub fn connect(self: Arc<Cluster>) {
        let cluster = Arc::downgrade(&self);
        self.store.set_fate(Some(Arc::new(move |client, moment| {
            cluster.upgrade().map_or(Fate::Proceed, |cluster| cluster.fate(client, moment))
        })));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn draw(&self, bound: u64) -> u64 {
        self.state().random.below(bound)
    }

    fn note(&self, what: String) {
        self.state().trace.push(what);
    }

    fn violate(&self, what: String) {
        self.state().violation.get_or_insert(what);
    }

    fn check(&self, result: Result<(), String>) {
        if let Err(what) = result {
            self.violate(what);
        }
    }

    /// Returns the totals and the steps.
    pub fn end(&self) -> (TakeoverSummary, Vec<String>) {
        let mut state = self.state();
        let mut summary = state.summary;
        summary.refused = self.store.counts().1;
        (summary, std::mem::take(&mut state.trace))
    }

    /// Plays the steps, then lets everything that is under way arrive, and opens the database twice more.
    pub fn play(&self) -> Result<(), String> {
        let steps = STEPS_MIN + self.draw(STEPS_MORE);
        for _ in 0..steps {
            self.step();
            self.result()?;
        }
        self.store.set_fate(None);
        for _ in 0..2 {
            while self.store.late_writes() > 0 {
                self.deliver_late();
            }
            // Everybody stops.
            self.state().nodes = Default::default();
            // It sees who had the lease, then that nobody has it any more.
            self.take_over(0);
            self.clock.advance_ms(2 * LEASE_MS);
            if self.state().nodes[0].opening.is_none() {
                self.take_over(0);
            }
            self.result()?;
            let opening = self.state().nodes[0].opening.clone().ok_or("the last opening failed")?;
            self.write(&opening);
            opening.pager.checkpoint_all().map_err(|error| format!("the last checkpoint failed: {error}"))?;
            self.acknowledge(&opening);
            self.result()?;
        }
        Ok(())
    }

    fn result(&self) -> Result<(), String> {
        self.state().violation.clone().map_or(Ok(()), Err)
    }

    /// Decides about an operation on the store: it goes on, or is paused while others run, or its client dies.
    fn fate(&self, client: usize, moment: Moment) -> Fate {
        let (steps, is_paused) = {
            let mut state = self.state();
            if state.clients[client].0 {
                return Fate::Die;
            }
            let Hazards { deaths, failures, pauses, .. } = self.hazards;
            match state.random.below(1000) {
                draw if draw < deaths => return self.die(state, client, Fate::Die),
                draw if draw < 2 * deaths => return self.die(state, client, Fate::DieUnderWay),
                draw if draw < 2 * deaths + failures => {
                    state.clients[client].1 = true;
                    return Fate::FailUnderWay;
                }
                draw if draw < 2 * deaths + failures + pauses && state.paused < PAUSED_MAX => {
                    state.paused += 1;
                    state.summary.pauses += 1;
                    (1 + state.random.below(12), true)
                }
                _ => (0, false),
            }
        };
        if !is_paused {
            return Fate::Proceed;
        }
        self.note(format!("client {client} is paused {moment:?} an operation"));
        for _ in 0..steps {
            self.step();
        }
        self.note(format!("client {client} goes on"));
        let mut state = self.state();
        state.paused -= 1;
        if !state.clients[client].0 {
            return Fate::Proceed;
        }
        if state.random.chance(0.5) { Fate::Die } else { Fate::DieUnderWay }
    }

    fn die(&self, mut state: MutexGuard<'_, State>, client: usize, fate: Fate) -> Fate {
        state.clients[client].0 = true;
        state.summary.deaths += 1;
        state.trace.push(format!("client {client} dies in an operation, {fate:?}"));
        fate
    }

    fn step(&self) {
        if self.state().violation.is_some() {
            return;
        }
        self.state().summary.steps += 1;
        let pause = if self.draw(24) == 0 { LEASE_MS + self.draw(LEASE_MS) } else { self.draw(LEASE_MS / 20) };
        self.clock.advance_ms(pause);
        if self.draw(self.hazards.late_one_in) == 0 && self.store.late_writes() > 0 {
            return self.deliver_late();
        }
        let node = self.draw(NODES as u64) as usize;
        let opening = {
            let mut state = self.state();
            if state.nodes[node].is_busy {
                // A paused node may be killed.
                if state.random.below(20) == 0
                    && let Some(client) = state.nodes[node].client
                {
                    state.clients[client].0 = true;
                    state.summary.deaths += 1;
                    state.trace.push(format!("client {client} is killed"));
                }
                return;
            }
            state.nodes[node].is_busy = true;
            state.nodes[node].opening.clone()
        };
        match opening {
            Some(opening) => self.work(node, &opening),
            None => self.take_over(node),
        }
        self.state().nodes[node].is_busy = false;
    }

    fn deliver_late(&self) {
        let nth = self.draw(self.store.late_writes() as u64) as usize;
        self.note("a late write arrives".into());
        self.store.deliver_late(nth);
        self.state().summary.late += 1;
    }

    /// Returns the client and the lease of a node that waits for it.
    fn candidate(&self, node: usize) -> (usize, Arc<Lease>) {
        let mut state = self.state();
        if let Node { client: Some(client), lease: Some(lease), .. } = &state.nodes[node] {
            return (*client, lease.clone());
        }
        let client = state.clients.len();
        state.clients.push((false, false));
        let flaw = match self.fault {
            Some(TakeoverFault::Wait) => Some(LeaseFlaw::ShortWait),
            Some(TakeoverFault::Answer) => Some(LeaseFlaw::FromAnswer),
            _ => None,
        };
        let (owner, random, ttl) = (format!("client {client}"), client as u64 + 1, Duration::from_millis(LEASE_MS));
        let lease = Lease::new(self.store.client(client), self.clock.clone(), &owner, random, ttl).with_flaw(flaw);
        let lease = Arc::new(lease);
        (state.nodes[node].client, state.nodes[node].lease) = (Some(client), Some(lease.clone()));
        (client, lease)
    }

    /// Opens the database if the lease is free.
    fn take_over(&self, node: usize) {
        let (client, lease) = self.candidate(node);
        match lease.try_acquire() {
            Ok(LeaseAttempt::Acquired) => self.state().newest = Some(client),
            Ok(LeaseAttempt::Held(_)) => return,
            Err(error) => {
                self.note(format!("client {client} gets no answer about the lease: {error}"));
                // One that is alive tries again.
                if self.state().clients[client].0 {
                    self.leave(node, client);
                }
                return;
            }
        }
        self.note(format!("node {node} takes over as client {client}"));
        let unfenced = match self.fault {
            Some(TakeoverFault::Doubt) => Some(Unfenced::Doubt),
            Some(TakeoverFault::Redone) => Some(Unfenced::Redone),
            _ => None,
        };
        let opened = Opening::open(self.store.client(client), client, &self.clock, lease, unfenced);
        let opened = opened.and_then(|opening| opening.read_all().map(|cells| (opening, cells)));
        match opened {
            Ok((opening, cells)) => {
                self.note(format!("client {client} has boot number {}, found {cells:?}", opening.epoch));
                let mut state = self.state();
                state.summary.openings += 1;
                let result = state.oracle.opened(opening.epoch, opening.recovered_to, cells);
                state.nodes[node].opening = Some(Arc::new(opening));
                drop(state);
                self.check(result);
            }
            Err(error) => {
                self.stop(node, client, &error);
            }
        }
    }

    /// A node has got an error. It must have a cause: the node is dead, an operation has failed, or another node has begun to take over.
    fn failed(&self, node: usize, opening: &Opening, error: &Error) {
        // A program that has an error may try again.
        if self.draw(2) == 0 || opening.pager.is_dead() || self.state().clients[opening.client].0 {
            self.stop(node, opening.client, error);
        }
    }

    fn stop(&self, node: usize, client: usize, error: &Error) {
        self.note(format!("client {client} stops: {error}"));
        let mut state = self.state();
        let (is_dead, has_failed) = state.clients[client];
        // A client that got the lease before may claim the database after the one that got it last.
        let is_fenced = matches!(error, Error::Fenced { .. });
        if !is_dead && !has_failed && state.newest == Some(client) && !is_fenced {
            state.violation.get_or_insert(format!("SI-12: client {client} failed without a cause: {error}"));
        }
        drop(state);
        self.leave(node, client);
    }

    /// The client has ended.
    fn leave(&self, node: usize, client: usize) {
        let mut state = self.state();
        state.clients[client].0 = true;
        let node = &mut state.nodes[node];
        (node.opening, node.client, node.lease) = (None, None, None);
    }

    /// One step of a node that has the database open.
    fn work(&self, node: usize, opening: &Opening) {
        // A server renews four times in the lease's time.
        if self.draw(2) == 0
            && let Err(error) = self.renew(opening)
        {
            return self.failed(node, opening, &error);
        }
        let result = match self.draw(32) {
            0..9 => {
                self.write(opening);
                Ok(())
            }
            9..16 => opening.pager.flush_once().map(drop),
            16..20 => opening.pager.clean_ahead().map(drop),
            20..22 => opening.pager.checkpoint().map(drop),
            22 => opening.pager.checkpoint_all().map(drop),
            23..31 => self.read(opening),
            _ if self.draw(2) == 0 => {
                self.note(format!("client {} gives the lease back", opening.client));
                // Nobody waits for the answer, so an error changes nothing.
                let _ = opening.lease.release();
                return self.leave(node, opening.client);
            }
            _ => {
                self.note(format!("client {} is killed", opening.client));
                self.state().summary.deaths += 1;
                return self.leave(node, opening.client);
            }
        };
        self.acknowledge(opening);
        if let Err(error) = result {
            self.failed(node, opening, &error);
        }
    }

    fn write(&self, opening: &Opening) {
        let (cells, value) = {
            let mut state = self.state();
            let count = 1 + state.random.below(3);
            let mut cells: Vec<usize> = (0..count).map(|_| state.random.below(CELLS as u64) as usize).collect();
            cells.sort_unstable();
            cells.dedup();
            state.values += 1;
            (cells, state.values)
        };
        // Only reading a page may fail, before anything is changed.
        let Ok(lsn) = opening.write(&cells, value) else { return };
        self.note(format!("client {} writes {value} to {cells:?}, end {lsn}", opening.client));
        self.state().oracle.written(opening.epoch, lsn, &cells, value);
    }

    fn may_reply(&self, opening: &Opening) -> bool {
        self.fault == Some(TakeoverFault::Lease) || opening.lease.is_confirmed()
    }

    /// Tells the oracle what is durable, and whether the node may acknowledge it.
    fn acknowledge(&self, opening: &Opening) {
        let (durable, last) = opening.durable();
        let may_reply = self.may_reply(opening);
        let mut state = self.state();
        let result = state.oracle.acknowledged(opening.epoch, durable, last, may_reply);
        state.summary.acknowledged += result.as_ref().map_or(0, |count| *count);
        drop(state);
        self.check(result.map(drop));
    }

    /// Reads the cells, and shows each that is durable if the lease is confirmed.
    fn read(&self, opening: &Opening) -> Result<(), Error> {
        for cell in 0..CELLS {
            let (value, lsn) = opening.read(cell)?;
            if opening.durable().0 < lsn || !self.may_reply(opening) {
                continue;
            }
            let mut state = self.state();
            state.summary.shown += 1;
            let result = state.oracle.shown(opening.epoch, cell, value, lsn);
            drop(state);
            self.check(result);
        }
        Ok(())
    }

    fn renew(&self, opening: &Opening) -> Result<(), Error> {
        match opening.lease.renew() {
            Err(ObjectError::Fenced) => Err(Error::Fenced { what: "renewing the lease".into() }),
            // It is tried again.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
