//! The facts that recovery takes from the WAL beside the pages: which transactions are undecided, and how many keys there are.
//!
//! The pager shows every record from the checkpoint on, in WAL order. Before-images of a transaction are kept until its COMMIT or ABORT comes by. Transactions
//! that are left at the end, the losers, are undone: those that changed nothing but rows of tables beside the service (`rows/undo_losers`), all others here,
//! before the doors open. Images of rows may exceed memory. They are then written to a file in sorted runs, as those of open transactions are, as long as the
//! disk has space. Keys are counted from the last COUNTS record on: see `keyspace/counts.rs` for how that is a consistent cut.

mod row_images;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use btree::redo::ChangeKind;
use btree::{Tree, redo};
use os::{Device, Folder};
use pager::{Lsn, Observer, Record, TxnId};
use stdx::hash::Seed;

use crate::error::{Error, Result};
use crate::keyspace::databases::{DatabaseMap, MAP_KEY};
use crate::keyspace::key::meta_of;
use crate::recovery::row_images::RowImages;
use crate::rows::loser_list::RecoveredLoser;
use crate::rows::run::{StepRef, UndoRun, Writers, scratch};
use crate::rows::undo::{UndoBudget, pieces, stretches, writer_of};
use crate::store::Store;
use crate::store::images::{Images, is_directory};
use crate::store::map_directory::parse_map;
use crate::store::trees::{CATALOG, EXPIRY, MAPS, MapId, QUEUE, RECORDS, ROW_CATALOG};
use crate::store::wal::kind;
use crate::store::wal::{Counted, decode_deltas};

#[derive(Default)]
struct Loser {
    first: Lsn,
    /// Images of keys, and of the directory of maps.
    images: Images,
    /// Images of rows since the last run.
    rows: RowImages,
    rows_bytes: u64,
    runs: Vec<UndoRun>,
    /// Number of rows in runs.
    written: u64,
    file: Option<Arc<dyn Device>>,
    /// Maps of the rows.
    maps: BTreeSet<MapId>,
}

impl Loser {
    /// Returns true if it can be undone beside the service, because only transactions that read or change its rows depend on it. Keys have no versions, and
    /// definitions are needed in memory from the beginning.
    fn has_rows_only(&self) -> bool {
        self.images.is_empty() && !self.maps.contains(&ROW_CATALOG)
    }

    /// Adds a row's image. The oldest since the last run counts; one that the transaction itself has written is not the oldest.
    fn add_row(&mut self, txn: TxnId, map: MapId, key: &[u8], before: Option<&[u8]>, budget: &UndoBudget) {
        if before.is_some_and(|before| writer_of(map, before) == Some(txn)) {
            return;
        }
        if map != QUEUE {
            self.maps.insert(map);
        }
        // As `UndoStep::bytes`, which it will become.
        let bytes = (256 + 3 * key.len() + 2 * before.map_or(0, <[u8]>::len)) as u64;
        budget.add(bytes);
        self.rows_bytes += bytes;
        self.rows.push(map, key, before);
    }

    /// Writes the rows in memory to a run. After an error they are still in memory.
    fn write_out(&mut self, txn: TxnId, folder: &dyn Folder, seed: Seed) -> Result<()> {
        let device = match &self.file {
            Some(device) => device,
            None => self.file.insert(scratch(folder)?),
        };
        self.rows.sort();
        let from = self.runs.last().map_or(0, UndoRun::end);
        self.runs.push(UndoRun::write(device, from, self.rows.steps(), Writers::One(txn), seed)?);
        self.written += self.rows.len() as u64;
        self.rows.clear();
        Ok(())
    }
}

type KeyCounts = HashMap<u32, Counted>;

/// Observes the WAL while the pager recovers.
pub(crate) struct Recovery {
    folder: Arc<dyn Folder>,
    /// The memory for images of rows.
    budget: UndoBudget,
    seed: Seed,
    losers: BTreeMap<TxnId, Loser>,
    counts: KeyCounts,
    /// The changes of key counts since the last mark, until its COUNTS record comes.
    mark: Option<(Lsn, KeyCounts)>,
    /// The smallest keyspace number that no transaction has given out, decided or not.
    next_space: u32,
    /// A record that could not be parsed, or an image that could not be kept: recovery must stop.
    pub damage: Option<Error>,
}

impl Recovery {
    pub fn new(folder: Arc<dyn Folder>, images_max: u64) -> Recovery {
        Recovery {
            folder,
            budget: UndoBudget::new(images_max),
            seed: Seed::default(),
            losers: BTreeMap::new(),
            counts: KeyCounts::new(),
            mark: None,
            next_space: 0,
            damage: None,
        }
    }

