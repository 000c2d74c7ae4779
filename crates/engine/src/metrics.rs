//! What the engine counts. Every counter is one of these fields; the server names them in its output.

use stdx::counter::Counter;

#[derive(Default)]
pub struct Metrics {
    /// Lookups of read commands that found the key, and that did not.
    pub hits: Counter,
    pub misses: Counter,
    /// Keys removed because their time had come.
    pub expired: Counter,
    pub txn_commits: Counter,
    pub txn_aborts: Counter,
    /// Units that ran again because a key changed under them.
    pub read_retries: Counter,
    /// SCANs that began again because their cursor was not known any more.
    pub scan_restarts: Counter,
    /// Steps of the background that met an error: see `Keyspace::on_background_error`.
    pub background_errors: Counter,
    /// Records taken out of the trees in the background.
    pub purged_records: Counter,
}

impl Metrics {
    /// Keys removed to make room: none, ever. Data is on disk, memory is only a cache of it.
    pub fn evicted(&self) -> u64 {
        0
    }
}
