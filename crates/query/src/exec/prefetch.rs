//! Prefetching of the leaves that a change of a row will modify, in its table and in every index, where the buffer pool
//! is too small for all pages. One at a time, each missing page would be a wait of its own.

use datum::Result;
use engine::rows::MapId;

use crate::catalog::table::{Index, Table};
use crate::engine_fault::engine_fault;
use crate::exec::host::host;
use crate::key;
use crate::nodes::context::EvalContext;
use crate::value::Value;

/// A row and its key.
type Keyed<'r> = (&'r [u8], &'r [Value]);

/// Prefetches for the insertion or removal of a row.
pub fn for_row(table: &Table, row: Keyed<'_>, ctx: &mut EvalContext) -> Result<()> {
    if !host(ctx).txn()?.is_crowded() {
        return Ok(());
    }
    let mut keys = vec![(table.map, row.0.to_vec())];
    for index in table.indexes.iter().filter(|index| index.has_entry(row.1)) {
        entries(table, index, row, &mut keys)?;
    }
    prefetch(&keys, ctx)
}

/// Prefetches for the update of `old`, which has just been read, to `new`.
pub fn for_change(table: &Table, old: Keyed<'_>, new: Keyed<'_>, ctx: &mut EvalContext) -> Result<()> {
    if !host(ctx).txn()?.is_crowded() {
        return Ok(());
    }
    let moves = old.0 != new.0;
    let mut keys = Vec::new();
    if moves {
        keys.push((table.map, new.0.to_vec()));
    }
    for index in &table.indexes {
        if moves || index.columns().any(|column| old.1[column] != new.1[column]) {
            for row in [old, new].into_iter().filter(|row| index.has_entry(row.1)) {
                entries(table, index, row, &mut keys)?;
            }
        }
    }
    prefetch(&keys, ctx)
}

/// The leaves of more terms of a row are read one after another.
const TERMS_AHEAD: usize = 64;

fn entries(table: &Table, index: &Index, row: Keyed<'_>, keys: &mut Vec<(MapId, Vec<u8>)>) -> Result<()> {
    let (mut buffers, mut count) = ((Vec::new(), Vec::new()), 0);
    key::each_entry(table, index, (row.1, row.0), (&mut buffers.0, &mut buffers.1), |key, _| {
        count += 1;
        if count <= TERMS_AHEAD {
            keys.push((index.map, key.to_vec()));
        }
        Ok(())
    })
}

fn prefetch(keys: &[(MapId, Vec<u8>)], ctx: &mut EvalContext) -> Result<()> {
    let keys: Vec<(MapId, &[u8])> = keys.iter().map(|(map, key)| (*map, &key[..])).collect();
    host(ctx).txn()?.look_ahead(&keys).map_err(engine_fault)
}
