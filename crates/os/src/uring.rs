//! Batches through io_uring: one ring for each thread that has a batch, made when first needed. Where the kernel refuses a ring, the caller uses plain calls.

use std::cell::RefCell;
use std::io;
use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, squeue, types};

const DEPTH: usize = 128;

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
    with_ring(|ring| run(ring, entries))
}

pub fn write_many(fd: RawFd, ops: &[(u64, &[u8])]) -> Moved {
    let entries: Vec<squeue::Entry> = ops
        .iter()
        .map(|(offset, buf)| opcode::Write::new(types::Fd(fd), buf.as_ptr(), buf.len() as u32).offset(*offset).build())
        .collect();
    with_ring(|ring| run(ring, entries))
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
    with_ring(|ring| run(ring, entries))
}

/// Submits all entries, `DEPTH` at a time, and returns only when every one has completed.
fn run(ring: &mut IoUring, entries: Vec<squeue::Entry>) -> io::Result<Vec<io::Result<usize>>> {
    let mut results: Vec<io::Result<usize>> = (0..entries.len()).map(|_| Ok(0)).collect();
    for (batch, chunk) in entries.chunks(DEPTH).enumerate() {
        for (at, entry) in chunk.iter().enumerate() {
            let entry = entry.clone().user_data((batch * DEPTH + at) as u64);
            // SAFETY: the buffers of the entries are borrowed by our caller for the whole call, and this function does not return before each
            // submitted entry has completed.
            unsafe { ring.submission().push(&entry) }.map_err(|_| io::Error::other("the ring is full"))?;
        }
        let mut done = 0;
        while done < chunk.len() {
            match ring.submit_and_wait(chunk.len() - done) {
                Ok(_) => {}
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                // The kernel may still write into the buffers: giving them back would be unsound.
                Err(error) => {
                    eprintln!("beluga: io_uring stopped in the middle of a batch: {error}");
                    std::process::abort();
                }
            }
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
