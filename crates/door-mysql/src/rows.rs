//! Rows of a result, in text form (COM_QUERY) and binary form (prepared statements), encoded directly into the connection's buffer.
//!
//! A binary row encodes each value by the type of its column, so a value of another kind is an error of the statement, not a guess (DM-9).

use sql_mysql::batch::{Cell, Cells};
use sql_mysql::charset::Results;
use sql_mysql::error::{self, SqlError};
use sql_mysql::scalar::convert::write_text;
use sql_mysql::types::{Column, Kind, MysqlType as _, Type};
use sql_mysql::value::{Date, DateTime, Time, Value};

use crate::charset::put_text;
use crate::wire::{NULL, put_bytes, put_digits, put_measured, put_signed_digits};

/// The encoder of the rows of one result.
pub struct RowWriter {
    pub results: Results,
    pub binary: bool,
    scratch: String,
}

impl RowWriter {
    pub fn new(results: Results, binary: bool) -> RowWriter {
        RowWriter { results, binary, scratch: String::new() }
    }

    /// Appends the payload of a row.
    #[inline]
    pub fn put_row(&mut self, out: &mut Vec<u8>, columns: &[Column], row: Cells<'_>) -> Result<(), SqlError> {
        assert_eq!(columns.len(), row.len());
        if self.binary {
            return self.put_binary_row(out, columns, row);
        }
        for (column, cell) in columns.iter().zip(row.iter()) {
            self.put_cell(out, &column.ty, cell);
        }
        Ok(())
    }

    /// Appends a cell as length-encoded text.
    #[inline]
    fn put_cell(&mut self, out: &mut Vec<u8>, ty: &Type, cell: Cell<'_>) {
        match cell {
            Cell::Text(text) => put_text(out, text, self.results),
            Cell::Bytes(bytes) => put_bytes(out, bytes),
            Cell::Value(value) => self.put_text(out, ty, value),
        }
    }

    /// Appends a value as length-encoded text.
    #[inline]
    fn put_text(&mut self, out: &mut Vec<u8>, ty: &Type, value: &Value) {
        match value {
            Value::Null => out.push(NULL),
            Value::Text(text) => put_text(out, text, self.results),
            Value::Int(number) => put_measured(out, |out| put_signed_digits(out, *number)),
            Value::UInt(number) if !ty.has_zerofill() && ty.kind() != Kind::Year => {
                put_measured(out, |out| put_digits(out, *number));
            }
            Value::Bytes(bytes) => put_bytes(out, bytes),
            Value::Date(date) => put_measured(out, |out| put_date(out, *date)),
            Value::DateTime(at) if ty.kind() == Kind::Date => put_measured(out, |out| put_date(out, at.date)),
            Value::DateTime(at) => put_measured(out, |out| {
                put_date(out, at.date);
                out.push(b' ');
                put_clock(out, at.time(), ty.scale);
            }),
            Value::Time(time) => put_measured(out, |out| put_clock(out, *time, ty.scale)),
            other => {
                self.scratch.clear();
                write_text(other, ty, &mut self.scratch);
                put_text(out, &self.scratch, self.results);
            }
        }
    }

    /// Returns whether the value's encoding equals its bytes in memory.
    pub fn takes_as_it_is(&self, value: &Value) -> bool {
        match value {
            Value::Text(text) => self.results.takes_as_it_is(text),
            _ => true,
        }
    }

    /// Appends the header of a row: in binary form the NULL bitmap.
    pub fn begin_row(&self, out: &mut Vec<u8>, row: Cells<'_>) {
        if !self.binary {
            return;
        }
        out.push(0);
        let bitmap = out.len();
        // The first two bits are reserved.
        out.resize(bitmap + (row.len() + 9) / 8, 0);
        for (at, cell) in row.iter().enumerate() {
            if matches!(cell, Cell::Value(Value::Null)) {
                out[bitmap + (at + 2) / 8] |= 1 << ((at + 2) % 8);
            }
        }
    }

    /// Appends one cell of a row.
    pub fn put_column(&mut self, out: &mut Vec<u8>, column: &Column, cell: Cell<'_>) -> Result<(), SqlError> {
        match cell {
            _ if !self.binary => self.put_cell(out, &column.ty, cell),
            Cell::Value(Value::Null) => {}
            Cell::Value(value) => self.put_binary(out, column, value)?,
            // A string column shows a string in binary form too.
            cell if column.ty.is_string() => self.put_cell(out, &column.ty, cell),
            cell => self.put_binary(out, column, &cell.to_value())?,
        }
        Ok(())
    }

    fn put_binary_row(&mut self, out: &mut Vec<u8>, columns: &[Column], row: Cells<'_>) -> Result<(), SqlError> {
        self.begin_row(out, row);
        columns.iter().zip(row.iter()).try_for_each(|(column, cell)| self.put_column(out, column, cell))
    }

