//! Casts between bool, the text types, oid and uuid.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::{claim, integer, oid, text, truth};
use crate::types::text as texts;
use crate::value::Value;

pub fn bool_of_int4(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok((integer(values, 0)? != 0).into())
}

pub fn int4_of_bool(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(truth(values, 0)?.into()))
}

pub fn text_of_bool(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(if truth(values, 0)? { "true" } else { "false" }))
}

/// The byte of a "char" is a number with a sign.
pub fn int4_of_char(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int((integer(values, 0)? as u8 as i8).into()))
}

pub fn char_of_int4(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    match i8::try_from(integer(values, 0)?) {
        Ok(byte) => Ok(Value::UInt((byte as u8).into())),
        Err(_) => Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "\"char\" out of range").into()),
    }
}

pub fn char_of_text(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(texts::char_input(text(values, 0)?))
}

pub fn text_of_char(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut out = Vec::new();
    texts::char_output(integer(values, 0)? as u8, &mut out);
    Ok(Value::text(String::from_utf8_lossy(&out)))
}

pub fn name_of_text(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(texts::truncated_name(text(values, 0)?)))
}

pub fn name_of_bpchar(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(texts::truncated_name(text(values, 0)?).trim_end_matches(' ')))
}

pub fn text_of_name(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(values[0].clone())
}

pub fn bpchar_length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let _claim = claim(integer(values, 1)?.max(0) as usize)?;
    Ok(texts::bpchar(text(values, 0)?, integer(values, 1)? as i32, truth(values, 2)?)?)
}

pub fn varchar_length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(texts::varchar(text(values, 0)?, integer(values, 1)? as i32, truth(values, 2)?)?)
}

pub fn oid_of_int8(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    match u32::try_from(integer(values, 0)?) {
        Ok(oid) => Ok(Value::UInt(oid.into())),
        Err(_) => Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range").into()),
    }
}

pub fn int8_of_oid(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(oid(values, 0)?.into()))
}

/// `name_oid`, as names of constraints are made.
pub fn name_with_oid(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let suffix = format!("_{}", oid(values, 1)?);
    let mut name = text(values, 0)?.to_owned();
    while name.len() + suffix.len() > texts::NAME_MAX {
        name.pop();
    }
    Ok(Value::Text((name + &suffix).into()))
}

/// Random bytes that a thread has read from the kernel, and how many of them are used.
struct Entropy {
    bytes: [u8; 4096],
    used: usize,
}

thread_local! {
    static ENTROPY: RefCell<Entropy> = const { RefCell::new(Entropy { bytes: [0; 4096], used: 4096 }) };
}

fn random_bytes() -> std::io::Result<[u8; 16]> {
    ENTROPY.with_borrow_mut(|entropy| {
        let mut out = [0; 16];
        if entropy.used + out.len() > entropy.bytes.len() {
            File::open("/dev/urandom")?.read_exact(&mut entropy.bytes)?;
            entropy.used = 0;
        }
        let next = &mut entropy.bytes[entropy.used..][..16];
        out.copy_from_slice(next);
        // Bytes are given once.
        next.fill(0);
        entropy.used += out.len();
        Ok(out)
    })
}

/// A random uuid: version 4.
pub fn gen_random_uuid(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut bytes =
        random_bytes().map_err(|_| PgError::new(state::INTERNAL_ERROR, "could not generate random values"))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Value::bytes(bytes))
}
