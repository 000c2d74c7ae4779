//! Makes the log durable in batches.
//!
//! One flush is under way at a time; everybody else's bytes ride in the next one (group commit). What nobody waits for is not worth a flush of its own: a transaction's changes
//! go with its end. So an append does not wake the flusher, whoever waits for the watermark does (`Watermark::ask`, L9); without a question the log follows after a lull.
//!
//! Few writers meet no timer. A crowd does: when a flush has let go dozens of replies at once, the next one gives their clients a quarter of a millisecond to come
//! back. The flush, its wake-ups and the system calls around it are then shared by more, and with so many under way that counts for more than the moment.
//!
//! A failed write stops the process: after a lost write the device and we disagree, and no retry can tell (docs/decisions).

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
use crate::wal::ring::{Bytes, Order};
use crate::wal::segment::{BLOCK, CHUNK_HEADER, ChunkHeader, Segments};

/// Largest piece of one write: big enough for the device's bandwidth, small enough that the first waiter of a batch is not held up.
const CHUNK_MAX: usize = 1 << 20;

/// With so many who wait for a flush it is worth while to let them work first where all processors are at work; with fewer after so many flushes it is not.
const SEVERAL: usize = 4;
const FEW_TIMES: u32 = 100;

/// A flush that so many wait for is not followed by the next one at once.
const CROWD: usize = 32;
/// With more bytes waiting there is enough to write: a larger group would save little.
const ENOUGH: u64 = 64 << 10;
/// How long it lets others come, at the most.
const PATIENCE: Duration = Duration::from_micros(250);

/// What nobody asks for is written after so long at the most.
const LULL: Duration = Duration::from_millis(20);

/// How long the flusher sleeps before it looks for room again.
const STUCK_PAUSE: Duration = Duration::from_millis(50);

pub static LOG_SPACE: stdx::wait::Reason = stdx::wait::Reason::new("log_space");

/// Where the next chunk goes.
struct Tail {
    device: Arc<dyn Device>,
    position: u64,
    staging: Aligned,
}

pub struct Log {
    order: Order,
    bytes: Bytes,
    pub(crate) durable: Arc<Watermark>,
    segments: Mutex<Segments>,
    tail: Mutex<Tail>,
    /// Bytes of the current segment not yet written, and of those prepared behind it.
    left: AtomicU64,
    ready: AtomicU64,
    /// What undoing all open transactions may append, about.
    reserved_bytes: AtomicU64,
    /// There is no segment to turn to.
    is_stuck: AtomicBool,
    epoch: u64,
    database: u64,
    clock: Arc<dyn Clock>,
    threaded: bool,
    /// A write failed. What a simulated program still appends goes nowhere.
    is_dead: AtomicBool,
    pub(crate) flushes: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) flush_ns: stdx::histogram::Histogram,
}

pub struct LogOptions {
    pub ring_bytes: usize,
    pub start: Lsn,
    pub epoch: u64,
    pub database: u64,
    pub threaded: bool,
}

/// Whether the flusher takes a processor from those who work when it wakes.
///
/// Where all are at work and several commit, it does not: more of them come to share the flush. But they may be other programs' threads, and a lone client whose
/// flusher stands behind a compiler waits for milliseconds instead of microseconds.
#[derive(Default)]
struct Manners {
    gives_way: bool,
    /// Flushes in a row that few waited for.
    few: u32,
}

impl Manners {
    /// To be told before each flush for how many it is.
    fn suit(&mut self, crowd: usize) {
        if crowd >= SEVERAL {
            self.few = 0;
            if !std::mem::replace(&mut self.gives_way, true) {
                os::cpu::set_batch_scheduling();
            }
        } else if self.gives_way {
            self.few += 1;
            if self.few == FEW_TIMES {
                *self = Manners::default();
                os::cpu::set_normal_scheduling();
            }
        }
    }
}

