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
//! whoever has the row. It is not true of who has a part of the row already: so a circle that only a line closes is none, and who closes one does without a place (M11).

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use pager::TxnId;
use std::sync::Arc;
use stdx::hash::Seed;

use stdx::sync::{Condvar, Mutex};

use crate::rows::lock::Strength;
use crate::rows::slot::{ROW_LOCK, StatusTable, WaitLimits, WaitOutcome, Wake};
use crate::rows::{AwaitedLock, MapId, RowLock, Rows};

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
    rows: &'r Rows,
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
    lines: Arc<LockQueues>,
    slots: Arc<StatusTable>,
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
        slots: &Arc<StatusTable>,
        row: (MapId, &[u8]),
        me: TxnId,
        patience: &WaitLimits<'_>,
    ) -> JoinResult {
        let Some((place, is_first)) = self.enter(slots, row, me) else { return JoinResult::Circle };
        if is_first {
            return JoinResult::First(place);
        }
        let waited = place.sleep(patience);
        slots.forget_wait(me);
        if waited == WaitOutcome::Over { JoinResult::Moved(place) } else { JoinResult::GaveUp(waited) }
    }

    /// A place at the end of the row's line, and whether it is the first; who is not the first is noted as waiting for the one before. None: that would close a circle.
    fn enter(
        self: &Arc<LockQueues>,
        slots: &Arc<StatusTable>,
        (map, key): (MapId, &[u8]),
        me: TxnId,
    ) -> Option<(QueuePlace, bool)> {
        let row: Row = (map, key.into());
        let mut shard = self.shard(&row).lock();
        let line = shard.entry(row.clone()).or_default();
        let before = line.back().map(|ticket| ticket.txn);
        if before.is_some_and(|before| !slots.note_wait(me, before)) {
            return None;
        }
        let ticket = Arc::new(Ticket { txn: me, bell: Condvar::default(), wake: Mutex::default() });
        line.push_back(ticket.clone());
        drop(shard);
        Some((QueuePlace { lines: self.clone(), slots: slots.clone(), row, ticket }, before.is_none()))
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
    pub fn new(rows: &'r Rows, map: MapId, key: &'r [u8], strength: Strength) -> LockAttempt<'r> {
        let stands_in_line = strength == Strength::Exclusive;
        LockAttempt { rows, row: (map, key), strength, since: None, stands_in_line, place: None, is_resumed: false }
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
        let (patience, rows) = (WaitLimits { until, is_cancelled, releases }, self.rows);
        if self.stands_in_line && self.place.is_none() {
            match rows.lines.join(&rows.slots, self.row, me, &patience) {
                JoinResult::First(place) => self.place = Some(place),
                JoinResult::Moved(place) => {
                    self.place = Some(place);
                    return WaitOutcome::Over;
                }
                JoinResult::Circle => self.stands_in_line = false,
                JoinResult::GaveUp(waited) => return waited,
            }
        }
        let waited = rows.slots.wait(me, holder, &patience);
        if waited != WaitOutcome::Deadlock || self.place.take().is_none() {
            return waited;
        }
        self.stands_in_line = false;
        rows.slots.wait(me, holder, &patience)
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
        let rows = self.rows;
        let mut suspended = SuspendedWait {
            slots: rows.slots.clone(),
            me,
            row: (self.row.0, self.row.1.into()),
            since,
            until,
            stands_in_line: self.stands_in_line,
            place: None,
            holder: None,
        };
        if self.stands_in_line && self.place.is_none() {
            match rows.lines.enter(&rows.slots, self.row, me) {
                Some((place, is_first)) if is_first => self.place = Some(place),
                Some((place, _)) => {
                    suspended.place = Some(place);
                    return Ok(suspended);
                }
                None => self.stands_in_line = false,
            }
        }
        if !rows.slots.note_wait(me, holder) {
            if self.place.take().is_none() || !rows.slots.note_wait(me, holder) {
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

/// A wait for a row that keeps no thread: a place in the row's line, or the wait of the first for the holder (M13). It ends when it is dropped.
pub(crate) struct SuspendedWait {
    slots: Arc<StatusTable>,
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
            (Some((holder, releases)), _) => self.slots.park(self.me, holder, releases, wake),
            (None, Some(place)) => place.park(wake),
            (None, None) => wake(),
        }
    }

    pub fn is_ready(&self) -> bool {
        match (self.holder, &self.place) {
            (Some((holder, releases)), _) => self.slots.is_over(holder, releases),
            (None, place) => place.as_ref().is_none_or(QueuePlace::is_first),
        }
    }
}

impl Drop for SuspendedWait {
    fn drop(&mut self) {
        if let Some((holder, _)) = self.holder {
            self.slots.unpark(self.me, holder);
        }
        self.slots.forget_wait(self.me);
    }
}

impl QueuePlace {
    fn is_first_in(&self, shard: &HashMap<Row, Queue>) -> bool {
        shard.get(&self.row).and_then(Queue::front).is_some_and(|first| Arc::ptr_eq(first, &self.ticket))
    }

    fn is_first(&self) -> bool {
        self.is_first_in(&self.lines.shard(&self.row).lock())
    }

    /// `wake` is called when this is the first place, at once if it is.
    fn park(&self, wake: Wake) {
        let shard = self.lines.shard(&self.row).lock();
        if self.is_first_in(&shard) {
            drop(shard);
            return wake();
        }
        *self.ticket.wake.lock() = Some(wake);
    }

    fn sleep(&self, patience: &WaitLimits<'_>) -> WaitOutcome {
        let Some(_waiting) = stdx::wait::try_announce(&ROW_LOCK) else { return WaitOutcome::Refused };
        let mut shard = self.lines.shard(&self.row).lock();
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
        let mut shard = self.lines.shard(&self.row).lock();
        let Some(line) = shard.get_mut(&self.row) else { return };
        let Some(at) = line.iter().position(|ticket| Arc::ptr_eq(ticket, &self.ticket)) else { return };
        line.remove(at);
        match (line.get(at), at.checked_sub(1).map(|before| line[before].txn)) {
            (Some(next), None) => {
                // It waits for nobody until it has tried.
                self.slots.forget_wait(next.txn);
                called = next.call();
            }
            (Some(next), Some(before)) => self.slots.wait_instead(next.txn, before),
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

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use stdx::sync::thread;

    /// M11: whoever stands in line comes to its head, whatever those before do at the same time; nobody sleeps on.
    #[test]
    fn loom_who_stands_in_line_comes_to_its_head() {
        loom::model(|| {
            let (lines, slots) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
            let others: Vec<_> = (2..4)
                .map(|txn| {
                    let (lines, slots) = (lines.clone(), slots.clone());
                    thread::spawn(move || come(&lines, &slots, txn))
                })
                .collect();
            come(&lines, &slots, 1);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert!(lines.shards.iter().all(|shard| shard.lock().is_empty()));
        });
    }

    fn come(lines: &Arc<LockQueues>, slots: &Arc<StatusTable>, txn: TxnId) {
        let until = Instant::now() + Duration::from_secs(1000);
        let patience = WaitLimits { until, is_cancelled: &|| false, releases: 0 };
        match lines.join(slots, (7, b"row"), txn, &patience) {
            JoinResult::First(place) | JoinResult::Moved(place) => {
                let shard = place.lines.shard(&place.row).lock();
                assert!(shard[&place.row].front().is_some_and(|first| first.txn == txn));
            }
            _ => panic!("nobody is in a circle, and nobody gives up"),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const ROW: (MapId, &[u8]) = (7, b"row");

    fn patience(millis: u64, is_cancelled: &dyn Fn() -> bool) -> WaitLimits<'_> {
        WaitLimits { until: Instant::now() + Duration::from_millis(millis), is_cancelled, releases: 0 }
    }

    fn first(lines: &Arc<LockQueues>, slots: &Arc<StatusTable>, txn: TxnId) -> QueuePlace {
        match lines.join(slots, ROW, txn, &patience(0, &|| false)) {
            JoinResult::First(place) => place,
            _ => panic!("somebody stands in line"),
        }
    }

    fn wait_until_long(lines: &LockQueues, len: usize) {
        while lines.shards.iter().all(|shard| shard.lock().values().all(|line| line.len() < len)) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_leaves_wakes_the_next_one_alone() {
        let (lines, slots) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
        let (told, came) = mpsc::channel();
        let mut place = first(&lines, &slots, 1);
        std::thread::scope(|scope| {
            for txn in 2..6 {
                let (lines, slots, told) = (&lines, &slots, told.clone());
                scope.spawn(move || match lines.join(slots, ROW, txn, &patience(20_000, &|| false)) {
                    JoinResult::Moved(place) => told.send((txn, place)).unwrap(),
                    _ => panic!("{txn} is not the first, and closes no circle"),
                });
                wait_until_long(lines, txn as usize);
            }
            for txn in 2..6 {
                assert!(came.try_recv().is_err(), "only one at a time");
                drop(place);
                let (next, its) = came.recv().unwrap();
                assert_eq!(next, txn, "in the order in which they came");
                place = its;
            }
            drop(place);
        });
        assert!(lines.shards.iter().all(|shard| shard.lock().is_empty()));
        assert!((2..6).all(|txn| slots.note_wait(1, txn)), "nobody waits any more");
    }

    #[test]
    fn who_gives_up_in_the_middle_ties_those_around_him_together() {
        let (lines, slots) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
        let place = first(&lines, &slots, 1);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| lines.join(&slots, ROW, 2, &patience(100, &|| false)));
            wait_until_long(&lines, 2);
            let third = scope.spawn(|| lines.join(&slots, ROW, 3, &patience(20_000, &|| false)));
            wait_until_long(&lines, 3);
            assert!(matches!(second.join().unwrap(), JoinResult::GaveUp(WaitOutcome::TimedOut)));
            assert!(!slots.note_wait(1, 3), "the third waits for the first, also without the second");
            assert!(slots.note_wait(1, 2), "the second waits for nobody");
            slots.forget_wait(1);
            drop(place);
            assert!(matches!(third.join().unwrap(), JoinResult::Moved(_)));
        });
    }

    #[test]
    fn a_circle_that_the_line_would_close_is_told_and_not_noted() {
        let (lines, slots) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
        let _place = first(&lines, &slots, 1);
        assert!(slots.note_wait(1, 2), "the first waits for the second as the one who has a part of the row");
        assert!(matches!(lines.join(&slots, ROW, 2, &patience(20_000, &|| false)), JoinResult::Circle));
        assert!(slots.note_wait(2, 3) && !slots.note_wait(3, 1), "and yet real ones are seen");
    }

    #[test]
    fn who_is_told_to_stop_leaves_the_line() {
        let (lines, slots) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
        let place = first(&lines, &slots, 1);
        let is_told = std::sync::atomic::AtomicBool::new(false);
        let is_cancelled = || is_told.load(std::sync::atomic::Ordering::SeqCst);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| lines.join(&slots, ROW, 2, &patience(20_000, &is_cancelled)));
            wait_until_long(&lines, 2);
            is_told.store(true, std::sync::atomic::Ordering::SeqCst);
            lines.rouse();
            assert!(matches!(second.join().unwrap(), JoinResult::GaveUp(WaitOutcome::Cancelled)));
        });
        drop(place);
        assert!(lines.shards.iter().all(|shard| shard.lock().is_empty()));
    }
}
