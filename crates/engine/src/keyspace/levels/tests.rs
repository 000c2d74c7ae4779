use std::collections::BTreeMap;
use std::sync::Arc;

use os::{SimClock, SimFolder};
use stdx::prng::Prng;

use super::*;
use crate::{Engine, Options};

const ELEMENT: u8 = 21;
const VERSION: u64 = 7;

fn engine() -> Arc<Engine> {
    let pager = pager::Options {
        frame_bytes: 2048 * 4096,
        ring_bytes: 4 << 20,
        segment_bytes: 8 << 20,
        background: pager::Background::Manual,
        ..pager::Options::default()
    };
    Engine::open(Options { pager, ..Options::default() }, SimFolder::new(1), Arc::new(SimClock::new(1))).unwrap()
}

fn write(tree: &Tree, key: &[u8], value: Option<&[u8]>) {
    let done = tree.modify(key, None, |_, change| match value {
        Some(value) => change.put(&[value]),
        None => change.delete(),
    });
    done.unwrap();
}

fn write_changes(tree: &Tree, levels: &mut Levels<'_>) {
    for (key, value) in levels.take_changes() {
        write(tree, &key, value.as_ref().map(|value| &value[..]));
    }
}

fn set(levels: &mut Levels<'_>, tree: &Tree, sub: &[u8], weight: Option<u64>) {
    let LevelEntries::Elements(kind) = levels.entries else { return levels.set_weight(sub, weight).unwrap() };
    write(tree, &key::element_of(VERSION, kind, sub), weight.map(|_| &[0, 0][..]));
    if weight.is_some() { levels.added(sub) } else { levels.removed(sub) }.unwrap();
}

/// Compares positions in both directions with the model's.
fn compare(levels: &Levels<'_>, model: &BTreeMap<Vec<u8>, u64>, prng: &mut Prng) {
    assert_eq!(levels.check().unwrap(), Vec::<String>::new());
    let total: u64 = model.values().sum();
    let sub = format!("{:05}", prng.below(3000)).into_bytes();
    let before: u64 = model.range(..sub.clone()).map(|(_, weight)| weight).sum();
    assert_eq!(levels.position(&sub).unwrap(), before, "{sub:02x?}");
    let index = prng.below(total + 3);
    let mut left = index;
    let expected = model.iter().find_map(|(sub, weight)| {
        let found = (left < *weight).then(|| (sub.clone(), left));
        left = left.saturating_sub(*weight);
        found
    });
    assert_eq!(levels.find(index).unwrap(), expected, "{index} of {total}");
}

#[test]
fn positions_are_those_of_a_model_while_buckets_split_and_join() {
    let mut highest = 0;
    for (entries, sizes) in [
        (LevelEntries::Elements(ELEMENT), LevelSizes { elements: 4, buckets: 4 }),
        (LevelEntries::Elements(ELEMENT), LevelSizes { elements: 20, buckets: 5 }),
        (LevelEntries::Weights, LevelSizes { elements: 1, buckets: 4 }),
        (LevelEntries::Weights, LevelSizes { elements: 1, buckets: 24 }),
    ] {
        for seed in 0..2 {
            println!("{entries:?} {sizes:?} seed {seed}");
            let engine = engine();
            let tree = &engine.keyspace().store.records;
            let (mut prng, mut model) = (Prng::new(seed), BTreeMap::new());
            let mut levels = Levels::new(tree, VERSION, entries, sizes, 0);
            for step in 0..900 {
                // It grows, shrinks to nothing, and grows again; runs of neighbours make buckets empty.
                let grows = prng.chance(if step % 600 < 300 { 0.75 } else { 0.2 });
                let start = prng.below(2900);
                for number in start..start + if prng.chance(0.2) { 20 } else { 1 } {
                    let sub = format!("{number:05}").into_bytes();
                    let weight = if entries == LevelEntries::Weights { prng.below(9) } else { 1 };
                    if grows && (entries == LevelEntries::Weights || !model.contains_key(&sub)) {
                        set(&mut levels, tree, &sub, Some(weight));
                        model.insert(sub, weight);
                    } else if !grows {
                        // The next one that there is, so that ranges become empty.
                        let next = model.range(sub..).next().map(|(sub, _)| sub.clone());
                        if let Some(sub) = next {
                            set(&mut levels, tree, &sub, None);
                            model.remove(&sub);
                        }
                    }
                }
                highest = highest.max(levels.top());
                match prng.below(6) {
                    0 => {
                        write_changes(tree, &mut levels);
                        levels = Levels::new(tree, VERSION, entries, sizes, levels.top());
                    }
                    1 => write_changes(tree, &mut levels),
                    _ => {}
                }
                if step % 15 == 0 {
                    compare(&levels, &model, &mut prng);
                }
            }
            while let Some((sub, _)) = model.pop_first() {
                set(&mut levels, tree, &sub, None);
            }
            write_changes(tree, &mut levels);
            assert_eq!(levels.top(), 0);
            let left = tree.count(&key::level(VERSION, 0, &[]), Some(&key::level(VERSION, u8::MAX, &[])), 1).unwrap();
            assert_eq!(left, 0, "no bucket is left");
        }
    }
    assert!(highest >= 4, "{highest}");
}

