//! Exact counts and the n-th record of a range, against a model.

use std::collections::BTreeSet;

use btree::LatchMode;
use os::SimFolder;
use pager::Background;
use stdx::prng::Prng;

use crate::{delete, open_pager, put, small_tree};

fn key(number: u64) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

#[test]
fn ranges_are_counted_and_their_records_numbered_as_a_model_says() {
    for mode in [LatchMode::Optimistic, LatchMode::Latched] {
        let pager = open_pager(SimFolder::new(5), Background::Manual);
        let tree = small_tree(&pager, 80, mode);
        let (mut prng, mut model) = (Prng::new(9), BTreeSet::new());
        for step in 0..4000 {
            let number = key(prng.below(1500));
            if prng.chance(if step < 2000 { 0.8 } else { 0.4 }) {
                put(&tree, &number, b"value");
                model.insert(number);
            } else {
                assert_eq!(delete(&tree, &number), model.remove(&number));
            }
            let (from, to) = (key(prng.below(1600)), prng.chance(0.9).then(|| key(prng.below(1600))));
            let inside: Vec<&Vec<u8>> =
                model.iter().filter(|key| **key >= from && to.as_ref().is_none_or(|to| *key < to)).collect();
            let limit = prng.below(1500);
            let count = tree.count(&from, to.as_deref(), limit).expect("read");
            assert_eq!(count, limit.min(inside.len() as u64), "step {step}");
            let n = prng.below(inside.len() as u64 + 3);
            let found = tree.skip(&from, to.as_deref(), n).expect("read");
            assert_eq!(found.as_ref(), inside.get(n as usize).copied(), "step {step}");
        }
    }
}

#[test]
fn a_count_under_change_is_one_that_the_range_had_in_each_leaf() {
    let pager = open_pager(SimFolder::new(6), Background::Manual);
    let tree = small_tree(&pager, 80, LatchMode::Optimistic);
    // Even numbers stay, odd ones come and go.
    for number in (0..600).step_by(2) {
        put(&tree, &key(number), b"value");
    }
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut prng = Prng::new(1);
            for _ in 0..20_000 {
                let number = key(prng.below(300) * 2 + 1);
                if prng.chance(0.5) {
                    put(&tree, &number, b"value");
                } else {
                    delete(&tree, &number);
                }
            }
        });
        while !writer.is_finished() {
            let count = tree.count(&key(0), Some(&key(600)), u64::MAX).expect("read");
            assert!((300..=600).contains(&count), "{count}");
            let third = tree.skip(&key(0), None, 299).expect("read").expect("there are as many");
            assert!(third <= key(598), "the even ones alone lead so far");
        }
        writer.join().expect("it ends");
    });
}
