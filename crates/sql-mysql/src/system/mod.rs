//! Virtual tables: information_schema and the tables of performance_schema, mysql and sys that clients read. Their rows
//! are computed on each read.

mod accounts;
mod column;
mod empty_tables;
mod keywords;
mod schema;
pub(crate) mod schemas;
pub(crate) mod statistics;
pub(crate) mod status;
mod tools;
mod transactions;
pub mod viewer;
mod views;

use crate::value::Value;
use query::nodes::system_table::SystemTable;

pub use schema::{column_extra, column_key, default_text, empty_text, hex_text, keys, value_text};

pub fn find(schema: &str, name: &str) -> Option<&'static SystemTable> {
    all().find(|table| table.schema.eq_ignore_ascii_case(schema) && table.name.eq_ignore_ascii_case(name))
}

pub fn all() -> impl Iterator<Item = &'static SystemTable> {
    [
        schema::TABLES,
        statistics::TABLES,
        empty_tables::TABLES,
        status::TABLES,
        accounts::TABLES,
        &query::nodes::keyspace_table::TABLES[..],
        keywords::TABLES,
        tools::TABLES,
        transactions::TABLES,
    ]
    .into_iter()
    .flatten()
}

/// The virtual schemas in SHOW DATABASES. Others are hidden: a dump of all databases must not contain a schema that no
/// statement can create.
pub const SHOWN: [&str; 1] = ["information_schema"];

pub fn text(text: impl AsRef<str>) -> Value {
    Value::text(text)
}
