//! Arithmetic and bit operators: `+ - * / DIV %` and others.
//!
//! The values decide the computation: integers in 128 bits, so that every overflow is detected; decimals exactly;
//! everything else as doubles. A result is unsigned if an operand is. It is then converted to the type that the binder
//! announced. A result out of range is error 1690 with the text of the expression.
//!
//! Quotients keep their digits (MY-25).

use crate::error;
use crate::scalar::convert;
use crate::scalar::decimal::Decimal;
use crate::scalar::modes::SqlMode;
use crate::scalar::operation::{Arithmetic, Operator};
use crate::scalar::state::StateOf as _;
use crate::types::{Kind, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::exact_number::ExactOperation;
use query::nodes::expr::Call;
use query::nodes::function::{Finish, Folding, Function, Run};

macro_rules! operators {
    ($($op:ident $name:literal;)*) => {
        /// The operators as functions.
        static FUNCTIONS: &[(Operator, Function)] = &[$((
            Operator::$op,
            Function {
                strict: true,
                folding: Folding::Operator,
                finish: Finish::By(fit),
                exact_operation: exact_operation(Operator::$op),
                ..Function::new(&[$name], Run::Lazy(run))
            },
        )),*];
    };
}

operators! {
    Add "+";
    Subtract "-";
    Multiply "*";
    Divide "/";
    IntDivide "div";
    Modulo "%";
    Negate "<negate>";
    BitAnd "&";
    BitOr "|";
    BitXor "^";
    BitNot "~";
    ShiftLeft "<<";
    ShiftRight ">>";
}

/// Returns the operation of the core that gives the decimals of an operator.
const fn exact_operation(op: Operator) -> Option<ExactOperation> {
    match op {
        Operator::Add => Some(ExactOperation::Add),
        Operator::Subtract => Some(ExactOperation::Subtract),
        Operator::Multiply => Some(ExactOperation::Multiply),
        _ => None,
    }
}

/// Returns the function of an operator: they are listed in the order of the enum.
pub fn function(op: Operator) -> &'static Function {
    &FUNCTIONS[op as usize].1
}

/// Returns the value before it is rounded to the digits that its type shows.
fn run(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(node) = Arithmetic::of(call) else { unreachable!("the binder gives the operator with its function") };
    let left = node.left.eval_exact(row, ctx)?;
    let right = node.right.map_or(Ok(Value::Null), |right| right.eval_exact(row, ctx))?;
    compute(&node, left, right, ctx)
}

/// Returns the type of the result, from the types of both sides.
pub fn result_type(op: Operator, left: &Type, right: &Type, increment: u8, mode: SqlMode) -> Type {
    let nullable = left.nullable || right.nullable;
    let (a, b) = (operand(left), operand(right));
    let unsigned = a.is_unsigned() || b.is_unsigned();
    let double = a.kind() == Kind::Double || b.kind() == Kind::Double;
    let decimal = a.kind() == Kind::Decimal || b.kind() == Kind::Decimal;
    let whole = |length: u32, unsigned| Type { length, ..Type::integer().with_unsigned(unsigned) };
    let exact = |whole: u32, scale: u8, unsigned| {
        Type::decimal((whole + u32::from(scale)).clamp(1, 65), scale).with_unsigned(unsigned)
    };
    let digits = |ty: &Type| digits(ty).saturating_sub(u32::from(ty.scale));
    let scale = a.scale.max(b.scale);
    let ty = match op {
        Operator::BitAnd | Operator::BitOr | Operator::BitXor
            if left.kind().is_bytes() && right.kind().is_bytes() && !(left.is_unsigned() && right.is_unsigned()) =>
        {
            Type::bytes(left.length.max(right.length))
        }
        Operator::BitNot | Operator::ShiftLeft | Operator::ShiftRight
            if left.kind().is_bytes() && !left.is_unsigned() =>
        {
            Type::bytes(left.length)
        }
        Operator::BitAnd
        | Operator::BitOr
        | Operator::BitXor
        | Operator::BitNot
        | Operator::ShiftLeft
        | Operator::ShiftRight => Type::unsigned(),
        Operator::IntDivide => whole(a.length, unsigned),
        _ if double => Type { scale: shown_digits(op, left, right, increment), ..Type::double() },
        Operator::Divide => exact(digits(&a) + u32::from(b.scale), (a.scale + increment).min(30), unsigned),
        Operator::Negate if decimal => a.with_unsigned(false),
        Operator::Negate => whole(a.length + u32::from(a.is_unsigned()), false),
        Operator::Multiply if decimal => exact(digits(&a) + digits(&b), (a.scale + b.scale).min(30), unsigned),
        Operator::Modulo if decimal => exact(digits(&a).max(digits(&b)), scale, a.is_unsigned()),
        Operator::Add | Operator::Subtract if decimal => exact(digits(&a).max(digits(&b)) + 1, scale, unsigned),
        Operator::Modulo => whole(a.length.max(b.length), a.is_unsigned()),
        Operator::Subtract if mode.has(SqlMode::NO_UNSIGNED_SUBTRACTION) => whole(a.length.max(b.length) + 1, false),
        Operator::Multiply => whole(digits(&a) + digits(&b) + u32::from(!unsigned), unsigned),
        _ => whole(a.length.max(b.length) + 1, unsigned),
    };
    let may_fail = matches!(op, Operator::Divide | Operator::IntDivide | Operator::Modulo);
    ty.with_nullable(nullable || may_fail)
}

