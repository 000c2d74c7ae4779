//! The WAL as one stream: appending, waiting for durability, and accounting of space in the segments.
//!
//! Hard part: an append cannot fail, so a write is admitted only when the segments at hand take everything that may be in the ring, plus what undo of the
//! open transactions may append (PG-16). Such a write finds room even on a full disk.

use std::sync::Arc;
use std::time::Duration;

use os::{Aligned, Clock, Device};
use stdx::parker::Depth;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stdx::thread_number;
use stdx::watermark::Watermark;

use crate::error::{Error, Result};
use crate::page::Lsn;
use crate::wal::ring::{AppendOrder, RingBytes};
use crate::wal::segment::{BLOCK, Segments};

/// Largest piece of one write: big enough for the device's bandwidth, small enough that the first waiter of a batch is not held up.
pub(super) const CHUNK_MAX: usize = 1 << 20;

/// Interval at which the flusher retries while there is no segment to switch to.
pub(super) const NO_SPACE_RETRY: Duration = Duration::from_millis(50);

pub static LOG_SPACE: stdx::wait::Reason = stdx::wait::Reason::new("log_space");

/// The position of the next chunk in the current segment.
pub(super) struct SegmentTail {
    pub(super) device: Arc<dyn Device>,
    pub(super) position: u64,
    pub(super) staging: Aligned,
}

/// The write-ahead log of one database, open for appends.
pub struct Wal {
    pub(super) order: AppendOrder,
    pub(super) bytes: RingBytes,
    pub(crate) durable: Arc<Watermark>,
    pub(super) segments: Mutex<Segments>,
    pub(super) tail: Mutex<SegmentTail>,
    /// Bytes left in the current segment, and in the segments prepared after it.
    pub(super) left: AtomicU64,
    pub(super) ready: AtomicU64,
    /// Upper estimate of what undo of all open transactions may append.
    pub(super) reserved_bytes: AtomicU64,
    /// There is no segment to switch to.
    pub(super) is_out_of_space: AtomicBool,
    pub(super) epoch: u64,
    pub(super) database: u64,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) threaded: bool,
    /// A write failed. Whatever a simulated process still appends is dropped.
    pub(super) is_dead: AtomicBool,
    pub(crate) flushes: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) flush_ns: stdx::histogram::Histogram,
}

/// How to open the WAL; `start` is where recovery ended, `epoch` the boot number.
pub struct WalOptions {
    pub ring_bytes: usize,
    pub start: Lsn,
    pub epoch: u64,
    pub database: u64,
    pub threaded: bool,
}

impl Wal {
    /// Continues the stream at `options.start` in a new segment.
    pub fn open(options: &WalOptions, mut segments: Segments, clock: Arc<dyn Clock>) -> Result<Wal> {
        let device = segments.switch_first(options.start)?;
        let left = device.len() - BLOCK as u64;
        let bytes = RingBytes::new(options.ring_bytes).map_err(|error| Error::io("mapping the log ring", error))?;
        let staging = Aligned::with_capacity(CHUNK_MAX + BLOCK);
        Ok(Wal {
            order: AppendOrder::new(options.start, thread_number::MAX),
            bytes,
            durable: Arc::new(Watermark::new(options.start)),
            segments: Mutex::new(segments),
            tail: Mutex::new(SegmentTail { device, position: BLOCK as u64, staging }),
            left: AtomicU64::new(left),
            ready: AtomicU64::new(0),
            reserved_bytes: AtomicU64::new(0),
            is_out_of_space: AtomicBool::new(false),
            epoch: options.epoch,
            database: options.database,
            clock,
            threaded: options.threaded,
            is_dead: AtomicBool::new(false),
            flushes: AtomicU64::new(0),
            flushed_bytes: AtomicU64::new(0),
            flush_ns: stdx::histogram::Histogram::new(),
        })
    }

    pub fn head(&self) -> Lsn {
        self.order.head()
    }

    /// Returns the position below which everything is copied and its pages are marked dirty: a checkpoint cannot be later.
    pub fn copied(&self) -> Lsn {
        self.order.copied()
    }

    pub fn ring_bytes(&self) -> u64 {
        self.bytes.capacity()
    }

