//! Commands for keys of any type.

use engine::{KeyTransaction, event_class};

use crate::call::{Call, Result};
use crate::commands::{delete, missed};
use crate::errors;
use crate::number;

pub fn del(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let mut gone = 0;
    for key in &call.args[1..] {
        gone += i64::from(delete(txn, call, key)?);
    }
    call.reply.integer(gone);
    Ok(())
}

pub fn exists(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let mut found = 0;
    for key in &call.args[1..] {
        txn.check_for_interrupts()?;
        found += i64::from(txn.get(call.db, key)?.is_some());
    }
    call.reply.integer(found);
    Ok(())
}

pub fn type_of(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let found = txn.get(call.db, call.args[1])?;
    call.reply.simple(found.map_or("none", |entry| entry.kind.name()));
    Ok(())
}

pub fn rename(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let (from, to) = (call.args[1], call.args[2]);
    if txn.peek(call.db, from)?.is_none() {
        call.reply.error(errors::NO_SUCH_KEY);
        return Ok(());
    }
    if from != to {
        rename_key(txn, call, from, to)?;
    }
    call.reply.ok();
    Ok(())
}

/// Renames a key and notifies of it. As in Redis, the new name counts as new even if it existed.
fn rename_key(txn: &mut KeyTransaction<'_>, call: &Call<'_>, from: &[u8], to: &[u8]) -> Result {
    let is_replaced = txn.peek(call.db, to)?.is_some();
    txn.rename((call.db, from), (call.db, to))?;
    if is_replaced {
        txn.notify(call.db, to, event_class::NEW, "new");
    }
    txn.notify(call.db, from, event_class::GENERIC, "rename_from");
    txn.notify(call.db, to, event_class::GENERIC, "rename_to");
    Ok(())
}

pub fn renamenx(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let (from, to) = (call.args[1], call.args[2]);
    if txn.peek(call.db, from)?.is_none() {
        call.reply.error(errors::NO_SUCH_KEY);
        return Ok(());
    }
    let free = from != to && txn.peek(call.db, to)?.is_none();
    if free {
        rename_key(txn, call, from, to)?;
    }
    call.reply.flag(free);
    Ok(())
}

pub fn move_key(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
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
    let movable = txn.peek(call.db, key)?.is_some() && txn.peek(to, key)?.is_none();
    if movable {
        txn.rename((call.db, key), (to, key))?;
        txn.notify(call.db, key, event_class::GENERIC, "move_from");
        txn.notify(to, key, event_class::GENERIC, "move_to");
    }
    call.reply.flag(movable);
    Ok(())
}

pub fn copy(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
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
    if txn.peek(call.db, from)?.is_none() {
        missed(txn, call, from);
        call.reply.flag(false);
        return Ok(());
    }
    let is_replaced = txn.peek(to, target)?.is_some();
    if is_replaced && !replace {
        call.reply.flag(false);
        return Ok(());
    }
    txn.copy((call.db, from), (to, target))?;
    if is_replaced {
        txn.notify(to, target, event_class::NEW, "new");
    }
    txn.notify(to, target, event_class::GENERIC, "copy_to");
    call.reply.flag(true);
    Ok(())
}
