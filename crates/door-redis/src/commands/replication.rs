//! REPLCONF, SYNC and PSYNC: another server begins to follow. A client that has said `REPLCONF rdb-only 1` gets all keys as an RDB file, and no commands behind it.

use std::sync::Arc;

use crate::call::{Call, Result};
use crate::commands::utf8;
use crate::errors;
use crate::replica::state::Stage;
use crate::saves::write::{NotBegun, start};
use crate::saves::{FileContents, SaveKind, SaveSlot};
use crate::session::Session;
use crate::source::followers::Follower;

const RUNNING: &str = "ERR another RDB file is being written; try again when INFO shows rdb_bgsave_in_progress:0";
const NO_LINK: &str = "NOMASTERLINK Can't SYNC while not connected with my master";

pub fn replconf(session: &mut Session, call: &mut Call<'_>) -> Result {
    if call.args.len().is_multiple_of(2) {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    for at in (1..call.args.len()).step_by(2) {
        let value = call.args[at + 1];
        if call.word(at, "listening-port") {
            let Some(port) = call.integer(at + 1) else { return Ok(()) };
            session.sync.port = u16::try_from(port).unwrap_or(0);
        } else if call.word(at, "capa") {
            session.sync.takes_mark |= call.word(at + 1, "eof");
            session.sync.takes_field_times |= call.word(at + 1, "field-times");
        } else if call.word(at, "ip-address") {
            session.sync.ip = utf8(value).parse().ok();
        } else if call.word(at, "rdb-only") {
            let Some(number) = call.integer(at + 1) else { return Ok(()) };
            if !(0..=1).contains(&number) {
                call.reply.error("ERR value is out of range, value must between 0 and 1");
                return Ok(());
            }
            session.sync.is_only_file = number == 1;
        } else if call.word(at, "rdb-filter-only") {
            let mut contents = FileContents { keys: false, functions: false, field_times: true };
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
        } else {
            call.reply.error(&format!("ERR Unrecognized REPLCONF option: {}", utf8(call.args[at])));
            return Ok(());
        }
    }
    call.reply.ok();
    Ok(())
}

pub fn sync(session: &mut Session, call: &mut Call<'_>) -> Result {
    if session.sync.is_only_file {
        send_file(session, call, String::new());
    } else if may_follow(session, call) {
        let follower = follower_of(session, true);
        session.begin_feed(follower, false);
    }
    Ok(())
}

pub fn psync(session: &mut Session, call: &mut Call<'_>) -> Result {
    let Some(offset) = call.integer(2) else { return Ok(()) };
    if session.sync.is_only_file {
        let head = format!("+FULLRESYNC {} 0\r\n", session.shared.run_id);
        send_file(session, call, head);
        return Ok(());
    }
    if !may_follow(session, call) {
        return Ok(());
    }
    let follower = follower_of(session, false);
    // The offset is that of the next byte, from 1.
    let next = u64::try_from(offset).ok().and_then(|offset| offset.checked_sub(1));
    let shared = session.shared.clone();
    let continues = next.is_some_and(|next| shared.continue_follower(&follower, call.args[1], next));
    if continues {
        call.reply.simple(&format!("CONTINUE {}", utf8(call.args[1])));
        shared.stats.partial_syncs.add(1);
    } else {
        shared.stats.full_syncs.add(1);
        if call.args[1] != b"?" {
            shared.stats.refused_partial_syncs.add(1);
        }
    }
    session.begin_feed(follower, !continues);
    Ok(())
}

/// Returns whether this server can be followed now. Replies if not.
fn may_follow(session: &Session, call: &mut Call<'_>) -> bool {
    let is_without =
        |following: Arc<crate::replica::state::Following>| following.facts.lock().stage != Stage::Connected;
    if session.shared.replica.present().is_some_and(is_without) {
        call.reply.error(NO_LINK);
        return false;
    }
    true
}

fn follower_of(session: &Session, is_mute: bool) -> Arc<Follower> {
    let (handle, ip) = (session.client.handle(), session.sync.ip.unwrap_or(session.client.peer));
    Arc::new(Follower::new(handle, ip, session.sync.port, is_mute, session.now_ms()))
}

/// Begins to write a file without a name. The session waits for it, sends it behind `head`, and closes.
fn send_file(session: &mut Session, call: &mut Call<'_>, head: String) {
    let kind = SaveKind::Send { is_marked: session.sync.takes_mark, contents: session.sync.contents };
    let slot = SaveSlot::new(session.client.handle());
    match start(&session.shared, kind, slot.clone()) {
        Ok(()) => session.wait_for_file(slot, call.command, head),
        Err(NotBegun::Running(_)) => call.reply.error(RUNNING),
        Err(NotBegun::Failed(text)) => call.reply.error(&text),
    }
}
