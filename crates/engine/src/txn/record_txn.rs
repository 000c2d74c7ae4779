//! A transaction over records of the shared trees: all of its changes or none, also after a crash.
//!
//! ```text
//!   begin        an id, enlisted with the WAL position before its first record
//!   change ...   each change's WAL record has the id and the before-image; the tree shows it at once, lock stripes hide it
//!   commit       replaced pages go into the purge queue | COMMIT | the queue's entries are removed and the pages freed
//!   abort        the oldest image of each record is restored | ABORT
//! ```
//! After a crash the same undo runs for every transaction that has records in the WAL but neither COMMIT nor ABORT (`recovery`).
//!
//! Hard part: undo must be idempotent, because a crash may interrupt it. Restoring an image without looking at the current record is idempotent; freeing the
//! pages of what it replaces is not by itself. EN-7 and EN-8 in the README say why it still is.

use std::collections::HashSet;
use std::collections::btree_map::Entry;

use btree::{LeafHint, Modified, OldRecord, Tree, TreeId};
use pager::{Lsn, PageId, Run, TxnId, UndoReserve};
use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::images::Images;
use crate::store::purge_queue::{QUEUED_RUNS_MAX, Queued, encode_queued_pages, queue_key_of_pages};
use crate::store::wal::{Deltas, encode_deltas, kind};
use crate::txn::page_changes::PageChanges;
use crate::txn::undo_cost::{UndoCost, undo_cost};

/// A transaction over records. It is rolled back if it is dropped undecided.
pub(crate) struct RecordTxn<'s> {
    store: &'s Store,
    id: TxnId,
    /// Pages and WAL bytes reserved for the undo (EN-11).
    reserve: UndoReserve,
    undo_cost: UndoCost,
    images: Images,
    /// Pages that this transaction allocated itself. No other transaction needs them, and undo frees them.
    own: HashSet<PageId>,
    /// Pages of replaced values, to which no record refers any more. They are free once the transaction is committed.
    deferred: Vec<Run>,
    deltas: Deltas,
    last: Lsn,
    /// It has removed a key.
    removes: bool,
    /// A change failed half-way through a command, so the transaction cannot commit. True: because the disk was full.
    broken: Option<bool>,
    /// It is the keys' part of a transaction of rows, which writes COMMIT or ABORT (EN-41).
    joined: bool,
    decided: bool,
}

/// A transaction whose COMMIT can no longer fail.
pub(crate) struct PreparedCommit {
    /// Purge queue entries whose pages are free once the transaction is committed.
    queued: Vec<[u8; 13]>,
    pub deltas: Deltas,
}

