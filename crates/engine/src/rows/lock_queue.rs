//! LockQueues of those who wait for a row: when its holder ends, one of them tries, not all.
//!
//! ```text
//!   holder  <-  first in line  <-  second  <-  third        each waits for the one before it
//! ```
//! Who finds a row taken and wants it for himself alone gets a place at the end of the row's line. The first waits for the holder's end (`slot`) and tries again then; the others
//! sleep. A place is left when the row was got and as well when nobody wants it any more, and the next one is woken. A newcomer who finds the row free takes it,
//! whoever stands in line: the first one tries again at that one's end.
//!
//! Hard part: circles. Who stands in line waits for the one before him as far as the search for deadlocks knows, and that is true only because each would be kept waiting by
//! whoever has the row. It is not true of who has a part of the row already: so a circle that only a line closes is none, and who closes one does without a place (EN-23).

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
    /// Of the shard's mutex.
    bell: Condvar,
    /// Of who waits without a thread.
    wake: Mutex<Option<Wake>>,
}

impl Ticket {
    /// It is the first. The result is called when the shard is given free.
    #[must_use]
    fn call(&self) -> Option<Wake> {
        self.bell.notify_all();
        self.wake.lock().take()
    }
}

pub(crate) struct LockQueues {
    shards: Box<[Mutex<HashMap<Row, Queue>>]>,
    seed: Seed,
}

/// One row's being asked for, again and again until it is got.
pub(crate) struct LockAttempt<'r> {
    queues: &'r Arc<LockQueues>,
    statuses: &'r Arc<StatusTable>,
    row: (MapId, &'r [u8]),
    strength: Strength,
    /// The first wait.
    since: Option<Instant>,
    stands_in_line: bool,
    place: Option<QueuePlace>,
    /// The statement was suspended for the row before.
    is_resumed: bool,
}

/// Somebody's place; given back when dropped.
struct QueuePlace {
    lock_queues: Arc<LockQueues>,
    statuses: Arc<StatusTable>,
    row: Row,
    ticket: Arc<Ticket>,
}

/// What came of asking for a place.
enum JoinResult {
    /// The first one: the holder is to be waited for.
    First(QueuePlace),
    /// Was not the first and is now: the row is to be tried again.
    Moved(QueuePlace),
    /// To stand in line would close a circle.
    Circle,
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

    /// A place in the row's line, at its head when this returns.
    fn join(
        self: &Arc<LockQueues>,
        statuses: &Arc<StatusTable>,
        row: (MapId, &[u8]),
        me: TxnId,
        patience: &WaitLimits<'_>,
    ) -> JoinResult {
        let Some((place, is_first)) = self.enter(statuses, row, me) else { return JoinResult::Circle };
        if is_first {
            return JoinResult::First(place);
        }
        let waited = place.sleep(patience);
        statuses.forget_wait(me);
        if waited == WaitOutcome::Over { JoinResult::Moved(place) } else { JoinResult::GaveUp(waited) }
    }

    /// A place at the end of the row's line, and whether it is the first; who is not the first is noted as waiting for the one before. None: that would close a circle.
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
        let ticket = Arc::new(Ticket { txn: me, bell: Condvar::default(), wake: Mutex::default() });
        line.push_back(ticket.clone());
        drop(shard);
        Some((QueuePlace { lock_queues: self.clone(), statuses: statuses.clone(), row, ticket }, before.is_none()))
    }

    /// Every thread that stands in line asks whether it still may; statements that are suspended hear of it from their sessions.
    pub fn rouse(&self) {
        for shard in &self.shards {
            let shard = shard.lock();
            let has_thread = |ticket: &&Arc<Ticket>| ticket.wake.lock().is_none();
            shard.values().flatten().filter(has_thread).for_each(|ticket| ticket.bell.notify_all());
        }
    }
}

