//! Time zones: from a point in time to a wall clock's reading and back.

use jiff::tz::{self, TimeZone};

use super::{DateTime, MICROS_PER_SECOND, Timestamp, calendar};
use crate::error::{self, Result};

/// Days from year 0 to 1970.
const EPOCH_DAY: i64 = 719_528;

#[derive(Clone, Debug)]
pub struct Zone {
    name: Box<str>,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Seconds east of UTC.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    pub fn utc() -> Zone {
        Zone { name: "UTC".into(), rule: Rule::Fixed(0) }
    }

    /// The machine's own zone: MySQL's SYSTEM.
    pub fn system() -> Zone {
        Zone { name: "SYSTEM".into(), rule: Rule::Named(TimeZone::system()) }
    }

    /// As SET time_zone takes it: `+05:30`, `Europe/Berlin`, `SYSTEM`; error 1298.
    pub fn parse(name: &str) -> Result<Zone> {
        let unknown = || error::UNKNOWN_TIME_ZONE.with(&[&name]);
        if name.eq_ignore_ascii_case("SYSTEM") {
            return Ok(Zone::system());
        }
        if name.starts_with(['+', '-']) {
            let seconds = parse_offset(name).ok_or_else(unknown)?;
            return Ok(Zone { name: name.into(), rule: Rule::Fixed(seconds) });
        }
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Zone::utc());
        }
        let zone = TimeZone::get(name).map_err(|_| unknown())?;
        let name = zone.iana_name().unwrap_or(name).into();
        Ok(Zone { name, rule: Rule::Named(zone) })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn offset_at(&self, second: i64) -> i64 {
        match &self.rule {
            Rule::Fixed(seconds) => *seconds,
            Rule::Named(zone) => {
                jiff::Timestamp::from_second(second).map_or(0, |at| zone.to_offset(at).seconds().into())
            }
        }
    }

    /// What the clock shows at that time.
    pub fn local(&self, timestamp: Timestamp) -> DateTime {
        if timestamp.is_zero() {
            return DateTime::ZERO;
        }
        let second = timestamp.0.div_euclid(MICROS_PER_SECOND);
        from_epoch_micros(timestamp.0.saturating_add(self.offset_at(second) * MICROS_PER_SECOND))
    }

    /// When the clock shows that: of two times the earlier; of none (the hour left out in spring) the moment the clock is put forward, as MySQL answers.
    /// `None` where the reading is no date of the calendar or the time lies outside TIMESTAMP's range.
    pub fn timestamp(&self, reading: DateTime) -> Option<Timestamp> {
        let timestamp = self.instant(reading)?;
        (1..=Timestamp::MAX.0).contains(&timestamp.0).then_some(timestamp)
    }

    /// As `timestamp`, of any year.
    pub fn instant(&self, reading: DateTime) -> Option<Timestamp> {
        if !reading.date.is_real() {
            return None;
        }
        let naive = epoch_micros(reading);
        let offset = match &self.rule {
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
                    tz::AmbiguousOffset::Unambiguous { offset } => offset.seconds().into(),
                    tz::AmbiguousOffset::Fold { before, .. } => before.seconds().into(),
                    tz::AmbiguousOffset::Gap { before, .. } => {
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

/// `+HH:MM` between -13:59 and +14:00, in seconds.
fn parse_offset(text: &str) -> Option<i64> {
    let (hours, minutes) = text[1..].split_once(':')?;
    if hours.is_empty() || hours.len() > 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = hours * 3600 + minutes * 60;
    let seconds = if text.starts_with('-') { -seconds } else { seconds };
    (minutes < 60 && (-(13 * 3600 + 59 * 60)..=14 * 3600).contains(&seconds)).then_some(seconds)
}

/// Microseconds from 1970 to the reading of a clock in UTC.
fn epoch_micros(reading: DateTime) -> i64 {
    (calendar::day_number(reading.date) - EPOCH_DAY) * super::MICROS_PER_DAY + reading.micros_of_day()
}

fn from_epoch_micros(micros: i64) -> DateTime {
    DateTime::from_linear(micros.saturating_add(EPOCH_DAY * super::MICROS_PER_DAY)).unwrap_or(DateTime::ZERO)
}
