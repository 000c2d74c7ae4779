//! The flusher: makes the WAL durable in batches (group commit).
//!
//! One flush is in progress at a time; all other threads' bytes go into the next one. Bytes that no thread waits for are not worth a flush of their own: a
//! transaction's changes are flushed with its end. So an append does not wake the flusher, but a thread that waits for the watermark does
//! (`Watermark::request`, PG-18). Without such a request the WAL is flushed after an idle period of 20 ms.
//!
//! With few waiters there is no delay. With many there is: after a flush that released dozens of replies, the next one waits up to 250 microseconds for
//! their clients to come back. The flush, its wake-ups and the system calls around it are then shared by more requests, which outweighs the delay.
//!
//! A failed write stops the process: after a lost write the device and we disagree, and no retry can tell (docs/decisions).

use std::time::Duration;

use stdx::parker::Depth;
use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::page::Lsn;
use crate::wal::segment::{BLOCK, CHUNK_HEADER, ChunkHeader};
use crate::wal::stream::{CHUNK_MAX, NO_SPACE_RETRY, SegmentTail, Wal};

/// From this many waiters on, the flusher does not preempt working threads: where all processors are busy, more requests join the flush. It ends after
/// `YIELD_END_FLUSHES` flushes with fewer waiters.
const YIELD_WAITERS_MIN: usize = 4;
const YIELD_END_FLUSHES: u32 = 100;

/// After a flush with this many waiters, the next one is delayed to gather a group.
const GROUP_WAITERS_MIN: usize = 32;
/// Bytes that end the delay: a larger group would save little.
const GROUP_BYTES_ENOUGH: u64 = 64 << 10;
/// Longest delay of a flush.
const GROUP_DELAY: Duration = Duration::from_micros(250);

/// Longest time until bytes that no thread waits for are flushed.
const IDLE_FLUSH_DELAY: Duration = Duration::from_millis(20);

/// After so many flushes the flusher looks how long it has waited for a processor.
const DELAY_CHECK_FLUSHES: u32 = 8;
/// Longest average wait for a processor with which the flusher goes on yielding.
const DELAY_MAX: Duration = Duration::from_micros(300);
/// The flushes until it yields again: at first, and at most. Each attempt in vain doubles their number.
const PREEMPTING_FLUSHES_MIN: u32 = 2_000;
const PREEMPTING_FLUSHES_MAX: u32 = 128_000;

/// Scheduling class of the flusher: whether it preempts working threads when it wakes.
///
/// With several waiters it does not, if all processors are busy: more commits then share the flush. But the busy threads may belong to other programs, which run to the end of their time slices. A
/// lone client whose flusher queues behind a compiler would wait milliseconds instead of microseconds, so with few waiters the flusher preempts; and a crowd waits as long, so the flusher yields
/// only while it gets a processor soon.
#[derive(Default)]
struct FlusherPriority {
    is_yielding: bool,
    /// Consecutive flushes with few waiters.
    few: u32,
    /// Flushes since the last look at the delay, and the delay then.
    flushes: u32,
    delay: Option<Duration>,
    /// Flushes until it may yield again, and those of the next such time.
    preempting: u32,
    preempting_next: u32,
}

impl FlusherPriority {
    /// Adjusts the class before each flush; `waiters` is the number of waiters, `run_delay` tells how long the thread has waited for a processor.
    fn adjust(&mut self, waiters: usize, run_delay: impl Fn() -> Option<Duration>) {
        if waiters < YIELD_WAITERS_MIN {
            self.few += u32::from(self.is_yielding);
            if self.few == YIELD_END_FLUSHES {
                self.preempt();
            }
            return;
        }
        self.few = 0;
        if self.preempting > 0 {
            self.preempting -= 1;
        } else if !self.is_yielding {
            (self.is_yielding, self.flushes, self.delay) = (true, 0, run_delay());
            os::cpu::set_batch_scheduling();
        } else {
            self.check_delay(run_delay);
        }
    }

    /// Ends yielding if the flusher has waited for a processor too long.
    fn check_delay(&mut self, run_delay: impl Fn() -> Option<Duration>) {
        self.flushes += 1;
        if self.flushes < DELAY_CHECK_FLUSHES {
            return;
        }
        let before = std::mem::replace(&mut self.delay, run_delay());
        self.flushes = 0;
        let (Some(before), Some(now)) = (before, self.delay) else { return };
        if now.saturating_sub(before) <= DELAY_MAX * DELAY_CHECK_FLUSHES {
            self.preempting_next = 0;
            return;
        }
        self.preempting_next = (self.preempting_next * 2).clamp(PREEMPTING_FLUSHES_MIN, PREEMPTING_FLUSHES_MAX);
        self.preempting = self.preempting_next;
        self.preempt();
    }

    fn preempt(&mut self) {
        (self.is_yielding, self.few) = (false, 0);
        os::cpu::set_normal_scheduling();
    }
}

