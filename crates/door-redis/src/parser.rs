//! Parses requests from the received bytes.
//!
//! A request is an array of bulk strings (`*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`) or an inline line (`GET k\r\n`). Arguments become spans: offset and length from the
//! request's first byte. Nothing is copied, except inline lines, because removing their quotes changes the bytes.
//!
//! The hard part is a request that arrives in pieces. The parser keeps its position, never reads the bytes of a bulk string, and reports the minimum length of
//! the request. So a value of 512 MB is neither scanned again for each piece nor received through small buffers.
//!
//! Texts and limits of protocol errors are those of Redis 7.0.15, including its corner cases: the byte after `\r` and the two bytes after a bulk string are not
//! checked, and a NUL byte hides the rest of a header line.

/// Redis' PROTO_INLINE_MAX_SIZE. A line that has no end within so many bytes is refused.
const LINE_MAX: usize = 64 * 1024;
/// Limits of a connection that has not authenticated yet.
const UNAUTHENTICATED_ARGUMENTS_MAX: i64 = 10;
const UNAUTHENTICATED_BULK_MAX: i64 = 16_384;

/// Limits from the settings and from the session's state.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `proto-max-bulk-len`.
    pub bulk_max: i64,
    /// `client-query-buffer-limit`. A longer request closes the connection.
    pub request_max: usize,
    /// The connection must authenticate first.
    pub restricted: bool,
}

/// One argument: bytes `start .. start + len` of its request. Requests beyond 4 GiB are refused before a span is created, so 32 bits suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub len: u32,
}

/// A complete request: bytes `start .. end` of the input, and a range of the span list for its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub start: usize,
    pub end: usize,
    pub first: u32,
    pub count: u32,
    /// The spans refer to the unquoted copy ([`Parser::line`]) instead of the input.
    pub inline: bool,
}

/// The result of parsing at the current position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    Request(Request),
    /// The request is incomplete. Counted from its start it has at least so many bytes (0: unknown).
    Partial {
        needed: usize,
    },
    /// The connection must be closed after this error has been sent.
    Invalid(ProtocolError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    MultibulkLength,
    MultibulkUnauthenticated,
    MultibulkLine,
    BulkLine,
    BulkLength,
    BulkUnauthenticated,
    ExpectedDollar(u8),
    InlineTooBig,
    UnbalancedQuotes,
    /// Redis closes the connection without an error.
    RequestTooBig,
}

