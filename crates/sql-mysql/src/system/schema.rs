//! information_schema: schemas, tables, columns, keys and constraints.

use crate::system::column::{DATE_TIME, LONG_TEXT, NUMBER, chars};
use std::sync::Arc;

use datum::Result;

use crate::batch::Row;
use crate::collation::Weights;
use crate::other_dialects::opaque_name;
use crate::other_tables::{table_view, type_view};
use crate::other_values::seen_type;
use crate::parse::stored::listed_text;
use crate::rights::Privileges;
use crate::scalar::operators;
use crate::scalar::temporal::Timestamp;
use crate::system::statistics::{bytes_of, cardinality, rows_of};
use crate::system::viewer::viewer;
use crate::system::{text, views};
use crate::types::{Charset, CharsetName as _, Collation, CollationName as _, Kind, MysqlType as _, Type};
use crate::value::Value;
use query::catalog::table::{Default, LISTED_OPTIONS, Part, Table, TableColumn};
use query::nodes::context::EvalContext;
use query::nodes::system_table::SystemRows::Computed;
use query::nodes::system_table::SystemTable;
use query::session::registry::SessionHandle;

pub const NAME: Type = chars(64);

pub const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "information_schema",
        name: "SCHEMATA",
        columns: &[
            ("CATALOG_NAME", NAME),
            ("SCHEMA_NAME", NAME),
            ("DEFAULT_CHARACTER_SET_NAME", NAME),
            ("DEFAULT_COLLATION_NAME", NAME),
            ("SQL_PATH", NAME),
            ("DEFAULT_ENCRYPTION", chars(3)),
        ],
        rows: Computed(schemata),
    },
    SystemTable {
        schema: "information_schema",
        name: "TABLES",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("TABLE_TYPE", chars(11)),
            ("ENGINE", NAME),
            ("VERSION", NUMBER),
            ("ROW_FORMAT", chars(10)),
            ("TABLE_ROWS", NUMBER),
            ("AVG_ROW_LENGTH", NUMBER),
            ("DATA_LENGTH", NUMBER),
            ("MAX_DATA_LENGTH", NUMBER),
            ("INDEX_LENGTH", NUMBER),
            ("DATA_FREE", NUMBER),
            ("AUTO_INCREMENT", NUMBER),
            ("CREATE_TIME", DATE_TIME),
            ("UPDATE_TIME", DATE_TIME),
            ("CHECK_TIME", DATE_TIME),
            ("TABLE_COLLATION", NAME),
            ("CHECKSUM", NUMBER),
            ("CREATE_OPTIONS", chars(256)),
            ("TABLE_COMMENT", chars(2048)),
        ],
        rows: Computed(tables),
    },
    SystemTable {
        schema: "information_schema",
        name: "COLUMNS",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("COLUMN_NAME", NAME),
            ("ORDINAL_POSITION", NUMBER),
            ("COLUMN_DEFAULT", LONG_TEXT),
            ("IS_NULLABLE", chars(3)),
            ("DATA_TYPE", LONG_TEXT),
            ("CHARACTER_MAXIMUM_LENGTH", NUMBER),
            ("CHARACTER_OCTET_LENGTH", NUMBER),
            ("NUMERIC_PRECISION", NUMBER),
            ("NUMERIC_SCALE", NUMBER),
            ("DATETIME_PRECISION", NUMBER),
            ("CHARACTER_SET_NAME", NAME),
            ("COLLATION_NAME", NAME),
            ("COLUMN_TYPE", LONG_TEXT),
            ("COLUMN_KEY", chars(3)),
            ("EXTRA", chars(256)),
            ("PRIVILEGES", chars(154)),
            ("COLUMN_COMMENT", chars(1024)),
            ("GENERATION_EXPRESSION", LONG_TEXT),
            ("SRS_ID", NUMBER),
        ],
        rows: Computed(columns),
    },
    SystemTable {
        schema: "information_schema",
        name: "STATISTICS",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("NON_UNIQUE", NUMBER),
            ("INDEX_SCHEMA", NAME),
            ("INDEX_NAME", NAME),
            ("SEQ_IN_INDEX", NUMBER),
            ("COLUMN_NAME", NAME),
            ("COLLATION", chars(1)),
            ("CARDINALITY", NUMBER),
            ("SUB_PART", NUMBER),
            ("PACKED", chars(10)),
            ("NULLABLE", chars(3)),
            ("INDEX_TYPE", chars(11)),
            ("COMMENT", chars(8)),
            ("INDEX_COMMENT", chars(2048)),
            ("IS_VISIBLE", chars(3)),
            ("EXPRESSION", LONG_TEXT),
        ],
        rows: Computed(statistics),
    },
    SystemTable {
        schema: "information_schema",
        name: "KEY_COLUMN_USAGE",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("COLUMN_NAME", NAME),
            ("ORDINAL_POSITION", NUMBER),
            ("POSITION_IN_UNIQUE_CONSTRAINT", NUMBER),
            ("REFERENCED_TABLE_SCHEMA", NAME),
            ("REFERENCED_TABLE_NAME", NAME),
            ("REFERENCED_COLUMN_NAME", NAME),
        ],
        rows: Computed(key_columns),
    },
    SystemTable {
        schema: "information_schema",
        name: "TABLE_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("CONSTRAINT_TYPE", chars(11)),
            ("ENFORCED", chars(3)),
        ],
        rows: Computed(constraints),
    },
    SystemTable {
        schema: "information_schema",
        name: "CHECK_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("CHECK_CLAUSE", LONG_TEXT),
        ],
        rows: Computed(checks),
    },
    SystemTable {
        schema: "information_schema",
        name: "REFERENTIAL_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("UNIQUE_CONSTRAINT_CATALOG", NAME),
            ("UNIQUE_CONSTRAINT_SCHEMA", NAME),
            ("UNIQUE_CONSTRAINT_NAME", NAME),
            ("MATCH_OPTION", NAME),
            ("UPDATE_RULE", NAME),
            ("DELETE_RULE", NAME),
            ("TABLE_NAME", NAME),
            ("REFERENCED_TABLE_NAME", NAME),
        ],
        rows: Computed(references),
    },
    SystemTable {
        schema: "information_schema",
        name: "VIEWS",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("VIEW_DEFINITION", LONG_TEXT),
            ("CHECK_OPTION", chars(8)),
            ("IS_UPDATABLE", chars(3)),
            ("DEFINER", chars(288)),
            ("SECURITY_TYPE", chars(7)),
            ("CHARACTER_SET_CLIENT", NAME),
            ("COLLATION_CONNECTION", NAME),
        ],
        rows: Computed(views::views),
    },
    SystemTable {
        schema: "information_schema",
        name: "ENGINES",
        columns: &[
            ("ENGINE", NAME),
            ("SUPPORT", chars(8)),
            ("COMMENT", chars(80)),
            ("TRANSACTIONS", chars(3)),
            ("XA", chars(3)),
            ("SAVEPOINTS", chars(3)),
        ],
        rows: Computed(engines),
    },
    SystemTable {
        schema: "information_schema",
        name: "CHARACTER_SETS",
        columns: &[
            ("CHARACTER_SET_NAME", NAME),
            ("DEFAULT_COLLATE_NAME", NAME),
            ("DESCRIPTION", chars(2048)),
            ("MAXLEN", NUMBER),
        ],
        rows: Computed(charsets),
    },
    SystemTable {
        schema: "information_schema",
        name: "COLLATIONS",
        columns: &[
            ("COLLATION_NAME", NAME),
            ("CHARACTER_SET_NAME", NAME),
            ("ID", NUMBER),
            ("IS_DEFAULT", chars(3)),
            ("IS_COMPILED", chars(3)),
            ("SORTLEN", NUMBER),
            ("PAD_ATTRIBUTE", chars(9)),
        ],
        rows: Computed(collations),
    },
    SystemTable {
        schema: "information_schema",
        name: "COLLATION_CHARACTER_SET_APPLICABILITY",
        columns: &[("COLLATION_NAME", NAME), ("CHARACTER_SET_NAME", NAME)],
        rows: Computed(applicability),
    },
    SystemTable {
        schema: "information_schema",
        name: "PROCESSLIST",
        columns: &[
            ("ID", NUMBER),
            ("USER", chars(32)),
            ("HOST", chars(261)),
            ("DB", NAME),
            ("COMMAND", chars(16)),
            ("TIME", NUMBER),
            ("STATE", NAME),
            ("INFO", LONG_TEXT),
        ],
        rows: Computed(processes),
    },
];

