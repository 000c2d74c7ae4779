//! TLS between the socket and a session: rustls implements the protocol, this file moves the bytes.
//!
//! Received bytes are decrypted into the connection's input. Output is encrypted in pieces, at most `ENCRYPTED_MAX` ahead of the peer, so
//! that a slow reader holds plain output, which the pool counts, and little more.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{CipherSuite, ProtocolVersion, ServerConnection};

use crate::sys;

pub use rustls::ServerConfig as TlsConfig;

/// The most encrypted bytes that wait for the peer.
const ENCRYPTED_MAX: usize = 256 << 10;

pub(crate) struct Tls {
    protocol: ServerConnection,
    encrypted: Vec<u8>,
    sent: usize,
}

/// The TLS version and cipher of a connection, in OpenSSL's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsInfo {
    pub version: &'static str,
    pub cipher: &'static str,
}

/// How much of the output the socket has taken.
#[derive(PartialEq, Eq)]
pub(crate) enum Sent {
    All,
    /// A part: the socket is full.
    Some,
}

impl Tls {
    pub fn new(config: &Arc<TlsConfig>) -> Result<Tls, rustls::Error> {
        let mut protocol = ServerConnection::new(config.clone())?;
        // `encrypt` bounds the pieces.
        protocol.set_buffer_limit(None);
        Ok(Tls { protocol, encrypted: Vec::new(), sent: 0 })
    }

    /// Returns the negotiated version and cipher; None before the handshake has decided on them.
    pub fn info(&self) -> Option<TlsInfo> {
        let version = match self.protocol.protocol_version()? {
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            other => other.as_str()?,
        };
        let cipher = match self.protocol.negotiated_cipher_suite()?.suite() {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
            CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
            CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
            other => other.as_str()?,
        };
        Some(TlsInfo { version, cipher })
    }

    /// Decrypts received bytes and appends them to `plain`. An error means that the peer does not use TLS or violates it; the alert for the peer is encrypted and ready to be sent.
    pub fn decrypt(&mut self, mut received: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
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

    /// Encrypts the beginning of `plain`, as much as may wait. Returns how many bytes; 0 during the handshake.
    pub fn encrypt(&mut self, plain: &[u8]) -> io::Result<usize> {
        if self.protocol.is_handshaking() {
            return Ok(0);
        }
        let room = ENCRYPTED_MAX.saturating_sub(self.encrypted.len() - self.sent);
        let piece = &plain[..plain.len().min(room)];
        self.protocol.writer().write_all(piece)?;
        self.fill();
        Ok(piece.len())
    }

    /// Moves encrypted bytes from rustls to the send buffer.
    fn fill(&mut self) {
        while self.protocol.wants_write() {
            if self.protocol.write_tls(&mut self.encrypted).is_err() {
                return;
            }
        }
    }

    /// Sends the encrypted bytes.
    pub fn send(&mut self, stream: &TcpStream) -> io::Result<Sent> {
        while self.sent < self.encrypted.len() {
            match sys::send(stream, &self.encrypted[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Sent::Some),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.encrypted = Vec::new();
        self.sent = 0;
        Ok(Sent::All)
    }

    /// Returns the number of encrypted bytes that wait for the peer.
    pub fn waiting(&self) -> usize {
        self.encrypted.len() - self.sent
    }

    /// Sends the alert close_notify, as far as the socket takes it.
    pub fn end(&mut self, stream: &TcpStream) {
        self.protocol.send_close_notify();
        self.fill();
        let _ = self.send(stream);
    }
}
