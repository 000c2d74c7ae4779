//! Statistics as tables: histograms in information_schema, and InnoDB's statistics tables in `mysql`, which are
//! read-only.

use crate::system::column::{LONG_TEXT, MOMENT, NUMBER, chars};
use std::fmt::Write;

use datum::Result;
use datum::base64;

use crate::batch::Row;
use crate::scalar::convert::to_text;
use crate::scalar::json::quote;
use crate::scalar::temporal::{Timestamp, Zone};
use crate::system::schema::{NAME, all_tables};
use crate::system::text;
use crate::system::viewer::viewer;
use crate::types::{CollationName as _, Kind, MysqlType as _, Type};
use crate::value::Value;
use query::catalog::statistics::{Histogram, Statistics};
use query::catalog::table::{Part, Table};
use query::nodes::context::EvalContext;
use query::nodes::system_table::SystemRows::Computed;
use query::nodes::system_table::SystemTable;

pub const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "information_schema",
        name: "COLUMN_STATISTICS",
        columns: &[("SCHEMA_NAME", NAME), ("TABLE_NAME", NAME), ("COLUMN_NAME", NAME), ("HISTOGRAM", LONG_TEXT)],
        rows: Computed(column_statistics),
    },
    SystemTable {
        schema: "mysql",
        name: "innodb_table_stats",
        columns: &[
            ("database_name", NAME),
            ("table_name", chars(199)),
            ("last_update", MOMENT),
            ("n_rows", NUMBER),
            ("clustered_index_size", NUMBER),
            ("sum_of_other_index_sizes", NUMBER),
        ],
        rows: Computed(table_stats),
    },
    SystemTable {
        schema: "mysql",
        name: "innodb_index_stats",
        columns: &[
            ("database_name", NAME),
            ("table_name", chars(199)),
            ("index_name", NAME),
            ("last_update", MOMENT),
            ("stat_name", NAME),
            ("stat_value", NUMBER),
            ("sample_size", NUMBER),
            ("stat_description", chars(1024)),
        ],
        rows: Computed(index_stats),
    },
];

/// Returns the estimated row count. Without statistics it samples a few pages.
pub fn rows_of(table: &Table, ctx: &mut EvalContext) -> u64 {
    let count = || query::catalog::sampling::count(viewer(ctx).db.engine(), table).unwrap_or(0.0) as u64;
    table.live.rows().unwrap_or_else(count)
}

/// Returns the approximate bytes of the rows and of the secondary indexes. A map that cannot be read counts as zero.
pub fn bytes_of(table: &Table, ctx: &mut EvalContext) -> (u64, u64) {
    let rows = viewer(ctx).db.engine().rows();
    let bytes = |map| rows.bytes(map).unwrap_or(0);
    let long = rows.long_bytes(table.map).unwrap_or(0);
    (bytes(table.map) + long, table.indexes.iter().map(|index| bytes(index.map)).sum())
}

/// Returns the estimated number of distinct values of a key's first `count` parts, if known.
pub fn cardinality(table: &Table, parts: &[Part], count: usize) -> Option<u64> {
    let known = table.live.statistics()?;
    let index = table.indexes.iter().find(|index| index.parts == parts).map(|index| index.map);
    let map = if table.primary.as_deref() == Some(parts) { Some(table.map) } else { index };
    known.key(map?)?.distinct.get(count - 1).copied()
}

fn known_tables(ctx: &mut EvalContext) -> Vec<(std::sync::Arc<Table>, std::sync::Arc<Statistics>)> {
    all_tables(ctx).into_iter().filter_map(|table| Some((table.clone(), table.live.statistics()?))).collect()
}

fn column_statistics(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (table, known) in known_tables(ctx) {
        for column in &table.columns {
            let histogram = known.column(column.slot).and_then(|column| column.histogram.as_ref());
            if let Some(histogram) = histogram {
                let shown = text(shown(histogram, &column.ty));
                rows.push(vec![text(&table.schema), text(&table.name), text(&column.name), shown]);
            }
        }
    }
    Ok(rows)
}

