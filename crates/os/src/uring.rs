//! Batches through io_uring, and rings for asynchronous reads.
//!
//! Each thread that submits a batch gets a ring of its own, made on first use. Where the kernel refuses a ring, the caller falls back to plain calls.
//!
//! Hard part: the kernel reads and writes buffers after the submission has returned, so a buffer must outlive its completion on every path (OS-3).

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use io_uring::{IoUring, opcode, squeue, types};

use crate::Aligned;

const DEPTH: usize = 128;
/// Writes in flight at once. Bulk writes are not urgent, and every other request to the device, above all the WAL write of a commit, queues behind the writes in flight.
const WRITES: usize = 32;

thread_local! {
    static RING: RefCell<Option<Result<IoUring, ()>>> = const { RefCell::new(None) };
}

/// The bytes that each operation has moved, or None if there is no ring.
pub type Moved = Option<Vec<io::Result<usize>>>;

/// Returns true if the environment variable `BELUGA_PLAIN_IO` disables io_uring.
fn is_disabled() -> bool {
    std::env::var_os("BELUGA_PLAIN_IO").is_some()
}

fn with_ring(f: impl FnOnce(&mut IoUring) -> io::Result<Vec<io::Result<usize>>>) -> Moved {
    RING.with_borrow_mut(|slot| {
        let ring =
            slot.get_or_insert_with(|| if is_disabled() { Err(()) } else { IoUring::new(DEPTH as u32).map_err(drop) });
        let result = f(ring.as_mut().ok()?);
        match result {
            Ok(moved) => Some(moved),
            Err(_) => {
                // A ring that has failed is not used again. Closing it waits for nothing: `run` has collected every completion before it fails.
                *slot = Some(Err(()));
                None
            }
        }
    })
}

pub fn read_many(fd: RawFd, ops: &mut [(u64, &mut [u8])]) -> Moved {
    let entries: Vec<squeue::Entry> = ops
        .iter_mut()
        .map(|(offset, buf)| {
            opcode::Read::new(types::Fd(fd), buf.as_mut_ptr(), buf.len() as u32).offset(*offset).build()
        })
        .collect();
    with_ring(|ring| run(ring, entries, DEPTH))
}

pub fn write_many(fd: RawFd, ops: &[(u64, &[u8])]) -> Moved {
    let entries: Vec<squeue::Entry> = ops
        .iter()
        .map(|(offset, buf)| opcode::Write::new(types::Fd(fd), buf.as_ptr(), buf.len() as u32).offset(*offset).build())
        .collect();
    with_ring(|ring| run(ring, entries, WRITES))
}

