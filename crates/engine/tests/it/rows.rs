//! Maps of rows: what transactions see of each other, lock waits, crashes.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::rows::{
    CATALOG, Inserted, Isolation, LeafHint, Locked, MapId, ReadMode, RowBatch, Rows, Strength, Transaction, Wait,
};
use engine::{Error, Options};
use os::{SimClock, SimFolder};
use stdx::prng::Prng;

use crate::support::{START_MS, Story, World, bury_all, crash_at, wait_until};

const RC: Isolation = Isolation::ReadCommitted;
const RR: Isolation = Isolation::RepeatableRead;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn rows(world: &World) -> &Arc<Rows> {
    world.engine.rows()
}

fn put(txn: &mut Transaction, map: MapId, key: &[u8], value: &[u8]) {
    assert_eq!(txn.insert(map, key, value, &mut Vec::new()).unwrap(), Inserted::Done);
}

fn get(txn: &mut Transaction, map: MapId, key: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    txn.get(map, key, &mut out).unwrap().then_some(out)
}

fn all(txn: &mut Transaction, map: MapId, backward: bool) -> Pairs {
    let mut cursor = txn.scan(map, Unbounded, Unbounded, backward).unwrap();
    let (mut batch, mut found) = (RowBatch::new(), Vec::new());
    while cursor.next(txn, &mut batch).unwrap() {
        found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
    found
}

fn pairs(expected: &[(&str, &str)]) -> Pairs {
    expected.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn filled(world: &World, expected: &[(&str, &str)]) -> MapId {
    let mut txn = rows(world).begin(RR);
    let map = txn.create_map().unwrap();
    expected.iter().for_each(|(key, value)| put(&mut txn, map, key.as_bytes(), value.as_bytes()));
    txn.commit().unwrap();
    map
}

#[test]
fn a_snapshot_sees_its_moment_and_a_statement_its_own() {
    let world = World::new(1);
    let map = filled(&world, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let (mut repeatable, mut committed) = (rows(&world).begin(RR), rows(&world).begin(RC));
    committed.begin_statement();
    assert_eq!(all(&mut repeatable, map, false), pairs(&[("a", "1"), ("b", "2"), ("c", "3")]));
    assert_eq!(get(&mut committed, map, b"a").unwrap(), b"1");

    let mut writer = rows(&world).begin(RR);
    assert!(writer.update(map, b"a", b"one").unwrap());
    assert!(writer.delete(map, b"b").unwrap());
    put(&mut writer, map, b"d", b"4");
    let changed = pairs(&[("a", "one"), ("c", "3"), ("d", "4")]);
    assert_eq!(all(&mut writer, map, false), changed, "it sees its own changes");
    for other in [&mut repeatable, &mut committed] {
        other.begin_statement();
        assert_eq!(all(other, map, false), pairs(&[("a", "1"), ("b", "2"), ("c", "3")]), "uncommitted");
    }
    let lsn = writer.commit().unwrap();
    assert_eq!(get(&mut committed, map, b"a").unwrap(), b"1", "the statement goes on as it began");
    committed.begin_statement();
    assert_eq!(all(&mut committed, map, true), changed.into_iter().rev().collect::<Pairs>());
    assert!(committed.durability_lsn() >= lsn, "what it has read may not be durable yet");
    repeatable.begin_statement();
    assert_eq!(all(&mut repeatable, map, true), pairs(&[("c", "3"), ("b", "2"), ("a", "1")]));
    assert!(repeatable.durability_lsn() < lsn);

    // Deleted and inserted again, several times, while an old snapshot is open.
    for value in ["x", "y"] {
        let mut writer = rows(&world).begin(RR);
        writer.delete(map, b"d").unwrap();
        put(&mut writer, map, b"d", value.as_bytes());
        put(&mut writer, map, b"b", value.as_bytes());
        writer.delete(map, b"b").unwrap();
        writer.commit().unwrap();
    }
    assert_eq!(all(&mut repeatable, map, false), pairs(&[("a", "1"), ("b", "2"), ("c", "3")]));
    repeatable.rollback();
    drop(committed);
    world.flush();
    world.settle();
    assert_eq!(rows(&world).version_bytes(), 0, "no snapshot needs old versions any more");
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems, report.delete_marked), (vec![], 0));
    assert_eq!(report.rows, 3);
}

#[test]
fn changes_that_were_rolled_back_are_never_visible() {
    let world = World::new(2);
    let map = filled(&world, &[("a", "1"), ("b", "2")]);
    let mut txn = rows(&world).begin(RR);
    put(&mut txn, map, b"c", b"3");
    let first = txn.savepoint();
    txn.update(map, b"a", b"first").unwrap();
    let second = txn.savepoint();
    txn.update(map, b"a", b"second").unwrap();
    txn.delete(map, b"b").unwrap();
    txn.delete(map, b"c").unwrap();
    assert_eq!(txn.insert(map, b"a", b"", &mut Vec::new()).unwrap(), Inserted::Exists);
    txn.rollback_to(second).unwrap();
    assert_eq!(all(&mut txn, map, false), pairs(&[("a", "first"), ("b", "2"), ("c", "3")]));
    txn.rollback_to(first).unwrap();
    assert_eq!(all(&mut txn, map, false), pairs(&[("a", "1"), ("b", "2"), ("c", "3")]));

    // A row that was restored stays locked until the transaction is decided.
    let mut other = rows(&world).begin(RR);
    other.set_lock_wait(Duration::from_millis(5));
    assert!(matches!(other.update(map, b"a", b"no"), Err(Error::LockTimeout)));
    assert_eq!(all(&mut other, map, false), pairs(&[("a", "1"), ("b", "2")]));
    txn.rollback();
    assert!(other.update(map, b"a", b"yes").unwrap());
    assert!(!other.update(map, b"c", b"no").unwrap());
    other.commit().unwrap();
    world.flush();
    world.settle();
    let world = world.crash();
    let mut txn = rows(&world).begin(RR);
    assert_eq!(all(&mut txn, map, false), pairs(&[("a", "yes"), ("b", "2")]));
    drop(txn);
    world.check();
}

/// Recovery must find its end, or it would undo over later changes of others.
#[test]
fn a_transaction_that_undid_all_its_changes_still_ends_in_the_wal() {
    let world = World::new(10);
    let map = filled(&world, &[("a", "1")]);
    for end in [Transaction::rollback, |txn: Transaction| assert!(txn.commit().unwrap() > 0)] {
        let mut txn = rows(&world).begin(RR);
        let start = txn.savepoint();
        txn.update(map, b"a", b"no").unwrap();
        txn.rollback_to(start).unwrap();
        end(txn);
    }
    let mut txn = rows(&world).begin(RR);
    txn.update(map, b"a", b"2").unwrap();
    txn.commit().unwrap();
    world.flush();
    let world = world.crash();
    assert_eq!(get(&mut rows(&world).begin(RR), map, b"a").unwrap(), b"2");
}

/// EN-19: the record of a deleted row stays until the deletion is durable, so the absence of a row needs no durability LSN.
#[test]
fn the_absence_of_a_row_is_shown_when_it_is_durable() {
    let world = World::new(13);
    let map = filled(&world, &[("a", "1")]);
    world.flush();
    let mut txn = rows(&world).begin(RR);
    txn.delete(map, b"a").unwrap();
    let lsn = txn.commit().unwrap();
    world.settle();
    for scans in [false, true] {
        let mut reader = rows(&world).begin(RC);
        let is_there =
            if scans { !all(&mut reader, map, false).is_empty() } else { get(&mut reader, map, b"a").is_some() };
        assert!(!is_there && reader.durability_lsn() == lsn);
    }
    world.flush();
    world.settle();
    let mut reader = rows(&world).begin(RC);
    assert_eq!((get(&mut reader, map, b"a"), reader.durability_lsn()), (None, 0));
    assert_eq!(world.engine.check().unwrap().delete_marked, 0);
}

/// EN-18: a restored row belongs to its transaction until ABORT is in the WAL.
#[test]
fn a_restored_row_stays_locked_until_abort_is_logged() {
    const ROWS: u32 = 5_000;
    let world = World::new(12);
    let mut txn = rows(&world).begin(RR);
    let map = txn.create_map().unwrap();
    (0..ROWS).for_each(|at| put(&mut txn, map, &at.to_be_bytes(), b"before"));
    txn.commit().unwrap();
    let mut txn = rows(&world).begin(RR);
    (0..ROWS).for_each(|at| assert!(txn.update(map, &at.to_be_bytes(), b"regretted").unwrap()));
    let aborts = || world.engine.metrics().txn_aborts.get();
    let tries = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let greedy = scope.spawn(|| {
            let mut txn = rows(&world).begin(RR);
            txn.set_lock_wait(Duration::ZERO);
            loop {
                match txn.update(map, &0u32.to_be_bytes(), b"mine") {
                    Ok(is_row) => break assert!(is_row && aborts() == 1),
                    Err(Error::LockTimeout) => drop(tries.fetch_add(1, Ordering::SeqCst)),
                    Err(error) => panic!("{error}"),
                }
            }
        });
        wait_until("the other one has tried", || tries.load(Ordering::SeqCst) > 0);
        txn.rollback();
        greedy.join().unwrap();
    });
    assert_eq!(aborts(), 2, "so was the greedy one");
    let mut txn = rows(&world).begin(RR);
    assert!(all(&mut txn, map, false).iter().all(|(_, value)| value == b"before"));
}

