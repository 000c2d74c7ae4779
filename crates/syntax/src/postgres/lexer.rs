//! Text to tokens. Tokens are spans: nothing is copied until the parser wants a value (SY-5).
//!
//! The hard part is operators: the longest run of their letters is one, but for comments in it, and a `+` or `-` at its end belongs to it only if one of ``~ ! @ # % ^ & | ` ?`` comes before.

use super::keyword::Kw;

/// The longest name in bytes.
pub const NAME_BYTES_MAX: usize = 63;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    End,
    /// A keyword or identifier without quotes.
    Word,
    /// `"name"`
    Quoted,
    /// `U&"name"`
    UnicodeQuoted,
    /// `'text'`; parts that a line break separates are one token.
    String,
    /// `E'text'`
    EscapeString,
    /// `U&'text'`
    UnicodeString,
    /// `$tag$text$tag$`
    DollarString,
    /// `B'101'`
    Bits,
    /// `X'1F'`
    HexBits,
    /// Digits, perhaps with 0x, 0o or 0b before them.
    Integer,
    /// A number with a point or exponent.
    Float,
    /// `$1`
    Parameter,
    Comma,
    Dot,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    Semicolon,
    Colon,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Caret,
    Less,
    Greater,
    Equal,
    LessEqual,
    GreaterEqual,
    NotEqual,
    /// `::`
    TypeCast,
    /// `..`
    DotDot,
    /// `:=`
    ColonEquals,
    /// `=>`
    EqualsGreater,
    /// Any other operator.
    Operator,
    /// A byte that begins no token.
    Other,
    /// A construct that is none, with the reason.
    Bad(Fault),
}

/// The reason why a text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Comment,
    String,
    Identifier,
    EmptyIdentifier,
    DollarString,
    Bits,
    HexBits,
    NumberJunk,
    ParameterJunk,
    Hexadecimal,
    Octal,
    Binary,
    OperatorTooLong,
}

impl Fault {
    /// Returns PostgreSQL's message, without the token.
    pub fn message(self) -> &'static str {
        match self {
            Fault::Comment => "unterminated /* comment",
            Fault::String => "unterminated quoted string",
            Fault::Identifier => "unterminated quoted identifier",
            Fault::EmptyIdentifier => "zero-length delimited identifier",
            Fault::DollarString => "unterminated dollar-quoted string",
            Fault::Bits => "unterminated bit string literal",
            Fault::HexBits => "unterminated hexadecimal string literal",
            Fault::NumberJunk => "trailing junk after numeric literal",
            Fault::ParameterJunk => "trailing junk after parameter",
            Fault::Hexadecimal => "invalid hexadecimal integer",
            Fault::Octal => "invalid octal integer",
            Fault::Binary => "invalid binary integer",
            Fault::OperatorTooLong => "operator too long",
        }
    }
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
}

/// Tells the digits of a base.
type IsDigit = fn(&u8) -> bool;

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | 0x80..)
}

fn is_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn is_operator(byte: u8) -> bool {
    matches!(
        byte,
        b'~' | b'!'
            | b'@'
            | b'#'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
            | b'+'
            | b'-'
            | b'*'
            | b'/'
            | b'%'
            | b'<'
            | b'>'
            | b'='
    )
}

