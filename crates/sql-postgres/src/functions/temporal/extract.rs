//! `extract`, whose results are numerics, and `date_part`, whose results are doubles.
//!
//! A field is computed once as a [`Part`], which becomes a number of either type.

use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::convert::date_to_timestamp;
use super::values::{date, micros, span, text, timetz};
use crate::error::{PgError, Result as PgResult, state};
use crate::functions::state::StateOf;
use crate::types::temporal::calendar::{EPOCH_JULIAN, Reading, UNIX_JULIAN, iso_week};
use crate::types::temporal::io::{TimeTz, reading_of_date, reading_of_time};
use crate::types::temporal::tokens::{Reserved, TimeUnit, Word, field_word};
use crate::types::temporal::{
    DATE_EARLY, EPOCH_SECONDS, MICROS_PER_DAY, MICROS_PER_SECOND, Span, TIMESTAMP_EARLY, is_finite_date,
    is_finite_timestamp,
};
use crate::value::{Decimal, Value};

/// Bytes of a name; longer ones are cut.
const NAME_BYTES_MAX: usize = 63;

/// The value of a field.
enum Part {
    Whole(i64),
    /// A number with so many digits behind the point, and the double that is computed for `date_part`.
    Fraction(i128, u16, f64),
    /// Days and microseconds of a day.
    Julian(i64, i64),
    Infinity(bool),
    Null,
}

/// A unit, or the field `epoch`.
#[derive(Clone, Copy)]
enum ExtractField {
    Unit(TimeUnit),
    Epoch,
    /// Another word that stands for a point in time: no field of any type.
    OtherReserved,
}

/// The types by the names of messages.
const DATE: &str = "date";
const TIME: &str = "time without time zone";
const TIMETZ: &str = "time with time zone";
const TIMESTAMP: &str = "timestamp without time zone";
const TIMESTAMPTZ: &str = "timestamp with time zone";
const INTERVAL: &str = "interval";

#[cold]
pub fn not_supported(name: &str, ty: &str) -> PgError {
    PgError::new(state::FEATURE_NOT_SUPPORTED, format!("unit \"{name}\" not supported for type {ty}"))
}

#[cold]
pub fn not_recognized(name: &str, ty: &str) -> PgError {
    PgError::new(state::INVALID_PARAMETER_VALUE, format!("unit \"{name}\" not recognized for type {ty}"))
}

/// Returns a name in lower case and as long as an identifier may be.
pub fn lower_name(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_ascii_lowercase()
}

fn field(name: &str, ty: &str) -> PgResult<ExtractField> {
    match field_word(name) {
        Some(Word::Unit(unit)) => Ok(ExtractField::Unit(unit)),
        Some(Word::Reserved(Reserved::Epoch)) => Ok(ExtractField::Epoch),
        Some(Word::Reserved(_)) => Ok(ExtractField::OtherReserved),
        _ => Err(not_recognized(name, ty)),
    }
}

/// Divides to the right of zero, so that there is no group of number zero: the decade, century or millennium of a year.
pub fn group(year: i64, size: i64) -> i64 {
    if year > 0 { (year + size - 1) / size } else { -((size - 1 - (year - 1)) / size) }
}

/// The parts of a date.
fn date_unit(reading: &Reading, unit: TimeUnit) -> Option<i64> {
    let year = i64::from(reading.year);
    let without_zero = |year: i64| if year > 0 { year } else { year - 1 };
    Some(match unit {
        TimeUnit::Day => reading.day.into(),
        TimeUnit::Month => reading.month.into(),
        TimeUnit::Quarter => i64::from((reading.month - 1) / 3 + 1),
        TimeUnit::Week => iso_week(reading).1,
        TimeUnit::Year => without_zero(year),
        TimeUnit::Decade if year >= 0 => year / 10,
        TimeUnit::Decade => -((8 - (year - 1)) / 10),
        TimeUnit::Century => group(year, 100),
        TimeUnit::Millennium => group(year, 1000),
        TimeUnit::IsoYear => without_zero(iso_week(reading).0),
        TimeUnit::DayOfWeek => reading.weekday(),
        TimeUnit::IsoDayOfWeek => (reading.weekday() + 6) % 7 + 1,
        TimeUnit::DayOfYear => reading.day_of_year(),
        _ => return None,
    })
}

