//! The cost of commands on one thread, all in memory. Runs tiny under `cargo test`, large under `cargo bench -p engine`; `cargo bench -p engine -- get` runs
//! only benchmarks with "get" in their name.
//!
//! The WAL goes to a simulated folder, so the figures are of keyspace, tree and the copy into the WAL, not of a device.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use engine::rows::{Isolation, RowBatch, Strength};
use engine::{Engine, Error, Expire, KeySet, Options};
use os::{RealClock, SimFolder};
use stdx::prng::Prng;

/// Prints wall time and this thread's processor time per round. On a busy machine the second is the relevant one.
fn timed(what: &str, rounds: u64, mut run: impl FnMut()) {
    let (started, busy) = (Instant::now(), busy_ns());
    run();
    let wall = started.elapsed().as_nanos() as f64 / rounds as f64;
    match busy_ns().zip(busy) {
        Some((after, before)) => {
            println!("{what:<44} {wall:>7.0} ns, {:>6.0} ns on the processor", (after - before) as f64 / rounds as f64)
        }
        None => println!("{what:<44} {wall:>7.0} ns"),
    }
}

/// Returns the nanoseconds that this thread has run, where the system tells.
fn busy_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let large = arguments.iter().any(|argument| argument == "--bench");
    let only = arguments.iter().skip(1).find(|argument| argument.starts_with(|first: char| first.is_alphabetic()));
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only.as_str()));
    let (records, rounds) = if large { (400_000u64, 1_000_000u64) } else { (2_000, 4_000) };
    let pager = pager::Options { frame_bytes: (records * 640).max(128 << 20), ..pager::Options::default() };
    let engine =
        Engine::open(Options { pager, random: 1, ..Options::default() }, SimFolder::new(1), Arc::new(RealClock::new()))
            .expect("opens");
    let keyspace = engine.keyspace();
    let value = [0x5Au8; 128];
    timed("set, new keys in ascending order", records, || {
        for number in 0..records {
            keyspace.set(0, &key(number), &value, Expire::None).expect("set");
        }
    });
    let mut prng = Prng::new(2);
    let order: Vec<u64> = (0..rounds).map(|_| prng.below(records)).collect();
    let mut out = Vec::with_capacity(1 << 16);
    let mut hash = 0u64;
    let header = |out: &mut Vec<u8>, _: usize| out.extend_from_slice(b"$128\r\n");
    if wanted("get") {
        timed("get", rounds, || {
            for number in &order {
                out.clear();
                let got = keyspace.get(0, &key(*number), &mut out, header).expect("get");
                hash = hash.wrapping_mul(31).wrapping_add(got.durability_lsn ^ out.len() as u64);
            }
        });
        timed("get of few keys, lines in the cache", rounds, || {
            for number in &order {
                out.clear();
                keyspace.get(0, &key(*number % 64), &mut out, header).expect("get");
            }
        });
        let mut ahead = Vec::new();
        timed("get in batches of 32, looked for ahead", rounds, || {
            for batch in order.chunks(32) {
                let names: Vec<[u8; 16]> = batch.iter().map(|number| key(*number)).collect();
                let keys: Vec<(u8, &[u8])> = names.iter().map(|name| (0, name.as_slice())).collect();
                ahead.clear();
                keyspace.look_ahead(&keys, &mut ahead);
                out.clear();
                for (name, ahead) in names.iter().zip(&ahead) {
                    keyspace.get_at(*ahead, 0, name, &mut out, header).expect("get");
                }
            }
        });
    }
    if wanted("set") {
        timed("set, over what is there", rounds, || {
            for number in &order {
                keyspace.set(0, &key(*number), &value, Expire::None).expect("set");
            }
        });
        timed("set of few keys, lines in the cache", rounds, || {
            for number in &order {
                keyspace.set(0, &key(*number % 64), &value, Expire::None).expect("set");
            }
        });
        timed("set with a time", rounds / 4, || {
            for number in &order[..rounds as usize / 4] {
                keyspace.set(0, &key(*number % 1000), &value, Expire::At(u64::MAX / 2 + number)).expect("set");
            }
        });
        timed("set of 16 KiB", rounds / 64, || {
            for number in &order[..rounds as usize / 64] {
                keyspace.set(1, &key(*number % 512), &[7; 16 << 10], Expire::None).expect("set");
            }
        });
    }
    if wanted("unit") {
        timed("unit that reads one key and puts it", rounds / 2, || {
            for number in &order[..rounds as usize / 2] {
                let name = key(*number);
                let put = keyspace.write::<_, Error>(KeySet::Keys(&[(0, &name)]), false, |unit| {
                    let entry = unit.peek(0, &name)?.expect("it is there");
                    out.clear();
                    unit.value(&entry, 0..entry.len, &mut out)?;
                    unit.put_string(0, &name, &out, Expire::Keep)
                });
                put.expect("put");
            }
        });
        timed("unit that puts eight keys, per key", rounds / 2, || {
            for batch in order[..rounds as usize / 2].chunks(8) {
                let names: Vec<[u8; 16]> = batch.iter().map(|number| key(*number)).collect();
                let keys: Vec<(u8, &[u8])> = names.iter().map(|name| (0, name.as_slice())).collect();
                let put = keyspace.write::<(), Error>(KeySet::Keys(&keys), true, |unit| {
                    names.iter().try_for_each(|name| unit.put_string(0, name, &value, Expire::None))
                });
                put.expect("put");
            }
        });
    }
    if wanted("rows") {
        rows(&engine, records, &order, &value);
    }
    println!("hash {hash:x}");
    engine.close().expect("closes");
}

