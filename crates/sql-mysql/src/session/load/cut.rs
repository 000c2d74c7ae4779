//! Splitting of a file into records and fields by the rules of LOAD DATA.
//!
//! Bytes arrive in pieces of any size. A record is split once it is complete; an incomplete one is retried when twice
//! as many bytes are there, so a long record is not scanned once per piece. Irregular cases (text after the last field,
//! a quote within quotes, the end of the file) follow MySQL's `READ_INFO` step by step.

use crate::parse::statement::Format;
use crate::types::Charset;

/// More bytes are needed for a decision.
struct Short;

type Seen<T> = std::result::Result<T, Short>;

#[derive(Debug, PartialEq, Eq)]
pub enum Cut {
    More,
    End,
    /// True: there was more in the line than fields to take it.
    Record(bool),
}

#[derive(Clone, Copy, Debug)]
struct Field {
    from: usize,
    to: usize,
    is_null: bool,
}

#[derive(Debug)]
pub struct Cutter {
    format: Format,
    /// The file's: within a character of several bytes nothing is a separator.
    charset: Charset,
    /// Fields of a record.
    count: usize,
    /// Where nothing is between fields: how many bytes each has.
    widths: Option<Vec<usize>>,
    /// Lines that are passed over first.
    skip: u64,
    bytes: Vec<u8>,
    at: usize,
    ended: bool,
    /// The number of bytes that was insufficient.
    tried: usize,
    /// The record's fields, without quotes and escapes.
    text: Vec<u8>,
    fields: Vec<Field>,
}

impl Cutter {
    pub fn new(mut format: Format, count: usize, widths: Option<Vec<usize>>, mut skip: u64) -> Cutter {
        // Records then end with their last field, and no line is passed over, for there is none.
        if format.field_end == format.line_end && !format.line_end.is_empty() {
            format.line_end.clear();
            skip = 0;
        }
        let (bytes, text, fields) = (Vec::new(), Vec::new(), Vec::new());
        let charset = Charset::Utf8;
        Cutter { format, charset, count, widths, skip, bytes, at: 0, ended: false, tried: 0, text, fields }
    }

