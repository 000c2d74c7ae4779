//! The settings of a session that the meaning of expressions depends on.

use crate::scalar::modes::SqlMode;
use crate::types::{Collation, CollationName as _};

/// Settings that binding reads; part of the plan-cache context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    pub sql_mode: SqlMode,
    /// `collation_connection`, the collation of literals.
    pub collation: Collation,
    pub div_precision_increment: u8,
    /// `sql_select_limit`, for a SELECT without LIMIT.
    pub select_limit: u64,
    /// `sql_safe_updates`: changes must find rows by a key, or have a LIMIT.
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