fn fraction(micros: i64, digits: u16) -> Part {
    let scale = 10f64.powi(digits.into());
    Part::Fraction(micros.into(), digits, micros as f64 / scale)
}

/// The parts of a time of day.
fn time_unit(reading: &Reading, unit: TimeUnit) -> Option<Part> {
    let micros = i64::from(reading.second) * MICROS_PER_SECOND + i64::from(reading.micros);
    Some(match unit {
        TimeUnit::Microsecond => Part::Whole(micros),
        // The doubles are sums of seconds and their fraction.
        TimeUnit::Millisecond => {
            let double = f64::from(reading.second) * 1000.0 + f64::from(reading.micros) / 1000.0;
            Part::Fraction(micros.into(), 3, double)
        }
        TimeUnit::Second => {
            Part::Fraction(micros.into(), 6, f64::from(reading.second) + f64::from(reading.micros) / 1e6)
        }
        TimeUnit::Minute => Part::Whole(reading.minute.into()),
        TimeUnit::Hour => Part::Whole(reading.hour.into()),
        _ => return None,
    })
}

/// The parts of an offset in seconds east of UTC.
fn zone_unit(east: i32, unit: TimeUnit) -> Option<Part> {
    Some(Part::Whole(i64::from(match unit {
        TimeUnit::Zone => east,
        TimeUnit::ZoneMinute => east / 60 % 60,
        TimeUnit::ZoneHour => east / 3600,
        _ => return None,
    })))
}

/// The field of an infinity: infinite if it grows with time, else NULL.
fn infinite(field: ExtractField, is_early: bool, name: &str, ty: &str) -> PgResult<Part> {
    let grows = match field {
        ExtractField::Epoch => true,
        ExtractField::OtherReserved => return Err(not_supported(name, ty)),
        ExtractField::Unit(unit) => {
            matches!(
                unit,
                TimeUnit::Year
                    | TimeUnit::Decade
                    | TimeUnit::Century
                    | TimeUnit::Millennium
                    | TimeUnit::Julian
                    | TimeUnit::IsoYear
            )
        }
    };
    if grows {
        return Ok(Part::Infinity(is_early));
    }
    let is_of_type = match field {
        ExtractField::Unit(unit) => {
            let is_of_date = date_unit(&Reading::of_date(2000, 1, 1), unit).is_some();
            let is_of_time = time_unit(&Reading::default(), unit).is_some() || zone_unit(0, unit).is_some();
            is_of_date || is_of_time && ty != DATE
        }
        _ => false,
    };
    if is_of_type { Ok(Part::Null) } else { Err(not_supported(name, ty)) }
}

/// Extracts from a timestamp, or one with time zone whose clock shows a reading at an offset east of UTC.
fn of_timestamp(name: &str, at: i64, local: Option<(Reading, i32)>, ty: &str) -> PgResult<Part> {
    let field = field(name, ty)?;
    if !is_finite_timestamp(at) {
        return infinite(field, at == TIMESTAMP_EARLY, name, ty);
    }
    let reading = local.map_or_else(|| Reading::of_micros(at), |(reading, _)| reading);
    let unit = match field {
        ExtractField::Epoch => {
            let micros = i128::from(at) + i128::from(EPOCH_SECONDS * MICROS_PER_SECOND);
            let Ok(small) = i64::try_from(micros) else {
                // Beyond 64 bits the real server divides numerics, which have 16 digits here.
                let double = (at as f64 + (EPOCH_SECONDS * MICROS_PER_SECOND) as f64) / 1e6;
                return Ok(Part::Fraction((micros + 50) / 100 * 100, 6, double));
            };
            return Ok(Part::Fraction(micros, 6, small as f64 / 1e6));
        }
        ExtractField::OtherReserved => return Err(not_supported(name, ty)),
        ExtractField::Unit(unit) => unit,
    };
    if unit == TimeUnit::Julian {
        return Ok(Part::Julian(reading.julian(), reading.clock()));
    }
    let part = date_unit(&reading, unit).map(Part::Whole).or_else(|| time_unit(&reading, unit));
    let part = part.or_else(|| local.and_then(|(_, east)| zone_unit(east, unit)));
    part.ok_or_else(|| not_supported(name, ty))
}

