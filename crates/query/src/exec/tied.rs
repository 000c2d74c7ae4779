//! Rows in the order of an index although their keys in it are shortened (QU-29).
//!
//! Shortened columns stand in their order but among those that begin with the same bytes (QU-27). Such rows come one after another. They are gathered, each
//! with its whole columns, sorted, and given on before the scan goes on. Other rows pass. Few keys are so long, so an index orders nearly all rows by itself.

use datum::Result;
use datum::row::RowBytes;

use crate::batch::{Cell, Row};
use crate::catalog::decode::decode;
use crate::exec::sorter::{Sorted, Sorter};
use crate::key::encode_parts;
use crate::key_form::{KeyForm, WHOLE_MAX};
use crate::nodes::context::EvalContext;
use crate::nodes::node::Scan;
use crate::value::Value;

#[derive(Default)]
pub struct TiedRows {
    /// The bytes that the gathered keys begin with; empty: none are gathered.
    start: Vec<u8>,
    sorter: Sorter,
    sorted: Option<Sorted>,
    /// The row whose key is at hand is to be gathered.
    takes: bool,
}

impl TiedRows {
    /// Says of which columns, as they stand in the map, the next row is. False: the gathered rows come before it; it is to be asked of again after them.
    pub fn meet(&mut self, form: KeyForm, columns: &[u8]) -> bool {
        self.takes = form.is_shortened(columns.len()) && columns.starts_with(&self.start);
        if !self.takes {
            return self.start.is_empty();
        }
        if self.start.is_empty() {
            self.start.extend_from_slice(&columns[..WHOLE_MAX]);
        }
        true
    }

    pub fn takes(&self) -> bool {
        self.takes
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Gathers a wide row under its whole columns.
    pub fn push(&mut self, columns: &[u8], wide: &[Value], ctx: &mut EvalContext) -> Result<()> {
        self.sorter.push(|out| out.extend_from_slice(columns), wide.iter().map(Cell::Value), ctx)
    }

    /// Ends a group: its rows are what `next` gives.
    pub fn sort(&mut self, ctx: &mut EvalContext) -> Result<()> {
        self.start.clear();
        self.takes = false;
        self.sorted = Some(std::mem::take(&mut self.sorter).finish(&[], ctx)?);
        Ok(())
    }

    /// Returns the next row of the sorted group. None: there is no more.
    pub fn next(&mut self) -> Result<Option<Row>> {
        let Some(sorted) = &mut self.sorted else { return Ok(None) };
        let row = sorted.next_record()?.map(|record| record.to_owned()).transpose()?.map(|(_, row)| row);
        if row.is_none() {
            self.sorted = None;
        }
        Ok(row)
    }

    pub fn is_giving(&self) -> bool {
        self.sorted.is_some()
    }
}

/// Returns the whole columns of the scan's key, in a form that orders as the scan goes.
pub fn whole_columns(scan: &Scan, row: RowBytes<'_>) -> Result<Vec<u8>> {
    let parts = scan.parts();
    let read: Vec<usize> = parts.iter().map(|part| part.column).collect();
    let mut values = vec![Value::Null; scan.table.columns.len()];
    decode(&scan.table, row, &read, &mut values)?;
    let mut columns = Vec::new();
    encode_parts(&scan.table, parts, &values, &mut columns);
    if scan.access.backward {
        // No key is the beginning of another (DA-3), so the order of complements is the other way round.
        columns.iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(columns)
}
