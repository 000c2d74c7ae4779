//! Functions and aggregates of bit strings.

pub mod rows;

use datum::{Fault, Result};
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::aggregate::function;
use crate::functions::args::{bytes, claim, integer, invalid};
use crate::functions::text::strings::{overlay_spans, span};
use crate::types::bits::{self, BITS_MAX, Bits};
use crate::types::oid;
use crate::value::Value;

fn of_value(bytes: &[u8]) -> Result<Bits> {
    let _claim = claim(bytes.len())?;
    Ok(Bits::of_bytes(bytes).ok_or_else(bits::corrupt)?)
}

fn argument(values: &[Value], at: usize) -> Result<Bits> {
    of_value(bytes(values, at)?)
}

pub fn not(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let bits = argument(values, 0)?;
    Ok(Bits::new(bits.length, bits.bytes.iter().map(|byte| !byte).collect()).to_value())
}

/// An operation on each pair of bits of two strings, and its name in errors.
#[derive(Clone, Copy, Debug)]
struct Joint {
    name: &'static str,
    join: fn(u8, u8) -> u8,
}

const AND: Joint = Joint { name: "AND", join: |a, b| a & b };
const OR: Joint = Joint { name: "OR", join: |a, b| a | b };
const XOR: Joint = Joint { name: "XOR", join: |a, b| a ^ b };

impl Joint {
    fn of(self, mut a: Bits, b: &Bits) -> Result<Bits> {
        if a.length != b.length {
            let text = format!("cannot {} bit strings of different sizes", self.name);
            return Err(PgError::new(state::STRING_DATA_LENGTH_MISMATCH, text).into());
        }
        a.bytes.iter_mut().zip(&b.bytes).for_each(|(a, b)| *a = (self.join)(*a, *b));
        Ok(a)
    }

    fn of_values(self, values: &[Value]) -> Result<Value> {
        Ok(self.of(argument(values, 0)?, &argument(values, 1)?)?.to_value())
    }
}

pub fn and(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    AND.of_values(values)
}

pub fn or(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    OR.of_values(values)
}

pub fn xor(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    XOR.of_values(values)
}

/// Moves the bits to the left, or to the right if the number is negative. The length stays.
fn shifted(values: &[Value], places: i64) -> Result<Value> {
    let bits = argument(values, 0)?;
    let places_all = usize::try_from(places.unsigned_abs()).unwrap_or(usize::MAX).min(bits.length);
    let moved = match places >= 0 {
        true => Bits::new(bits.length, bits.part(places_all, bits.length).bytes),
        false => {
            let mut moved = Bits::zeros(places_all);
            moved.append(&bits.part(0, bits.length - places_all));
            moved
        }
    };
    Ok(moved.to_value())
}

pub fn shift_left(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    shifted(values, integer(values, 1)?)
}

pub fn shift_right(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    shifted(values, -integer(values, 1)?)
}

fn joined(parts: &[Bits]) -> Result<Value> {
    let length: usize = parts.iter().map(|part| part.length).sum();
    if length > BITS_MAX {
        return Err(bits::too_long().into());
    }
    let _claim = claim(length / 8)?;
    let mut out = Bits::default();
    parts.iter().for_each(|part| out.append(part));
    Ok(out.to_value())
}

pub fn concatenate(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    joined(&[argument(values, 0)?, argument(values, 1)?])
}

fn part(bits: &Bits, (start, end): (usize, usize)) -> Bits {
    bits.part(start, end.min(bits.length))
}

pub fn substring(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let length = if values.len() > 2 { Some(integer(values, 2)?) } else { None };
    Ok(part(&argument(values, 0)?, span(integer(values, 1)?, length)?).to_value())
}

pub fn overlay(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (old, new) = (argument(values, 0)?, argument(values, 1)?);
    let length = if values.len() > 3 { integer(values, 3)? } else { new.length as i64 };
    let (before, behind) = overlay_spans(integer(values, 2)?, length)?;
    joined(&[part(&old, before), new, part(&old, behind)])
}

/// Bytes compared between two looks for interrupts.
const WORK_CHECKED: usize = 64 << 10;

pub fn position(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (text, wanted) = (argument(values, 0)?, argument(values, 1)?);
    if text.length == 0 || wanted.length > text.length {
        return Ok(Value::Int(0));
    }
    let last_mask = !0xff_u8.checked_shr((wanted.length % 8) as u32).filter(|_| wanted.length % 8 > 0).unwrap_or(0);
    let mut work = 0;
    for start in 0..=text.length - wanted.length {
        let mut is_found = true;
        for (at, byte) in wanted.bytes.iter().enumerate() {
            let mask = if at + 1 == wanted.bytes.len() { last_mask } else { 0xff };
            work += 1;
            if text.byte_at(start + 8 * at) & mask != *byte {
                is_found = false;
                break;
            }
        }
        if is_found {
            return Ok(Value::Int(start as i64 + 1));
        }
        if work >= WORK_CHECKED {
            ctx.check_killed()?;
            work = 0;
        }
    }
    Ok(Value::Int(0))
}

