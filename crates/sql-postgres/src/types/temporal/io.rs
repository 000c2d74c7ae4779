//! Input, output, receive and send of each type: the functions `date_in` to `interval_send` of PostgreSQL.
//!
//! Output appends to a buffer. Modifiers are -1 where there is none.

use super::calendar::{EPOCH_JULIAN, Reading};
use super::decode::{Moment, decode_date_time, decode_time};
use super::decode_interval::{decode_interval, decode_iso_interval};
use super::encode::{encode_date, encode_date_time, encode_interval, encode_time};
use super::fields::Fields;
use super::typmod::{self, adjust_interval, adjust_time, adjust_timestamp};
use super::{DATE_EARLY, DATE_LATE, DateTimeError, EPOCH_SECONDS, IoContext};
use super::{
    DateFormat, DateOrder, LocalOffset, MICROS_PER_DAY, MICROS_PER_SECOND, PgZone, Span, TIMESTAMP_EARLY,
    TIMESTAMP_LATE,
};
use super::{is_finite_date, is_finite_timestamp, is_valid_date, is_valid_timestamp, overflow};
use crate::error::{PgError, Result, state};
use crate::types::io::fixed;
use crate::value::{Bytes, Value};

/// Bytes of the fields of a text, by type.
const DATE_BYTES: usize = 129;
const TIMESTAMP_BYTES: usize = 153;
const INTERVAL_BYTES: usize = 256;

/// The limit of an offset from UTC, in seconds.
const ZONE_LIMIT: i32 = 16 * 3600;

/// A value of timetz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeTz {
    /// Microseconds since midnight at the offset.
    pub micros: i64,
    /// The offset in seconds west of UTC.
    pub west: i32,
}

const SIGN: u64 = 1 << 63;

impl TimeTz {
    /// Returns the time of day in UTC, which may be of the day before or after.
    pub fn utc(self) -> i64 {
        self.micros + i64::from(self.west) * MICROS_PER_SECOND
    }

    /// Returns the form of rows and keys: the time in UTC and the offset, big-endian, each with its sign flipped, so that bytes order as values do.
    pub fn to_value(self) -> Value {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&(self.utc() as u64 ^ SIGN).to_be_bytes());
        bytes[8..].copy_from_slice(&(self.west as u32 ^ 1 << 31).to_be_bytes());
        Value::bytes(bytes)
    }

    /// Returns the time of its stored form; midnight in UTC for bytes that are none.
    pub fn of_bytes(bytes: &Bytes) -> TimeTz {
        let Ok([a, b, c, d, e, f, g, h, west @ ..]) = <[u8; 12]>::try_from(&**bytes) else {
            return TimeTz { micros: 0, west: 0 };
        };
        let utc = (u64::from_be_bytes([a, b, c, d, e, f, g, h]) ^ SIGN) as i64;
        let west = (u32::from_be_bytes(west) ^ 1 << 31) as i32;
        TimeTz { micros: utc.saturating_sub(i64::from(west) * MICROS_PER_SECOND), west }
    }
}

fn moment(text: &str, limit: usize, type_name: &str, io: &IoContext) -> Result<Moment> {
    let moment = Fields::parse(text, limit).and_then(|fields| decode_date_time(&fields, io));
    moment.map_err(|error| error.report(text, type_name))
}

pub fn date_in(text: &str, io: &IoContext) -> Result<i32> {
    let reading = match moment(text, DATE_BYTES, "date", io)? {
        Moment::At(reading, _) => reading,
        Moment::Epoch => Reading::of_date(1970, 1, 1),
        Moment::Early => return Ok(DATE_EARLY),
        Moment::Late => return Ok(DATE_LATE),
    };
    days_of(&reading).ok_or_else(|| overflow(&format!("date out of range: \"{text}\"")))
}

/// Returns the date of a reading; `None` out of the range of the type.
pub fn days_of(reading: &Reading) -> Option<i32> {
    if !reading.has_julian() {
        return None;
    }
    let days = reading.julian() - EPOCH_JULIAN;
    is_valid_date(days).then_some(days as i32)
}

pub fn date_out(days: i32, io: &IoContext, out: &mut Vec<u8>) {
    match days {
        DATE_EARLY => out.extend_from_slice(b"-infinity"),
        DATE_LATE => out.extend_from_slice(b"infinity"),
        _ => encode_date(&reading_of_date(days), io.date_format, io.date_order, out),
    }
}

pub fn reading_of_date(days: i32) -> Reading {
    Reading::of_julian(i64::from(days) + EPOCH_JULIAN)
}