pub fn nothing(_ctx: &mut EvalContext) -> Result<Vec<Row>> {
    Ok(Vec::new())
}

fn number(number: impl TryInto<u64>) -> Value {
    number.try_into().map_or(Value::Null, Value::UInt)
}

fn optional(number: Option<u64>) -> Value {
    number.map_or(Value::Null, Value::UInt)
}

pub fn all_tables(ctx: &mut EvalContext) -> Vec<Arc<Table>> {
    let snapshot = viewer(ctx).db.catalog().snapshot();
    let rights = viewer(ctx).rights.clone();
    let all = snapshot.schemas.values().flat_map(|schema| schema.tables.values());
    all.filter(|table| rights.sees_table(&table.schema, &table.name)).map(table_view).collect()
}

fn schemata(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let snapshot = viewer(ctx).db.catalog().snapshot();
    let row = |name: &str, collation: Collation| {
        vec![text("def"), text(name), text(collation.charset().name()), text(collation.name()), Value::Null, text("NO")]
    };
    let mut rows: Vec<Row> = vec![row("information_schema", Collation::Utf8BmpGeneralCi)];
    let rights = viewer(ctx).rights.clone();
    let sees_all = rights.global.has(Privileges::SHOW_DATABASES);
    let seen = snapshot.schemas.values().filter(|schema| sees_all || rights.sees_database(&schema.name));
    rows.extend(seen.map(|schema| row(&schema.name, schema.collation)));
    Ok(rows)
}