#[test]
fn a_change_waits_for_the_holder_and_acts_on_the_newest_version() {
    let world = World::new(3);
    let map = filled(&world, &[("n", "0")]);
    let mut first = rows(&world).begin(RR);
    first.update(map, b"n", b"1").unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut txn = rows(&world).begin(RR);
            assert_eq!(get(&mut txn, map, b"n").unwrap(), b"0");
            let mut value = Vec::new();
            assert_eq!(txn.lock_patiently(map, b"n", Strength::Exclusive, &mut value).unwrap(), Locked::Present);
            assert_eq!(value, b"1", "the newest, though the snapshot is older");
            assert_eq!(get(&mut txn, map, b"n").unwrap(), b"0", "plain reads go on as they were");
            txn.update(map, b"n", b"2").unwrap();
            assert_eq!(get(&mut txn, map, b"n").unwrap(), b"2");
            txn.commit().unwrap();
        });
        let inserter = scope.spawn(|| {
            let mut txn = rows(&world).begin(RC);
            let mut old = Vec::new();
            txn.insert(map, b"m", b"mine", &mut old).unwrap()
        });
        wait_until("the waiter waits", || rows(&world).lock_waits().len() == 1);
        assert!(!waiter.is_finished());
        first.commit().unwrap();
        waiter.join().unwrap();
        assert_eq!(inserter.join().unwrap(), Inserted::Done);
    });
    let mut txn = rows(&world).begin(RR);
    assert_eq!(all(&mut txn, map, false), pairs(&[("n", "2")]), "the inserter never committed");
}

