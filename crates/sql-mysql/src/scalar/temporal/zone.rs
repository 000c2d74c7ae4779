//! Time zones as `SET time_zone` names them, and the range of TIMESTAMP.

use datum::temporal::{DateTime, MICROS_PER_SECOND, Timestamp, Zone};

use crate::error;
use datum::Result;

/// 2038-01-19 03:14:07.999999 UTC, the last instant of a TIMESTAMP.
const TIMESTAMP_MAX: i64 = i32::MAX as i64 * MICROS_PER_SECOND + 999_999;

/// Parses `+05:30`, `Europe/Berlin`, `UTC` or `SYSTEM`; error 1298.
pub fn parse_zone(name: &str) -> Result<Zone> {
    if name.eq_ignore_ascii_case("SYSTEM") {
        return Ok(Zone::system());
    }
    if name.starts_with(['+', '-']) {
        return parse_offset(name).map(Zone::fixed).ok_or_else(|| error::UNKNOWN_TIME_ZONE.raise(&[&name]));
    }
    if name.eq_ignore_ascii_case("UTC") {
        return Ok(Zone::utc());
    }
    Zone::named(name)
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

/// Returns the TIMESTAMP value of a reading of the zone's clock (`Zone::instant`). `None` where the reading is not a real date or lies outside the range
/// of TIMESTAMP.
pub fn timestamp(zone: &Zone, reading: DateTime) -> Option<Timestamp> {
    zone.instant(reading).filter(|at| (1..=TIMESTAMP_MAX).contains(&at.0))
}