fn tables(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in all_tables(ctx) {
        let next = if table.auto_column().is_some() { viewer(ctx).db.next_auto(&table)? } else { None };
        let created = Value::DateTime(ctx.zone.local(Timestamp(table.created)));
        let count = rows_of(&table, ctx);
        let (data, keys) = bytes_of(&table, ctx);
        rows.push(vec![
            text("def"),
            text(&table.schema),
            text(&table.name),
            text("BASE TABLE"),
            text("InnoDB"),
            number(10),
            text(row_format(&table)),
            number(count),
            number(data.checked_div(count).unwrap_or(0)),
            number(data),
            number(0),
            number(keys),
            number(0),
            optional(next),
            created,
            Value::Null,
            Value::Null,
            text(table.collation.name()),
            Value::Null,
            text(
                table
                    .options_text(&LISTED_OPTIONS, |name| match name {
                        "key_block_size" => name.to_uppercase(),
                        _ => name.to_owned(),
                    })
                    .trim_start(),
            ),
            text(&table.comment),
        ]);
    }
    rows.extend(views::tables(ctx));
    let rights = viewer(ctx).rights.clone();
    for table in crate::system::all().filter(|table| rights.sees_table(table.schema, table.name)) {
        let mut row = vec![Value::Null; 21];
        row[0] = text("def");
        row[1] = text(table.schema);
        row[2] = text(table.name);
        row[3] = text("SYSTEM VIEW");
        row[20] = text("");
        rows.push(row);
    }
    Ok(rows)
}

/// Returns the declared row format; the storage format is always the same.
fn row_format(table: &Table) -> String {
    let option = |wanted: &str| table.options.iter().find(|(name, _)| name == wanted);
    match option("row_format").filter(|(_, format)| !format.eq_ignore_ascii_case("default")) {
        Some((_, format)) => {
            let format = format.to_lowercase();
            let (first, rest) = format.split_at_checked(1).unwrap_or(("", ""));
            first.to_uppercase() + rest
        }
        None if option("key_block_size").is_some() => "Compressed".to_owned(),
        None => "Dynamic".to_owned(),
    }
}

