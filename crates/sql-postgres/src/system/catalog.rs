//! `pg_catalog`: the definitions of the session's database.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::system_table::{SystemRows, SystemTable};

use crate::batch::Row;
use crate::session::facts::FactsOf as _;
use crate::settings::SETTINGS;
use crate::system::column::{BOOL, CHAR, FLOAT4, INT2, INT4, INT8, NAME, NODE_TREE, OID, REGTYPE, TEXT, TIMESTAMPTZ};
use crate::system::oids;
use crate::system::view::{Shown, columns, default_text, indexes, schema_oid, type_of};
use crate::types::registry;
use crate::value::Value;

pub fn text(text: impl AsRef<str>) -> Value {
    Value::text(text.as_ref())
}

pub fn oid(oid: u32) -> Value {
    Value::UInt(oid.into())
}

pub fn truth(truth: bool) -> Value {
    Value::from(truth)
}

pub fn char_of(c: char) -> Value {
    Value::UInt(c as u64)
}

pub fn number(number: i64) -> Value {
    Value::Int(number)
}

macro_rules! table {
    ($name:ident, $schema:literal, $rows:ident, [$(($column:literal, $ty:expr)),* $(,)?]) => {
        pub static $name: SystemTable = SystemTable {
            schema: $schema,
            name: $crate::system::named(stringify!($rows)),
            columns: &[$(($column, $ty)),*],
            rows: SystemRows::Computed($rows),
        };
    };
}

pub(super) use table;

table!(
    PG_NAMESPACE,
    "pg_catalog",
    pg_namespace,
    [("oid", OID), ("nspname", NAME), ("nspowner", OID), ("nspacl", TEXT)]
);
fn pg_namespace(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let row = |number: u32, name: &str| vec![oid(number), text(name), oid(oids::POSTGRES), Value::Null];
    let mut rows = vec![row(oids::PG_CATALOG, "pg_catalog"), row(oids::INFORMATION_SCHEMA, "information_schema")];
    rows.extend(shown.schemas().map(|(name, schema)| row(schema_oid(schema), name)));
    Ok(rows)
}

table!(
    PG_CLASS,
    "pg_catalog",
    pg_class,
    [
        ("oid", OID),
        ("relname", NAME),
        ("relnamespace", OID),
        ("reltype", OID),
        ("reloftype", OID),
        ("relowner", OID),
        ("relam", OID),
        ("relfilenode", OID),
        ("reltablespace", OID),
        ("relpages", INT4),
        ("reltuples", FLOAT4),
        ("relallvisible", INT4),
        ("reltoastrelid", OID),
        ("relhasindex", BOOL),
        ("relisshared", BOOL),
        ("relpersistence", CHAR),
        ("relkind", CHAR),
        ("relnatts", INT2),
        ("relchecks", INT2),
        ("relhasrules", BOOL),
        ("relhastriggers", BOOL),
        ("relhassubclass", BOOL),
        ("relrowsecurity", BOOL),
        ("relforcerowsecurity", BOOL),
        ("relispopulated", BOOL),
        ("relreplident", CHAR),
        ("relispartition", BOOL),
        ("relrewrite", OID),
        ("relacl", TEXT),
        ("reloptions", TEXT),
    ]
);

struct ClassRow<'r> {
    oid: u32,
    name: &'r str,
    namespace: u32,
    kind: char,
    am: u32,
    tuples: f32,
    has_index: bool,
    attributes: usize,
    checks: usize,
    has_triggers: bool,
    options: Option<String>,
}

impl ClassRow<'_> {
    fn row(self) -> Row {
        vec![
            oid(self.oid),
            text(self.name),
            oid(self.namespace),
            oid(0),
            oid(0),
            oid(oids::POSTGRES),
            oid(self.am),
            oid(self.oid),
            oid(0),
            number(0),
            Value::Float(self.tuples),
            number(0),
            oid(0),
            truth(self.has_index),
            truth(false),
            char_of('p'),
            char_of(self.kind),
            number(self.attributes as i64),
            number(self.checks as i64),
            truth(self.kind == 'v'),
            truth(self.has_triggers),
            truth(false),
            truth(false),
            truth(false),
            truth(true),
            char_of(if self.kind == 'r' { 'd' } else { 'n' }),
            truth(false),
            oid(0),
            Value::Null,
            self.options.map_or(Value::Null, text),
        ]
    }
}

