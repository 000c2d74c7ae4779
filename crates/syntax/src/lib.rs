//! SQL text to trees and back. Knows no catalog, no types' behaviour and no other crate.
#![forbid(unsafe_code)]

pub mod error;
pub mod mysql;
pub mod postgres;
pub mod print;
pub mod tree;

pub use error::{Error, Problem};
pub use mysql::{Mode, Parsed, parse, parse_expression, parse_unless};
