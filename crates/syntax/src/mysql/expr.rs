//! Expressions, by precedence climbing.
//!
//! Binding strength, from weak to strong: OR `||`; XOR; AND; NOT; comparisons and IS; BETWEEN, IN, LIKE, REGEXP, MEMBER OF; `|`; `&`; shifts; `+ -`; `* / DIV % MOD`; `^`; `||` under
//! PIPES_AS_CONCAT; unary `- ~ !`; COLLATE. Operators of equal strength become one list, so a long chain is no tall tree.

use super::keyword::Kw;
use super::lexer::{Kind, Token};
use super::parser::Parser;
use crate::error::{Problem, Result};
use crate::tree::{
    BinaryOp, ColumnName, CompareOp, Expr, ExprKind, Function, Interval, Link, Literal, Query, QueryBody, Scope, Span,
    TemporalKind, Truth, UnaryOp, Unit,
};

const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const NOT: u8 = 4;
const COMPARISON: u8 = 5;
const PREDICATE: u8 = 6;
const BIT: u8 = 7;
const BIT_AND: u8 = 8;
const SHIFT: u8 = 9;
const SUM: u8 = 10;
const PRODUCT: u8 = 11;
const BIT_XOR: u8 = 12;
const SIMPLE: u8 = 13;
const UNARY: u8 = 14;
const COLLATE: u8 = 15;

pub const PARAMETERS_MAX: u32 = 65_535;

/// The infix operator that a token is, by its level.
enum Infix {
    Or,
    Xor,
    And,
    Concat,
    Compare(CompareOp),
    Is,
    Predicate,
    Binary(BinaryOp),
    Collate,
}

