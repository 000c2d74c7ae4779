//! The parser's core: tokens ahead, names, literals, and the bound on nesting.

use std::borrow::Cow;

use super::error::{Error, Problem, Result};
use super::keyword::Kw;
use super::lexer::{Kind, Lexer, Token};
use super::literal;
use super::tree::{AnyName, Const, HEIGHT_MAX, Ident, Location, RangeVar, Span, TOKENS_MAX};

/// The most tokens that are looked at before one is taken.
const AHEAD: usize = 4;

/// How many tokens are read between two looks at whether to cancel.
const CANCEL_STRIDE: u32 = 4096;

pub struct Parser<'t> {
    pub(super) text: &'t str,
    lexer: Lexer<'t>,
    ahead: [Token; AHEAD],
    count: usize,
    /// The end of the last token that was taken.
    pub(super) last_end: u32,
    /// The largest number of a parameter of the statement.
    pub(super) parameters: u32,
    depth: usize,
    /// The height of the tallest tree that was completed at this level.
    tallest: usize,
    cancelled: &'t dyn Fn() -> bool,
    tokens: u32,
    /// The reason why nothing more is read.
    stopped: Option<Problem>,
    /// The depth of the expression behind which an operator's word may be a label.
    pub(super) target_depth: usize,
    /// The depth of the expression behind which SIMILAR is a clause of SUBSTRING.
    pub(super) substring_depth: usize,
}

