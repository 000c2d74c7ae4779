//! COPY FROM: bytes become records, and records fields.

use crate::copy::options::{CopyFormat, CopyOptions, Header};
use crate::error::{PgError, Result, state};

/// The longest record, in bytes.
const RECORD_MAX: usize = 1 << 30;
/// The bytes of a record that messages show.
const SHOWN_MAX: usize = 100;
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// The kind of line ends that the first line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    Newline,
    Return,
    Both,
}

/// The next part of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes are needed.
    More,
    /// A record whose fields are at hand.
    Record,
    /// The header line.
    Header,
    End,
}

/// A field of the current record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'r> {
    Null,
    Default,
    Bytes(&'r [u8]),
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Null,
    Default,
    Range(usize, usize),
}

/// Divides the input into records and these into fields.
#[derive(Debug)]
pub struct RecordReader {
    options: CopyOptions,
    names: Vec<String>,
    buffer: Vec<u8>,
    /// The first byte that is not yet part of a record.
    at: usize,
    /// How far the search for the end of the record has come, and whether it is inside quotes.
    searched: usize,
    is_quoted: bool,
    line_end: LineEnd,
    /// The current record in the buffer.
    record: (usize, usize),
    /// Its values without escapes.
    values: Vec<u8>,
    fields: Vec<Place>,
    /// The number of the current record's line.
    pub line: u64,
    /// The header of the binary format has been read.
    is_begun: bool,
    is_ended: bool,
    /// All bytes are there.
    is_complete: bool,
}

fn bad_format(message: impl Into<String>) -> PgError {
    PgError::new(state::BAD_COPY_FILE_FORMAT, message)
}

impl RecordReader {
    /// `names` are the columns that are copied.
    pub fn new(options: CopyOptions, names: Vec<String>) -> RecordReader {
        RecordReader {
            options,
            names,
            buffer: Vec::new(),
            at: 0,
            searched: 0,
            is_quoted: false,
            line_end: LineEnd::Unknown,
            record: (0, 0),
            values: Vec::new(),
            fields: Vec::new(),
            line: 0,
            is_begun: false,
            is_ended: false,
            is_complete: false,
        }
    }

