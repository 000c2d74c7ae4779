//! The globals that a script sees: Lua's own without those that leave the sandbox, and the libraries, all of them protected from changes.
//!
//! Lua 5.1 has no read-only tables. A protected table is an empty one whose metatable shows the real table and refuses changes. `rawset`, `rawget`, `setmetatable` and `pairs` know these tables; what a script nevertheless puts into one (with
//! `table.insert`) is removed before the next run (RL-1). There is no way to a real table: not by `getmetatable`, nor as the metatable of texts. The globals themselves are such a table.

use std::cell::RefCell;
use std::ffi::c_void;
use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaString, MultiValue, Result, Table, Value};

use crate::arguments::Arguments;
use crate::frame::Frame;
use crate::json::Settings;
use crate::library::add;
use crate::raise::{bad_argument, raise_bytes, raise_text, thrown, wrong_type};
use crate::random::Random;
use crate::{bits, json, msgpack, packing, patterns};

/// Names of Lua's own globals that scripts see.
const BUILTINS: &[&str] = &[
    "_VERSION",
    "assert",
    "error",
    "gcinfo",
    "getmetatable",
    "ipairs",
    "next",
    "rawequal",
    "select",
    "tonumber",
    "tostring",
    "type",
];

/// The message of every attempt to change what is protected.
const READONLY: &str = "Attempt to modify a readonly table";

/// The name of the source of the functions that are written in Lua.
const PRELUDE: &str = "=redis";

/// A table that scripts see, and the real one.
struct Protected {
    shown: Table,
    real: Table,
    /// The address of the table that scripts see.
    address: *const c_void,
}

/// The protected tables of a state.
#[derive(Default)]
pub struct Sandbox {
    tables: RefCell<Vec<Protected>>,
}

impl Sandbox {
    fn real(&self, table: &Table) -> Option<Table> {
        let address = table.to_pointer();
        self.tables.borrow().iter().find(|one| one.address == address).map(|one| one.real.clone())
    }

    /// Returns a table that shows `real` and refuses changes.
    pub fn protect(&self, lua: &Lua, real: &Table) -> Result<Table> {
        let shown = lua.create_table()?;
        let metatable = lua.create_table()?;
        metatable.raw_set("__index", real)?;
        metatable.raw_set(
            "__newindex",
            lua.create_function(|lua, _: MultiValue| Err::<(), _>(raise_text(lua, READONLY)))?,
        )?;
        metatable.raw_set("__metatable", false)?;
        shown.set_metatable(Some(metatable))?;
        let address = shown.to_pointer();
        self.tables.borrow_mut().push(Protected { shown: shown.clone(), real: real.clone(), address });
        Ok(shown)
    }

    /// Removes what a run has put into protected tables.
    pub fn clean(&self) -> Result<()> {
        for one in &*self.tables.borrow() {
            if !one.shown.is_empty() {
                one.shown.clear()?;
            }
        }
        Ok(())
    }
}

/// The tables and functions that the sandbox gives to the code that runs scripts.
pub struct Globals {
    /// The real table of globals.
    pub real: Table,
    /// The metatable of what scripts see as their globals.
    metatable: Table,
    /// The globals that the code of a library sees while it is loaded.
    while_loading: Table,
    /// `run(f, handler, ...)` calls `f` under `xpcall`.
    pub run: Function,
}

impl Globals {
    /// Shows other globals: those of a library that is loaded, with this `redis`.
    pub fn begin_loading(&self, redis: &Table) -> Result<()> {
        self.while_loading.raw_set("redis", redis)?;
        self.metatable.raw_set("__index", &self.while_loading)
    }

    /// Shows the globals of scripts again.
    pub fn end_loading(&self) -> Result<()> {
        self.metatable.raw_set("__index", &self.real)
    }
}

