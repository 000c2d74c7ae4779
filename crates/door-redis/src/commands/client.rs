//! CLIENT: connections, shown, named, paused and killed.

use std::sync::Arc;

use stdx::sync::atomic::Ordering;

use crate::clients::{Client, UNBLOCK_ERROR, UNBLOCK_TIMEOUT};
use crate::command::{Call, Result};
use crate::commands::connection::{BAD_NAME, is_valid_name, set_name};
use crate::commands::{help as lines, utf8};
use crate::errors;
use crate::number;
use crate::session::{Replies, Session};

pub fn id(session: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.integer(session.connection_id as i64);
    Ok(())
}

pub fn getname(session: &mut Session, call: &mut Call<'_>) -> Result {
    let name = session.client.state.lock().name.clone();
    if name.is_empty() {
        call.reply.null()
    } else {
        call.reply.bulk(name.as_bytes())
    }
    Ok(())
}

pub fn setname(session: &mut Session, call: &mut Call<'_>) -> Result {
    if is_valid_name(call.args[2]) {
        set_name(session, call.args[2]);
        call.reply.ok();
    } else {
        call.reply.error(BAD_NAME);
    }
    Ok(())
}

pub fn info(session: &mut Session, call: &mut Call<'_>) -> Result {
    let line = session.client.line(session.now_ms()) + "\n";
    call.reply.verbatim(line.as_bytes());
    Ok(())
}

/// Tracking is not served, so it is always off.
pub fn getredir(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.integer(-1);
    Ok(())
}

pub fn trackinginfo(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.map(3);
    call.reply.bulk(b"flags");
    call.reply.set(1);
    call.reply.bulk(b"off");
    call.reply.bulk(b"redirect");
    call.reply.integer(-1);
    call.reply.bulk(b"prefixes");
    call.reply.array(0);
    Ok(())
}

pub fn unpause(session: &mut Session, call: &mut Call<'_>) -> Result {
    session.shared.clients.unpause();
    call.reply.ok();
    Ok(())
}

pub fn no_evict(session: &mut Session, call: &mut Call<'_>) -> Result {
    match call.args[2].to_ascii_lowercase().as_slice() {
        word @ (b"on" | b"off") => {
            session.client.no_evict.store(word == b"on", Ordering::Relaxed);
            call.reply.ok();
        }
        _ => call.reply.error(errors::SYNTAX),
    }
    Ok(())
}

pub fn reply(session: &mut Session, call: &mut Call<'_>) -> Result {
    match call.args[2].to_ascii_lowercase().as_slice() {
        b"on" => {
            session.replies = Replies::On;
            call.reply.ok();
        }
        b"off" => session.replies = Replies::Off,
        b"skip" if session.replies != Replies::Off => session.replies = Replies::SkipNext,
        b"skip" => {}
        _ => call.reply.error(errors::SYNTAX),
    }
    Ok(())
}

