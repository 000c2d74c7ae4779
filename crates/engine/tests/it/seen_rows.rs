//! Locks on the rows that a snapshot sees: newer versions, followed keys, the four strengths, locks that are given back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::Error;
use engine::rows::{Inserted, Isolation, Locked, LockedRow, MapId, Rows, Strength, Transaction, Wait};
use stdx::prng::Prng;

use crate::support::World;

const STRENGTHS: [Strength; 4] = [Strength::KeyShared, Strength::Shared, Strength::NoKeyExclusive, Strength::Exclusive];

fn rows(world: &World) -> &Arc<Rows> {
    world.engine.rows()
}

fn put(txn: &mut Transaction, map: MapId, key: &[u8], value: &[u8]) {
    assert_eq!(txn.insert(map, key, value, &mut Vec::new()).unwrap(), Inserted::Done);
}

fn filled(world: &World, expected: &[(&str, &str)]) -> MapId {
    let mut txn = rows(world).begin(Isolation::ReadCommitted);
    let map = txn.create_map().unwrap();
    expected.iter().for_each(|(key, value)| put(&mut txn, map, key.as_bytes(), value.as_bytes()));
    txn.commit().unwrap();
    map
}

/// A transaction whose statement has its snapshot.
fn reader(world: &World) -> Transaction {
    let mut txn = rows(world).begin(Isolation::ReadCommitted);
    txn.take_snapshot();
    txn
}

/// Runs a transaction of its own.
fn change(world: &World, change: impl FnOnce(&mut Transaction)) {
    let mut txn = rows(world).begin(Isolation::ReadCommitted);
    change(&mut txn);
    txn.commit().unwrap();
}

fn seen(txn: &mut Transaction, map: MapId, key: &[u8]) -> (LockedRow, Vec<u8>) {
    let mut value = Vec::new();
    let locked = txn.lock_seen(map, key, Strength::Exclusive, Wait::NoWait, &mut value).unwrap();
    (locked, value)
}

fn rename(txn: &mut Transaction, map: MapId, key: &[u8], new_key: &[u8], value: &[u8]) {
    assert!(txn.move_away(map, key, new_key).unwrap());
    put(txn, map, new_key, value);
}

fn lock(txn: &mut Transaction, map: MapId, key: &[u8], strength: Strength) -> Result<Locked, Error> {
    txn.lock(map, key, strength, Wait::NoWait, &mut Vec::new())
}