/// Gives the state its globals, `redis` excepted.
pub fn build(
    lua: &Lua,
    sandbox: &Rc<Sandbox>,
    frame: &Rc<Frame>,
    json_settings: &Settings,
    random: &Rc<Random>,
) -> Result<Globals> {
    let native = lua.globals();
    let real = lua.create_table()?;
    for name in BUILTINS {
        real.raw_set(*name, native.raw_get::<Value>(*name)?)?;
    }
    let prelude = add_prelude(lua, &native, &real)?;
    add_raw_access(lua, sandbox, &native, &real)?;
    let strings: Table = native.raw_get("string")?;
    patterns::replace_in(lua, &strings, frame, &prelude.raw_get("protected")?)?;
    let math: Table = native.raw_get("math")?;
    random.replace_in(lua, &math)?;
    let coroutines: Table = native.raw_get("coroutine")?;
    coroutines.raw_set("resume", prelude.raw_get::<Function>("resume")?)?;
    let libraries = [
        ("string", strings.clone()),
        ("math", math),
        ("table", native.raw_get("table")?),
        ("coroutine", coroutines),
        ("bit", bits::library(lua)?),
        ("cjson", json::library(lua, json_settings)?),
        ("cmsgpack", msgpack::library(lua)?),
        ("struct", packing::library(lua)?),
    ];
    for (name, library) in libraries {
        real.raw_set(name, sandbox.protect(lua, &library)?)?;
    }
    if let Some(metatable) = lua.type_metatable::<LuaString>() {
        metatable.raw_set("__metatable", false)?;
    }
    let while_loading = lua.create_table()?;
    refuse_missing(lua, &real)?;
    refuse_missing(lua, &while_loading)?;
    let shown = sandbox.protect(lua, &real)?;
    real.raw_set("_G", &shown)?;
    let metatable = shown.metatable().unwrap_or_else(|| unreachable!("protected tables have one"));
    lua.set_globals(shown)?;
    Ok(Globals { real, metatable, while_loading, run: prelude.raw_get("run")? })
}

/// Makes the access to a field that a table does not have an error.
pub fn refuse_missing(lua: &Lua, table: &Table) -> Result<()> {
    let missing = lua.create_table()?;
    missing.raw_set("__index", lua.create_function(missing_global)?)?;
    table.set_metatable(Some(missing))
}

fn missing_global(lua: &Lua, args: MultiValue) -> Result<()> {
    let args = Arguments::new(lua, args);
    let name = match args.value(2) {
        Value::String(name) => name.to_string_lossy(),
        number @ (Value::Integer(_) | Value::Number(_)) => number.to_string()?,
        _ => return Err(raise_text(lua, "Second argument to luaProtectedTableError must be a string or number")),
    };
    Err(raise_text(lua, &format!("Script attempted to access nonexistent global variable '{name}'")))
}

/// Adds the functions that are written in Lua. Returns all that the prelude made.
fn add_prelude(lua: &Lua, native: &Table, real: &Table) -> Result<Table> {
    let compile = lua.create_function(compile)?;
    let thrown = lua.create_function(|lua, value: Value| Ok(thrown(lua, value)))?;
    let inner = |library: &str, name: &str| native.raw_get::<Table>(library)?.raw_get::<Value>(name);
    let prelude: Table = lua.load(include_str!("prelude.lua")).set_name(PRELUDE).call((
        native.raw_get::<Value>("pcall")?,
        native.raw_get::<Value>("xpcall")?,
        inner("coroutine", "resume")?,
        thrown,
        native.raw_get::<Value>("collectgarbage")?,
        compile.clone(),
        inner("table", "concat")?,
    ))?;
    for name in ["pcall", "xpcall", "collectgarbage", "load", "unpack"] {
        real.raw_set(name, prelude.raw_get::<Value>(name)?)?;
    }
    real.raw_set("loadstring", compile)?;
    Ok(prelude)
}

