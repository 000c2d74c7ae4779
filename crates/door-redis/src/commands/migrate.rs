//! MIGRATE: the options. `migrations` moves the keys.

use std::time::Duration;

use stdx::memory;

use crate::call::{Call, Result};
use crate::commands::utf8;
use crate::errors;
use crate::migrations::{Migration, port_of};
use crate::saves::SaveSlot;
use crate::session::Session;

/// The timeout of requests that name none.
const TIMEOUT_MS: i64 = 1000;

#[derive(Default)]
struct MigrateOptions<'a> {
    keeps: bool,
    replaces: bool,
    login: Vec<&'a [u8]>,
    /// The keys behind KEYS.
    keys: Option<&'a [&'a [u8]]>,
}

impl<'a> MigrateOptions<'a> {
    /// Parses the arguments behind the timeout. Returns None after an error reply.
    fn parse(call: &mut Call<'a>) -> Option<MigrateOptions<'a>> {
        let args = call.args;
        let (mut options, mut at) = (MigrateOptions::default(), 6);
        while at < args.len() {
            let behind = args.len() - at - 1;
            if call.word(at, "copy") {
                options.keeps = true;
            } else if call.word(at, "replace") {
                options.replaces = true;
            } else if call.word(at, "auth") && behind >= 1 {
                options.login = vec![args[at + 1]];
                at += 1;
            } else if call.word(at, "auth2") && behind >= 2 {
                options.login = vec![args[at + 1], args[at + 2]];
                at += 2;
            } else if call.word(at, "keys") {
                if !args[3].is_empty() {
                    call.reply
                        .error("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string");
                    return None;
                }
                options.keys = Some(&args[at + 1..]);
                break;
            } else {
                call.reply.error(errors::SYNTAX);
                return None;
            }
            at += 1;
        }
        Some(options)
    }
}

pub fn migrate(session: &mut Session, call: &mut Call<'_>) -> Result {
    let Some(options) = MigrateOptions::parse(call) else { return Ok(()) };
    let Some(timeout) = call.integer(5) else { return Ok(()) };
    let Some(to_db) = call.integer(4) else { return Ok(()) };
    let timeout = if timeout > 0 { timeout } else { TIMEOUT_MS };
    let keys = options.keys.unwrap_or(&call.args[3..4]);
    let bytes: usize = keys.iter().map(|key| key.len() + size_of::<Vec<u8>>()).sum();
    let _claim = memory::claim(bytes).map_err(engine::Error::OutOfMemory)?;
    let slot = SaveSlot::new(session.client.handle());
    let owned = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect();
    let migration = Migration {
        host: utf8(call.args[1]),
        port: port_of(call.args[2]),
        timeout: Duration::from_millis(timeout.unsigned_abs()),
        db: call.db,
        to_db,
        keys: owned(keys),
        keeps: options.keeps,
        replaces: options.replaces,
        login: owned(&options.login),
        slot: slot.clone(),
    };
    match session.shared.migrate(migration) {
        Ok(()) => session.wait_for_save(slot, call.command),
        Err(text) => call.reply.error(&text),
    }
    Ok(())
}
