//! How much memory the process has allocated, and whether a request may take more.
//!
//! `Counting` wraps the global allocator and counts every block, so that the count holds whatever allocated it and whoever keeps it. Code that is about to make something large on behalf of a client, or something that
//! stays with a session, calls `claim` first; a refused claim becomes an error in the client's protocol. Code that does not ask is counted all the same, so the next claim is refused instead.
//!
//! A thread counts in a cell of its own and adds it to the shared count when it differs by `BATCH_BYTES`. So an allocation costs no shared cache line, and the shared count is off by at most that much for each thread.
//!
//! Caches register themselves (`register_cache`). A claim that would be refused empties them first: memory that nobody needs never makes a request fail.
//!
//! - **ME-1** The sum of all claims that are held and of all memory that is counted never exceeds the limit by a claim: a claim that would do so is refused.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError, Weak};

/// A thread tells the others when its own count has changed by so much.
const BATCH_BYTES: i64 = 32 << 10;

static HELD: AtomicI64 = AtomicI64::new(0);
/// Claims whose memory is not allocated yet.
static CLAIMED: AtomicI64 = AtomicI64::new(0);
/// Memory that another setting bounds: it does not count against the limit.
static EXEMPT: AtomicI64 = AtomicI64::new(0);
static LIMIT: AtomicI64 = AtomicI64::new(i64::MAX);

thread_local! {
    // Without a destructor: an allocator may use no other kind.
    static OWN: Cell<i64> = const { Cell::new(0) };
}

/// An allocator that counts the bytes of its live blocks.
pub struct Counting<A>(pub A);

fn note(bytes: i64) {
    let told = OWN.try_with(|own| {
        let sum = own.get() + bytes;
        if sum.abs() < BATCH_BYTES {
            own.set(sum);
            return;
        }
        own.set(0);
        HELD.fetch_add(sum, Ordering::Relaxed);
    });
    if told.is_err() {
        HELD.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on to `A` unchanged, whose contract is the same; counting neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let block = unsafe { self.0.alloc(layout) };
        if !block.is_null() {
            note(layout.size() as i64);
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        if !block.is_null() {
            note(layout.size() as i64);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        let moved = unsafe { self.0.realloc(block, layout, size) };
        if !moved.is_null() {
            note(size as i64 - layout.size() as i64);
        }
        moved
    }
}

/// Adds the calling thread's own count to the shared one. To be called by a thread that ends.
pub(crate) fn settle() {
    let _ = OWN.try_with(|own| HELD.fetch_add(own.take(), Ordering::Relaxed));
}

/// Bytes that are allocated, up to `BATCH_BYTES` for each thread.
pub fn allocated() -> u64 {
    HELD.load(Ordering::Relaxed).max(0) as u64
}

/// Bytes that may be allocated; `u64::MAX` without a limit.
pub fn limit() -> u64 {
    match LIMIT.load(Ordering::Relaxed) {
        i64::MAX => u64::MAX,
        limit => limit.max(0) as u64,
    }
}

/// From here on claims may bring the count so many bytes above what it is now.
pub fn set_headroom(more: u64) {
    settle();
    LIMIT.store(HELD.load(Ordering::Relaxed).saturating_add_unsigned(more), Ordering::Relaxed);
}

/// Bytes that can be claimed now.
pub fn available() -> u64 {
    let free = LIMIT.load(Ordering::Relaxed).saturating_sub(taken());
    free.max(0) as u64
}

fn taken() -> i64 {
    HELD.load(Ordering::Relaxed) + CLAIMED.load(Ordering::Relaxed) - EXEMPT.load(Ordering::Relaxed)
}

/// A claim was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    pub bytes: u64,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes more are beyond what the setting 'memory' leaves to sessions and requests", self.bytes)
    }
}

/// Bytes that are about to be allocated. Drop it when they are: from then on the allocator counts them.
#[derive(Debug)]
#[must_use = "the claim ends when it is dropped"]
pub struct Claim(i64);

/// A cache whose memory can be had back.
pub trait Reclaim: Send + Sync {
    /// Drops what can be made again. Called by any thread that claims memory: it must not wait for a lock that such a thread may hold, nor claim.
    fn reclaim(&self);
}

static CACHES: Mutex<Vec<Weak<dyn Reclaim>>> = Mutex::new(Vec::new());

/// Empties the cache before a claim is refused, as long as the cache lives.
pub fn register_cache(cache: Weak<dyn Reclaim>) {
    let mut caches = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
    caches.retain(|known| known.strong_count() > 0);
    caches.push(cache);
}

/// Claims memory before it is allocated (ME-1).
pub fn claim(bytes: usize) -> Result<Claim, Full> {
    let wanted = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
    CLAIMED.fetch_add(wanted, Ordering::Relaxed);
    let claim = Claim(wanted);
    if taken() > LIMIT.load(Ordering::Relaxed) && !reclaim(wanted) {
        return Err(Full { bytes: bytes as u64 });
    }
    Ok(claim)
}

/// Empties the caches. False: the claims are too many all the same.
#[cold]
fn reclaim(wanted: i64) -> bool {
    // No cache holds so much.
    if wanted > LIMIT.load(Ordering::Relaxed) {
        return false;
    }
    // Dropped outside of the lock: a cache that ends here may take others with it.
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

/// Memory that is allocated and bounded by something else than the limit.
#[derive(Debug, Default)]
pub struct Exempt(i64);

impl Exempt {
    pub fn of(bytes: u64) -> Exempt {
        let mut beside = Exempt(0);
        beside.set(bytes);
        beside
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

    /// The statics are the process's: one test for all of them.
    #[test]
    fn blocks_are_counted_and_claims_end_at_the_limit() {
        let counting = Counting(System);
        let layout = Layout::from_size_align(1 << 20, 8).unwrap();
        let before = allocated();
        // SAFETY: each block is given back with the layout it was made with.
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
        let first = claim(600).expect("there is room");
        assert_eq!(claim(401).unwrap_err(), Full { bytes: 401 });
        assert_eq!(available(), 400, "a refused claim leaves nothing behind");
        let mut beside = Exempt::of(500);
        let second = claim(900).expect("what is beside makes room");
        beside.set(0);
        assert!(claim(0).is_err());
        drop((first, second));
        assert!(claim(1000).is_ok() && claim(1001).is_err());

        // SAFETY: as above.
        let block = unsafe { counting.alloc(layout) };
        assert_eq!(available(), 0);
        assert!(claim(0).is_err(), "what was not claimed counts too");
        // SAFETY: as above.
        unsafe { counting.dealloc(block, layout) };
        let leaves = std::thread::spawn(|| {
            crate::thread_number::current();
            note(-100);
        });
        leaves.join().unwrap();
        assert_eq!(available(), 1100, "a thread that ends tells what it has not told");
        HELD.fetch_add(100, Ordering::Relaxed);

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
        assert!(claim(1001).is_err(), "a cache is not emptied for what it could not make room for");
        assert_eq!(cache.0.load(Ordering::Relaxed), 600);
        assert!(claim(500).is_ok(), "a cache makes room");
        assert_eq!(cache.0.load(Ordering::Relaxed), 0);
        drop(cache);
        assert!(claim(1000).is_ok() && claim(1001).is_err());
        LIMIT.store(i64::MAX, Ordering::Relaxed);
    }
}
