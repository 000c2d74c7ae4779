//! Cuts requests out of the received bytes.
//!
//! A request is an array of bulk strings (`*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`) or an inline line (`GET k\r\n`). Arguments become spans (offset
//! and length from the request's first byte); nothing is copied, only inline lines are, since quoting changes their bytes.
//!
//! The hard part is a request that arrives in pieces. The parser keeps where it stands, never looks at a byte of a bulk string, and
//! says how long the request will be at least, so that a 512 MB value is neither scanned again at each piece nor received through small buffers.
//!
//! Texts and limits of the protocol errors are those of Redis 7.0.15, odd corners included: the byte after `\r` and the two bytes after a
//! bulk string are not looked at, and a NUL byte hides the rest of a header line.

/// Redis's PROTO_INLINE_MAX_SIZE: a line that has no end within so many bytes is refused.
const LINE_MAX: usize = 64 * 1024;
/// What a connection that still has to authenticate may send.
const UNAUTHENTICATED_ARGUMENTS_MAX: i64 = 10;
const UNAUTHENTICATED_BULK_MAX: i64 = 16_384;

/// Limits that settings and the session's state decide.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `proto-max-bulk-len`.
    pub bulk_max: i64,
    /// `client-query-buffer-limit`: a longer request closes the connection.
    pub request_max: usize,
    /// The connection must authenticate first.
    pub restricted: bool,
}

/// One argument: bytes `start .. start + len` of its request. Requests beyond 4 GiB are refused before a span is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub len: u32,
}

/// A complete request: its bytes are `start .. end` of the input, its arguments the given part of the span list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub start: usize,
    pub end: usize,
    pub first: u32,
    pub count: u32,
    /// The spans point into the unquoted copy ([`Parser::line`]) instead of the input.
    pub inline: bool,
}

/// What the parser found at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Request(Request),
    /// The request is not complete; it needs so many bytes from its start at least (0: unknown).
    Partial {
        needed: usize,
    },
    /// The connection cannot go on: the error to reply with before closing.
    Broken(Broken),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    MultibulkLength,
    MultibulkUnauthenticated,
    MultibulkLine,
    BulkLine,
    BulkLength,
    BulkUnauthenticated,
    ExpectedDollar(u8),
    InlineTooBig,
    UnbalancedQuotes,
    /// Redis closes without a word.
    RequestTooBig,
}

