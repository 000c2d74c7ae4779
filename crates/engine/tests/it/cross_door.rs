//! Keys in transactions of rows: one COMMIT for both, lock waits, crashes.

use std::collections::BTreeMap;
use std::ops::Bound::Unbounded;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::rows::{
    CATALOG, Inserted, Isolation, KeyValue, LockedKey, MapId, RowBatch, Rows, Strength, Transaction, Wait,
};
use engine::{Account, Accounts, Error, Expire, KeySet, Options, PendingAccounts};
use os::{SimClock, SimFolder};
use stdx::prng::Prng;

use crate::support::{START_MS, Story, World, bury_all, bytes, crash_at, options, wait_until};

const RR: Isolation = Isolation::RepeatableRead;
const X: Strength = Strength::Exclusive;

fn rows(world: &World) -> &Arc<Rows> {
    world.engine.rows()
}

/// Begins a transaction that waits for no lock.
fn begin(world: &World) -> Transaction {
    let mut txn = rows(world).begin(RR);
    txn.set_lock_wait(Duration::ZERO);
    txn
}

fn hasty(seed: u64) -> World {
    let world = World::new(seed);
    world.engine.keyspace().limit_key_wait(Duration::ZERO);
    world
}

/// Options under which nearly every undo step, and nearly every image that recovery collects, is written out.
fn small() -> Options {
    Options { versions_max: 1_000, ..options() }
}

fn hasty_with(seed: u64, options: Options) -> World {
    let world = World::with(SimFolder::new(seed), Arc::new(SimClock::new(START_MS)), options).unwrap();
    world.engine.keyspace().limit_key_wait(Duration::ZERO);
    world
}

fn value(value: &[u8], expire_at_ms: Option<u64>) -> KeyValue {
    KeyValue { value: value.into(), expire_at_ms }
}

fn put(txn: &mut Transaction, key: &[u8], bytes: &[u8]) {
    txn.put_key(0, key, value(bytes, None)).unwrap();
}

fn lock(txn: &mut Transaction, key: &[u8]) -> Option<Vec<u8>> {
    match txn.lock_key_patiently(0, key, X).unwrap() {
        LockedKey::Present(found) => Some(found.value.to_vec()),
        LockedKey::Absent => None,
        LockedKey::Skipped => panic!("not asked to skip"),
    }
}

fn set(world: &World, key: &[u8], value: &[u8]) -> Result<u64, Error> {
    world.engine.keyspace().set(0, key, value, Expire::None)
}

fn is_refused<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(Error::LockTimeout))
}

#[test]
fn keys_and_rows_are_committed_together_or_not_at_all() {
    let world = World::new(1);
    let sizes = [0, 8, 1_200, 1_201, 70_000, 262_145, 900_000];
    let key = |at: usize| format!("key{at}").into_bytes();
    let long_key = vec![b'k'; 2_000];
    world.set(0, b"gone", &bytes(50_000, 1));
    world.set(0, b"kept", b"old");
    for regret in [true, false] {
        let mut txn = begin(&world);
        assert_eq!(txn.insert(CATALOG, b"row", b"1", &mut Vec::new()).unwrap(), Inserted::Done);
        for (at, len) in sizes.into_iter().enumerate() {
            put(&mut txn, &key(at), &bytes(len, at as u64));
        }
        put(&mut txn, &long_key, b"long");
        assert!(txn.delete_key(0, b"gone").unwrap() && !txn.delete_key(0, b"never").unwrap());
        let savepoint = txn.savepoint();
        put(&mut txn, b"kept", b"regretted");
        put(&mut txn, b"more", b"regretted");
        put(&mut txn, b"gone", b"again");
        txn.insert(CATALOG, b"other", b"2", &mut Vec::new()).unwrap();
        txn.rollback_to(savepoint).unwrap();
        assert_eq!((lock(&mut txn, b"kept").unwrap(), lock(&mut txn, b"more")), (b"old".to_vec(), None));
        assert_eq!((txn.own_key(0, b"gone"), txn.own_key(0, b"kept")), (Some(None), None));
        assert_eq!(lock(&mut txn, &key(6)).unwrap(), bytes(900_000, 6), "it sees its own change");
        assert_eq!(txn.own_keys(0).count(), sizes.len() + 2);
        // No other client sees any of it.
        assert_eq!((world.get(0, &key(1)), world.get(0, b"gone")), (None, Some(bytes(50_000, 1))));
        assert_eq!((world.count(0), world.scan(0, 5)), (2, vec![b"gone".to_vec(), b"kept".to_vec()]));
        if regret {
            txn.rollback()
        } else {
            assert!(txn.commit().unwrap() > 0)
        }
        let count = if regret { 2 } else { sizes.len() as u64 + 2 };
        assert_eq!(world.count(0), count);
        world.settle();
        world.check();
    }
    world.flush();
    let world = world.crash();
    for (at, len) in sizes.into_iter().enumerate() {
        assert_eq!(world.get(0, &key(at)), Some(bytes(len, at as u64)));
    }
    assert_eq!((world.get(0, &long_key), world.get(0, b"gone")), (Some(b"long".to_vec()), None));
    assert_eq!((world.get(0, b"kept"), world.count(0)), (Some(b"old".to_vec()), sizes.len() as u64 + 2));
    assert!(begin(&world).get(CATALOG, b"row", &mut Vec::new()).unwrap());
    world.settle();
    world.check();
    let report = world.engine.check().unwrap();
    assert_eq!(report.queued, 0);
}

