//! Values as JSON scalars, and JSON scalars as values.

use crate::json::{Json, Node};
use crate::temporal::Zone;
use crate::value::Value;

impl Json {
    /// Returns a document as it is, and any other value as a scalar: a text is a string, not a document to parse.
    pub fn from_value(value: &Value) -> Json {
        match value {
            Value::Json(json) => json.clone(),
            other => Json::from(Node::scalar(other)),
        }
    }
}

impl Node {
    /// Returns a value as a node. An instant becomes its reading in UTC; a number that is not finite, and an interval, become their texts.
    pub fn scalar(value: &Value) -> Node {
        match value {
            Value::Null => Node::Null,
            Value::Int(number) => Node::Int(*number),
            Value::UInt(number) => Node::UInt(*number),
            Value::Decimal(decimal) if !decimal.is_finite() => Node::String(decimal.to_string().as_str().into()),
            Value::Decimal(decimal) => Node::Decimal(decimal.clone()),
            Value::Float(number) => Node::Double(f64::from(*number)),
            Value::Double(number) => Node::Double(*number),
            Value::Text(text) => Node::String(text.as_str().into()),
            Value::Bytes(bytes) => Node::Bytes(bytes.to_vec().into()),
            Value::Date(date) => Node::Date(*date),
            Value::Time(time) => Node::Time(*time),
            Value::DateTime(at) => Node::DateTime(*at),
            Value::Timestamp(at) => Node::DateTime(Zone::utc().local(*at)),
            Value::Interval(span) => Node::String(span.to_string().as_str().into()),
            Value::Json(json) => (*json.0).clone(),
            Value::Array(_) | Value::Record(_) => Node::String(value.to_string().as_str().into()),
        }
    }

    /// Returns the value of a scalar; `None` for arrays and objects.
    pub fn to_value(&self) -> Option<Value> {
        Some(match self {
            Node::Null => Value::Null,
            Node::Bool(truth) => Value::from(*truth),
            Node::Int(number) => Value::Int(*number),
            Node::UInt(number) => Value::UInt(*number),
            Node::Double(number) => Value::Double(*number),
            Node::Decimal(decimal) => Value::Decimal(decimal.clone()),
            Node::String(text) => Value::text(text),
            Node::Date(date) => Value::Date(*date),
            Node::Time(time) => Value::Time(*time),
            Node::DateTime(at) => Value::DateTime(*at),
            Node::Bytes(bytes) => Value::bytes(bytes),
            Node::Array(_) | Node::Object(_) => return None,
        })
    }
}
