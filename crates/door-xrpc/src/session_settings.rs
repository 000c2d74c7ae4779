//! The door's copies of the session variables that it obeys itself.

use sql_mysql::Session;
use sql_mysql::charset::Results;
use sql_mysql::types::{Charset, CharsetName as _};

#[derive(Clone, Copy)]
pub struct SessionSettings {
    /// The version of the session's variables when they were copied.
    pub version: u64,
    pub client: Charset,
    pub results: Results,
}

impl SessionSettings {
    pub const DEFAULT: SessionSettings = SessionSettings { version: 0, client: Charset::Utf8, results: Results::UTF8 };

    /// Copies the variables of a session.
    pub fn of(sql: &Session) -> SessionSettings {
        let charset = |name: &str| sql.variable(name).ok();
        SessionSettings {
            version: sql.variables_version(),
            client: charset("character_set_client").and_then(|name| Charset::by_name(&name)).unwrap_or(Charset::Utf8),
            results: charset("character_set_results").map_or(Results::UTF8, |name| Results::named(&name)),
        }
    }
}
