//! The WAL as one stream.

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

/// How long the flusher sleeps before it looks for room again.
pub(super) const NO_SPACE_RETRY: Duration = Duration::from_millis(50);

pub static LOG_SPACE: stdx::wait::Reason = stdx::wait::Reason::new("log_space");

/// Where the next chunk goes.
pub(super) struct SegmentTail {
    pub(super) device: Arc<dyn Device>,
    pub(super) position: u64,
    pub(super) staging: Aligned,
}

pub struct Wal {
    pub(super) order: AppendOrder,
    pub(super) bytes: RingBytes,
    pub(crate) durable: Arc<Watermark>,
    pub(super) segments: Mutex<Segments>,
    pub(super) tail: Mutex<SegmentTail>,
    /// Bytes of the current segment not yet written, and of those prepared behind it.
    pub(super) left: AtomicU64,
    pub(super) ready: AtomicU64,
    /// What undoing all open transactions may append, about.
    pub(super) reserved_bytes: AtomicU64,
    /// There is no segment to turn to.
    pub(super) is_out_of_space: AtomicBool,
    pub(super) epoch: u64,
    pub(super) database: u64,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) threaded: bool,
    /// A write failed. What a simulated program still appends goes nowhere.
    pub(super) is_dead: AtomicBool,
    pub(crate) flushes: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) flush_ns: stdx::histogram::Histogram,
}

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
        let device = segments.begin(options.start)?;
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

    /// Everything below is copied and its pages are marked: where a checkpoint may begin at the latest.
    pub fn copied(&self) -> Lsn {
        self.order.copied()
    }

    pub fn ring_bytes(&self) -> u64 {
        self.bytes.capacity()
    }

    /// Reserves room for `parts`, copies them, runs `mark(start, end)`, publishes. Cannot fail; waits if the ring is full.
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

    /// The flusher passes everything before this thread's own reservation, so the wait ends (L3).
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
                        panic!("the ring is full and so is the disk: the simulated process waits for ever")
                    }
                    // The simulated machine is dead, but its program runs until it notices: whatever it still writes into the ring goes nowhere.
                    Err(_) => {
                        self.is_dead.store(true, Ordering::Relaxed);
                        return;
                    }
                }
            }
        }
    }

    /// Blocks until everything up to `lsn` is durable, or the log has no segment to turn to.
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

    /// True after a write that failed.
    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn is_short_of_space(&self) -> bool {
        self.left.load(Ordering::Relaxed) + self.ready.load(Ordering::Relaxed) < self.needed()
    }

    fn needed(&self) -> u64 {
        self.bytes.capacity() + CHUNK_MAX as u64 + self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// True while the flusher has no segment to turn to.
    pub fn is_out_of_space(&self) -> bool {
        self.is_out_of_space.load(Ordering::Relaxed)
    }

    /// Changes what undo may need.
    pub fn reserve_bytes(&self, more: u64, less: u64) {
        self.reserved_bytes.fetch_add(more, Ordering::Relaxed);
        self.reserved_bytes.fetch_sub(less, Ordering::Relaxed);
    }

    /// Gives up the segments that end at or before `keep`.
    pub fn release(&self, keep: Lsn) -> Result<()> {
        self.segments.lock().release(keep)
    }

    /// True if a segment should be prepared.
    pub fn wants_segment(&self) -> bool {
        self.ready.load(Ordering::Relaxed) == 0 || self.is_short_of_space()
    }

    /// Deletes files that are only kept to save work; true if there were any.
    pub fn trim_old_segments(&self) -> Result<bool> {
        self.segments.lock().trim_old_segments()
    }

    /// Prepares the next segment, or as many as the log wants.
    pub fn prepare(&self) -> Result<()> {
        let mut segments = self.segments.lock();
        let missing = self.needed().saturating_sub(self.left.load(Ordering::Relaxed)).max(1);
        let result = segments.prepare(missing);
        self.ready.store(segments.ready_bytes(), Ordering::Relaxed);
        result
    }

    /// An append has ended. It wakes a flusher that has nothing at all to write, or has much.
    #[inline]
    fn notify_append(&self, end: Lsn) {
        match self.durable.producer.depth() {
            Depth::Awake => {}
            Depth::Light if end - self.durable.get().min(end) < self.eager_flush_bytes() => {}
            Depth::Light | Depth::Deep => self.durable.producer.unpark(),
        }
    }

    /// So many bytes are written without a question, that appenders do not meet a full ring.
    pub(super) fn eager_flush_bytes(&self) -> u64 {
        (self.bytes.capacity() / 4).min(CHUNK_MAX as u64)
    }

    /// Wakes the flusher whatever it waits for: somebody cannot go on, or the stop flag is up.
    pub fn wake_flusher(&self) {
        self.durable.producer.unpark();
    }
}
