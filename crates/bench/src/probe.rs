//! The disk's own speed, measured directly: the scale for every figure that depends on it.
//!
//! O_DIRECT throughout, so that no page cache answers. Requests in flight are threads: at 128 they reach what io_uring
//! reaches on the disks tried, within a few percent, and need no code of their own.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use stdx::prng::Prng;

const BLOCK: usize = 4096;
const LARGE: usize = 1 << 20;

/// Memory aligned as O_DIRECT wants it, carved out of a larger vector.
struct Block {
    memory: Vec<u8>,
    from: usize,
    bytes: usize,
}

impl Block {
    fn new(bytes: usize) -> Block {
        let mut memory = vec![0u8; bytes + BLOCK];
        let from = memory.as_ptr().align_offset(BLOCK);
        // Not compressible and not zero: a disk may cheat on both.
        Prng::new(bytes as u64).fill(&mut memory);
        Block { memory, from, bytes }
    }

    fn as_slice(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.bytes]
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.bytes]
    }
}

/// A file of real, written blocks, removed on drop.
pub struct ProbeFile {
    path: PathBuf,
    bytes: u64,
}

impl ProbeFile {
    pub fn create(folder: &Path, bytes: u64) -> io::Result<ProbeFile> {
        let probe = ProbeFile { path: folder.join("probe"), bytes: bytes.next_multiple_of(LARGE as u64) };
        let file = probe.open(OFlags::empty())?;
        let block = Block::new(LARGE);
        for index in 0..probe.bytes / LARGE as u64 {
            file.write_all_at(block.as_slice(), index * LARGE as u64)?;
        }
        file.sync_all()?;
        Ok(probe)
    }

    fn open(&self, more: OFlags) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::DIRECT | more;
        Ok(File::from(rustix::fs::open(&self.path, flags, Mode::from_raw_mode(0o600))?))
    }

    /// 4 KiB writes, each on disk before the next (O_DSYNC), over blocks already written: median and p99.
    pub fn durable_write(&self, duration: Duration) -> io::Result<(Duration, Duration)> {
        let file = self.open(OFlags::DSYNC)?;
        let block = Block::new(BLOCK);
        let (start, mut times) = (Instant::now(), Vec::new());
        while start.elapsed() < duration || times.is_empty() {
            let offset = (times.len() * BLOCK) as u64 % self.bytes;
            let before = Instant::now();
            file.write_all_at(block.as_slice(), offset)?;
            times.push(before.elapsed());
        }
        times.sort_unstable();
        Ok((times[times.len() / 2], times[times.len() * 99 / 100]))
    }

    /// Bytes per second of 1 MiB writes over blocks already written, four in flight, with the final flush.
    pub fn sequential_write(&self, duration: Duration) -> io::Result<f64> {
        const IN_FLIGHT: u64 = 4;
        let next = AtomicU64::new(0);
        let start = Instant::now();
        self.in_threads(IN_FLIGHT, |file, _| {
            let block = Block::new(LARGE);
            while start.elapsed() < duration {
                let index = next.fetch_add(1, Ordering::Relaxed);
                file.write_all_at(block.as_slice(), index * LARGE as u64 % self.bytes)?;
            }
            Ok(())
        })?;
        self.open(OFlags::empty())?.sync_data()?;
        Ok(next.load(Ordering::Relaxed) as f64 * LARGE as f64 / start.elapsed().as_secs_f64())
    }

    /// Reads per second of 4 KiB at random places, `depth` in flight.
    pub fn random_read(&self, depth: u64, duration: Duration) -> io::Result<f64> {
        let (count, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let start = Instant::now();
        self.in_threads(depth, |file, seed| {
            let (mut block, mut random) = (Block::new(BLOCK), Prng::new(seed));
            while !stop.load(Ordering::Relaxed) {
                let offset = random.below(self.bytes / BLOCK as u64) * BLOCK as u64;
                file.read_exact_at(block.as_mut_slice(), offset)?;
                count.fetch_add(1, Ordering::Relaxed);
                if start.elapsed() > duration {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Ok(())
        })?;
        Ok(count.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
    }

    fn in_threads(&self, count: u64, body: impl Fn(&File, u64) -> io::Result<()> + Sync) -> io::Result<()> {
        let file = self.open(OFlags::empty())?;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count)
                .map(|seed| {
                    scope.spawn({
                        let (file, body) = (&file, &body);
                        move || body(file, seed)
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("a probe thread panicked"))
        })
    }
}

impl Drop for ProbeFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_filled() {
        let block = Block::new(BLOCK);
        assert_eq!(block.as_slice().as_ptr() as usize % BLOCK, 0);
        assert_eq!(block.as_slice().len(), BLOCK);
        assert!(block.as_slice().iter().any(|byte| *byte != 0));
    }
}
