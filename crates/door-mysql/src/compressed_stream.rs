//! Compressed connections: the stream of packets cut into frames, each of them made shorter by the client's method or, where that would not help, as it is.
//!
//! ```text
//!   3 bytes: length of what follows · 1 byte: number · 3 bytes: length before compression, 0 if it is not compressed · the bytes
//! ```
//! Frames know nothing of packets: a packet may lie in several frames and a frame may hold several packets. Frames are opened one at a time, and what a frame says it holds bounds the room it
//! gets, so that nobody's few bytes become many. A frame whose command still makes rows stays at the front of the connection's input (Y2), opened only once (Y11).

use query::error::SqlError;
use stdx::memory;

use crate::compression::Method;
use crate::errors;

pub const HEADER: usize = 7;
/// The most that one frame holds: the lengths have three bytes.
const HELD_MAX: usize = 0xff_ffff;
/// Room that is kept for the next frames.
const KEPT: usize = 256 << 10;
/// Shorter ones are not worth it, says MySQL too.
const WORTH: usize = 50;

/// What stands at the front of the input.
#[derive(Debug)]
pub enum Opened {
    /// So many bytes are needed in all, as far as can be seen.
    More(usize),
    /// The bytes have been added; the frame takes up so many of the input.
    Frame(usize),
    /// What the client is told before it is cut off.
    DenyReason(SqlError),
}

/// A frame of few bytes.
pub fn uncompressed_frame(bytes: &[u8], number: u8) -> Vec<u8> {
    let [a, b, c, _] = (bytes.len() as u32).to_le_bytes();
    [&[a, b, c, number, 0, 0, 0], bytes].concat()
}

/// Both directions of a connection.
#[derive(Debug)]
pub struct CompressedStream {
    method: Method,
    /// Opened and not yet consumed.
    pub input: Vec<u8>,
    /// Written and not yet squeezed.
    pub out: Vec<u8>,
    /// Bytes of the connection's input that are opened and wait to be consumed.
    pub held: usize,
    /// Of the next frame, whoever sends it.
    number: u8,
}

impl CompressedStream {
    pub fn new(method: Method) -> CompressedStream {
        CompressedStream { method, input: Vec::new(), out: Vec::new(), held: 0, number: 0 }
    }

    /// Opens the frame at the front of `input`. A command's first frame has the number 0, whatever came before.
    pub fn open(&mut self, input: &[u8]) -> Opened {
        let Some([a, b, c, number, d, e, f]) = input.first_chunk::<HEADER>() else { return Opened::More(HEADER) };
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        let before = u32::from_le_bytes([*d, *e, *f, 0]) as usize;
        let size = HEADER + length;
        if *number != self.number && *number != 0 {
            return Opened::DenyReason(errors::OUT_OF_ORDER.bare());
        }
        let Some(body) = input.get(HEADER..size) else { return Opened::More(size) };
        // What a frame says it holds, and the opened frames that it is put behind: a few bytes can become many.
        let opened = before.max(length);
        let _claim = match memory::claim(opened + 2 * self.input.len()) {
            Ok(claim) => Some(claim),
            Err(full) if opened + self.input.len() > KEPT => return Opened::DenyReason(full.into()),
            Err(_) => None,
        };
        if before == 0 {
            self.input.extend_from_slice(body);
        } else {
            match self.method.open(body, before) {
                Some(opened) if self.input.is_empty() => self.input = opened,
                Some(opened) => self.input.extend_from_slice(&opened),
                None => return Opened::DenyReason(errors::UNCOMPRESS.bare()),
            }
        }
        self.number = number.wrapping_add(1);
        Opened::Frame(size)
    }

    /// Writes what waits in `out` as frames, as long as they may be: there are clients who look for a packet in two of them and no more.
    pub fn put(&mut self, to: &mut Vec<u8>) {
        let out = std::mem::take(&mut self.out);
        for chunk in out.chunks(HELD_MAX) {
            let compressed = if chunk.len() >= WORTH { self.method.compressed_stream(chunk) } else { None };
            let (body, before) = match &compressed {
                Some(compressed) => (&compressed[..], chunk.len()),
                None => (chunk, 0),
            };
            to.extend_from_slice(&(body.len() as u32).to_le_bytes()[..3]);
            to.push(self.number);
            to.extend_from_slice(&(before as u32).to_le_bytes()[..3]);
            to.extend_from_slice(body);
            self.number = self.number.wrapping_add(1);
        }
        self.out = out;
        self.out.clear();
        // A long result's room is not kept for the next short one.
        self.out.shrink_to(KEPT);
    }

    /// So many bytes of what was opened are done with.
    pub fn consume(&mut self, count: usize) {
        self.input.drain(..count);
        if self.input.is_empty() {
            self.input.shrink_to(KEPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use stdx::prng::Prng;

    use super::*;

    const METHODS: [Method; 2] = [Method::Zlib, Method::Zstd(3)];

    fn compressed(method: Method, bytes: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        CompressedStream { out: bytes.to_vec(), ..CompressedStream::new(method) }.put(&mut wire);
        wire
    }

    fn through(method: Method, bytes: &[u8]) -> Vec<u8> {
        let (wire, mut there, mut at) = (compressed(method, bytes), CompressedStream::new(method), 0);
        while at < wire.len() {
            match there.open(&wire[at..]) {
                Opened::Frame(size) => at += size,
                other => panic!("{other:?}"),
            }
        }
        there.input
    }

    fn deny_reason(method: Method, wire: &[u8]) -> Option<u16> {
        match CompressedStream::new(method).open(wire) {
            Opened::DenyReason(code) => Some(code.code),
            _ => None,
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let mut random = Prng::new(7);
        for length in [0, 1, WORTH - 1, WORTH, 1000, 100_000, HELD_MAX, HELD_MAX + 5] {
            let same = vec![b'x'; length];
            let noise: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            for method in METHODS {
                assert_eq!(through(method, &same), same);
                assert_eq!(through(method, &noise), noise);
            }
        }
    }

    #[test]
    fn a_frame_that_is_cut_waits_and_one_that_lies_is_refused() {
        for method in METHODS {
            let mut wire = compressed(method, &[b'y'; 10_000]);
            for cut in 0..wire.len() {
                let needed = if cut < HEADER { HEADER } else { wire.len() };
                let opened = CompressedStream::new(method).open(&wire[..cut]);
                assert!(matches!(opened, Opened::More(more) if more == needed));
            }
            // It says less, and more, than it holds.
            for said in [1, 9_999, 10_001, 0xff_ffff] {
                wire[4..7].copy_from_slice(&(said as u32).to_le_bytes()[..3]);
                assert_eq!(deny_reason(method, &wire), Some(1157), "{said}");
            }
            wire[3] = 5;
            assert_eq!(deny_reason(method, &wire), Some(1156));
        }
        let wire = compressed(Method::Zlib, &[b'y'; 10_000]);
        assert_eq!(deny_reason(Method::Zstd(3), &wire), Some(1157), "the other method's");
    }

    #[test]
    fn random_bytes_are_refused_or_wait() {
        let mut random = Prng::new(20261121);
        for _ in 0..4000 {
            let length = random.below(64) as usize;
            let mut bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            bytes.iter_mut().take(4).skip(1).for_each(|byte| *byte = 0);
            for method in METHODS {
                let _ = CompressedStream::new(method).open(&bytes);
            }
        }
    }
}
