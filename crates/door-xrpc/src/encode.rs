//! Values of `query` as rows and chunks have them, and what a client is told of their columns.
//!
//! A value must be of its column's kind: the client decodes by the column's type alone, so a value that is not is an error of the statement, not a guess (P6).

pub mod chunk;
pub mod column;
pub mod row;
