//! Dates and times as text by a format: DATE_FORMAT, TIME_FORMAT, and back by STR_TO_DATE.

use std::fmt::Write;

use datum::temporal::calendar::{self, WeekMode};
use datum::temporal::{Date, DateTime, Time};

use super::locale::{Locale, MONTHS, WEEKDAYS};

fn ordinal(day: u8) -> &'static str {
    match (day % 100, day % 10) {
        (10..=19, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// DATE_FORMAT. Returns `None` if the format asks for the name of a day or month that does not exist.
pub fn date_format(at: DateTime, format: &str, locale: &Locale) -> Option<String> {
    let (hours, minutes, seconds, micros) = at.clock();
    write_format(at.date, (u64::from(hours), minutes, seconds, micros), format, locale)
}

/// TIME_FORMAT: hours may be beyond 23; parts of a date are zero or, where they are names, NULL.
pub fn time_format(time: Time, format: &str, locale: &Locale) -> Option<String> {
    let (hours, minutes, seconds, micros) = time.parts();
    let text = write_format(Date::ZERO, (u64::from(hours), minutes, seconds, micros), format, locale)?;
    Some(if time.is_negative() { format!("-{text}") } else { text })
}

fn write_format(date: Date, clock: (u64, u32, u32, u32), format: &str, locale: &Locale) -> Option<String> {
    let mut out = String::with_capacity(format.len() * 2);
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some(letter) => write_part(&mut out, letter, date, clock, locale)?,
            None => out.push('%'),
        }
    }
    Some(out)
}

fn write_part(out: &mut String, letter: char, date: Date, clock: (u64, u32, u32, u32), locale: &Locale) -> Option<()> {
    let (hour, minute, second, micros) = clock;
    let half = |hour: u64| (hour + 11) % 12 + 1;
    let noon = if hour % 24 >= 12 { "PM" } else { "AM" };
    let weekday = |date: Date| {
        let real = date.month != 0 || date.year != 0;
        real.then(|| calendar::weekday(calendar::day_number(date)) as usize)
    };
    let month = |date: Date| usize::from(date.month).checked_sub(1).filter(|month| *month < 12);
    let week = |mode| calendar::week(date, WeekMode::new(mode));
    let written = match letter {
        'a' => write!(out, "{}", locale.short_weekdays[weekday(date)?]),
        'b' => write!(out, "{}", locale.short_months[month(date)?]),
        'c' => write!(out, "{}", date.month),
        'D' => write!(out, "{}{}", date.day, ordinal(date.day)),
        'd' => write!(out, "{:02}", date.day),
        'e' => write!(out, "{}", date.day),
        'f' => write!(out, "{micros:06}"),
        'H' => write!(out, "{hour:02}"),
        'h' | 'I' => write!(out, "{:02}", half(hour)),
        'i' => write!(out, "{minute:02}"),
        'j' => write!(out, "{:03}", calendar::day_number(date) - calendar::day_number(Date::new(date.year, 1, 1)) + 1),
        'k' => write!(out, "{hour}"),
        'l' => write!(out, "{}", half(hour)),
        'M' => write!(out, "{}", locale.months[month(date)?]),
        'm' => write!(out, "{:02}", date.month),
        'p' => write!(out, "{noon}"),
        'r' => write!(out, "{:02}:{minute:02}:{second:02} {noon}", half(hour)),
        'S' | 's' => write!(out, "{second:02}"),
        'T' => write!(out, "{hour:02}:{minute:02}:{second:02}"),
        'U' => write!(out, "{:02}", week(0).0),
        'u' => write!(out, "{:02}", week(1).0),
        'V' => write!(out, "{:02}", week(2).0),
        'v' => write!(out, "{:02}", week(3).0),
        'W' => write!(out, "{}", locale.weekdays[weekday(date)?]),
        'w' => write!(out, "{}", calendar::weekday_from_sunday(calendar::day_number(date))),
        'X' => write!(out, "{:04}", week(2).1),
        'x' => write!(out, "{:04}", week(3).1),
        'Y' => write!(out, "{:04}", date.year),
        'y' => write!(out, "{:02}", date.year % 100),
        other => write!(out, "{other}"),
    };
    written.ok()
}

/// The parts that STR_TO_DATE has parsed so far.
#[derive(Default)]
struct Scanned {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    afternoon: Option<bool>,
    day_of_year: Option<u32>,
    week: Option<(u32, bool)>,
    weekday: Option<u32>,
    week_year: Option<u32>,
}

/// STR_TO_DATE: the reading, and whether text is left over. `None` where the text does not fit the format.
pub fn parse_by_format(text: &str, format: &str) -> Option<(DateTime, bool)> {
    let mut scanned = Scanned::default();
    let mut rest = text;
    let mut pattern = format.chars();
    while let Some(c) = pattern.next() {
        rest = if c.is_whitespace() || rest.is_empty() { rest.trim_start() } else { rest };
        if rest.is_empty() {
            break;
        }
        if c == '%' {
            rest = rest.trim_start();
            rest = scan_part(&mut scanned, pattern.next()?, rest)?;
        } else if !c.is_whitespace() {
            rest = rest.trim_start().strip_prefix(c)?;
        }
    }
    finish_scan(scanned).map(|at| (at, !rest.trim_end().is_empty()))
}

fn take_number(rest: &str, most: usize) -> Option<(u32, &str)> {
    let length = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    Some((rest[..length].parse().ok()?, &rest[length..]))
}

