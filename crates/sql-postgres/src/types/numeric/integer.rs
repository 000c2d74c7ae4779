//! Forms of int2, int4 and int8.

use crate::error::{PgError, Result, state};
use crate::types::numeric::skip_spaces;

/// One of the three integer types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Int2,
    Int4,
    Int8,
}

impl Width {
    /// Returns the name of the type in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Width::Int2 => "smallint",
            Width::Int4 => "integer",
            Width::Int8 => "bigint",
        }
    }

    pub fn min(self) -> i64 {
        match self {
            Width::Int2 => i16::MIN.into(),
            Width::Int4 => i32::MIN.into(),
            Width::Int8 => i64::MIN,
        }
    }

    pub fn max(self) -> i64 {
        !self.min()
    }

    /// Returns the bytes of the binary form.
    fn bytes(self) -> usize {
        match self {
            Width::Int2 => 2,
            Width::Int4 => 4,
            Width::Int8 => 8,
        }
    }

    /// Returns a number of the type, or error 22003.
    #[inline]
    pub fn checked(self, number: i64) -> Result<i64> {
        if number >= self.min() && number <= self.max() { Ok(number) } else { Err(self.out_of_range()) }
    }

    #[cold]
    pub fn out_of_range(self) -> PgError {
        PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{} out of range", self.name()))
    }
}

/// Reads the text form: `int2in`, `int4in`, `int8in`. Hexadecimal, octal and binary numbers begin with 0x, 0o and 0b; an underscore may stand between digits.
pub fn integer_in(text: &str, width: Width) -> Result<i64> {
    let bytes = text.as_bytes();
    let mut at = skip_spaces(bytes, 0);
    let is_negative = bytes.get(at) == Some(&b'-');
    at += usize::from(matches!(bytes.get(at), Some(b'-' | b'+')));
    let radix = match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b'0'), Some(b'x' | b'X')) => 16,
        (Some(b'0'), Some(b'o' | b'O')) => 8,
        (Some(b'0'), Some(b'b' | b'B')) => 2,
        _ => 10,
    };
    at += if radix == 10 { 0 } else { 2 };
    let digit = |at: usize| bytes.get(at).and_then(|byte| (*byte as char).to_digit(radix));
    let (mut sum, mut count) = (0u64, 0);
    let limit = -(i128::from(width.min()) / i128::from(radix));
    loop {
        match (bytes.get(at), digit(at)) {
            (_, Some(value)) => {
                if i128::from(sum) > limit {
                    return Err(out_of_range(text, width));
                }
                // The least value's magnitude fits, and 15 more.
                sum = sum.wrapping_mul(radix.into()).wrapping_add(value.into());
                (at, count) = (at + 1, count + 1);
            }
            // Decimal digits come first; behind a prefix an underscore may.
            (Some(b'_'), None) if (count > 0 || radix != 10) && digit(at + 1).is_some() => at += 1,
            _ => break,
        }
    }
    if count == 0 || skip_spaces(bytes, at) != bytes.len() {
        return Err(invalid(text, width));
    }
    let value = if is_negative { -i128::from(sum) } else { i128::from(sum) };
    let in_range = |value: &i64| (width.min()..=width.max()).contains(value);
    i64::try_from(value).ok().filter(in_range).ok_or_else(|| out_of_range(text, width))
}

#[cold]
fn invalid(text: &str, width: Width) -> PgError {
    let message = format!("invalid input syntax for type {}: \"{text}\"", width.name());
    PgError::new(state::INVALID_TEXT_REPRESENTATION, message)
}

#[cold]
fn out_of_range(text: &str, width: Width) -> PgError {
    let message = format!("value \"{text}\" is out of range for type {}", width.name());
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// Appends the text form.
pub fn integer_out(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), number.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Reads the binary form, the bytes of the number from the highest: `int2recv`, `int4recv`, `int8recv`.
pub fn integer_receive(bytes: &[u8], width: Width) -> Result<i64> {
    super::exact_length(bytes, width.bytes())?;
    let bits = bytes.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    let unused = 64 - 8 * width.bytes() as u32;
    Ok((bits << unused) as i64 >> unused)
}

/// Appends the binary form.
pub fn integer_send(number: i64, width: Width, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes()[8 - width.bytes()..]);
}
