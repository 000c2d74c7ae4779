//! The dialect's state in an evaluation context: settings that forms of values depend on, and what functions tell of the session.

use std::sync::LazyLock;

use query::nodes::context::EvalContext;

use crate::types::io::IoContext;

/// One lives as long as its session, which fills it and renews what statements change.
#[derive(Clone, Debug, Default)]
pub struct PgState {
    pub io: IoContext,
    pub session: SessionFacts,
}

/// Results of the functions that describe the session.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    pub database: String,
    /// `current_user` and `session_user`
    pub role: String,
    pub session_role: String,
    /// The schemas of `search_path` that exist, in order; without the implicit `pg_catalog`.
    pub search_path: Vec<String>,
    /// The schema of the session's temporary objects, once it has one.
    pub temporary_schema: Option<String>,
    pub backend_pid: u32,
    /// The client's address; `None` for one without.
    pub client_address: Option<String>,
    pub client_port: Option<u16>,
    pub server_address: Option<String>,
    pub server_port: Option<u16>,
    /// The text of `version()`.
    pub version: String,
    /// The start of the server, in microseconds since 2000-01-01 UTC.
    pub server_start: i64,
    /// The start of the statement, as `IoContext::now` is that of the transaction.
    pub statement_start: i64,
}

/// The state of a context in which no session has left one.
static UNSET: LazyLock<PgState> = LazyLock::new(PgState::default);

/// Reaches the dialect's state in an evaluation context.
pub trait StateOf {
    fn state(&self) -> &PgState;
    fn state_mut(&mut self) -> &mut PgState;
}

impl StateOf for EvalContext {
    fn state(&self) -> &PgState {
        self.slot().unwrap_or(&UNSET)
    }

    fn state_mut(&mut self) -> &mut PgState {
        self.slot_mut()
    }
}
