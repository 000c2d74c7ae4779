//! The cost of undoing a transaction in pages and WAL bytes. It is reserved while the transaction runs, so that a full disk cannot stop a rollback (EN-11).

/// WAL bytes of an undo record beside key and values.
const UNDO_RECORD_BYTES: usize = 256;

/// The cost of undoing a transaction, or one of its changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UndoCost {
    /// Records that grow when they are restored, and by how many bytes.
    growing: u64,
    growth: u64,
    pub log_bytes: u64,
}

/// Returns the cost of restoring one record to `image` when its value has `now` bytes at present.
pub(crate) fn undo_cost(image: Option<&[u8]>, key: &[u8], now: usize) -> UndoCost {
    let then = image.map_or(0, <[u8]>::len);
    let growth = then.saturating_sub(now) as u64;
    // The WAL record with both images, and its share of a WAL block.
    let log_bytes = (UNDO_RECORD_BYTES + key.len() + then + now) as u64;
    UndoCost { growing: u64::from(growth > 0), growth, log_bytes }
}

impl UndoCost {
    pub fn replace(&mut self, old: UndoCost, new: UndoCost) {
        self.growing = self.growing + new.growing - old.growing;
        self.growth = self.growth + new.growth - old.growth;
        self.log_bytes = self.log_bytes + new.log_bytes - old.log_bytes;
    }

    /// Returns the number of pages that undo may need when one more record has been changed, to split leaves that other transactions have filled meanwhile, and
    /// their parents.
    ///
    /// Each of the first thousand records has a leaf of its own to split. More records share leaves, and a split frees at least a kilobyte.
    pub fn pages_with_one_more(&self) -> u64 {
        let leaves = (self.growing + 1).min(1000) + self.growth.div_ceil(1024);
        leaves + leaves / 16 + 8
    }
}
