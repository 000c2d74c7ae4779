//! Session tracking: state changes that are sent to the client with OK packets.
//!
//! Tracking reports actions, not differences: a variable set to its old value is reported, and beginning a transaction
//! reports its characteristics again. So nothing is compared. Each action records itself here, as in MySQL's trackers,
//! and the next suitable reply carries the records.
//!
//! Keeps MY-12.

mod transaction;
mod unsafe_statements;

use engine::rows::Isolation;
use transaction::{Info, Transactions};

use crate::error::{self, Result};
use crate::instance::variables::{self, find};
use crate::parse::statement::{Name, Statement};
use crate::scalar::state::StateOf as _;
use crate::session::Session;
use crate::value::Value;

pub(super) use transaction::{LOCKED, READ, READ_UNSAFE, RESULT, UNSAFE, WRITE};

/// A session-state entry of an OK packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Variable {
        name: String,
        value: String,
    },
    Schema(String),
    /// Session state has changed that another session would need.
    State,
    /// The transaction state: eight characters for its kind and its effects.
    Transaction([u8; 8]),
    /// The statements that begin an equal transaction.
    Characteristics(String),
}

/// The variables to track.
#[derive(Debug, Default)]
enum Wanted {
    #[default]
    None,
    All,
    /// Tracked variables: (spelling in the list, name).
    These(Vec<(String, &'static str)>),
}

#[derive(Debug, Default)]
pub(super) struct Track {
    schema: bool,
    state: bool,
    wanted: Wanted,
    /// Variables that were set, by their spelling in the list.
    set: Vec<(String, &'static str)>,
    schema_set: bool,
    state_changed: bool,
    transactions: Transactions,
}

/// Session state that SET assigns like variables.
const FACTS: [&str; 3] = ["identity", "last_insert_id", "pseudo_thread_id"];

impl Track {
    fn variable(&mut self, name: &'static str) {
        let told = match &self.wanted {
            Wanted::None => None,
            Wanted::All => Some(name.to_owned()),
            Wanted::These(list) => list.iter().find(|(_, known)| *known == name).map(|(told, _)| told.clone()),
        };
        if let Some(told) = told
            && !self.set.iter().any(|(_, known)| *known == name)
        {
            self.set.push((told, name));
        }
    }

    fn is_quiet(&self) -> bool {
        self.set.is_empty() && !self.schema_set && !self.state_changed && !self.transactions.is_changed
    }
}

/// Parses a list of variables. Returns also the unknown names; a duplicate is an error.
fn wanted_of(list: &str) -> Result<(Wanted, Vec<&str>)> {
    if list == "*" {
        return Ok((Wanted::All, Vec::new()));
    }
    let (mut these, mut unknown) = (Vec::<(String, &'static str)>::new(), Vec::new());
    for word in list.split(',').filter(|word| !word.is_empty()) {
        let name = word.trim().to_ascii_lowercase();
        let fact = FACTS.into_iter().find(|fact| *fact == name);
        let Some(known) = fact.or_else(|| find(&name).ok().map(|variable| variable.name)) else {
            unknown.push(word.trim_end());
            continue;
        };
        if these.iter().any(|(_, other)| *other == known) {
            return Err(error::DUP_LIST_ENTRY.with(&[&word.trim()]));
        }
        these.push((word.trim().to_owned(), known));
    }
    Ok((if these.is_empty() { Wanted::None } else { Wanted::These(these) }, unknown))
}

impl Session {
    /// Takes the changes to send with the next reply. Each is sent once.
    pub fn take_changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.track.is_quiet() {
            return changes;
        }
        let mut set = std::mem::take(&mut self.track.set);
        set.sort();
        for (told, name) in set {
            let Ok((value, _)) = self.system_variable(None, name) else { continue };
            let value = find(name).map_or_else(|_| variables::text_of(&value), |known| variables::shown(known, &value));
            changes.push(Change::Variable { name: told, value });
        }
        if std::mem::take(&mut self.track.schema_set) {
            changes.push(Change::Schema(self.database.clone().unwrap_or_default()));
        }
        if std::mem::take(&mut self.track.state_changed) {
            changes.push(Change::State);
        }
        self.track.transactions.take(&mut changes);
        changes
    }

    /// Resets tracking at session start. The initial state is not reported.
    pub(super) fn track_anew(&mut self) -> Result<()> {
        self.track = Track::default();
        for name in TRACKERS {
            let value = self.values.get(find(name)?);
            self.obey_tracker(name, &value)?;
        }
        self.track.transactions.is_changed = false;
        Ok(())
    }

    /// Validates a tracker variable's value and returns it as stored.
    pub(super) fn verify_tracker(&mut self, name: &'static str, value: &Value) -> Result<Value> {
        let wrong = || error::WRONG_VALUE_FOR_VAR.with(&[&name, &variables::spelled(value)]);
        match (name, value) {
            ("session_track_system_variables", Value::Text(list)) => {
                for unknown in wanted_of(list)?.1 {
                    let message = format!("{unknown} is not a valid system variable and will be ignored.");
                    self.ctx.warn(error::SqlError { message, ..error::WRONG_VALUE_FOR_VAR.bare() });
                }
                Ok(value.clone())
            }
            ("session_track_transaction_info", _) => {
                Info::named(value).map(|info| Value::text(info.name())).ok_or_else(wrong)
            }
            ("session_track_gtids", _) => {
                if self.in_transaction() {
                    return Err(error::VARIABLE_NOT_SETTABLE_IN_TRANSACTION.with(&[&name]));
                }
                match gtids_named(value).ok_or_else(wrong)? {
                    "OFF" => Ok(Value::text("OFF")),
                    other => Err(error::SqlError::unsupported(format!("{name} = {other}"))),
                }
            }
            _ => Ok(value.clone()),
        }
    }

    /// Applies a tracker variable.
    pub(super) fn obey_tracker(&mut self, name: &str, value: &Value) -> Result<()> {
        match name {
            "session_track_schema" => self.track.schema = *value == Value::TRUE,
            "session_track_state_change" => self.track.state = *value == Value::TRUE,
            "session_track_system_variables" => self.track.wanted = wanted_of(&variables::text_of(value))?.0,
            "session_track_transaction_info" => {
                let next = (self.core.transaction.next_isolation, self.core.transaction.next_read_only);
                self.track.transactions.report(Info::named(value).unwrap_or_default(), next);
            }
            _ => {}
        }
        Ok(())
    }

    /// Records a set session variable.
    pub(super) fn track_variable(&mut self, name: &'static str) {
        self.track.variable(name);
        if name == "session_track_state_change" {
            self.track.state_changed = false;
        } else {
            self.track_state();
        }
    }

    /// Records another change of session state: a user variable, a prepared statement, a temporary table.
    pub(super) fn track_state(&mut self) {
        self.track.state_changed |= self.track.state;
    }

    /// Returns whether the statement creates, alters or drops a temporary table. As in MySQL, CREATE ... SELECT does
    /// not count.
    pub(super) fn is_of_temporary(&self, statement: &Statement) -> bool {
        let is_own =
            |name: &Name| self.full_name(name).is_ok_and(|(schema, name)| self.catalog.is_temporary(&schema, &name));
        match statement {
            Statement::CreateTable(create) => create.temporary && create.query.is_none(),
            Statement::DropTable { temporary, .. } => *temporary,
            Statement::AlterTable { table, .. } | Statement::DropIndex { table, .. } => is_own(table),
            Statement::CreateIndex(create) => is_own(&create.table),
            _ => false,
        }
    }

    pub(super) fn track_schema(&mut self) {
        self.track_dropped_schema();
        self.track_state();
    }

    /// Records that the current schema was dropped.
    pub(super) fn track_dropped_schema(&mut self) {
        self.track.schema_set |= self.track.schema;
    }

    /// Records a transaction begun by a statement.
    pub(super) fn track_begin(&mut self, snapshot: bool) {
        self.track.transactions.begin(snapshot);
    }

    pub(super) fn track_end(&mut self) {
        self.track.transactions.end();
    }

    /// Records the characteristics of the next transaction.
    pub(super) fn track_next(&mut self) {
        self.track.transactions.next(self.core.transaction.next_isolation, self.core.transaction.next_read_only);
    }

    /// Records an effect for the transaction state.
    #[inline]
    pub(super) fn track_deed(&mut self, deed: u16) {
        if self.track.transactions.is_on() && deed != 0 {
            self.track.transactions.add(deed, self.core.transaction.autocommit);
        }
    }

    pub(super) fn track_unlocked(&mut self) {
        self.track.transactions.clear(LOCKED);
    }

    /// Checks whether the text may have other results on another server.
    pub(super) fn look_for_unsafe(&mut self, text: &str) {
        if self.track.transactions.is_on() && !self.track.transactions.unsafe_text {
            self.track.transactions.unsafe_text = unsafe_statements::is_unsafe(text, self.ctx.sql_mode());
        }
    }

    /// Records a finished statement in the transaction that is open after it.
    pub(super) fn track_statement(&mut self, answers_rows: bool) {
        if !self.track.transactions.is_on() {
            return;
        }
        let unsafe_text = std::mem::take(&mut self.track.transactions.unsafe_text);
        self.track_deed(if answers_rows { RESULT } else { 0 } | if unsafe_text { UNSAFE } else { 0 });
    }
}

/// The tracker variables, in the order in which they are applied.
pub(super) const TRACKERS: [&str; 5] = [
    "session_track_schema",
    "session_track_state_change",
    "session_track_system_variables",
    "session_track_transaction_info",
    "session_track_gtids",
];

fn gtids_named(value: &Value) -> Option<&'static str> {
    const NAMES: [&str; 3] = ["OFF", "OWN_GTID", "ALL_GTIDS"];
    nth_or_named(&NAMES, value).map(|at| NAMES[at])
}

/// Parses a value of an enumeration: a name or a number.
fn nth_or_named(names: &[&str], value: &Value) -> Option<usize> {
    match value {
        Value::Text(text) => names.iter().position(|name| name.eq_ignore_ascii_case(text)),
        Value::Int(number) => usize::try_from(*number).ok(),
        Value::UInt(number) => usize::try_from(*number).ok(),
        _ => None,
    }
    .filter(|at| *at < names.len())
}

/// Returns the level as SET TRANSACTION spells it.
pub fn level_words(level: Isolation) -> &'static str {
    match level {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<String> {
        match wanted_of(list).unwrap().0 {
            Wanted::These(these) => these.into_iter().map(|(told, _)| told).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_list_of_variables_may_hold_space_and_unknown_ones_but_none_twice() {
        assert_eq!(names("autocommit,\n  SQL_MODE ,,"), ["autocommit", "SQL_MODE"]);
        assert_eq!(wanted_of(" a ,autocommit,*").unwrap().1, [" a", "*"]);
        assert_eq!(wanted_of("sql_mode,SQL_MODE").unwrap_err().code, 3026);
        assert!(matches!(wanted_of("*").unwrap().0, Wanted::All));
        assert!(matches!(wanted_of("").unwrap().0, Wanted::None));
    }
}
