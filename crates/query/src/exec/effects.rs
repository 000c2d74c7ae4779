//! Changes of several parts of one statement, each of which reads the tables as they were before all of them.
//!
//! A transaction sees its own changes at once. So the changes of the rows are noted, and where a later part reads a table that an earlier one has changed, they are taken back while it reads and made again
//! before it changes anything itself. The rows stay locked in between, so making them again always succeeds. Checks and cascades are not repeated: the notes are of single rows, those of cascades among
//! them.

use std::sync::Arc;

use datum::{Fault, Result};

use crate::engine_fault::engine_fault;
use crate::exec::caches::caches;
use crate::exec::effect_notes::{Effects, current};
use crate::exec::host::host;
use crate::exec::row_change::{put_at, replace_at, take_out_at};
use crate::exec::spill::rows::Rows;
use crate::nodes::context::EvalContext;
use crate::value::Value;

/// Begins a statement of several parts.
pub fn begin(ctx: &mut EvalContext) -> Result<()> {
    let start = host(ctx).txn()?.savepoint();
    let effects = Effects { start, tables: Vec::new(), notes: Rows::default(), reads_changes: false };
    *current(ctx) = Some(Box::new(effects));
    Ok(())
}

/// Begins a part. `reads_changes` if it reads tables that earlier parts have changed.
pub fn begin_part(reads_changes: bool, ctx: &mut EvalContext) {
    if let Some(effects) = current(ctx) {
        effects.reads_changes = reads_changes;
    }
}

/// Ends the statement; forgets the notes of one that has failed.
pub fn end(ctx: &mut EvalContext) {
    *current(ctx) = None;
}

/// Leaves the rows that a part has returned to the parts that read them, by its number.
pub fn give(id: usize, returned: Rows, ctx: &mut EvalContext) {
    caches(ctx).commons.insert(id, Arc::new(returned));
}

/// Returns what `read` reads, as it was before the statement.
pub fn before<T>(ctx: &mut EvalContext, read: impl FnOnce(&mut EvalContext) -> Result<T>) -> Result<T> {
    let is_undone = take_back(ctx)?;
    let result = read(ctx)?;
    if is_undone {
        make_again(ctx)?;
    }
    Ok(result)
}

/// Takes the changes back, if the part has to read without them.
fn take_back(ctx: &mut EvalContext) -> Result<bool> {
    let start = match current(ctx) {
        Some(effects) if effects.reads_changes && !effects.notes.is_empty() => effects.start,
        _ => return Ok(false),
    };
    host(ctx).txn()?.rollback_to(start).map_err(engine_fault)?;
    Ok(true)
}

fn make_again(ctx: &mut EvalContext) -> Result<()> {
    let Some(effects) = current(ctx).take() else { return Ok(()) };
    for at in 0..effects.notes.block_count() {
        for note in effects.notes.block(at)?.iter() {
            host(ctx).look_up()?;
            repeat(&effects, note, ctx)?;
        }
    }
    *current(ctx) = Some(effects);
    Ok(())
}

/// Makes a noted change again.
fn repeat(effects: &Effects, note: &[Value], ctx: &mut EvalContext) -> Result<()> {
    let broken = || Fault::corrupt("a note of a change");
    let [Value::Int(kind), Value::Int(place), row_key, values @ ..] = note else { return Err(broken()) };
    let table = effects.tables.get(*place as usize).ok_or_else(broken)?;
    let row_key = row_key.as_string_bytes().ok_or_else(broken)?;
    match kind {
        0 => match put_at(table, row_key, values, ctx)? {
            None => Ok(()),
            Some(_) => Err(broken()),
        },
        1 => take_out_at(table, row_key, values, ctx).map(drop),
        _ => {
            let (old, new) = values.split_at(table.columns.len());
            replace_at(table, row_key, old, new, ctx)
        }
    }
}
