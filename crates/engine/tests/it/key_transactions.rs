//! Key transactions: atomicity, rollback, scans, watching, flushing.

use engine::{Error, Expire, Found, KeySet};

use crate::support::{START_MS, World, bytes};

#[test]
fn a_key_transaction_is_all_or_nothing() {
    let world = World::new(1);
    let keys: [(u8, &[u8]); 3] = [(0, b"a"), (0, b"b"), (5, b"a")];
    world.set(0, b"a", &bytes(10_000, 1));
    world.write(&keys, |key_txn| {
        key_txn.put_string(0, b"a", &bytes(20_000, 2), Expire::None)?;
        key_txn.put_string(0, b"b", b"small", Expire::None)?;
        key_txn.put_string(5, b"a", &bytes(400_000, 3), Expire::At(START_MS + 50))
    });
    assert_eq!(world.get(0, b"a"), Some(bytes(20_000, 2)));
    assert_eq!(world.get(5, b"a"), Some(bytes(400_000, 3)));
    world.check();
    let failed = world.engine.keyspace().write::<(), Error>(KeySet::Keys(&keys), true, |key_txn| {
        key_txn.put_string(0, b"a", b"never", Expire::At(START_MS + 1))?;
        key_txn.put_string(0, b"a", &bytes(30_000, 4), Expire::None)?;
        assert!(key_txn.delete(0, b"b")?);
        assert!(key_txn.delete(5, b"a")?);
        key_txn.put_string(0, b"b", &bytes(300_000, 5), Expire::None)?;
        assert!(key_txn.rename((0, b"a"), (5, b"a"))?);
        assert_eq!((key_txn.count(0)?, key_txn.count(5)?), (1, 1));
        Err(Error::Invalid("changed my mind".into()))
    });
    assert!(matches!(failed, Err(Error::Invalid(_))));
    assert_eq!(world.get(0, b"a"), Some(bytes(20_000, 2)));
    assert_eq!(world.get(0, b"b").as_deref(), Some(&b"small"[..]));
    assert_eq!(world.get(5, b"a"), Some(bytes(400_000, 3)));
    assert_eq!(world.ttl(5, b"a"), Some(Some(START_MS + 50)));
    assert_eq!((world.count(0), world.count(5)), (2, 1));
    world.settle();
    world.check();
}

#[test]
fn a_panic_in_a_key_transaction_rolls_it_back() {
    let world = World::new(2);
    world.set(0, b"a", b"old");
    let keyspace = world.engine.keyspace();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        keyspace.write::<(), Error>(KeySet::Keys(&[(0, b"a")]), true, |key_txn| {
            key_txn.put_string(0, b"a", b"new", Expire::None)?;
            panic!("a bug of the door");
        })
    }));
    assert!(caught.is_err());
    assert_eq!(world.get(0, b"a").as_deref(), Some(&b"old"[..]));
    world.check();
}

#[test]
fn the_rules_of_the_api_are_checked() {
    let world = World::new(3);
    let keyspace = world.engine.keyspace();
    let misuse = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Misuse(_))), "{result:?}");
    let foreign = |key_txn: &mut engine::KeyTransaction<'_>| -> Result<(), Error> {
        for other in 0..10_000u32 {
            key_txn.put_string(0, &other.to_le_bytes(), b"", Expire::None)?;
        }
        Ok(())
    };
    misuse(keyspace.write(KeySet::Keys(&[(0, b"a")]), true, foreign).map(drop));
    misuse(
        keyspace.read(KeySet::Keys(&[(0, b"a")]), |key_txn| key_txn.put_string(0, b"a", b"", Expire::None)).map(drop),
    );
    misuse(keyspace.read(KeySet::Keys(&[(16, b"a")]), |key_txn| key_txn.peek(16, b"a").map(drop)).map(drop));
    misuse(keyspace.write(KeySet::Keys(&[(0, b"a")]), false, |key_txn| key_txn.flush(0)).map(drop));
    let twice = keyspace.write::<(), Error>(KeySet::Keys(&[(0, b"a"), (0, b"b")]), false, |key_txn| {
        key_txn.put_string(0, b"a", b"", Expire::None)?;
        key_txn.put_string(0, b"b", b"", Expire::None)
    });
    misuse(twice.map(drop));
    assert_eq!((world.get(0, b"b"), world.scan(0, 10)), (None, vec![b"a".to_vec()]));
    let limit = keyspace.set(0, b"a", &vec![0; (512 << 20) + 1], Expire::None);
    assert!(matches!(limit, Err(Error::TooLarge { .. })));
    world.check();
}

