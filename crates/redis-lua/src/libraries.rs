//! Libraries of functions: code that registers functions when it is loaded.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use mlua::{Function, Lua, Table, Value};

use crate::arguments::Arguments;
use crate::library::add;
use crate::raise::raise_table;
use crate::sandbox::{self, Sandbox};

/// A function that a library registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    pub name: String,
    pub description: Option<String>,
    /// In lower case, each one of `FLAGS`.
    pub flags: Vec<String>,
}

/// The flags of functions and scripts.
pub const FLAGS: &[&str] = &["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

/// A library as a state has loaded it.
pub struct Loaded {
    /// Changes whenever a library of the name is replaced.
    pub id: u64,
    pub functions: HashMap<String, Function>,
}

/// The functions that a library has registered, by name.
pub type Collected = BTreeMap<String, (Registered, Function)>;

/// The library that is loaded now.
#[derive(Default)]
pub struct Loading {
    pub collected: RefCell<Option<Collected>>,
    /// The table `redis` of code that is loaded.
    pub api: RefCell<Option<Table>>,
}

impl Loading {
    /// Makes the table `redis` that the code of a library sees while it is loaded: it registers functions, logs, and knows the version.
    pub fn make_api(self: &Rc<Loading>, lua: &Lua, sandbox: &Sandbox, redis: &Table) -> mlua::Result<()> {
        let api = lua.create_table()?;
        for name in
            ["log", "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING", "REDIS_VERSION", "REDIS_VERSION_NUM"]
        {
            api.raw_set(name, redis.raw_get::<Value>(name)?)?;
        }
        let own = self.clone();
        add(lua, &api, "register_function", move |args| own.register(args))?;
        sandbox::refuse_missing(lua, &api)?;
        *self.api.borrow_mut() = Some(sandbox.protect(lua, &api)?);
        Ok(())
    }

    fn register(&self, args: &Arguments<'_>) -> mlua::Result<()> {
        let lua = args.lua;
        let mut loading = self.collected.borrow_mut();
        let Some(collected) = &mut *loading else {
            return Err(raise_table(lua, "redis.register_function can only be called on FUNCTION LOAD command"));
        };
        let (registered, function) = read_registration(args).map_err(|text| raise_table(lua, &text))?;
        if !is_valid_name(&registered.name) {
            return Err(raise_table(lua, BAD_NAME));
        }
        if collected.contains_key(&registered.name) {
            return Err(raise_table(lua, "Function already exists in the library"));
        }
        collected.insert(registered.name.clone(), (registered, function));
        Ok(())
    }
}

/// The error of a name that libraries and functions cannot have.
pub const BAD_NAME: &str =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// Returns whether a library or a function may have a name.
pub fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string_lossy()),
        _ => None,
    }
}

fn read_registration(args: &Arguments<'_>) -> Result<(Registered, Function), String> {
    match args.len() {
        1 => read_named(args),
        2 => {
            let name = args.value(1);
            let Value::Function(function) = args.value(2) else {
                return Err("second argument to redis.register_function must be a function".to_owned());
            };
            let name = match name {
                Value::Integer(_) | Value::Number(_) => args.string(1).ok().map(|name| name.to_string_lossy()),
                other => text_of(&other),
            };
            let name = name.ok_or("first argument to redis.register_function must be a string")?;
            Ok((Registered { name, description: None, flags: Vec::new() }, function))
        }
        _ => Err("wrong number of arguments to redis.register_function".to_owned()),
    }
}

fn read_named(args: &Arguments<'_>) -> Result<(Registered, Function), String> {
    let Value::Table(table) = args.value(1) else {
        return Err("calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).".to_owned());
    };
    let (mut name, mut description, mut callback, mut flags) = (None, None, None, Vec::new());
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        let Some(key) = text_of(&key) else {
            return Err("named argument key given to redis.register_function is not a string".to_owned());
        };
        match key.as_str() {
            "function_name" => {
                name = Some(
                    text_of(&value)
                        .ok_or("function_name argument given to redis.register_function must be a string")?,
                );
            }
            "description" => {
                description = Some(
                    text_of(&value).ok_or("description argument given to redis.register_function must be a string")?,
                );
            }
            "callback" => match value {
                Value::Function(function) => callback = Some(function),
                _ => return Err("callback argument given to redis.register_function must be a function".to_owned()),
            },
            "flags" => match value {
                Value::Table(table) => flags = read_flags(&table)?,
                _ => {
                    return Err(
                        "flags argument to redis.register_function must be a table representing function flags"
                            .to_owned(),
                    );
                }
            },
            _ => return Err("unknown argument given to redis.register_function".to_owned()),
        }
    }
    let name = name.ok_or("redis.register_function must get a function name argument")?;
    let callback = callback.ok_or("redis.register_function must get a callback argument")?;
    Ok((Registered { name, description, flags }, callback))
}

fn read_flags(table: &Table) -> Result<Vec<String>, String> {
    let mut flags: Vec<String> = Vec::new();
    for at in 1.. {
        let value: Value = table.raw_get(at).map_err(|error| error.to_string())?;
        if value.is_nil() {
            break;
        }
        let known = text_of(&value).map(|flag| flag.to_ascii_lowercase()).filter(|flag| FLAGS.contains(&flag.as_str()));
        let flag = known.ok_or("unknown flag given")?;
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    Ok(flags)
}