fn of_date(name: &str, days: i32) -> PgResult<Part> {
    let field = field(name, DATE)?;
    if !is_finite_date(days) {
        return infinite(field, days == DATE_EARLY, name, DATE);
    }
    let reading = reading_of_date(days);
    match field {
        ExtractField::Epoch => Ok(Part::Whole((i64::from(days) + EPOCH_JULIAN - UNIX_JULIAN) * 86_400)),
        ExtractField::Unit(TimeUnit::Julian) => Ok(Part::Whole(reading.julian())),
        ExtractField::Unit(unit) => date_unit(&reading, unit).map(Part::Whole).ok_or_else(|| not_supported(name, DATE)),
        ExtractField::OtherReserved => Err(not_supported(name, DATE)),
    }
}

fn of_time(name: &str, micros: i64) -> PgResult<Part> {
    match field(name, TIME)? {
        ExtractField::Epoch => Ok(fraction(micros, 6)),
        ExtractField::Unit(unit) => time_unit(&reading_of_time(micros), unit).ok_or_else(|| not_supported(name, TIME)),
        ExtractField::OtherReserved => Err(not_recognized(name, TIME)),
    }
}

fn of_timetz(name: &str, time: TimeTz) -> PgResult<Part> {
    match field(name, TIMETZ)? {
        ExtractField::Epoch => {
            let double = time.micros as f64 / 1e6 + f64::from(time.west);
            Ok(Part::Fraction(time.utc().into(), 6, double))
        }
        ExtractField::Unit(unit) => {
            let part = time_unit(&reading_of_time(time.micros), unit).or_else(|| zone_unit(-time.west, unit));
            part.ok_or_else(|| not_supported(name, TIMETZ))
        }
        ExtractField::OtherReserved => Err(not_recognized(name, TIMETZ)),
    }
}

fn of_interval(name: &str, span: Span) -> PgResult<Part> {
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    let unit = match field(name, INTERVAL)? {
        ExtractField::Unit(unit) => unit,
        ExtractField::Epoch => return Ok(epoch_of_interval(span)),
        ExtractField::OtherReserved => return Err(not_recognized(name, INTERVAL)),
    };
    let second = span.micros % 60_000_000;
    let reading = Reading {
        minute: (span.micros / 60_000_000 % 60) as i32,
        second: (second / MICROS_PER_SECOND) as i32,
        micros: (second % MICROS_PER_SECOND) as i32,
        ..Reading::default()
    };
    Ok(match unit {
        TimeUnit::Hour => Part::Whole(span.micros / 3_600_000_000),
        TimeUnit::Day => Part::Whole(span.days.into()),
        TimeUnit::Month => Part::Whole(months),
        TimeUnit::Quarter => Part::Whole(months / 3 + 1),
        TimeUnit::Year => Part::Whole(years),
        TimeUnit::Decade => Part::Whole(years / 10),
        TimeUnit::Century => Part::Whole(years / 100),
        TimeUnit::Millennium => Part::Whole(years / 1000),
        _ => time_unit(&reading, unit).ok_or_else(|| not_supported(name, INTERVAL))?,
    })
}

/// The seconds of an interval: a year has 365.25 days, a month 30.
fn epoch_of_interval(span: Span) -> Part {
    let (years, months) = (i128::from(span.months / 12), i128::from(span.months % 12));
    let quarter_days = years * 1461 + months * 120 + i128::from(span.days) * 4;
    let micros = quarter_days * (86_400 / 4) * i128::from(MICROS_PER_SECOND) + i128::from(span.micros);
    let mut double = span.micros as f64 / 1e6;
    double += 365.25 * 86_400.0 * years as f64;
    double += 30.0 * 86_400.0 * months as f64;
    double += 86_400.0 * f64::from(span.days);
    Part::Fraction(micros, 6, double)
}

