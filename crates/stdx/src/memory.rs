//! The memory limit: how much memory the process has allocated, and whether a request may take more.
//!
//! `Counting` wraps the global allocator and counts every block, so the count covers all code and all owners. Code that is about to allocate much on behalf of a client, or something that
//! stays with a session, calls `claim` first. A refused claim becomes an error in the client's protocol (SX-1). An allocation without a claim is counted too, so the next claim is refused instead.
//!
//! Hard part: an allocation must not touch a shared cache line. A thread counts in a cell of its own and adds it to the shared count when it exceeds `BATCH_BYTES`. The shared count is therefore
//! off by at most that much per thread.
//!
//! Caches register themselves with `register_cache`. A claim that would be refused empties them first.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError, Weak};

/// A thread adds its own count to the shared one when it has changed by this much.
const BATCH_BYTES: i64 = 32 << 10;

static ALLOCATED: AtomicI64 = AtomicI64::new(0);
/// The sum of all claims, whose memory is not allocated yet.
static CLAIMED: AtomicI64 = AtomicI64::new(0);
/// Memory that does not count against the limit, because another setting bounds it.
static EXEMPT: AtomicI64 = AtomicI64::new(0);
static LIMIT: AtomicI64 = AtomicI64::new(i64::MAX);

thread_local! {
    // It has no destructor: an allocator may use no other thread-local value.
    static OWN: Cell<i64> = const { Cell::new(0) };
}

/// An allocator that counts the bytes of its live blocks and passes every call on to `A`.
pub struct Counting<A>(pub A);

