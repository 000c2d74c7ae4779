//! LOAD DATA: what each field of the file becomes. The table's side is an INSERT's.

use sqlparser::ast;

use crate::bind::Bind;
use crate::bind::change::{Insert, refuse_value};
use crate::catalog::table::Table;
use crate::error::{self, Result, SqlError};
use crate::letters::fixed_width;
use crate::parse::load::{self, Duplicates, Format};
use crate::parse::parse;
use crate::parse::statement::Statement;
use crate::rights::Privileges;
use crate::scalar::{Expr, SqlMode};
use crate::types::Charset;

/// Where a field goes: a column of the table, or a user variable.
#[derive(Clone, Debug)]
pub enum Into {
    Column(usize),
    Variable(String),
}

#[derive(Debug)]
pub struct Load {
    pub insert: Insert,
    pub file: String,
    pub charset: Charset,
    pub format: Format,
    pub skip: u64,
    pub fields: Vec<Into>,
    /// Where nothing is between fields: how many bytes each has.
    pub widths: Option<Vec<usize>>,
    /// None: the column's default.
    pub sets: Vec<(usize, Option<Expr>)>,
}

fn object(name: &str) -> ast::ObjectName {
    ast::ObjectName(vec![ast::ObjectNamePart::Identifier(ast::Ident::new(name))])
}

/// The INSERT that asks for the same rights, the same table or view and the same rules.
fn as_insert(load: &load::Load) -> Result<ast::Insert> {
    let Statement::Insert(insert) = parse("INSERT INTO t VALUES ()", SqlMode::DEFAULT)?.statement else {
        return Err(error::EMPTY_QUERY.bare());
    };
    let mut insert = *insert;
    let parts = load.table.schema.iter().chain([&load.table.name]);
    let parts = parts.map(|part| ast::ObjectNamePart::Identifier(ast::Ident::new(part))).collect();
    insert.table = ast::TableObject::TableName(ast::ObjectName(parts));
    insert.source = None;
    let duplicates = match load.duplicates {
        // The client cannot be stopped in the middle of its file.
        Duplicates::Fail if load.is_local => Duplicates::Ignore,
        other => other,
    };
    insert.ignore = duplicates == Duplicates::Ignore;
    insert.replace_into = duplicates == Duplicates::Replace;
    if load.fields.is_empty() {
        return Ok(insert);
    }
    let mut columns: Vec<ast::ObjectName> = Vec::new();
    let fields = load.fields.iter().filter_map(|field| match field {
        load::Into::Column(name) => Some(object(name)),
        load::Into::Variable(_) => None,
    });
    let sets = load.sets.iter().filter_map(|set| match &set.target {
        ast::AssignmentTarget::ColumnName(name) => Some(name.clone()),
        ast::AssignmentTarget::Tuple(_) => None,
    });
    for column in fields.chain(sets) {
        let name = last(&column);
        if !columns.iter().any(|known| last(known).eq_ignore_ascii_case(&name)) {
            columns.push(column);
        }
    }
    insert.columns = columns;
    Ok(insert)
}

fn last(name: &ast::ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map_or_else(String::new, |ident| ident.value.clone())
}

/// How wide the fields of a file without separators are: as their columns.
fn widths(table: &Table, fields: &[Into]) -> Result<Vec<usize>> {
    let width = |field: &Into| match field {
        Into::Column(at) => fixed_width(&table.columns[*at].ty).ok_or_else(|| error::BLOBS_AND_NO_TERMINATED.bare()),
        Into::Variable(_) => Err(error::LOAD_FROM_FIXED_SIZE_ROWS_TO_VAR.bare()),
    };
    fields.iter().map(width).collect()
}

impl Bind<'_> {
    pub fn load(&mut self, load: &load::Load) -> Result<Load> {
        if !load.is_local && !self.rights.global.has(Privileges::FILE) {
            return Err(self.rights.no_file());
        }
        let charset = load.charset.as_deref().map_or(Ok(Charset::Utf8mb4), Charset::by_name)?;
        let insert = self.insert(&as_insert(load)?)?;
        let format = load.format.clone();
        let table = insert.rules.table.clone();
        let mut fields = Vec::new();
        for field in &load.fields {
            fields.push(match field {
                load::Into::Variable(name) => Into::Variable(name.clone()),
                load::Into::Column(name) => Into::Column(self.target(&table, &object(name))?),
            });
        }
        if load.fields.is_empty() {
            fields = insert.targets.iter().copied().map(Into::Column).collect();
        }
        for field in &fields {
            if let Into::Column(at) = field
                && !self.disregards(&table, *at)
            {
                refuse_value(&table, *at)?;
            }
        }
        let widths = format.is_fixed().then(|| widths(&table, &fields)).transpose()?;
        let mut sets = Vec::new();
        self.open_scope();
        self.add_target(&table);
        for assignment in &load.sets {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(SqlError::unsupported("assignment of several columns"));
            };
            let column = self.target(&table, name)?;
            let value = self.value_for(&assignment.value, &table, column)?;
            if value.is_some() {
                refuse_value(&table, column)?;
            }
            sets.push((column, value));
        }
        self.close_scope();
        let (file, skip) = (load.file.clone(), load.skip);
        Ok(Load { insert, file, charset, format, skip, fields, widths, sets })
    }
}
