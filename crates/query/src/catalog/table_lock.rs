//! The table lock: who may read rows to lock them, write them, or keep others from it, in a table whose definition stays.
//!
//! ```text
//!                           RS   RE   SUE  S    SRE  E
//!   RowShare                                         x       locks rows
//!   RowExclusive                           x    x    x       writes rows
//!   ShareUpdateExclusive              x    x    x    x       keeps itself single
//!   Share                          x  x         x    x       keeps writers out: LOCK TABLES ... READ, and FLUSH TABLES WITH READ LOCK for all definitions
//!   ShareRowExclusive              x  x    x    x    x
//!   Exclusive                   x  x  x    x    x    x       lets plain reads through, which take no mode
//! ```
//! Every holder has the metadata lock shared, so what excludes all use is the exclusive metadata lock. The two weak modes, which every statement takes that writes
//! or locks rows, cost one atomic addition while nobody has or wants another mode. All other requests go through a queue: one is granted when no holder and no
//! earlier request conflicts, but a session that holds the table in some mode goes before the requests, since they may wait for it (QU-11).
//!
//! Hard part: a weak request adds itself to the count and then looks for strong ones; a strong request announces itself and then looks at the counts. Both are
//! additions to one word, so one of them sees the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use stdx::sync::{Condvar, Mutex};
use stdx::wait::{self, Reason};

/// How long a lock is waited for, and what ends the wait early.
#[derive(Clone, Copy)]
pub struct Patience<'p> {
    pub wait: Duration,
    pub is_interrupted: &'p dyn Fn() -> bool,
}

pub static TABLE_LOCK: Reason = Reason::bounded("table_lock");

/// The interval in which a waiter rechecks its timeout and whether it was killed.
pub(super) const STEP: Duration = Duration::from_millis(100);

/// Returns the error with which a wait ends, if it ends.
pub(super) fn gives_up(left: Duration, is_killed: &dyn Fn() -> bool) -> Option<Fault> {
    if is_killed() {
        return Some(Fault::Interrupted);
    }
    left.is_zero().then_some(Fault::LockTimeout)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableMode {
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
}

pub const TABLE_MODES: [TableMode; 6] = {
    use TableMode::{Exclusive, RowExclusive, RowShare, Share, ShareRowExclusive, ShareUpdateExclusive};
    [RowShare, RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive]
};

impl TableMode {
    pub fn conflicts_with(self, other: TableMode) -> bool {
        use TableMode::{Exclusive, RowExclusive, RowShare, Share};
        let (weaker, stronger) = if self <= other { (self, other) } else { (other, self) };
        match (weaker, stronger) {
            (RowShare, stronger) => stronger == Exclusive,
            (RowExclusive, stronger) => stronger >= Share,
            (Share, Share) => false,
            _ => true,
        }
    }

    fn is_weak(self) -> bool {
        self <= TableMode::RowExclusive
    }

    /// Returns the unit of a weak mode's count in the word.
    fn unit(self) -> u64 {
        if self == TableMode::RowShare { 1 } else { 1 << COUNT_BITS }
    }
}

/// The word: how many hold RowShare, how many RowExclusive, and how many hold a strong mode or are in the queue.
const COUNT_BITS: u32 = 24;
const QUEUED: u64 = 1 << (2 * COUNT_BITS);

fn weak_count(word: u64, mode: TableMode) -> u64 {
    (word / mode.unit()) & ((1 << COUNT_BITS) - 1)
}

/// The modes in which a session holds a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableModes(u8);

impl TableModes {
    pub fn add(&mut self, mode: TableMode) {
        self.0 |= 1 << mode as u8;
    }

    pub fn has(self, mode: TableMode) -> bool {
        self.0 & (1 << mode as u8) != 0
    }
}

/// A session that asks for a table lock.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableClaim {
    /// The session in the search for deadlocks; 0: it takes no part.
    pub owner: u64,
    /// The modes that it holds, each once.
    pub own: TableModes,
}

#[derive(Debug)]
struct QueuedRequest {
    ticket: u64,
    owner: u64,
    mode: TableMode,
}

