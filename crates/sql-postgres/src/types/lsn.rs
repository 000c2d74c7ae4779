//! pg_lsn: a position of the WAL, shown as two hexadecimal numbers of 32 bits.

use std::io::Write as _;

use crate::error::Result;
use crate::types::io;
use crate::value::Value;

pub fn input(text: &str) -> Result<Value> {
    let half = |digits: &str| match (1..=8).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_hexdigit()) {
        true => u64::from_str_radix(digits, 16).ok(),
        false => None,
    };
    let halves = text.split_once('/').and_then(|(high, low)| Some((half(high)?, half(low)?)));
    let (high, low) = halves.ok_or_else(|| io::invalid_input("pg_lsn", text))?;
    Ok(Value::UInt(high << 32 | low))
}

pub fn output(lsn: u64, out: &mut Vec<u8>) {
    // A vector takes all bytes.
    let _ = write!(out, "{:X}/{:X}", lsn >> 32, lsn & 0xffff_ffff);
}