#[test]
fn a_row_is_restored_while_others_try_to_lock_it() {
    let world = World::new(44);
    let map = filled(&world, &[("a", "1")]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let mut txn = rows(&world).begin(RC);
                    let found = txn.lock(map, b"a", Strength::Shared, Wait::SkipLocked, &mut Vec::new()).unwrap();
                    assert_ne!(found, Locked::Absent);
                }
            });
        }
        let put_back = || {
            let mut txn = rows(&world).begin(RC);
            txn.set_lock_wait(Duration::from_secs(600));
            let before = txn.savepoint();
            assert!(txn.update(map, b"a", b"2").unwrap());
            txn.rollback_to(before).unwrap();
            txn.rollback();
        };
        let done = catch_unwind(AssertUnwindSafe(|| (0..3000).for_each(|_| put_back())));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap();
    });
}

#[test]
fn locks_are_shared_or_not_waited_for_or_skipped() {
    let world = World::new(4);
    let map = filled(&world, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let lock = |txn: &mut Transaction, key: &[u8], strength, wait| txn.lock(map, key, strength, wait, &mut Vec::new());
    let (mut one, mut two) = (rows(&world).begin(RR), rows(&world).begin(RR));
    assert_eq!(lock(&mut one, b"a", Strength::Shared, Wait::NoWait).unwrap(), Locked::Present);
    assert_eq!(lock(&mut two, b"a", Strength::Shared, Wait::NoWait).unwrap(), Locked::Present);
    assert!(matches!(lock(&mut two, b"a", Strength::Exclusive, Wait::NoWait), Err(Error::LockNotAvailable)));
    assert_eq!(lock(&mut two, b"a", Strength::Exclusive, Wait::SkipLocked).unwrap(), Locked::Skipped);
    two.set_lock_wait(Duration::from_millis(5));
    assert!(matches!(two.update(map, b"a", b"x"), Err(Error::LockTimeout)), "a shared lock keeps writers away");
    assert_eq!(lock(&mut one, b"b", Strength::Exclusive, Wait::NoWait).unwrap(), Locked::Present);
    assert_eq!(lock(&mut two, b"b", Strength::Shared, Wait::SkipLocked).unwrap(), Locked::Skipped);
    assert!(matches!(two.delete(map, b"b"), Err(Error::LockTimeout)));

    // An absent row is locked too, and a range against inserts.
    assert_eq!(lock(&mut one, b"d", Strength::Exclusive, Wait::NoWait).unwrap(), Locked::Absent);
    assert!(matches!(two.insert(map, b"d", b"", &mut Vec::new()), Err(Error::LockTimeout)));
    one.lock_range(map, b"e", Some(b"g")).unwrap();
    put(&mut one, map, b"e1", b"own");
    for (key, is_free) in [(b"e", false), (b"f", false), (b"g", true)] {
        assert_eq!(two.insert(map, key, b"", &mut Vec::new()).is_ok(), is_free, "{key:?}");
    }
    assert!(two.update(map, b"c", b"x").unwrap());

    // A scan of the newest versions meets rows that other transactions have changed.
    let mut cursor = one.scan_current(map, Included(b"c"), Excluded(b"e"), false).unwrap();
    let mut batch = RowBatch::new();
    assert!(cursor.next(&mut one, &mut batch).unwrap());
    assert_eq!(batch.iter().map(|(key, _)| key).collect::<Vec<_>>(), [b"c"]);
    assert_eq!(lock(&mut one, b"c", Strength::Shared, Wait::SkipLocked).unwrap(), Locked::Skipped);
    one.commit().unwrap();
    assert!(two.update(map, b"b", b"x").unwrap() && two.update(map, b"a", b"x").unwrap());
    put(&mut two, map, b"f", b"free");
    two.commit().unwrap();
    world.check();
}

/// A map far larger than memory.
fn large(world: &World, rows_of_it: u64) -> MapId {
    let mut txn = rows(world).begin(RR);
    let map = txn.create_map().unwrap();
    (0..rows_of_it).for_each(|number| put(&mut txn, map, &number.to_be_bytes(), &[7; 500]));
    txn.commit().unwrap();
    map
}

#[test]
fn a_read_that_would_block_fails_and_changes_nothing() {
    let world = World::new(12);
    let map = large(&world, 20_000);
    let mut txn = rows(&world).begin(RR);
    txn.set_read_mode(ReadMode::CachedOnly);
    let mut out = Vec::new();
    let is_absent = |number: &u64| {
        let mut txn = rows(&world).begin(RR);
        txn.set_read_mode(ReadMode::CachedOnly);
        matches!(txn.get(map, &number.to_be_bytes(), &mut Vec::new()), Err(Error::WouldBlock))
    };
    let missing: Vec<u64> = (0..20_000).step_by(97).filter(is_absent).take(20).collect();
    assert_eq!(missing.len(), 20, "most of it is not in memory");
    for number in missing {
        let key = number.to_be_bytes();
        let mut try_lock = |txn: &mut Transaction| txn.lock(map, &key, Strength::Exclusive, Wait::NoWait, &mut out);
        assert!(matches!(try_lock(&mut txn), Err(Error::WouldBlock)));
        // It has not kept the lock.
        assert_eq!(try_lock(&mut rows(&world).begin(RR)).unwrap(), Locked::Present);
        rows(&world).fetch(&txn.take_absent(), Box::new(|| ()));
        assert_eq!(try_lock(&mut txn).unwrap(), Locked::Present);
        let other = try_lock(&mut rows(&world).begin(RR));
        assert!(matches!(other, Err(Error::LockNotAvailable)), "{other:?}");
    }
    // From its first change on it waits.
    assert!(txn.update(map, &7u64.to_be_bytes(), b"new").unwrap());
    for number in (0..20_000u64).step_by(997) {
        assert!(txn.get(map, &number.to_be_bytes(), &mut out).unwrap());
    }
}

#[test]
fn of_two_that_wait_for_each_other_one_is_rolled_back() {
    let world = World::new(5);
    let map = filled(&world, &[("a", "0"), ("b", "0")]);
    let deadlocks = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (mine, theirs) in [(b"a", b"b"), (b"b", b"a")] {
            let (world, deadlocks) = (&world, &deadlocks);
            scope.spawn(move || {
                for _ in 0..200 {
                    let mut txn = rows(world).begin(RR);
                    let mut both = || -> Result<(), Error> {
                        txn.update(map, mine, b"x")?;
                        std::thread::yield_now();
                        txn.update(map, theirs, b"x")?;
                        Ok(())
                    };
                    match both() {
                        Ok(()) => drop(txn.commit().unwrap()),
                        Err(Error::Deadlock) => {
                            deadlocks.fetch_add(1, Ordering::Relaxed);
                            assert!(matches!(txn.update(map, mine, b"y"), Err(Error::Deadlock)), "it is rolled back");
                            assert!(matches!(txn.commit(), Err(Error::Deadlock)));
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert!(deadlocks.load(Ordering::Relaxed) < 400, "some got through");
    world.check();
}

#[test]
fn money_is_neither_made_nor_lost() {
    const ACCOUNTS: u64 = 40;
    const EACH: u64 = 100;
    let world = World::new(6);
    let mut txn = rows(&world).begin(RR);
    let map = txn.create_map().unwrap();
    (0..ACCOUNTS).for_each(|at| put(&mut txn, map, &at.to_be_bytes(), &EACH.to_le_bytes()));
    txn.commit().unwrap();
    let number = |value: &[u8]| u64::from_le_bytes(value.try_into().unwrap());
    let (stop, moved, looked) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let until = Instant::now() + Duration::from_millis(1500);
    std::thread::scope(|scope| {
        for seed in 0..4u64 {
            let (world, moved) = (&world, &moved);
            scope.spawn(move || {
                let mut prng = Prng::new(seed);
                while Instant::now() < until {
                    let (from, to) = (prng.next_u64() % ACCOUNTS, prng.next_u64() % ACCOUNTS);
                    let mut txn = rows(world).begin(if seed % 2 == 0 { RC } else { RR });
                    let mut transfer = || -> Result<(), Error> {
                        for (account, is_from) in [(from, true), (to, false)] {
                            let (key, mut value) = (account.to_be_bytes(), Vec::new());
                            txn.lock_patiently(map, &key, Strength::Exclusive, &mut value)?;
                            let balance = number(&value);
                            let balance = if is_from { balance.saturating_sub(1) } else { balance + 1 };
                            if is_from && number(&value) == 0 {
                                return Err(Error::Misuse("broke"));
                            }
                            if prng.chance(0.25) {
                                txn.delete(map, &key)?;
                                txn.insert(map, &key, &balance.to_le_bytes(), &mut Vec::new())?;
                            } else {
                                txn.update(map, &key, &balance.to_le_bytes())?;
                            }
                        }
                        Ok(())
                    };
                    let done = transfer();
                    let regret = prng.chance(0.125);
                    match done {
                        Ok(()) if !regret => {
                            txn.commit().unwrap();
                            moved.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(()) | Err(Error::Deadlock | Error::Misuse(_)) => txn.rollback(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for isolation in [RC, RR] {
            let (world, looked) = (&world, &looked);
            scope.spawn(move || {
                while Instant::now() < until {
                    let mut txn = rows(world).begin(isolation);
                    txn.begin_statement();
                    let found = all(&mut txn, map, isolation == RC);
                    assert_eq!(found.len() as u64, ACCOUNTS);
                    assert_eq!(found.iter().map(|(_, value)| number(value)).sum::<u64>(), ACCOUNTS * EACH);
                    if isolation == RR {
                        let again: Pairs = (0..ACCOUNTS)
                            .map(|at| (at.to_be_bytes().to_vec(), get(&mut txn, map, &at.to_be_bytes()).unwrap()))
                            .collect();
                        assert_eq!(again, found, "the same snapshot");
                    }
                    looked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                world.flush();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
            world.engine.background_once(16).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(moved.load(Ordering::Relaxed) > 100 && looked.load(Ordering::Relaxed) > 20);
    world.flush();
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems, report.delete_marked, report.rows), (vec![], 0, ACCOUNTS));
    assert_eq!(rows(&world).version_bytes(), 0);
}

#[test]
fn maps_come_and_go_with_their_transactions() {
    let world = World::new(7);
    let before = world.engine.check().unwrap().tree_pages;
    let mut txn = rows(&world).begin(RR);
    let given_up = txn.create_map().unwrap();
    (0..3000u32).for_each(|at| put(&mut txn, given_up, &at.to_be_bytes(), &[7; 100]));
    txn.rollback();
    let kept = filled(&world, &[("k", "v")]);
    let mut txn = rows(&world).begin(RR);
    txn.drop_map(kept).unwrap();
    txn.rollback();
    let mut txn = rows(&world).begin(RR);
    assert_eq!(all(&mut txn, kept, false), pairs(&[("k", "v")]));
    assert!(matches!(txn.get(given_up, b"k", &mut Vec::new()), Err(Error::Misuse(_))));
    (0..3000u32).for_each(|at| put(&mut txn, kept, &at.to_be_bytes(), &[7; 100]));
    txn.commit().unwrap();
    world.check();
    let mut txn = rows(&world).begin(RR);
    txn.drop_map(kept).unwrap();
    let made_and_dropped = txn.create_map().unwrap();
    put(&mut txn, made_and_dropped, b"k", b"v");
    txn.drop_map(made_and_dropped).unwrap();
    txn.commit().unwrap();
    world.check();
    world.flush();
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems, report.tree_pages, report.queued), (vec![], before, 0));
}

#[test]
fn maps_are_undone_to_a_savepoint() {
    let world = World::new(8);
    let before = world.engine.check().unwrap().tree_pages;
    let kept = filled(&world, &[("k", "v")]);
    for commits in [true, false] {
        let mut txn = rows(&world).begin(RR);
        let early = txn.create_map().unwrap();
        put(&mut txn, early, b"a", b"1");
        let savepoint = txn.savepoint();
        put(&mut txn, early, b"b", b"2");
        txn.drop_map(kept).unwrap();
        let late = txn.create_map().unwrap();
        for at in 0..3000u32 {
            txn.load(late, &at.to_be_bytes(), &[7; 100]).unwrap();
        }
        txn.drop_map(early).unwrap();
        txn.rollback_to(savepoint).unwrap();
        assert!(matches!(txn.get(late, b"k", &mut Vec::new()), Err(Error::Misuse(_))));
        assert_eq!(all(&mut txn, early, false), pairs(&[("a", "1")]));
        assert_eq!(all(&mut txn, kept, false), pairs(&[("k", "v")]));
        if commits {
            txn.drop_map(early).unwrap();
            txn.commit().unwrap();
        } else {
            txn.rollback();
        }
        world.check();
    }
    let mut txn = rows(&world).begin(RR);
    txn.drop_map(kept).unwrap();
    txn.commit().unwrap();
    world.flush();
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems, report.tree_pages, report.queued), (vec![], before, 0));
}

/// Loading keeps no undo steps, so a savepoint between a map's creation and the load is lost.
#[test]
fn loaded_rows_are_undone_only_with_their_map() {
    let world = World::new(10);
    let mut txn = rows(&world).begin(RR);
    let first = txn.create_map().unwrap();
    txn.load(first, b"a", b"1").unwrap();
    let behind = txn.savepoint();
    put(&mut txn, first, b"b", b"2");
    txn.rollback_to(behind).unwrap();
    assert_eq!(all(&mut txn, first, false), pairs(&[("a", "1")]));
    txn.load(first, b"c", b"3").unwrap();
    assert!(matches!(txn.rollback_to(behind), Err(Error::Misuse(_))));
    assert!(matches!(txn.commit(), Err(Error::Misuse(_))), "the whole transaction has been rolled back");
    world.check();
}

#[test]
fn a_transaction_reads_the_newest_rows_and_then_its_snapshot_again() {
    let world = World::new(11);
    let map = filled(&world, &[("k", "old")]);
    let mut txn = rows(&world).begin(RR);
    assert_eq!(all(&mut txn, map, false), pairs(&[("k", "old")]));
    let mut other = rows(&world).begin(RR);
    other.update(map, b"k", b"new").unwrap();
    other.commit().unwrap();
    let aside = txn.read_newest();
    assert_eq!(all(&mut txn, map, false), pairs(&[("k", "new")]));
    txn.read_as_before(aside);
    world.settle();
    assert_eq!(all(&mut txn, map, false), pairs(&[("k", "old")]));
}

#[test]
fn keys_and_values_that_are_too_long_are_refused() {
    let world = World::new(9);
    let mut txn = rows(&world).begin(RR);
    let long = vec![0; 5_000];
    assert!(matches!(txn.insert(CATALOG, &long, b"", &mut Vec::new()), Err(Error::TooLarge { .. })));
    put(&mut txn, CATALOG, b"k", &long);
    txn.commit().unwrap();
    world.check();
}

#[test]
fn long_values_are_as_good_as_short_ones() {
    let world = World::new(11);
    let map = filled(&world, &[("short", "s")]);
    let value = |seed: u64, len: usize| crate::support::bytes(len, seed);
    let sizes = [1_292, 1_293, 4_096, 262_144, 262_145, 1_000_000];
    let mut txn = rows(&world).begin(RR);
    for (at, len) in sizes.into_iter().enumerate() {
        put(&mut txn, map, &[at as u8], &value(1, len));
    }
    txn.commit().unwrap();
    let mut reader = rows(&world).begin(RR);
    assert_eq!(get(&mut reader, map, b"short").unwrap(), b"s");

    // Replaced, made short, made long, deleted; some of it rolled back.
    let mut txn = rows(&world).begin(RR);
    let start = txn.savepoint();
    for (at, len) in sizes.into_iter().enumerate() {
        assert!(txn.update(map, &[at as u8], &value(2, len + 7)).unwrap());
        let savepoint = txn.savepoint();
        assert!(txn.update(map, &[at as u8], &value(3, len)).unwrap());
        assert!(txn.delete(map, &[at as u8]).unwrap());
        txn.rollback_to(savepoint).unwrap();
        assert_eq!(get(&mut txn, map, &[at as u8]).unwrap(), value(2, len + 7));
        assert_eq!(get(&mut reader, map, &[at as u8]).unwrap(), value(1, len));
    }
    txn.rollback_to(start).unwrap();
    assert_eq!(txn.insert(map, &[5], &value(9, 500_000), &mut Vec::new()).unwrap(), Inserted::Exists);
    let mut old = Vec::new();
    assert_eq!(txn.insert(map, &[4], b"no", &mut old).unwrap(), Inserted::Exists);
    assert_eq!(old, value(1, 262_145));
    txn.update(map, b"short", &value(4, 70_000)).unwrap();
    txn.update(map, &[5], b"short now").unwrap();
    txn.delete(map, &[4]).unwrap();
    txn.commit().unwrap();
    world.flush();
    world.settle();
    world.check();
    assert_eq!(get(&mut reader, map, &[5]).unwrap(), value(1, 1_000_000), "an old snapshot has the old value");
    assert_eq!(all(&mut reader, map, true).len(), 7);
    reader.rollback();
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems, report.queued), (vec![], 0));
    let world = world.crash();
    let mut txn = rows(&world).begin(RR);
    assert_eq!(get(&mut txn, map, b"short").unwrap(), value(4, 70_000));
    assert_eq!(get(&mut txn, map, &[3]).unwrap(), value(1, 262_144));
    assert_eq!(get(&mut txn, map, &[4]), None);
    txn.drop_map(map).unwrap();
    txn.commit().unwrap();
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems, report.queued, report.elements), (vec![], 0, 0));
}

type State = BTreeMap<MapId, BTreeMap<Vec<u8>, Vec<u8>>>;

/// A history of transactions, several open at a time. After a crash the state of some commit must be found, not older than the last durable one.
struct History {
    states: Vec<(u64, State)>,
    prng: Prng,
    /// Open transactions.
    open: Vec<Transaction>,
}

impl History {
    fn new(seed: u64) -> History {
        History {
            states: vec![(0, State::from([(CATALOG, BTreeMap::new())]))],
            prng: Prng::new(seed),
            open: Vec::new(),
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.prng.next_u64() % below
    }

    fn state(&self) -> State {
        self.states.last().expect("the first").1.clone()
    }

    fn disturb(&mut self, at: usize) -> Result<(), Error> {
        let (key, value) = (self.draw(20).to_be_bytes(), [self.draw(256) as u8; 50]);
        let txn = &mut self.open[at];
        let done = match self.prng.next_u64() % 3 {
            0 => txn.insert(CATALOG, &key, &value, &mut Vec::new()).map(drop),
            1 => txn.update(CATALOG, &key, &value).map(drop),
            _ => txn.delete(CATALOG, &key).map(drop),
        };
        match done {
            Err(Error::LockTimeout) => Ok(()),
            other => other,
        }
    }

    fn change(&mut self, at: usize, state: &mut State) -> Result<(), Error> {
        let maps: Vec<MapId> = state.keys().copied().collect();
        let map = maps[self.draw(maps.len() as u64) as usize];
        let key = self.draw(20).to_be_bytes().to_vec();
        let len = match self.draw(40) {
            0 => 300_000,
            1..4 => 2_000 + self.draw(20_000),
            _ => self.draw(400),
        };
        let value = vec![1 + self.draw(255) as u8; len as usize];
        let model = state.get_mut(&map).expect("one of them");
        let kind = self.draw(13);
        if kind == 12 {
            return self.regret_maps(at, state);
        }
        let txn = &mut self.open[at];
        let done = match kind {
            0 if maps.len() < 4 => {
                let made = txn.create_map()?;
                state.insert(made, BTreeMap::new());
                return Ok(());
            }
            1 if map != CATALOG => {
                txn.drop_map(map)?;
                state.remove(&map);
                return Ok(());
            }
            2 => {
                let (savepoint, before) = (txn.savepoint(), model.clone());
                let done = txn.update(map, &key, b"regretted").and_then(|_| txn.delete(map, &key)).map(drop);
                txn.rollback_to(savepoint)?;
                *model = before;
                done
            }
            3 | 4 => txn.delete(map, &key).map(|is_row| assert_eq!(is_row, model.remove(&key).is_some())),
            5..=7 => txn.update(map, &key, &value).map(|is_row| {
                assert_eq!(is_row, model.contains_key(&key));
                if is_row {
                    model.insert(key, value);
                }
            }),
            _ => txn.insert(map, &key, &value, &mut Vec::new()).map(|done| {
                assert_eq!(done == Inserted::Done, !model.contains_key(&key));
                model.entry(key).or_insert(value);
            }),
        };
        match done {
            // The other open transaction holds the lock.
            Err(Error::LockTimeout) => Ok(()),
            other => other,
        }
    }
}

impl History {
    /// Creates, loads, changes and drops maps behind a savepoint, and rolls back to it.
    fn regret_maps(&mut self, at: usize, state: &State) -> Result<(), Error> {
        let savepoint = self.open[at].savepoint();
        let mut own = Vec::new();
        for _ in 0..1 + self.draw(4) {
            let (kind, nth) = (self.draw(6), self.draw(4) as usize);
            let long = if self.draw(4) == 0 { 20_000 } else { 60 };
            let within = self.draw(3) == 0;
            let txn = &mut self.open[at];
            let inner = txn.savepoint();
            match (kind, own.get(nth).copied()) {
                (0 | 1, _) => {
                    let made = txn.create_map()?;
                    for key in 0..10u64 {
                        txn.load(made, &key.to_be_bytes(), &vec![7; long])?;
                    }
                    own.push(made);
                }
                (2 | 3, Some(made)) => {
                    txn.update(made, &3u64.to_be_bytes(), &vec![8; long])?;
                    txn.delete(made, &4u64.to_be_bytes())?;
                }
                (4, Some(made)) => {
                    txn.drop_map(made)?;
                    own.retain(|known| *known != made);
                }
                (5, _) if own.len() < 4 => {
                    if let Some(map) = state.keys().find(|map| **map != CATALOG) {
                        txn.drop_map(*map)?;
                        txn.rollback_to(inner)?;
                    }
                }
                _ => {}
            }
            if within && matches!(kind, 0 | 1) {
                let txn = &mut self.open[at];
                txn.rollback_to(inner)?;
                let made = own.pop().expect("just made");
                assert!(matches!(txn.get(made, b"k", &mut Vec::new()), Err(Error::Misuse(_))), "EN-60");
            }
        }
        self.open[at].rollback_to(savepoint)
    }
}

impl Story for History {
    /// Plays some transactions. An error means that the disk is dead.
    fn play(&mut self, world: &World) -> Result<(), Error> {
        for _ in 0..30 {
            let mut state = self.state();
            for _ in 0..2 {
                let mut txn = rows(world).begin(RR);
                txn.set_lock_wait(Duration::ZERO);
                self.open.push(txn);
            }
            let ours = self.open.len() - 2;
            for _ in 0..1 + self.draw(12) {
                self.change(ours, &mut state)?;
                if self.draw(4) == 0 {
                    // A transaction that may never be decided.
                    self.disturb(ours + 1)?;
                }
            }
            match self.draw(3) {
                // The last one stays open until the crash.
                0 => {}
                _ => self.open.pop().expect("pushed above").rollback(),
            }
            let txn = self.open.remove(ours);
            match self.draw(4) {
                0 => txn.rollback(),
                _ => {
                    let lsn = txn.commit()?;
                    if lsn > 0 {
                        self.states.push((lsn, state));
                    }
                }
            }
            world.go_about(self.draw(4))?;
        }
        Ok(())
    }

    /// Drops transactions whose disk is dead: they cannot even be rolled back.
    fn bury(&mut self) {
        bury_all(&mut self.open);
    }

    /// Asserts that the present state is one of those that may be.
    fn verify(&self, world: &World, durable: u64) {
        let newest = self.states.iter().rposition(|(lsn, _)| *lsn <= durable).expect("the first");
        let possible = &self.states[newest..];
        let mut txn = rows(world).begin(RR);
        let matches = |txn: &mut Transaction, state: &State| {
            state.iter().all(|(map, model)| {
                let mut cursor = match txn.scan(*map, Unbounded, Unbounded, false) {
                    Ok(cursor) => cursor,
                    Err(Error::Misuse(_)) => return false,
                    Err(error) => panic!("{error}"),
                };
                let (mut batch, mut found) = (RowBatch::new(), BTreeMap::new());
                while cursor.next(txn, &mut batch).unwrap() {
                    found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
                }
                found == *model
            })
        };
        assert!(possible.iter().any(|(_, state)| matches(&mut txn, state)), "none of {} states", possible.len());
    }
}

/// Number of histories that are crashed; a soak takes more.
const SEEDS: u64 = 100;

/// Crashes at one I/O after another of the same history, recovers, and crashes again during the recovery.
#[test]
fn a_crash_at_any_io_leaves_what_was_committed() {
    crash_everywhere(0..SEEDS, crate::support::options);
}

/// The same where no transaction keeps more than a step or two in memory.
#[test]
fn a_crash_leaves_what_was_committed_also_from_undo_files() {
    crash_everywhere(SEEDS..SEEDS + SEEDS / 10, || Options { versions_max: 2_000, ..crate::support::options() });
}

fn crash_everywhere(seeds: std::ops::Range<u64>, options: fn() -> Options) {
    let world = |seed| {
        let folder = SimFolder::new(seed);
        World::with(folder, Arc::new(SimClock::new(START_MS)), options()).expect("an empty folder opens")
    };
    let mut crashes = 0;
    for seed in seeds {
        let total = {
            let (world, mut history) = (world(seed), History::new(seed));
            let before = world.folder.io_count();
            history.play(&world).unwrap();
            history.bury();
            world.folder.io_count() - before
        };
        crashes += total;
        for io in 1..=total {
            let (world, mut history) = (world(seed), History::new(seed));
            crash_at(world, &mut history, io, options);
        }
    }
    assert!(crashes > 100, "{crashes} crashes are too few to mean something");
}

#[test]
fn a_hint_where_a_row_was_gives_the_row_that_a_search_finds() {
    let world = World::new(63);
    let name = |nth: usize| format!("{nth:05}");
    let values: Vec<(String, String)> = (0..900).step_by(3).map(|nth| (name(nth), format!("value {nth}"))).collect();
    let borrowed: Vec<(&str, &str)> = values.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    let map = filled(&world, &borrowed);
    let names: Vec<String> = (0..900).map(name).collect();
    let keys: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let (mut early, mut hints) = (rows(&world).begin(RR), Vec::new());
    let before: Vec<_> = keys.iter().map(|key| get(&mut early, map, key)).collect();
    early.locate(map, &keys, &mut hints).unwrap();
    assert!(hints.iter().any(|hint| matches!(hint, LeafHint::Leaf(_))));
    // Leaves split, and rows change and go.
    let mut writer = rows(&world).begin(RR);
    for nth in 0..900 {
        let key = name(nth).into_bytes();
        match nth % 3 {
            0 if nth % 2 == 0 => assert!(writer.delete(map, &key).unwrap()),
            0 => assert!(writer.update(map, &key, &[7; 90]).unwrap()),
            _ => put(&mut writer, map, &key, &[8; 90]),
        }
    }
    writer.commit().unwrap();
    let mut late = rows(&world).begin(RR);
    for ((key, hint), before) in keys.iter().zip(&hints).zip(before) {
        let located = |txn: &mut Transaction| {
            let mut out = Vec::new();
            txn.get_located(map, key, *hint, &mut out).unwrap().then_some(out)
        };
        assert_eq!(located(&mut early), before);
        assert_eq!(located(&mut late), get(&mut late, map, key));
    }
}
