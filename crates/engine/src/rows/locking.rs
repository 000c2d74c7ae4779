//! Locking reads: locks on rows and ranges that a transaction does not change yet.

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
    /// Locks a row until the end of the transaction and appends its newest committed value, or the transaction's own, to `out`. An absent row is locked too, so
    /// that no other transaction can insert it.
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
        let mut attempt = self.attempt(&rows, map.id, key, strength);
        loop {
            let releases = rows.statuses.releases();
            match self.try_lock(&rows, &map, key, strength, out)? {
                Ok(locked) => return Ok(locked),
                Err(_) if wait == Wait::SkipLocked => return Ok(Locked::Skipped),
                Err(holder) => self.wait_for(&mut attempt, holder, wait, releases)?,
            }
        }
    }

    /// Releases the lock of the last `lock`, unless the transaction held it before. For rows that do not satisfy the statement's conditions, where the
    /// isolation level does not require that they stay as they are (EN-22).
    pub fn unlock_last(&mut self) {
        let Some((map, key, taken)) = self.locked_anew.take() else { return };
        let Some(writer) = &mut self.writer else { return };
        writer.unnote_lock(taken);
        self.rows.locks.release(&map, &key, writer.id, taken);
        self.rows.statuses.released(writer.id);
    }

    /// Does the same as `lock` with the timeout that `set_lock_wait` has set.
    pub fn lock_patiently(&mut self, map: MapId, key: &[u8], strength: Strength, out: &mut Vec<u8>) -> Result<Locked> {
        self.lock(map, key, strength, self.patience(), out)
    }

    /// Tries once. The inner `Err` is an open transaction that holds a conflicting lock.
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
                self.release(map, key, taken)?;
                Ok(Err(holder))
            }
            Err(Error::WouldBlock) => {
                let id = self.release(map, key, taken)?;
                // It may take long until the next try, and another transaction may have met the lock (EN-22).
                rows.statuses.released(id);
                Err(Error::WouldBlock)
            }
            Err(error) => Err(error),
        }
    }

    /// Releases the lock that was remembered last.
    fn release(&mut self, map: &RowMap, key: &[u8], taken: Acquired) -> Result<TxnId> {
        let rows = self.rows.clone();
        let writer = self.writer()?;
        writer.unnote_lock(taken);
        rows.locks.release(map, key, writer.id, taken);
        Ok(writer.id)
    }

    /// Locks a range against inserts by other transactions, until the end of this one. Uncommitted rows of others in the range are found by reading it
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