/// With keys alone, too, the WAL must have the transaction's end.
#[test]
fn a_transaction_of_keys_alone_is_committed() {
    let world = World::new(2);
    let mut txn = begin(&world);
    put(&mut txn, b"a", b"1");
    put(&mut txn, b"b", b"2");
    let lsn = txn.commit().unwrap();
    let mut out = Vec::new();
    let got = world.engine.keyspace().get(0, b"a", &mut out, |_, _| {}).unwrap();
    assert!(lsn > 0 && got.durability_lsn == lsn, "the answer waits for COMMIT: {} and {lsn}", got.durability_lsn);
    // Removed again before anything was durable, and nothing at all.
    let mut txn = begin(&world);
    assert!(txn.delete_key(0, b"a").unwrap());
    txn.commit().unwrap();
    let txn = begin(&world);
    assert_eq!(txn.commit().unwrap(), 0);
    world.flush();
    let world = world.crash();
    assert_eq!((world.get(0, b"a"), world.get(0, b"b"), world.count(0)), (None, Some(b"2".to_vec()), 1));
    world.check();
}

#[test]
fn changes_of_a_locked_key_wait_and_reads_do_not() {
    let world = hasty(3);
    world.set(0, b"k", b"old");
    world.set(0, b"free", b"f");
    let keyspace = world.engine.keyspace();
    let mut txn = begin(&world);
    put(&mut txn, b"k", b"new");
    assert_eq!(lock(&mut txn, b"absent"), None);
    assert_eq!(world.get(0, b"k").unwrap(), b"old");
    let seen = keyspace.read::<_, Error>(KeySet::All, |key_txn| Ok(key_txn.get(0, b"k")?.is_some()));
    assert!(seen.unwrap().0);
    assert!(is_refused(set(&world, b"k", b"no")) && is_refused(set(&world, b"absent", b"no")));
    assert!(is_refused(set(&world, b"k", &bytes(100_000, 1))) && is_refused(set(&world, b"k", &bytes(300_000, 1))));
    let write = |keys: &[(u8, &[u8])]| keyspace.write::<(), Error>(KeySet::Keys(keys), true, |_| Ok(()));
    assert!(is_refused(write(&[(0, b"free"), (0, b"k")])) && write(&[(0, b"free"), (1, b"k")]).is_ok());
    assert!(is_refused(keyspace.write::<(), Error>(KeySet::All, false, |key_txn| key_txn.flush(0))));
    assert!(is_refused(keyspace.write::<(), Error>(KeySet::All, false, |key_txn| key_txn.swap(0, 1))));
    set(&world, b"free", b"g").unwrap();
    txn.commit().unwrap();
    assert_eq!(world.get(0, b"k").unwrap(), b"new");
    set(&world, b"k", b"newer").unwrap();
    world.all(|key_txn| key_txn.swap(0, 1));
    assert_eq!(world.get(1, b"k").unwrap(), b"newer");
    world.all(|key_txn| key_txn.flush_all());
    world.settle();
    world.check();
}

#[test]
fn a_change_goes_on_when_the_transaction_ends_or_releases_the_key() {
    let world = World::new(4);
    world.engine.keyspace().limit_key_wait(Duration::from_secs(60));
    for (round, end) in ["commit", "rollback", "unlock"].into_iter().enumerate() {
        let key = format!("k{round}").into_bytes();
        let mut txn = begin(&world);
        if end == "unlock" {
            assert_eq!(lock(&mut txn, &key), None);
        } else {
            put(&mut txn, &key, b"1");
        }
        let is_through = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let keyspace = world.engine.keyspace();
                let append = |key_txn: &mut engine::KeyTransaction<'_>| {
                    let mut was = Vec::new();
                    if let Some(entry) = key_txn.get(0, &key)? {
                        key_txn.value(&entry, 0..99, &mut was)?;
                    }
                    key_txn.put_string(0, &key, &[&was[..], b"+"].concat(), Expire::None)
                };
                keyspace.write::<(), Error>(KeySet::Keys(&[(0, &key)]), false, append).unwrap();
                is_through.store(true, Ordering::SeqCst);
            });
            wait_until("the key transaction waits", || rows(&world).waiting_threads() == 1);
            let set = scope.spawn(|| set(&world, &key, b"0").map(drop));
            wait_until("SET waits", || rows(&world).waiting_threads() == 2);
            assert!(!is_through.load(Ordering::SeqCst));
            match end {
                "commit" => assert!(txn.commit().unwrap() > 0),
                "rollback" => txn.rollback(),
                _ => txn.unlock_last(),
            }
            while !is_through.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            let expected: &[u8] = if end == "commit" { b"1+" } else { b"+" };
            let found = world.get(0, &key).unwrap();
            assert!([expected, b"0", b"0+"].contains(&&found[..]), "{end}: {found:?}");
            set.join().unwrap().unwrap();
        });
    }
    world.check();
}

