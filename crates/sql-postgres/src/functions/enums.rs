//! Functions and operators of enums.
//!
//! Values compare as their bytes do, so the comparisons are those of all types. `enum_first` and its like take the labels from the type of their argument, whose value may be NULL.

use std::sync::Arc;

use datum::value::Dimension;
use datum::{Array, Result};
use query::catalog::user_type::UserType;
use query::nodes::comparison::Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::rows::{I, S, folded, operator, row, strict, values};
use crate::functions::state::StateOf as _;
use crate::functions::{PgFunction, PgOperator, aggregate, compare};
use crate::types::oid::{ANYARRAY, ANYENUM, BOOL, INT4};
use crate::types::{registry, user};
use crate::value::Value;

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(3514, "enum_cmp", &[ANYENUM, ANYENUM], 0, INT4, I, true, strict!("enum_cmp", compare::compare, I)),
    row(3508, "enum_eq", &[ANYENUM, ANYENUM], 0, BOOL, I, true, strict!("enum_eq", compare::equal, I)),
    row(3528, "enum_first", &[ANYENUM], 0, ANYENUM, S, false, values!("enum_first", first, S)),
    row(3513, "enum_ge", &[ANYENUM, ANYENUM], 0, BOOL, I, true, strict!("enum_ge", compare::greater_equal, I)),
    row(3511, "enum_gt", &[ANYENUM, ANYENUM], 0, BOOL, I, true, strict!("enum_gt", compare::greater, I)),
    row(3525, "enum_larger", &[ANYENUM, ANYENUM], 0, ANYENUM, I, true, strict!("enum_larger", compare::larger, I)),
    row(3529, "enum_last", &[ANYENUM], 0, ANYENUM, S, false, values!("enum_last", last, S)),
    row(3512, "enum_le", &[ANYENUM, ANYENUM], 0, BOOL, I, true, strict!("enum_le", compare::less_equal, I)),
    row(3510, "enum_lt", &[ANYENUM, ANYENUM], 0, BOOL, I, true, strict!("enum_lt", compare::less, I)),
    row(3509, "enum_ne", &[ANYENUM, ANYENUM], 0, BOOL, I, true, strict!("enum_ne", compare::not_equal, I)),
    row(3530, "enum_range", &[ANYENUM, ANYENUM], 0, ANYARRAY, S, false, values!("enum_range", range, S)),
    row(3531, "enum_range", &[ANYENUM], 0, ANYARRAY, S, false, values!("enum_range", range_of_all, S)),
    row(3524, "enum_smaller", &[ANYENUM, ANYENUM], 0, ANYENUM, I, true, strict!("enum_smaller", compare::smaller, I)),
    row(3526, "max", &[ANYENUM], 0, ANYENUM, I, true, folded(&aggregate::MAX)),
    row(3527, "min", &[ANYENUM], 0, ANYENUM, I, true, folded(&aggregate::MIN)),
];

/// Rows of `pg_operator`.
pub static OPERATORS: &[PgOperator] = &[
    operator(3518, "<", (ANYENUM, ANYENUM, BOOL), 3510, (3519, 3521), Some(Less)),
    operator(3520, "<=", (ANYENUM, ANYENUM, BOOL), 3512, (3521, 3519), Some(LessEqual)),
    operator(3517, "<>", (ANYENUM, ANYENUM, BOOL), 3509, (3517, 3516), Some(NotEqual)),
    operator(3516, "=", (ANYENUM, ANYENUM, BOOL), 3508, (3516, 3517), Some(Equal)),
    operator(3519, ">", (ANYENUM, ANYENUM, BOOL), 3511, (3518, 3520), Some(Greater)),
    operator(3521, ">=", (ANYENUM, ANYENUM, BOOL), 3513, (3520, 3518), Some(GreaterEqual)),
];

fn type_of(call: &Call, ctx: &EvalContext) -> Result<Arc<UserType>> {
    let oid = registry::oid_of(&call.arguments[0].ty());
    Ok(user::definition(oid, &ctx.state().io)?)
}

fn extreme(call: &Call, ctx: &EvalContext, is_last: bool) -> Result<Value> {
    let ty = type_of(call, ctx)?;
    let labels = user::labels(&ty);
    let label = if is_last { labels.last() } else { labels.first() };
    match label {
        Some(label) => Ok(user::value_of(label, &ty)?),
        None => {
            let message = format!("enum {} contains no values", user::name(user::oid_of(&ty), &ctx.state().io));
            Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message).into())
        }
    }
}

fn first(call: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    extreme(call, ctx, false)
}

fn last(call: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    extreme(call, ctx, true)
}

/// A bound that is NULL is none.
fn between(call: &Call, low: &Value, high: &Value, ctx: &EvalContext) -> Result<Value> {
    let ty = type_of(call, ctx)?;
    let fits = |key: &[u8]| {
        low.as_string_bytes().is_none_or(|low| low <= key) && high.as_string_bytes().is_none_or(|high| key <= high)
    };
    let within = user::labels(&ty).iter().filter(|label| fits(&label.key));
    let found = within.map(|label| user::value_of(label, &ty)).collect::<Result<Vec<_>, _>>()?;
    let shape = registry::shape_of(user::oid_of(&ty));
    if found.is_empty() {
        return Ok(Value::Array(Array::empty(shape)));
    }
    let dimension = Dimension { length: found.len() as u32, lower: 1 };
    Ok(Value::Array(Array::new(shape, &[dimension], found)))
}

fn range(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    between(call, &values[0], &values[1], ctx)
}

fn range_of_all(call: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    between(call, &Value::Null, &Value::Null, ctx)
}
