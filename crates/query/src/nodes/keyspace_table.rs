//! The keys of the Redis door as a table, `redis.strings`: docs/decisions/0011-keys-as-tables.md, D11-1 to D11-10. `exec::keys` reads, locks and changes its rows.

use std::sync::{Arc, OnceLock};

use datum::Storage;
use datum::key::KeyOrder;

use crate::catalog::table::{Default, Part, Table, TableColumn};
use crate::catalog::table_state::TableState;
use crate::key_form::KeyForm;
use crate::nodes::relation::{Origin, ScopeTable};
use crate::nodes::system_table::{SystemRows, SystemTable};
use crate::types::Type;
use crate::value::Value;

pub const SCHEMA: &str = "redis";

pub const DB: usize = 0;
pub const KEY: usize = 1;
pub const VALUE: usize = 2;
pub const EXPIRES_AT: usize = 3;

const DB_TYPE: Type = Type::undeclared(Storage::Int { bytes: 8, signed: false }, (21, 0), false);
const KEY_TYPE: Type = Type::undeclared(Storage::Bytes, (65_535, 0), false);
const VALUE_TYPE: Type = Type::undeclared(Storage::Bytes, (u32::MAX, 0), false);
/// An instant, with milliseconds.
const EXPIRES_AT_TYPE: Type = Type::undeclared(Storage::TimestampTz, (19, 3), true);

pub const TABLES: &[SystemTable] = &[SystemTable {
    schema: SCHEMA,
    name: "strings",
    columns: &[("db", DB_TYPE), ("key", KEY_TYPE), ("value", VALUE_TYPE), ("expires_at", EXPIRES_AT_TYPE)],
    rows: SystemRows::Keyspace,
}];

/// The keys' table as those see it who change rows. Its rows are in no map.
pub fn table() -> &'static Arc<Table> {
    static TABLE: OnceLock<Arc<Table>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let [strings] = TABLES else { unreachable!("one table") };
        let types = strings.columns_as(strings.name).into_iter().map(|column| column.ty);
        let column = |(at, ty): (usize, Type)| {
            let default = match at {
                DB => Default::Value(Value::UInt(0)),
                EXPIRES_AT => Default::Value(Value::Null),
                _ => Default::None,
            };
            let name = strings.columns[at].0.to_owned();
            TableColumn { default, ..TableColumn::new(name, ty, at) }
        };
        let columns: Vec<TableColumn> = types.enumerate().map(column).collect();
        let part = |column| Part { column, prefix: None, order: KeyOrder::ASCENDING };
        let table = Table {
            id: u64::MAX,
            schema: SCHEMA.to_owned(),
            version: 1,
            map: engine::rows::MapId::MAX,
            primary_form: KeyForm::Hashed,
            primary: Some(vec![part(DB), part(KEY)]),
            live: Arc::new(TableState::new(1)),
            ..Table::draft(strings.name, &columns)
        };
        Arc::new(table.with_derived_fields())
    })
}

/// Is that place the key's column of this table?
pub fn is_key(table: &ScopeTable, place: usize) -> bool {
    matches!(&table.origin, Origin::System(system) if system.is_keyspace()) && place == table.offset + KEY
}

impl Table {
    /// Is this the table whose rows are keys of the Redis door?
    pub fn is_keyspace(&self) -> bool {
        self.id == table().id
    }
}
