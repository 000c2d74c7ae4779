//! PostgreSQL's wire protocol, version 3. Start with README.md beside this crate.

#![forbid(unsafe_code)]
