//! The lock of a table: who reads, writes or changes it. Its eight modes are PostgreSQL's; MySQL calls two of them metadata locks.
//!
//! ```text
//!                           AS  RS  RE  SUE  S   SRE  E   AE
//!   AccessShare                                           x    uses the table's definition: every statement
//!   RowShare                                          x   x    locks rows
//!   RowExclusive                             x    x   x   x    writes rows
//!   ShareUpdateExclusive                x    x    x   x   x    keeps itself single
//!   Share                           x   x         x   x   x    keeps writers out: LOCK TABLES ... READ
//!   ShareRowExclusive               x   x    x    x   x   x    keeps writers out, and itself single
//!   Exclusive                   x   x   x    x    x   x   x    lets plain reads through
//!   AccessExclusive         x   x   x   x    x    x   x   x    changes the definition
//! ```
//! The three weak modes, one of which every statement takes, cost one atomic addition while nobody has or wants another mode. All other requests go through a queue,
//! in the order of their arrival. But a session whose own modes keep an earlier request from its lock goes before that request, which would wait for it.
//! A request that waits is a ticket: whoever lets the lock go grants it, so a waiter needs no thread.
//!
//! Hard part: a weak request adds itself to the count and then looks at the mark of the queue; a strong request sets the mark and then looks at the counts. Both
//! change one word, so one of them sees the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use stdx::sync::{Condvar, Mutex};
use stdx::wait::{self, Reason};

use crate::session::interrupts::Wake;

/// How long a lock is waited for, and what ends the wait early.
#[derive(Clone, Copy)]
pub struct Patience<'p> {
    pub wait: Duration,
    pub is_interrupted: &'p dyn Fn() -> bool,
}

/// Of a request that does not wait.
pub const NO_WAIT: Patience<'static> = Patience { wait: Duration::ZERO, is_interrupted: &|| false };

pub static TABLE_LOCK: Reason = Reason::bounded("table_lock");

/// The interval in which a waiter rechecks its timeout and whether it was killed.
pub(crate) const STEP: Duration = Duration::from_millis(100);

