//! A connection shared by its sessions. One thread reads and distributes frames; a session that writes also sends the frames that others have queued.
//!
//! The hard part is to avoid deadlock: no thread may wait for the socket while another waits for that thread. The reader never writes and never waits for a session: unread frames stay in the
//! session's inbox, bounded by flow-control tokens. A writer may wait for the server, which makes progress as long as the reader reads.
//!
//! CX-1: a frame is appended to the queue whole, under its lock, and one thread at a time writes the queue in order. So frames never mix.
//! CX-2: an inbox holds whole frames. Frames for a session without an inbox are dropped: the session was abandoned on this side.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::Error;
use crate::frame::{self, HEAD_BYTES, answer};
use crate::message;

const RECEIVE_BYTES: usize = 64 << 10;

pub struct Link {
    stream: TcpStream,
    outgoing: Mutex<Outgoing>,
    incoming: Mutex<Incoming>,
}

#[derive(Default)]
struct Outgoing {
    queue: Vec<u8>,
    /// A thread is writing, and checks the queue again before it stops.
    is_busy: bool,
}

#[derive(Default)]
struct Incoming {
    inboxes: HashMap<u64, Inbox>,
    lost: Option<Arc<io::Error>>,
}

#[derive(Default)]
struct Inbox {
    frames: Vec<u8>,
    is_waited_for: bool,
    arrived: Arc<Condvar>,
}

/// Locks a mutex, also after a panic of another thread: no critical section here leaves a half-done change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub fn new(stream: TcpStream) -> Link {
        Link { stream, outgoing: Mutex::default(), incoming: Mutex::default() }
    }

    /// Gives the session an inbox. An error if the connection is lost.
    pub fn open(&self, sid: u64) -> Result<(), Error> {
        let mut incoming = lock(&self.incoming);
        if let Some(lost) = &incoming.lost {
            return Err(Error::Lost(lost.clone()));
        }
        incoming.inboxes.insert(sid, Inbox::default());
        Ok(())
    }

    /// Removes the session's inbox. Frames that arrive for it later are dropped.
    pub fn close(&self, sid: u64) {
        lock(&self.incoming).inboxes.remove(&sid);
    }

    pub fn is_lost(&self) -> bool {
        lock(&self.incoming).lost.is_some()
    }

    /// Writes whole frames, and those that other sessions queue meanwhile. Returns before they are written if another thread is writing.
    pub fn send(&self, frames: &[u8]) -> Result<(), Error> {
        let mut outgoing = lock(&self.outgoing);
        outgoing.queue.extend_from_slice(frames);
        if outgoing.is_busy {
            return Ok(());
        }
        outgoing.is_busy = true;
        let mut batch = Vec::new();
        while !outgoing.queue.is_empty() {
            batch.clear();
            std::mem::swap(&mut batch, &mut outgoing.queue);
            drop(outgoing);
            let written = (&self.stream).write_all(&batch);
            outgoing = lock(&self.outgoing);
            if let Err(error) = written {
                outgoing.is_busy = false;
                drop(outgoing);
                return Err(self.lose(error));
            }
        }
        // The buffer is kept for the next batch.
        if batch.capacity() <= RECEIVE_BYTES {
            batch.clear();
            outgoing.queue = batch;
        }
        outgoing.is_busy = false;
        Ok(())
    }

    /// Waits for frames of the session and moves them into `into`, which must be empty.
    pub fn receive(&self, sid: u64, into: &mut Vec<u8>, until: Option<Instant>) -> Result<(), Error> {
        let mut incoming = lock(&self.incoming);
        loop {
            let Incoming { inboxes, lost } = &mut *incoming;
            let inbox = inboxes.get_mut(&sid).ok_or(Error::Ended)?;
            if !inbox.frames.is_empty() {
                std::mem::swap(into, &mut inbox.frames);
                return Ok(());
            }
            if let Some(lost) = lost {
                return Err(Error::Lost(lost.clone()));
            }
            inbox.is_waited_for = true;
            let arrived = inbox.arrived.clone();
            incoming = match until {
                None => arrived.wait(incoming).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.checked_duration_since(Instant::now()).ok_or(Error::Timeout)?;
                    arrived.wait_timeout(incoming, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Reads and distributes frames until the connection ends. `rest` holds bytes received before.
    pub fn read(&self, rest: Vec<u8>) {
        let mut buffer = rest;
        let mut filled = buffer.len();
        let error = loop {
            match self.distribute(&buffer[..filled]) {
                Err(error) => break error,
                Ok(used) => {
                    buffer.copy_within(used..filled, 0);
                    filled -= used;
                }
            }
            if buffer.len() < filled + RECEIVE_BYTES {
                buffer.resize(filled + RECEIVE_BYTES, 0);
            }
            match (&self.stream).read(&mut buffer[filled..]) {
                Ok(0) => break io::ErrorKind::UnexpectedEof.into(),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
        };
        self.lose(error);
    }

    /// Puts all whole frames into their inboxes and wakes who waits for them. Returns how many bytes they were.
    fn distribute(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut used = 0;
        let mut woken = Vec::new();
        let mut incoming = lock(&self.incoming);
        while let Some(frame) = frame::cut(&bytes[used..]).map_err(io::Error::other)? {
            let end = used + frame.len_bytes();
            match incoming.inboxes.get_mut(&frame.sid) {
                Some(inbox) => {
                    inbox.frames.extend_from_slice(&bytes[used..end]);
                    if std::mem::take(&mut inbox.is_waited_for) {
                        woken.push(inbox.arrived.clone());
                    }
                }
                // An error of the connection itself is the last thing that the server says.
                None if frame.sid == 0 && frame.kind == answer::ERROR => {
                    let error = <message::Error as prost::Message>::decode(frame.payload).unwrap_or_default();
                    return Err(io::Error::other(error.msg));
                }
                None => {}
            }
            used = end;
        }
        drop(incoming);
        woken.iter().for_each(|arrived| arrived.notify_one());
        Ok(used)
    }

    /// Everybody who waits, or will, hears of it.
    fn lose(&self, error: io::Error) -> Error {
        let _ = self.stream.shutdown(Shutdown::Both);
        let mut incoming = lock(&self.incoming);
        let lost = incoming.lost.get_or_insert_with(|| Arc::new(error)).clone();
        incoming.inboxes.values().for_each(|inbox| inbox.arrived.notify_one());
        Error::Lost(lost)
    }

    /// Ends the connection; the reader ends with it.
    pub fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Reads one frame of a connection that has no reader thread yet. Later bytes stay in `buffer`.
pub fn read_frame(mut stream: &TcpStream, buffer: &mut Vec<u8>) -> Result<(u8, Vec<u8>), Error> {
    loop {
        if let Some(frame) = frame::cut(buffer)? {
            let found = (frame.kind, frame.payload.to_vec());
            buffer.drain(..HEAD_BYTES + found.1.len());
            return Ok(found);
        }
        let mut part = [0; 4096];
        match stream.read(&mut part)? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            count => buffer.extend_from_slice(&part[..count]),
        }
    }
}