/// Formats a histogram as MySQL's JSON.
fn shown(histogram: &Histogram, ty: &Type) -> String {
    let is_singleton = histogram.buckets.iter().all(|bucket| bucket.low == bucket.high);
    let mut out = String::from("{\"buckets\": [");
    for (at, bucket) in histogram.buckets.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let upto = number(bucket.upto);
        let high = value(&bucket.high, ty);
        let _ = match is_singleton {
            true => write!(out, "{comma}[{high}, {upto}]"),
            false => write!(out, "{comma}[{}, {high}, {upto}, {}]", value(&bucket.low, ty), bucket.distinct),
        };
    }
    let kind = match ty.kind() {
        Kind::Decimal => "decimal",
        Kind::Float | Kind::Double => "double",
        Kind::Date => "date",
        Kind::Time => "time",
        Kind::DateTime | Kind::Timestamp => "datetime",
        Kind::Enum => "enum",
        Kind::Set => "set",
        Kind::Bit => "uint",
        kind if kind.is_integer() && ty.is_unsigned() => "uint",
        kind if kind.is_integer() || kind == Kind::Year => "int",
        _ => "string",
    };
    let _ = write!(
        out,
        "], \"data-type\": \"{kind}\", \"null-values\": {}, \"collation-id\": {}, \"last-updated\": \"{}\", \"sampling-rate\": {}, \"histogram-type\": \"{}\", \"number-of-buckets-specified\": {}}}",
        number(histogram.nulls),
        ty.collation.id(),
        precise(&Value::DateTime(Zone::utc().local(Timestamp(histogram.updated))), Kind::DateTime),
        number(histogram.rate),
        if is_singleton { "singleton" } else { "equi-height" },
        histogram.wanted
    );
    out
}

fn number(number: f64) -> String {
    format!("{number:?}")
}

/// Formats a temporal value with microseconds.
fn precise(value: &Value, kind: Kind) -> String {
    to_text(value, &Type::temporal(kind, 6)).as_str().to_owned()
}

fn value(value: &Value, ty: &Type) -> String {
    match value {
        Value::Text(text) => quote(&format!("base64:type254:{}", base64::encode(text.as_bytes()))),
        Value::Bytes(bytes) => quote(&format!("base64:type254:{}", base64::encode(bytes))),
        Value::Date(date) => quote(&date.to_string()),
        Value::Time(time) => quote(&precise(&Value::Time(*time), Kind::Time)),
        Value::DateTime(at) => quote(&precise(&Value::DateTime(*at), Kind::DateTime)),
        Value::Timestamp(at) => quote(&precise(&Value::DateTime(Zone::utc().local(*at)), Kind::DateTime)),
        Value::Double(double) => number(*double),
        Value::Float(float) => number(f64::from(*float)),
        other => to_text(other, ty).as_str().to_owned(),
    }
}

fn table_stats(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (table, known) in known_tables(ctx) {
        let leaves = |map| known.key(map).map_or(0, |key| key.leaves);
        let others = table.indexes.iter().map(|index| leaves(index.map)).sum();
        rows.push(vec![
            text(&table.schema),
            text(&table.name),
            Value::Timestamp(Timestamp(known.gathered)),
            Value::UInt(known.rows),
            Value::UInt(leaves(table.map)),
            Value::UInt(others),
        ]);
    }
    Ok(rows)
}

fn index_stats(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (table, known) in known_tables(ctx) {
        let primary = table.primary.iter().map(|parts| ("PRIMARY", &parts[..], table.map));
        let indexes = table.indexes.iter().map(|index| (&*index.name, &index.parts[..], index.map));
        for (name, parts, map) in primary.chain(indexes) {
            let Some(key) = known.key(map) else { continue };
            let mut tell = |what: String, number: u64, meaning: String| {
                rows.push(vec![
                    text(&table.schema),
                    text(&table.name),
                    text(name),
                    Value::Timestamp(Timestamp(known.gathered)),
                    text(what),
                    Value::UInt(number),
                    Value::Null,
                    text(meaning),
                ]);
            };
            let names: Vec<&str> = parts.iter().map(|part| &*table.columns[part.column].name).collect();
            for (at, distinct) in key.distinct.iter().enumerate() {
                tell(format!("n_diff_pfx{:02}", at + 1), *distinct, names[..=at.min(names.len() - 1)].join(","));
            }
            tell("n_leaf_pages".into(), key.leaves, "Number of leaf pages in the index".into());
            tell("size".into(), key.leaves, "Number of pages in the index".into());
        }
    }
    Ok(rows)
}
