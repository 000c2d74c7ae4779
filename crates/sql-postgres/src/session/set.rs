//! SET, RESET, SHOW and SET TRANSACTION.

use query::catalog::session_default::DefaultsKey;
use syntax::postgres::tree::{SettingValue, TransactionMode, VariableSet, VariableSetStmt, VariableShow};

use crate::batch::Row;
use crate::bind::ResultColumn;
use crate::error::{PgError, Result, state};
use crate::session::Session;
use crate::session::command::text_field;
use crate::session::facts::{FactsOf as _, SessionState};
use crate::session::transact::isolation_name;
use crate::settings::values::{Scope, ValueSource};
use crate::settings::{self, Kind, SETTINGS, find};
use crate::value::Value;

impl Session {
    pub(super) fn set_command(&mut self, set: &VariableSetStmt) -> Result<String> {
        let VariableSetStmt { local, action } = set;
        let scope = if *local { Scope::Local } else { Scope::Session };
        if *local && !self.is_in_block() {
            self.warn(state::NO_ACTIVE_SQL_TRANSACTION, "SET LOCAL can only be used in transaction blocks");
        }
        match action {
            VariableSet::Value { name, values } => {
                let text = flat(&name.value, values)?;
                self.set(&name.value, Some(&text), scope)?;
            }
            VariableSet::Default(name) => self.set(&name.value, None, scope)?,
            VariableSet::Current(name) => {
                let known = self.ctx.facts().settings.show(&name.value);
                known.map(drop).ok_or_else(|| settings::unknown(&name.value))?;
            }
            VariableSet::Reset(name) => {
                self.set(&name.value, None, scope)?;
                return Ok("RESET".to_owned());
            }
            VariableSet::ResetAll => {
                self.ctx.facts().settings.reset_all(true);
                return Ok("RESET".to_owned());
            }
            VariableSet::Transaction(modes) => {
                if !self.is_in_block() {
                    self.warn(
                        state::NO_ACTIVE_SQL_TRANSACTION,
                        "SET TRANSACTION can only be used in transaction blocks",
                    );
                }
                self.set_modes(modes)?;
            }
            VariableSet::Snapshot(_) => return Err(PgError::unsupported("SET TRANSACTION SNAPSHOT")),
            VariableSet::SessionCharacteristics(modes) => self.set_characteristics(modes)?,
        }
        Ok("SET".to_owned())
    }

    fn set_characteristics(&mut self, modes: &[TransactionMode]) -> Result<()> {
        let on_off = |is_on: bool| if is_on { "on" } else { "off" };
        for mode in modes {
            let (name, value) = match mode {
                TransactionMode::Isolation(level) => ("default_transaction_isolation", isolation_name(*level)),
                TransactionMode::ReadOnly(is_on) => ("default_transaction_read_only", on_off(*is_on)),
                TransactionMode::Deferrable(is_on) => ("default_transaction_deferrable", on_off(*is_on)),
            };
            self.set(name, Some(value), Scope::Session)?;
        }
        Ok(())
    }

