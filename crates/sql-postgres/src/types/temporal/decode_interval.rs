//! The second step of reading an interval: fields are given meaning from right to left, so that units are known before their numbers.
//!
//! The other form is that of ISO 8601, `P1Y2M3DT4H5M6S`, which is tried for texts that the first form does not accept.

use super::Span;
use super::decode::{clock, part};
use super::fields::{FieldKind, Fields, fraction, leading_int, leading_integer};
use super::tokens::{TimeUnit, Word, interval_word};
use super::typmod::{self, IntervalRange};
use super::{
    DateTimeError, Decoded, IntervalStyle, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND,
};

const MONTHS_PER_YEAR: i32 = 12;
const DAYS_PER_MONTH: f64 = 30.0;
const DAYS_PER_WEEK: i32 = 7;
/// The largest number of an ISO 8601 interval: below it a double tells all integers apart.
const ISO_NUMBER_MAX: f64 = 1e15;

/// The parts of an interval as they are summed up.
#[derive(Default)]
struct Parts {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

impl Parts {
    fn add_years(&mut self, number: i64, scale: i32) -> Option<()> {
        self.years = self.years.checked_add(i32::try_from(number).ok()?.checked_mul(scale)?)?;
        Some(())
    }

    fn add_year_fraction(&mut self, fraction: f64, scale: i32) -> Option<()> {
        let months = (fraction * f64::from(scale) * f64::from(MONTHS_PER_YEAR)).round_ties_even();
        self.months = self.months.checked_add(months as i32)?;
        Some(())
    }

    fn add_months(&mut self, number: i64) -> Option<()> {
        self.months = self.months.checked_add(i32::try_from(number).ok()?)?;
        Some(())
    }

    fn add_days(&mut self, number: i64, scale: i32) -> Option<()> {
        self.days = self.days.checked_add(i32::try_from(number).ok()?.checked_mul(scale)?)?;
        Some(())
    }

    /// Adds a fraction of units of so many days.
    fn add_day_fraction(&mut self, fraction: f64, scale: f64) -> Option<()> {
        let days = fraction * scale;
        self.days = self.days.checked_add(days as i32)?;
        self.add_fraction(days - f64::from(days as i32), MICROS_PER_DAY)
    }

    fn add_micros(&mut self, number: i64, fraction: f64, scale: i64) -> Option<()> {
        self.micros = self.micros.checked_add(number.checked_mul(scale)?)?;
        self.add_fraction(fraction, scale)
    }

    /// Adds a fraction of units of so many microseconds, rounded.
    fn add_fraction(&mut self, fraction: f64, scale: i64) -> Option<()> {
        let scaled = fraction * scale as f64;
        let mut micros = scaled as i64;
        let rest = scaled - micros as f64;
        if rest > 0.5 {
            micros += 1;
        } else if rest < -0.5 {
            micros -= 1;
        }
        self.micros = self.micros.checked_add(micros)?;
        Some(())
    }

    fn negate(&mut self) -> Option<()> {
        self.years = self.years.checked_neg()?;
        self.months = self.months.checked_neg()?;
        self.days = self.days.checked_neg()?;
        self.micros = self.micros.checked_neg()?;
        Some(())
    }

    /// `None`: out of range.
    fn span(&self) -> Option<Span> {
        let months = i64::from(self.years) * i64::from(MONTHS_PER_YEAR) + i64::from(self.months);
        Some(Span { months: months.try_into().ok()?, days: self.days, micros: self.micros })
    }
}

fn in_range(done: Option<()>) -> Decoded<()> {
    done.ok_or(DateTimeError::FieldOverflow)
}

/// The unit that a number is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// It follows from the modifier of the type.
    Nothing,
    Unit(TimeUnit),
    /// A word that is no unit.
    Invalid,
}

struct IntervalDecoder<'a> {
    fields: &'a Fields,
    range: IntervalRange,
    parts: Parts,
    mask: u32,
    of: Of,
    /// The first sign holds for all numbers, as in standard SQL.
    is_negative: bool,
    is_ago: bool,
}

