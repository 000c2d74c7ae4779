//! Which pages undo frees: those whose last name it takes away, and which no image names (E7, E8).
//!
//! Hard part: a key that is being renamed has two records for a while, and both name its pages. If the transaction has allocated these pages itself, no image
//! names them, and a crash between the two changes leaves both records to undo, which takes them away one after the other. So names are counted before the first
//! one goes. A crash in the middle of that changes nothing: who begins again counts what is there then.
//!
//! Only records that have an image are counted. That is enough, for pages that no image names were allocated by the transaction, and whatever names them was
//! written by it (`KeyTransaction::move_record`).

use std::collections::{HashMap, HashSet};

use pager::{PageId, Run};

use crate::error::Result;
use crate::keyspace::record;
use crate::txn::{Images, RECORDS, Store};

/// Who names the pages of the keys that a transaction has touched. Nobody else can name them, for the keys are locked.
pub(super) struct PageRefs {
    /// Named by images: these pages are needed again.
    kept: HashSet<PageId>,
    /// Records that name a page as they stand now.
    counts: HashMap<PageId, u32>,
}

impl PageRefs {
    pub fn of(store: &Store, images: &Images) -> Result<PageRefs> {
        let mut names = PageRefs { kept: HashSet::new(), counts: HashMap::new() };
        let mut current = Vec::new();
        for ((_, key), image) in images.range((RECORDS, Vec::new())..(RECORDS + 1, Vec::new())) {
            if let Some(image) = image {
                names.kept.extend(record::pages_of(image)?);
            }
            current.clear();
            if store.records.get(key, &mut current)?.present {
                for page in record::pages_of(&current)? {
                    *names.counts.entry(page).or_default() += 1;
                }
            }
        }
        Ok(names)
    }

    /// The record `current` goes. Returns the pages that nobody names any more.
    pub fn drop(&mut self, current: &[u8]) -> Result<Vec<Run>> {
        let mut last = Vec::new();
        for page in record::pages_of(current)? {
            let count = self.counts.get_mut(&page).expect("E8: a record of a locked key has changed during undo");
            *count -= 1;
            if *count == 0 && !self.kept.contains(&page) {
                last.push(page);
            }
        }
        Ok(record::runs_of(last.into_iter()))
    }
}
