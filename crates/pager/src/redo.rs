//! Redo functions, registered by the owners of page records.

use crate::error::Result;
use crate::guard::Exclusive;
use crate::wal::record::{Record, kind};

/// Repeats page changes of the kinds that its owner registered.
pub trait Redo: Send + Sync {
    /// Applies `record` to the page it names. The page is exactly in the state that the record was made on.
    fn apply(&self, page: &Exclusive<'_>, record: &Record<'_>) -> Result<()>;
}

/// Who redoes which kinds. Owners hand theirs down when the pager is opened, so the pager knows no tree.
#[derive(Default)]
pub struct RedoTable {
    owners: Vec<(std::ops::Range<u8>, Box<dyn Redo>)>,
}

impl RedoTable {
    pub fn new() -> RedoTable {
        RedoTable::default()
    }

    pub fn own(mut self, kinds: std::ops::Range<u8>, redo: impl Redo + 'static) -> RedoTable {
        assert!(kinds.start >= kind::TREE && kinds.end <= kind::LOGICAL, "page record kinds are 0x10..0x20");
        self.owners.push((kinds, Box::new(redo)));
        self
    }

    pub fn owner(&self, kind: u8) -> Option<&dyn Redo> {
        self.owners.iter().find(|(kinds, _)| kinds.contains(&kind)).map(|(_, redo)| redo.as_ref())
    }
}
