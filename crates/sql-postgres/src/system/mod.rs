//! The schemas that every database has: `pg_catalog` and `information_schema`, computed from the definitions of the session's database, and `redis`, the keys of the Redis door.

mod activity;
mod arrays;
mod catalog;
mod cells;
mod comments;
mod extract;
pub mod functions;
mod information;
pub mod keyspace;
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

/// The schemas that every database has, with their OIDs. Nothing can be made in them.
pub const SCHEMAS: [(&str, Oid); 3] = [
    ("pg_catalog", oids::PG_CATALOG),
    ("information_schema", oids::INFORMATION_SCHEMA),
    (keyspace::SCHEMA, oids::REDIS),
];

/// Returns whether the schema is one that every database has.
pub fn is_system(schema: &str) -> bool {
    oid_of_schema(schema).is_some()
}

/// Returns the OID of a schema that every database has.
pub fn oid_of_schema(schema: &str) -> Option<Oid> {
    SCHEMAS.iter().find(|(name, _)| *name == schema).map(|(_, oid)| *oid)
}

/// Returns the name of a schema that every database has.
pub fn name_of_schema(oid: Oid) -> Option<&'static str> {
    SCHEMAS.iter().find(|(_, known)| *known == oid).map(|(name, _)| *name)
}

/// Returns the table of that name.
pub fn find(schema: &str, name: &str) -> Option<&'static SystemTable> {
    relations::by_name(schema, name).map(|relation| &relation.table)
}

/// Returns the OID of a catalog, whose rows have it as their `tableoid`; `None` for a view.
pub fn catalog_oid(schema: &str, name: &str) -> Option<Oid> {
    relations::by_name(schema, name).filter(|relation| relation.kind == 'r').map(|relation| relation.oid)
}
