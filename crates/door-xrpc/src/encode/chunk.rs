//! Chunks: rows by column, some hundreds to thousands of them in a message.
//!
//! A column is a block of concatenated values and, if any row has a NULL there, a bitmap with one bit for each row, the first in the highest bit of its byte;
//! NULL adds nothing to the values. A message has ten columns at most: wider rows take several messages in a row, each with the same number of rows, which the
//! client joins.

use sql_mysql::batch::{Cell, Cells};
use sql_mysql::error::SqlError;
use sql_mysql::types::{Column, MysqlType as _};
use sql_mysql::value::{DateTime, Time};

use crate::encode::column::{WireKind, string_bytes};
use crate::encode::row;
use crate::message::answer;
use crate::message::reply::Writer;
use crate::proto::{put_bytes, put_measured, put_number, put_varint, put_with_length};
use sql_mysql::charset::Results;

/// A block of this size is full, less the bytes that one more value may need.
const BLOCK_BYTES: usize = 4096;
const ROWS_MAX: usize = 4096;
const COLUMNS_MAX: usize = 10;
/// Columns with longer strings are sent as rows.
const STRING_MAX: u32 = 2048;

/// Returns whether rows of these columns can be sent in chunks. If not, they are sent as rows, whatever the client has asked for.
pub fn is_possible(columns: &[Column], results: Results) -> bool {
    columns.iter().all(|column| string_bytes(column, results) <= STRING_MAX)
}

/// Rows collected for the next message.
#[derive(Debug, Default)]
pub struct Chunk {
    blocks: Vec<Block>,
    row_count: usize,
}

#[derive(Debug)]
struct Block {
    is_fixed: bool,
    /// Bytes that one more value may need.
    reserve: usize,
    nulls: Vec<u8>,
    has_null: bool,
    values: Vec<u8>,
}

impl Block {
    fn of(column: &Column) -> Block {
        let (is_fixed, reserve) = match WireKind::of(&column.ty) {
            WireKind::Double => (true, 8),
            WireKind::Float => (true, 4),
            WireKind::Sint | WireKind::Uint | WireKind::Bit | WireKind::DateTime | WireKind::Time => (true, 10),
            WireKind::Bytes | WireKind::Enum | WireKind::Decimal | WireKind::Set => (false, 5 + 32),
        };
        Block { is_fixed, reserve, nulls: Vec::new(), has_null: false, values: Vec::with_capacity(BLOCK_BYTES) }
    }

    fn put(&self, out: &mut Vec<u8>) {
        if self.has_null {
            put_bytes(out, 1, &self.nulls);
        }
        let place = if self.is_fixed { 2 } else { 3 };
        put_measured(out, place, |out| put_bytes(out, 1, &self.values));
    }
}