pub fn date_recv(bytes: &[u8]) -> Result<i32> {
    let days = i32::from_be_bytes(fixed(bytes)?);
    if is_finite_date(days) && !is_valid_date(days.into()) {
        return Err(overflow("date out of range"));
    }
    Ok(days)
}

pub fn date_send(days: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&days.to_be_bytes());
}

fn time_of(text: &str, type_name: &str, io: &IoContext) -> Result<(Reading, i32)> {
    let time = Fields::parse(text, DATE_BYTES).and_then(|fields| decode_time(&fields, io));
    time.map_err(|error| error.report(text, type_name))
}

pub fn time_in(text: &str, typmod: i32, io: &IoContext) -> Result<i64> {
    let (reading, _) = time_of(text, "time", io)?;
    Ok(adjust_time(reading.clock(), typmod))
}

/// Returns the reading of a time of day, which is 24:00:00 at most.
pub fn reading_of_time(micros: i64) -> Reading {
    let mut reading = Reading::default();
    reading.set_clock(micros);
    reading
}

pub fn time_out(micros: i64, out: &mut Vec<u8>) {
    encode_time(&reading_of_time(micros), None, out);
}

pub fn time_recv(bytes: &[u8], typmod: i32) -> Result<i64> {
    let micros = i64::from_be_bytes(fixed(bytes)?);
    check_time(micros)?;
    Ok(adjust_time(micros, typmod))
}

fn check_time(micros: i64) -> Result<()> {
    if (0..=MICROS_PER_DAY).contains(&micros) { Ok(()) } else { Err(overflow("time out of range")) }
}

pub fn time_send(micros: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&micros.to_be_bytes());
}

pub fn timetz_in(text: &str, typmod: i32, io: &IoContext) -> Result<TimeTz> {
    let (reading, west) = time_of(text, "time with time zone", io)?;
    Ok(TimeTz { micros: adjust_time(reading.clock(), typmod), west })
}

pub fn timetz_out(time: TimeTz, out: &mut Vec<u8>) {
    encode_time(&reading_of_time(time.micros), Some(-time.west), out);
}

pub fn timetz_recv(bytes: &[u8], typmod: i32) -> Result<TimeTz> {
    let [a, b, c, d, e, f, g, h, west @ ..] = fixed::<12>(bytes)?;
    let micros = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
    check_time(micros)?;
    let west = i32::from_be_bytes(west);
    if west <= -ZONE_LIMIT || west >= ZONE_LIMIT {
        return Err(PgError::new(state::INVALID_TIME_ZONE_DISPLACEMENT_VALUE, "time zone displacement out of range"));
    }
    Ok(TimeTz { micros: adjust_time(micros, typmod), west })
}

pub fn timetz_send(time: TimeTz, out: &mut Vec<u8>) {
    out.extend_from_slice(&time.micros.to_be_bytes());
    out.extend_from_slice(&time.west.to_be_bytes());
}

pub fn timestamp_in(text: &str, typmod: i32, io: &IoContext) -> Result<i64> {
    let moment = moment(text, TIMESTAMP_BYTES, "timestamp", io)?;
    Ok(adjust_timestamp(micros_of_moment(moment, false, text)?, typmod))
}

pub fn timestamptz_in(text: &str, typmod: i32, io: &IoContext) -> Result<i64> {
    let moment = moment(text, TIMESTAMP_BYTES, "timestamp with time zone", io)?;
    Ok(adjust_timestamp(micros_of_moment(moment, true, text)?, typmod))
}

fn micros_of_moment(moment: Moment, has_zone: bool, text: &str) -> Result<i64> {
    match moment {
        Moment::At(reading, west) => {
            let west = if has_zone { west } else { 0 };
            timestamp_of(&reading, west).ok_or_else(|| overflow(&format!("timestamp out of range: \"{text}\"")))
        }
        Moment::Epoch => Ok(-EPOCH_SECONDS * MICROS_PER_SECOND),
        Moment::Early => Ok(TIMESTAMP_EARLY),
        Moment::Late => Ok(TIMESTAMP_LATE),
    }
}

/// Returns the timestamp of a reading at an offset, in seconds west of UTC; `None` out of the range of the type.
pub fn timestamp_of(reading: &Reading, west: i32) -> Option<i64> {
    let micros = reading.micros_since_epoch()?.checked_add(i64::from(west) * MICROS_PER_SECOND)?;
    is_valid_timestamp(micros).then_some(micros)
}