#[test]
fn key_locks_are_shared_or_not_waited_for_or_skipped() {
    let world = hasty(5);
    world.set(0, b"k", b"v");
    let (mut one, mut two) = (begin(&world), begin(&world));
    let shared = Strength::Shared;
    for txn in [&mut one, &mut two] {
        assert_eq!(txn.lock_key(0, b"k", shared, Wait::NoWait).unwrap(), LockedKey::Present(value(b"v", None)));
    }
    assert!(is_refused(set(&world, b"k", b"w")), "shared locks keep writers away");
    assert!(matches!(one.lock_key(0, b"k", X, Wait::NoWait), Err(Error::LockNotAvailable)));
    assert_eq!(one.lock_key(0, b"k", X, Wait::SkipLocked).unwrap(), LockedKey::Skipped);
    assert!(is_refused(one.put_key(0, b"k", value(b"w", None))));
    two.rollback();
    put(&mut one, b"k", b"w");
    assert!(is_refused(set(&world, b"k", b"x")));
    one.unlock_last();
    assert!(is_refused(set(&world, b"k", b"x")), "it held the lock before");
    one.commit().unwrap();
    assert_eq!(world.get(0, b"k").unwrap(), b"w");
    set(&world, b"k", b"x").unwrap();
}

/// Escalated key locks hold what they must, let reads pass, and end with the transaction.
#[test]
fn escalated_key_locks_hold_and_end() {
    for bytes_max in [1 << 20, 10_000] {
        let world = hasty(3);
        let name = |number: u32| format!("key {number}").into_bytes();
        for number in 0..3_000 {
            set(&world, &name(number), b"0").unwrap();
        }
        rows(&world).limit_locks(bytes_max);
        let (mut early, mut txn) = (begin(&world), begin(&world));
        put(&mut early, b"early", b"1");
        for number in 0..2_000 {
            if number % 2 == 0 {
                put(&mut txn, &name(number), b"1");
            } else {
                txn.lock_key_patiently(0, &name(number), Strength::Shared).unwrap();
            }
        }
        for number in 0..2_000 {
            assert!(is_refused(set(&world, &name(number), b"2")), "{number}");
            assert!(is_refused(begin(&world).put_key(0, &name(number), value(b"2", None))), "{number}");
            assert_eq!(world.get(0, &name(number)).unwrap(), b"0");
        }
        let others = (2_000..3_000).filter(|number| is_refused(set(&world, &name(*number), b"0"))).count();
        // Only with little memory for locks other keys are locked too.
        assert_eq!(others > 0, bytes_max < 1 << 20, "{others} of 1000");
        assert!(is_refused(world.engine.keyspace().write(KeySet::All, false, |key_txn| key_txn.flush(0))));
        // A lock by key that another transaction took before is still its own.
        put(&mut early, b"early", b"2");
        early.commit().unwrap();
        txn.commit().unwrap();
        for number in 0..3_000 {
            let now: &[u8] = if number < 2_000 && number % 2 == 0 { b"1" } else { b"0" };
            assert_eq!(world.get(0, &name(number)).unwrap(), now);
            set(&world, &name(number), b"3").unwrap();
        }
        assert_eq!((world.get(0, b"early").unwrap(), rows(&world).lock_bytes()), (b"2".to_vec(), 0));
        // Key locks that were all released block no transaction.
        let mut txn = begin(&world);
        for number in 0..2_000 {
            lock(&mut txn, &name(number));
            txn.unlock_last();
        }
        world.engine.keyspace().write(KeySet::All, false, |key_txn| key_txn.flush(0)).unwrap();
        drop(txn);
        world.check();
    }
}

#[test]
fn rows_and_keys_are_in_one_wait_for_graph() {
    let world = World::new(6);
    world.set(0, b"k", b"v");
    let wait = Duration::from_secs(60);
    let (mut one, mut two) = (rows(&world).begin(RR), rows(&world).begin(RR));
    one.set_lock_wait(wait);
    two.set_lock_wait(wait);
    one.insert(CATALOG, b"row", b"1", &mut Vec::new()).unwrap();
    put(&mut two, b"k", b"two");
    std::thread::scope(|scope| {
        let first = scope.spawn(move || {
            let done = one.put_key(0, b"k", value(b"one", None));
            (done.is_ok().then(|| one.commit().unwrap()), done)
        });
        wait_until("the first waits", || rows(&world).lock_waits().len() == 1);
        let second = two.insert(CATALOG, b"row", b"2", &mut Vec::new()).map(drop);
        assert!(matches!(second, Err(Error::Deadlock)), "the second closes the cycle");
        assert!(matches!(two.put_key(0, b"k", value(b"no", None)), Err(Error::Deadlock)), "it has been rolled back");
        let (_, first) = first.join().unwrap();
        assert!(first.is_ok(), "the first goes on");
        assert_eq!(world.get(0, b"k").unwrap(), b"one");
    });
}

