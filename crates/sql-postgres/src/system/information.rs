//! `information_schema`: the standard's view of the same definitions.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::system_table::{SystemRows, SystemTable};

use crate::batch::Row;
use crate::system::catalog::{number, table, text};
use crate::system::column::{INT4, NAME, TEXT};
use crate::system::view::{Shown, columns, default_text, type_of};
use crate::types::{oid, registry};
use crate::value::Value;

table!(
    SCHEMATA,
    "information_schema",
    schemata,
    [
        ("catalog_name", NAME),
        ("schema_name", NAME),
        ("schema_owner", NAME),
        ("default_character_set_catalog", NAME),
        ("default_character_set_schema", NAME),
        ("default_character_set_name", NAME),
        ("sql_path", TEXT),
    ]
);
fn schemata(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let row = |name: &str| {
        let owner = crate::instance::database::POSTGRES;
        vec![text(&shown.database), text(name), text(owner), Value::Null, Value::Null, Value::Null, Value::Null]
    };
    Ok(["pg_catalog", "information_schema"].into_iter().chain(shown.schemas().map(|(name, _)| name)).map(row).collect())
}

table!(
    TABLES,
    "information_schema",
    tables,
    [
        ("table_catalog", NAME),
        ("table_schema", NAME),
        ("table_name", NAME),
        ("table_type", TEXT),
        ("self_referencing_column_name", NAME),
        ("reference_generation", TEXT),
        ("user_defined_type_catalog", NAME),
        ("user_defined_type_schema", NAME),
        ("user_defined_type_name", NAME),
        ("is_insertable_into", TEXT),
        ("is_typed", TEXT),
        ("commit_action", TEXT),
    ]
);
fn tables(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let row = |schema: &str, name: &str, kind: &str, insertable: &str| {
        let null = || Value::Null;
        vec![
            text(&shown.database),
            text(schema),
            text(name),
            text(kind),
            null(),
            null(),
            null(),
            null(),
            null(),
            text(insertable),
            text("NO"),
            null(),
        ]
    };
    let mut rows: Vec<Row> =
        super::TABLES.iter().map(|(_, table)| row(table.schema, table.name, "VIEW", "NO")).collect();
    for (name, schema) in shown.schemas() {
        rows.extend(schema.tables.values().map(|table| row(name, &table.name, "BASE TABLE", "YES")));
        rows.extend(schema.views.values().map(|view| row(name, &view.name, "VIEW", "NO")));
    }
    Ok(rows)
}

table!(
    COLUMNS,
    "information_schema",
    information_columns,
    [
        ("table_catalog", NAME),
        ("table_schema", NAME),
        ("table_name", NAME),
        ("column_name", NAME),
        ("ordinal_position", INT4),
        ("column_default", TEXT),
        ("is_nullable", TEXT),
        ("data_type", TEXT),
        ("character_maximum_length", INT4),
        ("character_octet_length", INT4),
        ("numeric_precision", INT4),
        ("numeric_precision_radix", INT4),
        ("numeric_scale", INT4),
        ("datetime_precision", INT4),
        ("udt_catalog", NAME),
        ("udt_schema", NAME),
        ("udt_name", NAME),
        ("is_identity", TEXT),
        ("identity_generation", TEXT),
        ("is_generated", TEXT),
        ("generation_expression", TEXT),
        ("is_updatable", TEXT),
    ]
);
fn information_columns(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    use query::catalog::table::Identity;
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    let schemas: Vec<(String, Vec<_>)> =
        shown.schemas().map(|(name, schema)| (name.to_owned(), schema.tables.values().cloned().collect())).collect();
    for (schema, tables) in schemas {
        for table in tables {
            for (nth, column) in columns(&table) {
                let (ty, typmod) = type_of(column);
                let some = |number_of: Option<i64>| number_of.map_or(Value::Null, number);
                let length = matches!(ty, oid::VARCHAR | oid::BPCHAR).then(|| registry::length_max(typmod)).flatten();
                let octets = matches!(ty, oid::TEXT | oid::VARCHAR | oid::BPCHAR)
                    .then(|| length.map_or(1 << 30, |length| length as i64 * 4));
                let digits = if ty == oid::NUMERIC { registry::numeric_digits(typmod) } else { None };
                let (precision, radix, scale) = match ty {
                    oid::INT2 => (Some(16), Some(2), Some(0)),
                    oid::INT4 => (Some(32), Some(2), Some(0)),
                    oid::INT8 => (Some(64), Some(2), Some(0)),
                    oid::FLOAT4 => (Some(24), Some(2), None),
                    oid::FLOAT8 => (Some(53), Some(2), None),
                    oid::NUMERIC => {
                        (digits.map(|(precision, _)| precision.into()), Some(10), digits.map(|(_, scale)| scale.into()))
                    }
                    _ => (None, None, None),
                };
                let fraction = match ty {
                    oid::DATE => Some(0),
                    oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
                        Some(if typmod < 0 { 6 } else { i64::from(typmod) })
                    }
                    oid::INTERVAL => Some(6),
                    _ => None,
                };
                let default = if column.generated.is_some() { None } else { default_text(column, ctx) };
                let identity = match column.identity {
                    Identity::None => Value::Null,
                    Identity::Always => text("ALWAYS"),
                    Identity::ByDefault => text("BY DEFAULT"),
                };
                let yes = |is: bool| text(if is { "YES" } else { "NO" });
                let generated = column.generated.as_ref();
                rows.push(vec![
                    text(&shown.database),
                    text(&schema),
                    text(&table.name),
                    text(&column.name),
                    number(nth),
                    default.map_or(Value::Null, text),
                    yes(column.ty.nullable),
                    text(registry::format_type(ty, None)),
                    some(length.map(|length| length as i64)),
                    some(octets),
                    some(precision),
                    some(radix),
                    some(scale),
                    some(fraction),
                    text(&shown.database),
                    text("pg_catalog"),
                    text(registry::by_oid(ty).map_or("", |row| row.name)),
                    yes(column.identity != Identity::None),
                    identity,
                    text(if generated.is_some() { "ALWAYS" } else { "NEVER" }),
                    generated.map_or(Value::Null, |generated| text(&generated.text)),
                    yes(true),
                ]);
            }
        }
    }
    Ok(rows)
}
