//! The protocol of descents, splits and joins on a toy tree, for the model checker: keys are small numbers, a leaf is a set of bits, an inner node a list
//! of at most three children. The model covers which word is read, written and validated in which order, as in `search.rs`, `split.rs` and `delete.rs`. The
//! latch is the frame's, reduced to X bit and version.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

const LOCKED: u64 = 1 << 32;
const INCOMPLETE: u64 = 1;
const DELETED: u64 = 2;
const NONE: u64 = u64::MAX;
/// Tries after which a reader gives up: its assertions are made when it arrives.
const TRIES: usize = 2;

struct ToyNode {
    latch: AtomicU64,
    level: AtomicU64,
    flags: AtomicU64,
    high: AtomicU64,
    right: AtomicU64,
    /// Leaf: bit k means that key k exists. Inner: four bits a child: separator, from the second child on.
    content: AtomicU64,
    children: AtomicU64,
}

impl ToyNode {
    fn new(level: u64, flags: u64, high: u64, right: u64, content: u64, children: u64) -> ToyNode {
        let [level, flags, high, right, content, children] =
            [level, flags, high, right, content, children].map(AtomicU64::new);
        ToyNode { latch: AtomicU64::new(0), level, flags, high, right, content, children }
    }

    fn version(&self) -> Option<u64> {
        let word = self.latch.load(Ordering::Acquire);
        (word & LOCKED == 0).then_some(word)
    }

    fn validate(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.latch.load(Ordering::Relaxed) == version
    }

    fn lock(&self) {
        loop {
            let word = self.latch.load(Ordering::Relaxed);
            let free = word & LOCKED == 0;
            if free && self.latch.compare_exchange(word, word | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                fence(Ordering::Release);
                return;
            }
            thread::yield_now();
        }
    }

    fn unlock(&self) {
        let word = self.latch.load(Ordering::Relaxed);
        self.latch.store((word & !LOCKED) + 1, Ordering::Release);
    }
}

