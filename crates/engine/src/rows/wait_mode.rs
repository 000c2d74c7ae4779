//! WAITMODE.

use btree::{ReadMode, ScanState};
use pager::PageId;

use crate::error::Error;
use crate::store::maps::RowMap;

/// How far a transaction's reads go for a page.
#[derive(Default)]
pub(crate) struct WaitMode {
    pub read_mode: ReadMode,
    /// For how many more rows a wait may suspend the statement instead of blocking its thread.
    pub suspends: Option<u8>,
    /// The same, kept while the statement is not under way.
    pub suspends_left: Option<u8>,
    /// What the read that left was missing, and will be missing next.
    pub absent: Vec<PageId>,
}

/// So many different rows suspend a statement; then it waits with a thread, because each restart reads what came before once more.
pub(crate) const SUSPENDS_MAX: u8 = 16;

impl WaitMode {
    /// A change follows: a restart would do it twice.
    pub fn begin_change(&mut self) {
        self.read_mode = ReadMode::MayRead;
        self.suspends = None;
    }

    /// May the statement be suspended for a row? `is_known`: it was for this one before.
    pub fn may_suspend(&mut self, is_known: bool) -> bool {
        match &mut self.suspends {
            Some(left) if is_known || *left > 0 => {
                *left -= u8::from(!is_known);
                self.suspends_left = self.suspends;
                true
            }
            _ => false,
        }
    }

    /// Notes what a read of the map was missing.
    pub fn note(&mut self, error: pager::Error) -> Error {
        if let pager::Error::PageMiss(page) = error {
            self.absent = vec![page];
        }
        error.into()
    }

    /// The same of a range: what it will want next is brought with it.
    pub fn note_range(&mut self, error: pager::Error, map: &RowMap, span: &ScanState) -> Error {
        let error = self.note(error);
        if matches!(error, Error::WouldBlock) {
            let more = span.missing_pages(&map.tree);
            self.absent.extend(more.into_iter().filter(|page| *page != self.absent[0]).collect::<Vec<_>>());
        }
        error
    }
}
