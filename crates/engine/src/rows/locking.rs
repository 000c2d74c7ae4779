//! LOCKING.

use std::sync::Arc;

use pager::TxnId;

use crate::error::{Error, Result};
use crate::rows::lock_table::{Acquired, Strength};
use crate::rows::request::{Locked, Wait};
use crate::rows::state::Rows;
use crate::rows::transaction::Transaction;
use crate::store::maps::RowMap;
use crate::store::trees::MapId;

impl Transaction {
    /// LockTable a row until the end of the transaction and appends its newest committed value, or the transaction's own, to `out`. An absent row is locked too: nobody else can
    /// put it in.
    pub fn lock(
        &mut self,
        map: MapId,
        key: &[u8],
        strength: Strength,
        wait: Wait,
        out: &mut Vec<u8>,
    ) -> Result<Locked> {
        let rows = self.rows.clone();
        let map = rows.map(map)?;
        let mut turn = self.turn(&rows, map.id, key, strength);
        loop {
            let releases = rows.statuses.releases();
            match self.try_lock(&rows, &map, key, strength, out)? {
                Ok(locked) => return Ok(locked),
                Err(_) if wait == Wait::SkipLocked => return Ok(Locked::Skipped),
                Err(holder) => self.wait_for(&mut turn, holder, wait, releases)?,
            }
        }
    }

    /// Gives back the lock of the last `lock`, unless the transaction had it before: the row turned out not to be wanted, and the isolation level does not ask
    /// that it stays as it is.
    pub fn unlock_last(&mut self) {
        let Some((map, key, taken)) = self.locked_anew.take() else { return };
        let Some(writer) = &mut self.writer else { return };
        writer.unnote_lock(taken);
        self.rows.locks.give_back(&map, &key, writer.id, taken);
        self.rows.statuses.released(writer.id);
    }

    /// The same with the wait that `set_lock_wait` has set.
    pub fn lock_patiently(&mut self, map: MapId, key: &[u8], strength: Strength, out: &mut Vec<u8>) -> Result<Locked> {
        self.lock(map, key, strength, self.patience(), out)
    }

    /// The inner Err names who is in the way.
    fn try_lock(
        &mut self,
        rows: &Rows,
        map: &Arc<RowMap>,
        key: &[u8],
        strength: Strength,
        out: &mut Vec<u8>,
    ) -> Result<Result<Locked, TxnId>> {
        self.locked_anew = None;
        let writer = self.writer()?;
        let requester = writer.requester(strength);
        let taken = match rows.locks.take(map, key, requester, |id| rows.statuses.is_open(id)) {
            Ok(taken) => taken,
            Err(holder) => return Ok(Err(holder)),
        };
        writer.note_lock(map, key, taken);
        match self.newest(map, key, out) {
            Ok(Ok(present)) => {
                if taken != Acquired::AlreadyHeld {
                    self.locked_anew = Some((map.clone(), key.into(), taken));
                }
                Ok(Ok(if present { Locked::Present } else { Locked::Absent }))
            }
            Ok(Err(holder)) => {
                self.give_back(map, key, taken)?;
                Ok(Err(holder))
            }
            Err(Error::WouldBlock) => {
                let id = self.give_back(map, key, taken)?;
                // It may be long until this is tried again, and somebody may have met the lock (EN-22).
                rows.statuses.released(id);
                Err(Error::WouldBlock)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives back the lock that was noted last.
    fn give_back(&mut self, map: &RowMap, key: &[u8], taken: Acquired) -> Result<TxnId> {
        let rows = self.rows.clone();
        let writer = self.writer()?;
        writer.unnote_lock(taken);
        rows.locks.give_back(map, key, writer.id, taken);
        Ok(writer.id)
    }

    /// Until the end of the transaction nobody else puts a new row into the range. What others have put in and not committed is met by whoever reads the range
    /// afterwards with `lock`.
    pub fn lock_range(&mut self, map: MapId, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let map = self.rows.map(map)?;
        let rows = self.rows.clone();
        let writer = self.writer()?;
        rows.locks.take_range(&map, from, to, writer.id);
        if writer.range_locks.iter().all(|known| known.id != map.id) {
            writer.range_locks.push(map);
        }
        Ok(())
    }
}
