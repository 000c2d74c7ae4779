//! Time zones by PostgreSQL's rules: names of the tz database in any case, POSIX rules such as `EST5EDT`, fixed offsets, abbreviations.
//!
//! The rules come from the tz database of the machine. The hard part is the way from a reading to an instant: in the hour that a clock skips the offset before the change holds, in the hour that occurs twice the one after it. Beyond the year 9000 a zone
//! repeats itself every 400 years, the cycle of the calendar, because the tz library ends at 9999.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::abbreviations::{self, Meaning};
use super::calendar::{Reading, UNIX_JULIAN};
use super::posix::{PosixRule, PosixZone};
use super::{EPOCH_SECONDS, MICROS_PER_SECOND};

/// 400 years in seconds and in years.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
const CYCLE_YEARS: i32 = 400;
/// 9000-01-01 in seconds since 1970.
const CYCLE_FROM: i64 = 221_845_392_000;
/// Transitions of a zone that are searched for an abbreviation.
const TRANSITIONS_MAX: usize = 2000;
const NAME_BYTES_MAX: usize = 255;

/// A time zone. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PgZone {
    /// As `SHOW TimeZone` has it.
    name: Arc<str>,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Seconds east of UTC, and the abbreviation.
    Fixed(i32, Arc<str>),
    Named(TimeZone),
    /// A POSIX rule with summer time.
    Posix(Arc<PosixRule>),
}

/// A zone's clock at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalOffset {
    /// Seconds east of UTC.
    pub seconds: i32,
    pub is_summer: bool,
    pub abbreviation: Box<str>,
}

/// The meaning of a time zone in a text, once the text has been looked up.
#[derive(Clone, Debug)]
pub enum NamedZone {
    /// An abbreviation with a fixed offset, in seconds east of UTC.
    Offset(i32),
    /// An abbreviation whose offset depends on the history of a zone.
    Dynamic(Box<str>, PgZone),
    Zone(PgZone),
}

impl Default for PgZone {
    fn default() -> PgZone {
        PgZone::utc()
    }
}

impl PartialEq for PgZone {
    fn eq(&self, other: &PgZone) -> bool {
        self.name == other.name
    }
}

impl PgZone {
    pub fn utc() -> PgZone {
        PgZone { name: "UTC".into(), rule: Rule::Fixed(0, "UTC".into()) }
    }

    /// Returns the zone of a name of the tz database in any case, or of a POSIX rule; `None` for an unknown name.
    pub fn named(name: &str) -> Option<PgZone> {
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        if let Some(zone) = of_database(name) {
            return Some(zone);
        }
        let upper = name.to_ascii_uppercase();
        let rule = match PosixZone::parse(&upper)? {
            PosixZone::Fixed(seconds, abbreviation) => Rule::Fixed(seconds, abbreviation.into()),
            PosixZone::Changing(rule) => Rule::Posix(rule.into()),
        };
        Some(PgZone { name: upper.into(), rule })
    }

