//! Keys of rows and indexes: columns in the order of values (`datum::key`), one after another.
//!
//! ```text
//!   primary key          its columns; a table without one has a row id of 8 bytes
//!   unique index         its columns -> 0, the row's key; with a NULL among them as below, for NULLs are not alike
//!   other index          its columns, the row's key -> 1, the length of the columns (2 bytes)
//!   with included columns    unique: -> 2, the length of the row's key (2 bytes), the row's key, the values
//!                            else: -> 3, the length of the columns (2 bytes), the values
//!                            each value behind its length (2 bytes); values of more than 1024 bytes together are left out, as above
//!
//!   index of terms       a term, the row's key -> 1, the length of the term (2 bytes); several entries for a row (`term`)
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
use datum::row::{decode_value, encode_value};
use datum::{Fault, Result};

use crate::catalog::table::{Index, Part, Table};
use crate::term::terms;
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

/// An index's entry for a row: (key, value). The index has one for this row (`Index::has_entry`).
pub fn entry(
    table: &Table,
    index: &Index,
    row: &[Value],
    row_key: &[u8],
    key: &mut Vec<u8>,
    value: &mut Vec<u8>,
) -> Result<()> {
    debug_assert!(index.terms.is_none());
    debug_assert!(index.has_entry(row), "QU-47: a row is in a partial index if its predicate is true");
    key.clear();
    value.clear();
    let has_null = encode_parts(table, &index.parts, row, key);
    index.form.shorten(key);
    if index.unique && (!has_null || index.nulls_equal) {
        value.push(0);
        value.extend_from_slice(row_key);
    } else {
        value.push(1);
        value.extend_from_slice(&(key.len() as u16).to_le_bytes());
        key.extend_from_slice(row_key);
    }
    include(table, index, row, value)?;
    check(table, key)
}

/// Calls `take` with each entry (key, value) that the index has for a row: one, or one for each of its terms. The buffers are of the caller.
pub fn each_entry(
    table: &Table,
    index: &Index,
    (row, row_key): (&[Value], &[u8]),
    (key, value): (&mut Vec<u8>, &mut Vec<u8>),
    mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let Some(form) = index.terms else {
        entry(table, index, row, row_key, key, value)?;
        return take(key, value);
    };
    for term in terms(form, &row[index.parts[0].column]) {
        term_entry(&term, row_key, key, value);
        check(table, key)?;
        take(key, value)?;
    }
    Ok(())
}

/// Makes the entry of a term of a row.
pub fn term_entry(term: &[u8], row_key: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(term);
    key.extend_from_slice(row_key);
    value.clear();
    value.push(1);
    value.extend_from_slice(&(term.len() as u16).to_le_bytes());
}

/// Included values of more bytes are left out of an entry.
const INCLUDED_MAX: usize = 1024;
const _: () = assert!(INCLUDED_MAX <= u16::MAX as usize, "the length of a value has 2 bytes");

/// Adds the values of included columns to an entry, unless they are too long.
fn include(table: &Table, index: &Index, row: &[Value], entry: &mut Vec<u8>) -> Result<()> {
    if index.included.is_empty() {
        return Ok(());
    }
    let mut values = Vec::new();
    for column in &index.included {
        let from = values.len();
        values.extend_from_slice(&[0, 0]);
        encode_value(&row[*column], table.columns[*column].ty.storage, &mut values)?;
        let length = values.len() - from - 2;
        if values.len() > INCLUDED_MAX {
            return Ok(());
        }
        values[from..from + 2].copy_from_slice(&(length as u16).to_le_bytes());
    }
    if entry[0] == 0 {
        let length = (entry.len() as u16 - 1).to_le_bytes();
        entry.splice(1..1, length);
    }
    entry[0] += 2;
    entry.extend_from_slice(&values);
    Ok(())
}

/// Returns the value of the nth included column.
fn included(table: &Table, index: &Index, nth: usize, value: &[u8]) -> Option<Result<Value>> {
    let mut rest = match value {
        [2, low, high, rest @ ..] => rest.get(usize::from(u16::from_le_bytes([*low, *high]))..)?,
        [3, _, _, rest @ ..] => rest,
        _ => return None,
    };
    for _ in 0..nth {
        let [low, high, behind @ ..] = rest else { return None };
        rest = behind.get(usize::from(u16::from_le_bytes([*low, *high]))..)?;
    }
    let [low, high, behind @ ..] = rest else { return None };
    let bytes = behind.get(..usize::from(u16::from_le_bytes([*low, *high])))?;
    Some(decode_value(bytes, table.columns[index.included[nth]].ty.storage))
}

