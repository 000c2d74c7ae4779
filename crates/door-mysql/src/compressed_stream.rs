//! Compressed connections: the stream of packets is cut into frames, each compressed with the client's method, or stored if that would not make it shorter.
//!
//! ```text
//!   3 bytes: length of what follows · 1 byte: number · 3 bytes: length before compression, 0 if it is not compressed · the bytes
//! ```
//! Frames are independent of packets: a packet may lie in several frames and a frame may hold several packets. Frames are decompressed one at a time into a
//! buffer bounded by the length that the frame states, so that a few bytes cannot expand without limit. A frame whose command still produces rows stays at the
//! front of the connection's input (DM-2) and is decompressed only once (DM-11).

use sql_mysql::error::SqlError;
use stdx::memory;

use crate::compression::Method;
use crate::errors;

pub const HEADER: usize = 7;
/// The largest content of one frame: the lengths have three bytes.
const HELD_MAX: usize = 0xff_ffff;
/// Capacity that is kept for the next frames.
const KEPT: usize = 256 << 10;
/// Shorter content is not worth compressing, which is MySQL's limit too.
const WORTH: usize = 50;

/// The result of opening the frame at the front of the input.
#[derive(Debug)]
pub enum Opened {
    /// The frame needs this many bytes in all, as far as can be seen.
    More(usize),
    /// The content has been added; the frame occupies this many bytes of the input.
    Frame(usize),
    /// The error that the client is sent before it is cut off.
    DenyReason(SqlError),
}

/// Returns a stored frame around a few bytes.
pub fn uncompressed_frame(bytes: &[u8], number: u8) -> Vec<u8> {
    let [a, b, c, _] = (bytes.len() as u32).to_le_bytes();
    [&[a, b, c, number, 0, 0, 0], bytes].concat()
}

/// Both directions of a compressed connection.
#[derive(Debug)]
pub struct CompressedStream {
    method: Method,
    /// Content that is decompressed and not yet consumed.
    pub input: Vec<u8>,
    /// Output that is not yet compressed.
    pub out: Vec<u8>,
    /// Bytes of the connection's input that are decompressed and wait to be consumed.
    pub held: usize,
    /// The sequence number of the next frame in either direction.
    number: u8,
}

impl CompressedStream {
    pub fn new(method: Method) -> CompressedStream {
        CompressedStream { method, input: Vec::new(), out: Vec::new(), held: 0, number: 0 }
    }

    /// Decompresses the frame at the front of `input`. The first frame of a command has the number 0, whatever came before.
    pub fn open(&mut self, input: &[u8]) -> Opened {
        let Some([a, b, c, number, d, e, f]) = input.first_chunk::<HEADER>() else { return Opened::More(HEADER) };
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        let before = u32::from_le_bytes([*d, *e, *f, 0]) as usize;
        let size = HEADER + length;
        if *number != self.number && *number != 0 {
            return Opened::DenyReason(errors::OUT_OF_ORDER.bare());
        }
        let Some(body) = input.get(HEADER..size) else { return Opened::More(size) };
        // A few bytes can expand to many: memory is claimed for the stated length and for the content that it is appended to.
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

    /// Writes the output as frames, each as long as possible: some clients expect a packet in at most two of them.
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
        // Capacity that a long result needed is not kept for the next short one.
        self.out.shrink_to(KEPT);
    }

    /// Marks this many bytes of the content as consumed.
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
            // The stated length is too short, then too long.
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
