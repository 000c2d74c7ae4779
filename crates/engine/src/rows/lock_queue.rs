//! Lock queues: when the holder of a row ends, one of the waiting transactions tries, not all.
//!
//! ```text
//!   holder  <-  first ticket  <-  second  <-  third        each waits for the one before it
//! ```
//! A transaction that wants a row exclusively and finds it locked gets a ticket at the end of the row's queue. The first ticket waits for the holder's end
//! (`status_table`) and tries again then; the others sleep. A ticket leaves when its transaction has the row or gives up, and wakes the next one. A newcomer
//! that finds the row free takes it, queue or not: the first ticket tries again at the newcomer's end.
//!
//! Hard part: cycles. For deadlock detection a queued transaction waits for the one before it. That is right only because the row's holder blocks each of them.
//! It is not right for a transaction that already holds a share of the row: so a cycle that only a queue closes is no deadlock, and the transaction that would
//! close one waits without a ticket (EN-23).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pager::TxnId;
use stdx::hash::Seed;
use stdx::sync::{Condvar, Mutex};

use crate::rows::activity::AwaitedLock;
use crate::rows::lock_table::{RowLock, Strength};
use crate::rows::status_table::{ROW_LOCK, StatusTable, WaitLimits, WaitOutcome, Wake};
use crate::store::trees::MapId;

#[cfg(test)]
mod tests;

const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

type Row = (MapId, Box<[u8]>);
type Queue = VecDeque<Arc<Ticket>>;

struct Ticket {
    txn: TxnId,
    /// Used with the shard's mutex.
    condvar: Condvar,
    /// The wake-up of a suspended statement.
    wake: Mutex<Option<Wake>>,
}

impl Ticket {
    /// Wakes the ticket, which is now the first. The caller calls the result after it has released the shard's mutex.
    #[must_use]
    fn call(&self) -> Option<Wake> {
        self.condvar.notify_all();
        self.wake.lock().take()
    }
}

pub(crate) struct LockQueues {
    shards: Box<[Mutex<HashMap<Row, Queue>>]>,
    seed: Seed,
}

/// Repeated tries to lock one row.
pub(crate) struct LockAttempt<'r> {
    queues: &'r Arc<LockQueues>,
    statuses: &'r Arc<StatusTable>,
    row: (MapId, &'r [u8]),
    strength: Strength,
    /// When the first wait began.
    since: Option<Instant>,
    may_queue: bool,
    place: Option<QueuePlace>,
    /// The statement was suspended for this row before.
    is_resumed: bool,
}

/// A ticket's place in its queue. It leaves the queue on drop.
struct QueuePlace {
    lock_queues: Arc<LockQueues>,
    statuses: Arc<StatusTable>,
    row: Row,
    ticket: Arc<Ticket>,
}

/// The outcome of joining a queue.
enum JoinResult {
    /// It is the first ticket: wait for the holder.
    First(QueuePlace),
    /// It became the first ticket: try the row again.
    Moved(QueuePlace),
    /// Queueing would close a cycle.
    Cycle,
    /// `TimedOut`, `Cancelled` or `Refused`.
    GaveUp(WaitOutcome),
}

impl Default for LockQueues {
    fn default() -> LockQueues {
        LockQueues { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), seed: Seed::default() }
    }
}

impl LockQueues {
    fn shard(&self, row: &Row) -> &Mutex<HashMap<Row, Queue>> {
        &self.shards[(self.seed.within(row.0.into(), &row.1) >> 40) as usize % self.shards.len()]
    }

    /// Joins the row's queue, and waits until the ticket is the first.
    fn join(
        self: &Arc<LockQueues>,
        statuses: &Arc<StatusTable>,
        row: (MapId, &[u8]),
        me: TxnId,
        patience: &WaitLimits<'_>,
    ) -> JoinResult {
        let Some((place, is_first)) = self.enter(statuses, row, me) else { return JoinResult::Cycle };
        if is_first {
            return JoinResult::First(place);
        }
        let waited = place.sleep(patience);
        statuses.forget_wait(me);
        if waited == WaitOutcome::Over { JoinResult::Moved(place) } else { JoinResult::GaveUp(waited) }
    }

