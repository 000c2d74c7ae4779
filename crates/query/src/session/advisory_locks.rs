//! Advisory locks: locks by name that clients take for purposes of their own. They protect nothing in the database.
//!
//! A name is opaque here; a dialect makes it of a database and numbers, or of a text. A session holds a lock shared or
//! exclusively, and how often it took it is the session's own account (`advisory_held`). Requests are granted in the order
//! of their arrival, but a session that holds the lock already goes before those that wait for it.
//!
//! Hard part: deadlocks. A request that closes a cycle of waits for advisory locks fails at once. A cycle that leads through
//! locks of tables or rows is found by the search of `deadlock`, for which `waits` gives the edges. Thousands may wait for one
//! lock, so whoever waits behind others counts as waiting for the holders for which they wait.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use datum::{Fault, Result};
use stdx::sync::{Condvar, Mutex};

use crate::session::interrupts::Wake;

/// The most locks that all sessions hold and wait for together.
pub const ADVISORY_LOCKS_MAX: usize = 100_000;

pub type LockName = Box<[u8]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdvisoryMode {
    Shared,
    Exclusive,
}

/// The answer to a request that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockAnswer {
    Granted,
    Queued,
}

/// A lock that a session holds or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedLock {
    pub name: LockName,
    pub session: u64,
    pub mode: AdvisoryMode,
    /// `None`: the session holds the lock.
    pub waits_since: Option<SystemTime>,
}

/// Sessions that wait for the same others.
#[derive(Debug, PartialEq, Eq)]
pub struct AdvisoryWaits {
    pub waiters: Vec<u64>,
    pub blockers: Vec<u64>,
}

#[derive(Debug, Default)]
pub struct AdvisoryLocks {
    state: Mutex<AdvisoryState>,
    granted: Condvar,
}

#[derive(Debug, Default)]
struct AdvisoryState {
    locks: HashMap<LockName, AdvisoryLock>,
    /// The request of each session that waits. A granted one stays until its session takes note of it.
    requests: HashMap<u64, LockRequest>,
    /// The locks held and waited for.
    count: usize,
}

#[derive(Debug, Default)]
struct AdvisoryLock {
    exclusive: Option<u64>,
    shared: BTreeSet<u64>,
    /// The sessions that wait, in the order in which they are granted the lock.
    queue: VecDeque<(u64, AdvisoryMode)>,
}

struct LockRequest {
    name: LockName,
    mode: AdvisoryMode,
    since: SystemTime,
    is_granted: bool,
    wake: Option<Wake>,
}

impl std::fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.mode, self.name)
    }
}

impl AdvisoryMode {
    fn conflicts(self, other: AdvisoryMode) -> bool {
        self == AdvisoryMode::Exclusive || other == AdvisoryMode::Exclusive
    }
}

impl AdvisoryLock {
    fn is_held_by(&self, session: u64) -> bool {
        self.exclusive == Some(session) || self.shared.contains(&session)
    }

    /// Returns the other sessions that hold the lock in a mode that conflicts with this one.
    fn conflicting(&self, session: u64, mode: AdvisoryMode) -> impl Iterator<Item = u64> {
        let shared = (mode == AdvisoryMode::Exclusive).then_some(&self.shared);
        let shared = shared.into_iter().flatten().copied();
        self.exclusive.into_iter().chain(shared).filter(move |holder| *holder != session)
    }

    fn hold(&mut self, session: u64, mode: AdvisoryMode) {
        match mode {
            AdvisoryMode::Exclusive => self.exclusive = Some(session),
            AdvisoryMode::Shared => {
                self.shared.insert(session);
            }
        }
    }
}

impl AdvisoryState {
    /// Returns whether the lock can be held at once: no holder conflicts, and nobody who waits.
    fn is_free(&self, session: u64, name: &[u8], mode: AdvisoryMode) -> bool {
        self.locks.get(name).is_none_or(|lock| {
            lock.conflicting(session, mode).next().is_none()
                && !lock.queue.iter().any(|(_, waiting)| waiting.conflicts(mode))
        })
    }

    fn hold(&mut self, session: u64, name: &[u8], mode: AdvisoryMode) -> Result<()> {
        if self.count >= ADVISORY_LOCKS_MAX {
            return Err(Fault::TooManyLocks { max: ADVISORY_LOCKS_MAX as u64 });
        }
        self.count += 1;
        self.locks.entry(name.into()).or_default().hold(session, mode);
        Ok(())
    }