pub fn length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(argument(values, 0)?.length as i64))
}

pub fn octet_length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(argument(values, 0)?.bytes.len() as i64))
}

pub fn bit_count(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(argument(values, 0)?.bytes.iter().map(|byte| i64::from(byte.count_ones())).sum()))
}

fn place(values: &[Value], bits: &Bits) -> Result<usize> {
    let at = integer(values, 1)?;
    match usize::try_from(at) {
        Ok(place) if place < bits.length => Ok(place),
        _ => {
            let text = format!("bit index {at} out of valid range (0..{})", bits.length as i64 - 1);
            Err(PgError::new(state::ARRAY_SUBSCRIPT_ERROR, text).into())
        }
    }
}

pub fn get_bit(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let bits = argument(values, 0)?;
    Ok(Value::Int(bits.get(place(values, &bits)?).into()))
}

pub fn set_bit(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut bits = argument(values, 0)?;
    let at = place(values, &bits)?;
    match integer(values, 2)? {
        bit @ (0 | 1) => bits.set(at, bit == 1),
        _ => return Err(invalid("new bit must be 0 or 1")),
    }
    Ok(bits.to_value())
}

/// Returns the low bits of a number, with its sign before them where the string is longer.
pub fn of_integer(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (number, typmod) = (integer(values, 0)?, integer(values, 1)?);
    let length = usize::try_from(typmod).ok().filter(|length| (1..=BITS_MAX).contains(length)).unwrap_or(1);
    let _claim = claim(length / 8)?;
    let wide = Bits::new(64, number.to_be_bytes().to_vec());
    if length <= 64 {
        return Ok(wide.part(64 - length, 64).to_value());
    }
    let sign = if number < 0 { 0xff } else { 0 };
    let mut bits = Bits::new(length - 64, vec![sign; (length - 64).div_ceil(8)]);
    bits.append(&wide);
    Ok(bits.to_value())
}

/// Returns the bits as a number without a sign; `None` if there are more than a number has.
fn number(values: &[Value], width: usize) -> Result<Option<u64>> {
    let bits = argument(values, 0)?;
    let fits = bits.length <= width;
    Ok(fits.then(|| {
        bits.bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)) >> (bits.bytes.len() * 8 - bits.length)
    }))
}

#[cold]
fn out_of_range(ty: &str) -> Fault {
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range")).into()
}

pub fn to_int4(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let number = number(values, 32)?.ok_or_else(|| out_of_range("integer"))?;
    Ok(Value::Int((number as u32 as i32).into()))
}

pub fn to_int8(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(number(values, 64)?.ok_or_else(|| out_of_range("bigint"))? as i64))
}

fn with_length(values: &[Value], ty: oid::Oid) -> Result<Value> {
    let typmod = i32::try_from(integer(values, 1)?).unwrap_or(-1);
    let _claim = claim(usize::try_from(typmod).unwrap_or(0) / 8)?;
    Ok(bits::with_typmod(bytes(values, 0)?, ty, typmod, integer(values, 2)? != 0)?)
}

pub fn bit_length_coercion(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    with_length(values, oid::BIT)
}

pub fn varbit_length_coercion(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    with_length(values, oid::VARBIT)
}

pub static BIT_AND: AggregateFunction = joins("bit_and", |_| Box::new(JoinedBits { kept: None, joint: AND }));
pub static BIT_OR: AggregateFunction = joins("bit_or", |_| Box::new(JoinedBits { kept: None, joint: OR }));
pub static BIT_XOR: AggregateFunction = joins("bit_xor", |_| Box::new(JoinedBits { kept: None, joint: XOR }));

const fn joins(name: &'static str, start: fn(&Aggregate) -> Box<dyn Accumulator>) -> AggregateFunction {
    AggregateFunction { memory: Memory::One, ..function(name, start) }
}

/// The bits of all strings, joined.
#[derive(Clone, Debug)]
struct JoinedBits {
    kept: Option<Bits>,
    joint: Joint,
}

impl Accumulator for JoinedBits {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        if !values[0].is_null() {
            let next = argument(values, 0)?;
            self.kept = Some(match self.kept.take() {
                None => next,
                Some(kept) => self.joint.of(kept, &next)?,
            });
        }
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        Ok(self.kept.take().map_or(Value::Null, |bits| bits.to_value()))
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |bits| bits.bytes.len())
    }
}
