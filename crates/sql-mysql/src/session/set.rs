//! SET and the effects of system variables.

use crate::scalar::charsets;
use std::time::Duration;

use syntax::tree::Expr as Node;

use crate::bind::{Bind, BindEnvironment};
use crate::error::{self, Result};
use crate::instance::prepared::type_of;
use crate::instance::variables::{self, Is, find};
use crate::parse::statement::{Scope, Setting};
use crate::scalar::modes::SqlMode;
use crate::scalar::state::StateOf as _;
use crate::scalar::temporal::{self, Zone};
use crate::session::session_tracking::{READ, TRACKERS};
use crate::session::transact::{CompletionType, isolation_of};
use crate::session::{Outcome, Session};
use crate::types::{Charset, CharsetName as _, Collation, CollationName as _, MysqlType as _, Type};
use crate::value::{Decimal, Value};
use query::nodes::expr::Expr;
use query::nodes::walk::has_subquery;

impl Session {
    pub(super) fn system_variable(&self, scope: Option<Scope>, name: &str) -> Result<(Value, Type)> {
        if !scope.is_some_and(Scope::is_global) {
            // Session state that is read as variables.
            match name {
                "last_insert_id" | "identity" => {
                    return Ok((Value::UInt(self.ctx.state().session.last_insert_id), Type::unsigned()));
                }
                "warning_count" | "error_count" => {
                    return Ok((Value::UInt(self.ctx.warnings.count()), Type::unsigned()));
                }
                "autocommit" => return Ok((Value::from(self.core.transaction.autocommit), Type::truth())),
                "pseudo_thread_id" => return Ok((Value::UInt(self.who.connection_id), Type::unsigned())),
                "timestamp" if self.values.number("timestamp") == 0 => {
                    return Ok((Value::Double(self.ctx.now.0 as f64 / 1e6), Type::double()));
                }
                _ => {}
            }
        }
        if scope.is_some_and(Scope::is_global) && variables::is_of_session(name) {
            return Err(error::INCORRECT_GLOBAL_LOCAL_VAR.with(&[&name, &"SESSION"]));
        }
        let variable = find(name)?;
        if scope == Some(Scope::Session) && variable.may.is_of_server() {
            return Err(error::INCORRECT_GLOBAL_LOCAL_VAR.with(&[&name, &"GLOBAL"]));
        }
        let is_global = scope.is_some_and(Scope::is_global) || variable.may.is_of_server();
        let value = if is_global { self.global(variable) } else { self.values.get(variable) };
        let value = if name == "character_set_results" && value == Value::text("") { Value::Null } else { value };
        Ok((value, variable.ty()))
    }

    pub(super) fn global(&self, variable: &variables::Variable) -> Value {
        self.db.globals.lock().get(variable.name).cloned().unwrap_or_else(|| variable.default())
    }

