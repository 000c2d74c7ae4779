//! Rows on their way out: to a client, into a sort.
//!
//! The hard part is the allocator: a row of its own costs an allocation, and each of its longer strings another. In a batch the cells of all rows lie in one
//! vector and the strings in one buffer; a cell is a value or a range of that buffer. A batch that is dropped leaves its buffers to the next batch
//! of the same thread.

use std::cell::RefCell;
use std::ops::Range;

use crate::value::Value;

/// Longer strings, in bytes, are kept as values of their own, so that the buffers stay small.
const LONG: usize = 16 << 10;
/// A batch with more bytes of long strings than this is full (`Batch::is_long`).
const LONG_MAX: usize = 512 << 10;
/// The buffers of a larger batch are freed and not kept.
const KEPT_MAX: usize = 256 << 10;
/// Sets of buffers that a thread keeps.
const KEPT: usize = 4;

thread_local! {
    static SPARE: RefCell<Vec<Buffers>> = const { RefCell::new(Vec::new()) };
}

/// One row: a value for each column.
pub type Row = Vec<Value>;

/// Rows of equal width.
#[derive(Default, Debug)]
pub struct Batch {
    buffers: Buffers,
    width: usize,
    len: usize,
}

#[derive(Default, Debug)]
struct Buffers {
    cells: Vec<CellRepr>,
    text: String,
    bytes: Vec<u8>,
    /// An empty list, lent to executor nodes that produce separate rows.
    rows: Vec<Row>,
    /// Bytes of the strings that are longer than `LONG`.
    long: usize,
}

/// A value, or its range (start, end) in one of the buffers.
#[derive(Debug)]
enum CellRepr {
    Value(Value),
    Text(usize, usize),
    Bytes(usize, usize),
}

/// The value of a row in one column.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'b> {
    Value(&'b Value),
    Text(&'b str),
    Bytes(&'b [u8]),
}

/// A row of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'b> {
    buffers: &'b Buffers,
    cells: &'b [CellRepr],
}

impl Batch {
    /// Returns an empty batch, with the buffers of an earlier batch of this thread where there are any.
    pub fn new() -> Batch {
        let buffers = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        Batch { buffers, width: 0, len: 0 }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = Cells<'_>> {
        (0..self.len).map(|at| self.row(at))
    }

    pub fn row(&self, at: usize) -> Cells<'_> {
        let cells = &self.buffers.cells[at * self.width..(at + 1) * self.width];
        Cells { buffers: &self.buffers, cells }
    }

    /// True: the long strings take so much memory that the batch should be passed on.
    pub fn is_long(&self) -> bool {
        self.buffers.long > LONG_MAX
    }

    pub fn clear(&mut self) {
        self.buffers.cells.clear();
        self.buffers.text.clear();
        self.buffers.bytes.clear();
        self.buffers.long = 0;
        self.width = 0;
        self.len = 0;
    }

    pub fn push_row(&mut self, row: Row) {
        row.into_iter().for_each(|value| self.push(value));
        self.end_row();
    }

    /// Appends the next value of the current row.
    #[inline]
    pub fn push(&mut self, value: Value) {
        if let Value::Text(_) | Value::Bytes(_) = &value {
            self.buffers.long +=
                value.as_string_bytes().map_or(0, |bytes| if bytes.len() > LONG { bytes.len() } else { 0 });
        }
        self.buffers.cells.push(CellRepr::Value(value));
    }

    #[inline]
    pub fn push_text(&mut self, text: &str) {
        if text.len() > LONG {
            return self.push(Value::text(text));
        }
        let from = self.buffers.text.len();
        self.buffers.text.push_str(text);
        self.buffers.cells.push(CellRepr::Text(from, self.buffers.text.len()));
    }

    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.len() > LONG {
            return self.push(Value::bytes(bytes));
        }
        let from = self.buffers.bytes.len();
        self.buffers.bytes.extend_from_slice(bytes);
        self.buffers.cells.push(CellRepr::Bytes(from, self.buffers.bytes.len()));
    }

    /// Appends a value of another batch. Returns how many bytes of memory it takes.
    #[inline]
    pub fn push_cell(&mut self, cell: Cell<'_>) -> usize {
        let behind = match cell {
            Cell::Value(value) => {
                self.push(value.clone());
                value.heap_bytes()
            }
            Cell::Text(text) => {
                self.push_text(text);
                text.len()
            }
            Cell::Bytes(bytes) => {
                self.push_bytes(bytes);
                bytes.len()
            }
        };
        size_of::<CellRepr>() + behind
    }

    /// Appends a row of another batch.
    #[inline]
    pub fn push_cells(&mut self, row: Cells<'_>) {
        row.iter().for_each(|cell| {
            self.push_cell(cell);
        });
        self.end_row();
    }

    /// Returns how many bytes of memory the rows take.
    pub fn held_bytes(&self) -> usize {
        let Buffers { cells, text, bytes, .. } = &self.buffers;
        let behind = |place: &CellRepr| if let CellRepr::Value(value) = place { value.heap_bytes() } else { 0 };
        size_of_val(&cells[..]) + text.len() + bytes.len() + cells.iter().map(behind).sum::<usize>()
    }

    /// Bytes in the string buffers, those of removed rows included.
    pub fn string_bytes(&self) -> usize {
        self.buffers.text.len() + self.buffers.bytes.len()
    }

    /// Keeps the named rows, in the given order; no row may be named twice. Strings are not moved.
    pub fn arrange(&mut self, rows: impl Iterator<Item = usize>) {
        let width = self.width;
        let mut arranged = Vec::with_capacity(self.buffers.cells.len());
        let mut len = 0;
        for row in rows {
            let cells = self.buffers.cells[row * width..(row + 1) * width].iter_mut();
            arranged.extend(cells.map(|place| std::mem::replace(place, CellRepr::Value(Value::Null))));
            len += 1;
        }
        self.buffers.cells = arranged;
        self.len = len;
    }

    /// Ends the current row. The first row determines the width of the batch.
    #[inline]
    pub fn end_row(&mut self) {
        if self.len == 0 {
            self.width = self.buffers.cells.len();
        }
        self.len += 1;
        debug_assert_eq!(self.buffers.cells.len(), self.len * self.width);
    }

    /// Removes rows. Their strings stay in the buffers until `clear`.
    pub fn remove(&mut self, rows: Range<usize>) {
        self.buffers.cells.drain(rows.start * self.width..rows.end * self.width);
        self.len -= rows.len();
    }

    /// Lends an empty list to a producer of separate rows; `put_back` appends the rows and takes the list back.
    pub fn lend_list(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.buffers.rows)
    }

    pub fn put_back(&mut self, mut list: Vec<Row>) {
        list.drain(..).for_each(|row| self.push_row(row));
        self.buffers.rows = list;
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let Buffers { cells, text, bytes, rows, .. } = &self.buffers;
        let held = cells.capacity() * size_of::<CellRepr>() + text.capacity() + bytes.capacity();
        if held == 0 || held > KEPT_MAX || rows.capacity() > KEPT_MAX / size_of::<Row>() {
            return;
        }
        self.clear();
        let buffers = std::mem::take(&mut self.buffers);
        // Fails while the thread is torn down.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(buffers);
            }
        });
    }
}

