//! The search for deadlocks among sessions that wait for locks of tables, advisory locks, and through them for rows.
//!
//! A session shows the locks of tables that it holds (`LockHolder`), and the lock that it waits for. A thread of the instance reads all waits, at intervals, while any session waits, and ends one
//! wait of each cycle. Waits for rows are edges of the engine's wait graph, from transaction to transaction; those are joined to the sessions by their ids. A cycle of rows alone is the engine's to
//! find, and one of advisory locks alone is found when it closes, so each cycle that is searched for here has a waiter for a table or an advisory lock.
//!
//! ```text
//!   session ─waits─► (lock, modes that stand against it) ─held by─► sessions
//! ```
//! Hard part: thousands may wait for one lock, each behind all before it. A request behind others waits for what they wait for; so it leads to the set of modes in the way, its own and those of
//! requests that it stands behind, and all requests with one set share a node of the graph. The graph has a few nodes for each lock, and its edges are its holders.
//!
//! The edges are read one after another, so a cycle may never have existed as a whole. It counts when two searches in a row find it, since a deadlock lasts. The victim is the session of the
//! cycle whose wait is the youngest, so a cycle has one victim (QU-44).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use engine::Engine;
use engine::rows::{Activity, Rows};
use stdx::sync::{Condvar, Mutex};

use crate::catalog::table::Table;
use crate::catalog::table_lock::{STEP, TABLE_MODES, TableMode, TableModes};
use crate::catalog::table_state::TableState;
use crate::session::advisory_locks::AdvisoryLocks;
use crate::session::interrupts::Wake;
use crate::session::open_transaction::OpenTransaction;
use crate::session::wait_graph::WaitGraph;

/// That whose lock a session holds or waits for.
#[derive(Clone, Debug)]
pub enum LockedObject {
    Table(Arc<Table>),
    /// All definitions.
    Definitions(Arc<TableState>),
}

impl LockedObject {
    pub fn live(&self) -> &Arc<TableState> {
        match self {
            LockedObject::Table(table) => &table.live,
            LockedObject::Definitions(live) => live,
        }
    }
}

/// A lock that a session waits for.
#[derive(Clone, Debug)]
pub enum SessionWait {
    Table { object: LockedObject, mode: TableMode, since: SystemTime },
    Advisory,
}

#[derive(Default)]
struct WaitState {
    /// The number of the session's waits so far.
    serial: u64,
    current: Option<(SessionWait, Instant)>,
    /// The wait is to end, since it is part of a deadlock.
    is_victim: bool,
    wake: Option<Wake>,
}

/// A session as the search sees it.
pub struct LockHolder {
    /// Not 0.
    pub id: u64,
    /// The owner of the session's advisory locks.
    connection: u64,
    /// The locks of tables of its transaction, in the order in which it took them.
    held: Mutex<Vec<(Arc<Table>, TableMode)>>,
    /// Those that its statement or an explicit LOCK TABLES holds.
    apart: Mutex<Vec<(LockedObject, TableMode)>>,
    wait: Mutex<WaitState>,
    open: Arc<OpenTransaction>,
    signal: Arc<SearchSignal>,
}

/// Tells the searching thread that sessions wait.
#[derive(Default)]
struct SearchSignal {
    waits: AtomicUsize,
    is_stopping: AtomicBool,
    mutex: Mutex<()>,
    changed: Condvar,
}

impl std::fmt::Debug for LockHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "session {} of connection {}", self.id, self.connection)
    }
}

impl LockHolder {
    /// Gives access to the locks of tables of the session's transaction. Only the session changes them.
    pub fn held<T>(&self, look: impl FnOnce(&mut Vec<(Arc<Table>, TableMode)>) -> T) -> T {
        look(&mut self.held.lock())
    }

    pub(super) fn hold_apart(&self, object: LockedObject, mode: TableMode) {
        self.apart.lock().push((object, mode));
    }

    pub(super) fn let_go_apart(&self, object: &LockedObject, mode: TableMode) {
        let mut apart = self.apart.lock();
        let is_it = |held: &(LockedObject, TableMode)| Arc::ptr_eq(held.0.live(), object.live()) && held.1 == mode;
        if let Some(at) = apart.iter().position(is_it) {
            apart.swap_remove(at);
        }
    }