    /// Sets a setting; `None` returns it to its value at the start of the session.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>, scope: Scope) -> Result<()> {
        let lower = name.to_ascii_lowercase();
        match (&*lower, value) {
            ("role" | "session_authorization", value) => return self.set_role(&lower, value, scope),
            ("transaction_isolation", Some(value)) => {
                let at = find(&lower).map(|at| &SETTINGS[at]);
                let value = at.map_or_else(|| Ok(value.into()), |setting| settings::canonical(setting, value))?;
                return self.set_isolation(&value);
            }
            ("transaction_read_only", Some(value)) => {
                let is_on = settings::read_bool(value).ok_or_else(|| {
                    let message = "parameter \"transaction_read_only\" requires a Boolean value";
                    PgError::new(state::INVALID_PARAMETER_VALUE, message)
                })?;
                return self.set_read_only(is_on);
            }
            ("seed", Some(_)) => return Err(PgError::unsupported("SET seed")),
            _ => {}
        }
        let is_super = self.is_super();
        let facts = self.ctx.facts();
        settings::check_right(name, is_super)?;
        let is_begun = facts.in_transaction;
        match value {
            Some(value) => facts.settings.set(name, value, scope, is_begun),
            None => facts.settings.reset(name, scope, is_begun),
        }
    }

    /// SET ROLE and SET SESSION AUTHORIZATION.
    fn set_role(&mut self, setting: &str, value: Option<&str>, scope: Scope) -> Result<()> {
        self.refresh();
        let changed = set_role(setting, value, scope, self.ctx.facts());
        self.follow_settings();
        changed
    }

    pub(super) fn fields_of_show(&mut self, show: &VariableShow) -> Result<Vec<ResultColumn>> {
        Ok(match show {
            VariableShow::All => ["name", "setting", "description"].map(text_field).into(),
            VariableShow::Name(name) => {
                self.shown(&name.value)?;
                vec![text_field(&canonical_name(&name.value))]
            }
        })
    }

    pub(super) fn show(&mut self, show: &VariableShow) -> Result<(Vec<ResultColumn>, Vec<Row>)> {
        let fields = self.fields_of_show(show)?;
        let rows = match show {
            VariableShow::All => {
                let all = self.ctx.facts().settings.all();
                all.map(|(setting, value)| vec![setting.name.into(), value, setting.description.into()])
                    .map(|row: Vec<String>| row.into_iter().map(Value::text).collect())
                    .collect()
            }
            VariableShow::Name(name) => vec![vec![Value::text(self.shown(&name.value)?)]],
        };
        Ok((fields, rows))
    }

    fn shown(&mut self, name: &str) -> Result<String> {
        self.setting(name).ok_or_else(|| settings::unknown(name))
    }

    /// Returns the value of a setting as SHOW gives it.
    pub(crate) fn setting(&mut self, name: &str) -> Option<String> {
        self.ctx.facts().settings.show(name)
    }

    /// Checks a value that sessions to come are to apply (`stored::check_value`).
    pub(crate) fn check_setting(&mut self, name: &str, value: &str) -> Result<Option<PgError>> {
        settings::stored::check_value(&self.ctx.facts().settings, name, value)
    }

    /// Applies the settings of the role and of the database. One that is refused gives a warning.
    pub(super) fn apply_session_defaults(&mut self) {
        let (role, database) = (self.current_identity().session, self.who.database.clone());
        let database = self.catalog.schemas.get(&database).map_or(0, |schema| schema.id);
        let levels = [
            (DefaultsKey { database, role }, ValueSource::DatabaseUser),
            (DefaultsKey { database: 0, role }, ValueSource::User),
            (DefaultsKey { database, role: 0 }, ValueSource::Database),
            (DefaultsKey::default(), ValueSource::Global),
        ];
        for (key, source) in levels {
            let Some(texts) = self.catalog.session_defaults.get(&key).cloned() else { continue };
            for text in &*texts {
                let (name, value) = settings::stored::split(text);
                if let Err(refused) = self.apply_default(name, value, source) {
                    self.tell("WARNING", refused);
                }
            }
        }
    }

    fn apply_default(&mut self, name: &str, value: &str, source: ValueSource) -> Result<()> {
        let facts = self.ctx.facts();
        let is_settled = find(name).is_some_and(|at| facts.settings.source(at) > source);
        match &*name.to_ascii_lowercase() {
            "role" if value != "none" => drop(facts.checked_role(value)?),
            "session_authorization" => drop(facts.checked_session_role(value)?),
            _ => return facts.settings.apply(name, value, source),
        }
        if is_settled { Ok(()) } else { facts.settings.apply(name, value, source) }
    }
}

/// Returns the name of a setting as the table writes it.
fn canonical_name(name: &str) -> String {
    find(name).map_or_else(|| name.to_owned(), |at| SETTINGS[at].name.to_owned())
}

/// Returns the values of SET as one text. Names of a list are quoted where they must be.
pub(crate) fn flat(name: &str, values: &[SettingValue]) -> Result<String> {
    let is_list = find(name).is_some_and(|at| SETTINGS[at].kind == Kind::List);
    if values.len() > 1 && !is_list {
        return Err(PgError::new(state::INVALID_PARAMETER_VALUE, format!("SET {name} takes only one argument")));
    }
    let mut text = String::new();
    for value in values {
        if !text.is_empty() {
            text.push_str(", ");
        }
        match value {
            // DateStyle takes words, which need no quotes.
            SettingValue::String(word, _) if is_list && !name.eq_ignore_ascii_case("datestyle") => {
                text.push_str(&quoted(word));
            }
            SettingValue::String(word, _) => text.push_str(word),
            SettingValue::Integer(number, _) => text.push_str(&number.to_string()),
            SettingValue::Float(number, _) => text.push_str(number),
            SettingValue::Interval(_, interval, _) => {
                let hours = interval.split_once(':').and_then(|(hours, minutes)| {
                    let sign = if hours.trim_start().starts_with('-') { -1.0 } else { 1.0 };
                    Some(hours.trim().parse::<f64>().ok()? + sign * minutes.trim().parse::<f64>().ok()? / 60.0)
                });
                let hours = hours.or_else(|| interval.trim().parse().ok());
                let hours = hours.ok_or_else(settings::check::invalid_interval)?;
                text.push_str(&settings::check::zone_of_hours(hours));
            }
        }
    }
    Ok(text)
}

/// Returns a name in quotes unless it can stand without them: `quote_identifier`.
pub fn quoted(name: &str) -> String {
    crate::functions::text::quote::identifier(name)
}

/// Sets the current role, or that of the session, if the session may become it. `None` returns to the one at its start.
pub(super) fn set_role(setting: &str, value: Option<&str>, scope: Scope, facts: &mut SessionState) -> Result<()> {
    let name = match (setting, value) {
        ("role", None) => facts.settings.initial(const { settings::place("role") }).to_owned(),
        ("role", Some("none")) => "none".to_owned(),
        ("role", Some(name)) => facts.checked_role(name)?,
        (_, None) => facts.login.clone(),
        (_, Some(name)) => facts.checked_session_role(name)?,
    };
    let is_begun = facts.in_transaction;
    if setting != "role" {
        facts.settings.set("role", "none", scope, is_begun)?;
    }
    facts.settings.set(setting, &name, scope, is_begun)
}
