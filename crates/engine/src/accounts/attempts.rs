//! Rate limits for failed logins, counted by address and account, so that passwords cannot be guessed quickly at any door.
//!
//! There are two counts: one for each pair of an address and an account, and one for each address alone. When a pair has failed in a row more often than the
//! free number, its logins are checked only after a delay, which doubles with each failure up to a limit. An address that fails with ever more names has its
//! logins delayed too, by a fixed time. The delay comes before the check and applies to right passwords as well: if only failures were slow, a client would
//! take silence for a failure and go on with another connection. A door blocks no thread for the delay; it parks the connection.
//!
//! The delay is short and belongs to the pair, so one client cannot lock an account for others: the same account from another address is not delayed, and
//! counts halve with time. The hard part is the bound. Both tables have a fixed size, are keyed by a hash under a random key, and replace the entry with the
//! lowest count. At most `WAITING_MAX` logins of a pair wait, and further ones are refused unchecked.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

const PAIRS: usize = 4096;
const ADDRESSES: usize = 1024;
/// Number of entries in which a key may be.
const WAYS: usize = 4;
/// Number of logins of one pair that may wait at once.
const WAITING_MAX: u32 = 64;
/// The first delay of a pair.
const STEP_MS: u64 = 100;
/// A count halves in this time without a failure.
const PAIR_HALF_LIFE_MS: u64 = 60_000;
const ADDRESS_HALF_LIFE_MS: u64 = 10_000;
/// From this count on, all logins of an address are delayed.
const ADDRESS_FAILURES: u32 = 32;
const ADDRESS_DELAY_MS: u64 = 500;

#[derive(Clone, Copy, Default)]
struct FailureCount {
    key: u64,
    failures: u32,
    waiting: u32,
    last_ms: u64,
}

impl FailureCount {
    fn failures_at(&self, now_ms: u64, half_life_ms: u64) -> u32 {
        let halvings = now_ms.saturating_sub(self.last_ms) / half_life_ms;
        self.failures.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0)
    }
}

/// A table of fixed size in which a key may be in `WAYS` entries.
struct Table {
    entries: Box<[FailureCount]>,
    half_life_ms: u64,
}

impl Table {
    fn new(count: usize, half_life_ms: u64) -> Table {
        Table { entries: vec![FailureCount::default(); count].into(), half_life_ms }
    }

    fn places(&mut self, key: u64) -> &mut [FailureCount] {
        let first = key as usize % (self.entries.len() / WAYS) * WAYS;
        &mut self.entries[first..first + WAYS]
    }

    fn find(&mut self, key: u64) -> Option<&mut FailureCount> {
        self.places(key).iter_mut().find(|entry| entry.key == key && entry.failures > 0)
    }

    fn failures(&mut self, key: u64, now_ms: u64) -> u32 {
        let half_life_ms = self.half_life_ms;
        self.find(key).map_or(0, |entry| entry.failures_at(now_ms, half_life_ms))
    }

    fn fail(&mut self, key: u64, now_ms: u64) {
        let half_life_ms = self.half_life_ms;
        let known = self.find(key).is_some();
        let places = self.places(key);
        let entry = if known {
            places.iter_mut().find(|entry| entry.key == key)
        } else {
            // The lowest count is replaced; of several, the one that failed longest ago.
            places.iter_mut().min_by_key(|entry| (entry.failures_at(now_ms, half_life_ms), entry.last_ms))
        };
        let entry = entry.expect("a key has places");
        if !known {
            *entry = FailureCount { key, ..FailureCount::default() };
        }
        entry.failures = entry.failures_at(now_ms, half_life_ms).saturating_add(1);
        entry.last_ms = now_ms;
    }

    fn forget(&mut self, key: u64) {
        if let Some(entry) = self.find(key) {
            *entry = FailureCount::default();
        }
    }
}

struct Tables {
    pairs: Table,
    addresses: Table,
}

/// The failed logins of all doors.
pub struct Attempts {
    /// `None` until the first failure.
    tables: Mutex<Option<Tables>>,
    keys: RandomState,
    free: AtomicU64,
    delay_max_ms: AtomicU64,
    failed: AtomicU64,
    delayed: AtomicU64,
    refused: AtomicU64,
}

