//! JSON_TABLE in FROM. Its document may refer to the tables before it, so it is planned as a LATERAL table.

use std::sync::Arc;

use syntax::tree as ast;
use syntax::tree::{Literal, OnMissing};

use crate::bind::Bind;
use crate::error::{self, Result, SqlError};
use crate::scalar::bind::types::{data_type, declared_collation};
use crate::scalar::json;
use crate::scalar::json::path::Path;
use crate::scalar::json::shape::{Holds, JsonColumn, JsonTable, Level, Otherwise};
use crate::scalar::json::table::{Mismatch, stored};
use crate::types::{Collation, Column, Kind, MysqlType as _, Type};
use query::nodes::context::EvalContext;
use query::nodes::node::Node;
use query::nodes::relation::Source;
use query::nodes::table_function::TableFunction;

/// MySQL's own limit.
const NESTED_MAX: usize = 16;

/// The columns found so far, in textual order.
struct Reading<'n> {
    table: &'n str,
    collation: Collation,
    columns: Vec<Column>,
    nested: usize,
}

impl Bind<'_> {
    /// Binds JSON_TABLE(document, path COLUMNS (columns)) AS alias.
    pub fn json_table(&mut self, table: &ast::JsonTable) -> Result<Source> {
        let ast::JsonTable { document, path, columns, alias } = table;
        let alias = &alias.as_ref().ok_or_else(|| error::TF_MUST_HAVE_ALIAS.bare())?.value;
        let collation = self.settings().collation;
        let mut reading = Reading { table: alias, collation, columns: Vec::new(), nested: 0 };
        let root = reading.level(path, columns)?;
        let columns = reading.columns;
        let (document, outside) = self.deeper(|bind| {
            bind.open_scope();
            bind.scope().clause = "a table function argument";
            let document = bind.expr(document);
            bind.close_scope();
            document
        })?;
        if !matches!(document.ty().kind(), Kind::Null | Kind::Json) && !document.ty().kind().is_text() {
            return Err(error::INVALID_TYPE_FOR_JSON.with(&[&1, &"json_table"]));
        }
        let node = Arc::new(Node::TableFunction(Box::new(TableFunction {
            argument: document,
            source: Box::new(JsonTable { root, width: columns.len() }),
        })));
        self.beside(alias, columns, node, &outside)
    }
}

impl Reading<'_> {
    fn level(&mut self, path: &str, columns: &[ast::JsonColumn]) -> Result<Level> {
        let mut level = Level { path: Path::parse(path)?, columns: Vec::new(), nested: Vec::new() };
        for column in columns {
            match column {
                ast::JsonColumn::Ordinality(name) => {
                    let ty = Type::of_kind(Kind::Int).with_unsigned(true);
                    level.columns.push(self.column(&name.value, ty, Holds::Ordinality)?);
                }
                ast::JsonColumn::Value(value) => level.columns.push(self.value(value)?),
                ast::JsonColumn::Nested { path, columns } => {
                    self.nested += 1;
                    if self.nested > NESTED_MAX {
                        return Err(error::JT_MAX_NESTED_PATH.with(&[&NESTED_MAX, &self.table]));
                    }
                    level.nested.push(self.level(path, columns)?);
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

    fn value(&mut self, column: &ast::JsonValueColumn) -> Result<JsonColumn> {
        let ast::JsonValueColumn { name, ty, exists, path, on_empty, on_error } = column;
        let (name, path) = (&name.value, Path::parse(path)?);
        let ty = data_type(&ty.data, declared_collation(ty, self.collation)?, name)?.with_nullable(true);
        let holds = match (exists, on_empty, on_error) {
            (true, None, None) => Holds::Exists(path),
            (true, _, _) => return Err(SqlError::parse("'ON' at line 1")),
            (false, on_empty, on_error) => {
                let on_empty = otherwise(on_empty.as_ref(), name, &ty)?;
                Holds::Value { path, on_empty, on_error: otherwise(on_error.as_ref(), name, &ty)? }
            }
        };
        self.column(name, ty, holds)
    }
}

/// Parses ON EMPTY or ON ERROR. A default is JSON text and must be a valid value of the column.
fn otherwise(handling: Option<&OnMissing>, name: &str, ty: &Type) -> Result<Otherwise> {
    let wrong = || error::INVALID_DEFAULT.with(&[&name]);
    Ok(match handling {
        None | Some(OnMissing::Null) => Otherwise::Default(crate::value::Value::Null),
        Some(OnMissing::Error) => Otherwise::Error,
        Some(OnMissing::Default(Literal::String(text) | Literal::National(text))) => {
            let node = json::parse(text).map_err(|_| wrong())?;
            let stored = stored(&node, ty, name, &mut EvalContext::new());
            Otherwise::Default(stored.map_err(|_: Mismatch| wrong())?)
        }
        Some(OnMissing::Default(other)) => return Err(SqlError::parse(format!("'{other}' at line 1"))),
    })
}
