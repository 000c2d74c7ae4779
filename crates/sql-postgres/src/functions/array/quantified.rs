//! Calls over the elements of an array: `value op ANY (array)` and `value op ALL (array)` of operators that the core does not compare by, and VARIADIC calls.

use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::{Finish, Function, Run};

use crate::functions::array::{array, element_type};
use crate::types::registry;
use crate::value::Value;

/// Over the value and the array; `Extra::each` is the operator over a row of the value and one element.
pub static ANY: Function = Function { finish: Finish::Unchanged, ..Function::new(&["any"], Run::Values(any)) };
pub static ALL: Function = Function { finish: Finish::Unchanged, ..Function::new(&["all"], Run::Values(all)) };

/// A call of a variadic function (`Extra::each`, over a row of the arguments before) with the elements of the array that is the last argument.
pub static SPREAD: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["variadic"], Run::Values(spread)) };

fn spread(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let last = values.len() - 1;
    let Some(Expr::Call(each)) = call.extra.each.as_deref() else {
        return Err(Fault::corrupt("a variadic call without one"));
    };
    if values[last].is_null() {
        // For `format`, which is not NULL for it, a missing array is one without elements.
        return match each.function.name() {
            "format" => Expr::Call(each.clone()).eval(&values[..last], ctx),
            _ => Ok(Value::Null),
        };
    }
    let elements = array(values, last)?;
    let ty = registry::column_type(element_type(call, last)?, -1, true);
    let _claim = stdx::memory::claim(elements.len().saturating_mul(size_of::<Expr>()))?;
    let mut whole = each.clone();
    whole.arguments.extend(elements.values().iter().map(|value| Expr::Literal(value.clone(), ty.clone())));
    Expr::Call(whole).eval(&values[..last], ctx)
}

fn any(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    decide(call, values, true, ctx)
}

fn all(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    decide(call, values, false, ctx)
}

/// `decisive` is the answer of one element that ends it.
fn decide(call: &Call, values: &[Value], decisive: bool, ctx: &mut EvalContext) -> Result<Value> {
    if values[1].is_null() {
        return Ok(Value::Null);
    }
    let Some(test) = &call.extra.each else { return Err(Fault::corrupt("a quantified operator without one")) };
    let mut row = [values[0].clone(), Value::Null];
    let mut is_known = true;
    for (at, element) in array(values, 1)?.values().iter().enumerate() {
        row[1] = element.clone();
        match test.decide(&row, ctx)? {
            Some(truth) if truth == decisive => return Ok(Value::from(decisive)),
            Some(_) => {}
            None => is_known = false,
        }
        if at % 4096 == 4095 {
            ctx.check_killed()?;
        }
    }
    Ok(if is_known { Value::from(!decisive) } else { Value::Null })
}
