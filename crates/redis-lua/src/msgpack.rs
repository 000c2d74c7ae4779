//! The library `cmsgpack` 0.4.0: values to MessagePack and back.

use mlua::{Lua, MultiValue, Result, Table, Value};

use crate::arguments::Arguments;
use crate::library::add;
use crate::raise::{bad_argument, raise_text};

/// Tables that are nested more deeply are packed as nil.
const NESTING_MAX: usize = 16;
/// Nesting up to which input is unpacked, for the sake of the native stack.
const UNPACK_NESTING_MAX: usize = 2000;

pub fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    add(lua, &table, "pack", |args| {
        if args.len() == 0 {
            return Err(bad_argument(args.lua, 0, "MessagePack pack needs input."));
        }
        let mut out = Vec::new();
        for number in 1..=args.len() {
            pack(&mut out, &args.value(number), 0)?;
        }
        args.lua.create_string(out)
    })?;
    add(lua, &table, "unpack", |args| unpack(args, 0, 0))?;
    add(lua, &table, "unpack_one", |args| unpack(args, 1, args.integer_or(2, 0)?))?;
    add(lua, &table, "unpack_limit", |args| unpack(args, args.integer(2)?, args.integer_or(3, 0)?))?;
    Ok(table)
}

fn pack(out: &mut Vec<u8>, value: &Value, level: usize) -> Result<()> {
    match value {
        Value::Boolean(on) => out.push(if *on { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => pack_integer(out, *number),
        Value::Number(number) => pack_number(out, *number),
        Value::String(text) => {
            let text = text.as_bytes();
            pack_length(out, text.len(), (0xa0, 32), Some(0xd9), 0xda);
            out.extend_from_slice(&text);
        }
        Value::Table(table) if level < NESTING_MAX => pack_table(out, table, level)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

/// Writes the head of a text, an array or a map: up to `few` elements in the first byte, then with 8 bits of length if there is such a form, 16 or 32.
fn pack_length(out: &mut Vec<u8>, length: usize, (first, few): (u8, usize), byte: Option<u8>, word: u8) {
    match (length, byte) {
        (0.., _) if length < few => out.push(first | length as u8),
        (..=0xff, Some(byte)) => out.extend_from_slice(&[byte, length as u8]),
        (..=0xffff, _) => {
            out.push(word);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(word + 1);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
}

fn pack_number(out: &mut Vec<u8>, number: f64) {
    if number as i64 as f64 == number {
        return pack_integer(out, number as i64);
    }
    let single = number as f32;
    if f64::from(single) == number {
        out.push(0xca);
        out.extend_from_slice(&single.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn pack_integer(out: &mut Vec<u8>, number: i64) {
    let (code, bytes) = match number {
        -32..=127 => return out.push(number as u8),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -128..=-33 => (0xd0, 1),
        -0x8000..=-129 => (0xd1, 2),
        -0x8000_0000..=-0x8001 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    out.push(code);
    out.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
}

/// Returns whether the keys are the numbers from 1 to their count.
fn is_array(table: &Table) -> Result<bool> {
    let (mut max, mut count) = (0, 0);
    for pair in table.pairs::<Value, Value>() {
        match pair?.0 {
            Value::Integer(key) if key > 0 => (max, count) = (max.max(key), count + 1),
            _ => return Ok(false),
        }
    }
    Ok(max == count)
}

fn pack_table(out: &mut Vec<u8>, table: &Table, level: usize) -> Result<()> {
    if is_array(table)? {
        let length = table.raw_len();
        pack_length(out, length, (0x90, 16), None, 0xdc);
        for at in 1..=length {
            pack(out, &table.raw_get::<Value>(at)?, level + 1)?;
        }
        return Ok(());
    }
    let mut body = Vec::new();
    let mut count = 0;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        pack(&mut body, &key, level + 1)?;
        pack(&mut body, &value, level + 1)?;
        count += 1;
    }
    pack_length(out, count, (0x80, 16), None, 0xde);
    out.extend_from_slice(&body);
    Ok(())
}

/// The reason why input is refused.
enum Bad {
    Missing,
    Format,
    Lua(mlua::Error),
}

impl From<mlua::Error> for Bad {
    fn from(error: mlua::Error) -> Bad {
        Bad::Lua(error)
    }
}

struct Input<'l, 't> {
    lua: &'l Lua,
    left: &'t [u8],
}

impl Input<'_, '_> {
    fn take(&mut self, count: usize) -> std::result::Result<&[u8], Bad> {
        let (taken, left) = self.left.split_at_checked(count).ok_or(Bad::Missing)?;
        self.left = left;
        Ok(taken)
    }

    /// Returns an integer of so many bytes.
    fn unsigned(&mut self, bytes: usize) -> std::result::Result<u64, Bad> {
        Ok(self.take(bytes)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn signed(&mut self, bytes: usize) -> std::result::Result<f64, Bad> {
        let unused = 64 - 8 * bytes as u32;
        Ok(((self.unsigned(bytes)? << unused) as i64 >> unused) as f64)
    }

    fn text(&mut self, length: usize) -> std::result::Result<Value, Bad> {
        let lua = self.lua;
        Ok(Value::String(lua.create_string(self.take(length)?)?))
    }

    fn value(&mut self, level: usize) -> std::result::Result<Value, Bad> {
        if level > UNPACK_NESTING_MAX {
            return Err(Bad::Format);
        }
        let code = self.take(1)?[0];
        Ok(match code {
            0..=0x7f => Value::Number(f64::from(code)),
            0xe0..=0xff => Value::Number(f64::from(code as i8)),
            0xa0..=0xbf => self.text(usize::from(code & 0x1f))?,
            0x90..=0x9f => self.array(u64::from(code & 15), level)?,
            0x80..=0x8f => self.map(u64::from(code & 15), level)?,
            0xc0 => Value::Nil,
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xca => Value::Number(f64::from(f32::from_bits(self.unsigned(4)? as u32))),
            0xcb => Value::Number(f64::from_bits(self.unsigned(8)?)),
            0xcc..=0xcf => Value::Number(self.unsigned(1 << (code - 0xcc))? as f64),
            0xd0..=0xd3 => Value::Number(self.signed(1 << (code - 0xd0))?),
            0xc4..=0xc6 | 0xd9..=0xdb => {
                let bytes = 1 << if code >= 0xd9 { code - 0xd9 } else { code - 0xc4 };
                let length = self.unsigned(bytes)?;
                self.text(length as usize)?
            }
            0xdc | 0xdd => {
                let count = self.unsigned(2 << (code - 0xdc))?;
                self.array(count, level)?
            }
            0xde | 0xdf => {
                let count = self.unsigned(2 << (code - 0xde))?;
                self.map(count, level)?
            }
            _ => return Err(Bad::Format),
        })
    }

    fn array(&mut self, count: u64, level: usize) -> std::result::Result<Value, Bad> {
        let table = self.lua.create_table()?;
        for at in 1..=count {
            let value = self.value(level + 1)?;
            table.raw_set(at, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, count: u64, level: usize) -> std::result::Result<Value, Bad> {
        let table = self.lua.create_table()?;
        for _ in 0..count {
            let key = self.value(level + 1)?;
            let value = self.value(level + 1)?;
            match &key {
                Value::Nil => return Err(Bad::Lua(crate::raise::raise_bytes(self.lua, b"table index is nil"))),
                Value::Number(number) if number.is_nan() => {
                    return Err(Bad::Lua(crate::raise::raise_bytes(self.lua, b"table index is NaN")));
                }
                _ => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}

fn unpack(args: &Arguments<'_>, limit: i64, offset: i64) -> Result<MultiValue> {
    let text = args.string(1)?;
    let (text, lua) = (text.as_bytes(), args.lua);
    let is_whole = limit == 0 && offset == 0;
    if offset < 0 || limit < 0 {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {}.", text.len());
        return Err(raise_text(lua, &text));
    }
    if offset as u64 > text.len() as u64 {
        let text = format!("Start offset {offset} greater than input length {}.", text.len());
        return Err(raise_text(lua, &text));
    }
    let limit = if is_whole { i64::MAX } else { limit };
    let mut input = Input { lua, left: &text[offset as usize..] };
    let mut values = Vec::new();
    while !input.left.is_empty() && (values.len() as i64) < limit {
        let value = input.value(0).map_err(|bad| match bad {
            Bad::Missing => raise_text(lua, "Missing bytes in input."),
            Bad::Format => raise_text(lua, "Bad data format in input."),
            Bad::Lua(error) => error,
        })?;
        values.push(value);
        if values.len() > RESULTS_MAX {
            return Err(raise_text(
                lua,
                "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)",
            ));
        }
    }
    if !is_whole {
        let next = if input.left.is_empty() { -1 } else { (text.len() - input.left.len()) as i64 };
        values.insert(0, Value::Integer(next));
    }
    Ok(MultiValue::from_vec(values))
}

/// Values that fit onto Lua's stack.
const RESULTS_MAX: usize = 7000;
