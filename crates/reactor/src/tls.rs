//! TLS between the socket and a session: rustls does the protocol, this moves the bytes.
//!
//! What comes off the socket is opened into the connection's input; what may go out is sealed in pieces, never more than `SEALED_MAX` ahead of the peer, so
//! that a slow reader holds plain output, which the pool counts, and little more.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::ServerConnection;

use crate::sys;

pub use rustls::ServerConfig as TlsConfig;

/// Sealed bytes that wait for the peer.
const SEALED_MAX: usize = 256 << 10;

pub(crate) struct Tls {
    protocol: ServerConnection,
    sealed: Vec<u8>,
    sent: usize,
}

/// What became of sealed output.
#[derive(PartialEq, Eq)]
pub(crate) enum Sent {
    All,
    /// The socket is full.
    Some,
}

impl Tls {
    pub fn new(config: &Arc<TlsConfig>) -> Result<Tls, rustls::Error> {
        let mut protocol = ServerConnection::new(config.clone())?;
        // Bounded here, by pieces.
        protocol.set_buffer_limit(None);
        Ok(Tls { protocol, sealed: Vec::new(), sent: 0 })
    }

    /// Opens received bytes: appends to `plain` what they hold. An error means that the peer does not speak TLS or breaks it; the alert that tells it is sealed.
    pub fn open(&mut self, mut received: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        while !received.is_empty() {
            self.protocol.read_tls(&mut received)?;
            let state = self.protocol.process_new_packets();
            let state = state.map_err(|error| {
                self.fill();
                io::Error::new(io::ErrorKind::InvalidData, error)
            })?;
            if state.plaintext_bytes_to_read() > 0 {
                let start = plain.len();
                plain.resize(start + state.plaintext_bytes_to_read(), 0);
                self.protocol.reader().read_exact(&mut plain[start..])?;
            }
        }
        self.fill();
        Ok(())
    }

    /// Seals the beginning of `plain`, as much as may wait; returns how much.
    pub fn seal(&mut self, plain: &[u8]) -> io::Result<usize> {
        if self.protocol.is_handshaking() {
            return Ok(0);
        }
        let room = SEALED_MAX.saturating_sub(self.sealed.len() - self.sent);
        let piece = &plain[..plain.len().min(room)];
        self.protocol.writer().write_all(piece)?;
        self.fill();
        Ok(piece.len())
    }

    fn fill(&mut self) {
        while self.protocol.wants_write() {
            if self.protocol.write_tls(&mut self.sealed).is_err() {
                return;
            }
        }
    }

    /// Sends what is sealed.
    pub fn send(&mut self, stream: &TcpStream) -> io::Result<Sent> {
        while self.sent < self.sealed.len() {
            match sys::send(stream, &self.sealed[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Sent::Some),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.sealed = Vec::new();
        self.sent = 0;
        Ok(Sent::All)
    }

    /// Sealed bytes that wait for the peer.
    pub fn waiting(&self) -> usize {
        self.sealed.len() - self.sent
    }

    /// Tells the peer, if it listens, that nothing follows.
    pub fn end(&mut self, stream: &TcpStream) {
        self.protocol.send_close_notify();
        self.fill();
        let _ = self.send(stream);
    }
}
