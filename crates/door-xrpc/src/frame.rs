//! Frames: a session's number, a length, a type and a payload, the same in both directions.
//!
//! ```text
//!   legacy: sid u64 | length u32 | type u8 | payload            length counts the type and the payload
//!   galaxy: sid u64 | version u8 | length u32 | type u8 | payload
//! ```
//! Nothing in the protocol says which of the two a client speaks, so the first bytes of a connection are checked by `protocol_detection` before frames are cut.

/// The form of the frame header; fixed when a connection is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Legacy,
    /// Each header has this version.
    Galaxy(u8),
}

impl Mode {
    /// Returns the bytes before the payload.
    pub const fn header_bytes(self) -> usize {
        match self {
            Mode::Legacy => 13,
            Mode::Galaxy(_) => 14,
        }
    }

    /// Returns the offset of the length.
    const fn length_at(self) -> usize {
        self.header_bytes() - 5
    }
}

/// The frame at the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut<'a> {
    /// The frame needs this many bytes in all, as far as can be seen.
    More(usize),
    Frame(Frame<'a>),
    /// The frame of this sid is longer than allowed.
    TooLong(u64),
    /// The frame has no type, or another version: the meaning of the next bytes is unknown.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub sid: u64,
    pub kind: u8,
    pub payload: &'a [u8],
    /// Bytes of the input that the frame occupies.
    pub size: usize,
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// Cuts the frame at the front, once all of it has arrived (DX-1). `length_max` is the limit for its length field.
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

/// Appends a frame; `write` appends its payload.
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

/// Gives whole frames to another session.
#[inline]
pub fn renumber(mut frames: &mut [u8], mode: Mode, sid: u64) {
    while let Some(length) = u32_at(frames, mode.length_at()) {
        frames[..8].copy_from_slice(&sid.to_le_bytes());
        frames = &mut frames[mode.header_bytes() - 1 + length as usize..];
    }
}

#[cfg(test)]
mod tests;
