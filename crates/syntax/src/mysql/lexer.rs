//! Text to tokens. Tokens are spans: nothing is copied until the parser wants a value (SY-5).
//!
//! Version comments are text, as MySQL has it: `/*!80000 a */` reads as `a`, a later version's comment as nothing.

use super::keyword::{Kw, introducer};
use super::mode::Mode;

/// The version this is compatible with, as version comments name it.
pub const VERSION: u32 = 80_040;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    End,
    /// A keyword or identifier without quotes.
    Word,
    /// An identifier in quotes.
    Quoted,
    String,
    /// `_utf8mb4` and its like.
    Introducer,
    /// `N'text'`
    National,
    Integer,
    Decimal,
    Float,
    /// `0x41`, `x'41'`
    Hex,
    /// `0b1`, `b'1'`
    Bits,
    Parameter,
    /// `@name`, quoted or not; `@` alone has no name.
    Variable,
    /// `@@`
    System,
    /// `/*+ ... */` after a word that may have hints.
    Hint,
    Comma,
    Dot,
    Open,
    Close,
    Semicolon,
    Equal,
    NullSafeEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Caret,
    Tilde,
    Bang,
    Ampersand,
    Ampersands,
    Pipe,
    Pipes,
    Arrow,
    LongArrow,
    Assign,
    OpenBrace,
    CloseBrace,
    Colon,
    /// A byte or construct that begins no token: an unclosed quote or comment, `x'1'`.
    Bad,
}

#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Kind,
    pub kw: Kw,
    pub start: u32,
    pub end: u32,
}

impl Token {
    pub fn is(self, kw: Kw) -> bool {
        self.kw == kw
    }
}

/// A position in a text. Copying it is cheap: looking ahead is lexing with a copy.
#[derive(Clone, Copy, Debug)]
pub struct Lexer<'t> {
    bytes: &'t [u8],
    at: usize,
    mode: Mode,
    /// Within a version comment.
    in_comment: bool,
    /// The last token was a word or quoted identifier that ended here: a dot then begins another one.
    after_name: usize,
    /// The last token was a dot that ended here: a word that begins here is an identifier, keyword or not.
    after_dot: usize,
    /// The last token may be followed by hints.
    hints: bool,
}

pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str, mode: Mode) -> Lexer<'t> {
        Lexer {
            bytes: text.as_bytes(),
            at: 0,
            mode,
            in_comment: false,
            after_name: usize::MAX,
            after_dot: usize::MAX,
            hints: false,
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The end of the quoted text that begins at `at`; None if nothing closes it.
    fn quoted(&self, at: usize, quote: u8, escapes: bool) -> Option<usize> {
        let mut end = at + 1;
        loop {
            let byte = *self.bytes.get(end)?;
            if byte == quote {
                if self.byte(end + 1) != quote {
                    return Some(end + 1);
                }
                end += 2;
            } else if byte == b'\\' && escapes {
                end += 2;
            } else {
                end += 1;
            }
        }
    }

    /// The end of the comment that begins at `at`, with comments inside it if it is left out for its version.
    fn comment_end(&self, at: usize, nests: bool) -> Option<usize> {
        let (mut end, mut depth) = (at + 2, 1);
        loop {
            match (*self.bytes.get(end)?, self.byte(end + 1)) {
                (b'*', b'/') => {
                    depth -= 1;
                    end += 2;
                    if depth == 0 {
                        return Some(end);
                    }
                }
                (b'/', b'*') if nests => {
                    depth += 1;
                    end += 2;
                }
                _ => end += 1,
            }
        }
    }

    /// Skips space and comments. Returns a token for a hint or for a comment that nothing closes.
    fn skip(&mut self) -> Option<Token> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            match byte {
                byte if is_space(byte) => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if self.byte(self.at + 1) == b'-'
                    && self.bytes.get(self.at + 2).is_none_or(|next| is_space(*next) || next.is_ascii_control()) =>
                {
                    self.skip_line();
                }
                b'*' if self.in_comment && self.byte(self.at + 1) == b'/' => {
                    self.in_comment = false;
                    self.at += 2;
                }
                b'/' if self.byte(self.at + 1) == b'*' => {
                    let start = self.at;
                    if self.byte(start + 2) == b'!' {
                        let digits = self.bytes[start + 3..].iter().take(6).take_while(|byte| byte.is_ascii_digit());
                        let digits = digits.count();
                        let version = self.bytes[start + 3..start + 3 + digits]
                            .iter()
                            .fold(0u32, |version, digit| version * 10 + u32::from(digit - b'0'));
                        if digits < 5 || version <= VERSION {
                            self.in_comment = true;
                            self.at = start + 3 + if digits < 5 { 0 } else { digits };
                            continue;
                        }
                        match self.comment_end(start, true) {
                            Some(end) => self.at = end,
                            None => return Some(self.bad(start)),
                        }
                        continue;
                    }
                    let Some(end) = self.comment_end(start, false) else { return Some(self.bad(start)) };
                    self.at = end;
                    if self.hints && self.byte(start + 2) == b'+' {
                        return Some(Token { kind: Kind::Hint, kw: Kw::OTHER, start: start as u32, end: end as u32 });
                    }
                }
                _ => return None,
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |length| length + 1);
    }

    /// A token that ends the text: nothing after it can be read.
    fn bad(&mut self, start: usize) -> Token {
        self.at = self.bytes.len();
        Token { kind: Kind::Bad, kw: Kw::OTHER, start: start as u32, end: self.bytes.len() as u32 }
    }

    /// Returns the next token; `End` at the end, again and again.
    pub fn advance(&mut self) -> Token {
        let (after_name, after_dot) = (self.after_name, self.after_dot);
        if let Some(token) = self.skip() {
            return token;
        }
        (self.after_name, self.after_dot, self.hints) = (usize::MAX, usize::MAX, false);
        let start = self.at;
        let token = |kind, end: usize| Token { kind, kw: Kw::OTHER, start: start as u32, end: end as u32 };
        let Some(byte) = self.bytes.get(start).copied() else {
            // A version comment that nothing closes.
            let is_open = std::mem::take(&mut self.in_comment);
            return token(if is_open { Kind::Bad } else { Kind::End }, start);
        };
        let next = self.byte(start + 1);
        let (kind, length) = match byte {
            b'`' => return self.name_in(b'`'),
            b'"' if self.mode.ansi_quotes => return self.name_in(b'"'),
            b'\'' | b'"' => {
                return match self.quoted(start, byte, !self.mode.no_backslash_escapes) {
                    Some(end) if end <= self.bytes.len() => {
                        self.at = end;
                        token(Kind::String, end)
                    }
                    _ => self.bad(start),
                };
            }
            byte if is_word(byte) => return self.word(after_dot == start),
            b'.' => {
                if after_name == start && (is_word(next) || next == b'`') {
                    self.after_dot = start + 1;
                    (Kind::Dot, 1)
                } else if next.is_ascii_digit() {
                    return self.number();
                } else {
                    self.after_dot = start + 1;
                    (Kind::Dot, 1)
                }
            }
            b'@' => return self.variable(),
            b',' => (Kind::Comma, 1),
            b'(' => (Kind::Open, 1),
            b')' => (Kind::Close, 1),
            b';' => (Kind::Semicolon, 1),
            b'?' => (Kind::Parameter, 1),
            b'=' | b'<' | b'>' | b'!' => self.comparison(start),
            b'+' => (Kind::Plus, 1),
            b'-' if next == b'>' && self.byte(start + 2) == b'>' => (Kind::LongArrow, 3),
            b'-' if next == b'>' => (Kind::Arrow, 2),
            b'-' => (Kind::Minus, 1),
            b'*' => (Kind::Star, 1),
            b'/' => (Kind::Slash, 1),
            b'%' => (Kind::Percent, 1),
            b'^' => (Kind::Caret, 1),
            b'~' => (Kind::Tilde, 1),
            b'&' if next == b'&' => (Kind::Ampersands, 2),
            b'&' => (Kind::Ampersand, 1),
            b'|' if next == b'|' => (Kind::Pipes, 2),
            b'|' => (Kind::Pipe, 1),
            b':' if next == b'=' => (Kind::Assign, 2),
            b':' => (Kind::Colon, 1),
            b'{' => (Kind::OpenBrace, 1),
            b'}' => (Kind::CloseBrace, 1),
            _ => return self.bad(start),
        };
        self.at = start + length;
        token(kind, self.at)
    }

    fn name_in(&mut self, quote: u8) -> Token {
        let start = self.at;
        match self.quoted(start, quote, false) {
            // An empty name is no name.
            Some(end) if end > start + 2 => {
                (self.at, self.after_name) = (end, end);
                Token { kind: Kind::Quoted, kw: Kw::OTHER, start: start as u32, end: end as u32 }
            }
            _ => self.bad(start),
        }
    }

    fn word_end(&self, at: usize) -> usize {
        at + self.bytes[at..].iter().take_while(|byte| is_word(**byte)).count()
    }

    fn word(&mut self, is_name: bool) -> Token {
        let start = self.at;
        let byte = self.bytes[start];
        let token = |kind, kw, end: usize| Token { kind, kw, start: start as u32, end: end as u32 };
        if !is_name {
            if byte.is_ascii_digit() {
                return self.number();
            }
            if self.byte(start + 1) == b'\'' {
                let kind = match byte {
                    b'x' | b'X' => Kind::Hex,
                    b'b' | b'B' => Kind::Bits,
                    b'n' | b'N' => Kind::National,
                    _ => Kind::End,
                };
                match kind {
                    Kind::End => {}
                    Kind::National => {
                        return match self.quoted(start + 1, b'\'', !self.mode.no_backslash_escapes) {
                            Some(end) if end <= self.bytes.len() => {
                                self.at = end;
                                token(kind, Kw::OTHER, end)
                            }
                            _ => self.bad(start),
                        };
                    }
                    _ => {
                        let digits = self.bytes[start + 2..].iter().take_while(|byte| is_digit(kind, **byte)).count();
                        let end = start + 2 + digits;
                        if self.byte(end) != b'\'' || kind == Kind::Hex && !digits.is_multiple_of(2) {
                            return self.bad(start);
                        }
                        self.at = end + 1;
                        return token(kind, Kw::OTHER, end + 1);
                    }
                }
            }
        }
        let end = self.word_end(start);
        (self.at, self.after_name) = (end, end);
        // A word that a dot and a name follow is an identifier, but behind `@@`.
        let is_qualifier =
            self.byte(end) == b'.' && is_word(self.byte(end + 1)) && !self.bytes[..start].ends_with(b"@@");
        if is_name || is_qualifier {
            return token(Kind::Word, Kw::OTHER, end);
        }
        let mut kw = Kw::of(&self.bytes[start..end]);
        if kw.is_function() && !self.opens_at(end) {
            kw = Kw::OTHER;
        }
        if byte == b'_' && std::str::from_utf8(&self.bytes[start..end]).is_ok_and(|word| introducer(word).is_some()) {
            return token(Kind::Introducer, Kw::OTHER, end);
        }
        self.hints = matches!(kw, Kw::SELECT | Kw::INSERT | Kw::REPLACE | Kw::UPDATE | Kw::DELETE);
        token(Kind::Word, kw, end)
    }

    /// Whether a parenthesis follows a function's name: at once, unless IGNORE_SPACE.
    fn opens_at(&self, end: usize) -> bool {
        let space = match self.mode.ignore_space {
            true => self.bytes[end..].iter().take_while(|byte| is_space(**byte)).count(),
            false => 0,
        };
        self.byte(end + space) == b'('
    }

    /// An operator that begins with one of `= < > !`, as MySQL takes it: these letters belong together, two of them, or three after `<`, even
    /// where that makes no operator. `!` before another one swallows it.
    fn comparison(&self, start: usize) -> (Kind, usize) {
        let is_one = |at: usize| matches!(self.byte(at), b'=' | b'>' | b'!');
        let is_any = |at: usize| is_one(at) || self.byte(at) == b'<';
        let length = match (is_any(start + 1), self.byte(start)) {
            (false, _) => 1,
            (true, b'<') if is_one(start + 2) => 3,
            (true, _) => 2,
        };
        let kind = match &self.bytes[start..start + length] {
            b"=" => Kind::Equal,
            b"<" => Kind::Less,
            b"<=" => Kind::LessOrEqual,
            b"<=>" => Kind::NullSafeEqual,
            b"<>" | b"!=" => Kind::NotEqual,
            b"<<" => Kind::ShiftLeft,
            b">" => Kind::Greater,
            b">=" => Kind::GreaterOrEqual,
            b">>" => Kind::ShiftRight,
            [b'!', ..] => Kind::Bang,
            _ => Kind::Bad,
        };
        (kind, length)
    }

    /// A number, or an identifier that begins with digits.
    fn number(&mut self) -> Token {
        let start = self.at;
        let digits = |at: usize| self.bytes.get(at..).unwrap_or(&[]).iter().take_while(|b| b.is_ascii_digit()).count();
        let (next, whole) = (self.byte(start + 1), digits(start));
        let made = |kind, end: usize| Token { kind, kw: Kw::OTHER, start: start as u32, end: end as u32 };
        if self.bytes[start] == b'0' && matches!(next, b'x' | b'b') {
            let kind = if next == b'x' { Kind::Hex } else { Kind::Bits };
            let end = self.word_end(start);
            if end > start + 2 && self.bytes[start + 2..end].iter().all(|byte| is_digit(kind, *byte)) {
                self.at = end;
                return made(kind, end);
            }
        }
        let mut end = start + whole;
        let is_real = self.byte(end) == b'.';
        if is_real {
            end += 1 + digits(end + 1);
        }
        let mut kind = if is_real { Kind::Decimal } else { Kind::Integer };
        if matches!(self.byte(end), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            let exponent = digits(end + 1 + sign);
            if exponent > 0 {
                (kind, end) = (Kind::Float, end + 1 + sign + exponent);
                self.at = end;
                return made(kind, end);
            }
        }
        if !is_real && self.bytes.get(start + whole).is_some_and(|byte| is_word(*byte)) {
            let end = self.word_end(start);
            (self.at, self.after_name) = (end, end);
            return made(Kind::Word, end);
        }
        self.at = end;
        made(kind, end)
    }

    fn variable(&mut self) -> Token {
        let start = self.at;
        let (kind, end) = match self.byte(start + 1) {
            b'@' => (Kind::System, start + 2),
            quote @ (b'\'' | b'"' | b'`') => {
                let escapes = quote != b'`' && !self.mode.no_backslash_escapes;
                match self.quoted(start + 1, quote, escapes) {
                    Some(end) if end <= self.bytes.len() => (Kind::Variable, end),
                    _ => return self.bad(start),
                }
            }
            _ => {
                let name = self.bytes[start + 1..].iter().take_while(|byte| is_word(**byte) || **byte == b'.').count();
                (Kind::Variable, start + 1 + name)
            }
        };
        self.at = end;
        Token { kind, kw: Kw::OTHER, start: start as u32, end: end as u32 }
    }
}