/// Returns the bytes of the columns in an index's entry.
pub fn columns_length(key: &[u8], value: &[u8]) -> usize {
    match value {
        [1 | 3, low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])).min(key.len()),
        _ => key.len(),
    }
}

/// Returns whether an entry lacks values that entries of its index show, so that they are in the row alone: columns or
/// row key are shortened, or included values left out.
pub fn is_shortened(table: &Table, index: &Index, key: &[u8], value: &[u8]) -> bool {
    index.form.is_shortened(columns_length(key, value))
        || table.primary_form.is_shortened(row_key(key, value).len())
        || (!index.included.is_empty() && matches!(value, [0 | 1, ..]))
}

/// The row's key in an index's entry.
pub fn row_key<'e>(key: &'e [u8], value: &'e [u8]) -> &'e [u8] {
    match value {
        [0, row_key @ ..] => row_key,
        [2, low, high, rest @ ..] => rest.get(..usize::from(u16::from_le_bytes([*low, *high]))).unwrap_or(&[]),
        [1 | 3, _, _, ..] => &key[columns_length(key, value)..],
        _ => &[],
    }
}

/// A column whose value an index's entry keeps.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    pub column: usize,
    place: ShownAt,
}

/// The place of a value in an entry, behind so many parts there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ShownAt {
    Key(usize),
    RowKey(usize),
    Included(usize),
}

fn is_shown(table: &Table, part: &Part) -> bool {
    part.prefix.is_none() && is_lossless(table.columns[part.column].ty.storage)
}

/// The columns that entries of the index show: whole parts, of types that keys keep, of its own and of the primary key's, and included ones.
pub fn shown(table: &Table, index: &Index) -> Vec<Shown> {
    // Terms do not show the value that they are of.
    let parts = if index.terms.is_some() { &[] } else { &index.parts[..] };
    let own = parts.iter().enumerate().map(|(nth, part)| (part, ShownAt::Key(nth)));
    let primary = table.primary.iter().flatten().enumerate().map(|(nth, part)| (part, ShownAt::RowKey(nth)));
    let all = own.chain(primary).filter(|(part, _)| is_shown(table, part));
    let mut shown: Vec<Shown> = all.map(|(part, place)| Shown { column: part.column, place }).collect();
    let included = index.included.iter().enumerate();
    shown.extend(included.map(|(nth, column)| Shown { column: *column, place: ShownAt::Included(nth) }));
    shown.sort_by_key(|shown| (shown.column, shown.place));
    shown.dedup_by_key(|shown| shown.column);
    shown
}

/// Is the column among them?
pub fn shows(table: &Table, index: &Index, column: usize) -> bool {
    let own = index.parts.iter().filter(|_| index.terms.is_none());
    let parts = own.chain(table.primary.iter().flatten());
    index.included.contains(&column) || parts.filter(|part| part.column == column).any(|part| is_shown(table, part))
}

impl Shown {
    /// Its value in an entry of the index, of which nothing is shortened.
    pub fn value(&self, table: &Table, index: &Index, (key, value): (&[u8], &[u8])) -> Result<Value> {
        let damaged = || Fault::corrupt("an entry of an index");
        let (mut rest, parts, nth) = match self.place {
            ShownAt::Key(nth) => (key, &index.parts[..], nth),
            ShownAt::RowKey(nth) => (row_key(key, value), table.primary.as_deref().unwrap_or(&[]), nth),
            ShownAt::Included(nth) => return included(table, index, nth, value).ok_or_else(damaged)?,
        };
        let ty = |part: &Part| &table.columns[part.column].ty;
        for part in &parts[..nth] {
            let length = length(rest, ty(part).shape(), part.order).ok_or_else(damaged)?;
            rest = rest.get(length..).ok_or_else(damaged)?;
        }
        let part = &parts[nth];
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

#[cfg(test)]
mod tests;
