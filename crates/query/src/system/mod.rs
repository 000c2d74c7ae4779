//! Tables that are not stored: information_schema, and the few of performance_schema that clients read. Their rows are made when they are asked for.

mod absent;
mod accounts;
pub mod keys;
mod keywords;
mod schema;
pub(crate) mod statistics;
pub(crate) mod status;
mod tools;
mod transactions;
mod views;

pub use schema::{column_extra, column_key, default_text, empty_text, hex_text, keys, value_text};

use crate::batch::Row;
use crate::error::Result;
use crate::scalar::EvalContext;
use crate::types::{Column, Kind, Type};
use crate::value::Value;

/// What a column of a system table holds.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    Text(u32),
    LongText,
    Number,
    DateTime,
    Time,
    Bytes(u32),
    LongBytes,
    /// A point in time, with milliseconds.
    Moment,
}

pub struct SystemTable {
    pub schema: &'static str,
    pub name: &'static str,
    pub columns: &'static [(&'static str, Holds)],
    pub rows: fn(&mut EvalContext) -> Result<Vec<Row>>,
}

impl std::fmt::Debug for SystemTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

impl SystemTable {
    pub fn columns_as(&self, alias: &str) -> Vec<Column> {
        let column = |(name, holds): &(&'static str, Holds)| {
            let ty = match holds {
                Holds::Text(length) => Type::text(*length, crate::types::Collation::Utf8BmpGeneralCi),
                Holds::LongText => {
                    Type { collation: crate::types::Collation::Utf8BmpGeneralCi, ..Type::new(Kind::LongText) }
                }
                Holds::Number => Type::unsigned(),
                Holds::DateTime => Type::new(Kind::DateTime),
                Holds::Time => Type::new(Kind::Time),
                Holds::Bytes(length) => Type::bytes(*length),
                Holds::LongBytes => Type::new(Kind::LongBlob),
                Holds::Moment => Type::temporal(Kind::Timestamp, 3).with_nullable(true),
            };
            let ty = if keys::is_keys(self) { ty.with_nullable(*name == "expires_at") } else { ty };
            Column {
                schema: self.schema.to_owned(),
                table: alias.to_owned(),
                org_table: self.name.to_owned(),
                org_name: (*name).to_owned(),
                ..Column::computed(*name, ty)
            }
        };
        self.columns.iter().map(column).collect()
    }
}

/// Names of schemas whose tables are made here.
pub const SCHEMAS: &[&str] = &["information_schema", "mysql", "performance_schema", "redis", "sys"];

pub fn is_system(schema: &str) -> bool {
    SCHEMAS.iter().any(|known| known.eq_ignore_ascii_case(schema))
}

pub fn find(schema: &str, name: &str) -> Option<&'static SystemTable> {
    all().find(|table| table.schema.eq_ignore_ascii_case(schema) && table.name.eq_ignore_ascii_case(name))
}

pub fn all() -> impl Iterator<Item = &'static SystemTable> {
    [
        schema::TABLES,
        statistics::TABLES,
        absent::TABLES,
        status::TABLES,
        accounts::TABLES,
        keys::TABLES,
        keywords::TABLES,
        tools::TABLES,
        transactions::TABLES,
    ]
    .into_iter()
    .flatten()
}

/// Those that SHOW DATABASES lists: a dump of all databases must not meet one that cannot be made by statements.
pub const SHOWN: [&str; 1] = ["information_schema"];

pub fn text(text: impl AsRef<str>) -> Value {
    Value::text(text)
}
