//! The proleptic Gregorian calendar by Julian day numbers, and readings of a clock.
//!
//! Year 0 is 1 BC, so years before Christ are zero or negative here; only texts say BC. The arithmetic is in 64 bits: readings of bad input are far outside the ranges of the types.

use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};

/// Julian days of 2000-01-01 and 1970-01-01.
pub const EPOCH_JULIAN: i64 = 2_451_545;
pub const UNIX_JULIAN: i64 = 2_440_588;

/// The Julian days after the last date and the last timestamp.
pub const DATE_END_JULIAN: i64 = 2_147_483_494;
pub const TIMESTAMP_END_JULIAN: i64 = 109_203_528;

pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The reading of a calendar and a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub year: i32,
    pub month: i32,
    pub day: i32,
    pub hour: i32,
    pub minute: i32,
    pub second: i32,
    pub micros: i32,
}

impl Reading {
    /// Returns the midnight of a date.
    pub fn of_date(year: i32, month: i32, day: i32) -> Reading {
        Reading { year, month, day, ..Reading::default() }
    }

    pub fn of_julian(julian: i64) -> Reading {
        let (year, month, day) = date_of_julian(julian);
        Reading::of_date(year, month, day)
    }

    /// Returns the reading at microseconds since 2000-01-01 of the clock itself.
    pub fn of_micros(micros: i64) -> Reading {
        let mut reading = Reading::of_julian(micros.div_euclid(MICROS_PER_DAY) + EPOCH_JULIAN);
        reading.set_clock(micros.rem_euclid(MICROS_PER_DAY));
        reading
    }

    pub fn set_date(&mut self, julian: i64) {
        (self.year, self.month, self.day) = date_of_julian(julian);
    }

    /// Sets the clock to a time in microseconds since midnight.
    pub fn set_clock(&mut self, micros: i64) {
        self.hour = (micros / MICROS_PER_HOUR) as i32;
        self.minute = (micros % MICROS_PER_HOUR / MICROS_PER_MINUTE) as i32;
        self.second = (micros % MICROS_PER_MINUTE / MICROS_PER_SECOND) as i32;
        self.micros = (micros % MICROS_PER_SECOND) as i32;
    }

    pub fn julian(&self) -> i64 {
        julian_of_date(self.year.into(), self.month.into(), self.day.into())
    }

    /// Returns the microseconds since midnight.
    pub fn clock(&self) -> i64 {
        let minutes = i64::from(self.hour) * 60 + i64::from(self.minute);
        (minutes * 60 + i64::from(self.second)) * MICROS_PER_SECOND + i64::from(self.micros)
    }

    /// Returns the microseconds since 2000-01-01 of the clock itself; `None` out of the range of 64 bits.
    pub fn micros_since_epoch(&self) -> Option<i64> {
        if !self.has_julian() {
            return None;
        }
        (self.julian() - EPOCH_JULIAN).checked_mul(MICROS_PER_DAY)?.checked_add(self.clock())
    }

    /// Returns whether the date has a Julian day in the range of the type date, or close to it.
    pub fn has_julian(&self) -> bool {
        let is_late = self.year > -4713 || (self.year == -4713 && self.month >= 11);
        is_late && (self.year < 5_874_898 || (self.year == 5_874_898 && self.month < 6))
    }

    /// Returns whether the clock shows a time beyond 24:00:00 or a part out of its range.
    pub fn clock_overflows(&self) -> bool {
        let is_clock = (0..=24).contains(&self.hour)
            && (0..=59).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && (0..=1_000_000).contains(&self.micros);
        !is_clock || self.clock() > MICROS_PER_DAY
    }

    pub fn day_of_year(&self) -> i64 {
        self.julian() - julian_of_date(self.year.into(), 1, 1) + 1
    }

    /// Sunday is 0.
    pub fn weekday(&self) -> i64 {
        weekday(self.julian())
    }

    /// The year as it is written, before BC if it is not positive.
    pub fn shown_year(&self) -> i64 {
        if self.year > 0 { self.year.into() } else { 1 - i64::from(self.year) }
    }
}

/// Returns the Julian day of a date. Months from 1; a day may be any number.
pub fn julian_of_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year + 4800, month + 1) } else { (year + 4799, month + 13) };
    let century = year / 100;
    year * 365 - 32_167 + year / 4 - century + century / 4 + 7834 * month / 256 + day
}

/// Returns the date of a Julian day. Days before 0, of which the types have none, count from -4713-11-24 as if they were unsigned numbers of 32 bits.
pub fn date_of_julian(julian: i64) -> (i32, i32, i32) {
    let mut julian = (julian as u32).wrapping_add(32_044);
    let cycles = julian / 146_097;
    let extra = (julian - cycles * 146_097) * 4 + 3;
    julian = julian.wrapping_add(60 + cycles * 3 + extra / 146_097);
    let quad = julian / 1461;
    julian -= quad * 1461;
    let mut year = julian * 4 / 1461;
    julian = if year != 0 { (julian + 305) % 365 } else { (julian + 306) % 366 } + 123;
    year += quad * 4;
    let quad = julian * 2141 / 65_536;
    let day = julian - 7834 * quad / 256;
    (year as i32 - 4800, ((quad + 10) % 12 + 1) as i32, day as i32)
}

/// Returns the weekday of a Julian day; Sunday is 0.
pub fn weekday(julian: i64) -> i64 {
    (julian + 1).rem_euclid(7)
}

pub fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the number of days of a month from 1 to 12.
pub fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i32::from(is_leap(year)),
        _ => 31,
    }
}

/// Returns the Julian day of the Monday of a week of an ISO year.
pub fn julian_of_iso_week(year: i64, week: i64) -> i64 {
    let fourth = wrapped(julian_of_date(year, 1, 4));
    wrapped((week - 1) * 7 + (fourth - weekday(wrapped(fourth - 1))))
}

/// Returns a day in the 32 bits that days have on the real server.
fn wrapped(day: i64) -> i64 {
    i64::from(day as i32)
}

/// Returns the year and the week of ISO 8601 that a day is in. An interval's fields may be taken for a date, so the day may be far from its year and beyond 32 bits.
pub fn iso_week(reading: &Reading) -> (i64, i64) {
    let first_day = |year: i64| julian_of_iso_week(year, 1);
    let day = wrapped(reading.julian());
    let mut year = i64::from(reading.year);
    let mut first = first_day(year);
    if day < first {
        year -= 1;
        first = first_day(year);
    }
    let week = wrapped(day - first) / 7 + 1;
    let next = first_day(i64::from(reading.year) + 1);
    if week >= 52 && day >= next { (year + 1, wrapped(day - next) / 7 + 1) } else { (year, week) }
}

/// Returns the day of the ISO year.
pub fn iso_year_day(reading: &Reading) -> i64 {
    wrapped(reading.julian() - julian_of_iso_week(iso_week(reading).0, 1) + 1)
}
