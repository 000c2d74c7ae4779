//! Libraries of functions: code that registers functions when it is loaded.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value};

use crate::arguments::Arguments;
use crate::frame::{Answer, Host, Question};
use crate::library::add;
use crate::raise::raise_table;
use crate::sandbox::{self, Sandbox};
use crate::state::{Ended, Protocols, State};

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
    id: u64,
    functions: HashMap<String, Function>,
}

type Collected = BTreeMap<String, (Registered, Function)>;

/// The library that is loaded now.
#[derive(Default)]
pub struct Loading {
    collected: RefCell<Option<Collected>>,
    /// The table `redis` of code that is loaded.
    api: RefCell<Option<Table>>,
}

impl Loading {
    /// Makes the table `redis` that the code of a library sees while it is loaded: it registers functions and logs.
    pub fn make_api(self: &Rc<Loading>, lua: &Lua, sandbox: &Sandbox, redis: &Table) -> mlua::Result<()> {
        let api = lua.create_table()?;
        for name in ["log", "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"] {
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

impl State {
    /// Loads a library, and returns its functions. A library that is loaded already stays.
    pub fn load_library(
        &mut self,
        name: &str,
        id: u64,
        code: &[u8],
        host: &mut Host<'_>,
    ) -> Result<Vec<Registered>, String> {
        if let Some(loaded) = self.libraries.get(name)
            && loaded.id == id
        {
            return Ok(Vec::new());
        }
        self.limit(crate::state::RUN_BYTES_MAX);
        let chunk = sandbox::compiled(self.lua(), code, "@user_function")
            .map_err(|text| format!("ERR Error compiling function: {text}"))?;
        let api = self.loading.api.borrow().clone();
        let Some(api) = api else { unreachable!("a state for functions") };
        self.globals.begin_loading(&api).map_err(|error| format!("ERR {error}"))?;
        *self.loading.collected.borrow_mut() = Some(Collected::new());
        // Commands are refused while a library is loaded; only questions whether it may go on reach the host.
        let mut only_time = |question: Question<'_>, reply: &mut Vec<u8>| match question {
            Question::Pause | Question::Log(..) => host(question, reply),
            _ => Answer::Refused("redis.call/pcall can only be called inside a script invocation".to_owned()),
        };
        let mut out = Vec::new();
        let protocols = Protocols { client_resp3: false };
        let ended = self.run(&chunk, MultiValue::new(), name, protocols, &mut only_time, &mut out);
        let collected = self.loading.collected.borrow_mut().take().unwrap_or_default();
        self.globals.end_loading().map_err(|error| format!("ERR {error}"))?;
        if ended != (Ended::Replied { is_error: false }) {
            return Err(load_error(&out));
        }
        let functions = collected.iter().map(|(name, (_, function))| (name.clone(), function.clone())).collect();
        self.libraries.insert(name.to_owned(), Loaded { id, functions });
        Ok(collected.into_values().map(|(registered, _)| registered).collect())
    }

    /// Forgets the libraries that `keep` does not know.
    pub fn retain_libraries(&mut self, keep: impl Fn(&str, u64) -> bool) {
        self.libraries.retain(|name, loaded| keep(name, loaded.id));
    }

    /// Runs a function of a library that is loaded.
    pub fn run_function(
        &mut self,
        (library, name): (&str, &str),
        (keys, args): (&[&[u8]], &[&[u8]]),
        protocols: Protocols,
        host: &mut Host<'_>,
        out: &mut Vec<u8>,
    ) -> Ended {
        let loaded = self.libraries.get(library).and_then(|loaded| loaded.functions.get(name)).cloned();
        let Some(function) = loaded else { unreachable!("the library is loaded") };
        let values = self.texts(keys).and_then(|keys| Ok((keys, self.texts(args)?)));
        match values {
            Ok((keys, args)) => {
                let values = MultiValue::from_vec(vec![Value::Table(keys), Value::Table(args)]);
                self.run(&function, values, name, protocols, host, out)
            }
            Err(_) => {
                out.extend_from_slice(b"-ERR not enough memory\r\n");
                Ended::Replied { is_error: true }
            }
        }
    }
}

/// Returns the reply of FUNCTION LOAD for a library whose code has failed.
fn load_error(reply: &[u8]) -> String {
    let line = String::from_utf8_lossy(reply);
    let line = line.trim_start_matches('-').trim_end();
    let text = line.split_once(" script: ").map_or(line, |(text, _)| text);
    format!("ERR Error registering functions: {text}")
}