#[test]
fn rename_and_copy_keep_value_and_time() {
    let world = World::new(4);
    for size in [10, 9_000, 700_000] {
        let value = bytes(size, 1);
        world.engine.keyspace().set(0, b"from", &value, Expire::At(START_MS + 77)).unwrap();
        world.set(0, b"to", &bytes(5_000, 2));
        let keys: [(u8, &[u8]); 3] = [(0, b"from"), (0, b"to"), (3, b"from")];
        assert!(world.write(&keys, |key_txn| key_txn.rename((0, b"from"), (0, b"to"))));
        assert_eq!((world.get(0, b"from"), world.get(0, b"to")), (None, Some(value.clone())));
        assert_eq!(world.ttl(0, b"to"), Some(Some(START_MS + 77)));
        assert!(world.write(&keys, |key_txn| key_txn.copy((0, b"to"), (3, b"from"))));
        assert_eq!((world.get(3, b"from"), world.get(0, b"to")), (Some(value.clone()), Some(value.clone())));
        assert_eq!(world.ttl(3, b"from"), Some(Some(START_MS + 77)));
        assert!(!world.write(&keys, |key_txn| key_txn.rename((0, b"from"), (0, b"to"))));
        assert!(world.write(&keys, |key_txn| key_txn.rename((3, b"from"), (0, b"to"))), "MOVE is a rename");
        assert_eq!((world.count(0), world.count(3)), (1, 0));
        assert!(world.write(&keys, |key_txn| key_txn.rename((0, b"to"), (0, b"to"))), "onto itself");
        assert_eq!(world.get(0, b"to"), Some(value));
        world.settle();
        world.check();
    }
}

#[test]
fn scan_returns_every_key_whatever_the_count() {
    let world = World::new(5);
    let mut keys: Vec<Vec<u8>> = (0..1000).map(|at| format!("key:{at}").into_bytes()).collect();
    for key in &keys {
        world.set(1, key, b"v");
    }
    keys.sort();
    for count in [1, 7, 100, 5000] {
        assert_eq!(world.scan(1, count), keys);
    }
    assert!(world.scan(0, 10).is_empty());
    let with_prefix = |prefix: &[u8]| {
        let read = world.engine.keyspace().read::<_, Error>(KeySet::Keys(&[]), |key_txn| {
            let mut found = Vec::new();
            key_txn.keys(1, prefix, |key, _| found.push(key.to_vec()))?;
            Ok(found)
        });
        read.unwrap().0
    };
    assert_eq!(with_prefix(b""), keys);
    assert_eq!(with_prefix(b"key:99").len(), 11);
    assert!(with_prefix(b"nothing").is_empty());
    let in_unit = world.all(|key_txn| {
        let mut found = 0;
        key_txn.keys(1, b"key:1", |_, _| found += 1)?;
        Ok(found)
    });
    assert_eq!(in_unit, 111);
}

#[test]
fn an_unknown_cursor_starts_again_rather_than_ends() {
    let world = World::new(6);
    world.set(0, b"only", b"v");
    let read = world.engine.keyspace().read::<_, Error>(KeySet::Keys(&[]), |key_txn| {
        let mut found = Vec::new();
        key_txn.scan(0, 123_456, 10, |key, _| found.push(key.to_vec()))?;
        Ok(found)
    });
    assert_eq!(read.unwrap().0, [b"only".to_vec()]);
}