/// Returns the error with which a wait ends, if it ends.
pub(crate) fn gives_up(left: Duration, is_killed: &dyn Fn() -> bool) -> Option<Fault> {
    if is_killed() {
        return Some(Fault::Interrupted);
    }
    left.is_zero().then_some(Fault::LockTimeout)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

use TableMode::{
    AccessExclusive, AccessShare, Exclusive, RowExclusive, RowShare, Share, ShareRowExclusive, ShareUpdateExclusive,
};

pub const TABLE_MODES: [TableMode; 8] =
    [AccessShare, RowShare, RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive];

/// The modes that conflict with each, a bit for each mode.
const CONFLICTS: [u8; TABLE_MODES.len()] =
    [0b1000_0000, 0b1100_0000, 0b1111_0000, 0b1111_1000, 0b1110_1100, 0b1111_1100, 0b1111_1110, 0b1111_1111];

impl TableMode {
    pub fn conflicts_with(self, other: TableMode) -> bool {
        CONFLICTS[self as usize] & (1 << other as u8) != 0
    }

    fn is_weak(self) -> bool {
        self <= RowExclusive
    }

    /// Returns the unit of a weak mode's count in the word.
    fn unit(self) -> u64 {
        1 << (COUNT_BITS * self as u32)
    }
}

/// The word: how many hold each weak mode, and whether a strong mode is held or a request waits.
const COUNT_BITS: u32 = 20;
const MARK: u64 = 1 << 63;

const _: () = assert!(3 * COUNT_BITS < 63);

fn weak_count(word: u64, mode: TableMode) -> u64 {
    (word / mode.unit()) & ((1 << COUNT_BITS) - 1)
}

/// A set of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableModes(u8);

impl TableModes {
    pub fn add(&mut self, mode: TableMode) {
        self.0 |= 1 << mode as u8;
    }

    pub fn add_all(&mut self, more: TableModes) {
        self.0 |= more.0;
    }

    pub fn has(self, mode: TableMode) -> bool {
        self.0 & (1 << mode as u8) != 0
    }

    pub fn conflict_with(self, mode: TableMode) -> bool {
        self.0 & CONFLICTS[mode as usize] != 0
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

/// A request that has waited, and may be granted by now.
pub struct TableTicket {
    claim: TableClaim,
    mode: TableMode,
    answer: Mutex<TicketAnswer>,
    granted: Condvar,
}

#[derive(Default)]
struct TicketAnswer {
    is_granted: bool,
    wake: Option<Wake>,
}

impl TableTicket {
    pub fn is_granted(&self) -> bool {
        self.answer.lock().is_granted
    }

    /// Calls `wake` when the lock is granted; at once if it is.
    pub fn wake_when_granted(&self, wake: Wake) {
        let mut answer = self.answer.lock();
        if !answer.is_granted {
            answer.wake = Some(wake);
            return;
        }
        drop(answer);
        wake();
    }

    /// Blocks until the lock is granted, or for this long. The caller has announced the wait.
    pub fn wait(&self, time: Duration) {
        let answer = self.answer.lock();
        if !answer.is_granted {
            drop(self.granted.wait_timeout(answer, time));
        }
    }

    fn grant(&self) -> Option<Wake> {
        let mut answer = self.answer.lock();
        answer.is_granted = true;
        self.granted.notify_all();
        answer.wake.take()
    }
}

impl std::fmt::Debug for TableTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {}", self.mode, self.claim.owner)
    }
}

#[derive(Debug, Default)]
struct TableQueue {
    /// How many hold each strong mode.
    granted: [u64; TABLE_MODES.len()],
    waiting: VecDeque<Arc<TableTicket>>,
    /// How many wait for each mode.
    wanted: [u64; TABLE_MODES.len()],
}

impl TableQueue {
    fn wanted(&self) -> TableModes {
        let mut modes = TableModes::default();
        TABLE_MODES.into_iter().filter(|mode| self.wanted[*mode as usize] > 0).for_each(|mode| modes.add(mode));
        modes
    }

    /// Returns the place of a new request, and the modes of those before it.
    fn place(&self, own: TableModes) -> (usize, TableModes) {
        let wanted = self.wanted();
        if !TABLE_MODES.into_iter().any(|mode| wanted.has(mode) && own.conflict_with(mode)) {
            return (self.waiting.len(), wanted);
        }
        let mut ahead = TableModes::default();
        let place = self.waiting.iter().position(|waiting| {
            let goes_first = own.conflict_with(waiting.mode);
            if !goes_first {
                ahead.add(waiting.mode);
            }
            goes_first
        });
        (place.unwrap_or(self.waiting.len()), ahead)
    }
}

#[derive(Debug, Default)]
pub struct TableLock {
    word: AtomicU64,
    queue: Mutex<TableQueue>,
}

impl TableLock {
    /// Takes a weak mode if nobody holds or wants a strong one.
    pub fn try_weak(&self, mode: TableMode) -> bool {
        if !mode.is_weak() {
            return false;
        }
        let is_free = self.word.fetch_add(mode.unit(), Ordering::AcqRel) & MARK == 0;
        if !is_free {
            self.release_weak(mode);
        }
        is_free
    }

    /// Takes the lock in a mode that the session does not hold, or queues the request. `None`: it is taken.
    pub fn request(&self, mode: TableMode, claim: TableClaim) -> Option<Arc<TableTicket>> {
        if self.try_weak(mode) {
            return None;
        }
        let mut queue = self.queue.lock();
        self.word.fetch_or(MARK, Ordering::AcqRel);
        let (at, ahead) = queue.place(claim.own);
        let ticket = match ahead.conflict_with(mode) || self.is_kept(&queue, mode, claim.own) {
            true => {
                let (answer, granted) = (Mutex::default(), Condvar::default());
                let ticket = Arc::new(TableTicket { claim, mode, answer, granted });
                queue.waiting.insert(at, ticket.clone());
                queue.wanted[mode as usize] += 1;
                Some(ticket)
            }
            false => {
                self.hold(&mut queue, mode);
                None
            }
        };
        self.settle_mark(&queue);
        ticket
    }

    /// Acquires the lock, and blocks the thread as long as others keep it. Fails after the wait, when the session is interrupted, or if too many threads wait.
    pub fn acquire(&self, mode: TableMode, claim: TableClaim, patience: Patience<'_>) -> Result<()> {
        let Some(ticket) = self.request(mode, claim) else { return Ok(()) };
        let until = Instant::now() + patience.wait;
        self.wait(&ticket, until, patience.is_interrupted).inspect_err(|_| self.withdraw(&ticket))
    }

    /// Blocks until the ticket is granted. After an error the caller withdraws it.
    pub fn wait(&self, ticket: &TableTicket, until: Instant, is_interrupted: &dyn Fn() -> bool) -> Result<()> {
        while !ticket.is_granted() {
            let left = until.saturating_duration_since(Instant::now());
            if let Some(fault) = gives_up(left, is_interrupted) {
                return Err(fault);
            }
            let Some(_waiting) = wait::try_announce(&TABLE_LOCK) else { return Err(Fault::TooManyWaits) };
            ticket.wait(left.min(STEP));
        }
        Ok(())
    }

    /// Ends a request, and gives back the lock if it was granted.
    pub fn withdraw(&self, ticket: &Arc<TableTicket>) {
        let mut queue = self.queue.lock();
        let before = queue.waiting.len();
        queue.waiting.retain(|waiting| !Arc::ptr_eq(waiting, ticket));
        let was_waiting = queue.waiting.len() < before;
        if !was_waiting {
            drop(queue);
            return self.release(ticket.mode);
        }
        queue.wanted[ticket.mode as usize] -= 1;
        self.grant(queue);
    }

    pub fn release(&self, mode: TableMode) {
        if mode.is_weak() {
            return self.release_weak(mode);
        }
        let mut queue = self.queue.lock();
        queue.granted[mode as usize] -= 1;
        self.grant(queue);
    }

    fn release_weak(&self, mode: TableMode) {
        if self.word.fetch_sub(mode.unit(), Ordering::AcqRel) & MARK == 0 {
            return;
        }
        let queue = self.queue.lock();
        if queue.wanted().conflict_with(mode) {
            self.grant(queue);
        }
    }

    /// Returns the requests that wait: who asks for which mode, in the order of the queue.
    pub fn waiting(&self) -> Vec<(TableClaim, TableMode)> {
        self.queue.lock().waiting.iter().map(|ticket| (ticket.claim, ticket.mode)).collect()
    }

    fn hold(&self, queue: &mut TableQueue, mode: TableMode) {
        match mode.is_weak() {
            true => drop(self.word.fetch_add(mode.unit(), Ordering::AcqRel)),
            false => queue.granted[mode as usize] += 1,
        }
    }

    /// Returns whether others hold the lock in a mode that conflicts with this one.
    fn is_kept(&self, queue: &TableQueue, mode: TableMode, own: TableModes) -> bool {
        let word = self.word.load(Ordering::Acquire);
        TABLE_MODES.into_iter().any(|held| {
            let count = if held.is_weak() { weak_count(word, held) } else { queue.granted[held as usize] };
            mode.conflicts_with(held) && count > u64::from(own.has(held))
        })
    }

    /// Grants the lock to those that may have it now, and wakes them.
    fn grant(&self, mut queue: stdx::sync::MutexGuard<'_, TableQueue>) {
        let (mut ahead, mut refused) = (TableModes::default(), TableModes::default());
        let (mut at, mut wakes) = (0, Vec::new());
        while let Some(ticket) = queue.waiting.get(at).filter(|_| !ahead.has(AccessExclusive)).cloned() {
            let (mode, own) = (ticket.mode, ticket.claim.own);
            let is_stranger = own == TableModes::default();
            let is_refused = (is_stranger && refused.has(mode)) || self.is_kept(&queue, mode, own);
            if ahead.conflict_with(mode) || is_refused {
                if is_stranger && is_refused {
                    refused.add(mode);
                }
                ahead.add(mode);
                at += 1;
                continue;
            }
            queue.waiting.remove(at);
            queue.wanted[mode as usize] -= 1;
            self.hold(&mut queue, mode);
            wakes.extend(ticket.grant());
        }
        self.settle_mark(&queue);
        drop(queue);
        wakes.iter().for_each(|wake| wake());
    }

    /// Lets weak requests pass the queue when nothing stands against them.
    fn settle_mark(&self, queue: &TableQueue) {
        if queue.waiting.is_empty() && queue.granted.iter().all(|count| *count == 0) {
            self.word.fetch_and(!MARK, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests;
