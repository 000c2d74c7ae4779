//! Damaged pages, a full disk, too little memory, pages that are reused: errors are reported, and nothing else is lost.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use btree::{Batch, LatchMode, ReadMode, ScanState, Tree};
use os::SimFolder;
use pager::{Background, Error, NoObserver, Options, Pager, RedoTable};
use stdx::prng::Prng;

use crate::{assert_sound, delete, get, open_pager, put, small_tree};

fn key(number: u64) -> Vec<u8> {
    format!("\0\0\0\x01key:{:06}", number * 7919 % 100_000).into_bytes()
}

/// Runs every operation once. The results do not matter, only that all of them return.
fn use_all(tree: &Tree, prng: &mut Prng) {
    let mut out = Vec::new();
    let mut batch = Batch::new();
    for _ in 0..6 {
        let key = key(prng.below(400));
        let _ = tree.get(&key, &mut out);
        let mut hints = Vec::new();
        tree.locate_leaves(&[&key[..], b"", b"\xFF"], &mut hints);
        let _ = tree.get_with_hint(hints[0], &key, &mut out);
        tree.read_missing(&hints);
        let _ = tree.modify(&key, None, |_, change| change.put(&[&[1; 50]]));
        let _ = tree.modify(&key, None, |_, change| change.delete());
        let _ = tree.first_after(&key);
        let _ = tree.last_before(&key);
        let _ = tree.random(&key, None, prng);
        out.clear();
    }
    for backward in [false, true] {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut scan = if backward { tree.scan_back(all.0, all.1) } else { tree.scan(all.0, all.1) };
        while let Ok(true) = scan.next_batch(&mut batch) {}
    }
    let _ = tree.check();
    let mut purge = tree.delete_range(&key(prng.below(400)), None);
    while let Ok(false) = purge.step(10, |_, _, _| {}) {}
}

/// Checksums detect damage by the disk. If damaged words get in all the same, operations return errors or wrong data, but none panics or loops for ever.
#[test]
fn no_page_content_causes_a_panic() {
    for seed in 0..300 {
        let pager = open_pager(SimFolder::new(seed), Background::Manual);
        let tree = small_tree(&pager, 48, [LatchMode::Optimistic, LatchMode::Latched][seed as usize % 2]);
        for number in 0..150 {
            put(&tree, &key(number), &[7; 20]);
        }
        let mut prng = Prng::new(seed);
        let pages: Vec<u64> = (11..pager.space_use().0).filter(|pid| pager.is_allocated(*pid)).collect();
        for _ in 0..1 + prng.below(3) {
            let page = pager.exclusive(pages[prng.below(pages.len() as u64) as usize]).unwrap();
            for _ in 0..1 + prng.below(3) {
                // Header and slots matter most; small changes stay plausible.
                let word = if prng.chance(0.7) { 4 + prng.below(12) } else { 4 + prng.below(44) } as usize;
                let old = page.page().load(word);
                let new = match prng.below(3) {
                    0 => prng.next_u64(),
                    1 => old ^ 1 << prng.below(64),
                    _ => old & 0xFFFF_FF00_FFFF_FF00 | prng.next_u64() & 0x0000_003F_0000_003F,
                };
                page.store(word, new);
            }
        }
        use_all(&tree, &mut prng);
    }
}

#[test]
fn a_damaged_page_is_named() {
    for mode in [LatchMode::Optimistic, LatchMode::Latched] {
        let pager = open_pager(SimFolder::new(1), Background::Manual);
        let tree = small_tree(&pager, 48, mode);
        for number in 0..100 {
            put(&tree, &key(number), b"value");
        }
        // The root's first child becomes a page that is not a node.
        let victim = {
            let root = pager.exclusive(tree.root()).unwrap();
            let offset = (root.page().load(8) >> 16 & 0x1FF) as usize;
            root.page().load(offset)
        };
        pager.exclusive(victim).unwrap().set_kind(9, 0, 0);
        let error = tree.get(b"", &mut Vec::new()).unwrap_err();
        assert!(matches!(&error, Error::Corrupt { page: Some(page), .. } if *page == victim), "{error}");
        let error = tree.modify(b"", None, |_, change| change.put(&[b"x"])).unwrap_err();
        assert!(matches!(error, Error::Corrupt { page: Some(page), .. } if page == victim));
        assert!(!tree.check().unwrap().is_sound());
    }
}

