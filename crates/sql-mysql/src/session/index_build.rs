//! Builds indexes over existing rows: entries are collected, sorted and bulk-loaded.
//!
//! One scan serves all new indexes. Entries beyond `statement_memory` spill to sorted runs in a file (`exec/sorter`).
//! Pages are filled in key order. The maps belong to this transaction: loading needs no undo, since rolling the
//! statement back drops them as a whole (`engine::rows::Transaction::load`).

use std::ops::Bound::Unbounded;

use engine::rows::{Inserted, RowBatch, Transaction};

use crate::batch::Cell;
use crate::error::{self, Result, SqlError};
use crate::value::Value;
use query::catalog::decode::decode;
use query::catalog::table::{Index, Table};
use query::exec::host::host;
use query::exec::progress::{Of, Progress};
use query::exec::sorter::{Sorted, Sorter};
use query::key;
use query::nodes::context::EvalContext;

/// Returns the table's row count for progress, if statistics know it.
pub(super) fn all_of(table: &Table) -> Of {
    table.live.rows().map_or(Of::Unknown, Of::About)
}

/// Loads the entries of every row into the new indexes.
pub(super) fn fill(txn: &mut Transaction, table: &Table, fresh: &[usize], ctx: &mut EvalContext) -> Result<()> {
    let mut sorters: Vec<Sorter> = fresh.iter().map(|_| Sorter::default()).collect();
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let mut cursor = txn.scan(table.map, Unbounded, Unbounded, false)?;
    let (mut batch, mut row) = (RowBatch::new(), vec![Value::Null; all.len()]);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut progress = Progress::begin("altering table: reading", all_of(table));
    while cursor.next(txn, &mut batch)? {
        host(ctx).look_up()?;
        progress.add(batch.len(), host(ctx));
        for (row_key, bytes) in batch.iter() {
            decode(table, bytes, &all, &mut row)?;
            for (at, sorter) in fresh.iter().zip(&mut sorters) {
                key::entry(table, &table.indexes[*at], &row, row_key, &mut key, &mut value)?;
                sorter.push(|out| out.extend_from_slice(&key), std::iter::once(Cell::Bytes(&value)), ctx)?;
            }
        }
    }
    for (at, sorter) in fresh.iter().zip(sorters) {
        let entries = sorter.finish(&[], ctx)?;
        load(txn, table, &table.indexes[*at], entries, ctx)?;
    }
    Ok(())
}

fn load(txn: &mut Transaction, table: &Table, index: &Index, mut entries: Sorted, ctx: &mut EvalContext) -> Result<()> {
    let (mut progress, mut count) = (Progress::begin("altering table: building", Of::Exactly(entries.len())), 0u64);
    while let Some(record) = entries.next_record()? {
        let (key, entry) = record.to_owned()?;
        let [Value::Bytes(value)] = &entry[..] else { return Err(SqlError::corrupt("an entry in a temporary file")) };
        count += 1;
        if count.is_multiple_of(256) {
            host(ctx).look_up()?;
            progress.add(256, host(ctx));
        }
        if txn.load(index.map, &key, value.as_ref())? == Inserted::Exists {
            return Err(duplicate(txn, table, index, (&key, value.as_ref()), ctx)?);
        }
    }
    Ok(())
}

/// Returns the error for a duplicate entry; the arguments are those of the second row.
fn duplicate(
    txn: &mut Transaction,
    table: &Table,
    index: &Index,
    (key, value): (&[u8], &[u8]),
    ctx: &mut EvalContext,
) -> Result<SqlError> {
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let (mut bytes, mut row) = (Vec::new(), vec![Value::Null; all.len()]);
    txn.get(table.map, key::row_key(key, value), &mut bytes)?;
    decode(table, &bytes, &all, &mut row)?;
    let text = |part: &query::catalog::table::Part| {
        crate::system::value_text(&row[part.column], &table.columns[part.column].ty, ctx)
    };
    let shown: Vec<String> = index.parts.iter().map(text).collect();
    Ok(error::DUP_ENTRY.with(&[&shown.join("-"), &format!("{}.{}", table.name, index.name)]))
}
