//! Key counts: how many keys each database has, exactly, also after a crash.
//!
//! In memory a counter follows every insertion and deletion. For recovery, each checkpoint leaves a consistent cut in the WAL:
//!
//! ```text
//!   counting = true  ->  pass every stripe  ->  MARK  ->  pass every stripe  ->  COUNTS { mark, counts as of the mark }
//! ```
//! *Passing* a stripe waits until its present holder has released it. The checkpoint holds no stripe, so no thread waits for it. Recovery takes the numbers of
//! COUNTS and adds the changes that it finds in the WAL after the mark (EN-10).
//!
//! Hard part: which changes lie before the mark? A change that began before `counting` was set is complete after the first pass, and so before the mark. Every
//! later change also notes its LSN in a list. After the second pass, all changes before the mark have been counted or noted. So the counter minus the noted
//! changes after the mark is the count at the mark.

use std::sync::Arc;
use std::time::Duration;

use pager::Lsn;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::keyspace::databases::Databases;
use crate::keyspace::key::SLOTS;
use crate::keyspace::stripes::STRIPES;
use crate::keyspace::stripes::{ALL, LockStripes, Stripe};
use crate::store::Store;
use crate::store::wal::Counted;

/// How long a checkpoint waits for stripes before it keeps the counts of the last one. It is short: waiting stops the page cleaner, and the holder of a stripe
/// may itself be waiting for the cleaner.
const WAIT_MAX: Duration = Duration::from_millis(200);

struct Noted {
    lsn: Lsn,
    space: u32,
    by: Counted,
}

/// Signed numbers in wrapping words.
#[derive(Default)]
struct KeyCounter {
    keys: AtomicU64,
    expiries: AtomicU64,
}

/// The last COUNTS record.
struct Cut {
    /// Where recovery must begin because of it.
    bound: Lsn,
    /// The record's end.
    end: Lsn,
}

/// The counters of all databases, staged ones too. Each is changed while the stripe of the inserted or deleted key is held.
pub(crate) struct Counts {
    databases: Box<[stdx::padded::Padded<KeyCounter>]>,
    counting: AtomicBool,
    noted: Mutex<Vec<Noted>>,
    cut: Mutex<Cut>,
}

impl Counts {
    /// Creates the counters. `bound` is the position where recovery began this time; it holds until the first checkpoint.
    pub fn new(bound: Lsn) -> Counts {
        Counts {
            databases: (0..SLOTS).map(|_| stdx::padded::Padded(KeyCounter::default())).collect(),
            counting: AtomicBool::new(false),
            noted: Mutex::new(Vec::new()),
            cut: Mutex::new(Cut { bound, end: 0 }),
        }
    }

    pub fn get(&self, db: u8) -> Counted {
        let counter = &self.databases[usize::from(db)].0;
        Counted {
            keys: counter.keys.load(Ordering::Relaxed) as i64,
            expiries: counter.expiries.load(Ordering::Relaxed) as i64,
        }
    }

    /// Sets a database's numbers. No other thread may be changing them.
    pub fn set(&self, db: u8, counted: Counted) {
        let counter = &self.databases[usize::from(db)].0;
        counter.keys.store(counted.keys as u64, Ordering::Relaxed);
        counter.expiries.store(counted.expiries as u64, Ordering::Relaxed);
    }

    /// Counts a change whose record ends at `lsn`. The key's stripe must be held.
    #[inline]
    pub fn add(&self, db: u8, space: u32, by: Counted, lsn: Lsn) {
        if self.counting.load(Ordering::Acquire) {
            let mut noted = self.noted.lock();
            noted.push(Noted { lsn, space, by });
            self.bump(db, by);
        } else {
            self.bump(db, by);
        }
    }

    fn bump(&self, db: u8, by: Counted) {
        let counter = &self.databases[usize::from(db)].0;
        if by.keys != 0 {
            counter.keys.fetch_add(by.keys as u64, Ordering::Relaxed);
        }
        if by.expiries != 0 {
            counter.expiries.fetch_add(by.expiries as u64, Ordering::Relaxed);
        }
    }
}

/// The checkpoint's hook. Logs a cut of the counts, and returns where recovery must begin because of the cut and of open transactions.
///
/// If a stripe is held for too long (in single-threaded simulation: at all), the cut of the last checkpoint stays in force.
pub(crate) fn cut(
    counts: &Counts,
    locks: &LockStripes,
    databases: &Databases,
    store: &Arc<Store>,
    threaded: bool,
) -> Lsn {
    let mut cut = counts.cut.lock();
    if store.pager.wal_head() == cut.end {
        // Nothing was logged since. A checkpoint that is retried on a full disk must not fill the WAL with cuts.
        return cut.bound.min(store.oldest_active());
    }
    // The word after the stripes keeps out transactions that change the map of databases.
    let Some(seen) = locks.try_lock(ALL) else { return cut.bound.min(store.oldest_active()) };
    counts.counting.store(true, Ordering::SeqCst);
    let patience = if threaded { WAIT_MAX } else { Duration::ZERO };
    let pass_all = || (0..STRIPES as Stripe).try_fold(patience, |left, stripe| locks.pass(stripe, left)).is_some();
    if pass_all() {
        let from = store.pager.wal_head();
        let mark = store.log_mark();
        if pass_all() {
            let end = store.log_counts(mark, &at(counts, databases, mark));
            *cut = Cut { bound: from, end };
        }
    }
    let mut noted = counts.noted.lock();
    counts.counting.store(false, Ordering::SeqCst);
    noted.clear();
    drop(noted);
    locks.unlock(ALL, seen);
    // Read last: a transaction that begins now has its records after the mark.
    cut.bound.min(store.oldest_active())
}

/// Returns the counts as of the mark.
fn at(counts: &Counts, databases: &Databases, mark: Lsn) -> Vec<(u32, i64, i64)> {
    let noted = counts.noted.lock();
    let number = |db: u8| {
        let space = databases.space(db);
        let Counted { mut keys, mut expiries } = counts.get(db);
        for later in noted.iter().filter(|noted| noted.space == space && noted.lsn > mark) {
            keys -= later.by.keys;
            expiries -= later.by.expiries;
        }
        (space, keys, expiries)
    };
    (0..SLOTS).map(number).filter(|(_, keys, expiries)| (*keys, *expiries) != (0, 0)).collect()
}
