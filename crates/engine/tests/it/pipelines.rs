//! Pipelines: commands under one set of stripes, each atomic, in their order (EN-95).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::rows::{Isolation, KeyValue};
use engine::{Ahead, End, Error, Expire, KeySet, KeyTransaction, Kind, PackLimits, PipelineEnd};
use os::{SimClock, SimFolder};

use crate::support::{START_MS, World, bytes, flushed};

const KEYS: [(u8, &[u8]); 7] =
    [(0, b"list"), (0, b"set"), (0, b"zset"), (0, b"n"), (0, b"hash"), (0, b"other"), (0, b"big")];

type Command<'c> = Box<dyn Fn(&mut KeyTransaction<'_>) -> Result<(), Error> + 'c>;

/// Runs commands as a pipeline. Those that may change several keys are named by their numbers.
fn run(world: &World, commands: &[Command<'_>], several: &[usize]) -> Option<PipelineEnd> {
    let mut next = 0;
    let ended = world.engine.keyspace().write_pipeline(&KEYS, |txn| {
        txn.begin_command(next, several.contains(&next), Ahead::default());
        commands[next](txn)?;
        next += 1;
        Ok(next < commands.len())
    });
    ended.expect("it begins")
}

fn push<'c>(key: &'c [u8], item: &'c [u8]) -> Command<'c> {
    Box::new(move |txn| txn.push_items(0, key, End::Head, &[item]).map(drop))
}

fn add<'c>(key: &'c [u8], member: String) -> Command<'c> {
    let limits = PackLimits { entries: 4, value: 10 };
    Box::new(move |txn| txn.put_members(0, key, Kind::Set, &[(member.as_bytes(), b"")], limits).map(drop))
}

fn score<'c>(key: &'c [u8], member: String, score: f64) -> Command<'c> {
    let limits = PackLimits { entries: 4, value: 10 };
    Box::new(move |txn| txn.put_scores(0, key, &[member.as_bytes()], &mut |_, _| Some(score), limits).map(drop))
}

fn count<'c>(key: &'c [u8]) -> Command<'c> {
    Box::new(move |txn| {
        let old = txn.peek(0, key)?;
        let mut text = Vec::new();
        if let Some(old) = &old {
            txn.value(old, 0..old.len, &mut text)?;
        }
        let old = std::str::from_utf8(&text).unwrap().parse::<u64>().unwrap_or(0);
        txn.put_string(0, key, (old + 1).to_string().as_bytes(), Expire::Keep)
    })
}

fn set<'c>(key: &'c [u8], len: usize) -> Command<'c> {
    Box::new(move |txn| txn.put_string(0, key, &bytes(len, len as u64), Expire::None))
}

fn delete<'c>(key: &'c [u8]) -> Command<'c> {
    Box::new(move |txn| txn.delete(0, key).map(drop))
}

/// Returns all that the keys hold.
fn state(world: &World) -> Vec<String> {
    let read = |txn: &mut KeyTransaction<'_>| {
        let mut all = Vec::new();
        for (db, key) in KEYS {
            let Some(entry) = txn.peek(db, key)? else {
                all.push("nothing".to_owned());
                continue;
            };
            let mut held = vec![format!("{:?} {:?}", entry.kind, entry.expire_at_ms)];
            match entry.kind {
                Kind::String => {
                    let mut value = Vec::new();
                    txn.value(&entry, 0..entry.len, &mut value)?;
                    held.push(value.escape_ascii().to_string());
                }
                Kind::List => {
                    let mut walk = txn.items_from(&entry, End::Head, 0)?;
                    while let Some(item) = walk.next(txn)? {
                        held.push(item.bytes().map_or("large".into(), |bytes| bytes.escape_ascii().to_string()));
                    }
                }
                Kind::ZSet => {
                    let mut walk = txn.sorted(&entry, 0, false)?;
                    while let Some((score, member)) = walk.next(txn)? {
                        held.push(format!("{score} {}", member.escape_ascii()));
                    }
                }
                _ => {
                    let mut walk = txn.members(&entry)?;
                    while let Some(item) = walk.next(txn)? {
                        held.push(item.member.escape_ascii().to_string());
                    }
                    held[1..].sort();
                }
            }
            all.push(held.join(" "));
        }
        Ok::<_, Error>(all)
    };
    world.engine.keyspace().read(KeySet::Keys(&KEYS), read).expect("it can be read").0
}

/// Commands of all kinds, several of which change more than one record.
fn mixed<'c>() -> Vec<Command<'c>> {
    let mut commands: Vec<Command<'c>> = vec![count(b"n"), push(b"list", b"a"), count(b"n"), count(b"n")];
    commands.extend((0..20).map(|nth| add(b"set", format!("member {nth:0100}"))));
    commands.push(count(b"n"));
    commands.extend((0..40).map(|nth| score(b"zset", format!("member {nth:0100}"), f64::from(nth * 7 % 40))));
    commands.extend((0..12).map(|_| push(b"list", &[7; 200])));
    commands.push(set(b"big", 5000));
    commands.push(set(b"other", 10));
    commands.push(Box::new(|txn| {
        txn.put_string(0, b"n", b"100", Expire::None)?;
        txn.put_string(0, b"other", b"200", Expire::None)
    }));
    commands.extend([
        count(b"n"),
        delete(b"list"),
        push(b"list", b"z"),
        push(b"list", b"y"),
        delete(b"n"),
        count(b"n"),
    ]);
    commands
}

/// The command of `mixed` that changes two keys.
const BOTH: usize = 79;

