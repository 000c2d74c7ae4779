//! Lock stripes: what makes a key transaction over several records atomic for all others.
//!
//! Each key belongs to one of 8192 stripes, and each stripe is one word:
//!
//! ```text
//!   bit 63 LOCKED | bit 62 WAITERS | LSN of the last decided change of any key of the stripe (0: none since the engine was opened)
//! ```
//! A writer holds the stripes of all its keys, taken in ascending order (EN-6), until its changes are decided (EN-47). It then leaves the LSN of its last
//! record in them. A reader stores nothing: it notes the words, reads, and reads again if a word has changed (EN-48). The LSN is at the same time the
//! durability LSN of what was read (EN-49): it covers values, absence, deletions and rolled-back changes alike.
//!
//! Hard part: unlike a sequence lock's, the word does not take two values during a change. It need not. LOCKED is stored before the first page is changed, and
//! the LSN grows with every change. So a reader that saw any page of the change finds LOCKED or the new LSN when it validates, because page latches order the
//! two (checked by the loom model in `tests.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use pager::Lsn;
use stdx::counter::Counter;
use stdx::hash::hash;
use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use stdx::sync::{Condvar, Mutex, hint, thread};

#[cfg(test)]
mod tests;

/// Wait reason: another writer holds the key's stripe.
pub static KEY_LOCK: stdx::wait::Reason = stdx::wait::Reason::new("key_lock");

#[cfg(not(loom))]
pub(crate) const STRIPES: usize = 8192;
#[cfg(loom)]
pub(crate) const STRIPES: usize = 2;
const PARKERS: usize = if cfg!(loom) { 1 } else { 64 };
const SPINS: usize = if cfg!(loom) { 0 } else { 64 };
const YIELDS: usize = if cfg!(loom) { 0 } else { 4 };

const LOCKED: u64 = 1 << 63;
const WAITERS: u64 = 1 << 62;
const LSN: u64 = WAITERS - 1;

pub(crate) type Stripe = u32;
/// The word after the stripes. It is held by key transactions that take all stripes, and by the checkpoint while it counts keys (EN-50).
pub(crate) const ALL: Stripe = STRIPES as Stripe;

/// The stripe is held by a transaction that takes long, with the number that it gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BusyStripe(pub u32);

impl From<BusyStripe> for crate::error::Error {
    fn from(BusyStripe(cause): BusyStripe) -> crate::error::Error {
        crate::error::Error::Busy(cause)
    }
}

/// Whether a thread waits for a stripe however long it takes, or gives up on a holder that takes long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    Endless,
    UnlessBusy,
}

pub(crate) struct LockStripes {
    words: Box<[AtomicU64]>,
    parkers: Box<[(Mutex<()>, Condvar)]>,
    /// Stripes whose holders take long, and how many these are.
    busy: Mutex<BTreeMap<Stripe, u32>>,
    busy_count: AtomicUsize,
    /// How often a thread slept until a stripe was released.
    pub waits: Counter,
}

impl LockStripes {
    pub fn new() -> LockStripes {
        LockStripes {
            words: (0..=STRIPES).map(|_| AtomicU64::new(0)).collect(),
            parkers: (0..PARKERS).map(|_| (Mutex::new(()), Condvar::new())).collect(),
            busy: Mutex::new(BTreeMap::new()),
            busy_count: AtomicUsize::new(0),
            waits: Counter::default(),
        }
    }

    /// Returns the stripe of a key. `suffix` is the tree key without its keyspace number.
    #[inline]
    pub fn stripe(db: u8, suffix: &[u8]) -> Stripe {
        (hash(u64::from(db) + 1, suffix) % STRIPES as u64) as Stripe
    }

    /// Returns the stripe's LSN, after waiting until no thread holds the stripe.
    #[inline]
    pub fn observe(&self, stripe: Stripe) -> Lsn {
        let word = self.words[stripe as usize].load(Ordering::Acquire);
        if word & LOCKED == 0 { word } else { self.wait_unlocked(stripe, Patience::Endless).unwrap_or(0) }
    }

    /// Returns the stripe's LSN, or gives up if the thread that holds the stripe takes long.
    #[inline]
    pub fn observe_unless_busy(&self, stripe: Stripe) -> Result<Lsn, BusyStripe> {
        let word = self.words[stripe as usize].load(Ordering::Acquire);
        if word & LOCKED == 0 { Ok(word) } else { self.wait_unlocked(stripe, Patience::UnlessBusy) }
    }

