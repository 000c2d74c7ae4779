//! Functions of records: construction, fields, tests, and the rows of operators.

pub mod rows;

use std::sync::Arc;

use datum::value::RecordType;
use datum::{Record, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Finish, Folding, Function, Run};

use crate::error::{PgError, state};
use crate::functions::args::text;
use crate::functions::state::StateOf as _;
use crate::types::record::{input, record};
use crate::types::registry;
use crate::value::Value;

/// ROW(...): its type is that of the call's extra parts.
pub static ROW: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["row"], Run::Values(make)) };

/// A field of a record, whose place is the words of the call. The type of the call's extra parts is that of the record, if it is a composite type.
pub static FIELD: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["field"], Run::Strict(field)) };

/// A record with another value of one field, whose place is the words of the call. Without a record the other fields are NULL.
pub static SET_FIELD: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["set field"], Run::Values(set_field)) };

/// Whether all fields are NULL, or the record is.
pub static ALL_NULL: Function = Function { typed: true, ..Function::new(&["all null"], Run::Values(all_null)) };

/// Whether no field is NULL.
pub static NONE_NULL: Function = Function { typed: true, ..Function::new(&["none null"], Run::Values(none_null)) };

/// A text read as a record of the type of the call's extra parts.
pub static RECORD_IN: Function = Function {
    folding: Folding::CheckedCoercion,
    typed: true,
    finish: Finish::Unchanged,
    ..Function::new(&["record_in"], Run::Strict(read))
};

fn make(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    match &call.extra.record {
        Some(ty) => record(ty, values.to_vec()),
        None => Err(datum::Fault::corrupt("a row without a type")),
    }
}

fn field(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = usize::from(u16::from_le_bytes(call.extra.word));
    match &values[0] {
        Value::Record(record) => {
            check_form(record, call.extra.record.as_ref())?;
            Ok(record.values().get(at).cloned().unwrap_or_default())
        }
        _ => Err(datum::Fault::corrupt("a record in the form of another type")),
    }
}

fn set_field(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = usize::from(u16::from_le_bytes(call.extra.word));
    let Some(ty) = &call.extra.record else { return Err(datum::Fault::corrupt("a row without a type")) };
    let mut fields = match &values[0] {
        Value::Record(record) => {
            check_form(record, Some(ty))?;
            record.values().to_vec()
        }
        _ => vec![Value::Null; ty.fields.len()],
    };
    match (fields.get_mut(at), values.get(1)) {
        (Some(field), Some(value)) => field.clone_from(value),
        _ => return Err(datum::Fault::corrupt("a record in the form of another type")),
    }
    record(ty, fields)
}

/// Fails for a record with other fields than its type has now: a temporary table does not follow a change of another session.
fn check_form(record: &Record, ty: Option<&Arc<RecordType>>) -> Result<()> {
    match ty {
        Some(ty) if **ty != **record.ty() => {
            let shown = registry::format_type(ty.number, None);
            let text = format!("a temporary table has rows of a former form of type {shown}");
            Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, text).into())
        }
        _ => Ok(()),
    }
}

fn all_null(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(match &values[0] {
        Value::Record(record) => record.values().iter().all(Value::is_null).into(),
        value => value.is_null().into(),
    })
}

fn none_null(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(match &values[0] {
        Value::Record(record) => (!record.values().iter().any(Value::is_null)).into(),
        value => (!value.is_null()).into(),
    })
}

fn read(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    match &call.extra.record {
        Some(ty) => Ok(input(ty, text(values, 0)?, &ctx.state().io)?),
        None => Err(datum::Fault::corrupt("a row without a type")),
    }
}
