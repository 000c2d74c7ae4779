//! JSON_TABLE in FROM: its document may name columns of the tables before it, as a LATERAL table does, and it is one to the plan.

use std::sync::Arc;

use sqlparser::ast::{self, JsonTableColumn, JsonTableColumnErrorHandling as Handling};

use crate::bind::Bind;
use crate::bind::scope::Source;
use crate::error::{self, Result, SqlError};
use crate::plan::Node;
use crate::plan::json_table::{Holds, JsonColumn, JsonTable, Level, Otherwise};
use crate::scalar::EvalContext;
use crate::scalar::bind::types::data_type;
use crate::scalar::json;
use crate::scalar::json::path::Path;
use crate::scalar::json::table::{Fault, stored};
use crate::types::{Collation, Column, Kind, Type};

/// MySQL's own bound.
const NESTED_MAX: usize = 16;

/// JSON_TABLE(document, path COLUMNS (columns)) AS alias
pub struct Parts<'a> {
    pub document: &'a ast::Expr,
    pub path: &'a ast::ValueWithSpan,
    pub columns: &'a [JsonTableColumn],
    pub alias: &'a ast::TableAlias,
}

/// Columns as they are found, in the order of the text.
struct Reading<'n> {
    table: &'n str,
    collation: Collation,
    columns: Vec<Column>,
    nested: usize,
}

impl Bind<'_> {
    pub fn json_table(&mut self, parts: &Parts<'_>) -> Result<Source> {
        let alias = &parts.alias.name.value;
        if !parts.alias.columns.is_empty() {
            return Err(SqlError::parse(format!("'({}' at line 1", parts.alias.columns[0])));
        }
        let collation = self.settings().collation;
        let mut reading = Reading { table: alias, collation, columns: Vec::new(), nested: 0 };
        let root = reading.level(parts.path, parts.columns)?;
        let columns = reading.columns;
        let (document, outside) = self.deeper(|bind| {
            bind.open_scope();
            bind.scope().clause = "a table function argument";
            let document = bind.expr(parts.document);
            bind.close_scope();
            document
        })?;
        if !matches!(document.ty().kind, Kind::Null | Kind::Json) && !document.ty().kind.is_text() {
            return Err(error::INVALID_TYPE_FOR_JSON.with(&[&1, &"json_table"]));
        }
        let node = Arc::new(Node::JsonTable(Box::new(JsonTable { document, root, width: columns.len() })));
        self.beside(alias, columns, node, &outside)
    }
}

impl Reading<'_> {
    fn level(&mut self, path: &ast::ValueWithSpan, columns: &[JsonTableColumn]) -> Result<Level> {
        let mut level = Level { path: path_of(path)?, columns: Vec::new(), nested: Vec::new() };
        for column in columns {
            match column {
                JsonTableColumn::ForOrdinality(name) => {
                    let ty = Type { unsigned: true, ..Type::new(Kind::Int) };
                    level.columns.push(self.column(&name.value, ty, Holds::Ordinality)?);
                }
                JsonTableColumn::Named(named) => level.columns.push(self.named(named)?),
                JsonTableColumn::Nested(inner) => {
                    self.nested += 1;
                    if self.nested > NESTED_MAX {
                        return Err(error::JT_MAX_NESTED_PATH.with(&[&NESTED_MAX, &self.table]));
                    }
                    level.nested.push(self.level(&inner.path, &inner.columns)?);
                }
            }
        }
        Ok(level)
    }

    fn column(&mut self, name: &str, ty: Type, holds: Holds) -> Result<JsonColumn> {
        if self.columns.iter().any(|known| known.name.eq_ignore_ascii_case(name)) {
            return Err(error::DUP_FIELDNAME.with(&[&name]));
        }
        let ty = ty.with_nullable(true);
        self.columns.push(Column::computed(name.to_owned(), ty.clone()));
        Ok(JsonColumn { at: self.columns.len() - 1, name: name.to_owned(), ty, holds })
    }

    fn named(&mut self, named: &ast::JsonTableNamedColumn) -> Result<JsonColumn> {
        let ty = data_type(&named.r#type, self.collation, &named.name.value)?.with_nullable(true);
        let (name, path) = (&named.name.value, path_of(&named.path)?);
        let holds = if named.exists {
            if named.on_empty.is_some() || named.on_error.is_some() {
                return Err(SqlError::parse("'ON' at line 1".to_owned()));
            }
            Holds::Exists(path)
        } else {
            Holds::Value {
                path,
                on_empty: otherwise(named.on_empty.as_ref(), name, &ty)?,
                on_error: otherwise(named.on_error.as_ref(), name, &ty)?,
            }
        };
        self.column(name, ty, holds)
    }
}

fn path_of(value: &ast::ValueWithSpan) -> Result<Path> {
    Path::parse(text_of(value)?)
}

fn text_of(value: &ast::ValueWithSpan) -> Result<&str> {
    match &value.value {
        ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) => Ok(text),
        other => Err(SqlError::parse(format!("'{other}' at line 1"))),
    }
}

/// A default is JSON text, and must be a value of the column.
fn otherwise(handling: Option<&Handling>, name: &str, ty: &Type) -> Result<Otherwise> {
    let wrong = || error::INVALID_DEFAULT.with(&[&name]);
    Ok(match handling {
        None | Some(Handling::Null) => Otherwise::Default(crate::value::Value::Null),
        Some(Handling::Error) => Otherwise::Error,
        Some(Handling::Default(value)) => {
            let node = json::parse(text_of(value)?).map_err(|_| wrong())?;
            let stored = stored(&node, ty, name, &mut EvalContext::new());
            Otherwise::Default(stored.map_err(|_: Fault| wrong())?)
        }
    })
}
