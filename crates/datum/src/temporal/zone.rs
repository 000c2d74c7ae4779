//! Time zones: from an instant to the reading of a wall clock, and back.
//!
//! The rules of named zones come from the tz database of the machine, through `jiff`. The hard part is the way back: a reading can occur twice, when clocks
//! are put back, or never, when they are put forward.

use jiff::tz::{AmbiguousOffset, TimeZone};

use super::{DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, Timestamp, calendar};
use crate::fault::{Fault, Result};

/// Day number (`calendar::day_number`) of 1970-01-01.
const EPOCH_DAY: i64 = 719_528;

/// A rule that gives the offset from UTC at any instant. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Zone(Rule);

#[derive(Clone, Debug)]
enum Rule {
    /// Seconds east of UTC.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    pub fn utc() -> Zone {
        Zone::fixed(0)
    }

    /// Always the same distance from UTC, in seconds to the east.
    pub fn fixed(seconds: i64) -> Zone {
        Zone(Rule::Fixed(seconds))
    }

    /// The zone that the machine is configured with.
    pub fn system() -> Zone {
        Zone(Rule::Named(TimeZone::system()))
    }

    /// A zone of the tz database, `Europe/Berlin`, in any case. `Fault::InvalidZone` for an unknown name.
    pub fn named(name: &str) -> Result<Zone> {
        TimeZone::get(name).map(|zone| Zone(Rule::Named(zone))).map_err(|_| Fault::InvalidZone(name.into()))
    }

    /// Seconds east of UTC at an instant in seconds since 1970.
    fn offset_at(&self, second: i64) -> i64 {
        match &self.0 {
            Rule::Fixed(seconds) => *seconds,
            Rule::Named(zone) => {
                jiff::Timestamp::from_second(second).map_or(0, |at| zone.to_offset(at).seconds().into())
            }
        }
    }

    /// Returns the reading of the zone's clock at an instant. `Timestamp::ZERO` gives the zero date; so does an instant outside the years 0 to 9999.
    pub fn local(&self, timestamp: Timestamp) -> DateTime {
        if timestamp.is_zero() {
            return DateTime::ZERO;
        }
        let second = timestamp.0.div_euclid(MICROS_PER_SECOND);
        from_epoch_micros(timestamp.0.saturating_add(self.offset_at(second) * MICROS_PER_SECOND))
    }

    /// Returns the instant at which the zone's clock shows a reading: the earlier of two, and for a reading that is skipped the moment at which the
    /// clock is put forward. `None` where the reading is not a real date, or out of range of the tz database.
    pub fn instant(&self, reading: DateTime) -> Option<Timestamp> {
        if !reading.date.is_real() {
            return None;
        }
        let naive = epoch_micros(reading);
        let offset = match &self.0 {
            Rule::Fixed(seconds) => *seconds,
            Rule::Named(zone) => {
                let (hour, minute, second, _) = reading.clock();
                let date = reading.date;
                let civil = jiff::civil::DateTime::new(
                    date.year as i16,
                    date.month as i8,
                    date.day as i8,
                    hour as i8,
                    minute as i8,
                    second as i8,
                    0,
                )
                .ok()?;
                match zone.to_ambiguous_timestamp(civil).offset() {
                    AmbiguousOffset::Unambiguous { offset } => offset.seconds().into(),
                    AmbiguousOffset::Fold { before, .. } => before.seconds().into(),
                    AmbiguousOffset::Gap { before, .. } => {
                        let guess = naive.div_euclid(MICROS_PER_SECOND) - i64::from(before.seconds());
                        let start = zone.preceding(jiff::Timestamp::from_second(guess + 1).ok()?).next()?;
                        return Some(Timestamp(start.timestamp().as_microsecond()));
                    }
                }
            }
        };
        Some(Timestamp(naive - offset * MICROS_PER_SECOND))
    }
}

/// Microseconds from 1970 to the reading of a clock in UTC.
fn epoch_micros(reading: DateTime) -> i64 {
    (calendar::day_number(reading.date) - EPOCH_DAY) * MICROS_PER_DAY + reading.micros_of_day()
}

fn from_epoch_micros(micros: i64) -> DateTime {
    DateTime::from_linear(micros.saturating_add(EPOCH_DAY * MICROS_PER_DAY)).unwrap_or(DateTime::ZERO)
}
