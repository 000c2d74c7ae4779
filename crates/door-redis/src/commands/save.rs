//! SAVE, BGSAVE and LASTSAVE: the keys as an RDB file in the data folder. BGREWRITEAOF: a checkpoint.

use crate::call::{Call, Result};
use crate::errors;
use crate::saves::write::{NotBegun, start};
use crate::saves::{SaveKind, SaveSlot};
use crate::session::Session;

const RUNNING: &str = "ERR Background save already in progress";
const OTHER_RUNNING: &str = "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.";
const SCHEDULED: &str = "Background saving scheduled";

pub fn save(session: &mut Session, call: &mut Call<'_>) -> Result {
    match begin(session, call, SaveKind::Save) {
        Ok(()) => {}
        Err(NotBegun::Running(_)) => call.reply.error(RUNNING),
        Err(NotBegun::Failed(text)) => call.reply.error(&text),
    }
    Ok(())
}

pub fn bgsave(session: &mut Session, call: &mut Call<'_>) -> Result {
    let is_patient = match call.args.len() {
        1 => session.in_exec(),
        2 if call.word(1, "schedule") => true,
        _ => {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
    };
    // In EXEC the instant comes when it has let go of its keys, so its client does not wait for it.
    let begun = match session.in_exec() {
        true => start(&session.shared, SaveKind::Background, SaveSlot::new(None)),
        false => begin(session, call, SaveKind::Background),
    };
    match begun {
        Ok(()) if session.in_exec() => call.reply.simple(SCHEDULED),
        Ok(()) => {}
        Err(NotBegun::Running(SaveKind::Background)) => call.reply.error(RUNNING),
        Err(NotBegun::Running(_)) if is_patient => match session.shared.saves.schedule() {
            true => call.reply.simple(SCHEDULED),
            // It has ended in between.
            false => return bgsave(session, call),
        },
        Err(NotBegun::Running(_)) => call.reply.error(OTHER_RUNNING),
        Err(NotBegun::Failed(text)) => call.reply.error(&text),
    }
    Ok(())
}

/// The WAL takes the place of the append-only file, and a checkpoint is what shortens it.
pub fn bgrewriteaof(session: &mut Session, call: &mut Call<'_>) -> Result {
    match session.shared.engine.pager().request_checkpoint() {
        false => call.reply.error("ERR Background append only file rewriting already in progress"),
        true if session.in_exec() => call.reply.simple("Background append only file rewriting scheduled"),
        true => call.reply.simple("Background append only file rewriting started"),
    }
    Ok(())
}

/// Begins to write a file. The session waits for the reply.
fn begin(session: &mut Session, call: &Call<'_>, kind: SaveKind) -> std::result::Result<(), NotBegun> {
    let slot = SaveSlot::new(session.client.handle());
    start(&session.shared, kind, slot.clone())?;
    session.wait_for_save(slot, call.command);
    Ok(())
}

pub fn lastsave(session: &mut Session, call: &mut Call<'_>) -> Result {
    let saved_ms = session.shared.saves.saved_ms(session.shared.started_ms);
    call.reply.integer((saved_ms / 1000) as i64);
    Ok(())
}
