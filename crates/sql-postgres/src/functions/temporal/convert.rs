//! Conversions between the types, AT TIME ZONE, and modifiers that are applied to values.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::arithmetic::timestamp_overflow;
use super::values::{date, double, int, micros, span, text, timetz};
use crate::error::{PgError, Result as PgResult, state};
use crate::functions::state::StateOf;
use crate::types::io::IoContext;
use crate::types::temporal::calendar::{EPOCH_JULIAN, Reading, TIMESTAMP_END_JULIAN};
use crate::types::temporal::io::{TimeTz, interval_out, reading_of_date, timestamp_in_zone, timestamp_of};
use crate::types::temporal::typmod::{adjust_interval, adjust_time, adjust_timestamp};
use crate::types::temporal::{
    DATE_EARLY, DATE_LATE, EPOCH_SECONDS, MICROS_PER_DAY, MICROS_PER_SECOND, NamedZone, PgZone, Span, TIMESTAMP_EARLY,
    TIMESTAMP_LATE, TIMESTAMP_MIN, is_finite_date, is_finite_timestamp, is_valid_timestamp, overflow, unknown_zone,
};
use crate::value::Value;

/// Dates from here on have no timestamp.
const TIMESTAMP_END_DATE: i32 = (TIMESTAMP_END_JULIAN - EPOCH_JULIAN) as i32;

#[cold]
fn date_overflow() -> PgError {
    overflow("date out of range for timestamp")
}

/// A date beside timestamps, whose range is smaller.
pub enum Dated {
    At(i64),
    Before,
    Behind,
}

fn infinity_of_date(days: i32) -> Option<i64> {
    match days {
        DATE_EARLY => Some(TIMESTAMP_EARLY),
        DATE_LATE => Some(TIMESTAMP_LATE),
        _ => None,
    }
}

/// Returns the midnight of a date.
pub fn dated_timestamp(days: i32) -> Dated {
    match infinity_of_date(days) {
        Some(infinity) => Dated::At(infinity),
        None if days >= TIMESTAMP_END_DATE => Dated::Behind,
        None => Dated::At(i64::from(days) * MICROS_PER_DAY),
    }
}

/// Returns the midnight of a date in a zone.
pub fn dated_timestamptz(days: i32, zone: &PgZone) -> Dated {
    if infinity_of_date(days).is_some() || days >= TIMESTAMP_END_DATE {
        return dated_timestamp(days);
    }
    let west = -i64::from(zone.offset_of(&reading_of_date(days)));
    let at = i64::from(days) * MICROS_PER_DAY + west * MICROS_PER_SECOND;
    match at {
        at if is_valid_timestamp(at) => Dated::At(at),
        at if at < TIMESTAMP_MIN => Dated::Before,
        _ => Dated::Behind,
    }
}

fn in_range(dated: Dated) -> PgResult<i64> {
    match dated {
        Dated::At(at) => Ok(at),
        Dated::Before | Dated::Behind => Err(date_overflow()),
    }
}

pub fn date_to_timestamp(days: i32) -> PgResult<i64> {
    in_range(dated_timestamp(days))
}

pub fn date_to_timestamptz(days: i32, zone: &PgZone) -> PgResult<i64> {
    in_range(dated_timestamptz(days, zone))
}

pub fn datetime_to_timestamp(days: i32, time: i64) -> PgResult<i64> {
    let midnight = date_to_timestamp(days)?;
    if !is_finite_timestamp(midnight) {
        return Ok(midnight);
    }
    Some(midnight + time).filter(|at| is_valid_timestamp(*at)).ok_or_else(timestamp_overflow)
}

pub fn datetimetz_to_timestamptz(days: i32, time: TimeTz) -> PgResult<i64> {
    let midnight = date_to_timestamp(days)?;
    if !is_finite_timestamp(midnight) {
        return Ok(midnight);
    }
    Some(midnight + time.utc()).filter(|at| is_valid_timestamp(*at)).ok_or_else(date_overflow)
}

