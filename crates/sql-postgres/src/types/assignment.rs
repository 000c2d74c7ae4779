//! Assignment: the type modifier of a column is applied to a value that the binder has cast to the column's type.
//!
//! A column that another dialect declared takes the value in its own form, within its own bounds.

use datum::{Array, Fault};
use query::nodes::assignment::{Assignment, Place};
use query::nodes::context::EvalContext;
use query::types::Type;

use crate::error::{PgError, Result, state};
use crate::functions::state::StateOf as _;
use crate::types::numeric::fit_typmod;
use crate::types::temporal::io::TimeTz;
use crate::types::temporal::typmod::{adjust_interval, adjust_time, adjust_timestamp};
use crate::types::{bits, foreign, io, oid, registry, text};
use crate::value::Value;

/// The dialect's rules of assignment.
pub static ASSIGNMENT: Assignment = Assignment { store, checks_rows: true, implicit_default, text: shown };

fn store(value: Value, ty: &Type, place: Place<'_>, _: &mut EvalContext) -> datum::Result<Value> {
    if value.is_null() {
        return if ty.nullable { Ok(value) } else { Err(Fault::NotNull { column: place.column.into() }) };
    }
    if foreign::is_foreign(ty) {
        return Ok(foreign::stored(value, ty)?);
    }
    Ok(with_typmod(value, registry::oid_of(ty), registry::typmod_of(ty), false)?)
}

/// No statement of this dialect is lenient: a column without a default is NULL.
fn implicit_default(_: &Type) -> Value {
    Value::Null
}

fn shown(value: &Value, ty: &Type, ctx: &mut EvalContext) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let mut out = Vec::new();
    match io::output(value, ty, &ctx.state().io, &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => value.to_string(),
    }
}

/// Applies a type modifier to a value of the type: the length coercion of PostgreSQL. Where the cast is explicit, texts are cut.
pub fn with_typmod(value: Value, oid: oid::Oid, typmod: i32, is_explicit: bool) -> Result<Value> {
    match (oid, &value) {
        _ if typmod < 0 => Ok(value),
        (_, Value::Array(array)) => match registry::element_of(oid) {
            Some(element) => each_with_typmod(array, element.oid, typmod, is_explicit),
            None => Ok(value),
        },
        (oid::VARCHAR, Value::Text(text)) => text::varchar(text, typmod, is_explicit),
        (oid::BPCHAR, Value::Text(text)) => text::bpchar(text, typmod, is_explicit),
        (oid::NUMERIC, Value::Decimal(number)) => Ok(Value::Decimal(fit_typmod(number.clone(), typmod)?)),
        (oid::BIT | oid::VARBIT, Value::Bytes(bytes)) => bits::with_typmod(bytes, oid, typmod, is_explicit),
        (oid::TIME, Value::Int(micros)) => Ok(Value::Int(adjust_time(*micros, typmod))),
        (oid::TIMETZ, Value::Bytes(bytes)) => {
            let time = TimeTz::of_bytes(bytes);
            Ok(TimeTz { micros: adjust_time(time.micros, typmod), ..time }.to_value())
        }
        (oid::TIMESTAMP | oid::TIMESTAMPTZ, Value::Int(micros)) => Ok(Value::Int(adjust_timestamp(*micros, typmod))),
        (oid::INTERVAL, Value::Interval(span)) => Ok(Value::Interval(adjust_interval(*span, typmod)?)),
        _ => Err(PgError::new(
            state::FEATURE_NOT_SUPPORTED,
            format!("type modifier of type {} is not supported", registry::format_type(oid, None)),
        )),
    }
}

fn each_with_typmod(array: &Array, element: oid::Oid, typmod: i32, is_explicit: bool) -> Result<Value> {
    let brought = |value: &Value| match value {
        Value::Null => Ok(Value::Null),
        value => with_typmod(value.clone(), element, typmod, is_explicit),
    };
    let values = array.values().iter().map(brought).collect::<Result<Vec<_>>>()?;
    Ok(Value::Array(Array::new(array.element(), array.dimensions(), values)))
}

/// Returns whether a modifier changes values of the type.
pub fn has_length_coercion(oid: oid::Oid) -> bool {
    use oid::{BIT, BPCHAR, INTERVAL, NUMERIC, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, VARBIT, VARCHAR};
    let oid = registry::element_of(oid).map_or(oid, |element| element.oid);
    matches!(oid, VARCHAR | BPCHAR | NUMERIC | TIME | TIMETZ | TIMESTAMP | TIMESTAMPTZ | INTERVAL | BIT | VARBIT)
}
