//! The parts of DEBUG that tests of clients use.

use crate::call::{Call, Result};
use crate::commands::help as lines;
use crate::errors;
use crate::number;
use crate::session::Session;

static DEBUG_SLEEP: stdx::wait::Reason = stdx::wait::Reason::bounded("debug_sleep");

const SLEEP_SECONDS_MAX: f64 = 1e6;

pub fn debug(session: &mut Session, call: &mut Call<'_>) -> Result {
    let sub = call.args[1].to_ascii_lowercase();
    match (sub.as_slice(), call.args.len()) {
        (b"sleep", 3) => {
            let seconds = number::leading_float(call.args[2]).clamp(0.0, SLEEP_SECONDS_MAX);
            let Some(_waiting) = stdx::wait::try_announce(&DEBUG_SLEEP) else {
                call.reply.error("ERR too many waiting requests block threads; try again later");
                return Ok(());
            };
            std::thread::sleep(std::time::Duration::from_secs_f64(seconds));
            call.reply.ok();
        }
        (b"jmap", 2) => call.reply.ok(),
        (b"set-active-expire", 3) => match call.args[2] {
            b"0" | b"1" => {
                session.shared.keyspace.set_active_expire(call.args[2] == b"1");
                call.reply.ok();
            }
            _ => call.reply.error(errors::SYNTAX),
        },
        (b"object", 3) => {
            let keys = [(call.db, call.args[2])];
            let found =
                session.shared.keyspace.read(engine::KeySet::Keys(&keys), |txn| txn.peek(call.db, call.args[2]));
            match found?.0 {
                None => call.reply.error(errors::NO_SUCH_KEY),
                Some(entry) => {
                    let text = format!(
                        "Value at:{:#x} refcount:1 encoding:{} serializedlength:{} lru:0 lru_seconds_idle:0",
                        entry.word,
                        entry.encoding(),
                        entry.len
                    );
                    call.reply.simple(&text);
                }
            }
        }
        (b"help", 2) => lines(
            call,
            &[
                "JMAP",
                "    Does nothing, as in Redis without the JVM.",
                "OBJECT <key>",
                "    Show low level info about `key` and associated value.",
                "SET-ACTIVE-EXPIRE <0|1>",
                "    Setting it to 0 disables expiring keys in background when they are not",
                "    accessed (otherwise the behavior is to expire them).",
                "SLEEP <seconds>",
                "    Stop the session for <seconds>. Decimals allowed.",
            ],
        ),
        _ => call.subcommand_syntax(),
    }
    Ok(())
}
