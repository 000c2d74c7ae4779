//! Commands that scan keys.

use engine::{KeyTransaction, Kind};

use crate::call::{Call, Result};
use crate::errors;
use crate::glob;
use crate::number;

pub fn randomkey(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    match txn.random_key(call.db)? {
        Some(key) => call.reply.bulk(&key),
        None => call.reply.null(),
    }
    Ok(())
}

/// Returns whether a key matches. A single star matches every key, including the empty key, which in Redis no other pattern matches.
pub(crate) fn key_matches(pattern: &[u8], key: &[u8]) -> bool {
    pattern == b"*" || glob::matches(pattern, key, false)
}

/// Returns the prefix that all matches share.
fn literal_prefix(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\')).unwrap_or(pattern.len());
    &pattern[..end]
}

pub fn keys(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let pattern = call.args[1];
    let mut found: Vec<Vec<u8>> = Vec::new();
    txn.keys(call.db, literal_prefix(pattern), |key, _| {
        if key_matches(pattern, key) {
            found.push(key.to_vec());
        }
    })?;
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

pub(crate) struct ScanOptions<'a> {
    pub count: usize,
    pub pattern: Option<&'a [u8]>,
    pub kind: Option<&'a [u8]>,
}

/// Parses the options from an argument on. Returns None after an error reply.
pub(crate) fn scan_options<'a>(call: &mut Call<'a>, from: usize) -> Option<ScanOptions<'a>> {
    let mut options = ScanOptions { count: 10, pattern: None, kind: None };
    let mut at = from;
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

pub fn scan(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(cursor) = number::parse_cursor(call.args[1]) else {
        call.reply.error("ERR invalid cursor");
        return Ok(());
    };
    let Some(options) = scan_options(call, 2) else { return Ok(()) };
    let mut found: Vec<Vec<u8>> = Vec::new();
    let next = txn.scan(call.db, cursor, options.count, |key, kind: Kind| {
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