impl Chunk {
    pub fn new(columns: &[Column]) -> Chunk {
        Chunk { blocks: columns.iter().map(Block::of).collect(), row_count: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.row_count == 0
    }

    /// Returns whether the chunk has to be sent before another row is added.
    pub fn is_full(&self) -> bool {
        let is_full = |block: &Block| block.values.len() + block.reserve > BLOCK_BYTES;
        self.row_count >= ROWS_MAX || self.blocks.iter().any(is_full)
    }

    /// Adds a row. After an error the chunk must not be used.
    pub fn push(&mut self, columns: &[Column], row: Cells<'_>, results: Results) -> Result<(), SqlError> {
        assert_eq!(columns.len(), row.len());
        let (byte, bit) = (self.row_count / 8, 0x80 >> (self.row_count % 8));
        for ((block, column), cell) in self.blocks.iter_mut().zip(columns).zip(row.iter()) {
            block.nulls.resize(byte + 1, 0);
            if cell.is_null() {
                block.nulls[byte] |= bit;
                block.has_null = true;
            } else {
                put_value(&mut block.values, column, cell, results)?;
            }
        }
        self.row_count += 1;
        Ok(())
    }

    /// Writes the rows as messages and clears the chunk.
    pub fn send(&mut self, writer: &mut Writer<'_>) {
        for blocks in self.blocks.chunks(COLUMNS_MAX) {
            writer.frame(answer::CHUNK, |out| {
                put_number(out, 1, self.row_count as u64);
                blocks.iter().for_each(|block| put_measured(out, 2, |out| block.put(out)));
            });
        }
        self.row_count = 0;
        for block in &mut self.blocks {
            block.nulls.clear();
            block.has_null = false;
            block.values.clear();
        }
    }
}

/// Appends a value in chunk form: as in rows, but moments are MySQL's packed numbers, and a value without a length of its own gets one in front.
fn put_value(out: &mut Vec<u8>, column: &Column, cell: Cell<'_>, results: Results) -> Result<(), SqlError> {
    let written = match WireKind::of(&column.ty) {
        WireKind::DateTime => row::moment(cell, column.ty.kind()).map(|at| put_varint(out, packed_moment(at) as u64)),
        WireKind::Time => row::time(cell).map(|time| put_varint(out, packed_time(time) as u64)),
        WireKind::Bytes | WireKind::Enum | WireKind::Decimal => {
            return put_with_length(out, |out| row::put_value(out, column, cell, results));
        }
        WireKind::Set => row::text(cell).map(|members| put_set(out, &results.encode(members))),
        _ => return row::put_value(out, column, cell, results),
    };
    written.ok_or_else(|| row::not_of_its_kind(column))
}

/// An empty set has another byte here than in rows.
fn put_set(out: &mut Vec<u8>, members: &[u8]) {
    if members.is_empty() {
        return out.extend_from_slice(&[1, 0]);
    }
    put_with_length(out, |out| row::put_set(out, members));
}

fn packed_moment(at: DateTime) -> i64 {
    let date = (i64::from(at.date.year) * 13 + i64::from(at.date.month)) << 5 | i64::from(at.date.day);
    (date << 41) + packed_time(at.time())
}

fn packed_time(time: Time) -> i64 {
    let (hours, minutes, seconds, micros) = time.parts();
    let clock = i64::from(hours) << 12 | i64::from(minutes) << 6 | i64::from(seconds);
    let packed = (clock << 24) + i64::from(micros);
    if time.is_negative() { -packed } else { packed }
}

#[cfg(test)]
mod tests {
    use sql_mysql::batch::Batch;
    use sql_mysql::types::{Collation, Kind, Type};
    use sql_mysql::value::{Date, Decimal, Value};

    use super::*;
    use crate::frame::{self, Cut, Mode};
    use crate::proto::{Fields, Wire};
    use sql_mysql::types::CollationName as _;

    fn columns(types: &[Type]) -> Vec<Column> {
        types.iter().map(|ty| Column::computed("x", ty.clone())).collect()
    }

    /// Returns the payloads of the messages of a chunk.
    fn sent(chunk: &mut Chunk) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        chunk.send(&mut Writer { out: &mut out, mode: Mode::Legacy, sid: 2 });
        let (mut payloads, mut at) = (Vec::new(), 0);
        while let Cut::Frame(frame) = frame::cut(&out[at..], Mode::Legacy, 1 << 20) {
            assert_eq!((frame.sid, frame.kind), (2, 21));
            payloads.push(frame.payload.to_vec());
            at += frame.size;
        }
        assert_eq!(at, out.len());
        payloads
    }

    fn of(types: &[Type], rows: Vec<Vec<Value>>) -> Vec<Vec<u8>> {
        let columns = columns(types);
        let mut chunk = Chunk::new(&columns);
        Batch::from(rows).rows().for_each(|row| chunk.push(&columns, row, Results::UTF8).unwrap());
        sent(&mut chunk)
    }

    /// Returns the values of the only column of the only message, without their length.
    fn block(ty: Type, value: Value) -> Vec<u8> {
        let payload = of(&[ty], vec![vec![value]]).remove(0);
        let field = |bytes: &[u8], wanted: u32| match Fields::of(bytes)
            .find_map(|field| field.ok().filter(|(number, _)| *number == wanted))
        {
            Some((_, Wire::Bytes(bytes))) => Some(bytes.to_vec()),
            _ => None,
        };
        let column = field(&payload, 2).unwrap();
        let area = field(&column, 2).or_else(|| field(&column, 3)).unwrap();
        field(&area, 1).unwrap()
    }

    #[test]
    fn the_chunk_of_the_reference_comes_out() {
        let rows = [(Value::Int(1), "a"), (Value::Null, "bc"), (Value::Int(-3), "")];
        let rows = rows.into_iter().map(|(number, text)| vec![number, Value::text(text)]).collect();
        let payloads = of(&[Type::integer(), Type::text(2, Collation::DEFAULT)], rows);
        let first = b"\x08\x03\x12\x09\x0a\x01\x40\x12\x04\x0a\x02\x02\x05";
        let second = b"\x12\x0d\x1a\x0b\x0a\x09\x02\x61\x00\x03\x62\x63\x00\x01\x00";
        assert_eq!(payloads, [[&first[..], second].concat()]);
    }

