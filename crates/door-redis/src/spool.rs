//! A reply that is too long for memory: it lies in a file without a name until the client has taken it.
//!
//! The command writes the whole reply while it holds its keys, so that the reply shows one moment, however slowly the client reads. Memory holds one block of it. The request stays in front of the connection's input until
//! the last byte is on its way, as the reactor asks of a session that pauses.

use std::sync::Arc;

use engine::Error;
use os::{Aligned, Device, Folder};
use reactor::Io;

/// The file is written and read in blocks of so many bytes.
pub const BLOCK: usize = 256 << 10;
/// Shorter values go into the reply without a question.
pub const LONG: u64 = 256 << 10;

/// Where a command's reply goes if memory has no room for it.
pub struct Spooling {
    folder: Arc<dyn Folder>,
    /// Where the command's reply begins in the connection's output.
    mark: usize,
    spool: Option<Spool>,
}

pub struct Spool {
    device: Arc<dyn Device>,
    block: Aligned,
    /// Bytes that were put, and bytes that were sent.
    put: u64,
    sent: u64,
    /// The request's length in the input, and the log position that the reply depends on.
    pub size: usize,
    pub gate: u64,
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

    /// The command runs again: what it has written does not count.
    pub fn reset(&mut self) {
        self.spool = None;
    }

    /// Takes what the command has written so far out of the output.
    pub fn take(&mut self, out: &mut Vec<u8>) -> Result<&mut Spool, Error> {
        let spool = match self.spool.take() {
            Some(spool) => spool,
            None => {
                let device = self.folder.scratch().map_err(failed)?;
                Spool { device, block: Aligned::with_capacity(BLOCK), put: 0, sent: 0, size: 0, gate: 0 }
            }
        };
        let spool = self.spool.insert(spool);
        spool.put(&out[self.mark..])?;
        out.truncate(self.mark);
        Ok(spool)
    }

    /// The reply is whole. If it lies in a file, all of it does.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<Option<Spool>, Error> {
        if self.spool.is_none() {
            return Ok(None);
        }
        self.take(out)?.end()?;
        Ok(self.spool)
    }
}

impl Spool {
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

    /// Sends as much as the client takes. True: that was the rest.
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
