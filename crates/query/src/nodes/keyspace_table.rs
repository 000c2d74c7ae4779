//! The keys of the Redis door as tables, one for each type of key: docs/decisions/0011-keys-as-tables.md, D11-1 to D11-10, and
//! 0030-collections-as-tables.md. `redis.strings` has a row for each key, the others one for each element.
//!
//! `exec::keyspace_scan` and `exec::collection_scan` read the rows, `exec::keys` and `exec::collection_rows` lock and change them.

use std::sync::{Arc, OnceLock};

use datum::Storage;
use datum::key::KeyOrder;
use datum::temporal::Timestamp;
use engine::Kind;

use crate::catalog::keyspace_rows::{DB, KEY, KeyspaceTable, TABLES_MAX, ValueForms};
use crate::catalog::table::{Default, Part, Table, TableColumn};
use crate::catalog::table_state::TableState;
use crate::key_form::KeyForm;
use crate::nodes::relation::{Origin, ScopeTable};
use crate::nodes::system_table::{SystemRows, SystemTable};
use crate::types::Type;
use crate::value::Value;

pub const SCHEMA: &str = "redis";

/// The tables of keys as those see them who change rows, by their numbers.
static CHANGED: [OnceLock<Arc<Table>>; TABLES_MAX] = [const { OnceLock::new() }; TABLES_MAX];

const FORMS: ValueForms = ValueForms {
    database: |db| Value::UInt(u64::from(db)),
    unsigned: Value::UInt,
    id: |id| Value::bytes(id),
    instant: |ms| Value::Timestamp(Timestamp((ms as i64).saturating_mul(1000))),
    instant_ms: |value| match value {
        Value::Timestamp(time) => Some(u64::try_from(time.0 / 1000).unwrap_or(0)),
        _ => None,
    },
};

const DB_TYPE: Type = Type::undeclared(Storage::Int { bytes: 8, signed: false }, (21, 0), false);
const KEY_TYPE: Type = Type::undeclared(Storage::Bytes, (65_535, 0), false);
const VALUE_TYPE: Type = Type::undeclared(Storage::Bytes, (u32::MAX, 0), false);
/// An instant, with milliseconds.
const EXPIRES_AT_TYPE: Type = Type::undeclared(Storage::TimestampTz, (19, 3), true);
/// An index, counted from 0. An item without one is added at the end.
const POSITION_TYPE: Type = Type::undeclared(Storage::Int { bytes: 8, signed: true }, (20, 0), true);
const SCORE_TYPE: Type = Type::undeclared(Storage::Float8, (22, 31), false);

static STRINGS: KeyspaceTable = KeyspaceTable::new(Kind::String, &FORMS, SCHEMA, 0);
static HASHES: KeyspaceTable = KeyspaceTable::new(Kind::Hash, &FORMS, SCHEMA, 1);
static LISTS: KeyspaceTable = KeyspaceTable::new(Kind::List, &FORMS, SCHEMA, 2);
static SETS: KeyspaceTable = KeyspaceTable::new(Kind::Set, &FORMS, SCHEMA, 3);
static SORTED_SETS: KeyspaceTable = KeyspaceTable::new(Kind::ZSet, &FORMS, SCHEMA, 4);
static STREAMS: KeyspaceTable = KeyspaceTable::new(Kind::Stream, &FORMS, SCHEMA, 5);

pub static TABLES: [SystemTable; 6] = [
    SystemTable {
        schema: SCHEMA,
        name: "strings",
        columns: &[("db", DB_TYPE), ("key", KEY_TYPE), ("value", VALUE_TYPE), ("expires_at", EXPIRES_AT_TYPE)],
        rows: SystemRows::Keyspace(&STRINGS),
    },
    SystemTable {
        schema: SCHEMA,
        name: "hashes",
        columns: &[
            ("db", DB_TYPE),
            ("key", KEY_TYPE),
            ("field", KEY_TYPE),
            ("value", VALUE_TYPE),
            ("expires_at", EXPIRES_AT_TYPE),
        ],
        rows: SystemRows::Keyspace(&HASHES),
    },
    SystemTable {
        schema: SCHEMA,
        name: "lists",
        columns: &[
            ("db", DB_TYPE),
            ("key", KEY_TYPE),
            ("position", POSITION_TYPE),
            ("value", VALUE_TYPE),
            ("expires_at", EXPIRES_AT_TYPE),
        ],
        rows: SystemRows::Keyspace(&LISTS),
    },
    SystemTable {
        schema: SCHEMA,
        name: "sets",
        columns: &[("db", DB_TYPE), ("key", KEY_TYPE), ("member", KEY_TYPE), ("expires_at", EXPIRES_AT_TYPE)],
        rows: SystemRows::Keyspace(&SETS),
    },
    SystemTable {
        schema: SCHEMA,
        name: "sorted_sets",
        columns: &[
            ("db", DB_TYPE),
            ("key", KEY_TYPE),
            ("member", KEY_TYPE),
            ("score", SCORE_TYPE),
            ("expires_at", EXPIRES_AT_TYPE),
        ],
        rows: SystemRows::Keyspace(&SORTED_SETS),
    },
    SystemTable {
        schema: SCHEMA,
        name: "streams",
        columns: &[
            ("db", DB_TYPE),
            ("key", KEY_TYPE),
            ("id", KEY_TYPE),
            ("ms", DB_TYPE),
            ("seq", DB_TYPE),
            ("position", DB_TYPE),
            ("field", VALUE_TYPE),
            ("value", VALUE_TYPE),
            ("expires_at", EXPIRES_AT_TYPE),
        ],
        rows: SystemRows::Keyspace(&STREAMS),
    },
];

/// Returns a table of keys as those see it who change rows. Its rows are in no map.
///
/// # Panics
///
/// If it is a table of something else.
pub fn table(system: &'static SystemTable) -> &'static Arc<Table> {
    let keys = system.keyspace().expect("a table of keys");
    CHANGED[keys.number].get_or_init(|| {
        let types = system.columns_as(system.name).into_iter().map(|column| column.ty);
        let column = |(at, ty): (usize, Type)| {
            let default = match at {
                DB => Default::Value((keys.forms.database)(0)),
                _ if at == keys.expires_at() || ty.nullable => Default::Value(Value::Null),
                _ => Default::None,
            };
            let name = system.columns[at].0.to_owned();
            TableColumn { default, ..TableColumn::new(name, ty, at) }
        };
        let columns: Vec<TableColumn> = types.enumerate().map(column).collect();
        let part = |column: &usize| Part { column: *column, prefix: None, order: KeyOrder::ASCENDING };
        let table = Table {
            id: keys.id(),
            schema: keys.schema.to_owned(),
            version: 1,
            map: engine::rows::MapId::MAX,
            primary_form: KeyForm::Hashed,
            primary: Some(keys.key_columns().iter().map(part).collect()),
            keyspace: Some(keys),
            live: Arc::new(TableState::new(1)),
            ..Table::draft(system.name, &columns)
        };
        Arc::new(table.with_derived_fields())
    })
}

/// Is that place the key's column of this table?
pub fn is_key(table: &ScopeTable, place: usize) -> bool {
    matches!(&table.origin, Origin::System(system) if system.is_keyspace()) && place == table.offset + KEY
}

impl Table {
    /// Is this a table whose rows are keys of the Redis door?
    pub fn is_keyspace(&self) -> bool {
        self.keyspace.is_some()
    }

    /// Returns the keys that are its rows.
    pub fn keys(&self) -> Option<&'static KeyspaceTable> {
        self.keyspace
    }
}
