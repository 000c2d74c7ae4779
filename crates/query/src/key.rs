//! Keys of rows and indexes: columns in the order of values (`scalar::key`), one after another.
//!
//! ```text
//!   primary key          its columns; a table without one has a row id of 8 bytes
//!   unique index         its columns -> 0, the row's key; with a NULL among them as below, for NULLs are not alike
//!   other index          its columns, the row's key -> 1, the length of the columns (2 bytes)
//! ```
//! Y1: two rows have the same key of a unique index exactly if MySQL calls them duplicates.

use crate::catalog::table::{Index, Part, Table};
use crate::error::{self, Result};
use crate::scalar::key::encode;
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
        Some(prefix) => encode(&cut(value, prefix), ty, part.descending, out),
        None => encode(value, ty, part.descending, out),
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
    encode_parts(table, parts, row, out);
    check(out)
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
    if index.unique && !has_null {
        value.push(0);
        value.extend_from_slice(row_key);
    } else {
        value.push(1);
        value.extend_from_slice(&(key.len() as u16).to_le_bytes());
        key.extend_from_slice(row_key);
    }
    check(key)
}

/// The row's key in an index's entry.
pub fn row_key<'e>(key: &'e [u8], value: &'e [u8]) -> &'e [u8] {
    match value {
        [0, row_key @ ..] => row_key,
        [1, low, high] => &key[usize::from(u16::from_le_bytes([*low, *high])).min(key.len())..],
        _ => &[],
    }
}

fn check(key: &[u8]) -> Result<()> {
    if key.len() > engine::rows::ROW_KEY_MAX {
        return Err(error::TOO_LONG_KEY.with(&[&engine::rows::ROW_KEY_MAX]));
    }
    Ok(())
}