fn take_name<'r>(rest: &'r str, names: &[&str], length: Option<usize>) -> Option<(u32, &'r str)> {
    names.iter().enumerate().find_map(|(place, name)| {
        let name = &name[..length.unwrap_or(name.len())];
        let head = rest.get(..name.len())?;
        head.eq_ignore_ascii_case(name).then(|| (place as u32 + 1, &rest[name.len()..]))
    })
}

fn scan_part<'r>(into: &mut Scanned, letter: char, rest: &'r str) -> Option<&'r str> {
    let mut number = |most, slot: fn(&mut Scanned) -> &mut u32| {
        let (number, rest) = take_number(rest, most)?;
        *slot(into) = number;
        Some(rest)
    };
    match letter {
        'Y' => number(4, |s| &mut s.year),
        'm' | 'c' => number(2, |s| &mut s.month),
        'd' | 'e' => number(2, |s| &mut s.day),
        'H' | 'k' => number(2, |s| &mut s.hour),
        'i' => number(2, |s| &mut s.minute),
        'S' | 's' => number(2, |s| &mut s.second),
        'y' => {
            let (year, rest) = take_number(rest, 2)?;
            into.year = if year < 70 { year + 2000 } else { year + 1900 };
            Some(rest)
        }
        'h' | 'I' | 'l' => {
            let (hour, rest) = take_number(rest, 2).filter(|(hour, _)| (1..=12).contains(hour))?;
            into.hour = hour % 12;
            into.afternoon.get_or_insert(false);
            Some(rest)
        }
        'D' => {
            let (day, rest) = take_number(rest, 2)?;
            into.day = day;
            rest.get(2..)
        }
        'f' => {
            let (micros, after) = take_number(rest, 6)?;
            into.micros = micros * 10u32.pow(6 - (rest.len() - after.len()) as u32);
            Some(after)
        }
        'M' => take_name(rest, &MONTHS, None).map(|(month, rest)| {
            into.month = month;
            rest
        }),
        'b' => take_name(rest, &MONTHS, Some(3)).map(|(month, rest)| {
            into.month = month;
            rest
        }),
        'W' | 'a' => take_name(rest, &WEEKDAYS, (letter == 'a').then_some(3)).map(|(weekday, rest)| {
            into.weekday = Some(weekday);
            rest
        }),
        'w' => take_number(rest, 1).filter(|(weekday, _)| *weekday < 7).map(|(weekday, rest)| {
            into.weekday = Some(if weekday == 0 { 7 } else { weekday });
            rest
        }),
        'j' => take_number(rest, 3).map(|(day, rest)| {
            into.day_of_year = Some(day);
            rest
        }),
        'u' | 'U' | 'v' | 'V' => take_number(rest, 2).map(|(week, rest)| {
            into.week = Some((week, matches!(letter, 'u' | 'v')));
            rest
        }),
        'x' | 'X' => take_number(rest, 4).map(|(year, rest)| {
            into.week_year = Some(year);
            rest
        }),
        'p' => take_name(rest, &["AM", "PM"], None).map(|(half, rest)| {
            into.afternoon = Some(half == 2);
            rest
        }),
        'T' => ["H", ":", "i", ":", "s"].iter().try_fold(rest, |rest, step| scan_step(into, step, rest)),
        'r' => ["h", ":", "i", ":", "s", " ", "p"].iter().try_fold(rest, |rest, step| scan_step(into, step, rest)),
        '%' => rest.strip_prefix('%'),
        _ => None,
    }
}

fn scan_step<'r>(into: &mut Scanned, step: &str, rest: &'r str) -> Option<&'r str> {
    match step {
        ":" => rest.strip_prefix(':'),
        " " => Some(rest.trim_start()),
        letter => scan_part(into, letter.chars().next()?, rest),
    }
}

fn finish_scan(scanned: Scanned) -> Option<DateTime> {
    let hour = scanned.hour + if scanned.afternoon == Some(true) { 12 } else { 0 };
    let mut date =
        Date::new(scanned.year.try_into().ok()?, scanned.month.try_into().ok()?, scanned.day.try_into().ok()?);
    if let Some(day) = scanned.day_of_year {
        date = calendar::from_day_number(calendar::day_number(Date::new(date.year, 1, 1)) + i64::from(day) - 1)?;
    } else if let Some(((week, monday), weekday)) = scanned.week.zip(scanned.weekday) {
        date = date_of_week(
            scanned.week_year.unwrap_or(scanned.year),
            week,
            monday,
            weekday,
            scanned.week_year.is_some(),
        )?;
    }
    let within = date.year <= 9999 && date.month <= 12 && date.day <= 31;
    if !within || hour > 23 || scanned.minute > 59 || scanned.second > 59 {
        return None;
    }
    Some(DateTime::at(date, hour, scanned.minute, scanned.second, scanned.micros))
}

fn date_of_week(year: u32, week: u32, monday_first: bool, weekday: u32, strict: bool) -> Option<Date> {
    if week > 53 || (strict && week == 0) {
        return None;
    }
    let first = calendar::day_number(Date::new(year.try_into().ok()?, 1, 1));
    let begin = if monday_first { calendar::weekday(first) } else { calendar::weekday_from_sunday(first) };
    let weekday = i64::from(weekday);
    let number = if monday_first {
        let lead = if begin <= 3 { 0 } else { 7 } - begin;
        first + lead + (i64::from(week) - 1) * 7 + weekday - 1
    } else {
        let lead = if begin == 0 { 0 } else { 7 } - begin;
        first + lead + (i64::from(week) - 1) * 7 + weekday % 7
    };
    calendar::from_day_number(number)
}