impl Default for Attempts {
    fn default() -> Attempts {
        Attempts {
            tables: Mutex::new(None),
            keys: RandomState::new(),
            free: AtomicU64::new(3),
            delay_max_ms: AtomicU64::new(4000),
            failed: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }
}

/// When a login may be checked.
pub enum Turn {
    Now(Attempt),
    After(Duration, Attempt),
    /// Too many logins of this pair are waiting already.
    Refused,
}

impl Attempts {
    /// Sets how many failures in a row are free, and the longest delay of later ones. With a delay of 0, logins are neither delayed nor refused.
    pub fn set_limits(&self, free: u64, delay_max: Duration) {
        self.free.store(free, Ordering::Relaxed);
        self.delay_max_ms.store(delay_max.as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns the numbers of logins that failed, were delayed, and were refused unchecked.
    pub fn counts(&self) -> (u64, u64, u64) {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (get(&self.failed), get(&self.delayed), get(&self.refused))
    }

    /// Registers a login from `address` that may open any of `accounts`. `now_ms` must never go back. The caller reports how the attempt ended.
    pub fn arrive(self: &Arc<Self>, address: IpAddr, accounts: &[&str], now_ms: u64) -> Turn {
        // A client with an IPv6 network has all of its addresses.
        let address = match address.to_canonical() {
            IpAddr::V4(address) => u64::from(u32::from(address)) << 8 | 1,
            IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
        };
        let mut attempt = Attempt {
            address: self.keys.hash_one(address),
            pairs: accounts.iter().map(|account| self.keys.hash_one((address, account))).collect(),
            attempts: self.clone(),
            waits: false,
            is_shown: false,
            now_ms,
        };
        let delay_max_ms = self.delay_max_ms.load(Ordering::Relaxed);
        let mut tables = self.tables.lock();
        let Some(Tables { pairs, addresses }) = tables.as_mut().filter(|_| delay_max_ms > 0) else {
            return Turn::Now(attempt);
        };
        let failures = attempt.pairs.iter().map(|pair| pairs.failures(*pair, now_ms)).max().unwrap_or(0);
        let mut delay_ms = match u64::from(failures).checked_sub(self.free.load(Ordering::Relaxed)) {
            Some(beyond) => STEP_MS.checked_shl(beyond.min(32) as u32).unwrap_or(u64::MAX).min(delay_max_ms),
            None => 0,
        };
        if addresses.failures(attempt.address, now_ms) >= ADDRESS_FAILURES {
            delay_ms = delay_ms.max(ADDRESS_DELAY_MS.min(delay_max_ms));
        }
        if delay_ms == 0 {
            return Turn::Now(attempt);
        }
        let is_crowded = |pair: &u64| pairs.find(*pair).is_some_and(|entry| entry.waiting >= WAITING_MAX);
        if attempt.pairs.iter().any(is_crowded) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Turn::Refused;
        }
        for pair in &attempt.pairs {
            if let Some(entry) = pairs.find(*pair) {
                entry.waiting += 1;
            }
        }
        attempt.waits = true;
        attempt.now_ms = now_ms + delay_ms;
        self.delayed.fetch_add(1, Ordering::Relaxed);
        Turn::After(Duration::from_millis(delay_ms), attempt)
    }

    fn fail(&self, attempt: &Attempt) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        if self.delay_max_ms.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut tables = self.tables.lock();
        let Tables { pairs, addresses } = tables.get_or_insert_with(|| Tables {
            pairs: Table::new(PAIRS, PAIR_HALF_LIFE_MS),
            addresses: Table::new(ADDRESSES, ADDRESS_HALF_LIFE_MS),
        });
        attempt.pairs.iter().for_each(|pair| pairs.fail(*pair, attempt.now_ms));
        addresses.fail(attempt.address, attempt.now_ms);
    }
}

/// One login, from when the client names itself until it is accepted or not.
pub struct Attempt {
    attempts: Arc<Attempts>,
    address: u64,
    pairs: Vec<u64>,
    /// It counts among the waiting ones of its pairs.
    waits: bool,
    /// The client knows that its first proof was wrong.
    is_shown: bool,
    now_ms: u64,
}

impl Attempt {
    /// Reports that the password was wrong.
    pub fn failed(mut self) {
        self.is_shown = true;
    }

    /// Notes that the client can tell by now that its first proof was wrong. If it sends nothing more, the attempt has failed.
    pub fn show(&mut self) {
        self.is_shown = true;
    }