/// Sends each piece to its socket in one submission. A full socket is reported as `WouldBlock`, not waited for, and a peer that is gone raises no signal. Returns None if there is no ring.
pub fn send_many(sends: &[(BorrowedFd<'_>, &[u8])]) -> Moved {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let entries: Vec<squeue::Entry> = sends
        .iter()
        .map(|(fd, bytes)| {
            opcode::Send::new(types::Fd(fd.as_raw_fd()), bytes.as_ptr(), bytes.len() as u32).flags(flags).build()
        })
        .collect();
    with_ring(|ring| run(ring, entries, DEPTH))
}

/// Asynchronous reads of one file: started without waiting, collected when they have completed. It owns the buffers that the kernel writes into (OS-3).
///
/// Its descriptor is readable while there are completions to collect. The kernel posts a completion in the thread that submitted the read, when that thread returns from
/// a system call. A thread that submits and then waits in epoll for the descriptor is therefore woken when the disk has answered.
pub struct ReadRing {
    ring: IoUring,
    file: File,
    buffers: Aligned,
    unit: usize,
    free: Vec<u32>,
    depth: usize,
    /// Reads that are pushed and not yet submitted.
    pushed: usize,
}

impl ReadRing {
    /// Makes a ring for `depth` reads of `unit` bytes each. Fails where the kernel refuses a ring.
    pub(crate) fn new(file: File, unit: usize, depth: usize) -> io::Result<ReadRing> {
        if is_disabled() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // The thread learns of a completion at its next system call; no interrupt is sent to the processor that runs it. Kernels before 5.19 lack the flag.
        let quiet = IoUring::builder().setup_coop_taskrun().build(depth as u32);
        let ring = quiet.or_else(|_| IoUring::new(depth as u32))?;
        let buffers = Aligned::with_capacity(unit * depth);
        Ok(ReadRing { ring, file, buffers, unit, free: (0..depth as u32).collect(), depth, pushed: 0 })
    }

    /// Returns a duplicate of the ring's descriptor, to be polled for completions.
    pub fn poll_fd(&self) -> io::Result<OwnedFd> {
        // SAFETY: OS-3: the ring keeps its descriptor open as long as `self` lives.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }.try_clone_to_owned()
    }

    /// Returns how many reads are pushed and not yet collected.
    pub fn in_flight(&self) -> usize {
        self.depth - self.free.len()
    }

    /// Prepares a read of one unit at `offset`. Returns its slot, which no other read uses until this one is collected, or None if `depth` reads are in flight.
    pub fn push(&mut self, offset: u64) -> Option<u32> {
        let slot = self.free.pop()?;
        let buffer = &mut self.buffers.as_mut_slice()[slot as usize * self.unit..][..self.unit];
        let entry = opcode::Read::new(types::Fd(self.file.as_raw_fd()), buffer.as_mut_ptr(), self.unit as u32)
            .offset(offset)
            .build()
            .user_data(u64::from(slot));
        // SAFETY: OS-3: the buffer belongs to the slot and lives in `self.buffers`, which `drop` keeps until every read has completed. Nothing accesses it or gives it to
        // another read before that (`collect`). The queue has `depth` entries, as many as there are slots, so it is never full.
        unsafe { self.ring.submission().push(&entry) }.expect("as many entries as slots");
        self.pushed += 1;
        Some(slot)
    }

    /// Submits the pushed reads to the kernel.
    pub fn submit(&mut self) {
        while self.pushed > 0 {
            self.pushed -= enter(&mut self.ring, 0).min(self.pushed);
        }
    }

    /// Submits, then waits until a read can be collected or the wait is interrupted. Returns at once if no read is in flight.
    pub fn wait(&mut self) {
        self.submit();
        if self.in_flight() > 0 {
            enter(&mut self.ring, 1);
        }
    }

    /// Calls `each` with the slot and the bytes of every completed read. The bytes are valid during the call; afterwards the slot is free.
    pub fn collect(&mut self, each: &mut dyn FnMut(u32, io::Result<&[u8]>)) {
        let done: Vec<(u32, i32)> =
            self.ring.completion().map(|completion| (completion.user_data() as u32, completion.result())).collect();
        for (slot, result) in done {
            let bytes = &self.buffers.as_slice()[slot as usize * self.unit..][..self.unit];
            let is_whole = result >= 0 && result as usize == self.unit;
            let error = || match result {
                ..0 => io::Error::from_raw_os_error(-result),
                _ => io::ErrorKind::UnexpectedEof.into(),
            };
            each(slot, if is_whole { Ok(bytes) } else { Err(error()) });
            self.free.push(slot);
        }
    }
}

impl Drop for ReadRing {
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            self.wait();
            self.collect(&mut |_, _| {});
        }
    }
}

/// Submits the pushed entries and waits for `want` completions. Returns how many entries the kernel took; 0 if the call was interrupted or the kernel lacks resources, and the caller tries again.
fn enter(ring: &mut IoUring, want: usize) -> usize {
    match ring.submit_and_wait(want) {
        Ok(count) => count,
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => 0,
        // The kernel may still use the buffers (OS-3): freeing them would be unsound, and a caller that waits for them would wait for ever.
        Err(error) => {
            eprintln!("beluga: io_uring failed with operations in flight: {error}");
            std::process::abort();
        }
    }
}

/// Submits all entries, `depth` at a time and at most `DEPTH`. Returns only when every entry has completed.
fn run(ring: &mut IoUring, entries: Vec<squeue::Entry>, depth: usize) -> io::Result<Vec<io::Result<usize>>> {
    let mut results: Vec<io::Result<usize>> = (0..entries.len()).map(|_| Ok(0)).collect();
    for (batch, chunk) in entries.chunks(depth).enumerate() {
        for (at, entry) in chunk.iter().enumerate() {
            let entry = entry.clone().user_data((batch * depth + at) as u64);
            // SAFETY: OS-3: our caller borrows the buffers of the entries for the whole call, and this function does not return before each
            // submitted entry has completed.
            unsafe { ring.submission().push(&entry) }.map_err(|_| io::Error::other("the ring is full"))?;
        }
        let mut done = 0;
        while done < chunk.len() {
            enter(ring, chunk.len() - done);
            for completion in ring.completion() {
                let result = completion.result();
                results[completion.user_data() as usize] =
                    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result as usize) };
                done += 1;
            }
        }
    }
    Ok(results)
}
