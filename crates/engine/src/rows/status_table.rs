//! The transaction status table: which transactions are decided, and when. Readers use it without a lock.
//!
//! ```text
//!   id, slot = id mod 65,536:   { id | ACTIVE -> COMMITTING -> commit LSN, or ACTIVE -> ABORTED }
//!   low                         every id below it is decided and durable: the usual answer, without reading a slot
//! ```
//! The number of a commit is the end of its COMMIT record in the WAL. A writer sets COMMITTING before it reserves that record. So a reader whose snapshot was
//! taken after the reservation finds COMMITTING or the number, never ACTIVE; on COMMITTING it spins for some nanoseconds (EN-14).
//!
//! Losers of the last crash that are undone beside the service have ids of former openings, far below all slots. They are in a list of their own: ACTIVE until
//! their ABORT is in the WAL, ABORTED from then on. `low` does not cover them, so every shortcut by `low` checks `is_loser` too (EN-35).
//!
//! Hard part: slots are reused. The commit LSN of the former owner moves to `spilled` while a snapshot may need it. A reader that finds neither knows that the
//! transaction is decided, and checks whether the record is still the same. If so, it was committed (EN-15).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pager::{Lsn, TxnId};
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use stdx::sync::{Condvar, Mutex, RwLock, hint};

#[cfg(all(test, not(loom)))]
mod tests;

const SLOTS: usize = if cfg!(loom) { 1 } else { 1 << 16 };
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

const ACTIVE: u64 = 0;
const COMMITTING: u64 = 1;
const ABORTED: u64 = 2;
/// Smaller numbers are states. The first commit of a WAL lies far behind its header.
const FIRST_LSN: u64 = 16;

/// Wait reason: a transaction waits for another one.
pub static ROW_LOCK: stdx::wait::Reason = stdx::wait::Reason::bounded("row_lock");

/// The status of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Active,
    Committed(Lsn),
    Aborted,
    /// Decided so long ago that its LSN is no longer kept. It was committed if its record is still the same.
    Past,
}

/// How a wait for the end of a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    Over,
    TimedOut,
    /// The holder waits for the waiter, perhaps through others.
    Deadlock,
    /// The waiter was told to stop.
    Cancelled,
    /// The wait would block a thread, and no more threads may be blocked.
    Refused,
}

/// The limits of a wait.
pub(crate) struct WaitLimits<'p> {
    pub until: Instant,
    /// Called again whenever `StatusTable::recheck_waiters` is called.
    pub is_cancelled: &'p dyn Fn() -> bool,
    /// The value of `StatusTable::releases` before the conflicting lock was found.
    pub releases: u64,
}

impl WaitLimits<'_> {
    /// Returns how long the wait may go on, or how it has ended.
    pub fn left(&self) -> Result<Duration, WaitOutcome> {
        if (self.is_cancelled)() {
            return Err(WaitOutcome::Cancelled);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(WaitOutcome::TimedOut) } else { Ok(left) }
    }
}

#[derive(Default)]
struct StatusSlot {
    id: AtomicU64,
    state: AtomicU64,
}

/// Resumes a suspended statement. Called from any thread, perhaps more than once.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct WaitShard {
    waiting: Mutex<ShardWaits>,
    condvar: Condvar,
}

/// The waits for transactions of one shard.
#[derive(Default)]
struct ShardWaits {
    /// Number of threads that wait.
    threads: usize,
    /// Suspended statements, by the transaction that they wait for and their own.
    parked: HashMap<TxnId, HashMap<TxnId, Wake>>,
}

/// The wait-for graph: each waiting transaction has one edge to a holder. A transaction whose edge would close a cycle is rolled back (EN-20).
#[derive(Default)]
struct WaitGraph {
    holders: HashMap<TxnId, TxnId>,
    /// Number of waiters of each holder. A transaction without waiters closes no cycle.
    waiters: HashMap<TxnId, usize>,
}

impl WaitGraph {
    fn closes_cycle(&self, me: TxnId, holder: TxnId) -> bool {
        if me != holder && !self.waiters.contains_key(&me) {
            return false;
        }
        let mut at = holder;
        while at != me {
            match self.holders.get(&at) {
                Some(next) => at = *next,
                None => return false,
            }
        }
        true
    }

    fn note(&mut self, me: TxnId, holder: TxnId) {
        self.forget(me);
        self.holders.insert(me, holder);
        *self.waiters.entry(holder).or_default() += 1;
    }