    /// Returns the modes in which the session holds a lock.
    pub(super) fn modes_of(&self, live: &Arc<TableState>) -> TableModes {
        let mut modes = TableModes::default();
        for (table, mode) in self.held.lock().iter() {
            if Arc::ptr_eq(&table.live, live) {
                modes.add(*mode);
            }
        }
        for (object, mode) in self.apart.lock().iter() {
            if Arc::ptr_eq(object.live(), live) {
                modes.add(*mode);
            }
        }
        modes
    }

    /// Returns the locks that the session holds.
    pub fn all_held(&self) -> Vec<(LockedObject, TableMode)> {
        let held = self.held.lock().iter().map(|(table, mode)| (LockedObject::Table(table.clone()), *mode)).collect();
        let mut all: Vec<_> = held;
        all.extend(self.apart.lock().iter().cloned());
        all
    }

    pub fn awaits(&self) -> Option<SessionWait> {
        self.wait.lock().current.as_ref().map(|(wait, _)| wait.clone())
    }

    /// Returns the id of its connection.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    pub fn activity(&self) -> &Activity {
        &self.open.activity
    }

    pub fn open(&self) -> &OpenTransaction {
        &self.open
    }

    /// Shows that the session waits. The wait ends with `end_wait`.
    pub(super) fn begin_wait(&self, wait: SessionWait) {
        let mut state = self.wait.lock();
        state.serial += 1;
        state.is_victim = false;
        if state.current.replace((wait, Instant::now())).is_none() {
            self.signal.begin();
        }
    }

    pub(super) fn end_wait(&self) {
        let mut state = self.wait.lock();
        (state.is_victim, state.wake) = (false, None);
        if state.current.take().is_some() {
            self.signal.waits.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Returns whether the wait must end, because it is part of a deadlock.
    pub(super) fn is_victim(&self) -> bool {
        self.wait.lock().is_victim
    }

    /// Calls `wake` when the session is chosen to end a deadlock; at once if it is.
    pub(super) fn wake_when_chosen(&self, wake: Wake) {
        let mut state = self.wait.lock();
        if state.is_victim {
            drop(state);
            return wake();
        }
        state.wake = Some(wake);
    }

    /// Ends the wait of this number, if the session still waits.
    fn choose(&self, serial: u64) {
        let mut state = self.wait.lock();
        if state.serial != serial || state.current.is_none() {
            return;
        }
        state.is_victim = true;
        let wake = state.wake.take();
        drop(state);
        wake.iter().for_each(|wake| wake());
    }
}

impl Drop for LockHolder {
    fn drop(&mut self) {
        self.end_wait();
    }
}

impl SearchSignal {
    fn begin(&self) {
        if self.waits.fetch_add(1, Ordering::AcqRel) == 0 {
            let _guard = self.mutex.lock();
            self.changed.notify_all();
        }
    }

    fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        let _guard = self.mutex.lock();
        self.changed.notify_all();
    }

    /// Waits until sessions wait, and then for this long. Returns false if the search is to end.
    fn pause(&self, time: Duration) -> bool {
        let mut guard = self.mutex.lock();
        let is_stopping = || self.is_stopping.load(Ordering::SeqCst);
        while self.waits.load(Ordering::Acquire) == 0 && !is_stopping() {
            guard = self.changed.wait(guard);
        }
        let end = Instant::now() + time;
        while !is_stopping() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            guard = self.changed.wait_timeout(guard, left).0;
        }
        false
    }
}

/// The sessions that take part in the search.
#[derive(Default)]
pub struct LockHolders {
    all: Mutex<Vec<Weak<LockHolder>>>,
    last: AtomicU64,
    signal: Arc<SearchSignal>,
}

