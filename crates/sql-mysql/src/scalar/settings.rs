//! The settings of a session that decide what an expression means.

use crate::scalar::modes::SqlMode;
use crate::types::{Collation, CollationName as _};

/// What binding depends on: part of a cached plan's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    pub sql_mode: SqlMode,
    /// `collation_connection`: of literals.
    pub collation: Collation,
    pub div_precision_increment: u8,
    /// `sql_select_limit`: of a SELECT that has no LIMIT of its own.
    pub select_limit: u64,
    /// Changes must find their rows by a key, or say LIMIT.
    pub safe_updates: bool,
    /// `max_join_size`, which counts unless `sql_big_selects` is on.
    pub max_join_size: u64,
    pub big_selects: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sql_mode: SqlMode::DEFAULT,
            collation: Collation::DEFAULT,
            div_precision_increment: 4,
            select_limit: u64::MAX,
            safe_updates: false,
            max_join_size: u64::MAX,
            big_selects: true,
        }
    }
}
