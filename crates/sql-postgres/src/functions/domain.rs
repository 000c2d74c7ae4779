//! The checks of domains.

use datum::fault::DomainViolation;
use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Finish, Function, Run};

use crate::types::registry;
use crate::value::Value;

/// Over a value: returns it if it satisfies a constraint of the domain that is the call's type. `Extra::each` is the condition over a row of the value, `Extra::text` the constraint's name; without
/// a condition the value must not be NULL.
pub static DOMAIN_CHECK: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["domain check"], Run::Values(check)) };

/// Over a record that was read as text: returns it with the checks of its fields, which are those of `Extra::each`.
pub static DOMAIN_FIELDS: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["domain fields"], Run::Strict(fields)) };

fn check(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let value = &values[0];
    let (is_one, constraint) = match &call.extra.each {
        None => (!value.is_null(), None),
        Some(condition) => {
            let truth = condition.decide(std::slice::from_ref(value), ctx)?;
            (truth != Some(false), Some(call.extra.text.clone()))
        }
    };
    match is_one {
        true => Ok(value.clone()),
        false => Err(violated(registry::oid_of(&call.ty), constraint)),
    }
}

#[cold]
fn violated(number: u32, constraint: Option<Box<str>>) -> Fault {
    Fault::DomainViolated(Box::new(DomainViolation { number, constraint }))
}

fn fields(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    match &call.extra.each {
        Some(checked) => checked.eval(values, ctx),
        None => Err(Fault::corrupt("a check of fields without one")),
    }
}