impl LockHolders {
    pub fn join(&self, connection: u64, open: Arc<OpenTransaction>) -> Arc<LockHolder> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let holder = Arc::new(LockHolder {
            id,
            connection,
            held: Mutex::default(),
            apart: Mutex::default(),
            wait: Mutex::default(),
            open,
            signal: self.signal.clone(),
        });
        let mut all = self.all.lock();
        if all.len() == all.capacity() {
            all.retain(|known| known.strong_count() > 0);
        }
        all.push(Arc::downgrade(&holder));
        holder
    }

    /// Returns the sessions.
    pub fn all(&self) -> Vec<Arc<LockHolder>> {
        self.all.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the connections whose sessions block that of a connection: they hold a lock for which it waits, or stand before it in its queue.
    pub fn blockers(&self, connection: u64, rows: &Rows, advisory: &AdvisoryLocks) -> Vec<u64> {
        let all = self.all();
        let Some(me) = all.iter().find(|holder| holder.connection == connection) else { return Vec::new() };
        let mut found = advisory.blockers(connection);
        if let Some(id) = me.activity().id() {
            let holders = rows.lock_waits().into_iter().filter(|(waiter, _)| *waiter == id).map(|(_, holder)| holder);
            let holders: Vec<_> = holders.collect();
            let is_one = |other: &&Arc<LockHolder>| other.activity().id().is_some_and(|id| holders.contains(&id));
            found.extend(all.iter().filter(is_one).map(|other| other.connection));
        }
        if let Some(SessionWait::Table { object, mode, .. }) = me.awaits() {
            let waiting = object.live().table_lock.waiting();
            let before = waiting.iter().take_while(|(claim, _)| claim.owner != me.id);
            let before = before.filter(|(_, other)| other.conflicts_with(mode)).map(|(claim, _)| claim.owner);
            let before: Vec<u64> = before.collect();
            let blocks = |other: &&Arc<LockHolder>| {
                other.id != me.id && (before.contains(&other.id) || other.modes_of(object.live()).conflict_with(mode))
            };
            found.extend(all.iter().filter(blocks).map(|other| other.connection));
        }
        found
    }
}

/// The thread that searches. Dropping it ends the thread.
pub struct DeadlockSearch {
    signal: Arc<SearchSignal>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl DeadlockSearch {
    /// A search takes at most this part of the time.
    const SHARE: u32 = 10;

    pub fn start(holders: &Arc<LockHolders>, advisory: &Arc<AdvisoryLocks>, engine: &Arc<Engine>) -> DeadlockSearch {
        let (signal, engine) = (holders.signal.clone(), Arc::downgrade(engine));
        let (holders, advisory) = (holders.clone(), advisory.clone());
        let search = move || {
            let (mut suspects, mut pause) = (HashMap::new(), STEP);
            while holders.signal.pause(pause) {
                let begun = Instant::now();
                let Some(engine) = engine.upgrade() else { return };
                suspects = search_once(&holders, &advisory, engine.rows(), &suspects);
                pause = STEP.max(begun.elapsed() * Self::SHARE);
            }
        };
        let thread = std::thread::Builder::new().name("deadlocks".into()).spawn(search).expect("a thread at start");
        DeadlockSearch { signal, thread: Some(thread) }
    }
}

impl Drop for DeadlockSearch {
    fn drop(&mut self) {
        self.signal.stop();
        let thread = self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id());
        thread.map(std::thread::JoinHandle::join);
    }
}

/// The waits that the last search found in a cycle: the number of the wait, by session.
type Suspects = HashMap<u64, u64>;

/// Ends the waits that this search and the one before have found. Returns those that it has found.
fn search_once(holders: &LockHolders, advisory: &AdvisoryLocks, rows: &Rows, before: &Suspects) -> Suspects {
    let all = holders.all();
    let mut waits = Vec::with_capacity(all.len());
    for holder in &all {
        let state = holder.wait.lock();
        waits.push(state.current.as_ref().map(|(wait, since)| (wait.clone(), *since, state.serial)));
    }
    let mut graph = WaitGraph::new(all.len());
    add_rows(&mut graph, &all, rows);
    add_advisory(&mut graph, &all, advisory);
    add_tables(&mut graph, &all, waits.iter().map(|wait| wait.as_ref().map(|(wait, ..)| wait)));
    let age = |at: usize| waits[at].as_ref().map(|(_, since, _)| *since);
    let mut found = Suspects::new();
    for victim in graph.victims(age) {
        let (holder, Some((.., serial))) = (&all[victim], &waits[victim]) else { continue };
        found.insert(holder.id, *serial);
        if before.get(&holder.id) == Some(serial) {
            holder.choose(*serial);
        }
    }
    found
}

