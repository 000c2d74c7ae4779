//! Schemas whose tables are not in the catalog.

/// Names of schemas of system tables.
pub const SCHEMAS: &[&str] = &["information_schema", "mysql", "performance_schema", "redis", "sys"];

pub fn is_system(schema: &str) -> bool {
    SCHEMAS.iter().any(|known| known.eq_ignore_ascii_case(schema))
}
