//! Locks of the rows that a snapshot sees, for wide rows that are joined already.
//!
//! QU-41: the candidates of such a lock are the rows that the statement's snapshot sees. Where the newest version of a row is another one, it takes the row's place in the wide row, and all conditions of the block
//! are rechecked; the rows of other tables stay as the snapshot has them. A row that was deleted since is passed over, one whose key was changed is followed.

use std::collections::VecDeque;

use datum::{Fault, Result};
use engine::rows::{LockedRow, Wait};

use crate::batch::Row;
use crate::catalog::table::Table;
use crate::engine_fault::engine_fault;
use crate::exec::host::host;
use crate::exec::row_ops::{BATCH, all_hold};
use crate::exec::{Exec, generated};
use crate::nodes::context::EvalContext;
use crate::nodes::node::{Lock, LockRows, LockWait, LockedTable};
use crate::value::Value;

pub struct LockRowsState {
    input: Exec,
    /// Wide rows whose rows are not locked yet.
    waiting: VecDeque<Row>,
    /// The number of rows that are still wanted below a LIMIT.
    wanted: Option<u64>,
}

impl LockRowsState {
    pub fn new(input: Exec, wanted: Option<u64>) -> LockRowsState {
        LockRowsState { input, waiting: VecDeque::new(), wanted }
    }

    /// Adds some rows, and locks no more than are wanted; none at the end.
    pub fn next(&mut self, node: &LockRows, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        let most = self.wanted.map_or(BATCH, |wanted| usize::try_from(wanted).unwrap_or(BATCH).clamp(1, BATCH));
        let mut batch = Vec::new();
        while out.len() < most {
            let Some(row) = self.waiting.pop_front() else {
                if !out.is_empty() || !self.input.next(ctx, &mut batch)? {
                    break;
                }
                self.waiting.extend(batch.drain(..));
                continue;
            };
            host(ctx).look_up()?;
            out.extend(locked(node, row, ctx)?);
        }
        if let Some(wanted) = &mut self.wanted {
            *wanted = wanted.saturating_sub(out.len() as u64);
        }
        Ok(())
    }
}

/// Locks the rows of a wide row. Returns None if one of them is gone or skipped, or a newer version does not satisfy the conditions.
fn locked(node: &LockRows, mut wide: Row, ctx: &mut EvalContext) -> Result<Option<Row>> {
    let mut is_newer = false;
    for LockedTable { table, offset, key_at, lock, needed } in &node.tables {
        // An outer join may have no row of the table.
        let Some(key) = wide[*key_at].as_string_bytes() else { continue };
        let mut bytes = Vec::new();
        match lock_seen(table, key, *lock, &mut bytes, ctx)? {
            LockedRow::Same => {}
            LockedRow::Newer(moved) => {
                is_newer = true;
                if let Some(key) = moved {
                    wide[*key_at] = Value::bytes(&key);
                }
                generated::decode(table, &bytes, needed, &mut wide[*offset..], ctx)?;
            }
            LockedRow::Gone | LockedRow::Skipped => return Ok(None),
        }
    }
    let is_wanted = !is_newer || recheck(node, &mut wide, ctx)?;
    Ok(is_wanted.then_some(wide))
}

/// Evaluates the conditions of the block again.
fn recheck(node: &LockRows, wide: &mut Row, ctx: &mut EvalContext) -> Result<bool> {
    for join in &node.outer {
        if !all_hold(&join.on, wide, ctx)? {
            join.fills.iter().for_each(|(from, to)| wide[*from..*to].fill(Value::Null));
        }
    }
    all_hold(&node.conditions, wide, ctx)
}

/// Locks a row that the snapshot sees, and appends its newest version if that is another one.
pub fn lock_seen(table: &Table, key: &[u8], lock: Lock, out: &mut Vec<u8>, ctx: &mut EvalContext) -> Result<LockedRow> {
    let txn = host(ctx).txn()?;
    let wait = match lock.wait {
        LockWait::Patient | LockWait::Choosy => txn.patience(),
        LockWait::NoWait => Wait::NoWait,
        LockWait::SkipLocked => Wait::SkipLocked,
    };
    let locked = txn.lock_seen(table.map, key, lock.strength, wait, out);
    locked.map_err(|error| match error {
        // A change tells a deleted row from a changed one, a locking read does not.
        engine::Error::SerializationFailure { is_deleted } => {
            Fault::SerializationFailure { is_deleted: is_deleted && ctx.changes_rows }
        }
        engine::Error::LockNotAvailable => Fault::LockNotAvailable { table: Some(table.name.as_str().into()) },
        other => engine_fault(other),
    })
}
