//! What the words of a definition mean: names, keys and their parts, constraints, table options. No session is needed for it.

use sqlparser::ast::{self, ColumnOption, TableConstraint};

use crate::catalog::table::{Check, Part, Table, TableColumn};
use crate::error::{self, Result, SqlError};
use crate::parse::stored::stored_text;
use crate::scalar::SqlMode;
use crate::session::foreign::{Wanted, wanted};
use crate::types::{Charset, Collation};
use crate::value::Value;

/// MySQL's own limits.
pub(super) const NAME_MAX: usize = 64;
pub(super) const COLUMNS_MAX: usize = 1017;
pub(super) const KEYS_MAX: usize = 64;
pub(super) const PARTS_MAX: usize = 16;

/// What a definition's words are understood with.
pub(super) struct Definition {
    pub columns: Vec<TableColumn>,
    pub primary: Option<Vec<Part>>,
    /// (name, unique, parts, comment); an empty name is to be made up.
    pub indexes: Vec<(String, bool, Vec<Part>, String)>,
    pub checks: Vec<Check>,
    pub foreign: Vec<Wanted>,
    pub collation: Collation,
    /// Under which its expressions were written.
    pub sql_mode: SqlMode,
}

pub(super) fn collation_of(charset: Option<&str>, collation: Option<&str>, default: Collation) -> Result<Collation> {
    let charset = charset.map(Charset::by_name).transpose()?;
    let collation = collation.map(Collation::by_name).transpose()?;
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

pub(super) fn comment_of(options: &[ast::IndexOption]) -> String {
    options
        .iter()
        .find_map(|option| match option {
            ast::IndexOption::Comment(text) => Some(text.clone()),
            ast::IndexOption::Using(_) => None,
        })
        .unwrap_or_default()
}

/// The name, or one made of the first column's.
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

/// An expression is a part of a key in brackets only.
fn without_brackets(item: &ast::IndexColumn) -> SqlError {
    SqlError::parse(format!("'{}' at line 1", item.column.expr))
}

/// Columns of a key, with prefixes and directions.
pub(super) fn parts_of(columns: &[TableColumn], list: &[ast::IndexColumn]) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for item in list {
        let (name, prefix) = match &item.column.expr {
            ast::Expr::Identifier(name) => (name.value.clone(), None),
            // `c(10)` reads as a call.
            ast::Expr::Function(function) => {
                let argument = match &function.args {
                    ast::FunctionArguments::List(list) if list.args.len() == 1 => {
                        list.args[0].to_string().parse::<u32>().ok()
                    }
                    _ => None,
                };
                let Some(prefix) = argument else { return Err(without_brackets(item)) };
                (function.name.to_string().trim_matches('`').to_owned(), Some(prefix))
            }
            _ => return Err(without_brackets(item)),
        };
        let column = columns.iter().position(|column| column.name.eq_ignore_ascii_case(&name));
        let column = column.ok_or_else(|| error::KEY_COLUMN_DOES_NOT_EXIST.with(&[&name]))?;
        if parts.iter().any(|part| part.column == column) {
            return Err(error::DUP_FIELDNAME.with(&[&name]));
        }
        let ty = &columns[column].ty;
        if prefix == Some(0)
            || prefix.is_some() && !ty.is_string()
            || prefix.is_some_and(|prefix| !ty.kind.is_blob() && prefix > ty.length)
        {
            return Err(error::WRONG_SUB_KEY.bare());
        }
        if ty.kind.is_blob() && prefix.is_none() {
            return Err(error::BLOB_KEY_WITHOUT_LENGTH.with(&[&columns[column].name]));
        }
        let prefix = prefix.filter(|prefix| ty.kind.is_blob() || *prefix < ty.length);
        parts.push(Part {
            column,
            prefix,
            descending: matches!(item.column.options.sort, Some(ast::OrderBySort::Desc)),
        });
    }
    if parts.len() > PARTS_MAX {
        return Err(error::TOO_MANY_KEY_PARTS.with(&[&PARTS_MAX]));
    }
    Ok(parts)
}

pub(super) fn single(column: usize) -> Vec<Part> {
    vec![Part { column, prefix: None, descending: false }]
}

pub(super) fn key_options(
    options: &[&ColumnOption],
    column: usize,
    definition: &mut Definition,
    table: &str,
) -> Result<()> {
    for option in options {
        match option {
            ColumnOption::PrimaryKey(_) if definition.primary.replace(single(column)).is_some() => {
                return Err(error::MULTIPLE_PRI_KEY.bare());
            }
            ColumnOption::Unique(_) => definition.indexes.push((String::new(), true, single(column), String::new())),
            ColumnOption::Check(check) => add_check(check, definition, table)?,
            _ => {}
        }
    }
    if definition.columns[column].ty.kind.is_blob()
        && options.iter().any(|option| matches!(option, ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_)))
    {
        return Err(error::BLOB_KEY_WITHOUT_LENGTH.with(&[&definition.columns[column].name]));
    }
    Ok(())
}

