//! The limits beyond which OBJECT ENCODING of a collection changes, or a node of a stream is full, where each command, and a commit of SQL, finds them without a
//! lock.

use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::keyspace::packed::PackLimits;
use crate::keyspace::streams::node::NodeLimits;

/// The limits as numbers.
#[derive(Clone, Copy, Debug)]
pub struct LimitNumbers {
    pub hash_entries: u64,
    pub hash_value: u64,
    pub intset_entries: u64,
    pub zset_entries: u64,
    pub zset_value: u64,
    pub hll_sparse: u64,
    pub node_entries: u64,
    pub node_bytes: u64,
}

impl Default for LimitNumbers {
    /// Redis' defaults.
    fn default() -> LimitNumbers {
        LimitNumbers {
            hash_entries: 512,
            hash_value: 64,
            intset_entries: 512,
            zset_entries: 128,
            zset_value: 64,
            hll_sparse: 3000,
            node_entries: 100,
            node_bytes: 4096,
        }
    }
}

#[derive(Default)]
pub struct EncodingLimits {
    hash_entries: AtomicU64,
    hash_value: AtomicU64,
    intset_entries: AtomicU64,
    zset_entries: AtomicU64,
    zset_value: AtomicU64,
    hll_sparse: AtomicU64,
    node_entries: AtomicU64,
    node_bytes: AtomicU64,
}

impl EncodingLimits {
    pub fn new(numbers: LimitNumbers) -> EncodingLimits {
        let limits = EncodingLimits::default();
        limits.set(numbers);
        limits
    }

    /// Takes the values in force.
    pub fn set(&self, numbers: LimitNumbers) {
        self.hash_entries.store(numbers.hash_entries, Ordering::Relaxed);
        self.hash_value.store(numbers.hash_value, Ordering::Relaxed);
        self.intset_entries.store(numbers.intset_entries, Ordering::Relaxed);
        self.zset_entries.store(numbers.zset_entries, Ordering::Relaxed);
        self.zset_value.store(numbers.zset_value, Ordering::Relaxed);
        self.hll_sparse.store(numbers.hll_sparse, Ordering::Relaxed);
        self.node_entries.store(numbers.node_entries, Ordering::Relaxed);
        self.node_bytes.store(numbers.node_bytes, Ordering::Relaxed);
    }

    pub fn hash(&self) -> PackLimits {
        let load = |limit: &AtomicU64| limit.load(Ordering::Relaxed);
        PackLimits { entries: load(&self.hash_entries), value: load(&self.hash_value) }
    }

    pub fn zset(&self) -> PackLimits {
        let load = |limit: &AtomicU64| limit.load(Ordering::Relaxed);
        PackLimits { entries: load(&self.zset_entries), value: load(&self.zset_value) }
    }

    /// Returns the most bytes of a HyperLogLog in sparse form.
    pub fn hll_sparse(&self) -> usize {
        self.hll_sparse.load(Ordering::Relaxed) as usize
    }

    /// Returns when a node of a stream is full.
    pub fn stream_node(&self) -> NodeLimits {
        let load = |limit: &AtomicU64| limit.load(Ordering::Relaxed);
        NodeLimits { entries: load(&self.node_entries), bytes: load(&self.node_bytes) }
    }

    pub fn set_of(&self) -> PackLimits {
        PackLimits { entries: self.intset_entries.load(Ordering::Relaxed), value: u64::MAX }
    }
}
