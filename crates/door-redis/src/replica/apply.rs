//! Applies commands of the stream: a batch is one key transaction with the note of its end, so it is applied once whatever happens (DR-18).
//!
//! A command that is refused here was not refused by the other server, so the two differ. The commands before it are applied, and the link ends for good: it
//! must not differ silently.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{DATABASES, DocumentChanges, Error, KeyTransaction, Lsn};
use stdx::sync::atomic::Ordering;

use crate::alone::{Alone, Ran, run_alone};
use crate::command::Command;
use crate::commands::function::restore_libraries;
use crate::messages::subscriptions::Topic;
use crate::replica::full_sync::{HELD, of_engine};
use crate::replica::link::{Break, Link};
use crate::replica::note::{Note, StreamPosition};
use crate::replica::received::{Received, name_of};
use crate::scripts::libraries::{KIND, LibrarySet, Policy};
use crate::shared::Shared;

/// Why a batch was not applied.
enum Fault {
    /// The command with this index was refused.
    Refused(usize, String),
    Engine(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Engine(error)
    }
}

/// Applies whole units. Moves `progress` to their end, and returns the LSN at which it is durable, at least `lsn`.
pub fn apply(
    link: &mut Link<'_>,
    batch: &[Received],
    progress: &mut StreamPosition,
    mut lsn: Lsn,
) -> Result<Lsn, Break> {
    // Each part ends with a unit. If memory has no room for all of them at once, it may have for each.
    let mut parts = vec![batch];
    while let Some(part) = parts.pop() {
        match apply_once(link, part, progress, lsn) {
            Ok(done) => lsn = done,
            Err(Fault::Engine(Error::Busy(_) | Error::LockTimeout)) => {
                link.work()?;
                link.following.pause(HELD);
                parts.push(part);
            }
            Err(Fault::Engine(Error::OutOfMemory(_))) if units(part).len() > 1 => {
                parts.extend(units(part).into_iter().rev())
            }
            Err(Fault::Engine(error @ Error::Invalid(_))) => return Err(Break::Refused(error.to_string())),
            Err(Fault::Engine(error)) => return Err(of_engine(error)),
            Err(Fault::Refused(at, text)) => {
                let refused =
                    Break::Refused(format!("'{}' at offset {}: {text}", name_of(&part[at].args), part[at].end));
                let before = part[..at].iter().rposition(|command| command.ends_unit).map_or(0, |last| last + 1);
                if before == 0 {
                    return Err(refused);
                }
                apply(link, &part[..before], progress, lsn)?;
                return Err(refused);
            }
        }
    }
    Ok(lsn)
}

fn units(batch: &[Received]) -> Vec<&[Received]> {
    batch.split_inclusive(|command| command.ends_unit).collect()
}

/// The need of a command of the stream.
enum Need<'b> {
    /// Only its offset counts.
    Nothing,
    Change(Alone<'b>),
    Libraries,
    Message(Topic),
}

fn step<'b>(command: &'static Command, args: &'b [&'b [u8]], db: u8) -> Need<'b> {
    match command.name {
        "select" | "multi" | "exec" | "ping" | "replconf" | "script|load" | "script|flush" => Need::Nothing,
        "publish" => Need::Message(Topic::Channel),
        "spublish" => Need::Message(Topic::Shard),
        "function|load" | "function|delete" | "function|flush" | "function|restore" => Need::Libraries,
        _ => Need::Change(Alone { command, args, db }),
    }
}

