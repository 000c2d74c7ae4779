use std::cell::Cell;
use std::collections::BTreeMap;

use stdx::prng::Prng;

use super::*;
use crate::node::edit::{Builder, Room, Shape, Snapshot, separator};

/// A page in test memory.
pub(crate) struct Memory([Cell<u64>; PAGE_WORDS]);

impl Memory {
    fn new() -> Memory {
        Memory(std::array::from_fn(|_| Cell::new(0)))
    }
}

impl Words for &Memory {
    fn load(self, at: usize) -> u64 {
        self.0[at & (PAGE_WORDS - 1)].get()
    }
}

impl WordsMut for &Memory {
    fn store(self, at: usize, word: u64) {
        self.0[at].set(word);
    }
}

fn shape<'a>(end: usize, low: &'a [u8], high: Option<&'a [u8]>) -> Shape<'a> {
    Shape { tree: 7, level: 0, flags: 0, end, low, high, right: high.map_or(0, |_| 99) }
}

fn leaf<'m>(memory: &'m Memory, shape: &Shape<'_>) -> Node<&'m Memory> {
    Builder::begin(memory, shape).finish((0, 0));
    Node(memory)
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

fn assert_same(node: Node<&Memory>, model: &Model) {
    assert_eq!(node.verify(7), Ok(()));
    assert_eq!(node.count(), model.len());
    let mut words = 0;
    for (index, (key, (value, version))) in model.iter().enumerate() {
        let mut found = Vec::new();
        node.push_value(index, &mut found);
        assert_eq!((&node.key(index), &found, node.version(index)), (key, value, *version));
        assert_eq!(node.search(key), Ok(index));
        assert!(node.verify_record(index));
        words += 1 + node.record_words(index);
    }
    let fences = words_of(node.low().len()) + node.high().map_or(0, |high| words_of(high.len()));
    assert_eq!(words + node.gap() + node.dead() + fences + SLOTS, node.end(), "every word is accounted for");
}

/// Returns keys that share prefixes, or differ only in zero bytes and length: inputs that heads and padding could confuse.
fn key(prng: &mut Prng, prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    for _ in 0..prng.below(12) {
        key.push([0, 0, 1, b'a', 0xFF][prng.below(5) as usize]);
    }
    key
}

#[test]
fn behaves_like_a_map() {
    for seed in 0..if cfg!(miri) { 4 } else { 200 } {
        let mut prng = Prng::new(seed);
        let end = [END_MIN, 64, 200, PAGE_WORDS][seed as usize % 4];
        let fences: [(&[u8], Option<&[u8]>); 3] =
            [(b"", None), (b"kab", Some(b"kb")), (b"kaaaaaaaaa", Some(b"kaaaaaaaaabb"))];
        let (low, high) = fences[seed as usize % 3];
        let prefix = &low[..shape(end, low, high).prefix_len()];
        let memory = Memory::new();
        let node = leaf(&memory, &shape(end, low, high));
        let mut model = Model::new();
        for version in 1..if cfg!(miri) { 60 } else { 400 } {
            let key = key(&mut prng, prefix);
            if key.as_slice() < low || high.is_some_and(|high| key.as_slice() >= high) {
                continue;
            }
            let place = node.search(&key);
            assert_eq!(place.is_ok(), model.contains_key(&key));
            if let Err(index) = place {
                assert_eq!(index, model.range(..key.clone()).count());
            }
            if prng.chance(0.3) {
                if let Ok(index) = place {
                    node.remove(index);
                    model.remove(&key);
                }
            } else {
                let mut value = vec![0; prng.below(40) as usize];
                prng.fill(&mut value);
                let room = node.room(place, &key, value.len());
                assert_eq!(node.put(place, &key, &value, version), room != Room::None);
                if room != Room::None {
                    model.insert(key, (value, version));
                }
            }
            assert_same(node, &model);
        }
        assert!(!model.is_empty());
    }
}

#[test]
fn truncation_and_rebuilding_keep_every_record() {
    for seed in 0..if cfg!(miri) { 2 } else { 100 } {
        let mut prng = Prng::new(seed);
        let memory = Memory::new();
        let node = leaf(&memory, &shape(PAGE_WORDS, b"", None));
        let mut model = Model::new();
        while model.len() < 30 {
            let key = key(&mut prng, b"user:");
            let place = node.search(&key);
            assert!(node.put(place, &key, b"value", seed));
            model.insert(key, (b"value".to_vec(), seed));
        }
        let at = 1 + prng.below(29) as usize;
        let keys: Vec<Vec<u8>> = model.keys().cloned().collect();
        let separator = separator(&keys[at - 1], &keys[at]).expect("in order");
        assert!(keys[at - 1].as_slice() < separator && separator <= keys[at].as_slice());
        let right_memory = Memory::new();
        let old = Snapshot::of(node);
        let mut right = Builder::begin(&right_memory, &shape(PAGE_WORDS, separator, Some(b"w")));
        for index in at..30 {
            right.append(old.node(), index);
        }
        right.finish((0, 0));
        node.truncate(separator, 55);
        assert!(node.is_incomplete() && node.right() == 55);
        assert_eq!(node.compare_high(separator), Ordering::Equal);
        let right_model = model.split_off(separator);
        assert_same(node, &model);
        assert_same(Node(&right_memory), &right_model);
        node.extend(None, 0);
        assert_same(node, &model);
    }
}

#[test]
fn inner_nodes_find_the_covering_child() {
    let memory = Memory::new();
    let mut builder = Builder::begin(&memory, &Shape { level: 1, ..shape(PAGE_WORDS, b"", None) });
    builder.child(b"", 100);
    builder.finish((0, 0));
    let node = Node(&memory);
    for (child, key) in [b"d", b"b", b"f"].iter().enumerate() {
        let Err(index) = node.search(*key) else { panic!("new key") };
        assert!(node.put_child(index, *key, child as u64));
    }
    let at = |key: &[u8]| node.child(node.child_at(key));
    assert_eq!([at(b""), at(b"a"), at(b"b"), at(b"c"), at(b"d"), at(b"zz")], [100, 100, 1, 1, 0, 2]);
    let before = |key: &[u8]| node.child(node.child_before(key));
    assert_eq!([before(b"b"), before(b"b0"), before(b"d"), before(b"zz")], [100, 1, 1, 2]);
}

/// An optimistic reader may read any bits: no function panics or runs long (BT-9).
#[test]
fn torn_pages_are_tolerated() {
    let mut prng = Prng::new(1);
    let mut out = Vec::new();
    for round in 0..if cfg!(miri) { 30 } else { 3000 } {
        let memory = Memory::new();
        for word in 0..PAGE_WORDS {
            // Small fields sometimes, so that lengths and offsets are also plausible.
            memory.0[word].set(if prng.chance(0.5) {
                prng.next_u64()
            } else {
                prng.next_u64() & 0x01FF_003F_01FF_003F
            });
        }
        if round % 2 == 0 {
            (&memory).store(0, u64::from(PAGE_KIND));
        }
        let node = Node(&memory);
        let key = key(&mut prng, b"k");
        let _ = node.search(&key);
        let _ = node.child(node.child_at(&key));
        let _ = node.child(node.child_before(&key));
        let _ = (node.compare_high(&key), node.compare_low(&key), node.verify(7), node.gap());
        for index in [0, 5, 511, 65535] {
            out.clear();
            node.push_key(index, &mut out);
            node.push_value(index, &mut out);
            let _ = (node.verify_record(index), node.record_words(index));
        }
    }
}

#[test]
fn an_ascending_run_is_detected() {
    let memory = Memory::new();
    let node = leaf(&memory, &shape(PAGE_WORDS, b"", None));
    for number in 0..10u64 {
        let key = number.to_be_bytes();
        assert!(node.put(node.search(&key), &key, b"", 1));
    }
    assert_eq!(node.insert_run(), (9, 9));
    assert!(node.put(node.search(b"\0"), b"\0", b"", 1));
    assert_eq!(node.insert_run().1, 0);
}