fn is_digit(kind: Kind, byte: u8) -> bool {
    if kind == Kind::Hex { byte.is_ascii_hexdigit() } else { matches!(byte, b'0' | b'1') }
}

/// Resolves doubled quotes and, where they count, backslash escapes in the text between quotes.
///
/// `\%` and `\_` stay two characters: only LIKE takes them apart. A backslash before any other character stands for that character.
pub fn unescape(text: &str, quote: char, backslashes: bool) -> String {
    if !text.bytes().any(|byte| byte == quote as u8 || backslashes && byte == b'\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == quote {
            letters.next();
            out.push(quote);
        } else if letter == '\\' && backslashes {
            match letters.next() {
                Some('0') => out.push('\0'),
                Some('b') => out.push('\u{8}'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('Z') => out.push('\u{1a}'),
                Some(wildcard @ ('%' | '_')) => out.extend(['\\', wildcard]),
                Some(other) => out.push(other),
                None => out.push('\\'),
            }
        } else {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let mut lexer = Lexer::new(text, Mode::default());
        let mut found = Vec::new();
        loop {
            match lexer.advance().kind {
                Kind::End => return found,
                kind => found.push(kind),
            }
        }
    }

    #[test]
    fn numbers_and_names_that_begin_with_digits() {
        use Kind::*;
        assert_eq!(
            kinds("1 1.5 .5 1. 1e5 1.e5 1e+5 1e-5"),
            [Integer, Decimal, Decimal, Decimal, Float, Float, Float, Float]
        );
        assert_eq!(kinds("1a 1e 0xg 0x 1ea 0b12"), [Word, Word, Word, Word, Word, Word]);
        assert_eq!(kinds("1e5x 1.5e1_"), [Float, Word, Float, Word]);
        assert_eq!(kinds("0x41 x'41' 0b1 b'01' n'a'"), [Hex, Hex, Bits, Bits, National]);
        assert_eq!(kinds("a.1b a.b.5 t.select"), [Word, Dot, Word, Word, Dot, Word, Dot, Word, Word, Dot, Word]);
        assert_eq!(kinds("_utf8mb4'a' _other"), [Introducer, String, Word]);
        assert_eq!(kinds("x'4'"), [Bad]);
    }

    #[test]
    fn comparison_letters_belong_together_even_where_they_make_no_operator() {
        use Kind::*;
        let operators = "= < <= <=> <> != << > >= >>";
        let known = [
            Equal,
            Less,
            LessOrEqual,
            NullSafeEqual,
            NotEqual,
            NotEqual,
            ShiftLeft,
            Greater,
            GreaterOrEqual,
            ShiftRight,
        ];
        assert_eq!(kinds(operators), known);
        for text in ["=!", ">!", "<!", "<>!", "<=!", "<<!", "==", "=>", "=<", "><"] {
            assert_eq!(kinds(text), [Bad], "{text}");
        }
        assert_eq!(kinds("!! !> ! !"), [Bang, Bang, Bang, Bang]);
        assert_eq!(kinds("1=-1"), [Integer, Equal, Minus, Integer]);
    }

    #[test]
    fn comments() {
        use Kind::*;
        assert_eq!(kinds("1 -- x\n2 # y\n/* z */ 3 /*+ no */"), [Integer, Integer, Integer]);
        assert_eq!(kinds("select /*+ x */ 1 --1"), [Word, Hint, Integer, Minus, Minus, Integer]);
        assert_eq!(kinds("/*! 1 */ /*!80000 2*/ /*!99999 3 /* x */ 4 */ 5"), [Integer, Integer, Integer]);
        assert_eq!(kinds("/*!1*/"), [Integer]);
        assert_eq!(kinds("1 /* x"), [Integer, Bad]);
        assert_eq!(kinds("/*! 1"), [Integer, Bad]);
    }

    #[test]
    fn variables_and_quotes() {
        use Kind::*;
        assert_eq!(
            kinds("@a @`b c` @'d' @@global.x @"),
            [Variable, Variable, Variable, System, Word, Dot, Word, Variable]
        );
        assert_eq!(kinds("'a''b\\'' \"c\" `d``e`"), [String, String, Quoted]);
        assert_eq!(kinds("'a"), [Bad]);
        assert_eq!(kinds("'a\\"), [Bad]);
        assert_eq!(unescape("a''b\\n\\%\\q", '\'', true), "a'b\n\\%q");
    }
}
