//! Commands for keys of any type.

use engine::{Kind, Unit};

use crate::command::{Call, Result};
use crate::errors;
use crate::glob;
use crate::number;

/// A database number, if it is one.
pub fn database(text: &[u8]) -> Option<u8> {
    number::parse(text).filter(|db| (0..i64::from(engine::DATABASES)).contains(db)).map(|db| db as u8)
}

pub fn del(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let mut gone = 0;
    for key in &call.args[1..] {
        gone += i64::from(unit.delete(call.db, key)?);
    }
    call.reply.integer(gone);
    Ok(())
}

pub fn exists(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let mut found = 0;
    for key in &call.args[1..] {
        found += i64::from(unit.get(call.db, key)?.is_some());
    }
    call.reply.integer(found);
    Ok(())
}

pub fn type_of(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let found = unit.get(call.db, call.args[1])?;
    call.reply.simple(found.map_or("none", |entry| entry.kind.name()));
    Ok(())
}

pub fn rename(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let (from, to) = (call.args[1], call.args[2]);
    if unit.peek(call.db, from)?.is_none() {
        call.reply.error(errors::NO_SUCH_KEY);
        return Ok(());
    }
    if from != to {
        unit.rename((call.db, from), (call.db, to))?;
    }
    call.reply.ok();
    Ok(())
}

pub fn renamenx(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let (from, to) = (call.args[1], call.args[2]);
    if unit.peek(call.db, from)?.is_none() {
        call.reply.error(errors::NO_SUCH_KEY);
        return Ok(());
    }
    let free = from != to && unit.peek(call.db, to)?.is_none();
    if free {
        unit.rename((call.db, from), (call.db, to))?;
    }
    call.reply.flag(free);
    Ok(())
}

pub fn move_key(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let Some(number) = number::parse(call.args[2]) else {
        call.reply.error("ERR value is not an integer or out of range");
        return Ok(());
    };
    let Some(to) = u8::try_from(number).ok().filter(|db| *db < engine::DATABASES) else {
        call.reply.error(errors::DB_INDEX);
        return Ok(());
    };
    if to == call.db {
        call.reply.error("ERR source and destination objects are the same");
        return Ok(());
    }
    let key = call.args[1];
    let movable = unit.peek(call.db, key)?.is_some() && unit.peek(to, key)?.is_none();
    if movable {
        unit.rename((call.db, key), (to, key))?;
    }
    call.reply.flag(movable);
    Ok(())
}

pub fn copy(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let (mut replace, mut to, mut at) = (false, call.db, 3);
    while at < call.args.len() {
        if call.word(at, "replace") {
            replace = true;
        } else if call.word(at, "db") && at + 1 < call.args.len() {
            let Some(number) = call.integer(at + 1) else { return Ok(()) };
            let Some(db) = u8::try_from(number).ok().filter(|db| *db < engine::DATABASES) else {
                call.reply.error(errors::DB_INDEX);
                return Ok(());
            };
            to = db;
            at += 1;
        } else {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
        at += 1;
    }
    let (from, target) = (call.args[1], call.args[2]);
    if to == call.db && from == target {
        call.reply.error("ERR source and destination objects are the same");
        return Ok(());
    }
    if unit.peek(call.db, from)?.is_none() || unit.peek(to, target)?.is_some() && !replace {
        call.reply.flag(false);
        return Ok(());
    }
    unit.copy((call.db, from), (to, target))?;
    call.reply.flag(true);
    Ok(())
}

pub fn randomkey(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    match unit.random_key(call.db)? {
        Some(key) => call.reply.bulk(&key),
        None => call.reply.null(),
    }
    Ok(())
}

/// Whether a key matches. A lone star is every key, also the empty one, which no other pattern matches in Redis.
fn key_matches(pattern: &[u8], key: &[u8]) -> bool {
    pattern == b"*" || glob::matches(pattern, key, false)
}

/// The bytes that every match starts with.
fn literal_prefix(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\')).unwrap_or(pattern.len());
    &pattern[..end]
}

pub fn keys(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let pattern = call.args[1];
    let mut found: Vec<Vec<u8>> = Vec::new();
    unit.keys(call.db, literal_prefix(pattern), |key, _| {
        if key_matches(pattern, key) {
            found.push(key.to_vec());
        }
    })?;
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

struct ScanOptions<'a> {
    count: usize,
    pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
}

fn scan_options<'a>(call: &mut Call<'a>) -> Option<ScanOptions<'a>> {
    let mut options = ScanOptions { count: 10, pattern: None, kind: None };
    let mut at = 2;
    while at < call.args.len() {
        if at + 1 == call.args.len() {
            call.reply.error(errors::SYNTAX);
            return None;
        }
        if call.word(at, "count") {
            let count = call.integer(at + 1)?;
            if count < 1 {
                call.reply.error(errors::SYNTAX);
                return None;
            }
            options.count = count as usize;
        } else if call.word(at, "match") {
            options.pattern = Some(call.args[at + 1]);
        } else if call.word(at, "type") {
            options.kind = Some(call.args[at + 1]);
        } else {
            call.reply.error(errors::SYNTAX);
            return None;
        }
        at += 2;
    }
    Some(options)
}

