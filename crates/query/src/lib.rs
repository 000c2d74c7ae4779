//! SQL: types, text to plan, plan to rows. Start with README.md beside this crate.
#![forbid(unsafe_code)]

pub mod batch;
pub mod error;
pub mod types;
pub mod value;

pub mod scalar;

mod bind;
mod catalog;
pub mod check;
mod exec;
mod key;
mod parse;
mod plan;
pub mod rights;
mod row;
mod session;
mod system;

pub use session::{Database, Handle, Kill, Login, Outcome, Prepared, PreparedHandle, ResultSet, Row, Session, Status};
