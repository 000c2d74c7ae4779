//! Computed tables: `pg_catalog` and `information_schema`, from the definitions of the session's database.
//!
//! Columns whose values are arrays are absent.

mod activity;
mod catalog;
mod column;
pub mod functions;
mod information;
pub mod oids;
pub mod view;

use query::nodes::system_table::SystemTable;

use crate::types::oid::Oid;

/// The tables with their OIDs: PostgreSQL's for those of `pg_catalog`.
#[rustfmt::skip]
pub static TABLES: &[(Oid, &SystemTable)] = &[
    (2601, &catalog::PG_AM),
    (2604, &catalog::PG_ATTRDEF),
    (1249, &catalog::PG_ATTRIBUTE),
    (1259, &catalog::PG_CLASS),
    (2606, &catalog::PG_CONSTRAINT),
    (12077, &activity::PG_CURSORS),
    (1262, &catalog::PG_DATABASE),
    (2609, &catalog::PG_DESCRIPTION),
    (2610, &catalog::PG_INDEX),
    (12038, &catalog::PG_INDEXES),
    (2615, &catalog::PG_NAMESPACE),
    (12000, &catalog::PG_ROLES),
    (2224, &catalog::PG_SEQUENCE),
    (12043, &catalog::PG_SEQUENCES),
    (12104, &catalog::PG_SETTINGS),
    (12196, &activity::PG_STAT_ACTIVITY),
    (12028, &catalog::PG_TABLES),
    (1247, &catalog::PG_TYPE),
    (12023, &catalog::PG_VIEWS),
    (13250, &information::COLUMNS),
    (13390, &information::SCHEMATA),
    (13420, &information::TABLES),
];

/// Returns whether the schema's tables are computed.
pub fn is_system(schema: &str) -> bool {
    matches!(schema, "pg_catalog" | "information_schema")
}

/// Returns the table of that name.
pub fn find(schema: &str, name: &str) -> Option<&'static SystemTable> {
    TABLES.iter().map(|(_, table)| *table).find(|table| table.schema == schema && table.name == name)
}

/// Returns the name of a table by that of the function that computes it: they differ where another item has the name.
const fn named(function: &'static str) -> &'static str {
    match function.as_bytes() {
        b"information_columns" => "columns",
        _ => function,
    }
}