impl Wal {
    /// Writes the bytes copied so far, at most one chunk, and advances the watermark. Returns false if there was nothing to write.
    ///
    /// After an error other than a full disk nothing is ever written again: the flusher thread stops the process, a simulation finds a dead WAL.
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
        tail.device = segments.switch(start)?;
        tail.position = BLOCK as u64;
        // In this order: bytes counted twice for a moment would admit a write too many.
        self.ready.store(segments.ready_bytes(), Ordering::Relaxed);
        self.left.store(tail.device.len() - BLOCK as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Runs the flusher's loop. Returns when `stop` is set and everything is durable or nothing more can be; an error means that the WAL device failed.
    /// `watch` is called after every advance of the watermark.
    pub fn run(&self, stop: &AtomicBool, watch: &dyn Fn(Lsn)) -> Result<()> {
        let mut priority = FlusherPriority::default();
        loop {
            let waiters = self.durable.take_async_waiters();
            priority.adjust(waiters, os::cpu::run_delay);
            match self.flush_once() {
                Ok(true) => {
                    self.is_out_of_space.store(false, Ordering::Relaxed);
                    watch(self.durable.get());
                    if waiters >= GROUP_WAITERS_MIN {
                        self.wait_for_group();
                    }
                }
                Ok(false) => {}
                // There is no segment to switch to. Nothing is lost: the bytes stay in the ring, new writes are refused, and space may become free.
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
                    // A thread is between reservation and publication: it publishes in a moment.
                    stdx::sync::thread::yield_now();
                }
                continue;
            }
            self.sleep(stop);
        }
    }

    /// Returns true if a thread waits for bytes that are not durable, or if there are many.
    fn should_flush(&self) -> bool {
        let (head, durable) = (self.order.head(), self.durable.get());
        self.durable.requested().min(head) > durable || head - durable >= self.eager_flush_bytes()
    }

    /// Waits for more requests to join the next flush, unless there are enough bytes to write or a thread cannot continue without a flush.
    fn wait_for_group(&self) {
        self.durable
            .producer
            .park_timeout(Depth::Awake, GROUP_DELAY, || self.order.head() - self.durable.get() >= GROUP_BYTES_ENOUGH);
    }

    /// Parks until there is a reason to flush. After the idle period unrequested bytes are one too; if there are none, any append is.
    fn sleep(&self, stop: &AtomicBool) {
        let parker = &self.durable.producer;
        let was_idle =
            parker.park_timeout(Depth::Light, IDLE_FLUSH_DELAY, || self.should_flush() || stop.load(Ordering::SeqCst));
        if was_idle {
            parker.park(Depth::Deep, || self.order.head() != self.durable.get() || stop.load(Ordering::SeqCst));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn no_delay() -> Option<Duration> {
        Some(Duration::ZERO)
    }

    #[test]
    fn the_flusher_is_yielding_to_several_and_not_to_one() {
        let mut priority = FlusherPriority::default();
        priority.adjust(1, no_delay);
        assert!(!priority.is_yielding);
        priority.adjust(YIELD_WAITERS_MIN, no_delay);
        for _ in 1..YIELD_END_FLUSHES {
            priority.adjust(YIELD_WAITERS_MIN - 1, no_delay);
        }
        assert!(priority.is_yielding, "a few flushes with few waiters do not end it");
        priority.adjust(YIELD_WAITERS_MIN, no_delay);
        priority.adjust(1, no_delay);
        assert!(priority.is_yielding);
        for _ in 1..YIELD_END_FLUSHES {
            priority.adjust(1, no_delay);
        }
        assert!(!priority.is_yielding);
    }

    #[test]
    fn the_flusher_is_yielding_while_it_gets_a_processor_soon() {
        let mut priority = FlusherPriority::default();
        let waited = std::cell::Cell::new(Duration::ZERO);
        let mut flush = |delay: Duration| {
            waited.set(waited.get() + delay);
            priority.adjust(YIELD_WAITERS_MIN, || Some(waited.get()));
            priority.is_yielding
        };
        assert!((0..100).all(|_| flush(DELAY_MAX)));
        let flushes = (0..).take_while(|_| flush(DELAY_MAX * 10)).count();
        assert!(flushes < 2 * DELAY_CHECK_FLUSHES as usize, "{flushes}");
        let preempting = (0..).take_while(|_| !flush(Duration::ZERO)).count();
        assert!(preempting >= PREEMPTING_FLUSHES_MIN as usize - 1, "{preempting}");
        while flush(DELAY_MAX * 10) {}
        let longer = (0..).take_while(|_| !flush(Duration::ZERO)).count();
        assert!(longer > preempting, "each attempt in vain is followed by a longer time");
        assert!((0..100).all(|_| flush(Duration::ZERO)), "other programs have ended");
    }
}
