//! The schema `redis`: the keys of the Redis door as tables with PostgreSQL's types (docs/decisions/0011 and 0030). Every database has it.
//!
//! Its tables are found as stored ones are, so that statements lock and change their rows. The catalogs show them as members of the extension `redis`: pg_dump leaves members of extensions out.

use datum::Result;
use engine::Kind;
use query::catalog::keyspace_rows::{KeyspaceTable, TABLES_MAX, ValueForms};
use query::catalog::table::Table;
use query::nodes::context::EvalContext;
use query::nodes::system_table::{SystemRows, SystemTable};
use query::nodes::table_function::Give;

use crate::system::cells::{null, oid, text, truth};
use crate::system::oids;
use crate::system::relations::{self, RelationColumn, Source, SystemRelation};
use crate::system::wanted::Wanted;
use crate::types::oid::Oid;
use crate::types::registry;
use crate::types::temporal::{EPOCH_SECONDS, TIMESTAMP_END, TIMESTAMP_LATE};
use crate::value::{Decimal, Value};

pub const SCHEMA: &str = "redis";
/// The stored name that stands for the schema in the definitions of its tables. Nothing is looked up by it.
const STORED: &str = "postgres.redis";

const MICROS_PER_MS: i64 = 1000;
const EPOCH_MS: i64 = EPOCH_SECONDS * 1000;

static FORMS: ValueForms = ValueForms {
    database: |db| Value::Int(db.into()),
    unsigned: |number| Value::Decimal(Decimal::new(number.into(), 0)),
    id: |id| Value::text(id),
    instant,
    instant_ms,
};

/// Returns an instant as PostgreSQL has it. One beyond its calendar is its last.
fn instant(ms: u64) -> Value {
    let since_2000 = i64::try_from(ms).unwrap_or(i64::MAX).saturating_sub(EPOCH_MS);
    Value::Int(since_2000.saturating_mul(MICROS_PER_MS).min(TIMESTAMP_END - 1))
}

/// Returns when a key expires that is to do so at an instant: at `infinity` never.
fn instant_ms(value: &Value) -> Option<u64> {
    match value {
        Value::Int(micros) if *micros != TIMESTAMP_LATE => {
            let ms = micros.div_euclid(MICROS_PER_MS).saturating_add(EPOCH_MS);
            Some(u64::try_from(ms).unwrap_or(0))
        }
        _ => None,
    }
}

/// A column: name, type, and whether it may be NULL.
type KeyColumn = (&'static str, &'static str, bool);

const DB: KeyColumn = ("db", "int4", false);
const KEY: KeyColumn = ("key", "bytea", false);
const VALUE: KeyColumn = ("value", "bytea", false);
const EXPIRES_AT: KeyColumn = ("expires_at", "timestamptz", true);

/// A table: name, the keys that are its rows, and columns.
struct KeyTable(&'static str, KeyspaceTable, &'static [KeyColumn]);

/// The numbers of the tables end the list of all dialects'.
const fn keys(kind: Kind, nth: usize) -> KeyspaceTable {
    KeyspaceTable::new(kind, &FORMS, STORED, TABLES_MAX - 1 - nth)
}

static TABLES: [KeyTable; 6] = [
    KeyTable("strings", keys(Kind::String, 0), &[DB, KEY, VALUE, EXPIRES_AT]),
    KeyTable("hashes", keys(Kind::Hash, 1), &[DB, KEY, ("field", "bytea", false), VALUE, EXPIRES_AT]),
    KeyTable("lists", keys(Kind::List, 2), &[DB, KEY, ("position", "int8", true), VALUE, EXPIRES_AT]),
    KeyTable("sets", keys(Kind::Set, 3), &[DB, KEY, ("member", "bytea", false), EXPIRES_AT]),
    KeyTable(
        "sorted_sets",
        keys(Kind::ZSet, 4),
        &[DB, KEY, ("member", "bytea", false), ("score", "float8", false), EXPIRES_AT],
    ),
    KeyTable(
        "streams",
        keys(Kind::Stream, 5),
        &[
            DB,
            KEY,
            ("id", "text", false),
            ("ms", "numeric", false),
            ("seq", "numeric", false),
            ("position", "numeric", false),
            ("field", "bytea", false),
            VALUE,
            EXPIRES_AT,
        ],
    ),
];

/// Returns the tables as the catalogs show them.
pub fn all() -> impl Iterator<Item = &'static SystemRelation> {
    relations::all().iter().filter(|relation| matches!(relation.source, Source::Keys))
}

/// Returns new relations of the tables, in the order of their OIDs.
pub fn made() -> impl Iterator<Item = SystemRelation> {
    (oids::REDIS_STRINGS..).zip(&TABLES).map(|(oid, KeyTable(name, keys, columns))| {
        let ty = |name: &str| registry::by_name(name).unwrap_or_else(|| unreachable!("a type without a row: {name}"));
        let typed =
            columns.iter().map(|(name, of, may_be_null)| (*name, registry::column_type(ty(of).oid, -1, *may_be_null)));
        let shown = columns.iter().map(|(name, type_name, may_be_null)| RelationColumn {
            name,
            type_name,
            typmod: -1,
            is_not_null: !may_be_null,
        });
        // The relations live as long as the program.
        let typed = typed.collect::<Vec<_>>().leak();
        SystemRelation {
            oid,
            kind: 'r',
            is_shared: true,
            columns: shown.collect(),
            kept: (0..columns.len()).collect(),
            source: Source::Keys,
            table: SystemTable { schema: SCHEMA, name, columns: typed, rows: SystemRows::Keyspace(keys) },
        }
    })
}

/// Returns how the rows of one of the tables are read; `None` of a stored table.
pub fn system_table(table: &Table) -> Option<&'static SystemTable> {
    let keys = table.keys()?;
    all().map(|relation| &relation.table).find(|of| of.keyspace().is_some_and(|of| of.number == keys.number))
}

/// Returns the OID of a table by its number among those of the catalog; `None` for a stored table.
pub fn oid_of(table: u64) -> Option<Oid> {
    let nth = TABLES.iter().position(|KeyTable(_, keys, _)| keys.id() == table)?;
    Some(oids::REDIS_STRINGS + nth as Oid)
}

/// Gives the extension of which the schema and its tables are members.
pub fn pg_extension(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let row = vec![
        oid(oids::REDIS_EXTENSION),
        text(SCHEMA),
        oid(oids::POSTGRES),
        oid(oids::REDIS),
        truth(false),
        text("1.0"),
        null(),
        null(),
    ];
    give(row, ctx)
}
