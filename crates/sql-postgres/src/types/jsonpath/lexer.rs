//! Tokens of jsonpath, as `jsonpath_scan.l` has them.

use crate::error::{PgError, Result, state};
use crate::types::json::parse::invalid as invalid_json;

#[derive(Clone, Debug, PartialEq)]
pub enum PathToken {
    /// A quoted string.
    String(String),
    /// A name without quotes; it may be a keyword.
    Name(String),
    Variable(String),
    /// A whole number without point and exponent, in decimal digits.
    Integer(String),
    Number(String),
    Sign(&'static str),
    End,
}

pub struct Lexer<'t> {
    text: &'t str,
    /// Where the last token begins and ends.
    pub from: usize,
    at: usize,
}

/// Signs, longer ones first.
const SIGNS: [&str; 28] = [
    "&&", "||", "==", "!=", "<>", "<=", ">=", "**", "=", "<", ">", "!", "?", "(", ")", "[", "]", "{", "}", ".", ",",
    "*", "/", "%", "+", "-", "@", "$",
];

fn is_special(letter: char) -> bool {
    "?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(letter) || is_blank(letter)
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

fn blank_at(text: &str) -> &str {
    if text.starts_with(is_blank) { &text[..1] } else { "" }
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, from: 0, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Returns an error at the token that was read last.
    #[cold]
    pub fn error(&self, message: &str) -> PgError {
        let token = &self.text[self.from..self.at];
        // PostgreSQL's scanner knows a name only by what follows it, and shows that.
        let is_name = token.chars().all(|letter| !is_special(letter));
        let token = if is_name && message == "syntax error" { blank_at(self.rest()) } else { token };
        let text = match token.is_empty() {
            true => format!("{message} at end of jsonpath input"),
            false => format!("{message} at or near \"{token}\" of jsonpath input"),
        };
        PgError::new(state::SYNTAX_ERROR, text)
    }

    pub fn next(&mut self) -> Result<PathToken> {
        self.skip_blanks()?;
        self.from = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(PathToken::End) };
        let second = rest[first.len_utf8()..].chars().next();
        match first {
            '"' => self.quoted().map(PathToken::String),
            '$' if second == Some('"') => {
                self.at += 1;
                self.quoted().map(PathToken::Variable)
            }
            '$' if second.is_some_and(|letter| !is_special(letter)) => {
                self.at += 1;
                self.name().map(PathToken::Variable)
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|letter| letter.is_ascii_digit()) => self.number(),
            first if is_special(first) && first != '\\' => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).copied();
                self.at += sign.map_or(first.len_utf8(), str::len);
                sign.map(PathToken::Sign).ok_or_else(|| self.error("syntax error"))
            }
            _ => self.name().map(PathToken::Name),
        }
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start_matches(is_blank).len();
            let Some(comment) = self.rest().strip_prefix("/*") else { return Ok(()) };
            match comment.find("*/") {
                Some(end) => self.at += end + 4,
                None => {
                    (self.from, self.at) = (self.text.len(), self.text.len());
                    return Err(self.error("unexpected end of comment"));
                }
            }
        }
    }

    /// Reads a string from its opening quote on.
    fn quoted(&mut self) -> Result<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let Some(at) = rest.find(['"', '\\']) else {
                (self.from, self.at) = (self.text.len(), self.text.len());
                return Err(self.error("unterminated quoted string"));
            };
            out.push_str(&rest[..at]);
            self.at += at;
            if rest.as_bytes()[at] == b'"' {
                self.at += 1;
                return Ok(out);
            }
            self.escape(&mut out)?;
        }
    }

    fn name(&mut self) -> Result<String> {
        let mut out = String::new();
        while let Some(letter) = self.rest().chars().next() {
            match letter {
                '\\' => self.escape(&mut out)?,
                letter if is_special(letter) => break,
                letter => {
                    out.push(letter);
                    self.at += letter.len_utf8();
                }
            }
        }
        Ok(out)
    }

    /// Reads a backslash and what it stands for.
    fn escape(&mut self, out: &mut String) -> Result<()> {
        self.at += 1;
        let Some(letter) = self.rest().chars().next() else {
            self.from = self.at;
            return Err(self.error("unexpected end after backslash"));
        };
        self.at += letter.len_utf8();
        out.push(match letter {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => {
                let code =
                    self.hexadecimal(2, 2).ok_or_else(|| self.error("invalid hexadecimal character sequence"))?;
                self.character(code)?
            }
            'u' => self.unicode()?,
            other => other,
        });
        Ok(())
    }

    fn unicode(&mut self) -> Result<char> {
        let unit = self.unicode_unit()?;
        if (0xdc00..0xe000).contains(&unit) {
            return Err(invalid_json("Unicode low surrogate must follow a high surrogate.".to_owned()).renamed());
        }
        if !(0xd800..0xdc00).contains(&unit) {
            return self.character(unit);
        }
        let low = match self.rest().strip_prefix("\\u") {
            Some(_) => {
                self.at += 2;
                self.unicode_unit()?
            }
            None => 0,
        };
        if !(0xdc00..0xe000).contains(&low) {
            return Err(invalid_json("Unicode low surrogate must follow a high surrogate.".to_owned()).renamed());
        }
        self.character(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
    }

    fn unicode_unit(&mut self) -> Result<u32> {
        let found = match self.rest().strip_prefix('{') {
            Some(_) => {
                self.at += 1;
                let code = self.hexadecimal(1, 6);
                let is_closed = self.rest().starts_with('}');
                self.at += usize::from(is_closed);
                code.filter(|_| is_closed)
            }
            None => self.hexadecimal(4, 4),
        };
        found.ok_or_else(|| self.error("invalid Unicode escape sequence"))
    }

    fn hexadecimal(&mut self, least: usize, most: usize) -> Option<u32> {
        let digits = self.rest().bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
        let code = (digits >= least).then(|| u32::from_str_radix(&self.rest()[..digits], 16).unwrap_or_default());
        self.at += digits;
        code
    }

    fn character(&self, code: u32) -> Result<char> {
        match code {
            0 => {
                let detail = "\\u0000 cannot be converted to text.";
                Err(PgError::new(state::UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence").detail(detail))
            }
            code => char::from_u32(code).ok_or_else(|| self.error("invalid Unicode escape sequence")),
        }
    }

    fn digits(&mut self, is_digit: fn(&u8) -> bool, out: &mut String) -> usize {
        let mut count = 0;
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            // An underscore stands between two digits.
            let separates = *byte == b'_' && count > 0 && bytes.get(self.at + 1).is_some_and(is_digit);
            if !is_digit(byte) && !separates {
                break;
            }
            if !separates {
                out.push(char::from(*byte));
            }
            count += 1;
            self.at += 1;
        }
        count
    }

    /// Reads a number. Digits with more than one letter behind them are a name.
    fn number(&mut self) -> Result<PathToken> {
        self.numeral().or_else(|error| {
            let name = self.text[self.from..].find(is_special).unwrap_or(self.text.len() - self.from);
            if name <= self.at - self.from {
                return Err(error);
            }
            self.at = self.from;
            self.name().map(PathToken::Name)
        })
    }

    fn numeral(&mut self) -> Result<PathToken> {
        for (prefixes, radix, is_digit) in [
            (["0x", "0X"], 16, u8::is_ascii_hexdigit as fn(&u8) -> bool),
            (["0o", "0O"], 8, |byte| matches!(byte, b'0'..=b'7')),
            (["0b", "0B"], 2, |byte| matches!(byte, b'0' | b'1')),
        ] {
            if prefixes.iter().any(|prefix| self.rest().starts_with(prefix)) {
                self.at += 2;
                let mut digits = String::new();
                self.digits(is_digit, &mut digits);
                self.check_end()?;
                let number = num_bigint::BigUint::parse_bytes(digits.as_bytes(), radix);
                let junk = "trailing junk after numeric literal";
                return number.map(|number| PathToken::Integer(number.to_string())).ok_or_else(|| self.error(junk));
            }
        }
        let mut out = String::new();
        let whole = self.digits(u8::is_ascii_digit, &mut out);
        let has_leading_zero = whole > 1 && out.starts_with('0');
        let mut is_integer = true;
        if self.rest().starts_with('.') {
            let mut fraction = String::new();
            self.at += 1;
            self.digits(u8::is_ascii_digit, &mut fraction);
            is_integer = false;
            out = format!("{}.{fraction}", if out.is_empty() { "0" } else { &out });
        }
        if self.rest().starts_with(['e', 'E']) {
            let mut exponent = "e".to_owned();
            self.at += 1;
            if let Some(sign) = self.rest().chars().next().filter(|sign| matches!(sign, '+' | '-')) {
                exponent.push(sign);
                self.at += 1;
            }
            if self.digits(u8::is_ascii_digit, &mut exponent) == 0 {
                return Err(self.error("trailing junk after numeric literal"));
            }
            is_integer = false;
            out.push_str(&exponent);
        }
        if has_leading_zero && is_integer {
            self.at = self.from + 2;
            return Err(self.error("trailing junk after numeric literal"));
        }
        self.check_end()?;
        Ok(if is_integer { PathToken::Integer(out) } else { PathToken::Number(out) })
    }

    fn check_end(&mut self) -> Result<()> {
        match self.rest().chars().next().filter(|letter| !is_special(*letter)) {
            Some(letter) => {
                self.at += letter.len_utf8();
                Err(self.error("trailing junk after numeric literal"))
            }
            None => Ok(()),
        }
    }
}

impl PgError {
    /// Says jsonpath where a message of json's parser says json.
    fn renamed(mut self) -> PgError {
        self.message = self.message.replace("type json", "type jsonpath");
        self
    }
}
