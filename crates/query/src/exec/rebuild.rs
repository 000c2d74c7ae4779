//! Rebuilds a table: its rows are rewritten into new maps, in the transaction that changes its definition.
//!
//! The old maps are dropped when that transaction commits, so a rollback leaves the table as it was.

use std::ops::Bound::Unbounded;

use datum::{Fault, Result};
use engine::rows::{Inserted, RowBatch, Transaction};

use crate::batch::Row;
use crate::catalog::Writing;
use crate::catalog::decode::decode;
use crate::catalog::table::Table;
use crate::engine_fault::engine_fault;
use crate::exec::generated;
use crate::exec::host::host;
use crate::exec::index_build::{all_of, fill};
use crate::exec::progress::Progress;
use crate::exec::row_change::{duplicate, encode_row};
use crate::key;
use crate::key_form::KeyForm;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::value::Value;

/// Makes the new row from the values of the old one. `number` is the row's, from 1. Generated columns are computed after it.
pub type Convert<'c> = &'c mut dyn FnMut(&[Value], u64, &mut EvalContext) -> Result<Row>;

/// Gives the changed definition new maps and a slot of its own to each column, and drops the old maps. Indexes that the
/// statement has made are still empty and keep their maps.
pub fn replace_maps(writing: &mut Writing<'_>, old: &Table, new: &mut Table) -> Result<()> {
    drop_maps(writing, old)?;
    for index in new.indexes.iter_mut().filter(|index| old.indexes.iter().any(|old| old.map == index.map)) {
        (index.map, index.form) = (writing.txn.create_map().map_err(engine_fault)?, KeyForm::Hashed);
    }
    (new.map, new.primary_form) = (writing.txn.create_map().map_err(engine_fault)?, KeyForm::Hashed);
    new.lay_out();
    Ok(())
}

/// Drops the table's maps when the transaction commits.
fn drop_maps(writing: &mut Writing<'_>, table: &Table) -> Result<()> {
    table.maps().into_iter().try_for_each(|map| writing.txn.drop_map(map)).map_err(engine_fault)
}

/// Rewrites all rows of `old` into the maps of `new`, whose formulas are bound, and fills its indexes. Returns the number of rows.
pub fn copy_rows(
    txn: &mut Transaction,
    (old, new): (&Table, &Table),
    convert: Convert<'_>,
    ctx: &mut EvalContext,
) -> Result<u64> {
    let all: Vec<usize> = (0..old.columns.len()).collect();
    let mut cursor = txn.scan(old.map, Unbounded, Unbounded, false).map_err(engine_fault)?;
    let (mut batch, mut old_row, mut number) = (RowBatch::new(), vec![Value::Null; all.len()], 0u64);
    let (mut row_key, mut bytes) = (Vec::new(), Vec::new());
    let mut progress = Progress::begin("copy to tmp table", all_of(old));
    while cursor.next(txn, &mut batch).map_err(engine_fault)? {
        host(ctx).look_up()?;
        progress.add(batch.len(), host(ctx));
        for (_, old_bytes) in batch.iter() {
            number += 1;
            decode(old, old_bytes, &all, &mut old_row)?;
            let mut row = convert(&old_row, number, ctx)?;
            generated::compute(new, &mut row, None, number, ctx)?;
            row_key.clear();
            match &new.primary {
                Some(_) => key::primary(new, &row, &mut row_key)?,
                None => row_key.extend_from_slice(&number.to_be_bytes()),
            }
            encode_row(new, &row, &mut bytes)?;
            if txn.load(new.map, &row_key, &bytes).map_err(engine_fault)? == Inserted::Exists {
                return Err(duplicate(new, None, &row, ctx));
            }
        }
    }
    new.note_moved_rows();
    *new.live.row_id.lock() = 0;
    let every: Vec<usize> = (0..new.indexes.len()).collect();
    fill(txn, new, &every, ctx)?;
    Ok(number)
}

/// Brings the maps of indexes in step with a changed definition whose rows stay: drops those of indexes that are gone,
/// and fills the new ones.
pub fn change_indexes(writing: &mut Writing<'_>, old: &Table, new: &Table, ctx: &mut EvalContext) -> Result<()> {
    let has = |table: &Table, map| table.indexes.iter().any(|index| index.map == map);
    for index in old.indexes.iter().filter(|index| !has(new, index.map)) {
        writing.txn.drop_map(index.map).map_err(engine_fault)?;
    }
    let fresh = (0..new.indexes.len()).filter(|at| !has(old, new.indexes[*at].map)).collect::<Vec<_>>();
    if fresh.is_empty() { Ok(()) } else { fill(&mut writing.txn, new, &fresh, ctx) }
}

/// Empties the table: gives its next version new maps.
pub fn truncate(writing: &mut Writing<'_>, old: &Table) -> Result<()> {
    let mut new = old.copy();
    drop_maps(writing, old)?;
    (new.map, new.primary_form) = (writing.txn.create_map().map_err(engine_fault)?, KeyForm::Hashed);
    for index in &mut new.indexes {
        (index.map, index.form) = (writing.txn.create_map().map_err(engine_fault)?, KeyForm::Hashed);
    }
    writing.put_table(new)?;
    Ok(())
}

/// Checks all rows against these constraints, by name and condition over the row. The table's formulas are bound.
pub fn check_rows(txn: &mut Transaction, table: &Table, checks: &[(&str, Expr)], ctx: &mut EvalContext) -> Result<()> {
    if checks.is_empty() {
        return Ok(());
    }
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let mut cursor = txn.scan(table.map, Unbounded, Unbounded, false).map_err(engine_fault)?;
    let (mut batch, mut row) = (RowBatch::new(), vec![Value::Null; all.len()]);
    while cursor.next(txn, &mut batch).map_err(engine_fault)? {
        host(ctx).look_up()?;
        for (_, bytes) in batch.iter() {
            generated::decode(table, bytes, &all, &mut row, ctx)?;
            for (name, check) in checks {
                if !check.eval(&row, ctx)?.is_null() && !check.holds(&row, ctx)? {
                    return Err(Fault::CheckViolated { constraint: (*name).into() });
                }
            }
        }
    }
    Ok(())
}
