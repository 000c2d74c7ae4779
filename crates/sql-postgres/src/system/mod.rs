//! Computed tables: `pg_catalog` and `information_schema`.

use query::nodes::system_table::SystemTable;

/// The tables by schema and name.
static TABLES: &[&SystemTable] = &[];

/// Returns whether the schema's tables are computed.
pub fn is_system(schema: &str) -> bool {
    matches!(schema, "pg_catalog" | "information_schema")
}

/// Returns the table of that name.
pub fn find(schema: &str, name: &str) -> Option<&'static SystemTable> {
    TABLES.iter().find(|table| table.schema == schema && table.name == name).copied()
}
