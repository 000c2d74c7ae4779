//! MySQL's operators and conversions as functions of the bound tree: LIKE, CAST, COLLATE, and the forms in which values are shown.
//!
//! Arithmetic is in `arithmetic`, the coercions of constants in `bind::constant`.

use crate::scalar::{arithmetic, cast, convert, like, variable};
use crate::types::{Collation, Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Case, Expr, Extra};
use query::nodes::function::{Folding, Function, Prefix, Run};

/// To another type, as CAST does: data that does not fit is a warning.
static CAST: Function =
    Function { strict: true, typed: true, folding: Folding::Operator, ..Function::new(&["cast"], Run::Lazy(run_cast)) };
/// Stored form to shown form: ENUM and SET to text, BIT to bytes, TIMESTAMP to the session's clock.
static PRESENT: Function =
    Function { strict: true, typed: true, ..Function::new(&["<present>"], Run::Lazy(run_present)) };
/// The same value, compared in another collation.
static COLLATE: Function =
    Function { strict: true, typed: true, ..Function::new(&["collate"], Run::Lazy(run_collate)) };
static LIKE: Function = Function { typed: true, prefix: Some(prefix), ..Function::new(&["like"], Run::Lazy(run_like)) };

/// Converts a value to a truth value: 1, 0 or NULL. It wraps operands of logic that are not integers.
static TRUTH: Function = Function { strict: true, ..Function::new(&["<truth>"], Run::Lazy(run_truth)) };
/// Converts an arm of CASE, or a column of a UNION's branch, to the common type.
static UNIFY: Function = Function { strict: false, typed: true, ..Function::new(&["<unify>"], Run::Lazy(run_unify)) };

/// The operator that a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Cast,
    Present,
    Collate,
    Like,
    Truth,
    Unify,
}

impl Operation {
    /// Returns `None` for a call of any other function.
    pub fn of(call: &Call) -> Option<Operation> {
        let all = [
            (&CAST, Operation::Cast),
            (&PRESENT, Operation::Present),
            (&COLLATE, Operation::Collate),
            (&LIKE, Operation::Like),
            (&TRUTH, Operation::Truth),
            (&UNIFY, Operation::Unify),
        ];
        all.into_iter().find(|(function, _)| std::ptr::eq(*function, call.function)).map(|(_, operation)| operation)
    }
}

fn unary(function: &'static Function, inner: Expr, ty: Type) -> Expr {
    let collation = ty.collation;
    Expr::Call(Box::new(Call { function, arguments: vec![inner], ty, collation, extra: Extra::default() }))
}

pub fn cast(inner: Expr, to: Type) -> Expr {
    unary(&CAST, inner, to)
}

pub fn is_cast(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if Operation::of(call) == Some(Operation::Cast))
}

/// `shown` is the type of the shown form.
pub fn present(inner: Expr, shown: Type) -> Expr {
    unary(&PRESENT, inner, shown)
}

/// `ty` is the type of `inner` with the collation.
pub fn collate(inner: Expr, ty: Type) -> Expr {
    unary(&COLLATE, inner, ty)
}

/// Without `escape` it is the backslash.
pub fn like(text: Expr, pattern: Expr, escape: Option<Expr>, collation: Collation) -> Expr {
    let arguments: Vec<Expr> = [text, pattern].into_iter().chain(escape).collect();
    let nullable = arguments.iter().any(|argument| argument.ty().nullable);
    let ty = Type::truth().with_nullable(nullable);
    Expr::Call(Box::new(Call { function: &LIKE, arguments, ty, collation, extra: Extra::default() }))
}

/// Returns the expression as an operand of AND, OR, NOT or a clause's condition.
pub fn truth(expr: Expr) -> Expr {
    let is_variable = matches!(&expr, Expr::Call(call) if variable::is_variable(call));
    match expr.kind() {
        kind if kind.is_integer() && !is_variable => expr,
        Kind::Bit | Kind::Year | Kind::Enum | Kind::Set => expr,
        _ => {
            let ty = Type::truth().with_nullable(expr.ty().nullable);
            unary(&TRUTH, expr, ty)
        }
    }
}

/// Converts the expression to the type `ty`, if it has another one.
pub fn unify(expr: Expr, ty: &Type) -> Expr {
    let own = expr.ty();
    let is_same = (own.kind(), own.scale, own.is_unsigned()) == (ty.kind(), ty.scale, ty.is_unsigned())
        && own.members == ty.members;
    if is_same { expr } else { unary(&UNIFY, expr, ty.clone()) }
}

/// CASE, whose results become values of the type `ty`.
pub fn case(mut arms: Vec<(Expr, Expr)>, otherwise: Expr, ty: Type) -> Expr {
    for (_, result) in &mut arms {
        *result = unify(std::mem::replace(result, Expr::null()), &ty);
    }
    let otherwise = unify(otherwise, &ty);
    Expr::Case(Box::new(Case { arms, otherwise, ty }))
}

fn run_truth(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let value = call.arguments[0].eval(row, ctx)?;
    Ok(convert::truth(&value, ctx)?.map_or(Value::Null, Value::from))
}

fn run_unify(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let inner = &call.arguments[0];
    let value = inner.eval_exact(row, ctx)?;
    unify_exact(value, &inner.ty(), &call.ty, ctx)
}

fn run_cast(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (inner, to) = (&call.arguments[0], &call.ty);
    // A number keeps all digits of a quotient, a text only the shown ones.
    let value = if to.kind().is_number() { inner.eval_exact(row, ctx)? } else { inner.eval(row, ctx)? };
    if value.is_null() { Ok(value) } else { cast::cast(value, &inner.ty(), to, ctx) }
}

