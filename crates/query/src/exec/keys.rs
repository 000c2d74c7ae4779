//! Locking and changing rows of `redis.strings`: each row is a key of the keyspace, locked and changed by the
//! transaction.
//!
//! A row's key is the number of its database and the name. Locking reads lock named keys whether they exist or not. A
//! scan locks the keys whose committed values satisfy the conditions, and rechecks the conditions under the lock, so it
//! does not block changes of other keys. A key that turns out not to match is unlocked, at every isolation level, since
//! key ranges need no protection.

use std::sync::Arc;

use datum::fault::CellPosition;
use datum::{Fault, Result};
use engine::Kind;
use engine::rows::{KeyValue, LockedKey, Strength, Wait};

use crate::batch::Row;
use crate::catalog::keyspace_rows::{DB, KEY, KeyspaceTable, VALUE};
use crate::engine_fault::engine_fault;
use crate::exec::collection_rows;
use crate::exec::held_rows::HeldRows;
use crate::exec::host::host;
use crate::exec::keyspace_scan::{FoundKeys, find, read, row};
use crate::exec::row_ops;
use crate::exec::row_ops::all_hold;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{Candidates, Lock, LockWait};
use crate::nodes::system_table::SystemTable;
use crate::value::Value;

/// The number of keys that are read together before they are locked.
const TOGETHER: usize = 64;

fn row_key(db: u8, key: &[u8]) -> Vec<u8> {
    [&[db], key].concat()
}

fn named(row_key: &[u8]) -> Result<(u8, &[u8])> {
    let (db, key) = row_key.split_first().ok_or_else(|| Fault::corrupt("a key without a database"))?;
    Ok((*db, key))
}

pub fn database(value: &Value) -> Option<u8> {
    let db = match value {
        Value::UInt(db) => u8::try_from(*db).ok(),
        Value::Int(db) => u8::try_from(*db).ok(),
        _ => None,
    };
    db.filter(|db| *db < engine::DATABASES)
}

/// Checks that a given value is possible for a key. A number of no database is an error in every mode: truncated, it would be another key.
pub fn check(table: &KeyspaceTable, column: usize, value: &Value, row: u64) -> Result<()> {
    let is_too_long = || value.as_string_bytes().is_some_and(|bytes| bytes.len() as u64 > engine::VALUE_MAX);
    let at = |column: &str| Box::new(CellPosition { column: column.into(), row });
    match column {
        DB if database(value).is_none() => Err(Fault::OutOfRange(at("db"))),
        VALUE if table.kind == Kind::String && is_too_long() => Err(Fault::TooLong(at("value"))),
        _ if table.kind != Kind::String => collection_rows::check(table, column, value, row),
        _ => Ok(()),
    }
}

/// Returns the database and key of a new row.
fn name_of(row: &[Value]) -> Result<(u8, &[u8])> {
    let db = database(&row[DB]).ok_or_else(|| Fault::corrupt("a key of no database"))?;
    Ok((db, row[KEY].as_string_bytes().unwrap_or_default()))
}

/// Returns the value of a row. `kept` is the expiry of the key, if the row still shows it.
fn value_of(table: &KeyspaceTable, row: &[Value], kept: Option<(&Value, Option<u64>)>) -> KeyValue {
    let expire_at_ms = match (&row[table.expires_at()], kept) {
        (time, Some((shown, known))) if time == shown => known,
        (time, _) => (table.forms.instant_ms)(time),
    };
    KeyValue { value: row[VALUE].as_string_bytes().unwrap_or_default().into(), expire_at_ms }
}

/// Inserts the key. Returns its row key if it exists already.
pub fn put(table: &KeyspaceTable, row: &[Value], ctx: &mut EvalContext) -> Result<Option<Vec<u8>>> {
    if table.kind != Kind::String {
        return collection_rows::put(table, row, ctx);
    }
    let (db, key) = name_of(row)?;
    let new = value_of(table, row, None);
    let txn = host(ctx).txn()?;
    if let LockedKey::Present(_) = txn.lock_key_patiently(db, key, Strength::Exclusive).map_err(engine_fault)? {
        return Ok(Some(row_key(db, key)));
    }
    txn.put_key(db, key, new).map_err(engine_fault)?;
    Ok(None)
}

/// Deletes the key. Returns false if it has expired meanwhile.
pub fn take_out(table: &KeyspaceTable, row_key: &[u8], ctx: &mut EvalContext) -> Result<bool> {
    if table.kind != Kind::String {
        return collection_rows::take_out(table, row_key, ctx);
    }
    let (db, key) = named(row_key)?;
    host(ctx).txn()?.delete_key(db, key).map_err(engine_fault)
}

/// Updates the value of a key, and renames it if the name is new. Returns false if the new name exists.
pub fn replace(table: &KeyspaceTable, at: &[u8], old: &[Value], new: &[Value], ctx: &mut EvalContext) -> Result<bool> {
    if table.kind != Kind::String {
        return collection_rows::replace(table, at, old, new, ctx);
    }
    let (db, key) = named(at)?;
    let (new_db, new_key) = name_of(new)?;
    let txn = host(ctx).txn()?;
    let known = match txn.lock_key_patiently(db, key, Strength::Exclusive).map_err(engine_fault)? {
        LockedKey::Present(known) => known.expire_at_ms,
        // The key has expired since it was found, so the write is too late as well.
        _ => return Ok(true),
    };
    let value = value_of(table, new, Some((&old[table.expires_at()], known)));
    if (db, key) != (new_db, new_key) {
        if let LockedKey::Present(_) =
            txn.lock_key_patiently(new_db, new_key, Strength::Exclusive).map_err(engine_fault)?
        {
            return Ok(false);
        }
        txn.delete_key(db, key).map_err(engine_fault)?;
    }
    txn.put_key(new_db, new_key, value).map_err(engine_fault)?;
    Ok(true)
}

