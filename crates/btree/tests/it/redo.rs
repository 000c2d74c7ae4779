//! Redo compared with first execution: a database rebuilt from the WAL alone must have exactly the words of the one that ran (BT-8), and wherever the WAL
//! ends, the tree is sound and can be used.

use std::collections::BTreeMap;
use std::sync::Arc;

use btree::{LatchMode, Tree};
use os::SimFolder;
use pager::{Background, NoObserver, Observer, Options, Pager, Record, RedoTable};
use stdx::prng::Prng;

use crate::{assert_sound, delete, open_pager, put, small_tree};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change that was made, and the end of its mini-transaction.
struct Made {
    lsn: u64,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

fn key(prng: &mut Prng) -> Vec<u8> {
    let mut key = b"tenant"[..prng.below(7) as usize].to_vec();
    for _ in 0..1 + prng.below(9) {
        key.push(b'a' + prng.below(5) as u8);
    }
    key
}

/// Returns a new value, and whether it is the old one with a few bytes changed.
fn next_value(old: Option<&Vec<u8>>, prng: &mut Prng) -> (Vec<u8>, bool) {
    let mut value = vec![0; prng.below(60) as usize];
    prng.fill(&mut value);
    match old.filter(|_| prng.chance(0.7)) {
        Some(old) => {
            let from = prng.below(old.len() as u64 + 1) as usize;
            let (to, most) = ((from + prng.below(3) as usize).min(old.len()), (60 - old.len()).min(4));
            value.truncate(most);
            let mut similar = old.clone();
            similar.splice(from..to, value);
            (similar, true)
        }
        None => (value, false),
    }
}

/// Makes random changes, some of them inside transactions, and sometimes removes a range.
fn work(tree: &Tree, prng: &mut Prng, steps: usize) -> Vec<Made> {
    let mut made = Vec::new();
    let mut model = Model::new();
    for step in 0..steps {
        let (key, txn) = (key(prng), prng.chance(0.3).then_some(step as u64 + 1));
        if prng.chance(0.004) {
            let mut gone = Vec::new();
            let mut purge = tree.delete_range(&key, Some(b"tf"));
            while !purge.step(1, |key, _, _| gone.push(key.to_vec())).unwrap() {}
            let lsn = tree.pager().wal_head();
            made.extend(gone.into_iter().map(|key| Made { lsn, key, value: None }));
            model.retain(|old, _| old < &key || old.as_slice() >= b"tf");
        } else if prng.chance(0.35) {
            let lsn = tree.modify(&key, txn, |_, change| change.delete()).unwrap().lsn;
            assert_eq!(lsn > 0, model.remove(&key).is_some());
            made.push(Made { lsn, key, value: None });
        } else {
            let (value, is_similar) = next_value(model.get(&key), prng);
            let put = |change: &mut btree::Change| match is_similar {
                true => change.put_similar(&[&value]),
                false => change.put(&[&value]),
            };
            let lsn = tree.modify(&key, txn, |_, change| put(change)).unwrap().lsn;
            model.insert(key.clone(), value.clone());
            made.push(Made { lsn, key, value: Some(value) });
        }
    }
    made
}

fn open_until(folder: Arc<SimFolder>, lsn: Option<u64>, observer: &mut dyn Observer) -> Arc<Pager> {
    let mut options =
        Options { frame_bytes: 16 << 20, ring_bytes: 1 << 20, segment_bytes: 4 << 20, ..Options::default() };
    options.background = Background::Manual;
    options.recovery_target.lsn = lsn;
    // Several batches.
    options.recovery_bytes = 32 << 10;
    let redo = RedoTable::new().own(btree::redo::KINDS, btree::redo::redo());
    let clock = Arc::new(os::SimClock::new(1));
    Pager::open(folder, clock, options, redo, observer, 7, &|_| {}).expect("opens").pager
}

/// Returns the words of every allocated page of the tree. The checksum is computed when a page is written, and the upper half of word 0 belongs to the pager.
fn words(pager: &Pager) -> BTreeMap<u64, Vec<u64>> {
    let mut pages = BTreeMap::new();
    for pid in 2..pager.space_use().0 {
        let formatted = pager.is_allocated(pid) && pager.is_formatted(pid).unwrap();
        let Some(page) = formatted.then(|| pager.exclusive(pid).unwrap()) else { continue };
        if page.page().kind() == pager::page::kind::TREE {
            let mut words: Vec<u64> = (0..pager::PAGE_WORDS).map(|at| page.page().load(at)).collect();
            words[0] &= 0xFFFF_FFFF;
            words[3] = 0;
            pages.insert(pid, words);
        }
    }
    pages
}

#[test]
fn redo_leaves_the_same_words() {
    let mut compared = 0;
    for seed in 0..12 {
        let folder = SimFolder::new(seed);
        let pager = open_pager(folder.clone(), Background::Manual);
        let tree = small_tree(&pager, [32, 48, 100, 512][seed as usize % 4], LatchMode::Optimistic);
        work(&tree, &mut Prng::new(seed), 3000);
        pager.flush_to(pager.wal_head()).unwrap();
        let live = words(&pager);
        compared += live.len();
        let copy = open_until(folder.crash(), None, &mut NoObserver);
        let redone = words(&copy);
        assert_eq!(live.keys().collect::<Vec<_>>(), redone.keys().collect::<Vec<_>>());
        for (pid, words) in &live {
            for (at, word) in words.iter().enumerate() {
                assert_eq!(*word, redone[pid][at], "seed {seed}, page {pid}, word {at}");
            }
        }
        assert_sound(&Tree::open(&copy, 3, tree.root()));
    }
    assert!(compared > 200, "only {compared} pages");
}

/// Replays the changes that `decode` returns, which is all that the engine sees.
#[derive(Default)]
struct Follower {
    model: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    befores: usize,
    patches: usize,
}

impl Observer for Follower {
    fn observe(&mut self, record: &Record<'_>) {
        let Some(change) = btree::redo::decode(record) else { return };
        assert_eq!(change.tree, 3);
        let word = record.lsn_end | if record.txn.is_some() { btree::WORD_TXN } else { 0 };
        let patched = change.patch.map(|patch| {
            let mut value = Vec::new();
            patch.apply(&self.model[change.key].1, &mut value).unwrap();
            value
        });
        self.patches += usize::from(patched.is_some());
        let before = match patched.or(change.after.map(<[u8]>::to_vec)) {
            Some(value) => self.model.insert(change.key.to_vec(), (word, value)),
            None => self.model.remove(change.key),
        };
        assert_eq!(before.is_some(), change.kind != btree::redo::ChangeKind::Insert);
        if record.txn.is_some() {
            assert_eq!(change.before, before.as_ref().map(|(word, value)| (*word, value.as_slice())));
            self.befores += 1;
        }
    }
}

#[test]
fn wal_records_describe_every_change() {
    let folder = SimFolder::new(4);
    let pager = open_pager(folder.clone(), Background::Manual);
    let tree = small_tree(&pager, 64, LatchMode::Optimistic);
    let mut prng = Prng::new(4);
    for step in 0..2000u64 {
        let (key, txn) = (key(&mut prng), prng.chance(0.5).then_some(step + 1));
        if prng.chance(0.3) {
            tree.modify(&key, txn, |_, change| change.delete()).unwrap();
        } else {
            let value = [&step.to_le_bytes()[..], &[7; 40], &key];
            tree.modify(&key, txn, |_, change| change.put_similar(&value)).unwrap();
        }
    }
    pager.flush_to(pager.wal_head()).unwrap();
    let mut follower = Follower::default();
    let copy = open_until(folder.crash(), None, &mut follower);
    assert!(follower.befores > 500 && follower.patches > 50, "{} patches", follower.patches);
    let tree = Tree::open(&copy, 3, tree.root());
    assert_eq!(assert_sound(&tree).records, follower.model.len() as u64);
    for (key, (word, value)) in &follower.model {
        let mut found = Vec::new();
        assert_eq!(tree.get(key, &mut found).unwrap(), btree::Found { present: true, word: *word });
        assert_eq!(found, *value);
    }
}

/// Collects the ends of all mini-transactions.
#[derive(Default)]
struct Ends(Vec<u64>);

impl Observer for Ends {
    fn observe(&mut self, record: &Record<'_>) {
        self.0.push(record.lsn_end);
    }
}

/// Recovers to the end of each mini-transaction in turn: between the two steps of one or several splits all keys are found, and further writes complete the
/// splits.
#[test]
fn every_prefix_of_the_wal_recovers_to_a_sound_tree() {
    let mut incomplete_seen = 0;
    for seed in 0..2 {
        let folder = SimFolder::new(seed);
        let pager = open_pager(folder.clone(), Background::Manual);
        let tree = small_tree(&pager, 32, LatchMode::Optimistic);
        let first = pager.wal_head();
        let made = work(&tree, &mut Prng::new(seed + 50), 300);
        pager.flush_to(pager.wal_head()).unwrap();
        let mut ends = Ends::default();
        drop(open_until(folder.crash(), None, &mut ends));
        ends.0.dedup();
        let mut prng = Prng::new(seed);
        for end in ends.0.into_iter().filter(|end| *end > first) {
            if !prng.chance(0.2) {
                continue;
            }
            let copy = open_until(folder.crash(), Some(end), &mut NoObserver);
            let tree = Tree::open(&copy, 3, tree.root())
                .with_latch_mode([LatchMode::Optimistic, LatchMode::Latched][end as usize / 8 % 2]);
            let report = assert_sound(&tree);
            incomplete_seen += report.incomplete;
            let mut model = Model::new();
            let complete = made.iter().filter(|made| made.lsn <= end);
            for made in complete.filter(|made| made.lsn > 0) {
                match &made.value {
                    Some(value) => drop(model.insert(made.key.clone(), value.clone())),
                    None => drop(model.remove(&made.key)),
                }
            }
            // A removal that was cut short has removed a part of its range; every other key is there.
            for (key, value) in &model {
                let found = crate::get(&tree, key);
                let is_removed = made.iter().any(|made| made.lsn > end && made.value.is_none() && made.key == *key);
                assert!(found.as_ref() == Some(value) || (found.is_none() && is_removed), "key {key:?} at {end}");
            }
            for key in model.keys() {
                put(&tree, key, b"more");
                delete(&tree, key);
            }
            assert_eq!(assert_sound(&tree).incomplete, 0, "every key was visited by a writer");
        }
    }
    assert!(incomplete_seen > 10, "the cuts hit {incomplete_seen} unfinished splits only");
}

/// Regression (seed 10598 of `sim random`): an empty leaf to the right of one that is not in the parent yet is no damage.
#[test]
fn a_range_is_removed_beside_unfinished_splits() {
    for seed in 0..6 {
        let folder = SimFolder::new(seed);
        let pager = open_pager(folder.clone(), Background::Manual);
        let tree = small_tree(&pager, 32, LatchMode::Optimistic);
        let first = pager.wal_head();
        work(&tree, &mut Prng::new(seed + 90), 120);
        pager.flush_to(pager.wal_head()).unwrap();
        let mut ends = Ends::default();
        drop(open_until(folder.crash(), None, &mut ends));
        ends.0.dedup();
        for end in ends.0.into_iter().filter(|end| *end > first) {
            let copy = open_until(folder.crash(), Some(end), &mut NoObserver);
            let tree = Tree::open(&copy, 3, tree.root());
            // From the right, so that each leaf is emptied before the writer has visited its left neighbours.
            let mut keys = Vec::new();
            let mut scan = tree.scan(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
            let mut batch = btree::Batch::new();
            while scan.next_batch(&mut batch).unwrap() {
                keys.extend(batch.iter().map(|record| record.key.to_vec()));
            }
            for from in keys.iter().rev().chain([&Vec::new()]) {
                let mut purge = tree.delete_range(from, None);
                while !purge.step(4, |_, _, _| {}).unwrap_or_else(|error| panic!("seed {seed}, cut at {end}: {error}"))
                {
                }
            }
            assert_eq!(assert_sound(&tree).nodes[0], 1, "all leaves but the first are gone");
        }
    }
}
