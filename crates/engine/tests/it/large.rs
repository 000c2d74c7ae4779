//! Transactions that exceed memory: undo steps in files, escalated locks.

use std::collections::BTreeMap;
use std::ops::Bound::Unbounded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use engine::rows::{CATALOG, Inserted, Isolation, Locked, MapId, RowBatch, Strength, Transaction, Wait};
use engine::{Error, Options};
use os::{SimClock, SimFolder};
use stdx::prng::Prng;

use crate::support::{START_MS, World, options};

const RR: Isolation = Isolation::RepeatableRead;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn small() -> Options {
    Options { versions_max: 40_000, ..options() }
}

/// With a hook that flushes the WAL every so often while `is_flushing`.
fn flushed(is_flushing: &Arc<AtomicBool>) -> Options {
    let (is_flushing, count) = (is_flushing.clone(), AtomicU64::new(0));
    let turn = move |pager: &pager::Pager| {
        if is_flushing.load(Ordering::Relaxed) && count.fetch_add(1, Ordering::Relaxed) % 8 == 7 {
            let _ = pager.flush_once();
        }
    };
    let mut options = small();
    options.pager.interleave = Some(pager::InterleaveHook(Arc::new(turn)));
    options
}

fn world(seed: u64) -> World {
    World::with(SimFolder::new(seed), Arc::new(SimClock::new(START_MS)), small()).unwrap()
}

fn all(txn: &mut Transaction, map: MapId) -> Model {
    let mut cursor = txn.scan(map, Unbounded, Unbounded, false).unwrap();
    let (mut batch, mut found) = (RowBatch::new(), Model::new());
    while cursor.next(txn, &mut batch).unwrap() {
        found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
    found
}

/// Draws changes of one transaction, some of which are rolled back to a savepoint.
fn change(txn: &mut Transaction, map: MapId, model: &mut Model, count: usize, prng: &mut Prng) {
    let mut draw = |below: u64| prng.next_u64() % below;
    let mut savepoint = (txn.savepoint(), model.clone());
    for _ in 0..count {
        let key = (draw(3_000) as u32).to_be_bytes().to_vec();
        let len = if draw(200) == 0 { 3_000 } else { draw(100) };
        let value = vec![draw(256) as u8; len as usize];
        match draw(7) {
            0..3 => {
                let done = txn.insert(map, &key, &value, &mut Vec::new()).unwrap();
                assert_eq!(done == Inserted::Done, !model.contains_key(&key));
                model.entry(key).or_insert(value);
            }
            3..5 => {
                let is_row = txn.update(map, &key, &value).unwrap();
                assert_eq!(is_row, model.contains_key(&key));
                if is_row {
                    model.insert(key, value);
                }
            }
            _ => assert_eq!(txn.delete(map, &key).unwrap(), model.remove(&key).is_some()),
        }
        match draw(400) {
            0 => savepoint = (txn.savepoint(), model.clone()),
            1 => {
                txn.rollback_to(savepoint.0).unwrap();
                *model = savepoint.1.clone();
            }
            _ => {}
        }
    }
}

/// Its changes can be read by itself, rolled back in parts and as a whole, committed, hidden from old snapshots, and purged.
#[test]
fn a_transaction_that_exceeds_memory_behaves_like_any_other() {
    for seed in 0..6 {
        let world = world(seed);
        let rows = world.engine.rows().clone();
        let mut prng = Prng::new(seed);
        let (mut model, mut txn) = (Model::new(), rows.begin(RR));
        let map = txn.create_map().unwrap();
        change(&mut txn, map, &mut model, 2_000, &mut prng);
        assert!(rows.undo_bytes() < 20_000, "{}", rows.undo_bytes());
        txn.commit().unwrap();
        for round in 0..4 {
            let mut reader = rows.begin(RR);
            let before = model.clone();
            assert_eq!(all(&mut reader, map), before);
            let (mut writer, mut after) = (rows.begin(RR), model.clone());
            change(&mut writer, map, &mut after, 4_000, &mut prng);
            assert!(rows.undo_bytes() < 20_000, "{}", rows.undo_bytes());
            assert!(rows.version_bytes() < 20_000, "{}", rows.version_bytes());
            assert_eq!(all(&mut writer, map), after);
            assert_eq!(all(&mut reader, map), before, "an old snapshot, while it is open");
            if round % 2 == 0 {
                writer.commit().unwrap();
                model = after;
            } else {
                writer.rollback();
            }
            assert_eq!(all(&mut reader, map), before, "and after it");
            drop(reader);
            let mut reader = rows.begin(RR);
            assert_eq!(all(&mut reader, map), model);
            drop(reader);
            world.flush();
            world.settle();
            world.check();
            assert_eq!((rows.version_bytes(), rows.undo_bytes()), (0, 0));
        }
        let report = world.engine.check().unwrap();
        assert_eq!((report.delete_marked, report.rows as usize, report.queued), (0, model.len(), 0));
        let world = world.crash_with(small());
        assert_eq!(all(&mut world.engine.rows().begin(RR), map), model);
    }
}

/// A crash anywhere in a long rollback, and in the recovery that finishes it: a row that is restored twice is as it was before.
#[test]
fn a_long_rollback_may_be_interrupted_anywhere() {
    let prepared = |seed| {
        let is_flushing = Arc::new(AtomicBool::new(false));
        let clock = Arc::new(SimClock::new(START_MS));
        let world = World::with(SimFolder::new(seed), clock, flushed(&is_flushing)).unwrap();
        let (mut model, mut prng) = (Model::new(), Prng::new(seed));
        let mut txn = world.engine.rows().begin(RR);
        let map = txn.create_map().unwrap();
        change(&mut txn, map, &mut model, 1_000, &mut prng);
        txn.commit().unwrap();
        world.flush();
        let mut txn = world.engine.rows().begin(RR);
        change(&mut txn, map, &mut model.clone(), 1_500, &mut prng);
        let made = txn.create_map().unwrap();
        change(&mut txn, made, &mut Model::new(), 300, &mut prng);
        world.flush();
        world.engine.pager().checkpoint().unwrap();
        is_flushing.store(true, Ordering::Relaxed);
        (world, txn, map, model)
    };
    let total = {
        let (world, txn, ..) = prepared(1);
        let before = world.folder.io_count();
        txn.rollback();
        world.flush();
        world.folder.io_count() - before
    };
    assert!(total > 30, "{total} operations");
    for io in 1..=total {
        let (world, txn, map, model) = prepared(1);
        world.engine.pager().set_failure_hook(Box::new(|error| panic!("stopped: {error}")));
        world.folder.crash_at_io(world.folder.io_count() + io);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            txn.rollback();
            while world.engine.pager().flush_once().is_ok_and(|more| more) {}
        }));
        let mut world = world.crash_with(small());
        for _ in 0..2 {
            assert_eq!(all(&mut world.engine.rows().begin(RR), map), model, "cut at {io}");
            world.check();
            world.settle();
            world.check();
            world = world.crash_with(small());
        }
    }
}