    /// Returns the sessions for which this one waits: conflicting holders, and conflicting requests before its own.
    fn blockers(&self, session: u64) -> Vec<u64> {
        let Some(request) = self.requests.get(&session).filter(|request| !request.is_granted) else {
            return Vec::new();
        };
        let Some(lock) = self.locks.get(&request.name) else { return Vec::new() };
        let before = lock.queue.iter().take_while(|(waiter, _)| *waiter != session);
        let before = before.filter(|(_, mode)| mode.conflicts(request.mode)).map(|(waiter, _)| *waiter);
        lock.conflicting(session, request.mode).chain(before).collect()
    }

    /// Returns the holders for whom this session waits, be it behind other requests.
    fn holders_in_the_way(&self, session: u64) -> Vec<u64> {
        let Some(request) = self.requests.get(&session).filter(|request| !request.is_granted) else {
            return Vec::new();
        };
        let Some(lock) = self.locks.get(&request.name) else { return Vec::new() };
        let mut before = lock.queue.iter().take_while(|(waiter, _)| *waiter != session);
        let is_exclusive =
            request.mode == AdvisoryMode::Exclusive || before.any(|(_, waiting)| *waiting == AdvisoryMode::Exclusive);
        let mode = if is_exclusive { AdvisoryMode::Exclusive } else { AdvisoryMode::Shared };
        lock.conflicting(session, mode).collect()
    }

    fn leads_back(&self, session: u64) -> bool {
        let (mut met, mut rest) = (BTreeSet::new(), vec![session]);
        while let Some(at) = rest.pop() {
            for next in self.holders_in_the_way(at) {
                if next == session {
                    return true;
                }
                if met.insert(next) {
                    rest.push(next);
                }
            }
        }
        false
    }

    /// Grants the lock to those in front of its queue, and forgets it if nobody holds it or waits.
    fn grant(&mut self, name: &[u8]) -> bool {
        let mut has_granted = false;
        while let Some(lock) = self.locks.get_mut(name) {
            let Some(&(next, _)) = lock.queue.front() else {
                if lock.exclusive.is_none() && lock.shared.is_empty() {
                    self.locks.remove(name);
                }
                break;
            };
            let Some(request) = self.requests.get_mut(&next) else { unreachable!("a waiter without a request") };
            if lock.conflicting(next, request.mode).next().is_some() {
                break;
            }
            lock.queue.pop_front();
            lock.hold(next, request.mode);
            request.is_granted = true;
            has_granted = true;
            // A waker only puts its connection into a queue.
            request.wake.iter().for_each(|wake| wake());
        }
        has_granted
    }

    /// Takes a lock from a session. The caller grants it to others.
    fn release(&mut self, session: u64, name: &[u8], mode: AdvisoryMode) {
        let Some(lock) = self.locks.get_mut(name) else { return };
        let was_held = match mode {
            AdvisoryMode::Exclusive => lock.exclusive.take_if(|holder| *holder == session).is_some(),
            AdvisoryMode::Shared => lock.shared.remove(&session),
        };
        self.count -= usize::from(was_held);
    }
}

impl AdvisoryLocks {
    /// Takes the lock if it is free. The session does not hold it in this mode.
    pub fn try_acquire(&self, session: u64, name: &[u8], mode: AdvisoryMode) -> Result<bool> {
        let mut state = self.state.lock();
        let is_free = state.is_free(session, name, mode);
        if is_free {
            state.hold(session, name, mode)?;
        }
        Ok(is_free)
    }

    /// Takes the lock, or queues the request. Fails with `Fault::Deadlock` if the session would wait for itself.
    pub fn request(&self, session: u64, name: &[u8], mode: AdvisoryMode) -> Result<LockAnswer> {
        let mut state = self.state.lock();
        if state.is_free(session, name, mode) {
            state.hold(session, name, mode)?;
            return Ok(LockAnswer::Granted);
        }
        if state.count >= ADVISORY_LOCKS_MAX {
            return Err(Fault::TooManyLocks { max: ADVISORY_LOCKS_MAX as u64 });
        }
        state.count += 1;
        let request = LockRequest { name: name.into(), mode, since: SystemTime::now(), is_granted: false, wake: None };
        state.requests.insert(session, request);
        let lock = state.locks.entry(name.into()).or_default();
        match lock.is_held_by(session) {
            true => lock.queue.push_front((session, mode)),
            false => lock.queue.push_back((session, mode)),
        }
        if state.leads_back(session) {
            Self::withdraw_from(&mut state, session);
            return Err(Fault::Deadlock);
        }
        match state.grant(name) && state.requests.get(&session).is_some_and(|request| request.is_granted) {
            true => {
                state.requests.remove(&session);
                Ok(LockAnswer::Granted)
            }
            false => Ok(LockAnswer::Queued),
        }
    }

