//! Many threads at once: key transactions stay atomic for readers, scans miss nothing, counts stay exact, and a power cut in the middle changes none of that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::{Engine, Error, Expire, Found, KeySet, Keyspace, Options};
use os::{Folder, SimClock, SimFolder};
use stdx::prng::Prng;

use crate::support::{START_MS, World, bytes, options};

const ACCOUNTS: usize = 24;
const EACH: u64 = 1000;

fn threaded() -> Options {
    let pager = pager::Options { background: pager::Background::Threads, ..options().pager };
    Options { pager, random: 3, ..Options::default() }
}

fn account(at: usize) -> Vec<u8> {
    format!("account:{at}").into_bytes()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// Balances are padded to differing sizes, so that inline records and pages of their own both take part.
fn balance(amount: u64, at: usize) -> Vec<u8> {
    let mut value = amount.to_le_bytes().to_vec();
    value.resize(8 + at % 3 * 3000, at as u8);
    value
}

/// An optimistic reader may see a state that never existed. So an impossible state is an error here, not a panic, and the engine discards it.
fn read_balance(key_txn: &mut engine::KeyTransaction<'_>, key: &[u8]) -> Result<u64, Error> {
    let missing = || Error::Invalid("an account is missing".into());
    let entry = key_txn.get(0, key)?.ok_or_else(missing)?;
    let mut out = Vec::new();
    key_txn.value(&entry, 0..u64::MAX, &mut out)?;
    Ok(number(&out))
}

fn transfer(keyspace: &Keyspace, prng: &mut Prng) -> Result<u64, Error> {
    let (from, to) = (prng.below(ACCOUNTS as u64) as usize, prng.below(ACCOUNTS as u64) as usize);
    if from == to {
        return Ok(0);
    }
    let (source, target) = (account(from), account(to));
    let give_up = prng.chance(0.1);
    let amount = prng.below(50);
    let keys: [(u8, &[u8]); 2] = [(0, &source), (0, &target)];
    let done = keyspace.write::<(), Error>(KeySet::Keys(&keys), true, |key_txn| {
        let (a, b) = (read_balance(key_txn, &source)?, read_balance(key_txn, &target)?);
        let amount = amount.min(a);
        key_txn.put_string(0, &source, &balance(a - amount, from), Expire::None)?;
        if give_up {
            return Err(Error::Invalid("changed my mind".into()));
        }
        key_txn.put_string(0, &target, &balance(b + amount, to), Expire::None)
    });
    match done {
        Ok(((), lsn)) => Ok(lsn),
        Err(Error::Invalid(_)) => Ok(0),
        Err(error) => Err(error),
    }
}

fn sum(keyspace: &Keyspace) -> u64 {
    let names: Vec<Vec<u8>> = (0..ACCOUNTS).map(account).collect();
    let keys: Vec<(u8, &[u8])> = names.iter().map(|name| (0, name.as_slice())).collect();
    let read = keyspace.read::<u64, Error>(KeySet::Keys(&keys), |key_txn| {
        names.iter().map(|name| read_balance(key_txn, name)).sum::<Result<u64, Error>>()
    });
    read.expect("reads work").0
}

fn open(folder: &Arc<SimFolder>) -> Arc<Engine> {
    let clock = Arc::new(SimClock::new(START_MS));
    Engine::open(threaded(), folder.clone() as Arc<dyn Folder>, clock).expect("it opens")
}

/// Runs `body` in a thread until the time is up, and counts rounds.
fn until<'s>(
    scope: &'s std::thread::Scope<'s, '_>,
    stop: &'s AtomicBool,
    rounds: &'s AtomicU64,
    seed: u64,
    mut body: impl FnMut(&mut Prng) + Send + 's,
) {
    scope.spawn(move || {
        let mut prng = Prng::new(seed);
        while !stop.load(Ordering::Relaxed) {
            body(&mut prng);
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    });
}

#[test]
fn transfers_keep_the_sum_for_every_reader_and_over_a_power_cut() {
    let folder = SimFolder::new(1);
    let engine = open(&folder);
    let keyspace = engine.keyspace();
    for at in 0..ACCOUNTS {
        keyspace.set(0, &account(at), &balance(EACH, at), Expire::None).unwrap();
    }
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    let counters: [AtomicU64; 5] = Default::default();
    let after = std::thread::scope(|scope| {
        for seed in 0..2 {
            until(scope, &stop, &counters[0], seed, |prng| {
                let lsn = transfer(keyspace, prng).expect("transfers work");
                if lsn <= engine.durable().get() {
                    acknowledged.fetch_max(lsn, Ordering::Relaxed);
                }
            });
        }
        until(scope, &stop, &counters[1], 0, |_| assert_eq!(sum(keyspace), ACCOUNTS as u64 * EACH));
        // Keys that come and go, so that counts move while checkpoints cut them; every hundredth key stays.
        for thread in 0..2u8 {
            until(scope, &stop, &counters[2], 10 + u64::from(thread), move |prng| {
                let key = format!("key:{thread}:{}", prng.below(300));
                let (len, expire) = (prng.below(3000) as usize, Expire::At(START_MS + 1_000_000 + prng.below(100)));
                if prng.chance(0.5) {
                    keyspace.set(1, key.as_bytes(), &bytes(len, 1), expire).expect("writes work");
                } else {
                    let keys: [(u8, &[u8]); 1] = [(1, key.as_bytes())];
                    let deleted = keyspace.write::<_, Error>(KeySet::Keys(&keys), prng.chance(0.3), |key_txn| {
                        key_txn.delete(1, key.as_bytes())
                    });
                    deleted.expect("deletes work");
                }
            });
        }
        until(scope, &stop, &counters[3], 0, |_| {
            engine.pager().checkpoint().expect("checkpoints work");
        });
        // Key transactions that delete keys and roll back: no scan may miss an account.
        until(scope, &stop, &counters[4], 20, |prng| {
            let name = account(prng.below(ACCOUNTS as u64) as usize);
            let failed = keyspace.write::<(), Error>(KeySet::Keys(&[(0, &name)]), true, |key_txn| {
                assert!(key_txn.delete(0, &name)?);
                Err(Error::Invalid("no".into()))
            });
            assert!(matches!(failed, Err(Error::Invalid(_))));
            let mut seen = 0;
            let walked = keyspace.read::<_, Error>(KeySet::Keys(&[]), |key_txn| {
                seen = 0;
                key_txn.keys(0, b"account:", |_, _| seen += 1)
            });
            walked.expect("walks work");
            assert_eq!(seen, ACCOUNTS);
        });
        let end = Instant::now() + Duration::from_secs(4);
        let is_enough = || counters.iter().all(|counter| counter.load(Ordering::Relaxed) > 10);
        // On a busy machine not every thread gets to its work in that time.
        while Instant::now() < end || !is_enough() && Instant::now() < end + Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let after = folder.crash();
        stop.store(true, Ordering::Relaxed);
        after
    });
    assert!(counters.iter().all(|counter| counter.load(Ordering::Relaxed) > 10), "{counters:?}");
    assert!(engine.check().unwrap().problems.is_empty());
    engine.close().unwrap();
    drop(engine);
    for folder in [after, folder] {
        let world = World::on(folder, Arc::new(SimClock::new(START_MS))).expect("it recovers");
        assert_eq!(sum(world.engine.keyspace()), ACCOUNTS as u64 * EACH);
        world.check();
        world.settle();
        world.check();
    }
}

#[test]
fn readers_of_a_value_see_one_version_of_it_whatever_its_size() {
    let folder = SimFolder::new(2);
    let engine = open(&folder);
    let keyspace = engine.keyspace();
    let value = |round: u64| vec![round as u8; [100, 9_000, 400_000][round as usize % 3] + round as usize % 7];
    keyspace.set(0, b"k", &value(0), Expire::None).unwrap();
    let stop = AtomicBool::new(false);
    let (writes, reads) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        until(scope, &stop, &writes, 0, |_| {
            let round = writes.load(Ordering::Relaxed) + 1;
            keyspace.set(0, b"k", &value(round), Expire::None).expect("writes work");
        });
        for _ in 0..2 {
            until(scope, &stop, &reads, 0, |_| {
                let mut out = Vec::new();
                let got = keyspace.get(0, b"k", &mut out, |_, _| {}).expect("reads work");
                assert_eq!(got.found, Found::Value);
                assert!(out.iter().all(|byte| *byte == out[0]), "two versions in one value");
            });
        }
        std::thread::sleep(Duration::from_secs(2));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(writes.load(Ordering::Relaxed) > 20 && reads.load(Ordering::Relaxed) > 20, "{writes:?} {reads:?}");
    // The last replaced values may still be in the purge queue.
    let end = Instant::now() + Duration::from_secs(20);
    while keyspace.purge_backlog().unwrap() > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(keyspace.purge_backlog().unwrap(), 0, "the background removes garbage");
    engine.close().unwrap();
    let problems = engine.check().unwrap().problems;
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn the_background_thread_removes_expired_keys() {
    let folder = SimFolder::new(3);
    let clock = Arc::new(SimClock::new(START_MS));
    let engine = Engine::open(threaded(), folder as Arc<dyn Folder>, clock.clone()).unwrap();
    for at in 0..500u32 {
        engine.keyspace().set(0, &at.to_le_bytes(), b"v", Expire::At(START_MS + 100)).unwrap();
    }
    clock.set_ms(START_MS + 200);
    // One more entry wakes the background, as a running clock would.
    engine.keyspace().set(0, b"last", b"v", Expire::At(START_MS + 150)).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while engine.metrics().expired.get() < 501 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(engine.metrics().expired.get(), 501);
    engine.close().unwrap();
}
