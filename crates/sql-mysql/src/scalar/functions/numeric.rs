//! Numeric functions.

use super::entry::{Args, FunctionEntry, Returns, exact, row, volatile};
use crate::error;
use crate::scalar::arithmetic::{self, divided_by_zero};
use crate::scalar::convert;
use crate::scalar::decimal::{Decimal, SCALE_MAX};
use crate::scalar::settings::Settings;
use crate::scalar::state::Random;
use crate::scalar::state::StateOf as _;
use crate::types::{Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::Run;

pub const FUNCTIONS: &[FunctionEntry] = &[
    exact(row(&["abs"], 1, 1, Returns::Custom(type_of_number), Run::Strict(abs))),
    exact(row(&["sign"], 1, 1, Returns::Int, Run::Strict(sign))),
    // The binder replaces calls by the operator; the row registers the name.
    exact(row(&["mod"], 2, 2, Returns::Union(0), Run::Strict(modulo))),
    exact(row(&["ceiling", "ceil"], 1, 1, Returns::Custom(type_of_whole), Run::Strict(ceiling))),
    exact(row(&["floor"], 1, 1, Returns::Custom(type_of_whole), Run::Strict(floor))),
    exact(row(&["round"], 1, 2, Returns::Custom(type_of_round), Run::Strict(round))),
    exact(row(&["truncate"], 2, 2, Returns::Custom(type_of_round), Run::Strict(truncate))),
    exact(row(&["sqrt"], 1, 1, Returns::Double, Run::Strict(sqrt))),
    exact(row(&["pow", "power"], 2, 2, Returns::Double, Run::Strict(pow))),
    exact(row(&["exp"], 1, 1, Returns::Double, Run::Strict(exp))),
    exact(row(&["ln"], 1, 1, Returns::Double, Run::Strict(ln))),
    exact(row(&["log"], 1, 2, Returns::Double, Run::Strict(log))),
    exact(row(&["log2"], 1, 1, Returns::Double, Run::Strict(log2))),
    exact(row(&["log10"], 1, 1, Returns::Double, Run::Strict(log10))),
    exact(row(&["sin"], 1, 1, Returns::Double, Run::Strict(sin))),
    exact(row(&["cos"], 1, 1, Returns::Double, Run::Strict(cos))),
    exact(row(&["tan"], 1, 1, Returns::Double, Run::Strict(tan))),
    exact(row(&["cot"], 1, 1, Returns::Double, Run::Strict(cot))),
    exact(row(&["asin"], 1, 1, Returns::Double, Run::Strict(asin))),
    exact(row(&["acos"], 1, 1, Returns::Double, Run::Strict(acos))),
    exact(row(&["atan", "atan2"], 1, 2, Returns::Double, Run::Strict(atan))),
    exact(row(&["radians"], 1, 1, Returns::Double, Run::Strict(radians))),
    exact(row(&["degrees"], 1, 1, Returns::Double, Run::Strict(degrees))),
    row(&["pi"], 0, 0, Returns::Custom(type_of_pi), Run::Strict(pi)),
    volatile(row(&["rand"], 0, 1, Returns::Double, Run::Values(rand))),
    row(&["bit_count"], 1, 1, Returns::Int, Run::Strict(bit_count)),
    row(&["conv"], 3, 3, Returns::Plain(64), Run::Strict(conv)),
    row(&["bin"], 1, 1, Returns::Plain(64), Run::Strict(bin)),
    row(&["oct"], 1, 1, Returns::Plain(64), Run::Strict(oct)),
    row(&["crc32"], 1, 1, Returns::UInt, Run::Strict(crc32)),
];

fn type_of_number(arguments: &[Expr], _: &Settings) -> Result<Type> {
    Ok(arithmetic::operand(&arguments[0].ty()).with_nullable(arguments[0].ty().nullable))
}

fn type_of_whole(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    let ty = type_of_number(arguments, settings)?;
    Ok(match ty.kind() {
        Kind::Decimal if ty.length - u32::from(ty.scale) < 18 => {
            Type { length: 17, nullable: ty.nullable, ..Type::integer() }
        }
        Kind::Decimal => Type { nullable: ty.nullable, ..Type::decimal(ty.length - u32::from(ty.scale), 0) },
        Kind::Double if ty.scale < Type::FLOATING => Type { scale: 0, ..ty },
        _ => ty,
    })
}

/// ROUND and TRUNCATE: a literal number of digits fixes the scale; otherwise the argument's scale stays.
fn type_of_round(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    let ty = type_of_number(arguments, settings)?;
    let digits = match arguments.get(1) {
        None => Some(0),
        Some(Expr::Literal(Value::Int(digits), _)) => Some(*digits),
        Some(_) => None,
    };
    Ok(match (ty.kind(), digits) {
        // More digits than a decimal can have change nothing.
        (Kind::Decimal, Some(digits)) if digits > SCALE_MAX.into() => ty.with_nullable(true),
        (Kind::Decimal, Some(digits)) => {
            let scale = digits.clamp(0, SCALE_MAX.into()) as u8;
            let whole = ty.length - u32::from(ty.scale) + 1;
            Type { nullable: true, ..Type::decimal((whole + u32::from(scale)).min(65), scale) }
        }
        // A double without fixed digits keeps all of them.
        (Kind::Double, Some(_)) if ty.scale >= Type::FLOATING => ty.with_nullable(true),
        (Kind::Double, Some(digits)) => {
            Type { scale: digits.clamp(0, Type::FLOATING.into()) as u8, nullable: true, ..ty }
        }
        _ => ty.with_nullable(true),
    })
}

fn type_of_pi(_: &[Expr], _: &Settings) -> Result<Type> {
    Ok(Type { length: 8, scale: 6, nullable: false, ..Type::double() })
}

/// Converts the argument to an integer, decimal or double.
fn number(call: &Call, value: &Value, ctx: &mut EvalContext) -> Result<Value> {
    if let Some(number) = crate::scalar::cast::hex_number(value, &call.arguments[0].ty()) {
        return Ok(Value::UInt(number));
    }
    Ok(match (value, arithmetic::operand(&call.arguments[0].ty()).kind()) {
        (Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_), _) => value.clone(),
        (_, Kind::Decimal) => Value::Decimal(convert::to_decimal(value, ctx)?),
        (_, Kind::BigInt) => convert::to_integer(value, ctx)?,
        _ => Value::Double(convert::to_f64(value, ctx)?),
    })
}

