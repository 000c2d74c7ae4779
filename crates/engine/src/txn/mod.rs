//! Units of several records: all of them or none, also over a crash.
//!
//! ```text
//!   begin        an id, and the log position before its first record among the active ones
//!   change ...   each record's log entry carries the id and what was there before; the tree shows it at once, key locks hide it
//!   commit       pages that became free go into the purge queue | COMMIT | the queue's entries are taken out and the pages freed
//!   abort        what was there before is put back, oldest image of each key only | ABORT
//! ```
//! After a crash the same undo runs for every transaction that has records in the log but neither COMMIT nor ABORT (`recover.rs`).
//!
//! Hard part: undo must be repeatable, because a crash may fall into it. Putting an image back is blind and so repeatable by itself; giving back the
//! pages of what it replaces is not. E7 and E8 in the README say why it still is.

mod names;
mod recover;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use btree::{Change, Modified, OldRecord, Tree, TreeId};
use pager::{Lsn, PageId, Pager, Run, TxnId, UndoReserve};
use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::keyspace::{MAP_GARBAGE, encode_version, is_version_key, record};
use crate::metrics::Metrics;
use crate::rows::maps::OpenMaps;

use names::PageRefs;
pub(crate) use recover::{Counted, Recovery};

/// Log records of the engine. docs/formats/log.md has the table.
pub(crate) mod kind {
    /// A transaction is decided: count of keyspaces u64, then for each keyspace u64, keys i64, expiries i64.
    pub const COMMIT: u8 = 0x20;
    /// A transaction has been undone.
    pub const ABORT: u8 = 0x21;
    /// Counting of keys begins: see `keyspace/counts.rs`.
    pub const MARK: u8 = 0x22;
    /// LSN of the mark u64, then as in COMMIT: how many keys there were at the mark.
    pub const COUNTS: u8 = 0x23;
}

/// No id given out since this opening is smaller.
pub(crate) fn first_id(pager: &Pager) -> u64 {
    pager.boot() << 40 | 1
}

/// What an undone record costs in the log beside key and values.
const UNDO_RECORD_BYTES: usize = 256;

/// A rollback needs room on a full disk.
pub static DISK_ROOM: stdx::wait::Reason = stdx::wait::Reason::new("disk_room");

pub(crate) const CATALOG: TreeId = 1;
pub(crate) const RECORDS: TreeId = 2;
pub(crate) const EXPIRY: TreeId = 3;
pub(crate) const QUEUE: TreeId = 4;
/// Which maps of rows there are.
pub(crate) const MAPS: TreeId = 5;
/// The first map of rows, which every database has.
pub(crate) const ROW_CATALOG: TreeId = 6;

/// Everything durable that the parts of the engine share.
pub(crate) struct Store {
    pub pager: Arc<Pager>,
    pub catalog: Tree,
    pub records: Tree,
    pub expiry: Tree,
    pub queue: Tree,
    pub maps_tree: Tree,
    pub maps: OpenMaps,
    pub metrics: Arc<Metrics>,
    /// The next transaction or version id: boot number << 40 | counter, so no id comes twice.
    next_id: AtomicU64,
    /// Transactions that are neither committed nor aborted, and the log position before their first record.
    active: Mutex<HashMap<TxnId, Lsn>>,
    /// Version ids whose elements are being written.
    pub creating: Mutex<HashSet<u64>>,
    /// Committed transactions whose entries in the purge queue a snapshot may still need.
    pub held: Mutex<HashSet<TxnId>>,
    /// Open transactions that have removed a key, and how many have been rolled back: a walk over keys asks whether a gap it saw may be closed again (S1).
    pub removing: AtomicU64,
    pub undone: AtomicU64,
    /// Nobody rings it: a rollback that finds the disk full tries again after a while.
    room: Condvar,
    pub is_threaded: bool,
}

/// Before-images, the oldest of each key.
pub(crate) type Images = BTreeMap<(TreeId, Vec<u8>), Option<Vec<u8>>>;

/// (keyspace, keys, expiries) by which a transaction changes the counts.
pub(crate) type Deltas = Vec<(u32, i64, i64)>;

