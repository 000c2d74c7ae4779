//! The table `redis`: commands, the log, and what Redis offers besides.

use std::rc::Rc;

use mlua::{Lua, Result, Table, Value};
use sha1::{Digest, Sha1};

use crate::arguments::{Arguments, as_number};
use crate::frame::{Answer, Frame};
use crate::library::add;
use crate::number_text;
use crate::raise::{error_table, raise, raise_table};
use crate::replies::to_lua;

/// The version of Redis that scripts see.
const VERSION: &str = "7.0.15";
const VERSION_NUMBER: i64 = 0x7000f;

/// Adds what scripts and functions have in common.
pub fn library(lua: &Lua, frame: &Rc<Frame>) -> Result<Table> {
    let table = lua.create_table()?;
    for (name, value) in [
        ("LOG_DEBUG", 0),
        ("LOG_VERBOSE", 1),
        ("LOG_NOTICE", 2),
        ("LOG_WARNING", 3),
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_SLAVE", 2),
        ("REPL_REPLICA", 2),
        ("REPL_ALL", 3),
        ("REDIS_VERSION_NUM", VERSION_NUMBER),
    ] {
        table.raw_set(name, value)?;
    }
    table.raw_set("REDIS_VERSION", VERSION)?;
    let own = frame.clone();
    add(lua, &table, "call", move |args| call(args, &own, true))?;
    let own = frame.clone();
    add(lua, &table, "pcall", move |args| call(args, &own, false))?;
    let own = frame.clone();
    add(lua, &table, "acl_check_cmd", move |args| acl_check(args, &own))?;
    let own = frame.clone();
    add(lua, &table, "log", move |args| log(args, &own))?;
    let own = frame.clone();
    add(lua, &table, "setresp", move |args| set_resp(args, &own))?;
    let own = frame.clone();
    add(lua, &table, "set_repl", move |args| set_repl(args, &own))?;
    add(lua, &table, "sha1hex", sha1hex)?;
    add(lua, &table, "error_reply", error_reply)?;
    add(lua, &table, "status_reply", status_reply)?;
    Ok(table)
}

/// Adds what only scripts have, not functions. There is no debugger, so a breakpoint is none.
pub fn add_script_only(lua: &Lua, table: &Table) -> Result<()> {
    add(lua, table, "breakpoint", |_| Ok(false))?;
    add(lua, table, "debug", |_| Ok(()))?;
    add(lua, table, "replicate_commands", |_| Ok(true))
}

