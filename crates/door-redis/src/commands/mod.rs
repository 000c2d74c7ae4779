//! The functions of the commands, by group. Functions for keys get a key transaction; functions for the session get the session.

pub mod acl;
pub mod bitmap;
pub mod client;
pub mod cluster;
pub mod config;
pub mod connection;
pub mod debug;
pub mod dump;
pub mod expire;
pub mod field_expire;
pub mod follow;
pub mod function;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod info;
pub mod introspect;
pub mod latency;
pub mod list;
pub mod list_wait;
mod members;
pub mod memory;
pub mod migrate;
pub mod object;
pub mod pubsub;
pub mod replication;
pub mod save;
pub mod scan;
pub mod scripting;
pub mod server;
pub mod set;
pub mod shutdown;
pub mod slowlog;
pub mod sort;
pub mod sorted_algebra;
pub mod sorted_range;
pub mod sorted_set;
pub mod sorted_wait;
pub mod stream;
pub mod string;
pub mod tracking;
pub mod transaction;
mod waits;

use engine::{Entry, KeyTransaction, Kind, event_class};

use crate::call::Call;
use crate::errors;
use crate::number;

/// Replies to HELP of a container, adding the lines that all containers share.
pub(crate) fn help(call: &mut Call<'_>, lines: &[&str]) {
    let container = call.command.name.split('|').next().unwrap_or_default().to_uppercase();
    call.reply.array(lines.len() + 3);
    call.reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| call.reply.simple(line));
    call.reply.simple("HELP");
    call.reply.simple("    Prints this help.");
}

/// Returns an argument as an error shows it. Redis' error texts end an argument at a NUL byte.
pub(crate) fn shown(arg: &[u8]) -> String {
    utf8(arg.split(|byte| *byte == 0).next().unwrap_or_default())
}

pub(crate) fn utf8(arg: &[u8]) -> String {
    String::from_utf8_lossy(arg).into_owned()
}

/// The result of reading a string.
pub(crate) enum Fetched {
    Missing,
    WrongType,
    Bytes(Vec<u8>),
}

impl Call<'_> {
    /// Returns an argument as an integer. Replies with Redis' error if it is none.
    pub(crate) fn integer(&mut self, at: usize) -> Option<i64> {
        let value = number::parse(self.args[at]);
        if value.is_none() {
            self.reply.error(errors::NOT_INTEGER);
        }
        value
    }

    /// Returns an argument as a C int. Replies with Redis' error if it does not fit.
    pub(crate) fn int(&mut self, at: usize) -> Option<i32> {
        let value = self.integer(at)?;
        let int = i32::try_from(value).ok();
        if int.is_none() {
            self.reply.error(errors::NOT_INT);
        }
        int
    }

    /// Replies that a subcommand does not exist, or got arguments that it does not take.
    pub(crate) fn subcommand_syntax(&mut self) {
        let (container, sub) = (shown(self.args[0]).to_uppercase(), self.args[1]);
        let sub = shown(&sub[..sub.len().min(128)]);
        let text = format!("ERR unknown subcommand or wrong number of arguments for '{sub}'. Try {container} HELP.");
        self.reply.error(&text);
    }

    /// Compares an argument with the name of an option, ignoring case.
    pub(crate) fn word(&self, at: usize, word: &str) -> bool {
        self.args[at].eq_ignore_ascii_case(word.as_bytes())
    }
}

/// Looks up a key's string value. Counts as a hit or miss only in commands that do not write.
pub(crate) fn fetch(txn: &mut KeyTransaction<'_>, call: &Call<'_>, key: &[u8]) -> Result<Fetched, engine::Error> {
    let found =
        if call.command.is(crate::command::flag::WRITE) { txn.peek(call.db, key)? } else { txn.get(call.db, key)? };
    let Some(entry) = found else { return Ok(Fetched::Missing) };
    if entry.kind != Kind::String {
        return Ok(Fetched::WrongType);
    }
    let _claim = stdx::memory::claim(entry.len as usize).map_err(engine::Error::OutOfMemory)?;
    let mut bytes = Vec::with_capacity(entry.len as usize);
    txn.value(&entry, 0..entry.len, &mut bytes)?;
    Ok(Fetched::Bytes(bytes))
}

/// Notifies of a key that a command did not find and that it only wanted to read.
pub(crate) fn missed(txn: &mut KeyTransaction<'_>, call: &Call<'_>, key: &[u8]) {
    txn.notify(call.db, key, event_class::MISS, "keymiss");
}

/// Removes a key and notifies of it. Returns true if it existed.
pub(crate) fn delete(txn: &mut KeyTransaction<'_>, call: &Call<'_>, key: &[u8]) -> Result<bool, engine::Error> {
    let existed = txn.delete(call.db, key)?;
    if existed {
        txn.notify(call.db, key, event_class::GENERIC, "del");
    }
    Ok(existed)
}

/// Sets a key's expiry time, or removes it, and notifies of that.
pub(crate) fn set_expire(
    txn: &mut KeyTransaction<'_>,
    call: &Call<'_>,
    key: &[u8],
    at_ms: Option<u64>,
) -> Result<(), engine::Error> {
    txn.set_expire(call.db, key, at_ms)?;
    txn.notify(call.db, key, event_class::GENERIC, if at_ms.is_some() { "expire" } else { "persist" });
    Ok(())
}

/// Looks up a key of a string without reading its value. Returns None after a WRONGTYPE reply.
pub(crate) fn lookup(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    key: &[u8],
) -> Result<Option<Option<Entry>>, engine::Error> {
    lookup_as(txn, call, key, Kind::String)
}

/// Looks up a key that must be of a type, if it exists. Returns None after a WRONGTYPE reply.
pub(crate) fn lookup_as(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    key: &[u8],
    kind: Kind,
) -> Result<Option<Option<Entry>>, engine::Error> {
    let found =
        if call.command.is(crate::command::flag::WRITE) { txn.peek(call.db, key)? } else { txn.get(call.db, key)? };
    if found.as_ref().is_some_and(|entry| entry.kind != kind) {
        call.reply.error(errors::WRONG_TYPE);
        return Ok(None);
    }
    Ok(Some(found))
}
