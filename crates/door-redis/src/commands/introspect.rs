//! COMMAND: describes the table of commands to clients.

use crate::call::{Call, Result};
use crate::command::keys::KeySpec;
use crate::command::{Command, category, flag};
use crate::commands::help as lines;
use crate::docs::{self, Argument, Doc};
use crate::errors;
use crate::glob;
use crate::reply::Reply;
use crate::session::Session;
use crate::table::{self, COMMANDS};

pub fn all(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.array(table::top().count());
    table::top().for_each(|row| describe(&mut call.reply, row));
    Ok(())
}

pub fn count(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.integer(table::top().count() as i64);
    Ok(())
}

pub fn info(session: &mut Session, call: &mut Call<'_>) -> Result {
    if call.args.len() == 2 {
        return all(session, call);
    }
    call.reply.array(call.args.len() - 2);
    for name in &call.args[2..] {
        match table::find_full(name) {
            Some(row) => describe(&mut call.reply, row),
            None => call.reply.null(),
        }
    }
    Ok(())
}

/// Writes the ten fields of one command.
fn describe(reply: &mut Reply<'_>, row: &'static Command) {
    reply.array(10);
    reply.bulk(row.name.as_bytes());
    reply.integer(row.arity.into());
    words(reply, flag::NAMES.iter().filter(|(bit, _)| row.is(*bit)).map(|(_, name)| (*name).to_owned()));
    let (first, last, step) = row.legacy_keys();
    [first, last, step].iter().for_each(|number| reply.integer(*number));
    let categories = row.categories();
    let names = category::NAMES.iter().enumerate().filter(|(bit, _)| categories >> bit & 1 == 1);
    words(reply, names.map(|(_, name)| format!("@{name}")));
    reply.set(row.tips.len());
    row.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(row.keys.len());
    row.keys.iter().for_each(|spec| describe_keys(reply, spec));
    let subcommands = row.subcommands();
    // Redis writes an empty list as a set.
    if subcommands.is_empty() {
        reply.set(0)
    } else {
        reply.array(subcommands.len())
    }
    subcommands.iter().for_each(|subcommand| describe(reply, subcommand));
}

/// Writes a set of status lines.
fn words(reply: &mut Reply<'_>, words: impl Iterator<Item = String>) {
    let words: Vec<String> = words.collect();
    reply.set(words.len());
    words.iter().for_each(|word| reply.simple(word));
}

fn describe_keys(reply: &mut Reply<'_>, spec: &KeySpec) {
    reply.map(3 + usize::from(spec.notes.is_some()));
    if let Some(notes) = spec.notes {
        reply.bulk(b"notes");
        reply.bulk(notes.as_bytes());
    }
    reply.bulk(b"flags");
    words(reply, spec.flags.split(' ').map(str::to_owned));
    if spec.is_unknown {
        for part in [&b"begin_search"[..], b"find_keys"] {
            reply.bulk(part);
            reply.map(2);
            reply.bulk(b"type");
            reply.bulk(b"unknown");
            reply.bulk(b"spec");
            reply.map(0);
        }
        return;
    }
    reply.bulk(b"begin_search");
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(if spec.keyword.is_some() { &b"keyword"[..] } else { b"index" });
    reply.bulk(b"spec");
    if let Some(word) = spec.keyword {
        reply.map(2);
        reply.bulk(b"keyword");
        reply.bulk(word.as_bytes());
        reply.bulk(b"startfrom");
    } else {
        reply.map(1);
        reply.bulk(b"index");
    }
    // It is sought from the end, from the last argument but one.
    reply.integer(if spec.is_migrated && spec.keyword.is_some() { -2 } else { spec.first as i64 });
    reply.bulk(b"find_keys");
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(if spec.is_counted { b"keynum" } else { b"range" });
    reply.bulk(b"spec");
    reply.map(3);
    let shown = if spec.is_counted {
        [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)]
    } else {
        [
            ("lastkey", i64::from(spec.last)),
            ("keystep", spec.step as i64),
            ("limit", if spec.follows_streams() { 2 } else { 0 }),
        ]
    };
    for (name, value) in shown {
        reply.bulk(name.as_bytes());
        reply.integer(value);
    }
}

pub fn docs(_: &mut Session, call: &mut Call<'_>) -> Result {
    let rows: Vec<&'static Command> = match call.args {
        [_, _] => table::top().collect(),
        _ => call.args[2..].iter().filter_map(|name| table::find_full(name)).collect(),
    };
    call.reply.map(rows.len());
    for row in rows {
        call.reply.bulk(row.name.as_bytes());
        document(&mut call.reply, row);
    }
    Ok(())
}

fn text(reply: &mut Reply<'_>, name: &str, text: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(text.as_bytes());
}

fn document(reply: &mut Reply<'_>, row: &'static Command) {
    let doc = docs::of(row.name);
    let subcommands = row.subcommands();
    let present = [
        doc.complexity.is_some(),
        !doc.flags.is_empty(),
        !doc.history.is_empty(),
        !doc.arguments.is_empty(),
        !subcommands.is_empty(),
    ];
    let optional = present.iter().filter(|is| **is).count() + if doc.deprecated.is_some() { 2 } else { 0 };
    reply.map(3 + optional);
    document_words(reply, doc);
    if !doc.arguments.is_empty() {
        reply.bulk(b"arguments");
        document_arguments(reply, &doc.arguments);
    }
    if !subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(subcommands.len());
        for subcommand in subcommands {
            reply.bulk(subcommand.name.as_bytes());
            document(reply, subcommand);
        }
    }
}