pub fn timestamp_to_timestamptz(at: i64, zone: &PgZone) -> PgResult<i64> {
    if !is_finite_timestamp(at) {
        return Ok(at);
    }
    timestamp_in_zone(&Reading::of_micros(at), zone).ok_or_else(timestamp_overflow)
}

pub fn timestamptz_timestamp(at: i64, zone: &PgZone) -> PgResult<i64> {
    if !is_finite_timestamp(at) {
        return Ok(at);
    }
    timestamp_of(&zone.reading_at(at), 0).ok_or_else(timestamp_overflow)
}

pub fn timestamp_date(at: i64) -> i32 {
    match at {
        TIMESTAMP_EARLY => DATE_EARLY,
        TIMESTAMP_LATE => DATE_LATE,
        _ => at.div_euclid(MICROS_PER_DAY) as i32,
    }
}

pub fn timestamptz_date(at: i64, zone: &PgZone) -> PgResult<i32> {
    if !is_finite_timestamp(at) {
        return Ok(timestamp_date(at));
    }
    Ok((zone.reading_at(at).julian() - EPOCH_JULIAN) as i32)
}

pub fn timestamptz_time(at: i64, zone: &PgZone) -> i64 {
    zone.reading_at(at).clock()
}

pub fn timestamptz_timetz(at: i64, zone: &PgZone) -> TimeTz {
    TimeTz { micros: timestamptz_time(at, zone), west: -zone.offset_at(at) }
}

/// Returns a time of day beside the offset that the session's zone has today.
fn time_to_timetz(time: i64, io: &IoContext) -> TimeTz {
    let mut reading = io.zone.reading_at(io.now);
    reading.set_clock(time);
    TimeTz { micros: time, west: -io.zone.offset_of(&reading) }
}

/// Looks up a zone that is no abbreviation with a fixed offset in name; an abbreviation gives its zone or its offset.
pub fn zone_of_name(name: &str) -> PgResult<PgZone> {
    match named_zone(name)? {
        NamedZone::Offset(seconds) => Ok(PgZone::fixed(seconds)),
        NamedZone::Dynamic(_, zone) | NamedZone::Zone(zone) => Ok(zone),
    }
}

fn named_zone(name: &str) -> PgResult<NamedZone> {
    NamedZone::lookup(name).ok_or_else(|| unknown_zone(name))
}

/// Returns the offset that an interval is, in seconds east of UTC.
fn interval_zone(zone: Span, io: &IoContext) -> PgResult<i32> {
    if zone.months != 0 || zone.days != 0 {
        let mut shown = Vec::new();
        interval_out(zone, io, &mut shown);
        let message =
            format!("interval time zone \"{}\" must not include months or days", String::from_utf8_lossy(&shown));
        return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
    }
    Ok((zone.micros / MICROS_PER_SECOND) as i32)
}

/// Moves an instant by an offset.
fn shifted(at: i64, seconds: i32) -> PgResult<i64> {
    let moved = at.checked_add(i64::from(seconds) * MICROS_PER_SECOND);
    moved.filter(|at| is_valid_timestamp(*at)).ok_or_else(timestamp_overflow)
}

fn timetz_at(time: TimeTz, west: i32) -> TimeTz {
    let micros = time.micros + (i64::from(time.west) - i64::from(west)) * MICROS_PER_SECOND;
    TimeTz { micros: micros.rem_euclid(MICROS_PER_DAY), west }
}

pub fn timestamp_at_zone(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 1)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Int(at));
    }
    let reading = Reading::of_micros(at);
    let east = named_zone(text(values, 0)?)?.offset_of(&reading);
    Ok(Value::Int(shifted(at, -east)?))
}

pub fn timestamptz_at_zone(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 1)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Int(at));
    }
    Ok(Value::Int(shifted(at, named_zone(text(values, 0)?)?.offset_at(at))?))
}

pub fn timestamp_at_interval(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 1)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Int(at));
    }
    Ok(Value::Int(shifted(at, -interval_zone(span(values, 0)?, &ctx.state().io)?)?))
}

pub fn timestamptz_at_interval(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 1)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Int(at));
    }
    Ok(Value::Int(shifted(at, interval_zone(span(values, 0)?, &ctx.state().io)?)?))
}

