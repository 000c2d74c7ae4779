//! Rows as values: their text and binary forms, and their types.
//!
//! A record knows the types of its fields. The type of an expression is `record` with a modifier that the binder of its statement alone understands (`bind/record`).

use std::sync::Arc;

use datum::value::{RecordField, RecordType};
use datum::{Fault, Record};
use query::catalog::temporary_maps;
use query::types::Type;

use crate::error::{PgError, Result, state};
use crate::functions::args::claim;
use crate::types::io::{self, IoContext};
use crate::types::oid::{self, Oid};
use crate::types::{registry, user};
use crate::value::Value;

/// The numbers of row types of relations begin here; a relation's object id is added.
const ROW_TYPES: u32 = 1 << 29;

/// Returns the number of the row type of a relation.
pub fn number_of_relation(id: u64) -> u32 {
    if id >= temporary_maps::FIRST {
        // From the other end.
        return ROW_TYPES * 2 - 1 - temporary_maps::narrow(id) as u32 % (ROW_TYPES / 2);
    }
    ROW_TYPES.saturating_add(u32::try_from(id).unwrap_or(u32::MAX)).min(ROW_TYPES * 2 - 1)
}

/// Returns whether the values of a type are rows.
pub fn is_row(ty: Oid) -> bool {
    ty == oid::RECORD || user::is_composite(ty)
}

/// Returns a field of a type.
pub fn field(name: &str, ty: &Type) -> RecordField {
    let oid = registry::oid_of(ty);
    // A record within knows its own fields; the binder's number for them means nothing in a value.
    let is_record = matches!(oid, oid::RECORD | oid::RECORD_ARRAY);
    let typmod = if is_record { -1 } else { registry::typmod_of(ty) };
    RecordField { name: name.into(), number: oid, length: typmod as u32, shape: ty.shape(), record: None }
}

/// Returns the type of a field.
pub fn type_of(field: &RecordField) -> Type {
    registry::column_type(field.number, field.length as i32, true)
}

/// Returns a record of these values, or an error if records nest too deep.
pub fn record(ty: &Arc<RecordType>, values: Vec<Value>) -> datum::Result<Value> {
    match Record::new(ty.clone(), values) {
        Some(record) => Ok(Value::Record(record)),
        None => Err(too_deep()),
    }
}

#[cold]
fn too_deep() -> Fault {
    let detail = format!("Rows nest at most {} levels deep.", datum::value::RECORD_DEPTH_MAX);
    PgError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").detail(detail).into()
}

/// Texts of this length claim their memory.
const CLAIMED: usize = 64 << 10;

