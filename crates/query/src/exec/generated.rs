//! Values of generated columns: computed before a row is written, and on reading for those that rows do not store
//! (QU-8).
//!
//! A written value obeys the session's mode: invalid data is an error in a strict one. A value computed on reading
//! causes a warning at most.

use datum::fault::IndexExpression;
use datum::row::RowBytes;
use datum::{Fault, Result};

use crate::catalog::decode;
use crate::catalog::table::Table;
use crate::nodes::assignment::Place;
use crate::nodes::context::EvalContext;
use crate::nodes::formula::Formula;
use crate::value::Value;

/// Computes the generated columns of a row that is about to be written: all, or those whose operands differ from `old`.
pub fn compute(
    table: &Table,
    row: &mut [Value],
    old: Option<&[Value]>,
    number: u64,
    ctx: &mut EvalContext,
) -> Result<()> {
    for formula in table.formulas()? {
        let stays = old.is_some_and(|old| formula.reads.iter().all(|column| old[*column] == row[*column]));
        if !stays {
            row[formula.column] = value(table, formula, row, number, ctx)?;
        }
    }
    Ok(())
}

fn value(table: &Table, formula: &Formula, row: &[Value], number: u64, ctx: &mut EvalContext) -> Result<Value> {
    let (column, assignment) = (&table.columns[formula.column], formula.assignment);
    let changes_rows = std::mem::replace(&mut ctx.changes_rows, true);
    let computed = formula.expr.eval(row, ctx);
    ctx.changes_rows = changes_rows;
    let stored = computed.and_then(|value| {
        if value.is_null() && !column.ty.nullable && ctx.ignore {
            ctx.warn(Fault::NotNull { column: column.name.as_str().into() });
            return Ok((assignment.implicit_default)(&column.ty));
        }
        (assignment.store)(value, &column.ty, Place { column: &column.name, row: number }, ctx)
    });
    stored.map_err(|error| match column.is_hidden() {
        true => of_index(table, formula.column, number, error),
        false => error,
    })
}

/// Returns the error of a functional index: its hidden column has no name, so the message names the index.
fn of_index(table: &Table, column: usize, row: u64, cause: Fault) -> Fault {
    let index = table.indexes.iter().find(|index| index.parts.iter().any(|part| part.column == column));
    let index = index.map_or("", |index| &*index.name).into();
    Fault::IndexExpression(Box::new(IndexExpression { index, row, cause }))
}

/// Decodes a row, including columns that are computed on reading. `needed` contains their operands
/// (`Table::with_sources`).
pub fn decode<'r>(
    table: &Table,
    bytes: impl Into<RowBytes<'r>>,
    needed: &[usize],
    out: &mut [Value],
    ctx: &mut EvalContext,
) -> Result<()> {
    decode::decode(table, bytes, needed, out)?;
    if !table.computes || !needed.iter().any(|at| table.columns[*at].is_computed()) {
        return Ok(());
    }
    for formula in table.formulas()?.iter().filter(|formula| needed.contains(&formula.column)) {
        if table.columns[formula.column].is_computed() {
            out[formula.column] = shown(table, formula, out, ctx)?;
        }
    }
    Ok(())
}

fn shown(table: &Table, formula: &Formula, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (column, assignment) = (&table.columns[formula.column], formula.assignment);
    let (changes_rows, ignore) = (std::mem::take(&mut ctx.changes_rows), std::mem::replace(&mut ctx.ignore, true));
    let value = formula.expr.eval(row, ctx).and_then(|value| match value {
        Value::Null if !column.ty.nullable => Ok((assignment.implicit_default)(&column.ty)),
        value => (assignment.store)(value, &column.ty, Place { column: &column.name, row: 1 }, ctx),
    });
    (ctx.changes_rows, ctx.ignore) = (changes_rows, ignore);
    value
}
