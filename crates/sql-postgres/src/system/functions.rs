//! Functions over the catalog: definitions as text, sizes, visibility, rights.

use std::sync::Arc;

use datum::Result;
use query::catalog::foreign_key::{Action, ForeignKey};
use query::catalog::objects::Object;
use query::catalog::table::Table;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::define::names::schema_of;
use crate::functions::PgFunction;
use crate::functions::args::{integer, text};
use crate::functions::rows::{S, V, row, strict};
use crate::session::facts::FactsOf as _;
use crate::session::quoted;
use crate::system::oids;
use crate::system::view::{Shown, columns, indexes};
use crate::types::oid::{BOOL, INT4, INT8, NAME, OID, PG_NODE_TREE, REGCLASS, TEXT};
use crate::value::Value;

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(1216, "col_description", &[OID, INT4], 0, TEXT, S, true, strict!("col_description", col_description, S)),
    row(2254, "has_database_privilege", &[TEXT, TEXT], 0, BOOL, S, true, strict!("has_database_privilege", has_privilege, S)),
    row(2272, "has_schema_privilege", &[TEXT, TEXT], 0, BOOL, S, true, strict!("has_schema_privilege", has_privilege, S)),
    row(2273, "has_schema_privilege", &[OID, TEXT], 0, BOOL, S, true, strict!("has_schema_privilege", has_privilege, S)),
    row(1926, "has_table_privilege", &[TEXT, TEXT], 0, BOOL, S, true, strict!("has_table_privilege", has_privilege, S)),
    row(1927, "has_table_privilege", &[OID, TEXT], 0, BOOL, S, true, strict!("has_table_privilege", has_privilege, S)),
    row(1215, "obj_description", &[OID, NAME], 0, TEXT, S, true, strict!("obj_description", obj_description, S)),
    row(1387, "pg_get_constraintdef", &[OID], 0, TEXT, S, true, strict!("pg_get_constraintdef", constraintdef, S)),
    row(2508, "pg_get_constraintdef", &[OID, BOOL], 0, TEXT, S, true, strict!("pg_get_constraintdef", constraintdef, S)),
    row(1716, "pg_get_expr", &[PG_NODE_TREE, OID], 0, TEXT, S, true, strict!("pg_get_expr", get_expr, S)),
    row(2509, "pg_get_expr", &[PG_NODE_TREE, OID, BOOL], 0, TEXT, S, true, strict!("pg_get_expr", get_expr, S)),
    row(1643, "pg_get_indexdef", &[OID], 0, TEXT, S, true, strict!("pg_get_indexdef", indexdef, S)),
    row(2507, "pg_get_indexdef", &[OID, INT4, BOOL], 0, TEXT, S, true, strict!("pg_get_indexdef", indexdef, S)),
    row(1665, "pg_get_serial_sequence", &[TEXT, TEXT], 0, TEXT, S, true, strict!("pg_get_serial_sequence", serial_sequence, S)),
    row(1642, "pg_get_userbyid", &[OID], 0, NAME, S, true, strict!("pg_get_userbyid", userbyid, S)),
    row(2998, "pg_indexes_size", &[REGCLASS], 0, INT8, V, true, strict!("pg_indexes_size", indexes_size, V)),
    row(2325, "pg_relation_size", &[REGCLASS], 0, INT8, V, true, strict!("pg_relation_size", relation_size, V)),
    row(2079, "pg_table_is_visible", &[OID], 0, BOOL, S, true, strict!("pg_table_is_visible", is_visible, S)),
    row(2997, "pg_table_size", &[REGCLASS], 0, INT8, V, true, strict!("pg_table_size", relation_size, V)),
    row(2286, "pg_total_relation_size", &[REGCLASS], 0, INT8, V, true, strict!("pg_total_relation_size", total_size, V)),
    row(1993, "shobj_description", &[OID, NAME], 0, TEXT, S, true, strict!("shobj_description", no_description, S)),
];

/// Returns the object of an OID.
fn object(values: &[Value], ctx: &mut EvalContext) -> Result<Option<Object>> {
    let oid = integer(values, 0)? as u32;
    let snapshot = ctx.facts().db.as_ref().map(|db| db.catalog().snapshot());
    Ok(snapshot.and_then(|snapshot| snapshot.object(oids::object_of(oid)?).cloned()))
}

fn optional(text: Option<String>) -> Result<Value> {
    Ok(text.map_or(Value::Null, Value::text))
}

fn obj_description(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let comment = match object(values, ctx)? {
        Some(Object::Table(table)) => table.comment.clone(),
        Some(Object::Index(table, at)) => table.indexes[at].comment.clone(),
        _ => String::new(),
    };
    optional((!comment.is_empty()).then_some(comment))
}

fn col_description(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(Object::Table(table)) = object(values, ctx)? else { return Ok(Value::Null) };
    let nth = integer(values, 1)?;
    let comment = columns(&table).find(|(number, _)| *number == nth).map(|(_, column)| column.comment.clone());
    optional(comment.filter(|comment| !comment.is_empty()))
}

fn no_description(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Null)
}

/// Sessions of this door have all rights.
fn has_privilege(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::TRUE)
}

fn get_expr(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(text(values, 0)?))
}

