//! Integration tests of PostgreSQL's dialect.

mod catalog;
mod session;
mod world;
