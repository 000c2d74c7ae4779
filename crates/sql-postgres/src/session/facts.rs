//! The part of a session that functions read and change while a statement runs: settings, identity, clocks, notices. It lies in a slot of `EvalContext`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datum::temporal::Timestamp;
use query::catalog::Snapshot;
use query::nodes::context::EvalContext;

use crate::batch::Row;
use crate::bind::CursorTables;
use crate::error::PgError;
use crate::instance::database::Database;
use crate::session::notify::SessionChannels;
use crate::session::roles::Identity;
use crate::settings::values::Values;
use crate::wire::Notice;

/// Seconds from 1970 to 2000.
const EPOCH_SECONDS: i64 = 946_684_800;

#[derive(Default)]
pub struct SessionState {
    pub settings: Values,
    pub db: Option<Arc<Database>>,
    /// The definitions that the session sees.
    pub definitions: Arc<Snapshot>,
    pub pid: u32,
    pub role: String,
    pub database: String,
    pub address: String,
    /// The role that logged in.
    pub login: String,
    pub identity: Arc<Identity>,
    /// The schemas of `search_path` that exist, by their PostgreSQL names.
    pub search_path: Vec<String>,
    /// A transaction records changes of settings.
    pub in_transaction: bool,
    /// Microseconds since 2000.
    pub transaction_start: i64,
    pub statement_start: i64,
    pub notices: Vec<Notice>,
    /// The last number that this session took from each sequence, by its id.
    pub sequences: HashMap<u64, i64>,
    /// The sequence that `lastval` answers for.
    pub last_sequence: Option<u64>,
    /// The named portals: cursors, in PostgreSQL's words.
    pub cursors: BTreeMap<String, CursorFacts>,
    pub channels: SessionChannels,
}

/// The part of a portal that other statements see.
#[derive(Clone, Debug, Default)]
pub struct CursorFacts {
    pub text: Arc<str>,
    pub is_holdable: bool,
    pub is_binary: bool,
    pub is_scrollable: bool,
    pub created: i64,
    /// It has outlived its transaction.
    pub is_held: bool,
    pub is_select: bool,
    pub tables: CursorTables,
    /// The current row, if it is at one and WHERE CURRENT OF may name it.
    pub row: Option<Row>,
}

impl SessionState {
    /// Returns the definitions that the session sees, without its temporary tables.
    pub fn shared_definitions(&self) -> Arc<Snapshot> {
        self.definitions.below.clone().unwrap_or_else(|| self.definitions.clone())
    }

    pub fn notice(&mut self, severity: &'static str, error: PgError) {
        self.notices.push(Notice { severity, error });
    }
}

/// Access to the state from the context of an evaluation.
pub trait FactsOf {
    fn facts(&mut self) -> &mut SessionState;
}

impl FactsOf for EvalContext {
    fn facts(&mut self) -> &mut SessionState {
        self.slot_mut::<SessionState>()
    }
}

/// Returns a timestamp of the core in microseconds since 2000-01-01 UTC.
pub fn micros_of(at: Timestamp) -> i64 {
    at.0 - EPOCH_SECONDS * 1_000_000
}

/// Returns a moment in microseconds since 2000-01-01 UTC.
pub fn micros_since_2000(at: SystemTime) -> i64 {
    let since_1970 = match at.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_micros() as i64,
        Err(before) => -(before.duration().as_micros() as i64),
    };
    since_1970 - EPOCH_SECONDS * 1_000_000
}
