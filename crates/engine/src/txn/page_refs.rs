//! Which pages undo frees: those whose last reference it removes and that no image refers to (EN-7, EN-8).
//!
//! Hard part: while a key is being renamed, two records refer to its pages. If the transaction allocated these pages itself, no image refers to them, and a
//! crash between the two changes leaves both records to undo, which deletes one after the other. So references are counted before the first record is deleted.
//! A crash in the middle does no harm: the next undo counts what is there then.
//!
//! Only records with an image are counted. That suffices: pages that no image refers to were allocated by the transaction, and every record that refers to them
//! was written by it (`KeyTransaction::move_record`).

use std::collections::{HashMap, HashSet};

use pager::{PageId, Run};

use crate::error::Result;
use crate::keyspace::record;
use crate::store::Store;
use crate::store::images::Images;
use crate::store::trees::RECORDS;

/// The references to pages of the keys that a transaction touched. No other record can refer to these pages, since the keys are locked.
pub(super) struct PageRefs {
    /// Pages that images refer to: they are needed again.
    kept: HashSet<PageId>,
    /// For each page, the number of current records that refer to it.
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

    /// Removes the references of record `current`. Returns the pages that have none left.
    pub fn drop(&mut self, current: &[u8]) -> Result<Vec<Run>> {
        let mut last = Vec::new();
        for page in record::pages_of(current)? {
            let count = self.counts.get_mut(&page).expect("EN-8: a record of a locked key has changed during undo");
            *count -= 1;
            if *count == 0 && !self.kept.contains(&page) {
                last.push(page);
            }
        }
        Ok(record::runs_of(last.into_iter()))
    }
}
