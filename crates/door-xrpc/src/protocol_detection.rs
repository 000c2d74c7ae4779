//! Detects the protocol of a connection from its first bytes, and answers foreign protocols in their own form.
//!
//! A server that waits for the rest of a frame that never was one looks dead to its client. A client's first XRPC frame is for sid 0, eight zero bytes, and no
//! other protocol begins with those. A foreign client gets an error that its library can show, so that the cause is visible on the client's side.

use crate::errors;
use crate::frame::{Cut, Mode, cut, u32_at};
use crate::message::reply::{Severity, Writer};

/// The protocol of a connection's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectedProtocol {
    /// Too few bytes to decide.
    Unclear,
    /// XRPC in the connection's mode, as far as can be seen.
    Ours,
    /// XRPC in the other mode.
    OtherMode,
    Tls,
    Http,
    /// A MySQL client's answer to a greeting that was not sent, or a client of MySQL's X Protocol.
    Mysql,
    Postgres,
    Unknown,
}

/// The bytes that decide in every case: a whole frame without payload in the longer of the two modes. In the shorter mode one less may do.
const OPENING_BYTES: usize = 14;

/// Detects the protocol of the first bytes.
pub fn detect(input: &[u8], mode: Mode) -> DetectedProtocol {
    let head = &input[..input.len().min(8)];
    if head.iter().any(|byte| *byte != 0) {
        return foreign(head);
    }
    if other_mode(input, mode) {
        return DetectedProtocol::OtherMode;
    }
    // A whole frame may be one byte shorter than the bytes that tell the modes apart.
    if input.len() >= OPENING_BYTES || matches!(cut(input, mode, u32::MAX as usize), Cut::Frame(_)) {
        DetectedProtocol::Ours
    } else {
        DetectedProtocol::Unclear
    }
}

/// Detects a protocol that does not begin with sid 0: four bytes decide, if it is a known one.
fn foreign(head: &[u8]) -> DetectedProtocol {
    const METHODS: [&[u8; 4]; 8] = [b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"CONN", b"PRI "];
    let Some(first) = head.first_chunk::<4>() else { return DetectedProtocol::Unclear };
    match first {
        [0x16, 3, ..] => DetectedProtocol::Tls,
        first if METHODS.contains(&first) => DetectedProtocol::Http,
        // A length of 24 bits and the sequence number of an answer; or a length of 32 bits and a message that X Protocol's clients begin with.
        [_, _, _, 1] => DetectedProtocol::Mysql,
        [1..=64, 0, 0, 0] => match head.get(4) {
            None => DetectedProtocol::Unclear,
            Some(1..=4) => DetectedProtocol::Mysql,
            Some(_) => DetectedProtocol::Unknown,
        },
        // A length, the highest byte first, of a startup packet or of a request for TLS.
        [0, 0, _, _] => match head.get(4..8) {
            None => DetectedProtocol::Unclear,
            Some([0, 3, 0, _] | [0x04, 0xd2, 0x16, _]) => DetectedProtocol::Postgres,
            Some(_) => DetectedProtocol::Unknown,
        },
        _ => DetectedProtocol::Unknown,
    }
}

/// The types of a client's first frame: it asks for capabilities or logs in.
const FIRST_KINDS: [u8; 2] = [1, 4];
/// Longer than any first frame.
const FIRST_LENGTH_MAX: u32 = 4096;

/// Returns whether the first frame is plausible in the other mode and not in this one.
fn other_mode(input: &[u8], mode: Mode) -> bool {
    let begins = |length_at: usize| {
        let length = u32_at(input, length_at)?;
        let kind = *input.get(length_at + 4)?;
        Some((1..=FIRST_LENGTH_MAX).contains(&length) && FIRST_KINDS.contains(&kind))
    };
    let fits = |mode: Mode| match mode {
        Mode::Legacy => begins(8),
        Mode::Galaxy(version) => begins(9).map(|fits| fits && input[8] == version),
    };
    match mode {
        // Any version: the client's is unknown.
        Mode::Legacy => fits(Mode::Legacy) == Some(false) && begins(9) == Some(true),
        Mode::Galaxy(_) => fits(mode) != Some(true) && fits(Mode::Legacy) == Some(true),
    }
}

const WORDS: &str = "This port speaks XRPC, PolarDB-X's private protocol 2.0";

/// Returns the name of a detected protocol, for the log.
pub fn name(detect: DetectedProtocol) -> &'static str {
    match detect {
        DetectedProtocol::Tls => "TLS, which this port does not offer",
        DetectedProtocol::Http => "HTTP",
        DetectedProtocol::Mysql => "MySQL's protocol",
        DetectedProtocol::Postgres => "PostgreSQL's protocol",
        DetectedProtocol::OtherMode => "XRPC with other headers; see polarx_rpc_galaxy_protocol",
        DetectedProtocol::Unclear | DetectedProtocol::Ours | DetectedProtocol::Unknown => "another protocol",
    }
}

/// Appends the last message to a foreign client.
pub fn put_farewell(out: &mut Vec<u8>, detect: DetectedProtocol, mode: Mode) {
    match detect {
        // An alert: fatal, handshake_failure.
        DetectedProtocol::Tls => out.extend_from_slice(&[21, 3, 1, 0, 2, 2, 40]),
        DetectedProtocol::Http => {
            let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n";
            out.extend_from_slice(format!("{head}Content-Length: {}\r\n\r\n{WORDS}.\n", WORDS.len() + 2).as_bytes());
        }
        DetectedProtocol::Mysql => out.extend_from_slice(&mysql_error(2)),
        DetectedProtocol::Postgres => put_postgres_error(out),
        DetectedProtocol::OtherMode => put_other_mode(out, mode),
        DetectedProtocol::Unclear | DetectedProtocol::Ours | DetectedProtocol::Unknown => {}
    }
}

/// Returns an error packet of MySQL's protocol, in place of a greeting or of its answer.
pub fn mysql_error(sequence: u8) -> Vec<u8> {
    const BAD_HANDSHAKE: u16 = 1043;
    let mut payload = vec![0xff];
    payload.extend_from_slice(&BAD_HANDSHAKE.to_le_bytes());
    if sequence > 0 {
        payload.extend_from_slice(b"#08S01");
    }
    payload.extend_from_slice(format!("{WORDS}; MySQL's is at another port").as_bytes());
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], &payload[..]].concat()
}

fn put_postgres_error(out: &mut Vec<u8>) {
    const PROTOCOL_VIOLATION: &str = "08P01";
    let fields = format!("SFATAL\0VFATAL\0C{PROTOCOL_VIOLATION}\0M{WORDS}\0\0");
    out.push(b'E');
    out.extend_from_slice(&(fields.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(fields.as_bytes());
}

/// Appends an error frame in the other mode, so that the client can read it.
fn put_other_mode(out: &mut Vec<u8>, mode: Mode) {
    let (other, words) = match mode {
        Mode::Legacy => (Mode::Galaxy(0), "13 bytes (galaxy protocol off)".to_owned()),
        Mode::Galaxy(version) => (Mode::Legacy, format!("14 bytes (galaxy protocol on, version {version})")),
    };
    let error = errors::XRPC.with(&[&format!("This port expects headers of {words}.")]);
    let mut writer = Writer { out, mode: other, sid: 0 };
    writer.error(Severity::Fatal, (error.code, error.sqlstate, &error.message));
}

#[cfg(test)]
mod tests;
