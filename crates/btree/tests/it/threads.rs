//! Many threads on one tree with tiny pages. Version words are WAL positions, so each key's history can be checked for linearizability while it happens: a
//! read that begins after a write has returned must not see an older word.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use btree::{Batch, Found, LatchMode, LeafHint, Tree};
use os::SimFolder;
use pager::Background;
use stdx::prng::Prng;

use crate::{assert_sound, open_pager, small_tree};

const KEYS: usize = 300;

/// The history of each key: the newest word that a finished operation left or saw, and the increments that finished.
struct History {
    word: Vec<AtomicU64>,
    increments: Vec<AtomicU64>,
    stop: AtomicBool,
}

fn key(number: usize) -> Vec<u8> {
    let mut key = vec![b'p'; number % 7];
    key.extend_from_slice(&(number as u32).wrapping_mul(2_654_435_761).to_be_bytes());
    key
}

/// Reads a key, starting at the leaf of an earlier hint, if there is one.
fn read(tree: &Tree, history: &History, number: usize, hints: LeafHint, out: &mut Vec<u8>) {
    let known = history.word[number].load(Ordering::SeqCst);
    out.clear();
    let found = tree.get_with_hint(hints, &key(number), out).unwrap();
    check_read(tree, history, number, known, found, out);
}

/// Reads a key, starting at a leaf that may be another key's and may have changed. Keeps where the key was.
fn locate(tree: &Tree, history: &History, number: usize, hint: &mut LeafHint, out: &mut Vec<u8>) {
    let known = history.word[number].load(Ordering::SeqCst);
    out.clear();
    let (found, at) = tree.get_and_locate(*hint, &key(number), out).unwrap();
    *hint = at;
    check_read(tree, history, number, known, found, out);
}

fn check_read(tree: &Tree, history: &History, number: usize, known: u64, found: Found, out: &[u8]) {
    assert!(found.word >= known, "key {number}: a read saw {} after {known}", found.word);
    assert!(found.word <= tree.pager().wal_head());
    if found.present {
        let (count, copy) = out.split_at(8);
        assert_eq!(&count[..copy.len().min(8)], &copy[..copy.len().min(8)], "a torn value");
        history.word[number].fetch_max(found.word, Ordering::SeqCst);
    }
}

/// Adds one to the key's counter. The value repeats the counter a varying number of times so that its size changes.
fn increment(tree: &Tree, history: &History, number: usize, hints: LeafHint, prng: &mut Prng) {
    let copies = prng.below(6) as usize;
    let done = tree
        .modify_with_hint(hints, &key(number), None, |old, change| {
            let count = old.map_or(0, |old| u64::from_le_bytes(old.value[..8].try_into().unwrap())) + 1;
            let bytes = count.to_le_bytes();
            change.put(&[&bytes, &bytes.repeat(copies)]);
        })
        .unwrap();
    history.word[number].fetch_max(done.lsn, Ordering::SeqCst);
    history.increments[number].fetch_add(1, Ordering::SeqCst);
}

/// Deletes the key and subtracts its counter from the number of increments.
fn delete(tree: &Tree, history: &History, number: usize) {
    let done = tree
        .modify(&key(number), None, |old, change| {
            change.delete();
            old.map_or(0, |old| u64::from_le_bytes(old.value[..8].try_into().unwrap()))
        })
        .unwrap();
    history.word[number].fetch_max(done.lsn, Ordering::SeqCst);
    history.increments[number].fetch_sub(done.result, Ordering::SeqCst);
}

fn scan(tree: &Tree, prng: &mut Prng, batch: &mut Batch) {
    let from = key(prng.below(KEYS as u64) as usize);
    let is_backward = prng.chance(0.5);
    let mut scan = if is_backward {
        tree.scan_back(Bound::Unbounded, Bound::Included(&from))
    } else {
        tree.scan(Bound::Included(&from), Bound::Unbounded)
    };
    let mut last: Option<Vec<u8>> = None;
    while scan.next_batch(batch).unwrap() {
        for entry in batch.iter() {
            if let Some(last) = &last {
                assert!(if is_backward { entry.key < last.as_slice() } else { entry.key > last.as_slice() });
            }
            last = Some(entry.key.to_vec());
        }
    }
}

