//! The library `bit`: operations on numbers as 32 bits.

use mlua::{Lua, Result, Table};

use crate::arguments::Arguments;
use crate::library::add;

/// Returns a number modulo 2^32, as an integer with a sign.
fn to_bits(value: f64) -> i32 {
    // The addition rounds to an integer, to even in the middle; its low bits are the number's.
    (value + 6_755_399_441_055_744.0).to_bits() as u32 as i32
}

fn bits(args: &Arguments<'_>, number: usize) -> Result<i32> {
    Ok(to_bits(args.number(number)?))
}

fn fold(lua: &Lua, table: &Table, name: &str, f: fn(i32, i32) -> i32) -> Result<()> {
    add(lua, table, name, move |args| {
        let mut value = bits(args, 1)?;
        for number in 2..=args.len() {
            value = f(value, bits(args, number)?);
        }
        Ok(value)
    })
}

fn shift(lua: &Lua, table: &Table, name: &str, f: fn(i32, u32) -> i32) -> Result<()> {
    add(lua, table, name, move |args| {
        let value = bits(args, 1)?;
        Ok(f(value, bits(args, 2)? as u32 & 31))
    })
}

pub fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    add(lua, &table, "tobit", |args| bits(args, 1))?;
    add(lua, &table, "bnot", |args| Ok(!bits(args, 1)?))?;
    add(lua, &table, "bswap", |args| Ok(bits(args, 1)?.swap_bytes()))?;
    fold(lua, &table, "band", |a, b| a & b)?;
    fold(lua, &table, "bor", |a, b| a | b)?;
    fold(lua, &table, "bxor", |a, b| a ^ b)?;
    shift(lua, &table, "lshift", |a, by| a << by)?;
    shift(lua, &table, "rshift", |a, by| (a as u32 >> by) as i32)?;
    shift(lua, &table, "arshift", |a, by| a >> by)?;
    shift(lua, &table, "rol", i32::rotate_left)?;
    shift(lua, &table, "ror", i32::rotate_right)?;
    add(lua, &table, "tohex", |args| {
        let value = bits(args, 1)?;
        let wanted = if args.get(2).is_none() { 8 } else { bits(args, 2)? };
        let digits = (wanted.unsigned_abs() as usize).min(8);
        let text = if wanted < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
        args.lua.create_string(&text[8 - digits..])
    })?;
    Ok(table)
}