/// Reads the fields of an interval. `None`: the sum is out of range.
pub fn decode_interval(fields: &Fields, range: IntervalRange, style: IntervalStyle) -> Decoded<Option<Span>> {
    let is_signed = |at: usize| fields.text(at).starts_with(['+', '-']);
    let is_negative = style == IntervalStyle::SqlStandard
        && fields.count > 0
        && fields.text(0).starts_with('-')
        && !(1..fields.count).any(is_signed);
    let mut decoder = IntervalDecoder {
        fields,
        range,
        parts: Parts::default(),
        mask: 0,
        of: Of::Nothing,
        is_negative,
        is_ago: false,
    };
    for at in (0..fields.count).rev() {
        let parts = decoder.field(at)?;
        if parts & decoder.mask != 0 {
            return Err(DateTimeError::BadFormat);
        }
        decoder.mask |= parts;
    }
    if decoder.mask == 0 {
        return Err(DateTimeError::BadFormat);
    }
    if decoder.is_ago {
        in_range(decoder.parts.negate())?;
    }
    Ok(decoder.parts.span())
}

impl IntervalDecoder<'_> {
    fn field(&mut self, at: usize) -> Decoded<u32> {
        let text = self.fields.text(at);
        match self.fields.kind(at) {
            FieldKind::Time => {
                self.parts.micros = self.time(text)?;
                self.end_time()
            }
            FieldKind::Zone => {
                let time = if text[1..].contains(':') { self.time(&text[1..]).ok() } else { None };
                match time {
                    Some(micros) => {
                        self.parts.micros = if text.starts_with('-') { -micros } else { micros };
                        self.end_time()
                    }
                    None => self.number(text),
                }
            }
            FieldKind::Date | FieldKind::Number => self.number(text),
            FieldKind::Text | FieldKind::Special => self.word(text),
        }
    }

    fn time(&self, text: &str) -> Decoded<i64> {
        let clock = clock(text, self.range == typmod::MINUTE_TO_SECOND)?;
        clock.micros().ok_or(DateTimeError::FieldOverflow)
    }

    /// A number before a time is one of days.
    fn end_time(&mut self) -> Decoded<u32> {
        if self.is_negative {
            self.parts.micros = -self.parts.micros.abs();
        }
        self.of = Of::Unit(TimeUnit::Day);
        Ok(part::TIME)
    }

    fn number(&mut self, text: &str) -> Decoded<u32> {
        let mut unit = match self.of {
            Of::Nothing => Some(typmod::last_unit(self.range)),
            Of::Unit(unit) => Some(unit),
            Of::Invalid => None,
        };
        let (number, rest) = leading_integer(text);
        let mut number = number.ok_or(DateTimeError::FieldOverflow)?;
        let mut part_of_one = 0.0;
        let is_negative = text.starts_with('-');
        if let Some(rest) = rest.strip_prefix('-') {
            let (months, rest) = leading_int(rest);
            let months = months.filter(|months| (0..MONTHS_PER_YEAR).contains(months));
            let months = i64::from(months.ok_or(DateTimeError::FieldOverflow)?);
            if !rest.is_empty() {
                return Err(DateTimeError::BadFormat);
            }
            unit = Some(TimeUnit::Month);
            let signed = if is_negative { -months } else { months };
            let sum = number.checked_mul(MONTHS_PER_YEAR.into()).and_then(|months| months.checked_add(signed));
            number = sum.ok_or(DateTimeError::FieldOverflow)?;
        } else if rest.starts_with('.') {
            part_of_one = fraction(rest)?;
            if is_negative {
                part_of_one = -part_of_one;
            }
        } else if !rest.is_empty() {
            return Err(DateTimeError::BadFormat);
        }
        if self.is_negative {
            number = if number > 0 { -number } else { number };
            part_of_one = -part_of_one.abs();
        }
        let unit = unit.ok_or(DateTimeError::BadFormat)?;
        // A number without a unit before hours is one of days.
        self.of = Of::Unit(if unit == TimeUnit::Hour { TimeUnit::Day } else { unit });
        self.add(number, part_of_one, unit)
    }

    /// Adds a number of units. Returns their part of the mask.
    fn add(&mut self, number: i64, fraction: f64, unit: TimeUnit) -> Decoded<u32> {
        let parts = &mut self.parts;
        let years = |parts: &mut Parts, scale| {
            parts.add_years(number, scale)?;
            parts.add_year_fraction(fraction, scale)
        };
        let (done, mask) = match unit {
            TimeUnit::Microsecond => (parts.add_micros(number, fraction, 1), part::MICROSECOND),
            TimeUnit::Millisecond => (parts.add_micros(number, fraction, 1000), part::MILLISECOND),
            TimeUnit::Second => {
                let mask = if fraction == 0.0 { part::SECOND } else { part::SECONDS };
                (parts.add_micros(number, fraction, MICROS_PER_SECOND), mask)
            }
            TimeUnit::Minute => (parts.add_micros(number, fraction, MICROS_PER_MINUTE), part::MINUTE),
            TimeUnit::Hour => (parts.add_micros(number, fraction, MICROS_PER_HOUR), part::HOUR),
            TimeUnit::Day => {
                let done = parts.add_days(number, 1).and_then(|()| parts.add_fraction(fraction, MICROS_PER_DAY));
                (done, part::DAY)
            }
            TimeUnit::Week => {
                let done = parts.add_days(number, DAYS_PER_WEEK);
                (done.and_then(|()| parts.add_day_fraction(fraction, DAYS_PER_WEEK.into())), part::WEEK)
            }
            TimeUnit::Month => {
                let done = parts.add_months(number).and_then(|()| parts.add_day_fraction(fraction, DAYS_PER_MONTH));
                (done, part::MONTH)
            }
            TimeUnit::Year => (years(parts, 1), part::YEAR),
            TimeUnit::Decade => (years(parts, 10), part::DECADE),
            TimeUnit::Century => (years(parts, 100), part::CENTURY),
            TimeUnit::Millennium => (years(parts, 1000), part::MILLENNIUM),
            _ => return Err(DateTimeError::BadFormat),
        };
        in_range(done)?;
        Ok(mask)
    }

    fn word(&mut self, text: &str) -> Decoded<u32> {
        match interval_word(text) {
            Some(Word::Ignored) => {}
            Some(Word::Unit(unit)) => self.of = Of::Unit(unit),
            Some(Word::Ago) => {
                self.is_ago = true;
                self.of = Of::Invalid;
            }
            _ => return Err(DateTimeError::BadFormat),
        }
        Ok(0)
    }
}

