//! The engine's counters. The server names them in its output.

use stdx::counter::Counter;

#[derive(Default)]
pub struct Metrics {
    /// Lookups by read commands that found the key, and that did not.
    pub hits: Counter,
    pub misses: Counter,
    /// Keys removed because they had expired.
    pub expired: Counter,
    /// Fields of hashes removed because they had expired.
    pub expired_fields: Counter,
    pub txn_commits: Counter,
    pub txn_aborts: Counter,
    /// Optimistic reads that ran again because a key changed meanwhile.
    pub read_retries: Counter,
    /// Key transactions that ran again because they needed more keys.
    pub key_txn_reruns: Counter,
    /// Old versions of rows that readers looked at on the way to the one that they see.
    pub version_steps: Counter,
    /// SCANs that started again from the first key because their cursor was no longer known.
    pub scan_restarts: Counter,
    /// Background steps that failed: see `Keyspace::on_background_error`.
    pub background_errors: Counter,
    /// Records that the background thread removed from trees.
    pub purged_records: Counter,
}

impl Metrics {
    /// Keys evicted to free memory. Always 0: data is on disk, and memory is only a cache of it.
    pub fn evicted(&self) -> u64 {
        0
    }
}
