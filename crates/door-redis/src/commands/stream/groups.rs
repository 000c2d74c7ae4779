//! XGROUP.

use engine::{Group, KeyTransaction, Stream, StreamId};

use super::progress::UNKNOWN;
use super::{load, notify};
use crate::call::{Call, Done, Result};
use crate::commands::{help as reply_help, shown};

/// Reads a stream and, unless it may be missing, its group. Returns None after an error reply.
fn load_with_group<'k>(
    txn: &mut KeyTransaction<'k>,
    call: &mut Call<'_>,
    needs_group: bool,
) -> Done<Option<(Stream<'k>, Option<Group>)>> {
    let Some(found) = load(txn, call, call.args[2])? else { return Ok(None) };
    let Some(stream) = found else {
        call.reply.error(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
        );
        return Ok(None);
    };
    let group = txn.group(&stream, call.args[3])?;
    if needs_group && group.is_none() {
        let (group, key) = (shown(call.args[3]), shown(call.args[2]));
        call.reply.error(&format!("NOGROUP No such consumer group '{group}' for key name '{key}'"));
        return Ok(None);
    }
    Ok(Some((stream, group)))
}

/// Reads ENTRIESREAD and, in CREATE, MKSTREAM. Returns None after an error reply.
fn options(call: &mut Call<'_>, is_create: bool) -> Option<(i64, bool)> {
    let (mut read, mut makes_stream, mut at) = (UNKNOWN, false, 5);
    while at < call.args.len() {
        if is_create && call.word(at, "mkstream") {
            makes_stream = true;
            at += 1;
        } else if call.word(at, "entriesread") && at + 1 < call.args.len() {
            read = call.integer(at + 1)?;
            if read < UNKNOWN {
                call.reply.error("ERR value for ENTRIESREAD must be positive or -1");
                return None;
            }
            at += 2;
        } else {
            call.subcommand_syntax();
            return None;
        }
    }
    Some((read, makes_stream))
}

pub fn create(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some((read, makes_stream)) = options(call, true) else { return Ok(()) };
    let (key, name) = (call.args[2], call.args[3]);
    let (stream, group) = if makes_stream {
        let Some(stream) = load(txn, call, key)? else { return Ok(()) };
        let group = stream.as_ref().map(|stream| txn.group(stream, name)).transpose()?.flatten();
        (stream, group)
    } else {
        let Some((stream, group)) = load_with_group(txn, call, false)? else { return Ok(()) };
        (Some(stream), group)
    };
    if call.args.len() > 8 {
        call.subcommand_syntax();
        return Ok(());
    }
    let last = if call.args[4] == b"$" {
        stream.as_ref().map_or(StreamId::MIN, Stream::last_id)
    } else {
        let Some(id) = call.id(4) else { return Ok(()) };
        id
    };
    if group.is_some() {
        call.reply.error("BUSYGROUP Consumer Group name already exists");
        return Ok(());
    }
    let mut stream = match stream {
        Some(stream) => stream,
        None => txn.new_stream(call.db, key)?,
    };
    txn.create_group(&mut stream, name, last, read)?;
    txn.store_stream(stream)?;
    notify(txn, call, key, "xgroup-create");
    call.reply.ok();
    Ok(())
}

pub fn setid(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some((read, _)) = options(call, false) else { return Ok(()) };
    let Some((mut stream, Some(mut group))) = load_with_group(txn, call, true)? else { return Ok(()) };
    if !matches!(call.args.len(), 5 | 7) {
        call.subcommand_syntax();
        return Ok(());
    }
    group.last_id = if call.args[4] == b"$" {
        stream.last_id()
    } else {
        let Some(id) = call.loose_id(4) else { return Ok(()) };
        id
    };
    group.entries_read = read;
    txn.put_group(&mut stream, &group)?;
    notify(txn, call, call.args[2], "xgroup-setid");
    call.reply.ok();
    Ok(())
}

pub fn destroy(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some((mut stream, group)) = load_with_group(txn, call, false)? else { return Ok(()) };
    call.reply.flag(group.is_some());
    if let Some(group) = group {
        txn.destroy_group(&mut stream, &group)?;
        txn.store_stream(stream)?;
        notify(txn, call, call.args[2], "xgroup-destroy");
    }
    Ok(())
}

pub fn createconsumer(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some((mut stream, Some(mut group))) = load_with_group(txn, call, true)? else { return Ok(()) };
    let is_new = txn.consumer(&stream, &group, call.args[4])?.is_none();
    if is_new {
        let consumer = txn.create_consumer(&mut stream, &mut group, call.args[4])?;
        txn.put_consumer(&mut stream, &group, &consumer)?;
        txn.put_group(&mut stream, &group)?;
        notify(txn, call, call.args[2], "xgroup-createconsumer");
    }
    call.reply.flag(is_new);
    Ok(())
}

pub fn delconsumer(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some((mut stream, Some(mut group))) = load_with_group(txn, call, true)? else { return Ok(()) };
    let consumer = txn.consumer(&stream, &group, call.args[4])?;
    call.reply.integer(consumer.as_ref().map_or(0, |consumer| consumer.pending as i64));
    if let Some(consumer) = consumer {
        txn.delete_consumer(&mut stream, &mut group, &consumer)?;
        txn.put_group(&mut stream, &group)?;
        notify(txn, call, call.args[2], "xgroup-delconsumer");
    }
    Ok(())
}

pub fn help(_: &mut crate::session::Session, call: &mut Call<'_>) -> Result {
    reply_help(
        call,
        &[
            "CREATE <key> <groupname> <id|$> [option]",
            "    Create a new consumer group. Options are:",
            "    * MKSTREAM",
            "      Create the empty stream if it does not exist.",
            "    * ENTRIESREAD entries_read",
            "      Set the group's entries_read counter (internal use).",
            "CREATECONSUMER <key> <groupname> <consumer>",
            "    Create a new consumer in the specified group.",
            "DELCONSUMER <key> <groupname> <consumer>",
            "    Remove the specified consumer.",
            "DESTROY <key> <groupname>",
            "    Remove the specified group.",
            "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
            "    Set the current group ID and entries_read counter.",
        ],
    );
    Ok(())
}