impl Store {
    /// Opens the trees that every database has, making those that are not there yet.
    pub fn open(pager: Arc<Pager>, metrics: Arc<Metrics>, is_threaded: bool) -> Result<Store> {
        let tree = |id: TreeId| -> Result<Tree> {
            let root = Pager::well_known(u64::from(id) - 1);
            Ok(if pager.is_formatted(root)? {
                Tree::open(&pager, id, root)
            } else {
                Tree::create_at(&pager, id, root)?
            })
        };
        let (catalog, records, expiry, queue) = (tree(CATALOG)?, tree(RECORDS)?, tree(EXPIRY)?, tree(QUEUE)?);
        let (maps_tree, maps) = (tree(MAPS)?, OpenMaps::default());
        maps.add(tree(ROW_CATALOG)?);
        let next_id = AtomicU64::new(first_id(&pager));
        Ok(Store {
            catalog,
            records,
            expiry,
            queue,
            maps_tree,
            maps,
            metrics,
            next_id,
            active: Mutex::new(HashMap::new()),
            creating: Mutex::new(HashSet::new()),
            held: Mutex::new(HashSet::new()),
            removing: AtomicU64::new(0),
            undone: AtomicU64::new(0),
            room: Condvar::new(),
            is_threaded,
            pager,
        })
    }

    /// An id that was never given out before, not even before a crash.
    pub fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub fn tree(&self, id: TreeId) -> Option<Tree> {
        match id {
            CATALOG => Some(self.catalog.clone()),
            RECORDS => Some(self.records.clone()),
            EXPIRY => Some(self.expiry.clone()),
            QUEUE => Some(self.queue.clone()),
            MAPS => Some(self.maps_tree.clone()),
            map => self.maps.get(map).map(|map| map.tree.clone()),
        }
    }

    /// A transaction's first record comes next.
    pub fn enlist(&self, id: TxnId) {
        self.active.lock().insert(id, self.pager.wal_head());
    }

    /// The transaction is decided.
    pub fn delist(&self, id: TxnId) {
        self.active.lock().remove(&id);
    }

    pub fn begin(&self) -> RecordTxn<'_> {
        let id = self.new_id();
        self.enlist(id);
        self.txn(id)
    }

    fn txn(&self, id: TxnId) -> RecordTxn<'_> {
        RecordTxn {
            store: self,
            id,
            aside: self.pager.undo_reserve(),
            debt: UndoCost::default(),
            images: Images::new(),
            own: HashSet::new(),
            deferred: Vec::new(),
            deltas: Vec::new(),
            last: 0,
            removes: false,
            broken: None,
            joined: false,
            decided: false,
        }
    }

    /// Changes of keys that stand or fall with the rows of an open transaction: it logs how both end.
    pub fn join(&self, id: TxnId) -> RecordTxn<'_> {
        let mut txn = self.txn(id);
        txn.joined = true;
        txn
    }

    pub fn is_active(&self, txn: TxnId) -> bool {
        self.active.lock().contains_key(&txn)
    }

    /// No transaction under way has a record below this position.
    pub fn oldest_active(&self) -> Lsn {
        self.active.lock().values().copied().min().unwrap_or(Lsn::MAX)
    }

    pub fn wait_for_disk(&self) {
        let _waiting = stdx::wait::announce(&DISK_ROOM);
        let guard = self.creating.lock();
        drop(self.room.wait_timeout(guard, Duration::from_millis(100)));
    }

    /// Stops the process: what is in memory can no longer be made right, what is in the log can.
    pub fn fail(&self, error: &Error) -> ! {
        let error = pager::Error::Io { what: "undo".into(), error: std::io::Error::other(error.to_string()) };
        self.pager.fatal("a rollback failed, stopping so that recovery repeats it", &error)
    }

    pub fn logical(&self, kind: u8, txn: Option<TxnId>, body: &[u8]) -> Lsn {
        let mut mtr = self.pager.mtr();
        mtr.logical(kind, txn, &[body]);
        mtr.commit()
    }

    pub fn log_mark(&self) -> Lsn {
        self.logical(kind::MARK, None, &[])
    }

    pub fn log_counts(&self, mark: Lsn, counts: &[(u32, i64, i64)]) -> Lsn {
        let mut body = mark.to_le_bytes().to_vec();
        encode_deltas(counts, &mut body);
        self.logical(kind::COUNTS, None, &body)
    }

    /// Puts the images back and logs ABORT. Repeatable: after any part of it the whole may run again.
    pub fn undo(&self, txn: TxnId, images: &Images) -> Result<Lsn> {
        self.put_back(txn, images, images)?;
        Ok(self.log_abort(txn))
    }

    pub fn log_abort(&self, txn: TxnId) -> Lsn {
        let lsn = self.logical(kind::ABORT, Some(txn), &[]);
        self.metrics.txn_aborts.add(1);
        lsn
    }

    /// Puts images back. `directory` has those of the directory of maps, whether they are among `images` or not.
    ///
    /// What it writes to rows and the queue names no transaction: to recovery it is no step that would have to be taken back in its turn (U2). Records of keys are counted when their transaction
    /// is committed, so theirs do name it.
    pub fn put_back(&self, txn: TxnId, images: &Images, directory: &Images) -> Result<()> {
        let _undoing = self.pager.enter_undo();
        let mut names = PageRefs::of(self, images)?;
        let made = |map: &[u8]| directory.get(&(MAPS, map.to_vec())).is_some_and(Option::is_none);
        for ((tree_id, key), image) in images {
            match *tree_id {
                // A map that this transaction has made stays garbage, whoever has written the entry.
                QUEUE if key[0] == MAP_GARBAGE && made(&key[1..]) => continue,
                MAPS if image.is_none() => self.discard_map(key, txn)?,
                _ => {}
            }
            let tree = self.tree(*tree_id).ok_or_else(|| Error::corrupt(format!("undo of unknown tree {tree_id}")))?;
            let named = matches!(*tree_id, CATALOG | RECORDS | EXPIRY).then_some(txn);
            // The background leaves it alone until the transaction is decided (E12).
            let queued = encode_version(txn);
            let is_queued = *tree_id == QUEUE && is_version_key(key) && image.is_some();
            let image = if is_queued { Some(&queued[..]) } else { image.as_deref() };
            let done = tree.modify(key, named, |old, change| -> Result<()> {
                let current = old.map(|old| old.value);
                if current == image {
                    return Ok(());
                }
                if let (RECORDS, Some(current)) = (*tree_id, current) {
                    for run in names.drop(current)? {
                        change.free(run.first, run.pages);
                    }
                }
                match image {
                    Some(image) => change.put(&[image]),
                    None => change.delete(),
                }
                Ok(())
            })?;
            done.result?;
        }
        Ok(())
    }
}

