//! Rows on their way out: to a client, into a sort.
//!
//! Hard part: a row of its own costs an allocation, and each of its longer strings another. Here rows lie one behind the other, and strings in one
//! buffer for all of them; a cell says where. A batch that is dropped leaves its memory to the next one of the same thread.

use std::cell::RefCell;
use std::ops::Range;

use crate::value::Value;

/// Longer strings are values of their own, so that the buffers stay small.
const LONG: usize = 16 << 10;
/// A batch with more than this of them goes on its way before there are more.
const LONG_MAX: usize = 512 << 10;
/// A batch with more memory than this is not kept.
const KEPT_MAX: usize = 256 << 10;
/// Batches that a thread keeps.
const KEPT: usize = 4;

thread_local! {
    static SPARE: RefCell<Vec<Parts>> = const { RefCell::new(Vec::new()) };
}

/// One row: a value for each column.
pub type Row = Vec<Value>;

/// Rows of one width.
#[derive(Default, Debug)]
pub struct Batch {
    parts: Parts,
    width: usize,
    len: usize,
}

#[derive(Default, Debug)]
struct Parts {
    places: Vec<Place>,
    text: String,
    bytes: Vec<u8>,
    /// For nodes that can only make rows of their own.
    rows: Vec<Row>,
    /// Bytes of strings that are values of their own.
    long: usize,
}

/// A value, or where in the buffers it is.
#[derive(Debug)]
enum Place {
    Value(Value),
    Text(usize, usize),
    Bytes(usize, usize),
}

/// What a row has in one column.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'b> {
    Value(&'b Value),
    Text(&'b str),
    Bytes(&'b [u8]),
}

/// A row of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'b> {
    parts: &'b Parts,
    places: &'b [Place],
}

impl Batch {
    /// An empty one, with the memory of an earlier one where there is some.
    pub fn new() -> Batch {
        let parts = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        Batch { parts, width: 0, len: 0 }
    }

    /// How many rows.
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
        let places = &self.parts.places[at * self.width..(at + 1) * self.width];
        Cells { parts: &self.parts, places }
    }

    /// Do its long strings take so much that no more should be gathered?
    pub fn is_long(&self) -> bool {
        self.parts.long > LONG_MAX
    }

    pub fn clear(&mut self) {
        self.parts.places.clear();
        self.parts.text.clear();
        self.parts.bytes.clear();
        self.parts.long = 0;
        self.width = 0;
        self.len = 0;
    }

    pub fn push_row(&mut self, row: Row) {
        row.into_iter().for_each(|value| self.push(value));
        self.end_row();
    }

    /// The next value of the row that is being added.
    #[inline]
    pub fn push(&mut self, value: Value) {
        if let Value::Text(_) | Value::Bytes(_) = &value {
            self.parts.long +=
                value.as_string_bytes().map_or(0, |bytes| if bytes.len() > LONG { bytes.len() } else { 0 });
        }
        self.parts.places.push(Place::Value(value));
    }

    #[inline]
    pub fn push_text(&mut self, text: &str) {
        if text.len() > LONG {
            return self.push(Value::text(text));
        }
        let from = self.parts.text.len();
        self.parts.text.push_str(text);
        self.parts.places.push(Place::Text(from, self.parts.text.len()));
    }

    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.len() > LONG {
            return self.push(Value::bytes(bytes));
        }
        let from = self.parts.bytes.len();
        self.parts.bytes.extend_from_slice(bytes);
        self.parts.places.push(Place::Bytes(from, self.parts.bytes.len()));
    }

    /// The same of another row's value. Returns how much memory it takes.
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
        size_of::<Place>() + behind
    }

    /// A row of another batch.
    #[inline]
    pub fn push_cells(&mut self, row: Cells<'_>) {
        row.iter().for_each(|cell| {
            self.push_cell(cell);
        });
        self.end_row();
    }

    /// How much memory the rows take.
    pub fn held_bytes(&self) -> usize {
        let Parts { places, text, bytes, .. } = &self.parts;
        let behind = |place: &Place| if let Place::Value(value) = place { value.heap_bytes() } else { 0 };
        size_of_val(&places[..]) + text.len() + bytes.len() + places.iter().map(behind).sum::<usize>()
    }

    /// Bytes of the strings that lie in the batch; those of rows that were removed count too.
    pub fn string_bytes(&self) -> usize {
        self.parts.text.len() + self.parts.bytes.len()
    }

    /// Keeps these rows, in this order; none may be named twice. Strings stay where they are.
    pub fn arrange(&mut self, rows: impl Iterator<Item = usize>) {
        let width = self.width;
        let mut arranged = Vec::with_capacity(self.parts.places.len());
        let mut len = 0;
        for row in rows {
            let places = self.parts.places[row * width..(row + 1) * width].iter_mut();
            arranged.extend(places.map(|place| std::mem::replace(place, Place::Value(Value::Null))));
            len += 1;
        }
        self.parts.places = arranged;
        self.len = len;
    }

    /// The row that was being added is whole. All rows of a batch are of one width.
    #[inline]
    pub fn end_row(&mut self) {
        if self.len == 0 {
            self.width = self.parts.places.len();
        }
        self.len += 1;
        debug_assert_eq!(self.parts.places.len(), self.len * self.width);
    }

    /// Takes rows out; strings stay where they are until `clear`.
    pub fn remove(&mut self, rows: Range<usize>) {
        self.parts.places.drain(rows.start * self.width..rows.end * self.width);
        self.len -= rows.len();
    }

    /// A list for whoever makes rows of their own; it comes back with `put_back`, which adds them.
    pub fn lend_list(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.parts.rows)
    }

    pub fn put_back(&mut self, mut list: Vec<Row>) {
        list.drain(..).for_each(|row| self.push_row(row));
        self.parts.rows = list;
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let Parts { places, text, bytes, rows, .. } = &self.parts;
        let held = places.capacity() * size_of::<Place>() + text.capacity() + bytes.capacity();
        if held == 0 || held > KEPT_MAX || rows.capacity() > KEPT_MAX / size_of::<Row>() {
            return;
        }
        self.clear();
        let parts = std::mem::take(&mut self.parts);
        // At the end of a thread there is nobody to keep it for.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(parts);
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
        self.places.len()
    }

    pub fn is_empty(self) -> bool {
        self.places.is_empty()
    }

    #[inline]
    pub fn get(self, at: usize) -> Cell<'b> {
        match &self.places[at] {
            Place::Value(value) => Cell::Value(value),
            Place::Text(from, to) => Cell::Text(&self.parts.text[*from..*to]),
            Place::Bytes(from, to) => Cell::Bytes(&self.parts.bytes[*from..*to]),
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
