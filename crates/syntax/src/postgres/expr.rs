//! Expressions with operators, by precedence climbing.
//!
//! Binding strength, from weak to strong: OR; AND; NOT; IS; comparisons; BETWEEN, IN, LIKE; other operators; `+ -`; `* / %`; `^`; AT TIME ZONE; COLLATE; the signs; `::`. Comparisons, IS and the predicates do not
//! associate: the second of two is an error. Operators of equal strength become one list, so a long chain is no tall tree (SY-3).

use super::error::Result;
use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::{Parser, negated};
use super::primary::Brackets;
use super::tree::{
    AnyName, Between, BooleanTest, Const, Expr, ExprKind, FuncCall, Like, LikeKind, Link, Location, Operator,
    Quantified, QuantifiedQuery, Span,
};

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const PREDICATE: u8 = 6;
const OP: u8 = 7;
const SUM: u8 = 8;
const PRODUCT: u8 = 9;
const POWER: u8 = 10;
const AT: u8 = 11;
const COLLATE: u8 = 12;
const SIGN: u8 = 13;
const CAST: u8 = 14;

/// Which of PostgreSQL's rules: `b_expr` knows neither logic nor predicates outside parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    A,
    B,
}

enum Infix {
    Or,
    And,
    Is,
    IsNull { negated: bool },
    Predicate,
    Binary,
    AtTimeZone,
    Collate,
    Cast,
}