impl<'r> LockAttempt<'r> {
    /// Of who wants a row shared nobody keeps another one waiting: they stand in no line.
    pub fn new(
        queues: &'r Arc<LockQueues>,
        statuses: &'r Arc<StatusTable>,
        map: MapId,
        key: &'r [u8],
        strength: Strength,
    ) -> LockAttempt<'r> {
        let stands_in_line = strength == Strength::Exclusive;
        LockAttempt {
            queues,
            statuses,
            row: (map, key),
            strength,
            since: None,
            stands_in_line,
            place: None,
            is_resumed: false,
        }
    }

    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// What is waited for, from the first wait on.
    pub fn awaited(&mut self) -> AwaitedLock {
        let row = RowLock { map: self.row.0, key: self.row.1.into(), strength: self.strength };
        AwaitedLock { row, since: *self.since.get_or_insert_with(Instant::now) }
    }

    /// Returns when the first wait began and when one of `wait` in all ends. A time beyond the clock's is a hundred years away.
    fn span(&mut self, wait: Duration) -> (Instant, Instant) {
        let since = *self.since.get_or_insert_with(Instant::now);
        (since, since.checked_add(wait).unwrap_or(since + Duration::from_secs(u32::MAX.into())))
    }

    /// Waits until the row may be tried again, which `holder` has; `me` is the one who waits, `wait` in all. A place in line is kept until the turn is dropped.
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
        if self.stands_in_line && self.place.is_none() {
            match self.queues.join(statuses, self.row, me, &patience) {
                JoinResult::First(place) => self.place = Some(place),
                JoinResult::Moved(place) => {
                    self.place = Some(place);
                    return WaitOutcome::Over;
                }
                JoinResult::Circle => self.stands_in_line = false,
                JoinResult::GaveUp(waited) => return waited,
            }
        }
        let waited = statuses.wait(me, holder, &patience);
        if waited != WaitOutcome::Deadlock || self.place.take().is_none() {
            return waited;
        }
        self.stands_in_line = false;
        statuses.wait(me, holder, &patience)
    }

    /// Does what `wait` does without a thread: the wait goes on in the result. Err: how it has ended, or why it does not begin.
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
            stands_in_line: self.stands_in_line,
            place: None,
            holder: None,
        };
        if self.stands_in_line && self.place.is_none() {
            match self.queues.enter(statuses, self.row, me) {
                Some((place, is_first)) if is_first => self.place = Some(place),
                Some((place, _)) => {
                    suspended.place = Some(place);
                    return Ok(suspended);
                }
                None => self.stands_in_line = false,
            }
        }
        if !statuses.note_wait(me, holder) {
            if self.place.take().is_none() || !statuses.note_wait(me, holder) {
                return Err(WaitOutcome::Deadlock);
            }
            self.stands_in_line = false;
        }
        suspended.stands_in_line = self.stands_in_line;
        suspended.place = self.place.take();
        suspended.holder = Some((holder, releases));
        Ok(suspended)
    }

    /// Goes on with a wait that was suspended for the same row.
    pub fn adopt(&mut self, mut suspended: SuspendedWait) {
        self.is_resumed = true;
        self.since = Some(suspended.since);
        self.stands_in_line &= suspended.stands_in_line;
        // A place that is not the first one yet is given up: then the wait has ended some other way.
        self.place = suspended.place.take().filter(QueuePlace::is_first);
    }
}

/// A wait for a row that keeps no thread: a place in the row's line, or the wait of the first for the holder (EN-25). It ends when it is dropped.
pub(crate) struct SuspendedWait {
    statuses: Arc<StatusTable>,
    me: TxnId,
    row: Row,
    since: Instant,
    pub until: Instant,
    stands_in_line: bool,
    place: Option<QueuePlace>,
    /// The transaction that is waited for, and what `StatusTable::releases` was before; None: the places before.
    holder: Option<(TxnId, u64)>,
}

impl SuspendedWait {
    pub fn is_for(&self, map: MapId, key: &[u8]) -> bool {
        self.row.0 == map && *self.row.1 == *key
    }

    /// `wake` is called when the row may be tried again.
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

    /// `wake` is called when this is the first place, at once if it is.
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
                Ok(left) => shard = self.ticket.bell.wait_timeout(shard, left).0,
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
                // It waits for nobody until it has tried.
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