    /// Joins the row's queue. Returns the place and whether it is the first; otherwise an edge to the ticket before is in the wait-for graph. Returns `None` if
    /// that edge would close a cycle.
    fn enter(
        self: &Arc<LockQueues>,
        statuses: &Arc<StatusTable>,
        (map, key): (MapId, &[u8]),
        me: TxnId,
    ) -> Option<(QueuePlace, bool)> {
        let row: Row = (map, key.into());
        let mut shard = self.shard(&row).lock();
        let line = shard.entry(row.clone()).or_default();
        let before = line.back().map(|ticket| ticket.txn);
        if before.is_some_and(|before| !statuses.note_wait(me, before)) {
            return None;
        }
        let ticket = Arc::new(Ticket { txn: me, condvar: Condvar::default(), wake: Mutex::default() });
        line.push_back(ticket.clone());
        drop(shard);
        Some((QueuePlace { lock_queues: self.clone(), statuses: statuses.clone(), row, ticket }, before.is_none()))
    }

    /// Makes all waiting threads check `is_cancelled` again. Suspended statements are told by their sessions.
    pub fn recheck_waiters(&self) {
        for shard in &self.shards {
            let shard = shard.lock();
            let has_thread = |ticket: &&Arc<Ticket>| ticket.wake.lock().is_none();
            shard.values().flatten().filter(has_thread).for_each(|ticket| ticket.condvar.notify_all());
        }
    }
}

impl<'r> LockAttempt<'r> {
    /// Begins the tries for a row. Requests for a shared lock do not queue, since they do not block each other.
    pub fn new(
        queues: &'r Arc<LockQueues>,
        statuses: &'r Arc<StatusTable>,
        map: MapId,
        key: &'r [u8],
        strength: Strength,
    ) -> LockAttempt<'r> {
        let may_queue = strength >= Strength::NoKeyExclusive;
        LockAttempt {
            queues,
            statuses,
            row: (map, key),
            strength,
            since: None,
            may_queue,
            place: None,
            is_resumed: false,
        }
    }

    /// Waits without a ticket from now on: its holder does not block those behind it in the queue (EN-23).
    pub fn leave_queue(&mut self) {
        self.may_queue = false;
        self.place = None;
    }

    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Returns what is waited for, since the first wait.
    pub fn awaited(&mut self) -> AwaitedLock {
        let row = RowLock { map: self.row.0, key: self.row.1.into(), strength: self.strength };
        AwaitedLock { row, since: *self.since.get_or_insert_with(Instant::now) }
    }

    /// Returns when the first wait began and when a wait of `wait` in all ends. A time beyond the clock's range becomes a hundred years.
    fn span(&mut self, wait: Duration) -> (Instant, Instant) {
        let since = *self.since.get_or_insert_with(Instant::now);
        (since, since.checked_add(wait).unwrap_or(since + Duration::from_secs(u32::MAX.into())))
    }

    /// Blocks `me` until the row, which `holder` has locked, may be tried again, for `wait` in all. A place in the queue is kept until the attempt is dropped.
    pub fn wait(
        &mut self,
        me: TxnId,
        holder: TxnId,
        wait: Duration,
        is_cancelled: &dyn Fn() -> bool,
        releases: u64,
    ) -> WaitOutcome {
        let (_, until) = self.span(wait);
        let (patience, statuses) = (WaitLimits { until, is_cancelled, releases }, self.statuses);
        if self.may_queue && self.place.is_none() {
            match self.queues.join(statuses, self.row, me, &patience) {
                JoinResult::First(place) => self.place = Some(place),
                JoinResult::Moved(place) => {
                    self.place = Some(place);
                    return WaitOutcome::Over;
                }
                JoinResult::Cycle => self.may_queue = false,
                JoinResult::GaveUp(waited) => return waited,
            }
        }
        let waited = statuses.wait(me, holder, &patience);
        if waited != WaitOutcome::Deadlock || self.place.take().is_none() {
            return waited;
        }
        self.may_queue = false;
        statuses.wait(me, holder, &patience)
    }

    /// Does the same without blocking a thread: the wait goes on in the result. `Err`: how the wait has ended, or why it cannot begin.
    pub fn suspend(
        &mut self,
        me: TxnId,
        holder: TxnId,
        wait: Duration,
        is_cancelled: &dyn Fn() -> bool,
        releases: u64,
    ) -> Result<SuspendedWait, WaitOutcome> {
        let (since, until) = self.span(wait);
        WaitLimits { until, is_cancelled, releases }.left()?;
        let statuses = self.statuses;
        let mut suspended = SuspendedWait {
            statuses: statuses.clone(),
            me,
            row: (self.row.0, self.row.1.into()),
            since,
            until,
            may_queue: self.may_queue,
            place: None,
            holder: None,
        };
        if self.may_queue && self.place.is_none() {
            match self.queues.enter(statuses, self.row, me) {
                Some((place, is_first)) if is_first => self.place = Some(place),
                Some((place, _)) => {
                    suspended.place = Some(place);
                    return Ok(suspended);
                }
                None => self.may_queue = false,
            }
        }
        if !statuses.note_wait(me, holder) {
            if self.place.take().is_none() || !statuses.note_wait(me, holder) {
                return Err(WaitOutcome::Deadlock);
            }
            self.may_queue = false;
        }
        suspended.may_queue = self.may_queue;
        suspended.place = self.place.take();
        suspended.holder = Some((holder, releases));
        Ok(suspended)
    }

    /// Continues a suspended wait for the same row.
    pub fn adopt(&mut self, mut suspended: SuspendedWait) {
        self.is_resumed = true;
        self.since = Some(suspended.since);
        self.may_queue &= suspended.may_queue;
        // A place that is not the first yet is given up: the wait has ended for another reason.
        self.place = suspended.place.take().filter(QueuePlace::is_first);
    }
}

