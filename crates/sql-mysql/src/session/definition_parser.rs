//! Definition parser: names, keys and their parts, constraints, table options. It does not need a session.

use crate::scalar::charsets;
use datum::key::KeyOrder;
use syntax::tree::walk::{self, Visitor};
use syntax::tree::{
    self, ColumnDef, ColumnOption, DataType, Expr, ExprKind, IndexDef, IndexKind, IndexOptions, KeyPart, OptionValue,
    PartKey, TableConstraint, TableOption,
};

use crate::error::{self, Result, SqlError};
use crate::parse::stored::{Disallowed, disallowed, is_boolean, stored_text};
use crate::scalar::modes::SqlMode;
use crate::session::foreign::{Wanted, wanted};
use crate::types::{Charset, CharsetName as _, Collation, CollationName as _, MysqlType as _};
use crate::value::Value;
use query::catalog::object_id::UNNUMBERED;
use query::catalog::table::{Check, Identity, Part, Table, TableColumn};

/// MySQL's own limits.
pub(super) const NAME_MAX: usize = 64;
pub(super) const COLUMNS_MAX: usize = 1017;
pub(super) const KEYS_MAX: usize = 64;
pub(super) const PARTS_MAX: usize = 16;

/// An index to add; an empty name is generated.
pub(super) struct NewIndex {
    pub name: String,
    pub unique: bool,
    pub parts: Vec<Part>,
    pub comment: String,
    pub invisible: bool,
    pub using: bool,
}

impl NewIndex {
    /// Returns a UNIQUE key of one column.
    pub fn unique(column: usize) -> NewIndex {
        let parts = single(column);
        NewIndex { name: String::new(), unique: true, parts, comment: String::new(), invisible: false, using: false }
    }
}

/// A parsed table definition.
pub(super) struct Definition {
    pub columns: Vec<TableColumn>,
    pub primary: Option<Vec<Part>>,
    pub primary_using: bool,
    pub indexes: Vec<NewIndex>,
    pub checks: Vec<Check>,
    pub foreign: Vec<Wanted>,
    pub collation: Collation,
    /// The SQL mode of its expressions.
    pub sql_mode: SqlMode,
}

pub(super) fn collation_of(charset: Option<&str>, collation: Option<&str>, default: Collation) -> Result<Collation> {
    let charset = charset.map(charsets::charset).transpose()?;
    let collation = collation.map(charsets::collation).transpose()?;
    match (charset, collation) {
        (Some(charset), Some(collation)) if collation.charset() != charset => {
            Err(error::COLLATION_CHARSET_MISMATCH.with(&[&collation.name(), &charset.name()]))
        }
        (_, Some(collation)) => Ok(collation),
        (Some(charset), None) => Ok(charset.default_collation()),
        (None, None) => Ok(default),
    }
}

pub(super) fn check_name(name: &str, wrong: &error::Code) -> Result<()> {
    if name.chars().count() > NAME_MAX {
        return Err(error::TOO_LONG_IDENT.with(&[&name]));
    }
    if name.is_empty() || name.ends_with(' ') {
        return Err(wrong.with(&[&name]));
    }
    Ok(())
}

/// Returns the character set's binary collation, for the attribute BINARY.
pub(super) fn binary_of(charset: Charset) -> Result<Collation> {
    match charset {
        Charset::Binary => Ok(Collation::Binary),
        charset => charsets::collation(&format!("{}_bin", charset.name())),
    }
}

/// Returns the name, or generates one from the first column's.
pub(super) fn index_name(table: &Table, name: String, parts: &[Part]) -> Result<String> {
    let taken = |name: &str| table.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name));
    if name.eq_ignore_ascii_case("primary") {
        return Err(SqlError { code: 1280, sqlstate: "42000", message: format!("Incorrect index name '{name}'") });
    }
    if !name.is_empty() {
        check_name(&name, &error::WRONG_COLUMN_NAME)?;
        return if taken(&name) { Err(error::DUP_KEYNAME.with(&[&name])) } else { Ok(name) };
    }
    let first = &table.columns[parts[0].column];
    let first = if first.is_hidden() { "functional_index" } else { &first.name };
    let mut names = std::iter::once(first.to_owned()).chain((2..).map(|number| format!("{first}_{number}")));
    Ok(names.find(|name| !taken(name)).unwrap_or_default())
}

