//! EVAL and its relatives, and SCRIPT.

use std::sync::Arc;

use engine::KeyTransaction;
use redis_lua::{Protocols, Purpose};
use stdx::sync::atomic::Ordering;

use crate::call::{Call, Result};
use crate::command::flag;
use crate::commands::help as lines;
use crate::number;
use crate::scripts::run::{RunCommand, RunTerms, run};
use crate::scripts::thread_state::{put_state, take_state};
use crate::scripts::{Kill, Script};
use crate::session::Session;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// A digest in the letters that scripts are found by. None if it is none.
fn digest_of(arg: &[u8]) -> Option<String> {
    (arg.len() == 40).then(|| String::from_utf8_lossy(arg).to_ascii_lowercase())
}

/// Keys, and the arguments behind them.
type KeysAndArgs<'a> = (&'a [&'a [u8]], &'a [&'a [u8]]);

/// Returns the keys and the arguments of EVAL or FCALL. Replies with an error if their number is none.
pub(crate) fn keys_and_args<'a>(call: &mut Call<'a>, not_a_number: &str) -> Option<KeysAndArgs<'a>> {
    let rest = &call.args[3..];
    let Some(count) = number::parse(call.args[2]) else {
        call.reply.error(not_a_number);
        return None;
    };
    if count > rest.len() as i64 {
        call.reply.error("ERR Number of keys can't be greater than number of args");
        return None;
    }
    if count < 0 {
        call.reply.error("ERR Number of keys can't be negative");
        return None;
    }
    Some(rest.split_at(count as usize))
}

/// Serves EVAL and EVAL_RO.
pub fn eval(
    session: &mut Session,
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    run_command: RunCommand,
) -> Result {
    let Some(words) = keys_and_args(call, crate::errors::NOT_INTEGER) else { return Ok(()) };
    match session.shared.scripts.add(call.args[1], false) {
        Ok(script) => run_script(session, txn, call, &script, words, run_command),
        Err(text) => {
            call.reply.error(&text);
            Ok(())
        }
    }
}

/// Serves EVALSHA and EVALSHA_RO.
pub fn evalsha(
    session: &mut Session,
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    run_command: RunCommand,
) -> Result {
    let Some(digest) = digest_of(call.args[1]) else {
        call.reply.error(NO_SCRIPT);
        return Ok(());
    };
    let Some(words) = keys_and_args(call, crate::errors::NOT_INTEGER) else { return Ok(()) };
    match session.shared.scripts.get(&digest) {
        Some(script) => run_script(session, txn, call, &script, words, run_command),
        None => {
            call.reply.error(NO_SCRIPT);
            Ok(())
        }
    }
}

fn run_script(
    session: &mut Session,
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    script: &Arc<Script>,
    words: KeysAndArgs<'_>,
    run_command: RunCommand,
) -> Result {
    let is_ro = call.command.is(flag::READONLY);
    if is_ro && script.flags.is_some_and(|flags| !flags.no_writes) {
        call.reply.error("ERR Can not execute a script with write flag using *_ro command.");
        return Ok(());
    }
    let mut own = match take_state(&session.shared, Purpose::Scripts) {
        Ok(own) => own,
        Err(text) => {
            call.reply.error(&text);
            return Ok(());
        }
    };
    if let Err(text) = own.state.compile(&script.digest, &script.body) {
        session.shared.scripts.remove(&script.digest);
        call.reply.error(&format!("ERR Error compiling script (new function): {text}"));
        put_state(own);
        return Ok(());
    }
    let read_only = is_ro || script.flags.is_some_and(|flags| flags.no_writes);
    let terms = RunTerms { purpose: Purpose::Scripts, name: &script.digest, read_only, run_command };
    let protocols = Protocols { client_resp3: call.reply.resp3 };
    let result = run(session, txn, call, &mut own, &terms, |own, host, out| {
        own.state.run_script(&script.digest, words, protocols, host, out)
    });
    put_state(own);
    result
}

pub fn load(session: &mut Session, call: &mut Call<'_>) -> Result {
    let script = match session.shared.scripts.add(call.args[2], true) {
        Ok(script) => script,
        Err(text) => {
            call.reply.error(&text);
            return Ok(());
        }
    };
    let mut own = match take_state(&session.shared, Purpose::Scripts) {
        Ok(own) => own,
        Err(text) => {
            call.reply.error(&text);
            return Ok(());
        }
    };
    match own.state.compile(&script.digest, &script.body) {
        Ok(()) => call.reply.bulk(script.digest.as_bytes()),
        Err(text) => {
            session.shared.scripts.remove(&script.digest);
            call.reply.error(&format!("ERR Error compiling script (new function): {text}"));
        }
    }
    put_state(own);
    Ok(())
}

pub fn exists(session: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.array(call.args.len() - 2);
    for arg in &call.args[2..] {
        let script = digest_of(arg).and_then(|digest| session.shared.scripts.get(&digest));
        call.reply.flag(script.is_some());
    }
    Ok(())
}

/// Forgets all scripts. The states of the threads are made anew when they run the next one.
pub fn flush(session: &mut Session, call: &mut Call<'_>) -> Result {
    if call.args.len() > 3 || call.args.len() == 3 && !call.word(2, "sync") && !call.word(2, "async") {
        call.reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return Ok(());
    }
    session.shared.scripts.clear();
    session.shared.script_flushes.fetch_add(1, Ordering::AcqRel);
    call.reply.ok();
    Ok(())
}

pub fn kill(session: &mut Session, call: &mut Call<'_>) -> Result {
    reply_kill(session, call, Purpose::Scripts)
}

/// Ends the run that takes longest, and replies as Redis does.
pub(crate) fn reply_kill(session: &mut Session, call: &mut Call<'_>, purpose: Purpose) -> Result {
    match session.shared.runs.kill(purpose) {
        Kill::Done => call.reply.ok(),
        Kill::NotBusy => call.reply.error("NOTBUSY No scripts in execution right now."),
        Kill::Refused => call.reply.error("UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."),
        Kill::Other => {
            let other = if purpose == Purpose::Scripts { Purpose::Functions } else { Purpose::Scripts };
            call.reply.error(crate::errors::busy(other as u32));
        }
    }
    Ok(())
}

/// There is no debugger.
pub fn debug(_: &mut Session, call: &mut Call<'_>) -> Result {
    if call.word(2, "no") {
        call.reply.ok();
    } else if call.word(2, "yes") || call.word(2, "sync") {
        call.reply.error("ERR SCRIPT DEBUG is not served: the debugger of scripts would hold the keys of a script while a person reads");
    } else {
        call.reply.error("ERR Use SCRIPT DEBUG YES/SYNC/NO");
    }
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(
        call,
        &[
            "DEBUG (YES|SYNC|NO)",
            "    Set the debug mode for subsequent scripts executed.",
            "EXISTS <sha1> [<sha1> ...]",
            "    Return information about the existence of the scripts in the script cache.",
            "FLUSH [ASYNC|SYNC]",
            "    Flush the Lua scripts cache. Very dangerous on replicas.",
            "    When called without the optional mode argument, the behavior is determined by the",
            "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
            "    * ASYNC: Asynchronously flush the scripts cache.",
            "    * SYNC: Synchronously flush the scripts cache.",
            "KILL",
            "    Kill the currently executing Lua script.",
            "LOAD <script>",
            "    Load a script into the scripts cache without executing it.",
        ],
    );
    Ok(())
}
