//! Locks by name: GET_LOCK and its like. A session may hold many, and each several times; they know nothing of transactions and go with the session.
//!
//! The hard thing is that sessions wait for each other's in any order: who comes to wait looks along the line of those who wait first, under the one mutex, and is the victim if it leads back to itself.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use stdx::sync::{Condvar, Mutex};
use stdx::wait;

use crate::error;
use datum::Result;

static NAMED_LOCK: wait::Reason = wait::Reason::bounded("named lock");

/// How long a wait goes on before it is looked whether the session was killed.
const STEP: Duration = Duration::from_millis(50);
/// Letters of a name.
const NAME_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct NamedLocks {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Who holds it, and how many times.
    held: HashMap<String, (u64, u64)>,
    /// What a session waits for.
    waiting: HashMap<u64, String>,
}

impl State {
    /// Would `session` wait for itself, if it waited for that?
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

/// The name as locks are told apart by it: without regard to case.
pub fn name_of(text: Option<&str>) -> Result<String> {
    match text {
        Some(text) if !text.is_empty() && text.chars().count() <= NAME_MAX => Ok(text.to_lowercase()),
        other => Err(error::USER_LOCK_WRONG_NAME.raise(&[&other.unwrap_or("NULL")])),
    }
}

impl NamedLocks {
    /// False: it was not free in time. Without a time it is waited for as long as it takes.
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

    /// None: nobody holds it. False: somebody else does.
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

    /// How many there were, each as often as it was held.
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
        let locks = NamedLocks::default();
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
        let locks = Arc::new(NamedLocks::default());
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
        // Between two of its looks the other one does not wait.
        while matches!(last, Ok(false)) {
            last = locks.get(2, "a", long, &free);
        }
        assert_eq!(crate::error::rendered(&last.unwrap_err()).code, 3058);
        assert_eq!(locks.release(2, "b"), Some(true));
        assert!(waiter.join().unwrap().unwrap());
    }
}
