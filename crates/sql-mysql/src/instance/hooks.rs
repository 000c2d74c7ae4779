//! The hooks by which the server around a database takes part in SQL.

use crate::rights::Privileges;

/// See `Database::stand_in`.
pub struct Around {
    /// SET GLOBAL has set this variable, to a value within its bounds; 0 or 1 for a flag. Called in the session's thread, which holds nothing.
    pub set: Box<dyn Fn(&'static str, u64) + Send + Sync>,
    /// Names and values for SHOW STATUS.
    pub status: Box<dyn Fn() -> Vec<(&'static str, String)> + Send + Sync>,
    pub procedures: Vec<Procedure>,
}

/// From the argument to rows of texts.
pub type Run = dyn Fn(&str) -> Vec<Vec<String>> + Send + Sync;

/// What CALL can name. It has one argument, a text.
pub struct Procedure {
    pub schema: &'static str,
    pub name: &'static str,
    /// Names of its columns, and how many letters they hold.
    pub columns: &'static [(&'static str, u32)],
    /// One of these must be had to call it with that argument.
    pub needs: fn(&str) -> Privileges,
    /// Its rows.
    pub run: Box<Run>,
}
