//! A walk over the records of a range of tree keys, a batch at a time.

use btree::{Batch, ReadMode, ScanState};

use crate::error::Result;
use crate::keyspace::key_txn::KeyTransaction;

/// A walk, which without a range finds nothing.
#[derive(Default)]
pub(crate) struct RecordWalk {
    scan: Option<ScanState>,
    batch: Batch,
    at: usize,
}

impl RecordWalk {
    pub fn new(scan: Option<ScanState>) -> RecordWalk {
        RecordWalk { scan, batch: Batch::new(), at: 0 }
    }

    /// Returns the tree key and the value of the next record. A scan backwards gives each leaf's records in descending order, too.
    pub fn next(&mut self, txn: &KeyTransaction<'_>) -> Result<Option<(&[u8], &[u8])>> {
        let Some(scan) = &mut self.scan else { return Ok(None) };
        if self.at == self.batch.len() {
            self.at = 0;
            txn.check_for_interrupts()?;
            if !scan.next_batch(&txn.keyspace.store.records, ReadMode::MayRead, &mut self.batch)? {
                return Ok(None);
            }
        }
        let record = self.batch.get(self.at);
        self.at += 1;
        Ok(Some((record.key, record.value)))
    }
}