fn out_of_range(what: &str, call: &Call) -> datum::Fault {
    error::DATA_OUT_OF_RANGE.raise(&[&what, &format!("{}(...)", call.function.name())])
}

fn abs(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(match number(call, &values[0], ctx)? {
        Value::Int(number) => Value::Int(number.checked_abs().ok_or_else(|| out_of_range("BIGINT", call))?),
        Value::Decimal(decimal) => Value::Decimal(decimal.abs()),
        Value::Double(number) => Value::Double(number.abs()),
        other => other,
    })
}

fn sign(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(match number(call, &values[0], ctx)? {
        Value::Int(number) => number.signum(),
        Value::UInt(number) => i64::from(number > 0),
        Value::Decimal(decimal) if decimal.is_zero() => 0,
        Value::Decimal(decimal) => {
            if decimal.is_negative() {
                -1
            } else {
                1
            }
        }
        Value::Double(0.0) => 0,
        Value::Double(number) => number.signum() as i64,
        _ => 0,
    }))
}

fn modulo(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    match args.decimal(0, ctx)?.remainder(&args.decimal(1, ctx)?) {
        Some(rest) => Ok(Value::Decimal(rest)),
        None => divided_by_zero(ctx),
    }
}

fn ceiling(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    whole(call, values, Decimal::ceiling, f64::ceil, ctx)
}

fn floor(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    whole(call, values, Decimal::floor, f64::floor, ctx)
}

fn whole(
    call: &Call,
    values: &[Value],
    exact: fn(&Decimal) -> Decimal,
    double: fn(f64) -> f64,
    ctx: &mut EvalContext,
) -> Result<Value> {
    Ok(match number(call, &values[0], ctx)? {
        Value::Decimal(decimal) => match call.ty.kind() {
            Kind::BigInt => convert::whole_of_i128(exact(&decimal).to_whole()),
            _ => Value::Decimal(exact(&decimal)),
        },
        Value::Double(number) => Value::Double(double(number)),
        other => other,
    })
}

