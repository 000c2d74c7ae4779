//! SET, and what follows from variables that are obeyed.

use crate::bind::Bind;
use crate::error::{self, Result, SqlError};
use crate::parse::statement::{Scope, Setting};
use crate::plan::walk::has_subquery;
use crate::scalar::temporal::Zone;
use crate::scalar::{Expr, SqlMode};
use crate::session::transact::isolation_of;
use crate::session::variables::{self, find};
use crate::session::{Outcome, Session};
use crate::types::{Charset, Collation, Type};
use crate::value::Value;

impl Session {
    pub(super) fn system_variable(&self, scope: Option<Scope>, name: &str) -> Result<(Value, Type)> {
        if scope != Some(Scope::Global) {
            // Those that are facts of the session.
            match name {
                "last_insert_id" | "identity" => {
                    return Ok((Value::UInt(self.ctx.session.last_insert_id), Type::unsigned()));
                }
                "warning_count" | "error_count" => {
                    return Ok((Value::UInt(self.ctx.warnings.count()), Type::unsigned()));
                }
                "autocommit" => return Ok((Value::from(self.autocommit), Type::boolean())),
                "pseudo_thread_id" => return Ok((Value::UInt(self.who.connection_id), Type::unsigned())),
                "timestamp" if self.values.number("timestamp") == 0 => {
                    return Ok((Value::Double(self.ctx.now.0 as f64 / 1e6), Type::double()));
                }
                _ => {}
            }
        }
        let variable = find(name)?;
        let is_global =
            scope == Some(Scope::Global) || matches!(variable.may, variables::May::Global | variables::May::Read);
        let value = if is_global { self.global(variable) } else { self.values.get(variable) };
        let value = if name == "character_set_results" && value == Value::text("") { Value::Null } else { value };
        Ok((value, variable.ty()))
    }

    pub(super) fn global(&self, variable: &variables::Variable) -> Value {
        self.db.globals.lock().get(variable.name).cloned().unwrap_or_else(|| variable.default())
    }

