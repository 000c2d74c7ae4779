//! Old versions that memory does not hold: long snapshots beside many commits.

use std::collections::BTreeMap;
use std::ops::Bound::Unbounded;
use std::sync::Arc;

use engine::rows::{Isolation, MapId, RowBatch, Transaction};
use engine::{Error, Options};
use os::{SimClock, SimFolder};
use stdx::prng::Prng;

use crate::support::{START_MS, World, options};

const RR: Isolation = Isolation::RepeatableRead;
const VERSIONS_MAX: u64 = 300_000;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn small() -> Options {
    Options { versions_max: VERSIONS_MAX, ..options() }
}

fn world(seed: u64) -> World {
    World::with(SimFolder::new(seed), Arc::new(SimClock::new(START_MS)), small()).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn all(txn: &mut Transaction, map: MapId) -> Result<Model, Error> {
    let mut cursor = txn.scan(map, Unbounded, Unbounded, false)?;
    let (mut batch, mut found) = (RowBatch::new(), Model::new());
    while cursor.next(txn, &mut batch)? {
        found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
    Ok(found)
}

/// Commits one transaction of some changes.
fn commit_some(world: &World, map: MapId, model: &mut Model, prng: &mut Prng) {
    let mut draw = |below: u64| prng.next_u64() % below;
    let mut txn = world.engine.rows().begin(RR);
    for _ in 0..1 + draw(6) {
        let key = key(draw(400));
        let len = if draw(300) == 0 { 5_000 } else { draw(300) };
        let value = vec![draw(256) as u8; len as usize];
        match draw(3) {
            0 => {
                txn.delete(map, &key).unwrap();
                model.remove(&key);
            }
            _ => {
                if !txn.update(map, &key, &value).unwrap() {
                    txn.insert(map, &key, &value, &mut Vec::new()).unwrap();
                }
                model.insert(key, value);
            }
        }
    }
    match draw(10) {
        // Open transactions of others come and go meanwhile.
        0 => drop(txn),
        _ => drop(txn.commit().unwrap()),
    }
}

/// Snapshots of many moments each see their own state, also from files. When they have ended, nothing is left of it.
#[test]
fn snapshots_see_their_moment_in_memory_and_in_files() {
    for seed in 0..3 {
        let world = world(seed);
        let rows = world.engine.rows().clone();
        let mut prng = Prng::new(seed);
        let mut txn = rows.begin(RR);
        let map = txn.create_map().unwrap();
        txn.commit().unwrap();
        let (mut model, mut open, mut most) = (Model::new(), Vec::new(), 0);
        for round in 0..6_000u64 {
            let before = model.clone();
            commit_some(&world, map, &mut model, &mut prng);
            let now = all(&mut rows.begin(RR), map).unwrap();
            if now != model {
                assert_eq!(now, before, "an abandoned transaction leaves nothing");
                model = before;
            }
            if round % 800 == 0 {
                let mut reader = rows.begin(RR);
                assert_eq!(all(&mut reader, map).unwrap(), model);
                open.push((reader, model.clone()));
            }
            if round % 16 == 0 {
                world.go_about(prng.next_u64() % 3).unwrap();
                world.settle();
                assert!(rows.version_bytes() < 2 * VERSIONS_MAX, "{}", rows.version_bytes());
                most = most.max(rows.version_file_bytes());
            }
            if round % 1_900 == 1_899 {
                let at = prng.next_u64() as usize % open.len();
                let (mut reader, model) = open.swap_remove(at);
                assert_eq!(all(&mut reader, map).unwrap(), model);
            }
            if round % 1_000 == 999 {
                for (reader, model) in &mut open {
                    let number = prng.next_u64() % 400;
                    let (mut value, expected) = (Vec::new(), model.get(&key(number)));
                    assert_eq!(reader.get(map, &key(number), &mut value).unwrap(), expected.is_some());
                    assert_eq!(&value, expected.unwrap_or(&Vec::new()));
                }
            }
        }
        assert!(most > 4 * VERSIONS_MAX, "{most} bytes in files are hardly any");
        for (reader, model) in &mut open {
            assert_eq!(all(reader, map).unwrap(), *model);
        }
        drop(open);
        world.flush();
        world.settle();
        assert_eq!((rows.version_bytes(), rows.version_file_bytes()), (0, 0));
        let report = world.engine.check().unwrap();
        assert_eq!((report.problems, report.delete_marked, report.rows as usize), (vec![], 0, model.len()));
        assert_eq!(report.queued, 0);
    }
}

/// If there is no space for their files, the oldest snapshot is given up and reports it; others go on.
#[test]
fn a_snapshot_whose_versions_find_no_space_is_given_up_and_reports_it() {
    let world = world(8);
    let rows = world.engine.rows().clone();
    let mut txn = rows.begin(RR);
    let map = txn.create_map().unwrap();
    for number in 0..50 {
        txn.insert(map, &key(number), b"0", &mut Vec::new()).unwrap();
    }
    txn.commit().unwrap();
    let mut reader = rows.begin(RR);
    let value = |txn: &mut Transaction| {
        let mut value = Vec::new();
        txn.get(map, &key(7), &mut value).map(|found| found.then_some(value))
    };
    assert_eq!(value(&mut reader).unwrap().unwrap(), b"0");
    let mut late = None;
    for number in 0..3_000u32 {
        let mut txn = rows.begin(RR);
        for row in 0..50 {
            txn.update(map, &key(row), &[number as u8; 1_200]).unwrap();
        }
        txn.commit().unwrap();
        if number % 4 == 0 {
            world.flush();
            world.settle();
            world.engine.pager().checkpoint().unwrap();
        }
        if late.is_none() && rows.version_file_bytes() > 10 << 20 {
            let mut txn = rows.begin(RR);
            assert_eq!(value(&mut txn).unwrap().unwrap()[0], number as u8);
            late = Some((txn, number));
            // From here on the disk is too full for more of them, but not for the WAL.
            world.folder.set_capacity(Some(world.folder.used_bytes() + (48 << 20)));
        }
        if matches!(value(&mut reader), Err(Error::SnapshotTooOld)) {
            break;
        }
    }
    assert!(rows.version_bytes() < 2 * VERSIONS_MAX, "{}", rows.version_bytes());
    assert!(matches!(value(&mut reader), Err(Error::SnapshotTooOld)));
    let (mut late, number) = late.expect("some have gone to files before");
    match value(&mut late) {
        Ok(found) => assert_eq!(found.unwrap()[0], number as u8),
        Err(error) => assert!(matches!(error, Error::SnapshotTooOld), "{error}"),
    }
    drop((reader, late));
    world.flush();
    world.settle();
    assert_eq!((rows.version_bytes(), rows.version_file_bytes()), (0, 0));
    assert!(value(&mut rows.begin(RR)).unwrap().is_some());
}
