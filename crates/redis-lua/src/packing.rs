//! The library `struct`: numbers and texts in binary formats.

use mlua::{Lua, MultiValue, Result, Table, Value};

use crate::arguments::{Arguments, as_number};
use crate::library::add;
use crate::raise::{bad_argument, raise_text};

/// The alignment of `!` without a number.
const ALIGN_DEFAULT: usize = 8;
/// Bytes of the longest integer.
const INTEGER_MAX: usize = 32;

pub fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    add(lua, &table, "pack", pack)?;
    add(lua, &table, "unpack", unpack)?;
    add(lua, &table, "size", size)?;
    Ok(table)
}

/// A format while it is read, with the byte order and alignment in force.
struct Format<'l, 't> {
    lua: &'l Lua,
    rest: &'t [u8],
    is_big: bool,
    align: usize,
}

impl<'l, 't> Format<'l, 't> {
    fn new(lua: &'l Lua, text: &'t [u8]) -> Format<'l, 't> {
        // The original ends at a NUL.
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        Format { lua, rest: &text[..end], is_big: false, align: 1 }
    }

    fn number(&mut self, default: usize) -> Result<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let mut value: usize = 0;
        for byte in &self.rest[..digits] {
            let digit = usize::from(byte - b'0');
            if value > i32::MAX as usize / 10 || value * 10 > i32::MAX as usize - digit {
                return Err(raise_text(self.lua, "integral size overflow"));
            }
            value = value * 10 + digit;
        }
        self.rest = &self.rest[digits..];
        Ok(value)
    }

    /// Returns the next option and its size.
    fn next(&mut self) -> Result<Option<(u8, usize)>> {
        let Some((option, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b's' | b' ' | b'<' | b'>' | b'!' => 0,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_MAX {
                    let text = format!("integral size {size} is larger than limit of {INTEGER_MAX}");
                    return Err(raise_text(self.lua, &text));
                }
                size
            }
            other => {
                let text = format!("invalid format option '{}'", char::from(*other));
                return Err(bad_argument(self.lua, 1, &text));
            }
        };
        Ok(Some((*option, size)))
    }

    /// Returns the bytes of padding before an option.
    fn padding(&self, length: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.align);
        if size > 1 { size.wrapping_sub(length & (size - 1)) & (size - 1) } else { 0 }
    }

    /// Obeys an option that takes no value.
    fn control(&mut self, option: u8) -> Result<()> {
        match option {
            b'>' => self.is_big = true,
            b'<' => self.is_big = false,
            b'!' => {
                let align = self.number(ALIGN_DEFAULT)?;
                if !align.is_power_of_two() {
                    return Err(raise_text(self.lua, &format!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            _ => {}
        }
        Ok(())
    }
}

fn put(out: &mut Vec<u8>, mut bytes: Vec<u8>, is_big: bool) {
    if is_big {
        bytes.reverse();
    }
    out.extend_from_slice(&bytes);
}

/// Returns an integer as the original stores it: a number beyond the signed ones is unsigned.
fn integer_of(number: f64) -> u64 {
    if number < i64::MAX as f64 {
        // What does not fit is the smallest number, as processors convert it.
        if number >= i64::MIN as f64 { number as i64 as u64 } else { 1 << 63 }
    } else if number < 2f64.powi(64) {
        number as u64
    } else {
        0
    }
}

fn pack(args: &Arguments<'_>) -> Result<mlua::LuaString> {
    let text = args.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(args.lua, &text);
    let (mut out, mut at, mut total) = (Vec::new(), 2, 0usize);
    while let Some((option, mut size)) = format.next()? {
        let padding = format.padding(total, option, size);
        total += padding;
        out.resize(out.len() + padding, 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = integer_of(args.number(at)?);
                at += 1;
                let mut bytes = value.to_le_bytes().to_vec();
                // Shifts beyond the width take the count modulo the width, as on the original's processors.
                bytes = (0..size).map(|byte| bytes[byte % 8]).collect();
                put(&mut out, bytes, format.is_big);
            }
            b'x' => out.push(0),
            b'f' => {
                put(&mut out, (args.number(at)? as f32).to_le_bytes().to_vec(), format.is_big);
                at += 1;
            }
            b'd' => {
                put(&mut out, args.number(at)?.to_le_bytes().to_vec(), format.is_big);
                at += 1;
            }
            b'c' | b's' => {
                let value = args.string(at)?;
                at += 1;
                let value = value.as_bytes();
                if size == 0 {
                    size = value.len();
                }
                args.check(value.len() >= size, at, "string too short")?;
                out.extend_from_slice(&value[..size]);
                if option == b's' {
                    out.push(0);
                    size += 1;
                }
            }
            other => format.control(other)?,
        }
        total += size;
    }
    args.lua.create_string(out)
}

/// Returns the number of an integer's bytes.
fn read_integer(bytes: &[u8], is_big: bool, is_signed: bool) -> f64 {
    let mut value = 0u64;
    for at in 0..bytes.len() {
        let byte = if is_big { bytes[bytes.len() - 1 - at] } else { bytes[at] };
        value |= u64::from(byte) << (at * 8 % 64);
    }
    if !is_signed {
        return value as f64;
    }
    let mask = u64::MAX << ((bytes.len() * 8).wrapping_sub(1) % 64);
    if value & mask != 0 {
        value |= mask;
    }
    value as i64 as f64
}

fn unpack(args: &Arguments<'_>) -> Result<MultiValue> {
    let (text, data) = (args.string(1)?, args.string(2)?);
    let (text, data) = (text.as_bytes(), data.as_bytes());
    let from = args.integer_or(3, 1)?;
    args.check(from > 0, 3, "offset must be 1 or greater")?;
    let mut at = from as usize - 1;
    let mut format = Format::new(args.lua, &text);
    let mut values: Vec<Value> = Vec::new();
    let short = || bad_argument(args.lua, 2, "data string too short");
    while let Some((option, mut size)) = format.next()? {
        at = at.saturating_add(format.padding(at, option, size));
        if size > data.len() || at > data.len() - size {
            return Err(short());
        }
        let bytes = &data[at..at + size];
        let ordered = |bytes: &[u8]| -> Vec<u8> {
            if format.is_big { bytes.iter().rev().copied().collect() } else { bytes.to_vec() }
        };
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                values.push(Value::Number(read_integer(bytes, format.is_big, option.is_ascii_lowercase())));
            }
            b'x' => {}
            b'f' => {
                let bytes = ordered(bytes).try_into().unwrap_or_default();
                values.push(Value::Number(f64::from(f32::from_le_bytes(bytes))));
            }
            b'd' => values.push(Value::Number(f64::from_le_bytes(ordered(bytes).try_into().unwrap_or_default()))),
            b'c' => {
                if size == 0 {
                    let Some(length) = values.last().and_then(as_number) else {
                        return Err(raise_text(args.lua, "format 'c0' needs a previous size"));
                    };
                    values.pop();
                    size = length as usize;
                    if size > data.len() || at > data.len() - size {
                        return Err(short());
                    }
                }
                values.push(Value::String(args.lua.create_string(&data[at..at + size])?));
            }
            b's' => {
                let Some(length) = data[at..].iter().position(|byte| *byte == 0) else {
                    return Err(raise_text(args.lua, "unfinished string in data"));
                };
                values.push(Value::String(args.lua.create_string(&data[at..at + length])?));
                size = length + 1;
            }
            other => format.control(other)?,
        }
        at += size;
        if values.len() > RESULTS_MAX {
            return Err(raise_text(args.lua, "stack overflow (too many results)"));
        }
    }
    values.push(Value::Integer(at as i64 + 1));
    Ok(MultiValue::from_vec(values))
}

/// Values that fit onto Lua's stack.
const RESULTS_MAX: usize = 7000;

fn size(args: &Arguments<'_>) -> Result<i64> {
    let text = args.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(args.lua, &text);
    let mut total = 0usize;
    while let Some((option, size)) = format.next()? {
        total = total.saturating_add(format.padding(total, option, size));
        match option {
            b's' => return Err(bad_argument(args.lua, 1, "option 's' has no fixed size")),
            b'c' if size == 0 => return Err(bad_argument(args.lua, 1, "option 'c0' has no fixed size")),
            other => format.control(other)?,
        }
        total = total.saturating_add(size);
    }
    Ok(total as i64)
}
