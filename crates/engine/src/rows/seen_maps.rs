//! Which maps are as old as a snapshot.
//!
//! Hard part: a map that is filled from other maps (an index, a table written anew) has the rows of one moment. Its records name the transaction that filled it, so to an older snapshot the map looks empty, and
//! to the creator itself it shows rows that an older snapshot of its own does not see. The layer above decides what a statement does then.
//!
//! A map may be shown to all snapshots: its creator counts as committed before each of them.
//!
//! EN-82: `sees` is true only if the map was complete, and all its rows visible, at the snapshot. Maps from before the last start are seen by all snapshots, since none is older than the start. A map counts as
//! committed before definitions that name it can be published.

use std::sync::Arc;

use pager::{Lsn, TxnId};
use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::rows::state::Rows;
use crate::rows::transaction::Transaction;
use crate::rows::visibility::{Snapshot, Visibility};
use crate::store::maps::RowMap;
use crate::store::trees::MapId;

/// Tells which maps a snapshot sees that is older than some.
#[derive(Clone)]
pub struct SeenMaps {
    rows: Arc<Rows>,
    lsn: Lsn,
    me: Option<TxnId>,
}

impl Transaction {
    /// Returns what tells the maps apart that the transaction's snapshot sees; `None` if it sees every map that is published. A snapshot that ends with its statement is none: the next statement takes a new one.
    pub fn seen_maps(&self) -> Option<SeenMaps> {
        let lsn = self.snapshot.filter(|_| self.keeps_snapshot())?.lsn;
        let has_made = self.writer.as_ref().is_some_and(|writer| !writer.made.is_empty());
        let misses = has_made || lsn < self.rows.newest_maps.load(Ordering::Acquire);
        misses.then(|| SeenMaps { rows: self.rows.clone(), lsn, me: self.id() })
    }
}

impl Transaction {
    /// Lets every snapshot see the rows that this transaction writes into a map that it has created. Nobody else knows the map before the commit.
    pub fn show_to_all(&mut self, map: MapId) -> Result<()> {
        let (rows, id) = (self.rows.clone(), self.writer()?.id);
        let map = rows.map(map)?;
        if map.creator != id {
            return Err(Error::Misuse("showing a map of another transaction"));
        }
        map.shown.store(id, Ordering::Release);
        Ok(())
    }
}

impl SeenMaps {
    /// Returns whether the map was complete at the snapshot.
    pub fn sees(&self, map: MapId) -> bool {
        self.rows.store.maps.get(map).is_none_or(|map| match Some(map.creator) == self.me {
            _ if map.shown.load(Ordering::Acquire) != 0 => true,
            true => map.created <= self.lsn,
            false => map.committed.load(Ordering::Acquire) <= self.lsn,
        })
    }
}

impl Rows {
    /// Returns whether a version in this map is visible.
    pub(super) fn visibility_in(
        &self,
        map: &RowMap,
        creator: TxnId,
        snapshot: Snapshot,
        me: Option<TxnId>,
    ) -> Visibility {
        // While the creator is open it sees its rows as any others of its own: they wait for no position of the WAL.
        if map.shown.load(Ordering::Relaxed) == creator {
            let committed = map.committed.load(Ordering::Acquire);
            if committed != Lsn::MAX {
                return Visibility::Yes(committed);
            }
        }
        self.visibility(creator, snapshot, me)
    }

    /// Notes that these maps have been created by a transaction with this COMMIT.
    pub(super) fn note_committed_maps(&self, maps: impl ExactSizeIterator<Item = MapId>, lsn: Lsn) {
        if maps.len() == 0 {
            return;
        }
        for map in maps.filter_map(|map| self.store.maps.get(map)) {
            map.committed.store(lsn, Ordering::Release);
        }
        self.newest_maps.fetch_max(lsn, Ordering::AcqRel);
    }
}
