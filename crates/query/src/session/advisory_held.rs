//! The advisory locks of one session: how often it holds each, for itself and for its transaction; and the one that it waits
//! for.
//!
//! A lock held for the session outlives transactions, and is released as often as it was taken. One held for the transaction
//! is released at its end, or by a rollback to a savepoint from before it. A lock goes back to the others when the session
//! holds it in neither way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use stdx::wait;

use crate::exec::instance::Instance;
use crate::session::advisory_locks::{AdvisoryLocks, AdvisoryMode, LockAnswer, LockName};
use crate::session::deadlock::{LockHolder, SessionWait};
use crate::session::interrupts::Wake;

static ADVISORY_LOCK: wait::Reason = wait::Reason::bounded("advisory lock");

/// The interval in which a waiter that blocks looks for a cancel request.
const STEP: Duration = Duration::from_millis(100);

/// How long a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockLevel {
    Session,
    Transaction,
}

/// A lock that a statement asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedLock {
    pub name: LockName,
    pub mode: AdvisoryMode,
    pub level: LockLevel,
}

/// The end and the interruption of a wait.
pub struct AdvisoryPatience<'c> {
    /// `None`: without limit.
    pub until: Option<Instant>,
    pub check: &'c dyn Fn() -> Result<()>,
}

/// The advisory locks that a session holds (QU-50).
pub struct AdvisoryHeld {
    instance: Arc<Instance>,
    /// The connection.
    owner: u64,
    session: HashMap<(LockName, AdvisoryMode), u64>,
    /// In the order in which they were first taken.
    transaction: Vec<(LockName, AdvisoryMode)>,
    of_transaction: HashSet<(LockName, AdvisoryMode)>,
    /// The end of the wait under way; `None` inside: without limit.
    waiting: Option<Option<Instant>>,
    /// The session in the search for deadlocks.
    search: Option<Arc<LockHolder>>,
}

impl AdvisoryHeld {
    pub fn new(instance: Arc<Instance>) -> AdvisoryHeld {
        AdvisoryHeld {
            instance,
            owner: 0,
            session: HashMap::new(),
            transaction: Vec::new(),
            of_transaction: HashSet::new(),
            waiting: None,
            search: None,
        }
    }

    /// Names the session that holds the locks.
    pub fn own(&mut self, session: Arc<LockHolder>) {
        (self.owner, self.search) = (session.connection(), Some(session));
    }

    fn locks(&self) -> &AdvisoryLocks {
        self.instance.advisory_locks()
    }

    fn holds(&self, key: &(LockName, AdvisoryMode)) -> bool {
        self.session.contains_key(key) || self.of_transaction.contains(key)
    }

    /// Enters a lock that the session now holds, once more perhaps.
    fn note(&mut self, wanted: &WantedLock) {
        let key = (wanted.name.clone(), wanted.mode);
        match wanted.level {
            LockLevel::Session => *self.session.entry(key).or_default() += 1,
            LockLevel::Transaction => {
                if self.of_transaction.insert(key.clone()) {
                    self.transaction.push(key);
                }
            }
        }
    }

    /// Takes the lock if no other session keeps it from this one.
    pub fn try_acquire(&mut self, wanted: &WantedLock) -> Result<bool> {
        let key = (wanted.name.clone(), wanted.mode);
        let is_held = self.holds(&key) || self.locks().try_acquire(self.owner, &wanted.name, wanted.mode)?;
        if is_held {
            self.note(wanted);
        }
        Ok(is_held)
    }

    /// Takes the lock, and blocks the thread as long as others keep it. Fails with `Fault::LockTimeout` at the end of the wait.
    pub fn acquire(&mut self, wanted: &WantedLock, patience: &AdvisoryPatience<'_>) -> Result<()> {
        while !self.attempt(wanted, patience)? {
            let Some(_waiting) = wait::try_announce(&ADVISORY_LOCK) else {
                self.withdraw();
                return Err(Fault::TooManyWaits);
            };
            let left = self.attempt_at().map_or(STEP, |at| at.saturating_duration_since(Instant::now()));
            self.locks().wait(self.owner, left.min(STEP));
        }
        Ok(())
    }

