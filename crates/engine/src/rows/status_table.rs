//! Which transactions are decided, and when: an array of statuses that readers look at without a lock.
//!
//! ```text
//!   id, slot = id mod 65,536:   { id | ACTIVE -> COMMITTING -> commit LSN, or ACTIVE -> ABORTED }
//!   low                         every id below it is decided and durable: the usual answer, without a look at a slot
//! ```
//! The number of a commit is the end of its COMMIT record in the log. A writer says COMMITTING before it reserves that record, so a reader whose snapshot was
//! taken behind the reservation finds COMMITTING or the number, never ACTIVE; on COMMITTING it waits some nanoseconds (EN-14).
//!
//! LoserList of the last crash that are undone beside the service have ids of former openings, far below all statuses. They are kept in a list of their own: ACTIVE until their ABORT is in the log,
//! ABORTED from then on. `low` knows nothing of them, so whoever takes a shortcut by `low` asks `is_loser` too (EN-35).
//!
//! Hard part: a slot is used again. What it said moves to `spilled` while somebody may need it. A reader that finds neither knows that the transaction is decided, and
//! looks whether the record still is what it was: if so, it was a commit (EN-15).

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
/// Smaller numbers are states: the first commit of a log lies far behind its header.
const FIRST_LSN: u64 = 16;

/// A transaction waits for another one.
pub static ROW_LOCK: stdx::wait::Reason = stdx::wait::Reason::bounded("row_lock");

/// What is known of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Active,
    Committed(Lsn),
    Aborted,
    /// Decided so long ago that nobody keeps when: committed, if its record still stands.
    Past,
}

/// How a wait for the end of a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    Over,
    TimedOut,
    /// It waits, perhaps by way of others, for the one that asks.
    Deadlock,
    /// The one that waits was told to stop.
    Cancelled,
    /// It would block a thread, and as many are blocked as may be.
    Refused,
}

/// How long, and why no longer, somebody waits.
pub(crate) struct WaitLimits<'p> {
    pub until: Instant,
    /// Asked again whenever `StatusTable::rouse` was called.
    pub is_cancelled: &'p dyn Fn() -> bool,
    /// What `StatusTable::releases` was before the holder was found in the way.
    pub releases: u64,
}

impl WaitLimits<'_> {
    /// How long the wait may go on, or how it has ended.
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

/// Resumes what waits without a thread. Called from any thread, perhaps more than once.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct WaitShard {
    waiting: Mutex<ShardWaits>,
    bell: Condvar,
}

/// Those that wait for transactions of a shard.
#[derive(Default)]
struct ShardWaits {
    /// With a thread: how many.
    threads: usize,
    /// Without one: by whom they wait for, and who they are.
    parked: HashMap<TxnId, HashMap<TxnId, Wake>>,
}

/// Who waits for whom.
#[derive(Default)]
struct WaitGraph {
    holders: HashMap<TxnId, TxnId>,
    /// For how many a transaction is the holder: one that nobody waits for closes no circle.
    waiters: HashMap<TxnId, usize>,
}

