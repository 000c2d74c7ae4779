//! Commands of HyperLogLogs, which are strings (`hyperloglog`).

use engine::{Expire, Form, KeyTransaction, event_class};

use crate::call::{Call, Done, Result};
use crate::commands::{Fetched, fetch};
use crate::errors;
use crate::hyperloglog::{Corrupt, HyperLogLog, Opcode, Registers, self_test};
use crate::session::Session;

const NONE: &str = "WRONGTYPE Key is not a valid HyperLogLog string value.";
const CORRUPT: &str = "INVALIDOBJ Corrupted HLL object detected";

/// Reads a key's HyperLogLog. Returns None after an error reply.
fn read(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, key: &[u8]) -> Done<Option<Option<HyperLogLog>>> {
    match fetch(txn, call, key)? {
        Fetched::Missing => Ok(Some(None)),
        Fetched::WrongType => {
            call.reply.error(errors::WRONG_TYPE);
            Ok(None)
        }
        Fetched::Bytes(bytes) => {
            let log = HyperLogLog::parse(bytes);
            if log.is_none() {
                call.reply.error(NONE);
            }
            Ok(log.map(Some))
        }
    }
}

fn write(txn: &mut KeyTransaction<'_>, call: &Call<'_>, key: &[u8], log: &HyperLogLog) -> Result {
    txn.put_string_as(call.db, key, log.bytes(), Expire::Keep, Form::Raw)
}

/// Returns the value, or None after an error reply.
fn sound<R>(call: &mut Call<'_>, result: std::result::Result<R, Corrupt>) -> Option<R> {
    if result.is_err() {
        call.reply.error(CORRUPT);
    }
    result.ok()
}

pub fn pfadd(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let key = call.args[1];
    let Some(found) = read(txn, call, key)? else { return Ok(()) };
    let mut is_changed = found.is_none();
    let mut log = found.unwrap_or_default();
    for element in &call.args[2..] {
        let added = log.add(element, call.limits.hll_sparse());
        let Some(is_added) = sound(call, added) else { return Ok(()) };
        is_changed |= is_added;
    }
    if is_changed {
        log.invalidate();
        write(txn, call, key, &log)?;
        txn.notify(call.db, key, event_class::STRING, "pfadd");
    }
    call.reply.flag(is_changed);
    Ok(())
}

/// Replies the estimate. That of one key is stored with it, as Redis does.
pub fn pfcount(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if call.args.len() > 2 {
        let mut registers = Registers::default();
        for key in &call.args[1..] {
            let Some(found) = read(txn, call, key)? else { return Ok(()) };
            let merged = found.map_or(Ok(()), |log| log.merge_into(&mut registers));
            if sound(call, merged).is_none() {
                return Ok(());
            }
        }
        call.reply.integer(registers.count() as i64);
        return Ok(());
    }
    let key = call.args[1];
    let Some(found) = read(txn, call, key)? else { return Ok(()) };
    let Some(mut log) = found else {
        call.reply.integer(0);
        return Ok(());
    };
    let count = match log.cached() {
        Some(cached) => cached,
        None => {
            let counted = log.count();
            let Some(count) = sound(call, counted) else { return Ok(()) };
            log.set_cached(count);
            write(txn, call, key, &log)?;
            count
        }
    };
    call.reply.integer(count as i64);
    Ok(())
}

pub fn pfmerge(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let (mut registers, mut is_dense, mut target) = (Registers::default(), false, None);
    for at in 1..call.args.len() {
        let Some(found) = read(txn, call, call.args[at])? else { return Ok(()) };
        let Some(log) = found else { continue };
        is_dense |= log.is_dense();
        let merged = log.merge_into(&mut registers);
        if sound(call, merged).is_none() {
            return Ok(());
        }
        if at == 1 {
            target = Some(log);
        }
    }
    let key = call.args[1];
    let mut log = target.unwrap_or_default();
    if is_dense {
        let converted = log.make_dense();
        if sound(call, converted).is_none() {
            return Ok(());
        }
    }
    for (index, value) in registers.0.iter().enumerate().filter(|(_, value)| **value > 0) {
        let raised = log.raise(index, *value, call.limits.hll_sparse());
        if sound(call, raised).is_none() {
            return Ok(());
        }
    }
    log.invalidate();
    write(txn, call, key, &log)?;
    txn.notify(call.db, key, event_class::STRING, "pfadd");
    call.reply.ok();
    Ok(())
}

pub fn pfdebug(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let key = call.args[2];
    let Some(found) = read(txn, call, key)? else { return Ok(()) };
    let Some(mut log) = found else {
        call.reply.error("ERR The specified key does not exist");
        return Ok(());
    };
    match call.args[1].to_ascii_lowercase().as_slice() {
        b"getreg" => {
            let converted = log.make_dense();
            let Some(is_converted) = sound(call, converted) else { return Ok(()) };
            if is_converted {
                write(txn, call, key, &log)?;
            }
            let mut registers = Registers::default();
            let merged = log.merge_into(&mut registers);
            if sound(call, merged).is_some() {
                call.reply.array(registers.0.len());
                registers.0.iter().for_each(|value| call.reply.integer(i64::from(*value)));
            }
        }
        b"decode" if log.is_dense() => call.reply.error("ERR HLL encoding is not sparse"),
        b"decode" => {
            let words = log.opcodes().map(|opcode| match opcode {
                Opcode::ShortZeros(count) => format!("z:{count}"),
                Opcode::Zeros(count) => format!("Z:{count}"),
                Opcode::Values(value, count) => format!("v:{value},{count}"),
            });
            let text = words.collect::<Vec<String>>().join(" ");
            call.reply.bulk(text.as_bytes());
        }
        b"encoding" => call.reply.simple(if log.is_dense() { "dense" } else { "sparse" }),
        b"todense" => {
            let converted = log.make_dense();
            let Some(is_converted) = sound(call, converted) else { return Ok(()) };
            if is_converted {
                write(txn, call, key, &log)?;
            }
            call.reply.flag(is_converted);
        }
        _ => {
            let name = String::from_utf8_lossy(call.args[1]).into_owned();
            call.reply.error(&format!("ERR Unknown PFDEBUG subcommand '{name}'"));
        }
    }
    Ok(())
}

pub fn pfselftest(_: &mut Session, call: &mut Call<'_>) -> Result {
    match self_test() {
        Ok(()) => call.reply.ok(),
        Err(error) => call.reply.error(&error),
    }
    Ok(())
}