/// Returns the timestamp that a zone's clock shows as a reading; `None` out of the range of the type.
pub fn timestamp_in_zone(reading: &Reading, zone: &PgZone) -> Option<i64> {
    timestamp_of(reading, -zone.offset_of(reading))
}

fn infinity(micros: i64, out: &mut Vec<u8>) -> bool {
    match micros {
        TIMESTAMP_EARLY => out.extend_from_slice(b"-infinity"),
        TIMESTAMP_LATE => out.extend_from_slice(b"infinity"),
        _ => return false,
    }
    true
}

pub fn timestamp_out(micros: i64, io: &IoContext, out: &mut Vec<u8>) {
    if !infinity(micros, out) {
        encode_date_time(&Reading::of_micros(micros), None, io.date_format, io.date_order, out);
    }
}

pub fn timestamptz_out(micros: i64, io: &IoContext, out: &mut Vec<u8>) {
    if infinity(micros, out) {
        return;
    }
    // ISO shows no abbreviation.
    let offset = match io.date_format {
        DateFormat::Iso => LocalOffset { seconds: io.zone.offset_at(micros), ..LocalOffset::default() },
        _ => io.zone.local_offset_at(micros),
    };
    let reading = Reading::of_micros(micros + i64::from(offset.seconds) * MICROS_PER_SECOND);
    encode_date_time(&reading, Some(&offset), io.date_format, io.date_order, out);
}

/// Appends a timestamp, or with a zone a timestamptz, as documents have it.
pub fn timestamp_in_document(micros: i64, zone: Option<&PgZone>, out: &mut Vec<u8>) {
    if infinity(micros, out) {
        return;
    }
    let offset = zone.map(|zone| LocalOffset { seconds: zone.offset_at(micros), ..LocalOffset::default() });
    let east = offset.as_ref().map_or(0, |offset| offset.seconds);
    let reading = Reading::of_micros(micros + i64::from(east) * MICROS_PER_SECOND);
    encode_date_time(&reading, offset.as_ref(), DateFormat::Xsd, DateOrder::Ymd, out);
}

/// Appends a date as documents have it.
pub fn date_in_document(days: i32, out: &mut Vec<u8>) {
    match days {
        DATE_EARLY => out.extend_from_slice(b"-infinity"),
        DATE_LATE => out.extend_from_slice(b"infinity"),
        _ => encode_date(&reading_of_date(days), DateFormat::Xsd, DateOrder::Ymd, out),
    }
}

/// Reads the binary form of a timestamp, with or without time zone.
pub fn timestamp_recv(bytes: &[u8], typmod: i32) -> Result<i64> {
    let micros = i64::from_be_bytes(fixed(bytes)?);
    if is_finite_timestamp(micros) && !is_valid_timestamp(micros) {
        return Err(overflow("timestamp out of range"));
    }
    Ok(adjust_timestamp(micros, typmod))
}

pub fn timestamp_send(micros: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&micros.to_be_bytes());
}

pub fn interval_in(text: &str, typmod: i32, io: &IoContext) -> Result<Span> {
    let range = typmod::interval_range(typmod);
    let fields = Fields::parse(text, INTERVAL_BYTES);
    let mut span = fields.and_then(|fields| decode_interval(&fields, range, io.interval_style));
    if span == Err(DateTimeError::BadFormat) {
        span = decode_iso_interval(text);
    }
    let span = span.map_err(|error| {
        let is_overflow = error == DateTimeError::FieldOverflow;
        let error = if is_overflow { DateTimeError::IntervalOverflow } else { error };
        error.report(text, "interval")
    })?;
    adjust_interval(span.ok_or_else(|| overflow("interval out of range"))?, typmod)
}

pub fn interval_out(span: Span, io: &IoContext, out: &mut Vec<u8>) {
    encode_interval(span, io.interval_style, out);
}

pub fn interval_recv(bytes: &[u8], typmod: i32) -> Result<Span> {
    let [a, b, c, d, e, f, g, h, i, j, k, l, months @ ..] = fixed::<16>(bytes)?;
    let span = Span {
        months: i32::from_be_bytes(months),
        days: i32::from_be_bytes([i, j, k, l]),
        micros: i64::from_be_bytes([a, b, c, d, e, f, g, h]),
    };
    adjust_interval(span, typmod)
}

pub fn interval_send(span: Span, out: &mut Vec<u8>) {
    out.extend_from_slice(&span.micros.to_be_bytes());
    out.extend_from_slice(&span.days.to_be_bytes());
    out.extend_from_slice(&span.months.to_be_bytes());
}
