//! Sums, differences, products and quotients, `age`, and the functions that justify intervals.
//!
//! Months are added to a date's month, and the day is moved back to the last one of the month where it does not exist; days are added to the date, microseconds to the instant. With a time zone, months and days are those of the zone's clock.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::convert::{date_to_timestamp, datetime_to_timestamp, datetimetz_to_timestamptz};
use super::values::{date, double, int, micros, span, timetz};
use crate::error::{PgError, Result as PgResult, state};
use crate::functions::state::StateOf;
use crate::types::temporal::calendar::{EPOCH_JULIAN, Reading, days_in_month};
use crate::types::temporal::io::{TimeTz, timestamp_in_zone, timestamp_of};
use crate::types::temporal::{MICROS_PER_DAY, MICROS_PER_SECOND, PgZone, Span, is_finite_date, is_finite_timestamp};
use crate::types::temporal::{is_valid_date, is_valid_timestamp, overflow};
use crate::value::Value;

const MONTHS_PER_YEAR: i32 = 12;
const DAYS_PER_MONTH: i32 = 30;
const SECONDS_PER_DAY: f64 = 86_400.0;

#[cold]
pub fn interval_overflow() -> PgError {
    overflow("interval out of range")
}

#[cold]
pub fn timestamp_overflow() -> PgError {
    overflow("timestamp out of range")
}

pub fn add_days(days: i32, more: i64) -> PgResult<i32> {
    if !is_finite_date(days) {
        return Ok(days);
    }
    let sum = i64::from(days) + more;
    if is_valid_date(sum) { Ok(sum as i32) } else { Err(overflow("date out of range")) }
}

fn add_months(reading: &mut Reading, months: i32) -> Option<()> {
    let sum = reading.month.checked_add(months)? - 1;
    reading.year = reading.year.checked_add(sum.div_euclid(MONTHS_PER_YEAR))?;
    reading.month = sum.rem_euclid(MONTHS_PER_YEAR) + 1;
    reading.day = reading.day.min(days_in_month(reading.year, reading.month));
    Some(())
}

fn add_julian_days(reading: &mut Reading, days: i32) -> Option<()> {
    let julian = reading.julian() + i64::from(days);
    if !(0..=i64::from(i32::MAX)).contains(&julian) {
        return None;
    }
    reading.set_date(julian);
    Some(())
}

/// `None`: out of range.
fn add_span(at: i64, span: Span, zone: Option<&PgZone>) -> Option<i64> {
    let reading = |at| zone.map_or_else(|| Reading::of_micros(at), |zone| zone.reading_at(at));
    let instant = |reading: &Reading| match zone {
        Some(zone) => timestamp_in_zone(reading, zone),
        None => timestamp_of(reading, 0),
    };
    let mut at = at;
    if span.months != 0 {
        let mut reading = reading(at);
        add_months(&mut reading, span.months)?;
        at = instant(&reading)?;
    }
    if span.days != 0 {
        let mut reading = reading(at);
        add_julian_days(&mut reading, span.days)?;
        at = instant(&reading)?;
    }
    at.checked_add(span.micros).filter(|at| is_valid_timestamp(*at))
}

pub fn timestamp_plus(at: i64, span: Span, zone: Option<&PgZone>) -> PgResult<i64> {
    if !is_finite_timestamp(at) {
        return Ok(at);
    }
    add_span(at, span, zone).ok_or_else(timestamp_overflow)
}

/// The fields with the other sign, which the least numbers do not have.
pub fn negated(span: Span) -> Span {
    Span { months: span.months.wrapping_neg(), days: span.days.wrapping_neg(), micros: span.micros.wrapping_neg() }
}

pub fn interval_minus(span: Span) -> PgResult<Span> {
    interval_difference(Span::default(), span)
}

pub fn interval_sum(a: Span, b: Span) -> PgResult<Span> {
    let sum = || {
        Some(Span {
            months: a.months.checked_add(b.months)?,
            days: a.days.checked_add(b.days)?,
            micros: a.micros.checked_add(b.micros)?,
        })
    };
    sum().ok_or_else(interval_overflow)
}

