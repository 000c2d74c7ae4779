//! Many transactions that want the same row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::Error;
use engine::rows::{Isolation::ReadCommitted as RC, Locked, MapId, Strength, Transaction, Wait};

use crate::support::{World, wait_until};

fn filled(world: &World, keys: &[&[u8]]) -> MapId {
    let mut txn = world.engine.rows().begin(RC);
    let map = txn.create_map().unwrap();
    for key in keys {
        txn.insert(map, key, &0u64.to_le_bytes(), &mut Vec::new()).unwrap();
    }
    txn.commit().unwrap();
    map
}

/// Reads with a lock, and adds one.
fn add_one(txn: &mut Transaction, map: MapId, key: &[u8]) -> Result<(), Error> {
    let mut value = Vec::new();
    assert_eq!(txn.lock_patiently(map, key, Strength::Exclusive, &mut value)?, Locked::Present);
    let count = u64::from_le_bytes(value.try_into().unwrap()) + 1;
    assert!(txn.update(map, key, &count.to_le_bytes())?);
    Ok(())
}

fn count(world: &World, map: MapId, key: &[u8]) -> u64 {
    let mut value = Vec::new();
    assert!(world.engine.rows().begin(RC).get(map, key, &mut value).unwrap());
    u64::from_le_bytes(value.try_into().unwrap())
}

#[test]
fn every_transaction_that_wants_a_row_gets_it_and_no_deadlock_is_reported() {
    let world = World::new(31);
    let map = filled(&world, &[b"hot", b"cold"]);
    std::thread::scope(|scope| {
        for thread in 0..16u64 {
            let world = &world;
            scope.spawn(move || {
                for round in 0..60 {
                    let mut txn = world.engine.rows().begin(RC);
                    add_one(&mut txn, map, b"hot").unwrap();
                    if (thread + round) % 3 == 0 {
                        add_one(&mut txn, map, b"cold").unwrap();
                    }
                    if round % 7 == 0 {
                        txn.rollback();
                    } else {
                        txn.commit().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(count(&world, map, b"hot"), 16 * 51);
    world.check();
}

/// The queued transaction waits for the holder with the oldest lock: the one that wants the rest of the row, or the other one.
#[test]
fn a_holder_of_a_shared_lock_is_not_blocked_by_queued_tickets() {
    rest_of_a_row(true);
    rest_of_a_row(false);
}

fn rest_of_a_row(is_longest: bool) {
    let world = World::new(32);
    let map = filled(&world, &[b"row"]);
    let begin = || world.engine.rows().begin(RC);
    let shared = |txn: &mut Transaction| txn.lock(map, b"row", Strength::Shared, Wait::NoWait, &mut Vec::new());
    let (mut one, mut two) = (begin(), begin());
    let (first, second) = if is_longest { (&mut two, &mut one) } else { (&mut one, &mut two) };
    shared(first).unwrap();
    shared(second).unwrap();
    let is_through = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut third = begin();
            add_one(&mut third, map, b"row").unwrap();
            assert_eq!(is_through.load(Ordering::SeqCst), 1, "the row was locked by another transaction until then");
            third.commit().unwrap();
        });
        wait_until("the third waits", || world.engine.rows().lock_waits().len() == 1);
        let second = scope.spawn(|| {
            add_one(&mut two, map, b"row").expect("the queued one waits for this one, and not this one for it");
            is_through.store(1, Ordering::SeqCst);
            two.commit().unwrap();
        });
        wait_until("the second waits", || world.engine.rows().lock_waits().len() == 2);
        one.commit().unwrap();
        second.join().unwrap();
    });
    assert_eq!(count(&world, map, b"row"), 2);
}

#[test]
fn timeouts_cancels_and_deadlocks_lose_no_wake_up() {
    let world = World::new(33);
    let map = filled(&world, &[b"a", b"b", b"c"]);
    let done = [const { AtomicU64::new(0) }; 3];
    std::thread::scope(|scope| {
        for thread in 0..12u64 {
            let (world, done) = (&world, &done);
            scope.spawn(move || {
                for round in 0..80 {
                    let mut txn = world.engine.rows().begin(RC);
                    let millis = if (thread + round) % 4 == 0 { 1 } else { 20_000 };
                    txn.set_lock_wait(Duration::from_millis(millis));
                    if thread % 5 == 0 {
                        let is_told = Arc::new(AtomicU64::new(round % 2));
                        txn.set_cancel(Arc::new(move || is_told.load(Ordering::SeqCst) == 1));
                    }
                    let keys = [(thread + round) as usize % 3, (thread * 2 + round) as usize % 3];
                    let both = keys.iter().try_for_each(|key| add_one(&mut txn, map, &[b'a' + *key as u8]));
                    match both {
                        Ok(()) => {
                            txn.commit().unwrap();
                            keys.iter().for_each(|key| _ = done[*key].fetch_add(1, Ordering::SeqCst));
                        }
                        Err(Error::Deadlock | Error::LockTimeout | Error::Cancelled) => txn.rollback(),
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    for (key, done) in [b"a", b"b", b"c"].iter().zip(&done) {
        assert_eq!(count(&world, map, *key), done.load(Ordering::SeqCst));
    }
    world.check();
}