fn pg_class(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for (number, table) in super::TABLES {
        let namespace = if table.schema == "pg_catalog" { oids::PG_CATALOG } else { oids::INFORMATION_SCHEMA };
        rows.push(
            ClassRow {
                oid: *number,
                name: table.name,
                namespace,
                kind: 'v',
                am: 0,
                tuples: -1.0,
                has_index: false,
                attributes: table.columns.len(),
                checks: 0,
                has_triggers: false,
                options: None,
            }
            .row(),
        );
    }
    for (_, schema) in shown.schemas() {
        let namespace = schema_oid(schema);
        for table in schema.tables.values() {
            let shown_indexes = indexes(table);
            let options: Vec<String> = table.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
            rows.push(
                ClassRow {
                    oid: oids::of_object(table.id),
                    name: &table.name,
                    namespace,
                    kind: 'r',
                    am: oids::HEAP,
                    tuples: table.live.rows().map_or(-1.0, |rows| rows as f32),
                    has_index: !shown_indexes.is_empty(),
                    attributes: columns(table).count(),
                    checks: table.checks.len(),
                    has_triggers: !table.foreign_keys.is_empty(),
                    options: (!options.is_empty()).then(|| format!("{{{}}}", options.join(","))),
                }
                .row(),
            );
            for index in shown_indexes {
                rows.push(
                    ClassRow {
                        oid: index.oid,
                        name: &index.name,
                        namespace,
                        kind: 'i',
                        am: oids::BTREE,
                        tuples: 0.0,
                        has_index: false,
                        attributes: index.parts.len(),
                        checks: 0,
                        has_triggers: false,
                        options: None,
                    }
                    .row(),
                );
            }
        }
        let plain = |id: u64, kind: char, attributes: usize| ClassRow {
            oid: oids::of_object(id),
            name: "",
            namespace,
            kind,
            am: 0,
            tuples: -1.0,
            has_index: false,
            attributes,
            checks: 0,
            has_triggers: false,
            options: None,
        };
        rows.extend(
            schema
                .views
                .values()
                .map(|view| ClassRow { name: &view.name, ..plain(view.id, 'v', view.columns.len()) }.row()),
        );
        rows.extend(
            schema
                .sequences
                .values()
                .map(|sequence| ClassRow { name: &sequence.name, ..plain(sequence.id, 'S', 3) }.row()),
        );
    }
    Ok(rows)
}

table!(
    PG_ATTRIBUTE,
    "pg_catalog",
    pg_attribute,
    [
        ("attrelid", OID),
        ("attname", NAME),
        ("atttypid", OID),
        ("attstattarget", INT4),
        ("attlen", INT2),
        ("attnum", INT2),
        ("attndims", INT4),
        ("attcacheoff", INT4),
        ("atttypmod", INT4),
        ("attbyval", BOOL),
        ("attalign", CHAR),
        ("attstorage", CHAR),
        ("attcompression", CHAR),
        ("attnotnull", BOOL),
        ("atthasdef", BOOL),
        ("atthasmissing", BOOL),
        ("attidentity", CHAR),
        ("attgenerated", CHAR),
        ("attisdropped", BOOL),
        ("attislocal", BOOL),
        ("attinhcount", INT2),
        ("attcollation", OID),
        ("attacl", TEXT),
        ("attoptions", TEXT),
        ("attfdwoptions", TEXT),
    ]
);
#[allow(clippy::too_many_arguments)]
fn attribute(
    relation: u32,
    name: &str,
    nth: i64,
    (ty, typmod): (u32, i32),
    not_null: bool,
    has_default: bool,
    identity: char,
    generated: bool,
) -> Row {
    let known = registry::by_oid(ty);
    let collation = if known.is_some_and(|row| row.is_collatable) { 100 } else { 0 };
    vec![
        oid(relation),
        text(name),
        oid(ty),
        number(-1),
        number(known.map_or(-1, |row| row.len).into()),
        number(nth),
        number(0),
        number(-1),
        number(typmod.into()),
        truth(known.is_some_and(|row| row.by_value)),
        char_of(known.map_or('i', |row| row.align)),
        char_of(known.map_or('x', |row| row.toast)),
        char_of('\0'),
        truth(not_null),
        truth(has_default),
        truth(false),
        char_of(identity),
        char_of(if generated { 's' } else { '\0' }),
        truth(false),
        truth(true),
        number(0),
        oid(collation),
        Value::Null,
        Value::Null,
        Value::Null,
    ]
}
fn pg_attribute(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    use query::catalog::table::Identity;
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for (relation, table) in super::TABLES {
        for (nth, (name, ty)) in table.columns.iter().enumerate() {
            let ty = (registry::oid_of(ty), -1);
            rows.push(attribute(*relation, name, nth as i64 + 1, ty, false, false, '\0', false));
        }
    }
    for table in shown.tables() {
        for (nth, column) in columns(table) {
            let identity = match column.identity {
                Identity::None => '\0',
                Identity::Always => 'a',
                Identity::ByDefault => 'd',
            };
            let has_default = default_text(column, ctx).is_some();
            let (relation, ty) = (oids::of_object(table.id), type_of(column));
            let is_generated = column.generated.is_some();
            rows.push(attribute(
                relation,
                &column.name,
                nth,
                ty,
                !column.ty.nullable,
                has_default,
                identity,
                is_generated,
            ));
        }
        for index in indexes(table) {
            for (nth, part) in index.parts.iter().enumerate() {
                let column = &table.columns[part.column];
                rows.push(attribute(
                    index.oid,
                    &column.name,
                    nth as i64 + 1,
                    type_of(column),
                    false,
                    false,
                    '\0',
                    false,
                ));
            }
        }
    }
    for (_, schema) in shown.schemas() {
        for view in schema.views.values() {
            for (nth, (name, ty)) in view.columns.iter().zip(&view.types).enumerate() {
                let column = query::catalog::table::TableColumn::new(name.clone(), ty.clone(), nth);
                let relation = oids::of_object(view.id);
                rows.push(attribute(relation, name, nth as i64 + 1, type_of(&column), false, false, '\0', false));
            }
        }
    }
    Ok(rows)
}

