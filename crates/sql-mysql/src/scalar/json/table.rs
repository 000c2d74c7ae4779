//! Conversion of a document's value to a column of JSON_TABLE, with the column's ON EMPTY and ON ERROR.

use super::{Json, Node};
use crate::error;
use crate::scalar::modes::SqlMode;
use crate::scalar::state::StateOf as _;
use crate::scalar::store::store;
use crate::types::{Kind, MysqlType as _, Type};
use crate::value::Value;
use query::nodes::assignment::Place;
use query::nodes::context::EvalContext;

/// The reason why a value does not fit.
#[derive(Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// An array or an object, in a column of scalars.
    Composite,
    /// Too large, or too long.
    Range,
    /// Of another kind.
    Kind,
}

impl Mismatch {
    /// The error of a column that has ERROR ON ERROR.
    pub fn error(&self, column: &str, ty: &Type) -> datum::Fault {
        match self {
            Mismatch::Composite => error::WRONG_JSON_TABLE_VALUE.raise(&[&column]),
            Mismatch::Range => error::JT_VALUE_OUT_OF_RANGE.raise(&[&column]),
            Mismatch::Kind => error::INVALID_JSON_VALUE_FOR_CAST.raise(&[&cast_name(ty), &column, &1]),
        }
    }
}

/// Returns the type's name in MySQL's message.
fn cast_name(ty: &Type) -> &'static str {
    match ty.kind() {
        kind if kind.is_integer() || matches!(kind, Kind::Bit | Kind::Year) => "INTEGER",
        Kind::Float | Kind::Double => "DOUBLE",
        Kind::Decimal => "DECIMAL",
        Kind::Date | Kind::DateTime | Kind::Timestamp => "DATETIME",
        Kind::Time => "TIME",
        _ => "CHAR",
    }
}

/// The value in the column's form. JSON's null is NULL, but in a column of documents.
pub fn stored(node: &Node, ty: &Type, column: &str, ctx: &mut EvalContext) -> Result<Value, Mismatch> {
    if ty.kind() == Kind::Json {
        return Ok(Value::Json(Json::from(node.clone())));
    }
    let is_number = ty.kind().is_number() || matches!(ty.kind(), Kind::Bit | Kind::Year);
    let value = match node {
        Node::Null => return Ok(Value::Null),
        Node::Array(_) | Node::Object(_) => return Err(Mismatch::Composite),
        Node::Bool(_) if !is_number => Value::text(node.to_string()),
        node => node.to_value().ok_or(Mismatch::Composite)?,
    };
    // Values are never truncated here, whatever the SQL mode.
    let (mode, ignore) = (ctx.sql_mode(), ctx.ignore);
    ctx.set_sql_mode(mode.with(SqlMode::STRICT_ALL_TABLES));
    ctx.ignore = false;
    let stored = store(value, ty, Place { column, row: 1 }, ctx);
    ctx.set_sql_mode(mode);
    ctx.ignore = ignore;
    stored.map_err(|error| match error::code_of(&error) {
        code if code == error::WARN_DATA_OUT_OF_RANGE.code || code == error::DATA_TOO_LONG.code => Mismatch::Range,
        _ => Mismatch::Kind,
    })
}