/// Returns PRI, UNI, MUL or the empty string.
pub fn column_key(table: &Table, at: usize) -> &'static str {
    // Without a primary key, the first unique key over NOT NULL columns is shown as PRI.
    let is_whole = |part: &Part| !table.columns[part.column].ty.nullable && part.prefix.is_none();
    let mut stand_in = table.indexes.iter().filter(|index| index.is_key() && index.parts.iter().all(is_whole));
    let primary = table.primary.as_ref().or_else(|| stand_in.next().map(|index| &index.parts));
    if primary.is_some_and(|parts| parts.iter().any(|part| part.column == at)) {
        return "PRI";
    }
    let leads = |unique: bool| {
        table
            .indexes
            .iter()
            .any(|index| index.is_key() == unique && index.parts[0].column == at && (!unique || index.parts.len() == 1))
    };
    if leads(true) {
        "UNI"
    } else if leads(false) || table.indexes.iter().any(|index| index.parts[0].column == at) {
        "MUL"
    } else {
        ""
    }
}

pub fn column_extra(column: &TableColumn) -> String {
    let mut extra = Vec::new();
    if column.auto_increment {
        extra.push("auto_increment".to_owned());
    }
    if let Some(generated) = &column.generated {
        extra.push(if generated.stored { "STORED GENERATED" } else { "VIRTUAL GENERATED" }.to_owned());
    }
    if matches!(column.default, Default::Now(_) | Default::Expression(_)) {
        extra.push("DEFAULT_GENERATED".to_owned());
    }
    if column.on_update_now {
        extra.push(format!("on update CURRENT_TIMESTAMP{}", digits(column.ty.scale)));
    }
    if column.invisible {
        extra.push("INVISIBLE".to_owned());
    }
    extra.join(" ")
}

fn digits(scale: u8) -> String {
    if scale == 0 { String::new() } else { format!("({scale})") }
}

/// Returns whether the column's values are not in MySQL's form.
fn has_other_form(ty: &Type) -> bool {
    opaque_name(ty).is_some() || seen_type(ty).is_some()
}

/// Returns the default as text; None is NULL.
pub fn default_text(column: &TableColumn, ctx: &mut EvalContext) -> Option<String> {
    match &column.default {
        Default::None | Default::Dropped => None,
        Default::Value(_) if has_other_form(&column.ty) => None,
        Default::Now(scale) => Some(format!("CURRENT_TIMESTAMP{}", digits(*scale))),
        Default::Expression(expression) => Some(listed_text(expression)),
        Default::Value(value) if value.is_null() => None,
        Default::Value(Value::UInt(bits)) if column.ty.kind() == Kind::Bit => Some(format!("b'{bits:b}'")),
        Default::Value(Value::Bytes(bytes)) if bytes.is_empty() => Some(String::new()),
        Default::Value(Value::Bytes(bytes)) if column.ty.kind() == Kind::Binary => {
            Some(hex_text(&bytes[..bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)]))
        }
        Default::Value(Value::Bytes(bytes)) if column.ty.kind() == Kind::VarBinary => Some(hex_text(bytes)),
        Default::Value(value) => Some(value_text(value, &column.ty, ctx)),
    }
}

/// Formats bytes as a hexadecimal literal.
pub fn hex_text(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
    format!("0x{}", digits.collect::<String>())
}

/// Returns the column's value in an empty record, as COM_FIELD_LIST sends it: the default if it is a value, else NULL
/// or the type's implicit default.
pub fn empty_text(column: &TableColumn, ctx: &mut EvalContext) -> Option<String> {
    match &column.default {
        _ if has_other_form(&column.ty) => None,
        Default::Value(value) if value.is_null() => None,
        Default::Value(value) => Some(value_text(value, &column.ty, ctx)),
        _ if column.ty.nullable => None,
        _ => Some(value_text(&crate::scalar::store::implicit_default(&column.ty), &column.ty, ctx)),
    }
}

