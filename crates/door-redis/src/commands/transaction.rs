//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use crate::call::{Call, Result};
use crate::errors;
use crate::session::{Multi, Session};

pub fn multi(session: &mut Session, call: &mut Call<'_>) -> Result {
    if session.multi.is_some() {
        call.reply.error("ERR MULTI calls can not be nested");
        return Ok(());
    }
    session.multi = Some(Multi::default());
    session.client.show_multi(0, 0);
    call.reply.ok();
    Ok(())
}

fn leave_multi(session: &mut Session) -> Option<Multi> {
    session.client.show_multi(-1, 0);
    session.multi.take()
}

pub fn discard(session: &mut Session, call: &mut Call<'_>) -> Result {
    if leave_multi(session).is_none() {
        call.reply.error("ERR DISCARD without MULTI");
        return Ok(());
    }
    session.watch.clear();
    call.reply.ok();
    Ok(())
}

pub fn exec(session: &mut Session, call: &mut Call<'_>) -> Result {
    let Some(multi) = leave_multi(session) else {
        call.reply.error("ERR EXEC without MULTI");
        return Ok(());
    };
    if multi.dirty {
        session.watch.clear();
        call.reply.error(errors::EXEC_ABORT);
        return Ok(());
    }
    if !session.run_queued(&multi.queue, call.reply.out, call.spooling)? {
        call.reply.null_array();
    }
    Ok(())
}

/// Approximate memory of a watched key in addition to its bytes.
const WATCHED_BYTES: usize = 192;

pub fn watch(session: &mut Session, call: &mut Call<'_>) -> Result {
    if session.multi.is_some() {
        call.reply.error("ERR WATCH inside MULTI is not allowed");
        return Ok(());
    }
    let bytes = call.args[1..].iter().map(|key| key.len() + WATCHED_BYTES).sum();
    let _claim = stdx::memory::claim(bytes).map_err(engine::Error::OutOfMemory)?;
    for key in &call.args[1..] {
        session.watch.add(call.db, key)?;
    }
    call.reply.ok();
    Ok(())
}

pub fn unwatch(session: &mut Session, call: &mut Call<'_>) -> Result {
    session.watch.clear();
    call.reply.ok();
    Ok(())
}