#[derive(Debug, Default)]
struct TableQueue {
    /// How many hold each strong mode.
    granted: [u64; TABLE_MODES.len()],
    waiting: VecDeque<QueuedRequest>,
    last: u64,
}

#[derive(Debug, Default)]
pub struct TableLock {
    word: AtomicU64,
    queue: Mutex<TableQueue>,
    moved: Condvar,
}

impl TableLock {
    /// Acquires the lock in a mode that the session does not hold. Fails after the wait, when the session is interrupted, or if too many threads wait.
    pub fn acquire(&self, mode: TableMode, claim: TableClaim, patience: Patience<'_>) -> Result<()> {
        if self.try_acquire(mode) {
            return Ok(());
        }
        let until = Instant::now() + patience.wait;
        let mut queue = self.queue.lock();
        self.word.fetch_add(QUEUED, Ordering::AcqRel);
        queue.last += 1;
        let ticket = queue.last;
        queue.waiting.push_back(QueuedRequest { ticket, owner: claim.owner, mode });
        let mut next_check = Instant::now();
        let waited = loop {
            if self.is_grantable(&queue, mode, (ticket, claim)) {
                break Ok(());
            }
            let now = Instant::now();
            let left = until.saturating_duration_since(now);
            if now >= next_check || left.is_zero() {
                // Without the mutex, because the search for deadlocks reads the queue.
                drop(queue);
                let end = gives_up(left, patience.is_interrupted);
                queue = self.queue.lock();
                next_check = now + STEP;
                match end {
                    Some(reason) => break Err(reason),
                    None => continue,
                }
            }
            let Some(_waiting) = wait::try_announce(&TABLE_LOCK) else { break Err(Fault::TooManyWaits) };
            queue = self.moved.wait_timeout(queue, left.min(next_check - now)).0;
        };
        queue.waiting.retain(|request| request.ticket != ticket);
        match (&waited, mode.is_weak()) {
            (Ok(()), false) => queue.granted[mode as usize] += 1,
            // The count takes the place of the announcement.
            (Ok(()), true) => drop(self.word.fetch_add(mode.unit().wrapping_sub(QUEUED), Ordering::AcqRel)),
            (Err(_), _) => drop(self.word.fetch_sub(QUEUED, Ordering::AcqRel)),
        }
        self.moved.notify_all();
        waited
    }

    /// Acquires a weak mode if nobody holds or wants a strong one.
    pub fn try_acquire(&self, mode: TableMode) -> bool {
        if !mode.is_weak() {
            return false;
        }
        let is_free = self.word.fetch_add(mode.unit(), Ordering::AcqRel) < QUEUED;
        if !is_free {
            self.release_weak(mode);
        }
        is_free
    }

    fn is_grantable(&self, queue: &TableQueue, mode: TableMode, (ticket, claim): (u64, TableClaim)) -> bool {
        let word = self.word.load(Ordering::Acquire);
        let others = |held: TableMode| {
            let count = if held.is_weak() { weak_count(word, held) } else { queue.granted[held as usize] };
            count > u64::from(claim.own.has(held))
        };
        let is_held = TABLE_MODES.into_iter().any(|held| mode.conflicts_with(held) && others(held));
        let goes_first = claim.own != TableModes::default();
        let mut earlier = queue.waiting.iter().take_while(|request| request.ticket != ticket);
        !is_held && (goes_first || !earlier.any(|request| request.mode.conflicts_with(mode)))
    }

    fn release_weak(&self, mode: TableMode) {
        if self.word.fetch_sub(mode.unit(), Ordering::AcqRel) >= QUEUED {
            let _queue = self.queue.lock();
            self.moved.notify_all();
        }
    }

    pub fn release(&self, mode: TableMode) {
        if mode.is_weak() {
            return self.release_weak(mode);
        }
        let mut queue = self.queue.lock();
        queue.granted[mode as usize] -= 1;
        self.word.fetch_sub(QUEUED, Ordering::AcqRel);
        self.moved.notify_all();
    }