/// A wait for a row that blocks no thread: a place in the row's queue, or the wait of the first ticket for the holder (EN-25). It ends on drop.
pub(crate) struct SuspendedWait {
    statuses: Arc<StatusTable>,
    me: TxnId,
    row: Row,
    since: Instant,
    pub until: Instant,
    may_queue: bool,
    place: Option<QueuePlace>,
    /// The transaction that is waited for, and `StatusTable::releases` before; `None` while the place is not the first.
    holder: Option<(TxnId, u64)>,
}

impl SuspendedWait {
    pub fn is_for(&self, map: MapId, key: &[u8]) -> bool {
        self.row.0 == map && *self.row.1 == *key
    }

    /// Registers `wake`, to be called when the row may be tried again.
    pub fn park(&self, wake: Wake) {
        match (self.holder, &self.place) {
            (Some((holder, releases)), _) => self.statuses.park(self.me, holder, releases, wake),
            (None, Some(place)) => place.park(wake),
            (None, None) => wake(),
        }
    }

    pub fn is_ready(&self) -> bool {
        match (self.holder, &self.place) {
            (Some((holder, releases)), _) => self.statuses.is_over(holder, releases),
            (None, place) => place.as_ref().is_none_or(QueuePlace::is_first),
        }
    }
}

impl Drop for SuspendedWait {
    fn drop(&mut self) {
        if let Some((holder, _)) = self.holder {
            self.statuses.unpark(self.me, holder);
        }
        self.statuses.forget_wait(self.me);
    }
}

impl QueuePlace {
    fn is_first_in(&self, shard: &HashMap<Row, Queue>) -> bool {
        shard.get(&self.row).and_then(Queue::front).is_some_and(|first| Arc::ptr_eq(first, &self.ticket))
    }

    fn is_first(&self) -> bool {
        self.is_first_in(&self.lock_queues.shard(&self.row).lock())
    }

    /// Registers `wake`, to be called when this place is the first. It is called at once if it already is.
    fn park(&self, wake: Wake) {
        let shard = self.lock_queues.shard(&self.row).lock();
        if self.is_first_in(&shard) {
            drop(shard);
            return wake();
        }
        *self.ticket.wake.lock() = Some(wake);
    }

    fn sleep(&self, patience: &WaitLimits<'_>) -> WaitOutcome {
        let Some(_waiting) = stdx::wait::try_announce(&ROW_LOCK) else { return WaitOutcome::Refused };
        let mut shard = self.lock_queues.shard(&self.row).lock();
        loop {
            if self.is_first_in(&shard) {
                return WaitOutcome::Over;
            }
            match patience.left() {
                Ok(left) => shard = self.ticket.condvar.wait_timeout(shard, left).0,
                Err(end) => return end,
            }
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut called = None;
        let mut shard = self.lock_queues.shard(&self.row).lock();
        let Some(line) = shard.get_mut(&self.row) else { return };
        let Some(at) = line.iter().position(|ticket| Arc::ptr_eq(ticket, &self.ticket)) else { return };
        line.remove(at);
        match (line.get(at), at.checked_sub(1).map(|before| line[before].txn)) {
            (Some(next), None) => {
                // It waits for no transaction until it has tried.
                self.statuses.forget_wait(next.txn);
                called = next.call();
            }
            (Some(next), Some(before)) => self.statuses.wait_instead(next.txn, before),
            (None, None) => {
                shard.remove(&self.row);
            }
            (None, Some(_)) => {}
        }
        drop(shard);
        if let Some(wake) = called {
            wake();
        }
    }
}