pub fn scan(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let Some(cursor) = number::parse_cursor(call.args[1]) else {
        call.reply.error("ERR invalid cursor");
        return Ok(());
    };
    let Some(options) = scan_options(call) else { return Ok(()) };
    let mut found: Vec<Vec<u8>> = Vec::new();
    let next = unit.scan(call.db, cursor, options.count, |key, kind: Kind| {
        let typed = options.kind.is_none_or(|name| name.eq_ignore_ascii_case(kind.name().as_bytes()));
        if typed && options.pattern.is_none_or(|pattern| key_matches(pattern, key)) {
            found.push(key.to_vec());
        }
    })?;
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

const OBJECT_HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
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
    "HELP",
    "    Prints this help.",
];

pub(crate) fn help(call: &mut Call<'_>, lines: &[&str]) {
    call.reply.array(lines.len());
    lines.iter().for_each(|line| call.reply.simple(line));
}

pub fn object(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let sub = call.args[1].to_ascii_lowercase();
    match (sub.as_slice(), call.args.len()) {
        (b"help", 2) => help(call, OBJECT_HELP),
        (b"encoding" | b"refcount" | b"idletime" | b"freq", 3) => {
            let Some(entry) = unit.get(call.db, call.args[2])? else {
                call.reply.null();
                return Ok(());
            };
            match sub.as_slice() {
                b"encoding" => call.reply.bulk(entry.encoding().as_bytes()),
                b"refcount" => call.reply.integer(1),
                b"freq" => call.reply.error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."),
                _ => call.reply.error("ERR idle times are not recorded: data is on disk and nothing is evicted"),
            }
        }
        (b"help" | b"encoding" | b"refcount" | b"idletime" | b"freq", _) => {
            let text = errors::wrong_arity(&format!("object|{}", String::from_utf8_lossy(&sub)));
            call.reply.error(&text);
        }
        _ => {
            let text = errors::unknown_subcommand("object", call.args[1]);
            call.reply.error(&text);
        }
    }
    Ok(())
}

pub fn memory(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let sub = call.args[1].to_ascii_lowercase();
    match (sub.as_slice(), call.args.len()) {
        (b"usage", 3..) => {
            for at in (3..call.args.len()).step_by(2) {
                if !call.word(at, "samples") || at + 1 == call.args.len() {
                    call.reply.error(errors::SYNTAX);
                    return Ok(());
                }
                match call.integer(at + 1) {
                    None => return Ok(()),
                    Some(samples) if samples < 0 => {
                        call.reply.error(errors::SYNTAX);
                        return Ok(());
                    }
                    Some(_) => {}
                }
            }
            match unit.get(call.db, call.args[2])? {
                Some(entry) => call.reply.integer(entry.memory() as i64),
                None => call.reply.null(),
            }
        }
        (b"doctor", 2) => call
            .reply
            .verbatim(b"Memory is a cache of what is on disk; its size is the setting 'memory'. See INFO memory.\n"),
        (b"help", 2) => help(
            call,
            &[
                "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                "DOCTOR",
                "    Return memory problems reports.",
                "USAGE <key> [SAMPLES <count>]",
                "    Return the bytes that <key> and its value take on pages.",
                "HELP",
                "    Prints this help.",
            ],
        ),
        (b"usage" | b"doctor" | b"help", _) => {
            let text = errors::wrong_arity(&format!("memory|{}", String::from_utf8_lossy(&sub)));
            call.reply.error(&text);
        }
        _ => {
            let text = errors::unknown_subcommand("memory", call.args[1]);
            call.reply.error(&text);
        }
    }
    Ok(())
}
