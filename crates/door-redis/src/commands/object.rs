//! OBJECT: facts about a key other than its value.

use engine::KeyTransaction;

use crate::call::{Call, Result};
use crate::commands::help as lines;
use crate::session::Session;

pub fn encoding(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    match txn.get_unnoticed(call.db, call.args[2])? {
        Some(entry) => call.reply.bulk(entry.encoding().as_bytes()),
        None => call.reply.null(),
    }
    Ok(())
}

/// Values are never shared here.
pub fn refcount(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    match txn.get_unnoticed(call.db, call.args[2])? {
        Some(_) => call.reply.integer(1),
        None => call.reply.null(),
    }
    Ok(())
}

/// Redis' error while it keeps no access frequencies, which is its default.
pub fn freq(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    const NOT_KEPT: &str = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.";
    not_kept(txn, call, NOT_KEPT)
}

/// A read leaves no trace, so there is no true answer.
pub fn idletime(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    not_kept(txn, call, "ERR idle times are not recorded: data is on disk and nothing is evicted")
}

fn not_kept(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, text: &str) -> Result {
    match txn.get_unnoticed(call.db, call.args[2])? {
        Some(_) => call.reply.error(text),
        None => call.reply.null(),
    }
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(
        call,
        &[
            "ENCODING <key>",
            "    Return the kind of internal representation used in order to store the value",
            "    associated with a <key>.",
            "FREQ <key>",
            "    Return the access frequency index of the <key>. The returned integer is",
            "    proportional to the logarithm of the recent access frequency of the key.",
            "IDLETIME <key>",
            "    Return the idle time of the <key>, that is the approximated number of",
            "    seconds elapsed since the last access to the key.",
            "REFCOUNT <key>",
            "    Return the number of references of the value associated with the specified",
            "    <key>.",
        ],
    );
    Ok(())
}