/// Rows of SQL. Each round is a transaction of its own, unless its name says otherwise.
fn rows(engine: &Engine, records: u64, order: &[u64], value: &[u8]) {
    let rows = engine.rows();
    let mut txn = rows.begin(Isolation::RepeatableRead);
    let map = txn.create_map().expect("a map");
    timed("rows: insert in one transaction, per row", records, || {
        for number in 0..records {
            txn.insert(map, &key(number), value, &mut Vec::new()).expect("insert");
        }
    });
    txn.commit().expect("commit");
    let mut out = Vec::new();
    timed("rows: get", order.len() as u64, || {
        for number in order {
            out.clear();
            let mut txn = rows.begin(Isolation::RepeatableRead);
            assert!(txn.get(map, &key(*number), &mut out).expect("get"));
            txn.commit().expect("commit");
        }
    });
    timed("rows: get, ten in a transaction, per row", order.len() as u64, || {
        for numbers in order.chunks(10) {
            let mut txn = rows.begin(Isolation::RepeatableRead);
            for number in numbers {
                out.clear();
                assert!(txn.get(map, &key(*number), &mut out).expect("get"));
            }
            txn.commit().expect("commit");
        }
    });
    let mut batch = RowBatch::new();
    timed("rows: scan of 100, per row", order.len() as u64, || {
        for number in &order[..order.len() / 100] {
            let mut txn = rows.begin(Isolation::RepeatableRead);
            let (from, to) = (key(*number), key(*number + 100));
            let mut cursor = txn.scan(map, Bound::Included(&from[..]), Bound::Excluded(&to[..]), false).expect("scan");
            while cursor.next(&mut txn, &mut batch).expect("rows") {}
            txn.commit().expect("commit");
        }
    });
    timed("rows: update", order.len() as u64, || {
        for number in order {
            let mut txn = rows.begin(Isolation::RepeatableRead);
            assert!(txn.update(map, &key(*number), value).expect("update"));
            txn.commit().expect("commit");
        }
    });
    timed("rows: lock, then update", order.len() as u64, || {
        for number in order {
            out.clear();
            let mut txn = rows.begin(Isolation::RepeatableRead);
            txn.lock_patiently(map, &key(*number), Strength::Exclusive, &mut out).expect("lock");
            assert!(txn.update(map, &key(*number), value).expect("update"));
            txn.commit().expect("commit");
        }
    });
}
