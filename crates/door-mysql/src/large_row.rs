//! The stream of a row with a long value. The value is not copied into the connection's buffer as a whole, but piece by piece, as far as there is space.
//!
//! Short cells are collected in pieces of their own; a long cell's piece is the value itself. Frames are cut exactly as by `packet::finish`: all but the last
//! have the maximum size, and the last may be empty.

use reactor::Io;
use sql_mysql::batch::{Cell, Cells};
use sql_mysql::error::SqlError;
use sql_mysql::types::{Column, MysqlType as _};
use sql_mysql::value::Value;

use crate::memory_budget::Reservation;
use crate::packet::{FRAME_MAX, HEADER};
use crate::rows::RowWriter;
use crate::wire::put_length;

/// A value of at least this many bytes is sent in pieces.
pub const LONG: usize = 1 << 20;
/// Bytes copied between two checks for space.
const STEP: usize = 256 << 10;

pub struct LargeRowStream {
    /// The pieces in the order in which they are sent.
    pieces: std::vec::IntoIter<Value>,
    /// The current piece, and how much of it has been sent.
    piece: Value,
    at: usize,
    /// Bytes that belong to no frame yet; bytes left in the current frame; whether that frame is the last.
    left: usize,
    frame: usize,
    is_last: bool,
    _share: Option<Reservation>,
}

/// Returns whether a row has a value that is sent in pieces.
pub fn is_long(row: Cells<'_>) -> bool {
    row.iter().any(|cell| long_value(cell).is_some())
}

fn long_value(cell: Cell<'_>) -> Option<&Value> {
    match cell {
        Cell::Value(value) => value.as_string_bytes().is_some_and(|bytes| bytes.len() >= LONG).then_some(value),
        _ => None,
    }
}

/// Returns the bytes of a row's long values.
pub fn long_bytes(row: Cells<'_>) -> usize {
    row.iter().filter_map(long_value).filter_map(Value::as_string_bytes).map(<[u8]>::len).sum()
}

impl LargeRowStream {
    pub fn new(
        writer: &mut RowWriter,
        columns: &[Column],
        row: Cells<'_>,
        reservation: Option<Reservation>,
    ) -> Result<LargeRowStream, SqlError> {
        let (mut pieces, mut short) = (Vec::new(), Vec::new());
        writer.begin_row(&mut short, row);
        for (column, cell) in columns.iter().zip(row.iter()) {
            match long_value(cell) {
                Some(value) if writer.takes_as_it_is(value) && column.ty.is_string() => {
                    put_length(&mut short, value.as_string_bytes().map_or(0, <[u8]>::len) as u64);
                    pieces.extend([Value::from_bytes(std::mem::take(&mut short)), value.clone()]);
                }
                _ => writer.put_column(&mut short, column, cell)?,
            }
        }
        pieces.push(Value::from_bytes(short));
        let left = pieces.iter().filter_map(Value::as_string_bytes).map(<[u8]>::len).sum();
        let (pieces, piece) = (pieces.into_iter(), Value::Null);
        Ok(LargeRowStream { pieces, piece, at: 0, left, frame: 0, is_last: false, _share: reservation })
    }

    /// Writes as much as there is space for. Returns true when the row is complete.
    pub fn send(&mut self, io: &mut Io<'_>, sequence: &mut u8) -> bool {
        while !io.is_full() {
            if self.frame == 0 {
                if self.is_last {
                    return true;
                }
                self.begin_frame(io.out(), sequence);
                continue;
            }
            let bytes = self.piece.as_string_bytes().unwrap_or_default();
            let rest = &bytes[self.at..];
            if rest.is_empty() {
                let Some(next) = self.pieces.next() else { unreachable!("the frames are as long as the pieces") };
                (self.piece, self.at) = (next, 0);
                continue;
            }
            let count = rest.len().min(self.frame).min(STEP);
            io.out().extend_from_slice(&rest[..count]);
            self.at += count;
            self.frame -= count;
        }
        self.frame == 0 && self.is_last
    }

    fn begin_frame(&mut self, out: &mut Vec<u8>, sequence: &mut u8) {
        self.frame = self.left.min(FRAME_MAX);
        self.is_last = self.frame < FRAME_MAX;
        self.left -= self.frame;
        let [a, b, c, ..] = (self.frame as u32).to_le_bytes();
        let header: [u8; HEADER] = [a, b, c, *sequence];
        out.extend_from_slice(&header);
        *sequence = sequence.wrapping_add(1);
    }
}