/// Returns the Julian date as numeric's division shows it: 16 significant digits or more.
fn julian(days: i64, micros: i64) -> Decimal {
    // The quotient's digits follow from the base-10000 digits of both numbers: their count, and whether the first is greater.
    let weigh = |mut number: i64| {
        let mut weight = 0;
        while number >= 10_000 {
            number /= 10_000;
            weight += 1;
        }
        (weight, number)
    };
    let ((weight, first), (other_weight, other_first)) = (weigh(micros), weigh(MICROS_PER_DAY));
    let quotient_weight = weight - other_weight - i32::from(first <= other_first);
    let scale = (16 - quotient_weight * 4).clamp(0, 1000) as u32;
    let scaled = i128::from(micros) * 10i128.pow(scale);
    let day = i128::from(MICROS_PER_DAY);
    let quotient = scaled / day + i128::from(scaled % day * 2 >= day);
    Decimal::new(i128::from(days) * 10i128.pow(scale) + quotient, scale as u16)
}

impl Part {
    fn numeric(self) -> Value {
        Value::Decimal(match self {
            Part::Whole(number) => Decimal::new(number.into(), 0),
            Part::Fraction(number, digits, _) => Decimal::new(number, digits),
            Part::Julian(days, micros) => julian(days, micros),
            Part::Infinity(true) => Decimal::NEGATIVE_INFINITY,
            Part::Infinity(false) => Decimal::INFINITY,
            Part::Null => return Value::Null,
        })
    }

    fn double(self) -> Value {
        Value::Double(match self {
            Part::Whole(number) => number as f64,
            Part::Fraction(_, _, double) => double,
            Part::Julian(days, micros) => {
                let seconds = (micros / MICROS_PER_SECOND) as f64 + (micros % MICROS_PER_SECOND) as f64 / 1e6;
                days as f64 + seconds / 86_400.0
            }
            Part::Infinity(true) => f64::NEG_INFINITY,
            Part::Infinity(false) => f64::INFINITY,
            Part::Null => return Value::Null,
        })
    }
}

fn name(values: &[Value]) -> Result<String> {
    Ok(lower_name(text(values, 0)?))
}

fn local_part(values: &[Value], ctx: &EvalContext) -> Result<Part> {
    let (at, zone) = (micros(values, 1)?, &ctx.state().io.zone);
    let local = if is_finite_timestamp(at) { (zone.reading_at(at), zone.offset_at(at)) } else { Default::default() };
    of_timestamp(&name(values)?, at, Some(local), TIMESTAMPTZ).map_err(Fault::from)
}

pub fn extract_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(of_date(&name(values)?, date(values, 1)?)?.numeric())
}

pub fn extract_time(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(of_time(&name(values)?, micros(values, 1)?)?.numeric())
}

pub fn extract_timetz(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(of_timetz(&name(values)?, timetz(values, 1)?)?.numeric())
}

pub fn extract_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(of_timestamp(&name(values)?, micros(values, 1)?, None, TIMESTAMP)?.numeric())
}

pub fn extract_timestamptz(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(local_part(values, ctx)?.numeric())
}

pub fn extract_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(of_interval(&name(values)?, span(values, 1)?)?.numeric())
}

/// `date_part` takes a date as its midnight.
pub fn date_part_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = date_to_timestamp(date(values, 1)?)?;
    Ok(of_timestamp(&name(values)?, at, None, TIMESTAMP)?.double())
}

pub fn date_part_time(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(of_time(&name(values)?, micros(values, 1)?)?.double())
}

pub fn date_part_timetz(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(of_timetz(&name(values)?, timetz(values, 1)?)?.double())
}

pub fn date_part_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(of_timestamp(&name(values)?, micros(values, 1)?, None, TIMESTAMP)?.double())
}

pub fn date_part_timestamptz(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(local_part(values, ctx)?.double())
}

pub fn date_part_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(of_interval(&name(values)?, span(values, 1)?)?.double())
}