    fn forget(&mut self, txn: TxnId) {
        if let Some(loser) = self.losers.remove(&txn) {
            self.budget.sub(loser.rows_bytes);
        }
    }

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
            && let Ok(map) = DatabaseMap::decode(map)
        {
            self.next_space = self.next_space.max(map.next);
        }
        if let Some(txn) = record.txn {
            let loser = self.losers.entry(txn).or_insert_with(|| Loser { first: record.lsn_start, ..Loser::default() });
            let before = change.before.map(|(_, before)| before);
            if matches!(change.tree, CATALOG | RECORDS | EXPIRY) || is_directory(change.tree, change.key) {
                loser.images.entry((change.tree, change.key.to_vec())).or_insert_with(|| before.map(<[u8]>::to_vec));
                return;
            }
            loser.add_row(txn, change.tree, change.key, before, &self.budget);
            if self.budget.is_too_much(loser.rows_bytes) {
                match loser.write_out(txn, self.folder.as_ref(), self.seed) {
                    Ok(()) => self.budget.sub(std::mem::take(&mut loser.rows_bytes)),
                    // A start must not need disk space: from here on images stay in memory.
                    Err(Error::DiskFull) => self.budget.limit(u64::MAX),
                    Err(error) => {
                        self.damage.get_or_insert(error);
                    }
                }
            }
            return;
        }
        let by = match change.kind {
            ChangeKind::Insert => 1,
            ChangeKind::Delete => -1,
            ChangeKind::Update | ChangeKind::Patch => return,
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
                self.forget(txn);
                for (space, keys, expiries) in decode_deltas(record.body)? {
                    self.add(space, keys, expiries);
                }
            }
            (kind::ABORT, Some(txn)) => {
                self.forget(txn);
            }
            (kind::MARK, None) => self.mark = Some((record.lsn_end, KeyCounts::new())),
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

    /// Returns keys and expiry entries of each keyspace at the end of the WAL. Losers do not count, since transactions count at COMMIT only.
    pub fn counts(&self) -> &KeyCounts {
        &self.counts
    }

    pub fn next_space(&self) -> u32 {
        self.next_space
    }

    /// Registers the undecided transactions in the store, so that no checkpoint passes their first record (EN-9).
    pub fn announce(&self, store: &Store) {
        store.enlist_recovered(self.losers.iter().map(|(txn, loser)| (*txn, loser.first)));
    }

    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Takes the losers that are undone beside the service.
    pub fn take_losers(&mut self) -> Vec<RecoveredLoser> {
        let losers = std::mem::take(&mut self.losers).into_iter().filter(|(_, loser)| loser.has_rows_only());
        let taken = losers.map(|(id, mut loser)| {
            loser.rows.sort();
            let tail = loser.rows.steps().map(StepRef::to_step).collect();
            RecoveredLoser { id, tail, runs: loser.runs, maps: loser.maps }
        });
        taken.collect()
    }

    /// Undoes the others, and reports how many of how many rows and keys are done. Returns the number of transactions.
    pub fn undo_losers(&mut self, store: &Store, report: &dyn Fn(u64, u64)) -> Result<usize> {
        self.losers.values_mut().for_each(|loser| loser.rows.sort());
        // A map that a loser has dropped is in its images only.
        store.load_maps()?;
        // A map that a loser has created may already be garbage, if the crash interrupted its rollback. Its rows' values are restored as before.
        store.garbage_maps()?.into_iter().for_each(|tree| store.maps.add(tree));
        let losers = || self.losers.iter().filter(|(_, loser)| !loser.has_rows_only());
        for ((tree, key), image) in losers().flat_map(|(_, loser)| &loser.images) {
            if let (MAPS, Some(image)) = (*tree, image) {
                let (map, root) = parse_map(key, image)?;
                store.maps.add(Tree::open(&store.pager, map, root));
            }
        }
        let of = |loser: &Loser| (loser.images.len() + loser.rows.len()) as u64 + loser.written;
        let (mut done, all) = (0, losers().map(|(_, loser)| of(loser)).sum());
        for (txn, loser) in losers() {
            store.put_back(*txn, &loser.images, &loser.images)?;
            done += loser.images.len() as u64;
            let images = loser.rows.steps().map(|row| ((row.map, row.key.to_vec()), row.before.map(<[u8]>::to_vec)));
            pieces(images, |piece| {
                store.put_back(*txn, piece, &loser.images)?;
                done += piece.len() as u64;
                report(done, all);
                Ok(())
            })?;
            for run in loser.runs.iter().rev() {
                stretches(run, |stretch, rows| {
                    store.put_back(*txn, stretch, &loser.images)?;
                    done += rows;
                    report(done, all);
                    Ok(())
                })?;
            }
            store.log_abort(*txn);
            store.delist(*txn);
        }
        store.maps.clear();
        store.load_maps()?;
        Ok(losers().count())
    }
}

impl Observer for Recovery {
    fn observe(&mut self, record: &Record<'_>) {
        match record.page {
            Some(_) => self.change(record),
            None => {
                if self.logical(record).is_none() {
                    let what = format!("WAL record of kind {:#x} at {} cannot be parsed", record.kind, record.lsn_end);
                    self.damage.get_or_insert(Error::corrupt(what));
                }
            }
        }
    }
}