/// Locks the key and returns its row.
pub fn current(table: &KeyspaceTable, row_key: &[u8], ctx: &mut EvalContext) -> Result<Option<Row>> {
    if table.kind != Kind::String {
        return collection_rows::current(table, row_key, ctx);
    }
    let (db, key) = named(row_key)?;
    Ok(match host(ctx).txn()?.lock_key_patiently(db, key, Strength::Exclusive).map_err(engine_fault)? {
        LockedKey::Present(found) => Some(row(table.forms, db, key, &found.value, found.expire_at_ms)),
        LockedKey::Absent | LockedKey::Skipped => None,
    })
}

/// Returns how a scan of keys locks them. A commit validates no keys, so a transaction whose reads it validates locks the keys that it reads.
pub fn lock_of_scan(lock: Option<Lock>, ctx: &mut EvalContext) -> Option<Lock> {
    let own = Lock { strength: Strength::Shared, wait: LockWait::Patient, candidates: Candidates::Current };
    lock.or_else(|| is_validated(ctx).then_some(own))
}

/// Returns whether the commit validates what the transaction reads.
pub fn is_validated(ctx: &mut EvalContext) -> bool {
    host(ctx).txn.as_ref().is_some_and(|txn| txn.validates_reads())
}

/// Fails if keys that the statement does not name must not be read: no lock keeps others from adding to them.
pub fn check_walk(ctx: &mut EvalContext) -> Result<()> {
    if is_validated(ctx) { Err(Fault::KeyRangeRead) } else { Ok(()) }
}

/// The place of a key table in a statement, and how its rows are locked.
pub struct Locking<'l> {
    pub system: &'static SystemTable,
    pub keys: &'static KeyspaceTable,
    pub conditions: &'l [Expr],
    pub lock: Lock,
    pub offset: usize,
    pub width: usize,
    pub key_at: Option<usize>,
    pub base: Option<&'l Arc<Row>>,
}

impl Locking<'_> {
    /// Returns the wide rows that satisfy the conditions, with their keys locked.
    pub fn rows(&self, ctx: &mut EvalContext) -> Result<HeldRows> {
        let mut rows = HeldRows::default();
        find(self.system, self.conditions, self.offset, self.base.map(|row| &**row), ctx, |found, ctx| match found {
            FoundKeys::Named(keys) => keys.iter().try_for_each(|(db, key)| self.take(*db, key, &mut rows, ctx)),
            FoundKeys::Walked(db, keys) => {
                check_walk(ctx)?;
                keys.chunks(TOGETHER).try_for_each(|some| self.walk(db, some, &mut rows, ctx))
            }
        })?;
        Ok(rows)
    }

    fn walk(&self, db: u8, keys: &[Vec<u8>], rows: &mut HeldRows, ctx: &mut EvalContext) -> Result<()> {
        host(ctx).look_up()?;
        let keyspace = host(ctx).instance.engine().keyspace().clone();
        let names: Vec<(u8, &[u8])> = keys.iter().map(|key| (db, &**key)).collect();
        let mut committed = HeldRows::default();
        read(&keyspace, self.keys.forms, &names, &mut committed, ctx)?;
        for values in committed.into_parts().0 {
            let key = values[KEY].as_string_bytes().unwrap_or_default().to_vec();
            if self.wide(db, &key, values, ctx)?.is_some() {
                self.take(db, &key, rows, ctx)?;
            }
        }
        Ok(())
    }

    fn take(&self, db: u8, key: &[u8], rows: &mut HeldRows, ctx: &mut EvalContext) -> Result<()> {
        let strength = self.lock.strength;
        let txn = host(ctx).txn()?;
        let locked = match self.lock.wait {
            LockWait::Patient | LockWait::Choosy => txn.lock_key_patiently(db, key, strength).map_err(engine_fault)?,
            LockWait::NoWait => txn.lock_key(db, key, strength, Wait::NoWait).map_err(engine_fault)?,
            LockWait::SkipLocked => txn.lock_key(db, key, strength, Wait::SkipLocked).map_err(engine_fault)?,
        };
        let LockedKey::Present(found) = locked else { return Ok(()) };
        match self.wide(db, key, row(self.keys.forms, db, key, &found.value, found.expire_at_ms), ctx)? {
            Some(wide) => rows.push(wide, ctx)?,
            // That it does not match was read.
            None if is_validated(ctx) => {}
            None => host(ctx).txn()?.unlock_last(),
        }
        Ok(())
    }

    /// Returns the wide row of a key, or None if it does not satisfy the conditions.
    fn wide(&self, db: u8, key: &[u8], values: Row, ctx: &mut EvalContext) -> Result<Option<Row>> {
        let mut wide = row_ops::template(self.base, self.width);
        values.into_iter().enumerate().for_each(|(at, value)| wide[self.offset + at] = value);
        if let Some(at) = self.key_at {
            wide[at] = Value::bytes(row_key(db, key));
        }
        Ok(all_hold(self.conditions, &wide, ctx)?.then_some(wide))
    }
}