fn get(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

fn set(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

/// Page 0 is the root.
struct ToyTree(Vec<ToyNode>);

impl ToyTree {
    /// Separators of an inner node are the nibbles of `content`, children those of `children`; the first separator is not used.
    fn child(&self, node: &ToyNode, key: u64) -> u64 {
        let (separators, children) = (get(&node.content), get(&node.children));
        let mut at = 0;
        for index in 1..4 {
            let separator = separators >> (4 * index) & 0xF;
            if separator != 0 && separator <= key {
                at = index;
            }
        }
        (children >> (4 * at) & 0xF) % self.0.len() as u64
    }

    /// `Tree::descend_optimistic` and the read of the leaf. `None`: did not arrive.
    fn find(&self, key: u64) -> Option<bool> {
        let mut node = &self.0[0];
        let mut version = node.version()?;
        let (mut expected, mut moved) = (1, false);
        loop {
            let flags = get(&node.flags);
            if get(&node.level) != expected || flags & DELETED != 0 {
                return None;
            }
            let next = if (flags & INCOMPLETE != 0 || moved) && get(&node.high) <= key {
                moved = true;
                get(&node.right) % self.0.len() as u64
            } else if expected == 0 {
                let found = get(&node.content) >> key & 1 == 1;
                return node.validate(version).then_some(found);
            } else {
                (expected, moved) = (expected - 1, false);
                self.child(node, key)
            };
            if !node.validate(version) {
                return None;
            }
            let below = &self.0[next as usize];
            let below_version = below.version()?;
            if !node.validate(version) {
                return None;
            }
            (node, version) = (below, below_version);
        }
    }

    fn assert_finds(&self, key: u64) {
        for _ in 0..TRIES {
            match self.find(key) {
                Some(found) => return assert!(found, "key {key} is there and was not seen"),
                None => thread::yield_now(),
            }
        }
    }

    /// Step one of a split: keys from `separator` on move from leaf `left` to the unreachable page `right`.
    fn split(&self, left: usize, right: usize, separator: u64) {
        let (l, r) = (&self.0[left], &self.0[right]);
        l.lock();
        r.lock();
        let content = get(&l.content);
        let moved = content & (u64::MAX << separator);
        set(&r.level, 0);
        set(&r.flags, get(&l.flags) & INCOMPLETE);
        set(&r.high, get(&l.high));
        set(&r.right, get(&l.right));
        set(&r.content, moved);
        set(&l.content, content & !moved);
        set(&l.high, separator);
        set(&l.right, right as u64);
        set(&l.flags, INCOMPLETE);
        r.unlock();
        l.unlock();
    }

    /// Step two: the separator is inserted into the root, in order, and the flag is cleared.
    fn post(&self, left: usize) {
        let l = &self.0[left];
        l.lock();
        if get(&l.flags) & INCOMPLETE != 0 {
            let (separator, right) = (get(&l.high), get(&l.right));
            let root = &self.0[0];
            root.lock();
            let (separators, children) = (get(&root.content), get(&root.children));
            let mut pairs: Vec<(u64, u64)> = (0..4)
                .map(|at| (separators >> (4 * at) & 0xF, children >> (4 * at) & 0xF))
                .enumerate()
                .filter(|(at, (separator, _))| *at == 0 || *separator != 0)
                .map(|(_, pair)| pair)
                .collect();
            pairs.push((separator, right));
            pairs.sort_unstable();
            self.write_root(&pairs);
            set(&l.flags, 0);
            root.unlock();
        }
        l.unlock();
    }

    fn write_root(&self, pairs: &[(u64, u64)]) {
        let fold = |of: fn(&(u64, u64)) -> u64| pairs.iter().rev().fold(0, |word, pair| word << 4 | of(pair));
        set(&self.0[0].content, fold(|pair| pair.0));
        set(&self.0[0].children, fold(|pair| pair.1));
    }

    /// Removes the empty leaf `right`; its left neighbour takes its range. `pairs` is the content of the root afterwards.
    fn join(&self, left: usize, right: usize, pairs: &[(u64, u64)]) {
        let (l, r) = (&self.0[left], &self.0[right]);
        l.lock();
        r.lock();
        self.0[0].lock();
        set(&l.high, get(&r.high));
        set(&l.right, get(&r.right));
        self.write_root(pairs);
        set(&r.flags, DELETED);
        self.0[0].unlock();
        r.unlock();
        l.unlock();
    }
}

/// Root over two leaves: page 1 for keys below 8, page 2 from 8 on. Pages 3 and 4 are free.
fn two_leaves(first: u64, second: u64) -> Arc<ToyTree> {
    Arc::new(ToyTree(vec![
        ToyNode::new(1, 0, NONE, 0, 0x80, 0x21),
        ToyNode::new(0, 0, 8, 2, first, 0),
        ToyNode::new(0, 0, NONE, 0, second, 0),
        ToyNode::new(0, DELETED, 0, 0, 0, 0),
        ToyNode::new(0, DELETED, 0, 0, 0, 0),
    ]))
}

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.check(check);
}

/// BT-5, BT-6: at every moment of a split each key is found: in the shortened node, in the new one, or by the right link.
#[test]
fn a_split_hides_no_key() {
    model(|| {
        let tree = two_leaves(1 << 1 | 1 << 5, 1 << 9);
        let splitter = {
            let tree = tree.clone();
            thread::spawn(move || {
                tree.split(1, 3, 4);
                tree.post(1);
            })
        };
        tree.assert_finds(5);
        splitter.join().unwrap();
        assert_eq!([1, 5, 9].map(|key| tree.find(key)), [Some(true); 3]);
    });
}

/// BT-5: a node that is split again before its first split is posted passes its flag to the node in between. The posts come in either order.
#[test]
fn a_split_of_a_split_hides_no_key() {
    for order in [[1, 4], [4, 1]] {
        model(move || {
            let tree = two_leaves(1 << 1 | 1 << 3 | 1 << 5, 1 << 9);
            tree.split(1, 3, 5);
            let splitter = {
                let tree = tree.clone();
                thread::spawn(move || {
                    tree.split(1, 4, 3);
                    for left in order {
                        tree.post(left);
                    }
                })
            };
            tree.assert_finds(5);
            splitter.join().unwrap();
            assert_eq!([1, 3, 5, 9].map(|key| tree.find(key)), [Some(true); 4]);
        });
    }
}

/// BT-7: a leaf is removed, and its page is reused as the right half of another leaf, while a reader is on its way to either.
#[test]
fn a_page_reused_elsewhere_misleads_no_reader() {
    for key in [1, 12] {
        model(move || {
            let tree = two_leaves(1 << 1, 1 << 9 | 1 << 12);
            tree.split(1, 3, 4);
            tree.post(1);
            let changer = {
                let tree = tree.clone();
                thread::spawn(move || {
                    tree.join(1, 3, &[(0, 1), (8, 2)]);
                    tree.split(2, 3, 11);
                    tree.post(2);
                })
            };
            tree.assert_finds(key);
            changer.join().unwrap();
            assert_eq!([1, 9, 12].map(|key| tree.find(key)), [Some(true); 3]);
        });
    }
}

/// The models can fail: a reader that trusts the fences of a node with an unposted split would miss a key.
#[test]
#[should_panic(expected = "was not seen")]
fn a_split_without_its_flag_would_hide_a_key() {
    model(|| {
        let tree = two_leaves(1 << 1 | 1 << 5, 1 << 9);
        tree.split(1, 3, 4);
        set(&tree.0[1].flags, 0);
        tree.assert_finds(5);
    });
}
