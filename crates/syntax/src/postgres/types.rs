//! Names of types.

use super::error::Result;
use super::keyword::{Category, Kw};
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::{Const, Expr, ExprKind, IntervalFields, Location, Span, TypeName};

impl Parser<'_> {
    /// Typename
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let setof = self.word(Kw::SETOF);
        let mut ty = self.simple_type()?;
        ty.setof = setof;
        if self.word(Kw::ARRAY) {
            let bound = if self.accept(Kind::OpenBracket) {
                let bound = self.integer()?;
                self.expect(Kind::CloseBracket)?;
                Some(bound)
            } else {
                None
            };
            ty.array_bounds.push(bound);
            return Ok(ty);
        }
        while self.accept(Kind::OpenBracket) {
            let bound = if self.kind() == Kind::CloseBracket { None } else { Some(self.integer()?) };
            self.expect(Kind::CloseBracket)?;
            ty.array_bounds.push(bound);
        }
        Ok(ty)
    }

    /// SimpleTypename
    pub(super) fn simple_type(&mut self) -> Result<TypeName> {
        let at = self.here();
        if self.kind() == Kind::Word && self.kw().category() == Category::Column {
            return match self.sql_type(true)? {
                Some(ty) => Ok(ty),
                None => Err(self.error()),
            };
        }
        if self.kw() == Kw::DOUBLE && self.peek_is(1, Kw::PRECISION) {
            self.take();
            self.take();
            return Ok(TypeName::system("float8", at));
        }
        let first = self.function_word()?;
        self.generic_type(first)
    }

    /// The rest of a type that is no keyword of SQL's.
    pub(super) fn generic_type(&mut self, first: super::tree::Ident) -> Result<TypeName> {
        let mut ty = TypeName::of(self.rest_of_name(first)?);
        ty.modifiers = self.type_modifiers()?;
        Ok(ty)
    }

    /// `name%TYPE` of a function's argument, or a type.
    pub(super) fn argument_type(&mut self) -> Result<TypeName> {
        let is_named = self.kind() != Kind::Word || self.kw().is_function_name() && self.kw() != Kw::DOUBLE;
        let mut ty = self.type_name()?;
        let is_plain = ty.modifiers.is_empty() && ty.array_bounds.is_empty();
        if self.kind() == Kind::Percent && is_named && is_plain && ty.name.parts.len() > 1 {
            self.take();
            self.expect_word(Kw::TYPE)?;
            ty.of_column = true;
        }
        Ok(ty)
    }

    fn type_modifiers(&mut self) -> Result<Vec<Expr>> {
        if self.kind() == Kind::Open { self.bracketed(Parser::expr) } else { Ok(Vec::new()) }
    }

    /// A type whose name is a keyword. `in_column`: without a length, character strings and bits have one element, as types of columns have.
    pub(super) fn sql_type(&mut self, in_column: bool) -> Result<Option<TypeName>> {
        let at = self.here();
        let kw = self.kw();
        let simple = match kw {
            Kw::INT | Kw::INTEGER => "int4",
            Kw::SMALLINT => "int2",
            Kw::BIGINT => "int8",
            Kw::REAL => "float4",
            Kw::BOOLEAN => "bool",
            Kw::FLOAT => return self.float(at).map(Some),
            Kw::DECIMAL | Kw::DEC | Kw::NUMERIC => {
                self.take();
                let mut ty = TypeName::system("numeric", at);
                ty.modifiers = self.type_modifiers()?;
                return Ok(Some(ty));
            }
            Kw::BIT => return self.bit(at, in_column).map(Some),
            Kw::CHARACTER | Kw::CHAR | Kw::VARCHAR | Kw::NATIONAL | Kw::NCHAR => {
                return self.character(at, in_column).map(Some);
            }
            Kw::TIMESTAMP => return self.timestamp(at, "timestamp", "timestamptz").map(Some),
            Kw::TIME => return self.timestamp(at, "time", "timetz").map(Some),
            Kw::INTERVAL => {
                self.take();
                let mut ty = TypeName::system("interval", at);
                if self.kind() == Kind::Open {
                    self.precision(&mut ty)?;
                } else {
                    self.interval_fields(&mut ty)?;
                }
                return Ok(Some(ty));
            }
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(TypeName::system(simple, at)))
    }

    /// FLOAT with its precision in bits.
    fn float(&mut self, at: Location) -> Result<TypeName> {
        self.take();
        let mut name = "float8";
        if self.accept(Kind::Open) {
            let at = self.here();
            let bits = self.integer()?;
            self.expect(Kind::Close)?;
            if bits < 1 {
                return Err(self.invalid("22023", "precision for type float must be at least 1 bit", at));
            }
            if bits > 53 {
                return Err(self.invalid("22023", "precision for type float must be less than 54 bits", at));
            }
            name = if bits <= 24 { "float4" } else { "float8" };
        }
        Ok(TypeName::system(name, at))
    }

    fn one(at: Location) -> Vec<Expr> {
        vec![Expr { kind: ExprKind::Const(Const::Integer(1)), span: Span { start: at.0, end: at.0 } }]
    }

    fn bit(&mut self, at: Location, in_column: bool) -> Result<TypeName> {
        self.take();
        let varying = self.word(Kw::VARYING);
        let mut ty = TypeName::system(if varying { "varbit" } else { "bit" }, at);
        ty.modifiers = self.type_modifiers()?;
        if ty.modifiers.is_empty() && !varying && in_column {
            ty.modifiers = Self::one(at);
        }
        Ok(ty)
    }

    fn character(&mut self, at: Location, in_column: bool) -> Result<TypeName> {
        let varying = match self.take().kw {
            Kw::VARCHAR => true,
            Kw::NATIONAL => {
                if !self.word(Kw::CHARACTER) {
                    self.expect_word(Kw::CHAR)?;
                }
                self.word(Kw::VARYING)
            }
            _ => self.word(Kw::VARYING),
        };
        let mut ty = TypeName::system(if varying { "varchar" } else { "bpchar" }, at);
        if self.accept(Kind::Open) {
            let start = self.token().start;
            let length = self.integer()?;
            let span = self.span_from(start);
            self.expect(Kind::Close)?;
            ty.modifiers = vec![Expr { kind: ExprKind::Const(Const::Integer(length)), span }];
        } else if !varying && in_column {
            ty.modifiers = Self::one(at);
        }
        Ok(ty)
    }

    /// `(precision)`
    pub(super) fn precision(&mut self, ty: &mut TypeName) -> Result<()> {
        self.expect(Kind::Open)?;
        let start = self.token().start;
        let precision = self.integer()?;
        let span = self.span_from(start);
        self.expect(Kind::Close)?;
        ty.modifiers = vec![Expr { kind: ExprKind::Const(Const::Integer(precision)), span }];
        Ok(())
    }

    fn timestamp(&mut self, at: Location, without: &str, with: &str) -> Result<TypeName> {
        self.take();
        let mut ty = TypeName::system(without, at);
        if self.kind() == Kind::Open {
            self.precision(&mut ty)?;
        }
        if self.kw() == Kw::WITH && self.peek_is(1, Kw::TIME) {
            self.take();
            self.take();
            self.expect_word(Kw::ZONE)?;
            ty.name.parts[1] = with.to_owned();
        } else if self.kw() == Kw::WITHOUT && self.peek_is(1, Kw::TIME) {
            self.take();
            self.take();
            self.expect_word(Kw::ZONE)?;
        }
        Ok(ty)
    }

    /// opt_interval
    pub(super) fn interval_fields(&mut self, ty: &mut TypeName) -> Result<()> {
        use IntervalFields::*;
        let Some(from) = self.any(&[Kw::YEAR, Kw::MONTH, Kw::DAY, Kw::HOUR, Kw::MINUTE, Kw::SECOND]) else {
            return Ok(());
        };
        let may_go_on = !matches!(from, Kw::MONTH | Kw::SECOND);
        let to = if may_go_on && self.word(Kw::TO) { Some(self.kw()) } else { None };
        let fields = match (from, to) {
            (Kw::YEAR, None) => Year,
            (Kw::MONTH, None) => Month,
            (Kw::DAY, None) => Day,
            (Kw::HOUR, None) => Hour,
            (Kw::MINUTE, None) => Minute,
            (Kw::SECOND, None) => Second,
            (Kw::YEAR, Some(Kw::MONTH)) => YearToMonth,
            (Kw::DAY, Some(Kw::HOUR)) => DayToHour,
            (Kw::DAY, Some(Kw::MINUTE)) => DayToMinute,
            (Kw::DAY, Some(Kw::SECOND)) => DayToSecond,
            (Kw::HOUR, Some(Kw::MINUTE)) => HourToMinute,
            (Kw::HOUR, Some(Kw::SECOND)) => HourToSecond,
            (Kw::MINUTE, Some(Kw::SECOND)) => MinuteToSecond,
            _ => return Err(self.error()),
        };
        if to.is_some() {
            self.take();
        }
        ty.interval = Some(fields);
        if matches!(fields, Second | DayToSecond | HourToSecond | MinuteToSecond) && self.kind() == Kind::Open {
            self.precision(ty)?;
        }
        Ok(())
    }
}
