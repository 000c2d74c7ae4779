//! How the setting `memory` is divided.
//!
//! ```text
//! memory = page frames + their table + log buffer + what is fixed + the rest + statements
//!
//! what is fixed     the cleaner's batch, the log's next write, the buffers of the page readers, counters and histograms, the allocator's own books and pools
//! the rest          an eighth for replies that clients have not taken, a quarter for threads that wait, an eighth for empty buffers that threads keep,
//!                   an eighth for old versions of rows, as much for undo and for locks where transactions are large; what is left for requests that are not whole yet, page reads under way (half a megabyte for each group),
//!                   sessions, and what the allocator does not give back
//! statements        a sixteenth: what sorts, groups and joins hold, values while they are computed, user variables, prepared statements, long replies; `request_bytes` bounds them, together with what is left of the rest
//! ```
//! The frames are all mapped at the start and fill up as data is read, so that what they may take has to leave room for the rest from the beginning.

/// What the table of frames costs per byte of frames: a header and a place in the hash table, some 112 bytes for 4096.
const TABLE_SHARE: u64 = 36;
/// The cleaner's batch of 4 MiB, the log's next write of 1 MiB, 4 readers with 256 KiB each, counters; what the allocator takes for itself, some 4 MiB.
const FIXED_BYTES: u64 = 12 << 20;
/// What a thread takes while it waits: its receive buffer, its buffer for reads, its stack, its ring. Measured: some 200 KiB.
const THREAD_BYTES: u64 = 256 << 10;
const REST_BYTES_MIN: u64 = 20 << 20;
const REST_BYTES_MAX: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    pub frame_bytes: u64,
    pub log_buffer_bytes: u64,
    /// For connections and everything else.
    pub rest_bytes: u64,
    /// For what statements and sessions hold.
    pub statement_bytes: u64,
}

impl Shares {
    /// Replies of all connections that wait for their clients.
    pub fn output_bytes(&self) -> u64 {
        self.rest_bytes / 8
    }

    /// Replies of one connection: many threads may be writing some before any are counted as waiting.
    pub fn connection_output_bytes(&self) -> u64 {
        self.output_bytes() / 8
    }

    /// Threads of all groups, those included that wait.
    pub fn threads_max(&self) -> u64 {
        self.rest_bytes / 4 / THREAD_BYTES
    }

    /// Memory that the process may allocate beyond what it has when the doors open: the rest, of which stacks of threads are no part of the heap, and what is for statements. `stdx::memory` holds requests to it.
    pub fn request_bytes(&self) -> u64 {
        self.rest_bytes - self.rest_bytes / 4 + self.statement_bytes
    }

    /// Old versions of rows, for snapshots.
    pub fn versions_bytes(&self) -> u64 {
        self.rest_bytes / 8
    }

    /// Empty buffers that all base threads may keep.
    pub fn kept_bytes(&self) -> u64 {
        self.rest_bytes / 8
    }
}

/// Divides; the error says which setting to change.
pub fn divide(memory_bytes: u64, log_buffer_bytes: u64) -> Result<Shares, String> {
    let rest_bytes = (memory_bytes / 10).clamp(REST_BYTES_MIN, REST_BYTES_MAX);
    let statement_bytes = statement_bytes(memory_bytes);
    let left = memory_bytes.saturating_sub(log_buffer_bytes + FIXED_BYTES + rest_bytes + statement_bytes);
    let frame_bytes = left / (TABLE_SHARE + 1) * TABLE_SHARE;
    // Fewer frames than this and a single large unit could hold them all.
    if frame_bytes < 16 << 20 {
        return Err("memory: too little for page frames; give more, or make log_buffer smaller".into());
    }
    Ok(Shares { frame_bytes, log_buffer_bytes, rest_bytes, statement_bytes })
}

/// What `statement_memory` is if it is not set.
pub fn statement_bytes(memory_bytes: u64) -> u64 {
    (memory_bytes / 16).min(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_make_up_the_whole() {
        for memory in [64 << 20, 512 << 20, 8 << 30, 920 << 30_u64] {
            let shares = divide(memory, 8 << 20).unwrap();
            let frames = shares.frame_bytes + shares.frame_bytes / TABLE_SHARE;
            let whole = frames + shares.log_buffer_bytes + FIXED_BYTES + shares.rest_bytes + shares.statement_bytes;
            assert!(whole <= memory && whole > memory - (64 << 10), "{memory}: {whole}");
        }
    }

    #[test]
    fn what_is_promised_leaves_a_good_third_of_the_rest() {
        for memory in [64 << 20, 256 << 20, 1 << 30, 920 << 30_u64] {
            let shares = divide(memory, 8 << 20).unwrap();
            let promised = shares.output_bytes()
                + shares.threads_max() * THREAD_BYTES
                + shares.kept_bytes()
                + shares.versions_bytes();
            assert!(promised <= shares.rest_bytes / 8 * 5, "{memory}: {promised} of {}", shares.rest_bytes);
            assert!(shares.threads_max() >= 16 && shares.connection_output_bytes() >= 256 << 10);
        }
    }

    #[test]
    fn too_little_is_refused() {
        assert!(divide(64 << 20, 64 << 20).unwrap_err().starts_with("memory: "));
    }
}
