//! How the setting `memory` is divided.
//!
//! ```text
//! memory = page frames + their table + log buffer + the rest (connections, undo, stacks, the program itself)
//! ```
//! The frames are all mapped at the start and fill up as data is read, so that what they may take has to leave room for the rest from the beginning.

/// What the table of frames costs per byte of frames: a header and a place in the hash table, some 112 bytes for 4096.
const TABLE_SHARE: u64 = 36;
const REST_BYTES_MIN: u64 = 16 << 20;
const REST_BYTES_MAX: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    pub frame_bytes: u64,
    pub log_buffer_bytes: u64,
    /// For connections and everything else.
    pub rest_bytes: u64,
}

/// Divides; the error says which setting to change.
pub fn divide(memory_bytes: u64, log_buffer_bytes: u64) -> Result<Shares, String> {
    let rest_bytes = (memory_bytes / 10).clamp(REST_BYTES_MIN, REST_BYTES_MAX);
    let left = memory_bytes.saturating_sub(log_buffer_bytes + rest_bytes);
    let frame_bytes = left / (TABLE_SHARE + 1) * TABLE_SHARE;
    // Fewer frames than this and a single large unit could hold them all.
    if frame_bytes < 16 << 20 {
        return Err("memory: too little for page frames; give more, or make log_buffer smaller".into());
    }
    Ok(Shares { frame_bytes, log_buffer_bytes, rest_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_make_up_the_whole() {
        for memory in [64 << 20, 512 << 20, 8 << 30, 920 << 30_u64] {
            let shares = divide(memory, 8 << 20).unwrap();
            let whole =
                shares.frame_bytes + shares.frame_bytes / TABLE_SHARE + shares.log_buffer_bytes + shares.rest_bytes;
            assert!(whole <= memory && whole > memory - (64 << 10), "{memory}: {whole}");
        }
    }

    #[test]
    fn too_little_is_refused() {
        assert!(divide(64 << 20, 64 << 20).unwrap_err().starts_with("memory: "));
    }
}