pub fn interval_difference(a: Span, b: Span) -> PgResult<Span> {
    let difference = || {
        Some(Span {
            months: a.months.checked_sub(b.months)?,
            days: a.days.checked_sub(b.days)?,
            micros: a.micros.checked_sub(b.micros)?,
        })
    };
    difference().ok_or_else(interval_overflow)
}

pub fn timestamp_difference(a: i64, b: i64) -> PgResult<Span> {
    if !is_finite_timestamp(a) || !is_finite_timestamp(b) {
        return Err(overflow("cannot subtract infinite timestamps"));
    }
    let micros = a.checked_sub(b).ok_or_else(interval_overflow)?;
    justify_hours(Span { micros, ..Span::default() })
}

/// Rounds seconds to microseconds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round_ties_even() / 1e6
}

fn to_int(number: f64) -> Option<i32> {
    let fits = number >= f64::from(i32::MIN) && number < -f64::from(i32::MIN);
    fits.then_some(number as i32)
}

fn to_bigint(number: f64) -> Option<i64> {
    let fits = number >= i64::MIN as f64 && number < -(i64::MIN as f64);
    fits.then_some(number as i64)
}

/// Scales an interval. Fractions of months become days, fractions of days microseconds.
fn scaled(span: Span, scale: impl Fn(f64) -> f64) -> Option<Span> {
    let (months, days) = (f64::from(span.months), f64::from(span.days));
    let whole_months = to_int(scale(months))?;
    let mut whole_days = to_int(scale(days))?;
    let month_days = rounded((scale(months) - f64::from(whole_months)) * f64::from(DAYS_PER_MONTH));
    let rest = scale(days) - f64::from(whole_days) + month_days - month_days.trunc();
    let mut seconds = rounded(rest * SECONDS_PER_DAY);
    if seconds.abs() >= SECONDS_PER_DAY {
        let more = (seconds / SECONDS_PER_DAY) as i32;
        whole_days = whole_days.checked_add(more)?;
        seconds -= f64::from(more) * SECONDS_PER_DAY;
    }
    whole_days = whole_days.checked_add(month_days as i32)?;
    let micros = (scale(span.micros as f64) + seconds * MICROS_PER_SECOND as f64).round_ties_even();
    Some(Span { months: whole_months, days: whole_days, micros: to_bigint(micros)? })
}

pub fn interval_product(span: Span, factor: f64) -> PgResult<Span> {
    scaled(span, |number| number * factor).ok_or_else(interval_overflow)
}

pub fn interval_quotient(span: Span, divisor: f64) -> PgResult<Span> {
    if divisor == 0.0 {
        return Err(PgError::new(state::DIVISION_BY_ZERO, "division by zero"));
    }
    scaled(span, |number| number / divisor).ok_or_else(interval_overflow)
}

/// Brings days and time to one sign.
fn align_days(span: &mut Span) {
    if span.days > 0 && span.micros < 0 {
        span.micros += MICROS_PER_DAY;
        span.days -= 1;
    } else if span.days < 0 && span.micros > 0 {
        span.micros -= MICROS_PER_DAY;
        span.days += 1;
    }
}

pub fn justify_hours(mut span: Span) -> PgResult<Span> {
    let days = (span.micros / MICROS_PER_DAY) as i32;
    span.micros %= MICROS_PER_DAY;
    span.days = span.days.checked_add(days).ok_or_else(interval_overflow)?;
    align_days(&mut span);
    Ok(span)
}

/// Takes whole months out of the days.
fn take_months(span: &mut Span) -> PgResult<()> {
    let months = span.days / DAYS_PER_MONTH;
    span.days %= DAYS_PER_MONTH;
    span.months = span.months.checked_add(months).ok_or_else(interval_overflow)?;
    Ok(())
}