/// Serves `loadstring`. Compiled code is refused: the interpreter does not check it.
fn compile(lua: &Lua, args: MultiValue) -> Result<(Value, Value)> {
    let args = Arguments::new(lua, args);
    let text = args.string(1)?;
    let name = if args.is_none_or_nil(2) { text.clone() } else { args.string(2)? };
    let name =
        String::from_utf8_lossy(name.as_bytes().split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    match compiled(lua, &text.as_bytes(), &name) {
        Ok(function) => Ok((Value::Function(function), Value::Nil)),
        Err(text) => Ok((Value::Nil, Value::String(lua.create_string(text)?))),
    }
}

/// Compiles source text. Returns Lua's message if it is none.
pub fn compiled(lua: &Lua, text: &[u8], name: &str) -> std::result::Result<Function, String> {
    if text.first() == Some(&0x1b) {
        return Err("compiled code cannot be loaded".to_owned());
    }
    match lua.load(text).set_name(name).set_mode(ChunkMode::Text).into_function() {
        Ok(function) => Ok(function),
        Err(mlua::Error::SyntaxError { message, .. }) => Err(message),
        Err(mlua::Error::MemoryError(_)) => Err("not enough memory".to_owned()),
        Err(other) => Err(other.to_string()),
    }
}

/// Adds the functions that go around metatables, and that therefore have to know protected tables.
fn add_raw_access(lua: &Lua, sandbox: &Rc<Sandbox>, native: &Table, real: &Table) -> Result<()> {
    let own = sandbox.clone();
    add(lua, real, "rawset", move |args| {
        let table = args.table(1)?;
        if args.len() < 3 {
            return Err(bad_argument(args.lua, args.len() + 1, "value expected"));
        }
        if own.real(&table).is_some() {
            return Err(raise_bytes(args.lua, READONLY.as_bytes()));
        }
        match args.value(2) {
            Value::Nil => return Err(raise_bytes(args.lua, b"table index is nil")),
            Value::Number(number) if number.is_nan() => return Err(raise_bytes(args.lua, b"table index is NaN")),
            key => table.raw_set(key, args.value(3))?,
        }
        Ok(table)
    })?;
    let own = sandbox.clone();
    add(lua, real, "rawget", move |args| {
        let table = args.table(1)?;
        if args.len() < 2 {
            return Err(bad_argument(args.lua, 2, "value expected"));
        }
        own.real(&table).unwrap_or(table).raw_get::<Value>(args.value(2))
    })?;
    let (own, set) = (sandbox.clone(), native.raw_get::<Function>("setmetatable")?);
    add(lua, real, "setmetatable", move |args| {
        let table = args.table(1)?;
        let metatable = match args.get(2) {
            Some(Value::Nil) => None,
            Some(Value::Table(metatable)) => Some(metatable.clone()),
            _ => return Err(bad_argument(args.lua, 2, "nil or table expected")),
        };
        if own.real(&table).is_some() {
            return Err(raise_bytes(args.lua, READONLY.as_bytes()));
        }
        if let Some(old) = table.metatable()
            && !old.raw_get::<Value>("__metatable")?.is_nil()
        {
            return Err(raise_text(args.lua, "cannot change a protected metatable"));
        }
        set.call::<Table>((table, metatable))
    })?;
    let (own, next) = (sandbox.clone(), native.raw_get::<Function>("next")?);
    add(lua, real, "pairs", move |args| {
        let Some(Value::Table(table)) = args.get(1) else {
            return Err(wrong_type(args.lua, 1, "table", args.get(1)));
        };
        let Some(real) = own.real(table) else {
            return Ok((next.clone(), table.clone()));
        };
        let next = next.clone();
        let walk = args
            .lua
            .create_function(move |_, (_, key): (Value, Value)| next.call::<MultiValue>((real.clone(), key)))?;
        Ok((walk, table.clone()))
    })
}

/// Levels of the stack among which the handler looks for a function of Lua.
const LEVELS: usize = 4;

/// Returns the handler of errors of a run. It makes every error a table with its source and line.
pub fn error_handler(lua: &Lua) -> Result<Function> {
    lua.create_function(|lua, value: Value| {
        // The innermost function of the script has failed, or has called the one in Rust, C or the prelude that has.
        let at = |level: usize| {
            lua.inspect_stack(level, |frame| {
                let source = frame.source();
                let name = source.source.map(|name| name.into_owned()).unwrap_or_default();
                (source.what == "C" || name == PRELUDE, name, frame.current_line().map_or(-1, |line| line as i64))
            })
        };
        let found = (1..=LEVELS).find_map(|level| at(level).filter(|(is_own, ..)| !is_own)).or_else(|| at(1));
        let table = match thrown(lua, value) {
            Value::Table(table) => table,
            other => {
                let text = match &other {
                    Value::String(text) => text.as_bytes().to_vec(),
                    Value::Nil => b"nil".to_vec(),
                    other => other.to_string()?.into_bytes(),
                };
                let table = lua.create_table()?;
                table.raw_set("err", lua.create_string([b"ERR ", text.as_slice()].concat())?)?;
                table
            }
        };
        if let Some((_, source, line)) = found {
            table.raw_set("source", source)?;
            table.raw_set("line", line)?;
        }
        Ok(table)
    })
}
