//! `make_date` and its like: values of their parts.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::arithmetic::{interval_overflow, timestamp_overflow};
use super::convert::timestamp_to_timestamptz;
use super::values::{double, int, short_double, text};
use crate::error::{PgError, Result as PgResult, state};
use crate::functions::state::StateOf;
use crate::types::temporal::calendar::Reading;
use crate::types::temporal::io::{days_of, timestamp_of};
use crate::types::temporal::{
    DateTimeError, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, NamedZone, Span,
    decode_offset, is_valid_timestamp, overflow, unknown_zone, validate_date,
};
use crate::value::Value;

/// Returns the midnight of a date, of which a negative year is one before Christ.
fn date_reading(year: i32, month: i32, day: i32, shows_kept: bool) -> PgResult<Reading> {
    let (shown, is_bc) = if year < 0 { (year.wrapping_neg(), true) } else { (year, false) };
    let mut reading = Reading::of_date(shown, month, day);
    let is_valid = validate_date(&mut reading, is_bc).is_ok();
    // The messages of `make_date` show the year as it is kept: 1 BC is 0.
    let year = if shows_kept { reading.year } else { year };
    if !is_valid {
        return Err(overflow(&format!("date field value out of range: {year}-{month:02}-{day:02}")));
    }
    if !reading.has_julian() {
        return Err(overflow(&format!("date out of range: {year}-{month:02}-{day:02}")));
    }
    Ok(reading)
}

/// Returns a number as C's `%02g` shows it.
fn two_digits(number: f64) -> String {
    let shown = short_double(number);
    if shown.len() == 1 { format!("0{shown}") } else { shown }
}

/// Returns the microseconds of a time of day.
fn time_micros(hour: i32, minute: i32, second: f64) -> PgResult<i64> {
    let error = || {
        let text = format!("time field value out of range: {hour}:{minute:02}:{}", two_digits(second));
        overflow(&text)
    };
    if !(0..=24).contains(&hour) || !(0..=59).contains(&minute) || second.is_nan() {
        return Err(error());
    }
    let micros = (second * MICROS_PER_SECOND as f64).round_ties_even();
    if !(0.0..=MICROS_PER_MINUTE as f64).contains(&micros) {
        return Err(error());
    }
    let total = i64::from(hour) * MICROS_PER_HOUR + i64::from(minute) * MICROS_PER_MINUTE + micros as i64;
    if total > MICROS_PER_DAY { Err(error()) } else { Ok(total) }
}

fn timestamp_of_parts(values: &[Value]) -> Result<i64> {
    let (year, month, day) = (int(values, 0)?, int(values, 1)?, int(values, 2)?);
    let reading = date_reading(year, month, day, false)?;
    let (hour, minute, second) = (int(values, 3)?, int(values, 4)?, double(values, 5)?);
    let time = time_micros(hour, minute, second)?;
    let at = reading.micros_since_epoch().and_then(|date| date.checked_add(time));
    let at = at.filter(|at| is_valid_timestamp(*at)).ok_or_else(|| {
        let second = two_digits(second);
        let text = format!("timestamp out of range: {year}-{month:02}-{day:02} {hour}:{minute:02}:{second}");
        overflow(&text)
    })?;
    Ok(at)
}

/// Returns the offset, in seconds east of UTC, that a text stands for: a number with a sign, an abbreviation or the name of a zone.
fn sane_offset(name: &str, local: i64) -> PgResult<i32> {
    let error = |message: String| PgError::new(state::INVALID_PARAMETER_VALUE, message);
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        let error = error(format!("invalid input syntax for type numeric time zone: \"{name}\""));
        return Err(error.hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    match decode_offset(name) {
        Ok(west) => return Ok(-west),
        Err(DateTimeError::ZoneOverflow) => {
            return Err(error(format!("numeric time zone \"{name}\" out of range")));
        }
        Err(_) => {}
    }
    let zone = NamedZone::lookup(name).ok_or_else(|| unknown_zone(name))?;
    Ok(zone.offset_of(&Reading::of_micros(local)))
}

pub fn make_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (year, month, day) = (int(values, 0)?, int(values, 1)?, int(values, 2)?);
    let reading = date_reading(year, month, day, true)?;
    let out_of_range = || overflow(&format!("date out of range: {}-{month:02}-{day:02}", reading.year));
    let days = days_of(&reading).ok_or_else(out_of_range)?;
    Ok(Value::Int(days.into()))
}

pub fn make_time(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(time_micros(int(values, 0)?, int(values, 1)?, double(values, 2)?)?))
}

pub fn make_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_of_parts(values)?))
}

pub fn make_timestamptz(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_to_timestamptz(timestamp_of_parts(values)?, &ctx.state().io.zone)?))
}

pub fn make_timestamptz_in_zone(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let local = timestamp_of_parts(values)?;
    let east = sane_offset(text(values, 6)?, local)?;
    let at = timestamp_of(&Reading::of_micros(local), -east).ok_or_else(timestamp_overflow)?;
    Ok(Value::Int(at))
}

/// Returns the interval of years, months, weeks, days, hours, minutes and seconds. Sums out of range wrap around, as on the real server.
fn interval_of_parts(values: &[Value]) -> Result<Span> {
    let seconds = double(values, 6)?;
    if !seconds.is_finite() {
        return Err(interval_overflow().into());
    }
    let micros = (seconds * MICROS_PER_SECOND as f64).round_ties_even();
    // The conversion of a double out of range has one result.
    let micros = if micros.abs() >= -(i64::MIN as f64) { i64::MIN } else { micros as i64 };
    let time = i64::from(int(values, 4)?) * MICROS_PER_HOUR + i64::from(int(values, 5)?) * MICROS_PER_MINUTE;
    Ok(Span {
        months: int(values, 0)?.wrapping_mul(12).wrapping_add(int(values, 1)?),
        days: int(values, 2)?.wrapping_mul(7).wrapping_add(int(values, 3)?),
        micros: time.wrapping_add(micros),
    })
}

pub fn make_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(interval_of_parts(values)?))
}