/// A disk without space for the file refuses the change and nothing else.
#[test]
fn a_file_that_cannot_be_written_refuses_the_change() {
    let world = world(3);
    let mut txn = world.engine.rows().begin(RR);
    let map = txn.create_map().unwrap();
    txn.set_lock_wait(Duration::ZERO);
    let mut done = 0u32;
    world.engine.pager().set_failure_hook(Box::new(|error| panic!("stopped: {error}")));
    world.folder.crash_at_io(world.folder.io_count() + 6);
    let error = loop {
        match txn.insert(map, &done.to_be_bytes(), &[7; 100], &mut Vec::new()) {
            Ok(_) => done += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Io(_)), "{error}");
    assert!(done > 5);
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(txn)));
}

/// Very many locks cost little, hold what they must, and end with their transaction.
#[test]
fn escalated_locks_hold_and_end() {
    let world = world(4);
    let rows = world.engine.rows().clone();
    rows.limit_locks(200_000);
    let key = |number: u32| number.to_be_bytes();
    let mut txn = rows.begin(RR);
    let map = txn.create_map().unwrap();
    for number in 0..20_000u32 {
        txn.insert(map, &key(number), b"v", &mut Vec::new()).unwrap();
    }
    txn.commit().unwrap();
    let lock =
        |txn: &mut Transaction, number, strength| txn.lock(map, &key(number), strength, Wait::NoWait, &mut Vec::new());
    for (strength, other) in [(Strength::Shared, Strength::Shared), (Strength::Exclusive, Strength::Exclusive)] {
        let (mut early, mut many, mut late) = (rows.begin(RR), rows.begin(RR), rows.begin(RR));
        assert_eq!(lock(&mut early, 19_999, Strength::Exclusive).unwrap(), Locked::Present);
        for number in 0..3_000 {
            lock(&mut many, number, strength).unwrap();
        }
        // One that turned out not to satisfy the conditions.
        lock(&mut many, 3_000, strength).unwrap();
        many.unlock_last();
        assert_eq!(lock(&mut late, 3_000, Strength::Exclusive).unwrap(), Locked::Present);
        for number in 0..3_000 {
            assert!(matches!(lock(&mut late, number, Strength::Exclusive), Err(Error::LockNotAvailable)), "{number}");
        }
        assert_eq!(lock(&mut late, 7, other).is_ok(), other == Strength::Shared);
        late.rollback();
        // It can turn its shared lock into an exclusive one.
        lock(&mut many, 7, Strength::Exclusive).unwrap();
        let mut late = rows.begin(RR);
        assert!(matches!(lock(&mut late, 7, Strength::Shared), Err(Error::LockNotAvailable)));
        // Beyond the memory limit: whole parts of the map, except rows that others hold.
        for number in 3_000..19_000 {
            lock(&mut many, number, strength).unwrap();
        }
        assert!(rows.lock_bytes() < 300_000, "{}", rows.lock_bytes());
        assert!(matches!(lock(&mut many, 19_999, strength), Err(Error::LockNotAvailable)));
        assert!(early.update(map, &key(19_999), b"mine").unwrap(), "it held the row before and still does");
        lock(&mut early, 19_999, Strength::Exclusive).unwrap();
        for number in [0, 2_999, 3_000, 18_999] {
            assert!(matches!(lock(&mut late, number, Strength::Exclusive), Err(Error::LockNotAvailable)));
        }
        early.rollback();
        many.commit().unwrap();
        for number in [0, 7, 18_999, 19_999] {
            assert_eq!(lock(&mut late, number, Strength::Exclusive).unwrap(), Locked::Present);
        }
        late.rollback();
        assert_eq!(rows.lock_bytes(), 0);
    }
    world.check();
}

