//! Modifiers of the types: digits of seconds, and the fields of intervals.
//!
//! The modifier of an interval is a set of fields in the upper 16 bits and a precision in the lower ones; `0x7FFF` and `0xFFFF` of them are no restriction.

use super::decode::part;
use super::overflow;
use super::tokens::TimeUnit;
use super::{MICROS_PER_HOUR, MICROS_PER_MINUTE, Span, is_finite_timestamp};
use crate::error::{PgError, Result, state};

/// The most digits behind the point of seconds.
pub const PRECISION_MAX: i32 = 6;

/// The set of an interval's fields.
pub type IntervalRange = i32;

pub const FULL_RANGE: IntervalRange = 0x7FFF;
pub const FULL_PRECISION: i32 = 0xFFFF;

pub const MONTH: IntervalRange = part::MONTH as i32;
pub const YEAR: IntervalRange = part::YEAR as i32;
pub const DAY: IntervalRange = part::DAY as i32;
pub const HOUR: IntervalRange = part::HOUR as i32;
pub const MINUTE: IntervalRange = part::MINUTE as i32;
pub const SECOND: IntervalRange = part::SECOND as i32;

const YEAR_TO_MONTH: IntervalRange = YEAR | MONTH;
const DAY_TO_HOUR: IntervalRange = DAY | HOUR;
const DAY_TO_MINUTE: IntervalRange = DAY | HOUR | MINUTE;
const DAY_TO_SECOND: IntervalRange = DAY | HOUR | MINUTE | SECOND;
const HOUR_TO_MINUTE: IntervalRange = HOUR | MINUTE;
const HOUR_TO_SECOND: IntervalRange = HOUR | MINUTE | SECOND;
pub const MINUTE_TO_SECOND: IntervalRange = MINUTE | SECOND;

/// Sets of fields that a type may have, with their words.
const RANGES: [(IntervalRange, &str); 14] = [
    (YEAR, " year"),
    (MONTH, " month"),
    (DAY, " day"),
    (HOUR, " hour"),
    (MINUTE, " minute"),
    (SECOND, " second"),
    (YEAR_TO_MONTH, " year to month"),
    (DAY_TO_HOUR, " day to hour"),
    (DAY_TO_MINUTE, " day to minute"),
    (DAY_TO_SECOND, " day to second"),
    (HOUR_TO_MINUTE, " hour to minute"),
    (HOUR_TO_SECOND, " hour to second"),
    (MINUTE_TO_SECOND, " minute to second"),
    (FULL_RANGE, ""),
];

/// Returns the modifier of `interval` with fields and digits; -1 of either is no restriction.
pub fn interval_typmod(range: IntervalRange, precision: i32) -> i32 {
    let range = if range < 0 { FULL_RANGE } else { range };
    let precision = if precision < 0 { FULL_PRECISION } else { precision };
    range << 16 | precision
}

/// Returns the fields of a modifier, which may be -1.
pub fn interval_range(typmod: i32) -> IntervalRange {
    if typmod < 0 { FULL_RANGE } else { typmod >> 16 & FULL_RANGE }
}

pub fn interval_precision(typmod: i32) -> i32 {
    if typmod < 0 { FULL_PRECISION } else { typmod & FULL_PRECISION }
}

/// Returns the text behind the type's name that a modifier of `interval` is: `intervaltypmodout`.
pub fn interval_typmod_text(typmod: i32) -> String {
    if typmod < 0 {
        return String::new();
    }
    let (range, precision) = (interval_range(typmod), interval_precision(typmod));
    let words = RANGES.iter().find(|(known, _)| *known == range).map_or("", |(_, words)| words);
    if precision == FULL_PRECISION { words.to_string() } else { format!("{words}({precision})") }
}

/// Checks the digits of seconds that a type is declared with, and returns those that it gets: larger ones are reduced. The type's name is in upper case, `TIMESTAMP`, `TIME`, `INTERVAL`; the second value is the warning.
pub fn check_precision(precision: i32, type_name: &str, has_zone: bool) -> Result<(i32, Option<PgError>)> {
    let suffix = if has_zone { " WITH TIME ZONE" } else { "" };
    if precision < 0 {
        let text = format!("{type_name}({precision}){suffix} precision must not be negative");
        return Err(PgError::new(state::INVALID_PARAMETER_VALUE, text));
    }
    if precision > PRECISION_MAX {
        let text = format!("{type_name}({precision}){suffix} precision reduced to maximum allowed, {PRECISION_MAX}");
        return Ok((PRECISION_MAX, Some(PgError::new(state::INVALID_PARAMETER_VALUE, text))));
    }
    Ok((precision, None))
}

/// Returns the unit of a number without one, in an interval of these fields.
pub fn last_unit(range: IntervalRange) -> TimeUnit {
    match range {
        YEAR => TimeUnit::Year,
        MONTH | YEAR_TO_MONTH => TimeUnit::Month,
        DAY => TimeUnit::Day,
        HOUR | DAY_TO_HOUR => TimeUnit::Hour,
        MINUTE | HOUR_TO_MINUTE | DAY_TO_MINUTE => TimeUnit::Minute,
        _ => TimeUnit::Second,
    }
}

/// The microseconds of the last digit of a precision.
fn unit_of(precision: i32) -> i64 {
    10i64.pow((PRECISION_MAX - precision.clamp(0, PRECISION_MAX)) as u32)
}

/// Rounds microseconds to the digits of a modifier, away from zero at the middle. `None` out of the range of 64 bits.
fn round(micros: i64, precision: i32) -> Option<i64> {
    if !(0..PRECISION_MAX).contains(&precision) {
        return Some(micros);
    }
    let unit = unit_of(precision);
    let shifted = micros.checked_add(if micros >= 0 { unit / 2 } else { -(unit / 2) })?;
    Some(shifted / unit * unit)
}

/// Rounds a time of day.
pub fn adjust_time(micros: i64, typmod: i32) -> i64 {
    round(micros, typmod).unwrap_or(micros)
}

/// Rounds a timestamp. The last one may become the one after it, as on the real server.
pub fn adjust_timestamp(micros: i64, typmod: i32) -> i64 {
    if is_finite_timestamp(micros) { round(micros, typmod).unwrap_or(micros) } else { micros }
}

/// Drops the fields of an interval that its type does not have, and rounds it.
pub fn adjust_interval(mut span: Span, typmod: i32) -> Result<Span> {
    if typmod < 0 {
        return Ok(span);
    }
    let (range, precision) = (interval_range(typmod), interval_precision(typmod));
    // Fields to the left of the first are kept, so only those to the right of the last are dropped.
    match range {
        YEAR => span = Span { months: span.months / 12 * 12, days: 0, micros: 0 },
        MONTH | YEAR_TO_MONTH => span = Span { days: 0, micros: 0, ..span },
        DAY => span.micros = 0,
        HOUR | DAY_TO_HOUR => span.micros = span.micros / MICROS_PER_HOUR * MICROS_PER_HOUR,
        MINUTE | HOUR_TO_MINUTE | DAY_TO_MINUTE => span.micros = span.micros / MICROS_PER_MINUTE * MICROS_PER_MINUTE,
        _ => {}
    }
    if precision != FULL_PRECISION {
        span.micros = round(span.micros, precision).ok_or_else(|| overflow("interval out of range"))?;
    }
    Ok(span)
}