/// Formats a value as a client sees it.
pub fn value_text(value: &Value, ty: &Type, ctx: &mut EvalContext) -> String {
    use query::nodes::expr::Expr;
    let shown = crate::scalar::bind::present(Expr::Literal(value.clone(), ty.clone()));
    let cast = operators::cast(shown, Type::text(1024, Collation::DEFAULT));
    match cast.eval(&[], ctx) {
        Ok(Value::Text(shown)) => shown.as_str().to_owned(),
        _ => String::new(),
    }
}

fn numeric(ty: &Type) -> (Option<u64>, Option<u64>) {
    let precision = match ty.kind() {
        Kind::TinyInt => 3,
        Kind::SmallInt => 5,
        Kind::MediumInt => 7,
        Kind::Int => 10,
        Kind::BigInt => 19 + u64::from(ty.is_unsigned()),
        Kind::Decimal => return (Some(u64::from(ty.length)), Some(u64::from(ty.scale))),
        Kind::Float | Kind::Double if ty.scale != Type::FLOATING => {
            return (Some(u64::from(ty.length)), Some(u64::from(ty.scale)));
        }
        Kind::Float => return (Some(12), None),
        Kind::Double => return (Some(22), None),
        Kind::Bit => return (Some(u64::from(ty.length)), None),
        _ => return (None, None),
    };
    (Some(precision), Some(0))
}

