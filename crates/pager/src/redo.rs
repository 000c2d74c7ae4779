//! Redo functions, registered by the owners of page records.
//!
//! The pager does not know the tree: its owner passes a `RedoTable` to `Pager::open`, and recovery dispatches by the record's kind.

use crate::error::Result;
use crate::guard::Exclusive;
use crate::wal::record::{Record, kind};

/// Redo of the page changes of an owner's record kinds.
pub trait Redo: Send + Sync {
    /// Checks that a page can be changed by records of the owner, of which `record` is one. Called before the first of them is applied to a page that was read
    /// or started anew; what `apply` leaves behind is not checked again.
    fn verify(&self, page: &Exclusive<'_>, record: &Record<'_>) -> Result<()>;

    /// Applies `record` to the page it names. The page is exactly in the state that the record was made on (PG-14).
    fn apply(&self, page: &Exclusive<'_>, record: &Record<'_>) -> Result<()>;
}

/// Maps record kinds to the owners' redo functions.
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
