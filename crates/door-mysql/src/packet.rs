//! Packets: a payload behind three bytes of length and one sequence number.
//!
//! A payload of 16 MB or more is sent in several frames; all but the last have the maximum size, and the last may be empty. A command begins with sequence
//! number 0, and each frame in either direction increments it. After a frame out of order the two sides would disagree on what the next bytes mean (DM-1).

pub const HEADER: usize = 4;
/// The largest payload of a frame. A frame of this size is followed by another.
pub const FRAME_MAX: usize = 0xff_ffff;

/// The packet at the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut<'a> {
    /// The packet needs this many bytes in all, as far as can be seen.
    More(usize),
    Packet(Packet<'a>),
    /// A frame of maximum size; more frames of its payload follow.
    Frame(&'a [u8]),
    /// The payload is longer than allowed; its frames occupy this many bytes of the stream, as far as can be seen.
    TooLong(usize),
    OutOfOrder,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    pub payload: &'a [u8],
    /// Bytes of the input that the packet occupies.
    pub size: usize,
    /// The sequence number of the first packet of the answer.
    pub next: u8,
}

/// Cuts the packet at the front, or a frame that is not its last. `sequence` is the expected number; `payload_max` is the limit for the payload that remains.
#[inline]
pub fn cut(input: &[u8], sequence: u8, payload_max: usize) -> Cut<'_> {
    let Some((length, number)) = header(input) else { return Cut::More(HEADER) };
    if number != sequence {
        return Cut::OutOfOrder;
    }
    if length > payload_max {
        return Cut::TooLong(HEADER + length);
    }
    let size = HEADER + length;
    match input.get(HEADER..size) {
        None => Cut::More(size),
        Some(frame) if length == FRAME_MAX => Cut::Frame(frame),
        Some(payload) => Cut::Packet(Packet { payload, size, next: sequence.wrapping_add(1) }),
    }
}

/// Returns the length and the sequence number of the frame at the front.
pub fn header(input: &[u8]) -> Option<(usize, u8)> {
    let [a, b, c, number] = *input.first_chunk()?;
    Some((u32::from_le_bytes([a, b, c, 0]) as usize, number))
}

/// Starts a packet at the end of `out`; its payload is what is appended until `finish`.
#[inline]
pub fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; HEADER]);
    at
}

/// Completes the packet that starts at `at`: writes the headers of its frames.
#[inline]
pub fn finish(out: &mut Vec<u8>, at: usize, sequence: &mut u8) {
    let length = out.len() - at - HEADER;
    if length >= FRAME_MAX {
        split(out, at);
    }
    let mut frame = at;
    loop {
        let length = (out.len() - frame - HEADER).min(FRAME_MAX);
        let [a, b, c, ..] = (length as u32).to_le_bytes();
        out[frame..frame + HEADER].copy_from_slice(&[a, b, c, *sequence]);
        *sequence = sequence.wrapping_add(1);
        if length < FRAME_MAX {
            return;
        }
        frame += HEADER + FRAME_MAX;
    }
}

/// Makes space for the headers of further frames, from the last to the first, so that each byte moves once.
#[cold]
fn split(out: &mut Vec<u8>, at: usize) {
    let start = at + HEADER;
    let length = out.len() - start;
    let further = length / FRAME_MAX;
    out.resize(out.len() + further * HEADER, 0);
    for frame in (1..=further).rev() {
        let from = start + frame * FRAME_MAX;
        let end = (from + FRAME_MAX).min(start + length);
        out.copy_within(from..end, from + frame * HEADER);
    }
}

#[cfg(test)]
mod tests;