fn run_present(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let inner = &call.arguments[0];
    match inner.eval(row, ctx)? {
        Value::Null => Ok(Value::Null),
        value => Ok(cast::present(value, &inner.ty(), ctx)),
    }
}

fn run_collate(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    call.arguments[0].eval(row, ctx)
}

fn run_like(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let text = call.arguments[0].eval(row, ctx)?;
    let pattern = call.arguments[1].eval(row, ctx)?;
    let escape = match call.arguments.get(2) {
        Some(escape) => Some(escape.eval(row, ctx)?),
        None => None,
    };
    if text.is_null() || pattern.is_null() {
        return Ok(Value::Null);
    }
    let escape = escape.as_ref().map_or(Ok(Some('\\')), like::escape_char)?;
    let matches = |text: &[u8], pattern: &[u8]| like::matches(call.collation, text, pattern, escape);
    let found = match (text.as_string_bytes(), pattern.as_string_bytes()) {
        (Some(text), Some(pattern)) => matches(text, pattern),
        _ => {
            let text = convert::to_text(&text, &call.arguments[0].ty());
            let pattern = convert::to_text(&pattern, &call.arguments[1].ty());
            matches(text.as_bytes(), pattern.as_bytes())
        }
    };
    Ok(Value::from(found))
}

fn prefix(call: &Call, value: &mut dyn FnMut(&Expr) -> Option<Value>) -> Option<Prefix> {
    let escape = match call.arguments.get(2) {
        Some(escape) => like::escape_char(&value(escape)?).ok()?,
        None => Some('\\'),
    };
    let pattern = value(&call.arguments[1])?;
    let (bytes, is_whole) = like::prefix(pattern.as_string_bytes()?, escape, call.collation == Collation::Binary)?;
    Some(Prefix { bytes, is_whole })
}

/// As `convert_to`, but a decimal keeps its digits until it is shown.
pub fn unify_exact(value: Value, from: &Type, to: &Type, ctx: &mut EvalContext) -> Result<Value> {
    match (&value, to.kind()) {
        (Value::Decimal(_), Kind::Decimal) => Ok(value),
        (Value::Decimal(decimal), kind) if !kind.is_number() && decimal.scale() != from.scale.into() => {
            convert_to(arithmetic::fit(value, from), from, to, ctx)
        }
        _ => convert_to(value, from, to, ctx),
    }
}

/// A value of one arm as one of the type of all arms.
fn convert_to(value: Value, from: &Type, to: &Type, ctx: &mut EvalContext) -> Result<Value> {
    if value.is_null() || (from.kind() == to.kind() && from.scale == to.scale && from.is_unsigned() == to.is_unsigned())
    {
        return Ok(value);
    }
    if to.is_string() && to.collation != Collation::Binary && value.as_string_bytes().is_none() {
        return Ok(Value::Text(convert::to_text(&cast::present(value, from, ctx), from)));
    }
    match to.kind() {
        kind if kind == from.kind() && !kind.is_number() && !kind.is_temporal() => Ok(value),
        kind if kind.is_text() && matches!(value, Value::Text(_)) => Ok(value),
        kind if kind.is_bytes() && matches!(value, Value::Bytes(_)) => Ok(value),
        kind if kind.is_bytes() && from.kind() == Kind::Bit => Ok(cast::present(value, from, ctx)),
        kind if kind.is_bytes() => {
            Ok(Value::bytes(convert::to_text(&cast::present(value, from, ctx), from).as_bytes()))
        }
        Kind::Null | Kind::Enum | Kind::Set | Kind::Bit | Kind::Year => Ok(value),
        _ => cast::cast(value, from, to, ctx),
    }
}

/// The coercibility of an expression's collation, lowest strongest, as COERCIBILITY() shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Derivation {
    Explicit,
    None,
    Implicit,
    System,
    Coercible,
    Numeric,
    Ignorable,
}

impl Derivation {
    pub fn of(expr: &Expr) -> Derivation {
        match expr {
            Expr::Literal(Value::Null, _) => Derivation::Ignorable,
            Expr::Column(..) => Derivation::Implicit,
            expr if expr.reads_outside() => Derivation::Implicit,
            // A document is text in utf8mb4_bin.
            _ if expr.kind() == Kind::Json => Derivation::Implicit,
            _ if !expr.ty().is_string() => Derivation::Numeric,
            Expr::Literal(..) | Expr::Parameter(..) => Derivation::Coercible,
            Expr::Call(call) => Derivation::of_call(call),
            _ => Derivation::of_all(&expr.children()),
        }
    }

    fn of_call(call: &Call) -> Derivation {
        match (Operation::of(call), &call.arguments[..]) {
            (Some(Operation::Present), [inner, ..]) if call.ty.kind().is_text() => {
                Derivation::of(inner).min(Derivation::Implicit)
            }
            (Some(Operation::Present), _) => Derivation::Numeric,
            (Some(Operation::Collate), _) => Derivation::Explicit,
            (Some(Operation::Cast), _) => Derivation::Implicit,
            (_, []) => Derivation::System,
            (_, arguments) => Derivation::of_all(&arguments.iter().collect::<Vec<_>>()),
        }
    }

    fn of_all(exprs: &[&Expr]) -> Derivation {
        exprs.iter().map(|expr| Derivation::of(expr)).min().unwrap_or(Derivation::Coercible)
    }
}