/// Returns the parts of a key. Expressions have already been replaced by columns.
fn parts_of(columns: &[TableColumn], list: &[KeyPart]) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for KeyPart { key, descending } in list {
        let (name, prefix) = match key {
            PartKey::Column { name, length } => {
                (&name.value, length.map(|length| u32::try_from(length).unwrap_or(u32::MAX)))
            }
            PartKey::Expr(_) => return Err(SqlError::corrupt("an expression in a key that has no column")),
        };
        let column = columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        let column = column.ok_or_else(|| error::KEY_COLUMN_DOES_NOT_EXIST.with(&[name]))?;
        if parts.iter().any(|part| part.column == column) {
            return Err(error::DUP_FIELDNAME.with(&[name]));
        }
        let ty = &columns[column].ty;
        if prefix == Some(0)
            || prefix.is_some() && !ty.is_string()
            || prefix.is_some_and(|prefix| !ty.kind().is_blob() && prefix > ty.length)
        {
            return Err(error::WRONG_SUB_KEY.bare());
        }
        if ty.kind().is_blob() && prefix.is_none() {
            return Err(error::BLOB_KEY_WITHOUT_LENGTH.with(&[&columns[column].name]));
        }
        let prefix = prefix.filter(|prefix| ty.kind().is_blob() || *prefix < ty.length);
        parts.push(Part { column, prefix, order: KeyOrder::with_null_least(*descending) });
    }
    if parts.len() > PARTS_MAX {
        return Err(error::TOO_MANY_KEY_PARTS.with(&[&PARTS_MAX]));
    }
    Ok(parts)
}

pub(super) fn single(column: usize) -> Vec<Part> {
    vec![Part { column, prefix: None, order: KeyOrder::ASCENDING }]
}

/// Returns a column's options, preceded by those that SERIAL implies.
pub(super) fn options_of_column(column: &ColumnDef) -> impl Iterator<Item = &ColumnOption> + Clone {
    static SERIAL: [ColumnOption; 3] = [ColumnOption::NotNull, ColumnOption::AutoIncrement, ColumnOption::Unique];
    let implied = if column.ty.data == DataType::Serial { &SERIAL[..] } else { &[] };
    implied.iter().chain(&column.options)
}

/// Adds the constraints among a column's options.
pub(super) fn key_options(def: &ColumnDef, column: usize, definition: &mut Definition, table: &str) -> Result<()> {
    for option in options_of_column(def) {
        match option {
            ColumnOption::PrimaryKey if definition.primary.replace(single(column)).is_some() => {
                return Err(error::MULTIPLE_PRI_KEY.bare());
            }
            ColumnOption::Unique => definition.indexes.push(NewIndex::unique(column)),
            ColumnOption::Check(check) => {
                add_check(check, definition, table)?;
                if looks_beyond(&check.expr, &def.name.value) {
                    let name = definition.checks.last().map_or("", |check| &check.name);
                    return Err(error::COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN.with(&[&name]));
                }
            }
            _ => {}
        }
    }
    if definition.columns[column].ty.kind().is_blob()
        && options_of_column(def).any(|option| matches!(option, ColumnOption::PrimaryKey | ColumnOption::Unique))
    {
        return Err(error::BLOB_KEY_WITHOUT_LENGTH.with(&[&definition.columns[column].name]));
    }
    Ok(())
}

