//! FCALL and FUNCTION.

use engine::KeyTransaction;
use redis_lua::{Protocols, Purpose};

use crate::call::{Call, Result};
use crate::command::flag;
use crate::commands::scripting::{keys_and_args, reply_kill};
use crate::commands::{help as lines, utf8};
use crate::glob;
use crate::scripts::libraries::{Library, LibrarySet, Policy};
use crate::scripts::run::{RunCommand, RunTerms, run};
use crate::scripts::thread_state::{put_state, take_state};
use crate::session::Session;

/// Serves FCALL and FCALL_RO.
pub fn fcall(
    session: &mut Session,
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    run_command: RunCommand,
) -> Result {
    let is_ro = call.command.is(flag::READONLY);
    let shared = session.shared.clone();
    let set = shared.libraries.get();
    let name = utf8(call.args[1]);
    let Some((library, registered, flags)) = set.function(&name) else {
        call.reply.error("ERR Function not found");
        return Ok(());
    };
    let Some(words) = keys_and_args(call, "ERR Bad number of keys provided") else { return Ok(()) };
    if is_ro && !flags.no_writes {
        call.reply.error("ERR Can not execute a script with write flag using *_ro command.");
        return Ok(());
    }
    let prepared = take_state(&shared, Purpose::Functions).and_then(|mut own| {
        match shared.libraries.prepare(&shared, &mut own, library) {
            Ok(()) => Ok(own),
            Err(text) => {
                put_state(own);
                Err(text)
            }
        }
    });
    let mut own = match prepared {
        Ok(own) => own,
        Err(text) => {
            call.reply.error(&text);
            return Ok(());
        }
    };
    let terms = RunTerms { purpose: Purpose::Functions, name: &name, read_only: is_ro || flags.no_writes, run_command };
    let protocols = Protocols { client_resp3: call.reply.resp3 };
    let result = run(session, txn, call, &mut own, &terms, |own, host, out| {
        own.state.run_function((&library.name, registered), words, protocols, host, out)
    });
    put_state(own);
    result
}

/// Adds libraries, and notes the LSN at which they are durable. Returns their names, or None after an error reply.
fn add(session: &mut Session, call: &mut Call<'_>, codes: &[&[u8]], policy: Policy) -> Option<Vec<String>> {
    let shared = session.shared.clone();
    match shared.libraries.add(&shared, codes, policy) {
        Ok((names, lsn)) => {
            session.durability_lsn = session.durability_lsn.max(lsn);
            Some(names)
        }
        Err(text) => {
            call.reply.error(&text);
            None
        }
    }
}

pub fn load(session: &mut Session, call: &mut Call<'_>) -> Result {
    let [options @ .., code] = &call.args[2..] else { unreachable!("the arity asks for a code") };
    if let Some(unknown) = options.iter().find(|option| !option.eq_ignore_ascii_case(b"replace")) {
        call.reply.error(&format!("ERR Unknown option given: {}", utf8(unknown)));
        return Ok(());
    }
    let policy = if options.is_empty() { Policy::New } else { Policy::Replace };
    if let Some(names) = add(session, call, &[code], policy) {
        call.reply.bulk(names[0].as_bytes());
    }
    Ok(())
}

pub fn delete(session: &mut Session, call: &mut Call<'_>) -> Result {
    let shared = session.shared.clone();
    match shared.libraries.delete(&shared.engine, &utf8(call.args[2]))? {
        Some(lsn) => {
            session.durability_lsn = session.durability_lsn.max(lsn);
            call.reply.ok();
        }
        None => call.reply.error("ERR Library not found"),
    }
    Ok(())
}

pub fn flush(session: &mut Session, call: &mut Call<'_>) -> Result {
    if call.args.len() > 3 {
        call.subcommand_syntax();
        return Ok(());
    }
    if call.args.len() == 3 && !call.word(2, "sync") && !call.word(2, "async") {
        call.reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
        return Ok(());
    }
    let shared = session.shared.clone();
    let lsn = shared.libraries.clear(&shared.engine)?;
    session.durability_lsn = session.durability_lsn.max(lsn);
    call.reply.ok();
    Ok(())
}

pub fn list(session: &mut Session, call: &mut Call<'_>) -> Result {
    let (mut pattern, mut with_code) = (None, false);
    let mut rest = &call.args[2..];
    while let [word, behind @ ..] = rest {
        rest = behind;
        if word.eq_ignore_ascii_case(b"withcode") && !with_code {
            with_code = true;
        } else if word.eq_ignore_ascii_case(b"libraryname") && pattern.is_none() {
            let [given, behind @ ..] = rest else {
                call.reply.error("ERR library name argument was not given");
                return Ok(());
            };
            (pattern, rest) = (Some(*given), behind);
        } else {
            call.reply.error(&format!("ERR Unknown argument {}", utf8(word)));
            return Ok(());
        }
    }
    let set = session.shared.libraries.get();
    let is_meant =
        |library: &&Library| pattern.is_none_or(|pattern| glob::matches(pattern, library.name.as_bytes(), true));
    let meant: Vec<&Library> = set.by_name.values().map(AsRef::as_ref).filter(is_meant).collect();
    call.reply.array(meant.len());
    for library in meant {
        call.reply.map(3 + usize::from(with_code));
        call.reply.bulk(b"library_name");
        call.reply.bulk(library.name.as_bytes());
        call.reply.bulk(b"engine");
        call.reply.bulk(b"LUA");
        call.reply.bulk(b"functions");
        show_functions(call, library);
        if with_code {
            call.reply.bulk(b"library_code");
            call.reply.bulk(&library.code);
        }
    }
    Ok(())
}