fn add_rows(graph: &mut WaitGraph, all: &[Arc<LockHolder>], rows: &Rows) {
    let ids = all.iter().enumerate().filter_map(|(at, holder)| Some((holder.activity().id()?, at)));
    let of_transaction: HashMap<u64, usize> = ids.collect();
    for (waiter, holder) in rows.lock_waits() {
        if let (Some(waiter), Some(holder)) = (of_transaction.get(&waiter), of_transaction.get(&holder)) {
            graph.add_edge(*waiter, *holder);
        }
    }
}

fn add_advisory(graph: &mut WaitGraph, all: &[Arc<LockHolder>], advisory: &AdvisoryLocks) {
    let groups = advisory.waits();
    if groups.is_empty() {
        return;
    }
    let connections = all.iter().enumerate().map(|(at, holder)| (holder.connection, at));
    let of_connection: HashMap<u64, usize> = connections.collect();
    let places = |sessions: &[u64]| -> Vec<usize> {
        sessions.iter().filter_map(|session| of_connection.get(session).copied()).collect()
    };
    for group in groups {
        graph.add_group(&places(&group.waiters), &places(&group.blockers));
    }
}

/// The sessions that wait for one lock of a table, and those that hold it.
struct ContestedLock<'w> {
    live: &'w Arc<TableState>,
    holders: Vec<(usize, TableModes)>,
}

fn add_tables<'w>(
    graph: &mut WaitGraph,
    all: &[Arc<LockHolder>],
    waits: impl Iterator<Item = Option<&'w SessionWait>>,
) {
    let mut contested: HashMap<usize, ContestedLock<'w>> = HashMap::new();
    for wait in waits {
        if let Some(SessionWait::Table { object, .. }) = wait {
            let live = object.live();
            let entry = contested.entry(Arc::as_ptr(live) as usize);
            entry.or_insert_with(|| ContestedLock { live, holders: Vec::new() });
        }
    }
    if contested.is_empty() {
        return;
    }
    for (at, holder) in all.iter().enumerate() {
        for (object, mode) in holder.all_held() {
            let Some(lock) = contested.get_mut(&(Arc::as_ptr(object.live()) as usize)) else { continue };
            match lock.holders.last_mut().filter(|(last, _)| *last == at) {
                Some((_, modes)) => modes.add(mode),
                None => {
                    let mut modes = TableModes::default();
                    modes.add(mode);
                    lock.holders.push((at, modes));
                }
            }
        }
    }
    let of_id: HashMap<u64, usize> = all.iter().enumerate().map(|(at, holder)| (holder.id, at)).collect();
    for lock in contested.values() {
        add_table(graph, lock, &of_id);
    }
}

fn add_table(graph: &mut WaitGraph, lock: &ContestedLock<'_>, of_id: &HashMap<u64, usize>) {
    let alone = TABLE_MODES.map(|mode| {
        let mut modes = TableModes::default();
        modes.add(mode);
        modes
    });
    // For each mode, what stands against a request that comes behind the requests seen so far.
    let mut against = alone;
    let mut groups: Vec<(TableModes, Vec<usize>)> = Vec::new();
    let holders = |modes: TableModes, but: Option<usize>| -> Vec<usize> {
        let blocks = |held: TableModes| TABLE_MODES.into_iter().any(|mode| modes.has(mode) && held.conflict_with(mode));
        let others = lock.holders.iter().filter(|(at, held)| Some(*at) != but && blocks(*held));
        others.map(|(at, _)| *at).collect()
    };
    for (claim, mode) in lock.live.table_lock.waiting() {
        let modes = against[mode as usize];
        if let Some(&waiter) = of_id.get(&claim.owner) {
            let is_in_own_way = TABLE_MODES.into_iter().any(|one| modes.has(one) && claim.own.conflict_with(one));
            match groups.iter_mut().find(|(known, _)| *known == modes).filter(|_| !is_in_own_way) {
                _ if is_in_own_way => graph.add_group(&[waiter], &holders(modes, Some(waiter))),
                Some((_, waiters)) => waiters.push(waiter),
                None => groups.push((modes, vec![waiter])),
            }
        }
        for other in TABLE_MODES {
            if other.conflicts_with(mode) {
                against[other as usize].add_all(modes);
            }
        }
    }
    for (modes, waiters) in groups {
        graph.add_group(&waiters, &holders(modes, None));
    }
}