    #[test]
    fn moments_are_packed_numbers() {
        let at = DateTime::at(Date::new(2024, 2, 29), 13, 7, 0, 123_456);
        assert_eq!(packed_moment(at), 1_851_747_806_834_975_296);
        let moment = block(Type::temporal(Kind::DateTime, 6), Value::DateTime(at));
        assert_eq!(moment, b"\xc0\xc4\x87\x80\x9c\xda\xae\xd9\x19");
        let date = Date::new(1999, 12, 31);
        assert_eq!(packed_moment(date.into()), 1_829_585_149_596_008_448);
        assert_eq!(block(Type::of_kind(Kind::Date), Value::Date(date)), b"\x80\x80\x80\x80\x80\xc0\xff\xb1\x19");
        let time = Time::from_micros(-(838 * 3600 + 59 * 60 + 59) * 1_000_000);
        assert_eq!(packed_time(time), -57_651_262_128_128);
        assert_eq!(block(Type::of_kind(Kind::Time), Value::Time(time)), b"\x80\x80\x80\xa8\x90\xf2\xf2\xff\xff\x01");
    }

    #[test]
    fn what_varies_in_length_has_it_in_front() {
        let number = Value::Decimal(Decimal::parse("-12.3401").unwrap());
        assert_eq!(block(Type::decimal(6, 4), number), b"\x05\x04\x12\x34\x01\xd0");
        assert_eq!(block(Type::of_kind(Kind::Set), Value::text("FOO,BAR")), b"\x08\x03FOO\x03BAR");
        assert_eq!(block(Type::of_kind(Kind::Set), Value::text("")), b"\x01\x00");
        assert_eq!(block(Type::of_kind(Kind::Enum), Value::text("a")), b"\x02a\x00");
        assert_eq!(block(Type::double(), Value::Double(1.5)), 1.5f64.to_le_bytes());
    }

    #[test]
    fn a_row_of_many_columns_takes_several_messages_of_ten() {
        let types = vec![Type::integer(); 23];
        let rows = vec![(0..23).map(Value::Int).collect(); 3];
        let payloads = of(&types, rows);
        let counts: Vec<usize> = payloads
            .iter()
            .map(|payload| Fields::of(payload).filter(|field| matches!(field, Ok((2, _)))).count())
            .collect();
        assert_eq!(counts, [10, 10, 3]);
        assert!(payloads.iter().all(|payload| payload.starts_with(b"\x08\x03")));
    }

    #[test]
    fn a_chunk_is_full_when_a_block_or_the_count_of_rows_says_so() {
        let long = columns(&[Type::integer(), Type::text(400, Collation::DEFAULT)]);
        let mut chunk = Chunk::new(&long);
        let batch = Batch::from(vec![vec![Value::Null, Value::text("x".repeat(400))]]);
        let mut count = 0;
        while !chunk.is_full() {
            chunk.push(&long, batch.row(0), Results::UTF8).unwrap();
            count += 1;
        }
        assert_eq!(count, 11, "403 bytes each");
        let nulls = columns(&[Type::integer()]);
        let (mut chunk, batch) = (Chunk::new(&nulls), Batch::from(vec![vec![Value::Null]]));
        (0..ROWS_MAX - 1).for_each(|_| chunk.push(&nulls, batch.row(0), Results::UTF8).unwrap());
        assert!(!chunk.is_full());
        chunk.push(&nulls, batch.row(0), Results::UTF8).unwrap();
        assert!(chunk.is_full());
        assert_eq!(sent(&mut chunk)[0].len(), 2 + 2 + 4 + 2 + 3 + 512);
        assert!(chunk.is_empty());
    }

    #[test]
    fn long_strings_travel_in_rows() {
        let possible = |ty: Type| is_possible(&columns(&[ty]), Results::UTF8);
        assert!(possible(Type::text(512, Collation::DEFAULT)));
        assert!(!possible(Type::text(513, Collation::DEFAULT)));
        assert!(possible(Type::bytes(2048)));
        assert!(!possible(Type::of_kind(Kind::Json)));
        assert!(possible(Type::decimal(65, 30)));
    }
}