table!(PG_ATTRDEF, "pg_catalog", pg_attrdef, [("oid", OID), ("adrelid", OID), ("adnum", INT2), ("adbin", NODE_TREE)]);
fn pg_attrdef(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for table in shown.tables() {
        for (nth, column) in columns(table) {
            let Some(default) = default_text(column, ctx) else { continue };
            let relation = oids::of_object(table.id);
            rows.push(vec![oid(relation.wrapping_add((nth as u32) << 20)), oid(relation), number(nth), text(default)]);
        }
    }
    Ok(rows)
}

table!(
    PG_TYPE,
    "pg_catalog",
    pg_type,
    [
        ("oid", OID),
        ("typname", NAME),
        ("typnamespace", OID),
        ("typowner", OID),
        ("typlen", INT2),
        ("typbyval", BOOL),
        ("typtype", CHAR),
        ("typcategory", CHAR),
        ("typispreferred", BOOL),
        ("typisdefined", BOOL),
        ("typdelim", CHAR),
        ("typrelid", OID),
        ("typelem", OID),
        ("typarray", OID),
        ("typalign", CHAR),
        ("typstorage", CHAR),
        ("typnotnull", BOOL),
        ("typbasetype", OID),
        ("typtypmod", INT4),
        ("typndims", INT4),
        ("typcollation", OID),
        ("typdefault", TEXT),
    ]
);
fn pg_type(_: &mut EvalContext) -> Result<Vec<Row>> {
    let row = |ty: &registry::PgType| {
        let kind = if ty.kind == registry::TypeKind::Base { 'b' } else { 'p' };
        vec![
            oid(ty.oid),
            text(ty.name),
            oid(oids::PG_CATALOG),
            oid(oids::POSTGRES),
            number(ty.len.into()),
            truth(ty.by_value),
            char_of(kind),
            char_of(ty.category),
            truth(ty.is_preferred),
            truth(true),
            char_of(','),
            oid(0),
            oid(0),
            oid(ty.array),
            char_of(ty.align),
            char_of(ty.toast),
            truth(false),
            oid(0),
            number(-1),
            number(0),
            oid(if ty.is_collatable { 100 } else { 0 }),
            Value::Null,
        ]
    };
    Ok(registry::TYPES.iter().map(row).collect())
}