impl<'s> RecordTxn<'s> {
    /// Begins a transaction with an id of its own.
    pub fn begin(store: &'s Store) -> RecordTxn<'s> {
        let id = store.new_id();
        store.enlist(id);
        Self::new(store, id)
    }

    fn new(store: &'s Store, id: TxnId) -> RecordTxn<'s> {
        RecordTxn {
            store,
            id,
            reserve: store.pager.undo_reserve(),
            undo_cost: UndoCost::default(),
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

    /// Begins the keys' part of the open row transaction `id`, which writes COMMIT or ABORT for both.
    pub fn join(store: &'s Store, id: TxnId) -> RecordTxn<'s> {
        let mut txn = Self::new(store, id);
        txn.joined = true;
        txn
    }

    pub fn id(&self) -> TxnId {
        self.id
    }

    #[cfg(test)]
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// Returns true if this transaction has changed the record, so that recovery has an image of it.
    pub fn has_changed(&self, tree: TreeId, key: &[u8]) -> bool {
        self.images.contains_key(&(tree, key.to_vec()))
    }

    /// Changes one record. `f` gets the current record and the page bookkeeping. A failure of the tree leaves the transaction broken.
    pub fn change<R>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        f: impl FnOnce(Option<&OldRecord<'_>>, &mut PageChanges<'_, '_>) -> R,
    ) -> Result<Modified<R>> {
        self.change_at(LeafHint::Unknown, tree, key, f)
    }

    /// Does the same, beginning at the leaf of the hint.
    pub fn change_at<R>(
        &mut self,
        leaf: LeafHint,
        tree: &Tree,
        key: &[u8],
        f: impl FnOnce(Option<&OldRecord<'_>>, &mut PageChanges<'_, '_>) -> R,
    ) -> Result<Modified<R>> {
        self.sound()?;
        self.store.pager.admit()?;
        self.reserve.reserve_pages(self.undo_cost.pages_with_one_more())?;
        let (images, own, deferred) = (&mut self.images, &mut self.own, &mut self.deferred);
        let cost = &mut self.undo_cost;
        let done = tree.modify_with_hint(leaf, key, Some(self.id), |old, change| {
            let old_len = old.as_ref().map_or(0, |old| old.value.len());
            let entry = images.entry((tree.id(), key.to_vec()));
            let cost_before = match &entry {
                Entry::Occupied(entry) => undo_cost(entry.get().as_deref(), key, old_len),
                Entry::Vacant(_) => UndoCost::default(),
            };
            let image = entry.or_insert_with(|| old.as_ref().map(|old| old.value.to_vec()));
            let result = f(old.as_ref(), &mut PageChanges { change, txn: Some((own, deferred)) });
            cost.replace(cost_before, undo_cost(image.as_deref(), key, change.len_after(old_len)));
            result
        });
        self.reserve.reserve_wal(self.undo_cost.log_bytes);
        match done {
            Ok(done) => {
                self.last = self.last.max(done.lsn);
                Ok(done)
            }
            Err(error) => {
                let error = Error::from(error);
                self.mark_broken(&error);
                Err(error)
            }
        }
    }

    /// Does the same for a record that must follow another one: any failure leaves the transaction broken.
    pub fn change_too<R>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        f: impl FnOnce(Option<&OldRecord<'_>>, &mut PageChanges<'_, '_>) -> R,
    ) -> Result<Modified<R>> {
        let done = self.change(tree, key, f);
        done.inspect_err(|error| self.mark_broken(error))
    }

    /// Marks the transaction as broken: a command has stopped half-way, so it can only be rolled back.
    pub fn mark_broken(&mut self, error: &Error) {
        self.broken = Some(matches!(error, Error::DiskFull));
    }

    fn sound(&self) -> Result<()> {
        match self.broken {
            Some(true) => Err(Error::DiskFull),
            Some(false) => Err(Error::Io(std::io::Error::other("an earlier change of the transaction failed"))),
            None => Ok(()),
        }
    }

    /// Notes that a key is about to be removed.
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

    /// Commits. The caller still holds the lock stripes. Returns the LSN of COMMIT, which is the durability LSN of every reply that shows the changes; 0 if
    /// nothing was changed.
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

    /// Does everything before COMMIT that may fail.
    pub fn prepare(&mut self) -> Result<PreparedCommit> {
        self.sound()?;
        let deferred = std::mem::take(&mut self.deferred);
        let mut queued = Vec::new();
        for (at, runs) in deferred.chunks(QUEUED_RUNS_MAX).enumerate() {
            let key = queue_key_of_pages(self.id, at as u32);
            let value = encode_queued_pages(self.id, runs);
            let queue = &self.store.queue;
            self.change(queue, &key, |_, pages| pages.change.put(&[&value]))?;
            queued.push(key);
        }
        self.deltas.retain(|delta| (delta.1, delta.2) != (0, 0));
        Ok(PreparedCommit { queued, deltas: std::mem::take(&mut self.deltas) })
    }

    /// Frees the replaced pages. COMMIT must be in the WAL.
    pub fn committed(mut self, prepared: PreparedCommit) -> Deltas {
        self.finish();
        for key in prepared.queued {
            // If this fails, the background thread finds the entry in the queue.
            let _ = self.store.free_queued_pages(&key);
        }
        prepared.deltas
    }

    /// Returns the before-images, for the rollback of the row transaction that this one has joined.
    pub fn take_images(&mut self) -> Images {
        // Set first, so that a panic on the way does not start another rollback.
        self.decided = true;
        std::mem::take(&mut self.images)
    }

    /// Ends the keys' part after the row transaction has been rolled back together with its images.
    pub fn rolled_back(mut self) {
        self.store.undone.fetch_add(1, Ordering::AcqRel);
        self.finish();
    }

    /// Rolls back. Returns the LSN of ABORT, 0 if nothing was changed.
    pub fn abort(mut self) -> Lsn {
        self.roll_back()
    }

    fn roll_back(&mut self) -> Lsn {
        // Set first, so that a panic on the way does not start another rollback.
        self.decided = true;
        let images = std::mem::take(&mut self.images);
        let mut lsn = 0;
        if self.last != 0 || self.broken.is_some() {
            lsn = loop {
                match self.store.undo(self.id, &images) {
                    Ok(lsn) => break lsn,
                    // An image longer than its successor may need a page. The keys stay locked until there is one.
                    Err(Error::DiskFull) if self.store.is_threaded => self.store.wait_for_disk(),
                    // The changes are in pages that can no longer be reached. Recovery can repair that; the running process cannot.
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
            // A panic during a commit. Rows and keys could only be undone separately, and the WAL must not contain two ABORTs.
            self.store.fail(&Error::Misuse("a commit of rows and keys was interrupted"));
        }
        if !self.decided && !self.joined {
            self.roll_back();
        }
    }
}

impl Store {
    /// Frees the pages of a decided entry and removes it, atomically. If the entry is gone, does nothing.
    pub fn free_queued_pages(&self, key: &[u8]) -> Result<()> {
        let done = self.queue.modify(key, None, |old, change| -> Result<()> {
            let Some(old) = old else { return Ok(()) };
            let Queued::Pages { runs, .. } = Queued::parse(key, old.value)? else {
                return Err(Error::corrupt("a purge entry of another kind"));
            };
            for run in runs {
                change.free(run.first, run.pages);
            }
            change.delete();
            Ok(())
        })?;
        done.result
    }
}
