//! Hash table from page id to frame, for pages that are not in their preferred frame.
//!
//! A bucket is one cache line: seven entries and a state word with a lock bit and the probe distance. An entry is one word, so a lookup takes no lock. A
//! lookup can only miss an entry that is being inserted; `insert` takes the lock of the home bucket and searches again. An entry whose home bucket is full
//! goes to a later bucket, and the home's probe distance says how far lookups must go. The distance only grows; with half of the entries empty it stays
//! zero in nearly every bucket.

use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{hint, thread};

use crate::page::PageId;

const FRAME_BITS: u32 = 28;
const ENTRIES: usize = 7;
const LOCKED: u64 = 1;

#[repr(align(64))]
struct Bucket {
    entries: [AtomicU64; ENTRIES],
    /// Bit 0: lock. From bit 1: probe distance in buckets.
    state: AtomicU64,
}

/// The hash table. It has twice as many entries as there are frames, so it never fills up.
pub struct PageTable {
    buckets: Vec<Bucket>,
}

/// Hashes a page id; ids come in runs.
#[inline(always)]
pub fn hash(pid: PageId) -> u64 {
    let mixed = pid.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Maps a hash to `0..count` without a division.
#[inline(always)]
pub fn reduce(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}

fn entry(pid: PageId, frame: usize) -> u64 {
    assert!(pid != 0 && pid < 1 << (64 - FRAME_BITS), "page id {pid} beyond the format");
    pid << FRAME_BITS | frame as u64
}

impl PageTable {
    pub fn new(frames: usize) -> PageTable {
        assert!(frames < 1 << FRAME_BITS);
        let buckets = (frames * 2).div_ceil(ENTRIES).max(8);
        let bucket = || Bucket { entries: std::array::from_fn(|_| AtomicU64::new(0)), state: AtomicU64::new(0) };
        PageTable { buckets: (0..buckets).map(|_| bucket()).collect() }
    }

    fn home(&self, pid: PageId) -> usize {
        reduce(hash(pid).rotate_left(17), self.buckets.len())
    }

    fn bucket(&self, home: usize, distance: usize) -> &Bucket {
        &self.buckets[(home + distance) % self.buckets.len()]
    }

    #[inline]
    pub fn find(&self, pid: PageId) -> Option<usize> {
        let home = self.home(pid);
        let reach = (self.buckets[home].state.load(Ordering::Acquire) >> 1) as usize;
        for distance in 0..=reach {
            for slot in &self.bucket(home, distance).entries {
                let word = slot.load(Ordering::Acquire);
                if word >> FRAME_BITS == pid {
                    return Some((word & ((1 << FRAME_BITS) - 1)) as usize);
                }
            }
        }
        None
    }

    fn lock(&self, home: usize) -> u64 {
        let state = &self.buckets[home].state;
        let mut spins = 0u32;
        loop {
            let word = state.load(Ordering::Relaxed);
            if word & LOCKED == 0
                && state.compare_exchange(word, word | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return word >> 1;
            }
            spins += 1;
            if spins.is_multiple_of(64) { thread::yield_now() } else { hint::spin_loop() }
        }
    }

    fn unlock(&self, home: usize, reach: u64) {
        self.buckets[home].state.store(reach << 1, Ordering::Release);
    }

    /// Maps `pid` to `frame`. `Err` holds the frame it is already mapped to.
    pub fn insert(&self, pid: PageId, frame: usize) -> Result<(), usize> {
        let home = self.home(pid);
        let reach = self.lock(home);
        if let Some(found) = self.find(pid) {
            self.unlock(home, reach);
            return Err(found);
        }
        for distance in 0..self.buckets.len() {
            for slot in &self.bucket(home, distance).entries {
                // Inserts with other home buckets may race for the same entry, hence the compare-exchange.
                if slot.load(Ordering::Relaxed) == 0
                    && slot.compare_exchange(0, entry(pid, frame), Ordering::Release, Ordering::Relaxed).is_ok()
                {
                    self.unlock(home, reach.max(distance as u64));
                    return Ok(());
                }
            }
        }
        unreachable!("the table has twice as many entries as there are frames")
    }

    /// Removes the entry of `pid`, which is in `frame`.
    pub fn remove(&self, pid: PageId, frame: usize) {
        let home = self.home(pid);
        let reach = self.lock(home);
        for distance in 0..=reach as usize {
            for slot in &self.bucket(home, distance).entries {
                if slot.load(Ordering::Relaxed) == entry(pid, frame) {
                    slot.store(0, Ordering::Release);
                    self.unlock(home, reach);
                    return;
                }
            }
        }
        unreachable!("page {pid} of frame {frame} is not in the page table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_exactly_the_inserted_pages() {
        const COUNT: u64 = if cfg!(miri) { 60 } else { 500 };
        let table = PageTable::new(COUNT as usize);
        for pid in 1..=COUNT {
            assert_eq!(table.insert(pid * 3, pid as usize), Ok(()));
        }
        assert_eq!(table.insert(30, 9), Err(10));
        for pid in 1..=3 * COUNT {
            let expected = (pid % 3 == 0).then_some((pid / 3) as usize);
            assert_eq!(table.find(pid), expected, "page {pid}");
        }
        for pid in (1..=COUNT).step_by(2) {
            table.remove(pid * 3, pid as usize);
        }
        for pid in 1..=COUNT {
            assert_eq!(table.find(pid * 3), (pid % 2 == 0).then_some(pid as usize));
        }
    }

    #[test]
    fn racing_inserts_of_one_page_agree_on_one_frame() {
        let table = PageTable::new(64);
        let winners: Vec<usize> = std::thread::scope(|scope| {
            let tasks: Vec<_> = (0..4usize)
                .map(|thread| {
                    let table = &table;
                    scope.spawn(move || {
                        (1..=50u64)
                            .map(|pid| match table.insert(pid, thread) {
                                Ok(()) => thread,
                                Err(found) => found,
                            })
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            let all: Vec<Vec<usize>> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
            assert!(all.iter().all(|seen| *seen == all[0]));
            all[0].clone()
        });
        for (at, winner) in winners.iter().enumerate() {
            assert_eq!(table.find(at as u64 + 1), Some(*winner));
        }
    }
}