    /// Returns the sessions whose requests stand before that of `owner` and conflict with it.
    pub fn waits_behind(&self, owner: u64) -> Vec<u64> {
        let queue = self.queue.lock();
        let Some(own) = queue.waiting.iter().position(|request| request.owner == owner) else { return Vec::new() };
        let mode = queue.waiting[own].mode;
        let earlier = queue.waiting.iter().take(own).filter(|request| request.mode.conflicts_with(mode));
        earlier.map(|request| request.owner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::TableMode::*;
    use super::*;

    const SOON: Patience<'_> = Patience { wait: Duration::ZERO, is_interrupted: &|| false };
    const LONG: Patience<'_> = Patience { wait: Duration::from_secs(60), is_interrupted: &|| false };

    fn other() -> TableClaim {
        TableClaim::default()
    }

    fn holding(modes: &[TableMode]) -> TableClaim {
        let mut own = TableModes::default();
        modes.iter().for_each(|mode| own.add(*mode));
        TableClaim { owner: 0, own }
    }

    #[test]
    fn modes_conflict_as_the_table_says() {
        let table = ["     x", "   xxx", "  xxxx", " xx xx", " xxxxx", "xxxxxx"];
        for (row, held) in table.iter().zip(TABLE_MODES) {
            for (cell, wanted) in row.bytes().zip(TABLE_MODES) {
                let lock = TableLock::default();
                lock.acquire(held, other(), SOON).expect("nobody has it");
                let taken = lock.acquire(wanted, other(), SOON);
                assert_eq!(taken.is_err(), cell == b'x', "{held:?} {wanted:?}");
                if taken.is_ok() {
                    lock.release(wanted);
                }
                if held != wanted {
                    lock.acquire(wanted, holding(&[held]), SOON).expect("a session does not exclude itself");
                    lock.release(wanted);
                }
                lock.release(held);
                assert_eq!(lock.word.load(Ordering::Relaxed), 0, "{held:?} {wanted:?}");
            }
        }
    }

    fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn requests_are_granted_in_their_order_but_a_holder_goes_first() {
        let lock = TableLock::default();
        lock.acquire(RowExclusive, other(), SOON).expect("nobody has it");
        std::thread::scope(|scope| {
            let waits = |owner, mode| {
                let claim = TableClaim { owner, own: TableModes::default() };
                let lock = &lock;
                scope.spawn(move || lock.acquire(mode, claim, LONG))
            };
            let share = waits(1, Share);
            until(|| lock.queue.lock().waiting.len() == 1);
            let writer = waits(2, RowExclusive);
            until(|| lock.queue.lock().waiting.len() == 2);
            assert_eq!(lock.waits_behind(2), [1], "a new writer waits behind the share");
            lock.acquire(RowShare, holding(&[RowExclusive]), SOON)
                .expect("the holder does not wait behind those that wait for it");
            lock.release(RowShare);
            lock.release(RowExclusive);
            share.join().unwrap().expect("it is granted");
            assert_eq!(lock.queue.lock().waiting.len(), 1);
            lock.release(Share);
            writer.join().unwrap().expect("it is granted");
        });
        lock.release(RowExclusive);
        assert_eq!(lock.word.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_search_may_read_the_queue_while_a_request_is_checked() {
        let lock = TableLock::default();
        lock.acquire(Share, other(), SOON).expect("nobody has it");
        let claim = TableClaim { owner: 7, own: TableModes::default() };
        let patience = Patience { wait: LONG.wait, is_interrupted: &|| lock.waits_behind(7).is_empty() };
        assert_eq!(lock.acquire(RowExclusive, claim, patience), Err(Fault::Interrupted));
    }

    #[test]
    fn a_request_that_ends_lets_those_behind_it_pass() {
        let lock = TableLock::default();
        lock.acquire(RowExclusive, other(), SOON).expect("nobody has it");
        let is_killed = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let killed = || is_killed.load(Ordering::SeqCst);
            let patience = Patience { wait: LONG.wait, is_interrupted: &killed };
            scope.spawn(|| {
                until(|| !lock.queue.lock().waiting.is_empty());
                assert_eq!(lock.acquire(RowExclusive, other(), SOON), Err(Fault::LockTimeout));
                is_killed.store(true, Ordering::SeqCst);
            });
            assert_eq!(lock.acquire(Exclusive, other(), patience), Err(Fault::Interrupted));
        });
        lock.acquire(RowExclusive, other(), SOON).expect("nobody wants more");
    }
}