    /// Returns the zone of `SET TIME ZONE -8`: always the same offset, in seconds east of UTC.
    pub fn fixed(seconds: i32) -> PgZone {
        let west = -i64::from(seconds);
        let (hours, minutes, rest) = (west.abs() / 3600, west.abs() / 60 % 60, west.abs() % 60);
        let mut digits = format!("{hours:02}");
        if minutes != 0 || rest != 0 {
            digits.push_str(&format!(":{minutes:02}"));
        }
        if rest != 0 {
            digits.push_str(&format!(":{rest:02}"));
        }
        let (abbreviation, name) = if west > 0 {
            (format!("-{digits}"), format!("<-{digits}>+{digits}"))
        } else {
            (format!("+{digits}"), format!("<+{digits}>-{digits}"))
        };
        PgZone { name: name.into(), rule: Rule::Fixed(seconds, abbreviation.into()) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the offset in seconds east of UTC at an instant in microseconds since 2000-01-01 UTC.
    pub fn offset_at(&self, micros: i64) -> i32 {
        let second = micros.div_euclid(MICROS_PER_SECOND) + EPOCH_SECONDS;
        match &self.rule {
            Rule::Fixed(seconds, _) => *seconds,
            Rule::Named(zone) => timestamp(second).map_or(0, |at| zone.to_offset(at).seconds()),
            Rule::Posix(rule) => rule.offset(rule.is_summer_at(second)),
        }
    }

    /// Returns the offset with its abbreviation.
    pub fn local_offset_at(&self, micros: i64) -> LocalOffset {
        let second = micros.div_euclid(MICROS_PER_SECOND) + EPOCH_SECONDS;
        let (seconds, is_summer, abbreviation) = match &self.rule {
            Rule::Fixed(seconds, abbreviation) => (*seconds, false, (**abbreviation).into()),
            Rule::Posix(rule) => {
                let is_summer = rule.is_summer_at(second);
                (rule.offset(is_summer), is_summer, rule.abbreviation(is_summer).into())
            }
            Rule::Named(zone) => match timestamp(second) {
                Some(at) => {
                    let info = zone.to_offset_info(at);
                    (info.offset().seconds(), info.dst().is_dst(), info.abbreviation().into())
                }
                None => (0, false, "UTC".into()),
            },
        };
        LocalOffset { seconds, is_summer, abbreviation }
    }

    /// Returns the reading of the zone's clock at an instant in microseconds since 2000-01-01 UTC.
    pub fn reading_at(&self, micros: i64) -> Reading {
        let local = i128::from(micros) + i128::from(self.offset_at(micros)) * i128::from(MICROS_PER_SECOND);
        Reading::of_micros(local.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// Returns the offset, in seconds east of UTC, that the zone has when its clock shows a reading.
    pub fn offset_of(&self, reading: &Reading) -> i32 {
        let is_known = matches!(self.rule, Rule::Fixed(..)) || reading.has_julian();
        if !is_known {
            return 0;
        }
        // A minute of 60 seconds and a day of 24:00:00 count on into the next.
        let second = (reading.julian() - UNIX_JULIAN) * 86_400 + reading.clock() / MICROS_PER_SECOND;
        let zone = match &self.rule {
            Rule::Fixed(seconds, _) => return *seconds,
            Rule::Posix(rule) => return rule.offset_of(second),
            Rule::Named(zone) => zone,
        };
        let mut local = Reading::of_julian(second.div_euclid(86_400) + UNIX_JULIAN);
        local.set_clock(second.rem_euclid(86_400) * MICROS_PER_SECOND);
        if local.year > 9000 {
            local.year -= (local.year - 9000).div_euclid(CYCLE_YEARS) * CYCLE_YEARS + CYCLE_YEARS;
        }
        let civil = jiff::civil::DateTime::new(
            local.year as i16,
            local.month as i8,
            local.day as i8,
            local.hour as i8,
            local.minute as i8,
            local.second as i8,
            0,
        );
        let Ok(civil) = civil else { return 0 };
        match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.seconds(),
            AmbiguousOffset::Gap { before, .. } => before.seconds(),
            AmbiguousOffset::Fold { after, .. } => after.seconds(),
        }
    }

    /// Returns the only offset that the zone ever has, in seconds east of UTC; `None` if there are several.
    pub fn constant_offset(&self) -> Option<i32> {
        match &self.rule {
            Rule::Fixed(seconds, _) => Some(*seconds),
            Rule::Posix(_) => None,
            Rule::Named(zone) => {
                let is_constant = zone.following(Timestamp::MIN).next().is_none();
                is_constant.then(|| zone.to_offset(Timestamp::UNIX_EPOCH).seconds())
            }
        }
    }

    /// Returns the offset that an abbreviation means at an instant: that of its last use in the zone until then, else of its first use after it. `None`: the zone never used it.
    fn offset_of_abbreviation(&self, abbreviation: &str, micros: i64) -> Option<i32> {
        let Rule::Named(zone) = &self.rule else { return None };
        let at = timestamp(micros.div_euclid(MICROS_PER_SECOND) + EPOCH_SECONDS)?;
        let before = zone.preceding(at).take(TRANSITIONS_MAX);
        let mut found = before
            .filter(|transition| transition.abbreviation().eq_ignore_ascii_case(abbreviation))
            .map(|transition| transition.offset().seconds());
        if let Some(seconds) = found.next() {
            return Some(seconds);
        }
        let after = zone.following(at).take(TRANSITIONS_MAX);
        let mut found = after
            .filter(|transition| transition.abbreviation().eq_ignore_ascii_case(abbreviation))
            .map(|transition| transition.offset().seconds());
        found.next()
    }

    /// Returns the offset, in seconds east of UTC, that an abbreviation of this zone means beside a reading.
    pub fn abbreviated_offset_of(&self, abbreviation: &str, reading: &Reading) -> i32 {
        let zone_offset = self.offset_of(reading);
        let local = reading.micros_since_epoch();
        let at = local.and_then(|local| local.checked_sub(i64::from(zone_offset) * MICROS_PER_SECOND));
        at.and_then(|at| self.offset_of_abbreviation(abbreviation, at)).unwrap_or(zone_offset)
    }

    /// The same at an instant.
    pub fn abbreviated_offset_at(&self, abbreviation: &str, micros: i64) -> i32 {
        self.offset_of_abbreviation(abbreviation, micros).unwrap_or_else(|| self.offset_at(micros))
    }
}

impl NamedZone {
    /// Looks a time zone up that an expression names: an abbreviation, else a name or POSIX rule.
    pub fn lookup(name: &str) -> Option<NamedZone> {
        let lower = name.to_ascii_lowercase();
        match abbreviations::meaning(&lower) {
            Some(Meaning::Standard(seconds) | Meaning::Summer(seconds)) => Some(NamedZone::Offset(seconds)),
            Some(Meaning::Zone(zone)) => Some(NamedZone::Dynamic(lower.into(), PgZone::named(zone)?)),
            None => PgZone::named(name).map(NamedZone::Zone),
        }
    }

    /// Returns the offset at an instant, in seconds east of UTC.
    pub fn offset_at(&self, micros: i64) -> i32 {
        match self {
            NamedZone::Offset(seconds) => *seconds,
            NamedZone::Dynamic(abbreviation, zone) => zone.abbreviated_offset_at(abbreviation, micros),
            NamedZone::Zone(zone) => zone.offset_at(micros),
        }
    }

    /// Returns the offset beside a reading, in seconds east of UTC.
    pub fn offset_of(&self, reading: &Reading) -> i32 {
        match self {
            NamedZone::Offset(seconds) => *seconds,
            NamedZone::Dynamic(abbreviation, zone) => zone.abbreviated_offset_of(abbreviation, reading),
            NamedZone::Zone(zone) => zone.offset_of(reading),
        }
    }
}

/// Returns an instant in seconds since 1970 for the tz library: the same of another cycle, where the year is too large.
fn timestamp(second: i64) -> Option<Timestamp> {
    let excess = second - CYCLE_FROM;
    let second = if excess > 0 { second - (excess / CYCLE_SECONDS + 1) * CYCLE_SECONDS } else { second };
    Timestamp::from_second(second).ok()
}

fn of_database(name: &str) -> Option<PgZone> {
    // Directories of the tz database that PostgreSQL's copy does not have, and a name that only the library knows.
    let lower = name.to_ascii_lowercase();
    let is_foreign = lower.starts_with("posix/") || lower.starts_with("right/");
    if is_foreign || matches!(lower.as_str(), "etc/unknown" | "posixrules" | "localtime") {
        return None;
    }
    let zone = TimeZone::get(name).ok()?;
    let known = zone.iana_name()?;
    Some(PgZone { name: known.into(), rule: Rule::Named(zone) })
}