fn stress(modes: &[LatchMode], end: usize, steps: u64) {
    let pager = open_pager(SimFolder::new(1), Background::Threads);
    let tree = small_tree(&pager, end, LatchMode::Optimistic);
    let zeros = || (0..KEYS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let history = History { word: zeros(), increments: zeros(), stop: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let mut writers = Vec::new();
        for (index, mode) in modes.iter().enumerate() {
            let tree = tree.clone().with_latch_mode(*mode);
            let history = &history;
            writers.push(scope.spawn(move || {
                let mut prng = Prng::new(index as u64);
                let mut out = Vec::new();
                let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
                let mut hints = vec![LeafHint::Unknown; KEYS];
                for step in 0..steps {
                    if step % 64 == 0 {
                        hints.clear();
                        tree.locate_leaves(&keys, &mut hints);
                    }
                    // Half of the work goes to a few keys.
                    let range = if prng.chance(0.5) { 8 } else { KEYS as u64 };
                    let number = prng.below(range) as usize;
                    match prng.below(10) {
                        0..5 => increment(&tree, history, number, hints[number], &mut prng),
                        5..7 => delete(&tree, history, number),
                        7..9 => read(&tree, history, number, hints[number], &mut out),
                        _ => {
                            // The hint of a neighbour is often that of the same leaf.
                            let other = (number + prng.below(3) as usize) % KEYS;
                            let mut hint = hints[other];
                            locate(&tree, history, number, &mut hint, &mut out);
                            hints[number] = hint;
                        }
                    }
                }
            }));
        }
        let (tree, history) = (&tree, &history);
        scope.spawn(move || {
            let (mut prng, mut batch) = (Prng::new(99), Batch::new());
            while !history.stop.load(Ordering::Relaxed) {
                scan(tree, &mut prng, &mut batch);
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        history.stop.store(true, Ordering::Relaxed);
    });
    assert_sound(&tree);
    for number in 0..KEYS {
        let mut out = Vec::new();
        let present = tree.get(&key(number), &mut out).unwrap().present;
        let count = if present { u64::from_le_bytes(out[..8].try_into().unwrap()) } else { 0 };
        assert_eq!(count, history.increments[number].load(Ordering::SeqCst), "increments of key {number} were lost");
    }
    pager.close().unwrap();
}

#[test]
fn each_key_is_linearizable() {
    stress(&[LatchMode::Optimistic; 4], 40, 15_000);
}

#[test]
fn each_key_is_linearizable_under_latches() {
    stress(&[LatchMode::Latched; 3], 40, 6_000);
}

#[test]
fn both_latch_modes_work_on_one_tree() {
    stress(&[LatchMode::Optimistic, LatchMode::Latched, LatchMode::Optimistic, LatchMode::Latched], 64, 8_000);
}

/// Ranges are emptied while others fill them: leaves are removed under readers, writers and scans, and their pages are reused.
#[test]
fn pages_are_freed_and_reused_under_concurrent_use() {
    let pager = open_pager(SimFolder::new(1), Background::Threads);
    let tree = small_tree(&pager, 32, LatchMode::Optimistic);
    let stop = AtomicBool::new(false);
    let key = |owner: u8, number: u32| [&[owner][..], &number.to_be_bytes()].concat();
    std::thread::scope(|scope| {
        let (tree, stop) = (&tree, &stop);
        let mut workers = Vec::new();
        for owner in 0..3u8 {
            // Each owner fills its own range, sees exactly its own records, and removes them.
            workers.push(scope.spawn(move || {
                let mut model = BTreeMap::new();
                let mut prng = Prng::new(u64::from(owner));
                for round in 0..25u32 {
                    for _ in 0..120 {
                        let key = key(owner, prng.below(400) as u32);
                        crate::put(tree, &key, &round.to_le_bytes());
                        model.insert(key, round.to_le_bytes().to_vec());
                    }
                    let mut found = Vec::new();
                    let mut batch = Batch::new();
                    let mut scan = tree.scan(Bound::Included(&[owner]), Bound::Excluded(&[owner + 1]));
                    while scan.next_batch(&mut batch).unwrap() {
                        found.extend(batch.iter().map(|entry| (entry.key.to_vec(), entry.value.to_vec())));
                    }
                    assert!(found.iter().map(|(key, value)| (key, value)).eq(model.iter()));
                    let mut purge = tree.delete_range(&[owner], Some(&[owner + 1]));
                    while !purge.step(4, |_, _, _| {}).unwrap() {}
                    assert_eq!(purge.records, model.len() as u64);
                    model.clear();
                }
            }));
        }
        scope.spawn(move || {
            let mut out = Vec::new();
            let mut prng = Prng::new(77);
            while !stop.load(Ordering::Relaxed) {
                out.clear();
                let key = key(prng.below(3) as u8, prng.below(400) as u32);
                let found = tree.get(&key, &mut out).unwrap();
                assert_eq!(out.len(), if found.present { 4 } else { 0 });
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let report = assert_sound(&tree);
    assert_eq!(report.records, 0);
    let (pages, free) = pager.space_use();
    assert!(pages - free < 60, "{} pages are still in use", pages - free);
    pager.close().unwrap();
}