/// Returns whether a column's CHECK reads other columns.
fn looks_beyond(check: &Expr, column: &str) -> bool {
    struct Others<'c>(&'c str, bool);
    impl Visitor for Others<'_> {
        fn expr(&mut self, node: &Expr) -> bool {
            if let ExprKind::Column(name) | ExprKind::JsonPath { column: name, path: _, unquote: _ } = &node.kind {
                self.1 |= !name.name.eq_ignore_ascii_case(self.0);
            }
            true
        }
    }
    let mut others = Others(column, false);
    walk::expr(check, &mut others);
    others.1
}

/// Checks that a CHECK's expression is boolean and has nothing disallowed.
fn check_words_of_check(name: &str, expr: &Expr) -> Result<()> {
    if !is_boolean(expr) {
        return Err(error::NON_BOOLEAN_EXPR_FOR_CHECK_CONSTRAINT.with(&[&name]));
    }
    match disallowed(expr) {
        None => Ok(()),
        Some(Disallowed::Subquery) => Err(error::CHECK_CONSTRAINT_FUNCTION_IS_NOT_ALLOWED.with(&[&name])),
        Some(Disallowed::Variable) => Err(error::CHECK_CONSTRAINT_VARIABLES.with(&[&name])),
        Some(Disallowed::Function(word)) => {
            Err(error::CHECK_CONSTRAINT_NAMED_FUNCTION_IS_NOT_ALLOWED.with(&[&name, &word]))
        }
    }
}

fn add_check(check: &tree::Check, definition: &mut Definition, table: &str) -> Result<()> {
    let tree::Check { name, expr, enforced } = check;
    let name = match name {
        Some(name) => name.value.clone(),
        None => {
            let mut names = (1..).map(|number| format!("{table}_chk_{number}"));
            names.find(|name| !definition.checks.iter().any(|check| check.name == *name)).unwrap_or_default()
        }
    };
    if definition.checks.iter().any(|check| check.name.eq_ignore_ascii_case(&name)) {
        return Err(error::CHECK_CONSTRAINT_DUP_NAME.with(&[&name]));
    }
    check_words_of_check(&name, expr)?;
    let text = stored_text(expr, definition.sql_mode)?;
    definition.checks.push(Check { id: UNNUMBERED, name, text, enforced: *enforced, is_validated: true });
    Ok(())
}

fn add_index(index: &IndexDef, definition: &mut Definition) -> Result<()> {
    let IndexDef { kind, constraint, name, parts, options } = index;
    let IndexOptions { algorithm, comment, visible, key_block_size: _, parser, engine_attribute } = options;
    let unique = match kind {
        IndexKind::Fulltext | IndexKind::Spatial => {
            return Err(SqlError::unsupported("FULLTEXT and SPATIAL indexes"));
        }
        IndexKind::Primary | IndexKind::Unique => true,
        IndexKind::Plain => false,
    };
    // USING HASH is accepted and ignored, as in InnoDB.
    if algorithm.as_deref() == Some("rtree") {
        return Err(SqlError::unsupported("USING RTREE"));
    }
    if parser.is_some() {
        return Err(SqlError::unsupported("WITH PARSER"));
    }
    if engine_attribute.is_some() {
        return Err(SqlError::unsupported("ENGINE_ATTRIBUTE"));
    }
    let using = algorithm.as_deref() == Some("btree");
    let (parts, invisible) = (parts_of(&definition.columns, parts)?, *visible == Some(false));
    if *kind == IndexKind::Primary {
        if invisible {
            return Err(error::PK_INDEX_CANT_BE_INVISIBLE.bare());
        }
        if definition.primary.replace(parts).is_some() {
            return Err(error::MULTIPLE_PRI_KEY.bare());
        }
        definition.primary_using = using;
        return Ok(());
    }
    let name = name.as_ref().or(constraint.as_ref()).map(|name| name.value.clone()).unwrap_or_default();
    let comment = comment.clone().unwrap_or_default();
    definition.indexes.push(NewIndex { name, unique, parts, comment, invisible, using });
    Ok(())
}