pub fn justify_days(mut span: Span) -> PgResult<Span> {
    take_months(&mut span)?;
    if span.months > 0 && span.days < 0 {
        span.days += DAYS_PER_MONTH;
        span.months -= 1;
    } else if span.months < 0 && span.days > 0 {
        span.days -= DAYS_PER_MONTH;
        span.months += 1;
    }
    Ok(span)
}

pub fn justify_interval(mut span: Span) -> PgResult<Span> {
    // Days and time of one sign could overflow together.
    if span.days > 0 && span.micros > 0 || span.days < 0 && span.micros < 0 {
        take_months(&mut span)?;
    }
    span.days += (span.micros / MICROS_PER_DAY) as i32;
    span.micros %= MICROS_PER_DAY;
    take_months(&mut span)?;
    if span.months > 0 && (span.days < 0 || span.days == 0 && span.micros < 0) {
        span.days += DAYS_PER_MONTH;
        span.months -= 1;
    } else if span.months < 0 && (span.days > 0 || span.days == 0 && span.micros > 0) {
        span.days -= DAYS_PER_MONTH;
        span.months += 1;
    }
    align_days(&mut span);
    Ok(span)
}

/// Returns the reading of a timestamp, which may be an infinity; `None` before the first Julian day.
fn aged_reading(at: i64, zone: Option<&PgZone>) -> Option<Reading> {
    if at.div_euclid(MICROS_PER_DAY) + EPOCH_JULIAN < 0 {
        return None;
    }
    let east = i64::from(zone.map_or(0, |zone| zone.offset_at(at))) * MICROS_PER_SECOND;
    let (day, time) = (at.div_euclid(MICROS_PER_DAY), at.rem_euclid(MICROS_PER_DAY) + east);
    let mut reading = Reading::of_julian(day + time.div_euclid(MICROS_PER_DAY) + EPOCH_JULIAN);
    reading.set_clock(time.rem_euclid(MICROS_PER_DAY));
    Some(reading)
}

/// Returns the difference of two timestamps in years, months, days and time, as a calendar counts them.
pub fn age(a: i64, b: i64, zone: Option<&PgZone>) -> PgResult<Span> {
    let (Some(one), Some(other)) = (aged_reading(a, zone), aged_reading(b, zone)) else {
        return Err(timestamp_overflow());
    };
    let is_negative = a < b;
    let (late, early) = if is_negative { (other, one) } else { (one, other) };
    let mut micros = late.clock() - early.clock();
    let mut days = i64::from(late.day) - i64::from(early.day);
    let mut months = i64::from(late.month) - i64::from(early.month);
    let mut years = i64::from(late.year) - i64::from(early.year);
    while micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    while days < 0 {
        // The days are those of the earlier date's month.
        days += i64::from(days_in_month(early.year, early.month));
        months -= 1;
    }
    while months < 0 {
        months += 12;
        years -= 1;
    }
    let sign = if is_negative { -1 } else { 1 };
    let total = i32::try_from(sign * (years * 12 + months)).map_err(|_| interval_overflow())?;
    Ok(Span { months: total, days: (sign * days) as i32, micros: sign * micros })
}

/// Adds to a time of day, around the clock.
pub fn time_plus(time: i64, micros: i64) -> i64 {
    time.wrapping_add(micros).rem_euclid(MICROS_PER_DAY)
}

/// Returns whether two periods overlap, each of a begin and an end in any order, of which one may be NULL.
pub fn overlaps<T: Copy + PartialOrd>(periods: [Option<T>; 4]) -> Option<bool> {
    let period = |begin: Option<T>, end: Option<T>| match (begin, end) {
        (None, None) => None,
        (Some(begin), Some(end)) if begin > end => Some((end, Some(begin))),
        (Some(begin), end) => Some((begin, end)),
        (None, Some(end)) => Some((end, None)),
    };
    let [a, b, c, d] = periods;
    let (first, second) = (period(a, b)?, period(c, d)?);
    // The one that begins first must end behind the other's begin; an unknown end leaves that open.
    let decide = |end: Option<T>, later: (T, Option<T>)| match end? {
        end if later.0 < end => Some(true),
        _ => later.1.map(|_| false),
    };
    if first.0 > second.0 {
        decide(second.1, first)
    } else if first.0 < second.0 {
        decide(first.1, second)
    } else {
        (first.1.is_some() && second.1.is_some()).then_some(true)
    }
}