#[test]
fn a_row_that_the_snapshot_sees_is_locked_as_it_is_or_as_a_newer_version() {
    let world = World::new(1);
    let map = filled(&world, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let mut txn = reader(&world);
    change(&world, |other| {
        assert!(other.update(map, b"b", b"22").unwrap());
        assert!(other.delete(map, b"c").unwrap());
    });
    assert_eq!(seen(&mut txn, map, b"a"), (LockedRow::Same, b"1".to_vec()));
    assert_eq!(seen(&mut txn, map, b"b"), (LockedRow::Newer(None), b"22".to_vec()));
    assert_eq!(seen(&mut txn, map, b"c"), (LockedRow::Gone, Vec::new()));
    let mut other = rows(&world).begin(Isolation::ReadCommitted);
    assert!(matches!(lock(&mut other, map, b"b", Strength::Shared), Err(Error::LockNotAvailable)));
    assert_eq!(
        lock(&mut other, map, b"c", Strength::Exclusive).unwrap(),
        Locked::Absent,
        "a row that is gone is not locked"
    );
}

#[test]
fn a_row_is_followed_over_changes_of_its_key() {
    let world = World::new(2);
    let map = filled(&world, &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    let mut txn = reader(&world);
    change(&world, |other| rename(other, map, b"a", b"m", b"10"));
    change(&world, |other| rename(other, map, b"m", b"n", b"11"));
    change(&world, |other| put(other, map, b"a", b"another"));
    change(&world, |other| {
        rename(other, map, b"b", b"x", b"20");
        rename(other, map, b"x", b"y", b"21");
    });
    change(&world, |other| rename(other, map, b"c", b"z", b"30"));
    change(&world, |other| assert!(other.delete(map, b"z").unwrap()));
    assert_eq!(seen(&mut txn, map, b"a"), (LockedRow::Newer(Some(b"n".to_vec())), b"11".to_vec()));
    assert_eq!(seen(&mut txn, map, b"b"), (LockedRow::Newer(Some(b"y".to_vec())), b"21".to_vec()));
    assert_eq!(seen(&mut txn, map, b"c").0, LockedRow::Gone);
    assert_eq!(seen(&mut txn, map, b"d").0, LockedRow::Same);
}

#[test]
fn a_row_that_took_the_key_of_another_is_not_that_one() {
    let world = World::new(3);
    let map = filled(&world, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let mut txn = reader(&world);
    change(&world, |other| {
        assert!(other.delete(map, b"a").unwrap());
        put(other, map, b"a", b"new");
        assert!(other.update(map, b"a", b"newer").unwrap());
    });
    change(&world, |other| assert!(other.delete(map, b"b").unwrap()));
    change(&world, |other| put(other, map, b"b", b"new"));
    change(&world, |other| assert!(other.update(map, b"b", b"newer").unwrap()));
    assert_eq!(seen(&mut txn, map, b"a").0, LockedRow::Gone);
    assert_eq!(seen(&mut txn, map, b"b").0, LockedRow::Gone);
    txn.commit().unwrap();
    assert_eq!(seen(&mut reader(&world), map, b"a"), (LockedRow::Same, b"newer".to_vec()));
}

#[test]
fn a_snapshot_reaches_its_version_of_a_row_in_few_steps() {
    const COMMITS: u32 = 2000;
    let world = World::new(15);
    let map = filled(&world, &[("kept", "0"), ("moved", "0"), ("reborn", "0")]);
    let mut txns: Vec<Transaction> = (0..4).map(|_| reader(&world)).collect();
    change(&world, |other| rename(other, map, b"moved", b"there", b"0"));
    for number in 1..=COMMITS {
        let value = number.to_string();
        change(&world, |other| {
            assert!(other.update(map, b"kept", value.as_bytes()).unwrap());
            assert!(other.update(map, b"there", value.as_bytes()).unwrap());
            // Half of its versions are deletions.
            match number % 2 {
                0 => put(other, map, b"reborn", value.as_bytes()),
                _ => assert!(other.delete(map, b"reborn").unwrap()),
            }
        });
        if number == COMMITS / 2 {
            txns.push(reader(&world));
        }
    }
    let newest = COMMITS.to_string().into_bytes();
    for (nth, txn) in txns.iter_mut().enumerate() {
        let (is_early, before) = (nth < 4, world.engine.metrics().version_steps.get());
        let mut value = Vec::new();
        assert!(txn.get(map, b"kept", &mut value).unwrap());
        assert_eq!(value, if is_early { b"0".to_vec() } else { (COMMITS / 2).to_string().into_bytes() });
        assert_eq!(seen(txn, map, b"kept"), (LockedRow::Newer(None), newest.clone()));
        assert_eq!(seen(txn, map, b"reborn").0, LockedRow::Gone);
        if is_early {
            assert_eq!(seen(txn, map, b"moved"), (LockedRow::Newer(Some(b"there".to_vec())), newest.clone()));
        }
        let steps = world.engine.metrics().version_steps.get() - before;
        assert!(steps < 200, "{steps} steps for five lookups among {COMMITS} versions (EN-99)");
        // The locks are free for the next one.
        std::mem::replace(txn, rows(&world).begin(Isolation::ReadCommitted)).rollback();
    }
}

#[test]
fn a_transaction_of_one_snapshot_fails_at_newer_versions() {
    let world = World::new(4);
    let map = filled(&world, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let begin = || {
        let mut txn = rows(&world).begin(Isolation::RepeatableRead);
        txn.fail_on_unseen();
        txn
    };
    let mut txns = [begin(), begin(), begin()];
    change(&world, |other| {
        assert!(other.update(map, b"a", b"11").unwrap());
        assert!(other.delete(map, b"b").unwrap());
        rename(other, map, b"c", b"d", b"3");
    });
    for (txn, (key, is_gone)) in txns.iter_mut().zip([(b"a", false), (b"b", true), (b"c", false)]) {
        let failed = txn.lock_seen(map, key, Strength::Shared, Wait::NoWait, &mut Vec::new());
        let Err(Error::SerializationFailure { is_deleted }) = failed else { panic!("{failed:?}") };
        assert_eq!(is_deleted, is_gone);
    }
}

#[test]
fn strengths_conflict_as_their_table_says() {
    let world = World::new(5);
    let map = filled(&world, &[("a", "1")]);
    for (nth, held) in STRENGTHS.into_iter().enumerate() {
        for (other, wanted) in STRENGTHS.into_iter().enumerate() {
            let (mut one, mut two) =
                (rows(&world).begin(Isolation::ReadCommitted), rows(&world).begin(Isolation::ReadCommitted));
            assert_eq!(lock(&mut one, map, b"a", held).unwrap(), Locked::Present);
            let taken = lock(&mut two, map, b"a", wanted);
            assert_eq!(taken.is_err(), nth + other >= 3, "{held:?} and {wanted:?}");
            assert_eq!(held.conflicts_with(wanted), wanted.conflicts_with(held));
            assert_eq!(held.conflicts_with(wanted), taken.is_err());
        }
    }
}

#[test]
fn a_key_shared_lock_passes_a_change_that_keeps_the_key() {
    let world = World::new(6);
    let map = filled(&world, &[("a", "1"), ("b", "2")]);
    let begin = || rows(&world).begin(Isolation::ReadCommitted);
    let (mut writer, mut child) = (begin(), begin());
    assert!(writer.update_with(map, b"a", b"11", Strength::NoKeyExclusive).unwrap());
    let mut value = Vec::new();
    assert_eq!(child.lock(map, b"a", Strength::KeyShared, Wait::NoWait, &mut value).unwrap(), Locked::Present);
    assert_eq!(value, b"1", "the committed version");
    assert!(matches!(lock(&mut begin(), map, b"a", Strength::Shared), Err(Error::LockNotAvailable)));
    // The writer may change the row again, but not its key.
    assert!(writer.update_with(map, b"a", b"12", Strength::NoKeyExclusive).unwrap());
    writer.set_lock_wait(Duration::from_millis(5));
    assert!(matches!(writer.update(map, b"a", b"13"), Err(Error::LockTimeout)));
    assert!(matches!(writer.delete(map, b"a"), Err(Error::LockTimeout)));
    child.commit().unwrap();
    assert!(writer.delete(map, b"a").unwrap());
    assert!(matches!(lock(&mut begin(), map, b"a", Strength::KeyShared), Err(Error::LockNotAvailable)));
    // Neither a full change nor a new row lets it pass, whatever follows.
    assert!(writer.update(map, b"b", b"21").unwrap());
    assert!(writer.update_with(map, b"b", b"22", Strength::NoKeyExclusive).unwrap());
    put(&mut writer, map, b"c", b"3");
    assert!(writer.update_with(map, b"c", b"33", Strength::NoKeyExclusive).unwrap());
    for key in [b"b", b"c"] {
        assert!(matches!(lock(&mut begin(), map, key, Strength::KeyShared), Err(Error::LockNotAvailable)));
    }
    writer.rollback();
    assert_eq!(lock(&mut begin(), map, b"a", Strength::KeyShared).unwrap(), Locked::Present);
}

#[test]
fn a_change_is_rolled_back_below_key_shared_locks() {
    let world = World::new(7);
    let map = filled(&world, &[("a", "1")]);
    let begin = || rows(&world).begin(Isolation::ReadCommitted);
    let (mut writer, mut child) = (begin(), begin());
    let before = writer.savepoint();
    assert!(writer.update_with(map, b"a", b"11", Strength::NoKeyExclusive).unwrap());
    assert_eq!(lock(&mut child, map, b"a", Strength::KeyShared).unwrap(), Locked::Present);
    writer.rollback_to(before).unwrap();
    assert!(writer.update_with(map, b"a", b"12", Strength::NoKeyExclusive).unwrap());
    writer.rollback();
    assert!(begin().update_with(map, b"a", b"13", Strength::NoKeyExclusive).unwrap());
    assert!(matches!(lock(&mut begin(), map, b"a", Strength::Exclusive), Err(Error::LockNotAvailable)));
}

#[test]
fn a_rollback_to_a_savepoint_gives_back_the_locks_of_rows_that_are_unchanged() {
    let world = World::new(8);
    let map = filled(&world, &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    let begin = || rows(&world).begin(Isolation::ReadCommitted);
    let mut txn = begin();
    lock(&mut txn, map, b"a", Strength::Exclusive).unwrap();
    let before = txn.savepoint();
    for key in [b"b", b"c"] {
        lock(&mut txn, map, key, Strength::Exclusive).unwrap();
    }
    assert!(txn.update(map, b"c", b"33").unwrap());
    assert!(txn.update(map, b"d", b"44").unwrap());
    txn.rollback_to_and_unlock(before, &mut |_, _| ()).unwrap();
    let is_free = |key: &[u8]| lock(&mut begin(), map, key, Strength::Exclusive).is_ok();
    assert!(!is_free(b"a"), "it was locked before");
    assert!(is_free(b"b"));
    assert!(!is_free(b"c"), "EN-18: it was changed");
    assert!(!is_free(b"d"));
    txn.commit().unwrap();
    for key in [b"a", b"b", b"c", b"d"] {
        assert!(is_free(key));
    }
}

#[test]
fn a_deadlock_leaves_a_transaction_that_survives_it() {
    let world = World::new(9);
    let map = filled(&world, &[("a", "1"), ("b", "2")]);
    let mut one = rows(&world).begin(Isolation::ReadCommitted);
    one.survive_deadlocks();
    assert!(one.update(map, b"a", b"11").unwrap());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut two = rows(&world).begin(Isolation::ReadCommitted);
            assert!(two.update(map, b"b", b"22").unwrap());
            assert!(two.update(map, b"a", b"12").unwrap());
            two.commit().unwrap();
        });
        while rows(&world).lock_waits().is_empty() {
            std::thread::yield_now();
        }
        assert!(matches!(one.update(map, b"b", b"21"), Err(Error::Deadlock)));
        one.commit().unwrap();
        other.join().unwrap();
    });
    assert_eq!(seen(&mut reader(&world), map, b"a").1, b"12");
}

/// The rows of a snapshot as later transactions leave them.
struct History {
    /// Where each row is now, by the key that it had in the snapshot; None if it was deleted.
    places: BTreeMap<u8, Option<u8>>,
}

impl History {
    fn row_at(&self, key: u8) -> Option<u8> {
        self.places.iter().find(|(_, at)| **at == Some(key)).map(|(row, _)| *row)
    }

    fn set(&mut self, row: Option<u8>, place: Option<u8>) {
        if let Some(row) = row {
            self.places.insert(row, place);
        }
    }

    /// Changes, deletes, moves or inserts a row. `freed` are keys that the transaction has freed: it takes none of them again.
    fn step(&mut self, txn: &mut Transaction, map: MapId, freed: &mut Vec<u8>, prng: &mut Prng) {
        let mut draw = || b'a' + prng.below(6) as u8;
        let (key, to) = (draw(), draw());
        let mut now = Vec::new();
        let is_there = txn.lock(map, &[key], Strength::Exclusive, Wait::NoWait, &mut now).unwrap() == Locked::Present;
        let is_taken = lock(txn, map, &[to], Strength::Exclusive).unwrap() == Locked::Present || freed.contains(&to);
        let row = self.row_at(key);
        match (is_there, prng.below(4)) {
            (false, _) if freed.contains(&key) => {}
            (false, _) => put(txn, map, &[key], b"new"),
            (true, 0) => {
                assert!(txn.delete(map, &[key]).unwrap());
                freed.push(key);
                self.set(row, None);
            }
            (true, 1) if !is_taken => {
                rename(txn, map, &[key], &[to], &now);
                freed.push(key);
                self.set(row, Some(to));
            }
            (true, _) => assert!(txn.update(map, &[key], &now).unwrap()),
        }
    }
}

#[test]
fn every_row_of_a_snapshot_is_found_where_its_history_has_led() {
    let mut prng = Prng::new(11);
    for round in 0..200 {
        let world = World::new(100 + round);
        let map = filled(&world, &[("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")]);
        let mut txn = reader(&world);
        let mut history = History { places: (b'a'..=b'd').map(|key| (key, Some(key))).collect() };
        for _ in 0..prng.below(6) {
            change(&world, |other| {
                let mut freed = Vec::new();
                (0..=prng.below(3)).for_each(|_| history.step(other, map, &mut freed, &mut prng));
            });
        }
        for (row, place) in history.places {
            let (found, value) = seen(&mut txn, map, &[row]);
            let at = match found {
                LockedRow::Same | LockedRow::Newer(None) => Some(row),
                LockedRow::Newer(Some(key)) => Some(key[0]),
                LockedRow::Gone | LockedRow::Skipped => None,
            };
            assert_eq!(at, place, "round {round}, row {}", char::from(row));
            assert_eq!(value, if place.is_some() { vec![row] } else { Vec::new() }, "round {round}");
        }
    }
}