/// Rows loaded into a new map are there with the commit, and gone with the rollback and in a crash, long values too. Loading needs no undo.
#[test]
fn loaded_rows_come_and_go_with_their_map() {
    let world = world(5);
    let before = world.engine.check().unwrap();
    let rows = world.engine.rows().clone();
    let fill = |txn: &mut Transaction, map| {
        for number in 0..4_000u32 {
            let value = vec![number as u8; if number % 500 == 0 { 5_000 } else { 60 }];
            assert_eq!(txn.load(map, &number.to_be_bytes(), &value).unwrap(), Inserted::Done);
        }
        assert_eq!(txn.load(map, &7u32.to_be_bytes(), b"again").unwrap(), Inserted::Exists);
    };
    let mut txn = rows.begin(RR);
    let map = txn.create_map().unwrap();
    fill(&mut txn, map);
    assert!(rows.undo_bytes() < 15_000);
    assert_eq!(all(&mut txn, map).len(), 4_000, "it sees its own rows");
    assert!(matches!(rows.begin(RR).load(map, b"k", b"v"), Err(Error::Misuse(_))));
    txn.rollback();
    world.flush();
    world.check();
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.tree_pages, report.elements, report.queued), (before.tree_pages, 0, 0));
    // Undone by a crash.
    let mut txn = rows.begin(RR);
    let map = txn.create_map().unwrap();
    fill(&mut txn, map);
    world.flush();
    std::mem::forget(txn);
    drop(rows);
    let world = world.crash_with(small());
    world.check();
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.tree_pages, report.elements, report.queued), (before.tree_pages, 0, 0));
    // Kept; a part cannot be rolled back alone.
    let rows = world.engine.rows().clone();
    let mut txn = rows.begin(RR);
    let map = txn.create_map().unwrap();
    fill(&mut txn, map);
    txn.commit().unwrap();
    world.flush();
    let mut txn = rows.begin(RR);
    let other = txn.create_map().unwrap();
    let savepoint = txn.savepoint();
    txn.load(other, b"k", b"v").unwrap();
    assert!(matches!(txn.rollback_to(savepoint), Err(Error::Misuse(_))));
    drop((txn, rows));
    let world = world.crash_with(small());
    assert_eq!(all(&mut world.engine.rows().begin(RR), map).len(), 4_000);
    world.check();
}

/// Rows of a map, inserted by a transaction of their own or not yet committed.
fn numbered(txn: &mut Transaction, map: MapId, value: &[u8]) {
    for number in 0..6_000u32 {
        let key = number.to_be_bytes();
        let done = txn.insert(map, &key, value, &mut Vec::new()).unwrap();
        if done == Inserted::Exists {
            txn.update(map, &key, value).unwrap();
        }
    }
}

