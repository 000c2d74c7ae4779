//! The door's copies of the session variables that it obeys itself.
//!
//! Reading a variable takes a lookup and a string, so the copies are refreshed only when the version of the session's variables has changed.

use std::time::Duration;

use sql_mysql::Session;
use sql_mysql::charset::Results;
use sql_mysql::error::{self, Result};
use sql_mysql::types::{Charset, CharsetName as _, Collation, CollationName as _};

pub struct SessionSettings {
    /// The version of the session's variables when they were copied.
    pub version: u64,
    pub client: Charset,
    pub results: Results,
    pub packet_max: usize,
    pub idle: Duration,
}

impl SessionSettings {
    /// The values before the session's variables have been read.
    pub const DEFAULT: SessionSettings = SessionSettings {
        version: 0,
        client: Charset::Utf8,
        results: Results::UTF8,
        packet_max: 0,
        idle: Duration::ZERO,
    };

    /// Copies the variables of a session.
    pub fn of(sql: &Session) -> SessionSettings {
        let charset = |name: &str| sql.variable(name).ok();
        SessionSettings {
            version: sql.variables_version(),
            client: charset("character_set_client").and_then(|name| Charset::by_name(&name)).unwrap_or(Charset::Utf8),
            results: charset("character_set_results").map_or(Results::UTF8, |name| Results::named(&name)),
            packet_max: number(sql, "max_allowed_packet").unwrap_or(64 << 20) as usize,
            idle: Duration::from_secs(number(sql, "wait_timeout").unwrap_or(28_800)),
        }
    }
}

/// Returns the value of a numeric session variable.
pub fn number(sql: &Session, variable: &str) -> Option<u64> {
    sql.variable(variable).ok()?.parse().ok()
}

/// Returns the collation for a number in the handshake. The many collations of utf8mb4 that `query` lacks map to its default.
pub fn collation_of(id: u16) -> Result<Collation> {
    match Collation::by_id(id) {
        Some(collation) => Ok(collation),
        None if id == 0 || (224..=247).contains(&id) || id >= 255 => Ok(Collation::DEFAULT),
        None => Err(error::UNKNOWN_CHARACTER_SET.with(&[&format!("#{id}")])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_collation_is_an_error_and_another_of_utf8mb4_is_the_default() {
        assert_eq!(collation_of(45).unwrap(), Collation::Utf8GeneralCi);
        assert_eq!(collation_of(230).unwrap(), Collation::DEFAULT);
        assert_eq!(collation_of(18).unwrap_err().code, 1115);
    }
}
