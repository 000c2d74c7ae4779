//! JSON as MySQL has it: paths, JSON_TABLE, names of types. The tree of a document, its text, order and binary form are in `datum::json`.

pub mod path;
mod rows;
pub mod shape;
pub mod table;

pub use datum::json::*;

use datum::Fault;

use crate::error;
use crate::scalar::convert;
use crate::types::Type;
use crate::value::Value;

/// Returns the error of text that is not a document in an argument of a function, counted from 1: 3141. Where the text may be right, the fault's own.
pub fn argument_error(fault: Fault, argument: usize, function: &str) -> datum::Fault {
    match fault {
        Fault::JsonSyntax { message, position } => {
            error::INVALID_JSON_TEXT_IN_PARAM.raise(&[&argument, &function, &message, &position])
        }
        fault => fault,
    }
}

/// Returns the error of text that is not a document in a value for a column: 3140. Where the text may be right, the fault's own.
pub fn column_error(fault: Fault, column: &str) -> datum::Fault {
    match fault {
        Fault::JsonSyntax { message, position } => error::INVALID_JSON_TEXT.raise(&[&message, &position, &column]),
        fault => fault,
    }
}

/// Returns the name that JSON_TYPE() gives a value.
pub fn type_name(node: &Node) -> &'static str {
    match node {
        Node::Null => "NULL",
        Node::Bool(_) => "BOOLEAN",
        Node::Int(_) => "INTEGER",
        Node::UInt(_) => "UNSIGNED INTEGER",
        Node::Double(_) => "DOUBLE",
        Node::Decimal(_) => "DECIMAL",
        Node::String(_) => "STRING",
        Node::Array(_) => "ARRAY",
        Node::Object(_) => "OBJECT",
        Node::Date(_) => "DATE",
        Node::Time(_) => "TIME",
        Node::DateTime(_) => "DATETIME",
        Node::Bytes(_) => "BLOB",
    }
}

/// Returns the name of an object's member where the name is an SQL value.
pub fn member_name(value: &Value, ty: &Type) -> Box<str> {
    convert::to_text(value, ty).as_str().into()
}

#[cfg(test)]
mod tests;