#[test]
fn times_and_watchers_follow_the_commit() {
    let world = hasty(7);
    let keyspace = world.engine.keyspace();
    let at = |ms: u64| Some(START_MS + ms);
    keyspace.set(0, b"timed", b"1", Expire::At(START_MS + 50)).unwrap();
    keyspace.set(0, b"passing", b"1", Expire::At(START_MS + 10)).unwrap();
    let mut watched = keyspace.watch_set();
    watched.add(0, b"timed").unwrap();
    let mut untouched = keyspace.watch_set();
    untouched.add(0, b"passing").unwrap();
    let mut txn = begin(&world);
    assert_eq!(
        txn.lock_key_patiently(0, b"timed", X).unwrap(),
        LockedKey::Present(value(b"1", at(50))),
        "its time is told"
    );
    txn.put_key(0, b"timed", value(b"2", at(5_000))).unwrap();
    txn.put_key(0, b"late", value(b"2", at(20))).unwrap();
    txn.put_key(0, b"past", value(b"2", Some(START_MS - 1))).unwrap();
    assert_eq!(lock(&mut txn, b"past"), None);
    assert_eq!(lock(&mut txn, b"passing").unwrap(), b"1");
    assert!(!watched.dirty(START_MS), "nothing has happened yet");
    // A key lock does not delay expiry.
    world.clock.set_ms(START_MS + 30);
    world.settle();
    assert_eq!((world.get(0, b"passing"), lock(&mut txn, b"passing"), lock(&mut txn, b"late")), (None, None, None));
    txn.commit().unwrap();
    assert!(watched.dirty(START_MS + 30));
    assert_eq!((world.ttl(0, b"timed"), world.get(0, b"late"), world.get(0, b"past")), (Some(at(5_000)), None, None));
    assert_eq!(world.count(0), 1);
    let mut txn = begin(&world);
    put(&mut txn, b"timed", b"for good");
    txn.commit().unwrap();
    world.clock.set_ms(START_MS + 10_000);
    world.settle();
    assert_eq!(world.get(0, b"timed").unwrap(), b"for good");
    world.check();
    assert!(untouched.dirty(START_MS + 30), "it has expired");
}

/// A commit that cannot store a key rolls back rows and keys.
#[test]
fn a_commit_that_finds_the_disk_full_rolls_everything_back() {
    full_at_commit(hasty(8), 1);
}

/// The same when rows are restored stretch by stretch.
#[test]
fn a_commit_that_finds_the_disk_full_rolls_back_steps_in_files() {
    full_at_commit(hasty_with(8, small()), 200);
}

/// Leaves some space on the disk for what comes first, and not for what comes last. Returns the number of keys in database 1.
fn fill_disk(world: &World) -> u64 {
    world.folder.set_capacity(Some(world.folder.used_bytes() + (24 << 20)));
    let mut count = 0u32;
    while world.engine.keyspace().set(1, &count.to_be_bytes(), &bytes(10_000, 1), Expire::None).is_ok() {
        world.flush();
        count += 1;
    }
    for at in 0..40u32 {
        world.one(1, &at.to_be_bytes(), |key_txn| key_txn.delete(1, &at.to_be_bytes()));
    }
    world.flush();
    u64::from(count) - 40
}

/// `others`: rows that the transaction changes too.
fn full_at_commit(world: World, others: u32) {
    world.set(0, b"a", b"old");
    let mut txn = begin(&world);
    txn.insert(CATALOG, b"row", b"1", &mut Vec::new()).unwrap();
    for other in 0..others {
        txn.insert(CATALOG, &[b"other", &other.to_be_bytes()[..]].concat(), b"old", &mut Vec::new()).unwrap();
    }
    txn.commit().unwrap();
    fill_disk(&world);
    let aborts = world.engine.metrics().txn_aborts.get();
    let mut txn = begin(&world);
    assert!(txn.update(CATALOG, b"row", b"2").unwrap());
    for other in 0..others {
        let key = [b"other", &other.to_be_bytes()[..]].concat();
        assert!(if other % 3 == 0 { txn.delete(CATALOG, &key) } else { txn.update(CATALOG, &key, b"new") }.unwrap());
    }
    put(&mut txn, b"a", b"new");
    put(&mut txn, b"b", &bytes(3_000_000, 1));
    let done = txn.commit();
    assert_eq!(world.engine.metrics().txn_aborts.get(), aborts + 1, "there was something to undo");
    assert!(matches!(done, Err(Error::DiskFull)), "{done:?}");
    assert_eq!((world.get(0, b"a").unwrap(), world.get(0, b"b")), (b"old".to_vec(), None));
    let mut out = Vec::new();
    assert!(begin(&world).get(CATALOG, b"row", &mut out).unwrap());
    assert_eq!((out, world.count(0)), (b"1".to_vec(), 1));
    let mut txn = begin(&world);
    for other in 0..others {
        let (key, mut out) = ([b"other", &other.to_be_bytes()[..]].concat(), Vec::new());
        assert!(txn.get(CATALOG, &key, &mut out).unwrap() && out == b"old");
    }
    drop(txn);
    world.folder.set_capacity(None);
    world.engine.pager().background_step().expect("space is found again");
    set(&world, b"a", b"free again").unwrap();
    let mut txn = begin(&world);
    assert!(txn.update(CATALOG, b"row", b"3").unwrap());
    txn.commit().unwrap();
    world.settle();
    world.check();
    world.flush();
    let world = world.crash();
    assert_eq!(world.get(0, b"a").unwrap(), b"free again");
    world.check();
}

