//! The limits beyond which OBJECT ENCODING of a collection changes, or a node of a stream is full, where each command finds them without a lock.

use engine::{NodeLimits, PackLimits};
use stdx::sync::atomic::{AtomicU64, Ordering};

use super::Parameters;

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
    pub fn new(parameters: &Parameters) -> EncodingLimits {
        let zero = AtomicU64::default;
        let limits = EncodingLimits {
            hash_entries: zero(),
            hash_value: zero(),
            intset_entries: zero(),
            zset_entries: zero(),
            zset_value: zero(),
            hll_sparse: zero(),
            node_entries: zero(),
            node_bytes: zero(),
        };
        limits.set(parameters);
        limits
    }

    /// Takes the values in force.
    pub fn set(&self, parameters: &Parameters) {
        self.hash_entries.store(parameters.number("hash-max-listpack-entries"), Ordering::Relaxed);
        self.hash_value.store(parameters.number("hash-max-listpack-value"), Ordering::Relaxed);
        self.intset_entries.store(parameters.number("set-max-intset-entries"), Ordering::Relaxed);
        self.zset_entries.store(parameters.number("zset-max-listpack-entries"), Ordering::Relaxed);
        self.zset_value.store(parameters.number("zset-max-listpack-value"), Ordering::Relaxed);
        self.hll_sparse.store(parameters.number("hll-sparse-max-bytes"), Ordering::Relaxed);
        self.node_entries.store(parameters.number("stream-node-max-entries"), Ordering::Relaxed);
        self.node_bytes.store(parameters.number("stream-node-max-bytes"), Ordering::Relaxed);
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
