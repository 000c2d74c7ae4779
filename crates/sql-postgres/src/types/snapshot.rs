//! pg_snapshot, which txid_snapshot is another name of: the transactions that a snapshot sees.
//!
//! The value is the numbers xmin and xmax and those between them that are not seen, eight bytes each, big-endian.

use std::io::Write as _;

use crate::error::{PgError, Result, state};
use crate::types::boolean::is_space;
use crate::types::io;
use crate::value::Value;

/// The transactions that a snapshot sees: all before `xmin`, and those before `xmax` that are not in `xip`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionSnapshot {
    pub xmin: u64,
    pub xmax: u64,
    /// Ascending.
    pub xip: Vec<u64>,
}

impl TransactionSnapshot {
    /// Reads the stored form; `None` for other bytes.
    pub fn of_bytes(bytes: &[u8]) -> Option<TransactionSnapshot> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let mut numbers = numbers.iter().map(|number| u64::from_be_bytes(*number));
        Some(TransactionSnapshot { xmin: numbers.next()?, xmax: numbers.next()?, xip: numbers.collect() })
    }

    pub fn to_value(&self) -> Value {
        let numbers = [self.xmin, self.xmax].into_iter().chain(self.xip.iter().copied());
        Value::bytes(numbers.flat_map(u64::to_be_bytes).collect::<Vec<u8>>())
    }

    pub fn sees(&self, id: u64) -> bool {
        id < self.xmin || (id < self.xmax && self.xip.binary_search(&id).is_err())
    }

    /// Returns whether the numbers are in order, as those of every snapshot are.
    fn is_sane(&self) -> bool {
        let is_within = |id: &u64| (self.xmin..self.xmax).contains(id);
        self.xmin != 0 && self.xmax >= self.xmin && self.xip.iter().all(is_within) && self.xip.is_sorted()
    }
}

pub fn input(text: &str) -> Result<Value> {
    read(text).map(|snapshot| snapshot.to_value()).ok_or_else(|| io::invalid_input("pg_snapshot", text))
}

fn read(text: &str) -> Option<TransactionSnapshot> {
    let (xmin, rest) = number(text)?;
    let (xmax, rest) = number(rest.strip_prefix(':')?)?;
    let mut rest = rest.strip_prefix(':')?;
    let mut xip = Vec::new();
    while !rest.is_empty() {
        let (id, behind) = number(rest)?;
        rest = match behind.strip_prefix(',') {
            Some(behind) => behind,
            None if behind.is_empty() => behind,
            None => return None,
        };
        xip.push(id);
    }
    let mut snapshot = TransactionSnapshot { xmin, xmax, xip };
    let is_sane = snapshot.is_sane();
    snapshot.xip.dedup();
    is_sane.then_some(snapshot)
}

/// Reads a number as `strtoull` does, but without a minus sign. No digits are 0.
fn number(text: &str) -> Option<(u64, &str)> {
    let rest = text.trim_start_matches(is_space);
    let rest = rest.strip_prefix('+').unwrap_or(rest);
    let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match length {
        0 => Some((0, text)),
        length => Some((rest[..length].parse().unwrap_or(u64::MAX), &rest[length..])),
    }
}

pub fn output(snapshot: &TransactionSnapshot, out: &mut Vec<u8>) {
    // A vector takes all bytes.
    let _ = write!(out, "{}:{}:", snapshot.xmin, snapshot.xmax);
    for (nth, id) in snapshot.xip.iter().enumerate() {
        let _ = write!(out, "{}{id}", if nth > 0 { "," } else { "" });
    }
}

pub fn send(snapshot: &TransactionSnapshot, out: &mut Vec<u8>) {
    out.extend_from_slice(&(snapshot.xip.len() as u32).to_be_bytes());
    for number in [snapshot.xmin, snapshot.xmax].iter().chain(&snapshot.xip) {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

pub fn receive(bytes: &[u8]) -> Result<Value> {
    let invalid = || PgError::new(state::INVALID_BINARY_REPRESENTATION, "invalid external pg_snapshot data");
    let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(invalid)?;
    let mut snapshot = TransactionSnapshot::of_bytes(rest).ok_or_else(invalid)?;
    if snapshot.xip.len() != u32::from_be_bytes(*count) as usize || !snapshot.is_sane() {
        return Err(invalid());
    }
    snapshot.xip.dedup();
    Ok(snapshot.to_value())
}

#[cold]
pub fn corrupt() -> PgError {
    PgError::new(state::DATA_CORRUPTED, "bytes that are no snapshot")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_sees_what_is_decided() {
        let snapshot = read("10:20:11,15,15").unwrap();
        let seen: Vec<u64> = (8..22).filter(|id| snapshot.sees(*id)).collect();
        assert_eq!(seen, [8, 9, 10, 12, 13, 14, 16, 17, 18, 19]);
        let mut bytes = Vec::new();
        send(&snapshot, &mut bytes);
        assert_eq!(receive(&bytes).unwrap(), snapshot.to_value());
        bytes.pop();
        assert!(receive(&bytes).is_err());
        assert!(
            ["", "1", "1:2", "0:1:", "2:1:", "1:5:5", "1:5:3,2", "1:5:2;3", "1:5:,"]
                .iter()
                .all(|text| read(text).is_none())
        );
    }
}
