//! One value and one expression: everything between a tree of names and a row of values. README.md in this folder draws it.
//!
//! In reading order: `context` (what an expression may ask of its session), `bind` (from syntax to it), `compare` and `arithmetic`
//! (its operators), `convert`, `cast` and `store` (from type to type), `key` (bytes in the order of values), `functions` (one table), `aggregate`.

pub use datum::decimal;

pub mod json;
pub mod temporal;

pub mod aggregate;
pub mod arithmetic;
pub mod bind;
pub mod block_encryption;
pub mod cast;
pub mod charsets;
pub mod compare;
pub mod convert;
pub mod functions;
pub mod index_coercion;
pub mod keyword_argument;
pub mod like;
pub mod modes;
pub mod operation;
pub mod operators;
pub mod settings;
pub mod state;
pub mod store;
pub mod variable;

#[cfg(test)]
mod tests;