    /// Returns true if no key of the stripe has changed since `observe` returned `seen`.
    #[inline]
    pub fn validate(&self, stripe: Stripe, seen: Lsn) -> bool {
        fence(Ordering::Acquire);
        self.words[stripe as usize].load(Ordering::Relaxed) == seen
    }

    /// Returns true if no thread holds the stripe and its last change ended at or below `lsn`.
    pub fn is_settled(&self, stripe: Stripe, lsn: Lsn) -> bool {
        // A held stripe's word is greater than any LSN.
        self.words[stripe as usize].load(Ordering::Acquire) <= lsn
    }

    /// Takes the stripe; returns its LSN.
    #[inline]
    pub fn lock(&self, stripe: Stripe) -> Lsn {
        loop {
            let seen = self.observe(stripe);
            if self.try_from(stripe, seen) {
                return seen;
            }
        }
    }

    /// Takes the stripe, or gives up if the thread that holds it takes long.
    #[inline]
    pub fn lock_unless_busy(&self, stripe: Stripe) -> Result<Lsn, BusyStripe> {
        loop {
            let seen = self.observe_unless_busy(stripe)?;
            if self.try_from(stripe, seen) {
                return Ok(seen);
            }
        }
    }

    /// Takes the stripe for a change that is decided by one record.
    pub fn hold(&self, stripe: Stripe) -> Result<StripeGuard<'_>, BusyStripe> {
        Ok(StripeGuard { lsn: self.lock_unless_busy(stripe)?, locks: self, stripe })
    }

    /// Marks a stripe that the caller holds as held for long, and wakes those who wait for it.
    pub fn mark_busy(&self, stripe: Stripe, cause: u32) {
        {
            let mut busy = self.busy.lock();
            busy.insert(stripe, cause);
            self.busy_count.store(busy.len(), Ordering::Release);
        }
        let (mutex, condvar) = self.parker(stripe);
        drop(mutex.lock());
        condvar.notify_all();
    }

    /// Takes the mark off.
    pub fn unmark_busy(&self, stripe: Stripe) {
        let mut busy = self.busy.lock();
        busy.remove(&stripe);
        self.busy_count.store(busy.len(), Ordering::Release);
    }

    fn busy_cause(&self, stripe: Stripe) -> Option<BusyStripe> {
        if self.busy_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.busy.lock().get(&stripe).map(|cause| BusyStripe(*cause))
    }

    /// Takes the stripe if no thread holds it.
    pub fn try_lock(&self, stripe: Stripe) -> Option<Lsn> {
        let seen = self.words[stripe as usize].load(Ordering::Relaxed);
        (seen & LOCKED == 0 && self.try_from(stripe, seen)).then_some(seen)
    }

    #[inline]
    fn try_from(&self, stripe: Stripe, seen: Lsn) -> bool {
        let word = &self.words[stripe as usize];
        word.compare_exchange(seen, seen | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Releases the stripe. `lsn` is the last change's LSN, or what `lock` returned if there was none.
    #[inline]
    pub fn unlock(&self, stripe: Stripe, lsn: Lsn) {
        let old = self.words[stripe as usize].swap(lsn, Ordering::Release);
        debug_assert!(old & LOCKED != 0, "EN-47: a stripe is released by its holder");
        debug_assert!(lsn >= old & LSN && lsn <= LSN, "EN-49: the LSN of a stripe only grows");
        if old & WAITERS != 0 {
            let (mutex, condvar) = self.parker(stripe);
            drop(mutex.lock());
            condvar.notify_all();
        }
    }

    /// Waits until the thread that holds the stripe at the call, if any, has released it. Returns what is left of `patience`, or `None` if it did not suffice.
    ///
    /// It reads the word by writing nothing to it with a read-modify-write, so a thread that takes the stripe afterwards sees what the caller stored before.
    pub fn pass(&self, stripe: Stripe, patience: Duration) -> Option<Duration> {
        let word = &self.words[stripe as usize];
        let look = || word.fetch_or(0, Ordering::AcqRel);
        let seen = look() & !WAITERS;
        let gone = |now: u64| now & LOCKED == 0 || now & !WAITERS != seen;
        if gone(seen) {
            return Some(patience);
        }
        let (mutex, condvar) = self.parker(stripe);
        let mut guard = mutex.lock();
        let mut left = patience;
        while !left.is_zero() {
            let now = look();
            if gone(now) {
                return Some(left);
            }
            if self.mark(stripe, now) {
                let step = left.min(Duration::from_millis(5));
                guard = condvar.wait_timeout(guard, step).0;
                left -= step;
            }
        }
        gone(look()).then_some(Duration::ZERO)
    }

    /// Asks the holder for a wake-up. If `unlock` finds the mark, it takes the parker's mutex, so the wake-up cannot come before the wait.
    fn mark(&self, stripe: Stripe, now: u64) -> bool {
        let word = &self.words[stripe as usize];
        now & WAITERS != 0 || word.compare_exchange(now, now | WAITERS, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn parker(&self, stripe: Stripe) -> &(Mutex<()>, Condvar) {
        &self.parkers[stripe as usize % PARKERS]
    }

    #[cold]
    fn wait_unlocked(&self, stripe: Stripe, patience: Patience) -> Result<Lsn, BusyStripe> {
        let word = &self.words[stripe as usize];
        for spin in 0..SPINS + YIELDS {
            let now = word.load(Ordering::Acquire);
            if now & LOCKED == 0 {
                return Ok(now);
            }
            if spin < SPINS { hint::spin_loop() } else { thread::yield_now() }
        }
        self.waits.add(1);
        let _waiting = stdx::wait::announce(&KEY_LOCK);
        let (mutex, condvar) = self.parker(stripe);
        let mut guard = mutex.lock();
        loop {
            let now = word.load(Ordering::Acquire);
            if now & LOCKED == 0 {
                return Ok(now);
            }
            if patience == Patience::UnlessBusy
                && let Some(busy) = self.busy_cause(stripe)
            {
                return Err(busy);
            }
            if self.mark(stripe, now) {
                guard = condvar.wait(guard);
            }
        }
    }
}

/// A stripe held for one record. It is released on drop.
pub(crate) struct StripeGuard<'l> {
    locks: &'l LockStripes,
    stripe: Stripe,
    lsn: Lsn,
}

impl StripeGuard<'_> {
    /// Returns the stripe's LSN.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Notes a change whose record ends at `lsn`.
    pub fn changed(&mut self, lsn: Lsn) {
        self.lsn = self.lsn.max(lsn);
    }
}

impl Drop for StripeGuard<'_> {
    fn drop(&mut self) {
        self.locks.unlock(self.stripe, self.lsn);
    }
}

