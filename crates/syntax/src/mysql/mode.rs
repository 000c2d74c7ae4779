//! The SQL modes that the grammar depends on.

/// The parts of `sql_mode` that decide how a text is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// `"` quotes identifiers.
    pub ansi_quotes: bool,
    /// `||` concatenates.
    pub pipes_as_concat: bool,
    /// Backslashes in strings stand for themselves.
    pub no_backslash_escapes: bool,
    /// NOT binds as tightly as `!`.
    pub high_not_precedence: bool,
    /// Space may stand between a function's name and its parenthesis.
    pub ignore_space: bool,
    /// REAL is FLOAT.
    pub real_as_float: bool,
}