impl Broken {
    /// Appends the error line.
    pub fn reply(self, out: &mut Vec<u8>) {
        let text: &[u8] = match self {
            Broken::MultibulkLength => b"invalid multibulk length",
            Broken::MultibulkUnauthenticated => b"unauthenticated multibulk length",
            Broken::MultibulkLine => b"too big mbulk count string",
            Broken::BulkLine => b"too big bulk count string",
            Broken::BulkLength => b"invalid bulk length",
            Broken::BulkUnauthenticated => b"unauthenticated bulk length",
            Broken::ExpectedDollar(_) => b"expected '$', got '",
            Broken::InlineTooBig => b"too big inline request",
            Broken::UnbalancedQuotes => b"unbalanced quotes in request",
            Broken::RequestTooBig => return,
        };
        out.extend_from_slice(b"-ERR Protocol error: ");
        out.extend_from_slice(text);
        if let Broken::ExpectedDollar(got) = self {
            // Redis formats with %c and then blanks line ends so that the error stays one line; a NUL ends its text.
            let shown = if matches!(got, b'\r' | b'\n') { b' ' } else { got };
            if got != 0 {
                out.extend_from_slice(&[shown, b'\'']);
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Where the parser stands. Between calls the input must start at the same byte, or at the start of the request being cut after
/// [`Parser::consumed`] told how many bytes in front of it are gone.
#[derive(Debug, Default)]
pub struct Parser {
    /// First byte of the request being cut.
    start: usize,
    /// Next byte to look at.
    position: usize,
    /// Bulk strings the request still lacks; 0 between requests.
    remaining: u64,
    /// Length of the bulk string whose bytes are awaited.
    bulk: Option<usize>,
    /// Bytes of an unfinished line already searched for its end.
    searched: usize,
    /// First span of the request being cut.
    first: usize,
    spans: Vec<Span>,
    /// The latest inline request without its quotes.
    line: Vec<u8>,
}

enum Line {
    /// The bytes of the line, and where the next one starts.
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

    /// Spans of all requests cut since [`Parser::consumed`].
    pub fn spans(&self, request: &Request) -> &[Span] {
        &self.spans[request.first as usize..(request.first + request.count) as usize]
    }

    /// The bytes the spans of the latest inline request point into.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// The first `bytes` of the input are gone: whole requests, all before the one being cut. Their spans go too.
    pub fn consumed(&mut self, bytes: usize) {
        assert!(bytes <= self.start, "only whole requests are consumed");
        self.start -= bytes;
        self.position -= bytes;
        self.searched = self.searched.saturating_sub(bytes);
        self.spans.drain(..self.first);
        self.first = 0;
        // A request of a million arguments should not keep its list for ever.
        if self.spans.is_empty() && self.spans.capacity() > 64 * 1024 {
            self.spans.shrink_to(1024);
        }
        if self.line.capacity() > LINE_MAX {
            self.line = Vec::new();
        }
    }

    /// Forgets everything cut but not executed: the input will be cut again from its first byte.
    pub fn rewind(&mut self) {
        self.spans.clear();
        (self.start, self.position, self.remaining, self.bulk, self.searched, self.first) = (0, 0, 0, None, 0, 0);
    }

    /// Where the request being cut starts.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes held beyond the struct itself.
    pub fn memory(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.line.capacity()
    }

    /// Cuts the next request. Empty ones (`*0`, `*-1`, blank lines) are passed over.
    pub fn next(&mut self, input: &[u8], limits: &Limits) -> Cut {
        loop {
            if self.remaining == 0 {
                match input.get(self.position) {
                    None => return Cut::Partial { needed: 0 },
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

    fn finish(&mut self, inline: bool) -> Cut {
        let request = Request {
            start: self.start,
            end: self.position,
            first: self.first as u32,
            count: (self.spans.len() - self.first) as u32,
            inline,
        };
        self.start = self.position;
        self.first = self.spans.len();
        Cut::Request(request)
    }

    /// Reads `*count\r\n`; false if the request is empty.
    fn array_header(&mut self, input: &[u8], limits: &Limits) -> Result<bool, Cut> {
        let Line::Whole { end, next } = self.find_line(input) else {
            return Err(self.unfinished_line(input, limits, Broken::MultibulkLine));
        };
        let count = match crate::number::parse(&input[self.position + 1..end]) {
            Some(count) if count <= i64::from(i32::MAX) => count,
            _ => return Err(Cut::Broken(Broken::MultibulkLength)),
        };
        if limits.restricted && count > UNAUTHENTICATED_ARGUMENTS_MAX {
            return Err(Cut::Broken(Broken::MultibulkUnauthenticated));
        }
        self.position = next;
        if count <= 0 {
            self.start = next;
            return Ok(false);
        }
        self.remaining = count as u64;
        Ok(true)
    }

    fn bulks(&mut self, input: &[u8], limits: &Limits) -> Result<(), Cut> {
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

    /// Reads `$length\r\n` and stands behind it.
    #[inline]
    fn bulk_header(&mut self, input: &[u8], limits: &Limits) -> Result<usize, Cut> {
        // The usual header: one to four digits, complete. Everything else takes the exact way below.
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
            return Err(self.unfinished_line(input, limits, Broken::BulkLine));
        };
        if input[self.position] != b'$' {
            return Err(Cut::Broken(Broken::ExpectedDollar(input[self.position])));
        }
        let len = match crate::number::parse(&input[self.position + 1..end]) {
            Some(len) if (0..=limits.bulk_max).contains(&len) => len,
            _ => return Err(Cut::Broken(Broken::BulkLength)),
        };
        if limits.restricted && len > UNAUTHENTICATED_BULK_MAX {
            return Err(Cut::Broken(Broken::BulkUnauthenticated));
        }
        self.position = next;
        Ok(len as usize)
    }

    /// The header line at the position, up to `\r`. A NUL in front of the `\r` hides it, as it does in Redis.
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

    fn unfinished_line(&self, input: &[u8], limits: &Limits, broken: Broken) -> Cut {
        if input.len() - self.position > LINE_MAX {
            return Cut::Broken(broken);
        }
        match self.partial(input.len() - self.start, limits) {
            Cut::Partial { .. } => Cut::Partial { needed: 0 },
            broken => broken,
        }
    }

    fn partial(&self, needed: usize, limits: &Limits) -> Cut {
        if needed > limits.request_max.min(u32::MAX as usize) {
            return Cut::Broken(Broken::RequestTooBig);
        }
        Cut::Partial { needed }
    }

    /// Cuts a line of words; false if there is none on it.
    fn inline(&mut self, input: &[u8], limits: &Limits) -> Result<bool, Cut> {
        let from = self.position.max(self.searched);
        let found = input[from..].iter().position(|&byte| byte == b'\n' || byte == 0);
        let Some(end) = found.map(|at| from + at).filter(|&end| input[end] == b'\n') else {
            self.searched = found.map_or(input.len(), |at| from + at);
            return Err(self.unfinished_line(input, limits, Broken::InlineTooBig));
        };
        self.searched = 0;
        let text = &input[self.position..end];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        self.line.clear();
        if split_words(text, &mut self.line, &mut self.spans).is_none() {
            self.spans.truncate(self.first);
            return Err(Cut::Broken(Broken::UnbalancedQuotes));
        }
        self.position = end + 1;
        if self.spans.len() == self.first {
            self.start = self.position;
            return Ok(false);
        }
        Ok(true)
    }
}

/// Splits a line as Redis's `sdssplitargs` does: words apart by blanks, `"..."` with escapes, `'...'` with `\'` only. Nothing when
/// a quote is not closed or not followed by a blank. A NUL ends the line.
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

/// The first argument of the request that `input` begins with, if it is all there: for most commands a key. A guess for looking ahead; `Parser` decides.
pub fn first_key(input: &[u8]) -> Option<&[u8]> {
    let (count, rest) = short_number(input.strip_prefix(b"*")?)?;
    let (name_len, rest) = short_number(rest.strip_prefix(b"$")?)?;
    let rest = rest.get(name_len + 2..)?;
    let (key_len, rest) = short_number(rest.strip_prefix(b"$")?)?;
    if count < 2 { None } else { rest.get(..key_len) }
}

/// A number of up to four digits and the line end behind it.
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
