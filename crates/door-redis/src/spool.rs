//! A reply that does not fit into memory is written to an unnamed file and sent from there.
//!
//! The command writes the whole reply while it holds its keys, so the reply shows one point in time however slowly the client reads (DR-8). Memory holds one
//! block of it. The request stays at the front of the connection's input until the last byte has been handed over, as the reactor requires of a session that
//! pauses.

use std::sync::Arc;

use engine::Error;
use os::{Aligned, Device, Folder};
use reactor::Io;

/// Bytes per block of the file.
pub const BLOCK: usize = 256 << 10;
/// Values below this size go into the reply without a memory claim.
pub const LONG: u64 = 256 << 10;

/// The destination of a command's reply if memory has no room for it.
pub struct Spooling {
    folder: Arc<dyn Folder>,
    /// Start of the command's reply in the connection's output.
    mark: usize,
    spool: Option<Spool>,
}

pub struct Spool {
    device: Arc<dyn Device>,
    block: Aligned,
    /// Bytes written, and bytes sent.
    put: u64,
    sent: u64,
    /// The request's length in the input, and the durability LSN of the reply.
    pub size: usize,
    pub durability_lsn: u64,
}

fn failed(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Error::DiskFull,
        _ => Error::Io(std::io::Error::new(error.kind(), format!("a file for a long reply: {error}"))),
    }
}

impl Spooling {
    pub fn new(folder: &Arc<dyn Folder>, mark: usize) -> Spooling {
        Spooling { folder: folder.clone(), mark, spool: None }
    }

    /// Fails if a part of the reply is in the file: its destination is memory, which has no room for it.
    pub fn refuse(self) -> Result<(), Error> {
        match self.spool {
            Some(spool) => Err(Error::OutOfMemory(stdx::memory::Full { bytes: spool.put })),
            None => Ok(()),
        }
    }

    /// Discards what the command has written, because it runs again (DR-1).
    pub fn reset(&mut self) {
        self.spool = None;
    }

    /// Moves the output of the command so far to the file.
    pub fn take(&mut self, out: &mut Vec<u8>) -> Result<&mut Spool, Error> {
        let spool = match self.spool.take() {
            Some(spool) => spool,
            None => Spool::create(&self.folder)?,
        };
        let spool = self.spool.insert(spool);
        spool.put(&out[self.mark..])?;
        out.truncate(self.mark);
        Ok(spool)
    }

    /// Completes the reply. If a part of it is in the file, the whole reply is.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<Option<Spool>, Error> {
        if self.spool.is_none() {
            return Ok(None);
        }
        self.take(out)?.end()?;
        Ok(self.spool)
    }
}

impl Spool {
    /// Creates an empty file.
    pub fn create(folder: &Arc<dyn Folder>) -> Result<Spool, Error> {
        let device = folder.scratch().map_err(failed)?;
        Ok(Spool { device, block: Aligned::with_capacity(BLOCK), put: 0, sent: 0, size: 0, durability_lsn: 0 })
    }

    /// Returns the number of bytes written.
    pub fn len(&self) -> u64 {
        self.put
    }

    /// Overwrites the beginning of what was written.
    pub fn patch(&mut self, bytes: &[u8]) -> Result<(), Error> {
        assert!(bytes.len() as u64 <= self.put && bytes.len() <= BLOCK);
        if self.put < BLOCK as u64 {
            self.block.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        let mut first = Aligned::with_capacity(BLOCK);
        self.device.read(0, first.as_mut_slice()).map_err(failed)?;
        first.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        self.device.write(0, first.as_slice()).map_err(failed)
    }

    pub fn put(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let at = self.put as usize % BLOCK;
            let count = bytes.len().min(BLOCK - at);
            self.block.as_mut_slice()[at..at + count].copy_from_slice(&bytes[..count]);
            self.put += count as u64;
            bytes = &bytes[count..];
            if at + count == BLOCK {
                self.device.write(self.put - BLOCK as u64, self.block.as_slice()).map_err(failed)?;
            }
        }
        Ok(())
    }

    pub fn end(&mut self) -> Result<(), Error> {
        let at = self.put - self.put % BLOCK as u64;
        if at < self.put {
            self.device.write(at, self.block.as_slice()).map_err(failed)?;
        }
        Ok(())
    }

    /// Passes on everything that was written, a block at a time.
    pub fn replay<E: From<Error>>(&mut self, take: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        for from in (0..self.put).step_by(BLOCK) {
            self.device.read(from, self.block.as_mut_slice()).map_err(failed)?;
            let count = (self.put - from).min(BLOCK as u64) as usize;
            take(&self.block.as_slice()[..count])?;
        }
        Ok(())
    }

    /// Sends as much as the client takes. Returns true after the last byte.
    pub fn send(&mut self, io: &mut Io<'_>) -> Result<bool, Error> {
        while self.sent < self.put {
            if io.is_full() {
                return Ok(false);
            }
            let at = self.sent as usize % BLOCK;
            self.device.read(self.sent - at as u64, self.block.as_mut_slice()).map_err(failed)?;
            let count = (BLOCK - at).min((self.put - self.sent) as usize);
            io.out().extend_from_slice(&self.block.as_slice()[at..at + count]);
            self.sent += count as u64;
        }
        Ok(true)
    }
}

impl std::io::Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.put(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(Error::DiskFull) => Err(std::io::ErrorKind::StorageFull.into()),
            Err(error) => Err(std::io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
