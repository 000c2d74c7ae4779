//! Random operations on trees with tiny pages, compared with `BTreeMap` after each.

use std::collections::BTreeMap;
use std::ops::Bound;

use btree::{Batch, LatchMode, Tree};
use os::SimFolder;
use pager::Background;
use proptest::prelude::*;

use crate::{assert_sound, delete, get, open_pager, put, small_tree};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Get(Vec<u8>),
    Scan(Vec<u8>, Vec<u8>, usize),
    Neighbours(Vec<u8>),
    DeleteRange(Vec<u8>, Option<Vec<u8>>),
    /// Ascending keys with this prefix, and their number.
    Ascending(u8, u8),
}

/// Keys of few letters and lengths, so that they collide; zero bytes, which padding might hide; common prefixes of all lengths.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let letters = prop::sample::select(vec![0u8, 1, b'a', b'b', 0xFF]);
    let free = prop::collection::vec(letters, 0..6);
    (free, 0..4usize).prop_map(|(mut tail, prefix)| {
        let mut key = b"\0\0\0\x01usr:"[..[0, 3, 8, 8][prefix]].to_vec();
        key.append(&mut tail);
        key
    })
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..12),
        1 => prop::collection::vec(any::<u8>(), 40..72),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (key(), value()).prop_map(|(key, value)| Step::Put(key, value)),
        4 => key().prop_map(Step::Delete),
        2 => key().prop_map(Step::Get),
        1 => (key(), key(), 1..9usize).prop_map(|(from, to, limit)| Step::Scan(from, to, limit)),
        1 => key().prop_map(Step::Neighbours),
        1 => (key(), prop::option::of(key())).prop_map(|(from, to)| Step::DeleteRange(from, to)),
        1 => (any::<u8>(), 1..30u8).prop_map(|(prefix, count)| Step::Ascending(prefix, count)),
    ]
}

