//! PostgreSQL's dialect over the core of SQL: its statements, names, types, functions, settings and catalogs. Start with README.md beside this crate.

#![forbid(unsafe_code)]

use query::catalog::object_id::Maker;

pub use datum::{batch, value};

pub mod bind;
pub mod copy;
pub mod define;
mod deparse;
pub mod error;
mod explain;
pub mod functions;
pub mod instance;
pub(crate) mod rights;
pub mod session;
pub mod settings;
pub mod system;
pub mod types;
pub mod wire;

/// The number by which definitions in the catalog name this dialect.
pub const MAKER: Maker = Maker(1);
