//! Conversion of constants that are compared with columns: the constant is converted once to the column's type, instead
//! of the column for each row.
//!
//! MySQL compares a number with a string as doubles, in which neighbours beyond 2^53 are equal. If the string is a
//! constant and the other side an integer column or any decimal, it converts the constant instead, so keys can be used
//! and no precision is lost. A number compared with a column of dates or years becomes a date or a year. Hard part:
//! most constants are parameters, whose values are unknown when an expression is bound. A call of one of the
//! conversions below wraps them, and `plan/constant_folding` evaluates it before a scan.

use crate::error;
use crate::scalar::convert::{self, number_prefix, shorten};
use crate::scalar::decimal::Decimal;
use crate::scalar::operators;
use crate::scalar::settings::Settings;
use crate::scalar::state::StateOf as _;
use crate::scalar::state::context_of;
use crate::scalar::temporal::{self, Strictness};
use crate::types::{Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr, Extra};
use query::nodes::function::{Body, Folding, Function, Run};

/// The position of a constant in its comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Side of a comparison, or IN with one candidate.
    Side,
    /// End of BETWEEN.
    End,
    /// One of several candidates of IN.
    Candidate,
    /// WHEN of a CASE with an operand.
    When,
}

static INTEGER: Function = coercion(&["<integer>"], integer);
static DECIMAL: Function = coercion(&["<decimal>"], decimal);
static YEAR: Function = coercion(&["<year>"], year);
static MOMENT: Function = coercion(&["<moment>"], moment);
static PADDED: Function = Function::new(&["<padded>"], Run::Strict(filled));
static DATE: Function = coercion_to_date(&["<date>"], date);
static DATETIME: Function = coercion_to_date(&["<datetime>"], datetime);
static TIMESTAMP: Function = coercion_to_date(&["<timestamp>"], timestamp);

/// A function that no name refers to.
const fn coercion(names: &'static [&'static str], run: Body) -> Function {
    Function { folding: Folding::Coercion, ..Function::new(names, Run::Strict(run)) }
}

/// An invalid date is an error of the statement, even if no row is compared.
const fn coercion_to_date(names: &'static [&'static str], run: Body) -> Function {
    Function { folding: Folding::CheckedCoercion, ..Function::new(names, Run::Strict(run)) }
}

/// Returns `side` as it is compared with `other`: converted if it is a constant, else unchanged.
pub fn beside(side: Expr, other: &Expr, place: Place, settings: &Settings) -> Expr {
    let (own, ty) = (side.ty(), other.ty());
    // A hexadecimal literal already counts as a number beside numbers.
    let is_hex = own.kind().is_bytes() && own.is_unsigned();
    if own.kind() == Kind::Null || is_hex || !side.is_constant() {
        return side;
    }
    if place == Place::Side && own.is_string() && is_dated(ty.kind()) && !is_literal(&side) {
        return call(dates_of(ty.kind()), side, Type::temporal(Kind::DateTime, 6).with_nullable(true), settings);
    }
    if other.is_constant() {
        return side;
    }
    let is_field = is_field(other);
    let is_side = matches!(place, Place::Side | Place::End);
    let (function, to) = match ty.kind() {
        kind if (kind.is_integer() || kind == Kind::Bit) && own.is_string() => match place {
            Place::Side | Place::End if is_field => (&INTEGER, number_type()),
            Place::Candidate => (&INTEGER, number_type()),
            _ => return side,
        },
        Kind::Decimal if own.is_string() && place != Place::When => (&DECIMAL, number_type()),
        Kind::Year if is_field && is_side && own.kind() != Kind::Json && own.kind() != Kind::Time => {
            (&YEAR, number_type())
        }
        // The time of day of a date or datetime.
        Kind::Time if is_field && is_side && is_dated(own.kind()) => {
            let time = Type::temporal(Kind::Time, own.scale).with_nullable(own.nullable);
            return operators::cast(side, time);
        }
        Kind::Year if own.is_string() => (&INTEGER, number_type()),
        // A date converts to the number of its digits; a datetime has more digits than a date.
        Kind::DateTime | Kind::Timestamp if is_field && own.kind().is_number() => (&MOMENT, Type::null()),
        _ => return side,
    };
    let literal = matches!(side, Expr::Literal(..));
    let to = to.with_nullable(own.nullable);
    let call = call(function, side, to, settings);
    if literal { known(call, settings) } else { call }
}

fn call(function: &'static Function, side: Expr, ty: Type, settings: &Settings) -> Expr {
    let call = Call { function, arguments: vec![side], ty, collation: settings.collation, extra: Extra::default() };
    Expr::Call(Box::new(call))
}

fn dates_of(kind: Kind) -> &'static Function {
    match kind {
        Kind::Date => &DATE,
        Kind::Timestamp => &TIMESTAMP,
        _ => &DATETIME,
    }
}

/// Returns a CHAR column with its padding, any other expression unchanged.
pub fn padded(side: Expr) -> Expr {
    if side.kind() != Kind::Char {
        return side;
    }
    let (ty, collation) = (side.ty(), side.ty().collation);
    let call = Call { function: &PADDED, arguments: vec![side], ty, collation, extra: Extra::default() };
    Expr::Call(Box::new(call))
}

fn filled(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let Value::Text(text) = &values[0] else { return Ok(values[0].clone()) };
    let missing = (call.ty.length as usize).saturating_sub(text.chars().count());
    Ok(Value::text(format!("{text}{}", " ".repeat(missing))))
}

/// A literal, or a parameter whose value only the host has.
fn is_literal(side: &Expr) -> bool {
    let mut is_hosted = false;
    side.walk(&mut |part| is_hosted |= part.reads_outside());
    is_hosted || matches!(side, Expr::Literal(..))
}

