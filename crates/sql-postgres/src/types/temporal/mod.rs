//! Dates, times and intervals: their ranges, texts and binary forms.
//!
//! A text is divided into fields by its characters (`fields`), the fields are given meaning (`decode`, `decode_interval`) and become a [`calendar::Reading`] or a [`Span`]. Output goes from the value through a reading to a text (`encode`). `io` has the functions of each
//! type; the other files are their steps.

mod abbreviations;
pub mod calendar;
mod decode;
mod decode_interval;
mod encode;
mod fields;
pub mod io;
mod posix;
pub mod tokens;
pub mod typmod;
pub mod zone;

pub use abbreviations::{ABBREVIATIONS, Meaning};
pub use datum::temporal::Span;
pub use decode::offset as decode_offset;
pub use decode::part as date_parts;
pub use fields::is_space;
pub use zone::{LocalOffset, NamedZone, PgZone};

use crate::error::{PgError, state};
use crate::types::io::{DateFormat, DateOrder, IntervalStyle, IoContext};
use calendar::{DATE_END_JULIAN, EPOCH_JULIAN, TIMESTAMP_END_JULIAN, UNIX_JULIAN};

pub const MICROS_PER_SECOND: i64 = 1_000_000;
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
pub const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;
/// Seconds from 1970 to 2000.
pub const EPOCH_SECONDS: i64 = (EPOCH_JULIAN - UNIX_JULIAN) * 86_400;

/// The infinities of dates, in days.
pub const DATE_EARLY: i32 = i32::MIN;
pub const DATE_LATE: i32 = i32::MAX;
/// The first date that is no infinity.
pub const DATE_FIRST: i32 = -(EPOCH_JULIAN as i32);
/// The infinities of timestamps, in microseconds.
pub const TIMESTAMP_EARLY: i64 = i64::MIN;
pub const TIMESTAMP_LATE: i64 = i64::MAX;
/// The first timestamp, and the one after the last.
pub const TIMESTAMP_MIN: i64 = -EPOCH_JULIAN * MICROS_PER_DAY;
pub const TIMESTAMP_END: i64 = (TIMESTAMP_END_JULIAN - EPOCH_JULIAN) * MICROS_PER_DAY;

/// The reason for which a text is not a date, time or interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DateTimeError {
    BadFormat,
    FieldOverflow,
    /// Month or day are out of range, perhaps because the order of fields is another.
    MonthDayOverflow,
    IntervalOverflow,
    ZoneOverflow,
    UnknownZone(Box<str>),
}

/// The result of reading a text.
pub type Decoded<T> = Result<T, DateTimeError>;

impl DateTimeError {
    /// Returns the error about a text for a type, named as in messages.
    #[cold]
    pub fn report(self, text: &str, type_name: &str) -> PgError {
        match self {
            DateTimeError::BadFormat => PgError::new(
                state::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            DateTimeError::FieldOverflow => field_overflow(text),
            DateTimeError::MonthDayOverflow => {
                field_overflow(text).hint("Perhaps you need a different \"datestyle\" setting.")
            }
            DateTimeError::IntervalOverflow => {
                PgError::new(state::INTERVAL_FIELD_OVERFLOW, format!("interval field value out of range: \"{text}\""))
            }
            DateTimeError::ZoneOverflow => PgError::new(
                state::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                format!("time zone displacement out of range: \"{text}\""),
            ),
            DateTimeError::UnknownZone(zone) => unknown_zone(&zone),
        }
    }
}

#[cold]
pub fn field_overflow(text: &str) -> PgError {
    PgError::new(state::DATETIME_FIELD_OVERFLOW, format!("date/time field value out of range: \"{text}\""))
}

#[cold]
pub fn unknown_zone(name: &str) -> PgError {
    PgError::new(state::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized"))
}

/// Returns an error of SQLSTATE 22008.
#[cold]
pub fn overflow(message: &str) -> PgError {
    PgError::new(state::DATETIME_FIELD_OVERFLOW, message)
}

/// Checks the parts of a date, by the bits of `date_parts`, whose year has its era.
pub fn validate_parts(reading: &mut calendar::Reading, parts: u32) -> Result<(), DateTimeError> {
    decode::DateChecks { mask: parts, is_julian: true, ..decode::DateChecks::default() }.apply(reading)
}

/// Checks a whole date, of which the year is positive, and gives its year the sign of its era.
pub fn validate_date(reading: &mut calendar::Reading, is_bc: bool) -> Result<(), DateTimeError> {
    decode::DateChecks { mask: decode::part::DATE, is_bc, ..decode::DateChecks::default() }.apply(reading)
}

pub fn is_valid_date(days: i64) -> bool {
    (-EPOCH_JULIAN..DATE_END_JULIAN - EPOCH_JULIAN).contains(&days)
}

pub fn is_valid_timestamp(micros: i64) -> bool {
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&micros)
}

pub fn is_finite_date(days: i32) -> bool {
    days != DATE_EARLY && days != DATE_LATE
}

pub fn is_finite_timestamp(micros: i64) -> bool {
    micros != TIMESTAMP_EARLY && micros != TIMESTAMP_LATE
}

#[cfg(test)]
mod tests;