table!(
    PG_INDEX,
    "pg_catalog",
    pg_index,
    [
        ("indexrelid", OID),
        ("indrelid", OID),
        ("indnatts", INT2),
        ("indnkeyatts", INT2),
        ("indisunique", BOOL),
        ("indnullsnotdistinct", BOOL),
        ("indisprimary", BOOL),
        ("indisexclusion", BOOL),
        ("indimmediate", BOOL),
        ("indisclustered", BOOL),
        ("indisvalid", BOOL),
        ("indcheckxmin", BOOL),
        ("indisready", BOOL),
        ("indislive", BOOL),
        ("indisreplident", BOOL),
        ("indexprs", NODE_TREE),
        ("indpred", NODE_TREE),
    ]
);
fn pg_index(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for table in shown.tables() {
        for index in indexes(table) {
            let count = index.parts.len() as i64;
            rows.push(vec![
                oid(index.oid),
                oid(oids::of_object(table.id)),
                number(count),
                number(count),
                truth(index.is_unique),
                truth(false),
                truth(index.is_primary),
                truth(false),
                truth(true),
                truth(false),
                truth(true),
                truth(false),
                truth(true),
                truth(true),
                truth(false),
                Value::Null,
                Value::Null,
            ]);
        }
    }
    Ok(rows)
}

table!(
    PG_CONSTRAINT,
    "pg_catalog",
    pg_constraint,
    [
        ("oid", OID),
        ("conname", NAME),
        ("connamespace", OID),
        ("contype", CHAR),
        ("condeferrable", BOOL),
        ("condeferred", BOOL),
        ("convalidated", BOOL),
        ("conrelid", OID),
        ("contypid", OID),
        ("conindid", OID),
        ("conparentid", OID),
        ("confrelid", OID),
        ("confupdtype", CHAR),
        ("confdeltype", CHAR),
        ("confmatchtype", CHAR),
        ("conislocal", BOOL),
        ("coninhcount", INT2),
        ("connoinherit", BOOL),
        ("conbin", NODE_TREE),
    ]
);
fn pg_constraint(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    use query::catalog::foreign_key::Action;
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let action = |action: Action| match action {
        Action::Nothing => 'a',
        Action::Restrict => 'r',
        Action::Cascade => 'c',
        Action::SetNull => 'n',
    };
    let mut rows = Vec::new();
    for table in shown.tables() {
        let (namespace, relation) = (shown.schema_oid(&table.schema), oids::of_object(table.id));
        let mut push =
            |number_of: u32, name: &str, kind: char, index: u32, parent: u32, kinds: [char; 3], bin: Value| {
                rows.push(vec![
                    oid(number_of),
                    text(name),
                    oid(namespace),
                    char_of(kind),
                    truth(false),
                    truth(false),
                    truth(true),
                    oid(relation),
                    oid(0),
                    oid(index),
                    oid(0),
                    oid(parent),
                    char_of(kinds[0]),
                    char_of(kinds[1]),
                    char_of(kinds[2]),
                    truth(true),
                    number(0),
                    truth(kind != 'c'),
                    bin,
                ]);
            };
        for index in indexes(table).into_iter().filter(|index| index.is_constraint) {
            let kind = if index.is_primary { 'p' } else { 'u' };
            push(index.oid, &index.name, kind, index.oid, 0, [' '; 3], Value::Null);
        }
        for check in &table.checks {
            push(oids::of_object(check.id), &check.name, 'c', 0, 0, [' '; 3], text(&check.text));
        }
        for key in &table.foreign_keys {
            let parent =
                shown.snapshot.table(&key.parent_schema, &key.parent).map_or(0, |table| oids::of_object(table.id));
            let kinds = [action(key.on_update), action(key.on_delete), 's'];
            push(oids::of_object(key.id), &key.name, 'f', 0, parent, kinds, Value::Null);
        }
    }
    Ok(rows)
}

table!(
    PG_DATABASE,
    "pg_catalog",
    pg_database,
    [
        ("oid", OID),
        ("datname", NAME),
        ("datdba", OID),
        ("encoding", INT4),
        ("datlocprovider", CHAR),
        ("datistemplate", BOOL),
        ("datallowconn", BOOL),
        ("datconnlimit", INT4),
        ("dattablespace", OID),
        ("datcollate", TEXT),
        ("datctype", TEXT),
        ("daticulocale", TEXT),
        ("daticurules", TEXT),
        ("datcollversion", TEXT),
        ("datacl", TEXT),
    ]
);
fn pg_database(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    use query::catalog::schema_name::SchemaName;
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let databases = shown
        .snapshot
        .schemas
        .values()
        .filter(|schema| SchemaName::of_stored(&schema.name).is_some_and(|name| name.schema == "public"));
    let row = |schema: &std::sync::Arc<query::catalog::Schema>| {
        vec![
            oid(oids::of_object(schema.id)),
            text(&schema.name),
            oid(oids::POSTGRES),
            number(6),
            char_of('c'),
            truth(false),
            truth(true),
            number(-1),
            oid(1663),
            text("C"),
            text("C"),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ]
    };
    Ok(databases.map(row).collect())
}

