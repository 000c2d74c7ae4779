//! Comparisons and arithmetic: conversion of literals, and the type as which two sides are compared.

use std::fmt::{self, Write};

use syntax::tree as ast;
use syntax::tree::{BinaryOp, CompareOp};

use super::constant::{self, Place};
use super::{as_sent, literal, merge_collations, present};
use crate::scalar::keyword_argument::Word;
use crate::scalar::operation::Operator;
use crate::scalar::operators;
use crate::scalar::settings::Settings;
use crate::scalar::temporal::{self, Strictness};
use crate::scalar::{arithmetic as compute, compare as meet};
use crate::types::{Collation, Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::comparison::{Comparator, Comparison};
use query::nodes::eval;
use query::nodes::expr::{Between, Call, Compare, Expr, In};

pub fn comparison(op: CompareOp) -> Comparison {
    match op {
        CompareOp::Equal => Comparison::Equal,
        CompareOp::NullSafeEqual => Comparison::NullSafeEqual,
        CompareOp::NotEqual => Comparison::NotEqual,
        CompareOp::Less => Comparison::Less,
        CompareOp::LessOrEqual => Comparison::LessEqual,
        CompareOp::Greater => Comparison::Greater,
        CompareOp::GreaterOrEqual => Comparison::GreaterEqual,
    }
}

pub fn operator(op: BinaryOp) -> Operator {
    match op {
        BinaryOp::Add => Operator::Add,
        BinaryOp::Subtract => Operator::Subtract,
        BinaryOp::Multiply => Operator::Multiply,
        BinaryOp::Divide => Operator::Divide,
        BinaryOp::Modulo => Operator::Modulo,
        BinaryOp::IntegerDivide => Operator::IntDivide,
        BinaryOp::BitAnd => Operator::BitAnd,
        BinaryOp::BitOr => Operator::BitOr,
        BinaryOp::BitXor => Operator::BitXor,
        BinaryOp::ShiftLeft => Operator::ShiftLeft,
        BinaryOp::ShiftRight => Operator::ShiftRight,
    }
}

/// The beginning of a text.
#[derive(Default)]
struct Limited {
    text: String,
    is_cut: bool,
}

impl Limited {
    const BYTES_MAX: usize = 256;
}

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        let room = Limited::BYTES_MAX - self.text.len();
        self.is_cut = text.len() > room;
        let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(&text[..end]);
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The text of an expression for messages, cut.
pub fn text_of(arguments: fmt::Arguments<'_>) -> Box<str> {
    let mut limited = Limited::default();
    let _ = limited.write_fmt(arguments);
    let end = if limited.is_cut { "..." } else { "" };
    (limited.text + end).into()
}

/// The same of a chain, after each of its links: `((a + b) + c)`. A chain of many says only that it is one, so that they do not all keep its text.
#[derive(Default)]
pub struct ChainText {
    written: Limited,
    links: usize,
}

impl ChainText {
    const LINKS_MAX: usize = 128;

    pub fn begin(&mut self, first: &ast::Expr) {
        let _ = write!(self.written, "{first}");
    }

    pub fn link(&mut self, op: BinaryOp, operand: &ast::Expr) {
        self.links += 1;
        if self.links <= ChainText::LINKS_MAX {
            let _ = write!(self.written, " {op} {operand})");
        }
    }

    /// The text up to the last link.
    pub fn shown(&self) -> Box<str> {
        if self.links > ChainText::LINKS_MAX {
            return "(...)".into();
        }
        let end = if self.written.is_cut { "..." } else { "" };
        ["(".repeat(self.links).as_str(), &self.written.text, end].concat().into()
    }
}

pub fn arithmetic(settings: &Settings, op: Operator, left: Expr, right: Expr, text: Box<str>) -> Expr {
    let is_hex = |expr: &Expr| expr.ty().is_unsigned();
    let strings = left.kind().is_bytes() && right.kind().is_bytes() && !(is_hex(&left) && is_hex(&right));
    let number = |expr: Expr| if strings { expr } else { literal::hex_as_number(expr) };
    let (left, right) = (number(left), number(right));
    let increment = settings.div_precision_increment;
    let ty = compute::result_type(op, &left.ty(), &right.ty(), increment, settings.sql_mode);
    let is_unary = matches!(op, Operator::Negate | Operator::BitNot);
    let arguments = if is_unary { vec![left] } else { vec![left, right] };
    let (function, extra) = (compute::function(op), Word::Operator(op, increment).with_text(text));
    Expr::Call(Box::new(Call { function, arguments, collation: ty.collation, ty, extra }))
}

/// `left op right`, with the conversions that their types ask for.
pub fn compare(settings: &Settings, op: Comparison, left: Expr, right: Expr) -> Result<Expr> {
    compare_at(settings, op, left, right, Place::Side)
}

/// Binds a WHEN of CASE with an operand, which is `left`.
pub fn compare_when(settings: &Settings, left: Expr, right: Expr) -> Result<Expr> {
    compare_at(settings, Comparison::Equal, left, right, Place::When)
}

fn compare_at(settings: &Settings, op: Comparison, left: Expr, right: Expr, place: Place) -> Result<Expr> {
    let (left, right, by) = sides(settings, left, right, meet::sign(op), place)?;
    Ok(Expr::Compare(Box::new(Compare { op, left, right, by })))
}

pub fn between(settings: &Settings, needle: Expr, low: Expr, high: Expr, negated: bool) -> Result<Expr> {
    let (first, low, low_by) = sides(settings, needle.clone(), low, "between", Place::End)?;
    let (second, high, high_by) = sides(settings, needle, high, "between", Place::End)?;
    if first != second {
        // The needle is compared as a different type with each bound, so BETWEEN becomes two comparisons.
        let (from, to) = (Comparison::GreaterEqual, Comparison::LessEqual);
        let low = Expr::Compare(Box::new(Compare { op: from, left: first, right: low, by: low_by }));
        let high = Expr::Compare(Box::new(Compare { op: to, left: second, right: high, by: high_by }));
        return Ok(super::negated(Expr::And(vec![low, high]), negated));
    }
    Ok(Expr::Between(Box::new(Between { needle: first, low, high, low_by, high_by, negated })))
}

/// IN with a single candidate becomes a comparison.
pub fn in_list(settings: &Settings, needle: Expr, list: Vec<Expr>, negated: bool) -> Result<Expr> {
    let mut bound: Vec<(Expr, Comparator)> = Vec::with_capacity(list.len());
    let mut left: Option<Expr> = None;
    let place = if list.len() == 1 { Place::Side } else { Place::Candidate };
    for candidate in list.iter().cloned() {
        let (side, candidate, by) = sides(settings, needle.clone(), candidate, "in", place)?;
        if left.get_or_insert_with(|| side.clone()) != &side {
            let arms =
                list.into_iter().map(|candidate| compare(settings, Comparison::Equal, needle.clone(), candidate));
            return Ok(super::negated(Expr::or(arms.collect::<Result<_>>()?), negated));
        }
        bound.push((candidate, by));
    }
    let sorted = eval::sort_literals(&mut bound);
    Ok(Expr::In(Box::new(In { needle: left.unwrap_or(needle), list: bound, sorted, negated })))
}

fn sides(settings: &Settings, left: Expr, right: Expr, op: &str, place: Place) -> Result<(Expr, Expr, Comparator)> {
    let right = constant::beside(right, &left, place, settings);
    let is_side = matches!(place, Place::Side | Place::End);
    let left = if is_side { constant::beside(left, &right, place, settings) } else { left };
    let left = as_clock_text(left, &right);
    let right = as_clock_text(right, &left);
    let (a, b) = (left.ty(), right.ty());
    let left = adapt(left, &b, place, settings)?;
    let right = adapt(right, &a, place, settings)?;
    let (a, b) = (left.ty(), right.ty());
    let collation = match a.is_string() && b.is_string() {
        true => merge_collations(&[&left, &right], op, settings)?,
        false => Collation::Binary,
    };
    let by = meet::by(meet::domain(&a, &b, collation));
    Ok((left, right, by))
}

/// A TIME is compared with a text as a text, so '1:2:3' differs from 01:02:03; a TIME column and a constant are compared as times.
fn as_clock_text(side: Expr, other: &Expr) -> Expr {
    let meets_times = constant::is_field(&side) && other.is_constant();
    let is_text = other.ty().is_string() || matches!(other.kind(), Kind::Enum | Kind::Set);
    if side.kind() != Kind::Time || !is_text || meets_times {
        return side;
    }
    let length = super::display_length(&side.ty());
    let text = super::string_type(length, other.ty().collation).with_nullable(side.ty().nullable);
    operators::cast(side, text)
}

/// Converts a side for its comparison with the other: literals are converted once; ENUM and SET count as names beside strings and as numbers beside numbers.
pub(super) fn adapt(side: Expr, other: &Type, place: Place, settings: &Settings) -> Result<Expr> {
    let side = if other.kind().is_bytes() { as_sent(side) } else { side };
    let kind = side.kind();
    match kind {
        // Beside a document, the result of a comparison is true or false, not 1 or 0.
        _ if other.kind() == Kind::Json && side.ty().is_truth() => {
            let document = Type::of_kind(Kind::Json).with_nullable(side.ty().nullable);
            return Ok(operators::cast(side, document));
        }
        Kind::Enum | Kind::Set if other.is_string() || other.kind() == Kind::Null => return Ok(present(side)),
        // BIT counts as a number beside texts too.
        Kind::Bit if other.kind().is_bytes() && !other.is_unsigned() => return Ok(present(side)),
        Kind::Enum | Kind::Set if matches!(other.kind(), Kind::Enum | Kind::Set) => return Ok(present(side)),
        _ => {}
    }
    let side = if other.is_string() || other.kind() == Kind::Json { side } else { literal::hex_as_number(side) };
    let Expr::Literal(value, ty) = &side else {
        return Ok(side);
    };
    let converted = match (value, other.kind()) {
        (Value::Null, _) => None,
        (Value::Text(text), Kind::Date | Kind::DateTime | Kind::Timestamp) => datetime(text, other, place, settings)?,
        (Value::Text(text), Kind::Time) => {
            let parsed = temporal::parse_time(text).filter(|parsed| !parsed.truncated);
            parsed.map(|parsed| Expr::Literal(Value::Time(parsed.value), Type::temporal(Kind::Time, parsed.scale)))
        }
        _ => None,
    };
    let nullable = ty.nullable;
    Ok(match converted {
        Some(Expr::Literal(value, ty)) => Expr::Literal(value, ty.with_nullable(nullable)),
        _ => side,
    })
}

/// Error 1525 for an invalid date; one of several candidates stays a text instead.
fn datetime(text: &str, other: &Type, place: Place, settings: &Settings) -> Result<Option<Expr>> {
    let rules = match place {
        Place::Side => Strictness::of(settings.sql_mode),
        _ => Strictness { no_zero_date: false, no_zero_in_date: false, ..Strictness::of(settings.sql_mode) },
    };
    let what = match other.kind() {
        Kind::Date => "DATE",
        Kind::Timestamp => "TIMESTAMP",
        _ => "DATETIME",
    };
    let parsed = temporal::parse_datetime(text, rules).filter(|parsed| parsed.offset.is_none());
    Ok(match parsed {
        Some(parsed) if parsed.has_time || other.kind() != Kind::Date => {
            Some(Expr::Literal(Value::DateTime(parsed.value), Type::temporal(Kind::DateTime, parsed.scale)))
        }
        Some(parsed) => Some(Expr::Literal(Value::Date(parsed.value.date), Type::of_kind(Kind::Date))),
        // With an offset: the session's zone decides, at evaluation.
        None if temporal::parse_datetime(text, rules).is_some() => {
            Some(Expr::Literal(Value::text(text), Type::text(text.len() as u32, settings.collation)))
        }
        None if place == Place::Side => return Err(constant::no_date(what, text, false)),
        None => None,
    })
}
