//! The values of generated columns: computed before a row is written, and, of those that rows do not hold (QU-8), when one is read.
//!
//! Written values obey the session's mode: data that does not fit is an error under a strict one. A computed value that is read leaves a warning at most.

use datum::fault::IndexExpression;
use datum::row::RowBytes;
use datum::{Fault, Result};

use crate::catalog::decode;
use crate::catalog::table::Table;
use crate::nodes::assignment::Place;
use crate::nodes::context::EvalContext;
use crate::nodes::formula::Formula;
use crate::value::Value;

/// Fills in what follows from the other columns of a row that is about to be written: all of it, or, where `old` is given, what has another source now.
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

/// An error about the column behind a functional index, which has no name: it tells of the index.
fn of_index(table: &Table, column: usize, row: u64, cause: Fault) -> Fault {
    let index = table.indexes.iter().find(|index| index.parts.iter().any(|part| part.column == column));
    let index = index.map_or("", |index| &*index.name).into();
    Fault::IndexExpression(Box::new(IndexExpression { index, row, cause }))
}

/// Decodes a row, the columns that it does not hold among them. `needed` has the sources of those too (`Table::with_sources`).
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
