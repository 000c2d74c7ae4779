//! `date_trunc` and `date_bin`.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::arithmetic::{interval_overflow, timestamp_overflow};
use super::convert::zone_of_name;
use super::extract::{group, lower_name, not_recognized, not_supported};
use super::values::{micros, span, text};
use crate::error::{PgError, Result as PgResult, state};
use crate::functions::state::StateOf;
use crate::types::temporal::calendar::{Reading, iso_week, julian_of_iso_week};
use crate::types::temporal::io::timestamp_of;
use crate::types::temporal::tokens::{TimeUnit, Word, interval_word};
use crate::types::temporal::{
    MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, PgZone, Span, is_finite_timestamp,
    is_valid_timestamp, overflow,
};
use crate::value::Value;

fn unit(name: &str, ty: &str) -> PgResult<TimeUnit> {
    match interval_word(name) {
        Some(Word::Unit(unit)) => Ok(unit),
        _ => Err(not_recognized(name, ty)),
    }
}

/// The microseconds of a unit of the clock.
fn clock_unit(unit: TimeUnit) -> Option<i64> {
    Some(match unit {
        TimeUnit::Hour => MICROS_PER_HOUR,
        TimeUnit::Minute => MICROS_PER_MINUTE,
        TimeUnit::Second => MICROS_PER_SECOND,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1,
        _ => return None,
    })
}

/// Returns the first year of a group of years that ends with a multiple of its size.
fn group_start(year: i64, size: i64) -> i64 {
    let group = group(year, size);
    if year > 0 { group * size - (size - 1) } else { group * size + 1 }
}

/// Truncates the date; `None` for a unit of no date. The time is midnight then.
fn truncate_date(reading: &Reading, unit: TimeUnit) -> Option<Reading> {
    let mut year = i64::from(reading.year);
    let (mut month, mut day) = (reading.month, reading.day);
    match unit {
        TimeUnit::Week => {
            let (year, week) = iso_week(reading);
            return Some(Reading::of_julian(julian_of_iso_week(year, week)));
        }
        TimeUnit::Millennium => year = group_start(group_start(year, 1000), 100),
        TimeUnit::Century => year = group_start(year, 100),
        TimeUnit::Decade if year > 0 => year = year / 10 * 10,
        TimeUnit::Decade => year = -((8 - (year - 1)) / 10) * 10,
        TimeUnit::Year | TimeUnit::Day | TimeUnit::Month => {}
        TimeUnit::Quarter => month = 3 * ((month - 1) / 3) + 1,
        _ => return None,
    }
    if matches!(unit, TimeUnit::Millennium | TimeUnit::Century | TimeUnit::Decade | TimeUnit::Year) {
        month = 1;
    }
    if unit != TimeUnit::Day {
        day = 1;
    }
    Some(Reading::of_date(year as i32, month, day))
}

/// `None` of the zone: a timestamp without time zone.
fn truncate(name: &str, at: i64, zone: Option<&PgZone>, ty: &str) -> PgResult<i64> {
    if !is_finite_timestamp(at) {
        return Ok(at);
    }
    let name = lower_name(name);
    let unit = unit(&name, ty)?;
    let reading = zone.map_or_else(|| Reading::of_micros(at), |zone| zone.reading_at(at));
    if let Some(size) = clock_unit(unit) {
        // The offset stays that of the instant: an hour that occurs twice is not truncated to the other one.
        let mut whole = reading;
        whole.set_clock(reading.clock() / size * size);
        let west = -zone.map_or(0, |zone| zone.offset_at(at));
        return timestamp_of(&whole, west).ok_or_else(timestamp_overflow);
    }
    let whole = truncate_date(&reading, unit).ok_or_else(|| not_supported(&name, ty))?;
    let west = -zone.map_or(0, |zone| zone.offset_of(&whole));
    timestamp_of(&whole, west).ok_or_else(timestamp_overflow)
}

fn truncate_interval(name: &str, span: Span) -> PgResult<Span> {
    let name = lower_name(name);
    let unit = unit(&name, "interval")?;
    if let Some(size) = clock_unit(unit) {
        return Ok(Span { micros: span.micros / size * size, ..span });
    }
    let months = match unit {
        TimeUnit::Day => return Ok(Span { micros: 0, ..span }),
        TimeUnit::Month => 1,
        TimeUnit::Quarter => 3,
        TimeUnit::Year => 12,
        TimeUnit::Decade => 120,
        TimeUnit::Century => 1200,
        TimeUnit::Millennium => 12_000,
        TimeUnit::Week => {
            let error = not_supported(&name, "interval");
            return Err(error.detail("Months usually have fractional weeks."));
        }
        _ => return Err(not_supported(&name, "interval")),
    };
    Ok(Span { months: span.months / months * months, days: 0, micros: 0 })
}

/// Returns the begin of the bin that a timestamp is in: the bins are as long as the stride, and one begins at the origin.
fn bin(stride: Span, at: i64, origin: i64) -> PgResult<i64> {
    if !is_finite_timestamp(at) {
        return Ok(at);
    }
    if !is_finite_timestamp(origin) {
        return Err(overflow("origin out of range"));
    }
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    let days = i64::from(stride.days).checked_mul(MICROS_PER_DAY);
    let stride = days.and_then(|days| days.checked_add(stride.micros)).ok_or_else(interval_overflow)?;
    if stride <= 0 {
        return Err(overflow("stride must be greater than zero"));
    }
    let difference = at.checked_sub(origin).ok_or_else(interval_overflow)?;
    let rest = difference % stride;
    let begin = at - rest;
    if rest >= 0 {
        return Ok(begin);
    }
    begin.checked_sub(stride).filter(|begin| is_valid_timestamp(*begin)).ok_or_else(timestamp_overflow)
}

pub fn date_trunc_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(truncate(text(values, 0)?, micros(values, 1)?, None, "timestamp without time zone")?))
}

pub fn date_trunc_timestamptz(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let zone = Some(&ctx.state().io.zone);
    Ok(Value::Int(truncate(text(values, 0)?, micros(values, 1)?, zone, "timestamp with time zone")?))
}

pub fn date_trunc_in_zone(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 1)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Int(at));
    }
    let zone = zone_of_name(text(values, 2)?)?;
    Ok(Value::Int(truncate(text(values, 0)?, at, Some(&zone), "timestamp with time zone")?))
}

pub fn date_trunc_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(truncate_interval(text(values, 0)?, span(values, 1)?)?))
}

/// Of timestamps with time zone too.
pub fn date_bin(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(bin(span(values, 0)?, micros(values, 1)?, micros(values, 2)?)?))
}
