//! User-level locks: GET_LOCK and related functions. A session may hold several, each several times. They are
//! independent of transactions and are released when the session ends.
//!
//! Hard part: deadlocks. Before a session waits, it follows the chain of waiting sessions under the one mutex, and
//! fails if the chain leads back to itself.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use stdx::sync::{Condvar, Mutex};
use stdx::wait;

use crate::error;
use datum::Result;

static NAMED_LOCK: wait::Reason = wait::Reason::bounded("named lock");

/// The interval in which a waiter checks whether its session was killed.
const STEP: Duration = Duration::from_millis(50);
/// The most characters of a name.
const NAME_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct UserLocks {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The holding session, and how many times it holds the lock.
    held: HashMap<String, (u64, u64)>,
    /// The lock that each waiting session waits for.
    waiting: HashMap<u64, String>,
}

impl State {
    /// Returns whether waiting for `name` would make `session` wait for itself.
    fn leads_back(&self, session: u64, name: &str) -> bool {
        let mut name = name;
        while let Some((owner, _)) = self.held.get(name) {
            if *owner == session {
                return true;
            }
            match self.waiting.get(owner) {
                Some(next) => name = next,
                None => return false,
            }
        }
        false
    }

    fn take(&mut self, session: u64, name: &str) -> bool {
        match self.held.get_mut(name) {
            None => {
                self.held.insert(name.to_owned(), (session, 1));
                true
            }
            Some((owner, count)) if *owner == session => {
                *count += 1;
                true
            }
            Some(_) => false,
        }
    }
}

/// Returns the key of a lock: the name without regard to case.
pub fn name_of(text: Option<&str>) -> Result<String> {
    match text {
        Some(text) if !text.is_empty() && text.chars().count() <= NAME_MAX => Ok(text.to_lowercase()),
        other => Err(error::USER_LOCK_WRONG_NAME.raise(&[&other.unwrap_or("NULL")])),
    }
}

impl UserLocks {
    /// Acquires the lock, or returns false on a timeout. Waits without limit if `patience` is None.
    pub fn get(
        &self,
        session: u64,
        name: &str,
        patience: Option<Duration>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<bool> {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        let mut state = self.state.lock();
        loop {
            if state.take(session, name) {
                return Ok(true);
            }
            let left = until.map_or(STEP, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(false);
            }
            if state.leads_back(session, name) {
                return Err(error::USER_LOCK_DEADLOCK.raise(&[]));
            }
            check()?;
            let Some(_waiting) = wait::try_announce(&NAMED_LOCK) else {
                return Err(error::CANT_CREATE_THREAD.raise(&[]));
            };
            state.waiting.insert(session, name.to_owned());
            state = self.freed.wait_timeout(state, left.min(STEP)).0;
            state.waiting.remove(&session);
        }
    }

    /// Releases the lock once. Returns None if it is free, false if another session holds it.
    pub fn release(&self, session: u64, name: &str) -> Option<bool> {
        let mut state = self.state.lock();
        let (owner, count) = state.held.get_mut(name)?;
        if *owner != session {
            return Some(false);
        }
        *count -= 1;
        if *count == 0 {
            state.held.remove(name);
            self.freed.notify_all();
        }
        Some(true)
    }

    /// Releases all locks of the session, and returns how many times they were held in all.
    pub fn release_all(&self, session: u64) -> u64 {
        let mut state = self.state.lock();
        let mut released = 0;
        state.held.retain(|_, (owner, count)| {
            released += if *owner == session { *count } else { 0 };
            *owner != session
        });
        if released > 0 {
            self.freed.notify_all();
        }
        released
    }

    pub fn owner(&self, name: &str) -> Option<u64> {
        self.state.lock().held.get(name).map(|(owner, _)| *owner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn free() -> Result<()> {
        Ok(())
    }

    #[test]
    fn a_lock_is_held_as_often_as_it_was_got_and_by_one_session() {
        let locks = UserLocks::default();
        let soon = Some(Duration::from_millis(10));
        assert!(locks.get(1, "a", soon, &free).unwrap());
        assert!(locks.get(1, "a", soon, &free).unwrap());
        assert!(!locks.get(2, "a", soon, &free).unwrap());
        assert_eq!((locks.release(2, "a"), locks.release(1, "b")), (Some(false), None));
        assert_eq!(locks.release(1, "a"), Some(true));
        assert_eq!(locks.owner("a"), Some(1));
        assert_eq!(locks.release(1, "a"), Some(true));
        assert!(locks.get(2, "a", Some(Duration::ZERO), &free).unwrap());
        assert!(locks.get(2, "b", soon, &free).unwrap());
        assert_eq!((locks.release_all(2), locks.release_all(2)), (2, 0));
    }

    #[test]
    fn a_name_has_one_to_64_letters_and_no_case() {
        assert_eq!(name_of(Some("Ä b")).unwrap(), "ä b");
        assert!(name_of(Some(&"ä".repeat(64))).is_ok());
        for wrong in [None, Some(""), Some(&*"a".repeat(65))] {
            assert_eq!(crate::error::rendered(&name_of(wrong).unwrap_err()).code, 3057);
        }
    }

    #[test]
    fn who_closes_a_circle_of_waits_is_told_so() {
        let locks = Arc::new(UserLocks::default());
        let long = Some(Duration::from_secs(60));
        assert!(locks.get(1, "a", long, &free).unwrap());
        assert!(locks.get(2, "b", long, &free).unwrap());
        let waiter = std::thread::spawn({
            let locks = locks.clone();
            move || locks.get(1, "b", long, &free)
        });
        while locks.state.lock().waiting.is_empty() {
            std::thread::yield_now();
        }
        let mut last = locks.get(2, "a", long, &free);
        // The other session does not wait between two of its checks.
        while matches!(last, Ok(false)) {
            last = locks.get(2, "a", long, &free);
        }
        assert_eq!(crate::error::rendered(&last.unwrap_err()).code, 3058);
        assert_eq!(locks.release(2, "b"), Some(true));
        assert!(waiter.join().unwrap().unwrap());
    }
}
