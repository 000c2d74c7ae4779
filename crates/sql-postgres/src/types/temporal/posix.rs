//! POSIX rules of time zones with summer time, `EST5EDT,M3.2.0,M11.1.0`: abbreviations, offsets west of UTC, the days and times of the changes.
//!
//! An abbreviation may be any text without digits, signs and commas, and an offset as long as a week, so that nearly any word with a number is a rule.

use super::calendar::{Reading, UNIX_JULIAN, days_in_month, is_leap, julian_of_date, weekday};

const SECONDS_PER_DAY: i64 = 86_400;
const SECONDS_PER_HOUR: i32 = 3600;
/// The longest offset, in hours: one week.
const HOURS_MAX: i32 = 24 * 7 - 1;
/// The changes of a rule without any, and the time of a change without one.
const DEFAULT_CHANGES: &str = ",M3.2.0,M11.1.0";
const DEFAULT_TIME: i32 = 2 * SECONDS_PER_HOUR;

/// A rule in which summer time begins and ends every year.
#[derive(Clone, Debug)]
pub struct PosixRule {
    /// Seconds west of UTC, and the abbreviation.
    standard: (i32, Box<str>),
    summer: (i32, Box<str>),
    begin: RuleChange,
    end: RuleChange,
}

/// A zone that a POSIX rule describes.
pub enum PosixZone {
    /// Seconds east of UTC, and the abbreviation.
    Fixed(i32, Box<str>),
    Changing(Box<PosixRule>),
}

/// The day and the local time of a change.
#[derive(Clone, Copy, Debug)]
struct RuleChange {
    day: Day,
    seconds: i32,
}

#[derive(Clone, Copy, Debug)]
enum Day {
    /// A day of the year from 1, in which 29 February is not counted.
    WithoutLeap(i32),
    /// A day of the year from 0.
    OfYear(i32),
    /// A month, a week of it, 5 for the last, and a weekday.
    OfWeek(i32, i32, i32),
}

impl PosixZone {
    /// Reads a rule in upper case. `None` for a text that is none.
    pub fn parse(text: &str) -> Option<PosixZone> {
        if text.starts_with(':') {
            return None;
        }
        let (standard_name, rest) = name(text)?;
        let (standard, rest) = offset(rest)?;
        if rest.is_empty() {
            return Some(PosixZone::Fixed(-standard, standard_name.into()));
        }
        let (summer_name, rest) = name(rest)?;
        if summer_name.is_empty() {
            return None;
        }
        let (summer, rest) = match rest.as_bytes().first() {
            None | Some(b',' | b';') => (standard - SECONDS_PER_HOUR, rest),
            Some(_) => offset(rest)?,
        };
        let changes = if rest.is_empty() { DEFAULT_CHANGES } else { rest };
        let (begin, rest) = change(changes.strip_prefix([',', ';'])?)?;
        let (end, rest) = change(rest.strip_prefix(',')?)?;
        rest.is_empty().then(|| {
            PosixZone::Changing(Box::new(PosixRule {
                standard: (standard, standard_name.into()),
                summer: (summer, summer_name.into()),
                begin,
                end,
            }))
        })
    }
}

impl PosixRule {
    /// Returns the two changes of a year in order: the second in UTC since 1970, and whether summer time begins. `None`: it is summer all year.
    fn changes(&self, year: i64) -> Option<[(i64, bool); 2]> {
        let first = (julian_of_date(year, 1, 1) - UNIX_JULIAN) * SECONDS_PER_DAY;
        let begin = self.begin.second_of_year(year) + i64::from(self.standard.0);
        let end = self.end.second_of_year(year) + i64::from(self.summer.0);
        let length = (365 + i64::from(is_leap(year as i32))) * SECONDS_PER_DAY;
        if end < begin {
            return Some([(first + end, false), (first + begin, true)]);
        }
        let has_winter = begin < end && end - begin < length + i64::from(self.standard.0 - self.summer.0);
        has_winter.then_some([(first + begin, true), (first + end, false)])
    }

    /// Returns the changes about an instant, in order.
    fn changes_about(&self, second: i64) -> impl DoubleEndedIterator<Item = (i64, bool)> + use<> {
        let day = second.div_euclid(SECONDS_PER_DAY) + UNIX_JULIAN;
        let year = i64::from(Reading::of_julian(day).year);
        let years = [year - 2, year - 1, year, year + 1, year + 2].map(|year| self.changes(year));
        years.into_iter().flatten().flatten()
    }

    /// Returns whether it is summer at an instant in seconds since 1970.
    pub fn is_summer_at(&self, second: i64) -> bool {
        let change = self.changes_about(second).rfind(|(at, _)| *at <= second);
        change.is_none_or(|(_, is_summer)| is_summer)
    }