pub(super) fn add_constraint(constraint: &TableConstraint, definition: &mut Definition, table: &str) -> Result<()> {
    match constraint {
        TableConstraint::Index(index) => add_index(index, definition)?,
        TableConstraint::Check(check) => add_check(check, definition, table)?,
        TableConstraint::Foreign(key) => definition.foreign.push(wanted(key, &definition.columns)?),
    }
    Ok(())
}

/// Checks the limits on all keys of a table.
pub(super) fn check_keys(table: &Table) -> Result<()> {
    if table.indexes.len() > KEYS_MAX {
        return Err(error::TOO_MANY_KEYS.with(&[&KEYS_MAX]));
    }
    let mut autos = table.columns.iter().enumerate().filter(|(_, column)| column.auto_increment);
    if let Some((auto, _)) = autos.next() {
        let leads = table
            .primary
            .iter()
            .chain(table.indexes.iter().map(|index| &index.parts))
            .any(|parts| parts[0].column == auto);
        if autos.next().is_some() || !leads {
            return Err(error::WRONG_AUTO_KEY.bare());
        }
    }
    for (at, check) in table.checks.iter().enumerate() {
        if table.checks[..at].iter().any(|other| other.name.eq_ignore_ascii_case(&check.name)) {
            return Err(error::CHECK_CONSTRAINT_DUP_NAME.with(&[&check.name]));
        }
    }
    Ok(())
}

/// Returns the definition for CREATE TABLE ... LIKE. Constraints get new names; foreign keys are not copied.
pub(super) fn like_table(table: &Table, name: &str) -> Definition {
    let mut columns = table.columns.clone();
    columns.iter_mut().enumerate().for_each(|(slot, column)| {
        column.slot = slot;
        column.initial = Value::Null;
        // A sequence has one owner.
        (column.identity, column.sequences) = (Identity::None, Vec::new());
    });
    Definition {
        columns,
        primary: table.primary.clone(),
        primary_using: table.primary_using,
        indexes: table
            .indexes
            .iter()
            .map(|index| NewIndex {
                name: index.name.clone(),
                unique: index.unique,
                parts: index.parts.clone(),
                comment: index.comment.clone(),
                invisible: index.invisible,
                using: index.using,
            })
            .collect(),
        checks: table
            .checks
            .iter()
            .enumerate()
            .map(|(at, check)| Check { id: UNNUMBERED, name: format!("{name}_chk_{}", at + 1), ..check.clone() })
            .collect(),
        foreign: Vec::new(),
        collation: table.collation,
        sql_mode: SqlMode::DEFAULT,
    }
}

#[derive(std::default::Default)]
pub(super) struct Options {
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub comment: Option<String>,
    pub auto_increment: Option<u64>,
    /// A storage engine other than InnoDB.
    pub engine: Option<String>,
    /// Options about MySQL's file layout and sampling. They have no effect here.
    pub noted: Vec<(String, String)>,
}

pub(super) fn options_of<'o>(options: impl IntoIterator<Item = &'o TableOption>) -> Result<Options> {
    let mut found = Options::default();
    for TableOption { name, value } in options {
        match name.as_str() {
            "engine" if value.text().eq_ignore_ascii_case("innodb") => found.engine = None,
            "engine" => found.engine = Some(value.text()),
            "charset" => found.charset = Some(value.text()),
            "collate" => found.collation = Some(value.text()),
            "comment" => found.comment = Some(value.text()),
            "auto_increment" => {
                found.auto_increment = match value {
                    OptionValue::Number(number) => Some(*number),
                    other => other.text().parse().ok(),
                }
            }
            "row_format" | "key_block_size" | "stats_persistent" | "stats_auto_recalc" | "stats_sample_pages"
            | "avg_row_length" | "max_rows" | "min_rows" | "pack_keys" | "checksum" | "delay_key_write" => {
                found.noted.push((name.clone(), value.text()));
            }
            other => return Err(SqlError::unsupported(format!("table option {}", other.to_uppercase()))),
        }
    }
    Ok(found)
}
