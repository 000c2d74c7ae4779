//! Control flow functions, and those that choose among their arguments.

use std::cmp::Ordering;

use super::entry::{Args, FunctionEntry, MANY, Returns, exact, row};
use crate::error::SqlError;
use crate::scalar::settings::Settings;
use crate::scalar::{bind, compare, operators};
use crate::types::{Collation, Kind, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::comparison::ComparisonType;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr, Extra};
use query::nodes::function::{Function, Run};

pub const FUNCTIONS: &[FunctionEntry] = &[
    row(&["if"], 3, 3, Returns::Custom(type_of_if), Run::Lazy(if_)),
    row(&["ifnull"], 2, 2, Returns::Custom(type_of_ifnull), Run::Lazy(coalesce)),
    row(&["coalesce"], 1, MANY, Returns::Custom(type_of_coalesce), Run::Lazy(coalesce)),
    exact(row(&["nullif"], 2, 2, Returns::First, Run::Values(nullif))),
    // The binder makes a node of its own; the row registers the name.
    row(&["isnull"], 1, 1, Returns::Truth, Run::Values(isnull)),
    exact(row(&["greatest"], 2, MANY, Returns::Custom(type_of_extreme), Run::Strict(greatest))),
    exact(row(&["least"], 2, MANY, Returns::Custom(type_of_extreme), Run::Strict(least))),
    row(&["interval"], 2, MANY, Returns::Int, Run::Values(interval)),
    exact(row(&["any_value"], 1, 1, Returns::First, Run::Values(first))),
];

/// Fails as something that is not served.
static UNSUPPORTED: Function = Function { volatile: true, ..Function::new(&["unsupported"], Run::Lazy(fail)) };

/// Returns an expression that fails when it is evaluated: `what` is not served.
pub fn unsupported(what: String) -> Expr {
    let extra = Extra { text: what.into(), ..Extra::default() };
    let (arguments, ty, collation) = (Vec::new(), Type::null(), Collation::Binary);
    Expr::Call(Box::new(Call { function: &UNSUPPORTED, arguments, ty, collation, extra }))
}

fn fail(call: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Err(SqlError::unsupported(&call.extra.text).into())
}

fn type_of_if(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    bind::common_type(&[&arguments[1], &arguments[2]], "if", settings)
}

fn type_of_ifnull(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    let nullable = arguments[1].ty().nullable;
    Ok(bind::common_type(&arguments.iter().collect::<Vec<_>>(), "ifnull", settings)?.with_nullable(nullable))
}

fn type_of_coalesce(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    let nullable = arguments.iter().all(|argument| argument.ty().nullable);
    Ok(bind::common_type(&arguments.iter().collect::<Vec<_>>(), "coalesce", settings)?.with_nullable(nullable))
}

/// GREATEST and LEAST: beside a date, texts and numbers are compared as dates, or as datetimes if a typed argument is one.
fn type_of_extreme(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    let types: Vec<Type> = arguments.iter().map(Expr::ty).collect();
    let is_dated = |ty: &Type| matches!(ty.kind(), Kind::Date | Kind::DateTime | Kind::Timestamp);
    let fits =
        |ty: &Type| ty.kind().is_temporal() || ty.is_string() || ty.kind().is_number() || ty.kind() == Kind::Null;
    let ty = bind::common_type(&arguments.iter().collect::<Vec<_>>(), "greatest", settings)?;
    if !types.iter().any(is_dated) || !types.iter().all(fits) || ty.kind().is_temporal() {
        return Ok(ty);
    }
    let kind = match types.iter().all(|ty| ty.kind() == Kind::Date || !ty.kind().is_temporal()) {
        true => Kind::Date,
        false => Kind::DateTime,
    };
    let scale = types.iter().filter(|ty| ty.kind().is_temporal()).map(|ty| ty.scale).max().unwrap_or(0);
    Ok(Type::temporal(kind, scale).with_nullable(true))
}

fn if_(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let chosen = &call.arguments[if call.arguments[0].holds(row, ctx)? { 1 } else { 2 }];
    let value = chosen.eval_exact(row, ctx)?;
    operators::unify_exact(value, &chosen.ty(), &call.ty, ctx)
}

fn coalesce(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    for argument in &call.arguments {
        let value = argument.eval_exact(row, ctx)?;
        if !value.is_null() {
            return operators::unify_exact(value, &argument.ty(), &call.ty, ctx);
        }
    }
    Ok(Value::Null)
}

/// NULLIF: compares as `=` does, in the common collation of both arguments.
fn nullif(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let [a, b] = [&values[0], &values[1]];
    let domain = compare::domain(&call.arguments[0].ty(), &call.arguments[1].ty(), call.collation);
    if !a.is_null() && !b.is_null() && compare::order(domain, a, b, ctx)?.is_eq() {
        return Ok(Value::Null);
    }
    Ok(a.clone())
}

fn isnull(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::from(values[0].is_null()))
}

fn greatest(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    extreme(call, values, Ordering::Greater, ctx)
}

fn least(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    extreme(call, values, Ordering::Less, ctx)
}

/// Converts all arguments to the common type first.
fn extreme(call: &Call, values: &[Value], wanted: Ordering, ctx: &mut EvalContext) -> Result<Value> {
    let domain = match call.ty.kind() {
        kind if kind.is_text() => ComparisonType::Text(call.ty.collation),
        kind if kind.is_bytes() => ComparisonType::Bytes,
        _ => compare::own_domain(&call.ty),
    };
    let mut best: Option<Value> = None;
    for (value, argument) in values.iter().zip(&call.arguments) {
        let value = operators::unify_exact(value.clone(), &argument.ty(), &call.ty, ctx)?;
        // The text is not a date.
        if value.is_null() {
            return Ok(Value::Null);
        }
        let better = match &best {
            None => true,
            Some(known) => compare::order(domain, &value, known, ctx)? == wanted,
        };
        if better {
            best = Some(value);
        }
    }
    Ok(best.unwrap_or_default())
}

/// INTERVAL(n, ...): returns how many of the ascending numbers are at most the first.
fn interval(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.is_null(0) {
        return Ok(Value::Int(-1));
    }
    let number = args.f64(0, ctx)?;
    let mut count = 0;
    for place in 1..args.len() {
        if !args.is_null(place) && args.f64(place, ctx)? > number {
            break;
        }
        count += 1;
    }
    Ok(Value::Int(count))
}

fn first(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(values[0].clone())
}
