//! Whether the name of an object alone finds it: `pg_..._is_visible`. NULL for an OID that no object has.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::define::names::schema_of;
use crate::functions::args::integer;
use crate::functions::state::StateOf as _;
use crate::session::quoted;
use crate::system::extract;
use crate::types::oid::Oid;
use crate::types::{registry, user};
use crate::value::Value;

/// Objects of `pg_catalog` are always visible.
fn of_system(values: &[Value], is_known: impl Fn(Oid) -> bool) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    Ok(if is_known(oid) { Value::TRUE } else { Value::Null })
}

pub fn of_type(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    if let Some(id) = user::object_of(oid) {
        let io = &ctx.state().io;
        let ty = io.objects.as_ref().and_then(|objects| (objects.user_type)(id));
        // The name of a visible one goes without its schema.
        let schema = ty.as_ref().map(|ty| quoted(schema_of(&ty.schema)) + ".");
        return Ok(schema.map_or(Value::Null, |schema| (!user::name(oid, io).starts_with(&schema)).into()));
    }
    of_system(values, |oid| registry::by_oid(oid).is_some() || registry::element_of(oid).is_some())
}

pub fn of_function(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_system(values, |oid| crate::functions::function(oid).is_some())
}

pub fn of_operator(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_system(values, |oid| crate::functions::operator(oid).is_some())
}

pub fn of_class(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_system(values, |oid| extract::PG_OPCLASS.has(oid))
}

pub fn of_family(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_system(values, |oid| extract::PG_OPFAMILY.has(oid))
}

pub fn of_collation(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_system(values, |oid| extract::PG_COLLATION.has(oid))
}

/// Of a kind of object of which there are none.
pub fn of_nothing(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Null)
}
