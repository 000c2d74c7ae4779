//! Range estimates and random leaves.

use btree::LatchMode;
use os::SimFolder;
use pager::Background;
use stdx::prng::Prng;

use crate::{delete, open_pager, put, small_tree};

fn key(number: u32) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

#[test]
fn a_small_range_is_counted_and_a_large_one_is_estimated() {
    for mode in [LatchMode::Optimistic, LatchMode::Latched] {
        let pager = open_pager(SimFolder::new(5), Background::Manual);
        let tree = small_tree(&pager, 80, mode);
        let mut prng = Prng::new(9);
        let mut numbers: Vec<(u64, u32)> = (0..20_000).map(|number| (prng.next_u64(), number)).collect();
        numbers.sort_unstable();
        for (_, number) in numbers {
            put(&tree, &key(number), b"value");
        }
        let about = |from: u32, to: u32| tree.estimate_range(&key(from), Some(&key(to))).expect("read").records;
        for from in [0, 1, 777, 19_990] {
            assert_eq!(about(from, from), 0.0);
            assert_eq!(about(from, from + 1), 1.0, "from {from}");
            assert_eq!(about(from, from + 2), 2.0, "from {from}");
        }
        for (from, to) in [(0, 20_000), (5_000, 6_000), (100, 15_000), (19_000, 30_000)] {
            let true_count = f64::from(to.min(20_000) - from);
            let ratio = about(from, to) / true_count;
            assert!((0.7..1.4).contains(&ratio), "{mode:?} {from}..{to}: {ratio}");
        }
        let all = tree.estimate_range(&[], None).expect("read");
        assert!((0.7..1.4).contains(&(all.records / 20_000.0)), "{all:?}");
        let leaves = tree.check().expect("readable").nodes[0] as f64;
        assert!((0.7..1.4).contains(&(all.leaves / leaves)), "{all:?} of {leaves}");
        assert_eq!(tree.estimate_range(b"x", Some(b"y")).expect("read").records, 0.0);
        for number in (0..20_000).step_by(2) {
            delete(&tree, &key(number));
        }
        let ratio = about(0, 20_000) / 10_000.0;
        assert!((0.7..1.4).contains(&ratio), "half of them: {ratio}");
    }
}

#[test]
fn random_leaves_come_from_the_whole_tree() {
    let pager = open_pager(SimFolder::new(6), Background::Manual);
    let tree = small_tree(&pager, 80, LatchMode::Latched);
    let mut prng = Prng::new(3);
    let mut batch = btree::Batch::new();
    tree.random_leaf(&mut prng, &mut batch).expect("read");
    assert!(batch.is_empty());
    for number in 0..5_000 {
        put(&tree, &key(number), b"value");
    }
    let mut quarters = [0; 4];
    for _ in 0..400 {
        tree.random_leaf(&mut prng, &mut batch).expect("read");
        let first: usize = std::str::from_utf8(batch.get(0).key).expect("digits").parse().expect("a number");
        quarters[first / 1250] += 1;
    }
    assert!(quarters.iter().all(|quarter| *quarter > 50), "{quarters:?}");
}

/// Regression: a child was drawn from all children up to the end of a node, even where the range ended before.
#[test]
fn a_record_of_a_range_is_drawn_under_latches_too() {
    let pager = open_pager(SimFolder::new(7), Background::Manual);
    let tree = small_tree(&pager, 80, LatchMode::Latched);
    for number in 0..5_000 {
        put(&tree, &key(number), b"value");
    }
    let mut prng = Prng::new(4);
    for _ in 0..200 {
        let hit = tree.random(&key(1000), Some(&key(1100)), &mut prng).expect("sound").expect("there are some");
        assert!(hit.key >= key(1000) && hit.key < key(1100));
    }
}