fn columns(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let rights = viewer(ctx).rights.clone();
    for table in all_tables(ctx) {
        for (nth, (at, column)) in table.named().enumerate() {
            if !rights.sees_column(&table.schema, &table.name, &column.name) {
                continue;
            }
            let default = default_text(column, ctx).map_or(Value::Null, text);
            let mut row = vec![text("def"), text(&table.schema), text(&table.name), text(&column.name)];
            row.extend([number(nth as u64 + 1), default]);
            row.extend(type_columns(&column.ty));
            row.extend([
                text(column_key(&table, at)),
                text(column_extra(column)),
                text(rights.column_words(&table.schema, &table.name, &column.name)),
                text(&column.comment),
                text(column.generated.as_ref().map_or_else(String::new, |generated| listed_text(&generated.text))),
                Value::Null,
            ]);
            rows.push(row);
        }
    }
    for view in views::seen(ctx) {
        for (at, (name, ty)) in view.columns.iter().zip(&view.types).enumerate() {
            if !rights.sees_column(&view.schema, &view.name, name) {
                continue;
            }
            let mut row = vec![text("def"), text(&view.schema), text(&view.name), text(name)];
            row.extend([number(at as u64 + 1), Value::Null]);
            row.extend(type_columns(&type_view(ty)));
            let words = text(rights.column_words(&view.schema, &view.name, name));
            row.extend([text(""), text(""), words, text(""), text(""), Value::Null]);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns the columns IS_NULLABLE to COLUMN_TYPE.
fn type_columns(ty: &Type) -> Vec<Value> {
    let form = seen_type(ty);
    let ty = form.as_ref().unwrap_or(ty);
    let nullable = text(if ty.nullable { "YES" } else { "NO" });
    if let Some(name) = opaque_name(ty) {
        let unknown = std::iter::repeat_n(Value::Null, 7);
        return [nullable, text(&*name)].into_iter().chain(unknown).chain([text(&*name)]).collect();
    }
    let has_length = ty.is_string();
    let of_members = ty.members().iter().map(|member| member.chars().count() as u64);
    let length = match ty.kind() {
        Kind::Enum => of_members.max().unwrap_or(0),
        Kind::Set => of_members.map(|length| length + 1).sum::<u64>().saturating_sub(1),
        _ => u64::from(ty.length),
    };
    let characters = has_length.then_some(length);
    let bytes = has_length.then(|| match ty.kind() {
        Kind::Enum | Kind::Set => length * u64::from(ty.charset().max_bytes()),
        _ => u64::from(ty.byte_length()),
    });
    let (precision, scale) = numeric(ty);
    let clock = matches!(ty.kind(), Kind::Time | Kind::DateTime | Kind::Timestamp).then(|| u64::from(ty.scale));
    let has_charset = ty.kind().is_text();
    let charset = |name: &str| if has_charset { text(name) } else { Value::Null };
    vec![
        nullable,
        text(ty.kind().name()),
        optional(characters),
        optional(bytes),
        optional(precision),
        optional(scale),
        optional(clock),
        charset(ty.charset().name()),
        charset(ty.collation.name()),
        text(ty.name()),
    ]
}

/// Returns (name, unique, parts, comment, visible) for every key.
pub fn keys(table: &Table) -> Vec<(&str, bool, &[Part], &str, bool)> {
    let primary = table.primary.iter().map(|parts| ("PRIMARY", true, &parts[..], "", true));
    let indexes = table
        .indexes
        .iter()
        .map(|index| (&*index.name, index.unique, &index.parts[..], &*index.comment, !index.invisible));
    let mut keys: Vec<_> = primary.chain(indexes).collect();
    // Unique keys first, as in MySQL.
    keys.sort_by_key(|key| !key.1);
    keys
}

fn statistics(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in all_tables(ctx) {
        for (name, unique, parts, comment, visible) in keys(&table) {
            for (at, part) in parts.iter().enumerate() {
                let column = &table.columns[part.column];
                rows.push(vec![
                    text("def"),
                    text(&table.schema),
                    text(&table.name),
                    number(u64::from(!unique)),
                    text(&table.schema),
                    text(name),
                    number(at as u64 + 1),
                    table.expression_of(part.column).map_or_else(|| text(&column.name), |_| Value::Null),
                    text(if part.order.descending { "D" } else { "A" }),
                    number(cardinality(&table, parts, at + 1).unwrap_or(rows_of(&table, ctx))),
                    optional(part.prefix.map(u64::from)),
                    Value::Null,
                    text(if column.ty.nullable { "YES" } else { "" }),
                    text("BTREE"),
                    text(""),
                    text(comment),
                    text(if visible { "YES" } else { "NO" }),
                    table.expression_of(part.column).map_or(Value::Null, |expression| text(listed_text(expression))),
                ]);
            }
        }
    }
    Ok(rows)
}

fn key_columns(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in all_tables(ctx) {
        for (name, _, parts, ..) in keys(&table).into_iter().filter(|key| key.1) {
            let named = |part: &&Part| !table.columns[part.column].is_hidden();
            for (at, part) in parts.iter().filter(named).enumerate() {
                let mut row = vec![
                    text("def"),
                    text(&table.schema),
                    text(name),
                    text("def"),
                    text(&table.schema),
                    text(&table.name),
                    text(&table.columns[part.column].name),
                    number(at as u64 + 1),
                ];
                row.resize(12, Value::Null);
                rows.push(row);
            }
        }
        for key in &table.foreign_keys {
            for (at, (own, theirs)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
                rows.push(vec![
                    text("def"),
                    text(&table.schema),
                    text(&key.name),
                    text("def"),
                    text(&table.schema),
                    text(&table.name),
                    text(&table.columns[*own].name),
                    number(at as u64 + 1),
                    number(at as u64 + 1),
                    text(&key.parent_schema),
                    text(&key.parent),
                    text(theirs),
                ]);
            }
        }
    }
    Ok(rows)
}

fn constraints(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in all_tables(ctx) {
        let row = |name: &str, kind: &str, enforced: bool| {
            let enforced = if enforced { "YES" } else { "NO" };
            vec![
                text("def"),
                text(&table.schema),
                text(name),
                text(&table.schema),
                text(&table.name),
                text(kind),
                text(enforced),
            ]
        };
        for (name, ..) in keys(&table).into_iter().filter(|key| key.1) {
            rows.push(row(name, if name == "PRIMARY" { "PRIMARY KEY" } else { "UNIQUE" }, true));
        }
        rows.extend(table.foreign_keys.iter().map(|key| row(&key.name, "FOREIGN KEY", true)));
        rows.extend(table.checks.iter().map(|check| row(&check.name, "CHECK", check.enforced)));
    }
    Ok(rows)
}

fn references(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let snapshot = viewer(ctx).db.catalog().snapshot();
    let mut rows = Vec::new();
    for table in all_tables(ctx) {
        for key in &table.foreign_keys {
            let parent = snapshot.table(&key.parent_schema, &key.parent).ok();
            let by = parent.and_then(|parent| Some((parent, key.fit(&table, parent).ok()?)));
            // A key that is not unique has no name here.
            let unique = by.and_then(|(parent, by)| match by {
                None => Some("PRIMARY"),
                Some(at) => Some(&*parent.indexes[at].name).filter(|_| parent.indexes[at].unique),
            });
            rows.push(vec![
                text("def"),
                text(&table.schema),
                text(&key.name),
                text("def"),
                text(&key.parent_schema),
                unique.map_or(Value::Null, text),
                text("NONE"),
                text(key.on_update.name()),
                text(key.on_delete.name()),
                text(&table.name),
                text(&key.parent),
            ]);
        }
    }
    Ok(rows)
}

fn checks(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in all_tables(ctx) {
        rows.extend(
            table
                .checks
                .iter()
                .map(|check| vec![text("def"), text(&table.schema), text(&check.name), text(listed_text(&check.text))]),
        );
    }
    Ok(rows)
}

fn engines(_ctx: &mut EvalContext) -> Result<Vec<Row>> {
    Ok(vec![vec![
        text("InnoDB"),
        text("DEFAULT"),
        text("Beluga: supports transactions, row-level locking, and savepoints"),
        text("YES"),
        text("NO"),
        text("YES"),
    ]])
}

fn charsets(_ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let row = |charset: &Charset| {
        vec![
            text(charset.name()),
            text(charset.default_collation().name()),
            text(charset.description()),
            number(u64::from(charset.max_bytes())),
        ]
    };
    let mut known = Charset::ALL.to_vec();
    known.sort_by_key(|charset| charset.name());
    Ok(known.iter().map(row).collect())
}

fn collations(_ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let row = |collation: &Collation| {
        let is_default = collation.charset().default_collation() == *collation;
        vec![
            text(collation.name()),
            text(collation.charset().name()),
            number(u64::from(collation.id())),
            text(if is_default { "Yes" } else { "" }),
            text("Yes"),
            number(sort_length(*collation)),
            text(if collation.pads() { "PAD SPACE" } else { "NO PAD" }),
        ]
    };
    Ok(collations_by_name().iter().map(row).collect())
}

fn collations_by_name() -> Vec<Collation> {
    let mut known = Collation::ALL.to_vec();
    known.sort_by_key(|collation| collation.name());
    known
}

/// How much longer MySQL's sort keys may be than texts; a figure that some tools show.
fn sort_length(collation: Collation) -> u64 {
    match collation.weights() {
        Weights::Uca400 | Weights::Uca520 => 8,
        Weights::Uca900 | Weights::Uca900Accents | Weights::Uca900Cases => 0,
        _ if matches!(collation, Collation::Latin1German2Ci | Collation::Gb18030ChineseCi) => 2,
        _ => 1,
    }
}

fn applicability(_ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let row = |collation: &Collation| vec![text(collation.name()), text(collation.charset().name())];
    Ok(collations_by_name().iter().map(row).collect())
}

fn processes(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let sessions = viewer(ctx).db.sessions();
    let sees_all = viewer(ctx).rights.global.has(Privileges::PROCESS);
    let own = viewer(ctx).handle.shown().account;
    let row = |handle: Arc<dyn SessionHandle>| {
        let shown = handle.shown();
        vec![
            number(handle.connection_id),
            text(&*shown.user),
            text(&*shown.host),
            shown.database.as_ref().map_or(Value::Null, |name| text(&**name)),
            text(if shown.statement().is_some() { "Query" } else { "Sleep" }),
            number(shown.since.elapsed().as_secs()),
            text(shown.activity().unwrap_or_default()),
            shown.statement().map_or(Value::Null, text),
        ]
    };
    let seen = sessions.into_iter().filter(|handle| sees_all || handle.shown().account == own);
    Ok(seen.map(row).collect())
}
