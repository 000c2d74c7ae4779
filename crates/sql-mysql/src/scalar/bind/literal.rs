//! Literals.

use syntax::tree as ast;
use syntax::tree::{Literal, TemporalKind};

use crate::error;
use crate::scalar::decimal::{Decimal, PRECISION_MAX, SCALE_MAX};
use crate::scalar::operators;
use crate::scalar::settings::Settings;
use crate::scalar::temporal::{self, Strictness};
use crate::types::{Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::expr::Expr;

pub fn literal(value: &Literal, settings: &Settings) -> Result<Expr> {
    Ok(match value {
        Literal::Integer(number) => integer(*number),
        Literal::Decimal(text) => decimal(text)?,
        Literal::Float(text) => float(text)?,
        Literal::String(text) | Literal::National(text) => string(text, settings),
        Literal::Hex(bytes) | Literal::Bits(bytes) => byte_literal(bytes),
        Literal::Bool(truth) => Expr::truth(*truth),
        Literal::Null => Expr::null(),
        Literal::Temporal(kind, text) => typed(*kind, text, settings)?,
    })
}

pub fn string(text: &str, settings: &Settings) -> Expr {
    let length = text.chars().count() as u32;
    Expr::Literal(Value::text(text), Type::text(length, settings.collation).with_nullable(false))
}

fn integer(number: u64) -> Expr {
    match i64::try_from(number) {
        Ok(number) => Expr::integer(number),
        Err(_) => Expr::Literal(Value::UInt(number), Type::unsigned().with_nullable(false)),
    }
}

fn float(text: &str) -> Result<Expr> {
    let double: f64 = text.parse().map_err(|_| error::wrong_syntax(format!("'{text}'")))?;
    if !double.is_finite() {
        return Err(error::ILLEGAL_VALUE_FOR_TYPE.raise(&[&"double", &text]));
    }
    Ok(Expr::Literal(Value::Double(double), Type::double().with_nullable(false)))
}

fn decimal(text: &str) -> Result<Expr> {
    let decimal = Decimal::parse(text).ok_or_else(|| error::wrong_syntax(format!("'{text}'")))?;
    Ok(decimal_literal(decimal))
}

fn decimal_literal(decimal: Decimal) -> Expr {
    let scale = decimal.bounded_scale().min(SCALE_MAX);
    let precision = decimal.digits().max(u32::from(scale)).clamp(1, PRECISION_MAX);
    Expr::Literal(Value::Decimal(decimal), Type::decimal(precision, scale).with_nullable(false))
}

/// `-5`: one number, so that the smallest one can be written.
pub fn negative(inner: &ast::Expr) -> Option<Expr> {
    let ast::ExprKind::Literal(literal) = &inner.kind else {
        return None;
    };
    match literal {
        Literal::Integer(number) => Some(match 0_i64.checked_sub_unsigned(*number) {
            Some(number) => Expr::integer(number),
            None => decimal_literal(Decimal::parse(&format!("-{number}"))?),
        }),
        Literal::Decimal(text) => decimal(&format!("-{text}")).ok(),
        Literal::Float(text) => float(&format!("-{text}")).ok(),
        _ => None,
    }
}

/// The literal whose negative is no whole number of 64 bits, as a decimal.
pub fn widened(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(Value::Int(number @ i64::MIN), _) => decimal_literal(Decimal::from(number)),
        Expr::Literal(Value::UInt(number), ty) if number > 1 << 63 && ty.kind().is_integer() => {
            decimal_literal(Decimal::from(number))
        }
        other => other,
    }
}

/// X'41', 0x41, b'101': bytes, which are a number to numbers. `unsigned` in the type of bytes says so.
fn byte_literal(bytes: &[u8]) -> Expr {
    let ty = Type::bytes(bytes.len() as u32).with_unsigned(true).with_nullable(false);
    Expr::Literal(Value::bytes(bytes), ty)
}

/// MY-24.
pub fn hex_as_number(expr: Expr) -> Expr {
    match &expr {
        Expr::Literal(value, ty) => match crate::scalar::cast::hex_number(value, ty) {
            Some(number) => Expr::Literal(Value::UInt(number), Type::unsigned().with_nullable(false)),
            None => expr,
        },
        _ => expr,
    }
}

/// DATE '2026-11-21', TIME '12:00', TIMESTAMP '2026-11-21 12:00:00'.
fn typed(kind: TemporalKind, text: &str, settings: &Settings) -> Result<Expr> {
    let wrong = |what: &str| error::WRONG_VALUE.raise(&[&what, &text]);
    let rules = Strictness::of(settings.sql_mode);
    Ok(match kind {
        TemporalKind::Date => {
            let parsed = temporal::parse_datetime(text, rules).filter(|parsed| !parsed.has_time && !parsed.truncated);
            let parsed = parsed.ok_or_else(|| wrong("DATE"))?;
            Expr::Literal(Value::Date(parsed.value.date), Type::of_kind(Kind::Date).with_nullable(false))
        }
        TemporalKind::Time => {
            let parsed = temporal::parse_time(text).filter(|parsed| !parsed.truncated).ok_or_else(|| wrong("TIME"))?;
            Expr::Literal(Value::Time(parsed.value), Type::temporal(Kind::Time, parsed.scale).with_nullable(false))
        }
        TemporalKind::DateTime | TemporalKind::Timestamp => {
            let parsed = temporal::parse_datetime(text, rules).filter(|parsed| !parsed.truncated);
            let parsed = parsed.ok_or_else(|| wrong("DATETIME"))?;
            if parsed.offset.is_some() {
                // The offset is converted to the session's time zone.
                let ty = Type::temporal(Kind::DateTime, parsed.scale).with_nullable(false);
                return Ok(operators::cast(string(text, settings), ty));
            }
            Expr::Literal(
                Value::DateTime(parsed.value),
                Type::temporal(Kind::DateTime, parsed.scale).with_nullable(false),
            )
        }
    })
}