    /// Takes the lock, or waits for it without blocking: then the answer is false, and the caller attempts it again when the
    /// lock is granted, at `attempt_at` at the latest. An error ends the wait.
    pub fn attempt(&mut self, wanted: &WantedLock, patience: &AdvisoryPatience<'_>) -> Result<bool> {
        let is_held = match self.waiting.is_some() {
            true => self.go_on_waiting(patience).inspect_err(|_| self.withdraw())?,
            false => self.holds(&(wanted.name.clone(), wanted.mode)) || self.begin_to_wait(wanted, patience)?,
        };
        if is_held {
            self.end_wait();
            self.note(wanted);
        }
        Ok(is_held)
    }

    /// Takes the wait out of the search. Returns whether there was one.
    fn end_wait(&mut self) -> bool {
        let has_waited = self.waiting.take().is_some();
        if has_waited {
            self.search.iter().for_each(|search| search.end_wait());
        }
        has_waited
    }

    fn begin_to_wait(&mut self, wanted: &WantedLock, patience: &AdvisoryPatience<'_>) -> Result<bool> {
        if self.locks().request(self.owner, &wanted.name, wanted.mode)? == LockAnswer::Granted {
            return Ok(true);
        }
        self.waiting = Some(patience.until);
        self.search.iter().for_each(|search| search.begin_wait(SessionWait::Advisory));
        Ok(false)
    }

    fn go_on_waiting(&mut self, patience: &AdvisoryPatience<'_>) -> Result<bool> {
        if self.locks().take_granted(self.owner) {
            return Ok(true);
        }
        (patience.check)()?;
        if self.waiting.flatten().is_some_and(|until| Instant::now() >= until) {
            return Err(Fault::LockTimeout);
        }
        match self.search.as_ref().is_some_and(|search| search.is_victim()) {
            true => Err(Fault::Deadlock),
            false => Ok(false),
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Returns the latest time at which the wait must be attempted again; `None` if there is no such time.
    pub fn attempt_at(&self) -> Option<Instant> {
        self.waiting.flatten()
    }

    /// Calls `wake` when the awaited lock is granted, or the wait is to end. Does nothing if the session waits for none.
    pub fn wake_when_over(&self, wake: Wake) {
        if self.is_waiting() {
            self.search.iter().for_each(|search| search.wake_when_chosen(wake.clone()));
            self.locks().wake_when_granted(self.owner, wake);
        }
    }

    /// Returns whether the session waits for a lock, and the wait is over: the lock is granted, or part of a deadlock.
    pub fn is_over(&self) -> bool {
        self.is_waiting()
            && (self.locks().is_granted(self.owner) || self.search.as_ref().is_some_and(|search| search.is_victim()))
    }

    /// Ends the wait, if there is one, without the lock.
    pub fn withdraw(&mut self) {
        if self.end_wait() {
            self.locks().withdraw(self.owner);
        }
    }

    fn give_back(&self, key: &(LockName, AdvisoryMode)) {
        if !self.holds(key) {
            self.locks().release(self.owner, &key.0, key.1);
        }
    }

    /// Releases a lock of the session once. Returns false if the session does not hold it for itself.
    pub fn release(&mut self, name: &[u8], mode: AdvisoryMode) -> bool {
        let key = (LockName::from(name), mode);
        let Some(count) = self.session.get_mut(&key) else { return false };
        *count -= 1;
        if *count == 0 {
            self.session.remove(&key);
            self.give_back(&key);
        }
        true
    }

    /// Releases all locks that the session holds for itself, and returns how many times it has held them.
    pub fn release_session(&mut self) -> u64 {
        let mut released = 0;
        for (key, count) in std::mem::take(&mut self.session) {
            released += count;
            self.give_back(&key);
        }
        released
    }

    /// Returns a point to which locks of the transaction can be released.
    pub fn point(&self) -> usize {
        self.transaction.len()
    }

    /// Releases the locks of the transaction that it has taken since the point; since its beginning: 0.
    pub fn release_from(&mut self, point: usize) {
        let gone = self.transaction.split_off(point.min(self.transaction.len()));
        for key in gone {
            self.of_transaction.remove(&key);
            self.give_back(&key);
        }
    }
}

impl Drop for AdvisoryHeld {
    fn drop(&mut self) {
        self.withdraw();
        self.release_from(0);
        self.release_session();
    }
}