impl Parser<'_> {
    pub fn expr(&mut self) -> Result<Expr> {
        self.operand(OR)
    }

    /// `bit_expr` of MySQL's grammar: no predicate, comparison or logic outside parentheses.
    pub(super) fn bit_expr(&mut self) -> Result<Expr> {
        self.operand(BIT)
    }

    /// `simple_expr` of MySQL's grammar.
    pub(super) fn simple_expr(&mut self) -> Result<Expr> {
        self.operand(SIMPLE)
    }

    pub(super) fn exprs(&mut self) -> Result<Vec<Expr>> {
        self.list(Parser::expr)
    }

    /// An expression whose operators bind at least that strongly.
    fn operand(&mut self, min: u8) -> Result<Expr> {
        self.level(|parser| {
            let start = parser.token().start;
            let (left, level) = parser.prefix(min)?;
            parser.infix(left, level, min, start)
        })
    }

    pub(super) fn make(&self, kind: ExprKind, start: u32) -> Expr {
        Expr { kind, span: self.span_from(start) }
    }

    #[inline(never)]
    fn infix_of(&mut self) -> Option<(Infix, u8)> {
        let token = self.token();
        Some(match token.kind {
            Kind::Word => match token.kw {
                Kw::OR => (Infix::Or, OR),
                Kw::XOR => (Infix::Xor, XOR),
                Kw::AND => (Infix::And, AND),
                Kw::IS => (Infix::Is, COMPARISON),
                Kw::IN | Kw::BETWEEN | Kw::LIKE | Kw::REGEXP | Kw::RLIKE => (Infix::Predicate, PREDICATE),
                Kw::NOT => match self.peek(1).kw {
                    Kw::IN | Kw::BETWEEN | Kw::LIKE | Kw::REGEXP | Kw::RLIKE => (Infix::Predicate, PREDICATE),
                    _ => return None,
                },
                Kw::SOUNDS if self.peek(1).is(Kw::LIKE) => (Infix::Predicate, PREDICATE),
                Kw::MEMBER if self.peek(1).is(Kw::OF) || self.peek(1).kind == Kind::Open => {
                    (Infix::Predicate, PREDICATE)
                }
                Kw::DIV => (Infix::Binary(BinaryOp::IntegerDivide), PRODUCT),
                Kw::MOD => (Infix::Binary(BinaryOp::Modulo), PRODUCT),
                Kw::COLLATE => (Infix::Collate, COLLATE),
                _ => return None,
            },
            Kind::Pipes if self.mode.pipes_as_concat => (Infix::Concat, SIMPLE),
            Kind::Pipes => (Infix::Or, OR),
            Kind::Ampersands => (Infix::And, AND),
            Kind::Equal => (Infix::Compare(CompareOp::Equal), COMPARISON),
            Kind::NullSafeEqual => (Infix::Compare(CompareOp::NullSafeEqual), COMPARISON),
            Kind::NotEqual => (Infix::Compare(CompareOp::NotEqual), COMPARISON),
            Kind::Less => (Infix::Compare(CompareOp::Less), COMPARISON),
            Kind::LessOrEqual => (Infix::Compare(CompareOp::LessOrEqual), COMPARISON),
            Kind::Greater => (Infix::Compare(CompareOp::Greater), COMPARISON),
            Kind::GreaterOrEqual => (Infix::Compare(CompareOp::GreaterOrEqual), COMPARISON),
            Kind::Pipe => (Infix::Binary(BinaryOp::BitOr), BIT),
            Kind::Ampersand => (Infix::Binary(BinaryOp::BitAnd), BIT_AND),
            Kind::ShiftLeft => (Infix::Binary(BinaryOp::ShiftLeft), SHIFT),
            Kind::ShiftRight => (Infix::Binary(BinaryOp::ShiftRight), SHIFT),
            Kind::Plus => (Infix::Binary(BinaryOp::Add), SUM),
            Kind::Minus => (Infix::Binary(BinaryOp::Subtract), SUM),
            Kind::Star => (Infix::Binary(BinaryOp::Multiply), PRODUCT),
            Kind::Slash => (Infix::Binary(BinaryOp::Divide), PRODUCT),
            Kind::Percent => (Infix::Binary(BinaryOp::Modulo), PRODUCT),
            Kind::Caret => (Infix::Binary(BinaryOp::BitXor), BIT_XOR),
            _ => return None,
        })
    }

    /// The operators after a left operand whose own operator is of `level`.
    #[inline(never)]
    fn infix(&mut self, mut left: Expr, mut level: u8, min: u8, start: u32) -> Result<Expr> {
        while let Some((op, strength)) = self.infix_of() {
            // A predicate is no operand of another one, nor `a IS TRUE` of a comparison.
            let fits = if strength == PREDICATE { level > PREDICATE } else { level >= strength };
            if strength < min || !fits {
                break;
            }
            level = strength;
            left = match op {
                Infix::Or => self.logic(left, Kind::Pipes, Kw::OR, OR, ExprKind::Or, start)?,
                Infix::Xor => self.logic(left, Kind::End, Kw::XOR, XOR, ExprKind::Xor, start)?,
                Infix::And => self.logic(left, Kind::Ampersands, Kw::AND, AND, ExprKind::And, start)?,
                Infix::Concat => self.logic(left, Kind::Pipes, Kw::OTHER, SIMPLE, ExprKind::Concat, start)?,
                Infix::Compare(op) => {
                    self.take();
                    self.comparison(left, op, start)?
                }
                Infix::Is => {
                    let (is, is_boolean) = self.is_test(left, start)?;
                    if is_boolean {
                        level = NOT;
                    }
                    is
                }
                Infix::Predicate => self.predicate(left, start)?,
                Infix::Binary(op) => self.chain(left, op, strength, start)?,
                Infix::Collate => {
                    self.take();
                    let collation = self.text_or_name()?;
                    self.grow()?;
                    self.make(ExprKind::Collate { operand: Box::new(left), collation }, start)
                }
            };
        }
        Ok(left)
    }

    /// `left op b op c` as a list.
    #[inline(never)]
    fn logic(
        &mut self,
        left: Expr,
        sign: Kind,
        word: Kw,
        strength: u8,
        list: fn(Vec<Expr>) -> ExprKind,
        start: u32,
    ) -> Result<Expr> {
        let mut operands = Vec::new();
        flatten(&mut operands, left, list);
        loop {
            let is_pipes = sign == Kind::Pipes;
            let concatenates = self.mode.pipes_as_concat;
            let is_sign =
                self.kind() == sign && sign != Kind::End && (!is_pipes || concatenates == (word == Kw::OTHER));
            if !is_sign && (word == Kw::OTHER || !self.token().is(word)) {
                break;
            }
            self.take();
            let operand = self.operand(strength + 1)?;
            flatten(&mut operands, operand, list);
        }
        self.grow()?;
        Ok(self.make(list(operands), start))
    }

    #[inline(never)]
    fn comparison(&mut self, left: Expr, op: CompareOp, start: u32) -> Result<Expr> {
        let left = Box::new(left);
        let quantifier = self.kw();
        if matches!(quantifier, Kw::ALL | Kw::ANY | Kw::SOME)
            && self.peek(1).kind == Kind::Open
            && op != CompareOp::NullSafeEqual
        {
            self.take();
            let query = Box::new(self.query_in_brackets()?);
            self.grow()?;
            let all = quantifier == Kw::ALL;
            return Ok(self.make(ExprKind::Quantified { op, left, all, query }, start));
        }
        let right = Box::new(self.operand(PREDICATE)?);
        self.grow()?;
        Ok(self.make(ExprKind::Compare { op, left, right }, start))
    }

    /// After IS. True: a test that no comparison may follow.
    #[inline(never)]
    fn is_test(&mut self, left: Expr, start: u32) -> Result<(Expr, bool)> {
        self.take();
        let negated = self.word(Kw::NOT);
        let test = match self.kw() {
            Kw::NULL => Truth::Null,
            Kw::TRUE => Truth::True,
            Kw::FALSE => Truth::False,
            Kw::UNKNOWN => Truth::Unknown,
            _ => return Err(self.error()),
        };
        self.take();
        self.grow()?;
        let operand = Box::new(left);
        Ok((self.make(ExprKind::Is { operand, test, negated }, start), test != Truth::Null))
    }

    #[inline(never)]
    fn predicate(&mut self, left: Expr, start: u32) -> Result<Expr> {
        let operand = Box::new(left);
        let negated = self.word(Kw::NOT);
        let kind = match self.take().kw {
            Kw::IN => self.in_list(operand, negated)?,
            Kw::BETWEEN => {
                let low = Box::new(self.operand(BIT)?);
                self.expect_word(Kw::AND)?;
                let high = Box::new(self.operand(PREDICATE)?);
                ExprKind::Between { operand, low, high, negated }
            }
            Kw::LIKE => {
                let pattern = Box::new(self.operand(SIMPLE)?);
                let escape = if self.word(Kw::ESCAPE) { Some(Box::new(self.operand(SIMPLE)?)) } else { None };
                ExprKind::Like { operand, pattern, escape, negated }
            }
            Kw::SOUNDS => {
                self.expect_word(Kw::LIKE)?;
                ExprKind::SoundsLike { left: operand, right: Box::new(self.operand(BIT)?) }
            }
            Kw::MEMBER => {
                self.word(Kw::OF);
                self.expect(Kind::Open)?;
                let array = Box::new(self.operand(SIMPLE)?);
                self.expect(Kind::Close)?;
                ExprKind::MemberOf { value: operand, array }
            }
            _ => ExprKind::Regexp { operand, pattern: Box::new(self.operand(BIT)?), negated },
        };
        self.grow()?;
        Ok(self.make(kind, start))
    }

    /// After IN. `((query))` is a query, `((query), 1)` a list.
    #[inline(never)]
    fn in_list(&mut self, operand: Box<Expr>, negated: bool) -> Result<ExprKind> {
        self.expect(Kind::Open)?;
        if self.begins_query() {
            let query = Box::new(self.query()?);
            self.expect(Kind::Close)?;
            return Ok(ExprKind::InQuery { operand, query, negated });
        }
        let first = self.expr()?;
        let first = match first.kind {
            ExprKind::Subquery(query) if !self.at(Kind::Comma) => {
                let query = Box::new(self.query_after(*query)?);
                self.expect(Kind::Close)?;
                return Ok(ExprKind::InQuery { operand, query, negated });
            }
            kind => Expr { kind, span: first.span },
        };
        let mut list = vec![first];
        while self.accept(Kind::Comma) {
            list.push(self.expr()?);
        }
        self.expect(Kind::Close)?;
        Ok(ExprKind::InList { operand, list, negated })
    }

    /// `left op b op c` of one strength; intervals among the operands shift what stands before them.
    #[inline(never)]
    fn chain(&mut self, left: Expr, op: BinaryOp, strength: u8, start: u32) -> Result<Expr> {
        let (mut first, mut links, mut op) = match left.kind {
            ExprKind::Chain { first, links } if strength_of(links[0].op) == strength => (*first, links, op),
            kind => (Expr { kind, span: left.span }, Vec::new(), op),
        };
        loop {
            self.take();
            let is_sum = strength == SUM;
            if is_sum && self.kw() == Kw::INTERVAL {
                let from = self.token().start;
                match self.level(Parser::interval_or_call)? {
                    IntervalOr::Interval(interval) => {
                        let operand = Box::new(self.chained(first, &mut links, start)?);
                        let (interval, subtract) = (Box::new(interval), op == BinaryOp::Subtract);
                        self.grow()?;
                        first = self.make(ExprKind::DateShift { operand, interval, subtract }, start);
                    }
                    IntervalOr::Call(call) => {
                        let operand = self.level(|parser| parser.infix(call, COLLATE, PRODUCT, from))?;
                        links.push(Link { op, operand });
                    }
                }
            } else {
                let operand = self.operand(strength + 1)?;
                links.push(Link { op, operand });
            }
            match self.infix_of() {
                Some((Infix::Binary(next), found)) if found == strength => op = next,
                _ => return self.chained(first, &mut links, start),
            }
        }
    }

    #[inline(never)]
    fn chained(&mut self, first: Expr, links: &mut Vec<Link>, start: u32) -> Result<Expr> {
        if links.is_empty() {
            return Ok(first);
        }
        self.grow()?;
        let links = std::mem::take(links);
        Ok(self.make(ExprKind::Chain { first: Box::new(first), links }, start))
    }

    /// An operand with what stands before it, and the level of its operator.
    #[inline(never)]
    fn prefix(&mut self, min: u8) -> Result<(Expr, u8)> {
        let start = self.token().start;
        let unary = |op, operand: Expr| ExprKind::Unary { op, operand: Box::new(operand) };
        match self.kind() {
            Kind::Plus | Kind::Minus | Kind::Tilde | Kind::Bang => {
                let op = match self.take().kind {
                    Kind::Plus => UnaryOp::Plus,
                    Kind::Minus => UnaryOp::Minus,
                    Kind::Tilde => UnaryOp::BitNot,
                    _ => UnaryOp::Not,
                };
                let operand = self.operand(UNARY)?;
                Ok((self.make(unary(op, operand), start), UNARY))
            }
            Kind::Word if self.kw() == Kw::NOT => {
                let level = if self.mode.high_not_precedence { UNARY } else { NOT };
                if min > level {
                    return Err(self.error());
                }
                self.take();
                let operand = self.operand(level)?;
                Ok((self.make(unary(UnaryOp::Not, operand), start), level))
            }
            Kind::Word if self.kw() == Kw::BINARY => {
                self.take();
                let operand = Box::new(self.operand(COLLATE)?);
                let to = crate::tree::CastType::Binary(None);
                Ok((self.make(ExprKind::Cast { operand, to, array: false }, start), COLLATE))
            }
            Kind::Word if self.kw() == Kw::INTERVAL => match self.level(Parser::interval_or_call)? {
                IntervalOr::Call(call) => Ok((call, COLLATE)),
                IntervalOr::Interval(interval) => {
                    self.expect(Kind::Plus)?;
                    let operand = Box::new(self.operand(SUM + 1)?);
                    let interval = Box::new(interval);
                    Ok((self.make(ExprKind::DateShift { operand, interval, subtract: false }, start), COLLATE))
                }
            },
            _ => Ok((self.primary()?, COLLATE)),
        }
    }

    /// `INTERVAL value unit`, or the function `INTERVAL(a, b, ...)`.
    #[inline(never)]
    fn interval_or_call(&mut self) -> Result<IntervalOr> {
        let start = self.take().start;
        if !self.at(Kind::Open) {
            let value = self.expr()?;
            let unit = self.unit()?;
            return Ok(IntervalOr::Interval(Interval { value, unit }));
        }
        let from = self.token().start;
        self.take();
        if self.begins_query() {
            let query = Box::new(self.query()?);
            self.expect(Kind::Close)?;
            let value = self.make(ExprKind::Subquery(query), from);
            return self.interval_from(value, from);
        }
        let first = self.expr()?;
        let first = match first.kind {
            ExprKind::Subquery(query) if self.continues_query() => {
                let query = Box::new(self.query_after(*query)?);
                self.make(ExprKind::Subquery(query), from)
            }
            kind => Expr { kind, span: first.span },
        };
        let mut list = vec![first];
        while self.accept(Kind::Comma) {
            list.push(self.expr()?);
        }
        self.expect(Kind::Close)?;
        if list.len() > 1 {
            return Ok(IntervalOr::Call(
                self.make(ExprKind::Function(Box::new(Function::plain("interval", list))), start),
            ));
        }
        let value = list.remove(0);
        self.interval_from(value, from)
    }

    /// The rest of an interval whose value begins with that operand in parentheses.
    #[inline(never)]
    fn interval_from(&mut self, value: Expr, from: u32) -> Result<IntervalOr> {
        let value = self.level(|parser| parser.infix(value, COLLATE, OR, from))?;
        let unit = self.unit()?;
        Ok(IntervalOr::Interval(Interval { value, unit }))
    }

    /// `INTERVAL value unit` as an argument.
    pub(super) fn interval(&mut self) -> Result<Interval> {
        match self.level(Parser::interval_or_call)? {
            IntervalOr::Interval(interval) => Ok(interval),
            IntervalOr::Call(_) => Err(self.error()),
        }
    }

    pub(super) fn unit(&mut self) -> Result<Unit> {
        let token = self.token();
        let text = self.text_of(token);
        let bare = without_prefix(text);
        let is_synonym = bare.len() < text.len();
        let unit = if token.kind == Kind::Word { Unit::by_name(bare) } else { None };
        let unit = unit.filter(|unit| !is_synonym || (1..=Unit::Year as u8).contains(&(*unit as u8)));
        let unit = unit.ok_or_else(|| self.error())?;
        self.take();
        Ok(unit)
    }

    /// A literal, name, call or what stands in parentheses.
    #[inline(never)]
    fn primary(&mut self) -> Result<Expr> {
        let token = self.token();
        let start = token.start;
        let kind = match token.kind {
            Kind::Open => return self.parenthesised(),
            Kind::Word => return self.word_primary(),
            Kind::Quoted => return self.named(),
            Kind::Introducer => self.introduced()?,
            Kind::Parameter => {
                self.take();
                if self.parameters >= PARAMETERS_MAX {
                    return Err(self.problem(Problem::TooManyParameters));
                }
                self.parameters += 1;
                ExprKind::Parameter(self.parameters - 1)
            }
            Kind::Variable => {
                let name = self.variable()?;
                if self.accept(Kind::Assign) {
                    let value = Box::new(self.expr()?);
                    ExprKind::Assign { name, value }
                } else {
                    ExprKind::UserVariable(name)
                }
            }
            Kind::System => self.system_variable()?,
            Kind::OpenBrace => return self.odbc(),
            _ => ExprKind::Literal(self.literal()?),
        };
        Ok(self.make(kind, start))
    }

    /// `@name`, in lower case.
    #[inline(never)]
    pub(super) fn variable(&mut self) -> Result<String> {
        let token = self.expect(Kind::Variable)?;
        let text = &self.text_of(token)[1..];
        let name = match text.as_bytes().first() {
            None => return Err(self.error_at(token.start)),
            Some(quote @ (b'\'' | b'"' | b'`')) => {
                let escapes = *quote != b'`' && !self.mode.no_backslash_escapes;
                super::lexer::unescape(&text[1..text.len() - 1], *quote as char, escapes)
            }
            Some(_) => text.to_owned(),
        };
        Ok(name.to_lowercase())
    }

    /// `@@name`, `@@scope.name`, `@@cache.name`.
    #[inline(never)]
    fn system_variable(&mut self) -> Result<ExprKind> {
        self.expect(Kind::System)?;
        let scope = match self.kw() {
            Kw::GLOBAL => Some(Scope::Global),
            Kw::SESSION | Kw::LOCAL => Some(Scope::Session),
            Kw::PERSIST => Some(Scope::Persist),
            _ => None,
        };
        let scope = scope.filter(|_| self.peek(1).kind == Kind::Dot);
        if scope.is_some() {
            self.take();
            self.take();
        }
        if scope.is_none() && matches!(self.kw(), Kw::GLOBAL | Kw::LOCAL | Kw::SESSION) {
            return Err(self.error());
        }
        let mut name = self.identifier()?.to_lowercase();
        if self.accept(Kind::Dot) {
            name = format!("{name}.{}", self.identifier()?.to_lowercase());
        }
        Ok(ExprKind::SystemVariable { scope, name })
    }

    /// `{d '2020-01-01'}`, `{fn expr}` of ODBC: the expression alone.
    #[inline(never)]
    fn odbc(&mut self) -> Result<Expr> {
        let start = self.take().start;
        let word = self.identifier()?;
        let inner = self.expr()?;
        self.expect(Kind::CloseBrace)?;
        let temporal = match word.to_ascii_lowercase().as_str() {
            "d" => Some(TemporalKind::Date),
            "t" => Some(TemporalKind::Time),
            "ts" => Some(TemporalKind::Timestamp),
            _ => None,
        };
        Ok(match (temporal, inner) {
            (Some(kind), Expr { kind: ExprKind::Literal(Literal::String(text)), .. }) => {
                self.make(ExprKind::Literal(Literal::Temporal(kind, text)), start)
            }
            (_, inner) => inner,
        })
    }

    /// `_charset'text'`, `_charset 0x41`; a string that follows is another literal.
    pub(super) fn introduced(&mut self) -> Result<ExprKind> {
        let token = self.take();
        let charset = self.text_of(token)[1..].to_ascii_lowercase();
        if !matches!(self.kind(), Kind::String | Kind::Hex | Kind::Bits) {
            return Err(self.error());
        }
        Ok(ExprKind::Introduced { charset, literal: self.literal()? })
    }

    /// A literal that is one token, or strings that follow each other.
    #[inline(never)]
    pub(super) fn literal(&mut self) -> Result<Literal> {
        let token = self.token();
        let text = self.text_of(token);
        let literal = match token.kind {
            Kind::Integer => match text.parse() {
                Ok(number) => Literal::Integer(number),
                Err(_) => Literal::Decimal(text.to_owned()),
            },
            Kind::Decimal => Literal::Decimal(text.to_owned()),
            Kind::Float => {
                if text.parse::<f64>().is_ok_and(|number| number.is_infinite()) {
                    return Err(self.problem(Problem::IllegalDouble(text.to_owned())));
                }
                Literal::Float(text.to_owned())
            }
            Kind::String => return Ok(Literal::String(self.strings()?)),
            Kind::National => {
                self.take();
                let mut value = self.unquoted(token);
                while self.at(Kind::String) {
                    value.push_str(&self.string()?);
                }
                return Ok(Literal::National(value));
            }
            Kind::Hex => Literal::Hex(hex(text)),
            Kind::Bits => Literal::Bits(bits(text)),
            Kind::Word => match token.kw {
                Kw::NULL => Literal::Null,
                Kw::TRUE => Literal::Bool(true),
                Kw::FALSE => Literal::Bool(false),
                _ => return Err(self.error()),
            },
            _ => return Err(self.error()),
        };
        self.take();
        Ok(literal)
    }

    /// `'a' 'b'` is `'ab'`.
    pub(super) fn strings(&mut self) -> Result<String> {
        let mut value = self.string()?;
        while self.at(Kind::String) {
            value.push_str(&self.string()?);
        }
        Ok(value)
    }

    /// `(expr)`, `(a, b)`, `(query)`, `((query) UNION query)`.
    #[inline(never)]
    fn parenthesised(&mut self) -> Result<Expr> {
        let start = self.take().start;
        if self.begins_query() {
            let query = Box::new(self.query()?);
            self.expect(Kind::Close)?;
            return Ok(self.make(ExprKind::Subquery(query), start));
        }
        let first = self.expr()?;
        let first = match first.kind {
            ExprKind::Subquery(query) if self.continues_query() => {
                let query = Box::new(self.query_after(*query)?);
                self.make(ExprKind::Subquery(query), start)
            }
            kind => Expr { kind, span: first.span },
        };
        if self.accept(Kind::Close) {
            return Ok(Expr { span: self.span_from(start), ..first });
        }
        let mut list = vec![first];
        while self.accept(Kind::Comma) {
            list.push(self.expr()?);
        }
        self.expect(Kind::Close)?;
        if list.len() == 1 {
            return Err(self.error());
        }
        Ok(self.make(ExprKind::Row(list), start))
    }

    /// A query in parentheses.
    #[inline(never)]
    pub(super) fn query_in_brackets(&mut self) -> Result<Query> {
        self.expect(Kind::Open)?;
        let query = if self.begins_query() {
            self.query()?
        } else if self.at(Kind::Open) {
            let inner = self.level(Parser::query_in_brackets)?;
            if !self.continues_query() {
                self.expect(Kind::Close)?;
                return Ok(inner);
            }
            self.query_after(inner)?
        } else {
            return Err(self.error());
        };
        self.expect(Kind::Close)?;
        Ok(query)
    }

    /// A query whose first operand, in parentheses, has been read.
    #[inline(never)]
    pub(super) fn query_after(&mut self, first: Query) -> Result<Query> {
        if !self.continues_query() {
            return Ok(first);
        }
        let start = first.span.start;
        self.query_rest(None, QueryBody::Query(Box::new(first)), start)
    }

    /// A column, or a call by a name that has no grammar of its own.
    #[inline(never)]
    fn named(&mut self) -> Result<Expr> {
        let start = self.token().start;
        let is_keyword = self.kind() == Kind::Word && self.kw().is_mysql();
        let first = self.identifier()?;
        if self.kind() != Kind::Dot {
            if self.at(Kind::Open) && !is_keyword {
                return self.call(None, first, start);
            }
            let column = ColumnName { schema: None, table: None, name: first };
            return self.column(column, start);
        }
        let column = self.qualified(first)?;
        if self.at(Kind::Open)
            && let ColumnName { schema: None, table: Some(schema), name } = column
        {
            return self.call(Some(schema), name, start);
        }
        self.column(column, start)
    }

    /// The rest of a column's name after its first part.
    pub(super) fn qualified(&mut self, first: String) -> Result<ColumnName> {
        if !self.accept(Kind::Dot) {
            return Ok(ColumnName { schema: None, table: None, name: first });
        }
        let second = self.identifier()?;
        if !self.accept(Kind::Dot) {
            return Ok(ColumnName { schema: None, table: Some(first), name: second });
        }
        let name = self.identifier()?;
        Ok(ColumnName { schema: Some(first), table: Some(second), name })
    }

    pub(super) fn column_name(&mut self) -> Result<ColumnName> {
        let first = self.identifier()?;
        self.qualified(first)
    }

    #[inline(never)]
    fn column(&mut self, column: ColumnName, start: u32) -> Result<Expr> {
        let column = Box::new(column);
        let unquote = match self.kind() {
            Kind::Arrow => false,
            Kind::LongArrow => true,
            _ => return Ok(self.make(ExprKind::Column(column), start)),
        };
        self.take();
        let path = self.string()?;
        Ok(self.make(ExprKind::JsonPath { column, path, unquote }, start))
    }

    /// An operand that begins with a word.
    #[inline(never)]
    pub(super) fn word_primary(&mut self) -> Result<Expr> {
        let token = self.token();
        let start = token.start;
        let next = self.peek(1);
        let kind = match token.kw {
            Kw::OTHER => return self.named(),
            Kw::NULL | Kw::TRUE | Kw::FALSE => ExprKind::Literal(self.literal()?),
            Kw::DATE | Kw::TIME | Kw::TIMESTAMP if next.kind == Kind::String => {
                self.take();
                let of = match token.kw {
                    Kw::DATE => TemporalKind::Date,
                    Kw::TIME => TemporalKind::Time,
                    _ => TemporalKind::Timestamp,
                };
                ExprKind::Literal(Literal::Temporal(of, self.string()?))
            }
            Kw::EXISTS => {
                self.take();
                ExprKind::Exists(Box::new(self.level(Parser::query_in_brackets)?))
            }
            Kw::ROW if next.kind == Kind::Open => {
                self.take();
                self.take();
                let list = self.exprs()?;
                self.expect(Kind::Close)?;
                if list.len() == 1 {
                    return Err(self.error());
                }
                ExprKind::Row(list)
            }
            Kw::CASE => self.case()?,
            Kw::DEFAULT if next.kind == Kind::Open => {
                self.take();
                ExprKind::DefaultOf(Box::new(self.column_in_brackets()?))
            }
            Kw::VALUES if next.kind == Kind::Open => {
                self.take();
                ExprKind::InsertedValue(Box::new(self.column_in_brackets()?))
            }
            Kw::MATCH => self.match_against()?,
            _ => match self.special(token, next)? {
                Some(kind) => kind,
                None => return self.named(),
            },
        };
        Ok(self.make(kind, start))
    }

    fn column_in_brackets(&mut self) -> Result<ColumnName> {
        self.expect(Kind::Open)?;
        let column = self.column_name()?;
        self.expect(Kind::Close)?;
        Ok(column)
    }

    #[inline(never)]
    fn case(&mut self) -> Result<ExprKind> {
        self.take();
        let operand = if self.kw() == Kw::WHEN { None } else { Some(Box::new(self.expr()?)) };
        let mut arms = Vec::new();
        while self.word(Kw::WHEN) {
            let condition = self.expr()?;
            self.expect_word(Kw::THEN)?;
            arms.push(crate::tree::Arm { condition, result: self.expr()? });
        }
        if arms.is_empty() {
            return Err(self.error());
        }
        let otherwise = if self.word(Kw::ELSE) { Some(Box::new(self.expr()?)) } else { None };
        self.expect_word(Kw::END)?;
        Ok(ExprKind::Case { operand, arms, otherwise })
    }

    /// Whether a query begins at the next token, parentheses aside.
    pub(super) fn begins_query(&self) -> bool {
        matches!(self.kw(), Kw::SELECT | Kw::WITH | Kw::TABLE) || self.kw() == Kw::VALUES && !self.is_values_function()
    }

    /// `VALUES(column)`; a query says `VALUES ROW(...)`.
    fn is_values_function(&self) -> bool {
        let (mut lexer, ahead, count) = self.lexer_behind();
        let next = if count > 1 { ahead[1] } else { lexer.advance() };
        next.kind == Kind::Open
    }

    /// Whether a query in parentheses goes on at the next token.
    pub(super) fn continues_query(&self) -> bool {
        matches!(self.kw(), Kw::UNION | Kw::EXCEPT | Kw::INTERSECT | Kw::ORDER | Kw::LIMIT | Kw::FOR | Kw::LOCK)
    }

    /// Whether the query in parentheses that begins here, `((select`, is one: the first token behind all parentheses says so.
    pub(super) fn begins_query_in_brackets(&self) -> bool {
        let (mut lexer, ahead, count) = self.lexer_behind();
        let mut tokens = ahead[..count].iter().copied();
        let mut next = || tokens.next().unwrap_or_else(|| lexer.advance());
        let mut token: Token = next();
        let mut opened = 0;
        while token.kind == Kind::Open && opened <= crate::tree::HEIGHT_MAX {
            token = next();
            opened += 1;
        }
        opened > crate::tree::HEIGHT_MAX
            || opened > 0 && matches!(token.kw, Kw::SELECT | Kw::WITH | Kw::TABLE | Kw::VALUES)
    }
}

