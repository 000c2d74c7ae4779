//! A full disk and damaged pages: a failure is reported, other requests go on, and nothing is lost or leaked.

use engine::{Error, Expire, Found, KeySet};

use crate::support::{START_MS, World, bytes};

/// Fills the disk with values until a write is refused. Returns their number.
fn fill(world: &World) -> u32 {
    for at in 0u32.. {
        match world.engine.keyspace().set(0, &at.to_be_bytes(), &bytes(10_000, u64::from(at)), Expire::None) {
            Ok(_) => world.flush(),
            Err(Error::DiskFull) => return at,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_recovers_by_itself() {
    let mut world = World::new(1);
    world.folder.set_capacity(Some(world.folder.used_bytes() + (24 << 20)));
    let count = fill(&world);
    assert!(count > 100, "{count}");
    for at in 0..count {
        assert_eq!(world.get(0, &at.to_be_bytes()), Some(bytes(10_000, u64::from(at))));
    }
    let refused = world.engine.keyspace().write::<(), Error>(KeySet::Keys(&[(0, b"a"), (0, b"b")]), true, |key_txn| {
        key_txn.put_string(0, b"a", b"small", Expire::At(START_MS + 5))?;
        key_txn.put_string(0, b"b", &bytes(3_000_000, 1), Expire::None)
    });
    assert!(matches!(refused, Err(Error::DiskFull)), "{refused:?}");
    assert_eq!((world.get(0, b"a"), world.count(0)), (None, u64::from(count)));
    world.folder.set_capacity(None);
    world.engine.pager().background_step().expect("space is found again");
    world.set(0, b"after", b"x");
    world.settle();
    world.check();
    world.flush();
    world = world.crash();
    assert_eq!(world.count(0), u64::from(count) + 1);
    world.check();
}

#[test]
fn a_key_transaction_whose_error_is_swallowed_is_still_rolled_back() {
    let world = World::new(2);
    world.folder.set_capacity(Some(world.folder.used_bytes() + (20 << 20)));
    fill(&world);
    world
        .engine
        .keyspace()
        .write::<_, Error>(KeySet::Keys(&[(0, &[0; 4])]), false, |key_txn| key_txn.delete(0, &[0; 4]))
        .ok();
    let done = world.engine.keyspace().write::<_, Error>(KeySet::Keys(&[(0, b"a"), (0, b"b")]), true, |key_txn| {
        key_txn.put_string(0, b"a", b"1", Expire::None)?;
        let mut refused = 0;
        for _ in 0..8 {
            refused += u32::from(key_txn.put_string(0, b"b", &bytes(2_000_000, 1), Expire::None).is_err());
        }
        Ok(refused)
    });
    match done {
        // Refused before anything was changed for it: the rest of the transaction stands.
        Ok((refused, _)) => assert!(refused > 0 && world.get(0, b"a").is_some()),
        Err(error) => assert!(matches!(error, Error::DiskFull) && world.get(0, b"a").is_none(), "{error:?}"),
    }
    assert_eq!(world.get(0, b"b"), None);
    world.folder.set_capacity(None);
    world.engine.pager().background_step().expect("space is found again");
    world.settle();
    world.check();
}

/// Takes all free pages, with values that need fewer and fewer of them.
fn fill_to_the_last_page(world: &World) {
    let mut at = 1u32 << 20;
    for len in [60_000, 10_000, 5_000] {
        loop {
            at += 1;
            match world.engine.keyspace().set(0, &at.to_be_bytes(), &bytes(len, 1), Expire::None) {
                Ok(_) => world.flush(),
                Err(Error::DiskFull) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Without reserved pages, restoring the long values would find their leaf filled by the short keys between them.
#[test]
fn a_rollback_that_must_split_a_leaf_finds_a_page_on_a_full_disk() {
    let world = World::new(4);
    let long = |at: u32| format!("l{at:03}").into_bytes();
    let between = |at: u32| format!("l{at:03}+").into_bytes();
    let count = 40;
    for at in 0..count {
        world.set(0, &long(at), &bytes(1_000, u64::from(at)));
    }
    world.folder.set_capacity(Some(world.folder.used_bytes() + (16 << 20)));
    fill_to_the_last_page(&world);
    let names: Vec<Vec<u8>> = (0..count).flat_map(|at| [long(at), between(at)]).collect();
    let keys: Vec<(u8, &[u8])> = names.iter().map(|name| (0, name.as_slice())).collect();
    let done = world.engine.keyspace().write::<(), Error>(KeySet::Keys(&keys), true, |key_txn| {
        for at in 0..count {
            key_txn.put_string(0, &long(at), b"short", Expire::None)?;
        }
        for at in 0..count {
            key_txn.put_string(0, &between(at), &bytes(1_000, 7), Expire::None)?;
        }
        Err(Error::Invalid("rolled back".into()))
    });
    assert!(matches!(done, Err(Error::Invalid(_) | Error::DiskFull)), "{done:?}");
    for at in 0..count {
        assert_eq!(world.get(0, &long(at)), Some(bytes(1_000, u64::from(at))));
        assert_eq!(world.get(0, &between(at)), None);
    }
    world.folder.set_capacity(None);
    world.engine.pager().background_step().expect("space is found again");
    world.settle();
    world.check();
}

/// Each try of the page cleaner to find space makes a checkpoint, and each of those used to log a cut of the counts: a disk that was full for minutes used up
/// the WAL.
#[test]
fn retrying_for_space_does_not_use_up_the_wal() {
    let world = World::new(5);
    world.set(0, b"a", b"1");
    world.flush();
    let folder = world.folder.crash();
    folder.set_capacity(Some(folder.used_bytes()));
    let world = World::on(folder, world.clock.clone()).expect("it starts");
    let pager = world.engine.pager();
    for _ in 0..3 {
        let _ = pager.checkpoint_all();
    }
    let head = pager.wal_head();
    for _ in 0..100 {
        let _ = pager.checkpoint_all();
    }
    assert_eq!(pager.wal_head(), head);
    assert_eq!(world.count(0), 1);
}

#[test]
fn a_damaged_value_fails_its_own_request_only() {
    let mut world = World::new(3);
    for at in 0..200u32 {
        world
            .engine
            .keyspace()
            .set(0, &at.to_be_bytes(), &bytes(9_000, u64::from(at)), Expire::At(START_MS + 10))
            .unwrap();
    }
    world = world.reopen();
    // Units of values are found by their bytes; one bit of one of them is flipped on disk.
    let wanted = bytes(9_000, 77);
    let mut data = vec![0; 4096];
    let file = os::Folder::open(world.folder.as_ref(), pager::DATA_FILE, os::Open::Existing).unwrap();
    let offset = (0..file.len() / 4096).map(|page| page * 4096).find(|offset| {
        file.read(*offset, &mut data).unwrap();
        data[..64] == wanted[..64]
    });
    world.folder.flip_bit(pager::DATA_FILE, offset.expect("the value is on disk") + 100, 3);
    let keyspace = world.engine.keyspace();
    for at in 0..200u32 {
        let got = keyspace.get(0, &at.to_be_bytes(), &mut Vec::new(), |_, _| {});
        match got {
            Ok(got) => assert!(got.found == Found::Value && at != 77),
            Err(Error::Corrupt { what }) => assert!(at == 77 && what.contains("page"), "{what}"),
            Err(error) => panic!("{error}"),
        }
    }
    let problems = world.engine.check().unwrap().problems;
    assert!(problems.len() == 1 && problems[0].contains("checksum"), "{problems:?}");
    // The key itself can be deleted: its record is intact.
    world.clock.set_ms(START_MS + 100);
    world.settle();
    assert_eq!(world.count(0), 0);
    world.check();
}
