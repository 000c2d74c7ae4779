//! Commands on one key: sizes, patches, expiry, names.

use engine::{Error, Expire, Form, KeySet};

use crate::support::{START_MS, World, bytes};

/// Sizes around every boundary of the format.
const SIZES: [usize; 17] = [
    0,
    1,
    44,
    1200,
    1201,
    4096,
    4096 + 512,
    4096 + 513,
    16384,
    65536 + 100,
    262_144 - 1,
    262_144,
    262_145,
    300_000,
    524_288,
    600_001,
    1_000_000,
];

#[test]
fn values_of_every_size_come_back_also_after_reopening() {
    let mut world = World::new(1);
    for round in 0..2 {
        for (at, size) in SIZES.iter().enumerate() {
            let key = format!("key{at}");
            world.set(0, key.as_bytes(), &bytes(*size, at as u64 + round));
        }
        for (at, size) in SIZES.iter().enumerate() {
            assert_eq!(world.get(0, format!("key{at}").as_bytes()), Some(bytes(*size, at as u64 + round)), "{size}");
        }
        assert_eq!(world.count(0), SIZES.len() as u64);
        world.settle();
        world.check();
        world = world.reopen();
        assert_eq!(world.get(0, b"key12").unwrap(), bytes(SIZES[12], 12 + round));
        world.check();
    }
    for at in 0..SIZES.len() {
        let key = format!("key{at}");
        assert!(world.one(0, key.as_bytes(), |key_txn| key_txn.delete(0, key.as_bytes())));
        assert_eq!(world.get(0, key.as_bytes()), None);
    }
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.keys, report.value_pages, report.elements, report.queued), (0, 0, 0, 0), "{report:?}");
    world.check();
}

#[test]
fn sizes_may_change_from_any_to_any() {
    let world = World::new(2);
    for (from, _) in SIZES.iter().enumerate() {
        for (to, _) in SIZES.iter().enumerate().step_by(3) {
            world.set(3, b"k", &bytes(SIZES[from], 1));
            world.set(3, b"k", &bytes(SIZES[to], 2));
            assert_eq!(world.get(3, b"k"), Some(bytes(SIZES[to], 2)));
        }
    }
    world.settle();
    world.check();
}

#[test]
fn ranges_are_cut_to_the_value() {
    let world = World::new(3);
    for size in [100, 5000, 9000, 400_000] {
        let value = bytes(size, 9);
        world.set(0, b"k", &value);
        for (from, to) in
            [(0, size), (size / 2, size), (1, 2), (size - 1, size + 100), (4095.min(size), 4097.min(size))]
        {
            let read = world.engine.keyspace().read::<_, Error>(KeySet::Keys(&[(0, b"k")]), |key_txn| {
                let entry = key_txn.get(0, b"k")?.expect("it is there");
                let mut out = b"x".to_vec();
                key_txn.value(&entry, from as u64..to as u64, &mut out)?;
                Ok(out)
            });
            let expected = &value[from.min(size)..to.min(size)];
            assert_eq!(&read.unwrap().0[1..], expected, "{size} {from}..{to}");
        }
    }
}

#[test]
fn patches_change_only_their_bytes() {
    let world = World::new(4);
    for start in [None, Some(0), Some(10), Some(1199), Some(5000), Some(70_000), Some(262_000), Some(700_000)] {
        for (at, len) in [(0, 3), (1000, 500), (4090, 20), (261_000, 4000), (699_999, 10), (1_500_000, 1)] {
            let mut model = match start {
                Some(size) => bytes(size, 5),
                None => Vec::new(),
            };
            world.one(0, b"k", |key_txn| key_txn.delete(0, b"k"));
            if start.is_some() {
                world.set(0, b"k", &model);
            }
            let with = bytes(len, 6);
            let new_len = world.one(0, b"k", |key_txn| key_txn.patch_string(0, b"k", at as u64, &with));
            model.resize(model.len().max(at + len), 0);
            model[at..at + len].copy_from_slice(&with);
            assert_eq!(new_len, model.len() as u64);
            assert!(world.get(0, b"k").as_deref() == Some(&model[..]), "{start:?} {at}+{len}");
        }
    }
    world.settle();
    world.check();
}

