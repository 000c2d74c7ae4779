//! Dates, readings and instants as numbers since 2000-01-01.
//!
//! One dialect stores them so, another as fields; tables of both are read by both. A date that does not exist, the zero
//! date among them, has no number.

use super::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, Timestamp, day_number, from_day_number};

/// The first day.
const FIRST: Date = Date { year: 2000, month: 1, day: 1 };
/// Seconds from 1970-01-01 to the first day, in UTC.
const UNIX_SECONDS: i64 = 10_957 * 86_400;

impl Date {
    /// Returns the number of days, or None for a date that does not exist.
    pub fn days_since_2000(self) -> Option<i64> {
        self.is_real().then(|| day_number(self) - day_number(FIRST))
    }

    /// Returns the date, or None beyond the years 0 to 9999.
    pub fn from_days_since_2000(days: i64) -> Option<Date> {
        from_day_number(days.checked_add(day_number(FIRST))?)
    }
}

impl DateTime {
    /// Returns the number of microseconds, or None if the date does not exist.
    pub fn micros_since_2000(self) -> Option<i64> {
        Some(self.date.days_since_2000()? * MICROS_PER_DAY + self.micros_of_day())
    }

    /// Returns the reading, or None beyond the years 0 to 9999.
    pub fn from_micros_since_2000(micros: i64) -> Option<DateTime> {
        let date = Date::from_days_since_2000(micros.div_euclid(MICROS_PER_DAY))?;
        Some(DateTime::new(date, micros.rem_euclid(MICROS_PER_DAY)))
    }
}

impl Timestamp {
    /// Returns the number of microseconds, or None for the zero date.
    pub fn micros_since_2000(self) -> Option<i64> {
        match self.is_zero() {
            true => None,
            false => self.0.checked_sub(UNIX_SECONDS * MICROS_PER_SECOND),
        }
    }

    /// Returns the instant, or None if it is out of the range of the numbers. The caller checks its own range.
    pub fn from_micros_since_2000(micros: i64) -> Option<Timestamp> {
        micros.checked_add(UNIX_SECONDS * MICROS_PER_SECOND).map(Timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_and_its_number_lead_to_each_other() {
        assert_eq!(FIRST.days_since_2000(), Some(0));
        assert_eq!(Date::new(1999, 12, 31).days_since_2000(), Some(-1));
        assert_eq!(Date::new(1970, 1, 1).days_since_2000().map(|days| days * 86_400), Some(-UNIX_SECONDS));
        for days in [-730_119, -1, 0, 1, 59, 60, 365, 36_525, 2_921_939] {
            let date = Date::from_days_since_2000(days).unwrap();
            assert_eq!(date.days_since_2000(), Some(days), "{date:?}");
        }
        assert_eq!(Date::from_days_since_2000(2_921_939), Some(Date::new(9999, 12, 31)));
        assert_eq!(Date::from_days_since_2000(2_921_940), None);
        for missing in [Date::ZERO, Date::new(2001, 0, 1), Date::new(2001, 2, 29)] {
            assert_eq!(missing.days_since_2000(), None);
        }
    }

    #[test]
    fn readings_and_instants_keep_their_microseconds() {
        for micros in [-1, 0, 1, MICROS_PER_DAY - 1, -MICROS_PER_DAY, 252_455_615_999_999_999] {
            let reading = DateTime::from_micros_since_2000(micros).unwrap();
            assert_eq!(reading.micros_since_2000(), Some(micros));
            assert_eq!(Timestamp::from_micros_since_2000(micros).unwrap().micros_since_2000(), Some(micros));
        }
        assert_eq!(DateTime::from_micros_since_2000(i64::MAX), None);
        assert_eq!(DateTime::from_micros_since_2000(i64::MIN), None);
        assert_eq!(DateTime::ZERO.micros_since_2000(), None);
        assert_eq!(Timestamp::ZERO.micros_since_2000(), None);
    }
}