/// Letters that let an operator end in `+` or `-`.
fn is_peculiar(byte: u8) -> bool {
    matches!(byte, b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'%')
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { bytes: text.as_bytes(), at: 0 }
    }

    /// A lexer behind a byte that ends a token.
    pub fn behind(text: &'t str, end: u32) -> Lexer<'t> {
        Lexer { bytes: text.as_bytes(), at: end as usize }
    }

    /// Returns the next token; after the last one, `End` again and again.
    pub fn advance(&mut self) -> Token {
        let start = match self.skip_space() {
            Ok(()) => self.at,
            Err(start) => {
                self.at = self.bytes.len();
                return self.token(Kind::Bad(Fault::Comment), start);
            }
        };
        let kind = self.scan();
        let kw = match kind {
            Kind::Word => Kw::of(&self.bytes[start..self.at]),
            _ => Kw::OTHER,
        };
        // N'text' is the keyword NCHAR and a string.
        let kw = if kind == Kind::Word && self.at == start + 1 && self.is_national(start) { Kw::NCHAR } else { kw };
        Token { kind, kw, start: start as u32, end: self.at as u32 }
    }

    fn token(&self, kind: Kind, start: usize) -> Token {
        Token { kind, kw: Kw::OTHER, start: start as u32, end: self.at as u32 }
    }

    fn is_national(&self, start: usize) -> bool {
        matches!(self.bytes[start], b'n' | b'N') && self.byte(start + 1) == b'\''
    }

    /// The byte at a place; 0 behind the text.
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Goes to the next token; an error is the start of a comment that does not end.
    fn skip_space(&mut self) -> Result<(), usize> {
        loop {
            match self.byte(self.at) {
                byte if is_space(byte) => self.at += 1,
                b'-' if self.byte(self.at + 1) == b'-' => self.skip_line(),
                b'/' if self.byte(self.at + 1) == b'*' => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && !matches!(self.bytes[self.at], b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn skip_comment(&mut self) -> Result<(), usize> {
        let start = self.at;
        let mut depth = 0usize;
        while self.at < self.bytes.len() {
            match (self.bytes[self.at], self.byte(self.at + 1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.at += 1,
            }
        }
        Err(start)
    }

    fn scan(&mut self) -> Kind {
        let Some(&byte) = self.bytes.get(self.at) else { return Kind::End };
        let next = self.byte(self.at + 1);
        match byte {
            b'\'' => self.quoted_string(0, Kind::String, Fault::String),
            b'e' | b'E' if next == b'\'' => self.quoted_string(1, Kind::EscapeString, Fault::String),
            b'b' | b'B' if next == b'\'' => self.quoted_string(1, Kind::Bits, Fault::Bits),
            b'x' | b'X' if next == b'\'' => self.quoted_string(1, Kind::HexBits, Fault::HexBits),
            b'n' | b'N' if next == b'\'' => self.single(Kind::Word),
            b'u' | b'U' if next == b'&' && self.byte(self.at + 2) == b'\'' => {
                self.quoted_string(2, Kind::UnicodeString, Fault::String)
            }
            b'u' | b'U' if next == b'&' && self.byte(self.at + 2) == b'"' => self.quoted_name(2, Kind::UnicodeQuoted),
            b'"' => self.quoted_name(0, Kind::Quoted),
            byte if begins_name(byte) => {
                while self.at < self.bytes.len() && is_name(self.bytes[self.at]) {
                    self.at += 1;
                }
                Kind::Word
            }
            b'0'..=b'9' => self.number(),
            b'.' if next.is_ascii_digit() => self.number(),
            b'.' if next == b'.' => self.double(Kind::DotDot),
            b'.' => self.single(Kind::Dot),
            b',' => self.single(Kind::Comma),
            b'(' => self.single(Kind::Open),
            b')' => self.single(Kind::Close),
            b'[' => self.single(Kind::OpenBracket),
            b']' => self.single(Kind::CloseBracket),
            b';' => self.single(Kind::Semicolon),
            b':' if next == b':' => self.double(Kind::TypeCast),
            b':' if next == b'=' => self.double(Kind::ColonEquals),
            b':' => self.single(Kind::Colon),
            b'$' => self.dollar(),
            byte if is_operator(byte) => self.operator(),
            _ => self.single(Kind::Other),
        }
    }

    fn single(&mut self, kind: Kind) -> Kind {
        self.at += 1;
        kind
    }

    fn double(&mut self, kind: Kind) -> Kind {
        self.at += 2;
        kind
    }

    /// A string after a prefix of so many bytes, with the parts that follow it after a line break.
    fn quoted_string(&mut self, prefix: usize, kind: Kind, fault: Fault) -> Kind {
        self.at += prefix;
        loop {
            self.at += 1;
            // Digits have no quote among them.
            let is_bits = matches!(kind, Kind::Bits | Kind::HexBits);
            let closed =
                if is_bits { self.skip_first_quote() } else { self.skip_quoted(b'\'', kind == Kind::EscapeString) };
            if !closed {
                return Kind::Bad(fault);
            }
            match self.continuation() {
                Some(at) => self.at = at,
                None => return kind,
            }
        }
    }

    /// Goes behind the next quote.
    fn skip_first_quote(&mut self) -> bool {
        let found = self.bytes[self.at..].iter().position(|byte| *byte == b'\'');
        self.at = found.map_or(self.bytes.len(), |at| self.at + at + 1);
        found.is_some()
    }

    /// Goes behind the closing quote.
    fn skip_quoted(&mut self, quote: u8, backslashes: bool) -> bool {
        while self.at < self.bytes.len() {
            let byte = self.bytes[self.at];
            self.at += 1;
            if byte == quote {
                if self.byte(self.at) != quote {
                    return true;
                }
                self.at += 1;
            } else if byte == b'\\' && backslashes {
                self.at += 1;
            }
        }
        self.at = self.bytes.len();
        false
    }

    /// Returns where the next part of a string begins: after space with a line break in it.
    fn continuation(&self) -> Option<usize> {
        continuation(self.bytes, self.at)
    }

    fn quoted_name(&mut self, prefix: usize, kind: Kind) -> Kind {
        self.at += prefix + 1;
        let start = self.at;
        if !self.skip_quoted(b'"', false) {
            return Kind::Bad(Fault::Identifier);
        }
        if self.at == start + 1 { Kind::Bad(Fault::EmptyIdentifier) } else { kind }
    }

    fn digits(&mut self, is_digit: IsDigit) {
        loop {
            let at = self.at + usize::from(self.byte(self.at) == b'_');
            if !is_digit(&self.byte(at)) {
                return;
            }
            self.at = at + 1;
        }
    }

    fn number(&mut self) -> Kind {
        if self.bytes[self.at] == b'0' {
            let based: Option<(IsDigit, Fault)> = match self.byte(self.at + 1) {
                b'x' | b'X' => Some((u8::is_ascii_hexdigit, Fault::Hexadecimal)),
                b'o' | b'O' => Some((|byte| matches!(byte, b'0'..=b'7'), Fault::Octal)),
                b'b' | b'B' => Some((|byte| matches!(byte, b'0' | b'1'), Fault::Binary)),
                _ => None,
            };
            if let Some((is_digit, fault)) = based {
                return self.based(is_digit, fault);
            }
        }
        let mut kind = Kind::Integer;
        let is_digit: IsDigit = u8::is_ascii_digit;
        if self.bytes[self.at] != b'.' {
            self.digits(is_digit);
        }
        if self.byte(self.at) == b'.' && self.byte(self.at + 1) != b'.' {
            kind = Kind::Float;
            self.at += 1;
            if self.byte(self.at).is_ascii_digit() {
                self.digits(is_digit);
            }
        }
        if matches!(self.byte(self.at), b'e' | b'E') {
            let signed = usize::from(matches!(self.byte(self.at + 1), b'+' | b'-'));
            if self.byte(self.at + 1 + signed).is_ascii_digit() {
                kind = Kind::Float;
                self.at += 1 + signed;
                self.digits(is_digit);
            } else if signed == 1 {
                self.at += 2;
                return Kind::Bad(Fault::NumberJunk);
            }
        }
        self.without_junk(kind, Fault::NumberJunk)
    }

    fn based(&mut self, is_digit: IsDigit, fault: Fault) -> Kind {
        self.at += 2;
        let start = self.at;
        self.digits(is_digit);
        if self.at == start {
            // Letters behind the prefix are the longer token: a zero with junk.
            self.at += usize::from(self.byte(start) == b'_');
            let is_alone = !is_name(self.byte(self.at));
            while is_name(self.byte(self.at)) {
                self.at += 1;
            }
            return Kind::Bad(if is_alone { fault } else { Fault::NumberJunk });
        }
        self.without_junk(Kind::Integer, Fault::NumberJunk)
    }

    /// Refuses a letter right after a number.
    fn without_junk(&mut self, kind: Kind, fault: Fault) -> Kind {
        if !begins_name(self.byte(self.at)) {
            return kind;
        }
        while is_name(self.byte(self.at)) {
            self.at += 1;
        }
        Kind::Bad(fault)
    }

    /// `$1`, `$tag$...$tag$`
    fn dollar(&mut self) -> Kind {
        self.at += 1;
        if self.byte(self.at).is_ascii_digit() {
            while self.byte(self.at).is_ascii_digit() {
                self.at += 1;
            }
            return self.without_junk(Kind::Parameter, Fault::ParameterJunk);
        }
        let start = self.at - 1;
        let mut end = self.at;
        if begins_name(self.byte(end)) {
            while is_name(self.byte(end)) && self.byte(end) != b'$' {
                end += 1;
            }
        }
        if self.byte(end) != b'$' {
            return Kind::Other;
        }
        let tag = &self.bytes[start..=end];
        self.at = end + 1;
        match find(&self.bytes[self.at..], tag) {
            Some(at) => {
                self.at += at + tag.len();
                Kind::DollarString
            }
            None => {
                self.at = self.bytes.len();
                Kind::Bad(Fault::DollarString)
            }
        }
    }

    fn operator(&mut self) -> Kind {
        let start = self.at;
        let mut end = start;
        let mut peculiar = None;
        while end < self.bytes.len() && is_operator(self.bytes[end]) {
            let next = self.byte(end + 1);
            if matches!((self.bytes[end], next), (b'/', b'*') | (b'-', b'-')) {
                break;
            }
            if is_peculiar(self.bytes[end]) {
                peculiar = peculiar.or(Some(end));
            }
            end += 1;
        }
        while end > start + 1 && matches!(self.bytes[end - 1], b'+' | b'-') && peculiar.is_none_or(|at| at >= end - 1) {
            end -= 1;
        }
        self.at = end;
        match &self.bytes[start..end] {
            b"+" => Kind::Plus,
            b"-" => Kind::Minus,
            b"*" => Kind::Star,
            b"/" => Kind::Slash,
            b"%" => Kind::Percent,
            b"^" => Kind::Caret,
            b"<" => Kind::Less,
            b">" => Kind::Greater,
            b"=" => Kind::Equal,
            b"<=" => Kind::LessEqual,
            b">=" => Kind::GreaterEqual,
            b"<>" | b"!=" => Kind::NotEqual,
            b"=>" => Kind::EqualsGreater,
            long if long.len() > NAME_BYTES_MAX => Kind::Bad(Fault::OperatorTooLong),
            _ => Kind::Operator,
        }
    }
}

/// Returns where `needle`, which begins and ends with `$`, first is.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(dollar) = bytes[at..].iter().position(|byte| *byte == b'$') {
        at += dollar;
        if bytes[at..].starts_with(needle) {
            return Some(at);
        }
        // The next dollar may begin the needle: a failed comparison stops at the first dollar behind this one at the latest.
        at += 1;
    }
    None
}

/// Returns where the part begins that continues a string that ended before `at`.
pub(super) fn continuation(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut has_break = false;
    loop {
        match bytes.get(at)? {
            b'\n' | b'\r' => {
                has_break = true;
                at += 1;
            }
            byte if is_space(*byte) => at += 1,
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                while !matches!(bytes.get(at)?, b'\n' | b'\r') {
                    at += 1;
                }
            }
            b'\'' if has_break => return Some(at),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            match lexer.advance().kind {
                Kind::End => return found,
                kind => found.push(kind),
            }
        }
    }

    fn texts(text: &str) -> Vec<&str> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            let token = lexer.advance();
            if token.kind == Kind::End {
                return found;
            }
            found.push(&text[token.start as usize..token.end as usize]);
        }
    }

    #[test]
    fn operators_end_where_postgresql_ends_them() {
        assert_eq!(texts("a<-1"), ["a", "<", "-", "1"]);
        assert_eq!(texts("a@-1"), ["a", "@-", "1"]);
        assert_eq!(texts("a*--b\n-c"), ["a", "*", "-", "c"]);
        assert_eq!(texts("a||/*x*/b"), ["a", "||", "b"]);
        assert_eq!(texts("a=-+-1"), ["a", "=", "-", "+", "-", "1"]);
        assert_eq!(texts("a-@1"), ["a", "-@", "1"]);
        assert_eq!(texts("a+-@-+b"), ["a", "+-@-+", "b"]);
        use Kind::*;
        assert_eq!(
            kinds("< <= <> != > >= = => := :: : .. . ~ <<"),
            [
                Less,
                LessEqual,
                NotEqual,
                NotEqual,
                Greater,
                GreaterEqual,
                Equal,
                EqualsGreater,
                ColonEquals,
                TypeCast,
                Colon,
                DotDot,
                Dot,
                Operator,
                Operator
            ]
        );
    }

    #[test]
    fn numbers_and_their_junk() {
        use Kind::*;
        assert_eq!(kinds("1 1.5 .5 1. 1e5 1.e5 1e+5 1_000 0x1F 0o17 0b10 0x_1"), {
            [Integer, Float, Float, Float, Float, Float, Float, Integer, Integer, Integer, Integer, Integer]
        });
        assert_eq!(texts("1..2"), ["1", "..", "2"]);
        for junk in ["1a", "1e", "1e+", "1_", "1.5x", "0x1g", "1__0"] {
            assert_eq!(kinds(junk)[0], Bad(Fault::NumberJunk), "{junk}");
        }
        assert_eq!(kinds("0x")[0], Bad(Fault::Hexadecimal));
        assert_eq!(kinds("0o_")[0], Bad(Fault::Octal));
        assert_eq!(kinds("0b2 0b")[..], [Bad(Fault::NumberJunk), Bad(Fault::Binary)]);
        assert_eq!(kinds("$1 $1a"), [Parameter, Bad(Fault::ParameterJunk)]);
    }

    #[test]
    fn quotes_of_all_kinds() {
        use Kind::*;
        assert_eq!(
            kinds("'a''b' E'a\\'b' U&'a' U&\"a\" \"b\" b'1' x'1' $$a$$ $a$ $b$ $a$"),
            [String, EscapeString, UnicodeString, UnicodeQuoted, Quoted, Bits, HexBits, DollarString, DollarString]
        );
        assert_eq!(kinds("'a' \n -- c\n 'b'"), [String]);
        assert_eq!(kinds("'a' 'b'"), [String, String]);
        assert_eq!(kinds("N'a'"), [Word, String]);
        assert_eq!(kinds("'a"), [Bad(Fault::String)]);
        assert_eq!(kinds("$a$ $a"), [Bad(Fault::DollarString)]);
        assert_eq!(kinds("\"\""), [Bad(Fault::EmptyIdentifier)]);
        assert_eq!(kinds("a /* /* */ b"), [Word, Bad(Fault::Comment)]);
        assert_eq!(kinds("a /* /* */ */ b"), [Word, Word]);
    }
}