fn userbyid(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    if oid == oids::POSTGRES {
        return Ok(Value::text(crate::instance::database::POSTGRES));
    }
    let accounts = ctx.facts().db.as_ref().map(|db| db.engine().accounts().list()).unwrap_or_default();
    let found = accounts.iter().find(|account| oids::of_role(&account.name) == oid).map(|account| account.name.clone());
    Ok(Value::text(found.unwrap_or_else(|| format!("unknown (OID={oid})"))))
}

fn is_visible(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    if super::TABLES.iter().any(|(known, table)| *known == oid && table.schema == "pg_catalog") {
        return Ok(Value::TRUE);
    }
    let (schema, name) = match object(values, ctx)? {
        Some(Object::Table(table)) => (table.schema.clone(), table.name.clone()),
        Some(Object::View(view)) => (view.schema.clone(), view.name.clone()),
        Some(Object::Sequence(sequence)) => (sequence.schema.clone(), sequence.name.clone()),
        Some(Object::PrimaryKey(table)) => (table.schema.clone(), crate::define::names::primary_name(&table)),
        Some(Object::Index(table, at)) => (table.schema.clone(), table.indexes[at].name.clone()),
        _ => return Ok(if oid < oids::FIRST { Value::FALSE } else { Value::Null }),
    };
    let facts = ctx.facts();
    let snapshot = facts.db.as_ref().map(|db| db.catalog().snapshot());
    let Some(snapshot) = snapshot else { return Ok(Value::FALSE) };
    for path in &facts.search_path {
        let Some(stored) = query::catalog::schema_name::SchemaName::new(&facts.database, path) else { continue };
        let stored = stored.stored();
        if *stored == *schema {
            return Ok(Value::TRUE);
        }
        // An earlier schema may hide it.
        let hides =
            snapshot.schemas.get(&*stored).is_some_and(|found| crate::define::names::find(found, &name).is_some());
        if hides {
            return Ok(Value::FALSE);
        }
    }
    Ok(Value::FALSE)
}

fn indexdef(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    let (Some(Object::Index(table, _)) | Some(Object::PrimaryKey(table))) = object(values, ctx)? else {
        return Ok(Value::Null);
    };
    let found = indexes(&table).into_iter().find(|index| index.oid == oid);
    let column = if values.len() > 1 { integer(values, 1)? } else { 0 };
    optional(found.and_then(|index| match usize::try_from(column) {
        Ok(0) => Some(index.definition(&table)),
        Ok(nth) => index.parts.get(nth - 1).map(|part| quoted(&table.columns[part.column].name)),
        Err(_) => None,
    }))
}

fn constraintdef(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    let names = |table: &Table, columns: &mut dyn Iterator<Item = usize>| {
        columns.map(|at| quoted(&table.columns[at].name)).collect::<Vec<_>>().join(", ")
    };
    let defined = match object(values, ctx)? {
        Some(Object::PrimaryKey(table) | Object::Index(table, _)) => {
            indexes(&table).into_iter().find(|index| index.oid == oid && index.is_constraint).map(|index| {
                let word = if index.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
                format!("{word} ({})", names(&table, &mut index.parts.iter().map(|part| part.column)))
            })
        }
        Some(Object::Check(table, at)) => Some(format!("CHECK (({}))", table.checks[at].text)),
        Some(Object::ForeignKey(table, at)) => Some(foreign_key(&table, &table.foreign_keys[at], ctx)),
        _ => None,
    };
    optional(defined)
}

fn foreign_key(table: &Arc<Table>, key: &ForeignKey, ctx: &mut EvalContext) -> String {
    let own: Vec<String> = key.columns.iter().map(|at| quoted(&table.columns[*at].name)).collect();
    let parent: Vec<String> = key.parent_columns.iter().map(|name| quoted(name)).collect();
    let schema = schema_of(&key.parent_schema).to_owned();
    let is_visible = ctx.facts().search_path.contains(&schema);
    let qualifier = if is_visible { String::new() } else { quoted(&schema) + "." };
    let mut text = format!(
        "FOREIGN KEY ({}) REFERENCES {qualifier}{}({})",
        own.join(", "),
        quoted(&key.parent),
        parent.join(", ")
    );
    for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if action != Action::Nothing {
            text.push_str(&format!(" ON {event} {}", action.name()));
        }
    }
    text
}

fn serial_sequence(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (name, column) = (text(values, 0)?.to_owned(), text(values, 1)?.to_owned());
    let Some(shown) = Shown::of(ctx) else { return Ok(Value::Null) };
    let path = ctx.facts().search_path.clone();
    let (schema, table) = match name.split_once('.') {
        Some((schema, table)) => (Some(schema.trim_matches('"').to_owned()), table.trim_matches('"').to_owned()),
        None => (None, name.trim_matches('"').to_owned()),
    };
    let found = shown.schemas().filter(|(known, _)| match &schema {
        Some(schema) => known == schema,
        None => path.iter().any(|schema| schema == known),
    });
    let tables = found.filter_map(|(_, schema)| schema.tables.get(&table));
    let owned = tables
        .flat_map(|table| table.columns.iter().find(|known| known.name == column))
        .flat_map(|column| column.sequences.first());
    let sequence = owned.filter_map(|id| match shown.snapshot.object(*id) {
        Some(Object::Sequence(sequence)) => {
            Some(format!("{}.{}", quoted(schema_of(&sequence.schema)), quoted(&sequence.name)))
        }
        _ => None,
    });
    optional(sequence.into_iter().next())
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