#[test]
fn random_key_finds_existing_and_not_expired_keys() {
    let world = World::new(7);
    let random = |world: &World| {
        world.engine.keyspace().read::<_, Error>(KeySet::Keys(&[]), |key_txn| key_txn.random_key(2)).unwrap().0
    };
    assert_eq!(random(&world), None);
    for at in 0..200u32 {
        world.engine.keyspace().set(2, &at.to_le_bytes(), b"v", Expire::At(START_MS + 10)).unwrap();
    }
    let drawn: std::collections::HashSet<_> = (0..300).filter_map(|_| random(&world)).collect();
    assert!(drawn.len() > 50, "{}", drawn.len());
    world.set(2, b"stays", b"v");
    world.clock.set_ms(START_MS + 20);
    assert_eq!(random(&world).as_deref(), Some(&b"stays"[..]));
    world.one(2, b"stays", |key_txn| key_txn.delete(2, b"stays"));
    assert_eq!(random(&world), None);
}

#[test]
fn flush_and_swap_are_one_record_and_leave_nothing_behind() {
    let mut world = World::new(8);
    for at in 0..300u32 {
        world.engine.keyspace().set(0, &at.to_le_bytes(), &bytes(2000, 1), Expire::At(START_MS + 10_000)).unwrap();
    }
    world.set(0, b"big", &bytes(600_000, 1));
    world.set(1, b"one", b"1");
    let before = world.engine.pager().wal_head();
    world.engine.keyspace().write::<_, Error>(KeySet::All, false, |key_txn| key_txn.flush(0)).unwrap();
    assert!(world.engine.pager().wal_head() - before < 1000);
    assert_eq!((world.count(0), world.scan(0, 10).len(), world.count(1)), (0, 0, 1));
    world.set(0, b"new", b"n");
    world.all(|key_txn| key_txn.swap(0, 1));
    assert_eq!((world.get(0, b"one").as_deref(), world.get(1, b"new").as_deref()), (Some(&b"1"[..]), Some(&b"n"[..])));
    world.check();
    world = world.crash();
    world.settle();
    world.check();
    let report = world.engine.check().unwrap();
    assert_eq!((report.value_pages, report.elements, report.expiry_entries), (0, 0, 0), "{report:?}");
}

#[test]
fn a_flush_within_a_key_transaction_can_be_rolled_back() {
    let world = World::new(9);
    world.set(0, b"a", b"1");
    world.set(4, b"b", b"2");
    let failed = world.engine.keyspace().write::<(), Error>(KeySet::All, true, |key_txn| {
        key_txn.put_string(0, b"c", b"3", Expire::None)?;
        key_txn.flush_all()?;
        assert_eq!((key_txn.count(0)?, key_txn.count(4)?), (0, 0));
        key_txn.put_string(0, b"d", b"4", Expire::None)?;
        assert_eq!((key_txn.count(0)?, key_txn.peek(0, b"a")?.is_none()), (1, true));
        key_txn.swap(0, 4)?;
        Err(Error::Invalid("no".into()))
    });
    assert!(failed.is_err());
    assert_eq!((world.scan(0, 10), world.scan(4, 10)), (vec![b"a".to_vec()], vec![b"b".to_vec()]));
    world.settle();
    world.check();
    world.all(|key_txn| {
        key_txn.flush_all()?;
        key_txn.put_string(0, b"d", b"4", Expire::None)
    });
    assert_eq!((world.scan(0, 10), world.scan(4, 10).len()), (vec![b"d".to_vec()], 0));
    world.settle();
    world.check();
}

