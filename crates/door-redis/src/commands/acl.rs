//! ACL: the accounts of the catalog as users of Redis.

use std::fmt::Write;
use std::sync::Arc;

use engine::{Account, AccountChange, DEFAULT_ACCOUNT};
use stdx::sync::atomic::Ordering;

use crate::call::{Call, Result};
use crate::command::category;
use crate::commands::{help as lines, shown};
use crate::errors;
use crate::number;
use crate::reply::Reply;
use crate::session::Session;
use crate::table::{self, COMMANDS};
use crate::users::rules::{self, Bad, Draft, Selector};
use crate::users::{Denied, User};

pub fn whoami(session: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.bulk(session.user_name().as_bytes());
    Ok(())
}

pub fn users(session: &mut Session, call: &mut Call<'_>) -> Result {
    let all = session.shared.engine.accounts().list();
    call.reply.array(all.len());
    all.iter().for_each(|account| call.reply.bulk(account.name.as_bytes()));
    Ok(())
}

pub fn list(session: &mut Session, call: &mut Call<'_>) -> Result {
    let all = session.shared.engine.accounts().list();
    call.reply.array(all.len());
    all.iter().for_each(|account| call.reply.bulk(describe(account).as_bytes()));
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the account as a line that ACL SETUSER understands.
fn describe(account: &Account) -> String {
    let mut text = format!("user {} {}", account.name, if account.enabled { "on" } else { "off" });
    if account.nopass {
        text.push_str(" nopass");
    }
    for password in &account.passwords {
        let _ = write!(text, " #{}", hex(password));
    }
    // An account created through another door may have no rules yet.
    let rules = if account.rules.is_empty() { "resetchannels -@all" } else { &account.rules };
    let _ = write!(text, " {rules}");
    text
}

fn account(session: &Session, name: &[u8]) -> Option<Arc<Account>> {
    std::str::from_utf8(name).ok().and_then(|name| session.shared.engine.accounts().get(name))
}

pub fn getuser(session: &mut Session, call: &mut Call<'_>) -> Result {
    let Some(account) = account(session, call.args[2]) else {
        call.reply.null();
        return Ok(());
    };
    let selectors = rules::read(&account.rules).unwrap_or_else(|_| vec![Selector::nothing()]);
    let (own, others) = selectors.split_first().expect("the user's own is always there");
    let reply = &mut call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    let mut flags = vec![if account.enabled { "on" } else { "off" }];
    flags.extend(account.nopass.then_some("nopass"));
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(account.passwords.len());
    account.passwords.iter().for_each(|password| reply.bulk(hex(password).as_bytes()));
    reply_selector(reply, own);
    reply.bulk(b"selectors");
    reply.array(others.len());
    for selector in others {
        reply.map(3);
        reply_selector(reply, selector);
    }
    Ok(())
}

fn reply_selector(reply: &mut Reply<'_>, selector: &Selector) {
    reply.bulk(b"commands");
    reply.bulk(selector.commands_text().as_bytes());
    reply.bulk(b"keys");
    reply.bulk(&selector.keys_text());
    reply.bulk(b"channels");
    reply.bulk(&selector.channels_text());
}

pub fn setuser(session: &mut Session, call: &mut Call<'_>) -> Result {
    let name = match user_name(call.args[2]) {
        Ok(name) => name,
        Err(text) => {
            call.reply.error(text);
            return Ok(());
        }
    };
    let guard = Guard::of(session);
    let gives_channels = session.shared.parameters.text("acl-pubsub-default") == "allchannels";
    let change = |old: Option<&Account>| guard.passed(old, changed(name, old, gives_channels, &call.args[3..])?);
    match session.shared.engine.accounts().change(name, change)? {
        Err(text) => call.reply.error(&text),
        Ok(lsn) => {
            session.durability_lsn = session.durability_lsn.max(lsn);
            end_subscribers(session, name);
            call.reply.ok();
        }
    }
    Ok(())
}

/// Ends the clients of a user with subscriptions that its rules no longer allow.
fn end_subscribers(session: &mut Session, name: &str) {
    let Some(account) = session.shared.engine.accounts().get(name) else { return };
    let user = session.shared.users.of(account, session.shared.engine.accounts());
    for client in session.shared.clients.list() {
        let is_of_user = client.is_subscriber() && client.state.lock().user == name;
        if !is_of_user || user.may_keep(&client.subscriptions.lock()) {
            continue;
        }
        if client.id == session.connection_id {
            session.closing = true;
        } else if let Some(handle) = client.handle() {
            client.killed.store(true, Ordering::Release);
            handle.kill();
        }
    }
}

/// The error for a user who tries to change an account that SQL protects.
pub(crate) const PROTECTED: &str = "NOPERM only a user with SYSTEM_USER can change accounts that hold it";

/// Keeps users without SYSTEM_USER from changing accounts that hold it, as SQL does. Otherwise `+acl` alone would give access to all of SQL.
pub(crate) struct Guard<'s> {
    session: &'s Session,
    is_system: bool,
}