/// Reads an interval in a form of ISO 8601. `None`: the sum is out of range.
pub fn decode_iso_interval(text: &str) -> Decoded<Option<Span>> {
    let mut rest = text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(DateTimeError::BadFormat)?;
    let mut parts = Parts::default();
    let (mut is_date, mut has_field) = (true, false);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (is_date, has_field, rest) = (false, false, after);
            continue;
        }
        let start = rest;
        let number = iso_number(&mut rest)?;
        let unit = rest.as_bytes().first().copied();
        if is_date {
            match unit {
                Some(b'Y') => number.years(&mut parts)?,
                Some(b'M') => number.months(&mut parts)?,
                Some(b'W') => number.weeks(&mut parts)?,
                Some(b'D') => number.days(&mut parts)?,
                None | Some(b'T') if integer_width(start) == 8 && !has_field => {
                    let whole = number.whole;
                    in_range(parts.add_years(whole / 10_000, 1))?;
                    in_range(parts.add_months(whole / 100 % 100))?;
                    in_range(parts.add_days(whole % 100, 1))?;
                    in_range(parts.add_fraction(number.fraction, MICROS_PER_DAY))?;
                    continue;
                }
                None | Some(b'T' | b'-') if !has_field => {
                    extended_date(&number, &mut rest, &mut parts)?;
                    continue;
                }
                _ => return Err(DateTimeError::BadFormat),
            }
        } else {
            match unit {
                Some(b'H') => number.clock(&mut parts, MICROS_PER_HOUR)?,
                Some(b'M') => number.clock(&mut parts, MICROS_PER_MINUTE)?,
                Some(b'S') => number.clock(&mut parts, MICROS_PER_SECOND)?,
                None if integer_width(start) == 6 && !has_field => {
                    let whole = number.whole;
                    in_range(parts.add_micros(whole / 10_000, 0.0, MICROS_PER_HOUR))?;
                    in_range(parts.add_micros(whole / 100 % 100, 0.0, MICROS_PER_MINUTE))?;
                    in_range(parts.add_micros(whole % 100, 0.0, MICROS_PER_SECOND))?;
                    in_range(parts.add_fraction(number.fraction, 1))?;
                    break;
                }
                None | Some(b':') if !has_field => {
                    extended_time(&number, &mut rest, &mut parts)?;
                    break;
                }
                _ => return Err(DateTimeError::BadFormat),
            }
        }
        rest = &rest[1..];
        has_field = true;
    }
    Ok(parts.span())
}