/// Records that say which maps there are and which are garbage: few, and taken back as a whole.
pub(crate) fn is_directory(tree: TreeId, key: &[u8]) -> bool {
    tree == MAPS || (tree == QUEUE && key.first() == Some(&MAP_GARBAGE))
}

/// What taking a transaction back may need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UndoCost {
    /// Records that grow again when they are put back, and by how many bytes.
    growing: u64,
    growth: u64,
    pub log_bytes: u64,
}

/// Of one record: what is needed to make it `image` again, whose value has `now` bytes at present.
pub(crate) fn undo_cost(image: Option<&[u8]>, key: &[u8], now: usize) -> UndoCost {
    let then = image.map_or(0, <[u8]>::len);
    let growth = then.saturating_sub(now) as u64;
    // The record with what stands there now and what stood there before, and its share of a block of the log.
    let log_bytes = (UNDO_RECORD_BYTES + key.len() + then + now) as u64;
    UndoCost { growing: u64::from(growth > 0), growth, log_bytes }
}

impl UndoCost {
    pub fn replace(&mut self, old: UndoCost, new: UndoCost) {
        self.growing = self.growing + new.growing - old.growing;
        self.growth = self.growth + new.growth - old.growth;
        self.log_bytes = self.log_bytes + new.log_bytes - old.log_bytes;
    }

    /// PageChanges that undo may need to split leaves that others have filled meanwhile, and the parents of those, when one more record has changed.
    ///
    /// Each of the first thousand records is given a leaf of its own to split. More of them share leaves; and a split makes room for a good kilobyte.
    pub fn pages_with_one_more(&self) -> u64 {
        let leaves = (self.growing + 1).min(1000) + self.growth.div_ceil(1024);
        leaves + leaves / 16 + 8
    }
}

/// A transaction. Dropped undecided, it is rolled back.
pub(crate) struct RecordTxn<'s> {
    store: &'s Store,
    id: TxnId,
    /// Room for taking it back (E11).
    aside: UndoReserve,
    debt: UndoCost,
    images: Images,
    /// PageChanges that this transaction itself has allocated: nobody else needs them, and undo frees them.
    own: HashSet<PageId>,
    /// PageChanges of what was there before, no longer named: free once the transaction is committed.
    deferred: Vec<Run>,
    deltas: Deltas,
    last: Lsn,
    /// It has removed a key.
    removes: bool,
    /// A change failed half-way through a command: nothing of this transaction may be committed. True: for want of room.
    broken: Option<bool>,
    /// It is the keys' part of a transaction of rows, which decides it.
    joined: bool,
    decided: bool,
}

