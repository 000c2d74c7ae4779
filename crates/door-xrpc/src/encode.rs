//! Encodes values of `query` as rows and chunks, and the metadata of their columns.
//!
//! The client decodes a value by its column's type alone, so a value of another kind is an error of the statement, not a guess (DX-6).

pub mod chunk;
pub mod column;
pub mod column_frames;
pub mod row;