pub fn list(session: &mut Session, call: &mut Call<'_>) -> Result {
    let now = session.now_ms();
    let all = session.shared.clients.list();
    let chosen: Vec<Arc<Client>> = match call.args.len() {
        2 => all,
        4 if call.word(2, "type") => match call.args[3].to_ascii_lowercase().as_slice() {
            b"normal" => all,
            b"master" | b"replica" | b"slave" | b"pubsub" => Vec::new(),
            _ => {
                let text = format!("ERR Unknown client type '{}'", utf8(call.args[3]));
                call.reply.error(&text);
                return Ok(());
            }
        },
        4.. if call.word(2, "id") => {
            let mut chosen = Vec::new();
            for text in &call.args[3..] {
                let Some(id) = number::parse(text).filter(|id| *id > 0) else {
                    call.reply.error("ERR Invalid client ID");
                    return Ok(());
                };
                chosen.extend(all.iter().find(|client| client.id == id as u64).cloned());
            }
            chosen
        }
        _ => {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
    };
    let text: String = chosen.iter().map(|client| client.line(now) + "\n").collect();
    call.reply.verbatim(text.as_bytes());
    Ok(())
}

#[derive(Default)]
struct KillFilter {
    id: Option<u64>,
    address: Option<String>,
    local: Option<String>,
    user: Option<String>,
    none: bool,
    skip_me: bool,
}

fn kill_filter(session: &Session, call: &mut Call<'_>) -> Option<KillFilter> {
    let mut filter = KillFilter { skip_me: true, ..KillFilter::default() };
    let mut at = 2;
    while at < call.args.len() {
        if at + 1 == call.args.len() {
            call.reply.error(errors::SYNTAX);
            return None;
        }
        let text = utf8(call.args[at + 1]);
        match call.args[at].to_ascii_lowercase().as_slice() {
            b"id" => match number::parse(call.args[at + 1]).filter(|id| *id > 0) {
                Some(id) => filter.id = Some(id as u64),
                None => {
                    call.reply.error("ERR client-id should be greater than 0");
                    return None;
                }
            },
            b"addr" => filter.address = Some(text),
            b"laddr" => filter.local = Some(text),
            b"user" => {
                if session.shared.engine.accounts().get(&text).is_none() {
                    let text = format!("ERR No such user '{text}'");
                    call.reply.error(&text);
                    return None;
                }
                filter.user = Some(text);
            }
            b"type" => match text.to_ascii_lowercase().as_str() {
                "normal" => {}
                "master" | "replica" | "slave" | "pubsub" => filter.none = true,
                _ => {
                    let text = format!("ERR Unknown client type '{text}'");
                    call.reply.error(&text);
                    return None;
                }
            },
            b"skipme" => match text.to_ascii_lowercase().as_str() {
                "yes" => filter.skip_me = true,
                "no" => filter.skip_me = false,
                _ => {
                    call.reply.error(errors::SYNTAX);
                    return None;
                }
            },
            _ => {
                call.reply.error(errors::SYNTAX);
                return None;
            }
        }
        at += 2;
    }
    Some(filter)
}

pub fn kill(session: &mut Session, call: &mut Call<'_>) -> Result {
    let old_form = call.args.len() == 3;
    let filter = if old_form {
        let address = Some(utf8(call.args[2]));
        KillFilter { address, ..KillFilter::default() }
    } else {
        match kill_filter(session, call) {
            Some(filter) => filter,
            None => return Ok(()),
        }
    };
    let mut killed = 0;
    for client in session.shared.clients.list() {
        let matches = !filter.none
            && filter.id.is_none_or(|id| id == client.id)
            && filter.address.as_ref().is_none_or(|address| *address == client.address)
            && filter.local.as_ref().is_none_or(|local| *local == client.local)
            && filter.user.as_ref().is_none_or(|user| *user == client.state.lock().user);
        let me = client.id == session.connection_id;
        if !matches || me && filter.skip_me {
            continue;
        }
        killed += 1;
        if me {
            session.closing = true;
        } else if let Some(handle) = client.handle() {
            handle.kill();
        }
    }
    match (old_form, killed) {
        (true, 0) => call.reply.error("ERR No such client"),
        (true, _) => call.reply.ok(),
        (false, killed) => call.reply.integer(killed),
    }
    Ok(())
}

/// Ends another session's WAIT.
pub fn unblock(session: &mut Session, call: &mut Call<'_>) -> Result {
    let how = match call.args.len() {
        4 if call.word(3, "error") => UNBLOCK_ERROR,
        4 if !call.word(3, "timeout") => {
            call.reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
            return Ok(());
        }
        _ => UNBLOCK_TIMEOUT,
    };
    let Some(id) = call.integer(2) else { return Ok(()) };
    let clients = session.shared.clients.list();
    let target = clients.iter().find(|client| client.id as i64 == id && client.waits.load(Ordering::Acquire));
    if let Some(client) = target {
        client.unblock.store(how, Ordering::Release);
        if let Some(handle) = client.handle() {
            handle.wake();
        }
    }
    call.reply.integer(target.is_some().into());
    Ok(())
}

pub fn pause(session: &mut Session, call: &mut Call<'_>) -> Result {
    let writes_only = match call.args.get(3).map(|word| word.to_ascii_lowercase()) {
        None => false,
        Some(word) if word == b"all" => false,
        Some(word) if word == b"write" => true,
        _ => {
            call.reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
            return Ok(());
        }
    };
    match number::parse(call.args[2]) {
        None => call.reply.error("ERR timeout is not an integer or out of range"),
        Some(ms) if ms < 0 => call.reply.error("ERR timeout is negative"),
        Some(ms) => {
            session.shared.clients.pause(session.now_ms().saturating_add(ms as u64), writes_only);
            call.reply.ok();
        }
    }
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(call, HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made from the specified address",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made to specified local address",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
];
