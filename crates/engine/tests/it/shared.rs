//! An engine on objects that several nodes reach: taken over by a second one, stopped and opened again; also on RADOS, where `BELUGA_RADOS_POOL` names a pool of a
//! cluster (`scripts/ceph.sh test`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{Engine, Error, Expire, Options};
use os::{Guard, ObjectError, ObjectStore, RadosAddress, RadosObjects, SimClock, SimFolder, SimObjects};
use pager::{Background, SharedStorage};

use crate::support::{START_MS, World, bytes, options};

fn try_open(objects: Arc<dyn ObjectStore>, options: Options) -> Result<World, Error> {
    let (folder, clock) = (SimFolder::new(1), Arc::new(SimClock::new(START_MS)));
    let object_pages = SharedStorage::OBJECT_PAGES;
    let shared = SharedStorage { objects, scratch: folder.clone(), object_pages, on_end: None, unfenced: None };
    let engine = Engine::open_shared(options, shared, clock.clone(), &|_| {})?;
    Ok(World { folder, clock, engine })
}

fn open(objects: Arc<dyn ObjectStore>) -> World {
    try_open(objects, options()).expect("the database opens")
}

fn key(number: u32) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Lengths from a few bytes to several pages outside the tree.
fn content(number: u32, seed: u64) -> Vec<u8> {
    bytes([10, 900, 20_000, 300_000][number as usize % 4], seed + u64::from(number))
}

fn fill(world: &World, seed: u64) {
    for number in 0..60 {
        world.set(0, &key(number), &content(number, seed));
    }
}

fn expect(world: &World, seed: u64) {
    for number in 0..60 {
        assert!(world.get(0, &key(number)) == Some(content(number, seed)), "key {number}");
    }
}

/// The second node begins while the first has unflushed changes, after checkpoints, and while it is idle.
fn take_over(connect: &dyn Fn() -> Arc<dyn ObjectStore>) {
    let mut former = open(connect());
    for round in 1..4 {
        fill(&former, round);
        former.flush();
        if round == 2 {
            former.engine.pager().checkpoint_all().unwrap();
            former.settle();
            former.flush();
        }
        // Not flushed, so nobody was told of it.
        former.set(0, b"unflushed", b"x");
        let next = open(connect());
        assert_eq!(next.engine.pager().boot(), round + 1);
        expect(&next, round);
        assert_eq!(next.get(0, b"unflushed"), None);
        next.check();
        let refused = former.engine.pager().flush_once().expect_err("an earlier opening writes");
        assert!(matches!(refused, pager::Error::Fenced { .. }), "{refused}");
        assert!(
            former.engine.keyspace().set(0, b"late", b"x", Expire::None).is_err() || former.engine.pager().is_dead()
        );
        former = next;
    }
    former.settle();
    expect(&former, 3);
    former.check();
}

/// With the threads of a server; it stops in good order.
fn stop_and_open(connect: &dyn Fn() -> Arc<dyn ObjectStore>) {
    for round in 1..4 {
        let mut threaded = options();
        threaded.pager.background = Background::Threads;
        let world = try_open(connect(), threaded).unwrap();
        if round > 1 {
            expect(&world, round - 1);
        }
        fill(&world, round);
        world.engine.close().unwrap();
    }
    let world = open(connect());
    assert_eq!(world.engine.opened().pager.applied, 0, "a stop in good order leaves nothing to apply");
    expect(&world, 3);
    world.check();
}

fn on_rados(test: &str, play: fn(&dyn Fn() -> Arc<dyn ObjectStore>)) {
    let Ok(pool) = std::env::var("BELUGA_RADOS_POOL") else {
        println!("skipped: BELUGA_RADOS_POOL names no pool of a Ceph cluster");
        return;
    };
    let name = format!("test-{}-{test}", std::process::id());
    let address = RadosAddress { pool, name, conf: None, user: "client.admin".into() };
    play(&|| RadosObjects::connect(&address).unwrap());
}

#[test]
fn a_second_node_has_every_key_and_the_first_is_refused() {
    let store = SimObjects::new();
    take_over(&|| store.client(0));
}

#[test]
fn a_stopped_engine_opens_again_with_its_keys() {
    let store = SimObjects::new();
    stop_and_open(&|| store.client(0));
}

