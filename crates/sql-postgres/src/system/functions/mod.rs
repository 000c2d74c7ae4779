//! Functions over the catalog: definitions as text, sizes, visibility, rights.

mod definition;
pub mod privilege;
pub mod signature;
mod visible;

use datum::Result;
use query::catalog::objects::Object;
use query::catalog::user_type::TypeDefinition;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::define::names::is_found_in;
use crate::functions::PgFunction;
use crate::functions::args::{integer, text};
use crate::functions::rows::{I, S, V, row, strict};
use crate::session::facts::FactsOf as _;
use crate::system::comments;
use crate::system::oids;
use crate::system::view::{Shown, columns};
use crate::types::oid::{BOOL, INT4, INT8, NAME, OID, PG_NODE_TREE, REGCLASS, TEXT};
use crate::types::user;
use crate::value::Value;

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(1216, "col_description", &[OID, INT4], 0, TEXT, S, true, strict!("col_description", col_description, S)),
    row(1215, "obj_description", &[OID, NAME], 0, TEXT, S, true, strict!("obj_description", obj_description, S)),
    row(1387, "pg_get_constraintdef", &[OID], 0, TEXT, S, true, strict!("pg_get_constraintdef", definition::constraint, S)),
    row(2508, "pg_get_constraintdef", &[OID, BOOL], 0, TEXT, S, true, strict!("pg_get_constraintdef", definition::constraint, S)),
    row(1716, "pg_get_expr", &[PG_NODE_TREE, OID], 0, TEXT, S, true, strict!("pg_get_expr", definition::expression, S)),
    row(2509, "pg_get_expr", &[PG_NODE_TREE, OID, BOOL], 0, TEXT, S, true, strict!("pg_get_expr", definition::expression, S)),
    row(1643, "pg_get_indexdef", &[OID], 0, TEXT, S, true, strict!("pg_get_indexdef", definition::index, S)),
    row(2507, "pg_get_indexdef", &[OID, INT4, BOOL], 0, TEXT, S, true, strict!("pg_get_indexdef", definition::index, S)),
    row(1665, "pg_get_serial_sequence", &[TEXT, TEXT], 0, TEXT, S, true, strict!("pg_get_serial_sequence", definition::serial_sequence, S)),
    row(1642, "pg_get_userbyid", &[OID], 0, NAME, S, true, strict!("pg_get_userbyid", userbyid, S)),
    row(2998, "pg_indexes_size", &[REGCLASS], 0, INT8, V, true, strict!("pg_indexes_size", indexes_size, V)),
    row(2325, "pg_relation_size", &[REGCLASS], 0, INT8, V, true, strict!("pg_relation_size", relation_size, V)),
    row(2079, "pg_table_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_table_is_visible", is_visible, S)),
    row(2997, "pg_table_size", &[REGCLASS], 0, INT8, V, true, strict!("pg_table_size", relation_size, V)),
    row(2286, "pg_total_relation_size", &[REGCLASS], 0, INT8, V, true, strict!("pg_total_relation_size", total_size, V)),
    row(1348, "obj_description", &[OID], 0, TEXT, S, true, strict!("obj_description", any_description, S)),
    row(3815, "pg_collation_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_collation_is_visible", visible::of_collation, S)),
    row(2093, "pg_conversion_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_conversion_is_visible", visible::of_nothing, S)),
    row(2168, "pg_database_size", &[NAME], 0, INT8, V, true, strict!("pg_database_size", database_size, V)),
    row(2324, "pg_database_size", &[OID], 0, INT8, V, true, strict!("pg_database_size", database_size, V)),
    row(2319, "pg_encoding_max_length", &[INT4], 0, INT4, I, true, strict!("pg_encoding_max_length", encoding_max_length, I)),
    row(2081, "pg_function_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_function_is_visible", visible::of_function, S)),
    row(3808, "pg_get_function_arg_default", &[OID, INT4], 0, TEXT, S, true, strict!("pg_get_function_arg_default", signature::argument_default, S)),
    row(2162, "pg_get_function_arguments", &[OID], 0, TEXT, S, true, strict!("pg_get_function_arguments", signature::arguments, S)),
    row(2232, "pg_get_function_identity_arguments", &[OID], 0, TEXT, S, true, strict!("pg_get_function_identity_arguments", signature::identity_arguments, S)),
    row(2165, "pg_get_function_result", &[OID], 0, TEXT, S, true, strict!("pg_get_function_result", signature::result, S)),
    row(6197, "pg_get_function_sqlbody", &[OID], 0, TEXT, S, true, strict!("pg_get_function_sqlbody", signature::sql_body, S)),
    row(2098, "pg_get_functiondef", &[OID], 0, TEXT, S, true, strict!("pg_get_functiondef", signature::definition, S)),
    row(1573, "pg_get_ruledef", &[OID], 0, TEXT, S, true, strict!("pg_get_ruledef", definition::rule, S)),
    row(2504, "pg_get_ruledef", &[OID, BOOL], 0, TEXT, S, true, strict!("pg_get_ruledef", definition::rule, S)),
    row(1640, "pg_get_viewdef", &[TEXT], 0, TEXT, S, true, strict!("pg_get_viewdef", definition::view, S)),
    row(1641, "pg_get_viewdef", &[OID], 0, TEXT, S, true, strict!("pg_get_viewdef", definition::view, S)),
    row(2505, "pg_get_viewdef", &[TEXT, BOOL], 0, TEXT, S, true, strict!("pg_get_viewdef", definition::view, S)),
    row(2506, "pg_get_viewdef", &[OID, BOOL], 0, TEXT, S, true, strict!("pg_get_viewdef", definition::view, S)),
    row(3159, "pg_get_viewdef", &[OID, INT4], 0, TEXT, S, true, strict!("pg_get_viewdef", definition::wrapped_view, S)),
    row(3352, "pg_get_partkeydef", &[OID], 0, TEXT, S, true, strict!("pg_get_partkeydef", no_object, S)),
    row(3415, "pg_get_statisticsobjdef", &[OID], 0, TEXT, S, true, strict!("pg_get_statisticsobjdef", no_object, S)),
    row(6174, "pg_get_statisticsobjdef_columns", &[OID], 0, TEXT, S, true, strict!("pg_get_statisticsobjdef_columns", no_object, S)),
    row(1662, "pg_get_triggerdef", &[OID], 0, TEXT, S, true, strict!("pg_get_triggerdef", no_object, S)),
    row(2730, "pg_get_triggerdef", &[OID, BOOL], 0, TEXT, S, true, strict!("pg_get_triggerdef", no_object, S)),
    row(2855, "pg_is_other_temp_schema", &[OID], 0, BOOL, S, true, strict!("pg_is_other_temp_schema", is_other_temporary, S)),
    row(2854, "pg_my_temp_schema", &[], 0, OID, S, true, strict!("pg_my_temp_schema", own_temporary, S)),
    row(2083, "pg_opclass_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_opclass_is_visible", visible::of_class, S)),
    row(2082, "pg_operator_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_operator_is_visible", visible::of_operator, S)),
    row(3829, "pg_opfamily_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_opfamily_is_visible", visible::of_family, S)),
    row(6121, "pg_relation_is_publishable", &[REGCLASS], 0, BOOL, S, true, strict!("pg_relation_is_publishable", is_publishable, S)),
    row(3403, "pg_statistics_obj_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_statistics_obj_is_visible", visible::of_nothing, S)),
    row(3778, "pg_tablespace_location", &[OID], 0, TEXT, S, true, strict!("pg_tablespace_location", tablespace_location, S)),
    row(3758, "pg_ts_config_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_ts_config_is_visible", visible::of_nothing, S)),
    row(3757, "pg_ts_dict_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_ts_dict_is_visible", visible::of_nothing, S)),
    row(3756, "pg_ts_parser_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_ts_parser_is_visible", visible::of_nothing, S)),
    row(3768, "pg_ts_template_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_ts_template_is_visible", visible::of_nothing, S)),
    row(2080, "pg_type_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_type_is_visible", visible::of_type, S)),
    row(1993, "shobj_description", &[OID, NAME], 0, TEXT, S, true, strict!("shobj_description", shared_description, S)),
];

