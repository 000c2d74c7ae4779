//! The proleptic Gregorian calendar from year 0 to 9999: day numbers, weekdays, weeks.
//!
//! Day numbers and weeks follow `my_time.cc` of MySQL (`calc_daynr`, `calc_week`), where year 0 is not a leap year.

use super::Date;

impl Date {
    /// True for a day of the calendar.
    pub fn is_real(self) -> bool {
        (1..=12).contains(&self.month) && (1..=days_in_month(self.year, self.month)).contains(&self.day)
    }
}

/// Returns the number of days of a month; 0 for a month outside 1 to 12.
pub fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 0,
    }
}

/// Year 0 is not a leap year.
pub fn is_leap(year: u16) -> bool {
    year != 0 && year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Returns the number of days since year 0. Months and days that are zero or beyond their range count on from the nearest real day.
pub fn day_number(date: Date) -> i64 {
    let (year, month, day) = (i64::from(date.year), i64::from(date.month), i64::from(date.day));
    if year == 0 && month == 0 {
        return 0;
    }
    let mut days = 365 * year + 31 * (month - 1) + day;
    let mut leap_year = year;
    if month <= 2 {
        leap_year -= 1;
    } else {
        days -= (month * 4 + 23) / 10;
    }
    days + leap_year / 4 - (leap_year / 100 + 1) * 3 / 4
}

/// Returns the day with a number; `None` outside the years 0 to 9999, of which the first has no numbers either.
pub fn from_day_number(number: i64) -> Option<Date> {
    if !(366..=3_652_424).contains(&number) {
        return None;
    }
    let mut year = number * 100 / 36_525;
    let leaps = ((year - 1) / 100 + 1) * 3 / 4;
    year = (number + leaps) * 100 / 36_525;
    let leaps = ((year - 1) / 100 + 1) * 3 / 4;
    let mut day = number - year * 365 - (year - 1) / 4 + leaps;
    let mut year = year as u16;
    let length = |year| if is_leap(year) { 366 } else { 365 };
    while day > length(year) {
        day -= length(year);
        year += 1;
    }
    while day <= 0 {
        year -= 1;
        day += length(year);
    }
    let mut month = 1;
    while day > i64::from(days_in_month(year, month)) {
        day -= i64::from(days_in_month(year, month));
        month += 1;
    }
    Some(Date::new(year, month, day as u8))
}

/// Returns the weekday of a day number; Monday is 0.
pub fn weekday(number: i64) -> i64 {
    (number + 5).rem_euclid(7)
}

/// Returns the weekday of a day number; Sunday is 0.
pub fn weekday_from_sunday(number: i64) -> i64 {
    (number + 6).rem_euclid(7)
}

/// How weeks of a year are counted.
#[derive(Clone, Copy, Debug)]
pub struct WeekMode {
    pub monday_first: bool,
    /// True: weeks count from 1, and days before the first week belong to the year before. False: those days are in week 0.
    pub year: bool,
    /// True: the first week is the first that begins in the year. False: the first with four days in it, as in ISO 8601.
    pub first_weekday: bool,
}

impl WeekMode {
    /// From the three bits of the mode that MySQL numbers: Monday first (1), weeks from 1 (2), first weekday (4).
    pub fn new(mode: i64) -> WeekMode {
        let monday_first = mode & 1 != 0;
        // In modes that begin with Sunday the third bit is inverted.
        WeekMode { monday_first, year: mode & 2 != 0, first_weekday: (mode & 4 != 0) == monday_first }
    }
}

/// Returns the week of a date and the year that the week belongs to.
pub fn week(date: Date, mode: WeekMode) -> (i64, i64) {
    let mut year = i64::from(date.year);
    let number = day_number(date);
    let mut first = day_number(Date::new(date.year, 1, 1));
    let mut weekday = if mode.monday_first { weekday(first) } else { weekday_from_sunday(first) };
    let mut week_year = mode.year;
    let length = |year: i64| if year >= 0 && is_leap(year as u16) { 366 } else { 365 };
    let starts_late = |weekday: i64| if mode.first_weekday { weekday != 0 } else { weekday >= 4 };
    if date.month == 1 && i64::from(date.day) <= 7 - weekday {
        if !week_year && starts_late(weekday) {
            return (0, year);
        }
        week_year = true;
        year -= 1;
        let days = length(year);
        first -= days;
        weekday = (weekday + 53 * 7 - days) % 7;
    }
    let days = if starts_late(weekday) { number - (first + 7 - weekday) } else { number - (first - weekday) };
    if week_year && days >= 52 * 7 {
        weekday = (weekday + length(year)) % 7;
        if !starts_late(weekday) {
            return (1, year + 1);
        }
    }
    (days / 7 + 1, year)
}
