//! The WAL ring, where records wait for the flush: reserve a range with one fetch-add, copy, publish.
//!
//! Hard part: reservations are ordered but copies end in any order, and the flusher may take only what is copied without a gap (PG-10). Each thread
//! publishes in a line of its own a lower bound of what it is still copying:
//!
//! ```text
//!   append:  line = head            (a bound before the reservation is made)
//!            start = head += len    (SeqCst: this is also the commit order)
//!            line = start           (exact from here on)
//!            wait until start + len fits behind `durable`; copy; mark pages dirty
//!            line = FREE            (Release)
//!   flush:   high = head; low = min(high, all lines)      everything below low is copied
//! ```
//! `high` is read before the lines: a thread that reserves later has a bound of at least `high`.

use os::memory::Mapping;
use stdx::padded::Padded;
use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::page::Lsn;

const FREE: u64 = u64::MAX;

/// The order of reservations and how much of it is copied. Separate from the bytes, so that a model checker can run it.
pub struct AppendOrder {
    head: Padded<AtomicU64>,
    lines: Vec<Padded<AtomicU64>>,
    /// One above the highest line ever used; the flusher reads no further.
    used: AtomicUsize,
}

impl AppendOrder {
    pub fn new(head: Lsn, threads: usize) -> AppendOrder {
        AppendOrder {
            head: Padded(AtomicU64::new(head)),
            lines: (0..threads).map(|_| Padded(AtomicU64::new(FREE))).collect(),
            used: AtomicUsize::new(0),
        }
    }

    pub fn head(&self) -> Lsn {
        self.head.0.load(Ordering::SeqCst)
    }

    /// Reserves `len` bytes for thread `slot`. Until `publish` the flusher stops before them.
    #[inline]
    pub fn reserve(&self, slot: usize, len: u64) -> Lsn {
        if self.used.load(Ordering::Relaxed) <= slot {
            self.used.fetch_max(slot + 1, Ordering::SeqCst);
        }
        let line = &self.lines[slot].0;
        debug_assert_eq!(line.load(Ordering::Relaxed), FREE, "one append at a time in a thread");
        line.store(self.head.0.load(Ordering::SeqCst), Ordering::SeqCst);
        let start = self.head.0.fetch_add(len, Ordering::SeqCst);
        line.store(start, Ordering::Release);
        start
    }

    #[inline]
    pub fn publish(&self, slot: usize) {
        self.lines[slot].0.store(FREE, Ordering::Release);
    }

    /// Returns the position below which everything is reserved and copied, and its pages are marked dirty.
    pub fn copied(&self) -> Lsn {
        let high = self.head.0.load(Ordering::SeqCst);
        let used = self.used.load(Ordering::SeqCst);
        self.lines[..used].iter().map(|line| line.0.load(Ordering::SeqCst)).fold(high, u64::min)
    }
}

/// The bytes of the ring. Position `lsn` is at `lsn % capacity`.
pub struct RingBytes {
    memory: Mapping,
    capacity: usize,
}

impl RingBytes {
    pub fn new(capacity: usize) -> std::io::Result<RingBytes> {
        assert!(capacity.is_power_of_two());
        Ok(RingBytes { memory: os::memory::map(capacity)?, capacity })
    }

    pub fn capacity(&self) -> u64 {
        self.capacity as u64
    }

    fn split(&self, at: Lsn, len: usize) -> (usize, usize) {
        let offset = (at as usize) & (self.capacity - 1);
        (offset, len.min(self.capacity - offset))
    }

    /// Copies `data` to position `at`. The caller has reserved `at..at + data.len()` and not published it, and the previous content of the range is durable.
    pub(crate) fn put(&self, at: Lsn, data: &[u8]) {
        assert!(data.len() <= self.capacity);
        let (offset, first) = self.split(at, data.len());
        let base = self.memory.as_ptr().cast::<u8>();
        // SAFETY: both pieces lie inside the mapping (`split`). By PG-10 this thread alone reserved the range, and the flusher reads only below
        // `AppendOrder::copied`, which stays at or below `at` until this thread publishes; so no other thread touches these bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), base.add(offset), first);
            std::ptr::copy_nonoverlapping(data.as_ptr().add(first), base, data.len() - first);
        }
    }

    /// Copies the stream from `at` on into `out`. The range must be published and not yet durable.
    pub(crate) fn get(&self, at: Lsn, out: &mut [u8]) {
        assert!(out.len() <= self.capacity);
        let (offset, first) = self.split(at, out.len());
        let base = self.memory.as_ptr().cast::<u8>();
        let rest = out.len() - first;
        // SAFETY: inside the mapping (`split`). Published bytes are not overwritten before the watermark has passed them (PG-11), and the flusher,
        // the only caller, has not advanced it yet. Publishing was a Release that `AppendOrder::copied` has acquired.
        unsafe {
            std::ptr::copy_nonoverlapping(base.add(offset), out.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(base, out.as_mut_ptr().add(first), rest);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn copied_stops_at_the_oldest_unpublished_reservation() {
        let order = AppendOrder::new(4096, 4);
        let first = order.reserve(0, 64);
        let second = order.reserve(1, 32);
        assert_eq!((first, second, order.copied()), (4096, 4160, 4096));
        order.publish(1);
        assert_eq!(order.copied(), 4096);
        order.publish(0);
        assert_eq!((order.copied(), order.head()), (4192, 4192));
    }

    #[test]
    fn bytes_wrap_around() {
        let bytes = RingBytes::new(4096).unwrap();
        let data: Vec<u8> = (0..200u8).collect();
        bytes.put(4096 * 3 - 100, &data);
        let mut out = vec![0; 200];
        bytes.get(4096 * 3 - 100, &mut out);
        assert_eq!(out, data);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use stdx::sync::{Arc, thread};

    /// PG-10: below `copied` every reservation has been published, in every interleaving.
    #[test]
    fn loom_copied_never_passes_an_unpublished_reservation() {
        loom::model(|| {
            let order = Arc::new(AppendOrder::new(0, 2));
            let cells: Arc<Vec<AtomicU64>> = Arc::new((0..2).map(|_| AtomicU64::new(0)).collect());
            let writers: Vec<_> = (0..2)
                .map(|slot| {
                    let (order, cells) = (order.clone(), cells.clone());
                    thread::spawn(move || {
                        let start = order.reserve(slot, 1);
                        cells[start as usize].store(1, Ordering::Relaxed);
                        order.publish(slot);
                    })
                })
                .collect();
            let copied = order.copied();
            for cell in &cells[..copied as usize] {
                assert_eq!(cell.load(Ordering::Relaxed), 1);
            }
            for writer in writers {
                writer.join().unwrap();
            }
            assert_eq!(order.copied(), 2);
        });
    }
}