impl WaitGraph {
    fn closes_circle(&self, me: TxnId, holder: TxnId) -> bool {
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

/// A transaction that the last crash has cut off.
struct RecoveredLoserState {
    id: TxnId,
    is_undone: AtomicBool,
}

pub(crate) struct StatusTable {
    statuses: Box<[StatusSlot]>,
    /// Smaller ids were given out by former openings.
    first: TxnId,
    /// LoserList of the last crash, ascending. They stay in the list when they are undone: a reader may still have a record that names one.
    losers: OnceLock<Box<[RecoveredLoserState]>>,
    /// Commits that were asked for when their slot was used again, by id. A long snapshot makes them many: 16 bytes for each transaction since.
    spilled: RwLock<VecDeque<(TxnId, Lsn)>>,
    low: AtomicU64,
    /// Behind the greatest id given out; guards giving out and `low`.
    next: Mutex<TxnId>,
    /// Who waits for whom.
    waits: Mutex<WaitGraph>,
    shards: Box<[WaitShard]>,
    /// How often a lock was given back before its transaction's end.
    releases: AtomicU64,
}

impl StatusTable {
    /// `first`: no id of this opening is smaller; whatever has a smaller one is decided, but for losers (`recover`).
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

    /// Declares the losers of the last crash active, once, before anybody reads.
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

    /// True for a loser of the last crash, whether or not it is undone by now.
    #[inline]
    pub fn is_loser(&self, id: TxnId) -> bool {
        id < self.first && self.loser(id).is_some()
    }

    fn slot(&self, id: TxnId) -> &StatusSlot {
        &self.statuses[id as usize % SLOTS]
    }

    /// Every id below is decided, and durable if it was committed; but for losers of the last crash.
    pub fn low(&self) -> TxnId {
        self.low.load(Ordering::Acquire)
    }

    /// A slot for a new transaction. `new_id` gives ascending ids; `keep`: ends behind this position are still asked for.
    pub fn begin(&self, new_id: impl Fn() -> TxnId, keep: Lsn) -> TxnId {
        let mut next = self.next.lock();
        loop {
            let id = new_id();
            let slot = self.slot(id);
            let (before, state) = (slot.id.load(Ordering::Relaxed), slot.state.load(Ordering::Acquire));
            if before != 0 && matches!(state, ACTIVE | COMMITTING) {
                // Somebody has been at work for 65,536 transactions.
                continue;
            }
            if before != 0 && state >= FIRST_LSN && (state > keep || before >= self.low()) {
                let mut spilled = self.spilled.write();
                // Nearly always the greatest so far: a slot that a long transaction had comes late.
                let at = spilled.partition_point(|(id, _)| *id < before);
                spilled.insert(at, (before, state));
            }
            // A reader of the slot that sees the new state sees the new id when it looks again.
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

    /// The transaction is committed; its record in the log ends at `lsn`.
    pub fn committed(&self, id: TxnId, lsn: Lsn) {
        assert!(lsn >= FIRST_LSN);
        self.end(id, lsn);
    }

    /// Everything that the transaction had changed is as it was before.
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

    pub fn is_open(&self, id: TxnId) -> bool {
        (id >= self.low() || self.is_loser(id)) && self.status(id) == Status::Active
    }

    /// Moves `low` on over what is decided and durable, and forgets ends up to `keep`.
    pub fn advance(&self, durable: Lsn, keep: Lsn) {
        let next = self.next.lock();
        let mut low = self.low.load(Ordering::Relaxed);
        while low < *next {
            // Ids that are no transactions of ours have no slot.
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
            // One that is still needed keeps those behind it a little longer.
            while spilled.front().is_some_and(|(id, lsn)| *id < low && *lsn <= keep) {
                spilled.pop_front();
            }
            if spilled.len() < spilled.capacity() / 4 {
                spilled.shrink_to_fit();
            }
        }
    }

    /// To be asked before a lock is tried, for a wait that may follow.
    pub fn releases(&self) -> u64 {
        self.releases.load(Ordering::SeqCst)
    }

    /// A lock of `holder` is gone, and `holder` is not: whoever waits for it tries again.
    pub fn released(&self, holder: TxnId) {
        self.releases.fetch_add(1, Ordering::SeqCst);
        self.wake_waiters(holder);
    }

    /// Everybody who waits asks whether he still may.
    pub fn rouse(&self) {
        self.shards.iter().for_each(|shard| self.ring(shard));
    }

    fn ring(&self, shard: &WaitShard) {
        if shard.waiting.lock().threads > 0 {
            shard.bell.notify_all();
        }
    }

    /// Whoever waits for `holder` looks again.
    fn wake_waiters(&self, holder: TxnId) {
        let shard = &self.shards[holder as usize % SHARDS];
        let mut waiting = shard.waiting.lock();
        if waiting.threads > 0 {
            shard.bell.notify_all();
        }
        let parked = if waiting.parked.is_empty() { None } else { waiting.parked.remove(&holder) };
        drop(waiting);
        parked.into_iter().flatten().for_each(|(_, wake)| wake());
    }

    /// `wake` is called once `holder` is decided, or a lock of it has been given back; at once if that is so already, or if `releases` has moved.
    pub fn park(&self, me: TxnId, holder: TxnId, releases: u64, wake: Wake) {
        let mut waiting = self.shards[holder as usize % SHARDS].waiting.lock();
        if self.is_over(holder, releases) {
            drop(waiting);
            return wake();
        }
        waiting.parked.entry(holder).or_default().insert(me, wake);
    }

    /// Forgets `park`.
    pub fn unpark(&self, me: TxnId, holder: TxnId) {
        let mut waiting = self.shards[holder as usize % SHARDS].waiting.lock();
        let Some(of_holder) = waiting.parked.get_mut(&holder) else { return };
        of_holder.remove(&me);
        if of_holder.is_empty() {
            waiting.parked.remove(&holder);
        }
    }

    /// Is a wait for `holder` over, that began when `releases` was this?
    pub fn is_over(&self, holder: TxnId, releases: u64) -> bool {
        self.status(holder) != Status::Active || self.releases() != releases
    }

    /// WaitGraph until `holder` is decided, or some lock has been given back; `me` is the one who waits.
    pub fn wait(&self, me: TxnId, holder: TxnId, patience: &WaitLimits<'_>) -> WaitOutcome {
        if !self.note_wait(me, holder) {
            return WaitOutcome::Deadlock;
        }
        let waited = self.sleep(holder, patience);
        self.forget_wait(me);
        waited
    }

    /// `me` is about to wait for `holder`. False: that would close a circle, and is not noted.
    pub fn note_wait(&self, me: TxnId, holder: TxnId) -> bool {
        let mut waits = self.waits.lock();
        let is_safe = !waits.closes_circle(me, holder);
        if is_safe {
            waits.note(me, holder);
        }
        is_safe
    }

    pub fn forget_wait(&self, me: TxnId) {
        self.waits.lock().forget(me);
    }

    /// Each who waits, and for whom.
    pub fn all_waits(&self) -> Vec<(TxnId, TxnId)> {
        self.waits.lock().holders.iter().map(|(waiter, holder)| (*waiter, *holder)).collect()
    }

    /// Who waits waits for another one now, for whom the former one waited: that closes no circle.
    pub fn wait_instead(&self, waiter: TxnId, holder: TxnId) {
        let mut waits = self.waits.lock();
        if waits.holders.contains_key(&waiter) {
            waits.note(waiter, holder);
        }
    }

    /// WaitGraph as somebody for whom nobody waits.
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
                Ok(left) => waiting = shard.bell.wait_timeout(waiting, left).0,
                Err(end) => break end,
            }
        };
        waiting.threads -= 1;
        waited
    }
}