    /// Adds bytes of the input.
    pub fn add(&mut self, bytes: &[u8]) {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.searched -= self.at;
            self.at = 0;
        }
        if !self.is_ended {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// There are no more bytes.
    pub fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Finds the next record.
    pub fn next_record(&mut self) -> Result<Next> {
        if self.is_ended {
            return Ok(Next::End);
        }
        if self.options.format == CopyFormat::Binary {
            return self.next_binary();
        }
        let Some((end, after)) = self.find_line()? else {
            if !self.is_complete {
                return Ok(Next::More);
            }
            if self.at == self.buffer.len() {
                self.is_ended = true;
                return Ok(Next::End);
            }
            let end = self.buffer.len();
            if self.is_quoted {
                self.line += 1;
                self.record = (self.at, end);
                return Err(bad_format("unterminated CSV quoted field"));
            }
            return self.take_line(end, end);
        };
        self.take_line(end, after)
    }

    fn take_line(&mut self, end: usize, after: usize) -> Result<Next> {
        self.line += 1;
        self.record = (self.at, end);
        (self.at, self.searched) = (after, after);
        if &self.buffer[self.record.0..end] == b"\\." {
            self.is_ended = true;
            return Ok(Next::End);
        }
        match self.options.format {
            CopyFormat::Csv => self.divide_csv()?,
            _ => self.divide_text()?,
        }
        if self.line == 1 && self.options.header != Header::No {
            if self.options.header == Header::Match {
                self.check_header()?;
            }
            return Ok(Next::Header);
        }
        let (expected, found) = (self.names.len(), self.fields.len());
        if found > expected && !(expected == 0 && self.record.0 == self.record.1) {
            return Err(bad_format("extra data after last expected column"));
        }
        Ok(Next::Record)
    }

    /// Returns the end of the next line's data and the position after its line end.
    fn find_line(&mut self) -> Result<Option<(usize, usize)>> {
        let is_csv = self.options.format == CopyFormat::Csv;
        let (quote, escape) = (self.options.quote, self.options.escape);
        while self.searched < self.buffer.len() {
            let at = self.searched;
            let byte = self.buffer[at];
            let following = self.buffer.get(at + 1).copied();
            if self.searched - self.at > RECORD_MAX {
                return Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "record of COPY is too long"));
            }
            if is_csv {
                if self.is_quoted && byte == escape && escape != quote {
                    // The escaped byte may come with the next piece.
                    if following.is_none() && !self.is_complete {
                        return Ok(None);
                    }
                    let skips = following.is_some_and(|next| next == quote || next == escape);
                    self.searched += if skips { 2 } else { 1 };
                    continue;
                }
                if byte == quote {
                    self.is_quoted = !self.is_quoted;
                }
                if self.is_quoted {
                    self.searched += 1;
                    continue;
                }
            } else if byte == b'\\' {
                if following.is_none() && !self.is_complete {
                    return Ok(None);
                }
                // An end-of-data mark ends the line; any other escaped byte is data.
                self.searched += if following == Some(b'.') { 1 } else { 2 };
                self.searched = self.searched.min(self.buffer.len());
                continue;
            }
            match byte {
                b'\r' => {
                    if following.is_none() && !self.is_complete && self.line_end != LineEnd::Return {
                        return Ok(None);
                    }
                    let (kind, after) = match (following, self.line_end) {
                        (_, LineEnd::Return) => (LineEnd::Return, at + 1),
                        (Some(b'\n'), _) => (LineEnd::Both, at + 2),
                        _ => (LineEnd::Return, at + 1),
                    };
                    self.check_line_end(kind, "carriage return", "\\r")?;
                    return Ok(Some((at, after)));
                }
                b'\n' => {
                    self.check_line_end(LineEnd::Newline, "newline", "\\n")?;
                    return Ok(Some((at, at + 1)));
                }
                _ => self.searched += 1,
            }
        }
        Ok(None)
    }

    fn check_line_end(&mut self, found: LineEnd, name: &str, escape: &str) -> Result<()> {
        if self.line_end == LineEnd::Unknown {
            self.line_end = found;
        }
        if self.line_end == found {
            return Ok(());
        }
        self.line += 1;
        self.record = (self.at, self.searched);
        if self.options.format == CopyFormat::Csv {
            let error = bad_format(format!("unquoted {name} found in data"));
            return Err(error.hint(format!("Use quoted CSV field to represent {name}.")));
        }
        Err(bad_format(format!("literal {name} found in data")).hint(format!("Use \"{escape}\" to represent {name}.")))
    }

    fn divide_text(&mut self) -> Result<()> {
        let (start, end) = self.record;
        let line = &self.buffer[start..end];
        self.values.clear();
        self.fields.clear();
        let mut at = 0;
        loop {
            let (raw, from) = (at, self.values.len());
            let mut has_escape = false;
            while at < line.len() && line[at] != self.options.delimiter {
                if line[at] == b'\\' && at + 1 < line.len() {
                    has_escape = true;
                    at = unescape(line, at + 1, &mut self.values);
                } else {
                    self.values.push(line[at]);
                    at += 1;
                }
            }
            let written = &line[raw..at];
            let place = if written == self.options.null.as_bytes() {
                Place::Null
            } else if self.options.default.as_ref().is_some_and(|default| written == default.as_bytes()) {
                Place::Default
            } else {
                Place::Range(from, self.values.len())
            };
            if has_escape && let Place::Range(from, to) = place {
                std::str::from_utf8(&self.values[from..to]).map_err(|_| {
                    let message = "invalid byte sequence for encoding \"UTF8\" after escapes";
                    PgError::new(state::CHARACTER_NOT_IN_REPERTOIRE, message)
                })?;
            }
            self.fields.push(place);
            if at >= line.len() {
                return Ok(());
            }
            at += 1;
        }
    }

    fn divide_csv(&mut self) -> Result<()> {
        let CopyOptions { delimiter, quote, escape, .. } = self.options;
        let (start, end) = self.record;
        let line = &self.buffer[start..end];
        self.values.clear();
        self.fields.clear();
        let mut at = 0;
        loop {
            let from = self.values.len();
            let (mut is_quoted, mut was_quoted) = (false, false);
            while at < line.len() && (is_quoted || line[at] != delimiter) {
                let byte = line[at];
                if is_quoted {
                    let next = line.get(at + 1).copied();
                    if byte == escape && next.is_some_and(|next| next == escape || next == quote) {
                        self.values.extend(next);
                        at += 2;
                        continue;
                    }
                    if byte == quote {
                        is_quoted = false;
                    } else {
                        self.values.push(byte);
                    }
                } else if byte == quote {
                    (is_quoted, was_quoted) = (true, true);
                } else {
                    self.values.push(byte);
                }
                at += 1;
            }
            if is_quoted {
                return Err(bad_format("unterminated CSV quoted field"));
            }
            let value = &self.values[from..];
            let name = self.names.get(self.fields.len()).map_or("", String::as_str);
            let is_null_text = value == self.options.null.as_bytes();
            let is_null = match was_quoted {
                true => self.options.force_null.has(name),
                false => !self.options.force_not_null.has(name),
            };
            let place = if is_null_text && is_null {
                Place::Null
            } else if !was_quoted && self.options.default.as_ref().is_some_and(|default| value == default.as_bytes()) {
                Place::Default
            } else {
                Place::Range(from, self.values.len())
            };
            self.fields.push(place);
            if at >= line.len() {
                return Ok(());
            }
            at += 1;
        }
    }

    fn check_header(&self) -> Result<()> {
        let (expected, found) = (self.names.len(), self.fields.len());
        if expected != found {
            return Err(bad_format(format!("wrong number of fields in header line: got {found}, expected {expected}")));
        }
        for (nth, name) in self.names.iter().enumerate() {
            let nth_field = nth + 1;
            match self.field(nth)? {
                FieldValue::Bytes(bytes) if bytes == name.as_bytes() => {}
                FieldValue::Bytes(bytes) => {
                    let got = String::from_utf8_lossy(bytes);
                    return Err(bad_format(format!(
                        "column name mismatch in header line field {nth_field}: got \"{got}\", expected \"{name}\""
                    )));
                }
                FieldValue::Null | FieldValue::Default => {
                    let null = &self.options.null;
                    return Err(bad_format(format!(
                        "column name mismatch in header line field {nth_field}: got null value (\"{null}\"), expected \"{name}\""
                    )));
                }
            }
        }
        Ok(())
    }

    /// Returns a field of the current record. A record that is too short fails here: its first fields are converted before the missing one is noticed.
    pub fn field(&self, nth: usize) -> Result<FieldValue<'_>> {
        let source = if self.options.format == CopyFormat::Binary { &self.buffer } else { &self.values };
        match self.fields.get(nth) {
            Some(Place::Null) => Ok(FieldValue::Null),
            Some(Place::Default) => Ok(FieldValue::Default),
            Some(&Place::Range(from, to)) => Ok(FieldValue::Bytes(&source[from..to])),
            None => Err(bad_format(format!("missing data for column \"{}\"", self.names[nth]))),
        }
    }

    /// Returns the current record as messages show it.
    pub fn shown(&self) -> String {
        shown(&self.buffer[self.record.0..self.record.1])
    }

    fn next_binary(&mut self) -> Result<Next> {
        let missing = |reader: &RecordReader, what: &str| match reader.is_complete {
            true => Err(bad_format(what)),
            false => Ok(Next::More),
        };
        let mut at = self.at;
        if !self.is_begun {
            let head = &self.buffer[at..];
            if head.len() < SIGNATURE.len() {
                return match SIGNATURE.starts_with(head) {
                    true => missing(self, "COPY file signature not recognized"),
                    false => Err(bad_format("COPY file signature not recognized")),
                };
            }
            if !head.starts_with(SIGNATURE) {
                return Err(bad_format("COPY file signature not recognized"));
            }
            let Some(flags) = self.word(at + SIGNATURE.len()) else {
                return missing(self, "invalid COPY file header (missing flags)");
            };
            if flags & 1 << 16 != 0 {
                return Err(bad_format("invalid COPY file header (WITH OIDS)"));
            }
            if flags & !0xffff & !(1 << 16) != 0 {
                return Err(bad_format("unrecognized critical flags in COPY file header"));
            }
            let Some(length) = self.word(at + SIGNATURE.len() + 4) else {
                return missing(self, "invalid COPY file header (missing length)");
            };
            at += SIGNATURE.len() + 8;
            let length =
                usize::try_from(length).map_err(|_| bad_format("invalid COPY file header (missing length)"))?;
            if self.buffer.len() < at + length {
                return missing(self, "invalid COPY file header (wrong length)");
            }
            at += length;
            self.is_begun = true;
            (self.at, self.searched) = (at, at);
        }
        let Some(count) = self.buffer.get(at..at + 2).map(|bytes| i16::from_be_bytes([bytes[0], bytes[1]])) else {
            if self.is_complete && at == self.buffer.len() {
                self.is_ended = true;
                return Ok(Next::End);
            }
            return missing(self, "unexpected EOF in COPY data");
        };
        if count == -1 {
            self.is_ended = true;
            return Ok(Next::End);
        }
        at += 2;
        let mut fields = Vec::with_capacity(self.names.len());
        for _ in 0..count.max(0) {
            let Some(length) = self.word(at) else { return missing(self, "unexpected EOF in COPY data") };
            at += 4;
            match length {
                -1 => fields.push(Place::Null),
                length if length < 0 => return Err(bad_format("invalid field size")),
                length => {
                    let to = at + length as usize;
                    if self.buffer.len() < to {
                        return missing(self, "unexpected EOF in COPY data");
                    }
                    fields.push(Place::Range(at, to));
                    at = to;
                }
            }
        }
        self.line += 1;
        self.record = (self.at, self.at);
        (self.at, self.searched) = (at, at);
        if usize::from(count.max(0) as u16) != self.names.len() {
            let expected = self.names.len();
            return Err(bad_format(format!("row field count is {count}, expected {expected}")));
        }
        self.fields = fields;
        Ok(Next::Record)
    }

    fn word(&self, at: usize) -> Option<i32> {
        let bytes = self.buffer.get(at..at + 4)?;
        Some(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

/// Returns bytes as messages show them, cut where they are long.
pub fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().find(|(at, _)| *at >= SHOWN_MAX) {
        Some((end, _)) => format!("\"{}...\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}

/// Appends the byte that an escape stands for, and returns the position after it.
fn unescape(line: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let digits = |from: usize, most: usize, radix: u32| {
        let count = line[from..].iter().take(most).take_while(|byte| (**byte as char).is_digit(radix)).count();
        let value = line[from..from + count]
            .iter()
            .fold(0u32, |value, byte| value * radix + (*byte as char).to_digit(radix).unwrap_or(0));
        (count, value as u8)
    };
    let byte = match line[at] {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'0'..=b'7' => {
            let (count, value) = digits(at, 3, 8);
            out.push(value);
            return at + count;
        }
        b'x' => {
            let (count, value) = digits(at + 1, 2, 16);
            if count > 0 {
                out.push(value);
                return at + 1 + count;
            }
            b'x'
        }
        other => other,
    };
    out.push(byte);
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of an input, which comes in pieces of the given size.
    fn records(format: &str, names: &[&str], input: &[u8], piece: usize) -> Result<Vec<Vec<Option<String>>>> {
        let option = |name: &str, value: &str| syntax::postgres::tree::DefElem {
            namespace: None,
            name: name.to_owned(),
            value: Some(syntax::postgres::tree::DefArg::String(value.to_owned())),
            at: syntax::postgres::tree::Location(0),
        };
        let options = CopyOptions::read(&[option("format", format)], true, "")?;
        let mut reader = RecordReader::new(options, names.iter().map(|name| (*name).to_owned()).collect());
        let mut rows = Vec::new();
        let mut pieces = input.chunks(piece);
        loop {
            match reader.next_record()? {
                Next::More => match pieces.next() {
                    Some(bytes) => reader.add(bytes),
                    None => reader.complete(),
                },
                Next::End => return Ok(rows),
                Next::Header => {}
                Next::Record => rows.push(
                    (0..names.len())
                        .map(|nth| match reader.field(nth)? {
                            FieldValue::Bytes(bytes) => Ok(Some(String::from_utf8_lossy(bytes).into_owned())),
                            _ => Ok(None),
                        })
                        .collect::<Result<_>>()?,
                ),
            }
        }
    }

    fn some(values: &[Option<&str>]) -> Vec<Option<String>> {
        values.iter().map(|value| value.map(str::to_owned)).collect()
    }

    #[test]
    fn text_is_the_same_in_pieces_of_every_size() {
        let input = b"1\tx\\ty\n\\N\t\\x41\\101\\q\n2\tab\\\nc\n\\.\nrest";
        for piece in 1..input.len() {
            let rows = records("text", &["a", "b"], input, piece).unwrap();
            assert_eq!(
                rows,
                [some(&[Some("1"), Some("x\ty")]), some(&[None, Some("AAq")]), some(&[Some("2"), Some("ab\nc")])],
                "{piece}"
            );
        }
    }

    #[test]
    fn csv_keeps_line_ends_within_quotes() {
        let input = b"1,\"a\"\"b\nc\"\r\n,\"\"\r\n";
        for piece in 1..input.len() {
            let rows = records("csv", &["a", "b"], input, piece).unwrap();
            assert_eq!(rows, [some(&[Some("1"), Some("a\"b\nc")]), some(&[None, Some("")])], "{piece}");
        }
    }

    #[test]
    fn a_record_with_too_few_or_too_many_fields_is_refused() {
        let message = |input: &[u8]| records("text", &["a", "b"], input, 100).unwrap_err().message;
        assert_eq!(message(b"1\n"), "missing data for column \"b\"");
        assert_eq!(message(b"1\t2\t3\n"), "extra data after last expected column");
        assert_eq!(records("csv", &["a"], b"\"x", 100).unwrap_err().message, "unterminated CSV quoted field");
        assert_eq!(records("binary", &["a"], b"xx", 100).unwrap_err().message, "COPY file signature not recognized");
    }

    #[test]
    fn binary_records_are_divided_by_their_lengths() {
        let mut input = SIGNATURE.to_vec();
        input.extend_from_slice(&[0; 8]);
        input.extend_from_slice(&[0, 2, 0, 0, 0, 1, b'x', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        for piece in 1..input.len() {
            let rows = records("binary", &["a", "b"], &input, piece).unwrap();
            assert_eq!(rows, [some(&[Some("x"), None])], "{piece}");
        }
    }
}
