//! Reading the WAL back from its segments.
//!
//! Hard part: finding the end of the WAL, and telling an end from damage. A crash can tear only the last chunk, since flushes are one at a time. So a chunk
//! that fails its checksum ends the WAL if nothing newer follows it, and is corruption if something does (PG-15). After a crash the stream continues at the
//! end of the last closed mini-transaction, in a new segment. So the bytes of a segment beyond the start of its successor are void, and so is a whole
//! segment that starts there or later. The same cut applies to a database that was opened at an earlier point on purpose.

use std::sync::Arc;

use os::{Aligned, Device};

use crate::error::{Error, Result};
use crate::page::Lsn;
use crate::wal::log_store::{LogStore, SegmentInfo};
use crate::wal::record::{self, Record};
use crate::wal::segment::{BLOCK, CHUNK_HEADER, ChunkHeader};

const READ_BYTES: usize = 2 << 20;

/// Where recovery stops before the end of the WAL.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryTarget {
    /// Only mini-transactions that end at or before this position.
    pub lsn: Option<Lsn>,
    /// Only chunks written at or before this time, in milliseconds since 1970.
    pub wall_ms: Option<u64>,
}

/// Reads chunks one after another and cuts the stream into closed mini-transactions.
pub struct WalReader {
    log: Arc<dyn LogStore>,
    database: u64,
    until: RecoveryTarget,
    from: Lsn,
    device: Arc<dyn Device>,
    position: u64,
    /// Start of the next segment. Bytes of this segment beyond it are void.
    limit: Option<Lsn>,
    window: Aligned,
    /// Range of the device positions that the window holds.
    window_start: u64,
    window_end: u64,
    used: Vec<SegmentInfo>,
    epoch: u64,
    wall_ms: u64,
    /// Stream bytes not yet delivered, starting at `buffer_start`.
    buffer: Vec<u8>,
    buffer_start: Lsn,
    finished: bool,
}

/// Where the WAL ends.
#[derive(Clone, Debug)]
pub struct WalEnd {
    /// The end of the last closed mini-transaction: the stream continues here.
    pub lsn: Lsn,
    pub epoch: u64,
    pub wall_ms: u64,
    /// Segments that hold the stream.
    pub used: Vec<SegmentInfo>,
}

impl WalReader {
    /// Starts reading such that every record from `from` on is delivered. `from` is the start of a mini-transaction.
    pub fn open(log: &Arc<dyn LogStore>, database: u64, from: Lsn, until: RecoveryTarget) -> Result<WalReader> {
        let all = log.segments()?;
        let first = all.iter().rev().find(|segment| segment.start <= from);
        let Some(first) = first.copied() else {
            return Err(Error::Corrupt {
                what: format!("no log segment covers position {from}, where the last checkpoint says recovery starts"),
                file: "log".into(),
                page: None,
            });
        };
        let device = log.open(first.number)?;
        Ok(WalReader {
            log: log.clone(),
            database,
            until,
            from,
            device,
            position: BLOCK as u64,
            limit: successor(&all, first.number).map(|next| next.start),
            window: Aligned::with_capacity(READ_BYTES),
            window_start: 0,
            window_end: 0,
            used: vec![first],
            epoch: 0,
            wall_ms: 0,
            buffer: Vec::new(),
            buffer_start: first.start,
            finished: false,
        })
    }

