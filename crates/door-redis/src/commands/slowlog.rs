//! SLOWLOG: requests that exceeded the threshold of the slow log.

use crate::call::{Call, Result};
use crate::commands::help as lines;
use crate::number;
use crate::session::Session;

pub fn len(session: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.integer(session.shared.stats.slow.lock().len() as i64);
    Ok(())
}

pub fn reset(session: &mut Session, call: &mut Call<'_>) -> Result {
    session.shared.stats.slow.lock().clear();
    call.reply.ok();
    Ok(())
}

pub fn get(session: &mut Session, call: &mut Call<'_>) -> Result {
    let count = match call.args {
        [_, _] => 10,
        [_, _, text] => match number::parse(text) {
            Some(-1) => usize::MAX,
            Some(count @ 0..) => count as usize,
            _ => {
                call.reply.error("ERR count should be greater than or equal to -1");
                return Ok(());
            }
        },
        _ => {
            call.subcommand_syntax();
            return Ok(());
        }
    };
    let entries: Vec<_> = session.shared.stats.slow.lock().iter().take(count).cloned().collect();
    call.reply.array(entries.len());
    for entry in entries {
        call.reply.array(6);
        call.reply.integer(entry.id as i64);
        call.reply.integer(entry.unix_seconds as i64);
        call.reply.integer(entry.microseconds as i64);
        call.reply.array(entry.args.len());
        entry.args.iter().for_each(|arg| call.reply.bulk(arg));
        call.reply.bulk(entry.peer.as_bytes());
        call.reply.bulk(entry.name.as_bytes());
    }
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(
        call,
        &[
            "GET [<count>]",
            "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
            "    Entries are made of:",
            "    id, timestamp, time in microseconds, arguments array, client IP and port,",
            "    client name",
            "LEN",
            "    Return the length of the slowlog.",
            "RESET",
            "    Reset the slowlog.",
        ],
    );
    Ok(())
}