/// Returns the fractional digits of a double: fixed only if both sides have fixed ones.
fn shown_digits(op: Operator, left: &Type, right: &Type, increment: u8) -> u8 {
    let digits = |ty: &Type| match ty.kind() {
        kind if kind.is_integer() => 0,
        Kind::Decimal | Kind::Float | Kind::Double => ty.scale,
        _ => Type::FLOATING,
    };
    let widest = match op {
        Operator::Negate => digits(left),
        _ => digits(left).max(digits(right)),
    };
    let more = if op == Operator::Divide { increment } else { 0 };
    (widest + more).min(Type::FLOATING)
}

/// Returns the digits of an operand. The display width of an integer includes its sign.
pub fn digits(ty: &Type) -> u32 {
    ty.length.saturating_sub(u32::from(ty.kind().is_integer() && !ty.is_unsigned())).max(1)
}

/// Returns the type as which an operand counts: integer, decimal or double.
pub fn operand(ty: &Type) -> Type {
    match ty.kind() {
        Kind::Decimal => ty.clone(),
        Kind::BigInt => ty.clone(),
        // All digits of the type count, whatever its display width.
        kind if kind.is_integer() => {
            let length = kind.default_length().0 - u32::from(ty.is_unsigned());
            Type { length, ..ty.clone().with_kind(Kind::BigInt) }
        }
        Kind::Bit => Type { length: 20, ..ty.clone().with_kind(Kind::BigInt).with_unsigned(true) },
        Kind::Year => Type { length: 4, ..ty.clone().with_kind(Kind::BigInt).with_unsigned(true) },
        Kind::Null => Type { length: 1, ..Type::integer() },
        Kind::Date => Type { length: 9, ..Type::integer() },
        Kind::Time | Kind::DateTime | Kind::Timestamp => {
            let whole = if ty.kind() == Kind::Time { 7 } else { 14 };
            if ty.scale == 0 {
                Type { length: whole + 1, ..Type::integer() }
            } else {
                Type::decimal(whole + u32::from(ty.scale), ty.scale)
            }
        }
        kind if kind.is_bytes() && ty.is_unsigned() => Type::unsigned(),
        Kind::Double => Type { scale: ty.scale, ..Type::double() },
        _ => Type::double(),
    }
}

/// The value before it is rounded to the digits that its type shows.
pub fn compute(node: &Arithmetic<'_>, left: Value, right: Value, ctx: &mut EvalContext) -> Result<Value> {
    if let (Value::Int(a), Value::Int(b), Kind::BigInt) = (&left, &right, node.ty.kind()) {
        let small = match node.op {
            Operator::Add => a.checked_add(*b),
            Operator::Subtract => a.checked_sub(*b),
            Operator::Multiply => a.checked_mul(*b),
            _ => None,
        };
        if let Some(number) = small {
            return Ok(Value::Int(number));
        }
    }
    if left.is_null() || (right.is_null() && !matches!(node.op, Operator::Negate | Operator::BitNot)) {
        return Ok(Value::Null);
    }
    match node.op {
        Operator::Negate => negate(node, left, ctx),
        Operator::BitAnd
        | Operator::BitOr
        | Operator::BitXor
        | Operator::BitNot
        | Operator::ShiftLeft
        | Operator::ShiftRight => bits(node, &left, &right, ctx),
        Operator::IntDivide => int_divide(node, left, right, ctx),
        _ => match (&left, &right) {
            (Value::Int(a), Value::Int(b)) if node.op != Operator::Divide && node.ty.kind() == Kind::BigInt => {
                integers(node, (*a).into(), (*b).into(), false, ctx)
            }
            _ => mixed(node, left, right, ctx),
        },
    }
}

