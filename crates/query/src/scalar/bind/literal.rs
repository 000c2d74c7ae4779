//! Literals.

use sqlparser::ast::{self, DataType};

use crate::error::{self, Result, SqlError};
use crate::scalar::bind::Settings;
use crate::scalar::decimal::{Decimal, PRECISION_MAX, SCALE_MAX};
use crate::scalar::expr::Expr;
use crate::scalar::temporal::{self, Strictness};
use crate::types::{Kind, Type};
use crate::value::Value;

pub fn literal(value: &ast::Value, settings: &Settings) -> Result<Expr> {
    use ast::Value as Ast;
    Ok(match value {
        Ast::Number(text, _) => number(text)?,
        Ast::SingleQuotedString(text) | Ast::DoubleQuotedString(text) | Ast::NationalStringLiteral(text) => {
            string(text, settings)
        }
        Ast::HexStringLiteral(digits) => hex(digits)?,
        Ast::SingleQuotedByteStringLiteral(digits) | Ast::DoubleQuotedByteStringLiteral(digits) => bits(digits)?,
        Ast::Boolean(truth) => Expr::truth(*truth),
        Ast::Null => Expr::null(),
        Ast::Placeholder(_) => return Err(SqlError::parse("'?'")),
        other => return Err(SqlError::unsupported(other)),
    })
}

pub fn string(text: &str, settings: &Settings) -> Expr {
    let length = text.chars().count() as u32;
    Expr::Literal(Value::text(text), Type::text(length, settings.collation).with_nullable(false))
}

pub fn number(text: &str) -> Result<Expr> {
    if text.contains(['e', 'E']) {
        let double: f64 = text.parse().map_err(|_| SqlError::parse(format!("'{text}'")))?;
        if !double.is_finite() {
            return Err(error::ILLEGAL_VALUE_FOR_TYPE.with(&[&"double", &text]));
        }
        return Ok(Expr::Literal(Value::Double(double), Type::double().with_nullable(false)));
    }
    if let Ok(number) = text.parse::<i64>() {
        return Ok(Expr::integer(number));
    }
    if let Ok(number) = text.parse::<u64>() {
        return Ok(Expr::Literal(Value::UInt(number), Type::unsigned().with_nullable(false)));
    }
    let decimal = Decimal::parse(text).ok_or_else(|| SqlError::parse(format!("'{text}'")))?;
    Ok(decimal_literal(decimal))
}

fn decimal_literal(decimal: Decimal) -> Expr {
    let scale = decimal.scale().min(SCALE_MAX);
    let precision = decimal.digits().max(u32::from(scale)).clamp(1, PRECISION_MAX);
    Expr::Literal(Value::Decimal(decimal), Type::decimal(precision, scale).with_nullable(false))
}

/// `-5`: one number, so that the smallest one can be written.
pub fn negative(inner: &ast::Expr) -> Option<Expr> {
    let ast::Expr::Value(value) = inner else {
        return None;
    };
    let ast::Value::Number(text, _) = &value.value else {
        return None;
    };
    match number(&format!("-{text}")).ok()? {
        // -0 is no whole number of its own.
        Expr::Literal(Value::Int(0), _) => Some(Expr::integer(0)),
        literal => Some(literal),
    }
}

/// The literal whose negative is no whole number of 64 bits, as a decimal.
pub fn widened(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(Value::Int(number @ i64::MIN), _) => decimal_literal(Decimal::from(number)),
        Expr::Literal(Value::UInt(number), ty) if number > 1 << 63 && ty.kind.is_integer() => {
            decimal_literal(Decimal::from(number))
        }
        other => other,
    }
}

/// X'41' and 0x41: bytes, which are a number to numbers. `unsigned` in the type of bytes says so.
fn hex(digits: &str) -> Result<Expr> {
    let wrong = || SqlError::parse(format!("'0x{digits}'"));
    let even = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    let pair = |at: usize| even.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(wrong);
    let bytes: Vec<u8> = (0..even.len()).step_by(2).map(pair).collect::<Result<_>>()?;
    Ok(byte_literal(&bytes))
}

/// b'101'.
pub fn bits(digits: &str) -> Result<Expr> {
    if !digits.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
        return Err(SqlError::parse(format!("'b'{digits}''")));
    }
    let length = digits.len().div_ceil(8);
    let padded = format!("{digits:0>width$}", width = length * 8);
    let byte = |at: usize| u8::from_str_radix(&padded[at..at + 8], 2).unwrap_or(0);
    Ok(byte_literal(&(0..padded.len()).step_by(8).map(byte).collect::<Vec<_>>()))
}

fn byte_literal(bytes: &[u8]) -> Expr {
    let ty = Type { unsigned: true, nullable: false, ..Type::bytes(bytes.len() as u32) };
    Expr::Literal(Value::bytes(bytes), ty)
}

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
pub fn typed(typed: &ast::TypedString, settings: &Settings) -> Result<Expr> {
    let Some(text) = typed.value.value.clone().into_string() else {
        return Err(SqlError::parse(format!("'{typed}'")));
    };
    let wrong = |what: &str| error::WRONG_VALUE.with(&[&what, &text]);
    let rules = Strictness::of(settings.sql_mode);
    Ok(match typed.data_type {
        DataType::Date => {
            let parsed = temporal::parse_datetime(&text, rules).filter(|parsed| !parsed.has_time && !parsed.truncated);
            let parsed = parsed.ok_or_else(|| wrong("DATE"))?;
            Expr::Literal(Value::Date(parsed.value.date), Type::new(Kind::Date).with_nullable(false))
        }
        DataType::Time(..) => {
            let parsed = temporal::parse_time(&text).filter(|parsed| !parsed.truncated).ok_or_else(|| wrong("TIME"))?;
            Expr::Literal(Value::Time(parsed.value), Type::temporal(Kind::Time, parsed.scale).with_nullable(false))
        }
        DataType::Timestamp(..) | DataType::Datetime(_) => {
            let parsed = temporal::parse_datetime(&text, rules).filter(|parsed| !parsed.truncated);
            let parsed = parsed.ok_or_else(|| wrong("DATETIME"))?;
            if parsed.offset.is_some() {
                // The session's time zone says which moment of its clock that is.
                let ty = Type::temporal(Kind::DateTime, parsed.scale).with_nullable(false);
                return Ok(Expr::Cast(Box::new(string(&text, settings)), ty));
            }
            Expr::Literal(
                Value::DateTime(parsed.value),
                Type::temporal(Kind::DateTime, parsed.scale).with_nullable(false),
            )
        }
        ref other => return Err(SqlError::unsupported(other)),
    })
}
