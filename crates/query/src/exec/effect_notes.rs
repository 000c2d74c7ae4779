//! The notes of a statement of several parts: each change of a row, so that `effects` can take the changes back and make them again.

use std::sync::Arc;

use datum::{Fault, Result};
use engine::rows::Savepoint;

use crate::batch::Row;
use crate::catalog::table::Table;
use crate::exec::host::host;
use crate::exec::spill::rows::Rows;
use crate::nodes::context::EvalContext;
use crate::value::Value;

/// The changes that a statement has made so far.
pub struct Effects {
    pub(super) start: Savepoint,
    pub(super) tables: Vec<Arc<Table>>,
    pub(super) notes: Rows,
    /// The part under way reads tables that the parts before it have changed.
    pub(super) reads_changes: bool,
}

/// The effects of the statement under way, if it has several parts.
#[derive(Default)]
struct Current(Option<Box<Effects>>);

pub(super) fn current(ctx: &mut EvalContext) -> &mut Option<Box<Effects>> {
    &mut ctx.slot_mut::<Current>().0
}

/// A change of one row.
#[derive(Clone, Copy)]
pub(super) enum Change<'r> {
    Put(&'r [Value]),
    TakeOut(&'r [Value]),
    Replace(&'r [Value], &'r [Value]),
}

/// Notes a change, if the statement has several parts.
pub(super) fn note(table: &Table, row_key: &[u8], change: Change<'_>, ctx: &mut EvalContext) -> Result<()> {
    let Some(mut effects) = current(ctx).take() else { return Ok(()) };
    let place = effects.place(table, ctx)?;
    let (kind, rows) = match change {
        Change::Put(row) => (0, [row, &[]]),
        Change::TakeOut(row) => (1, [row, &[]]),
        Change::Replace(old, new) => (2, [old, new]),
    };
    let head = [Value::Int(kind), Value::Int(place as i64), Value::bytes(row_key)];
    let note: Row = head.into_iter().chain(rows.concat()).collect();
    effects.notes.push(note, ctx)?;
    *current(ctx) = Some(effects);
    Ok(())
}

impl Effects {
    /// Returns the number of a table in the notes.
    fn place(&mut self, table: &Table, ctx: &mut EvalContext) -> Result<usize> {
        if let Some(place) = self.tables.iter().position(|known| known.id == table.id) {
            return Ok(place);
        }
        let known = host(ctx).written.iter().find(|known| known.id == table.id).cloned();
        self.tables.push(known.ok_or_else(|| Fault::corrupt("a change of a table that the statement does not write"))?);
        Ok(self.tables.len() - 1)
    }
}