/// Stripes of a key transaction, each with its LSN when it was taken or observed. Up to four are stored inline.
#[derive(Default)]
pub(crate) struct StripeSet {
    few: [(Stripe, Lsn); 4],
    many: Vec<(Stripe, Lsn)>,
    count: usize,
}

impl StripeSet {
    /// Collects `stripes`, sorted and without duplicates.
    pub fn collect(stripes: impl Iterator<Item = Stripe>) -> StripeSet {
        let mut set = StripeSet::default();
        for stripe in stripes {
            if set.count < set.few.len() && set.many.is_empty() {
                set.few[set.count] = (stripe, 0);
                set.count += 1;
            } else {
                if set.many.is_empty() {
                    set.many.extend_from_slice(&set.few);
                }
                set.many.push((stripe, 0));
            }
        }
        if set.many.is_empty() {
            set.few[..set.count].sort_unstable();
            let mut kept = 0;
            for at in 0..set.count {
                if at == 0 || set.few[at].0 != set.few[kept - 1].0 {
                    set.few[kept] = set.few[at];
                    kept += 1;
                }
            }
            set.count = kept;
        } else {
            set.many.sort_unstable();
            set.many.dedup();
        }
        set
    }

    /// Adds a stripe that the set does not have.
    fn add(&mut self, stripe: Stripe, lsn: Lsn) {
        let mut many = self.as_slice().to_vec();
        many.insert(many.partition_point(|(other, _)| *other < stripe), (stripe, lsn));
        self.many = many;
    }

    /// Adds stripes that it does not have.
    pub fn extend(&mut self, more: Vec<(Stripe, Lsn)>) {
        if more.is_empty() {
            return;
        }
        let mut all = self.as_slice().to_vec();
        all.extend(more);
        all.sort_unstable();
        *self = StripeSet { many: all, ..StripeSet::default() };
    }

    pub fn as_slice(&self) -> &[(Stripe, Lsn)] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }

    pub fn as_mut_slice(&mut self) -> &mut [(Stripe, Lsn)] {
        if self.many.is_empty() { &mut self.few[..self.count] } else { &mut self.many }
    }

    /// Returns the LSN noted for the stripe, if it belongs to the set.
    pub fn lsn(&self, stripe: Stripe) -> Option<Lsn> {
        let all = self.as_slice();
        if all.len() <= 8 {
            return all.iter().find(|(other, _)| *other == stripe).map(|(_, lsn)| *lsn);
        }
        all.binary_search_by_key(&stripe, |(other, _)| *other).ok().map(|at| all[at].1)
    }
}