    fn forget(&mut self, me: TxnId) {
        let Some(holder) = self.holders.remove(&me) else { return };
        if let Some(count) = self.waiters.get_mut(&holder) {
            *count -= 1;
            if *count == 0 {
                self.waiters.remove(&holder);
            }
        }
    }
}

/// A transaction that the last crash interrupted.
struct RecoveredLoserState {
    id: TxnId,
    is_undone: AtomicBool,
}

pub(crate) struct StatusTable {
    statuses: Box<[StatusSlot]>,
    /// Smaller ids were given out by former openings.
    first: TxnId,
    /// Losers of the last crash, ascending. They stay in the list when they are undone, since a reader may still have a record that names one.
    losers: OnceLock<Box<[RecoveredLoserState]>>,
    /// Commits whose slot was reused while a snapshot may need them, by id. A long snapshot makes them many: 16 bytes for each transaction since.
    spilled: RwLock<VecDeque<(TxnId, Lsn)>>,
    low: AtomicU64,
    /// One more than the greatest id given out. The mutex guards giving out ids and `low`.
    next: Mutex<TxnId>,
    /// The wait-for graph.
    waits: Mutex<WaitGraph>,
    shards: Box<[WaitShard]>,
    /// How often a lock was released before its transaction's end.
    releases: AtomicU64,
}

impl StatusTable {
    /// Creates a table. `first` is the smallest id of this opening; transactions with smaller ids are decided, except losers (`recover`).
    pub fn new(first: TxnId) -> StatusTable {
        StatusTable {
            statuses: (0..SLOTS).map(|_| StatusSlot::default()).collect(),
            first,
            losers: OnceLock::new(),
            spilled: RwLock::default(),
            low: AtomicU64::new(first),
            next: Mutex::new(first),
            waits: Mutex::default(),
            shards: (0..SHARDS).map(|_| WaitShard::default()).collect(),
            releases: AtomicU64::new(0),
        }
    }

    /// Declares the losers of the last crash active. To be called once, before the first read.
    pub fn recover(&self, mut ids: Vec<TxnId>) {
        ids.sort_unstable();
        assert!(ids.last().is_none_or(|last| *last < self.first), "EN-35: a loser has an id of this opening");
        let losers = ids.into_iter().map(|id| RecoveredLoserState { id, is_undone: AtomicBool::new(false) }).collect();
        assert!(self.losers.set(losers).is_ok(), "losers are declared once");
    }

    fn loser(&self, id: TxnId) -> Option<&RecoveredLoserState> {
        if id >= self.first {
            return None;
        }
        let losers = self.losers.get()?;
        losers.binary_search_by_key(&id, |loser| loser.id).ok().map(|at| &losers[at])
    }

    /// Returns true for a loser of the last crash, whether or not it is undone by now.
    #[inline]
    pub fn is_loser(&self, id: TxnId) -> bool {
        id < self.first && self.loser(id).is_some()
    }

    fn slot(&self, id: TxnId) -> &StatusSlot {
        &self.statuses[id as usize % SLOTS]
    }

    /// Returns an id below which all transactions are decided, and durable if committed; losers of the last crash excepted.
    pub fn low(&self) -> TxnId {
        self.low.load(Ordering::Acquire)
    }

    /// Assigns a slot to a new transaction. `new_id` gives ascending ids. Commits after `keep` may still be asked for.
    pub fn begin(&self, new_id: impl Fn() -> TxnId, keep: Lsn) -> TxnId {
        let mut next = self.next.lock();
        loop {
            let id = new_id();
            let slot = self.slot(id);
            let (before, state) = (slot.id.load(Ordering::Relaxed), slot.state.load(Ordering::Acquire));
            if before != 0 && matches!(state, ACTIVE | COMMITTING) {
                // The slot's owner has been open for 65,536 transactions.
                continue;
            }
            if before != 0 && state >= FIRST_LSN && (state > keep || before >= self.low()) {
                let mut spilled = self.spilled.write();
                // Nearly always the greatest so far. A slot that a long transaction had comes late.
                let at = spilled.partition_point(|(id, _)| *id < before);
                spilled.insert(at, (before, state));
            }
            // A reader of the slot that sees the new state sees the new id when it checks again.
            slot.id.store(id, Ordering::Relaxed);
            fence(Ordering::Release);
            slot.state.store(ACTIVE, Ordering::Release);
            *next = id + 1;
            return id;
        }
    }