fn show_functions(call: &mut Call<'_>, library: &Library) {
    call.reply.array(library.functions.len());
    for function in &library.functions {
        call.reply.map(3);
        call.reply.bulk(b"name");
        call.reply.bulk(function.name.as_bytes());
        call.reply.bulk(b"description");
        match &function.description {
            Some(text) => call.reply.bulk(text.as_bytes()),
            None => call.reply.null(),
        }
        call.reply.bulk(b"flags");
        call.reply.set(function.flags.len());
        function.flags.iter().for_each(|flag| call.reply.simple(flag));
    }
}

pub fn stats(session: &mut Session, call: &mut Call<'_>) -> Result {
    let shared = session.shared.clone();
    call.reply.map(2);
    call.reply.bulk(b"running_script");
    match shared.runs.longest() {
        Some(running) => {
            let took_ms = shared.clock.monotonic_ns().saturating_sub(running.started_ns) / 1_000_000;
            call.reply.map(3);
            call.reply.bulk(b"name");
            call.reply.bulk(running.name.as_bytes());
            call.reply.bulk(b"command");
            call.reply.array(running.request.len());
            running.request.iter().for_each(|arg| call.reply.bulk(arg));
            call.reply.bulk(b"duration_ms");
            call.reply.integer(took_ms as i64);
        }
        None => call.reply.null(),
    }
    let set = shared.libraries.get();
    call.reply.bulk(b"engines");
    call.reply.map(1);
    call.reply.bulk(b"LUA");
    call.reply.map(2);
    call.reply.bulk(b"libraries_count");
    call.reply.integer(set.by_name.len() as i64);
    call.reply.bulk(b"functions_count");
    call.reply.integer(set.function_count() as i64);
    Ok(())
}

pub fn kill(session: &mut Session, call: &mut Call<'_>) -> Result {
    reply_kill(session, call, Purpose::Functions)
}

pub fn dump(session: &mut Session, call: &mut Call<'_>) -> Result {
    let set = session.shared.libraries.get();
    let _claim = stdx::memory::claim(2 * set.bytes() as usize).map_err(engine::Error::OutOfMemory)?;
    call.reply.bulk(&dump_set(&set));
    Ok(())
}

/// Returns the payload of all libraries.
pub(crate) fn dump_set(set: &LibrarySet) -> Vec<u8> {
    dump_libraries(set.by_name.values().map(|library| library.code.as_slice()))
}

/// The record of a library in a payload or an RDB file.
const OPCODE_FUNCTION: u8 = 245;

/// Returns the payload of libraries: their records, and the end of every payload.
fn dump_libraries<'c>(codes: impl Iterator<Item = &'c [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for code in codes {
        out.push(OPCODE_FUNCTION);
        rdb::write_string(&mut out, code);
    }
    rdb::end_payload(&mut out, rdb::VERSION_WRITTEN);
    out
}

/// Returns the libraries of a payload. The error is a reply.
pub(crate) fn restore_libraries(payload: &[u8]) -> std::result::Result<Vec<Vec<u8>>, &'static str> {
    let mut codes = Vec::new();
    // The payload of no library has no record.
    if payload == dump_libraries(std::iter::empty()) {
        return Ok(codes);
    }
    if rdb::check_payload(payload).is_none() {
        return Err("ERR DUMP payload version or checksum are wrong");
    }
    let mut source = rdb::Source::of_bytes(&payload[..payload.len() - rdb::PAYLOAD_END]);
    while !source.is_at_end() {
        if source.byte().ok() != Some(OPCODE_FUNCTION) {
            return Err("ERR given type is not a function");
        }
        codes.push(source.string().map_err(|_| "ERR Failed loading library code")?);
    }
    Ok(codes)
}

pub fn restore(session: &mut Session, call: &mut Call<'_>) -> Result {
    let policy = match call.args.get(3).map(|word| word.to_ascii_lowercase()).as_deref() {
        _ if call.args.len() > 4 => {
            call.subcommand_syntax();
            return Ok(());
        }
        None | Some(b"append") => Policy::Append,
        Some(b"replace") => Policy::Replace,
        Some(b"flush") => Policy::Flush,
        Some(_) => {
            call.reply.error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
            return Ok(());
        }
    };
    match restore_libraries(call.args[2]) {
        Ok(codes) => {
            let codes: Vec<&[u8]> = codes.iter().map(Vec::as_slice).collect();
            if add(session, call, &codes, policy).is_some() {
                call.reply.ok();
            }
        }
        Err(text) => call.reply.error(text),
    }
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(call, HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "LOAD [REPLACE] <FUNCTION CODE>",
    "    Create a new library with the given library name and code.",
    "DELETE <LIBRARY NAME>",
    "    Delete the given library.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Return general information on all the libraries:",
    "    * Library name",
    "    * The engine used to run the Library",
    "    * Library description",
    "    * Functions list",
    "    * Library code (if WITHCODE is given)",
    "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
    "STATS",
    "    Return information about the current function running:",
    "    * Function name",
    "    * Command used to run the function",
    "    * Duration in MS that the function is running",
    "    If no function is running, return nil",
    "    In addition, returns a list of available engines.",
    "KILL",
    "    Kill the current running function.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all the libraries.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the libraries.",
    "    * SYNC: Synchronously flush the libraries.",
    "DUMP",
    "    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
    "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    "    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
    "    control how to handle existing libraries (default APPEND):",
    "    * FLUSH: delete all existing libraries.",
    "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
    "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
    "      libraries with the new libraries (notice that even on this option there is a chance of failure",
    "      in case of functions name collision with another library).",
];