/// Returns the object of an OID.
fn object(values: &[Value], ctx: &mut EvalContext) -> Result<Option<Object>> {
    let oid = integer(values, 0)? as u32;
    let definitions = ctx.facts().definitions.clone();
    Ok(oids::object_of(oid).and_then(|id| definitions.object(id).cloned()))
}

fn optional(text: Option<String>) -> Result<Value> {
    Ok(text.map_or(Value::Null, Value::text))
}

/// Of an object of a catalog.
fn obj_description(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let class = text(values, 1)?;
    let class = crate::system::relations::by_name("pg_catalog", class).map_or(0, |relation| relation.oid);
    let oid = integer(values, 0)? as u32;
    let known = crate::system::extract::description(oid, Some(class));
    let known = known.or_else(|| recorded(Some(class), oid, 0, ctx));
    match known {
        Some(_) => optional(known),
        None if class == oids::PG_CLASS => any_description_of(values, ctx),
        None if class == oids::PG_TYPE => optional(type_description(values, ctx)?),
        None => Ok(Value::Null),
    }
}

fn any_description(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    match crate::system::extract::description(oid, None).or_else(|| recorded(None, oid, 0, ctx)) {
        None => any_description_of(values, ctx),
        known => optional(known),
    }
}

/// Returns the comment that a record has on an object of the database.
fn recorded(class: Option<u32>, oid: u32, column: i64, ctx: &mut EvalContext) -> Option<String> {
    let shown = Shown::of(ctx)?;
    comments::of(&shown, class, oid, column).map(|text| text.to_string())
}