/// Rounds to the digits that the type shows, and converts to its kind.
pub fn fit(value: Value, ty: &Type) -> Value {
    match (value, ty.kind()) {
        (Value::Decimal(decimal), Kind::Decimal) if decimal.scale() != ty.scale.into() => {
            Value::Decimal(decimal.rounded(ty.scale.into()))
        }
        (Value::Int(number), Kind::Decimal) => Value::Decimal(Decimal::from(number).rounded(ty.scale.into())),
        (Value::UInt(number), Kind::Decimal) => Value::Decimal(Decimal::from(number).rounded(ty.scale.into())),
        (Value::Int(number), Kind::Double) => Value::Double(number as f64),
        (Value::UInt(number), Kind::Double) => Value::Double(number as f64),
        (Value::Decimal(decimal), Kind::Double) => Value::Double(decimal.to_f64()),
        (value, _) => value,
    }
}

fn out_of_range(what: &str, node: &Arithmetic<'_>) -> datum::Fault {
    error::DATA_OUT_OF_RANGE.raise(&[&what, &node.text])
}

fn name_of(unsigned: bool) -> &'static str {
    if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" }
}

/// Converts an integer result to 64 bits, or fails.
fn settle(node: &Arithmetic<'_>, number: i128, unsigned: bool) -> Result<Value> {
    let fitted = match unsigned {
        true => u64::try_from(number).map(Value::UInt).ok(),
        false => i64::try_from(number).map(Value::Int).ok(),
    };
    fitted.ok_or_else(|| out_of_range(name_of(unsigned), node))
}

fn integers(node: &Arithmetic<'_>, a: i128, b: i128, unsigned: bool, ctx: &mut EvalContext) -> Result<Value> {
    let number = match node.op {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => match a.checked_mul(b) {
            Some(product) => product,
            None => return Err(out_of_range(name_of(unsigned), node)),
        },
        _ if b == 0 => return divided_by_zero(ctx),
        _ => a % b,
    };
    settle(node, number, unsigned)
}

pub fn divided_by_zero(ctx: &mut EvalContext) -> Result<Value> {
    if ctx.sql_mode().has(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
        ctx.complain(error::DIVISION_BY_ZERO.raise(&[]))?;
    }
    Ok(Value::Null)
}

/// Converts an operand to a number.
fn number(value: Value, ctx: &mut EvalContext) -> Result<Value> {
    Ok(match value {
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_) => value,
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => {
            let decimal = convert::temporal_number(&value, ctx);
            if decimal.scale() == 0 { convert::whole_of_i128(decimal.to_whole()) } else { Value::Decimal(decimal) }
        }
        other => Value::Double(convert::to_f64(&other, ctx)?),
    })
}

fn wide(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some((*number).into()),
        Value::UInt(number) => Some((*number).into()),
        _ => None,
    }
}

fn mixed(node: &Arithmetic<'_>, left: Value, right: Value, ctx: &mut EvalContext) -> Result<Value> {
    let (a, b) = (number(left, ctx)?, number(right, ctx)?);
    if matches!(a, Value::Double(_)) || matches!(b, Value::Double(_)) || node.ty.kind() == Kind::Double {
        return doubles(node, convert::to_f64(&a, ctx)?, convert::to_f64(&b, ctx)?, ctx);
    }
    if let (Some(x), Some(y), true) =
        (wide(&a), wide(&b), node.op != Operator::Divide && node.ty.kind() == Kind::BigInt)
    {
        let unsigned = match node.op {
            Operator::Modulo => matches!(a, Value::UInt(_)),
            Operator::Subtract if ctx.sql_mode().has(SqlMode::NO_UNSIGNED_SUBTRACTION) => false,
            _ => matches!(a, Value::UInt(_)) || matches!(b, Value::UInt(_)),
        };
        return integers(node, x, y, unsigned, ctx);
    }
    decimals(node, convert::to_decimal(&a, ctx)?, convert::to_decimal(&b, ctx)?, ctx)
}

fn decimals(node: &Arithmetic<'_>, a: Decimal, b: Decimal, ctx: &mut EvalContext) -> Result<Value> {
    let result = match node.op {
        Operator::Add => a.plus(&b),
        Operator::Subtract => a.minus(&b),
        Operator::Multiply => a.times(&b),
        Operator::Divide => match a.divided(&b, node.increment) {
            Some(quotient) => quotient,
            None => return divided_by_zero(ctx),
        },
        _ => match a.remainder(&b) {
            Some(rest) => rest,
            None => return divided_by_zero(ctx),
        },
    };
    if result.whole_digits() > 81 {
        return Err(out_of_range("DECIMAL", node));
    }
    Ok(Value::Decimal(result))
}

