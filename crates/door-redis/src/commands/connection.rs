//! Commands for the connection itself: login, protocol version, database.

use crate::call::{Call, Result};
use crate::errors;
use crate::number::{self, database};
use crate::session::login::{Credentials, Outcome, TOO_MANY};
use crate::session::{Replies, Session};

pub fn ping(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !session.resp3 && session.client.is_subscriber() && call.args.len() <= 2 {
        call.reply.push(2);
        call.reply.bulk(b"pong");
        call.reply.bulk(call.args.get(1).copied().unwrap_or_default());
        return Ok(());
    }
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
    session.shared.hub.leave(&session.client);
    session.shared.monitors.leave(&session.client);
    session.shared.stop_tracking(&session.client);
    session.take_messages(call.reply.out);
    session.multi = None;
    session.watch.clear();
    session.db = 0;
    session.speak(false);
    session.replies = Replies::On;
    session.become_default();
    {
        let mut state = session.client.state.lock();
        (state.name, state.db, state.resp) = (String::new(), 0, 2);
    }
    session.client.show_multi(-1, 0);
    call.reply.resp3 = false;
    call.reply.simple("RESET");
    Ok(())
}

/// Logs in. Writes the error if that fails.
fn authenticate(session: &mut Session, call: &mut Call<'_>, credentials: &Credentials<'_>) -> bool {
    match session.log_in(call.args[0], credentials) {
        Outcome::Entered => return true,
        Outcome::Wrong => call.reply.error(errors::WRONG_PASS),
        Outcome::TooMany => call.reply.error(TOO_MANY),
    }
    false
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
    if authenticate(session, call, &Credentials { user, password }) {
        call.reply.ok();
    }
    Ok(())
}

/// Returns whether a name consists of printable characters other than blanks.
pub(crate) fn is_valid_name(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

pub(crate) const BAD_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

pub(crate) fn set_name(session: &Session, name: &[u8]) {
    session.client.state.lock().name = String::from_utf8_lossy(name).into_owned();
}

/// The options of HELLO behind the version.
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
        } else if call.word(at, "setname") && left >= 1 {
            if !is_valid_name(call.args[at + 1]) {
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
        && !authenticate(session, call, &Credentials { user: Some(user), password })
    {
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
        // Messages that have come are in the earlier version.
        session.take_messages(call.reply.out);
        session.speak(version == 3);
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
    let mode: &[u8] = if session.shared.is_cluster { b"cluster" } else { b"standalone" };
    reply.bulk(mode);
    reply.bulk(b"role");
    reply.bulk(if session.shared.replica.is_following() { b"replica" } else { b"master" });
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}
