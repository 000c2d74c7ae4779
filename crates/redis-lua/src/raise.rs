//! Errors between Rust and Lua. A Lua error is any value, in Redis mostly a string or a table `{err = ...}`; `mlua::Error` carries neither through Rust.
//!
//! A function in Rust returns `raise(value)` as its error. It crosses Lua as a userdata, and `thrown` gives the value back wherever a script can see an error: in `pcall`, `xpcall` and `coroutine.resume`, and at the end of the run.

use std::fmt;

use mlua::{Error, Lua, Table, Value};

/// The error value of a Lua error that began in Rust.
#[derive(Debug)]
struct Raised(Value);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a Lua error")
    }
}

impl std::error::Error for Raised {}

/// Returns the error that raises `value` in Lua.
pub fn raise(value: Value) -> Error {
    Error::external(Raised(value))
}

/// Returns the error that raises a text behind the position of the caller, as `luaL_error` does.
pub fn raise_text(lua: &Lua, text: &str) -> Error {
    raise_bytes(lua, &[position(lua, 1).as_bytes(), text.as_bytes()].concat())
}

/// Returns the error that raises a text without a position.
pub fn raise_bytes(lua: &Lua, text: &[u8]) -> Error {
    match lua.create_string(text) {
        Ok(text) => raise(Value::String(text)),
        Err(error) => error,
    }
}

/// Returns the error of a bad argument, as `luaL_argerror` words it. The first argument has the number 1.
pub fn bad_argument(lua: &Lua, number: usize, what: &str) -> Error {
    let called = lua.inspect_stack(0, |frame| {
        let names = frame.names();
        (names.name.map(|name| name.into_owned()), names.name_what)
    });
    let (name, kind) = called.unwrap_or_default();
    let name = name.unwrap_or_else(|| "?".to_owned());
    if kind == Some("method") {
        return match number {
            1 => raise_text(lua, &format!("calling '{name}' on bad self ({what})")),
            _ => raise_text(lua, &format!("bad argument #{} to '{name}' ({what})", number - 1)),
        };
    }
    raise_text(lua, &format!("bad argument #{number} to '{name}' ({what})"))
}

/// Returns the error of an argument of the wrong type.
pub fn wrong_type(lua: &Lua, number: usize, expected: &str, got: Option<&Value>) -> Error {
    bad_argument(lua, number, &format!("{expected} expected, got {}", got.map_or("no value", type_name)))
}

/// Returns `script:line: ` of the function at a level of the stack, or nothing if it is not in Lua.
pub fn position(lua: &Lua, level: usize) -> String {
    let at = lua.inspect_stack(level, |frame| Some((frame.source().short_src?.into_owned(), frame.current_line()?)));
    at.flatten().map_or_else(String::new, |(source, line)| format!("{source}:{line}: "))
}

/// Returns the name of a value's type in Lua.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

/// Returns the value that was raised, if the error value is one that has crossed from Rust.
pub fn thrown(lua: &Lua, value: Value) -> Value {
    let Value::Error(error) = value else { return value };
    match raised_in(&error) {
        Some(value) => value.clone(),
        None => lua.create_string(text_of(&error)).map_or(Value::Nil, Value::String),
    }
}

/// Returns the value inside of an error that a call from Rust into Lua gave.
pub fn thrown_by(lua: &Lua, error: &Error) -> Value {
    thrown(lua, Value::Error(Box::new(error.clone())))
}

fn raised_in(error: &Error) -> Option<&Value> {
    match error {
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => raised_in(cause),
        Error::ExternalError(inner) => inner.downcast_ref::<Raised>().map(|raised| &raised.0),
        _ => None,
    }
}

fn text_of(error: &Error) -> String {
    match error {
        Error::RuntimeError(text) | Error::SyntaxError { message: text, .. } => text.clone(),
        Error::MemoryError(_) => "not enough memory".to_owned(),
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => text_of(cause),
        other => other.to_string(),
    }
}

/// Returns the table of an error, as `redis.pcall` returns it. A text that begins with `-` has its own code; for any other the code is ERR.
pub fn error_table(lua: &Lua, text: &[u8]) -> mlua::Result<Table> {
    let (code, rest): (&[u8], &[u8]) = match text {
        [b'-', coded @ ..] => match coded.iter().position(|byte| *byte == b' ') {
            Some(blank) => (&coded[..blank], &coded[blank + 1..]),
            None => (b"ERR", coded),
        },
        _ => (b"ERR", text),
    };
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let from = rest.iter().position(|byte| !is_end(byte)).unwrap_or(rest.len());
    let to = rest.iter().rposition(|byte| !is_end(byte)).map_or(from, |last| last + 1);
    let table = lua.create_table()?;
    table.raw_set("err", lua.create_string([code, b" ", &rest[from..to]].concat())?)?;
    Ok(table)
}

/// Returns the error that raises such a table.
pub fn raise_table(lua: &Lua, text: &str) -> Error {
    match error_table(lua, text.as_bytes()) {
        Ok(table) => raise(Value::Table(table)),
        Err(error) => error,
    }
}

/// Returns the error of a text that is too large for the state.
pub fn too_large(lua: &Lua) -> mlua::Error {
    raise_bytes(lua, b"not enough memory")
}
