//! Losers of a crash, undone beside the service.

use std::collections::BTreeMap;
use std::ops::Bound::Unbounded;
use std::sync::Arc;
use std::time::Duration;

use engine::rows::{Inserted, Isolation, Locked, MapId, RowBatch, Rows, Strength, Transaction, Wait};
use engine::{Engine, Error, Options};
use os::{Folder, SimClock};
use pager::Background;

use crate::support::{World, bury_all, bytes, options};

type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// Steps of undo are a few rows each, so that tests can stop in the middle.
const FEW: usize = 5;

fn rows(world: &World) -> &Arc<Rows> {
    world.engine.rows()
}

fn begin(world: &World) -> Transaction {
    let mut txn = rows(world).begin(Isolation::RepeatableRead);
    txn.set_lock_wait(Duration::ZERO);
    txn
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn all(world: &World, map: MapId) -> State {
    let mut txn = begin(world);
    let mut cursor = txn.scan(map, Unbounded, Unbounded, false).unwrap();
    let (mut batch, mut found) = (RowBatch::new(), State::new());
    while cursor.next(&mut txn, &mut batch).unwrap() {
        found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
    found
}

fn commit_one(world: &World, map: MapId, number: u32, value: &[u8]) {
    let mut txn = begin(world);
    assert!(txn.update(map, &key(number), value).unwrap());
    txn.commit().unwrap();
}

/// Short values, and some in segments.
fn value(number: u32) -> Vec<u8> {
    bytes(if number % 50 == 3 { 5_000 } else { 20 + number as usize % 90 }, number.into())
}

/// Rows 0, 2, 4 and so on of a map. A loser has updated some, deleted some and inserted odd ones; nothing of that was committed at the crash.
fn with_loser(options: fn() -> Options) -> (World, MapId, State) {
    let folder = os::SimFolder::new(7);
    let world = World::with(folder, Arc::new(SimClock::new(crate::support::START_MS)), options()).unwrap();
    let mut txn = begin(&world);
    let map = txn.create_map().unwrap();
    for number in (0..400).step_by(2) {
        assert_eq!(txn.insert(map, &key(number), &value(number), &mut Vec::new()).unwrap(), Inserted::Done);
    }
    txn.commit().unwrap();
    let committed = all(&world, map);
    let mut loser = begin(&world);
    for number in (0..400).step_by(2) {
        match number % 3 {
            0 => assert!(loser.update(map, &key(number), &value(number + 1000)).unwrap()),
            1 => assert!(loser.delete(map, &key(number)).unwrap()),
            // Once more, so that later images are its own versions.
            _ => (0..3).for_each(|at| assert!(loser.update(map, &key(number), &value(number + at)).unwrap())),
        }
        if number % 5 == 0 {
            loser.insert(map, &key(number + 1), &value(number), &mut Vec::new()).unwrap();
        }
    }
    // These two it has undone itself.
    let regret = loser.savepoint();
    loser.insert(map, &key(1001), b"regretted", &mut Vec::new()).unwrap();
    loser.rollback_to(regret).unwrap();
    (crash_under(world, loser, options()), map, committed)
}

/// Crashes while `loser` is open; all of its changes are in the WAL.
fn crash_under(world: World, loser: Transaction, options: Options) -> World {
    world.flush();
    world.engine.pager().set_failure_hook(Box::new(|error| panic!("stopped: {error}")));
    world.folder.crash_at_io(world.folder.io_count() + 1);
    bury_all(&mut vec![loser]);
    world.crash_with(options)
}

fn in_memory() -> Options {
    options()
}

/// Hardly an image is kept in memory.
fn in_runs() -> Options {
    Options { versions_max: 20_000, ..options() }
}

/// Returns true if another transaction may change the row now.
fn is_free(world: &World, map: MapId, number: u32) -> bool {
    let locked = begin(world).lock(map, &key(number), Strength::Exclusive, Wait::SkipLocked, &mut Vec::new());
    locked.unwrap() != Locked::Skipped
}

#[test]
fn rows_of_a_loser_are_read_as_they_were_and_locked_until_they_are_restored() {
    for options in [in_memory, in_runs] {
        let (world, map, committed) = with_loser(options);
        let [loser] = rows(&world).rolling_back()[..] else { panic!("one loser") };
        assert!(loser.changes >= 240, "{loser:?}");
        assert_eq!((world.engine.opened().undone, world.engine.opened().rolling_back), (0, 1));
        assert_eq!(all(&world, map), committed);
        world.check();
        // Updated, deleted, inserted rows are locked; rows that it has not changed are free.
        for number in [0, 4, 8, 11] {
            assert!(!is_free(&world, map, number), "row {number}");
        }
        assert!(matches!(begin(&world).update(map, &key(0), b"x"), Err(Error::LockTimeout)));
        assert!(matches!(begin(&world).insert(map, &key(11), b"x", &mut Vec::new()), Err(Error::LockTimeout)));
        assert!(is_free(&world, map, 777) && is_free(&world, map, 1001));
        let mut steps = 0;
        while world.engine.undo_once(FEW).unwrap() {
            assert_eq!(all(&world, map), committed, "after step {steps}");
            steps += 1;
        }
        assert!(steps > 3, "{steps} steps");
        assert!(rows(&world).rolling_back().is_empty());
        assert!((0..400).all(|number| is_free(&world, map, number)));
        assert_eq!(all(&world, map), committed);
        world.settle();
        world.check();
        assert_eq!((rows(&world).undo_bytes(), rows(&world).version_bytes()), (0, 0));
        world.flush();
        let world = world.crash_with(options());
        assert!(rows(&world).rolling_back().is_empty(), "ABORT is in the WAL, or the rows are as they were");
        assert_eq!(all(&world, map), committed);
    }
}

#[test]
fn a_restored_row_that_others_changed_survives_the_next_crash() {
    for options in [in_memory, in_runs] {
        let (mut world, map, mut expected) = with_loser(options);
        let mut changed = 0;
        // One crash after another, each during the undo.
        for crash in 0..6 {
            for _ in 0..2 + crash {
                world.engine.undo_once(FEW).unwrap();
            }
            for number in (0..400).step_by(2).filter(|number| number % 7 == crash % 7) {
                if is_free(&world, map, number) && expected.contains_key(&key(number)[..]) {
                    // A value in segments replaces one, and is replaced.
                    let new = value(number + 3 * crash);
                    commit_one(&world, map, number, &new);
                    expected.insert(key(number).to_vec(), new);
                    changed += 1;
                }
            }
            if crash == 2 {
                world.settle();
                world.engine.pager().checkpoint().unwrap();
            }
            world.flush();
            world = world.crash_with(options());
            assert_eq!(all(&world, map), expected, "after crash {crash}");
            world.check();
        }
        assert!(changed > 20, "{changed} rows were changed during the undo");
        world.settle();
        assert_eq!(all(&world, map), expected);
        world.check();
    }
}

/// The loser's own rollback was running at the crash: its rows are free, and later changes by others stay.
#[test]
fn a_row_that_the_loser_itself_undid_is_not_restored_over_a_commit() {
    let world = World::new(3);
    let mut txn = begin(&world);
    let map = txn.create_map().unwrap();
    txn.insert(map, &key(1), b"before", &mut Vec::new()).unwrap();
    txn.insert(map, &key(2), b"before", &mut Vec::new()).unwrap();
    txn.commit().unwrap();
    let mut loser = begin(&world);
    loser.update(map, &key(2), b"lost").unwrap();
    let savepoint = loser.savepoint();
    loser.update(map, &key(1), b"regretted").unwrap();
    loser.insert(map, &key(3), b"regretted", &mut Vec::new()).unwrap();
    loser.rollback_to(savepoint).unwrap();
    let world = crash_under(world, loser, options());
    assert_eq!(rows(&world).rolling_back().len(), 1);
    let mut txn = begin(&world);
    assert!(txn.update(map, &key(1), b"after").unwrap());
    assert_eq!(txn.insert(map, &key(3), b"after", &mut Vec::new()).unwrap(), Inserted::Done);
    txn.commit().unwrap();
    world.settle();
    let expected = [(1, b"after".as_slice()), (2, b"before"), (3, b"after")];
    let expected: State = expected.iter().map(|(number, value)| (key(*number).to_vec(), value.to_vec())).collect();
    assert_eq!(all(&world, map), expected);
    world.check();
}

#[test]
fn a_map_is_not_dropped_while_a_loser_needs_it() {
    let (world, map, _) = with_loser(in_memory);
    assert!(rows(&world).is_rolling_back_in(map));
    assert!(matches!(begin(&world).drop_map(map), Err(Error::LockTimeout)));
    world.engine.undo_once(FEW).unwrap();
    assert!(matches!(begin(&world).drop_map(map), Err(Error::LockTimeout)), "some of it is not undone");
    while world.engine.undo_once(FEW).unwrap() {}
    let mut txn = begin(&world);
    txn.drop_map(map).unwrap();
    txn.commit().unwrap();
    world.settle();
    world.check();
    world.flush();
    let world = world.crash();
    assert!(!rows(&world).maps().contains(&map));
}

/// A clean stop during the undo: the next opening continues it.
#[test]
fn a_close_during_the_undo_leaves_the_rest_to_the_next_opening() {
    let (world, map, committed) = with_loser(in_runs);
    for _ in 0..3 {
        assert!(world.engine.undo_once(FEW).unwrap());
    }
    world.engine.close().unwrap();
    let world = World::with(world.folder.clone(), world.clock.clone(), in_runs()).unwrap();
    assert_eq!(rows(&world).rolling_back().len(), 1);
    assert_eq!(all(&world, map), committed);
    world.settle();
    assert_eq!(all(&world, map), committed);
    world.check();
}

/// On a full disk undo waits, reports that, and goes on when there is space. Reads do not wait.
#[test]
fn undo_waits_for_space_on_a_full_disk() {
    let (world, map, committed) = with_loser(in_memory);
    world.folder.set_capacity(Some(world.folder.used_bytes()));
    // Until the WAL has no space any more.
    let mut filled = 0;
    while filled < 1_000_000 && world.engine.keyspace().set(0, b"k", &[7; 1000], engine::Expire::None).is_ok() {
        filled += 1;
        world.flush();
    }
    assert!(filled < 1_000_000, "the disk is full");
    let stuck = (0..1000).find_map(|_| world.engine.undo_once(FEW).err());
    assert!(matches!(stuck, Some(Error::DiskFull)), "{stuck:?}");
    assert!(rows(&world).rolling_back_error().is_some());
    assert_eq!(all(&world, map), committed);
    world.folder.set_capacity(None);
    world.settle();
    assert_eq!((rows(&world).rolling_back().len(), rows(&world).rolling_back_error()), (0, None));
    assert_eq!(all(&world, map), committed);
    world.check();
}

/// With threads the undo runs by itself, and a transaction that wants a row of the loser waits for it.
#[test]
fn the_undo_thread_wakes_waiting_transactions() {
    let (world, map, committed) = with_loser(in_runs);
    let folder = world.folder.clone();
    world.flush();
    drop(world);
    let pager = pager::Options { background: Background::Threads, ..options().pager };
    let options = Options { pager, versions_max: 20_000, ..options() };
    let clock = Arc::new(SimClock::new(crate::support::START_MS));
    let engine = Engine::open(options, folder as Arc<dyn Folder>, clock).unwrap();
    assert_eq!(engine.opened().rolling_back, 1);
    let mut txn = engine.rows().begin(Isolation::ReadCommitted);
    txn.set_lock_wait(Duration::from_secs(60));
    for number in (0..400).step_by(2) {
        let mut found = Vec::new();
        txn.lock_patiently(map, &key(number), Strength::Exclusive, &mut found).unwrap();
        assert_eq!(found, committed[&key(number)[..]]);
    }
    txn.drop_map(map).unwrap();
    txn.commit().unwrap();
    assert!(engine.rows().rolling_back().is_empty());
    engine.close().unwrap();
}
