//! Payloads of DUMP: values in the encoding of RDB files, with a version and a checksum at the end.
//!
//! Only libraries of functions are written and read yet: opcode 245, then the code as a string.

/// The version that is written, and the newest that is read.
const VERSION: u16 = 10;
const VERSION_MAX: u16 = 12;
const OPCODE_FUNCTION: u8 = 245;

/// Returns the checksum of RDB files: CRC-64 with Jones' polynomial, reflected, from 0.
fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    const TABLE: [u64; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let (mut value, mut bit) = (at as u64, 0);
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
                bit += 1;
            }
            table[at] = value;
            at += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        length @ 0..64 => out.push(length as u8),
        length @ 64..0x4000 => out.extend_from_slice(&(0x4000 | length as u16).to_be_bytes()),
        length => {
            out.push(0x80);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(text);
}

/// Returns the payload of libraries.
pub fn dump_libraries<'c>(codes: impl Iterator<Item = &'c [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for code in codes {
        out.push(OPCODE_FUNCTION);
        put_string(&mut out, code);
    }
    out.extend_from_slice(&VERSION.to_le_bytes());
    let crc = crc64(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadDump {
    Checksum,
    /// It is not of functions.
    Kind,
    Format,
}

/// Returns the libraries of a payload.
pub fn restore_libraries(payload: &[u8]) -> Result<Vec<Vec<u8>>, BadDump> {
    let (checked, crc) = payload.split_last_chunk::<8>().ok_or(BadDump::Checksum)?;
    let (body, version) = checked.split_last_chunk::<2>().ok_or(BadDump::Checksum)?;
    if u16::from_le_bytes(*version) > VERSION_MAX || u64::from_le_bytes(*crc) != crc64(checked) {
        return Err(BadDump::Checksum);
    }
    let (mut rest, mut codes) = (body, Vec::new());
    while let Some((opcode, behind)) = rest.split_first() {
        if *opcode != OPCODE_FUNCTION {
            return Err(BadDump::Kind);
        }
        rest = behind;
        codes.push(take_string(&mut rest).ok_or(BadDump::Format)?);
    }
    Ok(codes)
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

/// A length, or the encoding of a string.
enum Length {
    Bytes(usize),
    Encoded(u8),
}

fn take_length(rest: &mut &[u8]) -> Option<Length> {
    let first = take(rest, 1)?[0];
    Some(match (first >> 6, first) {
        (0, _) => Length::Bytes(usize::from(first)),
        (1, _) => Length::Bytes(usize::from(first & 0x3f) << 8 | usize::from(take(rest, 1)?[0])),
        (2, 0x80) => Length::Bytes(u32::from_be_bytes(take(rest, 4)?.try_into().ok()?) as usize),
        (2, 0x81) => Length::Bytes(usize::try_from(u64::from_be_bytes(take(rest, 8)?.try_into().ok()?)).ok()?),
        (3, _) => Length::Encoded(first & 0x3f),
        _ => return None,
    })
}

fn take_bytes(rest: &mut &[u8]) -> Option<usize> {
    match take_length(rest)? {
        Length::Bytes(bytes) => Some(bytes),
        Length::Encoded(_) => None,
    }
}

fn take_string(rest: &mut &[u8]) -> Option<Vec<u8>> {
    const LZF: u8 = 3;
    match take_length(rest)? {
        Length::Bytes(bytes) => take(rest, bytes).map(<[u8]>::to_vec),
        Length::Encoded(LZF) => {
            let (packed, whole) = (take_bytes(rest)?, take_bytes(rest)?);
            unpack(take(rest, packed)?, whole)
        }
        Length::Encoded(kind @ 0..3) => {
            let bytes = take(rest, 1 << kind)?;
            let value = match kind {
                0 => i64::from(bytes[0] as i8),
                1 => i64::from(i16::from_le_bytes(bytes.try_into().ok()?)),
                _ => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
            };
            Some(value.to_string().into_bytes())
        }
        Length::Encoded(_) => None,
    }
}

/// Unpacks LZF, whose result has a known length. One byte gives at most 264, so a short input cannot ask for much memory.
fn unpack(mut packed: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > packed.len().saturating_mul(264) {
        return None;
    }
    let mut out = Vec::with_capacity(length);
    while let Some((control, rest)) = packed.split_first() {
        packed = rest;
        let control = usize::from(*control);
        if control < 32 {
            out.extend_from_slice(take(&mut packed, control + 1)?);
            continue;
        }
        let mut count = control >> 5;
        if count == 7 {
            count += usize::from(take(&mut packed, 1)?[0]);
        }
        let back = (control & 31) << 8 | usize::from(take(&mut packed, 1)?[0]);
        let from = out.len().checked_sub(back + 1)?;
        (from..from + count + 2).for_each(|at| out.push(out[at]));
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        // FUNCTION DUMP of a redis-server without libraries.
        assert_eq!(dump_libraries(std::iter::empty()), b"\n\0]\x9b\\@\x0f\x7f\xa2\xda");
    }

    #[test]
    fn libraries_come_back_from_their_payload() {
        let codes: [Vec<u8>; 3] = [b"#!lua name=a\n".to_vec(), vec![b'x'; 5000], vec![b'y'; 70_000]];
        let payload = dump_libraries(codes.iter().map(Vec::as_slice));
        assert_eq!(restore_libraries(&payload).as_deref(), Ok(&codes[..]));
        for at in 0..payload.len() {
            let mut broken = payload.clone();
            broken[at] ^= 1;
            assert!(restore_libraries(&broken).is_err(), "{at}");
        }
    }

    #[test]
    fn packed_text_is_read_and_bad_one_refused() {
        assert_eq!(unpack(b"\x02abc\x20\x02", 6).as_deref(), Some(&b"abcabc"[..]));
        assert_eq!(unpack(b"\x02abc\x20\x07", 6), None);
        assert_eq!(unpack(b"\x02abc", 1 << 40), None);
    }
}
