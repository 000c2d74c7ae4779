//! The dialect-free core of SQL: the catalog, the tree of a bound statement, planner and executor. Start with README.md beside this crate.

#![forbid(unsafe_code)]

pub use datum::{batch, value};

pub mod block;
pub mod catalog;
pub mod engine_fault;
pub mod exec;
pub mod key;
pub mod key_form;
pub mod nodes;
pub mod plan;
pub mod session;
pub mod term;
pub mod types;