    pub fn reading(self, charset: Charset) -> Cutter {
        Cutter { charset, ..self }
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(bytes);
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Bytes of a record that is not whole.
    pub fn held(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The field's bytes, None for NULL; the outer None: the line ended before it.
    pub fn field(&self, nth: usize) -> Option<Option<&[u8]>> {
        self.fields.get(nth).map(|field| (!field.is_null).then(|| &self.text[field.from..field.to]))
    }

    pub fn next(&mut self) -> Cut {
        if !self.ended && self.held() < self.tried * 2 {
            return Cut::More;
        }
        match self.try_next() {
            Ok(cut) => {
                self.tried = 0;
                cut
            }
            Err(Short) => {
                self.tried = self.held().max(1);
                Cut::More
            }
        }
    }

    fn try_next(&mut self) -> Seen<Cut> {
        while self.skip > 0 {
            let (over, to) = match self.format.line_end.is_empty() {
                true => {
                    let (cut, to) = self.record()?;
                    (cut == Cut::End, to)
                }
                false => {
                    let (end, to) = self.rest_of_line(self.at)?;
                    (end.is_none(), to)
                }
            };
            self.at = to;
            self.skip -= 1;
            if over {
                return Ok(Cut::End);
            }
        }
        let (cut, to) = self.record()?;
        self.at = to;
        Ok(cut)
    }

    /// The byte there, None at the end of the file.
    fn get(&self, at: usize) -> Seen<Option<u8>> {
        match self.bytes.get(at) {
            Some(byte) => Ok(Some(*byte)),
            None if self.ended => Ok(None),
            None => Err(Short),
        }
    }

    /// The length of the character there, of which there is at least a byte.
    fn char_length(&self, at: usize) -> Seen<usize> {
        if self.bytes[at] < 0x80 || !self.charset.has_own_encoding() || self.charset.is_single_byte() {
            return Ok(1);
        }
        self.get(at + self.charset.max_bytes() as usize - 1)?;
        Ok(self.charset.char_length(&self.bytes[at..]))
    }

    /// Does this separator stand there?
    fn stands(&self, separator: &[u8], at: usize) -> Seen<bool> {
        if separator.is_empty() {
            return Ok(false);
        }
        for (nth, byte) in separator.iter().enumerate() {
            if self.get(at + nth)? != Some(*byte) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn record(&mut self) -> Seen<(Cut, usize)> {
        self.text.clear();
        self.fields.clear();
        let mut at = self.at;
        if !self.format.line_start.is_empty() {
            while !self.stands(&self.format.line_start, at)? {
                if self.get(at)?.is_none() {
                    return Ok((Cut::End, at));
                }
                at += 1;
            }
            at += self.format.line_start.len();
        }
        if self.get(at)?.is_none() {
            return Ok((Cut::End, at));
        }
        let (line_is_over, at) = match self.widths.take() {
            None => self.separated(at)?,
            Some(widths) => {
                let cut = self.fixed(&widths, at);
                self.widths = Some(widths);
                cut?
            }
        };
        if line_is_over || self.format.line_end.is_empty() {
            return Ok((Cut::Record(false), at));
        }
        let (end, to) = self.rest_of_line(at)?;
        // What the file's end cuts off is not told.
        Ok((Cut::Record(end == Some(true)), to))
    }

    /// Takes the record's fields. True: its line, or the file, is over.
    fn separated(&mut self, mut at: usize) -> Seen<(bool, usize)> {
        let mut line_is_over = false;
        while self.fields.len() < self.count && !line_is_over && self.get(at)?.is_some() {
            (line_is_over, at) = self.one_field(at)?;
        }
        Ok((line_is_over, at))
    }

    /// The same of fields that have a width each. There is no NULL.
    fn fixed(&mut self, widths: &[usize], mut at: usize) -> Seen<(bool, usize)> {
        // A record takes something of the file, whatever its columns are.
        let width = widths.iter().sum::<usize>().max(1);
        let mut line_is_over = false;
        while self.text.len() < width && !line_is_over {
            let Some(byte) = self.get(at)? else { break };
            if Some(byte) == self.format.escape {
                let next = self.get(at + 1)?;
                self.text.push(next.map_or(byte, unescaped));
                at += 1 + usize::from(next.is_some());
            } else if self.stands(&self.format.line_end, at)? {
                at += self.format.line_end.len();
                line_is_over = true;
            } else {
                let length = self.char_length(at)?;
                self.text.extend_from_slice(&self.bytes[at..at + length]);
                at += length;
            }
        }
        let mut from = 0;
        for width in widths {
            if from == self.text.len() {
                break;
            }
            let to = self.text.len().min(from + width);
            self.fields.push(Field { from, to, is_null: false });
            from = to;
        }
        Ok((line_is_over, at))
    }

    /// Takes the field that begins there. True: its line, or the file, is over.
    fn one_field(&mut self, mut at: usize) -> Seen<(bool, usize)> {
        let (enclosed, escape) = (self.format.enclosed, self.format.escape);
        let quote = enclosed.filter(|quote| self.bytes.get(at) == Some(quote));
        let from = self.text.len();
        let (mut has_null, mut is_closed) = (false, false);
        at += usize::from(quote.is_some());
        let line_is_over = loop {
            let Some(mut byte) = self.get(at)? else {
                // A quote that was never closed is part of the value.
                if let Some(quote) = quote {
                    self.text.insert(from, quote);
                }
                break true;
            };
            if Some(byte) == escape {
                let Some(next) = self.get(at + 1)? else {
                    self.text.push(byte);
                    at += 1;
                    continue;
                };
                // A quote that escapes itself escapes nothing else.
                if escape != enclosed || next == byte {
                    has_null |= next == b'N';
                    self.text.push(unescaped(next));
                    at += 2;
                    continue;
                }
            }
            if quote.is_none() && self.stands(&self.format.line_end, at)? {
                at += self.format.line_end.len();
                break true;
            }
            if Some(byte) == quote {
                let next = self.get(at + 1)?;
                if next == quote {
                    self.text.push(byte);
                    at += 2;
                    continue;
                }
                is_closed = true;
                if next.is_none() {
                    at += 1;
                    break true;
                }
                if self.stands(&self.format.line_end, at + 1)? {
                    at += 1 + self.format.line_end.len();
                    break true;
                }
                if self.stands(&self.format.field_end, at + 1)? {
                    at += 1 + self.format.field_end.len();
                    break false;
                }
                is_closed = false;
                byte = quote.unwrap_or(byte);
            } else if quote.is_none() && self.stands(&self.format.field_end, at)? {
                at += self.format.field_end.len();
                break false;
            }
            let length = self.char_length(at)?;
            self.text.push(byte);
            self.text.extend_from_slice(&self.bytes[at + 1..at + length]);
            at += length;
        };
        let value = &self.text[from..];
        let is_word = enclosed.is_some() && !is_closed && value == b"NULL";
        let field = Field { from, to: self.text.len(), is_null: is_word || has_null && value == b"N" };
        self.fields.push(field);
        Ok((line_is_over, at))
    }

    /// Where the next line begins. Some: the line has an end, and whether there was anything before it.
    fn rest_of_line(&self, mut at: usize) -> Seen<(Option<bool>, usize)> {
        let mut any = false;
        loop {
            let Some(byte) = self.get(at)? else { return Ok((None, at)) };
            if Some(byte) == self.format.escape {
                any = true;
                if self.get(at + 1)?.is_none() {
                    return Ok((None, at + 1));
                }
                at += 2;
            } else if self.stands(&self.format.line_end, at)? {
                return Ok((Some(any), at + self.format.line_end.len()));
            } else {
                any = true;
                at += self.char_length(at)?;
            }
        }
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'0' => 0,
        b'Z' => 26,
        other => other,
    }
}

#[cfg(test)]
mod tests;
