//! The rows of a JSON_TABLE. They are made at once: a document is in memory anyhow, and what is made of it goes to a file where that is too much.

use datum::{Fault, Result};

use crate::batch::Row;
use crate::exec::host::host;
use crate::exec::spill::rows::Rows;
use crate::nodes::json_table::{Holds, JsonColumn, JsonTable, Level, Otherwise};
use crate::scalar::context::EvalContext;
use crate::scalar::json::table::stored;
use crate::scalar::json::{self, Json, Node};
use crate::types::Kind;
use crate::value::Value;

/// Of a document that is NULL there are none.
pub fn rows(table: &JsonTable, ctx: &mut EvalContext) -> Result<Rows> {
    let document = match table.document.eval(&[], ctx)? {
        Value::Null => return Ok(Rows::default()),
        Value::Json(json) => json,
        Value::Text(text) => {
            json::parse(&text).map(Json::from).map_err(|fault| json::argument_error(fault, 1, "json_table"))?
        }
        _ => return Err(Fault::JsonTableInput),
    };
    let mut rows = Rows::default();
    let empty = vec![Value::Null; table.width];
    expand(&table.root, document.node(), &empty, ctx, &mut rows)?;
    Ok(rows)
}

/// Adds the rows of a level; `around` has the values of the levels that it lies in.
fn expand(level: &Level, node: &Node, around: &Row, ctx: &mut EvalContext, rows: &mut Rows) -> Result<()> {
    for (number, found) in level.path.find(node).into_iter().enumerate() {
        host(ctx).look_up()?;
        let mut row = around.clone();
        for column in &level.columns {
            row[column.at] = value(column, found, number as u64 + 1, ctx)?;
        }
        let before = rows.len();
        for nested in &level.nested {
            expand(nested, found, &row, ctx, rows)?;
        }
        if rows.len() == before {
            rows.push(row, ctx)?;
        }
    }
    Ok(())
}

fn value(column: &JsonColumn, node: &Node, number: u64, ctx: &mut EvalContext) -> Result<Value> {
    let name = &column.name;
    match &column.holds {
        Holds::Ordinality => Ok(Value::UInt(number)),
        Holds::Exists(path) => {
            let is_there = Node::Int(i64::from(!path.find(node).is_empty()));
            stored(&is_there, &column.ty, name, ctx).map_err(|mismatch| mismatch.error(name, &column.ty).into())
        }
        Holds::Value { path, on_empty, on_error } => {
            let found = path.find(node);
            let stored = match found[..] {
                [] => return instead(on_empty, || Fault::JsonTableMissing { column: name.as_str().into() }),
                [one] => stored(one, &column.ty, name, ctx),
                // Several are an array.
                _ if column.ty.kind == Kind::Json => {
                    let all = Node::Array(found.into_iter().cloned().collect());
                    stored(&all, &column.ty, name, ctx)
                }
                _ => Err(json::table::Mismatch::Composite),
            };
            stored.or_else(|mismatch| instead(on_error, || mismatch.error(name, &column.ty).into()))
        }
    }
}

fn instead(otherwise: &Otherwise, error: impl FnOnce() -> Fault) -> Result<Value> {
    match otherwise {
        Otherwise::Default(value) => Ok(value.clone()),
        Otherwise::Error => Err(error()),
    }
}
