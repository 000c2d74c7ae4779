//! Maps that are newer than a snapshot (EN-82).

use std::ops::Bound::Unbounded;

use engine::Error;
use engine::rows::{Isolation, MapId, RowBatch, Transaction};

use crate::support::World;

const RR: Isolation = Isolation::RepeatableRead;

/// Creates a map with one row, as an index is filled.
fn fill(txn: &mut Transaction) -> MapId {
    let map = txn.create_map().unwrap();
    txn.load(map, b"a", b"1").unwrap();
    map
}

fn count(txn: &mut Transaction, map: MapId) -> usize {
    let mut cursor = txn.scan(map, Unbounded, Unbounded, false).unwrap();
    let (mut batch, mut count) = (RowBatch::new(), 0);
    while cursor.next(txn, &mut batch).unwrap() {
        count += batch.len();
    }
    count
}

#[test]
fn a_map_is_seen_from_the_commit_of_its_creator_on() {
    let world = World::new(1);
    let rows = world.engine.rows().clone();
    let mut before = rows.begin(RR);
    before.take_snapshot();
    assert!(before.seen_maps().is_none(), "there is no other map");
    let mut creator = rows.begin(RR);
    let map = fill(&mut creator);
    let mut between = rows.begin(RR);
    between.take_snapshot();
    creator.commit().unwrap();
    let mut after = rows.begin(RR);
    after.take_snapshot();
    assert!(after.seen_maps().is_none());
    for txn in [&mut before, &mut between] {
        assert!(!txn.seen_maps().expect("a newer map").sees(map));
        assert_eq!(count(txn, map), 0);
    }
    assert_eq!(count(&mut after, map), 1);
    // A statement of these levels takes a snapshot of its own.
    let mut committed = rows.begin(Isolation::ReadCommitted);
    committed.take_snapshot();
    let mut creator = rows.begin(RR);
    fill(&mut creator);
    creator.commit().unwrap();
    assert!(committed.seen_maps().is_none());
    assert!(after.seen_maps().is_some_and(|seen| seen.sees(map)), "another map is newer");
}

#[test]
fn a_map_of_its_own_is_newer_than_an_older_snapshot_of_its_creator() {
    let world = World::new(1);
    let rows = world.engine.rows().clone();
    let mut old = rows.begin(RR);
    old.take_snapshot();
    // Something is committed in between, which the map shows and the snapshot does not.
    let mut other = rows.begin(RR);
    fill(&mut other);
    other.commit().unwrap();
    let map = fill(&mut old);
    assert!(!old.seen_maps().unwrap().sees(map));
    let mut new = rows.begin(RR);
    let map = fill(&mut new);
    new.take_snapshot();
    assert!(new.seen_maps().unwrap().sees(map));
}

#[test]
fn a_map_that_is_shown_to_all_is_seen_by_older_snapshots() {
    let world = World::new(1);
    let rows = world.engine.rows().clone();
    let mut before = rows.begin(RR);
    before.take_snapshot();
    let mut creator = rows.begin(RR);
    let map = fill(&mut creator);
    creator.show_to_all(map).unwrap();
    creator.insert(map, b"b", b"2", &mut Vec::new()).unwrap();
    assert_eq!((count(&mut creator, map), creator.durability_lsn()), (2, 0), "its own rows wait for no position");
    let lsn = creator.commit().unwrap();
    assert!(before.seen_maps().unwrap().sees(map));
    assert_eq!(count(&mut before, map), 2);
    assert!(before.durability_lsn() >= lsn, "what is shown is as durable as its commit");
    // Later changes are not shown.
    let mut later = rows.begin(RR);
    assert!(later.delete(map, b"a").unwrap());
    later.insert(map, b"c", b"3", &mut Vec::new()).unwrap();
    later.commit().unwrap();
    assert_eq!(count(&mut before, map), 2);
    let mut other = rows.begin(RR);
    assert!(matches!(other.show_to_all(map), Err(Error::Misuse(_))));
}

#[test]
fn an_entry_that_filled_an_index_is_no_concurrent_change() {
    let world = World::new(1);
    let rows = world.engine.rows().clone();
    let mut writer = rows.begin(RR);
    writer.fail_on_unseen();
    let mut creator = rows.begin(RR);
    let map = fill(&mut creator);
    creator.commit().unwrap();
    assert!(writer.delete(map, b"a").unwrap());
    writer.rollback();
    // A change after that is one.
    let mut writer = rows.begin(RR);
    writer.fail_on_unseen();
    let mut other = rows.begin(RR);
    assert!(other.update(map, b"a", b"2").unwrap());
    other.commit().unwrap();
    assert!(matches!(writer.delete(map, b"a"), Err(Error::SerializationFailure { .. })));
}