    /// Ends the session's request if it is granted.
    pub fn take_granted(&self, session: u64) -> bool {
        let mut state = self.state.lock();
        let is_granted = state.requests.get(&session).is_some_and(|request| request.is_granted);
        if is_granted {
            state.requests.remove(&session);
        }
        is_granted
    }

    pub fn is_granted(&self, session: u64) -> bool {
        self.state.lock().requests.get(&session).is_none_or(|request| request.is_granted)
    }

    /// Blocks until the session's request may have been granted, or for this long.
    pub fn wait(&self, session: u64, time: Duration) {
        let state = self.state.lock();
        if state.requests.get(&session).is_some_and(|request| !request.is_granted) {
            drop(self.granted.wait_timeout(state, time));
        }
    }

    /// Calls `wake` when the session's request is granted; at once if it is.
    pub fn wake_when_granted(&self, session: u64, wake: Wake) {
        let mut state = self.state.lock();
        match state.requests.get_mut(&session) {
            Some(request) if !request.is_granted => request.wake = Some(wake),
            _ => {
                drop(state);
                wake();
            }
        }
    }

    /// Ends the session's request, and gives back the lock if it was granted meanwhile.
    pub fn withdraw(&self, session: u64) {
        if Self::withdraw_from(&mut self.state.lock(), session) {
            self.granted.notify_all();
        }
    }

    fn withdraw_from(state: &mut AdvisoryState, session: u64) -> bool {
        let Some(request) = state.requests.remove(&session) else { return false };
        match request.is_granted {
            true => state.release(session, &request.name, request.mode),
            false => {
                state.count -= 1;
                if let Some(lock) = state.locks.get_mut(&request.name) {
                    lock.queue.retain(|(waiter, _)| *waiter != session);
                }
            }
        }
        state.grant(&request.name)
    }

    pub fn release(&self, session: u64, name: &[u8], mode: AdvisoryMode) {
        let mut state = self.state.lock();
        state.release(session, name, mode);
        if state.grant(name) {
            self.granted.notify_all();
        }
    }

    /// Returns the session that holds the lock exclusively.
    pub fn holder(&self, name: &[u8]) -> Option<u64> {
        self.state.lock().locks.get(name).and_then(|lock| lock.exclusive)
    }

    /// Returns the sessions for which this one waits.
    pub fn blockers(&self, session: u64) -> Vec<u64> {
        self.state.lock().blockers(session)
    }

    /// Returns who waits for whom, be it behind other requests.
    pub fn waits(&self) -> Vec<AdvisoryWaits> {
        let state = self.state.lock();
        let mut all = Vec::new();
        for lock in state.locks.values().filter(|lock| !lock.queue.is_empty()) {
            let (mut behind_shared, mut behind_exclusive) = (Vec::new(), Vec::new());
            let mut is_exclusive = false;
            for (waiter, mode) in &lock.queue {
                is_exclusive |= *mode == AdvisoryMode::Exclusive;
                let mode = if is_exclusive { AdvisoryMode::Exclusive } else { AdvisoryMode::Shared };
                if lock.is_held_by(*waiter) {
                    // Its own lock is not in its way.
                    let blockers = lock.conflicting(*waiter, mode).collect();
                    all.push(AdvisoryWaits { waiters: vec![*waiter], blockers });
                } else if is_exclusive {
                    behind_shared.push(*waiter);
                } else {
                    behind_exclusive.push(*waiter);
                }
            }
            let groups = [(behind_shared, AdvisoryMode::Exclusive), (behind_exclusive, AdvisoryMode::Shared)];
            for (waiters, mode) in groups.into_iter().filter(|(waiters, _)| !waiters.is_empty()) {
                // No session has the number 0.
                all.push(AdvisoryWaits { waiters, blockers: lock.conflicting(0, mode).collect() });
            }
        }
        all
    }

    /// Returns all locks that are held or waited for.
    pub fn list(&self) -> Vec<ListedLock> {
        let state = self.state.lock();
        let mut listed = Vec::with_capacity(state.count);
        for (name, lock) in &state.locks {
            let exclusive = lock.exclusive.into_iter().map(|session| (session, AdvisoryMode::Exclusive));
            let shared = lock.shared.iter().map(|session| (*session, AdvisoryMode::Shared));
            let held = exclusive.chain(shared);
            listed.extend(held.map(|(session, mode)| ListedLock {
                name: name.clone(),
                session,
                mode,
                waits_since: None,
            }));
        }
        let waiting = state.requests.iter().filter(|(_, request)| !request.is_granted);
        listed.extend(waiting.map(|(session, request)| {
            let LockRequest { name, mode, since, .. } = request;
            ListedLock { name: name.clone(), session: *session, mode: *mode, waits_since: Some(*since) }
        }));
        listed
    }
}

#[cfg(test)]
mod tests;