impl<'s> Guard<'s> {
    pub fn of(session: &'s Session) -> Guard<'s> {
        let own = session.identity.as_ref().map(|identity| &identity.user.account);
        let is_system = own.is_some_and(|account| session.shared.host.is_system_account(account));
        Guard { session, is_system }
    }

    pub fn may_change(&self, account: &Account) -> bool {
        self.is_system || !self.session.shared.host.is_system_account(account)
    }

    /// Returns the account as it may be stored. If a user without SYSTEM_USER sets rules that imply all SQL privileges, the account gets none of them.
    fn passed(&self, old: Option<&Account>, new: Account) -> std::result::Result<Account, String> {
        if old.is_some_and(|old| !self.may_change(old)) {
            return Err(PROTECTED.to_owned());
        }
        Ok(if self.may_change(&new) { new } else { self.session.shared.host.without_privileges(new) })
    }
}

fn user_name(arg: &[u8]) -> std::result::Result<&str, &'static str> {
    let name = std::str::from_utf8(arg).ok();
    let name = name.filter(|name| !name.contains(|c: char| c.is_whitespace() || c == '\0'));
    name.ok_or("ERR Usernames can't contain spaces or null characters")
}

/// Returns the account as changed by the words of ACL SETUSER, or the error text. `gives_channels` is the parameter `acl-pubsub-default`.
fn changed(
    name: &str,
    old: Option<&Account>,
    gives_channels: bool,
    args: &[&[u8]],
) -> std::result::Result<Account, String> {
    let words = rules::join_selectors(args)
        .map_err(|start| format!("ERR Unmatched parenthesis in acl selector starting at '{}'.", shown(start)))?;
    let mut draft = match old {
        Some(account) => Draft::of(account, gives_channels),
        None => Draft::new(name, gives_channels),
    };
    for word in &words {
        draft.change(word).map_err(|Bad(why)| format!("ERR Error in ACL SETUSER modifier '{}': {why}", shown(word)))?;
    }
    draft.finish().ok_or_else(|| "ERR Patterns of a user must be UTF-8".to_owned())
}

pub fn deluser(session: &mut Session, call: &mut Call<'_>) -> Result {
    let mut names: Vec<&str> = call.args[2..].iter().filter_map(|name| std::str::from_utf8(name).ok()).collect();
    names.sort_unstable();
    names.dedup();
    if names.contains(&DEFAULT_ACCOUNT) {
        call.reply.error("ERR The 'default' user cannot be removed");
        return Ok(());
    }
    let guard = Guard::of(session);
    let mut gone = 0;
    let removed = session.shared.engine.accounts().change_many(|all| {
        let known: Vec<&Account> = names.iter().filter_map(|name| all.get(*name).map(|account| &**account)).collect();
        if known.iter().any(|account| !guard.may_change(account)) {
            return Err(PROTECTED);
        }
        gone = known.len();
        Ok(known.iter().map(|account| AccountChange::Remove(account.name.clone())).collect())
    })?;
    match removed {
        Ok(lsn) => session.durability_lsn = session.durability_lsn.max(lsn),
        Err(text) => {
            call.reply.error(text);
            return Ok(());
        }
    }
    // A user that does not exist has no sessions.
    for client in session.shared.clients.list() {
        if !names.contains(&client.state.lock().user.as_str()) {
            continue;
        }
        if client.id == session.connection_id {
            session.closing = true;
        } else if let Some(handle) = client.handle() {
            handle.kill();
        }
    }
    call.reply.integer(gone as i64);
    Ok(())
}

