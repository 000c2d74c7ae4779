//! The settings of one server: the source of each value, and changes while the server runs.
//!
//! Later sources override earlier ones: default, file, environment, flag, CONFIG SET. Every value is checked by its row of the list (`list.rs`), at the start
//! and at each change (SV-2).

pub mod list;
pub mod load;
pub mod print;
pub mod redis;
#[cfg(test)]
mod tests;
pub mod value;

use std::path::PathBuf;
use std::sync::{Mutex, RwLock};

pub use list::Name;
use value::Value;

use crate::machine::Machine;

/// The source of a value, as `beluga settings` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Default,
    File,
    Environment,
    Flag,
    /// Changed while the server runs.
    Command,
}

type Listener = Box<dyn Fn(Name, &Settings) + Send + Sync>;

pub struct Settings {
    /// One per row of the list, in its order.
    values: RwLock<Vec<(Value, Source)>>,
    listeners: Mutex<Vec<Listener>>,
    pub file: Option<PathBuf>,
}

impl Settings {
    /// Returns the defaults of a machine.
    #[cfg(test)]
    pub fn of(machine: Machine) -> Settings {
        Settings::with_defaults(machine)
    }

    fn with_defaults(machine: Machine) -> Settings {
        let values = list::list().iter().map(|s| (s.default_value(&machine), Source::Default)).collect();
        Settings { values: RwLock::new(values), listeners: Mutex::default(), file: None }
    }

    pub fn number(&self, name: Name) -> u64 {
        self.read(name as usize).0.number()
    }

    pub fn is_on(&self, name: Name) -> bool {
        self.number(name) != 0
    }

    /// Returns the settings that have a name or an alias with this prefix: that name, and the value as a bare number in the unit of the list.
    pub fn numbers(&self, prefix: &str) -> Vec<(&'static str, u64)> {
        let named = list::list().iter().enumerate().filter_map(|(at, setting)| {
            let name = setting.names().find(|name| name.starts_with(prefix))?;
            Some((name, self.read(at).0.number() / setting.kind.unit()))
        });
        named.collect()
    }

    /// Changes the setting with this name while the server runs. Ignores names that are no dynamic settings, which SQL handles itself. `number` must be allowed
    /// by the row and is in the unit of the list.
    pub fn set_number(&self, name: &str, number: u64) {
        let Some(at) = list::find(name).filter(|at| list::list()[*at].dynamic) else { return };
        self.change(at, Value::Number(number * list::list()[at].kind.unit()));
    }

    pub fn text(&self, name: Name) -> String {
        self.read(name as usize).0.text().to_string()
    }

    /// Lowers a value that the machine cannot satisfy. Its source stays as it was.
    pub fn lower(&self, name: Name, number: u64) {
        let (value, source) = self.read(name as usize);
        self.write(name as usize, Value::Number(value.number().min(number)), source);
    }

    fn read(&self, at: usize) -> (Value, Source) {
        self.values.read().unwrap_or_else(|e| e.into_inner())[at].clone()
    }

    fn write(&self, at: usize, value: Value, source: Source) {
        self.values.write().unwrap_or_else(|e| e.into_inner())[at] = (value, source);
    }

    /// Registers a function that is called after each change of a running server, in the thread that makes the change.
    pub fn on_change(&self, listener: Listener) {
        self.listeners.lock().unwrap_or_else(|e| e.into_inner()).push(listener);
    }

    /// Changes a value while the server runs and calls the listeners.
    fn change(&self, at: usize, value: Value) {
        self.write(at, value, Source::Command);
        let name = list::NAMES[at];
        self.listeners.lock().unwrap_or_else(|e| e.into_inner()).iter().for_each(|l| l(name, self));
    }
}