/// The stripes of a key transaction: some, or all of them.
pub(crate) enum TxnStripes {
    Some(StripeSet),
    All(Vec<Lsn>),
}

impl TxnStripes {
    pub fn lsn(&self, stripe: Stripe) -> Option<Lsn> {
        match self {
            TxnStripes::Some(set) => set.lsn(stripe),
            TxnStripes::All(lsns) => Some(lsns[stripe as usize]),
        }
    }

    pub fn observe(&mut self, locks: &LockStripes) -> Result<(), BusyStripe> {
        if let TxnStripes::Some(set) = self {
            for (stripe, lsn) in set.as_mut_slice() {
                *lsn = locks.observe_unless_busy(*stripe)?;
            }
        }
        Ok(())
    }

    /// Takes the stripes, or none of them if the thread that holds one takes long.
    pub fn lock_unless_busy(&mut self, locks: &LockStripes) -> Result<(), BusyStripe> {
        let release = |taken: &[(Stripe, Lsn)]| taken.iter().for_each(|(stripe, lsn)| locks.unlock(*stripe, *lsn));
        match self {
            TxnStripes::Some(set) => {
                let all = set.as_mut_slice();
                for at in 0..all.len() {
                    match locks.lock_unless_busy(all[at].0) {
                        Ok(lsn) => all[at].1 = lsn,
                        Err(busy) => {
                            release(&all[..at]);
                            return Err(busy);
                        }
                    }
                }
            }
            TxnStripes::All(lsns) => {
                let mut taken = Vec::with_capacity(STRIPES + 1);
                for stripe in std::iter::once(ALL).chain(0..STRIPES as Stripe) {
                    match locks.lock_unless_busy(stripe) {
                        Ok(lsn) => taken.push((stripe, lsn)),
                        Err(busy) => {
                            release(&taken);
                            return Err(busy);
                        }
                    }
                }
                taken.rotate_left(1);
                lsns.extend(taken.into_iter().map(|(_, lsn)| lsn));
            }
        }
        Ok(())
    }

    /// Calls `f` with each of the stripes.
    pub fn for_each(&self, mut f: impl FnMut(Stripe)) {
        match self {
            TxnStripes::Some(set) => set.as_slice().iter().for_each(|(stripe, _)| f(*stripe)),
            TxnStripes::All(_) => (0..=ALL).for_each(f),
        }
    }

    pub fn lock(&mut self, locks: &LockStripes) {
        match self {
            TxnStripes::Some(set) => {
                for (stripe, lsn) in set.as_mut_slice() {
                    *lsn = locks.lock(*stripe);
                }
            }
            TxnStripes::All(lsns) => {
                let all = locks.lock(ALL);
                lsns.extend((0..STRIPES as Stripe).map(|stripe| locks.lock(stripe)));
                lsns.push(all);
            }
        }
    }

    /// Notes that what the stripes guard has been decided up to `lsn`.
    pub fn raise(&mut self, lsn: Lsn) {
        match self {
            TxnStripes::Some(set) => set.as_mut_slice().iter_mut().for_each(|(_, own)| *own = lsn.max(*own)),
            TxnStripes::All(lsns) => lsns.iter_mut().for_each(|own| *own = lsn.max(*own)),
        }
    }

    /// Takes one more stripe unless another thread holds it. Returns whether it is held now. The stripes are locked, and the new one may be out of order, so
    /// this does not wait (EN-6).
    pub fn try_add(&mut self, locks: &LockStripes, stripe: Stripe) -> bool {
        let TxnStripes::Some(set) = self else { return true };
        if set.lsn(stripe).is_some() {
            return true;
        }
        let Some(lsn) = locks.try_lock(stripe) else { return false };
        set.add(stripe, lsn);
        true
    }

    pub fn unlock(&self, locks: &LockStripes, changed: Option<Lsn>) {
        let after = |before: Lsn| changed.map_or(before, |lsn| lsn.max(before));
        match self {
            TxnStripes::Some(set) => {
                for (stripe, lsn) in set.as_slice() {
                    locks.unlock(*stripe, after(*lsn));
                }
            }
            TxnStripes::All(lsns) => {
                for (stripe, lsn) in lsns.iter().enumerate() {
                    locks.unlock(stripe as Stripe, after(*lsn));
                }
            }
        }
    }
}