#[test]
fn many_small_patches_and_appends_add_up() {
    let world = World::new(5);
    let mut model = bytes(100_000, 1);
    world.set(0, b"k", &model);
    let mut prng = stdx::prng::Prng::new(11);
    for round in 0..400u64 {
        let at = if round % 3 == 0 { model.len() } else { prng.below(model.len() as u64) as usize };
        let with = bytes(1 + prng.below(300) as usize, round);
        world.one(0, b"k", |key_txn| key_txn.patch_string(0, b"k", at as u64, &with));
        model.resize(model.len().max(at + with.len()), 0);
        model[at..at + with.len()].copy_from_slice(&with);
    }
    assert!(world.get(0, b"k") == Some(model));
    world.check();
    let pages = world.engine.check().unwrap().value_pages;
    assert!(pages <= 40, "replaced pages are freed: {pages}");
}

#[test]
fn one_bit_of_a_big_value_costs_one_page_of_log_not_the_value() {
    let world = World::new(6);
    world.set(0, b"k", &bytes(2_000_000, 1));
    let before = world.engine.pager().wal_head();
    world.one(0, b"k", |key_txn| key_txn.patch_string(0, b"k", 1_234_567, b"!"));
    let written = world.engine.pager().wal_head() - before;
    assert!(written < 8192, "{written}");
    assert_eq!(world.get(0, b"k").unwrap()[1_234_567], b'!');
    world.check();
}

#[test]
fn long_keys_are_keys() {
    let mut world = World::new(7);
    let keys: Vec<Vec<u8>> = [512, 513, 1000, 5000, 300_000].iter().map(|len| bytes(*len, 3)).collect();
    for key in &keys {
        world.set(0, key, b"one");
        world.set(0, key, &bytes(20_000, 1));
        world.one(0, key, |key_txn| key_txn.patch_string(0, key, 20_000, b"tail"));
    }
    world = world.reopen();
    for key in &keys {
        let value = world.get(0, key).unwrap();
        assert_eq!((&value[..20_000], &value[20_000..]), (&bytes(20_000, 1)[..], &b"tail"[..]));
    }
    let mut sorted = keys.clone();
    sorted.sort();
    assert_eq!(world.scan(0, 2), sorted);
    let (short, long) = (b"short".as_slice(), keys[2].as_slice());
    assert!(world.write(&[(0, long), (0, short)], |key_txn| key_txn.rename((0, long), (0, short))));
    assert_eq!(world.get(0, short).unwrap().len(), 20_004);
    assert!(world.write(&[(0, long), (0, short)], |key_txn| key_txn.rename((0, short), (0, long))));
    assert_eq!(world.get(0, long).unwrap().len(), 20_004);
    for key in &keys {
        assert!(world.one(0, key, |key_txn| key_txn.delete(0, key)));
    }
    world.settle();
    world.check();
    assert_eq!(world.engine.check().unwrap().value_pages, 0);
}

#[test]
fn keys_expire_when_the_clock_passes_their_time() {
    let world = World::new(8);
    let keyspace = world.engine.keyspace();
    let at = START_MS + 1000;
    keyspace.set(0, b"k", b"v", Expire::At(at)).unwrap();
    assert_eq!(world.ttl(0, b"k"), Some(Some(at)));
    world.clock.set_ms(at);
    assert_eq!(world.get(0, b"k").as_deref(), Some(&b"v"[..]));
    world.clock.set_ms(at + 1);
    assert_eq!(world.get(0, b"k"), None);
    assert_eq!((world.ttl(0, b"k"), world.count(0)), (None, 1));
    world.settle();
    assert_eq!((world.count(0), world.engine.metrics().expired.get()), (0, 1));
    world.check();
    assert_eq!(world.engine.check().unwrap().expiry_entries, 0);
}

#[test]
fn a_new_time_replaces_the_old_one_in_record_and_index() {
    let mut world = World::new(9);
    let key: &[u8] = b"k";
    let entries = |world: &World| world.engine.check().unwrap().expiry_entries;
    world.engine.keyspace().set(0, key, b"v", Expire::At(START_MS + 500)).unwrap();
    assert!(world.one(0, key, |key_txn| key_txn.set_expire(0, key, Some(START_MS + 9000))));
    assert_eq!(entries(&world), 1);
    world.one(0, key, |key_txn| key_txn.put_string(0, key, b"w", Expire::Keep));
    assert_eq!(world.ttl(0, key), Some(Some(START_MS + 9000)));
    world.one(0, key, |key_txn| key_txn.patch_string(0, key, 1, b"x"));
    assert_eq!(world.ttl(0, key), Some(Some(START_MS + 9000)));
    world = world.reopen();
    assert_eq!((world.ttl(0, key), entries(&world)), (Some(Some(START_MS + 9000)), 1));
    assert!(world.one(0, key, |key_txn| key_txn.set_expire(0, key, None)));
    assert_eq!((world.ttl(0, key), entries(&world)), (Some(None), 0));
    world.engine.keyspace().set(0, key, b"v", Expire::At(START_MS + 500)).unwrap();
    world.set(0, key, b"plain");
    assert_eq!((world.ttl(0, key), entries(&world)), (Some(None), 0));
    assert!(!world.one(0, b"none", |key_txn| key_txn.set_expire(0, b"none", Some(START_MS))));
    world.check();
}