#[test]
fn a_second_node_has_every_key_and_the_first_is_refused_on_rados() {
    on_rados("engine-takeover", take_over);
}

#[test]
fn a_stopped_engine_opens_again_with_its_keys_on_rados() {
    on_rados("engine-stop", stop_and_open);
}

/// Counts the waits for the store.
struct CountedStore {
    objects: Arc<dyn ObjectStore>,
    waits: AtomicU64,
}

impl ObjectStore for CountedStore {
    fn write(&self, name: &str, guard: Guard, epoch: u64, pieces: &[(u64, &[u8])]) -> Result<(), ObjectError> {
        self.objects.write(name, guard, epoch, pieces)
    }

    fn read(&self, name: &str, offset: u64, buf: &mut [u8]) -> Result<usize, ObjectError> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.objects.read(name, offset, buf)
    }

    fn read_many(&self, reads: &mut [(&str, u64, &mut [u8])]) -> Vec<Result<usize, ObjectError>> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.objects.read_many(reads)
    }

    fn remove(&self, name: &str) -> Result<(), ObjectError> {
        self.objects.remove(name)
    }
}

/// A dump of keys in storage that answers after a millisecond must not wait for each of them.
#[test]
fn a_reader_of_all_keys_waits_once_for_many_of_them() {
    const KEYS: u32 = 2000;
    let store = SimObjects::new();
    let value = |number: u32| bytes(if number.is_multiple_of(2) { 5000 } else { 700 }, u64::from(number));
    let world = open(store.client(0));
    // Not in the order of the keys, so that neighbours in the tree are none in the file.
    for number in (0..KEYS).map(|number| number * 7919 % KEYS) {
        world.set(0, &key(number), &value(number));
    }
    world.engine.close().unwrap();
    let counted = Arc::new(CountedStore { objects: store.client(1), waits: AtomicU64::new(0) });
    let world = open(counted.clone());
    let snapshot = world.engine.keyspace().snapshot(|_| {}).unwrap();
    let before = counted.waits.load(Ordering::Relaxed);
    let (mut txn, mut cursor, mut seen) = (snapshot.read(), 0, 0);
    loop {
        txn.scan_ahead(0, cursor).unwrap();
        let mut keys = Vec::new();
        cursor = txn.scan(0, cursor, 128, |key, _| keys.push(key.to_vec())).unwrap();
        let entries: Vec<_> = keys.iter().map(|key| txn.peek(0, key).unwrap().expect("it was found")).collect();
        txn.prefetch_values(&entries).unwrap();
        for (name, entry) in keys.iter().zip(&entries) {
            let number: u32 = std::str::from_utf8(&name[4..]).unwrap().parse().unwrap();
            let mut found = Vec::new();
            txn.value(entry, 0..entry.len, &mut found).unwrap();
            assert!(found == value(number), "key {number}");
            seen += 1;
        }
        if cursor == 0 {
            break;
        }
    }
    let waits = counted.waits.load(Ordering::Relaxed) - before;
    assert_eq!(seen, KEYS);
    assert!(waits < u64::from(KEYS) / 8, "{waits} waits for {KEYS} keys");
}

/// The copy is a local folder; renewed, it has what was written after the backup.
fn copy_to_a_folder(connect: &dyn Fn() -> Arc<dyn ObjectStore>) {
    let world = open(connect());
    fill(&world, 1);
    world.flush();
    world.engine.pager().checkpoint_all().unwrap();
    fill(&world, 2);
    world.flush();
    let copy = SimFolder::new(1);
    world.engine.pager().backup(copy.as_ref(), &|_, _| {}).unwrap();
    fill(&world, 3);
    world.flush();
    world.engine.pager().backup_log(copy.as_ref()).unwrap();
    let engine = Engine::open(options(), copy.clone(), Arc::new(SimClock::new(START_MS))).unwrap();
    let copied = World { folder: copy, clock: Arc::new(SimClock::new(START_MS)), engine };
    expect(&copied, 3);
    copied.check();
}

#[test]
fn a_backup_of_a_shared_database_is_a_local_folder() {
    let store = SimObjects::new();
    copy_to_a_folder(&|| store.client(0));
}

#[test]
fn a_backup_of_a_shared_database_is_a_local_folder_on_rados() {
    on_rados("engine-backup", copy_to_a_folder);
}