    pub fn committing(&self, id: TxnId) {
        self.slot(id).state.store(COMMITTING, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Notes that the transaction is committed; its WAL record ends at `lsn`.
    pub fn committed(&self, id: TxnId, lsn: Lsn) {
        assert!(lsn >= FIRST_LSN);
        self.end(id, lsn);
    }

    /// Notes that the transaction is undone.
    pub fn aborted(&self, id: TxnId) {
        self.end(id, ABORTED);
    }

    fn end(&self, id: TxnId, state: u64) {
        if let Some(loser) = self.loser(id) {
            assert!(state == ABORTED, "EN-35: a loser is not committed");
            loser.is_undone.store(true, Ordering::SeqCst);
            self.wake_waiters(id);
            return;
        }
        self.slot(id).state.store(state, Ordering::SeqCst);
        self.wake_waiters(id);
    }

    pub fn status(&self, id: TxnId) -> Status {
        if id < self.first {
            return match self.loser(id) {
                Some(loser) if loser.is_undone.load(Ordering::SeqCst) => Status::Aborted,
                Some(_) => Status::Active,
                None => Status::Past,
            };
        }
        let slot = self.slot(id);
        loop {
            let state = slot.state.load(Ordering::SeqCst);
            fence(Ordering::Acquire);
            if slot.id.load(Ordering::Relaxed) != id {
                let spilled = self.spilled.read();
                let found = spilled.binary_search_by_key(&id, |(id, _)| *id);
                return found.map_or(Status::Past, |at| Status::Committed(spilled[at].1));
            }
            match state {
                ACTIVE => return Status::Active,
                COMMITTING => hint::spin_loop(),
                ABORTED => return Status::Aborted,
                lsn => return Status::Committed(lsn),
            }
        }
    }

    /// Returns one more than the greatest id that a transaction has got.
    pub fn next(&self) -> TxnId {
        *self.next.lock()
    }

    /// Returns the end of the ids whose commits a snapshot at `lsn` sees, and the ids before it whose transactions it does not see because they are open or
    /// have committed later, in order. `low`: transactions with smaller ids were decided then; losers of the last crash excepted.
    pub fn unseen_at(&self, lsn: Lsn, low: TxnId) -> (TxnId, Vec<TxnId>) {
        let losers = self.losers.get().into_iter().flatten().map(|loser| loser.id);
        let owners = self.statuses.iter().map(|slot| slot.id.load(Ordering::Acquire)).filter(|id| *id != 0);
        let spilled: Vec<TxnId> = self.spilled.read().iter().map(|(id, _)| *id).collect();
        let (mut end, mut unseen) = (low, Vec::new());
        for id in losers.chain(spilled).chain(owners.filter(|id| *id >= low)) {
            match self.status(id) {
                Status::Committed(at) if at <= lsn => end = end.max(id + 1),
                Status::Committed(_) | Status::Active => unseen.push(id),
                Status::Aborted | Status::Past => {}
            }
        }
        unseen.retain(|id| *id < end);
        unseen.sort_unstable();
        unseen.dedup();
        (end, unseen)
    }

    pub fn is_open(&self, id: TxnId) -> bool {
        (id >= self.low() || self.is_loser(id)) && self.status(id) == Status::Active
    }

    /// Advances `low` over transactions that are decided and durable, and forgets commits up to `keep`.
    pub fn advance(&self, durable: Lsn, keep: Lsn) {
        let next = self.next.lock();
        let mut low = self.low.load(Ordering::Relaxed);
        while low < *next {
            // Ids that are not transactions of rows have no slot.
            let is_done = match self.status(low) {
                Status::Active => false,
                Status::Committed(lsn) => lsn <= durable,
                Status::Aborted | Status::Past => true,
            };
            if !is_done {
                break;
            }
            low += 1;
        }
        self.low.store(low, Ordering::Release);
        drop(next);
        if !self.spilled.read().is_empty() {
            let mut spilled = self.spilled.write();
            // An entry that is still needed keeps those behind it a little longer.
            while spilled.front().is_some_and(|(id, lsn)| *id < low && *lsn <= keep) {
                spilled.pop_front();
            }
            if spilled.len() < spilled.capacity() / 4 {
                spilled.shrink_to_fit();
            }
        }
    }

    /// Returns the number of early releases. To be called before a lock is tried, for a wait that may follow (EN-22).
    pub fn releases(&self) -> u64 {
        self.releases.load(Ordering::SeqCst)
    }

    /// Notes that `holder` has released a lock before its end. Its waiters try again.
    pub fn released(&self, holder: TxnId) {
        self.releases.fetch_add(1, Ordering::SeqCst);
        self.wake_waiters(holder);
    }

    /// Makes all waiting threads check `is_cancelled` again.
    pub fn recheck_waiters(&self) {
        self.shards.iter().for_each(|shard| self.ring(shard));
    }

    fn ring(&self, shard: &WaitShard) {
        if shard.waiting.lock().threads > 0 {
            shard.condvar.notify_all();
        }
    }

    /// Wakes everything that waits for `holder`.
    fn wake_waiters(&self, holder: TxnId) {
        let shard = &self.shards[holder as usize % SHARDS];
        let mut waiting = shard.waiting.lock();
        if waiting.threads > 0 {
            shard.condvar.notify_all();
        }
        let parked = if waiting.parked.is_empty() { None } else { waiting.parked.remove(&holder) };
        drop(waiting);
        parked.into_iter().flatten().for_each(|(_, wake)| wake());
    }

    /// Registers `wake`, to be called once `holder` is decided or has released a lock. It is called at once if that is so already, or if `releases` has
    /// changed.
    pub fn park(&self, me: TxnId, holder: TxnId, releases: u64, wake: Wake) {
        let mut waiting = self.shards[holder as usize % SHARDS].waiting.lock();
        if self.is_over(holder, releases) {
            drop(waiting);
            return wake();
        }
        waiting.parked.entry(holder).or_default().insert(me, wake);
    }

    /// Undoes `park`.
    pub fn unpark(&self, me: TxnId, holder: TxnId) {
        let mut waiting = self.shards[holder as usize % SHARDS].waiting.lock();
        let Some(of_holder) = waiting.parked.get_mut(&holder) else { return };
        of_holder.remove(&me);
        if of_holder.is_empty() {
            waiting.parked.remove(&holder);
        }
    }

    /// Returns true if a wait for `holder` is over that began when `releases` had this value.
    pub fn is_over(&self, holder: TxnId, releases: u64) -> bool {
        self.status(holder) != Status::Active || self.releases() != releases
    }

    /// Blocks `me` until `holder` is decided or some lock has been released.
    pub fn wait(&self, me: TxnId, holder: TxnId, patience: &WaitLimits<'_>) -> WaitOutcome {
        if !self.note_wait(me, holder) {
            return WaitOutcome::Deadlock;
        }
        let waited = self.sleep(holder, patience);
        self.forget_wait(me);
        waited
    }

    /// Returns the number of threads that are blocked until a transaction ends.
    pub fn waiting_threads(&self) -> usize {
        self.shards.iter().map(|shard| shard.waiting.lock().threads).sum()
    }

    /// Adds the edge from `me` to `holder`. Returns false, and adds nothing, if that would close a cycle.
    pub fn note_wait(&self, me: TxnId, holder: TxnId) -> bool {
        let mut waits = self.waits.lock();
        let is_safe = !waits.closes_cycle(me, holder);
        if is_safe {
            waits.note(me, holder);
        }
        is_safe
    }

    pub fn forget_wait(&self, me: TxnId) {
        self.waits.lock().forget(me);
    }

    /// Returns all edges of the wait-for graph as (waiter, holder).
    pub fn all_waits(&self) -> Vec<(TxnId, TxnId)> {
        self.waits.lock().holders.iter().map(|(waiter, holder)| (*waiter, *holder)).collect()
    }

    /// Replaces the waiter's edge by one to the transaction that its former holder waited for. That closes no cycle.
    pub fn wait_instead(&self, waiter: TxnId, holder: TxnId) {
        let mut waits = self.waits.lock();
        if waits.holders.contains_key(&waiter) {
            waits.note(waiter, holder);
        }
    }

    /// Blocks until `holder` is decided or some lock has been released, without an edge: for a waiter that no transaction waits for.
    pub fn sleep(&self, holder: TxnId, patience: &WaitLimits<'_>) -> WaitOutcome {
        let Some(_waiting) = stdx::wait::try_announce(&ROW_LOCK) else { return WaitOutcome::Refused };
        let shard = &self.shards[holder as usize % SHARDS];
        let mut waiting = shard.waiting.lock();
        waiting.threads += 1;
        let waited = loop {
            if self.is_over(holder, patience.releases) {
                break WaitOutcome::Over;
            }
            match patience.left() {
                Ok(left) => waiting = shard.condvar.wait_timeout(waiting, left).0,
                Err(end) => break end,
            }
        };
        waiting.threads -= 1;
        waited
    }
}