pub(super) fn add_check(check: &ast::CheckConstraint, definition: &mut Definition, table: &str) -> Result<()> {
    let name = match &check.name {
        Some(name) => name.value.clone(),
        None => {
            let mut names = (1..).map(|number| format!("{table}_chk_{number}"));
            names.find(|name| !definition.checks.iter().any(|check| check.name == *name)).unwrap_or_default()
        }
    };
    if definition.checks.iter().any(|check| check.name.eq_ignore_ascii_case(&name)) {
        return Err(error::CHECK_CONSTRAINT_DUP_NAME.with(&[&name]));
    }
    let text = stored_text(&check.expr, definition.sql_mode)?;
    definition.checks.push(Check { name, text, enforced: check.enforced.unwrap_or(true) });
    Ok(())
}

pub(super) fn add_constraint(constraint: &TableConstraint, definition: &mut Definition, table: &str) -> Result<()> {
    match constraint {
        TableConstraint::PrimaryKey(key) => {
            let parts = parts_of(&definition.columns, &key.columns)?;
            if definition.primary.replace(parts).is_some() {
                return Err(error::MULTIPLE_PRI_KEY.bare());
            }
        }
        TableConstraint::Unique(key) => {
            let name = key.index_name.as_ref().or(key.name.as_ref()).map(|name| name.value.clone()).unwrap_or_default();
            let parts = parts_of(&definition.columns, &key.columns)?;
            definition.indexes.push((name, true, parts, comment_of(&key.index_options)));
        }
        TableConstraint::Index(key) => {
            let name = key.name.as_ref().map(|name| name.value.clone()).unwrap_or_default();
            let parts = parts_of(&definition.columns, &key.columns)?;
            definition.indexes.push((name, false, parts, comment_of(&key.index_options)));
        }
        TableConstraint::Check(check) => add_check(check, definition, table)?,
        TableConstraint::ForeignKey(key) => definition.foreign.push(wanted(key, &definition.columns)?),
        TableConstraint::FulltextOrSpatial(_) => return Err(SqlError::unsupported("FULLTEXT and SPATIAL indexes")),
        other => return Err(SqlError::unsupported(other)),
    }
    Ok(())
}

/// What all keys of a table must obey together.
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

/// A definition like the table's. Its constraints get names of their own, its foreign keys stay behind.
pub(super) fn like_table(table: &Table, name: &str) -> Definition {
    let mut columns = table.columns.clone();
    columns.iter_mut().enumerate().for_each(|(slot, column)| {
        column.slot = slot;
        column.initial = Value::Null;
    });
    Definition {
        columns,
        primary: table.primary.clone(),
        indexes: table
            .indexes
            .iter()
            .map(|index| (index.name.clone(), index.unique, index.parts.clone(), index.comment.clone()))
            .collect(),
        checks: table
            .checks
            .iter()
            .enumerate()
            .map(|(at, check)| Check { name: format!("{name}_chk_{}", at + 1), ..check.clone() })
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
    /// A storage engine that is not the one that there is.
    pub engine: Option<String>,
}

pub(super) fn options_of(options: &ast::CreateTableOptions) -> Result<Options> {
    let mut found = Options::default();
    let (ast::CreateTableOptions::Plain(list)
    | ast::CreateTableOptions::Options(list)
    | ast::CreateTableOptions::With(list)) = options
    else {
        return Ok(found);
    };
    for option in list {
        match option {
            ast::SqlOption::Comment(ast::CommentDef::WithEq(text) | ast::CommentDef::WithoutEq(text)) => {
                found.comment = Some(text.clone())
            }
            ast::SqlOption::KeyValue { key, value } => {
                let text = value.to_string().trim_matches(['\'', '`']).to_owned();
                option_of(&key.value, text, &mut found)?;
            }
            ast::SqlOption::NamedParenthesizedList(list) if list.key.value.eq_ignore_ascii_case("engine") => {
                option_of("engine", list.name.as_ref().map(|name| name.value.clone()).unwrap_or_default(), &mut found)?;
            }
            other => return Err(SqlError::unsupported(other)),
        }
    }
    Ok(found)
}

pub(super) fn option_of(name: &str, text: String, found: &mut Options) -> Result<()> {
    let name = name.to_ascii_lowercase();
    match name.trim_start_matches("default ") {
        "engine" | "storage engine" if text.eq_ignore_ascii_case("innodb") => {}
        "engine" | "storage engine" => found.engine = Some(text),
        "charset" | "character set" => found.charset = Some(text),
        "collate" => found.collation = Some(text),
        "comment" => found.comment = Some(text),
        "auto_increment" => found.auto_increment = text.parse().ok(),
        // How MySQL's own files are laid out, and how it samples them: nothing follows from these here.
        "row_format" | "key_block_size" | "stats_persistent" | "stats_auto_recalc" | "stats_sample_pages"
        | "avg_row_length" | "max_rows" | "min_rows" | "pack_keys" | "checksum" | "delay_key_write" => {}
        other => return Err(SqlError::unsupported(format!("table option {}", other.to_uppercase()))),
    }
    Ok(())
}
