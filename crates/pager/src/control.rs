//! The control block: the root of a database in a local folder. Two copies, pages 0 and 1 of the data file, are written alternately, so that one is always
//! whole.
//!
//! The lock of the folder keeps other openings away. So the comparison of boot numbers is an assert here.

use std::sync::Arc;

use os::{Aligned, Device};
use stdx::sync::Mutex;

use crate::error::{Error, Result};
use crate::page::PAGE_BYTES;
use crate::root::{Root, RootKind, RootRecord};

const KIND: RootKind = RootKind { of: "the data folder", complete: b"BELUGADB", incomplete: b"BELUGAIC" };

/// A copy of the control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ControlBlock {
    /// Incremented by each write. The valid copy with the higher number counts.
    sequence: u64,
    root: RootRecord,
}

impl ControlBlock {
    /// Writes the copy. It is durable on return.
    fn write(self, data: &dyn Device) -> Result<()> {
        let mut block = Aligned::with_capacity(PAGE_BYTES);
        let bytes = &mut block.as_mut_slice()[..PAGE_BYTES];
        bytes.fill(0);
        bytes[..RootRecord::BYTES].copy_from_slice(&self.root.encode(&KIND, self.sequence));
        let offset = self.sequence % 2 * PAGE_BYTES as u64;
        data.write_durable(offset, bytes).map_err(|error| Error::io("writing the control block", error))
    }

    fn decode(bytes: &[u8]) -> Result<Option<ControlBlock>> {
        let bytes = bytes.first_chunk().expect("a page is larger than a root");
        Ok(RootRecord::decode(&KIND, bytes)?.map(|(sequence, root)| ControlBlock { sequence, root }))
    }

    /// Reads the newer valid copy. `None` if neither was ever written; an error if both are damaged.
    fn read(data: &dyn Device) -> Result<Option<ControlBlock>> {
        if data.len() < 2 * PAGE_BYTES as u64 {
            return Ok(None);
        }
        let mut blocks = Aligned::with_capacity(2 * PAGE_BYTES);
        let bytes = &mut blocks.as_mut_slice()[..2 * PAGE_BYTES];
        data.read(0, bytes).map_err(|error| Error::io("reading the control blocks", error))?;
        let (first, second) = bytes.split_at(PAGE_BYTES);
        let found = [ControlBlock::decode(first)?, ControlBlock::decode(second)?];
        let newest = found.into_iter().flatten().max_by_key(|block| block.sequence);
        if newest.is_none() && bytes.iter().any(|byte| *byte != 0) {
            return Err(Error::Format(
                "both control blocks of the data file are damaged, or it is not Beluga's: restore a backup".into(),
            ));
        }
        Ok(newest)
    }
}

/// The control pages of a data file.
pub struct ControlPages {
    data: Arc<dyn Device>,
    /// Sequence and boot number of the newest copy that was read or written; zeros if there is none.
    newest: Mutex<(u64, u64)>,
}

impl ControlPages {
    /// The first call of `get` reads the pages; nothing is written before it.
    pub fn new(data: Arc<dyn Device>) -> ControlPages {
        ControlPages { data, newest: Mutex::new((0, 0)) }
    }
}

impl Root for ControlPages {
    fn get(&self) -> Result<Option<RootRecord>> {
        let found = ControlBlock::read(self.data.as_ref())?;
        *self.newest.lock() = found.map_or((0, 0), |block| (block.sequence, block.root.boot));
        Ok(found.map(|block| block.root))
    }

    fn compare_and_set(&self, boot: u64, next: RootRecord) -> Result<()> {
        let mut newest = self.newest.lock();
        assert_eq!(newest.1, boot, "another opening has written the control block, though the folder is locked");
        // After a failed write the same copy is written again: the other one is whole.
        let block = ControlBlock { sequence: newest.0 + 1, root: next };
        block.write(self.data.as_ref())?;
        *newest = (block.sequence, next.boot);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use os::{Fault, Folder, Open, SimFolder};

    use super::*;

    fn data(folder: &SimFolder) -> Arc<dyn Device> {
        let data = folder.open("data", Open::Create).expect("the folder is empty");
        data.grow(2 * PAGE_BYTES as u64).expect("there is room");
        data
    }

    fn record(boot: u64, checkpoint: u64) -> RootRecord {
        RootRecord { database: 7, checkpoint, boot, consistent: 0, is_incomplete: false }
    }

    #[test]
    fn the_newest_root_is_read_back_and_a_failed_replacement_leaves_the_former_one() {
        let folder = SimFolder::new(1);
        let root = ControlPages::new(data(&folder));
        assert_eq!(root.get().unwrap(), None);
        root.compare_and_set(0, record(0, 4096)).unwrap();
        root.compare_and_set(0, record(1, 4096)).unwrap();
        root.compare_and_set(1, record(1, 8192)).unwrap();
        assert_eq!(ControlPages::new(data(&folder)).get().unwrap(), Some(record(1, 8192)));
        for _ in 0..3 {
            folder.fail("data", Fault::Write(1));
            root.compare_and_set(1, record(1, 12288)).unwrap_err();
            assert_eq!(ControlPages::new(data(&folder)).get().unwrap(), Some(record(1, 8192)));
        }
        root.compare_and_set(1, record(1, 16384)).unwrap();
        assert_eq!(ControlPages::new(data(&folder)).get().unwrap(), Some(record(1, 16384)));
    }

    #[test]
    #[should_panic(expected = "another opening")]
    fn a_replacement_names_the_boot_number_in_force() {
        let root = ControlPages::new(data(&SimFolder::new(1)));
        root.compare_and_set(0, record(1, 4096)).unwrap();
        let _ = root.compare_and_set(0, record(1, 8192));
    }
}