    /// Delivers closed mini-transactions to `each`, about `budget` bytes of them. Returns false at the end.
    ///
    /// `each` gets the records from `from` on in order; the records of a mini-transaction are consecutive.
    pub fn next(&mut self, budget: usize, each: &mut dyn FnMut(&Record<'_>) -> Result<()>) -> Result<bool> {
        let mut done = 0;
        while done < budget {
            let closed = self.closed_bytes()?;
            if closed == 0 {
                if self.finished || !self.read_chunk()? {
                    self.finished = true;
                    return Ok(false);
                }
                continue;
            }
            let mut at = 0;
            while at < closed {
                at = self.deliver(at, each)?;
            }
            self.buffer.drain(..closed);
            self.buffer_start += closed as u64;
            done += closed;
        }
        Ok(true)
    }

    /// Delivers the mini-transaction at `at`. Returns the offset of the next one.
    fn deliver(&self, at: usize, each: &mut dyn FnMut(&Record<'_>) -> Result<()>) -> Result<usize> {
        let mut end = at;
        loop {
            let len = self.record_len(end)?.expect("closed records are whole");
            let last = record::closes(&self.buffer[end..]);
            end += len;
            if last {
                break;
            }
        }
        let (lsn_start, lsn_end) = (self.buffer_start + at as u64, self.buffer_start + end as u64);
        let mut next = at;
        while next < end {
            let len = self.record_len(next)?.expect("closed records are whole");
            let record = record::decode(&self.buffer[next..next + len], lsn_start, lsn_end)
                .map_err(|what| self.corrupt(next, &what))?;
            each(&record)?;
            next += len;
        }
        Ok(end)
    }

    /// Returns the next piece of the stream as it was written, without what precedes `from`; `None` at the end. `next` is not called as well.
    pub fn next_chunk(&mut self) -> Result<Option<(ChunkHeader, Vec<u8>)>> {
        while !self.finished {
            self.finished = !self.read_chunk()?;
            if self.buffer.is_empty() {
                continue;
            }
            let bytes = std::mem::take(&mut self.buffer);
            let (start, len) = (self.buffer_start, bytes.len() as u32);
            self.buffer_start += u64::from(len);
            let header = ChunkHeader { epoch: self.epoch, start, len, wall_ms: self.wall_ms, database: self.database };
            return Ok(Some((header, bytes)));
        }
        Ok(None)
    }

    /// Returns the end of the WAL; valid after `next` has returned false.
    pub fn end(&self) -> WalEnd {
        WalEnd { lsn: self.buffer_start, epoch: self.epoch, wall_ms: self.wall_ms, used: self.used.clone() }
    }

    fn corrupt(&self, at: usize, what: &str) -> Error {
        Error::Corrupt {
            what: format!("{what} at log position {}", self.buffer_start + at as u64),
            file: self.device.name().into(),
            page: None,
        }
    }

    fn record_len(&self, at: usize) -> Result<Option<usize>> {
        match record::length(&self.buffer[at..]) {
            None => Ok(None),
            Some(Err(what)) => Err(self.corrupt(at, &what)),
            Some(Ok(len)) => Ok((at + len <= self.buffer.len()).then_some(len)),
        }
    }

    /// Returns the length of the closed mini-transactions at the front of the buffer that `until` allows.
    fn closed_bytes(&mut self) -> Result<usize> {
        if self.buffer_start < self.from {
            return Ok(0);
        }
        let (mut at, mut closed) = (0, 0);
        while at < self.buffer.len() {
            let Some(len) = self.record_len(at)? else { break };
            at += len;
            if record::closes(&self.buffer[at - len..]) {
                if self.until.lsn.is_some_and(|limit| self.buffer_start + at as u64 > limit) {
                    self.finished = true;
                    break;
                }
                closed = at;
            }
        }
        Ok(closed)
    }

    /// Appends the payload of the next chunk to the buffer. Returns false at the end of the WAL.
    fn read_chunk(&mut self) -> Result<bool> {
        loop {
            if let Some(header) = self.chunk_at(self.position)?
                && self.continues(header)
            {
                return self.take(header);
            }
            // The segment ends here, or a chunk of the file's former use follows: the next segment continues, or this is the end.
            if !self.open_next()? {
                return self.end_or_corrupt();
            }
        }
    }

    fn buffer_end(&self) -> Lsn {
        self.buffer_start + self.buffer.len() as u64
    }

    fn continues(&self, header: ChunkHeader) -> bool {
        header.start == self.buffer_end() && header.epoch >= self.epoch && self.limit != Some(header.start)
    }

    fn take(&mut self, header: ChunkHeader) -> Result<bool> {
        if self.until.wall_ms.is_some_and(|limit| header.wall_ms > limit) {
            return Ok(false);
        }
        let end = header.start + u64::from(header.len);
        let len = self.limit.map_or(end, |limit| end.min(limit)) - header.start;
        let from = (self.position - self.window_start) as usize + CHUNK_HEADER;
        self.buffer.extend_from_slice(&self.window.as_slice()[from..from + len as usize]);
        // A segment may begin in the middle of a record; `from` is the start of one.
        let skip = self.from.saturating_sub(self.buffer_start).min(self.buffer.len() as u64);
        self.buffer.drain(..skip as usize);
        self.buffer_start += skip;
        self.epoch = header.epoch;
        self.wall_ms = header.wall_ms;
        self.position += ChunkHeader::disk_bytes(header.len as usize);
        Ok(true)
    }

    /// Returns the header of the valid chunk at a position of the open segment, with its bytes in the window.
    fn chunk_at(&mut self, position: u64) -> Result<Option<ChunkHeader>> {
        if !self.fill(position, BLOCK as u64)? {
            return Ok(None);
        }
        let block = &self.window.as_slice()[(position - self.window_start) as usize..];
        let Some(header) = ChunkHeader::peek(block, self.database) else { return Ok(None) };
        let bytes = ChunkHeader::disk_bytes(header.len as usize);
        if bytes > READ_BYTES as u64 || !self.fill(position, bytes)? {
            return Ok(None);
        }
        let chunk = &self.window.as_slice()[(position - self.window_start) as usize..][..bytes as usize];
        Ok(header.verify(chunk).then_some(header))
    }

    /// Reads `position..position + len` into the window. Returns false if the file ends before.
    fn fill(&mut self, position: u64, len: u64) -> Result<bool> {
        if position + len > self.device.len() {
            return Ok(false);
        }
        if position < self.window_start || position + len > self.window_end {
            let bytes = (READ_BYTES as u64).min(self.device.len() - position);
            self.device
                .read(position, &mut self.window.as_mut_slice()[..bytes as usize])
                .map_err(|error| Error::io(format!("reading '{}'", self.device.name()), error))?;
            self.window_start = position;
            self.window_end = position + bytes;
        }
        Ok(true)
    }

    fn open_next(&mut self) -> Result<bool> {
        let current = self.used.last().expect("one is open").number;
        let all = self.log.segments()?;
        let Some(next) = successor(&all, current) else { return Ok(false) };
        if next.start != self.buffer_end() {
            return Err(self.corrupt(
                self.buffer.len(),
                &format!("the log ends before the start of the next segment at {}", next.start),
            ));
        }
        self.device = self.log.open(next.number)?;
        // The segments that were passed over stay in place as long as their neighbours: a gap in the numbers would end the WAL.
        self.used.extend(all.iter().filter(|one| (current + 1..=next.number).contains(&one.number)));
        self.limit = successor(&all, next.number).map(|next| next.start);
        self.position = BLOCK as u64;
        (self.window_start, self.window_end) = (0, 0);
        Ok(true)
    }

    /// Called where the WAL seems to end. A valid chunk further on in this segment, newer than those read, proves that acknowledged bytes in between are lost.
    fn end_or_corrupt(&mut self) -> Result<bool> {
        let end = self.buffer_end();
        let mut position = self.position;
        while position + BLOCK as u64 <= self.device.len() {
            if let Some(header) = self.chunk_at(position)?
                && header.start > end
                && header.epoch >= self.epoch
            {
                return Err(Error::Corrupt {
                    what: format!(
                        "the chunk at offset {} is damaged, but a newer chunk follows at offset {position}; acknowledged writes from position {end} on would be lost",
                        self.position
                    ),
                    file: self.device.name().into(),
                    page: None,
                });
            }
            position += BLOCK as u64;
        }
        Ok(false)
    }
}

/// Returns the segment where the stream continues after `number`. Segments in between that a later one cuts off entirely are passed over: the flusher had
/// switched to them in the middle of a mini-transaction when the crash came. Only consecutive numbers count.
fn successor(all: &[SegmentInfo], number: u64) -> Option<SegmentInfo> {
    let is_void = |one: &SegmentInfo| all.iter().any(|later| later.number > one.number && later.start <= one.start);
    (number + 1..).map_while(|number| all.iter().find(|one| one.number == number)).find(|one| !is_void(one)).copied()
}
