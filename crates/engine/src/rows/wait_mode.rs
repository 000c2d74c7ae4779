//! Whether a transaction's reads and row locks may block the thread (EN-24, EN-25).

use btree::{ReadMode, ScanState};
use pager::PageId;

use crate::error::Error;
use crate::store::maps::RowMap;

/// The wait mode of a transaction.
#[derive(Default)]
pub(crate) struct WaitMode {
    pub read_mode: ReadMode,
    /// The number of further rows for which a wait may suspend the statement. `None`: a wait blocks the thread.
    pub suspends: Option<u8>,
    /// The same number, kept while the statement is not running.
    pub suspends_left: Option<u8>,
    /// The pages that the last failed read missed, and those that it will need next.
    pub absent: Vec<PageId>,
}

/// Number of rows for which a statement is suspended before it blocks its thread, since each restart repeats the reads before it.
pub(crate) const SUSPENDS_MAX: u8 = 16;

impl WaitMode {
    /// Makes the rest of the statement block: a restart would repeat the change that follows.
    pub fn begin_change(&mut self) {
        self.read_mode = ReadMode::MayRead;
        self.suspends = None;
    }

    /// Returns true if the statement may be suspended for a row. `is_known`: it was suspended for this row before.
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

    /// Notes the page that a read of the map missed.
    pub fn note(&mut self, error: pager::Error) -> Error {
        if let pager::Error::PageMiss(page) = error {
            self.absent = vec![page];
        }
        error.into()
    }

    /// Does the same for a range, and notes the pages that the scan will need next.
    pub fn note_range(&mut self, error: pager::Error, map: &RowMap, span: &ScanState) -> Error {
        let error = self.note(error);
        if matches!(error, Error::WouldBlock) {
            let more = span.missing_pages(&map.tree);
            self.absent.extend(more.into_iter().filter(|page| *page != self.absent[0]).collect::<Vec<_>>());
        }
        error
    }
}