    /// Initializes session variables from the global values.
    pub(super) fn load_variables(&mut self) -> Result<()> {
        let globals: Vec<(&'static str, Value)> =
            self.db.globals.lock().iter().map(|(name, value)| (*name, value.clone())).collect();
        self.values.set_all(globals.into_iter());
        for variable in variables::VARIABLES.iter().filter(|variable| variable.may == variables::May::Set) {
            let value = self.values.get(variable);
            self.obey(variable.name, &value)?;
        }
        self.follow_database();
        Ok(())
    }

    pub(super) fn set(&mut self, settings: &[Setting]) -> Result<Outcome> {
        // All settings are validated before the first is applied.
        let checked = settings.iter().map(|setting| self.checked_setting(setting)).collect::<Result<Vec<Checked>>>()?;
        for checked in checked {
            match checked {
                Checked::System(scope, variable, value) => self.put(scope, variable, value)?,
                Checked::LastInsertId(id) => {
                    self.ctx.state_mut().session.last_insert_id = id;
                    self.track_variable("last_insert_id");
                }
                Checked::User(name, value, ty) => {
                    self.ctx.state_mut().variables.set(&name, value, ty)?;
                    self.track_state();
                }
                Checked::Names(collation) => {
                    self.put_names(collation);
                    for name in NAMES {
                        self.track_variable(name);
                    }
                }
            }
        }
        Ok(Outcome::done())
    }

    /// Evaluates and validates one assignment of SET.
    fn checked_setting(&mut self, setting: &Setting) -> Result<Checked> {
        Ok(match setting {
            Setting::System { scope, name, value } => {
                let value = self.constant(value)?;
                self.checked_system(*scope, name, value)?
            }
            Setting::Default { scope, name } => {
                let variable = variables::find_settable(name)?;
                let value = if scope.is_global() { variable.default() } else { self.global(variable) };
                self.checked_system(*scope, name, value)?
            }
            Setting::User { name, value } => {
                let (value, ty) = self.evaluated(value)?;
                Checked::User(name.clone(), value, ty)
            }
            Setting::Names { charset, collation } => {
                Checked::Names(names_of(charset.as_deref(), collation.as_deref())?)
            }
            Setting::CharacterSet(charset) => Checked::Names(names_of(charset.as_deref(), None)?),
            Setting::Isolation { scope, level } => {
                self.checked_system(*scope, "transaction_isolation", Value::text(level))?
            }
            Setting::Access { scope, read_only } => {
                self.checked_system(*scope, "transaction_read_only", Value::from(*read_only))?
            }
        })
    }

    /// Evaluates an expression without tables.
    pub(super) fn constant(&mut self, node: &Node) -> Result<Value> {
        Ok(self.evaluated(node)?.0)
    }

    fn evaluated(&mut self, node: &Node) -> Result<(Value, Type)> {
        let expr = self.bound(node)?;
        if has_subquery(&expr) {
            self.need_transaction();
            self.has_used_tables = true;
            self.track_deed(READ);
        }
        // As in MySQL, a quotient keeps all its digits.
        let value = expr.eval_exact(&[], &mut self.ctx)?;
        if !self.core.transaction.is_explicit && self.core.transaction.autocommit {
            self.commit_statement()?;
        }
        let ty = match &value {
            Value::Decimal(decimal) if decimal.scale() > expr.ty().scale.into() => {
                type_of(&value, self.settings.collation)
            }
            _ => expr.ty(),
        };
        Ok((value, ty))
    }

    fn bound(&self, node: &Node) -> Result<Expr> {
        let collation = self.settings.collation;
        let parameters: Vec<Type> = self.ctx.parameters.iter().map(|value| type_of(value, collation)).collect();
        let environment = BindEnvironment { parameters: &parameters, ..self.bind_environment() };
        let mut bind = Bind::new(&environment);
        bind.open_scope();
        bind.expr(node)
    }

    pub(super) fn set_system(&mut self, scope: Scope, name: &str, value: Value) -> Result<()> {
        match self.checked_system(scope, name, value)? {
            Checked::System(scope, variable, value) => self.put(scope, variable, value),
            Checked::LastInsertId(id) => {
                self.ctx.state_mut().session.last_insert_id = id;
                Ok(())
            }
            Checked::User(..) | Checked::Names(_) => Ok(()),
        }
    }

    fn checked_system(&mut self, scope: Scope, name: &str, value: Value) -> Result<Checked> {
        if scope.is_global() && variables::is_of_session(name) && !matches!(name, "error_count" | "warning_count") {
            return Err(error::LOCAL_VARIABLE.with(&[&name]));
        }
        match name {
            "last_insert_id" | "identity" => {
                return Ok(match find("server_id")?.form(value)? {
                    Value::UInt(id) => Checked::LastInsertId(id),
                    _ => Checked::LastInsertId(0),
                });
            }
            // MySQL 5 names that drivers still send.
            "tx_isolation" => return self.checked_system(scope, "transaction_isolation", value),
            _ => {}
        }
        let variable = variables::find_settable(name)?;
        let given = value;
        if given.is_null() && NEVER_NULL.contains(&variable.name) {
            return Err(error::WRONG_VALUE_FOR_VAR.with(&[&variable.name, &"NULL"]));
        }
        let value = variable.form(given.clone())?;
        let (set, wanted) = (variables::text_of(&value), variables::text_of(&given));
        let is_clipped = match variable.is {
            Is::Near(..) => set != wanted,
            Is::Seconds(..) => Decimal::parse(&set) != Decimal::parse(&wanted),
            _ => false,
        };
        if is_clipped {
            self.clipped(variable.name, &given)?;
        }
        variable.check(&value)?;
        if scope == Scope::Next && self.in_transaction() {
            return Err(error::CANT_CHANGE_TX_CHARACTERISTICS.bare());
        }
        if !scope.is_global() && variable.may.is_of_server() {
            return Err(error::GLOBAL_VARIABLE.with(&[&variable.name]));
        }
        let kept = self.verify(scope, variable, &value)?;
        Ok(Checked::System(scope, variable, kept))
    }

    /// Handles a value out of range, which is clamped with a warning; an error in strict mode.
    fn clipped(&mut self, name: &str, given: &Value) -> Result<()> {
        let given = variables::text_of(given);
        if self.ctx.sql_mode().has(SqlMode::STRICT_ALL_TABLES) {
            return Err(error::WRONG_VALUE_FOR_VAR.with(&[&name, &given]));
        }
        self.ctx.warn(error::TRUNCATED_WRONG_VALUE.with(&[&name, &given]));
        Ok(())
    }

    /// Sets a variable to a validated value.
    fn put(&mut self, scope: Scope, variable: &'static variables::Variable, value: Value) -> Result<()> {
        let name = variable.name;
        match scope {
            Scope::Global | Scope::Persist => {
                if scope == Scope::Persist {
                    let kept = self.db.persist(name, &value)?;
                    self.core.transaction.raise_durability_lsn(kept);
                }
                if let Some((partner, follows)) = partner_of(name, &value, |name| self.db.global_word(name))? {
                    self.db.globals.lock().insert(partner, follows);
                }
                self.db.globals.lock().insert(name, value.clone());
                self.db.follow(name, &value);
                // super_read_only implies read_only.
                match (name, value == Value::TRUE) {
                    ("super_read_only", true) => self.put(scope, find("read_only")?, Value::TRUE)?,
                    ("read_only", false) => self.put_off_super(scope)?,
                    _ => {}
                }
                return Ok(());
            }
            Scope::Next => {
                match name {
                    "transaction_isolation" => {
                        self.core.transaction.next_isolation = isolation_of(&variables::text_of(&value))
                    }
                    _ => self.core.transaction.next_read_only = Some(value == Value::TRUE),
                }
                self.track_next();
                return Ok(());
            }
            Scope::Session => {}
        }
        self.obey(name, &value)?;
        if let Some((partner, follows)) = partner_of(name, &value, |name| self.values.word(name))? {
            self.values.set(partner, follows);
        }
        self.values.set(name, value);
        if !self.in_transaction() {
            // A value for the next transaction alone is dropped.
            match name {
                "transaction_isolation" => self.core.transaction.next_isolation = None,
                "transaction_read_only" => self.core.transaction.next_read_only = None,
                _ => {}
            }
            self.track_next();
        }
        self.track_variable(name);
        Ok(())
    }

    /// Turning read_only off turns super_read_only off as well.
    fn put_off_super(&mut self, scope: Scope) -> Result<()> {
        let variable = find("super_read_only")?;
        if self.global(variable) == Value::TRUE { self.put(scope, variable, Value::FALSE) } else { Ok(()) }
    }

    /// Removes persisted values; the current ones stay.
    pub(super) fn reset_persist(&mut self, name: Option<&str>, if_exists: bool) -> Result<Outcome> {
        let kept = self.db.persisted()?;
        if let Some(name) = name.filter(|name| !kept.contains_key(*name)) {
            let missing = error::VAR_DOES_NOT_EXIST.with(&[&name]);
            if !if_exists {
                return Err(missing);
            }
            self.ctx.warn(missing);
            return Ok(Outcome::done());
        }
        let all = kept.keys().map(String::as_str);
        let forgotten = self.db.forget_persisted(all.filter(|kept| name.is_none_or(|name| name == *kept)))?;
        self.core.transaction.raise_durability_lsn(forgotten);
        Ok(Outcome::done())
    }

    /// Validates a value and returns it as stored.
    fn verify(&mut self, scope: Scope, variable: &'static variables::Variable, value: &Value) -> Result<Value> {
        let name = variable.name;
        if TRACKERS.contains(&name) {
            return self.verify_tracker(name, value);
        }
        let wrong = || error::WRONG_VALUE_FOR_VAR.with(&[&name, &variables::text_of(value)]);
        let text = variables::text_of(value);
        match name {
            "block_encryption_mode" => {
                let wrong = || error::WRONG_VALUE_FOR_VAR.with(&[&name, &variables::spelled(value)]);
                Ok(Value::text(crate::scalar::block_encryption::Mode::named(value).ok_or_else(wrong)?.name()))
            }
            "completion_type" => {
                let wrong = || error::WRONG_VALUE_FOR_VAR.with(&[&name, &variables::spelled(value)]);
                Ok(Value::text(CompletionType::named(value).ok_or_else(wrong)?.name()))
            }
            "lc_time_names" => {
                let locale = temporal::locale(&text).ok_or_else(|| error::UNKNOWN_LOCALE.with(&[&text]))?;
                Ok(Value::text(locale.name))
            }
            "sql_mode" => Ok(Value::text(mode_of(&text)?.to_string())),
            "time_zone" => {
                zone_of(&text)?;
                Ok(value.clone())
            }
            "transaction_isolation" => {
                isolation_of(&text).ok_or_else(wrong)?;
                Ok(Value::text(text.to_ascii_uppercase().replace(' ', "-")))
            }
            "protocol_compression_algorithms" => {
                let known = |name: &str| ["zlib", "zstd", "uncompressed"].contains(&name.to_ascii_lowercase().as_str());
                if text.split(',').all(known) { Ok(value.clone()) } else { Err(wrong()) }
            }
            "optimizer_switch" => {
                let now = if scope.is_global() { self.global(variable) } else { self.values.get(variable) };
                Ok(Value::text(variables::switched(&variables::text_of(&now), &text).ok_or_else(wrong)?))
            }
            "character_set_results" if text.is_empty() || text.eq_ignore_ascii_case("null") => Ok(Value::text("")),
            name if name.starts_with("character_set_") => {
                let charset = charsets::charset(&text)?;
                if name == "character_set_client" {
                    check_client(charset)?;
                }
                Ok(Value::text(charset.name()))
            }
            name if name.starts_with("collation_") => Ok(Value::text(charsets::collation(&text)?.name())),
            _ => Ok(value.clone()),
        }
    }

    /// Applies a variable's effect.
    fn obey(&mut self, name: &str, value: &Value) -> Result<()> {
        let text = variables::text_of(value);
        let number = if let Value::UInt(number) = value { *number } else { 0 };
        match name {
            "autocommit" => {
                let on = *value == Value::TRUE;
                if on && !self.core.transaction.autocommit {
                    self.commit()?;
                }
                self.core.transaction.autocommit = on;
            }
            "block_encryption_mode" => {
                self.ctx.state_mut().block_encryption =
                    crate::scalar::block_encryption::Mode::named(value).unwrap_or_default()
            }
            "completion_type" => self.quick.completion = CompletionType::named(value).unwrap_or_default(),
            "sql_mode" => {
                let mode = mode_of(&text)?;
                self.ctx.set_sql_mode(mode);
                self.settings.sql_mode = mode;
                self.leave_context();
            }
            "time_zone" => self.ctx.zone = zone_of(&text)?,
            "transaction_isolation" => {
                self.core.transaction.isolation = isolation_of(&text).unwrap_or(self.core.transaction.isolation)
            }
            "collation_connection" => self.connect_with(charsets::collation(&text)?),
            "character_set_connection" => {
                let charset = charsets::charset(&text)?;
                if self.settings.collation.charset() != charset {
                    let collation = charset.default_collation();
                    self.values.set("collation_connection", Value::text(collation.name()));
                    self.connect_with(collation);
                }
            }
            "div_precision_increment" => {
                self.settings.div_precision_increment = number as u8;
                self.leave_context();
            }
            "sql_select_limit" => {
                self.settings.select_limit = number;
                self.leave_context();
            }
            "sql_big_selects" => {
                self.settings.big_selects = *value == Value::TRUE;
                self.leave_context();
            }
            "max_join_size" => {
                self.settings.max_join_size = number;
                self.settings.big_selects = number == u64::MAX;
                self.values.set("sql_big_selects", Value::from(self.settings.big_selects));
                self.leave_context();
            }
            "sql_safe_updates" => {
                self.settings.safe_updates = *value == Value::TRUE;
                self.leave_context();
            }
            "group_concat_max_len" => self.ctx.state_mut().group_concat_max_len = number as usize,
            "auto_increment_increment" => self.ctx.auto_step.0 = number,
            "auto_increment_offset" => self.ctx.auto_step.1 = number,
            "lc_time_names" => self.ctx.state_mut().time_names = temporal::locale(&text).unwrap_or(&temporal::ENGLISH),
            "long_query_time" => {
                let micros = (text.parse::<f64>().unwrap_or(0.0) * 1e6).round() as u64;
                self.quick.long_query = Duration::from_micros(micros);
            }
            "foreign_key_checks" => self.host().foreign_key_checks = *value == Value::TRUE,
            "max_allowed_packet" => self.ctx.state_mut().max_allowed_packet = number as usize,
            "sql_notes" => self.ctx.warnings.keeps_notes = *value == Value::TRUE,
            "max_error_count" => self.ctx.warnings.max_count = number as usize,
            "timestamp" => self.quick.timestamp = number,
            name if TRACKERS.contains(&name) => self.obey_tracker(name, value)?,
            "max_execution_time" => self.quick.max_execution_ms = number,
            "cte_max_recursion_depth" => self.host().recursion_max = number,
            "lock_wait_timeout" => self.quick.mdl_wait_s = number,
            "transaction_read_only" => self.quick.read_only = *value == Value::TRUE,
            "innodb_lock_wait_timeout" => {
                self.quick.lock_wait_s = number;
                let wait = std::time::Duration::from_secs(number);
                if let Some(txn) = &mut self.host().txn {
                    txn.set_lock_wait(wait);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets the variables for the character set and collation of the current database, or of the server if none is
    /// selected.
    pub(super) fn follow_database(&mut self) {
        let schema = self.database.as_deref().and_then(|name| self.catalog.schema(name).ok());
        let of_server = || charsets::collation(&self.values.word("collation_server")).unwrap_or(Collation::DEFAULT);
        let collation = schema.map_or_else(of_server, |schema| schema.collation);
        self.values.set("character_set_database", Value::text(collation.charset().name()));
        self.values.set("collation_database", Value::text(collation.name()));
    }

    fn connect_with(&mut self, collation: Collation) {
        self.settings.collation = collation;
        self.leave_context();
    }

    pub(super) fn names(&mut self, charset: Option<&str>, collation: Option<&str>) -> Result<()> {
        self.put_names(names_of(charset, collation)?);
        Ok(())
    }

    fn put_names(&mut self, collation: Collation) {
        for name in NAMES {
            self.values.set(name, Value::text(collation.charset().name()));
        }
        self.values.set("collation_connection", Value::text(collation.name()));
        self.connect_with(collation);
    }
}

/// Variables with words for values that NULL is none of; other words may be missing, as `character_set_results` may.
const NEVER_NULL: [&str; 14] = [
    "character_set_client",
    "character_set_connection",
    "character_set_database",
    "character_set_server",
    "collation_connection",
    "collation_database",
    "collation_server",
    "default_storage_engine",
    "default_tmp_storage_engine",
    "lc_time_names",
    "optimizer_switch",
    "sql_mode",
    "time_zone",
    "transaction_isolation",
];

/// The variables of SET NAMES.
const NAMES: [&str; 3] = ["character_set_client", "character_set_connection", "character_set_results"];

/// Pairs of variables for a character set and its collation.
const CHARSET_PAIRS: [(&str, &str); 2] =
    [("character_set_server", "collation_server"), ("character_set_database", "collation_database")];

/// Returns the other variable of such a pair and its new value. `current` reads a variable.
fn partner_of(
    name: &str,
    value: &Value,
    current: impl Fn(&'static str) -> String,
) -> Result<Option<(&'static str, Value)>> {
    let text = variables::text_of(value);
    for (charset_name, collation_name) in CHARSET_PAIRS {
        if name == collation_name {
            return Ok(Some((charset_name, Value::text(charsets::collation(&text)?.charset().name()))));
        }
        if name == charset_name {
            let charset = charsets::charset(&text)?;
            let differs = charsets::collation(&current(collation_name))?.charset() != charset;
            return Ok(differs.then(|| (collation_name, Value::text(charset.default_collation().name()))));
        }
    }
    Ok(None)
}

/// A validated assignment that cannot fail.
enum Checked {
    System(Scope, &'static variables::Variable, Value),
    LastInsertId(u64),
    User(String, Value, Type),
    /// SET NAMES with its resolved collation.
    Names(Collation),
}

/// Error 1231 for a character set whose ASCII characters take several bytes: no client can send statements in it.
fn check_client(charset: Charset) -> Result<()> {
    match charset.min_bytes() {
        1 => Ok(()),
        _ => Err(error::WRONG_VALUE_FOR_VAR.with(&[&"character_set_client", &charset.name()])),
    }
}

fn names_of(charset: Option<&str>, collation: Option<&str>) -> Result<Collation> {
    let charset = charset.map_or(Ok(Charset::Utf8), charsets::charset)?;
    check_client(charset)?;
    let Some(name) = collation else { return Ok(charset.default_collation()) };
    let collation = charsets::collation(name)?;
    if collation.charset() != charset {
        return Err(error::COLLATION_CHARSET_MISMATCH.with(&[&collation.name(), &charset.name()]));
    }
    Ok(collation)
}

fn mode_of(text: &str) -> Result<SqlMode> {
    match text.parse::<u64>() {
        Ok(0) => Ok(SqlMode::NONE),
        Ok(_) => Err(error::WRONG_VALUE_FOR_VAR.with(&[&"sql_mode", &text])),
        Err(_) => Ok(SqlMode::parse(text)?),
    }
}

fn zone_of(text: &str) -> Result<Zone> {
    Ok(temporal::parse_zone(text)?)
}
