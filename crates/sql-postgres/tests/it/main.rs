//! Integration tests of PostgreSQL's dialect.

mod catalog;
