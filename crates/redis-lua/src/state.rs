//! A Lua state with the globals of scripts or of functions, and how it runs one.
//!
//! ```text
//!   run ── lend the host ──► xpcall(script) ── redis.call ──► frame ──► host (session, key transaction)
//!                               │                ▲ every 10,000 instructions: may the run go on?
//!                               ▼
//!                            value or error ──► reply
//! ```
//! When the host ends a run, an error is raised at every further instruction, so that no `pcall` can hold it up (RL-2).

use std::collections::HashMap;
use std::rc::Rc;

use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, Result, StdLib, Table, Value, VmState};

use crate::frame::{Frame, Host};
use crate::json::Settings;
use crate::libraries::{Loaded, Loading};
use crate::raise::{raise_table, thrown_by};
use crate::random::Random;
use crate::redis_api;
use crate::replies::ReplyWriter;
use crate::sandbox::{self, Globals, Sandbox};

/// Instructions between two questions whether the run may go on.
const INSTRUCTIONS: u32 = 10_000;
/// Bytes that a run may add to its state, if memory has as many.
pub const RUN_BYTES_MAX: usize = 256 << 20;
/// A state with more garbage than this is collected after the run.
const GARBAGE_BYTES: usize = 4 << 20;
/// Compiled scripts of a state. One more, and all of them are compiled again when they run.
const COMPILED_MAX: usize = 1000;

/// The globals that a state has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Scripts,
    Functions,
}

/// The protocols of a run.
#[derive(Clone, Copy, Debug)]
pub struct Protocols {
    /// The client speaks RESP3.
    pub client_resp3: bool,
}

/// How a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The reply is written: a value, or the error of the script.
    Replied { is_error: bool },
    /// The host has ended it; the reply is the error that it gave.
    Stopped,
}

pub struct State {
    lua: Lua,
    frame: Rc<Frame>,
    sandbox: Rc<Sandbox>,
    pub(crate) globals: Globals,
    json: Settings,
    handler: Function,
    purpose: Purpose,
    pub(crate) loading: Rc<Loading>,
    pub(crate) libraries: HashMap<String, Loaded>,
    compiled: HashMap<String, Function>,
    /// Bytes of the state before its first run.
    base_bytes: usize,
}