#[test]
fn watchers_hear_of_changes_and_only_of_changes() {
    let world = World::new(10);
    let keyspace = world.engine.keyspace();
    let mut set = keyspace.watch_set();
    let now = || START_MS;
    set.add(0, b"a").unwrap();
    set.add(0, b"a").unwrap();
    assert_eq!(set.keys().count(), 1);
    world.set(0, b"b", b"x");
    assert!(!set.dirty(now()));
    world.one(0, b"a", |key_txn| key_txn.delete(0, b"a"));
    assert!(!set.dirty(now()), "there was nothing to delete");
    world.set(0, b"a", b"x");
    assert!(set.dirty(now()));
    set.clear();
    assert!(!set.dirty(now()));
    world.set(0, b"a", b"y");
    assert!(!set.dirty(now()));
    for change in 0..6 {
        world.set(0, b"a", b"x");
        set.clear();
        set.add(0, b"a").unwrap();
        match change {
            0 => world.all(|key_txn| key_txn.flush(0)),
            1 => world.write(&[(0, b"a"), (0, b"z")], |key_txn| key_txn.rename((0, b"a"), (0, b"z")).map(drop)),
            2 => world.one(0, b"a", |key_txn| key_txn.patch_string(0, b"a", 0, b"y").map(drop)),
            3 => world.one(0, b"a", |key_txn| key_txn.set_expire(0, b"a", Some(START_MS + 1)).map(drop)),
            4 => world.all(|key_txn| key_txn.swap(0, 9)),
            _ => world.one(0, b"a", |key_txn| key_txn.touch(0, b"a")),
        }
        assert!(set.dirty(now()), "{change}");
    }
    set.clear();
    set.add(7, b"absent").unwrap();
    world.all(|key_txn| key_txn.flush_all());
    world.all(|key_txn| key_txn.swap(7, 8));
    assert!(!set.dirty(now()), "absent before, absent after");
}

#[test]
fn a_watched_key_that_expires_is_dirty_and_one_expired_before_is_not() {
    let world = World::new(11);
    let keyspace = world.engine.keyspace();
    keyspace.set(0, b"a", b"x", Expire::At(START_MS + 10)).unwrap();
    let mut early = keyspace.watch_set();
    early.add(0, b"a").unwrap();
    assert!(!early.dirty(START_MS + 10) && early.dirty(START_MS + 11));
    world.clock.set_ms(START_MS + 20);
    let mut late = keyspace.watch_set();
    late.add(0, b"a").unwrap();
    world.settle();
    assert_eq!(world.count(0), 0);
    assert!(early.dirty(START_MS + 20) && !late.dirty(START_MS + 20));
    world.set(0, b"a", b"new");
    assert!(late.dirty(START_MS + 20));
}

#[test]
fn durability_lsns_cover_what_was_read() {
    let world = World::new(12);
    let keyspace = world.engine.keyspace();
    let lsn_of = |key: &[u8]| keyspace.get(0, key, &mut Vec::new(), |_, _| {}).unwrap().durability_lsn;
    let set = world.set(0, b"a", b"1");
    assert_eq!(lsn_of(b"a"), set);
    world.flush();
    assert!(world.engine.durable().get() >= set);
    let (_, deleted) =
        keyspace.write::<_, Error>(KeySet::Keys(&[(0, b"a")]), false, |key_txn| key_txn.delete(0, b"a")).unwrap();
    assert!(deleted > set);
    assert_eq!(lsn_of(b"a"), deleted, "absence has a durability LSN like a value");
    let (_, commit) = keyspace
        .write::<_, Error>(KeySet::Keys(&[(0, b"a"), (0, b"b")]), true, |key_txn| {
            key_txn.put_string(0, b"a", b"2", Expire::None)?;
            key_txn.put_string(0, b"b", b"2", Expire::None)
        })
        .unwrap();
    assert_eq!((lsn_of(b"a"), lsn_of(b"b")), (commit, commit), "the COMMIT, not the record");
    let (_, read) =
        keyspace.read::<_, Error>(KeySet::Keys(&[(0, b"a"), (0, b"b")]), |key_txn| key_txn.get(0, b"b")).unwrap();
    assert_eq!(read, commit);
    world.flush();
    let world = world.crash();
    assert_eq!(world.get(0, b"b").as_deref(), Some(&b"2"[..]));
    let after = world.engine.keyspace().get(0, b"b", &mut Vec::new(), |_, _| {}).unwrap().durability_lsn;
    assert!(after <= world.engine.durable().get(), "what recovery found is durable");
}

