//! ACL: accounts of the catalog, under Redis's rules.

use std::fmt::Write;

use engine::Account;

use crate::acl_rules::{CATEGORIES, Permissions};
use crate::command::{COMMANDS, Call, Result};
use crate::commands::generic::help;
use crate::errors;
use crate::number;
use crate::session::Session;

const HELP: &[&str] = &[
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DELUSER <username> [<username> ...]",
    "    Delete a list of users.",
    "GETUSER <username>",
    "    Get the user's details.",
    "GENPASS [<bits>]",
    "    Generate a secure 256-bit user password. The optional `bits` argument can",
    "    be used to specify a different size.",
    "LIST",
    "    Show users details in config file format.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or modify a user with the specified attributes.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
    "HELP",
    "    Prints this help.",
];

pub fn acl(session: &mut Session, call: &mut Call<'_>) -> Result {
    let sub = call.args[1].to_ascii_lowercase();
    match (sub.as_slice(), call.args.len()) {
        (b"help", 2) => help(call, HELP),
        (b"whoami", 2) => {
            let name = session.identity.as_ref().map_or("default", |identity| identity.account.name.as_str());
            call.reply.bulk(name.as_bytes());
        }
        (b"users", 2) => {
            let all = session.shared.engine.accounts().list();
            call.reply.array(all.len());
            all.iter().for_each(|account| call.reply.bulk(account.name.as_bytes()));
        }
        (b"list", 2) => {
            let all = session.shared.engine.accounts().list();
            call.reply.array(all.len());
            all.iter().for_each(|account| call.reply.bulk(describe(account).as_bytes()));
        }
        (b"getuser", 3) => get_user(session, call),
        (b"setuser", 3..) => set_user(session, call)?,
        (b"deluser", 3..) => del_user(session, call)?,
        (b"cat", 2) => {
            call.reply.array(CATEGORIES.len());
            CATEGORIES.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
        }
        (b"cat", 3) => {
            let name = String::from_utf8_lossy(call.args[2]).to_ascii_lowercase();
            if !CATEGORIES.contains(&name.as_str()) {
                let text = format!("ERR Unknown category '{}'", String::from_utf8_lossy(call.args[2]));
                call.reply.error(&text);
                return Ok(());
            }
            let commands: Vec<_> =
                COMMANDS.iter().filter(|command| command.categories().contains(&name.as_str())).collect();
            call.reply.array(commands.len());
            commands.iter().for_each(|command| call.reply.bulk(command.name.as_bytes()));
        }
        (b"genpass", 2 | 3) => generate(call),
        (b"help" | b"whoami" | b"users" | b"list" | b"getuser" | b"setuser" | b"deluser" | b"cat" | b"genpass", _) => {
            let text = errors::wrong_arity(&format!("acl|{}", String::from_utf8_lossy(&sub)));
            call.reply.error(&text);
        }
        _ => {
            let text = errors::unknown_subcommand("acl", call.args[1]);
            call.reply.error(&text);
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The account as a line that SETUSER understands.
fn describe(account: &Account) -> String {
    let mut text = format!("user {} {}", account.name, if account.enabled { "on" } else { "off" });
    if account.nopass {
        text.push_str(" nopass");
    }
    for password in &account.passwords {
        text.push_str(&format!(" #{}", hex(password)));
    }
    if !account.rules.is_empty() {
        text.push(' ');
        text.push_str(&account.rules);
    }
    text
}

/// Rules of one sort, in their order.
fn rules(account: &Account, wanted: impl Fn(&str) -> bool) -> String {
    account.rules.split_ascii_whitespace().filter(|rule| wanted(rule)).collect::<Vec<_>>().join(" ")
}

fn get_user(session: &Session, call: &mut Call<'_>) {
    let name = String::from_utf8_lossy(call.args[2]).into_owned();
    let Some(account) = session.shared.engine.accounts().get(&name) else {
        call.reply.null();
        return;
    };
    let reply = &mut call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    let mut flags = vec![if account.enabled { "on" } else { "off" }];
    if account.nopass {
        flags.push("nopass");
    }
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(account.passwords.len());
    account.passwords.iter().for_each(|password| reply.bulk(hex(password).as_bytes()));
    let commands = rules(&account, |rule| rule.starts_with(['+', '-']) || rule.ends_with("commands"));
    let keys = rules(&account, |rule| rule.starts_with(['~', '%']) || rule.ends_with("keys"));
    let channels = rules(&account, |rule| rule.starts_with('&') || rule.ends_with("channels"));
    for (name, text) in [("commands", commands), ("keys", keys), ("channels", channels)] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"selectors");
    reply.array(0);
}

fn decode_hash(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return None;
    }
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(hash)
}

/// Applies one rule of SETUSER to an account.
fn apply(account: &mut Account, rule: &str) -> std::result::Result<(), String> {
    let wrong = |what: &str| format!("ERR Error in ACL SETUSER modifier '{rule}': {what}");
    match rule.to_ascii_lowercase().as_str() {
        "on" => account.enabled = true,
        "off" => account.enabled = false,
        "nopass" => {
            account.nopass = true;
            account.passwords.clear();
        }
        "resetpass" => {
            account.nopass = false;
            account.passwords.clear();
        }
        "reset" => {
            let name = std::mem::take(&mut account.name);
            *account = Account::new(&name);
        }
        _ if rule.starts_with('>') => add_password(account, engine::sha256(&rule.as_bytes()[1..])),
        _ if rule.starts_with('#') => {
            let hash = decode_hash(&rule[1..]).ok_or_else(|| {
                wrong(
                    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters",
                )
            })?;
            add_password(account, hash);
        }
        _ if rule.starts_with(['<', '!']) => {
            let hash = if rule.starts_with('<') {
                Some(engine::sha256(&rule.as_bytes()[1..]))
            } else {
                decode_hash(&rule[1..])
            };
            let at = account.passwords.iter().position(|known| Some(*known) == hash);
            let at = at.ok_or_else(|| wrong("The password you are trying to remove from the user does not exist"))?;
            account.passwords.remove(at);
        }
        _ => {
            Permissions::parse(rule).map_err(|what| format!("ERR {what}"))?;
            // A rule for everything makes the earlier ones of its sort meaningless.
            let overruled: fn(&str) -> bool = match rule.to_ascii_lowercase().as_str() {
                "allkeys" | "resetkeys" | "~*" => |old| old.starts_with(['~', '%']) || old.ends_with("keys"),
                "allcommands" | "nocommands" | "+@all" | "-@all" => {
                    |old| old.starts_with(['+', '-']) || old.ends_with("commands")
                }
                "allchannels" | "resetchannels" | "&*" => |old| old.starts_with('&') || old.ends_with("channels"),
                _ => |_| false,
            };
            let mut kept: Vec<&str> =
                account.rules.split_ascii_whitespace().filter(|old| !overruled(old) && *old != rule).collect();
            let canonical = match rule.to_ascii_lowercase().as_str() {
                "allkeys" => "~*",
                "allcommands" => "+@all",
                "nocommands" => "-@all",
                "allchannels" => "&*",
                _ => rule,
            };
            kept.push(canonical);
            account.rules = kept.join(" ");
        }
    }
    Ok(())
}

fn add_password(account: &mut Account, hash: [u8; 32]) {
    account.nopass = false;
    if !account.passwords.contains(&hash) {
        account.passwords.push(hash);
    }
}

fn set_user(session: &mut Session, call: &mut Call<'_>) -> Result {
    let Ok(name) = std::str::from_utf8(call.args[2]) else {
        call.reply.error("ERR Usernames can't contain spaces or null characters");
        return Ok(());
    };
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '\0') {
        call.reply.error("ERR Usernames can't contain spaces or null characters");
        return Ok(());
    }
    let accounts = session.shared.engine.accounts();
    let mut account = accounts.get(name).map_or_else(|| Account::new(name), |account| (*account).clone());
    for rule in &call.args[3..] {
        let rule = String::from_utf8_lossy(rule);
        if let Err(text) = apply(&mut account, &rule) {
            call.reply.error(&text);
            return Ok(());
        }
    }
    let lsn = accounts.put(account)?;
    session.gate = session.gate.max(lsn);
    call.reply.ok();
    Ok(())
}

fn del_user(session: &mut Session, call: &mut Call<'_>) -> Result {
    let names: Vec<String> = call.args[2..].iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    if names.iter().any(|name| name == engine::DEFAULT_ACCOUNT) {
        call.reply.error("ERR The 'default' user cannot be removed");
        return Ok(());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (gone, lsn) = session.shared.engine.accounts().remove(&names)?;
    session.gate = session.gate.max(lsn);
    call.reply.integer(gone as i64);
    Ok(())
}

fn generate(call: &mut Call<'_>) {
    let bits = match call.args.get(2).map(|text| number::parse(text)) {
        None => 256,
        Some(Some(bits @ 1..=4096)) => bits as usize,
        Some(_) => {
            call.reply.error("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096");
            return;
        }
    };
    let digits = bits.div_ceil(4);
    let mut random = vec![0; digits.div_ceil(2)];
    match os::entropy(&mut random) {
        Ok(()) => call.reply.bulk(&hex(&random).as_bytes()[..digits]),
        Err(error) => call.reply.error(&format!("ERR {error}")),
    }
}
