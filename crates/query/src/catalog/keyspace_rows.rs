//! The keys of the Redis door that are the rows of a table: their type, and the places and forms of their columns. `nodes::keyspace_table` has the tables.

use engine::Kind;

use crate::value::Value;

/// The greatest number of tables of keys, of all dialects together.
pub const TABLES_MAX: usize = 32;

/// Places of columns that all of the tables have.
pub const DB: usize = 0;
pub const KEY: usize = 1;
/// The place of the value of a string.
pub const VALUE: usize = 2;
/// The place of an element's name: field, member, position, or id of an entry.
pub const NAME: usize = 2;
/// The place of an element's value: value of a field, score, item.
pub const ELEMENT_VALUE: usize = 3;
/// The places of a stream's columns.
pub const MS: usize = 3;

/// How a dialect shows the values of keys whose form is not the same in all dialects.
#[derive(Debug)]
pub struct ValueForms {
    /// The number of a database.
    pub database: fn(u8) -> Value,
    pub unsigned: fn(u64) -> Value,
    /// The id of a stream's entry.
    pub id: fn(&str) -> Value,
    /// An instant, in milliseconds since 1970.
    pub instant: fn(u64) -> Value,
    /// Returns the milliseconds of an instant; `None` of NULL.
    pub instant_ms: fn(&Value) -> Option<u64>,
}

/// The keys that are the rows of a table.
#[derive(Debug)]
pub struct KeyspaceTable {
    pub kind: Kind,
    pub forms: &'static ValueForms,
    /// The name under which the dialect would store the schema.
    pub schema: &'static str,
    /// Less than `TABLES_MAX`, and no other table's.
    pub number: usize,
}

impl KeyspaceTable {
    pub const fn new(kind: Kind, forms: &'static ValueForms, schema: &'static str, number: usize) -> KeyspaceTable {
        KeyspaceTable { kind, forms, schema, number }
    }

    /// Returns the number that identifies the table among those of the catalog.
    pub fn id(&self) -> u64 {
        u64::MAX - self.number as u64
    }

    /// Returns the place of the expiry time of the key.
    pub fn expires_at(&self) -> usize {
        match self.kind {
            Kind::String | Kind::Set => 3,
            Kind::Hash | Kind::List | Kind::ZSet => 4,
            Kind::Stream => 8,
        }
    }

    /// Returns the number of columns of the primary key: database, key, and the name of an element.
    pub fn key_columns(&self) -> &'static [usize] {
        match self.kind {
            Kind::String => &[DB, KEY],
            Kind::Stream => &[DB, KEY, NAME, 5],
            _ => &[DB, KEY, NAME],
        }
    }
}