/// With a hook that flushes the WAL every so often while `is_flushing`.
fn flushed(is_flushing: &Arc<AtomicBool>) -> Options {
    let (is_flushing, count) = (is_flushing.clone(), AtomicU64::new(0));
    let turn = move |pager: &pager::Pager| {
        if is_flushing.load(Ordering::Relaxed) && count.fetch_add(1, Ordering::Relaxed) % 4 == 3 {
            let _ = pager.flush_once();
        }
    };
    let mut options = small();
    options.pager.interleave = Some(pager::InterleaveHook(Arc::new(turn)));
    options
}

/// A commit that fails, interrupted by a crash anywhere in its rollback, and in the recovery that finishes it.
#[test]
fn a_failed_commit_may_be_interrupted_anywhere() {
    let key = |number: u32| [b"row", &number.to_be_bytes()[..]].concat();
    let prepared = || {
        let is_flushing = Arc::new(AtomicBool::new(false));
        let world = hasty_with(9, flushed(&is_flushing));
        for (name, len) in [(&b"a"[..], 10), (b"c", 9_000), (b"d", 20_000)] {
            world.set(0, name, &bytes(len, 1));
        }
        let mut txn = begin(&world);
        for number in 0..30 {
            txn.insert(CATALOG, &key(number), b"old", &mut Vec::new()).unwrap();
        }
        txn.commit().unwrap();
        world.flush();
        let filled = fill_disk(&world);
        let mut txn = begin(&world);
        for number in 0..40 {
            match number % 4 {
                0 => drop(txn.delete(CATALOG, &key(number)).unwrap()),
                _ if number < 30 => assert!(txn.update(CATALOG, &key(number), b"new").unwrap()),
                _ => drop(txn.insert(CATALOG, &key(number), b"new", &mut Vec::new()).unwrap()),
            }
        }
        put(&mut txn, b"a", b"new");
        put(&mut txn, b"b", &bytes(9_000, 2));
        put(&mut txn, b"c", &bytes(9_500, 2));
        txn.delete_key(0, b"d").unwrap();
        put(&mut txn, b"e", &bytes(3_000_000, 1));
        world.flush();
        is_flushing.store(true, Ordering::Relaxed);
        (world, txn, filled)
    };
    let total = {
        let (world, txn, _) = prepared();
        let (before, aborts) = (world.folder.io_count(), world.engine.metrics().txn_aborts.get());
        assert!(matches!(txn.commit(), Err(Error::DiskFull)));
        assert_eq!(world.engine.metrics().txn_aborts.get(), aborts + 1);
        world.flush();
        world.folder.io_count() - before
    };
    assert!(total > 30, "{total} operations");
    for io in 1..=total {
        let (world, txn, others) = prepared();
        world.engine.pager().set_failure_hook(Box::new(|error| panic!("stopped: {error}")));
        world.folder.crash_at_io(world.folder.io_count() + io);
        let _ = catch_unwind(AssertUnwindSafe(|| {
            assert!(txn.commit().is_err());
            while world.engine.pager().flush_once().is_ok_and(|more| more) {}
        }));
        world.folder.set_capacity(None);
        let mut world = world.crash_with(small());
        for _ in 0..2 {
            for (name, len) in [(&b"a"[..], 10), (b"c", 9_000), (b"d", 20_000)] {
                assert_eq!(world.get(0, name).unwrap(), bytes(len, 1), "cut at {io}");
            }
            assert_eq!((world.get(0, b"b"), world.get(0, b"e")), (None, None));
            assert_eq!((world.count(0), world.count(1)), (3, others));
            let (mut txn, mut out) = (begin(&world), Vec::new());
            for number in 0..40 {
                out.clear();
                assert_eq!(txn.get(CATALOG, &key(number), &mut out).unwrap(), number < 30, "cut at {io}");
                assert!(number >= 30 || out == b"old");
            }
            drop(txn);
            world.check();
            world.settle();
            world.check();
            world = world.crash_with(small());
        }
    }
}

