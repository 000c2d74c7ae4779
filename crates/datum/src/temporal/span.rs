//! An interval as a value: months, days and microseconds, none of which is made of the others.
//!
//! Months have no fixed length, and days have none where clocks change. For order and equality a month has 30 days and a day 24 hours, so `1 month` and
//! `30 days` are equal without being the same.

use std::cmp::Ordering;

use super::MICROS_PER_DAY;

const DAYS_PER_MONTH: i128 = 30;

/// `==` is identity: the same fields. `order` compares lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub months: i32,
    pub days: i32,
    pub micros: i64,
}

impl Span {
    /// The bytes of a span in rows.
    pub const BYTES: usize = 16;

    pub const fn new(months: i32, days: i32, micros: i64) -> Span {
        Span { months, days, micros }
    }

    /// Returns the length in microseconds, with months of 30 days and days of 24 hours.
    pub fn length(self) -> i128 {
        let days = i128::from(self.months) * DAYS_PER_MONTH + i128::from(self.days);
        days * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }

    /// Returns the order of the lengths.
    pub fn order(self, other: Span) -> Ordering {
        self.length().cmp(&other.length())
    }

    /// Returns the fields in little-endian order: microseconds, days, months.
    pub fn to_bytes(self) -> [u8; Span::BYTES] {
        let mut bytes = [0; Span::BYTES];
        bytes[..8].copy_from_slice(&self.micros.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.days.to_le_bytes());
        bytes[12..].copy_from_slice(&self.months.to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: [u8; Span::BYTES]) -> Span {
        let [a, b, c, d, e, f, g, h, days @ .., m, n, o, p] = bytes;
        Span {
            months: i32::from_le_bytes([m, n, o, p]),
            days: i32::from_le_bytes(days),
            micros: i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        }
    }
}

/// The fields with their names. Shown forms belong to the dialects.
impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} months {} days {} microseconds", self.months, self.days, self.micros)
    }
}
