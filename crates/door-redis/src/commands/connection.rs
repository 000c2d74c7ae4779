//! The connection itself: authentication, CLIENT, transactions.

use std::sync::Arc;

use stdx::sync::atomic::Ordering;

use crate::clients::{Client, UNBLOCK_ERROR, UNBLOCK_TIMEOUT};
use crate::command::{Call, Result};
use crate::commands::generic::{database, help};
use crate::errors;
use crate::number;
use crate::session::{Multi, Replies, Session};

pub fn ping(_: &mut Session, call: &mut Call<'_>) -> Result {
    match call.args {
        [_] => call.reply.simple("PONG"),
        [_, text] => call.reply.bulk(text),
        _ => call.reply.error(&errors::wrong_arity("ping")),
    }
    Ok(())
}

pub fn echo(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.bulk(call.args[1]);
    Ok(())
}

pub fn quit(session: &mut Session, call: &mut Call<'_>) -> Result {
    session.closing = true;
    call.reply.ok();
    Ok(())
}

pub fn select(session: &mut Session, call: &mut Call<'_>) -> Result {
    if call.int(1).is_none() {
        return Ok(());
    }
    match database(call.args[1]) {
        Some(db) => {
            session.db = db;
            session.client.state.lock().db = db;
            call.reply.ok();
        }
        None => call.reply.error(errors::DB_INDEX),
    }
    Ok(())
}

pub fn reset(session: &mut Session, call: &mut Call<'_>) -> Result {
    session.multi = None;
    session.watch.clear();
    session.db = 0;
    session.resp3 = false;
    session.replies = Replies::On;
    session.become_default();
    {
        let mut state = session.client.state.lock();
        (state.name, state.db, state.multi, state.resp) = (String::new(), 0, -1, 2);
    }
    call.reply.resp3 = false;
    call.reply.simple("RESET");
    Ok(())
}

/// Logs in. `user:password` in one argument names both, unless the default user has that very password.
fn authenticate(session: &mut Session, user: Option<&[u8]>, password: &[u8]) -> bool {
    let accounts = session.shared.engine.accounts();
    let named = |user: &[u8], password: &[u8]| {
        std::str::from_utf8(user).ok().and_then(|user| accounts.authenticate(user, password))
    };
    let account = match user {
        Some(user) => named(user, password),
        None => accounts.authenticate(engine::DEFAULT_ACCOUNT, password).or_else(|| {
            let colon = password.iter().position(|byte| *byte == b':')?;
            named(&password[..colon], &password[colon + 1..])
        }),
    };
    match account {
        Some(account) => {
            session.act_for(account);
            true
        }
        None => false,
    }
}

pub fn auth(session: &mut Session, call: &mut Call<'_>) -> Result {
    let (user, password) = match call.args {
        [_, password] => (None, *password),
        [_, user, password] => (Some(*user), *password),
        _ => {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
    };
    let default = session.shared.engine.accounts().get(engine::DEFAULT_ACCOUNT);
    if user.is_none() && default.is_some_and(|account| account.nopass) && !password.contains(&b':') {
        call.reply.error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?");
        return Ok(());
    }
    if authenticate(session, user, password) {
        call.reply.ok()
    } else {
        call.reply.error(errors::WRONG_PASS)
    }
    Ok(())
}

/// A name may hold anything printable but blanks.
fn valid_name(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

const BAD_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

fn set_name(session: &Session, name: &[u8]) {
    session.client.state.lock().name = String::from_utf8_lossy(name).into_owned();
}

/// Options of HELLO after the version.
struct Greeting<'a> {
    credentials: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

fn greeting<'a>(call: &mut Call<'a>) -> Option<Greeting<'a>> {
    let mut greeting = Greeting { credentials: None, name: None };
    let mut at = 2;
    while at < call.args.len() {
        let left = call.args.len() - at - 1;
        if call.word(at, "auth") && left >= 2 {
            greeting.credentials = Some((call.args[at + 1], call.args[at + 2]));
            at += 3;
        } else if call.word(at, "auth") && left == 1 && call.args[at + 1].contains(&b':') {
            let colon = call.args[at + 1].iter().position(|byte| *byte == b':').expect("contained");
            greeting.credentials = Some((&call.args[at + 1][..colon], &call.args[at + 1][colon + 1..]));
            at += 2;
        } else if call.word(at, "setname") && left >= 1 {
            if !valid_name(call.args[at + 1]) {
                call.reply.error(BAD_NAME);
                return None;
            }
            greeting.name = Some(call.args[at + 1]);
            at += 2;
        } else {
            let text = format!("ERR Syntax error in HELLO option '{}'", String::from_utf8_lossy(call.args[at]));
            call.reply.error(&text);
            return None;
        }
    }
    Some(greeting)
}

