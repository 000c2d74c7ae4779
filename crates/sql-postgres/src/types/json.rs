//! json: the text is kept as it is given, once it is known to be a document.
//!
//! The parser has one level of state for each bracket in a list of its own, so deep documents need no stack. Messages are those of PostgreSQL's parser.

use crate::error::{PgError, Result, state};
use crate::types::io;
use crate::value::Value;

pub fn input(text: &str) -> Result<Value> {
    io::check_no_zero(text)?;
    Parser { text, at: 0 }.document()?;
    Ok(Value::text(text))
}

/// The most brackets that may be open.
const DEPTH_MAX: usize = 6_400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonToken {
    String,
    Scalar,
    Sign(u8),
    End,
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

#[cold]
fn invalid(detail: String) -> PgError {
    PgError::new(state::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json").detail(detail)
}

impl<'t> Parser<'t> {
    fn document(mut self) -> Result<()> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            // A value.
            let (token, from) = self.token()?;
            match token {
                JsonToken::Sign(bracket @ (b'{' | b'[')) => {
                    if open.len() == DEPTH_MAX {
                        return Err(PgError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
                    }
                    open.push(bracket);
                    if self.begins(bracket)? {
                        continue;
                    }
                    open.pop();
                }
                JsonToken::String | JsonToken::Scalar => {}
                _ => return Err(self.expected("JSON value", token, from)),
            }
            // After a value, brackets may be closed until another value follows a comma.
            loop {
                let (token, from) = self.token()?;
                match (open.last(), token) {
                    (None, JsonToken::End) => return Ok(()),
                    (None, _) => return Err(self.expected("end of input", token, from)),
                    (Some(b'['), JsonToken::Sign(b',')) => break,
                    (Some(b'{'), JsonToken::Sign(b',')) => {
                        self.key(false)?;
                        break;
                    }
                    (Some(b'['), JsonToken::Sign(b']')) | (Some(b'{'), JsonToken::Sign(b'}')) => {
                        open.pop();
                    }
                    (Some(b'['), _) => return Err(self.expected("\",\" or \"]\"", token, from)),
                    _ => return Err(self.expected("\",\" or \"}\"", token, from)),
                }
            }
        }
    }

    /// Reads up to the first value of an array or an object. False: it is empty and closed.
    fn begins(&mut self, bracket: u8) -> Result<bool> {
        if bracket == b'{' {
            return self.key(true);
        }
        let before = self.at;
        if self.token()?.0 == JsonToken::Sign(b']') {
            return Ok(false);
        }
        self.at = before;
        Ok(true)
    }

    /// Reads a key and its colon. False: the object is closed instead, which only its first key allows.
    fn key(&mut self, is_first: bool) -> Result<bool> {
        let (token, from) = self.token()?;
        match token {
            JsonToken::String => {}
            JsonToken::Sign(b'}') if is_first => return Ok(false),
            _ => return Err(self.expected(if is_first { "string or \"}\"" } else { "string" }, token, from)),
        }
        let (token, from) = self.token()?;
        match token {
            JsonToken::Sign(b':') => Ok(true),
            _ => Err(self.expected("\":\"", token, from)),
        }
    }

    fn expected(&self, what: &str, token: JsonToken, from: usize) -> PgError {
        if token == JsonToken::End {
            return invalid("The input string ended unexpectedly.".to_owned());
        }
        invalid(format!("Expected {what}, but found \"{}\".", &self.text[from..self.at]))
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
                JsonToken::Scalar
            }
            _ => {
                self.word()?;
                JsonToken::Scalar
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
                0..=0x1f => return Err(invalid(format!("Character with value 0x{byte:02x} must be escaped."))),
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
                            return Err(invalid("\"\\u\" must be followed by four hexadecimal digits.".to_owned()));
                        }
                    }
                }
                Ok(())
            }
            other => Err(invalid(format!("Escape sequence \"\\{other}\" is invalid."))),
        }
    }

    /// The error of a string that does not end.
    fn unfinished_string(&self, from: usize) -> PgError {
        invalid(format!("Token \"{}\" is invalid.", &self.text[from..]))
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
            return Err(invalid(format!("Token \"{}\" is invalid.", &self.text[from..rest])));
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
            other => Err(invalid(format!("Token \"{other}\" is invalid."))),
        }
    }
}