#[test]
fn an_expired_key_is_absent_for_the_next_writer() {
    let world = World::new(10);
    let key: &[u8] = b"k";
    for size in [3, 10_000, 500_000] {
        world.engine.keyspace().set(0, key, &bytes(size, 1), Expire::At(START_MS + 5)).unwrap();
        world.clock.set_ms(START_MS + 10);
        assert_eq!(world.one(0, key, |key_txn| key_txn.patch_string(0, key, 2, b"ab")), 4);
        assert_eq!((world.get(0, key).as_deref(), world.ttl(0, key)), (Some(&b"\0\0ab"[..]), Some(None)));
        world.clock.set_ms(START_MS);
        world.engine.keyspace().set(0, key, &bytes(size, 1), Expire::At(START_MS + 5)).unwrap();
        world.clock.set_ms(START_MS + 10);
        assert!(!world.one(0, key, |key_txn| key_txn.delete(0, key)));
        assert_eq!(world.count(0), 0);
        world.clock.set_ms(START_MS);
    }
    world.settle();
    world.check();
}

#[test]
fn encodings_are_those_of_redis() {
    let world = World::new(11);
    let encoding = |key: &[u8]| {
        let entry = world.engine.keyspace().read::<_, Error>(KeySet::Keys(&[(0, key)]), |key_txn| key_txn.peek(0, key));
        entry.unwrap().0.unwrap().encoding()
    };
    for (value, expected) in [
        (&b"12"[..], "int"),
        (b"-9223372036854775808", "int"),
        (b"9223372036854775808", "embstr"),
        (b"012", "embstr"),
        (b"-0", "embstr"),
        (b"+1", "embstr"),
        (b"", "embstr"),
        (&[b'x'; 44], "embstr"),
        (&[b'x'; 45], "raw"),
    ] {
        world.set(0, b"k", value);
        assert_eq!(encoding(b"k"), expected, "{value:?}");
    }
    world.one(0, b"k", |key_txn| key_txn.put_string_as(0, b"k", b"12", Expire::None, Form::NotInt));
    assert_eq!(encoding(b"k"), "embstr");
    world.one(0, b"k", |key_txn| key_txn.set_expire(0, b"k", Some(START_MS + 99)));
    assert_eq!(encoding(b"k"), "embstr", "a new expiry time does not change the encoding");
    world.set(0, b"k", b"12");
    world.one(0, b"k", |key_txn| key_txn.patch_string(0, b"k", 2, b"3"));
    assert_eq!(encoding(b"k"), "raw");
}

/// A hint for one key in one database is not used for another key, nor after the database was swapped.
#[test]
fn a_hint_counts_for_its_key_only() {
    let world = World::new(77);
    let keys: Vec<String> = (0..400).map(|number| format!("key:{}", number * 7919 % 100_000)).collect();
    for key in &keys {
        world.set(0, key.as_bytes(), &[key.as_bytes(), &[b'v'; 200]].concat());
    }
    let keyspace = world.engine.keyspace();
    let named: Vec<(u8, &[u8])> = keys.iter().map(|key| (0, key.as_bytes())).collect();
    let mut ahead = Vec::new();
    keyspace.look_ahead(&named, &mut ahead);
    let get = |at: usize, key: &str| {
        let mut out = Vec::new();
        keyspace.get_at(ahead[at], 0, key.as_bytes(), &mut out, |_, _| {}).unwrap();
        out
    };
    for (at, key) in keys.iter().enumerate() {
        assert!(get(at, key).starts_with(key.as_bytes()));
        let other = &keys[(at + 200) % 400];
        assert!(get(at, other).starts_with(other.as_bytes()), "{other} by what was found for {key}");
    }
    keyspace.write::<_, Error>(KeySet::All, true, |key_txn| key_txn.flush(0)).unwrap();
    world.set(0, keys[7].as_bytes(), b"new");
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(get(at, key), if at == 7 { &b"new"[..] } else { b"" });
    }
}