/// The disk fills up in the middle of splits: a change fails and leaves no trace, or it is done although its split is not posted.
#[test]
fn a_full_disk_stops_writes_only() {
    let mut refused = 0;
    for seed in 0..6 {
        let folder = SimFolder::new(seed);
        let pager = open_pager(folder.clone(), Background::Manual);
        let tree = small_tree(&pager, 32, LatchMode::Optimistic);
        let mut model = BTreeMap::new();
        let mut prng = Prng::new(seed);
        folder.set_capacity(Some(folder.used_bytes() + (seed << 18)));
        for _ in 0..1500 {
            let key = key(prng.below(100_000));
            let value = prng.next_u64().to_le_bytes();
            match tree.modify(&key, None, |_, change| change.put(&[&value])) {
                Ok(_) => drop(model.insert(key, value.to_vec())),
                Err(Error::DiskFull { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_equal(&tree, &model);
        folder.set_capacity(None);
        let _ = pager.background_step();
        for (key, value) in &mut model {
            *value = b"again, a little longer".to_vec();
            put(&tree, key, value);
        }
        assert_eq!(assert_sound(&tree).incomplete, 0);
        assert_equal(&tree, &model);
    }
    assert!(refused > 0, "the disk was never full");
}

fn assert_equal(tree: &Tree, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    assert_sound(tree);
    let mut found = BTreeMap::new();
    let mut batch = Batch::new();
    let mut scan = tree.scan(Bound::Unbounded, Bound::Unbounded);
    while scan.next_batch(&mut batch).unwrap() {
        found.extend(batch.iter().map(|entry| (entry.key.to_vec(), entry.value.to_vec())));
    }
    assert!(found == *model);
}

/// A tree many times the size of memory, changed and read by several threads while its pages are evicted and read in again.
#[test]
fn pages_are_evicted_under_readers() {
    let options = Options {
        frame_bytes: 1 << 20,
        ring_bytes: 1 << 20,
        segment_bytes: 8 << 20,
        background: Background::Threads,
        ..Options::default()
    };
    let redo = RedoTable::new().own(btree::redo::KINDS, btree::redo::redo());
    let clock = Arc::new(os::SimClock::new(1));
    let folder = SimFolder::new(5);
    let pager = Pager::open(folder, clock, options, redo, &mut NoObserver, 7, &|_| {}).unwrap().pager;
    let tree = small_tree(&pager, 100, LatchMode::Optimistic);
    std::thread::scope(|scope| {
        for worker in 0..3u64 {
            let tree = &tree;
            scope.spawn(move || {
                let mut prng = Prng::new(worker);
                for _ in 0..4000 {
                    // Each worker writes keys of its own and reads the keys of all.
                    let own = prng.below(3000) * 3 + worker;
                    put(tree, &key(own), &own.to_le_bytes());
                    let other = prng.below(9000);
                    if let Some(value) = get(tree, &key(other)) {
                        assert_eq!(value, other.to_le_bytes());
                    }
                    if prng.chance(0.2) {
                        delete(tree, &key(own));
                    }
                }
            });
        }
    });
    let report = assert_sound(&tree);
    assert!(report.nodes[0] > 400, "the tree is larger than memory: {:?}", report.nodes);
    let keys: Vec<Vec<u8>> = (0..64).map(key).collect();
    let names: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut hints = Vec::new();
    tree.locate_leaves(&names, &mut hints);
    tree.read_missing(&hints);
    let (sender, called) = std::sync::mpsc::channel();
    hints.clear();
    tree.locate_leaves(&names, &mut hints);
    let absent = hints.iter().filter(|hints| matches!(hints, btree::LeafHint::Missing(_))).count();
    let callback = |at: usize| -> pager::ReadCallback {
        let sender = sender.clone();
        Box::new(move || sender.send(at).unwrap())
    };
    tree.fetch_missing(&hints, (0..absent).map(callback).collect());
    let mut seen: Vec<usize> = (0..absent)
        .map(|_| {
            called.recv_timeout(std::time::Duration::from_secs(20)).expect("every requested page has its callback")
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..absent).collect::<Vec<_>>(), "each once");
    pager.close().unwrap();
}

/// A cached-only read names the missing pages; once they have been read it finds the same as a read that waits.
#[test]
fn cached_only_reads_name_the_missing_pages() {
    let options = Options { frame_bytes: 1 << 20, background: Background::Manual, ..Options::default() };
    let redo = RedoTable::new().own(btree::redo::KINDS, btree::redo::redo());
    let clock = Arc::new(os::SimClock::new(1));
    let pager = Pager::open(SimFolder::new(8), clock, options, redo, &mut NoObserver, 7, &|_| {}).unwrap().pager;
    let tree = small_tree(&pager, 100, LatchMode::Optimistic);
    let name = |number: u64| format!("key {number:05}").into_bytes();
    for number in 0..9000u64 {
        put(&tree, &name(number), &number.to_le_bytes());
    }
    let mut prng = Prng::new(3);
    let (mut absences, mut most) = (0, 0);
    for step in 0..400u64 {
        let from = prng.below(8900);
        let (low, high) = (name(from), name(from + 60));
        let to = if step % 5 == 0 { Bound::Unbounded } else { Bound::Excluded(&high[..]) };
        let mut span = ScanState::new(Bound::Included(&low), to, step % 2 == 1);
        let (mut batch, mut found) = (Batch::new(), Vec::new());
        while found.len() < 60 {
            match span.next_batch(&tree, ReadMode::CachedOnly, &mut batch) {
                Ok(true) => found.extend(batch.iter().map(|entry| entry.key.to_vec())),
                Ok(false) => break,
                Err(Error::PageMiss(page)) => {
                    let absent = span.missing_pages(&tree);
                    assert!(absent.iter().all(|page| !pager.is_resident(*page)));
                    assert!(absent.first().is_none_or(|first| *first == page), "{absent:?} begins with {page}");
                    pager.prefetch_many(&[&[page], &absent[..]].concat());
                    (absences, most) = (absences + 1, most.max(absent.len()));
                }
                Err(error) => panic!("{error}"),
            }
        }
        let mut expected: Vec<_> = (from..from + 60).map(name).collect();
        if step % 2 == 1 {
            expected = if step % 5 == 0 { (8940..9000).map(name).collect() } else { expected };
            expected.reverse();
        }
        found.truncate(60);
        assert_eq!(found, expected, "step {step}");
        let mut out = Vec::new();
        match tree.get_in_mode(ReadMode::CachedOnly, &name(from / 2), &mut out) {
            Ok(found) => assert!(found.present && out == (from / 2).to_le_bytes()),
            Err(Error::PageMiss(page)) => assert!(!pager.is_resident(page)),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(absences > 200 && most > 2, "{absences} {most}");
}

/// Two trees and a user of raw extents reuse each other's freed pages while readers are on their way.
#[test]
fn a_freed_page_may_become_anything() {
    let pager = open_pager(SimFolder::new(6), Background::Threads);
    let trees = [3, 4].map(|id| Tree::create_sized(&pager, id, None, 32).unwrap());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let mut workers = Vec::new();
        for (index, tree) in trees.iter().enumerate() {
            workers.push(scope.spawn(move || {
                for round in 0..30u64 {
                    for number in 0..150 {
                        put(tree, &key(number), &[index as u8; 9]);
                    }
                    // One record names an extent of two pages, which is freed with it.
                    let pager = tree.pager();
                    let first = pager.reserve(2, pager::NO_PAGE).unwrap();
                    pager.extent_write(first, 0, &[round as u8; 8192]).unwrap();
                    let named = |change: &mut btree::Change| {
                        change.allocated(first, 2);
                        change.put(&[b"extent", &first.to_le_bytes()]);
                    };
                    tree.modify(b"\0\0\0\x01named", None, |_, change| named(change)).unwrap();
                    let mut purge = tree.delete_range(b"\0\0\0\x01", Some(b"\0\0\0\x02"));
                    let each = |_: &[u8], value: &[u8], freed: &mut btree::Freed| {
                        if let Some(first) = value.strip_prefix(b"extent") {
                            freed.free(u64::from_le_bytes(first.try_into().unwrap()), 2);
                        }
                    };
                    while !purge.step(3, each).unwrap() {}
                }
            }));
        }
        for (index, tree) in trees.iter().enumerate() {
            for mode in [LatchMode::Optimistic, LatchMode::Latched] {
                let tree = tree.clone().with_latch_mode(mode);
                scope.spawn(move || {
                    let mut prng = Prng::new(index as u64);
                    while !stop.load(Ordering::Relaxed) {
                        if let Some(value) = get(&tree, &key(prng.below(150))) {
                            assert_eq!(value, [index as u8; 9]);
                        }
                    }
                });
            }
        }
        for worker in workers {
            worker.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    for tree in &trees {
        assert_eq!(assert_sound(tree).records, 0);
    }
    pager.close().unwrap();
}

/// A scan is between two keys; both are removed, their leaf too, and others are inserted.
#[test]
fn a_scan_outlives_the_removal_of_its_leaf() {
    for backward in [false, true] {
        let pager = open_pager(SimFolder::new(1), Background::Manual);
        let tree = small_tree(&pager, 32, LatchMode::Optimistic);
        for number in 0..200u8 {
            put(&tree, &[b'k', number], b"v");
        }
        let mut batch = Batch::new();
        let mut scan = if backward {
            tree.scan_back(Bound::Unbounded, Bound::Unbounded)
        } else {
            tree.scan(Bound::Unbounded, Bound::Unbounded)
        };
        let mut seen = Vec::new();
        while scan.next_batch(&mut batch).unwrap() {
            seen.extend(batch.iter().map(|entry| entry.key[1]));
            let last = *seen.last().unwrap();
            // The leaf just read is removed, and so is the next one; the leaves beyond stay, are split, or are created again.
            let (from, to) = if backward { (last.saturating_sub(5), last) } else { (last, last.saturating_add(5)) };
            while !tree.delete_range(&[b'k', from], Some(&[b'k', to])).step(100, |_, _, _| {}).unwrap() {}
            put(&tree, &[b'k', if backward { from } else { to }], b"anew");
        }
        let ordered = if backward { seen.is_sorted_by(|a, b| a > b) } else { seen.is_sorted_by(|a, b| a < b) };
        assert!(ordered && seen.len() > 50);
        assert_sound(&tree);
    }
}
