//! Arithmetic on readings of a clock: sums, differences, rounding of fractions. A result outside the years 0 to 9999 is `None`.

use super::{Date, DateTime, MICROS_PER_DAY, calendar};

/// How digits of the fraction beyond a type's precision are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest; halves away from zero.
    Nearest,
    /// Toward zero.
    Truncate,
}

impl DateTime {
    /// Returns the microseconds since the start of year 0. The difference of two is the time between two readings.
    pub fn linear(self) -> i64 {
        calendar::day_number(self.date) * MICROS_PER_DAY + self.micros_of_day()
    }

    pub fn from_linear(micros: i64) -> Option<DateTime> {
        let date = calendar::from_day_number(micros.div_euclid(MICROS_PER_DAY))?;
        Some(DateTime::new(date, micros.rem_euclid(MICROS_PER_DAY)))
    }

    pub fn plus_micros(self, micros: i64) -> Option<DateTime> {
        DateTime::from_linear(self.linear().checked_add(micros)?)
    }

    /// Rounds to `scale` digits of the fraction, halves up.
    pub fn rounded(self, scale: u8) -> Option<DateTime> {
        let unit = 10i64.pow(6 - u32::from(scale.min(6)));
        let rest = self.micros_of_day() % unit;
        let cut = self.truncated(scale);
        if rest * 2 < unit || unit == 1 {
            return Some(cut);
        }
        let raised = cut.micros_of_day() + unit;
        if raised < MICROS_PER_DAY { Some(DateTime::new(self.date, raised)) } else { cut.plus_micros(unit) }
    }

    /// Reduces the fraction to `scale` digits. `None` where rounding leads beyond the year 9999.
    pub fn fitted(self, scale: u8, rounding: Rounding) -> Option<DateTime> {
        match rounding {
            Rounding::Nearest => self.rounded(scale),
            Rounding::Truncate => Some(self.truncated(scale)),
        }
    }

    /// Adds less than a second's microseconds, as the fraction behind a reading of whole seconds; a whole second carries.
    pub fn plus_fraction(self, micros: i64) -> Option<DateTime> {
        let sum = self.micros_of_day() + micros;
        if (0..MICROS_PER_DAY).contains(&sum) { Some(DateTime::new(self.date, sum)) } else { self.plus_micros(micros) }
    }

    #[must_use]
    pub fn truncated(self, scale: u8) -> DateTime {
        let unit = 10i64.pow(6 - u32::from(scale.min(6)));
        DateTime::new(self.date, self.micros_of_day() / unit * unit)
    }
}

impl Date {
    pub fn plus_days(self, days: i64) -> Option<Date> {
        calendar::from_day_number(calendar::day_number(self).checked_add(days)?)
    }

    /// Returns the same day of the month some months later, or the last day of that month where it is shorter.
    pub fn plus_months(self, months: i64) -> Option<Date> {
        let period = (i64::from(self.year) * 12 + i64::from(self.month) - 1).checked_add(months)?;
        if !(0..120_000).contains(&period) {
            return None;
        }
        let (year, month) = ((period / 12) as u16, (period % 12 + 1) as u8);
        Some(Date::new(year, month, self.day.min(calendar::days_in_month(year, month))))
    }
}

impl super::Time {
    /// Rounds to `scale` digits of the fraction, halves away from zero, and clamps to the range.
    #[must_use]
    pub fn rounded(self, scale: u8) -> super::Time {
        let unit = 10i64.pow(6 - u32::from(scale.min(6)));
        let rest = self.0 % unit;
        let step = if rest.abs() * 2 >= unit && unit > 1 { unit * rest.signum() } else { 0 };
        super::Time::from_micros(self.0 - rest + step)
    }

    /// Reduces the fraction to `scale` digits.
    #[must_use]
    pub fn fitted(self, scale: u8, rounding: Rounding) -> super::Time {
        match rounding {
            Rounding::Nearest => self.rounded(scale),
            Rounding::Truncate => self.truncated(scale),
        }
    }

    #[must_use]
    pub fn truncated(self, scale: u8) -> super::Time {
        let unit = 10i64.pow(6 - u32::from(scale.min(6)));
        super::Time(self.0 / unit * unit)
    }
}