fn flatten(operands: &mut Vec<Expr>, operand: Expr, list: fn(Vec<Expr>) -> ExprKind) {
    let same = std::mem::discriminant(&operand.kind) == std::mem::discriminant(&list(Vec::new()));
    match operand.kind {
        ExprKind::And(inner) | ExprKind::Or(inner) | ExprKind::Xor(inner) | ExprKind::Concat(inner) if same => {
            operands.extend(inner)
        }
        kind => operands.push(Expr { kind, span: operand.span }),
    }
}

fn strength_of(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::BitOr => BIT,
        BinaryOp::BitAnd => BIT_AND,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => SHIFT,
        BinaryOp::Add | BinaryOp::Subtract => SUM,
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::IntegerDivide | BinaryOp::Modulo => PRODUCT,
        BinaryOp::BitXor => BIT_XOR,
    }
}

/// SQL_TSI_DAY is DAY.
pub(super) fn without_prefix(unit: &str) -> &str {
    unit.get(..8).filter(|head| head.eq_ignore_ascii_case("SQL_TSI_")).map_or(unit, |_| &unit[8..])
}

pub(super) enum IntervalOr {
    Interval(Interval),
    Call(Expr),
}

/// The bytes of `0x41` or `x'41'`.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text[if text.ends_with('\'') { 2..text.len() - 1 } else { 2..text.len() }]
        .bytes()
        .map(|digit| (digit as char).to_digit(16).unwrap_or(0) as u8)
        .collect();
    let odd = digits.len() % 2;
    let mut bytes = Vec::with_capacity(digits.len() / 2 + odd);
    bytes.extend(&digits[..odd]);
    bytes.extend(digits[odd..].chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
    bytes
}

/// The bytes of `0b101` or `b'101'`.
fn bits(text: &str) -> Vec<u8> {
    let digits = &text[if text.ends_with('\'') { 2..text.len() - 1 } else { 2..text.len() }].as_bytes();
    digits.rchunks(8).rev().map(|chunk| chunk.iter().fold(0, |byte, digit| byte << 1 | (digit - b'0'))).collect()
}

impl Expr {
    /// An expression that is not from the text.
    pub fn made(kind: ExprKind) -> Expr {
        Expr { kind, span: Span::default() }
    }
}
