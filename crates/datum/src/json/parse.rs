//! Text to a document.
//!
//! The parser is RFC 8259's, with a limit of depth and with claims of memory, because a document comes from a client. Its messages are those of RapidJSON,
//! which clients of MySQL know.

use stdx::memory;

use super::{DEPTH_MAX, Members, Node};
use crate::fault::{Fault, Result};

/// The parser claims memory each time it has made so many nodes.
const CLAIMED_NODES: usize = 1024;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    nodes: usize,
}

/// Parses one document. `Fault::JsonSyntax`, `Fault::JsonDepth`, or `Fault::OutOfMemory` where a claim is refused.
pub fn parse(text: &str) -> Result<Node> {
    let mut parser = Parser { text, at: 0, depth: 0, nodes: 0 };
    parser.blanks();
    if parser.peek().is_none() {
        return parser.fail("The document is empty.");
    }
    let node = parser.node()?;
    parser.blanks();
    if parser.peek().is_some() {
        return parser.fail("The document root must not be followed by other values.");
    }
    Ok(node)
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self, message: &'static str) -> Result<T> {
        Err(Fault::JsonSyntax { message, position: u32::try_from(self.at).unwrap_or(u32::MAX) })
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn node(&mut self) -> Result<Node> {
        self.nodes += 1;
        if self.nodes.is_multiple_of(CLAIMED_NODES) {
            // Twice the size, because a growing vector doubles its capacity.
            drop(memory::claim(2 * self.nodes * size_of::<Node>())?);
        }
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Node::String(self.string()?.into())),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, node) in [("null", Node::Null), ("true", Node::Bool(true)), ("false", Node::Bool(false))] {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(node);
                    }
                }
                self.fail("Invalid value.")
            }
        }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<Node>) -> Result<Node> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Fault::JsonDepth);
        }
        self.at += 1;
        let node = inner(self);
        self.depth -= 1;
        node
    }

    fn array(&mut self) -> Result<Node> {
        let mut elements = Vec::new();
        self.blanks();
        if self.eat(b']') {
            return Ok(Node::Array(elements));
        }
        loop {
            self.blanks();
            elements.push(self.node()?);
            self.blanks();
            if self.eat(b']') {
                return Ok(Node::Array(elements));
            }
            if !self.eat(b',') {
                return self.fail("Missing a comma or ] after an array element.");
            }
        }
    }

    fn object(&mut self) -> Result<Node> {
        let mut members = Vec::new();
        self.blanks();
        if self.eat(b'}') {
            return Ok(Node::Object(Members::default()));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return self.fail("Missing a name for object member.");
            }
            let name = self.string()?;
            self.blanks();
            if !self.eat(b':') {
                return self.fail("Missing a colon after a name of object member.");
            }
            self.blanks();
            members.push((name.into(), self.node()?));
            self.blanks();
            if self.eat(b'}') {
                return Ok(Node::Object(Members::new(members)));
            }
            if !self.eat(b',') {
                return self.fail("Missing a comma or } after an object member.");
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.bytes().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1F)).count();
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(_) => return self.fail("Invalid encoding in string."),
                None => {
                    self.at = start;
                    return self.fail("Missing a closing quotation mark in string.");
                }
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<()> {
        let Some(letter) = self.text.as_bytes().get(self.at + 1).copied() else {
            return self.fail("Missing a closing quotation mark in string.");
        };
        let plain = match letter {
            b'"' | b'\\' | b'/' => letter as char,
            b'b' => '\u{8}',
            b'f' => '\u{C}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(out),
            _ => return self.fail("Invalid escape character in string."),
        };
        out.push(plain);
        self.at += 2;
        Ok(())
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    }

    fn unicode(&mut self, out: &mut String) -> Result<()> {
        let Some(mut code) = self.hex(self.at + 2) else {
            return self.fail("Incorrect hex digit after \\u escape in string.");
        };
        let mut length = 6;
        if (0xD800..0xDC00).contains(&code)
            && self.text[self.at + 6..].starts_with("\\u")
            && let Some(low) = self.hex(self.at + 8).filter(|low| (0xDC00..0xE000).contains(low))
        {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            length = 12;
        }
        let Some(c) = char::from_u32(code) else {
            return self.fail("The surrogate pair in string is invalid.");
        };
        out.push(c);
        self.at += length;
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - from
    }

    fn number(&mut self) -> Result<Node> {
        let from = self.at;
        self.eat(b'-');
        if !self.eat(b'0') && self.digits() == 0 {
            return self.fail("Invalid value.");
        }
        let mut whole = true;
        if self.eat(b'.') {
            whole = false;
            if self.digits() == 0 {
                return self.fail("Miss fraction part in number.");
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            if !self.eat(b'-') {
                self.eat(b'+');
            }
            if self.digits() == 0 {
                return self.fail("Miss exponent in number.");
            }
        }
        let text = &self.text[from..self.at];
        if whole {
            if let Ok(number) = text.parse::<i64>() {
                return Ok(Node::Int(number));
            }
            if let Ok(number) = text.parse::<u64>() {
                return Ok(Node::UInt(number));
            }
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Node::Double(number)),
            _ => {
                self.at = from;
                self.fail("Number too big to be stored in double.")
            }
        }
    }
}
