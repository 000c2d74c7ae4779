//! Batches through io_uring: one ring for each thread that has a batch, made when first needed. Where the kernel refuses a ring, the caller uses plain calls.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use io_uring::{IoUring, opcode, squeue, types};

use crate::Aligned;

const DEPTH: usize = 128;
/// Writes under way at once. Whoever writes many is in no hurry, and what others ask of the device meanwhile, a commit's write of the log above all, stands behind those under way.
const WRITES: usize = 32;

thread_local! {
    static RING: RefCell<Option<Result<IoUring, ()>>> = const { RefCell::new(None) };
}

/// Bytes moved by each operation, or None if there is no ring.
pub type Moved = Option<Vec<io::Result<usize>>>;

/// Set to any value, `BELUGA_PLAIN_IO` keeps batches away from io_uring.
fn refused() -> bool {
    std::env::var_os("BELUGA_PLAIN_IO").is_some()
}

fn with_ring(f: impl FnOnce(&mut IoUring) -> io::Result<Vec<io::Result<usize>>>) -> Moved {
    RING.with_borrow_mut(|slot| {
        let ring =
            slot.get_or_insert_with(|| if refused() { Err(()) } else { IoUring::new(DEPTH as u32).map_err(drop) });
        let result = f(ring.as_mut().ok()?);
        match result {
            Ok(moved) => Some(moved),
            Err(_) => {
                // A ring in doubt is not used again. Its file is closed here, which waits for nothing: `run` has collected every completion before it fails.
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

/// Sends each piece to its socket, as `send` with `flags` would. None if there is no ring.
///
/// `flags` must hold MSG_DONTWAIT: a full socket is reported, not waited for.
pub fn send_many(sends: &[(RawFd, &[u8])], flags: libc::c_int) -> Moved {
    assert!(flags & libc::MSG_DONTWAIT != 0);
    let entries: Vec<squeue::Entry> = sends
        .iter()
        .map(|(fd, bytes)| opcode::Send::new(types::Fd(*fd), bytes.as_ptr(), bytes.len() as u32).flags(flags).build())
        .collect();
    with_ring(|ring| run(ring, entries, DEPTH))
}

/// Reads of one file that are under way: started without waiting, collected when they are done. It owns the buffers that the kernel writes into.
///
/// Its descriptor is readable while there is something to collect. Where the completion of a read is noticed is the thread that submitted it, on its way out of
/// any system call; so a thread that submits and then waits in epoll for the descriptor is woken when the disk has answered.
pub struct ReadRing {
    ring: IoUring,
    file: File,
    buffers: Aligned,
    unit: usize,
    free: Vec<u32>,
    depth: usize,
    /// Pushed and not yet submitted.
    pushed: usize,
}

impl ReadRing {
    /// Room for `depth` reads of `unit` bytes each. Fails where the kernel refuses a ring.
    pub(crate) fn new(file: File, unit: usize, depth: usize) -> io::Result<ReadRing> {
        if refused() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // No interrupt for a processor that runs our thread: it learns of the completion at its next system call. Kernels before 5.19 do not know that.
        let quiet = IoUring::builder().setup_coop_taskrun().build(depth as u32);
        let ring = quiet.or_else(|_| IoUring::new(depth as u32))?;
        let buffers = Aligned::with_capacity(unit * depth);
        Ok(ReadRing { ring, file, buffers, unit, free: (0..depth as u32).collect(), depth, pushed: 0 })
    }

    pub fn fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }

    pub fn in_flight(&self) -> usize {
        self.depth - self.free.len()
    }

    /// Prepares a read of one unit at `offset`; returns its slot, which no other read has until it is collected, or None if `depth` are under way.
    pub fn push(&mut self, offset: u64) -> Option<u32> {
        let slot = self.free.pop()?;
        let buffer = &mut self.buffers.as_mut_slice()[slot as usize * self.unit..][..self.unit];
        let entry = opcode::Read::new(types::Fd(self.file.as_raw_fd()), buffer.as_mut_ptr(), self.unit as u32)
            .offset(offset)
            .build()
            .user_data(u64::from(slot));
        // SAFETY: the buffer belongs to the slot and lives in `self.buffers`, which `drop` keeps until every read has completed; nobody looks at it, or gives it to
        // another read, before that (`collect`). The queue has `depth` entries, as many as there are slots, so it is never full.
        unsafe { self.ring.submission().push(&entry) }.expect("as many entries as slots");
        self.pushed += 1;
        Some(slot)
    }

    /// Hands what was pushed to the kernel.
    pub fn submit(&mut self) {
        while self.pushed > 0 {
            self.pushed -= enter(&mut self.ring, 0).min(self.pushed);
        }
    }

    /// Waits until something can be collected, or for a moment; returns at once if nothing is under way.
    pub fn wait(&mut self) {
        self.submit();
        if self.in_flight() > 0 {
            enter(&mut self.ring, 1);
        }
    }

    /// Hands out what is done: slot and bytes. The bytes are gone afterwards, and the slot is free.
    pub fn collect(&mut self, each: &mut dyn FnMut(u32, io::Result<&[u8]>)) {
        let done: Vec<(u32, i32)> =
            self.ring.completion().map(|completion| (completion.user_data() as u32, completion.result())).collect();
        for (slot, result) in done {
            let bytes = &self.buffers.as_slice()[slot as usize * self.unit..][..self.unit];
            let whole = result >= 0 && result as usize == self.unit;
            let error = || match result {
                ..0 => io::Error::from_raw_os_error(-result),
                _ => io::ErrorKind::UnexpectedEof.into(),
            };
            each(slot, if whole { Ok(bytes) } else { Err(error()) });
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

/// Hands what was pushed to the kernel and waits for `want` completions; returns how many entries it took. 0: interrupted or short of something, try again.
fn enter(ring: &mut IoUring, want: usize) -> usize {
    match ring.submit_and_wait(want) {
        Ok(count) => count,
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => 0,
        // The kernel may still use the buffers: giving them back would be unsound, and who waits for them would wait for ever.
        Err(error) => {
            eprintln!("beluga: io_uring stopped with operations under way: {error}");
            std::process::abort();
        }
    }
}

/// Submits all entries, `depth` at a time, at most `DEPTH`, and returns only when every one has completed.
fn run(ring: &mut IoUring, entries: Vec<squeue::Entry>, depth: usize) -> io::Result<Vec<io::Result<usize>>> {
    let mut results: Vec<io::Result<usize>> = (0..entries.len()).map(|_| Ok(0)).collect();
    for (batch, chunk) in entries.chunks(depth).enumerate() {
        for (at, entry) in chunk.iter().enumerate() {
            let entry = entry.clone().user_data((batch * depth + at) as u64);
            // SAFETY: the buffers of the entries are borrowed by our caller for the whole call, and this function does not return before each
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