/// If no file can take the images of a large transaction, recovery keeps them in memory.
#[test]
fn a_start_on_a_full_disk_undoes_a_large_transaction() {
    let world = world(43);
    let rows = world.engine.rows().clone();
    let mut txn = rows.begin(RR);
    let map = txn.create_map().unwrap();
    numbered(&mut txn, map, b"here");
    txn.commit().unwrap();
    let mut txn = rows.begin(RR);
    numbered(&mut txn, map, b"taken back");
    txn.rollback();
    let mut txn = rows.begin(RR);
    numbered(&mut txn, map, b"open");
    world.flush();
    let after = world.folder.crash();
    drop(txn);
    after.set_capacity(Some(after.used_bytes()));
    let world = World::with(after, world.clock.clone(), small()).expect("a start needs no disk space");
    assert_eq!((world.engine.opened().undone, world.engine.opened().rolling_back), (0, 1));
    let is_as_before = || {
        let found = all(&mut world.engine.rows().begin(RR), map);
        found.len() == 6_000 && found.values().all(|value| value == b"here")
    };
    assert!(is_as_before());
    world.check();
    // As far as there is space.
    while world.engine.undo_once(100).unwrap_or(false) {}
    assert!(is_as_before());
    world.folder.set_capacity(None);
    world.settle();
    assert!(world.engine.rows().rolling_back().is_empty() && is_as_before());
    world.check();
}

#[test]
fn rollback_reports_its_progress() {
    let world = world(41);
    let rows = world.engine.rows().clone();
    let mut txn = rows.begin(RR);
    let map = txn.create_map().unwrap();
    txn.commit().unwrap();
    let told = |told: &[(u64, u64)], changes: u64| {
        assert!(told.len() > 3, "{told:?}");
        assert!(told.windows(2).all(|two| two[0].0 <= two[1].0), "{told:?}");
        assert!(told.iter().all(|(done, of)| *of == changes && *done <= changes), "{told:?}, not of {changes}");
    };
    let mut txn = rows.begin(RR);
    numbered(&mut txn, map, b"one");
    let savepoint = txn.savepoint();
    numbered(&mut txn, map, b"two");
    let mut parts = Vec::new();
    txn.rollback_to_with_progress(savepoint, &mut |done, of| parts.push((done, of))).unwrap();
    told(&parts, 6_000);
    numbered(&mut txn, map, b"three");
    let mut whole = Vec::new();
    txn.rollback_with_progress(&mut |done, of| whole.push((done, of)));
    told(&whole, 12_000);
    assert_eq!(whole.last(), Some(&(12_000, 12_000)));
    assert!(all(&mut rows.begin(RR), map).is_empty());
    // The undo of a loser before the doors open reports its progress too: this one has changed definitions.
    let mut txn = rows.begin(RR);
    txn.insert(CATALOG, b"a definition", b"new", &mut Vec::new()).unwrap();
    numbered(&mut txn, map, b"four");
    world.flush();
    let after = world.folder.crash();
    drop(txn);
    let undone = std::cell::RefCell::new(Vec::new());
    let clock = world.clock.clone();
    let opened = engine::Engine::open_with(small(), after as Arc<dyn os::Folder>, clock, &|done| {
        if let engine::Recovering::Undo { done, of } = done {
            undone.borrow_mut().push((done, of));
        }
    });
    assert_eq!(opened.unwrap().opened().undone, 1);
    let undone = undone.into_inner();
    assert!(undone.windows(2).all(|two| two[0].0 <= two[1].0) && undone.len() > 3, "{undone:?}");
    assert!(undone.last().is_some_and(|(done, of)| done == of && *of >= 6_000), "{undone:?}");
}

/// Rows that are too long for one batch come one by one, in both directions, and none is left out.
#[test]
fn long_values_come_one_by_one() {
    let world = World::new(42);
    let rows = world.engine.rows().clone();
    let mut txn = rows.begin(RR);
    let map = txn.create_map().unwrap();
    let mut model = Model::new();
    for number in 0..12u8 {
        let value = vec![number; if number % 3 == 0 { (1 << 20) + 5 } else { 40 }];
        txn.insert(map, &[number], &value, &mut Vec::new()).unwrap();
        model.insert(vec![number], value);
    }
    txn.commit().unwrap();
    let mut txn = rows.begin(RR);
    assert!(all(&mut txn, map) == model);
    for backward in [false, true] {
        let mut cursor = txn.scan(map, Unbounded, Unbounded, backward).unwrap();
        let (mut batch, mut found, mut taken) = (RowBatch::new(), Model::new(), 0);
        while cursor.next(&mut txn, &mut batch).unwrap() {
            assert!(batch.iter().map(|(_, value)| value.len()).sum::<usize>() < 2 << 20);
            let long = batch.take_long();
            taken += usize::from(long.is_some());
            for (key, value) in batch.iter() {
                let value = long.as_deref().unwrap_or(value);
                assert!(found.insert(key.to_vec(), value.to_vec()).is_none());
            }
        }
        assert!(found == model);
        assert_eq!(taken, 4);
    }
}