/// Appends the text form.
pub fn output(record: &Record, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'(');
    let mut text = Vec::new();
    for (at, (field, value)) in record.fields().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        if value.is_null() {
            continue;
        }
        text.clear();
        io::output(value, &type_of(field), io, &mut text)?;
        // Quotes double with each level of rows, so a small row may have a text beyond all bounds.
        let _claim = if text.len() > CLAIMED { Some(claim(4 * text.len())?) } else { None };
        quoted(&text, out);
    }
    out.push(b')');
    Ok(())
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Appends a field, within quotes where it could be read otherwise.
fn quoted(text: &[u8], out: &mut Vec<u8>) {
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'(' | b')' | b',') || is_space(*byte);
    if !text.is_empty() && !text.iter().any(is_special) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(*byte);
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// Appends the binary form: the number of fields, and of each the OID of its type, its length and its bytes.
pub fn send(record: &Record, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&(record.values().len() as i32).to_be_bytes());
    for (field, value) in record.fields() {
        out.extend_from_slice(&field.number.to_be_bytes());
        if value.is_null() {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let from = out.len();
        out.extend_from_slice(&[0; 4]);
        io::send(value, &type_of(field), io, out)?;
        let length = (out.len() - from - 4) as i32;
        out[from..from + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Returns the record that bytes are the binary form of: `record_recv`.
pub fn receive(ty: &Arc<RecordType>, mut bytes: &[u8], io: &IoContext) -> Result<Value> {
    let mut taken = |length: usize| {
        let (head, rest) = bytes.split_at_checked(length).ok_or_else(insufficient)?;
        bytes = rest;
        Ok::<_, PgError>(head)
    };
    let count = i32::from_be_bytes(io::fixed(taken(4)?)?);
    if usize::try_from(count) != Ok(ty.fields.len()) {
        let message = format!("wrong number of columns: {count}, expected {}", ty.fields.len());
        return Err(PgError::new(state::DATATYPE_MISMATCH, message));
    }
    let mut values = Vec::with_capacity(ty.fields.len());
    for (at, field) in ty.fields.iter().enumerate() {
        let sent = u32::from_be_bytes(io::fixed(taken(4)?)?);
        if sent != field.number {
            let shown = |oid: u32| format!("{oid} ({})", io.format_type(oid, None));
            let message = format!(
                "binary data has type {} instead of expected {} in record column {}",
                shown(sent),
                shown(field.number),
                at + 1
            );
            return Err(PgError::new(state::DATATYPE_MISMATCH, message));
        }
        let length = i32::from_be_bytes(io::fixed(taken(4)?)?);
        if length == -1 {
            values.push(Value::Null);
            continue;
        }
        let part = usize::try_from(length).map_err(|_| insufficient()).and_then(&mut taken);
        // PostgreSQL has another code where the length of a field says too much.
        let part = part.map_err(|error| PgError { state: state::INVALID_BINARY_REPRESENTATION, ..error })?;
        let value = io::receive(&type_of(field), part, io);
        values.push(value.map_err(|error| within_record(error, at + 1))?);
    }
    match bytes.is_empty() {
        true => Ok(record(ty, values)?),
        false => Err(PgError::new(state::INVALID_BINARY_REPRESENTATION, io::INCORRECT_BINARY)),
    }
}

/// Returns the error of a field: bytes that are left over are those of the record's column.
#[cold]
fn within_record(error: PgError, column: usize) -> PgError {
    match error.state == state::INVALID_BINARY_REPRESENTATION && error.message == io::INCORRECT_BINARY {
        true => PgError { message: format!("improper binary format in record column {column}"), ..error },
        false => error,
    }
}

#[cold]
fn insufficient() -> PgError {
    PgError::new(state::PROTOCOL_VIOLATION, "insufficient data left in message")
}

/// Returns the error of a text or bytes for a record whose type nothing tells.
#[cold]
pub fn anonymous_input() -> PgError {
    PgError::new(state::FEATURE_NOT_SUPPORTED, "input of anonymous composite types is not implemented")
}

#[cold]
fn malformed(text: &str, detail: &str) -> PgError {
    let message = format!("malformed record literal: \"{text}\"");
    PgError::new(state::INVALID_TEXT_REPRESENTATION, message).detail(detail)
}

/// Returns the values that a text is the form of: `record_in`.
pub fn input(ty: &Arc<RecordType>, text: &str, io: &IoContext) -> Result<Value> {
    let mut rest = text.trim_start_matches(|letter: char| letter.is_ascii() && is_space(letter as u8));
    rest = rest.strip_prefix('(').ok_or_else(|| malformed(text, "Missing left parenthesis."))?;
    let mut values = Vec::with_capacity(ty.fields.len());
    for (at, field) in ty.fields.iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(',').ok_or_else(|| malformed(text, "Too few columns."))?;
        }
        if rest.starts_with([',', ')']) {
            values.push(Value::Null);
            continue;
        }
        let item;
        (item, rest) = item_of(rest).ok_or_else(|| malformed(text, "Unexpected end of input."))?;
        values.push(io::input(&type_of(field), &item, io)?);
    }
    rest = rest.strip_prefix(')').ok_or_else(|| malformed(text, "Too many columns."))?;
    if !rest.bytes().all(is_space) {
        return Err(malformed(text, "Junk after right parenthesis."));
    }
    Ok(record(ty, values)?)
}

/// Splits a field, without its quotes, off the text behind it. `None`: the text ends within it.
fn item_of(text: &str) -> Option<(String, &str)> {
    let (mut item, mut in_quotes) = (String::new(), false);
    let mut letters = text.char_indices().peekable();
    loop {
        match letters.next()? {
            (at, ',' | ')') if !in_quotes => return Some((item, &text[at..])),
            (_, '\\') => item.push(letters.next()?.1),
            (_, '"') if !in_quotes => in_quotes = true,
            (_, '"') => match letters.next_if(|(_, letter)| *letter == '"') {
                Some(_) => item.push('"'),
                None => in_quotes = false,
            },
            (_, letter) => item.push(letter),
        }
    }
}