impl ProtocolError {
    /// Appends the error line.
    pub fn reply(self, out: &mut Vec<u8>) {
        let text: &[u8] = match self {
            ProtocolError::MultibulkLength => b"invalid multibulk length",
            ProtocolError::MultibulkUnauthenticated => b"unauthenticated multibulk length",
            ProtocolError::MultibulkLine => b"too big mbulk count string",
            ProtocolError::BulkLine => b"too big bulk count string",
            ProtocolError::BulkLength => b"invalid bulk length",
            ProtocolError::BulkUnauthenticated => b"unauthenticated bulk length",
            ProtocolError::ExpectedDollar(_) => b"expected '$', got '",
            ProtocolError::InlineTooBig => b"too big inline request",
            ProtocolError::UnbalancedQuotes => b"unbalanced quotes in request",
            ProtocolError::RequestTooBig => return,
        };
        out.extend_from_slice(b"-ERR Protocol error: ");
        out.extend_from_slice(text);
        if let ProtocolError::ExpectedDollar(got) = self {
            // Redis formats with %c and then replaces line ends with spaces, so that the error stays one line. A NUL ends its text.
            let shown = if matches!(got, b'\r' | b'\n') { b' ' } else { got };
            if got != 0 {
                out.extend_from_slice(&[shown, b'\'']);
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// The state of the parser. Between calls the input must start at the same byte, or, after [`Parser::consumed`] was called with the number of bytes removed in
/// front, at the start of the incomplete request.
#[derive(Debug, Default)]
pub struct Parser {
    /// First byte of the current request.
    start: usize,
    /// Next byte to read.
    position: usize,
    /// Number of bulk strings that the current request still lacks; 0 between requests.
    remaining: u64,
    /// Length of the bulk string whose bytes are awaited.
    bulk: Option<usize>,
    /// Number of bytes of an unfinished line that were searched for its end.
    searched: usize,
    /// First span of the current request.
    first: usize,
    spans: Vec<Span>,
    /// The latest inline request without its quotes.
    line: Vec<u8>,
}

enum Line {
    /// The end of the line, and the start of the next one.
    Whole {
        end: usize,
        next: usize,
    },
    Unfinished,
}

impl Parser {
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Returns the spans of a request parsed since the last [`Parser::consumed`].
    pub fn spans(&self, request: &Request) -> &[Span] {
        &self.spans[request.first as usize..(request.first + request.count) as usize]
    }

    /// Returns the bytes that the spans of the latest inline request refer to.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// Records that the first `bytes` of the input were removed. They must be whole requests before the current one; their spans are removed too.
    pub fn consumed(&mut self, bytes: usize) {
        assert!(bytes <= self.start, "only whole requests are consumed");
        self.start -= bytes;
        self.position -= bytes;
        self.searched = self.searched.saturating_sub(bytes);
        self.spans.drain(..self.first);
        self.first = 0;
        // A request of a million arguments must not keep its span list forever.
        if self.spans.is_empty() && self.spans.capacity() > 64 * 1024 {
            self.spans.shrink_to(1024);
        }
        if self.line.capacity() > LINE_MAX {
            self.line = Vec::new();
        }
    }

    /// Discards everything that was parsed but not executed. The input will be parsed again from its first byte.
    pub fn rewind(&mut self) {
        self.spans.clear();
        (self.start, self.position, self.remaining, self.bulk, self.searched, self.first) = (0, 0, 0, None, 0, 0);
    }

    /// Returns the start of the current request.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the bytes allocated beyond the struct itself.
    pub fn memory(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.line.capacity()
    }

    /// Parses the next request. Skips empty ones (`*0`, `*-1`, blank lines).
    pub fn next(&mut self, input: &[u8], limits: &Limits) -> Parsed {
        loop {
            if self.remaining == 0 {
                match input.get(self.position) {
                    None => return Parsed::Partial { needed: 0 },
                    Some(b'*') => match self.array_header(input, limits) {
                        Ok(true) => {}
                        Ok(false) => continue,
                        Err(cut) => return cut,
                    },
                    Some(_) => match self.inline(input, limits) {
                        Ok(true) => return self.finish(true),
                        Ok(false) => continue,
                        Err(cut) => return cut,
                    },
                }
            }
            return match self.bulks(input, limits) {
                Ok(()) => self.finish(false),
                Err(cut) => cut,
            };
        }
    }

    fn finish(&mut self, inline: bool) -> Parsed {
        let request = Request {
            start: self.start,
            end: self.position,
            first: self.first as u32,
            count: (self.spans.len() - self.first) as u32,
            inline,
        };
        self.start = self.position;
        self.first = self.spans.len();
        Parsed::Request(request)
    }

    /// Reads `*count\r\n`. Returns false if the request is empty.
    fn array_header(&mut self, input: &[u8], limits: &Limits) -> Result<bool, Parsed> {
        let Line::Whole { end, next } = self.find_line(input) else {
            return Err(self.unfinished_line(input, limits, ProtocolError::MultibulkLine));
        };
        let count = match crate::number::parse(&input[self.position + 1..end]) {
            Some(count) if count <= i64::from(i32::MAX) => count,
            _ => return Err(Parsed::Invalid(ProtocolError::MultibulkLength)),
        };
        if limits.restricted && count > UNAUTHENTICATED_ARGUMENTS_MAX {
            return Err(Parsed::Invalid(ProtocolError::MultibulkUnauthenticated));
        }
        self.position = next;
        if count <= 0 {
            self.start = next;
            return Ok(false);
        }
        self.remaining = count as u64;
        Ok(true)
    }

    fn bulks(&mut self, input: &[u8], limits: &Limits) -> Result<(), Parsed> {
        while self.remaining > 0 {
            let len = match self.bulk {
                Some(len) => len,
                None => {
                    let len = self.bulk_header(input, limits)?;
                    self.bulk = Some(len);
                    len
                }
            };
            let end = self.position + len + 2;
            if input.len() < end {
                return Err(self.partial(end - self.start, limits));
            }
            let start = (self.position - self.start) as u32;
            self.spans.push(Span { start, len: len as u32 });
            self.position = end;
            self.bulk = None;
            self.remaining -= 1;
        }
        Ok(())
    }

    /// Reads `$length\r\n` and moves behind it.
    #[inline]
    fn bulk_header(&mut self, input: &[u8], limits: &Limits) -> Result<usize, Parsed> {
        // Fast path for the usual header: one to four digits, complete. The exact parser below handles everything else.
        if let [b'$', rest @ ..] = &input[self.position..] {
            let mut len = 0usize;
            for (at, &byte) in rest.iter().take(5).enumerate() {
                let digit = byte.wrapping_sub(b'0');
                if digit < 10 {
                    len = len * 10 + usize::from(digit);
                } else if byte == b'\r' && at > 0 && at < 5 && rest.len() > at + 1 && (rest[0] != b'0' || at == 1) {
                    if len as i64 > limits.bulk_max {
                        break;
                    }
                    self.position += at + 3;
                    return Ok(len);
                } else {
                    break;
                }
            }
        }
        let Line::Whole { end, next } = self.find_line(input) else {
            return Err(self.unfinished_line(input, limits, ProtocolError::BulkLine));
        };
        if input[self.position] != b'$' {
            return Err(Parsed::Invalid(ProtocolError::ExpectedDollar(input[self.position])));
        }
        let len = match crate::number::parse(&input[self.position + 1..end]) {
            Some(len) if (0..=limits.bulk_max).contains(&len) => len,
            _ => return Err(Parsed::Invalid(ProtocolError::BulkLength)),
        };
        if limits.restricted && len > UNAUTHENTICATED_BULK_MAX {
            return Err(Parsed::Invalid(ProtocolError::BulkUnauthenticated));
        }
        self.position = next;
        Ok(len as usize)
    }

    /// Returns the header line at the position, up to `\r`. A NUL before the `\r` hides it, as in Redis.
    fn find_line(&mut self, input: &[u8]) -> Line {
        let from = self.position.max(self.searched);
        match input[from..].iter().position(|&byte| byte == b'\r' || byte == 0) {
            Some(at) if input[from + at] == b'\r' => {
                let end = from + at;
                if end + 2 > input.len() {
                    self.searched = end;
                    return Line::Unfinished;
                }
                self.searched = 0;
                Line::Whole { end, next: end + 2 }
            }
            Some(at) => {
                self.searched = from + at;
                Line::Unfinished
            }
            None => {
                self.searched = input.len();
                Line::Unfinished
            }
        }
    }

    fn unfinished_line(&self, input: &[u8], limits: &Limits, broken: ProtocolError) -> Parsed {
        if input.len() - self.position > LINE_MAX {
            return Parsed::Invalid(broken);
        }
        match self.partial(input.len() - self.start, limits) {
            Parsed::Partial { .. } => Parsed::Partial { needed: 0 },
            broken => broken,
        }
    }

    fn partial(&self, needed: usize, limits: &Limits) -> Parsed {
        if needed > limits.request_max.min(u32::MAX as usize) {
            return Parsed::Invalid(ProtocolError::RequestTooBig);
        }
        Parsed::Partial { needed }
    }

    /// Parses an inline line. Returns false if it has no words.
    fn inline(&mut self, input: &[u8], limits: &Limits) -> Result<bool, Parsed> {
        let from = self.position.max(self.searched);
        let found = input[from..].iter().position(|&byte| byte == b'\n' || byte == 0);
        let Some(end) = found.map(|at| from + at).filter(|&end| input[end] == b'\n') else {
            self.searched = found.map_or(input.len(), |at| from + at);
            return Err(self.unfinished_line(input, limits, ProtocolError::InlineTooBig));
        };
        self.searched = 0;
        let text = &input[self.position..end];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        self.line.clear();
        if split_words(text, &mut self.line, &mut self.spans).is_none() {
            self.spans.truncate(self.first);
            return Err(Parsed::Invalid(ProtocolError::UnbalancedQuotes));
        }
        self.position = end + 1;
        if self.spans.len() == self.first {
            self.start = self.position;
            return Ok(false);
        }
        Ok(true)
    }
}

/// Returns the words of a line, or None if a quote is not closed.
pub(crate) fn words(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut line, mut spans) = (Vec::new(), Vec::new());
    split_words(text, &mut line, &mut spans)?;
    Some(spans.iter().map(|span| line[span.start as usize..][..span.len as usize].to_vec()).collect())
}

/// Splits a line as Redis' `sdssplitargs` does: words separated by blanks, `"..."` with escapes, `'...'` with `\'` only. Returns None if a quote is not closed
/// or not followed by a blank. A NUL ends the line.
fn split_words(text: &[u8], line: &mut Vec<u8>, spans: &mut Vec<Span>) -> Option<()> {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let at = |index: usize| text.get(index).copied().unwrap_or(0);
    let mut p = 0;
    loop {
        while is_space(at(p)) {
            p += 1;
        }
        if at(p) == 0 {
            return Some(());
        }
        let start = line.len();
        loop {
            match at(p) {
                b' ' | b'\n' | b'\r' | b'\t' | 0 => break,
                b'"' => {
                    p = double_quoted(text, p + 1, line)?;
                    if at(p) != 0 && !is_space(at(p)) {
                        return None;
                    }
                    break;
                }
                b'\'' => {
                    p = single_quoted(text, p + 1, line)?;
                    if at(p) != 0 && !is_space(at(p)) {
                        return None;
                    }
                    break;
                }
                byte => line.push(byte),
            }
            p += 1;
        }
        spans.push(Span { start: start as u32, len: (line.len() - start) as u32 });
    }
}

/// Unescapes up to the closing quote and returns the position behind it.
fn double_quoted(text: &[u8], mut p: usize, line: &mut Vec<u8>) -> Option<usize> {
    loop {
        match &text[p.min(text.len())..] {
            [] | [0, ..] => return None,
            [b'"', ..] => return Some(p + 1),
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
                line.push(digit(*high) << 4 | digit(*low));
                p += 4;
            }
            [b'\\', escaped, ..] if *escaped != 0 => {
                line.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                p += 2;
            }
            [byte, ..] => {
                line.push(*byte);
                p += 1;
            }
        }
    }
}

fn single_quoted(text: &[u8], mut p: usize, line: &mut Vec<u8>) -> Option<usize> {
    loop {
        match &text[p.min(text.len())..] {
            [] | [0, ..] => return None,
            [b'\\', b'\'', ..] => {
                line.push(b'\'');
                p += 2;
            }
            [b'\'', ..] => return Some(p + 1),
            [byte, ..] => {
                line.push(*byte);
                p += 1;
            }
        }
    }
}

/// Returns the first argument of the request at the start of `input`, if it is complete. For most commands it is a key. This is only a hint for looking ahead;
/// `Parser` is authoritative.
pub fn first_key(input: &[u8]) -> Option<&[u8]> {
    let (count, rest) = short_number(input.strip_prefix(b"*")?)?;
    let (name_len, rest) = short_number(rest.strip_prefix(b"$")?)?;
    let rest = rest.get(name_len + 2..)?;
    let (key_len, rest) = short_number(rest.strip_prefix(b"$")?)?;
    if count < 2 { None } else { rest.get(..key_len) }
}

/// Reads a number of up to four digits and the line end behind it.
fn short_number(text: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0;
    for (at, byte) in text.iter().enumerate().take(5) {
        match byte {
            b'0'..=b'9' if at < 4 => number = number * 10 + usize::from(byte - b'0'),
            b'\r' if at > 0 => return Some((number, text.get(at + 2..)?)),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests;
