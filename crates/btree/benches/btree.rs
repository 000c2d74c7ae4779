//! Cost of reads, changes and scans on one thread, all in memory. Runs tiny under `cargo test`, large under `cargo bench -p btree`; `cargo bench -p btree
//! -- get 3000000` runs only the parts with "get" in their name, on that many records.
//!
//! The WAL goes to a simulated folder, so the figures are of the tree, the buffer pool and the copy into the WAL ring, not of a device.

use std::hint::black_box;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use btree::{Batch, LatchMode, Tree};
use os::{RealClock, SimFolder};
use pager::{Background, NoObserver, Options, Pager, RedoTable};
use stdx::prng::Prng;

/// A key as the keyspace stores it: keyspace number, kind, then the user's sixteen bytes.
fn key(number: u64) -> [u8; 21] {
    let mut key = *b"\0\0\0\x01\0key:000000000000";
    let mut rest = number;
    for digit in key[9..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Prints wall time and this thread's processor time per round. On a busy machine the second is the relevant one.
fn timed(what: &str, rounds: u64, mut run: impl FnMut()) {
    let (started, busy) = (Instant::now(), busy_ns());
    run();
    let wall = started.elapsed().as_nanos() as f64 / rounds as f64;
    match busy_ns().zip(busy) {
        Some((after, before)) => {
            println!("{what:<40} {wall:>7.0} ns, {:>6.0} ns on the processor", (after - before) as f64 / rounds as f64)
        }
        None => println!("{what:<40} {wall:>7.0} ns"),
    }
}

/// Returns the nanoseconds that this thread has run, where the system reports them.
fn busy_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let large = arguments.iter().any(|argument| argument == "--bench");
    let count = arguments.iter().skip(1).find_map(|argument| argument.parse::<u64>().ok());
    let only = arguments.iter().skip(1).find(|argument| argument.starts_with(|first: char| first.is_alphabetic()));
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only.as_str()));
    let (records, rounds) = if large { (400_000u64, 2_000_000u64) } else { (2_000, 4_000) };
    let records = count.unwrap_or(records);
    let options =
        Options { frame_bytes: (records * 640).max(64 << 20), background: Background::Threads, ..Options::default() };
    let redo = RedoTable::new().own(btree::redo::KINDS, btree::redo::redo());
    let clock = Arc::new(RealClock::new());
    let opened = Pager::open(SimFolder::new(1), clock, options, redo, &mut NoObserver, 1, &|_| {}).expect("opens");
    let pager = opened.pager;
    let tree = Tree::create(&pager, 1).expect("room");
    let value = [0x5Au8; 128];
    let mut numbers: Vec<u64> = (0..records).collect();
    Prng::new(1).fill_order(&mut numbers);
    let put = |number: u64| {
        black_box(tree.modify(&key(number), None, |_, change| change.put(&[&value])).expect("put").lsn);
    };

    let head = pager.wal_head();
    timed("insert 16 B + 128 B, random order", records, || numbers.iter().for_each(|number| put(*number)));
    println!("{} bytes of log per insert, splits included", (pager.wal_head() - head) / records);
    if wanted("again") {
        timed("purge, per record", records, || {
            let mut purge = tree.delete_range(b"", None);
            while !purge.step(1000, |_, _, _| {}).expect("purge") {}
        });
        // The first round also pays for the first touch of the memory.
        timed("insert again, random order", records, || numbers.iter().for_each(|number| put(*number)));
    }
    let report = tree.check().expect("readable");
    assert!(report.is_sound(), "{:?}", report.violations);
    println!("{:?} nodes, leaves {:.2} full", report.nodes, report.leaf_words_used as f64 / report.leaf_words as f64);
    let mut prng = Prng::new(2);
    let order: Vec<u64> = (0..rounds).map(|_| prng.below(records)).collect();
    let mut out = Vec::with_capacity(4096);
    let mut hash = 0u64;
    for (mode, name) in [(LatchMode::Optimistic, "get, optimistic"), (LatchMode::Latched, "get, latched")] {
        if wanted(name) {
            let tree = tree.clone().with_latch_mode(mode);
            timed(name, rounds, || {
                for number in &order {
                    out.clear();
                    let found = tree.get(&key(*number), &mut out).expect("get");
                    hash = hash.wrapping_mul(31).wrapping_add(found.word ^ out.len() as u64);
                }
            });
        }
    }
    if wanted("get of few keys") {
        timed("get of few keys, lines in the cache", rounds, || {
            for number in &order {
                out.clear();
                tree.get(&key(*number % 64), &mut out).expect("get");
            }
        });
    }
    if wanted("batches") {
        let (mut keys, mut hints) = (Vec::new(), Vec::new());
        timed("get in batches of 32, leaves located first", rounds, || {
            for batch in order.chunks(32) {
                keys.clear();
                keys.extend(batch.iter().map(|number| key(*number)));
                let names: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
                hints.clear();
                tree.locate_leaves(&names, &mut hints);
                for (key, hints) in names.iter().zip(&hints) {
                    out.clear();
                    tree.get_with_hint(*hints, key, &mut out).expect("get");
                }
            }
        });
    }
    if wanted("update") {
        timed("update 128 B in place", rounds / 2, || {
            order[..rounds as usize / 2].iter().for_each(|number| put(*number))
        });
    }
    if wanted("scan") {
        let mut seen = 0;
        let mut batch = Batch::new();
        timed("scan, per record", records, || {
            let mut scan = tree.scan(Bound::Unbounded, Bound::Unbounded);
            while scan.next_batch(&mut batch).expect("scan") {
                seen += batch.len() as u64;
            }
        });
        assert_eq!(seen, records);
    }
    if wanted("ascending") {
        timed("insert 16 B + 128 B, ascending", records, || (records..2 * records).for_each(put));
    }
    println!("hash {hash:x}");
}

/// Shuffles a slice.
trait Shuffle {
    fn fill_order(&mut self, numbers: &mut [u64]);
}

impl Shuffle for Prng {
    fn fill_order(&mut self, numbers: &mut [u64]) {
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}