/// Puts the arguments of a command into the frame. Returns the message if one of them is none.
fn put_arguments(args: &Arguments<'_>, frame: &Frame) -> std::result::Result<(), &'static str> {
    frame.clear();
    if args.len() == 0 {
        return Err("Please specify at least one argument for this redis lib call");
    }
    for number in 1..=args.len() {
        match args.get(number) {
            Some(Value::String(text)) => frame.push(&text.as_bytes()),
            // Below 2^53 an integer has no more than 17 digits, and is printed with all of them.
            Some(Value::Integer(value)) if value.unsigned_abs() < 1 << 53 => frame.push(value.to_string().as_bytes()),
            Some(value @ (Value::Integer(_) | Value::Number(_))) => {
                frame.push(number_text::general(as_number(value).unwrap_or(f64::NAN), 17).as_bytes());
            }
            _ => return Err("Lua redis lib command arguments must be strings or integers"),
        }
    }
    Ok(())
}

/// Serves `redis.call` and `redis.pcall`.
fn call(args: &Arguments<'_>, frame: &Frame, raises: bool) -> Result<Value> {
    let lua = args.lua;
    if !frame.is_running() {
        return Err(raise_table(lua, "redis.call/pcall can only be called inside a script invocation"));
    }
    let give = |table: Table| if raises { Err(raise(Value::Table(table))) } else { Ok(Value::Table(table)) };
    if let Err(text) = put_arguments(args, frame) {
        return give(error_table(lua, text.as_bytes())?);
    }
    if let Answer::Refused(text) = frame.command(lua)? {
        let table = error_table(lua, text.as_bytes())?;
        table.raw_set("ignore_error_stats_update", true)?;
        return give(table);
    }
    let reply = frame.reply.borrow();
    match to_lua(lua, &reply)? {
        Value::Table(table) if reply.first() == Some(&b'-') => give(table),
        value => Ok(value),
    }
}

fn acl_check(args: &Arguments<'_>, frame: &Frame) -> Result<bool> {
    let lua = args.lua;
    if !frame.is_running() {
        return Err(raise_table(lua, "redis.acl_check_cmd can only be called inside a script invocation"));
    }
    put_arguments(args, frame).map_err(|text| raise_table(lua, text))?;
    match frame.may_run(lua)? {
        Answer::Allowed(may) => Ok(may),
        _ => Err(raise_table(lua, "Invalid command passed to redis.acl_check_cmd()")),
    }
}

fn log(args: &Arguments<'_>, frame: &Frame) -> Result<()> {
    let lua = args.lua;
    if args.len() < 2 {
        return Err(raise_table(lua, "redis.log() requires two arguments or more."));
    }
    let Some(level) = args.get(1).and_then(as_number) else {
        return Err(raise_table(lua, "First argument must be a number (log level)."));
    };
    if !(0.0..4.0).contains(&level) {
        return Err(raise_table(lua, "Invalid debug level."));
    }
    let mut text = Vec::new();
    for number in 2..=args.len() {
        if matches!(args.get(number), Some(Value::String(_) | Value::Integer(_) | Value::Number(_))) {
            if number > 2 {
                text.push(b' ');
            }
            text.extend_from_slice(&args.string(number)?.as_bytes());
        }
    }
    frame.log(lua, level as i64, &text)
}

fn set_resp(args: &Arguments<'_>, frame: &Frame) -> Result<()> {
    let lua = args.lua;
    if !frame.is_running() {
        return Err(raise_table(lua, "redis.setresp can only be called inside a script invocation"));
    }
    if args.len() != 1 {
        return Err(raise_table(lua, "redis.setresp() requires one argument."));
    }
    match args.get(1).and_then(as_number).unwrap_or(0.0) as i64 {
        2 => frame.speak(lua, false),
        3 => frame.speak(lua, true),
        _ => Err(raise_table(lua, "RESP version must be 2 or 3.")),
    }
}

/// Serves `redis.set_repl`. Effects are replicated by the commit, so there is nothing to choose; the arguments are checked as in Redis.
fn set_repl(args: &Arguments<'_>, frame: &Frame) -> Result<()> {
    let lua = args.lua;
    if !frame.is_running() {
        return Err(raise_table(lua, "redis.set_repl can only be called inside a script invocation"));
    }
    if args.len() != 1 {
        return Err(raise_table(lua, "redis.set_repl() requires two arguments."));
    }
    if args.get(1).and_then(as_number).unwrap_or(0.0) as i64 & !3 != 0 {
        let text = "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Err(raise_table(lua, text));
    }
    Ok(())
}

fn sha1hex(args: &Arguments<'_>) -> Result<String> {
    if args.len() != 1 {
        return Err(raise_table(args.lua, "wrong number of arguments"));
    }
    let text = match args.get(1) {
        Some(Value::String(_) | Value::Integer(_) | Value::Number(_)) => args.string(1)?.as_bytes().to_vec(),
        _ => Vec::new(),
    };
    Ok(digest(&text))
}

/// Returns the SHA-1 of a text in hexadecimal digits, the name of a script.
pub fn digest(text: &[u8]) -> String {
    Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn error_reply(args: &Arguments<'_>) -> Result<Table> {
    let [Some(Value::String(text)), None] = [args.get(1), args.get(2)] else {
        return error_table(args.lua, b"wrong number or type of arguments");
    };
    let text = text.as_bytes();
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let coded = if text.first() == Some(&b'-') { text.to_vec() } else { [b"-", text].concat() };
    error_table(args.lua, &coded)
}

fn status_reply(args: &Arguments<'_>) -> Result<Table> {
    let [Some(Value::String(text)), None] = [args.get(1), args.get(2)] else {
        return error_table(args.lua, b"wrong number or type of arguments");
    };
    let table = args.lua.create_table()?;
    table.raw_set("ok", text)?;
    Ok(table)
}