/// Adds an interval to a date at its midnight.
fn date_plus(days: i32, span: Span) -> PgResult<i64> {
    timestamp_plus(date_to_timestamp(days)?, span, None)
}

pub fn date_plus_days(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(add_days(date(values, 0)?, int(values, 1)?.into())?.into()))
}

pub fn days_plus_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(add_days(date(values, 1)?, int(values, 0)?.into())?.into()))
}

pub fn date_minus_days(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(add_days(date(values, 0)?, -i64::from(int(values, 1)?))?.into()))
}

pub fn date_minus_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = (date(values, 0)?, date(values, 1)?);
    if !is_finite_date(a) || !is_finite_date(b) {
        return Err(overflow("cannot subtract infinite dates").into());
    }
    Ok(Value::Int(a.wrapping_sub(b).into()))
}

pub fn date_plus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(date_plus(date(values, 0)?, span(values, 1)?)?))
}

pub fn interval_plus_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(date_plus(date(values, 1)?, span(values, 0)?)?))
}

pub fn date_minus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(date_plus(date(values, 0)?, negated(span(values, 1)?))?))
}

pub fn date_plus_time(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(datetime_to_timestamp(date(values, 0)?, micros(values, 1)?)?))
}

pub fn time_plus_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(datetime_to_timestamp(date(values, 1)?, micros(values, 0)?)?))
}

pub fn date_plus_timetz(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(datetimetz_to_timestamptz(date(values, 0)?, timetz(values, 1)?)?))
}

pub fn timetz_plus_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(datetimetz_to_timestamptz(date(values, 1)?, timetz(values, 0)?)?))
}

pub fn timestamp_plus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_plus(micros(values, 0)?, span(values, 1)?, None)?))
}

pub fn interval_plus_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_plus(micros(values, 1)?, span(values, 0)?, None)?))
}

pub fn timestamp_minus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_plus(micros(values, 0)?, negated(span(values, 1)?), None)?))
}

pub fn timestamptz_plus_interval(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_plus(micros(values, 0)?, span(values, 1)?, Some(&ctx.state().io.zone))?))
}

pub fn interval_plus_timestamptz(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(timestamp_plus(micros(values, 1)?, span(values, 0)?, Some(&ctx.state().io.zone))?))
}

pub fn timestamptz_minus_interval(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let zone = &ctx.state().io.zone;
    Ok(Value::Int(timestamp_plus(micros(values, 0)?, negated(span(values, 1)?), Some(zone))?))
}

pub fn date_add_in_zone(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let zone = super::convert::zone_of_name(super::values::text(values, 2)?)?;
    Ok(Value::Int(timestamp_plus(micros(values, 0)?, span(values, 1)?, Some(&zone))?))
}

pub fn date_subtract_in_zone(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let zone = super::convert::zone_of_name(super::values::text(values, 2)?)?;
    Ok(Value::Int(timestamp_plus(micros(values, 0)?, negated(span(values, 1)?), Some(&zone))?))
}

/// Of two timestamps of one type.
pub fn timestamp_minus_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(timestamp_difference(micros(values, 0)?, micros(values, 1)?)?))
}

pub fn time_minus_time(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let micros = micros(values, 0)? - micros(values, 1)?;
    Ok(Value::Interval(Span { micros, ..Span::default() }))
}

pub fn time_plus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(time_plus(micros(values, 0)?, span(values, 1)?.micros)))
}

pub fn interval_plus_time(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(time_plus(micros(values, 1)?, span(values, 0)?.micros)))
}

pub fn time_minus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(time_plus(micros(values, 0)?, span(values, 1)?.micros.wrapping_neg())))
}

