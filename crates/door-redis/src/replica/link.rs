//! The connection to the server that is followed: bytes in, short requests out, and what must be sent while bytes are awaited.
//!
//! A read waits in short steps. Between them it sends what is due (an ACK, or an empty line while a file is loaded), sees whether the link is to end, and gives
//! up a server that has been silent for `repl-timeout` seconds. The buffer grows with a request only, which the parser bounds.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use engine::Lsn;

use crate::replica::state::{Following, Stage};
use crate::shared::Shared;
use crate::source::encoding::put_command;

/// Why a link ended.
#[derive(Debug)]
pub enum Break {
    /// It was told to.
    Ended,
    /// A new try may succeed.
    Lost(String),
    /// The same would happen again.
    Refused(String),
}

/// The message that is due each second while bytes are awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    None,
    /// An empty line, by which a server knows that its replica is alive.
    EmptyLine,
    /// The offset up to which everything is on disk.
    Ack {
        offset: u64,
        lsn: Lsn,
    },
}

const STEP: Duration = Duration::from_millis(100);
const CONNECT_MAX: Duration = Duration::from_secs(5);
const SEND_MAX: Duration = Duration::from_secs(10);
const DUTY_NS: u64 = 1_000_000_000;
/// Bytes that are received at once.
pub const CHUNK: usize = 64 << 10;
/// The buffer keeps this capacity while it is empty.
const BUFFER_KEPT: usize = 1 << 20;
/// Longest line of an answer.
const LINE_MAX: usize = 4096;

pub struct Link<'l> {
    pub shared: &'l Arc<Shared>,
    pub following: &'l Following,
    stream: TcpStream,
    /// Bytes received. Those before `at` were read.
    buffer: Vec<u8>,
    at: usize,
    heard_ns: u64,
    sent_ns: u64,
    pub duty: Duty,
    /// Why a read failed that had to return an error of another kind.
    pub broken: Option<Break>,
}

impl<'l> Link<'l> {
    /// Connects to the server.
    pub fn connect(shared: &'l Arc<Shared>, following: &'l Following) -> Result<Link<'l>, Break> {
        following.facts.lock().stage = Stage::Connecting;
        let lost = |error: &dyn std::fmt::Display| Break::Lost(format!("cannot connect: {error}"));
        let addresses: Vec<SocketAddr> =
            (following.host.as_str(), following.port).to_socket_addrs().map_err(|error| lost(&error))?.collect();
        let mut found = Err(lost(&"the name has no address"));
        for address in addresses {
            if following.is_ended() {
                return Err(Break::Ended);
            }
            found = TcpStream::connect_timeout(&address, CONNECT_MAX).map_err(|error| lost(&error));
            if found.is_ok() {
                break;
            }
        }
        let stream = found?;
        let prepare = || {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(STEP))?;
            stream.set_write_timeout(Some(SEND_MAX))?;
            stream.try_clone()
        };
        following.hold(Some(prepare().map_err(|error| lost(&error))?));
        let now = shared.clock.monotonic_ns();
        let (buffer, duty) = (Vec::new(), Duty::None);
        Ok(Link { shared, following, stream, buffer, at: 0, heard_ns: now, sent_ns: now, duty, broken: None })
    }

    /// Returns the bytes that were received and not read.
    pub fn input(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Takes bytes that were read.
    pub fn consume(&mut self, bytes: usize) {
        self.at += bytes;
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(BUFFER_KEPT);
            self.at = 0;
        } else if self.at >= CHUNK {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
    }

    /// Receives up to `most` more bytes behind those that there are. Waits until there are some.
    pub fn fill(&mut self, most: usize) -> Result<(), Break> {
        loop {
            self.work()?;
            let len = self.buffer.len();
            self.buffer.resize(len + most, 0);
            let got = self.stream.read(&mut self.buffer[len..]);
            self.buffer.truncate(len + got.as_ref().map_or(0, |count| *count));
            match got {
                Ok(0) => return Err(self.lost("the connection was closed")),
                Ok(_) => {
                    self.heard_ns = self.shared.clock.monotonic_ns();
                    self.following.facts.lock().last_input_ms = Some(self.shared.clock.wall_ms());
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let silent_ns = self.shared.clock.monotonic_ns().saturating_sub(self.heard_ns);
                    let seconds = self.shared.parameters.number("repl-timeout");
                    if silent_ns / 1_000_000_000 >= seconds {
                        return Err(self.lost(&format!("nothing was received for {seconds} seconds (repl-timeout)")));
                    }
                }
                Err(error) => return Err(self.lost(&error.to_string())),
            }
        }
    }

    /// Does what is due while others are waited for. Fails if the link is to end.
    pub fn work(&mut self) -> Result<(), Break> {
        if self.following.is_ended() {
            return Err(Break::Ended);
        }
        let is_due = self.shared.clock.monotonic_ns().saturating_sub(self.sent_ns) >= DUTY_NS;
        match self.duty {
            Duty::EmptyLine if is_due => self.send(b"\n"),
            // A disk that is late must not hold the link up.
            Duty::Ack { offset, lsn } if is_due && self.shared.engine.durable().wait_timeout(lsn, STEP) => {
                self.acknowledge(offset)
            }
            _ => Ok(()),
        }
    }

    pub fn acknowledge(&mut self, offset: u64) -> Result<(), Break> {
        self.request(&[b"REPLCONF", b"ACK", offset.to_string().as_bytes()])
    }

    pub fn request(&mut self, args: &[&[u8]]) -> Result<(), Break> {
        let mut out = Vec::new();
        put_command(&mut out, args);
        self.send(&out)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Break> {
        self.sent_ns = self.shared.clock.monotonic_ns();
        let sent = self.stream.write_all(bytes);
        sent.map_err(|error| self.lost(&format!("nothing could be sent: {error}")))
    }

    /// Reads a line, without its end.
    pub fn line(&mut self) -> Result<String, Break> {
        loop {
            if let Some(end) = self.input().iter().take(LINE_MAX).position(|byte| *byte == b'\n') {
                let line = &self.input()[..end];
                let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
                self.consume(end + 1);
                return Ok(line);
            }
            if self.input().len() >= LINE_MAX {
                return Err(Break::Lost("an answer is longer than any of Redis".into()));
            }
            self.fill(CHUNK)?;
        }
    }

    /// Reads a line that is not empty. Empty ones only say that the server is alive.
    pub fn answer(&mut self) -> Result<String, Break> {
        loop {
            let line = self.line()?;
            if !line.is_empty() {
                return Ok(line);
            }
        }
    }

    fn lost(&self, what: &str) -> Break {
        if self.following.is_ended() { Break::Ended } else { Break::Lost(what.to_owned()) }
    }
}

impl Read for Link<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.input().is_empty() && !out.is_empty() {
            self.fill(CHUNK).map_err(|broken| {
                self.broken = Some(broken);
                std::io::Error::other("the link is broken")
            })?;
        }
        let count = self.input().len().min(out.len());
        out[..count].copy_from_slice(&self.input()[..count]);
        self.consume(count);
        Ok(count)
    }
}
