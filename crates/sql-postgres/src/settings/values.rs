//! The values of one session's settings, which follow its transactions.
//!
//! A change inside a transaction is recorded with the value before it, so that ROLLBACK and ROLLBACK TO restore it. A setting has two values then: the one in force, and the one that COMMIT keeps, which SET LOCAL leaves alone.

use std::collections::BTreeMap;

use crate::error::{PgError, Result, state};
use crate::settings::{Effect, SETTINGS, Setting, check, find, refusal, shown, unknown};

/// The origin of a value, as `pg_settings` names it. A later one overrides those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueSource {
    #[default]
    Default,
    /// The server's own settings.
    ConfigurationFile,
    /// ALTER ROLE ALL SET.
    Global,
    /// ALTER DATABASE SET.
    Database,
    /// ALTER ROLE SET.
    User,
    /// ALTER ROLE IN DATABASE SET.
    DatabaseUser,
    /// The options of the login.
    Client,
    /// The server, whatever other origins say.
    Override,
    Session,
}

impl ValueSource {
    pub fn name(self) -> &'static str {
        match self {
            ValueSource::Default => "default",
            ValueSource::ConfigurationFile => "configuration file",
            ValueSource::Global => "global",
            ValueSource::Database => "database",
            ValueSource::User => "user",
            ValueSource::DatabaseUser => "database user",
            ValueSource::Client => "client",
            ValueSource::Override => "override",
            ValueSource::Session => "session",
        }
    }
}

/// The value of a setting: that in force, and that which remains after COMMIT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SettingState {
    now: Box<str>,
    kept: Box<str>,
    now_from: ValueSource,
    kept_from: ValueSource,
}

impl SettingState {
    fn new(value: &str, from: ValueSource) -> SettingState {
        SettingState { now: value.into(), kept: value.into(), now_from: from, kept_from: from }
    }
}

/// A value to which RESET returns.
#[derive(Clone, Debug)]
struct Initial {
    value: Box<str>,
    from: ValueSource,
}

/// A setting of the table, or one whose name has a dot.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    Known(usize),
    Custom(Box<str>),
}

#[derive(Clone, Debug)]
struct Change {
    which: Which,
    /// `None`: the setting did not exist.
    before: Option<SettingState>,
}

/// A position in the changes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(usize);

#[derive(Debug)]
pub struct Values {
    known: Vec<SettingState>,
    custom: BTreeMap<Box<str>, SettingState>,
    /// The values at the start of the session, for RESET.
    initial: Vec<Initial>,
    /// Those of settings whose names have a dot; without one RESET returns to an empty text.
    custom_initial: BTreeMap<Box<str>, Box<str>>,
    changes: Vec<Change>,
    /// Grows with every change.
    version: u64,
    /// Reported settings that have changed since the client was told.
    unreported: Vec<usize>,
}

/// The scope of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Session,
    /// Until the end of the transaction.
    Local,
}

