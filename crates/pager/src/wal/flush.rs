//! Makes the log durable in batches.
//!
//! One flush is under way at a time; everybody else's bytes ride in the next one (group commit). What nobody waits for is not worth a flush of its own: a transaction's changes
//! go with its end. So an append does not wake the flusher, whoever waits for the watermark does (`Watermark::ask`, L9); without a question the log follows after a lull.
//!
//! Few writers meet no timer. A crowd does: when a flush has let go dozens of replies at once, the next one gives their clients a quarter of a millisecond to come
//! back. The flush, its wake-ups and the system calls around it are then shared by more, and with so many under way that counts for more than the moment.
//!
//! A failed write stops the process: after a lost write the device and we disagree, and no retry can tell (docs/decisions).

use std::time::Duration;

use stdx::parker::Depth;
use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::page::Lsn;
use crate::wal::segment::{BLOCK, CHUNK_HEADER, ChunkHeader};
use crate::wal::stream::{CHUNK_MAX, NO_SPACE_RETRY, SegmentTail, Wal};

/// With so many who wait for a flush it is worth while to let them work first where all processors are at work; with fewer after so many flushes it is not.
const YIELD_WAITERS_MIN: usize = 4;
const YIELD_END_FLUSHES: u32 = 100;

/// A flush that so many wait for is not followed by the next one at once.
const GROUP_WAITERS_MIN: usize = 32;
/// With more bytes waiting there is enough to write: a larger group would save little.
const GROUP_BYTES_ENOUGH: u64 = 64 << 10;
/// How long it lets others come, at the most.
const GROUP_DELAY: Duration = Duration::from_micros(250);

/// What nobody asks for is written after so long at the most.
const IDLE_FLUSH_DELAY: Duration = Duration::from_millis(20);

/// Whether the flusher takes a processor from those who work when it wakes.
///
/// Where all are at work and several commit, it does not: more of them come to share the flush. But they may be other programs' threads, and a lone client whose
/// flusher stands behind a compiler waits for milliseconds instead of microseconds.
#[derive(Default)]
struct FlusherPriority {
    is_yielding: bool,
    /// Flushes in a row that few waited for.
    few: u32,
}

impl FlusherPriority {
    /// To be told before each flush for how many it is.
    fn adjust(&mut self, crowd: usize) {
        if crowd >= YIELD_WAITERS_MIN {
            self.few = 0;
            if !std::mem::replace(&mut self.is_yielding, true) {
                os::cpu::set_batch_scheduling();
            }
        } else if self.is_yielding {
            self.few += 1;
            if self.few == YIELD_END_FLUSHES {
                *self = FlusherPriority::default();
                os::cpu::set_normal_scheduling();
            }
        }
    }
}

impl Wal {
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
            self.switch_segment(&mut tail, durable)?;
            room = self.left.load(Ordering::Relaxed) as usize;
        }
        let len = ((copied - durable) as usize).min(CHUNK_MAX).min(room - CHUNK_HEADER);
        let started = self.clock.monotonic_ns();
        let position = tail.position;
        let disk_bytes = ChunkHeader::disk_bytes(len);
        let SegmentTail { device, staging, .. } = &mut *tail;
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

    fn switch_segment(&self, tail: &mut SegmentTail, start: Lsn) -> Result<()> {
        let mut segments = self.segments.lock();
        tail.device = segments.turn(start)?;
        tail.position = BLOCK as u64;
        // In this order: what is counted twice for a moment would let a write in.
        self.ready.store(segments.ready_bytes(), Ordering::Relaxed);
        self.left.store(tail.device.len() - BLOCK as u64, Ordering::Relaxed);
        Ok(())
    }

    /// True if what may be in the ring and what undo may add could outgrow the segments at hand: then nobody may start a write (L7).
    /// The flusher's loop. Returns when `stop` is set and everything is durable or nothing can be; an error means that the log device failed.
    /// `watch` hears of every advance.
    pub fn run(&self, stop: &AtomicBool, watch: &dyn Fn(Lsn)) -> Result<()> {
        let mut priority = FlusherPriority::default();
        loop {
            let crowd = self.durable.take_async_waiters();
            priority.adjust(crowd);
            match self.flush_once() {
                Ok(true) => {
                    self.is_out_of_space.store(false, Ordering::Relaxed);
                    watch(self.durable.get());
                    if crowd >= GROUP_WAITERS_MIN {
                        self.wait_for_group();
                    }
                }
                Ok(false) => {}
                // No segment to turn to. Nothing is lost: what waits stays in the ring, new writes are refused, and room may come back.
                Err(Error::DiskFull { .. }) => {
                    self.is_out_of_space.store(true, Ordering::Relaxed);
                    if stop.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    std::thread::sleep(NO_SPACE_RETRY);
                    continue;
                }
                Err(error) => return Err(error),
            }
            let stops = stop.load(Ordering::Acquire);
            if stops && self.order.head() == self.durable.get() {
                return Ok(());
            }
            if stops || self.should_flush() {
                if self.order.copied() == self.durable.get() {
                    // Somebody is between reservation and publication: back in a moment.
                    stdx::sync::thread::yield_now();
                }
                continue;
            }
            self.sleep(stop);
        }
    }

    /// Is there a reason to write now?
    fn should_flush(&self) -> bool {
        let (head, durable) = (self.order.head(), self.durable.get());
        self.durable.requested().min(head) > durable || head - durable >= self.eager_flush_bytes()
    }

    /// Sleeps for a moment, unless there is enough to write already, or somebody cannot go on without a flush.
    fn wait_for_group(&self) {
        self.durable
            .producer
            .park_timeout(Depth::Awake, GROUP_DELAY, || self.order.head() - self.durable.get() >= GROUP_BYTES_ENOUGH);
    }

    /// Sleeps until there is a reason to write. After a lull what nobody asked for is one too; without that, any append.
    fn sleep(&self, stop: &AtomicBool) {
        let parker = &self.durable.producer;
        let was_lull =
            parker.park_timeout(Depth::Light, IDLE_FLUSH_DELAY, || self.should_flush() || stop.load(Ordering::SeqCst));
        if was_lull {
            parker.park(Depth::Deep, || self.order.head() != self.durable.get() || stop.load(Ordering::SeqCst));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_flusher_is_yielding_to_several_and_not_to_one() {
        let mut priority = FlusherPriority::default();
        priority.adjust(1);
        assert!(!priority.is_yielding);
        priority.adjust(YIELD_WAITERS_MIN);
        for _ in 1..YIELD_END_FLUSHES {
            priority.adjust(YIELD_WAITERS_MIN - 1);
        }
        assert!(priority.is_yielding, "a lull is not the end");
        priority.adjust(YIELD_WAITERS_MIN);
        priority.adjust(1);
        assert!(priority.is_yielding);
        for _ in 1..YIELD_END_FLUSHES {
            priority.adjust(1);
        }
        assert!(!priority.is_yielding);
    }
}