impl State {
    pub fn new(purpose: Purpose) -> Result<State> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let (frame, sandbox) = (Rc::new(Frame::default()), Rc::new(Sandbox::default()));
        let (json, random, loading) = (Settings::default(), Rc::new(Random::new()), Rc::new(Loading::default()));
        let globals = sandbox::build(&lua, &sandbox, &frame, &json, &random)?;
        let redis = redis_api::library(&lua, &frame)?;
        match purpose {
            Purpose::Scripts => redis_api::add_script_only(&lua, &redis)?,
            Purpose::Functions => loading.make_api(&lua, &sandbox, &redis)?,
        }
        globals.real.raw_set("redis", sandbox.protect(&lua, &redis)?)?;
        let handler = sandbox::error_handler(&lua)?;
        let mut state = State {
            lua,
            frame,
            sandbox,
            globals,
            json,
            handler,
            purpose,
            loading,
            libraries: HashMap::new(),
            compiled: HashMap::new(),
            base_bytes: 0,
        };
        state.watch(INSTRUCTIONS)?;
        state.base_bytes = state.lua.used_memory();
        Ok(state)
    }

    /// Returns the bytes of memory that the state takes.
    pub fn bytes(&self) -> usize {
        self.lua.used_memory()
    }

    pub(crate) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// Asks the host every so many instructions.
    fn watch(&self, instructions: u32) -> Result<()> {
        let frame = self.frame.clone();
        let triggers = HookTriggers::new().every_nth_instruction(instructions);
        self.lua.set_global_hook(triggers, move |lua, at| {
            if !frame.is_stopping() && frame.pause(lua).is_ok() {
                return Ok(VmState::Continue);
            }
            let source = at.source().source.map(|name| name.into_owned()).unwrap_or_default();
            frame.note_place(source, at.current_line().map_or(-1, |line| line as i64));
            if instructions > 1 {
                let own = frame.clone();
                // From now on every instruction fails, also those behind a `pcall`.
                lua.set_global_hook(HookTriggers::new().every_nth_instruction(1), move |lua, _| own.end(lua))?;
            }
            frame.end(lua)
        })
    }

    /// Compiles a script. Returns Lua's message if that fails.
    pub fn compile(&mut self, name: &str, text: &[u8]) -> std::result::Result<(), String> {
        if self.compiled.contains_key(name) {
            return Ok(());
        }
        let limit = self.lua.used_memory() + RUN_BYTES_MAX;
        let _ = self.lua.set_memory_limit(limit);
        let function = sandbox::compiled(&self.lua, text, "@user_script")?;
        if self.compiled.len() >= COMPILED_MAX {
            self.compiled.clear();
        }
        self.compiled.insert(name.to_owned(), function);
        Ok(())
    }

    /// Runs a script that is compiled. Its reply is appended to `out`.
    pub fn run_script(
        &mut self,
        name: &str,
        (keys, args): (&[&[u8]], &[&[u8]]),
        protocols: Protocols,
        host: &mut Host<'_>,
        out: &mut Vec<u8>,
    ) -> Ended {
        let Some(function) = self.compiled.get(name).cloned() else { unreachable!("the script is compiled") };
        let prepared = (|| {
            self.globals.real.raw_set("KEYS", self.texts(keys)?)?;
            self.globals.real.raw_set("ARGV", self.texts(args)?)
        })();
        let ended = match prepared {
            Ok(()) => self.run(&function, MultiValue::new(), name, protocols, host, out),
            Err(error) => self.reply_failure(&error, name, out),
        };
        for global in ["KEYS", "ARGV"] {
            let _ = self.globals.real.raw_set(global, Value::Nil);
        }
        ended
    }

    pub(crate) fn texts(&self, texts: &[&[u8]]) -> Result<Table> {
        let table = self.lua.create_table_with_capacity(texts.len(), 0)?;
        for (at, text) in texts.iter().enumerate() {
            table.raw_set(at + 1, self.lua.create_string(text)?)?;
        }
        Ok(table)
    }

    /// Limits the memory of the run that begins. `bytes` are available to it.
    pub fn limit(&mut self, bytes: usize) {
        let bytes = bytes.min(RUN_BYTES_MAX);
        self.frame.bytes_max.set(bytes);
        let _ = self.lua.set_memory_limit(self.lua.used_memory() + bytes);
    }

    /// Runs a function, and writes the reply.
    pub(crate) fn run(
        &mut self,
        function: &Function,
        values: MultiValue,
        name: &str,
        protocols: Protocols,
        host: &mut Host<'_>,
        out: &mut Vec<u8>,
    ) -> Ended {
        self.json.reset();
        let (result, script_resp3) = self.call(function, values, host);
        let stopped = self.frame.leave();
        let writer = |out| ReplyWriter {
            out,
            resp3: protocols.client_resp3,
            script_resp3,
            bytes_max: self.frame.bytes_max.get(),
            tables: 0,
        };
        let (mark, is_good) = (out.len(), matches!(result, Ok(Ok(_))) && stopped.is_none());
        let ended = match (result, stopped) {
            (_, Some(text)) => {
                let at = self.frame.place();
                let at = at.map_or_else(String::new, |(source, line)| format!(" script: {name}, on {source}:{line}."));
                writer(out).error(format!("{}{at}", text.trim_start_matches('-')).as_bytes());
                Ended::Stopped
            }
            (Ok(Ok(value)), None) => match writer(out).write(&value) {
                Ok(()) => Ended::Replied { is_error: out[mark..].first() == Some(&b'-') },
                Err(error) => {
                    out.truncate(mark);
                    self.reply_failure(&error, name, out)
                }
            },
            (Ok(Err(value)), None) => {
                writer(out).error(&error_line(&value, name));
                Ended::Replied { is_error: true }
            }
            (Err(error), None) => self.reply_failure(&error, name, out),
        };
        self.recover(is_good);
        ended
    }

    /// Calls a function under the error handler. Returns its first value, or the error value, and the version of the protocol that it has asked for.
    fn call(
        &self,
        function: &Function,
        mut values: MultiValue,
        host: &mut Host<'_>,
    ) -> (Result<std::result::Result<Value, Value>>, bool) {
        let mut script_resp3 = false;
        let result = self.lua.scope(|scope| {
            let frame = &self.frame;
            let script_resp3 = &mut script_resp3;
            let mut noting = |question: crate::frame::Question<'_>, reply: &mut Vec<u8>| {
                if let crate::frame::Question::Speak { resp3 } = question {
                    *script_resp3 = resp3;
                }
                host(question, reply)
            };
            let lent = scope.create_function_mut(move |_, ()| {
                frame.put(&mut noting);
                Ok(())
            })?;
            self.frame.enter(lent);
            values.push_front(Value::Function(self.handler.clone()));
            values.push_front(Value::Function(function.clone()));
            let results: MultiValue = self.globals.run.call(values)?;
            let mut results = results.into_iter();
            let is_good = matches!(results.next(), Some(Value::Boolean(true)));
            let value = results.next().unwrap_or(Value::Nil);
            Ok(if is_good { Ok(value) } else { Err(value) })
        });
        (result, script_resp3)
    }

    /// Replies to an error that no handler has seen, such as that of memory.
    fn reply_failure(&self, error: &mlua::Error, name: &str, out: &mut Vec<u8>) -> Ended {
        let text = match thrown_by(&self.lua, error) {
            Value::String(text) => text.to_string_lossy(),
            other => crate::raise::type_name(&other).to_owned(),
        };
        let mut writer = ReplyWriter { out, resp3: false, script_resp3: false, bytes_max: usize::MAX, tables: 0 };
        writer.error(format!("ERR Error running script {name}, {text}").as_bytes());
        Ended::Replied { is_error: true }
    }

    /// Makes the state ready for the next run (RL-1). After one that returned there is less to do: its hook is in place, and the collector, which no script can
    /// stop, goes on where it is. Restarting it would begin a step at once.
    fn recover(&mut self, is_good: bool) {
        let _ = self.lua.set_memory_limit(0);
        let _ = self.sandbox.clean();
        if !is_good || self.frame.has_place() {
            let _ = self.watch(INSTRUCTIONS);
            self.lua.gc_restart();
        }
        if self.lua.used_memory() > self.base_bytes + GARBAGE_BYTES {
            let _ = self.lua.gc_collect();
        }
    }

    /// Returns whether the state is for scripts or for functions.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }
}

/// Returns the error line of a script that has failed.
fn error_line(value: &Value, name: &str) -> Vec<u8> {
    let Value::Table(table) = value else {
        let text = match value {
            Value::String(text) => text.to_string_lossy(),
            _ => "execution failure".to_owned(),
        };
        return format!("ERR Error running script {name}, {text}").into_bytes();
    };
    let field = |key: &str| table.raw_get::<Value>(key).unwrap_or(Value::Nil);
    let mut line = match field("err") {
        Value::String(text) => text.as_bytes().to_vec(),
        _ => b"ERR unknown error".to_vec(),
    };
    if let (Value::String(source), at @ (Value::Integer(_) | Value::Number(_) | Value::String(_))) =
        (field("source"), field("line"))
    {
        line.extend_from_slice(format!(" script: {name}, on ").as_bytes());
        line.extend_from_slice(&source.as_bytes());
        line.extend_from_slice(format!(":{}.", at.to_string().unwrap_or_default()).as_bytes());
    }
    line
}

impl Frame {
    /// Returns the error with which the run ends.
    fn end(&self, lua: &Lua) -> Result<VmState> {
        let text = self.stop_text().unwrap_or_else(|| "ERR the run has ended".to_owned());
        Err(raise_table(lua, &text))
    }
}