fn run(tree: &Tree, model: &mut Model, step: &Step) {
    match step {
        Step::Put(key, value) => {
            put(tree, key, value);
            model.insert(key.clone(), value.clone());
        }
        Step::Delete(key) => assert_eq!(delete(tree, key), model.remove(key).is_some()),
        Step::Get(key) => {
            assert_eq!(get(tree, key).as_ref(), model.get(key));
            let (mut hints, mut value) = (Vec::new(), Vec::new());
            tree.locate_leaves(std::slice::from_ref(key), &mut hints);
            let found = tree.get_with_hint(hints[0], key, &mut value).unwrap();
            assert_eq!(found.present.then_some(&value), model.get(key));
        }
        Step::Scan(from, to, limit) => assert_scans(tree, model, from, to, *limit),
        Step::Neighbours(key) => {
            let pair = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
            let above = (Bound::Excluded(key.clone()), Bound::Unbounded);
            let after = tree.first_after(key).unwrap().map(|hit| (hit.key, hit.value));
            assert_eq!(after, model.range(above).next().map(pair));
            let before = tree.last_before(key).unwrap().map(|hit| (hit.key, hit.value));
            assert_eq!(before, model.range(..key.clone()).next_back().map(pair));
            let mut prng = stdx::prng::Prng::new(key.len() as u64);
            match tree.random(key, None, &mut prng).unwrap() {
                Some(hit) => assert_eq!(model.get(&hit.key), Some(&hit.value)),
                None => assert!(model.range(key.clone()..).next().is_none()),
            }
        }
        Step::DeleteRange(from, to) => {
            let mut gone = Vec::new();
            let mut purge = tree.delete_range(from, to.as_deref());
            while !purge.step(3, |key, value, _| gone.push((key.to_vec(), value.to_vec()))).unwrap() {}
            let inside = |key: &Vec<u8>| key >= from && to.as_ref().is_none_or(|to| key < to);
            let expected: Vec<_> =
                model.iter().filter(|(key, _)| inside(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
            assert_eq!(gone, expected);
            model.retain(|key, _| !inside(key));
        }
        Step::Ascending(prefix, count) => {
            for number in 0..*count {
                let key = [&[*prefix][..], &[0, number], b"end"].concat();
                put(tree, &key, &[number]);
                model.insert(key, vec![number]);
            }
        }
    }
}

fn assert_scans(tree: &Tree, model: &Model, from: &[u8], to: &[u8], limit: usize) {
    let expected: Vec<(Vec<u8>, Vec<u8>)> = model
        .iter()
        .filter(|(key, _)| key.as_slice() >= from && key.as_slice() <= to)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut batch = Batch::new();
    for limit in [limit, usize::MAX] {
        let collect = |mut scan: btree::Scan<'_>, batch: &mut Batch| {
            let mut found = Vec::new();
            while scan.next_batch(batch).unwrap() {
                assert!(batch.len() <= limit);
                found.extend(batch.iter().map(|entry| (entry.key.to_vec(), entry.value.to_vec())));
            }
            found
        };
        let (from, to) = (Bound::Included(from), Bound::Included(to));
        assert_eq!(collect(tree.scan(from, to).with_limit(limit), &mut batch), expected);
        let mut backward = collect(tree.scan_back(from, to).with_limit(limit), &mut batch);
        backward.reverse();
        assert_eq!(backward, expected);
    }
}

fn assert_equal(tree: &Tree, model: &Model) {
    let mut found = Vec::new();
    let mut batch = Batch::new();
    let mut scan = tree.scan(Bound::Unbounded, Bound::Unbounded);
    while scan.next_batch(&mut batch).unwrap() {
        found.extend(batch.iter().map(|entry| (entry.key.to_vec(), entry.value.to_vec())));
    }
    assert!(found.iter().map(|(key, value)| (key, value)).eq(model.iter()));
}

fn behaves(steps: &[Step], end: usize, mode: LatchMode) {
    let pager = open_pager(SimFolder::new(1), Background::Manual);
    let tree = small_tree(&pager, end, mode);
    let mut model = Model::new();
    for step in steps {
        run(&tree, &mut model, step);
    }
    let report = assert_sound(&tree);
    assert_eq!(report.records, model.len() as u64);
    assert_equal(&tree, &model);
    // All records and pages go: one leaf and its ancestors are left.
    while !tree.delete_range(b"", None).step(1000, |_, _, _| {}).unwrap() {}
    let report = assert_sound(&tree);
    assert_eq!(report.records, 0);
    assert!(report.nodes.iter().all(|nodes| *nodes == 1), "left over: {:?}", report.nodes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn is_a_sorted_map(steps in prop::collection::vec(step(), 1..400), end in prop::sample::select(vec![32usize, 40, 64, 512])) {
        behaves(&steps, end, LatchMode::Optimistic);
    }

    #[test]
    fn is_a_sorted_map_under_latches(steps in prop::collection::vec(step(), 1..400), end in prop::sample::select(vec![32usize, 48])) {
        behaves(&steps, end, LatchMode::Latched);
    }
}

/// The longest keys and values: each node holds very few records.
#[test]
fn longest_keys_and_values() {
    let pager = open_pager(SimFolder::new(1), Background::Manual);
    let tree = small_tree(&pager, pager::PAGE_WORDS, LatchMode::Optimistic);
    let mut model = Model::new();
    let mut prng = stdx::prng::Prng::new(3);
    for _ in 0..600 {
        let mut key = vec![b'k'; Tree::KEY_MAX - 4 * prng.below(2) as usize];
        let at = key.len() - 1 - prng.below(4) as usize * 180;
        key[at] = prng.below(256) as u8;
        let mut value = vec![0; [0, 5, 600, Tree::VALUE_MAX][prng.below(4) as usize]];
        prng.fill(&mut value);
        put(&tree, &key, &value);
        model.insert(key, value);
    }
    assert_sound(&tree);
    assert_equal(&tree, &model);
}

#[test]
fn ascending_inserts_fill_the_leaves() {
    let pager = open_pager(SimFolder::new(1), Background::Manual);
    let tree = small_tree(&pager, pager::PAGE_WORDS, LatchMode::Optimistic);
    for number in 0..5000u64 {
        put(&tree, format!("user:{number:09}").as_bytes(), &[7; 100]);
    }
    let report = assert_sound(&tree);
    let fill = report.leaf_words_used as f64 / report.leaf_words as f64;
    assert!(fill > 0.9, "leaves are {fill:.2} full");
}

#[test]
fn random_records_come_from_the_whole_range() {
    let pager = open_pager(SimFolder::new(1), Background::Manual);
    let tree = small_tree(&pager, 64, LatchMode::Optimistic);
    for number in 0..200u8 {
        put(&tree, &[b'k', number], &[number]);
    }
    let mut prng = stdx::prng::Prng::new(5);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..4000 {
        let hit = tree.random(b"k\x10", Some(b"k\xA0"), &mut prng).unwrap().expect("there are some");
        assert!((0x10..0xA0).contains(&hit.key[1]) && hit.value == hit.key[1..]);
        seen.insert(hit.key[1]);
    }
    assert!(seen.len() > 130, "only {} of 144 were ever drawn", seen.len());
    assert_eq!(tree.random(b"x", Some(b"y"), &mut prng).unwrap(), None);
}