impl<'t> Parser<'t> {
    pub fn new(text: &'t str, cancelled: &'t dyn Fn() -> bool) -> Parser<'t> {
        let mut lexer = Lexer::new(text);
        let first = lexer.advance();
        Parser {
            text,
            lexer,
            ahead: [first; AHEAD],
            count: 1,
            last_end: 0,
            parameters: 0,
            depth: 0,
            tallest: 0,
            cancelled,
            tokens: 0,
            stopped: None,
            target_depth: 0,
            substring_depth: 0,
        }
    }

    /// Returns the next token.
    pub(super) fn token(&self) -> Token {
        self.ahead[0]
    }

    pub(super) fn kw(&self) -> Kw {
        self.ahead[0].kw
    }

    pub(super) fn kind(&self) -> Kind {
        self.ahead[0].kind
    }

    pub(super) fn here(&self) -> Location {
        Location(self.ahead[0].start)
    }

    /// Returns the token `nth` places behind the next one.
    pub(super) fn peek(&mut self, nth: usize) -> Token {
        while self.count <= nth {
            self.ahead[self.count] = self.lexer.advance();
            self.count += 1;
        }
        self.ahead[nth]
    }

    pub(super) fn peek_is(&mut self, nth: usize, kw: Kw) -> bool {
        self.peek(nth).kw == kw
    }

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

    /// Stops where the statement is cancelled or too long: nothing follows, so whatever rule is at work ends with an error, in whose place `final_error` puts the reason.
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
        self.ahead = [Token { kind: Kind::Other, kw: Kw::OTHER, start: end, end }; AHEAD];
        self.count = 1;
        self.lexer = Lexer::new("");
    }

    /// Returns the error to show for what a rule has found.
    pub(super) fn final_error(&self, error: Error) -> Error {
        match &self.stopped {
            Some(problem) => Error { problem: problem.clone(), at: self.text.len(), end: self.text.len() },
            None => error,
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Begins another statement: its parameters and its height are counted anew.
    pub(super) fn begin_statement(&mut self) {
        self.parameters = 0;
        self.tallest = 0;
    }

    /// Returns the height of the tree that was parsed.
    pub(super) fn height(&self) -> usize {
        self.tallest
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

    pub(super) fn expect_word(&mut self, kw: Kw) -> Result<()> {
        if self.word(kw) { Ok(()) } else { Err(self.error()) }
    }

    pub(super) fn expect_words(&mut self, words: &[Kw]) -> Result<()> {
        words.iter().try_for_each(|kw| self.expect_word(*kw))
    }

    /// Takes the first of these keywords that is next.
    pub(super) fn any(&mut self, words: &[Kw]) -> Option<Kw> {
        let kw = self.kw();
        (kw != Kw::OTHER && words.contains(&kw)).then(|| {
            self.take();
            kw
        })
    }

    pub(super) fn at_end(&self) -> bool {
        matches!(self.kind(), Kind::End | Kind::Semicolon)
    }

    /// The syntax error at the next token, or the lexer's reason if it is none.
    pub(super) fn error(&self) -> Error {
        self.error_of(self.token())
    }

    pub(super) fn error_of(&self, token: Token) -> Error {
        let problem = match token.kind {
            Kind::Bad(fault) => Problem::Near(fault.message()),
            // A string's escapes are read before its place is judged.
            Kind::EscapeString => match literal::string(self.text, token) {
                Err(error) => return error,
                Ok(_) => Problem::Syntax,
            },
            _ if matches!(token.kw, Kw::NOT | Kw::NULLS | Kw::WITH | Kw::WITHOUT | Kw::FORMAT) => {
                // These words are looked behind first.
                let next = Lexer::behind(self.text, token.end).advance();
                match next.kind {
                    Kind::Bad(_) => return self.error_of(next),
                    _ => Problem::Syntax,
                }
            }
            _ => Problem::Syntax,
        };
        Error { problem, at: token.start as usize, end: token.end as usize }
    }

    pub(super) fn problem(&self, problem: Problem) -> Error {
        let token = self.token();
        Error { problem, at: token.start as usize, end: token.end as usize }
    }

    /// The grammar's own message about the next token.
    pub(super) fn near(&self, message: &'static str) -> Error {
        self.problem(Problem::Near(message))
    }

    /// A message of a rule of the grammar, at a place.
    pub(super) fn invalid(&self, state: &'static str, message: impl Into<Cow<'static, str>>, at: Location) -> Error {
        literal::invalid(state, message, None, at.0 as usize, self.last_end.max(at.0) as usize)
    }

    pub(super) fn unsupported(&self, what: impl Into<Cow<'static, str>>) -> Error {
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

    /// Returns the text of a token.
    pub(super) fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// Whether the next token may be a name of those categories. A few keywords before others begin something else.
    fn at_name(&mut self, fits: fn(Kw) -> bool) -> bool {
        let token = self.token();
        match token.kind {
            Kind::Quoted | Kind::UnicodeQuoted => true,
            Kind::Word if token.kw == Kw::OTHER => true,
            Kind::Word => fits(token.kw) && !self.at_joined_keyword(),
            _ => false,
        }
    }

    /// NULLS before FIRST or LAST, WITHOUT before TIME, FORMAT before JSON are keywords of their own.
    fn at_joined_keyword(&mut self) -> bool {
        match self.kw() {
            Kw::NULLS => matches!(self.peek(1).kw, Kw::FIRST | Kw::LAST),
            Kw::WITHOUT => self.peek_is(1, Kw::TIME),
            Kw::FORMAT => self.peek_is(1, Kw::JSON),
            _ => false,
        }
    }

    /// Whether a name of a column or table is next (ColId).
    pub(super) fn at_column_name(&mut self) -> bool {
        self.at_name(Kw::is_column_name)
    }

    /// Whether a name of a function or type is next (type_function_name).
    pub(super) fn at_function_name(&mut self) -> bool {
        self.at_name(Kw::is_function_name)
    }

    /// Whether a label without AS is next.
    pub(super) fn at_bare_label(&mut self) -> bool {
        self.at_name(Kw::is_bare_label)
    }

    /// Whether anything that can be a label after AS or a dot is next.
    pub(super) fn at_label(&mut self) -> bool {
        self.at_name(|_| true)
    }

    /// Takes the next token as a name, whatever keyword it is.
    pub(super) fn take_name(&mut self) -> Result<Ident> {
        let token = self.take();
        let at = Location(token.start);
        let value = match token.kind {
            Kind::Quoted => literal::cut(literal::quoted(self.text_of(token))),
            Kind::UnicodeQuoted => {
                let escape = self.escape_character()?;
                let name = literal::unicode_string(self.text, token, escape)?;
                literal::cut(name)
            }
            _ => literal::folded(self.text_of(token)),
        };
        Ok(Ident { value, at })
    }

    /// `UESCAPE 'c'` after a string or name with Unicode escapes.
    fn escape_character(&mut self) -> Result<char> {
        if !self.word(Kw::UESCAPE) {
            return Ok('\\');
        }
        let token = self.token();
        if token.kind != Kind::String {
            return Err(self.near("UESCAPE must be followed by a simple string literal"));
        }
        let text = literal::string(self.text, token)?;
        let mut letters = text.chars();
        let escape = letters.next().filter(|letter| {
            let is_space = matches!(letter, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
            !letter.is_ascii_hexdigit() && !matches!(letter, '+' | '\'' | '"') && !is_space && letter.is_ascii()
        });
        match (escape, letters.next()) {
            (Some(escape), None) => {
                self.take();
                Ok(escape)
            }
            _ => Err(self.near("invalid Unicode escape character")),
        }
    }

    /// ColId
    pub(super) fn column_name(&mut self) -> Result<Ident> {
        if self.at_column_name() { self.take_name() } else { Err(self.error()) }
    }

    /// type_function_name
    pub(super) fn function_word(&mut self) -> Result<Ident> {
        if self.at_function_name() { self.take_name() } else { Err(self.error()) }
    }

    /// ColLabel
    pub(super) fn label(&mut self) -> Result<Ident> {
        if self.at_label() { self.take_name() } else { Err(self.error()) }
    }

    /// NonReservedWord: any name but reserved words.
    pub(super) fn nonreserved(&mut self) -> Result<Ident> {
        if self.at_name(|kw| kw.category() != super::keyword::Category::Reserved) {
            self.take_name()
        } else {
            Err(self.error())
        }
    }

    /// Whether a string literal is next.
    pub(super) fn at_string(&self) -> bool {
        matches!(self.kind(), Kind::String | Kind::EscapeString | Kind::UnicodeString | Kind::DollarString)
    }

    /// Sconst
    pub(super) fn string(&mut self) -> Result<String> {
        if !self.at_string() {
            return Err(self.error());
        }
        let token = self.take();
        if token.kind != Kind::UnicodeString {
            return literal::string(self.text, token);
        }
        let escape = self.escape_character()?;
        literal::unicode_string(self.text, token, escape)
    }

    /// The number that the next token is; an integer beyond 32 bits is a Float.
    pub(super) fn number(&mut self) -> Result<Const> {
        let token = self.token();
        let number = match token.kind {
            Kind::Integer => literal::integer(self.text_of(token)),
            Kind::Float => Const::Float(self.text_of(token).chars().filter(|letter| *letter != '_').collect()),
            _ => return Err(self.error()),
        };
        self.take();
        Ok(number)
    }

    /// Iconst: an integer of 32 bits without a sign.
    pub(super) fn integer(&mut self) -> Result<i32> {
        let token = self.token();
        match token.kind {
            Kind::Integer => match literal::integer(self.text_of(token)) {
                Const::Integer(number) => {
                    self.take();
                    Ok(number)
                }
                _ => Err(self.error()),
            },
            _ => Err(self.error()),
        }
    }

    /// SignedIconst
    pub(super) fn signed_integer(&mut self) -> Result<i32> {
        if self.accept(Kind::Minus) {
            return self.integer().map(|number| -number);
        }
        self.accept(Kind::Plus);
        self.integer()
    }

    /// NumericOnly: a number with a sign.
    pub(super) fn signed_number(&mut self) -> Result<Const> {
        let negative = self.accept(Kind::Minus);
        if !negative {
            self.accept(Kind::Plus);
        }
        let number = self.number()?;
        Ok(if negative { negated(number) } else { number })
    }

    /// any_name: `name`, `schema.name` and so on.
    pub(super) fn any_name(&mut self) -> Result<AnyName> {
        let first = self.column_name()?;
        self.rest_of_name(first)
    }

    /// Further parts of a name, each after a dot.
    pub(super) fn rest_of_name(&mut self, first: Ident) -> Result<AnyName> {
        let mut name = AnyName { parts: vec![first.value], at: first.at };
        while self.accept(Kind::Dot) {
            name.parts.push(self.label()?.value);
        }
        Ok(name)
    }

    /// qualified_name: of a relation.
    pub(super) fn relation_name(&mut self) -> Result<RangeVar> {
        let first = self.column_name()?;
        let name = self.rest_of_name(first)?;
        self.refuse_subscripts()?;
        self.relation_of(name)
    }

    /// PostgreSQL's grammar reads subscripts of a relation's name, and refuses them behind the last.
    pub(super) fn refuse_subscripts(&mut self) -> Result<()> {
        if self.kind() != Kind::OpenBracket {
            return Ok(());
        }
        self.indirection()?;
        Err(self.error())
    }

    pub(super) fn relation_of(&self, name: AnyName) -> Result<RangeVar> {
        let at = name.at;
        if name.parts.len() > 3 {
            let message = format!("improper qualified name (too many dotted names): {}", name.dotted());
            return Err(self.invalid("42601", message, at));
        }
        let mut parts = name.parts.into_iter().rev();
        let last = parts.next().unwrap_or_default();
        let schema = parts.next();
        Ok(RangeVar { catalog: parts.next(), schema, name: last, only: false, at })
    }

    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut list = vec![item(self)?];
        while self.accept(Kind::Comma) {
            list.push(item(self)?);
        }
        Ok(list)
    }

    /// `(a, b)`
    pub(super) fn bracketed<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect(Kind::Open)?;
        let list = self.list(item)?;
        self.expect(Kind::Close)?;
        Ok(list)
    }

    /// `(a, b)` of column names, or nothing.
    pub(super) fn optional_columns(&mut self) -> Result<Vec<Ident>> {
        if self.kind() == Kind::Open { self.bracketed(Parser::column_name) } else { Ok(Vec::new()) }
    }

    pub(super) fn if_exists(&mut self) -> Result<bool> {
        // Without EXISTS it is a name.
        Ok(self.words(&[Kw::IF, Kw::EXISTS]))
    }

    /// IF EXISTS where no name may follow.
    pub(super) fn strict_if_exists(&mut self) -> Result<bool> {
        if !self.word(Kw::IF) {
            return Ok(false);
        }
        self.expect_word(Kw::EXISTS)?;
        Ok(true)
    }

    pub(super) fn if_not_exists(&mut self) -> Result<bool> {
        if self.kw() != Kw::IF || !self.peek_is(1, Kw::NOT) {
            return Ok(false);
        }
        self.expect_words(&[Kw::IF, Kw::NOT, Kw::EXISTS])?;
        Ok(true)
    }

    /// CASCADE, RESTRICT or nothing: whether it is CASCADE.
    pub(super) fn cascade(&mut self) -> bool {
        match self.any(&[Kw::CASCADE, Kw::RESTRICT]) {
            Some(kw) => kw == Kw::CASCADE,
            None => false,
        }
    }
}

/// Returns the number with the other sign.
pub(super) fn negated(number: Const) -> Const {
    match number {
        Const::Integer(number) => Const::Integer(number.wrapping_neg()),
        Const::Float(text) => Const::Float(match text.strip_prefix('-') {
            Some(digits) => digits.to_owned(),
            None => format!("-{text}"),
        }),
        other => other,
    }
}
