//! SHUTDOWN: the options. `shutdown` prepares the stop.

use crate::call::{Call, Result};
use crate::errors;
use crate::saves::SaveSlot;
use crate::session::Session;
use crate::shutdown::StopOptions;

/// Asks for the stop of the server. There is no reply unless the stop is given up.
pub fn shutdown(session: &mut Session, call: &mut Call<'_>) -> Result {
    let (mut options, mut skips_file, mut aborts) = (StopOptions::default(), false, false);
    for at in 1..call.args.len() {
        let word = ["nosave", "save", "now", "force", "abort"].into_iter().find(|word| call.word(at, word));
        match word {
            Some("nosave") => skips_file = true,
            Some("save") => options.saves = true,
            Some("now") => options.is_now = true,
            Some("force") => options.is_forced = true,
            Some(_) => aborts = true,
            None => {
                call.reply.error(errors::SYNTAX);
                return Ok(());
            }
        }
    }
    let has_options = skips_file || options != StopOptions::default();
    if aborts && has_options || skips_file && options.saves {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    let shared = session.shared.clone();
    if aborts {
        match shared.shutdown.abort() {
            Ok(()) => call.reply.ok(),
            Err(text) => call.reply.error(text),
        }
        return Ok(());
    }
    let slot = SaveSlot::new(session.client.handle());
    if shared.shutdown.ask(options, slot.clone()) {
        shared.host.request_stop();
    }
    session.wait_for_save(slot, call.command);
    Ok(())
}