#[test]
fn changes_of_one_account_at_the_same_time_are_all_there() {
    let world = World::new(21);
    let accounts = world.engine.accounts();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            scope.spawn(move || {
                for step in 0..20 {
                    let digest = engine::sha256(&[thread, step]);
                    let changed = accounts.change("ann", |old| {
                        let mut account = old.cloned().unwrap_or_else(|| engine::Account::new("ann"));
                        account.passwords.push(digest);
                        Ok::<_, ()>(account)
                    });
                    assert!(changed.is_ok_and(|changed| changed.is_ok()));
                }
            });
        }
    });
    assert_eq!(accounts.get("ann").map(|account| account.passwords.len()), Some(80));
    let before = accounts.generation();
    assert_eq!(accounts.change("ann", |_| Err("no")).ok(), Some(Err("no")));
    assert_eq!(accounts.generation(), before, "an error changes nothing");
}

#[test]
fn accounts_and_settings_outlive_a_crash() {
    let mut world = World::new(13);
    let accounts = world.engine.accounts();
    assert!(accounts.authenticate("default", b"anything").is_some());
    let before = accounts.generation();
    let passwords = (0..100u32).map(|at| engine::sha256(&at.to_le_bytes())).collect();
    let account = engine::Account { enabled: true, passwords, rules: "~* +@all".into(), ..engine::Account::new("ann") };
    accounts.put(account.clone()).unwrap();
    assert!(accounts.generation() > before);
    accounts.put(engine::Account { passwords: account.passwords[..1].to_vec(), ..account }).unwrap();
    world.engine.settings().set("maxclients", "77").unwrap();
    world.flush();
    world = world.crash();
    let accounts = world.engine.accounts();
    assert!(accounts.authenticate("ann", &0u32.to_le_bytes()).is_some());
    assert!(accounts.authenticate("ann", &1u32.to_le_bytes()).is_none(), "replaced");
    assert!(accounts.authenticate("bob", b"").is_none());
    assert_eq!(world.engine.settings().list().unwrap(), [("maxclients".to_string(), "77".to_string())]);
    assert_eq!(accounts.remove(&["ann", "bob"]).unwrap().0, 1);
    assert!(accounts.remove(&["default"]).is_err());
    world.engine.settings().remove("maxclients").unwrap();
    world.flush();
    world = world.crash();
    assert_eq!(world.engine.accounts().list().len(), 1);
    assert_eq!(world.engine.settings().get("maxclients").unwrap(), None);
    world.check();
}

/// Seed 3240 of `sim random`: the key is old, but its place in this database is new.
#[test]
fn what_a_swapped_database_shows_waits_for_the_swap() {
    let world = World::new(31);
    world.set(1, b"k", b"old");
    world.flush();
    let ((), swapped) = world
        .engine
        .keyspace()
        .write::<(), Error>(KeySet::All, true, |key_txn| key_txn.swap(0, 1))
        .expect("a swap works");
    assert!(swapped > world.engine.durable().get());
    let got = world.engine.keyspace().get(0, b"k", &mut Vec::new(), |_, _| {}).unwrap();
    assert_eq!((got.found, got.durability_lsn), (Found::Value, swapped));
    let peeked = world.engine.keyspace().read::<_, Error>(KeySet::Keys(&[(0, b"k")]), |key_txn| key_txn.peek(0, b"k"));
    assert_eq!(peeked.unwrap().1, swapped);
}

/// Seed 2141 of `sim random`: the expiry entry outlives the transaction that it was made for.
#[test]
fn a_keyspace_number_of_an_interrupted_transaction_is_not_reused() {
    let world = World::new(32);
    world.set(0, b"k", b"v");
    let mut cut = None;
    let key_txn = world.engine.keyspace().write::<(), Error>(KeySet::All, true, |key_txn| {
        key_txn.flush(0)?;
        key_txn.put_string(0, b"k", b"v", Expire::At(START_MS + 1000))?;
        world.flush();
        cut = Some(world.folder.crash());
        Err(Error::Invalid("the power is gone".into()))
    });
    assert!(key_txn.is_err());
    let world = World::on(cut.expect("the transaction ran"), world.clock.clone()).expect("it recovers");
    assert_eq!(world.engine.opened().undone, 1);
    world.check();
    world.all(|key_txn| key_txn.flush(0));
    world.check();
}