/// Of a database or a role.
fn shared_description(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (oid, class) = (integer(values, 0)? as u32, text(values, 1)?);
    let class = crate::system::relations::by_name("pg_catalog", class).map_or(0, |relation| relation.oid);
    let shared = Shown::of(ctx).map_or_else(Vec::new, |shown| comments::shared(&shown));
    let found = shared.iter().find(|described| described.class == class && described.object == oid);
    optional(found.map(|described| described.text.to_string()))
}

fn type_description(values: &[Value], ctx: &mut EvalContext) -> Result<Option<String>> {
    let oid = integer(values, 0)? as u32;
    let ty = Shown::of(ctx).and_then(|shown| shown.user_type(oid)).filter(|ty| user::oid_of(ty) == oid);
    Ok(ty.map(|ty| ty.comment.clone()).filter(|comment| !comment.is_empty()))
}

fn any_description_of(values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let comment = match object(values, ctx)? {
        Some(Object::Table(table)) => table.comment.clone(),
        Some(Object::Index(table, at)) => table.indexes[at].comment.clone(),
        None => return optional(type_description(values, ctx)?),
        _ => String::new(),
    };
    optional((!comment.is_empty()).then_some(comment))
}

fn col_description(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let table = match object(values, ctx)? {
        Some(Object::Table(table)) => table,
        Some(Object::Type(ty)) => {
            let TypeDefinition::Composite(composite) = &ty.definition else { return Ok(Value::Null) };
            let nth = integer(values, 1)?;
            let found = composite.attributes.iter().find(|attribute| i64::from(attribute.number) == nth);
            return optional(found.map(|found| found.comment.clone()).filter(|comment| !comment.is_empty()));
        }
        Some(Object::View(_)) => {
            let (oid, nth) = (integer(values, 0)? as u32, integer(values, 1)?);
            return optional(recorded(Some(oids::PG_CLASS), oid, nth, ctx));
        }
        _ => return Ok(Value::Null),
    };
    let nth = integer(values, 1)?;
    let comment = columns(&table).find(|(number, _)| *number == nth).map(|(_, column)| column.comment.clone());
    optional(comment.filter(|comment| !comment.is_empty()))
}

/// Of a kind of object of which there are none.
fn no_object(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Null)
}

/// The schema of the session's temporary objects; 0 before the first of them.
fn own_temporary(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let own = ctx.facts().definitions.temporary().map_or(0, |schema| super::view::schema_oid(schema));
    Ok(Value::UInt(own.into()))
}

/// A session does not see the temporary objects of others.
fn is_other_temporary(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::FALSE)
}

