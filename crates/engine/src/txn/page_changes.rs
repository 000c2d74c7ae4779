//! How the change of one record allocates and frees the pages of its value, alone or within a transaction.

use std::collections::HashSet;

use btree::Change;
use pager::{PageId, Run};

use crate::keyspace::record;

/// The page bookkeeping of one record change, within a transaction or alone.
pub(crate) struct PageChanges<'c, 't> {
    pub change: &'c mut Change,
    pub txn: Option<(&'t mut HashSet<PageId>, &'t mut Vec<Run>)>,
}

impl<'c, 't> PageChanges<'c, 't> {
    pub fn alone(change: &'c mut Change) -> PageChanges<'c, 't> {
        PageChanges { change, txn: None }
    }

    /// Notes that the record refers to these pages from now on.
    pub fn allocated(&mut self, runs: &[Run]) {
        for run in runs {
            self.change.allocated(run.first, run.pages);
            if let Some((own, _)) = &mut self.txn {
                own.extend(run.first..run.first + u64::from(run.pages));
            }
        }
    }

    /// Notes that no record refers to these pages any more. Outside a transaction they are freed with the change. Within one, only pages that it allocated
    /// itself are freed at once (EN-8).
    pub fn dropped(&mut self, runs: Vec<Run>) {
        let Some((own, deferred)) = &mut self.txn else {
            for run in runs {
                self.change.free(run.first, run.pages);
            }
            return;
        };
        let pages = || runs.iter().flat_map(|run| run.first..run.first + u64::from(run.pages));
        for run in record::runs_of(pages().filter(|page| own.contains(page))) {
            self.change.free(run.first, run.pages);
        }
        deferred.extend(record::runs_of(pages().filter(|page| !own.contains(page))));
        for page in pages() {
            own.remove(&page);
        }
    }
}