fn doubles(node: &Arithmetic<'_>, a: f64, b: f64, ctx: &mut EvalContext) -> Result<Value> {
    let result = match node.op {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        _ if b == 0.0 => return divided_by_zero(ctx),
        Operator::Divide => a / b,
        _ => a % b,
    };
    if !result.is_finite() {
        return Err(out_of_range("DOUBLE", node));
    }
    Ok(Value::Double(result))
}

fn negate(node: &Arithmetic<'_>, value: Value, ctx: &mut EvalContext) -> Result<Value> {
    let value = number(value, ctx)?;
    match (&value, wide(&value)) {
        (_, Some(wide)) if node.ty.kind() == Kind::Decimal => Ok(Value::Decimal(Decimal::new(-wide, 0))),
        (_, Some(wide)) => settle(node, -wide, false),
        (Value::Decimal(decimal), _) => Ok(Value::Decimal(decimal.negated())),
        _ => Ok(Value::Double(-convert::to_f64(&value, ctx)?)),
    }
}

fn int_divide(node: &Arithmetic<'_>, left: Value, right: Value, ctx: &mut EvalContext) -> Result<Value> {
    let (a, b) = (number(left, ctx)?, number(right, ctx)?);
    let unsigned = matches!(a, Value::UInt(_)) || matches!(b, Value::UInt(_)) || node.ty.is_unsigned();
    if let Some((a, b)) = wide(&a).zip(wide(&b)) {
        return if b == 0 { divided_by_zero(ctx) } else { settle(node, a / b, unsigned) };
    }
    let (a, b) = (convert::to_decimal(&a, ctx)?, convert::to_decimal(&b, ctx)?);
    match a.divided(&b, 0) {
        Some(quotient) => settle(node, quotient.truncated(0).small().unwrap_or(i128::MAX), unsigned),
        None => divided_by_zero(ctx),
    }
}

fn bits(node: &Arithmetic<'_>, left: &Value, right: &Value, ctx: &mut EvalContext) -> Result<Value> {
    if let (Value::Bytes(a), true) = (left, node.ty.kind() == Kind::VarBinary) {
        return byte_strings(node.op, a, right, ctx);
    }
    let a = convert::to_bits(left, ctx)?;
    if node.op == Operator::BitNot {
        return Ok(Value::UInt(!a));
    }
    let b = convert::to_bits(right, ctx)?;
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    Ok(Value::UInt(match node.op {
        Operator::BitAnd => a & b,
        Operator::BitOr => a | b,
        Operator::BitXor => a ^ b,
        Operator::ShiftLeft => a.checked_shl(shift).unwrap_or(0),
        _ => a.checked_shr(shift).unwrap_or(0),
    }))
}

/// Combines byte strings of equal length bit by bit.
fn byte_strings(op: Operator, a: &[u8], right: &Value, ctx: &mut EvalContext) -> Result<Value> {
    let pairwise = |apply: fn(u8, u8) -> u8| match right {
        Value::Bytes(b) if a.len() == b.len() => {
            Ok(Value::bytes(a.iter().zip(b.iter()).map(|(a, b)| apply(*a, *b)).collect::<Vec<_>>()))
        }
        _ => Err(error::INVALID_BITWISE_OPERANDS_SIZE.raise(&[])),
    };
    match op {
        Operator::BitAnd => pairwise(|a, b| a & b),
        Operator::BitOr => pairwise(|a, b| a | b),
        Operator::BitXor => pairwise(|a, b| a ^ b),
        Operator::BitNot => Ok(Value::bytes(a.iter().map(|byte| !byte).collect::<Vec<_>>())),
        _ => {
            let by = convert::to_bits(right, ctx)?;
            Ok(Value::bytes(shifted(a, by, op == Operator::ShiftLeft)))
        }
    }
}

fn shifted(bytes: &[u8], by: u64, left: bool) -> Vec<u8> {
    let (whole, part) = (usize::try_from(by / 8).unwrap_or(usize::MAX), (by % 8) as u32);
    let at = |index: Option<usize>| index.and_then(|index| bytes.get(index)).copied().unwrap_or(0);
    (0..bytes.len())
        .map(|place| {
            let (near, far) = match left {
                true => (place.checked_add(whole), place.checked_add(whole).and_then(|near| near.checked_add(1))),
                false => (place.checked_sub(whole), place.checked_sub(whole).and_then(|near| near.checked_sub(1))),
            };
            let pair = match left {
                true => u16::from_be_bytes([at(near), at(far)]) << part >> 8,
                false => u16::from_be_bytes([at(far), at(near)]) >> part,
            };
            pair as u8
        })
        .collect()
}
