//! Schemas whose tables are computed and not in the catalog.

pub const SCHEMAS: &[&str] = &["information_schema", "mysql", "performance_schema", "redis", "sys"];

/// Returns whether the schema is one of them, in any case.
pub fn is_system(schema: &str) -> bool {
    SCHEMAS.iter().any(|known| known.eq_ignore_ascii_case(schema))
}
