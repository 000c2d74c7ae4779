//! The session's types, under the names by which this crate uses them.

pub use sql_postgres::instance::database::Database;
pub use sql_postgres::session::{CopyOut, Outcome, ResultSet, Script, Session};