fn round(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    rounded(call, values, true, ctx)
}

fn truncate(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    rounded(call, values, false, ctx)
}

fn rounded(call: &Call, values: &[Value], round: bool, ctx: &mut EvalContext) -> Result<Value> {
    let digits = Args::new(call, values).int_or(1, 0, ctx)?.clamp(-400, 400);
    let exact = |decimal: Decimal| match u32::try_from(-digits) {
        Ok(before @ 1..) => decimal.at_power(before, round),
        _ => {
            let scale = digits.clamp(0, SCALE_MAX.into()) as u8;
            let scale = scale.min(call.ty.scale.max(decimal.bounded_scale()));
            if round { decimal.rounded(scale.into()) } else { decimal.truncated(scale.into()) }
        }
    };
    Ok(match number(call, &values[0], ctx)? {
        Value::Double(number) => Value::Double(round_double(number, digits as i32, round)),
        Value::Decimal(decimal) => arithmetic::fit(Value::Decimal(exact(decimal)), &call.ty),
        integer if digits >= 0 => arithmetic::fit(integer, &call.ty),
        integer => {
            let unsigned = matches!(integer, Value::UInt(_));
            let whole = exact(convert::to_decimal(&integer, ctx)?).to_whole();
            let fitted = if unsigned {
                u64::try_from(whole).map(Value::UInt).ok()
            } else {
                i64::try_from(whole).map(Value::Int).ok()
            };
            fitted.ok_or_else(|| out_of_range("BIGINT", call))?
        }
    })
}

/// Doubles round half to even, as the processor does.
fn round_double(number: f64, digits: i32, round: bool) -> f64 {
    let unit = 10f64.powi(digits.abs());
    if digits < 0 && !unit.is_finite() {
        return 0.0;
    }
    let scaled = if digits >= 0 { number * unit } else { number / unit };
    if !scaled.is_finite() {
        return if digits >= 0 { number } else { 0.0 };
    }
    let cut = if round { scaled.round_ties_even() } else { scaled.trunc() };
    let result = if digits >= 0 { cut / unit } else { cut * unit };
    if result.is_finite() { result } else { number }
}

/// Returns NULL outside the function's domain.
fn double(call: &Call, values: &[Value], of: impl Fn(f64) -> f64, ctx: &mut EvalContext) -> Result<Value> {
    let number = of(Args::new(call, values).f64(0, ctx)?);
    if number.is_infinite() {
        return Err(out_of_range("DOUBLE", call));
    }
    Ok(if number.is_nan() { Value::Null } else { Value::Double(number) })
}

fn sqrt(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, f64::sqrt, ctx)
}

fn pow(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let exponent = Args::new(call, values).f64(1, ctx)?;
    double(call, values, |base| base.powf(exponent), ctx)
}

fn exp(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, f64::exp, ctx)
}

/// Returns NULL with a warning for an argument that is not positive.
fn logarithm(number: f64, of: fn(f64) -> f64, ctx: &mut EvalContext) -> Result<Option<f64>> {
    if number <= 0.0 {
        ctx.complain(error::INVALID_ARGUMENT_FOR_LOGARITHM.raise(&[]))?;
        return Ok(None);
    }
    Ok(Some(of(number)))
}

fn ln(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let number = Args::new(call, values).f64(0, ctx)?;
    Ok(logarithm(number, f64::ln, ctx)?.map_or(Value::Null, Value::Double))
}

fn log(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.len() == 1 {
        return ln(call, values, ctx);
    }
    let (base, number) = (args.f64(0, ctx)?, args.f64(1, ctx)?);
    let Some(base) = logarithm(base, f64::ln, ctx)? else {
        return Ok(Value::Null);
    };
    let Some(number) = logarithm(number, f64::ln, ctx)? else {
        return Ok(Value::Null);
    };
    if base == 0.0 {
        ctx.complain(error::INVALID_ARGUMENT_FOR_LOGARITHM.raise(&[]))?;
        return Ok(Value::Null);
    }
    Ok(Value::Double(number / base))
}

fn log2(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let number = Args::new(call, values).f64(0, ctx)?;
    Ok(logarithm(number, f64::log2, ctx)?.map_or(Value::Null, Value::Double))
}

