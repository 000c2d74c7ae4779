//! Decoding of the rows of stored tables.

use datum::Result;
use datum::row::{RowBytes, RowView};

use crate::catalog::table::Table;
use crate::value::Value;

/// Decodes the needed columns that the row stores; `generated::decode` computes the others.
pub fn decode<'r>(table: &Table, row: impl Into<RowBytes<'r>>, needed: &[usize], out: &mut [Value]) -> Result<()> {
    let row: RowView<'_> = table.layout.open(row)?;
    for at in needed {
        put(table, &row, *at, &mut out[*at])?;
    }
    Ok(())
}

/// Decodes one column of an opened row.
#[inline]
pub fn put(table: &Table, row: &RowView<'_>, at: usize, out: &mut Value) -> Result<()> {
    let column = &table.columns[at];
    if !row.read(&table.layout.place(column.slot, column.ty.storage), out)? {
        *out = column.initial.clone();
    }
    Ok(())
}
