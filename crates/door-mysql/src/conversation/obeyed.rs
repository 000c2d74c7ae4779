//! What of the session's variables the door itself obeys.
//!
//! Reading a variable takes a look-up and a string, so the copies are read again only when the version of the session's variables has moved.

use std::time::Duration;

use query::error::{self, Result};
use query::letters::Results;
use query::types::{Charset, CharsetName as _, Collation, CollationName as _};

use super::Conversation;

/// The door's copies of the session's variables.
pub struct Obeyed {
    /// Of the variables when they were copied.
    pub version: u64,
    pub client: Charset,
    pub results: Results,
    pub packet_max: usize,
    pub idle: Duration,
}

impl Conversation {
    /// Copies the variables again if the statement that has just run has set any: itself, or through PREPARE and EXECUTE.
    pub fn obey_changes(&mut self) {
        if self.sql.variables_version() != self.obeyed.version {
            self.obey();
        }
    }

    /// Copies the variables that the door obeys.
    pub fn obey(&mut self) {
        let charset = |name: &str| self.sql.variable(name).ok();
        self.obeyed = Obeyed {
            version: self.sql.variables_version(),
            client: charset("character_set_client")
                .and_then(|name| Charset::by_name(&name).ok())
                .unwrap_or(Charset::Utf8),
            results: charset("character_set_results").map_or(Results::UTF8, |name| Results::named(&name)),
            packet_max: self.number("max_allowed_packet").unwrap_or(64 << 20) as usize,
            idle: Duration::from_secs(self.number("wait_timeout").unwrap_or(28_800)),
        };
        self.shared.clients.allow(&self.client, self.obeyed.idle);
    }

    pub(super) fn number(&self, variable: &str) -> Option<u64> {
        self.sql.variable(variable).ok()?.parse().ok()
    }
}

/// The collation of a number in the handshake. Of utf8mb4's many, those that `query` does not have are its default.
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
    fn a_collation_that_nobody_knows_is_an_error_and_a_sister_of_the_default_is_not() {
        assert_eq!(collation_of(45).unwrap(), Collation::Utf8GeneralCi);
        assert_eq!(collation_of(230).unwrap(), Collation::DEFAULT);
        assert_eq!(collation_of(28).unwrap_err().code, 1115);
    }
}
