//! PostgreSQL's dialect over the core of SQL: its statements, names, types, functions, settings and catalogs. Start with README.md beside this crate.

#![forbid(unsafe_code)]

pub use datum::{batch, value};

pub mod bind;
pub mod error;
pub mod functions;
pub mod settings;
pub mod types;
pub mod wire;