#[test]
fn levels_that_are_built_in_one_pass_are_sound_and_can_be_changed() {
    for entries in [LevelEntries::Elements(ELEMENT), LevelEntries::Weights] {
        for count in [0, 1, 2, 4, 5, 9, 10, 11, 100, 101, 1000] {
            for sizes in [LevelSizes { elements: 4, buckets: 4 }, LevelSizes { elements: 64, buckets: 16 }] {
                println!("{entries:?} {sizes:?}: {count}");
                let engine = engine();
                let tree = &engine.keyspace().store.records;
                let (mut prng, mut model) = (Prng::new(count), BTreeMap::new());
                let mut build = LevelBuild::new(tree, VERSION, entries, sizes);
                for number in 0..count {
                    let sub = format!("{:05}", number * 5).into_bytes();
                    let weight = if entries == LevelEntries::Weights { prng.below(9) } else { 1 };
                    if let LevelEntries::Elements(kind) = entries {
                        write(tree, &key::element_of(VERSION, kind, &sub), Some(&[0, 0]));
                    }
                    build.push(&sub, weight).unwrap();
                    model.insert(sub, weight);
                }
                let top = build.finish().unwrap();
                let mut levels = Levels::new(tree, VERSION, entries, sizes, top);
                for _ in 0..20 {
                    compare(&levels, &model, &mut prng);
                }
                for (number, sub) in model.keys().cloned().enumerate().collect::<Vec<_>>() {
                    if number % 3 > 0 {
                        set(&mut levels, tree, &sub, None);
                        model.remove(&sub);
                    }
                }
                compare(&levels, &model, &mut prng);
            }
        }
    }
}

#[test]
fn a_damaged_bucket_is_named_by_the_checker() {
    let engine = engine();
    let tree = &engine.keyspace().store.records;
    let sizes = LevelSizes { elements: 4, buckets: 4 };
    let mut levels = Levels::new(tree, VERSION, LevelEntries::Elements(ELEMENT), sizes, 0);
    for number in 0..100 {
        set(&mut levels, tree, format!("{number:05}").as_bytes(), Some(1));
    }
    write_changes(tree, &mut levels);
    let top = levels.top();
    let (bound, bucket) = levels.covering(1, b"00050").unwrap();
    for wrong in [None, Some(Bucket { weight: bucket.weight + 1, ..bucket })] {
        levels.put(1, &bound, wrong);
        assert!(levels.check().unwrap()[0].contains("EN-70"));
        levels.put(1, &bound, Some(bucket));
    }
    let lower = Levels::new(tree, VERSION, LevelEntries::Elements(ELEMENT), sizes, top - 1);
    assert!(lower.check().unwrap().iter().any(|line| line.contains("above its top")));
    assert!(Bucket::parse(&bucket.encode()[..11]).is_err() && Bucket::parse(&[0x10, 0]).is_err());
}