pub fn hello(session: &mut Session, call: &mut Call<'_>) -> Result {
    let version = match call.args.get(1) {
        None => None,
        Some(text) => match number::parse(text) {
            Some(version @ (2 | 3)) => Some(version),
            Some(_) => {
                call.reply.error("NOPROTO unsupported protocol version");
                return Ok(());
            }
            None => {
                call.reply.error("ERR Protocol version is not an integer or out of range");
                return Ok(());
            }
        },
    };
    let Some(greeting) = greeting(call) else { return Ok(()) };
    if let Some((user, password)) = greeting.credentials
        && !authenticate(session, Some(user), password)
    {
        call.reply.error(errors::WRONG_PASS);
        return Ok(());
    }
    if session.identity.is_none() {
        call.reply.error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time");
        return Ok(());
    }
    if let Some(name) = greeting.name {
        set_name(session, name);
    }
    if let Some(version) = version {
        session.resp3 = version == 3;
        session.client.state.lock().resp = version as u8;
    }
    call.reply.resp3 = session.resp3;
    let reply = &mut call.reply;
    reply.map(8);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(super::server::REDIS_VERSION.as_bytes());
    reply.bulk(b"beluga_version");
    reply.bulk(session.shared.host.version().as_bytes());
    reply.bulk(b"proto");
    reply.integer(if session.resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(session.connection_id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

pub fn multi(session: &mut Session, call: &mut Call<'_>) -> Result {
    if session.multi.is_some() {
        call.reply.error("ERR MULTI calls can not be nested");
        return Ok(());
    }
    session.multi = Some(Multi::default());
    session.client.state.lock().multi = 0;
    call.reply.ok();
    Ok(())
}

fn leave_multi(session: &mut Session) -> Option<Multi> {
    session.client.state.lock().multi = -1;
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
    if !session.run_queued(&multi.queue, call.reply.out)? {
        call.reply.null_array();
    }
    Ok(())
}

pub fn watch(session: &mut Session, call: &mut Call<'_>) -> Result {
    if session.multi.is_some() {
        call.reply.error("ERR WATCH inside MULTI is not allowed");
        return Ok(());
    }
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

const CLIENT_HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
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
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "    * ID <client-id>",
    "      Kill connections by client id.",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "    * ID <client-id> [<client-id> ...]",
    "      Return clients of specified IDs only.",
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
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "HELP",
    "    Prints this help.",
];

pub fn client(session: &mut Session, call: &mut Call<'_>) -> Result {
    let sub = call.args[1].to_ascii_lowercase();
    match (sub.as_slice(), call.args.len()) {
        (b"help", 2) => help(call, CLIENT_HELP),
        (b"id", 2) => call.reply.integer(session.connection_id as i64),
        (b"getname", 2) => {
            let name = session.client.state.lock().name.clone();
            if name.is_empty() { call.reply.null() } else { call.reply.bulk(name.as_bytes()) }
        }
        (b"setname", 3) => {
            if valid_name(call.args[2]) {
                set_name(session, call.args[2]);
                call.reply.ok();
            } else {
                call.reply.error(BAD_NAME);
            }
        }
        (b"info", 2) => {
            let line = session.client.line(session.now_ms()) + "\n";
            call.reply.verbatim(line.as_bytes());
        }
        (b"list", _) => list(session, call),
        (b"kill", 3..) => kill(session, call),
        (b"pause", 3 | 4) => pause(session, call),
        (b"unblock", 3 | 4) => unblock(session, call),
        // Tracking is not served, so it is always off.
        (b"getredir", 2) => call.reply.integer(-1),
        (b"trackinginfo", 2) => {
            call.reply.map(3);
            call.reply.bulk(b"flags");
            call.reply.set(1);
            call.reply.bulk(b"off");
            call.reply.bulk(b"redirect");
            call.reply.integer(-1);
            call.reply.bulk(b"prefixes");
            call.reply.array(0);
        }
        (b"unpause", 2) => {
            session.shared.clients.unpause();
            call.reply.ok();
        }
        (b"no-evict", 3) => match call.args[2].to_ascii_lowercase().as_slice() {
            word @ (b"on" | b"off") => {
                session.client.no_evict.store(word == b"on", Ordering::Relaxed);
                call.reply.ok();
            }
            _ => call.reply.error(errors::SYNTAX),
        },
        (b"reply", 3) => match call.args[2].to_ascii_lowercase().as_slice() {
            b"on" => {
                session.replies = Replies::On;
                call.reply.ok();
            }
            b"off" => session.replies = Replies::Off,
            b"skip" => {
                if session.replies != Replies::Off {
                    session.replies = Replies::SkipNext;
                }
            }
            _ => call.reply.error(errors::SYNTAX),
        },
        (
            b"help" | b"id" | b"getname" | b"setname" | b"info" | b"kill" | b"pause" | b"unpause" | b"no-evict"
            | b"reply" | b"unblock" | b"getredir" | b"trackinginfo",
            _,
        ) => {
            let text = errors::wrong_arity(&format!("client|{}", String::from_utf8_lossy(&sub)));
            call.reply.error(&text);
        }
        _ => {
            let text = errors::unknown_subcommand("client", call.args[1]);
            call.reply.error(&text);
        }
    }
    Ok(())
}

fn list(session: &Session, call: &mut Call<'_>) {
    let now = session.now_ms();
    let all = session.shared.clients.list();
    let chosen: Vec<Arc<Client>> = match call.args.len() {
        2 => all,
        4 if call.word(2, "type") => match call.args[3].to_ascii_lowercase().as_slice() {
            b"normal" => all,
            b"master" | b"replica" | b"slave" | b"pubsub" => Vec::new(),
            _ => {
                let text = format!("ERR Unknown client type '{}'", String::from_utf8_lossy(call.args[3]));
                call.reply.error(&text);
                return;
            }
        },
        4.. if call.word(2, "id") => {
            let mut chosen = Vec::new();
            for text in &call.args[3..] {
                let Some(id) = number::parse(text).filter(|id| *id > 0) else {
                    call.reply.error("ERR Invalid client ID");
                    return;
                };
                chosen.extend(all.iter().find(|client| client.id == id as u64).cloned());
            }
            chosen
        }
        _ => {
            call.reply.error(errors::SYNTAX);
            return;
        }
    };
    let text: String = chosen.iter().map(|client| client.line(now) + "\n").collect();
    call.reply.verbatim(text.as_bytes());
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
        let text = String::from_utf8_lossy(call.args[at + 1]).into_owned();
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

fn kill(session: &mut Session, call: &mut Call<'_>) {
    let old_form = call.args.len() == 3;
    let filter = if old_form {
        let address = Some(String::from_utf8_lossy(call.args[2]).into_owned());
        KillFilter { address, ..KillFilter::default() }
    } else {
        match kill_filter(session, call) {
            Some(filter) => filter,
            None => return,
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
}

/// Ends another session's WAIT.
fn unblock(session: &Session, call: &mut Call<'_>) {
    let how = match call.args.len() {
        4 if call.word(3, "error") => UNBLOCK_ERROR,
        4 if !call.word(3, "timeout") => {
            call.reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
            return;
        }
        _ => UNBLOCK_TIMEOUT,
    };
    let Some(id) = call.integer(2) else { return };
    let clients = session.shared.clients.list();
    let target = clients.iter().find(|client| client.id as i64 == id && client.waits.load(Ordering::Acquire));
    if let Some(client) = target {
        client.unblock.store(how, Ordering::Release);
        if let Some(handle) = client.handle() {
            handle.wake();
        }
    }
    call.reply.integer(target.is_some().into());
}

fn pause(session: &mut Session, call: &mut Call<'_>) {
    let writes_only = match call.args.get(3).map(|word| word.to_ascii_lowercase()) {
        None => false,
        Some(word) if word == b"all" => false,
        Some(word) if word == b"write" => true,
        _ => {
            call.reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
            return;
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
}
