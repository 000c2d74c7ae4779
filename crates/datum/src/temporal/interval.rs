//! A length of time that is added to a date: whole months, whose days differ, and microseconds, which do not.

use super::{DateTime, MICROS_PER_DAY};

/// Either part may be negative. Months and microseconds are kept apart because a month has no fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    pub months: i64,
    pub micros: i64,
}

impl Interval {
    pub fn months(months: i64) -> Interval {
        Interval { months, micros: 0 }
    }

    pub fn micros(micros: i64) -> Interval {
        Interval { months: 0, micros }
    }

    /// Saturates: an interval at the limit leads out of the calendar anyhow.
    #[must_use]
    pub fn negated(self) -> Interval {
        Interval { months: self.months.saturating_neg(), micros: self.micros.saturating_neg() }
    }

    /// Adds months, or microseconds where there are no months. `None` for a result outside the years 0 to 9999. The time of day stays as it is where
    /// whole months or days are added, so a date with a zero month or day can be moved by them.
    pub fn added_to(self, start: DateTime) -> Option<DateTime> {
        if self.months != 0 {
            let date = start.date.plus_months(self.months)?;
            return Some(DateTime::new(date, start.micros_of_day()));
        }
        if self.micros % MICROS_PER_DAY == 0 {
            let date = start.date.plus_days(self.micros / MICROS_PER_DAY)?;
            return Some(DateTime::new(date, start.micros_of_day()));
        }
        start.plus_micros(self.micros)
    }
}
