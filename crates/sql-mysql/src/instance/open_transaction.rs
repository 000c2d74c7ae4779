//! The open transaction of a session as other sessions see it: atomics that the session writes and any session reads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::rows::{Activity, Isolation};
use stdx::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::instance::count::Counts;

const READ_ONLY: u32 = 1;
/// The transaction outlives the statement that began it.
const LASTING: u32 = 2;
/// The factor of the isolation level in the word.
const ISOLATION: u32 = 4;

const LEVELS: [Isolation; 4] =
    [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

/// The state of a session's current transaction. Only the session writes it.
pub struct Open {
    pub activity: Arc<Activity>,
    origin: Instant,
    /// The time of its begin in microseconds since `origin`, plus one; 0 without a transaction.
    since: AtomicU64,
    traits: AtomicU32,
    /// The number of rows that the session had changed before.
    changed: AtomicU64,
}

/// The state at one moment.
pub struct OpenTransactionNow {
    pub since: Instant,
    pub isolation: Isolation,
    pub is_read_only: bool,
    pub is_lasting: bool,
    /// The number of rows that the transaction has changed.
    pub changes: u64,
}

impl Open {
    pub fn new(origin: Instant) -> Open {
        let (since, traits, changed) = (AtomicU64::new(0), AtomicU32::new(0), AtomicU64::new(0));
        Open { activity: Arc::default(), origin, since, traits, changed }
    }

    pub fn begin(&self, at: Instant, isolation: Isolation, is_read_only: bool, counts: &Counts) {
        let level = LEVELS.iter().position(|level| *level == isolation).unwrap_or(0) as u32;
        self.traits.store(level * ISOLATION + u32::from(is_read_only), Ordering::Relaxed);
        self.changed.store(counts.changes(), Ordering::Relaxed);
        let since = at.saturating_duration_since(self.origin).as_micros() as u64 + 1;
        self.since.store(since, Ordering::Release);
    }

    /// Notes that the transaction outlives the statement that began it.
    pub fn lasts(&self) {
        self.traits.store(self.traits.load(Ordering::Relaxed) | LASTING, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.since.store(0, Ordering::Release);
    }

    /// Returns when the transaction began.
    pub fn since(&self) -> Option<Instant> {
        let since = self.since.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.origin + Duration::from_micros(since))
    }

    /// Returns the state of the transaction, or None without one.
    pub fn now(&self, counts: &Counts) -> Option<OpenTransactionNow> {
        let since = self.since()?;
        let traits = self.traits.load(Ordering::Relaxed);
        Some(OpenTransactionNow {
            since,
            isolation: LEVELS[(traits / ISOLATION) as usize % LEVELS.len()],
            is_read_only: traits & READ_ONLY != 0,
            is_lasting: traits & LASTING != 0,
            changes: counts.changes().saturating_sub(self.changed.load(Ordering::Relaxed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::count::Count;

    #[test]
    fn what_a_transaction_leaves_is_read_until_it_ends() {
        let (counts, origin) = (Counts::default(), Instant::now());
        let open = Open::new(origin);
        assert!(open.now(&counts).is_none());
        counts.add_many(Count::HandlerUpdate, 5);
        let began = origin + Duration::from_millis(3);
        for isolation in LEVELS {
            open.begin(began, isolation, true, &counts);
            counts.add_many(Count::HandlerWrite, 2);
            counts.add(Count::HandlerDelete);
            let now = open.now(&counts).expect("it is open");
            assert_eq!((now.since, now.isolation, now.changes), (began, isolation, 3));
            assert_eq!((now.is_read_only, now.is_lasting), (true, false));
            open.lasts();
            assert!(open.now(&counts).is_some_and(|now| now.is_lasting && now.isolation == isolation));
            open.end();
            assert!(open.now(&counts).is_none());
        }
    }
}
