//! The rows of a JSON_TABLE.

use datum::{Fault, Result};

use crate::batch::Row;
use crate::error;
use crate::scalar::json::shape::{Holds, JsonColumn, JsonTable, Level, Otherwise};
use crate::scalar::json::table::stored;
use crate::scalar::json::{self, Json, Node};
use crate::types::{Kind, MysqlType as _};
use crate::value::Value;
use query::nodes::context::EvalContext;
use query::nodes::table_function::{Give, RowSource};

impl RowSource for JsonTable {
    fn rows(&self, document: Value, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
        let document = match document {
            // NULL has no rows.
            Value::Null => return Ok(()),
            Value::Json(json) => json,
            Value::Text(text) => {
                json::parse(&text).map(Json::from).map_err(|fault| json::argument_error(fault, 1, "json_table"))?
            }
            _ => return Err(error::INVALID_TYPE_FOR_JSON.raise(&[&1, &"json_table"])),
        };
        expand(&self.root, document.node(), &vec![Value::Null; self.width], ctx, give).map(drop)
    }
}

/// Emits the rows of a level and returns their number; `around` has the values of the enclosing levels.
fn expand(level: &Level, node: &Node, around: &Row, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<u64> {
    let mut given = 0;
    for (number, found) in level.path.find(node).into_iter().enumerate() {
        let mut row = around.clone();
        for column in &level.columns {
            row[column.at] = value(column, found, number as u64 + 1, ctx)?;
        }
        let mut within = 0;
        for nested in &level.nested {
            within += expand(nested, found, &row, ctx, give)?;
        }
        if within == 0 {
            give(row, ctx)?;
            within = 1;
        }
        given += within;
    }
    Ok(given)
}

fn value(column: &JsonColumn, node: &Node, number: u64, ctx: &mut EvalContext) -> Result<Value> {
    let name = &column.name;
    match &column.holds {
        Holds::Ordinality => Ok(Value::UInt(number)),
        Holds::Exists(path) => {
            let is_there = Node::Int(i64::from(!path.find(node).is_empty()));
            stored(&is_there, &column.ty, name, ctx).map_err(|mismatch| mismatch.error(name, &column.ty))
        }
        Holds::Value { path, on_empty, on_error } => {
            let found = path.find(node);
            let stored = match found[..] {
                [] => return instead(on_empty, || Fault::JsonTableMissing { column: name.as_str().into() }),
                [one] => stored(one, &column.ty, name, ctx),
                // Several are an array.
                _ if column.ty.kind() == Kind::Json => {
                    let all = Node::Array(found.into_iter().cloned().collect());
                    stored(&all, &column.ty, name, ctx)
                }
                _ => Err(json::table::Mismatch::Composite),
            };
            stored.or_else(|mismatch| instead(on_error, || mismatch.error(name, &column.ty)))
        }
    }
}

fn instead(otherwise: &Otherwise, error: impl FnOnce() -> Fault) -> Result<Value> {
    match otherwise {
        Otherwise::Default(value) => Ok(value.clone()),
        Otherwise::Error => Err(error()),
    }
}
