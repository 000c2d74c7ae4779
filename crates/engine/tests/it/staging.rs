//! Staged databases: what an import writes is seen whole or not at all, and leaves nothing behind.

use engine::{End, Error, Expire, KeySet, Kind, PackLimits, Replace, Staging};

use crate::support::{START_MS, World, bytes, cut_anywhere};

const NAMES: [(u8, &[u8]); 4] = [(0, b"text"), (0, b"long"), (3, b"text"), (0, b"old")];

/// Writes a short string, a long one, a hash of elements and a list.
fn fill(staging: &Staging<'_>) -> Result<(), Error> {
    let put = |db: u8, key: &'static [u8], value: &[u8], expire| {
        staging.write(KeySet::Keys(&[(db, key)]), false, |txn| txn.put_string(db, key, value, expire))
    };
    put(0, b"text", b"new", Expire::At(START_MS + 1_000_000))?;
    put(0, b"long", &bytes(300_000, 1), Expire::None)?;
    put(3, b"text", b"of three", Expire::None)?;
    let mut build = staging.build(b"hash", Kind::Hash, PackLimits { entries: 128, value: 64 });
    for at in 0..200u32 {
        build.put(&at.to_be_bytes(), &[b'x'; 20])?;
    }
    staging.write(KeySet::Keys(&[(0, b"hash")]), false, |txn| {
        txn.put_built_until(0, b"hash", build, Expire::None).map(drop)
    })?;
    for _ in 0..3 {
        let items: Vec<Vec<u8>> = (0..40).map(|at| bytes(30, at)).collect();
        let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        staging.write(KeySet::Keys(&[(0, b"list")]), true, |txn| {
            txn.push_items(0, b"list", End::Tail, &items).map(drop)
        })?;
    }
    assert_eq!(staging.key_count(0)?, 4);
    Ok(())
}

fn import(world: &World, replace: Replace) -> Result<(), Error> {
    let staging = world.engine.keyspace().stage()?;
    fill(&staging)?;
    staging.publish(&[0, 3], replace).map(drop)
}

#[test]
fn an_import_is_seen_whole_or_not_at_all_wherever_the_wal_ends() {
    let all = |world: &World| (NAMES.map(|(db, key)| world.get(db, key)), [0, 1, 3].map(|db| world.count(db)));
    let before = |world: &World| {
        world.set(0, b"old", b"value");
        world.set(1, b"untouched", b"value");
    };
    let change = |world: &World| {
        import(world, Replace::All).unwrap();
        let new = all(world);
        assert_eq!((new.0[0].as_deref(), new.0[3].as_deref(), new.1), (Some(&b"new"[..]), None, [4, 1, 1]));
    };
    cut_anywhere(3, before, change, all);
}

#[test]
fn an_import_that_is_given_up_leaves_nothing_behind() {
    let world = World::new(1);
    world.set(0, b"old", b"value");
    world.settle();
    let before = world.engine.check().unwrap();
    {
        let staging = world.engine.keyspace().stage().unwrap();
        fill(&staging).unwrap();
        world.settle();
        assert_eq!(staging.key_count(0).unwrap(), 4, "purge leaves staged keys alone");
        assert_eq!(world.get(0, b"text"), None);
        assert!(world.engine.keyspace().stage().is_err(), "one at a time");
    }
    world.settle();
    let after = world.engine.check().unwrap();
    assert_eq!((after.keys, after.elements, after.problems), (before.keys, before.elements, before.problems));
    assert_eq!((after.expiry_entries, after.queued), (before.expiry_entries, before.queued));
    import(&world, Replace::All).unwrap();
    assert_eq!(world.get(0, b"text").as_deref(), Some(&b"new"[..]));
    world.settle();
    world.check();
}

#[test]
fn an_import_into_databases_with_keys_changes_nothing() {
    let world = World::new(1);
    world.set(3, b"old", b"value");
    assert!(matches!(import(&world, Replace::Empty), Err(Error::Invalid(text)) if text == "database 3 has keys"));
    assert_eq!((world.count(0), world.count(3)), (0, 1));
    world.one(3, b"old", |txn| txn.delete(3, b"old"));
    import(&world, Replace::Empty).unwrap();
    assert_eq!((world.count(0), world.count(3)), (4, 1));
    world.settle();
    world.check();
}

/// If it expired, what is appended behind would be a list of its own, without a time.
#[test]
fn a_key_whose_time_is_over_does_not_expire_before_its_import_ends() {
    let world = World::new(1);
    let staging = world.engine.keyspace().stage().unwrap();
    let push = |item: &[u8], at_ms| {
        let write = staging.write::<_, Error>(KeySet::Keys(&[(0, b"list")]), true, |txn| {
            let count = txn.push_items(0, b"list", End::Tail, &[item])?;
            txn.set_expire(0, b"list", at_ms)?;
            Ok(count)
        });
        world.settle();
        write.unwrap()
    };
    assert_eq!(push(b"a", Some(1)), 1);
    assert_eq!(push(b"b", Some(1)), 2);
    staging.publish(&[0], Replace::Empty).unwrap();
    assert!(!world.one(0, b"list", |txn| txn.exists(0, b"list")));
    world.settle();
    assert_eq!(world.count(0), 0);
    world.check();
}
