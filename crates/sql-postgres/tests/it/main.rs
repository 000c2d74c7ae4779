//! Integration tests of PostgreSQL's dialect.

mod catalog;
mod prepared;
mod session;
mod world;
