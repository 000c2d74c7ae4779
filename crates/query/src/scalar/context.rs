//! What an expression may ask of its session while it is evaluated, and where its warnings go.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use datum::Fault;
use stdx::memory;

use crate::batch::Row;
use crate::error::{self, Result};
use crate::scalar::block_encryption;
use crate::scalar::modes::SqlMode;
use crate::scalar::named::NamedLocks;
use crate::scalar::temporal::{Locale, Timestamp, Zone};
use crate::types::Type;
use crate::value::{Text, Value};

/// Gives the next timestamp of a sequence and the log position at which it may be shown.
pub type TakeTimestamp = dyn Fn() -> Result<(u64, u64)> + Send + Sync;

/// The session's side of `Expr::eval`. One lives as long as its session; the caller renews what a statement changes.
pub struct EvalContext {
    /// When the statement began: what NOW() answers.
    pub now: Timestamp,
    pub zone: Zone,
    pub sql_mode: SqlMode,
    /// What is wrong is a warning where it would be an error (INSERT IGNORE and its like).
    pub ignore: bool,
    /// The statement changes rows: strict modes turn bad conversions into errors.
    pub changes_rows: bool,
    /// Rows that were found count as affected, changed or not: what CLIENT_FOUND_ROWS asks for.
    pub counts_found: bool,
    pub warnings: Warnings,
    pub session: SessionFacts,
    /// Values of `Expr::Parameter`.
    pub parameters: Vec<Value>,
    /// The rows around the subquery that runs, outermost first: values of `Expr::Outer`.
    pub outer: Vec<Row>,
    /// Values of `Expr::Variable`.
    pub variables: UserVariables,
    /// They came apart from the text: a prepared statement is run.
    pub values_apart: bool,
    pub max_allowed_packet: usize,
    pub group_concat_max_len: usize,
    /// `lc_time_names`
    pub time_names: &'static Locale,
    /// `auto_increment_increment` and `auto_increment_offset`: the numbers that AUTO_INCREMENT takes.
    pub auto_step: (u64, u64),
    /// How AES_ENCRYPT and AES_DECRYPT work.
    pub block_encryption: block_encryption::Mode,
    pub random: Random,
    /// Sequences of RAND(seed): by the call's address, valid for the statement that began them.
    pub seeded: Vec<(usize, Timestamp, Random)>,
    /// Asked by what takes long, which ends with error 1317 if it says so.
    pub killed: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// Asked by what waits: the wait ends if it says so.
    pub interrupted: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    pub sleeps: Sleeps,
    /// SLEEP() sleeps no longer than this; and the time has come for it to wake.
    pub deadline: Option<Instant>,
    pub has_woken: bool,
    /// Those that all sessions share.
    pub locks: Arc<NamedLocks>,
    /// Takes a timestamp (NEXTVAL): the number, and the log position at which it may be shown. None: there are none.
    pub take_timestamp: Option<Arc<TakeTimestamp>>,
    /// The executor's state: `exec::host` alone knows its type, for the executor lies above expressions.
    pub host: Option<Box<dyn Any + Send>>,
}

/// The SLEEPs of a statement that is suspended instead of keeping a thread, and restarted when the time has passed. Evaluation is deterministic in such a
/// statement, so its nth SLEEP is the same in every run.
#[derive(Debug, Default)]
pub struct Sleeps {
    pub suspends: bool,
    /// Results of those that are over.
    over: Vec<i64>,
    /// How many were evaluated in this run.
    seen: usize,
    /// The end of the one under way; None inside: there is no end.
    until: Option<Option<Instant>>,
}

impl Sleeps {
    /// The statement is run, again perhaps.
    pub fn begin_run(&mut self, suspends: bool) {
        (self.suspends, self.seen) = (suspends, 0);
    }

    /// The statement has ended.
    pub fn clear(&mut self) {
        *self = Sleeps::default();
    }

    /// The end of the SLEEP for which the statement is suspended.
    pub fn until(&self) -> Option<Option<Instant>> {
        self.until
    }

    /// The result of the next SLEEP, if it is over.
    pub fn next_result(&mut self) -> Option<i64> {
        self.seen += 1;
        self.over.get(self.seen - 1).copied()
    }

    /// The end of the SLEEP under way, which begins now if it has not begun in an earlier run.
    pub fn end(&mut self, end: Option<Instant>) -> Option<Instant> {
        *self.until.get_or_insert(end)
    }

    pub fn finish(&mut self, result: i64) {
        self.until = None;
        self.over.push(result);
    }
}

/// What the information functions answer.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    pub connection_id: u64,
    /// `name@host` as the client came, and the account it was given.
    pub user: Text,
    pub current_user: Text,
    /// Its active roles, or NONE.
    pub current_role: Text,
    pub database: Option<Text>,
    pub version: Text,
    pub last_insert_id: u64,
    /// What LAST_INSERT_ID(expr) was given: the statement's own from then on.
    pub set_last_insert_id: Option<u64>,
    /// What the client has named beside the statement, as text.
    pub attributes: Vec<(String, Option<Text>)>,
    /// What a function has shown must be durable up to here: timestamps that were taken.
    pub gate: u64,
    pub row_count: i64,
    pub found_rows: u64,
}

