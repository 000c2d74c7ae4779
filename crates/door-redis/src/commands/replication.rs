//! REPLCONF, SYNC and PSYNC, as far as `redis-cli --rdb` needs them: a client that has said `REPLCONF rdb-only 1` gets all keys as an RDB file, and no commands
//! behind it. Replication as a source is not served.

use crate::call::{Call, Result};
use crate::commands::utf8;
use crate::errors;
use crate::saves::write::{NotBegun, start};
use crate::saves::{FileContents, SaveKind, SaveSlot};
use crate::session::Session;

const NO_SOURCE: &str =
    "ERR replication as a source is not served; an RDB file is, behind REPLCONF rdb-only 1 (redis-cli --rdb)";
const RUNNING: &str = "ERR another RDB file is being written; try again when INFO shows rdb_bgsave_in_progress:0";

pub fn replconf(session: &mut Session, call: &mut Call<'_>) -> Result {
    if call.args.len().is_multiple_of(2) {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    for at in (1..call.args.len()).step_by(2) {
        let value = call.args[at + 1];
        if call.word(at, "listening-port") {
            if call.integer(at + 1).is_none() {
                return Ok(());
            }
        } else if call.word(at, "capa") {
            session.sync.takes_mark |= call.word(at + 1, "eof");
        } else if call.word(at, "rdb-only") {
            let Some(number) = call.integer(at + 1) else { return Ok(()) };
            if !(0..=1).contains(&number) {
                call.reply.error("ERR value is out of range, value must between 0 and 1");
                return Ok(());
            }
            session.sync.is_allowed = number == 1;
        } else if call.word(at, "rdb-filter-only") {
            let mut contents = FileContents { keys: false, functions: false };
            for word in value.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
                if !word.eq_ignore_ascii_case(b"functions") {
                    call.reply.error(&format!("ERR Unsupported rdb-filter-only option: {}", utf8(word)));
                    return Ok(());
                }
                contents.functions = true;
            }
            session.sync.contents = contents;
        } else if call.word(at, "ack") || call.word(at, "getack") {
            // Only a replica would be answered.
            return Ok(());
        } else if !call.word(at, "ip-address") {
            call.reply.error(&format!("ERR Unrecognized REPLCONF option: {}", utf8(call.args[at])));
            return Ok(());
        }
    }
    call.reply.ok();
    Ok(())
}

pub fn sync(session: &mut Session, call: &mut Call<'_>) -> Result {
    send_file(session, call, String::new());
    Ok(())
}

pub fn psync(session: &mut Session, call: &mut Call<'_>) -> Result {
    if call.integer(2).is_some() {
        let head = format!("+FULLRESYNC {} 0\r\n", session.shared.run_id);
        send_file(session, call, head);
    }
    Ok(())
}

/// Begins to write a file without a name. The session waits for it, sends it behind `head`, and closes.
fn send_file(session: &mut Session, call: &mut Call<'_>, head: String) {
    if !session.sync.is_allowed {
        call.reply.error(NO_SOURCE);
        return;
    }
    let kind = SaveKind::Send { is_marked: session.sync.takes_mark, contents: session.sync.contents };
    let slot = SaveSlot::new(session.client.handle());
    match start(&session.shared, kind, slot.clone()) {
        Ok(()) => session.wait_for_file(slot, call.command, head),
        Err(NotBegun::Running(_)) => call.reply.error(RUNNING),
        Err(NotBegun::Failed(text)) => call.reply.error(&text),
    }
}
