//! A session's open transaction as other sessions see it: numbers that the session publishes and any thread reads without waiting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::rows::{Activity, Isolation};
use stdx::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const READ_ONLY: u32 = 1;
/// The transaction outlives the statement that began it.
const LASTING: u32 = 2;
/// The weight of the isolation level in the word.
const ISOLATION: u32 = 4;

const LEVELS: [Isolation; 4] =
    [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

/// The transactions of one session, one after another. Only the session writes.
pub struct OpenTransaction {
    pub activity: Arc<Activity>,
    origin: Instant,
    /// Start of the transaction in microseconds after `origin`, plus one. 0: none is open.
    since: AtomicU64,
    traits: AtomicU32,
    /// The rows that the session had changed before it.
    changed: AtomicU64,
    /// Twice the number of the session's transactions so far, plus one while one is under way.
    number: AtomicU64,
}

/// The open transaction at one moment.
pub struct OpenTransactionNow {
    pub since: Instant,
    pub isolation: Isolation,
    pub is_read_only: bool,
    pub is_lasting: bool,
    /// The rows that it has changed.
    pub changes: u64,
}

impl OpenTransaction {
    pub fn new(origin: Instant) -> OpenTransaction {
        let (since, traits, changed) = (AtomicU64::new(0), AtomicU32::new(0), AtomicU64::new(0));
        OpenTransaction { activity: Arc::default(), origin, since, traits, changed, number: AtomicU64::new(0) }
    }

    /// Gives the transaction under way its number, though it may have used nothing yet.
    pub fn count(&self) {
        let number = self.number.load(Ordering::Relaxed);
        if number.is_multiple_of(2) {
            self.number.store(number + 3, Ordering::Relaxed);
        }
    }

    /// Returns the number of the session's transactions so far, and whether one is under way.
    pub fn number(&self) -> (u64, bool) {
        let number = self.number.load(Ordering::Relaxed);
        (number / 2, number % 2 == 1)
    }

    /// Publishes the beginning of a transaction. `changes` counts the rows that the session has changed so far.
    pub fn begin(&self, at: Instant, isolation: Isolation, is_read_only: bool, changes: u64) {
        let level = LEVELS.iter().position(|level| *level == isolation).unwrap_or(0) as u32;
        self.traits.store(level * ISOLATION + u32::from(is_read_only), Ordering::Relaxed);
        self.changed.store(changes, Ordering::Relaxed);
        let since = at.saturating_duration_since(self.origin).as_micros() as u64 + 1;
        self.count();
        self.since.store(since, Ordering::Release);
    }

    /// Records that the transaction outlives the statement that began it.
    pub fn lasts(&self) {
        self.traits.store(self.traits.load(Ordering::Relaxed) | LASTING, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.since.store(0, Ordering::Release);
        self.number.store(self.number.load(Ordering::Relaxed) & !1, Ordering::Relaxed);
    }

    /// Returns the start of the open transaction.
    pub fn since(&self) -> Option<Instant> {
        let since = self.since.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.origin + Duration::from_micros(since))
    }

    /// Returns the open transaction. `changes` counts the rows that the session has changed so far.
    pub fn now(&self, changes: u64) -> Option<OpenTransactionNow> {
        let since = self.since()?;
        let traits = self.traits.load(Ordering::Relaxed);
        Some(OpenTransactionNow {
            since,
            isolation: LEVELS[(traits / ISOLATION) as usize % LEVELS.len()],
            is_read_only: traits & READ_ONLY != 0,
            is_lasting: traits & LASTING != 0,
            changes: changes.saturating_sub(self.changed.load(Ordering::Relaxed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_transaction_is_readable_until_it_ends() {
        let origin = Instant::now();
        let open = OpenTransaction::new(origin);
        assert!(open.now(0).is_none());
        let began = origin + Duration::from_millis(3);
        for isolation in LEVELS {
            open.begin(began, isolation, true, 5);
            let now = open.now(8).expect("it is open");
            assert_eq!((now.since, now.isolation, now.changes), (began, isolation, 3));
            assert_eq!((now.is_read_only, now.is_lasting), (true, false));
            open.lasts();
            assert!(open.now(8).is_some_and(|now| now.is_lasting && now.isolation == isolation));
            open.end();
            assert!(open.now(8).is_none());
        }
        assert_eq!(open.number(), (4, false));
        open.count();
        open.begin(began, Isolation::ReadCommitted, false, 0);
        assert_eq!(open.number(), (5, true), "it is one transaction from its number to its end");
    }
}
