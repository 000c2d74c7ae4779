//! What recovery must know beside the pages: which transactions were not decided, and how many keys there are.
//!
//! The pager shows every record from the checkpoint on, in log order. Before-images of a transaction are kept until its COMMIT or ABORT comes by; what is
//! left at the end is undone. Keys are counted from the last COUNTS record: see `keyspace/counts.rs` for how that is a consistent cut.

use std::collections::{BTreeMap, HashMap};

use btree::Tree;
use btree::redo::{self, Kind};
use pager::{Lsn, Observer, Record, TxnId};

use crate::error::Result;
use crate::keyspace::{MAP_KEY, Map, meta_of};
use crate::rows::maps;
use crate::txn::{CATALOG, EXPIRY, Images, MAPS, RECORDS, Store, decode_deltas, kind};

/// Keys and expiries of a keyspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub keys: i64,
    pub expiries: i64,
}

#[derive(Default)]
struct Loser {
    first: Lsn,
    images: Images,
}

type Counts = HashMap<u32, Counted>;

/// Watches the log while the pager recovers.
#[derive(Default)]
pub(crate) struct Recovery {
    losers: BTreeMap<TxnId, Loser>,
    counts: Counts,
    /// What was counted since the last mark, until the COUNTS record that belongs to it is seen.
    mark: Option<(Lsn, Counts)>,
    /// The first keyspace number that no unit has given out, be it decided or not.
    next_space: u32,
    /// Records that could not be understood: recovery must not go on.
    pub damage: Option<String>,
}

impl Recovery {
    fn add(&mut self, space: u32, keys: i64, expiries: i64) {
        let since_mark = self.mark.as_mut().map(|(_, counts)| counts);
        for counts in [Some(&mut self.counts), since_mark].into_iter().flatten() {
            let counted = counts.entry(space).or_default();
            counted.keys += keys;
            counted.expiries += expiries;
        }
    }

    fn change(&mut self, record: &Record<'_>) {
        let Some(change) = redo::decode(record) else { return };
        if let (CATALOG, MAP_KEY, Some(map)) = (change.tree, change.key, change.after)
            && let Ok(map) = Map::decode(map)
        {
            self.next_space = self.next_space.max(map.next);
        }
        if let Some(txn) = record.txn {
            let loser = self.losers.entry(txn).or_insert_with(|| Loser { first: record.lsn_start, ..Loser::default() });
            let before = change.before.map(|(_, before)| before.to_vec());
            loser.images.entry((change.tree, change.key.to_vec())).or_insert(before);
            return;
        }
        let by = match change.kind {
            Kind::Insert => 1,
            Kind::Delete => -1,
            Kind::Update => return,
        };
        match change.tree {
            RECORDS => {
                if let Ok(Some(space)) = meta_of(change.key) {
                    self.add(space, by, 0);
                }
            }
            EXPIRY => {
                if let Some(Ok(Some(space))) = change.key.get(8..).map(meta_of) {
                    self.add(space, 0, by);
                }
            }
            _ => {}
        }
    }

    fn logical(&mut self, record: &Record<'_>) -> Option<()> {
        match (record.kind, record.txn) {
            (kind::COMMIT, Some(txn)) => {
                self.losers.remove(&txn);
                for (space, keys, expiries) in decode_deltas(record.body)? {
                    self.add(space, keys, expiries);
                }
            }
            (kind::ABORT, Some(txn)) => {
                self.losers.remove(&txn);
            }
            (kind::MARK, None) => self.mark = Some((record.lsn_end, Counts::new())),
            (kind::COUNTS, None) => {
                let (mark, counts) = record.body.split_first_chunk::<8>()?;
                let counts = decode_deltas(counts)?;
                let Some((lsn, since)) = &self.mark else { return Some(()) };
                if *lsn == u64::from_le_bytes(*mark) {
                    self.counts = since.clone();
                    for (space, keys, expiries) in counts {
                        let counted = self.counts.entry(space).or_default();
                        counted.keys += keys;
                        counted.expiries += expiries;
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Keys and expiries of each keyspace at the end of the log. The losers' are not among them: they count at COMMIT only.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub fn next_space(&self) -> u32 {
        self.next_space
    }

    /// Tells the store which transactions are undecided, so that no checkpoint passes their first record (E9).
    pub fn announce(&self, store: &Store) {
        let mut active = store.active.lock();
        active.extend(self.losers.iter().map(|(txn, loser)| (*txn, loser.first)));
    }

    /// Undoes what was not decided. Returns how many transactions that were.
    pub fn undo_losers(&self, store: &Store) -> Result<usize> {
        // A map that a loser has dropped is in its images only.
        store.maps.load(store)?;
        for ((tree, key), image) in self.losers.values().flat_map(|loser| &loser.images) {
            if let (MAPS, Some(image)) = (*tree, image) {
                let (map, root) = maps::parse(key, image)?;
                store.maps.add(Tree::open(&store.pager, map, root));
            }
        }
        for (txn, loser) in &self.losers {
            store.undo(*txn, &loser.images)?;
            store.delist(*txn);
        }
        store.maps.clear();
        store.maps.load(store)?;
        Ok(self.losers.len())
    }
}

impl Observer for Recovery {
    fn observe(&mut self, record: &Record<'_>) {
        match record.page {
            Some(_) => self.change(record),
            None => {
                if self.logical(record).is_none() {
                    let what = format!("log record of kind {:#x} at {} makes no sense", record.kind, record.lsn_end);
                    self.damage.get_or_insert(what);
                }
            }
        }
    }
}
