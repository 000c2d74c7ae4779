//! Renames interrupted between any two of their records, by a crash or a full disk: the value has one name, and its pages have an owner.

use engine::{Error, Expire, KeySet, KeyTransaction};

use crate::support::{self, START_MS, World, bytes};

const NAMES: [(u8, &[u8]); 3] = [(0, b"a"), (0, b"m"), (2, b"z")];

/// Runs a key transaction as `support::cut_anywhere` does.
fn cut_anywhere(before: impl Fn(&World), key_txn: impl Fn(&mut KeyTransaction<'_>) -> Result<(), Error>) {
    let change = |world: &World| drop(world.engine.keyspace().write(KeySet::Keys(&NAMES), true, &key_txn));
    support::cut_anywhere(1, before, change, |world| NAMES.map(|(db, key)| world.get(db, key)));
}

/// If the WAL ended in the middle of the rename, recovery used to find no record for the new value, and its pages were never freed.
#[test]
fn a_new_value_that_is_renamed_keeps_an_owner_wherever_the_wal_ends() {
    for len in [10, 3_394, 300_000] {
        for [one, two, three] in [[0, 1, 2], [2, 1, 0]] {
            for roll_back in [false, true] {
                let (one, two, three) = (NAMES[one], NAMES[two], NAMES[three]);
                let end = || if roll_back { Err(Error::Invalid("rolled back".into())) } else { Ok(()) };
                let put = |key_txn: &mut KeyTransaction<'_>| {
                    key_txn.put_string(one.0, one.1, &bytes(len, 1), Expire::At(START_MS + 5))
                };
                cut_anywhere(
                    |_| {},
                    |key_txn| {
                        put(key_txn)?;
                        assert!(key_txn.rename(one, two)? && key_txn.rename(two, three)?);
                        end()
                    },
                );
                // The same over a value that is replaced, under a name that is used again.
                cut_anywhere(
                    |world| {
                        world.set(two.0, two.1, &bytes(5_000, 2));
                    },
                    |key_txn| {
                        put(key_txn)?;
                        assert!(key_txn.rename(one, two)?);
                        key_txn.patch_string(two.0, two.1, 1, b"x")?;
                        put(key_txn)?;
                        assert!(key_txn.rename(two, three)? && key_txn.delete(three.0, three.1)?);
                        end()
                    },
                );
            }
        }
    }
}

#[test]
fn an_old_value_that_is_renamed_keeps_an_owner_wherever_the_wal_ends() {
    for len in [10, 3_394, 300_000] {
        for roll_back in [false, true] {
            cut_anywhere(
                |world| {
                    world.set(0, b"m", &bytes(len, 1));
                    world.set(2, b"z", &bytes(len, 2));
                },
                |key_txn| {
                    assert!(key_txn.rename((0, b"m"), (2, b"z"))? && key_txn.rename((2, b"z"), (0, b"a"))?);
                    key_txn.patch_string(0, b"a", len as u64, b"more")?;
                    if roll_back { Err(Error::Invalid("rolled back".into())) } else { Ok(()) }
                },
            );
        }
    }
}

/// Leaves so few pages free that a key transaction of a few renames exhausts those reserved for its rollback.
fn almost_full() -> World {
    let world = World::new(2);
    for at in 0..12u32 {
        world.set(0, &[b'a', at as u8], &bytes(10, u64::from(at)));
        world.set(0, &[b'b', at as u8], &bytes(1_000, u64::from(at)));
    }
    world.folder.set_capacity(Some(world.folder.used_bytes() + (16 << 20)));
    for (part, len) in [60_000, 10_000, 5_000].into_iter().enumerate() {
        for at in 0u32.. {
            let key = [&[b'f', part as u8], &at.to_be_bytes()[..]].concat();
            match world.engine.keyspace().set(0, &key, &bytes(len, 1), Expire::None) {
                Ok(_) => world.flush(),
                Err(Error::DiskFull) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    for at in 0u32..2 {
        world.one(0, &[&[b'f', 0], &at.to_be_bytes()[..]].concat(), |key_txn| {
            key_txn.delete(0, &[&[b'f', 0], &at.to_be_bytes()[..]].concat())
        });
    }
    world
}

/// A key transaction that continued after a refused rename used to commit without the old name and without the new one.
#[test]
fn a_rename_that_a_full_disk_stops_half_way_is_rolled_back() {
    let mut taken_back = 0;
    for first in 0..4 {
        let world = almost_full();
        let names: Vec<[u8; 2]> = (0..12).flat_map(|at| [[b'a', at], [b'b', at]]).collect();
        let keys: Vec<(u8, &[u8])> = names.iter().map(|name| (0, name.as_slice())).collect();
        let done = world.engine.keyspace().write::<_, Error>(KeySet::Keys(&keys), true, |key_txn| {
            for at in 0..first {
                key_txn.delete(0, &[b'b', at])?;
            }
            let renames = (first..12).map(|at| key_txn.rename((0, &[b'a', at]), (0, &[b'b', at])));
            Ok(renames.filter(Result::is_err).count())
        });
        for at in 0..12 {
            let (a, b) = (world.get(0, &[b'a', at]), world.get(0, &[b'b', at]));
            let (small, big) = (Some(bytes(10, u64::from(at))), Some(bytes(1_000, u64::from(at))));
            let is_renamed = done.is_ok() && a.is_none() && b == small;
            let is_deleted = done.is_ok() && at < first && a == small && b.is_none();
            assert!(is_renamed || is_deleted || (a == small && b == big), "{first} {at} {done:?}");
        }
        match done {
            Ok((refused, _)) => assert!(refused > 0, "{first}: the disk was not full"),
            Err(error) => {
                assert!(matches!(error, Error::DiskFull), "{error}");
                taken_back += 1;
            }
        }
        world.folder.set_capacity(None);
        world.engine.pager().background_step().expect("room is found again");
        world.settle();
        world.check();
    }
    assert!(taken_back > 0, "no rename was stopped between its records");
}
