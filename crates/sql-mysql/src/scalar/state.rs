//! The state of a session that MySQL's functions read and change: SQL modes, user variables, results of information
//! functions.
//!
//! It lives in the `EvalContext`, which does not know its type. `StateOf` accesses it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use stdx::memory;

use crate::scalar::block_encryption;
use crate::scalar::modes::SqlMode;
use crate::scalar::temporal::{Locale, Timestamp};
use crate::types::Type;
use crate::value::{Text, Value};
use datum::Result;
use query::nodes::context::{EvalContext, Level};

/// Returns the next timestamp of a sequence with its durability LSN.
pub type TakeTimestamp = dyn Fn() -> Result<(u64, u64)> + Send + Sync;

/// One lives as long as its session.
pub struct SessionState {
    /// Set by `StateOf::set_sql_mode` alone, for the context keeps what follows from it.
    sql_mode: SqlMode,
    pub session: SessionFacts,
    /// Values of `@x`.
    pub variables: UserVariables,
    /// The parameters came apart from the text: a prepared statement is run.
    pub values_apart: bool,
    pub max_allowed_packet: usize,
    pub group_concat_max_len: usize,
    /// `lc_time_names`
    pub time_names: &'static Locale,
    /// The mode of AES_ENCRYPT and AES_DECRYPT.
    pub block_encryption: block_encryption::Mode,
    pub random: Random,
    /// Sequences of RAND(seed): by the call's address, valid for the statement that began them.
    pub seeded: Vec<(usize, Timestamp, Random)>,
    /// Takes a timestamp for NEXTVAL, with its durability LSN. None: there are none.
    pub take_timestamp: Option<Arc<TakeTimestamp>>,
}

impl Default for SessionState {
    fn default() -> SessionState {
        SessionState {
            sql_mode: SqlMode::DEFAULT,
            session: SessionFacts::default(),
            variables: UserVariables::default(),
            values_apart: false,
            max_allowed_packet: 64 << 20,
            group_concat_max_len: 1024,
            time_names: &crate::scalar::temporal::ENGLISH,
            block_encryption: block_encryption::Mode::default(),
            random: Random::from_seed(0x9E37_79B9),
            seeded: Vec::new(),
            take_timestamp: None,
        }
    }
}

/// The state of a context in which no MySQL session has left one.
static UNSET: LazyLock<SessionState> = LazyLock::new(SessionState::default);

/// Reaches MySQL's state in an evaluation context.
pub trait StateOf {
    fn state(&self) -> &SessionState;
    fn state_mut(&mut self) -> &mut SessionState;
    fn sql_mode(&self) -> SqlMode;
    fn set_sql_mode(&mut self, mode: SqlMode);
}

impl StateOf for EvalContext {
    fn state(&self) -> &SessionState {
        self.slot().unwrap_or(&UNSET)
    }

    fn state_mut(&mut self) -> &mut SessionState {
        self.slot_mut()
    }

    fn sql_mode(&self) -> SqlMode {
        self.state().sql_mode
    }

    fn set_sql_mode(&mut self, mode: SqlMode) {
        self.state_mut().sql_mode = mode;
        self.strict = mode.is_strict();
        self.zero_takes_number = !mode.has(SqlMode::NO_AUTO_VALUE_ON_ZERO);
    }
}

/// Returns a new context with these modes, for what is evaluated before its statement runs.
pub fn context_of(mode: SqlMode) -> EvalContext {
    let mut ctx = EvalContext::new();
    ctx.set_sql_mode(mode);
    ctx
}

/// The level as SHOW WARNINGS writes it.
pub fn level_name(level: Level) -> &'static str {
    match level {
        Level::Note => "Note",
        Level::Warning => "Warning",
        Level::Error => "Error",
    }
}

/// Results of the information functions.
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
    /// The argument of LAST_INSERT_ID(expr), which is the result of later calls in the statement.
    pub set_last_insert_id: Option<u64>,
    /// Query attributes that the client sent with the statement.
    pub attributes: Vec<(String, Option<Text>)>,
    /// The durability LSN of values that functions returned: timestamps that were taken.
    pub durability_lsn: u64,
    pub row_count: i64,
    pub found_rows: u64,
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

/// The session's own variables (`@x`): they live until it ends, and count against the memory budget.
#[derive(Debug, Default)]
pub struct UserVariables {
    values: HashMap<Box<str>, (Value, Type)>,
}

impl UserVariables {
    /// The approximate memory of an entry besides name and value.
    const ENTRY_BYTES: usize = 256;

    /// Returns the value, or NULL for an unset variable.
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