/// Returns the states before the first command and after each.
fn states(commands: &[Command<'_>]) -> Vec<Vec<String>> {
    let world = World::new(3);
    let mut all = vec![state(&world)];
    for (nth, command) in commands.iter().enumerate() {
        world.engine.keyspace().write::<_, Error>(KeySet::Keys(&KEYS), nth == BOTH, |txn| command(txn)).unwrap();
        all.push(state(&world));
    }
    all
}

#[test]
fn a_pipeline_ends_in_the_state_of_its_commands_one_by_one() {
    let commands = mixed();
    let all = states(&commands);
    let world = World::new(3);
    let end = run(&world, &commands, &[BOTH]).expect("nobody waits");
    assert!(end.error.is_none());
    assert_eq!(end.settled, commands.len());
    assert_eq!(Some(&state(&world)), all.last());
    world.check();
    world.flush();
    assert!(world.engine.durable().get() >= end.lsn);
    let world = world.crash();
    assert_eq!(Some(&state(&world)), all.last());
    world.check();
    // One record per key that was changed in one go.
    let before = world.engine.pager().wal_head();
    run(&world, &(0..32).map(|_| count(b"other")).collect::<Vec<_>>(), &[]).expect("nobody waits");
    assert!(world.engine.pager().wal_head() - before < 200, "32 changes of a record are written once");
}

#[test]
fn a_crash_leaves_the_first_commands_of_a_pipeline_whole_and_in_order() {
    let commands = mixed();
    let all = states(&commands);
    let mut seen = std::collections::BTreeSet::new();
    for records in 0.. {
        let left = Arc::new(AtomicU64::new(0));
        let world = World::with(SimFolder::new(1), Arc::new(SimClock::new(START_MS)), flushed(&left)).unwrap();
        left.store(records, Ordering::Relaxed);
        run(&world, &commands, &[BOTH]).expect("nobody waits");
        let is_whole = left.load(Ordering::Relaxed) > 0;
        let world = world.crash();
        world.check();
        let found = state(&world);
        let nth = all.iter().rposition(|state| *state == found);
        seen.insert(nth.unwrap_or_else(|| panic!("cut behind record {records}: {found:#?}")));
        world.settle();
        world.check();
        assert_eq!(state(&world), found, "settled, cut behind record {records}");
        if is_whole {
            assert_eq!(Some(&found), all.last());
            break;
        }
    }
    assert!(seen.len() > 3, "{seen:?}");
}

#[test]
fn what_fails_on_a_full_disk_is_undone_from_the_first_undecided_command_on() {
    let world = World::new(5);
    world.folder.set_capacity(Some(world.folder.used_bytes() + (24 << 20)));
    let mut commands: Vec<Command<'_>> = vec![count(b"n"), count(b"n"), push(b"list", b"a"), count(b"other")];
    commands.extend((0..14).map(|nth| add(b"set", format!("member {nth:0100}"))));
    commands.push(push(b"list", b"b"));
    commands.push(set(b"big", 60 << 20));
    commands.push(count(b"n"));
    let end = run(&world, &commands, &[]).expect("nobody waits");
    assert!(end.error.is_none(), "{end:?}");
    assert!(end.settled >= 4 && end.settled <= 19, "{end:?}");
    assert_eq!(Some(&state(&world)), states(&commands[..end.settled]).last());
    // With space, the others do what they do alone.
    world.folder.set_capacity(None);
    world.engine.pager().background_step().expect("space is found again");
    drop(commands.remove(19));
    for command in &commands[end.settled..] {
        world.engine.keyspace().write::<_, Error>(KeySet::Keys(&KEYS), false, |txn| command(txn)).unwrap();
    }
    assert_eq!(Some(&state(&world)), states(&commands).last());
    assert_eq!(world.get(0, b"n").as_deref(), Some(&b"3"[..]));
    world.settle();
    world.check();
}

#[test]
fn a_key_that_is_locked_or_awaited_keeps_a_pipeline_from_beginning() {
    let world = World::new(7);
    let commands = [count(b"n"), count(b"n")];
    let mut rows = world.engine.rows().begin(Isolation::RepeatableRead);
    rows.put_key(0, b"other", KeyValue { value: b"1".as_slice().into(), expire_at_ms: None }).expect("it is free");
    assert!(run(&world, &commands, &[]).is_none());
    assert_eq!(world.get(0, b"n"), None);
    rows.rollback();
    assert_eq!(run(&world, &commands, &[]).expect("it is free").settled, 2);
    assert_eq!(world.get(0, b"n").as_deref(), Some(&b"2"[..]));
}

/// A command that reads several keys between changes sees the changes before it.
#[test]
fn commands_of_a_pipeline_see_those_before_them() {
    let world = World::new(9);
    let seen = std::cell::RefCell::new(Vec::new());
    let look: Command<'_> = Box::new(|txn| {
        for (db, key) in [KEYS[0], KEYS[1], KEYS[2]] {
            seen.borrow_mut().push(txn.peek(db, key)?.map_or(Ok(0), |entry| entry.count())?);
        }
        let zset = txn.peek(0, b"zset")?.expect("it is there");
        seen.borrow_mut().push(txn.rank(&zset, &engine::ScoreBound::Score { score: 15.0, is_after: false })?);
        Ok(())
    });
    let mut commands = vec![push(b"list", b"a"), add(b"set", "m".into())];
    commands.extend((0..30).map(|nth| score(b"zset", format!("member {nth:0100}"), f64::from(nth))));
    commands.extend([look, push(b"list", b"b")]);
    assert_eq!(run(&world, &commands, &[]).expect("nobody waits").settled, commands.len());
    drop(commands);
    assert_eq!(seen.into_inner(), [1, 1, 30, 15]);
    world.check();
}
