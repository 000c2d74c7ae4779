//! LOAD DATA: the targets of the file's fields. The table is bound as for INSERT.

use crate::scalar::charsets;
use syntax::tree as ast;

use crate::bind::Bind;
use crate::bind::change::refuse_value;
use crate::charset::fixed_width;
use crate::error::{self, Result};
use crate::instance::statement::Load;
use crate::instance::variables::text_of;
use crate::parse::statement::{Assignment, Duplicates, FieldTarget, Format};
use crate::rights::Privileges;
use crate::types::Charset;
use query::catalog::table::Table;
use query::nodes::expr::Expr;

/// Where a field goes: a column of the table, or a user variable.
#[derive(Clone, Debug)]
pub enum LoadField {
    Column(usize),
    Variable(String),
}

/// A file of rows: its name, its form, and where its fields go.
#[derive(Debug)]
pub struct LoadSource {
    pub file: String,
    pub charset: Charset,
    pub format: Format,
    pub skip: u64,
    pub fields: Vec<LoadField>,
    /// Where nothing is between fields: how many bytes each has.
    pub widths: Option<Vec<usize>>,
    /// None: the column's default.
    pub sets: Vec<(usize, Option<Expr>)>,
}

/// Returns an unqualified column name.
fn bare(name: &str) -> ast::ColumnName {
    ast::ColumnName { schema: None, table: None, name: name.to_owned() }
}

/// Returns the INSERT that needs the same privileges, table or view and rules.
fn as_insert(load: &ast::Load) -> ast::Insert {
    let duplicates = match load.duplicates {
        // The client cannot be stopped in the middle of its file.
        Duplicates::Fail if load.is_local => Duplicates::Ignore,
        other => other,
    };
    let mut columns: Vec<ast::ColumnName> = Vec::new();
    if !load.fields.is_empty() {
        let fields = load.fields.iter().filter_map(|field| match field {
            FieldTarget::Column(name) => Some(bare(name)),
            FieldTarget::Variable(_) => None,
        });
        let sets = load.sets.iter().map(|Assignment { column, value: _ }| column.clone());
        for column in fields.chain(sets) {
            if !columns.iter().any(|known| known.name.eq_ignore_ascii_case(&column.name)) {
                columns.push(column);
            }
        }
    }
    ast::Insert {
        replace: duplicates == Duplicates::Replace,
        ignore: duplicates == Duplicates::Ignore,
        hints: Vec::new(),
        table: load.table.clone(),
        partitions: Vec::new(),
        columns,
        source: ast::InsertSource::Values(Vec::new()),
        row_alias: None,
        on_duplicate: Vec::new(),
        returning: None,
    }
}

/// Returns the field widths of a file without separators: those of the columns.
fn widths(table: &Table, fields: &[LoadField]) -> Result<Vec<usize>> {
    let width = |field: &LoadField| match field {
        LoadField::Column(at) => {
            fixed_width(&table.columns[*at].ty).ok_or_else(|| error::BLOBS_AND_NO_TERMINATED.bare())
        }
        LoadField::Variable(_) => Err(error::LOAD_FROM_FIXED_SIZE_ROWS_TO_VAR.bare()),
    };
    fields.iter().map(width).collect()
}

impl Bind<'_> {
    pub fn load(&mut self, load: &ast::Load) -> Result<Load> {
        let ast::Load {
            is_local,
            file,
            duplicates: _,
            table: _,
            charset,
            format,
            skip,
            fields: given,
            sets: assignments,
        } = load;
        if !is_local && !self.rights.global.has(Privileges::FILE) {
            return Err(self.rights.no_file());
        }
        let charset = match charset {
            Some(name) => charsets::file_charset(name)?,
            None => {
                charsets::file_charset(&text_of(&self.environment.variables.system(None, "character_set_database")?.0))?
            }
        };
        let insert = self.insert(&as_insert(load))?;
        let table = insert.rules.table.clone();
        let mut fields = Vec::new();
        for field in given {
            fields.push(match field {
                FieldTarget::Variable(name) => LoadField::Variable(name.clone()),
                FieldTarget::Column(name) => LoadField::Column(self.target(&table, &bare(name))?),
            });
        }
        if given.is_empty() {
            fields = insert.targets.iter().copied().map(LoadField::Column).collect();
        }
        for field in &fields {
            if let LoadField::Column(at) = field
                && !self.disregards(&table, *at)
            {
                refuse_value(&table, *at)?;
            }
        }
        let widths = format.is_fixed().then(|| widths(&table, &fields)).transpose()?;
        let mut sets = Vec::new();
        self.open_scope();
        self.add_target(&table);
        for Assignment { column, value } in assignments {
            let column = self.target(&table, column)?;
            let value = self.value_for(value, &table, column)?;
            if value.is_some() {
                refuse_value(&table, column)?;
            }
            sets.push((column, value));
        }
        self.close_scope();
        let (file, format) = (file.clone(), format.clone());
        let source = LoadSource { file, charset, format, skip: *skip, fields, widths, sets };
        Ok(Load { insert, source })
    }
}