fn log10(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let number = Args::new(call, values).f64(0, ctx)?;
    Ok(logarithm(number, f64::log10, ctx)?.map_or(Value::Null, Value::Double))
}

fn sin(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, f64::sin, ctx)
}

fn cos(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, f64::cos, ctx)
}

fn tan(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, f64::tan, ctx)
}

fn cot(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, |number| 1.0 / number.tan(), ctx)
}

fn asin(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, f64::asin, ctx)
}

fn acos(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, f64::acos, ctx)
}

fn atan(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values.len() == 1 {
        return double(call, values, f64::atan, ctx);
    }
    let other = Args::new(call, values).f64(1, ctx)?;
    double(call, values, |number| number.atan2(other), ctx)
}

fn radians(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, |degrees| degrees * (std::f64::consts::PI / 180.0), ctx)
}

fn degrees(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    double(call, values, |radians| radians * (180.0 / std::f64::consts::PI), ctx)
}

fn pi(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Double(std::f64::consts::PI))
}

/// RAND(seed): a literal seed starts MySQL's own sequence, which continues from row to row; any other seed yields the first number of its sequence.
fn rand(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values.is_empty() {
        return Ok(Value::Double(ctx.state_mut().random.draw()));
    }
    let seed = Args::new(call, values).int(0, ctx)?;
    let fresh = || Random::from_seed(seed as u32);
    if !matches!(call.arguments[0], Expr::Literal(..)) {
        return Ok(Value::Double(fresh().draw()));
    }
    let (place, now) = (std::ptr::from_ref(call) as usize, ctx.now);
    ctx.state_mut().seeded.retain(|(_, began, _)| *began == now);
    let known = ctx.state().seeded.iter().position(|(known, _, _)| *known == place);
    let at = known.unwrap_or_else(|| {
        ctx.state_mut().seeded.push((place, now, fresh()));
        ctx.state().seeded.len() - 1
    });
    Ok(Value::Double(ctx.state_mut().seeded[at].2.draw()))
}

fn bit_count(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if let (Value::Bytes(bytes), true) = (&values[0], call.arguments[0].kind().is_bytes()) {
        return Ok(Value::Int(bytes.iter().map(|byte| i64::from(byte.count_ones())).sum()));
    }
    Ok(Value::Int(convert::to_bits(&values[0], ctx)?.count_ones().into()))
}

fn to_base(number: u64, base: u32) -> String {
    let mut digits = Vec::new();
    let mut rest = number;
    loop {
        digits.extend(char::from_digit((rest % u64::from(base)) as u32, base));
        rest /= u64::from(base);
        if rest == 0 {
            break;
        }
    }
    digits.iter().rev().map(char::to_ascii_uppercase).collect()
}

/// CONV: a negative base makes the number signed.
fn conv(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (from, to) = (args.int(1, ctx)?, args.int(2, ctx)?);
    let valid = |base: i64| (2..=36).contains(&base.unsigned_abs());
    let text = args.text(0, ctx);
    let text = text.trim_start();
    if !valid(from) || !valid(to) || text.is_empty() {
        return Ok(Value::Null);
    }
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let base = from.unsigned_abs() as u32;
    let digits = digits.chars().map_while(|c| c.to_digit(base));
    let number = digits.fold(0u64, |number, digit| {
        number.checked_mul(base.into()).and_then(|n| n.checked_add(digit.into())).unwrap_or(u64::MAX)
    });
    let number = if negative { number.wrapping_neg() } else { number };
    let out = to.unsigned_abs() as u32;
    let signed = number as i64;
    Ok(Value::text(match to < 0 && signed < 0 {
        true => format!("-{}", to_base(signed.unsigned_abs(), out)),
        false => to_base(number, out),
    }))
}

fn in_base(values: &[Value], base: u32, ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(to_base(convert::to_bits(&values[0], ctx)?, base)))
}

fn bin(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    in_base(values, 2, ctx)
}

fn oct(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    in_base(values, 8, ctx)
}

fn crc32(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let bytes = Args::new(call, values).own_bytes(0, ctx);
    Ok(Value::UInt(crc32_of(&bytes).into()))
}

pub fn crc32_of(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
