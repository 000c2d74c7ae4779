//! Hooks by which the server takes part in SQL.

use crate::rights::Privileges;

/// See `Database::stand_in`.
pub struct ServerHooks {
    /// Called after SET GLOBAL has set this variable, to a value within its bounds; 0 or 1 for a flag. Runs in the
    /// session's thread, which holds no lock.
    pub set: Box<dyn Fn(&'static str, u64) + Send + Sync>,
    /// Returns names and values for SHOW STATUS.
    pub status: Box<dyn Fn() -> Vec<(&'static str, String)> + Send + Sync>,
    pub procedures: Vec<Procedure>,
}

/// Returns rows of texts for the argument.
pub type Run = dyn Fn(&str) -> Vec<Vec<String>> + Send + Sync;

/// A procedure for CALL, with one text argument.
pub struct Procedure {
    pub schema: &'static str,
    pub name: &'static str,
    /// The names of its columns, and the lengths of their values.
    pub columns: &'static [(&'static str, u32)],
    /// Returns the privileges of which the caller needs one, for this argument.
    pub needs: fn(&str) -> Privileges,
    /// Computes its rows.
    pub run: Box<Run>,
}
