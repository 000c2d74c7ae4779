//! The first step of reading a date, time or interval: the text is divided into fields by their characters alone.

use super::DateTimeError;
use super::tokens::date_word;

/// Fields of a text.
const FIELDS_MAX: usize = 25;
/// Bytes of all fields of an interval with one more for each; the longest of the limits.
const BYTES_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Digits alone, or with a point.
    Number,
    /// A word.
    Text,
    /// Digits or letters with `-`, `/` or `.` between them: a date or the name of a time zone.
    Date,
    /// Digits and colons.
    Time,
    /// A sign and digits: a time zone, or a signed number of an interval.
    Zone,
    /// A sign and a word.
    Special,
}

/// The fields of a text in lower case.
pub struct Fields {
    bytes: [u8; BYTES_MAX],
    list: [(FieldKind, u16, u16); FIELDS_MAX],
    pub count: usize,
}

impl Fields {
    /// Divides a text. `limit` bounds the bytes of all fields, each with one more.
    pub fn parse(text: &str, limit: usize) -> Result<Fields, DateTimeError> {
        let mut fields = Fields { bytes: [0; BYTES_MAX], list: [(FieldKind::Number, 0, 0); FIELDS_MAX], count: 0 };
        let mut reader = FieldReader { text: text.as_bytes(), at: 0, out: &mut fields, used: 0, limit };
        while let Some(byte) = reader.peek() {
            if is_space(byte) {
                reader.at += 1;
                continue;
            }
            reader.field(byte)?;
        }
        Ok(fields)
    }

    pub fn kind(&self, at: usize) -> FieldKind {
        self.list[at].0
    }

    pub fn text(&self, at: usize) -> &str {
        let (_, from, to) = self.list[at];
        std::str::from_utf8(&self.bytes[usize::from(from)..usize::from(to)]).unwrap_or("")
    }
}

struct FieldReader<'a> {
    text: &'a [u8],
    at: usize,
    out: &'a mut Fields,
    used: usize,
    limit: usize,
}

/// The white space of C's `isspace`.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

impl FieldReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn is_next(&self, accepts: impl Fn(u8) -> bool) -> bool {
        self.peek().is_some_and(accepts)
    }

    /// Takes one byte over, in lower case.
    fn push(&mut self) -> Result<(), DateTimeError> {
        if self.used + 1 >= self.limit.min(BYTES_MAX) {
            return Err(DateTimeError::BadFormat);
        }
        self.out.bytes[self.used] = self.text[self.at].to_ascii_lowercase();
        (self.used, self.at) = (self.used + 1, self.at + 1);
        Ok(())
    }

    fn push_while(&mut self, accepts: impl Fn(u8) -> bool) -> Result<(), DateTimeError> {
        while self.is_next(&accepts) {
            self.push()?;
        }
        Ok(())
    }

    fn field(&mut self, first: u8) -> Result<(), DateTimeError> {
        if self.out.count >= FIELDS_MAX {
            return Err(DateTimeError::BadFormat);
        }
        let from = self.used;
        let kind = match first {
            b'0'..=b'9' => self.digits()?,
            b'.' => {
                self.push()?;
                self.push_while(|byte| byte.is_ascii_digit())?;
                FieldKind::Number
            }
            b'+' | b'-' => self.signed()?,
            _ if first.is_ascii_alphabetic() => self.word(from)?,
            _ if first.is_ascii_punctuation() => {
                self.at += 1;
                return Ok(());
            }
            _ => return Err(DateTimeError::BadFormat),
        };
        self.out.list[self.out.count] = (kind, from as u16, self.used as u16);
        self.out.count += 1;
        self.used += 1;
        Ok(())
    }

    /// A date or a time, or a number.
    fn digits(&mut self) -> Result<FieldKind, DateTimeError> {
        self.push_while(|byte| byte.is_ascii_digit())?;
        match self.peek() {
            Some(b':') => {
                self.push()?;
                self.push_while(|byte| byte.is_ascii_digit() || byte == b':' || byte == b'.')?;
                Ok(FieldKind::Time)
            }
            Some(delimiter @ (b'-' | b'/' | b'.')) => {
                self.push()?;
                if !self.is_next(|byte| byte.is_ascii_digit()) {
                    self.push_while(|byte| byte.is_ascii_alphanumeric() || byte == delimiter)?;
                    return Ok(FieldKind::Date);
                }
                self.push_while(|byte| byte.is_ascii_digit())?;
                if self.is_next(|byte| byte == delimiter) {
                    self.push_while(|byte| byte.is_ascii_digit() || byte == delimiter)?;
                    return Ok(FieldKind::Date);
                }
                Ok(if delimiter == b'.' { FieldKind::Number } else { FieldKind::Date })
            }
            _ => Ok(FieldKind::Number),
        }
    }

    fn word(&mut self, from: usize) -> Result<FieldKind, DateTimeError> {
        self.push_while(|byte| byte.is_ascii_alphabetic())?;
        let is_date = match self.peek() {
            Some(b'-' | b'/' | b'.') => true,
            // A time zone such as `gmt+3`, unless the word is one of dates.
            Some(byte) if byte == b'+' || byte.is_ascii_digit() => {
                let word = std::str::from_utf8(&self.out.bytes[from..self.used]).unwrap_or("");
                date_word(word).is_none()
            }
            _ => false,
        };
        if !is_date {
            return Ok(FieldKind::Text);
        }
        self.push()?;
        let accepts =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':');
        self.push_while(accepts)?;
        Ok(FieldKind::Date)
    }

    fn signed(&mut self) -> Result<FieldKind, DateTimeError> {
        self.push()?;
        while self.is_next(is_space) {
            self.at += 1;
        }
        match self.peek() {
            Some(byte) if byte.is_ascii_digit() => {
                self.push_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-'))?;
                Ok(FieldKind::Zone)
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                self.push_while(|byte| byte.is_ascii_alphabetic())?;
                Ok(FieldKind::Special)
            }
            _ => Err(DateTimeError::BadFormat),
        }
    }
}

/// Reads a number as C's `strtol`: white space, a sign, digits. Returns `None` for a number out of range, and the text behind it.
pub fn leading_integer(text: &str) -> (Option<i64>, &str) {
    let bytes = text.as_bytes();
    let mut at = bytes.iter().take_while(|byte| is_space(**byte)).count();
    let is_negative = bytes.get(at) == Some(&b'-');
    if matches!(bytes.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return (Some(0), text);
    }
    let mut number = Some(0i64);
    for byte in &bytes[at..at + digits] {
        let digit = i64::from(byte - b'0');
        let signed = if is_negative { -digit } else { digit };
        number = number.and_then(|number| number.checked_mul(10)?.checked_add(signed));
    }
    (number, &text[at + digits..])
}

/// The same within 32 bits.
pub fn leading_int(text: &str) -> (Option<i32>, &str) {
    let (number, rest) = leading_integer(text);
    (number.and_then(|number| number.try_into().ok()), rest)
}

/// Reads a fraction from its point to the end of the text.
pub fn fraction(text: &str) -> Result<f64, DateTimeError> {
    let digits = text.strip_prefix('.').ok_or(DateTimeError::BadFormat)?;
    if digits.is_empty() {
        return Ok(0.0);
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DateTimeError::BadFormat);
    }
    text.parse().map_err(|_| DateTimeError::BadFormat)
}

/// Reads a fraction of a second, in microseconds.
pub fn fraction_micros(text: &str) -> Result<i32, DateTimeError> {
    Ok((fraction(text)? * 1e6).round_ties_even() as i32)
}
