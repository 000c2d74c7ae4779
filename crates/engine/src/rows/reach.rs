//! Reads that leave rather than wait for the disk: who serves many clients with one thread has the pages brought, serves others, and begins again.
//!
//! Hard part: whoever leaves must have changed nothing. So only reads leave; a change asks about its pages first (`look_ahead`), and then waits for what is still missing.

use std::sync::Arc;

use btree::{Ahead, Reach, Span};
use pager::{PageId, Then};
use stdx::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::rows::maps::Map;
use crate::rows::transaction::Transaction;
use crate::rows::{MapId, Rows};

/// How far a transaction's reads go for a page.
#[derive(Default)]
pub(crate) struct Near {
    pub reach: Reach,
    /// What the read that left was missing, and will be missing next.
    absent: Vec<PageId>,
}

impl Near {
    /// Notes what a read of the map was missing.
    pub fn note(&mut self, error: pager::Error) -> Error {
        if let pager::Error::Absent(page) = error {
            self.absent = vec![page];
        }
        error.into()
    }

    /// The same of a range: what it will want next is brought with it.
    pub fn note_range(&mut self, error: pager::Error, map: &Map, span: &Span) -> Error {
        let error = self.note(error);
        if matches!(error, Error::Absent) {
            let more = span.absent(&map.tree);
            self.absent.extend(more.into_iter().filter(|page| *page != self.absent[0]).collect::<Vec<_>>());
        }
        error
    }
}

impl Transaction {
    /// With `Reach::Memory`, reads of rows that would wait for the disk fail with `Error::Absent` from here on, having changed nothing. A transaction begins with `Reach::Disk`.
    pub fn reach(&mut self, reach: Reach) {
        self.near.reach = reach;
    }

    /// The pages that the last `Error::Absent` was about, for `Rows::fetch`.
    pub fn take_absent(&mut self) -> Vec<PageId> {
        std::mem::take(&mut self.near.absent)
    }

    /// True if memory cannot hold all pages: `look_ahead` is worth its descents then.
    pub fn is_crowded(&self) -> bool {
        self.rows.store.pager.is_crowded()
    }

    /// Before a change of these rows: the pages that it will need are brought together, or named by `Error::Absent`.
    pub fn look_ahead(&mut self, keys: &[(MapId, &[u8])]) -> Result<()> {
        let mut ahead = Vec::with_capacity(keys.len());
        for (map, key) in keys {
            self.rows.map(*map)?.tree.look_ahead(&[key], &mut ahead);
        }
        let absent: Vec<PageId> = ahead.into_iter().filter_map(Ahead::absent).collect();
        if absent.is_empty() {
            return Ok(());
        }
        if self.near.reach == Reach::Memory {
            self.near.absent = absent;
            return Err(Error::Absent);
        }
        self.rows.store.pager.prefetch_many(&absent);
        Ok(())
    }
}

impl Rows {
    /// Has the pages read, and calls `then` when all of them are in memory, or cannot be read; in this thread or another. Does not wait.
    pub fn fetch(&self, pages: &[PageId], then: Then) {
        let (left, then) =
            (Arc::new(AtomicUsize::new(pages.len().max(1))), Arc::new(stdx::sync::Mutex::new(Some(then))));
        let one = || -> Then {
            let (left, then) = (left.clone(), then.clone());
            Box::new(move || {
                if left.fetch_sub(1, Ordering::AcqRel) == 1
                    && let Some(then) = then.lock().take()
                {
                    then();
                }
            })
        };
        match pages {
            [] => one()(),
            pages => self.store.pager.fetch(pages.iter().map(|page| (*page, one()))),
        }
    }
}
