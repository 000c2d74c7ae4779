//! Frames: a session's number, a length, a type and a payload, the same in both directions. And what stands on the port when it is not XRPC at all.
//!
//! ```text
//!   legacy: sid u64 | length u32 | type u8 | payload            length counts the type and the payload
//!   galaxy: sid u64 | version u8 | length u32 | type u8 | payload
//! ```
//! The hard thing is that nothing in the protocol says which of the two a client speaks, nor that it speaks either; a server that waits for the rest of a frame that never was one looks dead.
//! So the first bytes of a connection are looked at once (`opening`): a client's first frame is for sid 0, in eight zeros, and nobody else's stream begins with those.

/// How frames are written on a connection; fixed when it is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Legacy,
    /// With this version in each frame.
    Galaxy(u8),
}

impl Mode {
    /// Bytes before the payload.
    pub const fn header_bytes(self) -> usize {
        match self {
            Mode::Legacy => 13,
            Mode::Galaxy(_) => 14,
        }
    }

    /// Where the length stands.
    const fn length_at(self) -> usize {
        self.header_bytes() - 5
    }
}

/// What stands at the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut<'a> {
    /// A whole frame needs more bytes: so many in all, as far as can be seen.
    More(usize),
    Frame(Frame<'a>),
    /// For this sid, and longer than allowed.
    TooLong(u64),
    /// Without even a type, or of another version: nobody knows what the next bytes mean.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub sid: u64,
    pub kind: u8,
    pub payload: &'a [u8],
    /// Bytes of the input that it takes up.
    pub size: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// Cuts the frame at the front. `length_max` is what its length may say.
#[inline]
pub fn cut(input: &[u8], mode: Mode, length_max: usize) -> Cut<'_> {
    let header = mode.header_bytes();
    let Some(sid) = input.first_chunk::<8>() else { return Cut::More(header) };
    let sid = u64::from_le_bytes(*sid);
    if let Mode::Galaxy(version) = mode
        && input.get(8).is_some_and(|byte| *byte != version)
    {
        return Cut::Broken;
    }
    let Some(length) = u32_at(input, mode.length_at()) else { return Cut::More(header) };
    let length = length as usize;
    if length == 0 {
        return Cut::Broken;
    }
    if length > length_max {
        return Cut::TooLong(sid);
    }
    let size = header - 1 + length;
    match input.get(header - 1..size) {
        None => Cut::More(size),
        Some(body) => Cut::Frame(Frame { sid, kind: body[0], payload: &body[1..], size }),
    }
}

/// Appends a frame whose payload is what `write` appends.
#[inline]
pub fn put<R>(out: &mut Vec<u8>, mode: Mode, (sid, kind): (u64, u8), write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let at = out.len();
    out.extend_from_slice(&sid.to_le_bytes());
    if let Mode::Galaxy(version) = mode {
        out.push(version);
    }
    out.extend_from_slice(&[0, 0, 0, 0, kind]);
    let result = write(out);
    let length_at = at + mode.length_at();
    let length = (out.len() - length_at - 4) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    result
}

/// What a connection's first bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Too few to say.
    Unclear,
    /// XRPC in the connection's mode, as far as can be seen.
    Ours,
    /// XRPC in the mode that this connection does not have.
    OtherMode,
    Tls,
    Http,
    /// A MySQL client's answer to a greeting that nobody gave, or a client of MySQL's X Protocol.
    Mysql,
    Postgres,
    Unknown,
}

/// The least that tells all of them apart: a whole frame without payload in the longer of the two modes, of which the shorter one may have one less.
const OPENING_BYTES: usize = 14;

/// Looks at the first bytes of a connection.
pub fn opening(input: &[u8], mode: Mode) -> Opening {
    let head = &input[..input.len().min(8)];
    if head.iter().any(|byte| *byte != 0) {
        return foreign(head);
    }
    if other_mode(input, mode) {
        return Opening::OtherMode;
    }
    // A whole frame may be one byte shorter than what tells the modes apart.
    if input.len() >= OPENING_BYTES || matches!(cut(input, mode, u32::MAX as usize), Cut::Frame(_)) {
        Opening::Ours
    } else {
        Opening::Unclear
    }
}

/// What is not for sid 0: four bytes say what it is, where anything is known of it.
fn foreign(head: &[u8]) -> Opening {
    const METHODS: [&[u8; 4]; 8] = [b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"CONN", b"PRI "];
    let Some(first) = head.first_chunk::<4>() else { return Opening::Unclear };
    match first {
        [0x16, 3, ..] => Opening::Tls,
        first if METHODS.contains(&first) => Opening::Http,
        // A length of 24 bits and the sequence number of an answer; or a length of 32 bits, and what X Protocol's clients begin with.
        [_, _, _, 1] => Opening::Mysql,
        [1..=64, 0, 0, 0] => match head.get(4) {
            None => Opening::Unclear,
            Some(1..=4) => Opening::Mysql,
            Some(_) => Opening::Unknown,
        },
        // A length, the highest byte first, of a startup packet or a request for TLS.
        [0, 0, _, _] => match head.get(4..8) {
            None => Opening::Unclear,
            Some([0, 3, 0, _] | [0x04, 0xd2, 0x16, _]) => Opening::Postgres,
            Some(_) => Opening::Unknown,
        },
        _ => Opening::Unknown,
    }
}

/// The types with which a client may begin: it asks for capabilities or logs in.
const FIRST_KINDS: [u8; 2] = [1, 4];
/// Longer than any first frame is.
const FIRST_LENGTH_MAX: u32 = 4096;

/// Would the first frame make sense in the mode that this is not, and makes none in this one?
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
        // Any version: which one the client has is what was not known.
        Mode::Legacy => fits(Mode::Legacy) == Some(false) && begins(9) == Some(true),
        Mode::Galaxy(_) => fits(mode) != Some(true) && fits(Mode::Legacy) == Some(true),
    }
}

#[cfg(test)]
mod tests;