    /// Reports that the password opened the `nth` account of the attempt, whose failures are then forgotten.
    pub fn passed(mut self, nth: usize) {
        self.is_shown = false;
        if let Some(Tables { pairs, .. }) = self.attempts.tables.lock().as_mut()
            && let Some(pair) = self.pairs.get(nth)
        {
            pairs.forget(*pair);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.waits
            && let Some(Tables { pairs, .. }) = self.attempts.tables.lock().as_mut()
        {
            for pair in &self.pairs {
                if let Some(entry) = pairs.find(*pair) {
                    entry.waiting = entry.waiting.saturating_sub(1);
                }
            }
        }
        if self.is_shown {
            self.attempts.clone().fail(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
    }

    /// Makes a login fail. Returns its delay in milliseconds; `None` if it was refused.
    fn fails(attempts: &Arc<Attempts>, from: IpAddr, account: &str, now_ms: u64) -> Option<u64> {
        match attempts.arrive(from, &[account], now_ms) {
            Turn::Now(attempt) => {
                attempt.failed();
                Some(0)
            }
            Turn::After(delay, attempt) => {
                attempt.failed();
                Some(delay.as_millis() as u64)
            }
            Turn::Refused => None,
        }
    }

    fn delay(attempts: &Arc<Attempts>, from: IpAddr, account: &str, now_ms: u64) -> u64 {
        match attempts.arrive(from, &[account], now_ms) {
            Turn::Now(_) => 0,
            Turn::After(delay, _) => delay.as_millis() as u64,
            Turn::Refused => u64::MAX,
        }
    }

    #[test]
    fn a_pair_waits_longer_with_each_failure_and_nobody_else_does() {
        let attempts = Arc::new(Attempts::default());
        let delays: Vec<_> = (0..11).map(|_| fails(&attempts, address(1), "app", 1000).unwrap()).collect();
        assert_eq!(delays, [0, 0, 0, 100, 200, 400, 800, 1600, 3200, 4000, 4000]);
        assert_eq!(delay(&attempts, address(1), "other", 1000), 0);
        assert_eq!(delay(&attempts, address(2), "app", 1000), 0);
        assert_eq!(attempts.counts(), (11, 8, 0));
        // The right password is delayed as well; then the failures are forgotten.
        let Turn::After(_, attempt) = attempts.arrive(address(1), &["app"], 2000) else { panic!("not delayed") };
        attempt.passed(0);
        assert_eq!(delay(&attempts, address(1), "app", 2000), 0);
    }

    #[test]
    fn failures_are_forgotten_with_time() {
        let attempts = Arc::new(Attempts::default());
        for _ in 0..8 {
            fails(&attempts, address(1), "app", 0);
        }
        assert_eq!(delay(&attempts, address(1), "app", 5000), 3200);
        assert_eq!(delay(&attempts, address(1), "app", 5000 + PAIR_HALF_LIFE_MS), 200);
        assert_eq!(delay(&attempts, address(1), "app", 5000 + 3 * PAIR_HALF_LIFE_MS), 0);
    }

    #[test]
    fn a_success_of_one_account_forgets_no_failure_of_another() {
        let attempts = Arc::new(Attempts::default());
        for _ in 0..6 {
            fails(&attempts, address(1), "default", 0);
            // AUTH with `own:password` may open either.
            match attempts.arrive(address(1), &["default", "own"], 0) {
                Turn::Now(attempt) | Turn::After(_, attempt) => attempt.passed(1),
                Turn::Refused => panic!("refused"),
            }
        }
        assert_eq!(delay(&attempts, address(1), "default", 0), 800);
        assert_eq!(delay(&attempts, address(1), "own", 0), 0);
    }

    #[test]
    fn a_client_that_leaves_once_it_knows_has_failed() {
        let attempts = Arc::new(Attempts::default());
        for _ in 0..4 {
            let Turn::Now(mut attempt) = attempts.arrive(address(1), &["app"], 0) else { break };
            attempt.show();
        }
        assert_eq!(delay(&attempts, address(1), "app", 0), 100);
        // A login that disconnects before costs nothing.
        (0..9).for_each(|_| assert_eq!(delay(&attempts, address(2), "app", 0), 0));
    }

    #[test]
    fn only_so_many_wait_and_the_others_are_refused() {
        let attempts = Arc::new(Attempts::default());
        for _ in 0..4 {
            fails(&attempts, address(1), "app", 0);
        }
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            let Turn::After(_, attempt) = attempts.arrive(address(1), &["app"], 0) else { panic!("refused") };
            waiting.push(attempt);
        }
        assert_eq!(fails(&attempts, address(1), "app", 0), None);
        waiting.pop();
        assert!(fails(&attempts, address(1), "app", 0).is_some());
    }

    /// An attacker with many names and addresses neither makes the table grow nor evicts the count of a pair that goes on failing.
    #[test]
    fn a_flood_of_names_stays_bounded_and_hides_nothing() {
        let attempts = Arc::new(Attempts::default());
        for _ in 0..9 {
            fails(&attempts, address(1), "app", 0);
        }
        for nth in 0..40_000_u32 {
            fails(&attempts, IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + nth)), &format!("name{nth}"), 1);
        }
        assert_eq!(delay(&attempts, address(1), "app", 2), 4000);
        let tables = attempts.tables.lock();
        let tables = tables.as_ref().unwrap();
        assert_eq!((tables.pairs.entries.len(), tables.addresses.entries.len()), (PAIRS, ADDRESSES));
    }

    #[test]
    fn an_address_with_many_names_waits_for_each() {
        let attempts = Arc::new(Attempts::default());
        for nth in 0..ADDRESS_FAILURES {
            assert_eq!(fails(&attempts, address(1), &format!("name{nth}"), 0), Some(0));
        }
        assert_eq!(fails(&attempts, address(1), "one more", 0), Some(ADDRESS_DELAY_MS));
        assert_eq!(delay(&attempts, address(2), "one more", 0), 0);
        let net = |last: u16| IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last));
        for nth in 0..ADDRESS_FAILURES {
            fails(&attempts, net(nth as u16), &format!("name{nth}"), 0);
        }
        assert_eq!(delay(&attempts, net(9999), "x", 0), ADDRESS_DELAY_MS);
    }

    #[test]
    fn without_a_delay_nothing_waits() {
        let attempts = Arc::new(Attempts::default());
        attempts.set_limits(0, Duration::ZERO);
        assert!((0..200).all(|_| fails(&attempts, address(1), "app", 0) == Some(0)));
    }
}