fn document_words(reply: &mut Reply<'_>, doc: &Doc) {
    text(reply, "summary", &doc.summary);
    text(reply, "since", doc.since);
    text(reply, "group", doc.group);
    if let Some(complexity) = doc.complexity {
        text(reply, "complexity", complexity);
    }
    if !doc.flags.is_empty() {
        reply.bulk(b"doc_flags");
        words(reply, doc.flags.iter().map(|flag| (*flag).to_owned()));
    }
    if let Some((since, instead)) = doc.deprecated {
        text(reply, "deprecated_since", since);
        text(reply, "replaced_by", instead);
    }
    if !doc.history.is_empty() {
        reply.bulk(b"history");
        reply.set(doc.history.len());
        for (since, change) in &doc.history {
            reply.array(2);
            reply.bulk(since.as_bytes());
            reply.bulk(change.as_bytes());
        }
    }
}

fn document_arguments(reply: &mut Reply<'_>, arguments: &[Argument]) {
    reply.array(arguments.len());
    for argument in arguments {
        let texts = [("token", argument.token), ("since", argument.since), ("deprecated_since", argument.deprecated)];
        let present = [argument.key_spec.is_some(), !argument.flags.is_empty(), !argument.arguments.is_empty()];
        let optional =
            texts.iter().filter(|(_, text)| text.is_some()).count() + present.iter().filter(|is| **is).count();
        reply.map(2 + optional);
        text(reply, "name", argument.name);
        text(reply, "type", argument.kind);
        if let Some(key_spec) = argument.key_spec {
            reply.bulk(b"key_spec_index");
            reply.integer(key_spec);
        }
        texts
            .iter()
            .filter_map(|(name, value)| Some((name, (*value)?)))
            .for_each(|(name, value)| text(reply, name, value));
        if !argument.flags.is_empty() {
            reply.bulk(b"flags");
            words(reply, argument.flags.iter().map(|flag| (*flag).to_owned()));
        }
        if !argument.arguments.is_empty() {
            reply.bulk(b"arguments");
            document_arguments(reply, &argument.arguments);
        }
    }
}

pub fn list(_: &mut Session, call: &mut Call<'_>) -> Result {
    let filter = call.args.len() == 5 && call.word(2, "filterby");
    let names: Vec<&str> = if call.args.len() == 2 {
        COMMANDS.iter().map(|row| row.name).collect()
    } else if filter && call.word(3, "module") {
        Vec::new()
    } else if filter && call.word(3, "aclcat") {
        let category = category::of_name(call.args[4]).unwrap_or(0);
        COMMANDS.iter().filter(|row| row.categories() & category != 0).map(|row| row.name).collect()
    } else if filter && call.word(3, "pattern") {
        let pattern = call.args[4];
        COMMANDS.iter().map(|row| row.name).filter(|name| glob::matches(pattern, name.as_bytes(), true)).collect()
    } else {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    };
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

pub fn getkeys(_: &mut Session, call: &mut Call<'_>) -> Result {
    if let Some(keys) = keys_of_request(call) {
        call.reply.array(keys.len());
        keys.iter().for_each(|(key, _)| call.reply.bulk(key));
    }
    Ok(())
}

pub fn getkeysandflags(_: &mut Session, call: &mut Call<'_>) -> Result {
    if let Some(keys) = keys_of_request(call) {
        call.reply.array(keys.len());
        for (key, flags) in keys {
            call.reply.array(2);
            call.reply.bulk(key);
            words(&mut call.reply, flags.split(' ').map(str::to_owned));
        }
    }
    Ok(())
}

/// Returns the keys of the request in COMMAND GETKEYS and their access flags. Returns None after an error reply.
fn keys_of_request<'a>(call: &mut Call<'a>) -> Option<Vec<(&'a [u8], &'static str)>> {
    let args = &call.args[2..];
    let Ok(row) = table::of_request(args) else {
        call.reply.error("ERR Invalid command specified");
        return None;
    };
    if !row.keys.iter().any(KeySpec::names_keys) {
        call.reply.error("ERR The command has no key arguments");
        return None;
    }
    if !row.takes(args.len()) {
        call.reply.error("ERR Invalid number of arguments specified for command");
        return None;
    }
    let keys = row.keys.iter().filter(|spec| spec.names_keys()).flat_map(|spec| {
        let flags = spec.flags_in(row.name, args);
        spec.positions(args).map(move |at| (args[at], flags))
    });
    let keys: Vec<_> = keys.collect();
    // A number of keys that does not fit makes the request one without keys, also where another spec finds some.
    let lacks_counted = row.keys.iter().any(|spec| spec.is_counted && spec.positions(args).next().is_none());
    if row.is(flag::NO_MANDATORY_KEYS) && lacks_counted {
        return Some(Vec::new());
    }
    if keys.is_empty() || lacks_counted {
        call.reply.error("ERR Invalid arguments specified for command");
        return None;
    }
    Some(keys)
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(
        call,
        &[
            "(no subcommand)",
            "    Return details about all Redis commands.",
            "COUNT",
            "    Return the total number of commands in this Redis server.",
            "LIST",
            "    Return a list of all commands in this Redis server.",
            "INFO [<command-name> ...]",
            "    Return details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "DOCS [<command-name> ...]",
            "    Return documentation details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "GETKEYS <full-command>",
            "    Return the keys from a full Redis command.",
            "GETKEYSANDFLAGS <full-command>",
            "    Return the keys and the access flags from a full Redis command.",
        ],
    );
    Ok(())
}
