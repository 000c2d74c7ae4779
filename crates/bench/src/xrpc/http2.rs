//! The part of HTTP/2 that a gRPC load needs, so that its client costs no more than the others': unary calls with the same few headers, which the server knows by number after the first call.
//!
//! Answers' headers are not decoded. A call has worked if a message of the right length has come and its stream has ended; a call that fails has no message.

use std::io;

use super::speech::{Done, ECHO_ANSWER_BYTES, Speech};

pub const PATH: &str = "/beluga.bench.Echo/Capabilities";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Before a message: no compression, and its length.
const PREFIX_BYTES: usize = 5;
/// Streams that are remembered: more than are ever open at once.
const STREAMS: usize = 1 << 14;

pub struct Calls {
    next_stream: u32,
    /// By half the stream's number.
    slots: Vec<(u32, bool)>,
}

fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Headers for the first call: the server adds those that are not in the static table to its dynamic one.
fn first_headers() -> Vec<u8> {
    let mut out = vec![0x83, 0x86];
    let mut literal = |head: &[u8], text: &str| {
        out.extend_from_slice(head);
        out.push(text.len() as u8);
        out.extend_from_slice(text.as_bytes());
    };
    literal(&[0x44], PATH);
    literal(&[0x41], "127.0.0.1");
    literal(&[0x5f], "application/grpc");
    literal(&[0x40, 2, b't', b'e'], "trailers");
    out
}

/// The same, by their numbers.
const NEXT_HEADERS: [u8; 6] = [0x83, 0x86, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62];

impl Calls {
    /// Appends a connection's preface to `out`.
    pub fn open(out: &mut Vec<u8>) -> Calls {
        out.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        // INITIAL_WINDOW_SIZE: as large as it gets, and so is the connection's.
        put(out, SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
        put(out, WINDOW_UPDATE, 0, 0, &(0x7fff_ffff_u32 - 65_535).to_be_bytes());
        Calls { next_stream: 1, slots: vec![(0, false); STREAMS] }
    }

    fn slot(&mut self, stream: u32) -> &mut (u32, bool) {
        &mut self.slots[stream as usize / 2 % STREAMS]
    }
}

impl Speech for Calls {
    fn ask(&mut self, slot: u32, out: &mut Vec<u8>) {
        let stream = self.next_stream;
        self.next_stream += 2;
        *self.slot(stream) = (slot, false);
        match stream {
            1 => put(out, HEADERS, END_HEADERS, stream, &first_headers()),
            _ => put(out, HEADERS, END_HEADERS, stream, &NEXT_HEADERS),
        }
        put(out, DATA, END_STREAM, stream, &[0; PREFIX_BYTES]);
    }

    fn take(&mut self, bytes: &[u8], done: &mut Vec<Done>, out: &mut Vec<u8>) -> io::Result<usize> {
        let mut used = 0;
        while let Some((head, rest)) = bytes[used..].split_at_checked(9) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some(payload) = rest.get(..length) else { break };
            used += 9 + length;
            let (kind, flags) = (head[3], head[4]);
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            match kind {
                DATA => self.slot(stream).1 |= length == PREFIX_BYTES + ECHO_ANSWER_BYTES,
                SETTINGS if flags & ACK == 0 => put(out, SETTINGS, ACK, 0, &[]),
                PING if flags & ACK == 0 => put(out, PING, ACK, 0, payload),
                GOAWAY => return Err(io::Error::other("the server says goodbye")),
                _ => {}
            }
            if kind == RST_STREAM || matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                let (slot, is_right) = *self.slot(stream);
                done.push(Done { slot, is_right: is_right && kind != RST_STREAM });
            }
        }
        Ok(used)
    }
}
