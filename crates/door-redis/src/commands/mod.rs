//! What each command does, by group. Functions of keys get a unit; functions of the session get the session.

pub mod acl;
pub mod bitmap;
pub mod client;
pub mod config;
pub mod connection;
pub mod debug;
pub mod expire;
pub mod generic;
pub mod info;
pub mod introspect;
pub mod latency;
pub mod memory;
pub mod object;
pub mod scan;
pub mod server;
pub mod slowlog;
pub mod string;
pub mod transaction;

use engine::{Entry, KeyTransaction, Kind};

use crate::call::Call;
use crate::errors;
use crate::number;

/// What a container answers to HELP, with the lines that all of them share.
pub(crate) fn help(call: &mut Call<'_>, lines: &[&str]) {
    let container = call.command.name.split('|').next().unwrap_or_default().to_uppercase();
    call.reply.array(lines.len() + 3);
    call.reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| call.reply.simple(line));
    call.reply.simple("HELP");
    call.reply.simple("    Prints this help.");
}

/// An argument as an error shows it: Redis's texts end an argument at a zero byte.
pub(crate) fn shown(arg: &[u8]) -> String {
    utf8(arg.split(|byte| *byte == 0).next().unwrap_or_default())
}

pub(crate) fn utf8(arg: &[u8]) -> String {
    String::from_utf8_lossy(arg).into_owned()
}

/// A string's bytes, or the WRONGTYPE reply, or nothing there.
pub(crate) enum Fetched {
    Missing,
    WrongType,
    Bytes(Vec<u8>),
}

impl Call<'_> {
    /// An argument as an integer; replies with Redis's text if it is none.
    pub(crate) fn integer(&mut self, at: usize) -> Option<i64> {
        let value = number::parse(self.args[at]);
        if value.is_none() {
            self.reply.error(errors::NOT_INTEGER);
        }
        value
    }

    /// An argument that has to fit a C int.
    pub(crate) fn int(&mut self, at: usize) -> Option<i32> {
        let value = self.integer(at)?;
        let int = i32::try_from(value).ok();
        if int.is_none() {
            self.reply.error(errors::NOT_INT);
        }
        int
    }

    /// Compares an argument with an option's name, in any case.
    pub(crate) fn word(&self, at: usize, word: &str) -> bool {
        self.args[at].eq_ignore_ascii_case(word.as_bytes())
    }
}

/// Looks a key up for its string value. Counts as a read only in reading commands.
pub(crate) fn fetch(unit: &mut KeyTransaction<'_>, call: &Call<'_>, key: &[u8]) -> Result<Fetched, engine::Error> {
    let found =
        if call.command.is(crate::command::flag::WRITE) { unit.peek(call.db, key)? } else { unit.get(call.db, key)? };
    let Some(entry) = found else { return Ok(Fetched::Missing) };
    if entry.kind != Kind::String {
        return Ok(Fetched::WrongType);
    }
    let _claim = stdx::memory::claim(entry.len as usize).map_err(engine::Error::OutOfMemory)?;
    let mut bytes = Vec::with_capacity(entry.len as usize);
    unit.value(&entry, 0..entry.len, &mut bytes)?;
    Ok(Fetched::Bytes(bytes))
}

/// Like `fetch`, without the bytes: None after a WRONGTYPE reply.
pub(crate) fn look(
    unit: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    key: &[u8],
) -> Result<Option<Option<Entry>>, engine::Error> {
    let found =
        if call.command.is(crate::command::flag::WRITE) { unit.peek(call.db, key)? } else { unit.get(call.db, key)? };
    if found.as_ref().is_some_and(|entry| entry.kind != Kind::String) {
        call.reply.error(errors::WRONG_TYPE);
        return Ok(None);
    }
    Ok(Some(found))
}
