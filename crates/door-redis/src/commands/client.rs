//! CLIENT: lists, names, pauses and kills connections.

use std::sync::Arc;

use stdx::sync::atomic::Ordering;

use crate::call::{Call, Result};
use crate::clients::{Client, UNBLOCK_ERROR, UNBLOCK_TIMEOUT};
use crate::commands::connection::{BAD_NAME, is_valid_name, set_name};
use crate::commands::{help as lines, utf8};
use crate::errors;
use crate::number;
use crate::session::{Killing, Replies, Session};

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
pub fn unpause(session: &mut Session, call: &mut Call<'_>) -> Result {
    session.shared.clients.unpause();
    session.shared.keyspace.pause_expire(0);
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
    match chosen(session, call.args) {
        Ok(clients) => {
            let now = session.now_ms();
            let text: String = clients.iter().map(|client| client.line(now) + "\n").collect();
            call.reply.verbatim(text.as_bytes());
        }
        Err(text) => call.reply.error(&text),
    }
    Ok(())
}

/// Returns the clients that CLIENT LIST selects.
fn chosen(session: &Session, args: &[&[u8]]) -> std::result::Result<Vec<Arc<Client>>, String> {
    let mut all = session.shared.clients.list();
    match args {
        [_, _] => Ok(all),
        [_, _, word, kind] if word.eq_ignore_ascii_case(b"type") => {
            let class = ClientClass::read(&utf8(kind))?;
            all.retain(|client| class.has(client));
            Ok(all)
        }
        [_, _, word, ids @ ..] if word.eq_ignore_ascii_case(b"id") && !ids.is_empty() => {
            let mut chosen = Vec::new();
            for text in ids {
                let id = number::parse(text).filter(|id| *id > 0).ok_or("ERR Invalid client ID")?;
                chosen.extend(all.iter().find(|client| client.id == id as u64).cloned());
            }
            Ok(chosen)
        }
        _ => Err(errors::SYNTAX.to_owned()),
    }
}

/// How long CLIENT KILL waits for victims that run a long command.
const KILL_MS_MAX: u64 = 5000;

#[derive(Default)]
struct KillFilter {
    id: Option<u64>,
    address: Option<String>,
    local: Option<String>,
    user: Option<String>,
    class: Option<ClientClass>,
    skip_me: bool,
}

impl KillFilter {
    fn matches(&self, client: &Client) -> bool {
        self.class.is_none_or(|class| class.has(client))
            && self.id.is_none_or(|id| id == client.id)
            && self.address.as_ref().is_none_or(|address| *address == client.address)
            && self.local.as_ref().is_none_or(|local| *local == client.local)
            && self.user.as_ref().is_none_or(|user| *user == client.state.lock().user)
    }

    /// Parses one option. The error is Redis' text.
    fn set(&mut self, session: &Session, option: &[u8], value: &[u8]) -> std::result::Result<(), String> {
        let text = utf8(value);
        match option.to_ascii_lowercase().as_slice() {
            b"id" => {
                let id = number::parse(value).filter(|id| *id > 0);
                self.id = Some(id.ok_or("ERR client-id should be greater than 0")? as u64);
            }
            b"addr" => self.address = Some(text),
            b"laddr" => self.local = Some(text),
            b"user" if session.shared.engine.accounts().get(&text).is_none() => {
                return Err(format!("ERR No such user '{text}'"));
            }
            b"user" => self.user = Some(text),
            b"type" => self.class = Some(ClientClass::read(&text)?),
            b"skipme" => {
                self.skip_me = match text.to_ascii_lowercase().as_str() {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(errors::SYNTAX.to_owned()),
                }
            }
            _ => return Err(errors::SYNTAX.to_owned()),
        }
        Ok(())
    }
}

/// A type of clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientClass {
    Normal,
    Subscriber,
    /// One that follows this server.
    Replica,
    /// The server that is followed, whose link is no client.
    Master,
}

impl ClientClass {
    fn read(kind: &str) -> std::result::Result<ClientClass, String> {
        match kind.to_ascii_lowercase().as_str() {
            "normal" => Ok(ClientClass::Normal),
            "pubsub" => Ok(ClientClass::Subscriber),
            "replica" | "slave" => Ok(ClientClass::Replica),
            "master" => Ok(ClientClass::Master),
            _ => Err(format!("ERR Unknown client type '{kind}'")),
        }
    }

    fn has(self, client: &Client) -> bool {
        let is_replica = client.is_replica.load(Ordering::Relaxed);
        match self {
            ClientClass::Master => false,
            ClientClass::Replica => is_replica,
            class => !is_replica && (class == ClientClass::Subscriber) == client.is_subscriber(),
        }
    }
}

fn kill_filter(session: &Session, args: &[&[u8]]) -> std::result::Result<KillFilter, String> {
    if let [_, _, address] = args {
        return Ok(KillFilter { address: Some(utf8(address)), ..KillFilter::default() });
    }
    let mut filter = KillFilter { skip_me: true, ..KillFilter::default() };
    for pair in args[2..].chunks(2) {
        let [option, value] = pair else { return Err(errors::SYNTAX.to_owned()) };
        filter.set(session, option, value)?;
    }
    Ok(filter)
}

pub fn kill(session: &mut Session, call: &mut Call<'_>) -> Result {
    let filter = match kill_filter(session, call.args) {
        Ok(filter) => filter,
        Err(text) => {
            call.reply.error(&text);
            return Ok(());
        }
    };
    let mut victims = Vec::new();
    let mut count = 0;
    for client in session.shared.clients.list() {
        let me = client.id == session.connection_id;
        if !filter.matches(&client) || me && filter.skip_me {
            continue;
        }
        count += 1;
        if me {
            session.closing = true;
        } else if let Some(own) = session.client.handle() {
            client.kill(own);
            victims.push(client);
        }
    }
    let count = if call.args.len() == 3 { None } else { Some(count) };
    if count.is_none() && victims.is_empty() && !session.closing {
        call.reply.error("ERR No such client");
    } else if victims.iter().all(|client| client.is_gone()) || session.closing || session.in_exec() {
        match count {
            Some(count) => call.reply.integer(count),
            None => call.reply.ok(),
        }
    } else {
        // A victim that runs a command in another thread ends after that command. The reply comes later still, so its reader knows that the victims are gone.
        session.killing = Some(Killing { victims, count });
        session.sleep_until_ms = Some(session.now_ms() + KILL_MS_MAX);
    }
    Ok(())
}

/// Ends the WAIT of another session.
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
            let until_ms = session.shared.clients.pause(session.now_ms().saturating_add(ms as u64), writes_only);
            // While writes are paused, expired keys are not removed either.
            session.shared.keyspace.pause_expire(until_ms);
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
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
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
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
];
