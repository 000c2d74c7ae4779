//! Arguments of functions in Rust, converted and refused as Lua's own library does.

use mlua::{Lua, LuaString, MultiValue, Result, Table, Value};

use crate::number_text;
use crate::raise::{bad_argument, wrong_type};

/// The arguments of one call.
pub struct Arguments<'l> {
    pub lua: &'l Lua,
    values: MultiValue,
}

impl<'l> Arguments<'l> {
    pub fn new(lua: &'l Lua, values: MultiValue) -> Arguments<'l> {
        Arguments { lua, values }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns an argument. The first has the number 1.
    pub fn get(&self, number: usize) -> Option<&Value> {
        self.values.get(number - 1)
    }

    /// Returns an argument, nil if there is none.
    pub fn value(&self, number: usize) -> Value {
        self.get(number).cloned().unwrap_or(Value::Nil)
    }

    pub fn is_none_or_nil(&self, number: usize) -> bool {
        self.get(number).is_none_or(Value::is_nil)
    }

    /// Returns a string. A number counts as its text.
    pub fn string(&self, number: usize) -> Result<LuaString> {
        match self.get(number) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Integer(_) | Value::Number(_)) => {
                let value = self.number(number)?;
                self.lua.create_string(number_text::lua(value))
            }
            other => Err(wrong_type(self.lua, number, "string", other)),
        }
    }

    /// Returns a number. A string that is one counts.
    pub fn number(&self, number: usize) -> Result<f64> {
        let value = self.get(number);
        value.and_then(as_number).ok_or_else(|| wrong_type(self.lua, number, "number", value))
    }

    pub fn integer(&self, number: usize) -> Result<i64> {
        self.number(number).map(|value| value as i64)
    }

    pub fn integer_or(&self, number: usize, default: i64) -> Result<i64> {
        if self.is_none_or_nil(number) { Ok(default) } else { self.integer(number) }
    }

    pub fn table(&self, number: usize) -> Result<Table> {
        match self.get(number) {
            Some(Value::Table(table)) => Ok(table.clone()),
            other => Err(wrong_type(self.lua, number, "table", other)),
        }
    }

    /// Refuses an argument unless a condition holds.
    pub fn check(&self, is_good: bool, number: usize, what: &str) -> Result<()> {
        if is_good { Ok(()) } else { Err(bad_argument(self.lua, number, what)) }
    }
}

/// Returns a value as a number, as Lua coerces it.
pub fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        Value::String(text) => number_text::parse(&text.as_bytes()),
        _ => None,
    }
}
