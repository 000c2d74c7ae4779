//! The connection of one MIGRATE to the other server: requests out, and the first line of each answer in.
//!
//! Each wait is bounded by the timeout of the request, and ends early when the server stops. Requests are gathered, so that many small keys leave together; an
//! answer is one short line, so a peer that sends more than that is given up.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::source::encoding::put_command;

/// Why a transfer ended, in the words of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferFault {
    Connecting,
    Writing,
    Reading,
}

impl TransferFault {
    pub fn text(self) -> &'static str {
        match self {
            TransferFault::Connecting => "IOERR error or timeout connecting to the client",
            TransferFault::Writing => "IOERR error or timeout writing to target instance",
            TransferFault::Reading => "IOERR error or timeout reading to target instance",
        }
    }
}

/// How long one wait lasts before the end of the server is looked at.
const STEP: Duration = Duration::from_millis(100);
/// Longest wait for a connection, which nothing ends early.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Bytes that are sent within one timeout, and that are gathered.
const PIECE: usize = 64 << 10;
/// Longest line of an answer.
const LINE_MAX: usize = 1024;

pub struct Transfer<'t> {
    stream: TcpStream,
    timeout: Duration,
    is_ending: &'t AtomicBool,
    /// Requests that are not sent yet.
    gathered: Vec<u8>,
    /// Bytes received and not read.
    received: Vec<u8>,
}

impl<'t> Transfer<'t> {
    pub fn connect(
        (host, port): (&str, u16),
        timeout: Duration,
        is_ending: &'t AtomicBool,
    ) -> Result<Transfer<'t>, TransferFault> {
        let mut fault = TransferFault::Connecting;
        for address in (host, port).to_socket_addrs().map_err(|_| TransferFault::Connecting)? {
            match TcpStream::connect_timeout(&address, timeout.min(CONNECT_MAX)) {
                Ok(stream) => {
                    let prepared = stream
                        .set_nodelay(true)
                        .and_then(|()| stream.set_read_timeout(Some(STEP)))
                        .and_then(|()| stream.set_write_timeout(Some(STEP)));
                    prepared.map_err(|_| TransferFault::Connecting)?;
                    return Ok(Transfer { stream, timeout, is_ending, gathered: Vec::new(), received: Vec::new() });
                }
                // Redis notices a refusal when it writes.
                Err(error) if error.kind() != ErrorKind::TimedOut => fault = TransferFault::Writing,
                Err(_) => {}
            }
        }
        Err(fault)
    }

    /// Sends a short request, and returns the answer to it.
    pub fn ask(&mut self, words: &[&[u8]]) -> Result<Vec<u8>, TransferFault> {
        put_command(&mut self.gathered, words);
        self.answer()
    }

    /// Adds bytes of a request.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), TransferFault> {
        if self.gathered.len() + bytes.len() <= PIECE {
            self.gathered.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        if bytes.len() < PIECE {
            self.gathered.extend_from_slice(bytes);
            return Ok(());
        }
        bytes.chunks(PIECE).try_for_each(|piece| self.send(piece))
    }

    fn flush(&mut self) -> Result<(), TransferFault> {
        let gathered = std::mem::take(&mut self.gathered);
        self.send(&gathered)?;
        self.gathered = gathered;
        self.gathered.clear();
        Ok(())
    }

    /// Sends a piece within the timeout.
    fn send(&mut self, mut piece: &[u8]) -> Result<(), TransferFault> {
        let until = self.deadline();
        while !piece.is_empty() {
            match self.stream.write(piece) {
                Ok(0) => return Err(TransferFault::Writing),
                Ok(count) => piece = &piece[count..],
                Err(error) if self.may_go_on(&error, until) => {}
                Err(_) => return Err(TransferFault::Writing),
            }
        }
        Ok(())
    }

    /// Sends what is gathered, and reads the next answer: a line without its end.
    pub fn answer(&mut self) -> Result<Vec<u8>, TransferFault> {
        self.flush()?;
        let until = self.deadline();
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.received.drain(..=end).collect();
                line.pop();
                line.pop_if(|byte| *byte == b'\r');
                return Ok(line);
            }
            // A peer that sends a byte now and then has no more time than others.
            if self.received.len() >= LINE_MAX || Instant::now() >= until {
                return Err(TransferFault::Reading);
            }
            let mut some = [0; LINE_MAX];
            match self.stream.read(&mut some) {
                Ok(0) => return Err(TransferFault::Reading),
                Ok(count) => self.received.extend_from_slice(&some[..count]),
                Err(error) if self.may_go_on(&error, until) => {}
                Err(_) => return Err(TransferFault::Reading),
            }
        }
    }

    fn deadline(&self) -> Instant {
        let now = Instant::now();
        // A time that cannot be told is far enough away.
        now.checked_add(self.timeout).unwrap_or(now + Duration::from_secs(1 << 31))
    }

    fn may_go_on(&self, error: &std::io::Error, until: Instant) -> bool {
        let is_short = matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut);
        is_short && Instant::now() < until && !self.is_ending.load(Ordering::Relaxed)
    }
}
