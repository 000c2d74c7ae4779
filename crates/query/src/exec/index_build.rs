//! Builds indexes over existing rows: entries are collected, sorted and bulk-loaded.
//!
//! One scan serves all new indexes. Entries beyond `statement_memory` spill to sorted runs in a file (`exec/sorter`).
//! Pages are filled in key order. The maps belong to this transaction: loading needs no undo, since rolling the
//! statement back drops them as a whole (`engine::rows::Transaction::load`).

use std::ops::Bound::Unbounded;

use datum::{Fault, Result};
use engine::rows::{Inserted, RowBatch, Transaction};

use crate::batch::Cell;
use crate::catalog::decode::decode;
use crate::catalog::foreign_key::Deferral;
use crate::catalog::table::Table;
use crate::engine_fault::engine_fault;
use crate::exec::host::host;
use crate::exec::progress::{Of, Progress};
use crate::exec::row_change::duplicate;
use crate::exec::sorter::{Sorted, Sorter};
use crate::key;
use crate::nodes::context::EvalContext;
use crate::value::Value;

/// Returns the table's row count for progress, if statistics know it.
pub(super) fn all_of(table: &Table) -> Of {
    table.live.rows().map_or(Of::Unknown, Of::About)
}

/// Loads the entries of every row into the indexes at these positions, whose maps are empty.
pub fn fill(txn: &mut Transaction, table: &Table, fresh: &[usize], ctx: &mut EvalContext) -> Result<()> {
    let mut sorters: Vec<Sorter> = fresh.iter().map(|_| Sorter::default()).collect();
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let mut cursor = txn.scan(table.map, Unbounded, Unbounded, false).map_err(engine_fault)?;
    let (mut batch, mut row) = (RowBatch::new(), vec![Value::Null; all.len()]);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut progress = Progress::begin("altering table: reading", all_of(table));
    while cursor.next(txn, &mut batch).map_err(engine_fault)? {
        host(ctx).look_up()?;
        progress.add(batch.len(), host(ctx));
        for (row_key, bytes) in batch.iter() {
            decode(table, bytes, &all, &mut row)?;
            for (at, sorter) in fresh.iter().zip(&mut sorters).filter(|(at, _)| table.indexes[**at].has_entry(&row)) {
                key::each_entry(table, &table.indexes[*at], (&row, row_key), (&mut key, &mut value), |key, value| {
                    sorter.push(|out| out.extend_from_slice(key), std::iter::once(Cell::Bytes(value)), ctx)
                })?;
            }
        }
    }
    for (at, sorter) in fresh.iter().zip(sorters) {
        let entries = sorter.finish(&[], ctx)?;
        load(txn, table, *at, entries, ctx)?;
    }
    Ok(())
}

fn load(txn: &mut Transaction, table: &Table, at: usize, mut entries: Sorted, ctx: &mut EvalContext) -> Result<()> {
    let (mut progress, mut count) = (Progress::begin("altering table: building", Of::Exactly(entries.len())), 0u64);
    let index = &table.indexes[at];
    let mut former = Vec::new();
    while let Some(record) = entries.next_record()? {
        let (key, entry) = record.to_owned()?;
        let [Value::Bytes(value)] = &entry[..] else { return Err(Fault::corrupt("an entry in a temporary file")) };
        count += 1;
        if count.is_multiple_of(256) {
            host(ctx).look_up()?;
            progress.add(256, host(ctx));
        }
        if txn.load(index.map, &key, value.as_ref()).map_err(engine_fault)? == Inserted::Exists {
            return Err(taken(txn, table, at, (&key, value.as_ref()), ctx)?);
        }
        // Entries of a deferrable key are those of an index that is not unique.
        if index.deferral != Deferral::Never {
            let parts = &key[..key.len() - key::row_key(&key, value.as_ref()).len()];
            if count > 1 && *former == *parts && !may_repeat(txn, table, at, (&key, value.as_ref()))? {
                return Err(taken(txn, table, at, (&key, value.as_ref()), ctx)?);
            }
            former.clear();
            former.extend_from_slice(parts);
        }
    }
    Ok(())
}

/// Returns whether several rows may have the values of an entry: NULL is among them.
fn may_repeat(txn: &mut Transaction, table: &Table, index: usize, (key, value): (&[u8], &[u8])) -> Result<bool> {
    let index = &table.indexes[index];
    if index.nulls_equal {
        return Ok(false);
    }
    let columns: Vec<usize> = index.parts.iter().map(|part| part.column).collect();
    let (mut bytes, mut row) = (Vec::new(), vec![Value::Null; table.columns.len()]);
    txn.get(table.map, key::row_key(key, value), &mut bytes).map_err(engine_fault)?;
    decode(table, &bytes, &columns, &mut row)?;
    Ok(columns.iter().any(|column| row[*column].is_null()))
}

/// Returns the error for a duplicate entry; the arguments are those of the second row.
fn taken(
    txn: &mut Transaction,
    table: &Table,
    index: usize,
    (key, value): (&[u8], &[u8]),
    ctx: &mut EvalContext,
) -> Result<Fault> {
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let (mut bytes, mut row) = (Vec::new(), vec![Value::Null; all.len()]);
    txn.get(table.map, key::row_key(key, value), &mut bytes).map_err(engine_fault)?;
    decode(table, &bytes, &all, &mut row)?;
    Ok(duplicate(table, Some(index), &row, ctx))
}