impl Parser<'_> {
    /// a_expr
    pub fn expr(&mut self) -> Result<Expr> {
        self.operand(OR, Form::A)
    }

    /// b_expr
    pub(super) fn b_expr(&mut self) -> Result<Expr> {
        self.operand(OR, Form::B)
    }

    /// c_expr
    pub(super) fn c_expr(&mut self) -> Result<Expr> {
        self.level(Parser::primary)
    }

    pub(super) fn exprs(&mut self) -> Result<Vec<Expr>> {
        self.list(Parser::expr)
    }

    /// An expression whose operators bind at least that strongly.
    fn operand(&mut self, min: u8, form: Form) -> Result<Expr> {
        self.level(|parser| {
            let left = parser.prefix(form)?;
            parser.infix(left, min, form)
        })
    }

    /// The rest of an expression whose first operand was read.
    pub(super) fn expr_after(&mut self, left: Expr) -> Result<Expr> {
        self.infix(left, OR, Form::A)
    }

    pub(super) fn make(&self, kind: ExprKind, start: u32) -> Expr {
        Expr { kind, span: self.span_from(start) }
    }

    fn prefix(&mut self, form: Form) -> Result<Expr> {
        let token = self.token();
        match token.kind {
            Kind::Minus | Kind::Plus | Kind::Operator => self.prefix_operator(form),
            Kind::Word => match token.kw {
                Kw::NOT if form == Form::A => {
                    self.take();
                    let operand = Box::new(self.operand(NOT, Form::A)?);
                    Ok(self.make(ExprKind::Not(operand), token.start))
                }
                Kw::OPERATOR if self.peek(1).kind == Kind::Open => self.prefix_operator(form),
                Kw::DEFAULT if form == Form::A => {
                    self.take();
                    Ok(self.make(ExprKind::Default, token.start))
                }
                Kw::UNIQUE if form == Form::A => {
                    self.take();
                    let is_query = self.kind() == Kind::Open;
                    Err(if is_query { self.unsupported("UNIQUE predicate") } else { self.error() })
                }
                _ => self.primary(),
            },
            _ => self.primary(),
        }
    }

    #[inline(never)]
    fn prefix_operator(&mut self, form: Form) -> Result<Expr> {
        let start = self.token().start;
        let (op, level) = self.operator()?;
        let is_sign = level == SUM && op.qualifier.is_empty();
        let operand = self.operand(if is_sign { SIGN } else { OP + 1 }, form)?;
        if is_sign && op.name == "-" {
            if let ExprKind::Const(number @ (Const::Integer(_) | Const::Float(_))) = operand.kind {
                return Ok(self.make(ExprKind::Const(negated(number)), start));
            }
            return Ok(self.make(ExprKind::Prefix { op, operand: Box::new(operand) }, start));
        }
        Ok(self.make(ExprKind::Prefix { op, operand: Box::new(operand) }, start))
    }

    /// An operator of any kind, and how strongly it binds.
    pub(super) fn operator(&mut self) -> Result<(Operator, u8)> {
        let token = self.token();
        let at = Location(token.start);
        let (name, level) = match token.kind {
            Kind::Plus => ("+", SUM),
            Kind::Minus => ("-", SUM),
            Kind::Star => ("*", PRODUCT),
            Kind::Slash => ("/", PRODUCT),
            Kind::Percent => ("%", PRODUCT),
            Kind::Caret => ("^", POWER),
            Kind::Less => ("<", COMPARISON),
            Kind::Greater => (">", COMPARISON),
            Kind::Equal => ("=", COMPARISON),
            Kind::LessEqual => ("<=", COMPARISON),
            Kind::GreaterEqual => (">=", COMPARISON),
            Kind::NotEqual => ("<>", COMPARISON),
            Kind::Operator => {
                let name = self.text_of(token);
                self.take();
                let op = match name {
                    "||" => Operator::plain("||", at),
                    name => Operator::plain(name.to_owned(), at),
                };
                return Ok((op, OP));
            }
            Kind::Word if token.kw == Kw::OPERATOR => {
                self.take();
                self.expect(Kind::Open)?;
                let op = self.any_operator(at)?;
                self.expect(Kind::Close)?;
                return Ok((op, OP));
            }
            _ => return Err(self.error()),
        };
        self.take();
        Ok((Operator::plain(name, at), level))
    }

    /// `schema.op`
    pub(super) fn any_operator(&mut self, at: Location) -> Result<Operator> {
        let mut qualifier = Vec::new();
        while self.at_column_name() {
            qualifier.push(self.take_name()?.value);
            self.expect(Kind::Dot)?;
        }
        if self.kind() == Kind::Word {
            return Err(self.error());
        }
        let (op, _) = self.operator()?;
        Ok(Operator { qualifier, name: op.name, at })
    }

    fn infix_of(&mut self, form: Form) -> Option<(Infix, u8)> {
        let token = self.token();
        Some(match token.kind {
            Kind::Word => match token.kw {
                Kw::OTHER => return None,
                Kw::OPERATOR => (Infix::Binary, OP),
                Kw::IS => (Infix::Is, IS),
                _ if form == Form::B => return None,
                Kw::OR => (Infix::Or, OR),
                Kw::AND => (Infix::And, AND),
                Kw::ISNULL => (Infix::IsNull { negated: false }, IS),
                Kw::NOTNULL => (Infix::IsNull { negated: true }, IS),
                Kw::BETWEEN | Kw::IN | Kw::LIKE | Kw::ILIKE => (Infix::Predicate, PREDICATE),
                Kw::SIMILAR if self.depth() != self.substring_depth || self.peek_is(1, Kw::TO) => {
                    (Infix::Predicate, PREDICATE)
                }
                Kw::NOT => match self.peek(1).kw {
                    Kw::BETWEEN | Kw::IN | Kw::LIKE | Kw::ILIKE | Kw::SIMILAR => (Infix::Predicate, PREDICATE),
                    _ => return None,
                },
                Kw::AT => (Infix::AtTimeZone, AT),
                Kw::COLLATE => (Infix::Collate, COLLATE),
                _ => return None,
            },
            Kind::Less | Kind::Greater | Kind::Equal | Kind::LessEqual | Kind::GreaterEqual | Kind::NotEqual => {
                (Infix::Binary, COMPARISON)
            }
            Kind::Plus | Kind::Minus => (Infix::Binary, SUM),
            Kind::Star | Kind::Slash | Kind::Percent => (Infix::Binary, PRODUCT),
            Kind::Caret => (Infix::Binary, POWER),
            Kind::Operator => (Infix::Binary, OP),
            Kind::TypeCast => (Infix::Cast, CAST),
            _ => return None,
        })
    }

    /// The operators after a left operand.
    #[inline(never)]
    fn infix(&mut self, mut left: Expr, min: u8, form: Form) -> Result<Expr> {
        // The level of the last operator, if it was one that takes no other of its level behind its right operand.
        let mut closed = 0;
        while let Some((infix, level)) = self.infix_of(form) {
            if level < min {
                break;
            }
            if level == closed {
                return Err(self.error());
            }
            if self.depth() == self.target_depth && self.is_label_at_end() {
                break;
            }
            let at = self.here();
            let start = left.span.start;
            (left, closed) = match infix {
                Infix::Or => (self.logic(left, Kw::OR)?, 0),
                Infix::And => (self.logic(left, Kw::AND)?, 0),
                Infix::Is => self.is_test(left, form, at)?,
                Infix::IsNull { negated } => {
                    self.take();
                    self.grow()?;
                    (self.make(ExprKind::NullTest { operand: Box::new(left), negated, at }, start), 0)
                }
                Infix::Predicate => self.predicate(left, at)?,
                Infix::Binary => self.binary(left, form)?,
                Infix::AtTimeZone => (self.at_time_zone(left, at)?, 0),
                Infix::Collate => {
                    self.take();
                    let collation = Box::new(self.any_name()?);
                    self.grow()?;
                    (self.make(ExprKind::Collate { operand: Box::new(left), collation, at }, start), 0)
                }
                Infix::Cast => {
                    self.take();
                    let to = Box::new(self.type_name()?);
                    self.grow()?;
                    (self.make(ExprKind::Cast { operand: Box::new(left), to, at }, start), 0)
                }
            };
        }
        Ok(left)
    }

    /// `left AND b AND c` as a list.
    #[inline(never)]
    fn logic(&mut self, left: Expr, word: Kw) -> Result<Expr> {
        let start = left.span.start;
        let mut operands = match (left.kind, word) {
            (ExprKind::And(list), Kw::AND) | (ExprKind::Or(list), Kw::OR) => list,
            (kind, _) => vec![Expr { kind, span: left.span }],
        };
        let level = if word == Kw::AND { AND } else { OR };
        while self.word(word) {
            operands.push(self.operand(level + 1, Form::A)?);
        }
        self.grow()?;
        Ok(self.make(if word == Kw::AND { ExprKind::And(operands) } else { ExprKind::Or(operands) }, start))
    }

    #[inline(never)]
    fn binary(&mut self, left: Expr, form: Form) -> Result<(Expr, u8)> {
        let (op, level) = self.operator()?;
        if form == Form::A && matches!(self.kw(), Kw::ANY | Kw::SOME | Kw::ALL) {
            return Ok((self.quantified(left, op)?, 0));
        }
        let start = left.span.start;
        let operand = self.operand(level + 1, form)?;
        let strength = strength_of(&op);
        let link = Link { op, operand };
        let kind = match left.kind {
            // OPERATOR(+) binds as other operators do, and is in one list with `+` all the same.
            ExprKind::Chain { first, mut links } if strength != COMPARISON && strength_of(&links[0].op) == strength => {
                links.push(link);
                ExprKind::Chain { first, links }
            }
            kind => {
                self.grow()?;
                ExprKind::Chain { first: Box::new(Expr { kind, span: left.span }), links: vec![link] }
            }
        };
        Ok((self.make(kind, start), if level == COMPARISON { level } else { 0 }))
    }

    /// `ANY (...)`, `ALL (...)` after an operator.
    #[inline(never)]
    fn quantified(&mut self, left: Expr, op: Operator) -> Result<Expr> {
        let start = left.span.start;
        let all = self.take().kw == Kw::ALL;
        let kind = match self.brackets(false)? {
            Brackets::Query(query, _) => {
                ExprKind::QuantifiedQuery(Box::new(QuantifiedQuery { left, op, all, query: *query }))
            }
            Brackets::Expr(array) => ExprKind::Quantified(Box::new(Quantified { left, op, all, array })),
            Brackets::Row(..) => return Err(self.error()),
        };
        self.grow()?;
        Ok(self.make(kind, start))
    }

    /// After IS.
    #[inline(never)]
    fn is_test(&mut self, left: Expr, form: Form, at: Location) -> Result<(Expr, u8)> {
        self.take();
        let start = left.span.start;
        let negated = self.word(Kw::NOT);
        if self.word(Kw::DISTINCT) {
            self.expect_word(Kw::FROM)?;
            let right = Box::new(self.operand(IS + 1, form)?);
            self.grow()?;
            return Ok((self.make(ExprKind::Distinct { left: Box::new(left), right, negated, at }, start), IS));
        }
        if self.kw() == Kw::DOCUMENT {
            return Err(self.unsupported("IS DOCUMENT"));
        }
        if form == Form::B {
            return Err(self.error());
        }
        let test = match self.kw() {
            Kw::NULL => {
                self.take();
                self.grow()?;
                return Ok((self.make(ExprKind::NullTest { operand: Box::new(left), negated, at }, start), 0));
            }
            Kw::TRUE => BooleanTest::True,
            Kw::FALSE => BooleanTest::False,
            Kw::UNKNOWN => BooleanTest::Unknown,
            Kw::JSON => return Ok((self.is_json(left, negated, at)?, 0)),
            Kw::NORMALIZED | Kw::NFC | Kw::NFD | Kw::NFKC | Kw::NFKD => {
                return Ok((self.is_normalized(left, negated, at)?, 0));
            }
            _ => return Err(self.error()),
        };
        self.take();
        self.grow()?;
        Ok((self.make(ExprKind::BooleanTest { operand: Box::new(left), test, negated, at }, start), 0))
    }

    /// `IS [NOT] [form] NORMALIZED`: a call of `is_normalized`, whose negation is a NOT.
    fn is_normalized(&mut self, left: Expr, negated: bool, at: Location) -> Result<Expr> {
        let start = left.span.start;
        let mut arguments = vec![left];
        arguments.extend(self.normal_form()?);
        self.expect_word(Kw::NORMALIZED)?;
        self.grow()?;
        let call = self.system_call("is_normalized", arguments, at, start);
        if !negated {
            return Ok(call);
        }
        self.grow()?;
        Ok(self.make(ExprKind::Not(Box::new(call)), start))
    }

    /// NFC and so on, as a string.
    pub(super) fn normal_form(&mut self) -> Result<Option<Expr>> {
        let start = self.token().start;
        let Some(form) = self.any(&[Kw::NFC, Kw::NFD, Kw::NFKC, Kw::NFKD]) else { return Ok(None) };
        Ok(Some(self.make(ExprKind::Const(Const::String(form.text().to_owned())), start)))
    }

    /// A call that is written in a notation of SQL's own.
    pub(super) fn system_call(&self, name: &str, arguments: Vec<Expr>, at: Location, start: u32) -> Expr {
        let name = AnyName { parts: vec!["pg_catalog".to_owned(), name.to_owned()], at };
        let call = FuncCall { sql_syntax: true, ..FuncCall::plain(name, arguments) };
        self.make(ExprKind::Function(Box::new(call)), start)
    }

    fn at_time_zone(&mut self, left: Expr, at: Location) -> Result<Expr> {
        self.expect_words(&[Kw::AT, Kw::TIME, Kw::ZONE])?;
        let start = left.span.start;
        let zone = self.operand(AT + 1, Form::A)?;
        self.grow()?;
        Ok(self.system_call("timezone", vec![zone, left], at, start))
    }

    /// BETWEEN, IN, LIKE, ILIKE, SIMILAR TO.
    #[inline(never)]
    fn predicate(&mut self, left: Expr, at: Location) -> Result<(Expr, u8)> {
        let start = left.span.start;
        let negated = self.word(Kw::NOT);
        let (kind, closed) = match self.take().kw {
            Kw::BETWEEN => (self.between(left, negated, at)?, PREDICATE),
            Kw::IN => {
                let operand = Box::new(left);
                let kind = match self.brackets(true)? {
                    Brackets::Query(query, _) => ExprKind::InQuery { operand, query, negated, at },
                    Brackets::Expr(item) => ExprKind::InList { operand, list: vec![item], negated, at },
                    Brackets::Row(list, _) => ExprKind::InList { operand, list, negated, at },
                };
                (kind, 0)
            }
            kw => {
                let like = match kw {
                    Kw::LIKE => LikeKind::Like,
                    Kw::ILIKE => LikeKind::ILike,
                    _ => {
                        self.expect_word(Kw::TO)?;
                        LikeKind::Similar
                    }
                };
                if like != LikeKind::Similar && matches!(self.kw(), Kw::ANY | Kw::SOME | Kw::ALL) {
                    return Ok((self.quantified(left, Operator::plain(like.operator(negated), at))?, 0));
                }
                (self.like(like, left, negated, at)?, PREDICATE)
            }
        };
        self.grow()?;
        Ok((self.make(kind, start), closed))
    }

    fn between(&mut self, operand: Expr, negated: bool, at: Location) -> Result<ExprKind> {
        let symmetric = self.any(&[Kw::SYMMETRIC, Kw::ASYMMETRIC]) == Some(Kw::SYMMETRIC);
        let low = self.b_expr()?;
        self.expect_word(Kw::AND)?;
        let high = self.operand(PREDICATE + 1, Form::A)?;
        Ok(ExprKind::Between(Box::new(Between { operand, low, high, symmetric, negated, at })))
    }

    fn like(&mut self, kind: LikeKind, operand: Expr, negated: bool, at: Location) -> Result<ExprKind> {
        let pattern = self.operand(PREDICATE + 1, Form::A)?;
        let escape = if self.word(Kw::ESCAPE) { Some(self.operand(PREDICATE + 1, Form::A)?) } else { None };
        Ok(ExprKind::Like(Box::new(Like { kind, operand, pattern, escape, negated, at })))
    }
}

/// How strongly an operator binds when it is written without OPERATOR().
fn strength_of(op: &Operator) -> u8 {
    if !op.qualifier.is_empty() {
        return OP;
    }
    match op.name.as_ref() {
        "+" | "-" => SUM,
        "*" | "/" | "%" => PRODUCT,
        "^" => POWER,
        "<" | ">" | "=" | "<=" | ">=" | "<>" => COMPARISON,
        _ => OP,
    }
}

/// A span that covers nothing but a place.
pub(super) fn point(at: Location) -> Span {
    Span { start: at.0, end: at.0 }
}