impl From<Vec<Row>> for Batch {
    fn from(rows: Vec<Row>) -> Batch {
        let mut batch = Batch::new();
        rows.into_iter().for_each(|row| batch.push_row(row));
        batch
    }
}

impl<'b> Cells<'b> {
    pub fn len(self) -> usize {
        self.cells.len()
    }

    pub fn is_empty(self) -> bool {
        self.cells.is_empty()
    }

    #[inline]
    pub fn get(self, at: usize) -> Cell<'b> {
        match &self.cells[at] {
            CellRepr::Value(value) => Cell::Value(value),
            CellRepr::Text(from, to) => Cell::Text(&self.buffers.text[*from..*to]),
            CellRepr::Bytes(from, to) => Cell::Bytes(&self.buffers.bytes[*from..*to]),
        }
    }

    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = Cell<'b>> {
        (0..self.len()).map(move |at| self.get(at))
    }

    pub fn to_row(self) -> Row {
        self.iter().map(Cell::to_value).collect()
    }
}

impl Cell<'_> {
    pub fn is_null(self) -> bool {
        matches!(self, Cell::Value(Value::Null))
    }

    pub fn to_value(self) -> Value {
        match self {
            Cell::Value(value) => value.clone(),
            Cell::Text(text) => Value::text(text),
            Cell::Bytes(bytes) => Value::bytes(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_and_nothing_of_the_batch_before() {
        for round in 0..3 {
            let mut batch = Batch::new();
            assert!(batch.is_empty());
            let long = "x".repeat(LONG + 1);
            for nth in 0..3 {
                batch.push(Value::Int(nth));
                batch.push_text(&format!("text {nth} of {round}"));
                batch.push_bytes(&[nth as u8]);
                batch.push_text(&long);
                batch.end_row();
            }
            batch.push_row(vec![Value::Null, Value::text("a"), Value::bytes([9]), Value::Int(1)]);
            batch.remove(1..3);
            let rows: Vec<Row> = batch.rows().map(Cells::to_row).collect();
            let first =
                vec![Value::Int(0), Value::text(format!("text 0 of {round}")), Value::bytes([0]), Value::text(&long)];
            assert_eq!(rows, [first, vec![Value::Null, Value::text("a"), Value::bytes([9]), Value::Int(1)]]);
        }
    }

    #[test]
    fn rows_can_be_arranged_and_left_out() {
        let mut batch = Batch::new();
        for nth in 0..4 {
            batch.push_text(&format!("row {nth}"));
            batch.push(Value::Int(nth));
            batch.end_row();
        }
        batch.arrange([3, 0, 2].into_iter());
        batch.push_row(vec![Value::text("row 9"), Value::Int(9)]);
        let rows: Vec<Row> = batch.rows().map(Cells::to_row).collect();
        let row = |nth: i64| vec![Value::text(format!("row {nth}")), Value::Int(nth)];
        assert_eq!(rows, [row(3), row(0), row(2), row(9)]);
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let mut batch = Batch::from(vec![Row::new(), Row::new()]);
        batch.put_back(vec![Row::new()]);
        assert_eq!((batch.len(), batch.rows().len()), (3, 3));
    }
}
