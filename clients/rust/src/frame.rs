//! Frames: the number of a session, a length, a type, a payload; the same in both directions.
//!
//! This module touches no socket, so that a program with a loop of its own (a load generator, a proxy) can use it with `Request` and `Assembly`.

use crate::error::Error;

/// Bytes before the payload: sid (u64), length of type and payload (u32), type (u8); little-endian.
pub const HEAD_BYTES: usize = 13;
/// A longer frame is taken for a stream that is out of step: no server sends one.
const LENGTH_MAX: usize = 1 << 30;

/// Sessions with this bit run one statement, without a beginning and an end.
pub const TOP: u64 = 1 << 63;

/// Types of what a client sends.
pub mod ask {
    pub const CAPABILITIES_GET: u8 = 1;
    pub const AUTHENTICATE_START: u8 = 4;
    pub const AUTHENTICATE_CONTINUE: u8 = 5;
    pub const SESSION_CLOSE: u8 = 7;
    pub const EXECUTE_PLAN: u8 = 100;
    pub const EXECUTE_SQL: u8 = 101;
    pub const SESSION_NEW: u8 = 110;
    pub const SESSION_KILL: u8 = 111;
    pub const TOKEN_OFFER: u8 = 112;
    pub const GET_TSO: u8 = 113;
    pub const AUTO_SAVEPOINT: u8 = 115;
}

/// Types of what a server sends.
pub mod answer {
    pub const OK: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const CAPABILITIES: u8 = 2;
    pub const AUTHENTICATE_CONTINUE: u8 = 3;
    pub const AUTHENTICATE_OK: u8 = 4;
    pub const NOTICE: u8 = 11;
    pub const COLUMN: u8 = 12;
    pub const ROW: u8 = 13;
    pub const FETCH_DONE: u8 = 14;
    pub const FETCH_DONE_MORE: u8 = 16;
    pub const EXECUTE_OK: u8 = 17;
    pub const TOKEN_DONE: u8 = 19;
    pub const TSO: u8 = 20;
    pub const CHUNK: u8 = 21;
}

/// A frame within received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    pub sid: u64,
    pub kind: u8,
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// Its length on the wire.
    pub fn len_bytes(&self) -> usize {
        HEAD_BYTES + self.payload.len()
    }

    /// The answer to a request is whole with this frame.
    pub fn is_last(&self) -> bool {
        !matches!(
            self.kind,
            answer::NOTICE
                | answer::COLUMN
                | answer::ROW
                | answer::FETCH_DONE
                | answer::FETCH_DONE_MORE
                | answer::TOKEN_DONE
                | answer::CHUNK
        )
    }
}

/// The first frame of `bytes`; None while it is not all there.
pub fn cut(bytes: &[u8]) -> Result<Option<Frame<'_>>, Error> {
    let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) else { return Ok(None) };
    let (sid, rest_of_head) = head.split_at(8);
    let sid = sid.iter().rev().fold(0, |sid, byte| sid << 8 | u64::from(*byte));
    let length = rest_of_head[..4].iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
    if length == 0 || length > LENGTH_MAX {
        return Err(Error::Protocol(format!("a frame of {length} bytes")));
    }
    Ok(rest.get(..length - 1).map(|payload| Frame { sid, kind: rest_of_head[4], payload }))
}

/// Appends a frame whose payload `fill` appends.
pub fn put(out: &mut Vec<u8>, sid: u64, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&sid.to_le_bytes());
    let length_at = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind]);
    fill(out);
    let length = (out.len() - length_at - 4) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends a frame of a message.
pub fn put_message(out: &mut Vec<u8>, sid: u64, kind: u8, message: &impl prost::Message) {
    put(out, sid, kind, |out| message.encode_raw(out));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_cut_when_all_of_it_is_there() {
        let mut bytes = Vec::new();
        put(&mut bytes, 2, ask::SESSION_NEW, |_| ());
        put(&mut bytes, TOP | 5, ask::EXECUTE_SQL, |out| out.extend_from_slice(b"abc"));
        assert_eq!(bytes[..HEAD_BYTES], [2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x6e]);
        for end in HEAD_BYTES..HEAD_BYTES + HEAD_BYTES + 3 {
            assert_eq!(cut(&bytes[HEAD_BYTES..end]).unwrap(), None);
        }
        let second = cut(&bytes[HEAD_BYTES..]).unwrap().unwrap();
        assert_eq!(second, Frame { sid: TOP | 5, kind: ask::EXECUTE_SQL, payload: b"abc" });
        assert!(cut(&[0; 13]).is_err());
    }
}