/// Money moves between rows and keys by transactions, and among keys by key transactions and single commands. Every locking read finds all of it.
#[test]
fn money_is_neither_made_nor_lost_between_rows_and_keys() {
    const EACH: u64 = 1_000;
    const COUNT: u64 = 8;
    let world = World::new(9);
    world.engine.keyspace().limit_key_wait(Duration::from_secs(60));
    let name = |at: u64| format!("account{at}").into_bytes();
    let number = |bytes: &[u8]| String::from_utf8_lossy(bytes).parse::<u64>().unwrap();
    let text = |number: u64| number.to_string().into_bytes();
    let mut txn = begin(&world);
    for at in 0..COUNT {
        txn.insert(CATALOG, &name(at), &text(EACH), &mut Vec::new()).unwrap();
        put(&mut txn, &name(at), &text(EACH));
    }
    txn.commit().unwrap();
    let (moved, mixed, looked, stop) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let over = &AtomicBool::new(false);
    let read = |key_txn: &mut engine::KeyTransaction<'_>, key: &[u8]| -> Result<u64, Error> {
        let entry = key_txn.get(0, key)?.ok_or(Error::Misuse("missing"))?;
        let mut out = Vec::new();
        key_txn.value(&entry, 0..99, &mut out)?;
        String::from_utf8_lossy(&out).parse().map_err(|_| Error::Misuse("no number"))
    };
    std::thread::scope(|scope| {
        for seed in 0..3u64 {
            let (world, moved) = (&world, &moved);
            scope.spawn(move || {
                let mut prng = Prng::new(seed);
                while !over.load(Ordering::Relaxed) {
                    let mut txn = rows(world).begin(RR);
                    let (row, key, to_key) =
                        (name(prng.next_u64() % COUNT), name(prng.next_u64() % COUNT), prng.chance(0.5));
                    let mut transfer = || -> Result<(), Error> {
                        let (mut out, mut of_key) = (Vec::new(), 0);
                        for part in 0..2 {
                            if (part == 0) == to_key {
                                txn.lock_patiently(CATALOG, &row, X, &mut out)?;
                            } else if let LockedKey::Present(found) = txn.lock_key_patiently(0, &key, X)? {
                                of_key = number(&found.value);
                            }
                        }
                        let of_row = number(&out);
                        let (of_row, of_key) = if to_key {
                            (of_row.checked_sub(1).ok_or(Error::Misuse("broke"))?, of_key + 1)
                        } else {
                            (of_row + 1, of_key.checked_sub(1).ok_or(Error::Misuse("broke"))?)
                        };
                        txn.update(CATALOG, &row, &text(of_row))?;
                        if prng.chance(0.3) {
                            txn.delete_key(0, &key)?;
                        }
                        txn.put_key(0, &key, value(&text(of_key), None))
                    };
                    match transfer() {
                        Ok(()) if !prng.chance(0.125) => {
                            txn.commit().unwrap();
                            moved.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(()) | Err(Error::Deadlock | Error::Misuse(_)) => txn.rollback(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for seed in 10..12u64 {
            let (world, mixed) = (&world, &mixed);
            scope.spawn(move || {
                let (mut prng, keyspace) = (Prng::new(seed), world.engine.keyspace());
                while !over.load(Ordering::Relaxed) {
                    let (from, to) = (name(prng.next_u64() % COUNT), name(prng.next_u64() % COUNT));
                    if from == to {
                        continue;
                    }
                    let keys: [(u8, &[u8]); 2] = [(0, &from), (0, &to)];
                    let done = keyspace.write::<(), Error>(KeySet::Keys(&keys), true, |key_txn| {
                        let (of_from, of_to) = (read(key_txn, &from)?, read(key_txn, &to)?);
                        let less = of_from.checked_sub(1).ok_or(Error::Misuse("broke"))?;
                        key_txn.put_string(0, &from, &text(less), Expire::None)?;
                        key_txn.put_string(0, &to, &text(of_to + 1), Expire::None)
                    });
                    assert!(matches!(done, Ok(_) | Err(Error::Misuse("broke"))), "{done:?}");
                    keyspace.set(0, b"noise", &from, Expire::None).unwrap();
                    mixed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let (world_, looked_) = (&world, &looked);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let mut txn = rows(world_).begin(RR);
                let mut look = || -> Result<u64, Error> {
                    let mut sum = 0;
                    for at in 0..COUNT {
                        let mut out = Vec::new();
                        txn.lock_patiently(CATALOG, &name(at), Strength::Shared, &mut out)?;
                        sum += number(&out);
                        let LockedKey::Present(found) = txn.lock_key_patiently(0, &name(at), Strength::Shared)? else {
                            panic!("a key is missing")
                        };
                        sum += number(&found.value);
                    }
                    Ok(sum)
                };
                match look() {
                    Ok(sum) => {
                        assert_eq!(sum, 2 * COUNT * EACH);
                        looked_.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(Error::Deadlock) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                world.flush();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let begun = Instant::now();
        let is_enough = || [&moved, &mixed, &looked].iter().all(|count| count.load(Ordering::Relaxed) > 5);
        // On a busy machine not every thread gets to its work at once.
        while begun.elapsed() < Duration::from_secs(2) || !is_enough() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
            world.engine.background_once(16).unwrap();
        }
        over.store(true, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
    });
    let counts = [&moved, &mixed, &looked].map(|count| count.load(Ordering::Relaxed));
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    world.flush();
    world.settle();
    world.check();
    let world = world.crash();
    let mut sum = 0;
    let mut txn = begin(&world);
    for at in 0..COUNT {
        let mut out = Vec::new();
        txn.get(CATALOG, &name(at), &mut out).unwrap();
        sum += number(&out) + number(&world.get(0, &name(at)).unwrap());
    }
    assert_eq!((sum, world.count(0)), (2 * COUNT * EACH, COUNT + 1));
    world.check();
}

#[derive(Clone, Default, PartialEq, Debug)]
struct State {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    keys: BTreeMap<(u8, Vec<u8>), Vec<u8>>,
}

/// A history of transactions over rows and keys, with Redis commands between them. Some stay open until the crash.
struct History {
    states: Vec<(u64, State)>,
    prng: Prng,
    open: Vec<Transaction>,
}

const MAP: MapId = CATALOG;

impl History {
    fn new(seed: u64) -> History {
        History { states: vec![(0, State::default())], prng: Prng::new(seed), open: Vec::new() }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.prng.next_u64() % below
    }

    fn state(&self) -> State {
        self.states.last().expect("the first").1.clone()
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.draw(40) {
            0 => 300_000,
            1..6 => 1_300 + self.draw(20_000),
            _ => self.draw(400),
        };
        vec![1 + self.draw(255) as u8; len as usize]
    }

    fn key(&mut self) -> (u8, Vec<u8>) {
        let mut key = self.draw(10).to_be_bytes().to_vec();
        if key[7] == 9 {
            key.resize(700, 9);
        }
        (self.draw(2) as u8, key)
    }

    /// Runs a Redis command, if no lock is in its way.
    fn redis(&mut self, world: &World) -> Result<(), Error> {
        let (mut state, keyspace) = (self.state(), world.engine.keyspace());
        let (one, two, value) = (self.key(), self.key(), self.value());
        let names: [(u8, &[u8]); 2] = [(one.0, &one.1), (two.0, &two.1)];
        let done = match self.draw(8) {
            0 => keyspace.write(KeySet::All, false, |key_txn| key_txn.flush(one.0)).map(|((), lsn)| {
                state.keys.retain(|(db, _), _| *db != one.0);
                lsn
            }),
            1 => keyspace.write(KeySet::All, false, |key_txn| key_txn.swap(0, 1)).map(|((), lsn)| {
                let turned = std::mem::take(&mut state.keys).into_iter();
                state.keys = turned.map(|((db, key), value)| ((1 - db, key), value)).collect();
                lsn
            }),
            2..5 => keyspace
                .write(KeySet::Keys(&names), true, |key_txn| {
                    key_txn.put_string(one.0, &one.1, &value, Expire::None)?;
                    key_txn.delete(two.0, &two.1)
                })
                .map(|(_, lsn)| {
                    state.keys.insert(one.clone(), value.clone());
                    state.keys.remove(&two);
                    lsn
                }),
            _ => keyspace.set(one.0, &one.1, &value, Expire::None).inspect(|_| {
                state.keys.insert(one.clone(), value.clone());
            }),
        };
        match done {
            // A command that changes nothing has no WAL record.
            Ok(lsn) if lsn > self.states.last().expect("the first").0 => self.states.push((lsn, state)),
            Ok(_) => assert_eq!(state, self.state()),
            Err(Error::LockTimeout) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn change(&mut self, txn: &mut Transaction, state: &mut State) -> Result<(), Error> {
        let (row, name, new) = (self.draw(10).to_be_bytes().to_vec(), self.key(), self.value());
        let (db, key) = (name.0, &name.1[..]);
        let done = match self.draw(12) {
            0 => {
                let savepoint = txn.savepoint();
                let done = txn
                    .put_key(db, key, value(b"regretted", None))
                    .and_then(|()| txn.insert(MAP, &row, b"regretted", &mut Vec::new()).map(drop))
                    .and_then(|()| txn.delete_key(db, key).map(drop));
                txn.rollback_to(savepoint)?;
                done
            }
            1..4 => txn.delete_key(db, key).map(|found| assert_eq!(found, state.keys.remove(&name).is_some())),
            4..8 => txn.put_key(db, key, value(&new, None)).map(|()| drop(state.keys.insert(name.clone(), new))),
            8 => txn.delete(MAP, &row).map(|found| assert_eq!(found, state.rows.remove(&row).is_some())),
            _ => match txn.insert(MAP, &row, &new, &mut Vec::new()) {
                Ok(Inserted::Done) => {
                    assert!(state.rows.insert(row, new).is_none());
                    Ok(())
                }
                Ok(Inserted::Exists) => txn.update(MAP, &row, &new).map(|found| {
                    assert!(found && state.rows.insert(row, new).is_some());
                }),
                Err(error) => Err(error),
            },
        };
        match done {
            // Another transaction holds the lock.
            Err(Error::LockTimeout) => Ok(()),
            other => other,
        }
    }
}

impl Story for History {
    fn play(&mut self, world: &World) -> Result<(), Error> {
        for _ in 0..24 {
            let mut state = self.state();
            let mut txn = begin(world);
            for _ in 0..1 + self.draw(8) {
                self.change(&mut txn, &mut state)?;
            }
            match self.draw(5) {
                0 => txn.rollback(),
                // It stays open until the crash, or for a while.
                1 => self.open.push(txn),
                _ => {
                    let lsn = txn.commit()?;
                    if lsn > 0 {
                        self.states.push((lsn, state));
                    }
                }
            }
            if self.open.len() > 2 {
                self.open.remove(0).rollback();
            }
            for _ in 0..self.draw(4) {
                self.redis(world)?;
            }
            world.go_about(self.draw(4))?;
        }
        Ok(())
    }

    fn bury(&mut self) {
        bury_all(&mut self.open);
    }

    fn verify(&self, world: &World, durable: u64) {
        let newest = self.states.iter().rposition(|(lsn, _)| *lsn <= durable).expect("the first");
        let mut found = State::default();
        let mut txn = begin(world);
        let mut cursor = txn.scan(MAP, Unbounded, Unbounded, false).unwrap();
        let mut batch = RowBatch::new();
        while cursor.next(&mut txn, &mut batch).unwrap() {
            found.rows.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        }
        for db in 0..2 {
            let keys = world.scan(db, 7);
            assert_eq!(world.count(db), keys.len() as u64, "EN-10");
            found.keys.extend(keys.into_iter().map(|key| {
                let value = world.get(db, &key).expect("scanned");
                ((db, key), value)
            }));
        }
        let possible = &self.states[newest..];
        assert!(possible.iter().any(|(_, state)| *state == found), "none of {} states", possible.len());
    }
}

/// Crashes at one I/O after another of the same history, recovers, and crashes again during the recovery.
#[test]
fn a_crash_at_any_io_leaves_rows_and_keys_of_one_commit() {
    crash_everywhere(options, 0..120);
}

#[test]
fn a_crash_at_any_io_leaves_spilled_rows_and_keys_of_one_commit() {
    crash_everywhere(small, 200..260);
}

fn crash_everywhere(options: fn() -> Options, seeds: std::ops::Range<u64>) {
    let mut crashes = 0;
    for seed in seeds {
        let total = {
            let (world, mut history) = (hasty_with(seed, options()), History::new(seed));
            let before = world.folder.io_count();
            history.play(&world).unwrap();
            history.bury();
            history.verify(&world, u64::MAX);
            world.check();
            world.folder.io_count() - before
        };
        crashes += total;
        for io in 1..=total {
            let (world, mut history) = (hasty_with(seed, options()), History::new(seed));
            crash_at(world, &mut history, io, options);
        }
    }
    assert!(crashes > 1_000, "{crashes} crashes are too few to mean something");
}

fn named(name: &str) -> Account {
    Account { enabled: true, ..Account::new(name) }
}

/// Adds a change that creates the account.
fn create(pending: &mut PendingAccounts, accounts: &Accounts, account: Account) {
    let id = accounts.take_number().unwrap();
    pending.put(Account { id, ..account }, None);
}

#[test]
fn accounts_that_have_changed_meanwhile_fail_the_commit_of_rows() {
    let world = World::new(31);
    let accounts = world.engine.accounts();
    let mut pending = PendingAccounts::default();
    create(&mut pending, accounts, named("ann"));
    create(&mut pending, accounts, named("bob"));
    begin(&world).commit_with_accounts(accounts, &pending).unwrap();
    let bob = pending.get("bob").flatten().unwrap().id;
    assert!(accounts.get("ann").is_some() && accounts.by_id(bob).is_some_and(|account| account.name == "bob"));
    let mut stale = PendingAccounts::default();
    stale.remove("ann", accounts.get("ann"));
    stale.remove("bob", accounts.get("bob"));
    accounts.put(Account { rules: "~a".into(), ..named("bob") }).unwrap();
    let mut txn = begin(&world);
    txn.insert(CATALOG, b"row", b"1", &mut Vec::new()).unwrap();
    let refused = txn.commit_with_accounts(accounts, &stale);
    assert!(matches!(refused, Err(Error::SerializationFailure { .. })));
    assert!(accounts.get("ann").is_some() && !begin(&world).get(CATALOG, b"row", &mut Vec::new()).unwrap());
    // A number that was taken is not given again, whatever has become of its account.
    create(&mut stale, accounts, named("lost"));
    let lost = stale.get("lost").flatten().unwrap().id;
    accounts.put(named("eve")).unwrap();
    assert!(accounts.get("eve").unwrap().id > lost);
    world.flush();
    let world = world.crash();
    assert_eq!(world.engine.accounts().get("bob").unwrap().id, bob);
}

#[test]
fn a_crash_at_any_io_leaves_rows_and_accounts_of_one_commit() {
    let prepared = || {
        let is_flushing = Arc::new(AtomicBool::new(false));
        let world = hasty_with(32, flushed(&is_flushing));
        let accounts = world.engine.accounts();
        accounts.put(named("old")).unwrap();
        let mut pending = PendingAccounts::default();
        pending.remove("old", accounts.get("old"));
        for nth in 0..5 {
            let rules = "~a".repeat(3_000);
            create(&mut pending, accounts, Account { rules, ..named(&format!("new{nth}")) });
        }
        let mut txn = begin(&world);
        txn.insert(CATALOG, b"row", b"1", &mut Vec::new()).unwrap();
        world.flush();
        is_flushing.store(true, Ordering::Relaxed);
        (world, txn, pending)
    };
    let total = {
        let (world, txn, pending) = prepared();
        let before = world.folder.io_count();
        txn.commit_with_accounts(world.engine.accounts(), &pending).unwrap();
        world.flush();
        world.folder.io_count() - before
    };
    assert!(total > 10, "{total} operations");
    let mut committed = 0;
    for io in 1..=total + 1 {
        let (world, txn, pending) = prepared();
        world.engine.pager().set_failure_hook(Box::new(|error| panic!("stopped: {error}")));
        world.folder.crash_at_io(world.folder.io_count() + io);
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let _ = txn.commit_with_accounts(world.engine.accounts(), &pending);
            while world.engine.pager().flush_once().is_ok_and(|more| more) {}
        }));
        let mut world = world.crash_with(small());
        for _ in 0..2 {
            let is_there = begin(&world).get(CATALOG, b"row", &mut Vec::new()).unwrap();
            let accounts = world.engine.accounts();
            assert_eq!(accounts.get("old").is_none(), is_there, "cut at {io}");
            for nth in 0..5 {
                assert_eq!(accounts.get(&format!("new{nth}")).is_some(), is_there, "cut at {io}");
            }
            committed += usize::from(is_there);
            world.check();
            world = world.crash_with(small());
        }
    }
    assert!(committed >= 2);
}
