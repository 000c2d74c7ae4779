//! Computed tables: `pg_catalog` and `information_schema`, from the definitions of the session's database.

mod activity;
mod arrays;
mod catalog;
mod cells;
mod extract;
pub mod functions;
mod information;
mod locks;
pub mod oids;
pub mod operator_class;
pub mod relations;
mod rights;
mod served;
pub mod view;
mod wanted;

use query::nodes::system_table::SystemTable;

pub use extract::function_name;

use crate::types::oid::Oid;

/// Returns whether the schema's tables are computed.
pub fn is_system(schema: &str) -> bool {
    matches!(schema, "pg_catalog" | "information_schema")
}

/// Returns the table of that name.
pub fn find(schema: &str, name: &str) -> Option<&'static SystemTable> {
    relations::by_name(schema, name).map(|relation| &relation.table)
}

/// Returns the OID of a catalog, whose rows have it as their `tableoid`; `None` for a view.
pub fn catalog_oid(schema: &str, name: &str) -> Option<Oid> {
    relations::by_name(schema, name).filter(|relation| relation.kind == 'r').map(|relation| relation.oid)
}
