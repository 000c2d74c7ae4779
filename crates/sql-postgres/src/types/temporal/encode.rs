//! Texts of dates, times and intervals in the styles of `DateStyle` and `IntervalStyle`.

use super::Span;
use super::calendar::{DAYS, MONTHS, Reading};
use super::{DateFormat, DateOrder, IntervalStyle, LocalOffset, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};

/// Letters of a zone's abbreviation that are shown.
const ABBREVIATION_MAX: usize = 10;

/// Appends a number with zeros to a width.
fn padded(number: u64, width: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let length = digits.len() - at;
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(length)));
    out.extend_from_slice(&digits[at..]);
}

fn signed(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    padded(number.unsigned_abs(), 1, out);
}

/// Appends seconds with their fraction, without zeros at its end.
fn seconds(second: u64, micros: u64, width: usize, out: &mut Vec<u8>) {
    padded(second, width, out);
    if micros != 0 {
        out.push(b'.');
        padded(micros, 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

fn time(reading: &Reading, out: &mut Vec<u8>) {
    padded(reading.hour as u64, 2, out);
    out.push(b':');
    padded(reading.minute as u64, 2, out);
    out.push(b':');
    seconds(reading.second as u64, reading.micros as u64, 2, out);
}

/// Appends day and month in the order of the style, and the year.
fn numeric_date(reading: &Reading, separator: u8, day_first: bool, out: &mut Vec<u8>) {
    let (month, day) = (reading.month as u64, reading.day as u64);
    let (first, second) = if day_first { (day, month) } else { (month, day) };
    padded(first, 2, out);
    out.push(separator);
    padded(second, 2, out);
    out.push(separator);
    padded(reading.shown_year() as u64, 4, out);
}

fn iso_date(reading: &Reading, out: &mut Vec<u8>) {
    padded(reading.shown_year() as u64, 4, out);
    out.push(b'-');
    padded(reading.month as u64, 2, out);
    out.push(b'-');
    padded(reading.day as u64, 2, out);
}

fn era(reading: &Reading, out: &mut Vec<u8>) {
    if reading.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// Appends an offset in seconds east of UTC.
pub fn encode_offset(east: i32, out: &mut Vec<u8>) {
    out.push(if east < 0 { b'-' } else { b'+' });
    let rest = u64::from(east.unsigned_abs());
    padded(rest / 3600, 2, out);
    if !rest.is_multiple_of(3600) {
        out.push(b':');
        padded(rest / 60 % 60, 2, out);
    }
    if !rest.is_multiple_of(60) {
        out.push(b':');
        padded(rest % 60, 2, out);
    }
}

pub fn encode_date(reading: &Reading, format: DateFormat, order: DateOrder, out: &mut Vec<u8>) {
    let day_first = order == DateOrder::Dmy;
    match format {
        DateFormat::Iso | DateFormat::Xsd => iso_date(reading, out),
        DateFormat::Sql => numeric_date(reading, b'/', day_first, out),
        DateFormat::German => numeric_date(reading, b'.', true, out),
        DateFormat::Postgres => numeric_date(reading, b'-', day_first, out),
    }
    era(reading, out);
}

/// Appends a time of day, with an offset in seconds east of UTC.
pub fn encode_time(reading: &Reading, east: Option<i32>, out: &mut Vec<u8>) {
    time(reading, out);
    if let Some(east) = east {
        encode_offset(east, out);
    }
}

pub fn encode_date_time(
    reading: &Reading,
    zone: Option<&LocalOffset>,
    format: DateFormat,
    order: DateOrder,
    out: &mut Vec<u8>,
) {
    let day_first = order == DateOrder::Dmy;
    match format {
        DateFormat::Iso | DateFormat::Xsd => iso_date(reading, out),
        DateFormat::Sql => numeric_date(reading, b'/', day_first, out),
        DateFormat::German => numeric_date(reading, b'.', true, out),
        DateFormat::Postgres => {
            out.extend_from_slice(&DAYS[reading.weekday() as usize].as_bytes()[..3]);
            out.push(b' ');
            let month = &MONTHS[(reading.month - 1) as usize].as_bytes()[..3];
            if day_first {
                padded(reading.day as u64, 2, out);
                out.push(b' ');
                out.extend_from_slice(month);
            } else {
                out.extend_from_slice(month);
                out.push(b' ');
                padded(reading.day as u64, 2, out);
            }
        }
    }
    out.push(if format == DateFormat::Xsd { b'T' } else { b' ' });
    time(reading, out);
    if format == DateFormat::Postgres {
        out.push(b' ');
        padded(reading.shown_year() as u64, 4, out);
    }
    match zone {
        Some(zone) if format == DateFormat::Iso => encode_offset(zone.seconds, out),
        Some(zone) if format == DateFormat::Xsd => {
            encode_offset(zone.seconds, out);
            if zone.seconds % 3600 == 0 {
                out.extend_from_slice(b":00");
            }
        }
        Some(zone) => {
            out.push(b' ');
            let name = zone.abbreviation.as_bytes();
            out.extend_from_slice(&name[..name.len().min(ABBREVIATION_MAX)]);
        }
        None => {}
    }
    era(reading, out);
}

/// The fields of an interval as they are shown. All have one sign within months and within the time.
pub struct SpanFields {
    pub years: i64,
    pub months: i64,
    pub days: i64,
    pub hours: i64,
    pub minutes: i64,
    pub seconds: i64,
    pub micros: i64,
}

impl SpanFields {
    pub fn of(span: Span) -> SpanFields {
        SpanFields {
            years: i64::from(span.months) / 12,
            months: i64::from(span.months) % 12,
            days: span.days.into(),
            hours: span.micros / MICROS_PER_HOUR,
            minutes: span.micros % MICROS_PER_HOUR / MICROS_PER_MINUTE,
            seconds: span.micros % MICROS_PER_MINUTE / MICROS_PER_SECOND,
            micros: span.micros % MICROS_PER_SECOND,
        }
    }

    fn list(&self) -> [i64; 7] {
        [self.years, self.months, self.days, self.hours, self.minutes, self.seconds, self.micros]
    }

    fn has_time(&self) -> bool {
        self.list()[3..].iter().any(|field| *field != 0)
    }

    fn has_negative_time(&self) -> bool {
        self.list()[3..].iter().any(|field| *field < 0)
    }

    fn seconds(&self, width: usize, out: &mut Vec<u8>) {
        seconds(self.seconds.unsigned_abs(), self.micros.unsigned_abs(), width, out);
    }

    /// Appends `hours:minutes:seconds` without a sign.
    fn clock(&self, width: usize, out: &mut Vec<u8>) {
        padded(self.hours.unsigned_abs(), width, out);
        out.push(b':');
        padded(self.minutes.unsigned_abs(), 2, out);
        out.push(b':');
        self.seconds(2, out);
    }
}

pub fn encode_interval(span: Span, style: IntervalStyle, out: &mut Vec<u8>) {
    let fields = SpanFields::of(span);
    match style {
        IntervalStyle::Postgres => postgres(&fields, out),
        IntervalStyle::PostgresVerbose => verbose(&fields, out),
        IntervalStyle::SqlStandard => sql_standard(&fields, out),
        IntervalStyle::Iso8601 => iso_8601(&fields, out),
    }
}

/// `1 year 2 mons -3 days +04:05:06`: a sign is shown where it differs from the one before.
fn postgres(fields: &SpanFields, out: &mut Vec<u8>) {
    let (mut is_first, mut was_negative) = (true, false);
    for (number, unit) in [(fields.years, "year"), (fields.months, "mon"), (fields.days, "day")] {
        if number == 0 {
            continue;
        }
        if !is_first {
            out.push(b' ');
        }
        if was_negative && number > 0 {
            out.push(b'+');
        }
        signed(number, out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if number != 1 {
            out.push(b's');
        }
        (is_first, was_negative) = (false, number < 0);
    }
    if !is_first && !fields.has_time() {
        return;
    }
    if !is_first {
        out.push(b' ');
    }
    if fields.has_negative_time() {
        out.push(b'-');
    } else if was_negative {
        out.push(b'+');
    }
    fields.clock(2, out);
}

/// `@ 1 year 2 mons ago`: the first field decides whether it is ago.
fn verbose(fields: &SpanFields, out: &mut Vec<u8>) {
    out.push(b'@');
    let (mut is_first, mut is_ago) = (true, false);
    let units = [
        (fields.years, "year"),
        (fields.months, "mon"),
        (fields.days, "day"),
        (fields.hours, "hour"),
        (fields.minutes, "min"),
    ];
    for (number, unit) in units {
        if number == 0 {
            continue;
        }
        if is_first {
            is_ago = number < 0;
        }
        let number = if is_ago { -number } else { number };
        out.push(b' ');
        signed(number, out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if number != 1 {
            out.push(b's');
        }
        is_first = false;
    }
    if fields.seconds != 0 || fields.micros != 0 {
        out.push(b' ');
        let is_negative = fields.seconds < 0 || fields.micros < 0;
        if is_first {
            is_ago = is_negative;
        } else if is_negative != is_ago {
            out.push(b'-');
        }
        fields.seconds(1, out);
        out.extend_from_slice(if fields.seconds.abs() != 1 || fields.micros != 0 { b" secs" } else { b" sec" });
        is_first = false;
    }
    if is_first {
        out.extend_from_slice(b" 0");
    }
    if is_ago {
        out.extend_from_slice(b" ago");
    }
}

/// `1-2` or `3 4:05:06`, and `+1-2 -3 +4:05:06` for what standard SQL has no form.
fn sql_standard(fields: &SpanFields, out: &mut Vec<u8>) {
    let list = fields.list();
    let has_negative = list.iter().any(|field| *field < 0);
    let has_positive = list.iter().any(|field| *field > 0);
    let has_months = fields.years != 0 || fields.months != 0;
    let has_rest = list[2..].iter().any(|field| *field != 0);
    if !has_negative && !has_positive {
        out.push(b'0');
        return;
    }
    let sign = |is_negative: bool| if is_negative { b'-' } else { b'+' };
    let months = |out: &mut Vec<u8>| {
        padded(fields.years.unsigned_abs(), 1, out);
        out.push(b'-');
        padded(fields.months.unsigned_abs(), 1, out);
    };
    if has_negative && has_positive || has_months && has_rest {
        out.push(sign(fields.years < 0 || fields.months < 0));
        months(out);
        out.extend_from_slice(&[b' ', sign(fields.days < 0)]);
        padded(fields.days.unsigned_abs(), 1, out);
        out.extend_from_slice(&[b' ', sign(fields.has_negative_time())]);
        fields.clock(1, out);
        return;
    }
    if has_negative {
        out.push(b'-');
    }
    if has_months {
        months(out);
        return;
    }
    if fields.days != 0 {
        padded(fields.days.unsigned_abs(), 1, out);
        out.push(b' ');
    }
    fields.clock(1, out);
}

/// `P1Y2M3DT4H5M6S`: each field with its own sign.
fn iso_8601(fields: &SpanFields, out: &mut Vec<u8>) {
    if fields.list().iter().all(|field| *field == 0) {
        out.extend_from_slice(b"PT0S");
        return;
    }
    let part = |number: i64, unit: u8, out: &mut Vec<u8>| {
        if number != 0 {
            signed(number, out);
            out.push(unit);
        }
    };
    out.push(b'P');
    part(fields.years, b'Y', out);
    part(fields.months, b'M', out);
    part(fields.days, b'D', out);
    if fields.has_time() {
        out.push(b'T');
    }
    part(fields.hours, b'H', out);
    part(fields.minutes, b'M', out);
    if fields.seconds != 0 || fields.micros != 0 {
        if fields.seconds < 0 || fields.micros < 0 {
            out.push(b'-');
        }
        fields.seconds(1, out);
        out.push(b'S');
    }
}