/// A transaction whose COMMIT can no longer fail.
pub(crate) struct PreparedCommit {
    /// Entries of the purge queue whose pages are free once it is committed.
    queued: Vec<[u8; 13]>,
    pub deltas: Deltas,
}

impl<'s> RecordTxn<'s> {
    pub fn id(&self) -> TxnId {
        self.id
    }

    #[cfg(test)]
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// True if this transaction has changed the record: then recovery has an image of it.
    pub fn has_changed(&self, tree: TreeId, key: &[u8]) -> bool {
        self.images.contains_key(&(tree, key.to_vec()))
    }

    /// Changes one record. `f` sees what is there and what the transaction knows about pages.
    pub fn change<R>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        f: impl FnOnce(Option<&OldRecord<'_>>, &mut PageChanges<'_, '_>) -> R,
    ) -> Result<Modified<R>> {
        self.sound()?;
        self.store.pager.admit()?;
        self.aside.reserve_pages(self.debt.pages_with_one_more())?;
        let (images, own, deferred) = (&mut self.images, &mut self.own, &mut self.deferred);
        let debt = &mut self.debt;
        let done = tree.modify(key, Some(self.id), |old, change| {
            let old_len = old.as_ref().map_or(0, |old| old.value.len());
            let entry = images.entry((tree.id(), key.to_vec()));
            let cost_before = match &entry {
                Entry::Occupied(entry) => undo_cost(entry.get().as_deref(), key, old_len),
                Entry::Vacant(_) => UndoCost::default(),
            };
            let image = entry.or_insert_with(|| old.as_ref().map(|old| old.value.to_vec()));
            let result = f(old.as_ref(), &mut PageChanges { change, txn: Some((own, deferred)) });
            debt.replace(cost_before, undo_cost(image.as_deref(), key, change.len_after(old_len)));
            result
        });
        self.aside.reserve_wal(self.debt.log_bytes);
        match done {
            Ok(done) => {
                self.last = self.last.max(done.lsn);
                Ok(done)
            }
            Err(error) => {
                let error = Error::from(error);
                self.breaks(&error);
                Err(error)
            }
        }
    }

    /// `change` of a record that must follow another one: if it is refused, what was begun is half done.
    pub fn change_too<R>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        f: impl FnOnce(Option<&OldRecord<'_>>, &mut PageChanges<'_, '_>) -> R,
    ) -> Result<Modified<R>> {
        let done = self.change(tree, key, f);
        done.inspect_err(|error| self.breaks(error))
    }

    /// Something is half done: all that is left is to take everything back.
    pub fn breaks(&mut self, error: &Error) {
        self.broken = Some(matches!(error, Error::DiskFull));
    }

    fn sound(&self) -> Result<()> {
        match self.broken {
            Some(true) => Err(Error::DiskFull),
            Some(false) => Err(Error::Io(std::io::Error::other("an earlier change of the unit failed"))),
            None => Ok(()),
        }
    }

