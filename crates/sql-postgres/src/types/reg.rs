//! oid and the types whose values are OIDs of objects: regclass, regtype and their like.
//!
//! A number is read as the OID itself, `-` as 0, and any other text as a name. Names of built-in types are known here; all others are the session's (`IoContext::objects`).

use crate::error::{PgError, Result, state};
use crate::types::boolean::is_space;
use crate::types::io::{self, IoContext, ObjectKind};
use crate::types::oid::{self, Oid};
use crate::types::registry;
use crate::types::user;
use crate::value::Value;

/// Returns the kind of object that values of a type name.
pub fn kind(oid: Oid) -> Option<ObjectKind> {
    Some(match oid {
        oid::REGCLASS => ObjectKind::Relation,
        oid::REGTYPE => ObjectKind::Type,
        oid::REGPROC => ObjectKind::Function,
        oid::REGPROCEDURE => ObjectKind::FunctionSignature,
        oid::REGOPER => ObjectKind::Operator,
        oid::REGOPERATOR => ObjectKind::OperatorSignature,
        oid::REGNAMESPACE => ObjectKind::Schema,
        oid::REGROLE => ObjectKind::Role,
        oid::REGCOLLATION => ObjectKind::Collation,
        _ => return None,
    })
}

pub fn oid_input(text: &str) -> Result<Value> {
    parse_oid(text, "oid").map(|oid| Value::UInt(oid.into()))
}

pub fn xid_input(text: &str) -> Result<Value> {
    parse_oid(text, "xid").map(|oid| Value::UInt(oid.into()))
}

/// Reads a number of 64 bits; a negative one is taken modulo 2^64.
pub fn xid8_input(text: &str) -> Result<Value> {
    let (negative, number) = c_number(text, "xid8")?;
    Ok(Value::UInt(if negative { number.wrapping_neg() } else { number }))
}

/// Reads a number as C's `strtoul` does: a negative one is taken modulo 2^32.
fn parse_oid(text: &str, name: &str) -> Result<Oid> {
    let (negative, number) = c_number(text, name)?;
    let number = if negative { -i128::from(number) } else { i128::from(number) };
    // A number that either a signed or an unsigned integer of 4 bytes holds.
    if number > i128::from(u32::MAX) || number < i128::from(i32::MIN) {
        return Err(beyond(text, name));
    }
    Ok(number as u32)
}

#[cold]
fn beyond(text: &str, name: &str) -> PgError {
    let message = format!("value \"{text}\" is out of range for type {name}");
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// Reads the sign and the magnitude of a number in C's notation.
fn c_number(text: &str, name: &str) -> Result<(bool, u64)> {
    let word = text.trim_matches(is_space);
    let (negative, digits) = match word.as_bytes() {
        [b'-', ..] => (true, &word[1..]),
        [b'+', ..] => (false, &word[1..]),
        _ => (false, word),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(io::invalid_input(name, text));
    }
    let number = u64::from_str_radix(digits, radix).map_err(|_| beyond(text, name))?;
    Ok((negative, number))
}

pub fn input(kind: ObjectKind, text: &str, io: &IoContext) -> Result<Value> {
    if text == "-" {
        return Ok(Value::UInt(0));
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return oid_input(text);
    }
    let found = match &io.objects {
        Some(objects) => (objects.find)(kind, text)?,
        None => None,
    };
    match found.or_else(|| built_in(kind, text)) {
        Some(oid) => Ok(Value::UInt(oid.into())),
        None => Err(missing(kind, text)),
    }
}

fn built_in(kind: ObjectKind, text: &str) -> Option<Oid> {
    if kind != ObjectKind::Type {
        return None;
    }
    let name = syntax::postgres::parse_type_name(text).ok()?;
    let bare = match &name.name.parts[..] {
        [bare] => bare,
        [schema, bare] if schema == "pg_catalog" => bare,
        _ => return None,
    };
    let row = registry::by_name(bare)?;
    match name.array_bounds.is_empty() || registry::is_array(row.oid) {
        true => Some(row.oid),
        false => registry::array_of(row.oid),
    }
}

#[cold]
fn missing(kind: ObjectKind, text: &str) -> PgError {
    use ObjectKind::{
        Collation, Function, FunctionSignature, Operator, OperatorSignature, Relation, Role, Schema, Type,
    };
    let (state, message) = match kind {
        Relation => (state::UNDEFINED_TABLE, format!("relation \"{text}\" does not exist")),
        Type => (state::UNDEFINED_OBJECT, format!("type \"{text}\" does not exist")),
        Function | FunctionSignature => (state::UNDEFINED_FUNCTION, format!("function \"{text}\" does not exist")),
        Operator | OperatorSignature => (state::UNDEFINED_FUNCTION, format!("operator does not exist: {text}")),
        Schema => (state::INVALID_SCHEMA_NAME, format!("schema \"{text}\" does not exist")),
        Role => (state::UNDEFINED_OBJECT, format!("role \"{text}\" does not exist")),
        Collation => (state::UNDEFINED_OBJECT, format!("collation \"{text}\" for encoding \"UTF8\" does not exist")),
    };
    PgError::new(state, message)
}

pub fn output(ty: Oid, oid: Oid, io: &IoContext, out: &mut Vec<u8>) {
    let Some(kind) = kind(ty) else { return };
    if oid == 0 && !matches!(kind, ObjectKind::Operator | ObjectKind::OperatorSignature) {
        return out.push(b'-');
    }
    let named = io.objects.as_ref().and_then(|objects| (objects.name)(kind, oid));
    let named = named.or_else(|| {
        let is_known = registry::by_oid(oid).is_some() && !user::is_user_type(oid);
        (kind == ObjectKind::Type && is_known).then(|| registry::format_type(oid, None))
    });
    out.extend_from_slice(named.unwrap_or_else(|| oid.to_string()).as_bytes());
}