table!(PG_AM, "pg_catalog", pg_am, [("oid", OID), ("amname", NAME), ("amtype", CHAR)]);
fn pg_am(_: &mut EvalContext) -> Result<Vec<Row>> {
    Ok(vec![vec![oid(oids::HEAP), text("heap"), char_of('t')], vec![oid(oids::BTREE), text("btree"), char_of('i')]])
}

table!(
    PG_ROLES,
    "pg_catalog",
    pg_roles,
    [
        ("rolname", NAME),
        ("rolsuper", BOOL),
        ("rolinherit", BOOL),
        ("rolcreaterole", BOOL),
        ("rolcreatedb", BOOL),
        ("rolcanlogin", BOOL),
        ("rolreplication", BOOL),
        ("rolconnlimit", INT4),
        ("rolpassword", TEXT),
        ("rolvaliduntil", TIMESTAMPTZ),
        ("rolbypassrls", BOOL),
        ("oid", OID),
    ]
);
fn pg_roles(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let facts = ctx.facts();
    let Some(db) = facts.db.clone() else { return Ok(Vec::new()) };
    let mut names: Vec<String> = db.engine().accounts().list().iter().map(|account| account.name.clone()).collect();
    for name in [crate::instance::database::POSTGRES, &facts.role] {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    let row = |name: &String| {
        let is_super = db.is_superuser(name);
        vec![
            text(name),
            truth(is_super),
            truth(true),
            truth(is_super),
            truth(is_super),
            truth(is_super),
            truth(false),
            number(-1),
            text("********"),
            Value::Null,
            truth(is_super),
            oid(oids::of_role(name)),
        ]
    };
    Ok(names.iter().map(row).collect())
}

table!(
    PG_SETTINGS,
    "pg_catalog",
    pg_settings,
    [
        ("name", TEXT),
        ("setting", TEXT),
        ("unit", TEXT),
        ("category", TEXT),
        ("short_desc", TEXT),
        ("extra_desc", TEXT),
        ("context", TEXT),
        ("vartype", TEXT),
        ("source", TEXT),
        ("min_val", TEXT),
        ("max_val", TEXT),
        ("boot_val", TEXT),
        ("reset_val", TEXT),
        ("pending_restart", BOOL),
    ]
);
fn pg_settings(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    use crate::settings::Kind;
    let values = &ctx.facts().settings;
    let row = |(at, setting): (usize, &crate::settings::Setting)| {
        let (min, max) = match setting.kind {
            Kind::Integer { min, max } => (text(min.to_string()), text(max.to_string())),
            Kind::Real { min, max } => (text(min.to_string()), text(max.to_string())),
            _ => (Value::Null, Value::Null),
        };
        let source = if values.at(at) == setting.default { "default" } else { "session" };
        vec![
            text(setting.name),
            text(values.at(at)),
            setting.unit.name().map_or(Value::Null, text),
            text(setting.category),
            text(setting.description),
            Value::Null,
            text(setting.context.name()),
            text(setting.kind.name()),
            text(source),
            min,
            max,
            text(setting.default),
            text(values.initial(at)),
            truth(false),
        ]
    };
    Ok(SETTINGS.iter().enumerate().map(row).collect())
}

table!(
    PG_TABLES,
    "pg_catalog",
    pg_tables,
    [
        ("schemaname", NAME),
        ("tablename", NAME),
        ("tableowner", NAME),
        ("tablespace", NAME),
        ("hasindexes", BOOL),
        ("hasrules", BOOL),
        ("hastriggers", BOOL),
        ("rowsecurity", BOOL),
    ]
);
fn pg_tables(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for (name, schema) in shown.schemas() {
        for table in schema.tables.values() {
            rows.push(vec![
                text(name),
                text(&table.name),
                text(crate::instance::database::POSTGRES),
                Value::Null,
                truth(!indexes(table).is_empty()),
                truth(false),
                truth(!table.foreign_keys.is_empty()),
                truth(false),
            ]);
        }
    }
    Ok(rows)
}

table!(
    PG_INDEXES,
    "pg_catalog",
    pg_indexes,
    [("schemaname", NAME), ("tablename", NAME), ("indexname", NAME), ("tablespace", NAME), ("indexdef", TEXT),]
);
fn pg_indexes(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for (name, schema) in shown.schemas() {
        for table in schema.tables.values() {
            rows.extend(indexes(table).into_iter().map(|index| {
                vec![text(name), text(&table.name), text(&index.name), Value::Null, text(index.definition(table))]
            }));
        }
    }
    Ok(rows)
}

table!(
    PG_VIEWS,
    "pg_catalog",
    pg_views,
    [("schemaname", NAME), ("viewname", NAME), ("viewowner", NAME), ("definition", TEXT),]
);
fn pg_views(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let rows = shown.schemas().flat_map(|(name, schema)| {
        schema.views.values().map(move |view| {
            let owner = crate::instance::database::POSTGRES;
            vec![text(name), text(&view.name), text(owner), text(format!(" {};", view.text))]
        })
    });
    Ok(rows.collect())
}

fn sequence_type(bytes: u8) -> u32 {
    match bytes {
        2 => crate::types::oid::INT2,
        4 => crate::types::oid::INT4,
        _ => crate::types::oid::INT8,
    }
}

table!(
    PG_SEQUENCES,
    "pg_catalog",
    pg_sequences,
    [
        ("schemaname", NAME),
        ("sequencename", NAME),
        ("sequenceowner", NAME),
        ("data_type", REGTYPE),
        ("start_value", INT8),
        ("min_value", INT8),
        ("max_value", INT8),
        ("increment_by", INT8),
        ("cycle", BOOL),
        ("cache_size", INT8),
        ("last_value", INT8),
    ]
);
fn pg_sequences(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    let mut seen = 0;
    for (name, schema) in shown.schemas() {
        for sequence in schema.sequences.values() {
            let (position, parameters) = (sequence.position(), sequence.parameters);
            seen = seen.max(position.durability_lsn);
            let last = if position.is_called { number(position.last_value) } else { Value::Null };
            rows.push(vec![
                text(name),
                text(&sequence.name),
                text(crate::instance::database::POSTGRES),
                oid(sequence_type(parameters.bytes)),
                number(parameters.start),
                number(parameters.min),
                number(parameters.max),
                number(parameters.increment),
                truth(parameters.cycle),
                number(parameters.cache as i64),
                last,
            ]);
        }
    }
    let host = query::exec::host::host(ctx);
    host.seen = host.seen.max(seen);
    Ok(rows)
}

table!(
    PG_SEQUENCE,
    "pg_catalog",
    pg_sequence,
    [
        ("seqrelid", OID),
        ("seqtypid", OID),
        ("seqstart", INT8),
        ("seqincrement", INT8),
        ("seqmax", INT8),
        ("seqmin", INT8),
        ("seqcache", INT8),
        ("seqcycle", BOOL),
    ]
);
fn pg_sequence(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let rows = shown.schemas().flat_map(|(_, schema)| schema.sequences.values()).map(|sequence| {
        let parameters = sequence.parameters;
        vec![
            oid(oids::of_object(sequence.id)),
            oid(sequence_type(parameters.bytes)),
            number(parameters.start),
            number(parameters.increment),
            number(parameters.max),
            number(parameters.min),
            number(parameters.cache as i64),
            truth(parameters.cycle),
        ]
    });
    Ok(rows.collect())
}

table!(
    PG_DESCRIPTION,
    "pg_catalog",
    pg_description,
    [("objoid", OID), ("classoid", OID), ("objsubid", INT4), ("description", TEXT),]
);
fn pg_description(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    const PG_CLASS_OID: u32 = 1259;
    let row = |object: u32, part: i64, comment: &str| vec![oid(object), oid(PG_CLASS_OID), number(part), text(comment)];
    let mut rows = Vec::new();
    for table in shown.tables() {
        let relation = oids::of_object(table.id);
        if !table.comment.is_empty() {
            rows.push(row(relation, 0, &table.comment));
        }
        let commented = columns(table).filter(|(_, column)| !column.comment.is_empty());
        rows.extend(commented.map(|(nth, column)| row(relation, nth, &column.comment)));
        let commented = table.indexes.iter().filter(|index| !index.comment.is_empty());
        rows.extend(commented.map(|index| row(oids::of_object(index.id), 0, &index.comment)));
    }
    Ok(rows)
}
