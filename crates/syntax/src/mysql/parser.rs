//! The parser's core: tokens ahead, identifiers, literals, and the bound on nesting.

use super::keyword::Kw;
use super::lexer::{Kind, Lexer, Token, unescape};
use super::mode::Mode;
use crate::error::{Error, Problem, Result};
use crate::tree::{BLOCKS_MAX, HEIGHT_MAX, Ident, Name, Span, TOKENS_MAX, Target};

/// The most tokens that are looked at before one is taken.
const AHEAD: usize = 4;

/// How many tokens are read between two looks at whether to cancel.
const CANCEL_STRIDE: u32 = 4096;

pub struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) mode: Mode,
    lexer: Lexer<'t>,
    ahead: [Token; AHEAD],
    count: usize,
    /// The end of the last token that was taken.
    pub(super) last_end: u32,
    pub(super) parameters: u32,
    depth: usize,
    /// The height of the tallest tree that was completed at this level.
    tallest: usize,
    cancelled: &'t dyn Fn() -> bool,
    tokens: u32,
    /// Query blocks that are open.
    blocks: usize,
    /// The reason why nothing more is read.
    stopped: Option<Problem>,
    /// Whether the query at hand may have INTO: the statement's outermost one may.
    pub(super) is_outermost: bool,
    /// INTO between a select list and FROM, on its way to the query.
    pub(super) held_into: Option<Box<Target>>,
}

