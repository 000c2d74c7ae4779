//! The units of INTERVAL, and the numbers that are written before them.

use datum::Decimal;
use datum::temporal::{Interval, MICROS_PER_DAY, MICROS_PER_SECOND};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

const UNITS: &[(&str, Unit)] = &[
    ("MICROSECOND", Unit::Microsecond),
    ("SECOND", Unit::Second),
    ("MINUTE", Unit::Minute),
    ("HOUR", Unit::Hour),
    ("DAY", Unit::Day),
    ("WEEK", Unit::Week),
    ("MONTH", Unit::Month),
    ("QUARTER", Unit::Quarter),
    ("YEAR", Unit::Year),
    ("SECOND_MICROSECOND", Unit::SecondMicrosecond),
    ("MINUTE_MICROSECOND", Unit::MinuteMicrosecond),
    ("MINUTE_SECOND", Unit::MinuteSecond),
    ("HOUR_MICROSECOND", Unit::HourMicrosecond),
    ("HOUR_SECOND", Unit::HourSecond),
    ("HOUR_MINUTE", Unit::HourMinute),
    ("DAY_MICROSECOND", Unit::DayMicrosecond),
    ("DAY_SECOND", Unit::DaySecond),
    ("DAY_MINUTE", Unit::DayMinute),
    ("DAY_HOUR", Unit::DayHour),
    ("YEAR_MONTH", Unit::YearMonth),
];

impl Unit {
    /// Returns the unit of that name, with or without the prefix SQL_TSI_ that TIMESTAMPADD allows.
    pub fn parse(name: &str) -> Option<Unit> {
        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix("SQL_TSI_").unwrap_or(&name);
        UNITS.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
    }

    /// Returns the unit of which `self as u8` is this number.
    pub fn from_number(number: u8) -> Option<Unit> {
        UNITS.iter().find(|(_, unit)| *unit as u8 == number).map(|(_, unit)| *unit)
    }

    pub fn name(self) -> &'static str {
        UNITS.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Changes nothing below the day.
    pub fn is_date_only(self) -> bool {
        matches!(self, Unit::Day | Unit::Week | Unit::Month | Unit::Quarter | Unit::Year | Unit::YearMonth)
    }

    pub fn has_micros(self) -> bool {
        matches!(
            self,
            Unit::Microsecond
                | Unit::SecondMicrosecond
                | Unit::MinuteMicrosecond
                | Unit::HourMicrosecond
                | Unit::DayMicrosecond
        )
    }

    /// Of the units made of several: what each number is worth in microseconds, largest first; months for YEAR_MONTH.
    fn parts(self) -> Option<&'static [i64]> {
        const S: i64 = MICROS_PER_SECOND;
        Some(match self {
            Unit::SecondMicrosecond => &[S, 1],
            Unit::MinuteMicrosecond => &[60 * S, S, 1],
            Unit::MinuteSecond => &[60 * S, S],
            Unit::HourMicrosecond => &[3600 * S, 60 * S, S, 1],
            Unit::HourSecond => &[3600 * S, 60 * S, S],
            Unit::HourMinute => &[3600 * S, 60 * S],
            Unit::DayMicrosecond => &[MICROS_PER_DAY, 3600 * S, 60 * S, S, 1],
            Unit::DaySecond => &[MICROS_PER_DAY, 3600 * S, 60 * S, S],
            Unit::DayMinute => &[MICROS_PER_DAY, 3600 * S, 60 * S],
            Unit::DayHour => &[MICROS_PER_DAY, 3600 * S],
            Unit::YearMonth => &[12, 1],
            _ => return None,
        })
    }

    /// Returns whether the unit's amount is a text of several numbers.
    pub fn is_composite(self) -> bool {
        self.parts().is_some()
    }
}

impl Unit {
    /// Of a unit with one number. Fractions count for seconds only; others round. `None` if it is too long for any date.
    pub fn simple(self, number: &Decimal) -> Option<Interval> {
        if self == Unit::Second {
            let micros = number.rounded(6).small()?;
            return Some(Interval::micros(i64::try_from(micros).ok()?));
        }
        let number = i64::try_from(number.to_whole()).ok()?;
        let months = |each: i64| Some(Interval::months(number.checked_mul(each)?));
        let micros = |each: i64| Some(Interval::micros(number.checked_mul(each)?));
        match self {
            Unit::Year => months(12),
            Unit::Quarter => months(3),
            Unit::Month => months(1),
            Unit::Week => micros(7 * MICROS_PER_DAY),
            Unit::Day => micros(MICROS_PER_DAY),
            Unit::Hour => micros(3600 * MICROS_PER_SECOND),
            Unit::Minute => micros(60 * MICROS_PER_SECOND),
            _ => micros(1),
        }
    }

    /// Of a unit with several numbers, which may be separated by anything; missing ones are missing at the front.
    pub fn composite(self, text: &str) -> Option<Interval> {
        let parts = self.parts()?;
        let text = text.trim_start();
        let negative = text.starts_with('-');
        let mut numbers: Vec<i64> = Vec::new();
        let mut width = 0;
        for run in text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty()).take(parts.len()) {
            numbers.push(run.parse().ok()?);
            width = run.len();
        }
        if self.has_micros() && width < 6 && numbers.len() > 1 {
            // The last number is a fraction: .5 is half a second.
            *numbers.last_mut()? *= 10i64.pow(6 - width as u32);
        }
        let worth = &parts[parts.len() - numbers.len()..];
        let size = numbers.iter().zip(worth).try_fold(0i64, |sum, (n, each)| sum.checked_add(n.checked_mul(*each)?))?;
        let size = if negative { -size } else { size };
        Some(if self == Unit::YearMonth { Interval::months(size) } else { Interval::micros(size) })
    }
}