    /// The server's values are the session's first ones.
    pub(super) fn load_variables(&mut self) -> Result<()> {
        let globals: Vec<(&'static str, Value)> =
            self.db.globals.lock().iter().map(|(name, value)| (*name, value.clone())).collect();
        self.values.0 = globals.into_iter().collect();
        for variable in variables::VARIABLES.iter().filter(|variable| variable.may == variables::May::Set) {
            let value = self.values.get(variable);
            self.obey(variable.name, &value)?;
        }
        Ok(())
    }

    pub(super) fn set(&mut self, settings: &[Setting]) -> Result<Outcome> {
        for setting in settings {
            match setting {
                Setting::System { scope, name, value } => {
                    let value = self.constant(value)?;
                    self.set_system(*scope, name, value)?;
                }
                Setting::Default { scope, name } => {
                    let variable = find(name)?;
                    let value = if *scope == Scope::Global { variable.default() } else { self.global(variable) };
                    self.set_system(*scope, name, value)?;
                }
                Setting::User { name, value } => {
                    let (value, ty) = self.evaluated(value)?;
                    self.host().users.insert(name.clone(), (value, ty));
                }
                Setting::Names { charset, collation } => self.names(charset.as_deref(), collation.as_deref())?,
                Setting::Isolation { scope: Scope::Next, level } => {
                    if self.in_transaction() {
                        let message = "Transaction characteristics can't be changed while a transaction is in progress"
                            .to_owned();
                        return Err(SqlError { code: 1568, sqlstate: "25001", message });
                    }
                    self.next_isolation = isolation_of(level);
                }
                Setting::Isolation { scope, level } => {
                    self.set_system(*scope, "transaction_isolation", Value::text(level))?
                }
                Setting::Access { scope: Scope::Next, read_only } => self.next_read_only = Some(*read_only),
                Setting::Access { scope, read_only } => {
                    self.set_system(*scope, "transaction_read_only", Value::from(*read_only))?
                }
            }
        }
        Ok(Outcome::done())
    }

    /// The value of an expression without tables.
    pub(super) fn constant(&mut self, node: &sqlparser::ast::Expr) -> Result<Value> {
        Ok(self.evaluated(node)?.0)
    }

    fn evaluated(&mut self, node: &sqlparser::ast::Expr) -> Result<(Value, Type)> {
        let expr = self.bound(node)?;
        if has_subquery(&expr) {
            self.need_transaction();
        }
        let value = expr.eval(&[], &mut self.ctx)?;
        if !self.explicit && self.autocommit {
            self.commit()?;
        }
        Ok((value, expr.ty()))
    }

    fn bound(&self, node: &sqlparser::ast::Expr) -> Result<Expr> {
        let around = self.surroundings();
        let mut bind = Bind::new(&around);
        bind.open_scope();
        bind.expr(node)
    }

    pub(super) fn set_system(&mut self, scope: Scope, name: &str, value: Value) -> Result<()> {
        match name {
            "last_insert_id" | "identity" => {
                if let Value::UInt(id) = find("server_id")?.form(value)? {
                    self.ctx.session.last_insert_id = id;
                }
                return Ok(());
            }
            // Names of MySQL 5 that drivers still send.
            "tx_isolation" => return self.set_system(scope, "transaction_isolation", value),
            _ => {}
        }
        let variable = find(name)?;
        let value = variable.form(value)?;
        variable.check(&value)?;
        if scope == Scope::Global {
            self.verify(variable.name, &value)?;
            self.db.globals.lock().insert(variable.name, value);
            return Ok(());
        }
        if variable.may == variables::May::Global {
            return Err(error::GLOBAL_VARIABLE.with(&[&variable.name]));
        }
        let value = self.verify(variable.name, &value)?;
        self.obey(variable.name, &value)?;
        self.values.0.insert(variable.name, value);
        Ok(())
    }

    /// The value as it is kept; an error if it makes no sense.
    fn verify(&self, name: &str, value: &Value) -> Result<Value> {
        let wrong = || error::WRONG_VALUE_FOR_VAR.with(&[&name, &variables::text_of(value)]);
        let text = variables::text_of(value);
        match name {
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
            "character_set_results" if text.is_empty() || text.eq_ignore_ascii_case("null") => Ok(Value::text("")),
            name if name.starts_with("character_set_") => {
                let charset = Charset::by_name(&text)?;
                if name == "character_set_client" && charset == Charset::Binary {
                    return Ok(Value::text("binary"));
                }
                Ok(Value::text(charset.name()))
            }
            name if name.starts_with("collation_") => Ok(Value::text(Collation::by_name(&text)?.name())),
            _ => Ok(value.clone()),
        }
    }

    /// What a variable means, done.
    fn obey(&mut self, name: &str, value: &Value) -> Result<()> {
        let text = variables::text_of(value);
        let number = if let Value::UInt(number) = value { *number } else { 0 };
        match name {
            "autocommit" => {
                let on = *value == Value::TRUE;
                if on && !self.autocommit {
                    self.commit()?;
                }
                self.autocommit = on;
            }
            "sql_mode" => {
                let mode = mode_of(&text)?;
                self.ctx.sql_mode = mode;
                self.settings.sql_mode = mode;
                self.plans.clear();
            }
            "time_zone" => {
                self.ctx.zone = zone_of(&text)?;
                self.plans.clear();
            }
            "transaction_isolation" => self.isolation = isolation_of(&text).unwrap_or(self.isolation),
            "collation_connection" => self.connect_with(Collation::by_name(&text)?),
            "character_set_connection" => {
                let charset = Charset::by_name(&text)?;
                if self.settings.collation.charset() != charset {
                    let collation = charset.default_collation();
                    self.values.0.insert("collation_connection", Value::text(collation.name()));
                    self.connect_with(collation);
                }
            }
            "div_precision_increment" => {
                self.settings.div_precision_increment = number.min(30) as u8;
                self.plans.clear();
            }
            "sql_select_limit" => {
                self.settings.select_limit = number;
                self.plans.clear();
            }
            "sql_safe_updates" => {
                self.settings.safe_updates = *value == Value::TRUE;
                self.plans.clear();
            }
            "group_concat_max_len" => self.ctx.group_concat_max_len = number as usize,
            "foreign_key_checks" => self.host().foreign_key_checks = *value == Value::TRUE,
            "max_allowed_packet" => self.ctx.max_allowed_packet = number as usize,
            "max_error_count" => self.ctx.warnings.max_count = number as usize,
            "timestamp" => self.quick.timestamp = number,
            "max_execution_time" => self.quick.max_execution_ms = number,
            "lock_wait_timeout" => self.quick.gate_wait_s = number,
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

    fn connect_with(&mut self, collation: Collation) {
        self.settings.collation = collation;
        self.plans.clear();
    }

    pub(super) fn names(&mut self, charset: Option<&str>, collation: Option<&str>) -> Result<()> {
        let charset = charset.map_or(Ok(Charset::Utf8mb4), Charset::by_name)?;
        let collation = match collation {
            None => charset.default_collation(),
            Some(name) => {
                let collation = Collation::by_name(name)?;
                if collation.charset() != charset {
                    return Err(error::COLLATION_CHARSET_MISMATCH.with(&[&collation.name(), &charset.name()]));
                }
                collation
            }
        };
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.values.0.insert(name, Value::text(charset.name()));
        }
        self.values.0.insert("collation_connection", Value::text(collation.name()));
        self.connect_with(collation);
        Ok(())
    }
}

fn mode_of(text: &str) -> Result<SqlMode> {
    match text.parse::<u64>() {
        Ok(0) => Ok(SqlMode::NONE),
        Ok(_) => Err(error::WRONG_VALUE_FOR_VAR.with(&[&"sql_mode", &text])),
        Err(_) => SqlMode::parse(text),
    }
}

fn zone_of(text: &str) -> Result<Zone> {
    if text.eq_ignore_ascii_case("system") { Ok(Zone::system()) } else { Zone::parse(text) }
}