fn note(bytes: i64) {
    let settled = OWN.try_with(|own| {
        let sum = own.get() + bytes;
        if sum.abs() < BATCH_BYTES {
            own.set(sum);
            return;
        }
        own.set(0);
        ALLOCATED.fetch_add(sum, Ordering::Relaxed);
    });
    if settled.is_err() {
        ALLOCATED.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to `A`, whose contract is the same. Counting neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`.
        let block = unsafe { self.0.alloc(layout) };
        if !block.is_null() {
            note(layout.size() as i64);
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        if !block.is_null() {
            note(layout.size() as i64);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `realloc`.
        let moved = unsafe { self.0.realloc(block, layout, size) };
        if !moved.is_null() {
            note(size as i64 - layout.size() as i64);
        }
        moved
    }
}

/// Adds the calling thread's own count to the shared one. Called by a thread that ends.
pub(crate) fn settle() {
    let _ = OWN.try_with(|own| ALLOCATED.fetch_add(own.take(), Ordering::Relaxed));
}

/// Returns the allocated bytes, exact within `BATCH_BYTES` per thread.
pub fn allocated() -> u64 {
    ALLOCATED.load(Ordering::Relaxed).max(0) as u64
}

/// Returns how many bytes may be allocated; `u64::MAX` without a limit.
pub fn limit() -> u64 {
    match LIMIT.load(Ordering::Relaxed) {
        i64::MAX => u64::MAX,
        limit => limit.max(0) as u64,
    }
}

/// Sets the limit to `more` bytes above the present count.
pub fn set_headroom(more: u64) {
    settle();
    LIMIT.store(ALLOCATED.load(Ordering::Relaxed).saturating_add_unsigned(more), Ordering::Relaxed);
}

/// Returns how many bytes can be claimed now.
pub fn available() -> u64 {
    let free = LIMIT.load(Ordering::Relaxed).saturating_sub(taken());
    free.max(0) as u64
}

fn taken() -> i64 {
    ALLOCATED.load(Ordering::Relaxed) + CLAIMED.load(Ordering::Relaxed) - EXEMPT.load(Ordering::Relaxed)
}

/// The error of a refused claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    pub bytes: u64,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes more are beyond what the setting 'memory' leaves to sessions and requests", self.bytes)
    }
}

/// Bytes that are about to be allocated. The owner drops the claim when they are: from then on the allocator counts them.
#[derive(Debug)]
#[must_use = "the claim ends when it is dropped"]
pub struct Claim(i64);

/// A cache that can be emptied.
pub trait Reclaim: Send + Sync {
    /// Drops the entries. Called by any thread that claims memory, so it must not wait for a lock that such a thread may hold, and must not claim.
    fn reclaim(&self);
}

static CACHES: Mutex<Vec<Weak<dyn Reclaim>>> = Mutex::new(Vec::new());

/// Registers a cache to be emptied before a claim is refused, for as long as the cache lives.
pub fn register_cache(cache: Weak<dyn Reclaim>) {
    let mut caches = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
    caches.retain(|known| known.strong_count() > 0);
    caches.push(cache);
}

/// Claims memory before it is allocated. Returns `Full` if the limit does not allow it even with all caches empty (SX-1).
pub fn claim(bytes: usize) -> Result<Claim, Full> {
    let wanted = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
    CLAIMED.fetch_add(wanted, Ordering::Relaxed);
    let claim = Claim(wanted);
    if taken() > LIMIT.load(Ordering::Relaxed) && !reclaim(wanted) {
        return Err(Full { bytes: bytes as u64 });
    }
    Ok(claim)
}

/// Empties the caches. Returns false if the claims still exceed the limit.
#[cold]
fn reclaim(wanted: i64) -> bool {
    // No cache holds that much.
    if wanted > LIMIT.load(Ordering::Relaxed) {
        return false;
    }
    // The references are dropped outside of the lock: the last one to a cache may drop other caches with it.
    let caches: Vec<_> =
        CACHES.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    caches.iter().for_each(|cache| cache.reclaim());
    drop(caches);
    settle();
    taken() <= LIMIT.load(Ordering::Relaxed)
}

impl Drop for Claim {
    fn drop(&mut self) {
        CLAIMED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Memory that is allocated and exempt from the limit, because something else bounds it.
#[derive(Debug, Default)]
pub struct Exempt(i64);

impl Exempt {
    pub fn of(bytes: u64) -> Exempt {
        let mut exempt = Exempt(0);
        exempt.set(bytes);
        exempt
    }

    pub fn set(&mut self, bytes: u64) {
        let bytes = bytes as i64;
        if bytes != self.0 {
            EXEMPT.fetch_add(bytes - self.0, Ordering::Relaxed);
            self.0 = bytes;
        }
    }
}

impl Drop for Exempt {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    /// The counts belong to the process, so one test covers all of them.
    #[test]
    fn blocks_are_counted_and_claims_stop_at_the_limit() {
        let counting = Counting(System);
        let layout = Layout::from_size_align(1 << 20, 8).unwrap();
        let before = allocated();
        // SAFETY: each block is freed with the layout that it was allocated with.
        unsafe {
            let block = counting.alloc(layout);
            assert_eq!(allocated(), before + (1 << 20));
            let block = counting.realloc(block, layout, 3 << 20);
            assert_eq!(allocated(), before + (3 << 20));
            counting.dealloc(block, Layout::from_size_align(3 << 20, 8).unwrap());
            for _ in 0..1000 {
                let small = Layout::from_size_align(100, 4).unwrap();
                counting.dealloc(counting.alloc_zeroed(small), small);
            }
        }
        assert_eq!(allocated(), before);
        assert_eq!(limit(), u64::MAX);
        assert!(claim(usize::MAX).is_ok(), "there is no limit");

        set_headroom(1000);
        let first = claim(600).expect("below the limit");
        assert_eq!(claim(401).unwrap_err(), Full { bytes: 401 });
        assert_eq!(available(), 400, "a refused claim leaves nothing behind");
        let mut exempt = Exempt::of(500);
        let second = claim(900).expect("exempt memory does not count");
        exempt.set(0);
        assert!(claim(0).is_err());
        drop((first, second));
        assert!(claim(1000).is_ok() && claim(1001).is_err());

        // SAFETY: as above.
        let block = unsafe { counting.alloc(layout) };
        assert_eq!(available(), 0);
        assert!(claim(0).is_err(), "memory that was not claimed counts too");
        // SAFETY: as above.
        unsafe { counting.dealloc(block, layout) };
        let ending = std::thread::spawn(|| {
            crate::thread_number::current();
            note(-100);
        });
        ending.join().unwrap();
        assert_eq!(available(), 1100, "a thread that ends adds its own count");
        ALLOCATED.fetch_add(100, Ordering::Relaxed);

        struct Cache(AtomicI64);
        impl Reclaim for Cache {
            fn reclaim(&self) {
                note(-self.0.swap(0, Ordering::Relaxed));
            }
        }
        note(600);
        settle();
        let cache = std::sync::Arc::new(Cache(AtomicI64::new(600)));
        assert!(claim(500).is_err());
        let registered = std::sync::Arc::downgrade(&cache);
        register_cache(registered);
        assert!(claim(1001).is_err(), "a cache is not emptied for a claim that exceeds the limit by itself");
        assert_eq!(cache.0.load(Ordering::Relaxed), 600);
        assert!(claim(500).is_ok(), "an emptied cache makes room");
        assert_eq!(cache.0.load(Ordering::Relaxed), 0);
        drop(cache);
        assert!(claim(1000).is_ok() && claim(1001).is_err());
        LIMIT.store(i64::MAX, Ordering::Relaxed);
    }
}