/// `years-months-days`, of which the last may be missing. The rest begins with the `T` of a time, or is empty.
fn extended_date(years: &IsoNumber, rest: &mut &str, parts: &mut Parts) -> Decoded<()> {
    years.years(parts)?;
    let steps: [fn(&IsoNumber, &mut Parts) -> Decoded<()>; 2] = [IsoNumber::months, IsoNumber::days];
    for step in steps {
        let Some(after) = rest.strip_prefix('-') else { break };
        *rest = after;
        step(&iso_number(rest)?, parts)?;
    }
    if rest.is_empty() || rest.starts_with('T') { Ok(()) } else { Err(DateTimeError::BadFormat) }
}

/// `hours:minutes:seconds`, of which the last may be missing.
fn extended_time(hours: &IsoNumber, rest: &mut &str, parts: &mut Parts) -> Decoded<()> {
    hours.clock(parts, MICROS_PER_HOUR)?;
    for scale in [MICROS_PER_MINUTE, MICROS_PER_SECOND] {
        let Some(after) = rest.strip_prefix(':') else { break };
        *rest = after;
        iso_number(rest)?.clock(parts, scale)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(DateTimeError::BadFormat) }
}

/// A number of an ISO 8601 interval.
struct IsoNumber {
    whole: i64,
    fraction: f64,
}

impl IsoNumber {
    fn years(&self, parts: &mut Parts) -> Decoded<()> {
        in_range(parts.add_years(self.whole, 1))?;
        in_range(parts.add_year_fraction(self.fraction, 1))
    }

    fn months(&self, parts: &mut Parts) -> Decoded<()> {
        in_range(parts.add_months(self.whole))?;
        in_range(parts.add_day_fraction(self.fraction, DAYS_PER_MONTH))
    }

    fn weeks(&self, parts: &mut Parts) -> Decoded<()> {
        in_range(parts.add_days(self.whole, DAYS_PER_WEEK))?;
        in_range(parts.add_day_fraction(self.fraction, DAYS_PER_WEEK.into()))
    }

    fn days(&self, parts: &mut Parts) -> Decoded<()> {
        in_range(parts.add_days(self.whole, 1))?;
        in_range(parts.add_fraction(self.fraction, MICROS_PER_DAY))
    }

    fn clock(&self, parts: &mut Parts, scale: i64) -> Decoded<()> {
        in_range(parts.add_micros(self.whole, self.fraction, scale))
    }
}

/// Reads a number as C's `strtod`, without hexadecimal digits.
fn iso_number(rest: &mut &str) -> Decoded<IsoNumber> {
    let text = *rest;
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let sign = text.len() - unsigned.len();
    if sign > 0
        && ["inf", "nan"].iter().any(|word| unsigned.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(word)))
    {
        return Err(DateTimeError::FieldOverflow);
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(unsigned);
    let mut length = whole;
    if unsigned[length..].starts_with('.') {
        length += 1 + digits(&unsigned[length + 1..]);
        if whole == 0 && length == 1 {
            return Err(DateTimeError::BadFormat);
        }
    }
    if length == 0 {
        return Err(DateTimeError::BadFormat);
    }
    if unsigned[length..].starts_with(['e', 'E']) {
        let after = &unsigned[length + 1..];
        let exponent = after.strip_prefix(['+', '-']).unwrap_or(after);
        let count = digits(exponent);
        if count > 0 {
            length += 1 + (after.len() - exponent.len()) + count;
        }
    }
    let number: f64 = text[..sign + length].parse().map_err(|_| DateTimeError::BadFormat)?;
    if number.is_infinite() {
        return Err(DateTimeError::BadFormat);
    }
    if number.abs() > ISO_NUMBER_MAX {
        return Err(DateTimeError::FieldOverflow);
    }
    *rest = &text[sign + length..];
    Ok(IsoNumber { whole: number.trunc() as i64, fraction: number.fract() })
}

/// Returns the number of digits at the beginning, behind a minus sign.
fn integer_width(text: &str) -> usize {
    let text = text.strip_prefix('-').unwrap_or(text);
    text.bytes().take_while(u8::is_ascii_digit).count()
}
