//! The session's own variables in expressions: `@x` and `@x := value`.
//!
//! A name is the first argument, a literal.

use crate::scalar::state::StateOf as _;
use crate::types::{Collation, CollationName as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr, Extra};
use query::nodes::function::{Function, Run, SessionUse};

static READ: Function = Function { session: SessionUse::Read, ..Function::new(&["@"], Run::Lazy(run_read)) };
static ASSIGN: Function = Function { session: SessionUse::Written, ..Function::new(&[":="], Run::Lazy(run_assign)) };

/// `name` is in lower case.
pub fn read(name: &str, ty: Type) -> Expr {
    call(&READ, vec![literal(name)], ty)
}

/// Sets the variable and gives the value. `name` is in lower case.
pub fn assign(name: &str, value: Expr) -> Expr {
    let ty = value.ty();
    call(&ASSIGN, vec![literal(name), value], ty)
}

pub fn is_variable(call: &Call) -> bool {
    name_of(call).is_some()
}

pub fn is_assignment(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if std::ptr::eq(call.function, &ASSIGN))
}

/// Returns the variable that a call reads or sets, and `None` for any other call.
pub fn name_of(call: &Call) -> Option<&str> {
    let is_one = [&READ, &ASSIGN].into_iter().any(|function| std::ptr::eq(call.function, function));
    is_one.then(|| name(call))
}

fn literal(name: &str) -> Expr {
    Expr::Literal(Value::text(name), Type::text(name.len() as u32, Collation::DEFAULT).with_nullable(false))
}

fn call(function: &'static Function, arguments: Vec<Expr>, ty: Type) -> Expr {
    Expr::Call(Box::new(Call { function, arguments, collation: ty.collation, ty, extra: Extra::default() }))
}

fn name(call: &Call) -> &str {
    match &call.arguments[0] {
        Expr::Literal(Value::Text(name), _) => name,
        _ => unreachable!("`literal` makes the first argument"),
    }
}

fn run_read(call: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(ctx.state().variables.get(name(call)))
}

fn run_assign(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let value = call.arguments[1].eval(row, ctx)?;
    ctx.state_mut().variables.set(name(call), value.clone(), call.arguments[1].ty())?;
    Ok(value)
}