    /// To be called before a key is removed.
    pub fn removes(&mut self) {
        if !std::mem::replace(&mut self.removes, true) {
            self.store.removing.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub fn count(&mut self, space: u32, keys: i64, expiries: i64) {
        match self.deltas.iter_mut().find(|delta| delta.0 == space) {
            Some(delta) => (delta.1, delta.2) = (delta.1 + keys, delta.2 + expiries),
            None => self.deltas.push((space, keys, expiries)),
        }
    }

    pub fn deltas(&self) -> &Deltas {
        &self.deltas
    }

    /// Makes the changes count. The caller still holds the key locks; the LSN is the gate of every reply that shows them.
    pub fn commit(mut self) -> Result<(Lsn, Deltas)> {
        let prepared = self.prepare()?;
        if self.last == 0 {
            self.finish();
            return Ok((0, Deltas::new()));
        }
        let mut body = Vec::new();
        encode_deltas(&prepared.deltas, &mut body);
        let lsn = self.store.logical(kind::COMMIT, Some(self.id), &body);
        self.store.metrics.txn_commits.add(1);
        Ok((lsn, self.committed(prepared)))
    }

    /// Everything before COMMIT that may fail.
    pub fn prepare(&mut self) -> Result<PreparedCommit> {
        self.sound()?;
        let deferred = std::mem::take(&mut self.deferred);
        let mut queued = Vec::new();
        for (at, runs) in deferred.chunks(crate::keyspace::QUEUED_RUNS_MAX).enumerate() {
            let key = crate::keyspace::queue_key_of_pages(self.id, at as u32);
            let value = crate::keyspace::encode_queued_pages(self.id, runs);
            let queue = &self.store.queue;
            self.change(queue, &key, |_, pages| pages.change.put(&[&value]))?;
            queued.push(key);
        }
        self.deltas.retain(|delta| (delta.1, delta.2) != (0, 0));
        Ok(PreparedCommit { queued, deltas: std::mem::take(&mut self.deltas) })
    }

    /// COMMIT is in the log: frees what it has made free.
    pub fn committed(mut self, prepared: PreparedCommit) -> Deltas {
        self.finish();
        for key in prepared.queued {
            // What fails here is left to the background, which finds it in the queue.
            let _ = self.store.free_queued_pages(&key);
        }
        prepared.deltas
    }

    /// For the rollback of the transaction that this one has joined.
    pub fn take_images(&mut self) -> Images {
        // Now, so that a panic on the way does not begin again.
        self.decided = true;
        std::mem::take(&mut self.images)
    }

    /// The transaction that this one has joined has been rolled back, with its images.
    pub fn taken_back(mut self) {
        self.store.undone.fetch_add(1, Ordering::AcqRel);
        self.finish();
    }

    /// Takes everything back. Returns the LSN of ABORT, 0 if nothing had been changed.
    pub fn abort(mut self) -> Lsn {
        self.roll_back()
    }

    fn roll_back(&mut self) -> Lsn {
        // Now, so that a panic on the way does not begin again.
        self.decided = true;
        let images = std::mem::take(&mut self.images);
        let mut lsn = 0;
        if self.last != 0 || self.broken.is_some() {
            lsn = loop {
                match self.store.undo(self.id, &images) {
                    Ok(lsn) => break lsn,
                    // An image longer than what replaced it may need a page. Its keys stay locked until there is one.
                    Err(Error::DiskFull) if self.store.is_threaded => self.store.wait_for_disk(),
                    // The changes stand in pages that can no longer be reached. Recovery can put it right, going on cannot.
                    Err(error) => self.store.fail(&error),
                }
            };
        }
        self.store.undone.fetch_add(1, Ordering::AcqRel);
        self.finish();
        lsn
    }

    fn finish(&mut self) {
        self.decided = true;
        if self.removes {
            self.store.removing.fetch_sub(1, Ordering::AcqRel);
        }
        if !self.joined {
            self.store.delist(self.id);
        }
    }
}

impl Drop for RecordTxn<'_> {
    fn drop(&mut self) {
        if self.joined && !self.decided && !self.store.pager.is_dead() {
            // A panic in the midst of a commit. Rows and keys could only be taken back apart, and the log must not say ABORT twice.
            self.store.fail(&Error::Misuse("a commit of rows and keys broke off"));
        }
        if !self.decided && !self.joined {
            self.roll_back();
        }
    }
}

/// A change of one record, within a transaction or alone.
pub(crate) struct PageChanges<'c, 't> {
    pub change: &'c mut Change,
    txn: Option<(&'t mut HashSet<PageId>, &'t mut Vec<Run>)>,
}

impl<'c, 't> PageChanges<'c, 't> {
    pub fn alone(change: &'c mut Change) -> PageChanges<'c, 't> {
        PageChanges { change, txn: None }
    }

    /// The record names these pages from now on.
    pub fn allocated(&mut self, runs: &[Run]) {
        for run in runs {
            self.change.allocated(run.first, run.pages);
            if let Some((own, _)) = &mut self.txn {
                own.extend(run.first..run.first + u64::from(run.pages));
            }
        }
    }

    /// No record names these pages any more. Alone, they are free with the change; in a transaction only what it allocated itself is (E8).
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

pub(crate) fn encode_deltas(deltas: &[(u32, i64, i64)], out: &mut Vec<u8>) {
    out.extend_from_slice(&(deltas.len() as u64).to_le_bytes());
    for (space, keys, expiries) in deltas {
        out.extend_from_slice(&u64::from(*space).to_le_bytes());
        out.extend_from_slice(&keys.to_le_bytes());
        out.extend_from_slice(&expiries.to_le_bytes());
    }
}

pub(crate) fn decode_deltas(bytes: &[u8]) -> Option<Deltas> {
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
    let (count, words) = words.split_first()?;
    if words.len() as u64 != count.checked_mul(3)? || !bytes.len().is_multiple_of(8) {
        return None;
    }
    words.chunks_exact(3).map(|word| Some((u32::try_from(word[0]).ok()?, word[1] as i64, word[2] as i64))).collect()
}