impl EvalContext {
    pub fn new() -> EvalContext {
        EvalContext {
            now: Timestamp::now(),
            zone: Zone::utc(),
            sql_mode: SqlMode::DEFAULT,
            ignore: false,
            changes_rows: false,
            counts_found: false,
            warnings: Warnings::default(),
            session: SessionFacts::default(),
            parameters: Vec::new(),
            outer: Vec::new(),
            variables: UserVariables::default(),
            values_apart: false,
            max_allowed_packet: 64 << 20,
            group_concat_max_len: 1024,
            time_names: &crate::scalar::temporal::ENGLISH,
            auto_step: (1, 1),
            block_encryption: block_encryption::Mode::default(),
            random: Random::from_seed(0x9E37_79B9),
            seeded: Vec::new(),
            killed: None,
            interrupted: None,
            sleeps: Sleeps::default(),
            deadline: None,
            has_woken: false,
            locks: Arc::default(),
            take_timestamp: None,
            host: None,
        }
    }

    pub fn check_killed(&self) -> Result<()> {
        if !stdx::wait::check_for_interrupts() {
            return Err(error::TOO_MANY_COMPUTATIONS.bare());
        }
        match &self.killed {
            Some(is_killed) if is_killed() => Err(error::QUERY_INTERRUPTED.bare()),
            _ => Ok(()),
        }
    }

    /// The same for a wait, which ends for other reasons too.
    pub fn check_wait(&self) -> Result<()> {
        match &self.interrupted {
            Some(is_interrupted) if is_interrupted() => Err(error::QUERY_INTERRUPTED.bare()),
            _ => self.check_killed(),
        }
    }

    /// Bad data in a statement that changes rows under a strict mode is an error.
    pub fn is_strict(&self) -> bool {
        self.changes_rows && !self.ignore && self.sql_mode.is_strict()
    }

    pub fn warn(&mut self, error: impl Into<Fault>) {
        self.warnings.push(Level::Warning, error);
    }

    /// Returns the error where the statement is strict; elsewhere it becomes a warning.
    pub fn complain<E: Into<Fault>>(&mut self, error: E) -> std::result::Result<(), E> {
        if self.is_strict() {
            return Err(error);
        }
        self.warn(error);
        Ok(())
    }
}

impl Default for EvalContext {
    fn default() -> EvalContext {
        EvalContext::new()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Note,
    Warning,
    Error,
}

/// What SHOW WARNINGS tells. The first `max_count` are kept, all are counted.
#[derive(Debug)]
pub struct Warnings {
    kept: Vec<(Level, Fault)>,
    count: u64,
    pub max_count: usize,
    /// False drops notes, as `sql_notes` asks for.
    pub keeps_notes: bool,
}

impl Default for Warnings {
    fn default() -> Warnings {
        Warnings { kept: Vec::new(), count: 0, max_count: 1024, keeps_notes: true }
    }
}

impl Warnings {
    pub fn push(&mut self, level: Level, error: impl Into<Fault>) {
        if level == Level::Note && !self.keeps_notes {
            return;
        }
        self.count += 1;
        if self.kept.len() < self.max_count {
            self.kept.push((level, error.into()));
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Level, Fault)> {
        self.kept.iter()
    }

    pub fn clear(&mut self) {
        self.kept.clear();
        self.count = 0;
    }
}

pub fn level_name(level: Level) -> &'static str {
    level.name()
}

/// RAND(): MySQL's own generator, so that a seed gives MySQL's numbers.
#[derive(Clone, Debug)]
pub struct Random {
    first: u64,
    second: u64,
}

impl Random {
    const MAX: u64 = 0x3FFF_FFFF;

    pub fn new(first: u64, second: u64) -> Random {
        Random { first: first % Self::MAX, second: second % Self::MAX }
    }

    /// As RAND(seed) begins.
    pub fn from_seed(seed: u32) -> Random {
        let first = seed.wrapping_mul(0x10001).wrapping_add(55_555_555);
        let second = seed.wrapping_mul(0x1000_0001);
        Random::new(u64::from(first), u64::from(second))
    }

    /// From 0 up to, not including, 1.
    pub fn draw(&mut self) -> f64 {
        self.first = (self.first * 3 + self.second) % Self::MAX;
        self.second = (self.first + self.second + 33) % Self::MAX;
        self.first as f64 / Self::MAX as f64
    }
}

impl Level {
    /// As SHOW WARNINGS writes it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// The session's own variables (`@x`): they live until it ends, and count against the memory budget.
#[derive(Debug, Default)]
pub struct UserVariables {
    values: HashMap<Box<str>, (Value, Type)>,
}

impl UserVariables {
    /// Bytes of an entry beside its name and its value, about.
    const ENTRY_BYTES: usize = 256;

    /// NULL for a variable that was never set.
    pub fn get(&self, name: &str) -> Value {
        self.values.get(name).map(|(value, _)| value.clone()).unwrap_or_default()
    }

    /// The type of the value that was set last; `None` for a variable that was never set.
    pub fn type_of(&self, name: &str) -> Option<&Type> {
        self.values.get(name).map(|(_, ty)| ty)
    }

    /// Error 1041 if the memory budget has no room for the value.
    pub fn set(&mut self, name: &str, value: Value, ty: Type) -> Result<()> {
        let _claim = memory::claim(name.len() + value.heap_bytes() + Self::ENTRY_BYTES)?;
        self.values.insert(name.into(), (value, ty));
        Ok(())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value, &Type)> {
        self.values.iter().map(|(name, (value, ty))| (&**name, value, ty))
    }

    pub fn clear(&mut self) {
        self.values.clear();
    }
}