pub fn cat(_: &mut Session, call: &mut Call<'_>) -> Result {
    let names: Vec<&str> = match call.args {
        [_, _] => category::NAMES.to_vec(),
        [_, _, name] => match category::of_name(name) {
            Some(category) => {
                COMMANDS.iter().filter(|row| row.categories() & category != 0).map(|row| row.name).collect()
            }
            None => {
                call.reply.error(&format!("ERR Unknown category '{}'", shown(name)));
                return Ok(());
            }
        },
        _ => {
            call.subcommand_syntax();
            return Ok(());
        }
    };
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

pub fn genpass(_: &mut Session, call: &mut Call<'_>) -> Result {
    const BAD_BITS: &str =
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096";
    let bits = match call.args.len() {
        2 => 256,
        3 => match call.integer(2) {
            Some(bits) => bits,
            None => return Ok(()),
        },
        _ => {
            call.subcommand_syntax();
            return Ok(());
        }
    };
    if !(1..=4096).contains(&bits) {
        call.reply.error(BAD_BITS);
        return Ok(());
    }
    let digits = (bits as usize).div_ceil(4);
    let mut random = vec![0; digits.div_ceil(2)];
    match os::entropy(&mut random) {
        Ok(()) => call.reply.bulk(&hex(&random).as_bytes()[..digits]),
        Err(error) => call.reply.error(&format!("ERR {error}")),
    }
    Ok(())
}

pub fn dryrun(session: &mut Session, call: &mut Call<'_>) -> Result {
    let Some(account) = account(session, call.args[2]) else {
        call.reply.error(&format!("ERR User '{}' not found", shown(call.args[2])));
        return Ok(());
    };
    let args = &call.args[3..];
    let Ok(command) = table::of_request(args) else {
        call.reply.error(&format!("ERR Command '{}' not found", shown(args[0])));
        return Ok(());
    };
    if !command.takes(args.len()) {
        call.reply.error(&errors::wrong_arity(command.name));
        return Ok(());
    }
    match User::new(account).check(command, args) {
        Ok(()) => call.reply.ok(),
        Err(Denied::Command) => {
            let text = format!("This user has no permissions to run the '{}' command", command.name);
            call.reply.bulk(text.as_bytes());
        }
        Err(Denied::Key(at)) => {
            let key = args[at].split(|byte| *byte == 0).next().unwrap_or_default();
            call.reply.bulk(&[b"This user has no permissions to access the '", key, b"' key"].concat());
        }
        Err(Denied::Channel(at)) => {
            let channel = args[at].split(|byte| *byte == 0).next().unwrap_or_default();
            call.reply.bulk(&[b"This user has no permissions to access the '", channel, b"' channel"].concat());
        }
    }
    Ok(())
}

pub fn log(session: &mut Session, call: &mut Call<'_>) -> Result {
    let count = match call.args {
        [_, _] => 10,
        [_, _, word] if word.eq_ignore_ascii_case(b"reset") => {
            session.shared.access_log.clear();
            call.reply.ok();
            return Ok(());
        }
        [_, _, text] => match number::parse(text) {
            Some(count) => count.max(0) as usize,
            None => {
                call.reply.error(errors::NOT_INTEGER);
                return Ok(());
            }
        },
        _ => {
            call.subcommand_syntax();
            return Ok(());
        }
    };
    let now = session.now_ms();
    let entries = session.shared.access_log.newest(count);
    let reply = &mut call.reply;
    reply.array(entries.len());
    for entry in entries {
        reply.map(7);
        reply.bulk(b"count");
        reply.integer(entry.count as i64);
        let texts: [(&str, &[u8]); 4] = [
            ("reason", entry.reason.as_bytes()),
            ("context", entry.context.as_bytes()),
            ("object", &entry.object),
            ("username", entry.user.as_bytes()),
        ];
        for (name, text) in texts {
            reply.bulk(name.as_bytes());
            reply.bulk(text);
        }
        reply.bulk(b"age-seconds");
        reply.double(now.saturating_sub(entry.at_ms) as f64 / 1000.0);
        reply.bulk(b"client-info");
        reply.bulk(entry.client.as_bytes());
    }
    Ok(())
}

const NO_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.";

/// The error of ACL SAVE and ACL LOAD. Accounts are stored with the data, and every change is durable at once.
pub fn save(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.error(NO_FILE);
    Ok(())
}

pub fn load(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.error(NO_FILE);
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(call, HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DELUSER <username> [<username> ...]",
    "    Delete a list of users.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Returns whether the user can execute the given command without executing the command.",
    "GETUSER <username>",
    "    Get the user's details.",
    "GENPASS [<bits>]",
    "    Generate a secure 256-bit user password. The optional `bits` argument can",
    "    be used to specify a different size.",
    "LIST",
    "    Show users details in config file format.",
    "LOAD",
    "    Reload users from the ACL file.",
    "LOG [<count> | RESET]",
    "    Show the ACL log entries.",
    "SAVE",
    "    Save the current config to the ACL file.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or modify a user with the specified attributes.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
];
