//! Values: how they are represented, ordered and stored. Start with README.md beside this crate.
#![forbid(unsafe_code)]

pub mod base64;
pub mod batch;
pub mod collation;
pub mod decimal;
pub mod fault;
pub mod float;
pub mod json;
mod json_value;
pub mod key;
pub mod keyed;
pub mod row;
pub mod storage;
pub mod temporal;
pub mod value;

pub use batch::{Batch, Cell, Cells, Row};
pub use collation::{Charset, Collation};
pub use decimal::Decimal;
pub use fault::{Fault, Raised, Result};
pub use json::Json;
pub use storage::{Shape, Storage};
pub use temporal::{Date, DateTime, Span, Time, Timestamp, Zone};
pub use value::{Array, Bytes, Record, Text, Value};
