//! What of the session's variables the door itself obeys.
//!
//! Asking for a variable takes a look-up and a string, so it is done after statements that may have set one, not for each.

use std::time::Duration;

use query::error::{self, Result};
use query::letters::Results;
use query::types::{Charset, Collation};

use super::Conversation;

/// What the door obeys of the session's variables. Read again after each statement that may have set one.
pub struct Obeyed {
    pub client: Charset,
    pub results: Results,
    pub packet_max: usize,
    pub idle: Duration,
}

impl Conversation {
    /// Reads what the door obeys, after a statement that may have set it.
    pub fn obey(&mut self) {
        let charset = |name: &str| self.sql.variable(name).ok();
        self.obeyed = Obeyed {
            client: charset("character_set_client")
                .and_then(|name| Charset::by_name(&name).ok())
                .unwrap_or(Charset::Utf8mb4),
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

/// May the statement change a variable that the door obeys? Rather once too often than never.
pub fn may_set(statement: &str) -> bool {
    let text = statement.trim_start();
    text.starts_with("/*") || text.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("set"))
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
    fn statements_that_set_are_seen_in_each_of_their_dresses() {
        for yes in ["SET NAMES utf8", "  set x = 1", "/*!40101 SET NAMES utf8 */", "\nSet\tautocommit=0"] {
            assert!(may_set(yes), "{yes}");
        }
        for no in ["SELECT 1", "", "s", "UPDATE t SET a = 1", "ä€"] {
            assert!(!may_set(no), "{no}");
        }
    }

    #[test]
    fn a_collation_that_nobody_knows_is_an_error_and_a_sister_of_the_default_is_not() {
        assert_eq!(collation_of(45).unwrap(), Collation::Utf8mb4GeneralCi);
        assert_eq!(collation_of(230).unwrap(), Collation::DEFAULT);
        assert_eq!(collation_of(28).unwrap_err().code, 1115);
    }
}
