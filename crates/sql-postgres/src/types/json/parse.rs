//! A document as a series of events, with the messages of PostgreSQL's parser.
//!
//! The parser has one level of state for each bracket in a list of its own, so deep documents need no stack.

use crate::error::{PgError, Result, state};

/// The most brackets that may be open.
const DEPTH_MAX: usize = 6_400;

/// A part of a document. Texts are as they are written: strings with quotes and escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'t> {
    ObjectStart,
    ArrayStart,
    /// The end of the object or the array that was begun last.
    End,
    /// The name of a member, whose value follows.
    Name(&'t str),
    String(&'t str),
    Number(&'t str),
    True,
    False,
    Null,
    /// Nothing but spaces follows.
    Finished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonToken {
    String,
    Number,
    Word,
    Sign(u8),
    End,
}

/// The part that must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Value,
    /// The first value of an array, or its end.
    FirstValue,
    FirstName,
    Name,
    AfterValue,
}

#[derive(Clone)]
pub struct Parser<'t> {
    text: &'t str,
    at: usize,
    open: Vec<u8>,
    next: Expected,
}

/// The state of a parser between two events, without the text.
pub struct Suspended {
    at: usize,
    open: Vec<u8>,
    next: Expected,
}

/// The bytes of the line that are shown before the end of a wrong token.
const SHOWN_BYTES: usize = 50;

/// Returns where a wrong token is that ends at a byte: `report_json_context`.
fn context(text: &str, end: usize) -> String {
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let near = before[line_start..].char_indices().find(|(at, _)| end - line_start - at < SHOWN_BYTES);
    let skipped = near.map_or(end - line_start, |(at, _)| at);
    // Dots would take as much room as so few bytes.
    let start = if skipped <= 3 { line_start } else { line_start + skipped };
    let prefix = if start > line_start { "..." } else { "" };
    let suffix = if matches!(text.as_bytes().get(end), None | Some(b'\n' | b'\r')) { "" } else { "..." };
    let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
    format!("JSON data, line {line}: {prefix}{}{suffix}", &text[start..end])
}

#[cold]
pub fn invalid(detail: String) -> PgError {
    PgError::new(state::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json").detail(detail)
}

impl<'t> Parser<'t> {
    pub fn new(text: &'t str) -> Parser<'t> {
        Parser { text, at: 0, open: Vec::new(), next: Expected::Value }
    }

    pub fn suspend(self) -> Suspended {
        let Parser { text: _, at, open, next } = self;
        Suspended { at, open, next }
    }

    /// Goes on with the text that the suspended parser had.
    pub fn resume(text: &'t str, suspended: Suspended) -> Parser<'t> {
        let Suspended { at, open, next } = suspended;
        Parser { text, at, open, next }
    }

    /// The brackets that are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The byte behind the last event.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the next event. After `Event::Finished` there is none.
    pub fn event(&mut self) -> Result<Event<'t>> {
        loop {
            match self.next {
                Expected::Value => return self.value(),
                Expected::FirstValue => {
                    let before = self.at;
                    if self.token()?.0 == JsonToken::Sign(b']') {
                        return Ok(self.end());
                    }
                    self.at = before;
                    self.next = Expected::Value;
                }
                Expected::FirstName | Expected::Name => return self.name(),
                Expected::AfterValue => {
                    if let Some(event) = self.after_value()? {
                        return Ok(event);
                    }
                }
            }
        }
    }

    fn value(&mut self) -> Result<Event<'t>> {
        let (token, from) = self.token()?;
        self.next = Expected::AfterValue;
        let text = &self.text[from..self.at];
        Ok(match token {
            JsonToken::Sign(bracket @ (b'{' | b'[')) => {
                if self.open.len() == DEPTH_MAX {
                    return Err(PgError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
                }
                self.open.push(bracket);
                self.next = if bracket == b'{' { Expected::FirstName } else { Expected::FirstValue };
                if bracket == b'{' { Event::ObjectStart } else { Event::ArrayStart }
            }
            JsonToken::String => Event::String(text),
            JsonToken::Number => Event::Number(text),
            JsonToken::Word => match text {
                "true" => Event::True,
                "false" => Event::False,
                _ => Event::Null,
            },
            _ => return Err(self.expected("JSON value", token, from)),
        })
    }

    fn end(&mut self) -> Event<'t> {
        self.open.pop();
        self.next = Expected::AfterValue;
        Event::End
    }

    /// Reads what follows a value: an end, or a comma, after which there is no event yet.
    fn after_value(&mut self) -> Result<Option<Event<'t>>> {
        let (token, from) = self.token()?;
        match (self.open.last(), token) {
            (None, JsonToken::End) => Ok(Some(Event::Finished)),
            (None, _) => Err(self.expected("end of input", token, from)),
            (Some(b'['), JsonToken::Sign(b',')) => {
                self.next = Expected::Value;
                Ok(None)
            }
            (Some(b'{'), JsonToken::Sign(b',')) => {
                self.next = Expected::Name;
                Ok(None)
            }
            (Some(b'['), JsonToken::Sign(b']')) | (Some(b'{'), JsonToken::Sign(b'}')) => Ok(Some(self.end())),
            (Some(b'['), _) => Err(self.expected("\",\" or \"]\"", token, from)),
            _ => Err(self.expected("\",\" or \"}\"", token, from)),
        }
    }

    /// Reads a name and its colon. Only before the first name may the object end.
    fn name(&mut self) -> Result<Event<'t>> {
        let is_first = self.next == Expected::FirstName;
        let (token, from) = self.token()?;
        let name = &self.text[from..self.at];
        match token {
            JsonToken::String => {}
            JsonToken::Sign(b'}') if is_first => return Ok(self.end()),
            _ => return Err(self.expected(if is_first { "string or \"}\"" } else { "string" }, token, from)),
        }
        let (token, from) = self.token()?;
        match token {
            JsonToken::Sign(b':') => {
                self.next = Expected::Value;
                Ok(Event::Name(name))
            }
            _ => Err(self.expected("\":\"", token, from)),
        }
    }

    fn expected(&self, what: &str, token: JsonToken, from: usize) -> PgError {
        if token == JsonToken::End {
            return self.wrong("The input string ended unexpectedly.".to_owned(), self.at);
        }
        self.wrong(format!("Expected {what}, but found \"{}\".", &self.text[from..self.at]), self.at)
    }

    /// Returns the error of a token that ends at a byte.
    #[cold]
    fn wrong(&self, detail: String, end: usize) -> PgError {
        invalid(detail).within(|| context(self.text, end))
    }

    /// Returns the next token and where it begins.
    fn token(&mut self) -> Result<(JsonToken, usize)> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let from = self.at;
        let Some(&first) = bytes.get(from) else { return Ok((JsonToken::End, from)) };
        let token = match first {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => {
                self.at += 1;
                JsonToken::Sign(first)
            }
            b'"' => {
                self.string()?;
                JsonToken::String
            }
            b'-' | b'0'..=b'9' => {
                self.number()?;
                JsonToken::Number
            }
            _ => {
                self.word()?;
                JsonToken::Word
            }
        };
        Ok((token, from))
    }

    fn string(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        let from = self.at;
        self.at += 1;
        loop {
            let Some(&byte) = bytes.get(self.at) else { return Err(self.unfinished_string(from)) };
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                0..=0x1f => {
                    let detail = format!("Character with value 0x{byte:02x} must be escaped.");
                    return Err(self.wrong(detail, self.at - 1));
                }
                b'\\' => self.escape(from)?,
                _ => {}
            }
        }
    }

    fn escape(&mut self, from: usize) -> Result<()> {
        let rest = &self.text[self.at..];
        let Some(letter) = rest.chars().next() else { return Err(self.unfinished_string(from)) };
        self.at += letter.len_utf8();
        match letter {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => Ok(()),
            'u' => {
                for _ in 0..4 {
                    match self.text.as_bytes().get(self.at) {
                        None => return Err(self.unfinished_string(from)),
                        Some(digit) if digit.is_ascii_hexdigit() => self.at += 1,
                        Some(_) => {
                            let bad = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
                            let detail = "\"\\u\" must be followed by four hexadecimal digits.".to_owned();
                            return Err(self.wrong(detail, self.at + bad));
                        }
                    }
                }
                Ok(())
            }
            other => Err(self.wrong(format!("Escape sequence \"\\{other}\" is invalid."), self.at)),
        }
    }

    /// The error of a string that does not end.
    fn unfinished_string(&self, from: usize) -> PgError {
        self.wrong(format!("Token \"{}\" is invalid.", &self.text[from..]), self.text.len())
    }

    fn digits(&mut self) -> usize {
        let count = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn number(&mut self) -> Result<()> {
        let from = self.at;
        let bytes = self.text.as_bytes();
        let mut is_valid = true;
        if bytes[self.at] == b'-' {
            self.at += 1;
        }
        match bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => is_valid &= self.digits() > 0,
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            is_valid &= self.digits() > 0;
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            is_valid &= self.digits() > 0;
        }
        // Letters and digits behind a number belong to the token that the message shows.
        let rest = self.word_end();
        if rest > self.at || !is_valid {
            self.at = rest;
            return Err(self.wrong(format!("Token \"{}\" is invalid.", &self.text[from..rest]), rest));
        }
        Ok(())
    }

    fn word_end(&self) -> usize {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
        self.at + self.text.as_bytes()[self.at..].iter().take_while(|byte| is_part(byte)).count()
    }

    fn word(&mut self) -> Result<()> {
        let from = self.at;
        self.at = self.word_end();
        if self.at == from {
            self.at += self.text[from..].chars().next().map_or(0, char::len_utf8);
        }
        match &self.text[from..self.at] {
            "true" | "false" | "null" => Ok(()),
            other => Err(self.wrong(format!("Token \"{other}\" is invalid."), self.at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context_of(text: &str) -> String {
        let mut parser = Parser::new(text);
        loop {
            match parser.event() {
                Ok(Event::Finished) => panic!("{text} is valid"),
                Ok(_) => {}
                Err(error) => return error.context.unwrap_or_default().into(),
            }
        }
    }

    /// The lines are those of a PostgreSQL 16 server.
    #[test]
    fn an_error_shows_the_line_in_which_it_is() {
        for (text, context) in [
            ("{\"a\":1,}", "JSON data, line 1: {\"a\":1,}"),
            ("{\"a\": tru}", "JSON data, line 1: {\"a\": tru..."),
            ("{\"a\":1", "JSON data, line 1: {\"a\":1"),
            ("\"abc", "JSON data, line 1: \"abc"),
            ("{\"a\"\n:true,\n\"b\":xyz}", "JSON data, line 3: \"b\":xyz..."),
            ("[1,2] 3", "JSON data, line 1: [1,2] 3"),
            (
                "{\"averyveryverylongfieldname\":10, \"another\":[1,2,3,4,5,6,7,8,9,10,11,12 13]}",
                "JSON data, line 1: ...ame\":10, \"another\":[1,2,3,4,5,6,7,8,9,10,11,12 13...",
            ),
            (" {\"éééééééééééééééééééééééééééééééé\":tru}", "JSON data, line 1: ...éééééééééééééééééééééé\":tru..."),
            ("\"a\nb\"", "JSON data, line 1: \"a"),
            ("\"a\\x\"", "JSON data, line 1: \"a\\x..."),
            ("\"a\\u00zz\"", "JSON data, line 1: \"a\\u00z..."),
            ("\"a\\u00", "JSON data, line 1: \"a\\u00"),
            ("01", "JSON data, line 1: 01"),
            ("-", "JSON data, line 1: -"),
            ("1.5e", "JSON data, line 1: 1.5e"),
            ("[1,\n 2,,3]", "JSON data, line 2:  2,,..."),
            ("", "JSON data, line 1: "),
            ("  ", "JSON data, line 1:   "),
            ("{\"a\":{\"b\":[1,2,{\"c\":nul}]}, \"d\": 1}\n", "JSON data, line 1: {\"a\":{\"b\":[1,2,{\"c\":nul..."),
            ("&", "JSON data, line 1: &"),
            ("\"x\\", "JSON data, line 1: \"x\\"),
            ("[1,2,3\r\n", "JSON data, line 2: "),
        ] {
            assert_eq!(context_of(text), context, "{text}");
        }
    }
}