impl Values {
    pub fn new() -> Values {
        let from = ValueSource::Default;
        let initial = SETTINGS.iter().map(|setting| Initial { value: setting.default.into(), from }).collect();
        let known = SETTINGS.iter().map(|setting| SettingState::new(setting.default, from)).collect();
        let (custom, custom_initial) = (BTreeMap::new(), BTreeMap::new());
        let (changes, unreported) = (Vec::new(), Vec::new());
        Values { known, custom, initial, custom_initial, changes, version: 1, unreported }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the canonical value of a setting of the table. Panics for another name.
    pub fn get(&self, name: &str) -> &str {
        let at = find(name).unwrap_or_else(|| panic!("{name} is in the table of settings"));
        &self.known[at].now
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == "on"
    }

    /// Returns the value of a numeric setting in base units.
    pub fn number(&self, name: &str) -> i64 {
        self.get(name).parse().unwrap_or(0)
    }

    /// Returns the value at a place of the table.
    pub fn at(&self, at: usize) -> &str {
        &self.known[at].now
    }

    /// Returns the value to which RESET returns the setting at a place.
    pub fn initial(&self, at: usize) -> &str {
        &self.initial[at].value
    }

    /// Returns the origin of the value at a place.
    pub fn source(&self, at: usize) -> ValueSource {
        self.known[at].now_from
    }

    /// Returns a setting as SHOW gives it; `None` for an unknown one.
    pub fn show(&self, name: &str) -> Option<String> {
        match find(name) {
            Some(at) => Some(shown(&SETTINGS[at], &self.known[at].now)),
            None => self.custom.get(&*name.to_ascii_lowercase()).map(|place| place.now.to_string()),
        }
    }

    /// Sets a setting from text. `is_begun` says whether a transaction records the change.
    pub fn set(&mut self, name: &str, text: &str, scope: Scope, is_begun: bool) -> Result<()> {
        let Some(at) = find(name) else {
            return self.set_custom(name, text, scope, is_begun);
        };
        let setting = &SETTINGS[at];
        if let Some(refused) = refusal(setting) {
            return Err(refused);
        }
        let value = self.canonical(at, text)?;
        self.put(at, (value, ValueSource::Session), scope, is_begun);
        Ok(())
    }

    /// Applies a setting from an origin at the start of a session, unless it has a value from a later one. The value must fit all the same.
    pub fn apply(&mut self, name: &str, text: &str, from: ValueSource) -> Result<()> {
        let Some(at) = find(name) else {
            check_custom_name(name)?;
            let name: Box<str> = name.to_ascii_lowercase().into();
            if self.custom.get(&name).is_none_or(|place| place.now_from <= from) {
                self.custom.insert(name, SettingState::new(text, from));
            }
            return Ok(());
        };
        if let Some(refused) = refusal(&SETTINGS[at]) {
            return Err(refused);
        }
        let value = self.canonical(at, text)?;
        if self.known[at].now_from <= from {
            self.put(at, (value, from), Scope::Session, false);
        }
        Ok(())
    }

    /// Notes the origin of a value that is in force at the start of a session.
    pub fn attribute(&mut self, name: &str, from: ValueSource) {
        let place = match find(name) {
            Some(at) => Some(&mut self.known[at]),
            None => self.custom.get_mut(&*name.to_ascii_lowercase()),
        };
        if let Some(place) = place {
            (place.now_from, place.kept_from) = (from, from);
        }
    }

    /// Fails for a text that the setting at a place does not take.
    pub fn check(&self, at: usize, text: &str) -> Result<()> {
        self.canonical(at, text).map(drop)
    }

    fn canonical(&self, at: usize, text: &str) -> Result<Box<str>> {
        let setting = &SETTINGS[at];
        match setting.name {
            "DateStyle" => Ok(check::date_style_from(&self.known[at].now, text)?.into()),
            _ => super::canonical(setting, text),
        }
    }

    /// Sets a setting of the table to a canonical value.
    pub fn put(&mut self, at: usize, (value, from): (Box<str>, ValueSource), scope: Scope, is_begun: bool) {
        let place = &mut self.known[at];
        let is_same = place.now == value && (scope == Scope::Local || place.kept == value);
        if is_same && place.now_from == from && (scope == Scope::Local || place.kept_from == from) {
            return;
        }
        if is_begun {
            self.changes.push(Change { which: Which::Known(at), before: Some(place.clone()) });
        }
        if scope == Scope::Session {
            (place.kept, place.kept_from) = (value.clone(), from);
        }
        (place.now, place.now_from) = (value, from);
        if !is_same {
            self.note(at);
        }
    }

    fn note(&mut self, at: usize) {
        self.version += 1;
        if SETTINGS[at].is_reported && !self.unreported.contains(&at) {
            self.unreported.push(at);
        }
    }

    fn set_custom(&mut self, name: &str, text: &str, scope: Scope, is_begun: bool) -> Result<()> {
        check_custom_name(name)?;
        let name: Box<str> = name.to_ascii_lowercase().into();
        let before = self.custom.get(&name).cloned();
        let kept = match scope {
            Scope::Session => text.into(),
            Scope::Local => before.as_ref().map(|place| place.kept.clone()).unwrap_or_default(),
        };
        if is_begun {
            self.changes.push(Change { which: Which::Custom(name.clone()), before });
        }
        self.custom
            .insert(name, SettingState { now: text.into(), kept, ..SettingState::new("", ValueSource::Session) });
        self.version += 1;
        Ok(())
    }

    /// Returns a setting to its value at the start of the session.
    pub fn reset(&mut self, name: &str, scope: Scope, is_begun: bool) -> Result<()> {
        match find(name) {
            Some(at) => match refusal(&SETTINGS[at]) {
                Some(refused) => Err(refused),
                None => {
                    let Initial { value, from } = self.initial[at].clone();
                    self.put(at, (value, from), scope, is_begun);
                    Ok(())
                }
            },
            None => {
                let lower = name.to_ascii_lowercase();
                if !self.custom.contains_key(&*lower) {
                    return Err(unknown(name));
                }
                let initial = self.custom_initial.get(&*lower).cloned().unwrap_or_default();
                self.set_custom(name, &initial, scope, is_begun)
            }
        }
    }

    pub fn reset_all(&mut self, is_begun: bool) {
        for (at, setting) in SETTINGS.iter().enumerate() {
            let is_apart = setting.name.starts_with("transaction_") || setting.is_hidden();
            if setting.effect != Effect::Fixed && !is_apart {
                let Initial { value, from } = self.initial[at].clone();
                self.put(at, (value, from), Scope::Session, is_begun);
            }
        }
        let names: Vec<Box<str>> = self.custom.keys().cloned().collect();
        for name in names {
            let _ = self.reset(&name, Scope::Session, is_begun);
        }
    }

    /// Makes the present values those to which RESET returns, after the options of the login. All reported settings are to be reported.
    pub fn begin_session(&mut self) {
        let initial = |place: &SettingState| Initial { value: place.now.clone(), from: place.now_from };
        self.initial = self.known.iter().map(initial).collect();
        self.custom_initial = self.custom.iter().map(|(name, place)| (name.clone(), place.now.clone())).collect();
        self.changes.clear();
        self.unreported = (0..SETTINGS.len()).filter(|at| SETTINGS[*at].is_reported).collect();
    }

    /// Sets what the case is, beyond SET and transactions.
    pub fn describe(&mut self, name: &str, value: &str) {
        let Some(at) = find(name).filter(|at| &*self.known[*at].now != value) else { return };
        self.known[at] = SettingState::new(value, self.known[at].now_from);
        self.initial[at].value = value.into();
        self.note(at);
    }

    /// Sets what the server is, beyond SET: `max_connections` and the like.
    pub fn describe_server(&mut self, name: &str, value: &str) {
        if let Some(at) = find(name) {
            let from =
                if value == SETTINGS[at].default { ValueSource::Default } else { ValueSource::ConfigurationFile };
            self.known[at] = SettingState::new(value, from);
            self.initial[at] = Initial { value: value.into(), from };
        }
    }

    /// Returns the position to which `undo_to` goes back.
    pub fn mark(&self) -> Mark {
        Mark(self.changes.len())
    }

    /// Undoes the changes since a position.
    pub fn undo_to(&mut self, mark: Mark) {
        while self.changes.len() > mark.0 {
            let Some(Change { which, before }) = self.changes.pop() else { break };
            self.restore(which, before);
        }
    }

    fn restore(&mut self, which: Which, before: Option<SettingState>) {
        match (which, before) {
            (Which::Known(at), Some(before)) => {
                self.known[at] = before;
                self.note(at);
            }
            (Which::Custom(name), Some(before)) => drop(self.custom.insert(name, before)),
            (Which::Custom(name), None) => drop(self.custom.remove(&name)),
            (Which::Known(_), None) => unreachable!("a setting of the table has a value"),
        }
        self.version += 1;
    }

    /// Ends the transaction: its changes hold, but for those of SET LOCAL.
    pub fn commit(&mut self) {
        for Change { which, .. } in std::mem::take(&mut self.changes) {
            match which {
                Which::Known(at) => {
                    let place = &mut self.known[at];
                    place.now_from = place.kept_from;
                    if place.now != place.kept {
                        place.now = place.kept.clone();
                        self.note(at);
                    }
                }
                Which::Custom(name) => {
                    if let Some(place) = self.custom.get_mut(&name) {
                        place.now = place.kept.clone();
                    }
                }
            }
        }
    }

    /// Undoes all changes of the transaction.
    pub fn roll_back(&mut self) {
        self.undo_to(Mark(0));
    }

    /// Returns the reported settings that have changed since the last call.
    pub fn take_reports(&mut self) -> Vec<(&'static str, String)> {
        let changed = std::mem::take(&mut self.unreported);
        changed.into_iter().map(|at| (SETTINGS[at].name, self.known[at].now.to_string())).collect()
    }

    /// Iterates over the settings as SHOW ALL lists them.
    pub fn all(&self) -> impl Iterator<Item = (&'static Setting, String)> {
        let all = SETTINGS.iter().enumerate().filter(|(_, setting)| !setting.is_hidden());
        all.map(|(at, setting)| (setting, shown(setting, &self.known[at].now)))
    }
}

/// Fails for a name that a client cannot give to a setting of its own.
pub fn check_custom_name(name: &str) -> Result<()> {
    if !name.contains('.') {
        return Err(unknown(name));
    }
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
    };
    if name.split('.').all(is_word) {
        return Ok(());
    }
    let error = PgError::new(state::INVALID_NAME, format!("invalid configuration parameter name \"{name}\""));
    Err(error.detail("Custom parameter names must be two or more simple identifiers separated by dots."))
}