impl Log {
    /// Continues the stream at `options.start` in a new segment.
    pub fn open(options: &LogOptions, mut segments: Segments, clock: Arc<dyn Clock>) -> Result<Log> {
        let device = segments.begin(options.start)?;
        let left = device.len() - BLOCK as u64;
        let bytes = Bytes::new(options.ring_bytes).map_err(|error| Error::io("mapping the log ring", error))?;
        let staging = Aligned::with_capacity(CHUNK_MAX + BLOCK);
        Ok(Log {
            order: Order::new(options.start, thread_number::MAX),
            bytes,
            durable: Arc::new(Watermark::new(options.start)),
            segments: Mutex::new(segments),
            tail: Mutex::new(Tail { device, position: BLOCK as u64, staging }),
            left: AtomicU64::new(left),
            ready: AtomicU64::new(0),
            reserved_bytes: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
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
        self.tell(end);
        end
    }

    /// The flusher passes everything before this thread's own reservation, so the wait ends (L3).
    #[cold]
    fn wait_for_room(&self, durable: Lsn) {
        if self.threaded {
            self.rouse();
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
            self.rouse();
            while !self.durable.wait_timeout(lsn, STUCK_PAUSE) {
                if self.is_stuck() {
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

    /// Writes what is copied so far, at most one chunk, and raises the watermark. False if there was nothing to write.
    ///
    /// After an error other than a full disk nothing is ever written again: the flusher's thread stops the process, simulation finds a dead log.
    pub fn flush_once(&self) -> Result<bool> {
        self.write_chunk().inspect_err(|error| {
            if !matches!(error, Error::DiskFull { .. }) {
                self.is_dead.store(true, Ordering::Relaxed);
            }
        })
    }

    /// True after a write that failed.
    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    fn write_chunk(&self) -> Result<bool> {
        let mut tail = self.tail.lock();
        if self.is_dead.load(Ordering::Relaxed) {
            return Err(Error::Io {
                what: "writing the log".into(),
                error: std::io::Error::other("the simulated machine is dead"),
            });
        }
        let durable = self.durable.get();
        let copied = self.order.copied();
        debug_assert!(copied >= durable);
        if copied == durable {
            return Ok(false);
        }
        let mut room = self.left.load(Ordering::Relaxed) as usize;
        if room < 2 * BLOCK {
            self.turn(&mut tail, durable)?;
            room = self.left.load(Ordering::Relaxed) as usize;
        }
        let len = ((copied - durable) as usize).min(CHUNK_MAX).min(room - CHUNK_HEADER);
        let started = self.clock.monotonic_ns();
        let position = tail.position;
        let disk_bytes = ChunkHeader::disk_bytes(len);
        let Tail { device, staging, .. } = &mut *tail;
        let chunk = &mut staging.as_mut_slice()[..disk_bytes as usize];
        self.bytes.get(durable, &mut chunk[CHUNK_HEADER..CHUNK_HEADER + len]);
        chunk[CHUNK_HEADER + len..].fill(0);
        let header = ChunkHeader {
            epoch: self.epoch,
            start: durable,
            len: len as u32,
            wall_ms: self.clock.wall_ms(),
            database: self.database,
        };
        header.seal(chunk);
        device.write_durable(position, chunk).map_err(|error| Error::io("writing the log", error))?;
        tail.position += disk_bytes;
        self.left.fetch_sub(disk_bytes, Ordering::Relaxed);
        drop(tail);
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flushed_bytes.fetch_add(disk_bytes, Ordering::Relaxed);
        self.flush_ns.record(self.clock.monotonic_ns().saturating_sub(started));
        self.durable.advance(durable + len as u64);
        Ok(true)
    }

    fn turn(&self, tail: &mut Tail, start: Lsn) -> Result<()> {
        let mut segments = self.segments.lock();
        tail.device = segments.turn(start)?;
        tail.position = BLOCK as u64;
        // In this order: what is counted twice for a moment would let a write in.
        self.ready.store(segments.ready_bytes(), Ordering::Relaxed);
        self.left.store(tail.device.len() - BLOCK as u64, Ordering::Relaxed);
        Ok(())
    }

    /// True if what may be in the ring and what undo may add could outgrow the segments at hand: then nobody may start a write (L7).
    #[inline]
    pub fn short_of_room(&self) -> bool {
        self.left.load(Ordering::Relaxed) + self.ready.load(Ordering::Relaxed) < self.needed()
    }

    fn needed(&self) -> u64 {
        self.bytes.capacity() + CHUNK_MAX as u64 + self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// True while the flusher has no segment to turn to.
    pub fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
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
        self.ready.load(Ordering::Relaxed) == 0 || self.short_of_room()
    }

    /// Deletes files that are only kept to save work; true if there were any.
    pub fn give_back(&self) -> Result<bool> {
        self.segments.lock().give_back()
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
    fn tell(&self, end: Lsn) {
        match self.durable.producer.depth() {
            Depth::Awake => {}
            Depth::Light if end - self.durable.get().min(end) < self.much() => {}
            Depth::Light | Depth::Deep => self.durable.producer.unpark(),
        }
    }

    /// So many bytes are written without a question, that appenders do not meet a full ring.
    fn much(&self) -> u64 {
        (self.bytes.capacity() / 4).min(CHUNK_MAX as u64)
    }

    /// Wakes the flusher whatever it waits for: somebody cannot go on, or the stop flag is up.
    pub fn rouse(&self) {
        self.durable.producer.unpark();
    }

    /// The flusher's loop. Returns when `stop` is set and everything is durable or nothing can be; an error means that the log device failed.
    /// `watch` hears of every advance.
    pub fn run(&self, stop: &AtomicBool, watch: &dyn Fn(Lsn)) -> Result<()> {
        let mut manners = Manners::default();
        loop {
            let crowd = self.durable.take_async_waiters();
            manners.suit(crowd);
            match self.flush_once() {
                Ok(true) => {
                    self.is_stuck.store(false, Ordering::Relaxed);
                    watch(self.durable.get());
                    if crowd >= CROWD {
                        self.let_come();
                    }
                }
                Ok(false) => {}
                // No segment to turn to. Nothing is lost: what waits stays in the ring, new writes are refused, and room may come back.
                Err(Error::DiskFull { .. }) => {
                    self.is_stuck.store(true, Ordering::Relaxed);
                    if stop.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    std::thread::sleep(STUCK_PAUSE);
                    continue;
                }
                Err(error) => return Err(error),
            }
            let stops = stop.load(Ordering::Acquire);
            if stops && self.order.head() == self.durable.get() {
                return Ok(());
            }
            if stops || self.is_wanted() {
                if self.order.copied() == self.durable.get() {
                    // Somebody is between reservation and publication: back in a moment.
                    stdx::sync::thread::yield_now();
                }
                continue;
            }
            self.rest(stop);
        }
    }

    /// Is there a reason to write now?
    fn is_wanted(&self) -> bool {
        let (head, durable) = (self.order.head(), self.durable.get());
        self.durable.requested().min(head) > durable || head - durable >= self.much()
    }

    /// Sleeps for a moment, unless there is enough to write already, or somebody cannot go on without a flush.
    fn let_come(&self) {
        self.durable.producer.park_timeout(Depth::Awake, PATIENCE, || self.order.head() - self.durable.get() >= ENOUGH);
    }

    /// Sleeps until there is a reason to write. After a lull what nobody asked for is one too; without that, any append.
    fn rest(&self, stop: &AtomicBool) {
        let parker = &self.durable.producer;
        let was_lull = parker.park_timeout(Depth::Light, LULL, || self.is_wanted() || stop.load(Ordering::SeqCst));
        if was_lull {
            parker.park(Depth::Deep, || self.order.head() != self.durable.get() || stop.load(Ordering::SeqCst));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_flusher_gives_way_to_several_and_not_to_one() {
        let mut manners = Manners::default();
        manners.suit(1);
        assert!(!manners.gives_way);
        manners.suit(SEVERAL);
        for _ in 1..FEW_TIMES {
            manners.suit(SEVERAL - 1);
        }
        assert!(manners.gives_way, "a lull is not the end");
        manners.suit(SEVERAL);
        manners.suit(1);
        assert!(manners.gives_way);
        for _ in 1..FEW_TIMES {
            manners.suit(1);
        }
        assert!(!manners.gives_way);
    }
}