    #[inline]
    fn put_binary(&mut self, out: &mut Vec<u8>, column: &Column, value: &Value) -> Result<(), SqlError> {
        let ty = &column.ty;
        let fits = match ty.kind() {
            Kind::TinyInt => whole(value).map(|number| out.push(number as u8)),
            Kind::SmallInt | Kind::Year => {
                whole(value).map(|number| out.extend_from_slice(&(number as u16).to_le_bytes()))
            }
            Kind::MediumInt | Kind::Int => {
                whole(value).map(|number| out.extend_from_slice(&(number as u32).to_le_bytes()))
            }
            Kind::BigInt => whole(value).map(|number| out.extend_from_slice(&number.to_le_bytes())),
            Kind::Float => double(value).map(|number| out.extend_from_slice(&(number as f32).to_le_bytes())),
            Kind::Double => double(value).map(|number| out.extend_from_slice(&number.to_le_bytes())),
            Kind::Date | Kind::DateTime | Kind::Timestamp => moment(value).map(|at| put_binary_moment(out, at)),
            Kind::Time => match value {
                Value::Time(time) => {
                    put_binary_time(out, *time);
                    Some(())
                }
                _ => None,
            },
            _ => {
                self.put_text(out, ty, value);
                Some(())
            }
        };
        fits.ok_or_else(|| {
            error::UNKNOWN_ERROR.with(&[&format!("column '{}' is {}, and its value is not", column.name, ty.name())])
        })
    }
}

/// Returns the bits of an integer.
#[inline]
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => Some(*number as u64),
        Value::UInt(number) => Some(*number),
        _ => None,
    }
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Float(number) => Some(f64::from(*number)),
        Value::Int(number) => Some(*number as f64),
        Value::UInt(number) => Some(*number as f64),
        Value::Decimal(number) => Some(number.to_f64()),
        _ => None,
    }
}

fn moment(value: &Value) -> Option<DateTime> {
    match value {
        Value::DateTime(at) => Some(*at),
        Value::Date(date) => Some(DateTime::from(*date)),
        _ => None,
    }
}

/// Appends the last `N` digits, padded with zeros.
#[inline]
fn put_padded<const N: usize>(out: &mut Vec<u8>, mut number: u32) {
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits);
}

fn put_date(out: &mut Vec<u8>, date: Date) {
    put_padded::<4>(out, date.year.into());
    out.push(b'-');
    put_padded::<2>(out, date.month.into());
    out.push(b'-');
    put_padded::<2>(out, date.day.into());
}

fn put_clock(out: &mut Vec<u8>, time: Time, scale: u8) {
    let (hours, minutes, seconds, micros) = time.parts();
    if time.is_negative() {
        out.push(b'-');
    }
    if hours > 99 {
        put_padded::<3>(out, hours)
    } else {
        put_padded::<2>(out, hours)
    }
    out.push(b':');
    put_padded::<2>(out, minutes);
    out.push(b':');
    put_padded::<2>(out, seconds);
    if scale > 0 {
        out.push(b'.');
        let at = out.len();
        put_padded::<6>(out, micros);
        out.truncate(at + usize::from(scale.min(6)));
    }
}

/// Appends a date and time in its shortest form: nothing for the zero date, no time at midnight, no fraction on a full second.
fn put_binary_moment(out: &mut Vec<u8>, at: DateTime) {
    let (hours, minutes, seconds, micros) = at.clock();
    let has_clock = at.micros_of_day() != 0;
    let length = match (at.is_zero(), has_clock, micros != 0) {
        (true, ..) => 0,
        (_, false, _) => 4,
        (_, _, false) => 7,
        _ => 11,
    };
    let [year_low, year_high] = at.date.year.to_le_bytes();
    let [a, b, c, d] = micros.to_le_bytes();
    let parts = [
        length as u8,
        year_low,
        year_high,
        at.date.month,
        at.date.day,
        hours as u8,
        minutes as u8,
        seconds as u8,
        a,
        b,
        c,
        d,
    ];
    out.extend_from_slice(&parts[..=length]);
}

fn put_binary_time(out: &mut Vec<u8>, time: Time) {
    let (hours, minutes, seconds, micros) = time.parts();
    let length = match (time.micros(), micros) {
        (0, _) => 0,
        (_, 0) => 8,
        _ => 12,
    };
    let [d0, d1, d2, d3] = (hours / 24).to_le_bytes();
    let [a, b, c, d] = micros.to_le_bytes();
    let sign = u8::from(time.is_negative());
    let parts = [length as u8, sign, d0, d1, d2, d3, (hours % 24) as u8, minutes as u8, seconds as u8, a, b, c, d];
    out.extend_from_slice(&parts[..=length]);
}

#[cfg(test)]
mod tests;