fn apply_once(link: &Link<'_>, batch: &[Received], progress: &mut StreamPosition, lsn: Lsn) -> Result<Lsn, Fault> {
    let (shared, following) = (link.shared, link.following);
    let args: Vec<Vec<&[u8]>> = batch.iter().map(|command| command.args.iter().map(Vec::as_slice).collect()).collect();
    let mut steps = Vec::with_capacity(batch.len());
    for (at, (received, args)) in batch.iter().zip(&args).enumerate() {
        steps.push(match received.command {
            Some(command) => match step(command, args, received.db) {
                Need::Change(_) if received.db >= DATABASES => {
                    return Err(Fault::Refused(at, "the stream has selected a database that there is not here".into()));
                }
                step => step,
            },
            None => return Err(Fault::Refused(at, "there is no such command here".into())),
        });
    }
    let Some(last) = batch.last() else { return Ok(lsn) };
    let end = StreamPosition { offset: last.end, db: last.db, id: progress.id.clone() };
    let changes_libraries = steps.iter().any(|step| matches!(step, Need::Libraries));
    let _changing = changes_libraries.then(|| shared.libraries.changing.lock());
    let old = shared.libraries.get();
    let libraries = if changes_libraries { Some(changed_libraries(shared, &old, &steps, &args)?) } else { None };
    let changes_keys = steps.iter().any(|step| matches!(step, Need::Change(_)));
    let mut done = lsn;
    if changes_keys || changes_libraries {
        let note = Note { host: following.host.clone(), port: following.port, progress: Some(end.clone()) }.encode();
        let changes = libraries.as_ref().map_or(Vec::new(), |set| set.changes_of(&old));
        let documents = DocumentChanges { kind: KIND, changes };
        let keys = keys(&steps);
        let mut reply = Vec::new();
        let run = |txn: &mut KeyTransaction<'_>| {
            for (at, step) in steps.iter().enumerate() {
                if let Need::Change(alone) = step {
                    change(shared, txn, *alone, &mut reply, at)?;
                }
            }
            txn.put_note(&note)?;
            txn.change_documents(&documents)?;
            Ok(())
        };
        let ((), lsn) = shared.keyspace.write_following::<(), Fault>(following.writer, keys, run)?;
        done = done.max(lsn);
    }
    if let Some(set) = libraries {
        shared.libraries.show(set, done);
    }
    let of_messages = if shared.strict.load(Ordering::Relaxed) { done } else { 0 };
    for (step, args) in steps.iter().zip(&args) {
        if let (Need::Message(topic), [_, channel, payload]) = (step, args.as_slice()) {
            shared.publish(*topic, channel, payload, of_messages);
        }
    }
    *progress = end;
    Ok(done)
}

/// Returns the keys of all changes, or None if one of them takes all.
fn keys<'b>(steps: &[Need<'b>]) -> Option<Vec<(u8, &'b [u8])>> {
    let mut all = BTreeSet::new();
    for step in steps {
        if let Need::Change(Alone { command, args, db }) = step {
            all.extend(command.keys_of(*db, args)?);
        }
    }
    Some(all.into_iter().collect())
}

/// Runs a command that changes keys.
fn change(
    shared: &Arc<Shared>,
    txn: &mut KeyTransaction<'_>,
    alone: Alone<'_>,
    reply: &mut Vec<u8>,
    at: usize,
) -> Result<(), Fault> {
    let began = shared.clock.monotonic_ns();
    if run_alone(shared, txn, alone, reply)? == Ran::NotServed {
        return Err(Fault::Refused(at, "it has no place in a stream".into()));
    }
    if let Some(text) = reply.strip_prefix(b"-") {
        return Err(Fault::Refused(at, String::from_utf8_lossy(text).trim_end().to_owned()));
    }
    shared.stats.ran(alone.command.index(), shared.clock.monotonic_ns().saturating_sub(began));
    Ok(())
}

/// Returns the libraries of functions behind the commands of a batch.
fn changed_libraries(
    shared: &Arc<Shared>,
    old: &LibrarySet,
    steps: &[Need<'_>],
    args: &[Vec<&[u8]>],
) -> Result<LibrarySet, Fault> {
    let mut set = old.clone();
    for (at, args) in args.iter().enumerate().filter(|(at, _)| matches!(steps[*at], Need::Libraries)) {
        set = change_libraries(shared, set, args).map_err(|text| Fault::Refused(at, text))?;
    }
    Ok(set)
}

fn change_libraries(shared: &Arc<Shared>, mut set: LibrarySet, args: &[&[u8]]) -> Result<LibrarySet, String> {
    let has = |word: &str| args[2..].iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    let add = |set, codes: &[&[u8]], policy| shared.libraries.with(shared, set, codes, policy).map(|(set, _)| set);
    match args[1].to_ascii_lowercase().as_slice() {
        b"flush" => Ok(LibrarySet::default()),
        b"delete" => {
            let name = String::from_utf8_lossy(args[2]);
            if !set.by_name.contains_key(&*name) {
                return Err("ERR Library not found".into());
            }
            set.remove(&name);
            Ok(set)
        }
        b"load" => {
            let policy = if args.len() > 3 { Policy::Replace } else { Policy::New };
            add(set, &[args[args.len() - 1]], policy)
        }
        _ => {
            let set = if has("flush") { LibrarySet::default() } else { set };
            let policy = if has("replace") { Policy::Replace } else { Policy::Append };
            let codes = restore_libraries(args[2]).map_err(str::to_owned)?;
            let codes: Vec<&[u8]> = codes.iter().map(AsRef::as_ref).collect();
            add(set, &codes, policy)
        }
    }
}
