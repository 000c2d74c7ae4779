//! Keys of rows and indexes: columns in the order of values (`datum::key`), one after another.
//!
//! ```text
//!   primary key          its columns; a table without one has a row id of 8 bytes
//!   unique index         its columns -> 0, the row's key; with a NULL among them as below, for NULLs are not alike
//!   other index          its columns, the row's key -> 1, the length of the columns (2 bytes)
//!
//!   columns of up to 352 bytes    as they are
//!   longer ones (`KeyForm`)       their first 352 bytes, the SHA-256 of all of them: 384 bytes
//! ```
//! QU-17: two rows have the same key of a unique index exactly if MySQL calls them duplicates.
//!
//! Hard part: shortened columns lose their end. QU-27: they keep their place among all others, except among shortened ones that begin with the same 352
//! bytes. QU-28: columns as they are never begin as shortened ones do, so a search for all columns of a key finds exactly what is equal, and a length of
//! 384 tells what is shortened.

use datum::key::{decode, encode, is_lossless, length};
use datum::{Fault, Result};

use crate::catalog::table::{Index, Part, Table};
use crate::types::Type;
use crate::value::Value;

/// The first characters, or bytes, of a value.
pub fn cut(value: &Value, prefix: u32) -> Value {
    match value {
        Value::Text(text) => match text.char_indices().nth(prefix as usize) {
            Some((end, _)) => Value::text(&text[..end]),
            None => value.clone(),
        },
        Value::Bytes(bytes) => Value::bytes(&bytes[..bytes.len().min(prefix as usize)]),
        value => value.clone(),
    }
}

pub fn encode_part(part: &Part, value: &Value, ty: &Type, out: &mut Vec<u8>) {
    match part.prefix {
        Some(prefix) => encode(&cut(value, prefix), ty.shape(), part.order, out),
        None => encode(value, ty.shape(), part.order, out),
    }
}

/// Appends the parts of a row. True: there is a NULL among them.
pub fn encode_parts(table: &Table, parts: &[Part], row: &[Value], out: &mut Vec<u8>) -> bool {
    let mut has_null = false;
    for part in parts {
        has_null |= row[part.column].is_null();
        encode_part(part, &row[part.column], &table.columns[part.column].ty, out);
    }
    has_null
}

/// The key of a row, of a table that has a primary key.
pub fn primary(table: &Table, row: &[Value], out: &mut Vec<u8>) -> Result<()> {
    let parts = table.primary.as_deref().unwrap_or(&[]);
    out.clear();
    encode_parts(table, parts, row, out);
    table.primary_form.shorten(out);
    check(table, out)
}

/// An index's entry for a row: (key, value).
pub fn entry(
    table: &Table,
    index: &Index,
    row: &[Value],
    row_key: &[u8],
    key: &mut Vec<u8>,
    value: &mut Vec<u8>,
) -> Result<()> {
    key.clear();
    value.clear();
    let has_null = encode_parts(table, &index.parts, row, key);
    index.form.shorten(key);
    if index.unique && !has_null {
        value.push(0);
        value.extend_from_slice(row_key);
    } else {
        value.push(1);
        value.extend_from_slice(&(key.len() as u16).to_le_bytes());
        key.extend_from_slice(row_key);
    }
    check(table, key)
}

/// Returns the bytes of the columns in an index's entry.
pub fn columns_length(key: &[u8], value: &[u8]) -> usize {
    match value {
        [1, low, high] => usize::from(u16::from_le_bytes([*low, *high])).min(key.len()),
        _ => key.len(),
    }
}

/// Returns whether columns or row key of an index's entry are shortened: what the entry shows is in the row alone.
pub fn is_shortened(table: &Table, index: &Index, key: &[u8], value: &[u8]) -> bool {
    index.form.is_shortened(columns_length(key, value)) || table.primary_form.is_shortened(row_key(key, value).len())
}

/// The row's key in an index's entry.
pub fn row_key<'e>(key: &'e [u8], value: &'e [u8]) -> &'e [u8] {
    match value {
        [0, row_key @ ..] => row_key,
        [1, _, _] => &key[columns_length(key, value)..],
        _ => &[],
    }
}

/// A column whose value an index's entry keeps: in the row's key or before it, behind so many parts there.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    pub column: usize,
    in_row_key: bool,
    nth: usize,
}

fn is_shown(table: &Table, part: &Part) -> bool {
    part.prefix.is_none() && is_lossless(table.columns[part.column].ty.storage)
}

/// The columns that entries of the index show: whole parts, of types that keys keep, of its own and of the primary key's.
pub fn shown(table: &Table, index: &Index) -> Vec<Shown> {
    let own = index.parts.iter().enumerate().map(|part| (part, false));
    let primary = table.primary.iter().flatten().enumerate().map(|part| (part, true));
    let all = own.chain(primary).filter(|((_, part), _)| is_shown(table, part));
    let mut shown: Vec<Shown> =
        all.map(|((nth, part), in_row_key)| Shown { column: part.column, in_row_key, nth }).collect();
    shown.sort_by_key(|shown| (shown.column, shown.in_row_key));
    shown.dedup_by_key(|shown| shown.column);
    shown
}

/// Is the column among them?
pub fn shows(table: &Table, index: &Index, column: usize) -> bool {
    let parts = index.parts.iter().chain(table.primary.iter().flatten());
    parts.filter(|part| part.column == column).any(|part| is_shown(table, part))
}

impl Shown {
    /// Its value in an entry of the index, of which nothing is shortened.
    pub fn value(&self, table: &Table, index: &Index, (key, value): (&[u8], &[u8])) -> Result<Value> {
        let (mut rest, parts) = match self.in_row_key {
            true => (row_key(key, value), table.primary.as_deref().unwrap_or(&[])),
            false => (key, &index.parts[..]),
        };
        let ty = |part: &Part| &table.columns[part.column].ty;
        let damaged = || Fault::corrupt("an entry of an index");
        for part in &parts[..self.nth] {
            let length = length(rest, ty(part).shape(), part.order).ok_or_else(damaged)?;
            rest = rest.get(length..).ok_or_else(damaged)?;
        }
        let part = &parts[self.nth];
        decode(rest, ty(part).storage, part.order).map(|(value, _)| value).ok_or_else(damaged)
    }
}

fn check(table: &Table, key: &[u8]) -> Result<()> {
    if key.len() > engine::rows::ROW_KEY_MAX {
        let max = engine::rows::ROW_KEY_MAX as u32;
        return Err(Fault::KeyTooLong { table: table.name.as_str().into(), max });
    }
    Ok(())
}

/// The keys that begin with these bytes end before this.
pub fn after(prefix: &[u8]) -> std::ops::Bound<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return std::ops::Bound::Excluded(end);
        }
    }
    std::ops::Bound::Unbounded
}

#[cfg(test)]
mod tests;
