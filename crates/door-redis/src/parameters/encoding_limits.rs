//! The parameters beyond which OBJECT ENCODING of a collection changes, or a node of a stream is full, as the keyspace keeps them for its writers.

use engine::LimitNumbers;

use super::Parameters;

impl Parameters {
    /// Returns the values in force.
    pub fn encoding_limits(&self) -> LimitNumbers {
        LimitNumbers {
            hash_entries: self.number("hash-max-listpack-entries"),
            hash_value: self.number("hash-max-listpack-value"),
            intset_entries: self.number("set-max-intset-entries"),
            zset_entries: self.number("zset-max-listpack-entries"),
            zset_value: self.number("zset-max-listpack-value"),
            hll_sparse: self.number("hll-sparse-max-bytes"),
            node_entries: self.number("stream-node-max-entries"),
            node_bytes: self.number("stream-node-max-bytes"),
        }
    }
}