impl Default for Values {
    fn default() -> Values {
        Values::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(values: &Values) -> String {
        values.get("application_name").to_owned()
    }

    fn set(values: &mut Values, text: &str, scope: Scope) {
        values.set("application_name", text, scope, true).unwrap();
    }

    #[test]
    fn a_transaction_keeps_what_set_changed_and_not_what_set_local_did() {
        let mut values = Values::new();
        set(&mut values, "a", Scope::Session);
        let mark = values.mark();
        set(&mut values, "b", Scope::Session);
        set(&mut values, "c", Scope::Local);
        values.undo_to(mark);
        assert_eq!(named(&values), "a");
        set(&mut values, "d", Scope::Local);
        assert_eq!(named(&values), "d");
        values.commit();
        assert_eq!(named(&values), "a");
        set(&mut values, "d", Scope::Local);
        set(&mut values, "e", Scope::Session);
        values.commit();
        assert_eq!(named(&values), "e");
        set(&mut values, "x", Scope::Session);
        values.roll_back();
        assert_eq!(named(&values), "e");
        assert_eq!(values.take_reports(), [("application_name", "e".to_owned())]);
        assert!(values.take_reports().is_empty());
    }

    #[test]
    fn names_with_a_dot_are_the_clients_own() {
        let mut values = Values::new();
        values.set("My.x", "1", Scope::Session, false).unwrap();
        assert_eq!(values.show("my.X").as_deref(), Some("1"));
        assert_eq!(values.set("nope", "1", Scope::Session, false).unwrap_err().state, "42704");
        assert_eq!(values.set("deadlock_timeout", "1s", Scope::Session, false).unwrap_err().state, "0A000");
        values.set("my.y", "5", Scope::Local, true).unwrap();
        values.roll_back();
        assert_eq!(values.show("my.y"), None);
    }

    #[test]
    fn reset_goes_back_to_the_value_of_the_login() {
        let mut values = Values::new();
        values.set("extra_float_digits", "2", Scope::Session, false).unwrap();
        values.begin_session();
        values.set("extra_float_digits", "3", Scope::Session, false).unwrap();
        values.reset("EXTRA_FLOAT_DIGITS", Scope::Session, false).unwrap();
        assert_eq!(values.get("extra_float_digits"), "2");
        assert_eq!(values.reset("server_version", Scope::Session, false).unwrap_err().state, "55P02");
    }
}