    /// Reserves room for `parts`, copies them, calls `mark(start, end)`, publishes, and returns the end. Cannot fail; waits if the ring is full.
    pub fn append(&self, parts: &[&[u8]], mark: impl FnOnce(Lsn, Lsn)) -> Lsn {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        assert!(len.is_multiple_of(8) && len as u64 <= self.bytes.capacity() / 2, "a mini-transaction of {len} bytes");
        let slot = thread_number::current();
        let start = self.order.reserve(slot, len as u64);
        let end = start + len as u64;
        if end > self.durable.get() + self.bytes.capacity() && !self.is_dead.load(Ordering::Relaxed) {
            self.wait_for_room(end - self.bytes.capacity());
        }
        let mut at = start;
        for part in parts {
            self.bytes.put(at, part);
            at += part.len() as u64;
        }
        mark(start, end);
        self.order.publish(slot);
        self.notify_append(end);
        end
    }

    /// Waits until the watermark reaches `durable`. The flusher can pass everything before this thread's own reservation, so the wait ends (PG-12).
    #[cold]
    fn wait_for_room(&self, durable: Lsn) {
        if self.threaded {
            self.wake_flusher();
            let _waiting = stdx::wait::announce(&LOG_SPACE);
            self.durable.wait(durable);
        } else {
            while self.durable.get() < durable {
                match self.flush_once() {
                    Ok(_) => {}
                    Err(Error::DiskFull { .. }) => {
                        panic!("the WAL ring and the disk are full: the simulated process would wait for ever")
                    }
                    // The simulated machine is dead, but its program runs until it notices: its appends are dropped.
                    Err(_) => {
                        self.is_dead.store(true, Ordering::Relaxed);
                        return;
                    }
                }
            }
        }
    }

    /// Blocks until everything up to `lsn` is durable. `Err(DiskFull)` if there is no segment to switch to.
    pub fn flush_to(&self, lsn: Lsn) -> Result<()> {
        if self.threaded {
            self.wake_flusher();
            while !self.durable.wait_timeout(lsn, NO_SPACE_RETRY) {
                if self.is_out_of_space() {
                    return Err(Error::DiskFull { what: "the log" });
                }
            }
            return Ok(());
        }
        while self.durable.get() < lsn {
            self.flush_once()?;
        }
        Ok(())
    }

    /// Returns true after a failed write.
    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// Returns true if the bytes that may be in the ring and those of undo could exceed the segments at hand: no write may be admitted then (PG-16).
    #[inline]
    pub fn is_short_of_space(&self) -> bool {
        self.left.load(Ordering::Relaxed) + self.ready.load(Ordering::Relaxed) < self.needed()
    }

    fn needed(&self) -> u64 {
        self.bytes.capacity() + CHUNK_MAX as u64 + self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// Returns true while there is no segment to switch to.
    pub fn is_out_of_space(&self) -> bool {
        self.is_out_of_space.load(Ordering::Relaxed)
    }

    /// Changes the bytes reserved for undo.
    pub fn reserve_bytes(&self, more: u64, less: u64) {
        self.reserved_bytes.fetch_add(more, Ordering::Relaxed);
        self.reserved_bytes.fetch_sub(less, Ordering::Relaxed);
    }

    /// Releases the segments that end at or before `keep`.
    pub fn release(&self, keep: Lsn) -> Result<()> {
        self.segments.lock().release(keep)
    }

    /// Returns true if a segment should be prepared.
    pub fn wants_segment(&self) -> bool {
        self.ready.load(Ordering::Relaxed) == 0 || self.is_short_of_space()
    }

    /// Deletes old segments that are kept only for reuse. Returns true if there were any.
    pub fn trim_old_segments(&self) -> Result<bool> {
        self.segments.lock().trim_old_segments()
    }

    /// Prepares the next segment, or as many as `needed` asks for.
    pub fn prepare(&self) -> Result<()> {
        let mut segments = self.segments.lock();
        let missing = self.needed().saturating_sub(self.left.load(Ordering::Relaxed)).max(1);
        let result = segments.prepare(missing);
        self.ready.store(segments.ready_bytes(), Ordering::Relaxed);
        result
    }

    /// Called at the end of an append. Wakes a flusher that has nothing at all to write, or has many bytes.
    #[inline]
    fn notify_append(&self, end: Lsn) {
        match self.durable.producer.depth() {
            Depth::Awake => {}
            Depth::Light if end - self.durable.get().min(end) < self.eager_flush_bytes() => {}
            Depth::Light | Depth::Deep => self.durable.producer.unpark(),
        }
    }

    /// Bytes that are flushed without a request, so that appends do not find a full ring.
    pub(super) fn eager_flush_bytes(&self) -> u64 {
        (self.bytes.capacity() / 4).min(CHUNK_MAX as u64)
    }

    /// Wakes the flusher from any sleep: a thread cannot continue without it, or `stop` was set.
    pub fn wake_flusher(&self) {
        self.durable.producer.unpark();
    }
}
