//! How the setting `memory` is divided.
//!
//! ```text
//! memory = buffer pool + its frame table + WAL buffer + fixed part + rest + statements
//!
//! fixed part        the cleaner's batch, the next write of the WAL, the buffers of page readers, counters and histograms, the allocator's own
//!                   structures
//! rest              1/8 unsent replies, 1/4 threads that wait, 1/8 idle buffers of threads, 1/8 old row versions, 1/8 undo and locks of large
//!                   transactions; the remainder: incomplete requests, page reads in flight (512 KiB per worker group), sessions, and memory
//!                   that the allocator keeps
//! statements        1/16: rows of sorts, groups and joins, values in computation, user variables, prepared statements, long replies.
//!                   `request_bytes` limits them to this plus the remainder of the rest
//! ```
//!
//! All frames are mapped at the start and fill up as data is read, so the rest must be left free from the beginning.

/// Bytes of the frame table per frame of 4096 bytes: a header and an entry in the hash table, about 112 bytes.
const TABLE_SHARE: u64 = 36;
/// The cleaner's batch of 4 MiB, the WAL's next write of 1 MiB, 4 readers with 256 KiB each, counters, and about 4 MiB of the allocator.
const FIXED_BYTES: u64 = 12 << 20;
/// Memory of a thread that waits: receive buffer, read buffer, stack and ring. About 200 KiB when measured.
const THREAD_BYTES: u64 = 256 << 10;
const REST_BYTES_MIN: u64 = 20 << 20;
const REST_BYTES_MAX: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    pub frame_bytes: u64,
    pub log_buffer_bytes: u64,
    /// For connections and everything else.
    pub rest_bytes: u64,
    /// For statements and sessions.
    pub statement_bytes: u64,
}

impl Shares {
    /// Limit of unsent replies of all connections together.
    pub fn output_bytes(&self) -> u64 {
        self.rest_bytes / 8
    }

    /// Limit of unsent replies of one connection. It is smaller because many threads may be writing replies before these count as unsent.
    pub fn connection_output_bytes(&self) -> u64 {
        self.output_bytes() / 8
    }

    /// Limit of threads of all worker groups together, including those that wait.
    pub fn threads_max(&self) -> u64 {
        self.rest_bytes / 4 / THREAD_BYTES
    }

    /// Memory that the process may allocate after the doors have opened: the rest without thread stacks, which are not on the heap, plus the share of
    /// statements. `stdx::memory` limits requests to it.
    pub fn request_bytes(&self) -> u64 {
        self.rest_bytes - self.rest_bytes / 4 + self.statement_bytes
    }

    /// Limit of old row versions kept for snapshots.
    pub fn versions_bytes(&self) -> u64 {
        self.rest_bytes / 8
    }

    /// Memory of the WAL records that recovery applies together: half of the memory for what there is only once the doors are open. Beyond 128 MiB, the time
    /// between two reports of progress would grow, and not the speed.
    pub fn recovery_bytes(&self) -> u64 {
        ((self.log_buffer_bytes + self.rest_bytes + self.statement_bytes) / 2).min(128 << 20)
    }

    /// Limit of idle buffers that all base threads may keep.
    pub fn kept_bytes(&self) -> u64 {
        self.rest_bytes / 8
    }
}

/// Divides `memory`. The error names the setting to change.
pub fn divide(memory_bytes: u64, log_buffer_bytes: u64) -> Result<Shares, String> {
    let rest_bytes = (memory_bytes / 10).clamp(REST_BYTES_MIN, REST_BYTES_MAX);
    let statement_bytes = statement_bytes(memory_bytes);
    let left = memory_bytes.saturating_sub(log_buffer_bytes + FIXED_BYTES + rest_bytes + statement_bytes);
    let frame_bytes = left / (TABLE_SHARE + 1) * TABLE_SHARE;
    // With fewer frames a single large key transaction could hold them all.
    if frame_bytes < 16 << 20 {
        return Err("memory: too little for page frames; give more, or make log_buffer smaller".into());
    }
    Ok(Shares { frame_bytes, log_buffer_bytes, rest_bytes, statement_bytes })
}

/// Default of `statement_memory`.
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
            assert!((14 << 20..=128 << 20).contains(&shares.recovery_bytes()), "{memory}: {}", shares.recovery_bytes());
            assert!(shares.threads_max() >= 16 && shares.connection_output_bytes() >= 256 << 10);
        }
    }

    #[test]
    fn too_little_is_refused() {
        assert!(divide(64 << 20, 64 << 20).unwrap_err().starts_with("memory: "));
    }
}