/// Returns the value of a literal, unless converting it would warn: warnings belong to the rows.
fn known(call: Expr, settings: &Settings) -> Expr {
    let mut ctx = context_of(settings.sql_mode);
    match call.eval(&[], &mut ctx) {
        Ok(Value::Int(number)) if ctx.warnings.count() == 0 => Expr::integer(number),
        Ok(value) if ctx.warnings.count() == 0 => {
            let ty = Type::of(&value).with_nullable(false);
            Expr::Literal(value, ty)
        }
        _ => call,
    }
}

fn is_dated(kind: Kind) -> bool {
    matches!(kind, Kind::Date | Kind::DateTime | Kind::Timestamp)
}

/// Applies to integers and decimals alike.
fn number_type() -> Type {
    Type::decimal(65, 30)
}

/// Returns whether the expression is a column of a table, a derived table, or an outer row.
pub fn is_field(expr: &Expr) -> bool {
    match expr {
        Expr::Column(..) => true,
        Expr::Outer { .. } => true,
        Expr::Shown(inner) | Expr::Exact(inner) => is_field(inner),
        _ => false,
    }
}

/// Converts a string to its leading number, an integer where possible; returns other values unchanged.
fn number(value: &Value, what: &str, ctx: &mut EvalContext) -> Result<Value> {
    let text = match value {
        Value::Text(text) => text.to_string(),
        Value::Bytes(_) => convert::lossy(value),
        other => return Ok(other.clone()),
    };
    let (prefix, clean) = number_prefix(&text);
    if !clean {
        ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&what, &shorten(&text)]))?;
    }
    if let Ok(number) = prefix.parse::<i64>() {
        return Ok(Value::Int(number));
    }
    if let Ok(number) = prefix.parse::<u64>() {
        return Ok(Value::UInt(number));
    }
    Ok(Value::Decimal(Decimal::parse(prefix).unwrap_or(Decimal::ZERO)))
}

fn integer(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    number(&values[0], "DOUBLE", ctx)
}

fn decimal(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    number(&values[0], "DECIMAL", ctx)
}

/// Converts a number to a year as a YEAR column stores it. A number that no YEAR stores is compared as it is.
fn year(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if let Value::Date(_) | Value::DateTime(_) | Value::Timestamp(_) = &values[0] {
        let at = convert::to_datetime(&values[0], Strictness::default(), ctx)?;
        return Ok(at.map_or(Value::Null, |at| Value::Int(at.date.year.into())));
    }
    let found = number(&values[0], "DOUBLE", ctx)?;
    // The string '0' is the year 2000, the number 0 the zero year.
    let is_text = values[0].as_string_bytes().is_some();
    let whole = match convert::to_integer(&found, ctx)? {
        Value::Int(number) => number,
        _ => return Ok(found),
    };
    Ok(match whole {
        0 if is_text => Value::Int(2000),
        1..=69 => Value::Int(whole + 2000),
        70..=99 => Value::Int(whole + 1900),
        0 | 1901..=2155 => Value::Int(whole),
        _ => found,
    })
}

fn date(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    dated(&values[0], "DATE", ctx)
}

fn datetime(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    dated(&values[0], "DATETIME", ctx)
}

fn timestamp(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    dated(&values[0], "TIMESTAMP", ctx)
}

/// Error 1525 for an invalid date; a parameter of a prepared statement becomes NULL.
fn dated(value: &Value, what: &str, ctx: &mut EvalContext) -> Result<Value> {
    let text = match value {
        Value::Text(text) => text.to_string(),
        Value::Bytes(_) => convert::lossy(value),
        other => return Ok(other.clone()),
    };
    let parsed = temporal::parse_datetime(&text, Strictness::of(ctx.sql_mode()));
    match parsed {
        Some(parsed) if parsed.offset.is_some() => {
            let at = convert::to_datetime(value, Strictness::of(ctx.sql_mode()), ctx)?;
            Ok(at.map_or(Value::Null, Value::DateTime))
        }
        Some(parsed) => {
            if parsed.truncated {
                ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&what.to_lowercase(), &shorten(&text)]))?;
            }
            let is_date = what == "DATE" && !parsed.has_time;
            Ok(if is_date { Value::Date(parsed.value.date) } else { Value::DateTime(parsed.value) })
        }
        None if ctx.state().values_apart => {
            ctx.complain(error::WRONG_VALUE_TEMPORAL.raise(&[&what.to_lowercase(), &shorten(&text)]))?;
            Ok(Value::Null)
        }
        None => Err(no_date(what, &text, ctx.is_strict())),
    }
}

/// `is_strict`: the statement changes rows under a strict mode.
pub fn no_date(what: &str, text: &str, is_strict: bool) -> datum::Fault {
    match is_strict {
        true => error::WRONG_VALUE_TEMPORAL.raise(&[&what.to_lowercase(), &shorten(text)]),
        false => error::WRONG_VALUE.raise(&[&what, &shorten(text)]),
    }
}

/// Returns the datetime whose digits the number is, if there is one.
fn moment(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let whole = match convert::to_decimal(&values[0], ctx)? {
        number if number.truncated(0) == number => number.to_whole(),
        _ => return Ok(values[0].clone()),
    };
    let parsed = i64::try_from(whole).ok().and_then(|number| {
        let rules = Strictness { no_zero_date: false, no_zero_in_date: false, ..Strictness::of(ctx.sql_mode()) };
        temporal::datetime_from_number(number, rules)
    });
    Ok(parsed.map_or_else(|| values[0].clone(), |parsed| Value::DateTime(parsed.value)))
}