/// The tablespaces lie in the data folder.
fn tablespace_location(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(""))
}

/// UTF8 alone has a number here; SQL_ASCII is 0.
fn encoding_max_length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(match integer(values, 0)? {
        0 => Value::Int(1),
        6 => Value::Int(4),
        _ => Value::Null,
    })
}

fn is_publishable(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    if crate::system::relations::by_oid(oid).is_some() {
        return Ok(Value::FALSE);
    }
    Ok(match object(values, ctx)? {
        Some(Object::Table(table)) => Value::from(!table.temporary),
        Some(_) => Value::FALSE,
        None => Value::Null,
    })
}

fn database_size(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Value::Null) };
    let databases = crate::system::catalog::schema::databases(&shown);
    let name = match &values[0] {
        Value::Text(name) => name.to_string(),
        _ => {
            let oid = integer(values, 0)? as u32;
            let Some((_, name)) = databases.into_iter().find(|(known, _)| *known == oid) else {
                return Ok(Value::Null);
            };
            name
        }
    };
    let of_database = Shown { database: name, ..shown };
    let maps: Vec<_> = of_database.tables().flat_map(|table| table.maps()).collect();
    bytes_of(&maps, ctx).map(Value::Int)
}

fn userbyid(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    let facts = ctx.facts();
    let name = facts.with_rights(|rights, _| rights.roles().name_of(oid));
    Ok(name.map_or(Value::Null, Value::text))
}

fn is_visible(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    if let Some(relation) = super::relations::by_oid(oid) {
        return Ok(Value::from(relation.table.schema == "pg_catalog"));
    }
    let (schema, name) = match object(values, ctx)? {
        Some(Object::Table(table)) => (table.schema.clone(), table.name.clone()),
        Some(Object::View(view)) => (view.schema.clone(), view.name.clone()),
        Some(Object::Sequence(sequence)) => (sequence.schema.clone(), sequence.name.clone()),
        Some(Object::PrimaryKey(table)) => (table.schema.clone(), crate::define::names::primary_name(&table)),
        Some(Object::Index(table, at)) => (table.schema.clone(), table.indexes[at].name.clone()),
        Some(Object::Type(ty)) if ty.row().is_some() => (ty.schema.clone(), ty.name.clone()),
        _ => return Ok(if oid < oids::FIRST { Value::FALSE } else { Value::Null }),
    };
    let facts = ctx.facts();
    let schema = crate::define::names::schema_of(&schema);
    let is_found = is_found_in(&facts.definitions, &facts.database, &facts.search_path, schema, &name);
    Ok(Value::from(is_found))
}

fn bytes_of(maps: &[engine::rows::MapId], ctx: &mut EvalContext) -> Result<i64> {
    let Some(db) = ctx.facts().db.clone() else { return Ok(0) };
    let mut bytes = 0;
    for map in maps {
        bytes += db.engine().rows().bytes(*map).map_err(query::engine_fault::engine_fault)?;
    }
    Ok(bytes as i64)
}

fn relation_size(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let maps = match object(values, ctx)? {
        Some(Object::Table(table)) => vec![table.map],
        Some(Object::Index(table, at)) => vec![table.indexes[at].map],
        Some(_) => Vec::new(),
        None => return Ok(Value::Null),
    };
    bytes_of(&maps, ctx).map(Value::Int)
}

fn indexes_size(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(Object::Table(table)) = object(values, ctx)? else { return Ok(Value::Null) };
    let maps: Vec<_> = table.indexes.iter().map(|index| index.map).collect();
    bytes_of(&maps, ctx).map(Value::Int)
}

fn total_size(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    match object(values, ctx)? {
        Some(Object::Table(table)) => bytes_of(&table.maps(), ctx).map(Value::Int),
        Some(_) => relation_size_of(values, ctx),
        None => Ok(Value::Null),
    }
}

fn relation_size_of(values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let maps = match object(values, ctx)? {
        Some(Object::Index(table, at)) => vec![table.indexes[at].map],
        _ => Vec::new(),
    };
    bytes_of(&maps, ctx).map(Value::Int)
}
