//! Writes lengths, strings and scores as Redis 7.0 does.

use crate::lzf;

/// Strings up to this length are not compressed.
const PLAIN_MAX: usize = 20;
/// Strings up to this length may be stored as integers.
const INTEGER_MAX: usize = 11;

/// Writes a length or another number.
pub fn write_length(out: &mut Vec<u8>, length: u64) {
    match length {
        0..0x40 => out.push(length as u8),
        0x40..0x4000 => out.extend((0x4000 | length as u16).to_be_bytes()),
        0x4000..=0xffff_ffff => {
            out.push(0x80);
            out.extend((length as u32).to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend(length.to_be_bytes());
        }
    }
}

/// Writes a string: as an integer if it is one, compressed if that makes it shorter, or as it is.
pub fn write_string(out: &mut Vec<u8>, bytes: &[u8]) {
    if let Some(integer) = canonical_integer(bytes) {
        if let Ok(small) = i8::try_from(integer) {
            out.extend([0xc0, small as u8]);
        } else if let Ok(small) = i16::try_from(integer) {
            out.push(0xc1);
            out.extend(small.to_le_bytes());
        } else {
            out.push(0xc2);
            out.extend(integer.to_le_bytes());
        }
        return;
    }
    if bytes.len() > PLAIN_MAX
        && let Some(short) = lzf::compress(bytes, bytes.len() - 4)
    {
        out.push(0xc3);
        write_length(out, short.len() as u64);
        write_length(out, bytes.len() as u64);
        out.extend(short);
        return;
    }
    write_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn canonical_integer(bytes: &[u8]) -> Option<i32> {
    if bytes.len() > INTEGER_MAX {
        return None;
    }
    let integer: i32 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    (integer.to_string().as_bytes() == bytes).then_some(integer)
}

/// Writes a score as 8 bytes.
pub fn write_score(out: &mut Vec<u8>, score: f64) {
    out.extend(score.to_le_bytes());
}

/// Writes a time in milliseconds.
pub fn write_time(out: &mut Vec<u8>, time_ms: u64) {
    out.extend(time_ms.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Source;

    proptest! {
        #[test]
        fn lengths_and_strings_are_read_as_written(length in any::<u64>(), shift in 0u32..64, bytes in proptest::collection::vec(b'0'..b'4', 0..600)) {
            let mut out = Vec::new();
            write_length(&mut out, length >> shift);
            write_string(&mut out, &bytes);
            let mut source = Source::of_bytes(&out);
            prop_assert_eq!(source.length().expect("a length"), length >> shift);
            prop_assert_eq!(source.string().expect("a string"), bytes);
            prop_assert!(source.is_at_end());
        }
    }

    #[test]
    fn only_canonical_integers_of_four_bytes_are_integers() {
        for text in ["0", "-1", "127", "-128", "32767", "2147483647", "-2147483648"] {
            assert!(canonical_integer(text.as_bytes()).is_some(), "{text}");
        }
        for text in ["", "+1", "-0", "01", " 1", "2147483648", "1e3"] {
            assert!(canonical_integer(text.as_bytes()).is_none(), "{text}");
        }
    }
}