    /// Seconds east of UTC.
    pub fn offset(&self, is_summer: bool) -> i32 {
        -if is_summer { self.summer.0 } else { self.standard.0 }
    }

    pub fn abbreviation(&self, is_summer: bool) -> &str {
        if is_summer { &self.summer.1 } else { &self.standard.1 }
    }

    /// Returns the offset, in seconds east of UTC, when the zone's clock shows a reading, given in seconds since 1970 of that clock.
    pub fn offset_of(&self, local: i64) -> i32 {
        // A change within a day of the reading decides.
        let before_change = local - SECONDS_PER_DAY;
        let before = self.offset(self.is_summer_at(before_change));
        let Some((at, is_summer)) = self.changes_about(before_change).find(|(at, _)| *at > before_change) else {
            return before;
        };
        let after = self.offset(is_summer);
        let (by_before, by_after) = (local - i64::from(before), local - i64::from(after));
        if by_before < at && by_after < at {
            before
        } else if by_before > at && by_after >= at || by_before <= by_after {
            after
        } else {
            before
        }
    }
}

impl RuleChange {
    /// Returns the second of the year, by the clock before the change.
    fn second_of_year(self, year: i64) -> i64 {
        let leap = is_leap(year as i32);
        let day = match self.day {
            Day::WithoutLeap(day) => i64::from(day - 1) + i64::from(leap && day >= 60),
            Day::OfYear(day) => day.into(),
            Day::OfWeek(month, week, wanted) => {
                let first = julian_of_date(year, month.into(), 1);
                let mut day = (i64::from(wanted) - weekday(first)).rem_euclid(7);
                for _ in 1..week {
                    if day + 7 >= days_in_month(year as i32, month).into() {
                        break;
                    }
                    day += 7;
                }
                first - julian_of_date(year, 1, 1) + day
            }
        };
        day * SECONDS_PER_DAY + i64::from(self.seconds)
    }
}

fn name(text: &str) -> Option<(&str, &str)> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>');
    }
    let is_end = |byte: u8| byte.is_ascii_digit() || matches!(byte, b',' | b'-' | b'+');
    Some(text.split_at(text.bytes().position(is_end).unwrap_or(text.len())))
}

/// Reads a time with a sign, in seconds.
fn offset(text: &str) -> Option<(i32, &str)> {
    let (sign, text) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (hours, mut rest) = number(text, 0, HOURS_MAX)?;
    let mut seconds = hours * SECONDS_PER_HOUR;
    if let Some(minutes) = rest.strip_prefix(':') {
        let (minutes, after) = number(minutes, 0, 59)?;
        (seconds, rest) = (seconds + minutes * 60, after);
        if let Some(more) = rest.strip_prefix(':') {
            let (more, after) = number(more, 0, 60)?;
            (seconds, rest) = (seconds + more, after);
        }
    }
    Some((sign * seconds, rest))
}

fn number(text: &str, min: i32, max: i32) -> Option<(i32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..digits].parse().ok().filter(|number| (min..=max).contains(number))?;
    Some((number, &text[digits..]))
}

fn change(text: &str) -> Option<(RuleChange, &str)> {
    let (day, rest) = if let Some(text) = text.strip_prefix('J') {
        let (day, rest) = number(text, 1, 365)?;
        (Day::WithoutLeap(day), rest)
    } else if let Some(text) = text.strip_prefix('M') {
        let (month, rest) = number(text, 1, 12)?;
        let (week, rest) = number(rest.strip_prefix('.')?, 1, 5)?;
        let (day, rest) = number(rest.strip_prefix('.')?, 0, 6)?;
        (Day::OfWeek(month, week, day), rest)
    } else {
        let (day, rest) = number(text, 0, 365)?;
        (Day::OfYear(day), rest)
    };
    match rest.strip_prefix('/') {
        Some(time) => offset(time).map(|(seconds, rest)| (RuleChange { day, seconds }, rest)),
        None => Some((RuleChange { day, seconds: DEFAULT_TIME }, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summer_time_begins_and_ends_on_the_days_of_the_rule() {
        let Some(PosixZone::Changing(rule)) = PosixZone::parse("PST8PDT,M4.1.0,M10.5.0") else { panic!() };
        // 2000-04-02 10:00 UTC and 2000-10-29 09:00 UTC
        for (at, was_summer) in [(954_669_600, false), (972_810_000, true)] {
            assert_eq!(rule.is_summer_at(at - 1), was_summer);
            assert_eq!(rule.is_summer_at(at), !was_summer);
        }
        assert!(PosixZone::parse("PST8PDT,M13.1.0,M10.5.0").is_none());
        assert!(PosixZone::parse("PST").is_none());
        assert!(matches!(PosixZone::parse("<+05>-5"), Some(PosixZone::Fixed(18_000, _))));
    }
}