fn timetz_plus(time: TimeTz, micros: i64) -> Value {
    TimeTz { micros: time_plus(time.micros, micros), ..time }.to_value()
}

pub fn timetz_plus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(timetz_plus(timetz(values, 0)?, span(values, 1)?.micros))
}

pub fn interval_plus_timetz(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(timetz_plus(timetz(values, 1)?, span(values, 0)?.micros))
}

pub fn timetz_minus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(timetz_plus(timetz(values, 0)?, span(values, 1)?.micros.wrapping_neg()))
}

pub fn interval_negative(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(interval_minus(span(values, 0)?)?))
}

pub fn interval_plus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(interval_sum(span(values, 0)?, span(values, 1)?)?))
}

pub fn interval_minus_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(interval_difference(span(values, 0)?, span(values, 1)?)?))
}

pub fn interval_times(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(interval_product(span(values, 0)?, double(values, 1)?)?))
}

pub fn times_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(interval_product(span(values, 1)?, double(values, 0)?)?))
}

pub fn interval_divided(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(interval_quotient(span(values, 0)?, double(values, 1)?)?))
}

pub fn interval_justify_hours(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(justify_hours(span(values, 0)?)?))
}

pub fn interval_justify_days(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(justify_days(span(values, 0)?)?))
}

pub fn interval_justify(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(justify_interval(span(values, 0)?)?))
}

pub fn timestamp_age(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(age(micros(values, 0)?, micros(values, 1)?, None)?))
}

pub fn timestamptz_age(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Interval(age(micros(values, 0)?, micros(values, 1)?, Some(&ctx.state().io.zone))?))
}

/// The age of a timestamp today.
pub fn timestamp_age_today(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let today = date_to_timestamp(super::clock::today(&ctx.state().io))?;
    Ok(Value::Interval(age(today, micros(values, 0)?, None)?))
}

pub fn timestamptz_age_today(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let io = &ctx.state().io;
    let today = super::convert::date_to_timestamptz(super::clock::today(io), &io.zone)?;
    Ok(Value::Interval(age(today, micros(values, 0)?, Some(&io.zone))?))
}

fn unless_null<T>(values: &[Value], at: usize, value: fn(&[Value], usize) -> Result<T>) -> Result<Option<T>> {
    if values[at].is_null() { Ok(None) } else { value(values, at).map(Some) }
}

fn truth(answer: Option<bool>) -> Value {
    answer.map_or(Value::Null, Value::from)
}

/// Of four times or timestamps of one type.
pub fn overlaps_micros(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = |at| unless_null(values, at, micros);
    Ok(truth(overlaps([at(0)?, at(1)?, at(2)?, at(3)?])))
}

pub fn overlaps_timetz(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let key = |values: &[Value], at: usize| timetz(values, at).map(|time| (time.utc(), time.west));
    let at = |at| unless_null(values, at, key);
    Ok(truth(overlaps([at(0)?, at(1)?, at(2)?, at(3)?])))
}

/// The ends of periods may be intervals behind their begins.
fn overlaps_with(values: &[Value], plus: impl Fn(i64, Span) -> PgResult<i64>) -> Result<Value> {
    let mut periods = [None; 4];
    for (at, place) in periods.iter_mut().enumerate() {
        *place = match &values[at] {
            Value::Null => None,
            Value::Interval(span) => match unless_null(values, at - 1, micros)? {
                Some(begin) => Some(plus(begin, *span)?),
                None => None,
            },
            _ => Some(micros(values, at)?),
        };
    }
    Ok(truth(overlaps(periods)))
}

pub fn overlaps_timestamp_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    overlaps_with(values, |at, span| timestamp_plus(at, span, None))
}

pub fn overlaps_timestamptz_interval(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let zone = &ctx.state().io.zone;
    overlaps_with(values, |at, span| timestamp_plus(at, span, Some(zone)))
}

pub fn overlaps_time_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    overlaps_with(values, |at, span| Ok(time_plus(at, span.micros)))
}