pub fn timetz_at_zone(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let east = named_zone(text(values, 0)?)?.offset_at(ctx.state().io.now);
    Ok(timetz_at(timetz(values, 1)?, -east).to_value())
}

pub fn timetz_at_interval(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let east = interval_zone(span(values, 0)?, &ctx.state().io)?;
    Ok(timetz_at(timetz(values, 1)?, -east).to_value())
}

pub fn timestamp_of_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(date_to_timestamp(date(values, 0)?)?))
}

pub fn timestamptz_of_date(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(date_to_timestamptz(date(values, 0)?, &ctx.state().io.zone)?))
}

/// The instant of a date and a time in the session's zone.
pub fn timestamptz_of_datetime(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let local = datetime_to_timestamp(date(values, 0)?, micros(values, 1)?)?;
    Ok(Value::Int(timestamp_to_timestamptz(local, &ctx.state().io.zone)?))
}

pub fn timestamptz_of_timestamp(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_to_timestamptz(micros(values, 0)?, &ctx.state().io.zone)?))
}

pub fn timestamp_of_timestamptz(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamptz_timestamp(micros(values, 0)?, &ctx.state().io.zone)?))
}

pub fn date_of_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_date(micros(values, 0)?).into()))
}

pub fn date_of_timestamptz(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamptz_date(micros(values, 0)?, &ctx.state().io.zone)?.into()))
}

/// NULL of an infinity.
pub fn time_of_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 0)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Null);
    }
    Ok(Value::Int(at.rem_euclid(MICROS_PER_DAY)))
}

/// NULL of an infinity.
pub fn time_of_timestamptz(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 0)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Null);
    }
    Ok(Value::Int(timestamptz_time(at, &ctx.state().io.zone)))
}

/// NULL of an infinity.
pub fn timetz_of_timestamptz(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 0)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Null);
    }
    Ok(timestamptz_timetz(at, &ctx.state().io.zone).to_value())
}

pub fn time_of_timetz(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timetz(values, 0)?.micros))
}

pub fn timetz_of_time(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(time_to_timetz(micros(values, 0)?, &ctx.state().io).to_value())
}

pub fn interval_of_time(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(Span { micros: micros(values, 0)?, ..Span::default() }))
}

pub fn time_of_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(span(values, 0)?.micros.rem_euclid(MICROS_PER_DAY)))
}

pub fn time_scale(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(adjust_time(micros(values, 0)?, int(values, 1)?)))
}

pub fn timetz_scale(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let time = timetz(values, 0)?;
    Ok(TimeTz { micros: adjust_time(time.micros, int(values, 1)?), ..time }.to_value())
}

pub fn timestamp_scale(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(adjust_timestamp(micros(values, 0)?, int(values, 1)?)))
}

pub fn interval_scale(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(adjust_interval(span(values, 0)?, int(values, 1)?)?))
}

pub fn date_is_finite(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(is_finite_date(date(values, 0)?).into())
}

pub fn timestamp_is_finite(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(is_finite_timestamp(micros(values, 0)?).into())
}

/// Intervals are always finite.
pub fn interval_is_finite(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::TRUE)
}

/// The timestamp of seconds since 1970.
pub fn to_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_of_unix(double(values, 0)?)?))
}

fn timestamp_of_unix(seconds: f64) -> PgResult<i64> {
    if seconds.is_nan() {
        return Err(overflow("timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { TIMESTAMP_LATE } else { TIMESTAMP_EARLY });
    }
    let out_of_range = || overflow(&format!("timestamp out of range: \"{}\"", super::values::short_double(seconds)));
    let first = (TIMESTAMP_MIN / MICROS_PER_SECOND + EPOCH_SECONDS) as f64;
    let end = (i64::from(TIMESTAMP_END_DATE) * 86_400 + EPOCH_SECONDS) as f64;
    if seconds < first || seconds >= end {
        return Err(out_of_range());
    }
    let micros = ((seconds - EPOCH_SECONDS as f64) * MICROS_PER_SECOND as f64).round_ties_even() as i64;
    if is_valid_timestamp(micros) { Ok(micros) } else { Err(out_of_range()) }
}