impl<'t> Parser<'t> {
    pub fn new(text: &'t str, mode: Mode, cancelled: &'t dyn Fn() -> bool) -> Parser<'t> {
        let mut lexer = Lexer::new(text, mode);
        let first = lexer.advance();
        Parser {
            text,
            mode,
            lexer,
            ahead: [first; AHEAD],
            count: 1,
            last_end: 0,
            parameters: 0,
            depth: 0,
            tallest: 0,
            cancelled,
            tokens: 0,
            blocks: 0,
            stopped: None,
            is_outermost: true,
            held_into: None,
        }
    }

    /// The next token.
    pub(super) fn token(&self) -> Token {
        self.ahead[0]
    }

    pub(super) fn kw(&self) -> Kw {
        self.ahead[0].kw
    }

    pub(super) fn kind(&self) -> Kind {
        self.ahead[0].kind
    }

    /// The token `nth` places behind the next one.
    pub(super) fn peek(&mut self, nth: usize) -> Token {
        while self.count <= nth {
            self.ahead[self.count] = self.lexer.advance();
            self.count += 1;
        }
        self.ahead[nth]
    }

    /// A lexer behind the next token.
    pub(super) fn lexer_behind(&self) -> (Lexer<'t>, [Token; AHEAD], usize) {
        (self.lexer, self.ahead, self.count)
    }

    /// Takes the next token.
    pub(super) fn take(&mut self) -> Token {
        let taken = self.ahead[0];
        self.last_end = taken.end;
        if self.count == 1 {
            self.ahead[0] = self.lexer.advance();
        } else {
            self.ahead.copy_within(1..self.count, 0);
            self.count -= 1;
        }
        self.tokens += 1;
        if self.tokens.is_multiple_of(CANCEL_STRIDE) {
            self.look_up();
        }
        taken
    }

    /// Stops where the statement is cancelled or too long: nothing follows, so whatever rule is at work ends with an error, in whose place `settle` puts the reason.
    #[cold]
    fn look_up(&mut self) {
        let reason = if (self.cancelled)() {
            Problem::Cancelled
        } else if self.tokens > TOKENS_MAX {
            Problem::TooManyTokens
        } else {
            return;
        };
        self.stopped = Some(reason);
        let end = self.text.len() as u32;
        self.ahead = [Token { kind: Kind::Bad, kw: Kw::OTHER, start: end, end }; AHEAD];
        self.count = 1;
        self.lexer = Lexer::new("", self.mode);
    }

    /// The error to show for what a rule has found.
    pub(super) fn final_error(&self, error: Error) -> Error {
        match &self.stopped {
            Some(problem) => Error { problem: problem.clone(), at: self.text.len() },
            None => error,
        }
    }

    /// Runs the rule of a query block.
    pub(super) fn block<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.blocks >= BLOCKS_MAX {
            return Err(self.problem(Problem::TooManyBlocks));
        }
        self.blocks += 1;
        let parsed = parse(self)?;
        self.blocks -= 1;
        Ok(parsed)
    }

    /// The height of the tree that was parsed.
    pub(super) fn height(&self) -> usize {
        self.tallest
    }

    pub(super) fn at(&mut self, kind: Kind) -> bool {
        self.kind() == kind
    }

    /// Takes the token if it is of that kind.
    pub(super) fn accept(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.take();
        }
        found
    }

    pub(super) fn expect(&mut self, kind: Kind) -> Result<Token> {
        if self.kind() == kind { Ok(self.take()) } else { Err(self.error()) }
    }

    /// Takes the keyword if it is next.
    pub(super) fn word(&mut self, kw: Kw) -> bool {
        let found = self.kw() == kw;
        if found {
            self.take();
        }
        found
    }

    /// Takes these keywords if they are next: at most as many as are looked ahead.
    pub(super) fn words(&mut self, words: &[Kw]) -> bool {
        let found = words.iter().enumerate().all(|(nth, kw)| self.peek(nth).is(*kw));
        if found {
            words.iter().for_each(|_| {
                self.take();
            });
        }
        found
    }

    /// Takes the first of these keywords that is next.
    pub(super) fn any(&mut self, words: &[Kw]) -> Option<Kw> {
        let kw = self.kw();
        (kw != Kw::OTHER && words.contains(&kw)).then(|| {
            self.take();
            kw
        })
    }

    pub(super) fn expect_word(&mut self, kw: Kw) -> Result<()> {
        if self.word(kw) { Ok(()) } else { Err(self.error()) }
    }

    pub(super) fn expect_words(&mut self, words: &[Kw]) -> Result<()> {
        words.iter().try_for_each(|kw| self.expect_word(*kw))
    }

    pub(super) fn at_end(&self) -> bool {
        matches!(self.kind(), Kind::End | Kind::Semicolon)
    }

    /// Error 1064 at the next token.
    pub(super) fn error(&self) -> Error {
        self.error_at(self.token().start)
    }

    pub(super) fn error_at(&self, at: u32) -> Error {
        Error { problem: Problem::Syntax, at: at as usize }
    }

    pub(super) fn problem(&self, problem: Problem) -> Error {
        Error { problem, at: self.token().start as usize }
    }

    pub(super) fn unsupported(&self, what: impl std::convert::Into<String>) -> Error {
        self.problem(Problem::Unsupported(what.into()))
    }

    /// Runs a rule that may contain itself. Bounds recursion and the height of what it makes.
    pub(super) fn level<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= HEIGHT_MAX {
            return Err(self.problem(Problem::TooDeep));
        }
        self.depth += 1;
        let outer = std::mem::take(&mut self.tallest);
        let parsed = parse(self)?;
        self.depth -= 1;
        self.grow()?;
        self.tallest = self.tallest.max(outer);
        Ok(parsed)
    }

    /// Counts a node above what was completed at this level.
    pub(super) fn grow(&mut self) -> Result<()> {
        self.tallest += 1;
        if self.tallest > HEIGHT_MAX { Err(self.problem(Problem::TooDeep)) } else { Ok(()) }
    }

    pub(super) fn span_from(&self, start: u32) -> Span {
        Span { start, end: self.last_end.max(start) }
    }

    /// The text of a token.
    pub(super) fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// The value of a string, national string or quoted identifier.
    pub(super) fn unquoted(&self, token: Token) -> String {
        let text = self.text_of(token);
        let text = if token.kind == Kind::National { &text[1..] } else { text };
        let escapes = token.kind != Kind::Quoted && !self.mode.no_backslash_escapes;
        let quote = text.as_bytes()[0];
        unescape(&text[1..text.len() - 1], quote as char, escapes)
    }

    /// Whether the token can be an identifier.
    pub(super) fn is_name(token: Token) -> bool {
        token.kind == Kind::Quoted || token.kind == Kind::Word && !token.kw.is_reserved() && !token.kw.is_function()
    }

    pub(super) fn at_name(&self) -> bool {
        Parser::is_name(self.token())
    }

    pub(super) fn ident_of(&self, token: Token) -> Ident {
        let value = match token.kind {
            Kind::Quoted => self.unquoted(token),
            _ => self.text_of(token).to_owned(),
        };
        Ident { value, span: Span { start: token.start, end: token.end } }
    }

    /// An identifier, quoted or not reserved.
    pub(super) fn ident(&mut self) -> Result<Ident> {
        if !self.at_name() {
            return Err(self.error());
        }
        let token = self.take();
        Ok(self.ident_of(token))
    }

    pub(super) fn identifier(&mut self) -> Result<String> {
        self.ident().map(|ident| ident.value)
    }

    /// An identifier, or a string in quotes.
    pub(super) fn text_or_name(&mut self) -> Result<String> {
        match self.kind() {
            Kind::String => self.string(),
            _ => self.identifier(),
        }
    }

    /// A string literal, one token of it.
    pub(super) fn string(&mut self) -> Result<String> {
        let token = self.expect(Kind::String)?;
        Ok(self.unquoted(token))
    }

    /// The name of a character set: an identifier, a string, or BINARY.
    pub(super) fn charset_name(&mut self) -> Result<String> {
        if self.word(Kw::BINARY) {
            return Ok("binary".to_owned());
        }
        self.text_or_name()
    }

    /// CHARACTER SET, CHAR SET, CHARSET.
    pub(super) fn charset_words(&mut self) -> bool {
        if matches!(self.kw(), Kw::CHARACTER | Kw::CHAR) && self.peek(1).is(Kw::SET) {
            self.take();
            self.take();
            return true;
        }
        self.word(Kw::CHARSET)
    }

    /// `name`, `schema.name`.
    pub(super) fn name(&mut self) -> Result<Name> {
        let first = self.identifier()?;
        if self.accept(Kind::Dot) {
            return Ok(Name { schema: Some(first), name: self.identifier()? });
        }
        Ok(Name { schema: None, name: first })
    }

    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut list = vec![item(self)?];
        while self.accept(Kind::Comma) {
            list.push(item(self)?);
        }
        Ok(list)
    }

    pub(super) fn names(&mut self) -> Result<Vec<Name>> {
        self.list(Parser::name)
    }

    /// `(a, b)`
    pub(super) fn idents_in_brackets(&mut self) -> Result<Vec<Ident>> {
        self.expect(Kind::Open)?;
        let list = self.list(Parser::ident)?;
        self.expect(Kind::Close)?;
        Ok(list)
    }

    /// A number without a point; hexadecimal ones count.
    pub(super) fn number(&mut self) -> Result<u64> {
        let token = self.token();
        let text = self.text_of(token);
        let number = match token.kind {
            Kind::Integer => text.parse().ok(),
            Kind::Hex if text.starts_with("0x") => u64::from_str_radix(&text[2..], 16).ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.error())?;
        self.take();
        Ok(number)
    }

    /// `(number)` if there is one.
    pub(super) fn length(&mut self) -> Result<Option<u64>> {
        if !self.at(Kind::Open) {
            return Ok(None);
        }
        self.take();
        let number = self.number()?;
        self.expect(Kind::Close)?;
        Ok(Some(number))
    }

    pub(super) fn equals(&mut self) -> bool {
        self.accept(Kind::Equal)
    }

    pub(super) fn if_exists(&mut self) -> bool {
        self.words(&[Kw::IF, Kw::EXISTS])
    }

    pub(super) fn if_not_exists(&mut self) -> bool {
        self.words(&[Kw::IF, Kw::NOT, Kw::EXISTS])
    }
}
