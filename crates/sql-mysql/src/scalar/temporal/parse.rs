//! Conversion of texts and numbers to dates and times, with MySQL's leniency.
//!
//! `None` is text that is no date at all or a date that the rules forbid: the caller warns and answers NULL. `truncated` is text that begins with one: the caller warns and
//! uses it. A seventh digit of the fraction rounds.

use datum::temporal::{Date, DateTime, MICROS_PER_SECOND, Time};

use crate::scalar::modes::SqlMode;

/// The invalid dates that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Strictness {
    pub no_zero_date: bool,
    pub no_zero_in_date: bool,
    pub allow_invalid: bool,
}

impl Strictness {
    pub fn of(mode: SqlMode) -> Strictness {
        Strictness {
            no_zero_date: mode.has(SqlMode::NO_ZERO_DATE),
            no_zero_in_date: mode.has(SqlMode::NO_ZERO_IN_DATE),
            allow_invalid: mode.has(SqlMode::ALLOW_INVALID_DATES),
        }
    }

    /// Only existing days are accepted, for functions that count days.
    pub const REAL: Strictness = Strictness { no_zero_date: true, no_zero_in_date: true, allow_invalid: false };

    pub fn passes(self, date: Date) -> bool {
        if date.is_zero() {
            return !self.no_zero_date;
        }
        if date.has_zero_part() {
            return !self.no_zero_in_date && date.month <= 12 && date.day <= 31;
        }
        date.is_real() || (self.allow_invalid && date.month <= 12 && date.day <= 31)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    pub value: T,
    /// The text continues after the value, or the value was clamped.
    pub truncated: bool,
    /// The text of a date also had a time of day.
    pub has_time: bool,
    /// Seconds east of UTC, where the text ends in `+05:30`.
    pub offset: Option<i64>,
    /// Digits of the fraction that were there, up to 6.
    pub scale: u8,
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_spaces(&mut self) -> bool {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
        self.at > from
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn digit_run(&self) -> usize {
        self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// A number of up to `most` digits.
    fn number(&mut self, most: usize) -> Option<(u32, usize)> {
        let length = self.digit_run().min(most);
        if length == 0 {
            return None;
        }
        let digits = &self.bytes[self.at..self.at + length];
        self.at += length;
        let number = digits.iter().fold(0u64, |sum, digit| (sum * 10 + u64::from(digit - b'0')).min(u32::MAX.into()));
        Some((number as u32, length))
    }

    /// `.123456`: microseconds, rounded by the seventh digit, and how many digits there were.
    fn fraction(&mut self) -> (u32, u8) {
        if self.peek() != Some(b'.') {
            return (0, 0);
        }
        self.at += 1;
        let run = self.digit_run();
        let digits = &self.bytes[self.at..self.at + run];
        self.at += run;
        let mut micros = 0;
        for place in 0..6 {
            micros = micros * 10 + digits.get(place).map_or(0, |digit| u32::from(digit - b'0'));
        }
        let up = digits.get(6).is_some_and(|digit| *digit >= b'5');
        (micros + u32::from(up), run.min(6) as u8)
    }

    fn at_end(&mut self) -> bool {
        self.skip_spaces();
        self.at == self.bytes.len()
    }
}

/// 69 is 2069, 70 is 1970.
fn full_year(year: u32, digits: usize) -> u32 {
    match (digits, year) {
        (1 | 2, 0..70) => year + 2000,
        (1 | 2, _) => year + 1900,
        _ => year,
    }
}

pub fn parse_datetime(text: &str, rules: Strictness) -> Option<Parsed<DateTime>> {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    reader.skip_spaces();
    let run = reader.digit_run();
    if run == 0 {
        return None;
    }
    let after = reader.bytes.get(reader.at + run).copied();
    let packed =
        after.is_none_or(|byte| byte == b'.' || byte == b'T' || byte.is_ascii_whitespace()) && run >= 5 || run >= 8;
    let (date, clock) = if packed { packed_parts(&mut reader, run)? } else { separated_parts(&mut reader)? };
    let date = Date::new(u16::try_from(date.0).ok()?, u8::try_from(date.1).ok()?, u8::try_from(date.2).ok()?);
    let (hour, minute, second) = clock.unwrap_or((0, 0, 0));
    if date.year > 9999 || hour > 23 || minute > 59 || second > 59 || !rules.passes(date) {
        return None;
    }
    let (micros, scale) = if clock.is_some() { reader.fraction() } else { (0, 0) };
    let offset = if clock.is_some() { offset(&mut reader)? } else { None };
    let mut value = DateTime::at(date, hour, minute, second, micros.min(999_999));
    if micros == 1_000_000 {
        value = value.plus_micros(1)?;
    }
    Some(Parsed { value, truncated: !reader.at_end(), has_time: clock.is_some(), offset, scale })
}

type Triple = (u32, u32, u32);

/// 20261121, 261121, with six more digits for the time.
fn packed_parts(reader: &mut Reader<'_>, run: usize) -> Option<(Triple, Option<Triple>)> {
    let year_length = if run == 4 || run == 8 || run >= 14 { 4 } else { 2 };
    let year = reader.number(year_length)?;
    let date = (full_year(year.0, year.1), reader.number(2)?.0, reader.number(2).map_or(0, |part| part.0));
    if date == (2000, 0, 0) && year.1 == 2 {
        return Some(((0, 0, 0), time_after_packed(reader)));
    }
    let clock = time_after_packed(reader);
    Some((date, clock))
}

fn time_after_packed(reader: &mut Reader<'_>) -> Option<Triple> {
    let from = reader.at;
    if reader.peek() == Some(b'T') || reader.skip_spaces() {
        reader.eat(b'T');
    }
    let Some((hour, _)) = reader.number(2) else {
        reader.at = from;
        return None;
    };
    reader.eat(b':');
    let minute = reader.number(2).map_or(0, |part| part.0);
    reader.eat(b':');
    Some((hour, minute, reader.number(2).map_or(0, |part| part.0)))
}

/// 2026-11-21 12:34:56 with any punctuation.
fn separated_parts(reader: &mut Reader<'_>) -> Option<(Triple, Option<Triple>)> {
    let (year, digits) = reader.number(4)?;
    separator(reader)?;
    let month = reader.number(2)?.0;
    separator(reader)?;
    let day = reader.number(2)?.0;
    let year = if digits <= 2 && (year, month, day) == (0, 0, 0) { 0 } else { full_year(year, digits) };
    let from = reader.at;
    let spaced = reader.skip_spaces();
    if !(spaced
        || reader.eat(b'T')
        || reader.peek().is_some_and(|byte| byte.is_ascii_punctuation() && separator(reader).is_some()))
    {
        return Some(((year, month, day), None));
    }
    let Some((hour, _)) = reader.number(2) else {
        reader.at = from;
        return Some(((year, month, day), None));
    };
    // Between the parts of the clock any punctuation stands; a point alone behind the hour begins a fraction.
    let mut part = |is_first: bool| {
        let from = reader.at;
        if !(is_first && reader.peek() == Some(b'.'))
            && separator(reader).is_some()
            && let Some((number, _)) = reader.number(2)
        {
            return number;
        }
        reader.at = from;
        0
    };
    Some(((year, month, day), Some((hour, part(true), part(false)))))
}

fn separator(reader: &mut Reader<'_>) -> Option<()> {
    let from = reader.at;
    while reader.peek().is_some_and(|byte| byte.is_ascii_punctuation()) {
        reader.at += 1;
    }
    (reader.at > from).then_some(())
}

/// `+05:30` at the end. The outer `None` is an offset that is none.
fn offset(reader: &mut Reader<'_>) -> Option<Option<i64>> {
    let sign = match reader.peek() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Some(None),
    };
    let rest = &reader.bytes[reader.at..];
    if rest.len() < 6 || rest[3] != b':' {
        return Some(None);
    }
    reader.at += 1;
    let hours = i64::from(reader.number(2)?.0);
    reader.at += 1;
    let minutes = i64::from(reader.number(2)?.0);
    let seconds = sign * (hours * 3600 + minutes * 60);
    (minutes < 60 && (-(13 * 3600 + 59 * 60)..=14 * 3600).contains(&seconds)).then_some(Some(seconds))
}

/// `12:34:56`, `1 12:34`, `123456`, `-12:00:00.5`; a whole DATETIME gives its time of day.
pub fn parse_time(text: &str) -> Option<Parsed<Time>> {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    reader.skip_spaces();
    let negative = reader.eat(b'-');
    if !negative {
        reader.eat(b'+');
        if let Some(parsed) = parse_whole_datetime(text) {
            return Some(time_of(parsed));
        }
    }
    let run = reader.digit_run();
    if run == 0 && reader.peek() != Some(b'.') && reader.peek() != Some(b':') {
        return None;
    }
    let seconds = time_parts(&mut reader)?;
    let (micros, scale) = reader.fraction();
    let size = i128::from(seconds) * i128::from(MICROS_PER_SECOND) + i128::from(micros);
    let size = if negative { -size } else { size };
    let clamped = Time::from_micros(size.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
    let truncated = !reader.at_end() || i128::from(clamped.micros()) != size;
    Some(Parsed { value: clamped, truncated, has_time: true, offset: None, scale })
}

/// Parses a datetime where a time is also allowed: the text must be long enough and have a space or T between date and time, or consist of digits. 53:01:11.000006 is a time.
pub fn parse_whole_datetime(text: &str) -> Option<Parsed<DateTime>> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = text.len() >= 12 && (digits >= 12 || text.contains([' ', 'T']));
    if !whole {
        return None;
    }
    parse_datetime(text, Strictness::default()).filter(|parsed| parsed.has_time)
}

fn time_of(parsed: Parsed<DateTime>) -> Parsed<Time> {
    Parsed {
        value: parsed.value.time(),
        truncated: parsed.truncated,
        has_time: true,
        offset: None,
        scale: parsed.scale,
    }
}

/// Returns the seconds of the part before the fraction.
fn time_parts(reader: &mut Reader<'_>) -> Option<u64> {
    let first = u64::from(reader.number(10).map_or(0, |part| part.0));
    let from = reader.at;
    if reader.skip_spaces() && reader.digit_run() > 0 {
        // Days, then hours and on.
        let hours = u64::from(reader.number(10)?.0);
        let (minutes, seconds) = minutes_and_seconds(reader)?;
        return Some(first * 86_400 + hours * 3600 + minutes * 60 + seconds);
    }
    reader.at = from;
    if reader.peek() == Some(b':') {
        let (minutes, seconds) = minutes_and_seconds(reader)?;
        return Some(first * 3600 + minutes * 60 + seconds);
    }
    let (hours, minutes, seconds) = (first / 10_000, first / 100 % 100, first % 100);
    (minutes < 60 && seconds < 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

fn minutes_and_seconds(reader: &mut Reader<'_>) -> Option<(u64, u64)> {
    let mut part = || {
        let from = reader.at;
        if reader.eat(b':')
            && let Some((number, _)) = reader.number(2)
        {
            return u64::from(number);
        }
        reader.at = from;
        0
    };
    let (minutes, seconds) = (part(), part());
    (minutes < 60 && seconds < 60).then_some((minutes, seconds))
}

/// 20261121, 261121, 20261121123456; `None` for a number that is no date.
pub fn datetime_from_number(number: i64, rules: Strictness) -> Option<Parsed<DateTime>> {
    const DAY: i64 = 1_000_000;
    let full = match number {
        0 => 0,
        10_000_101_000_000.. => number,
        101..=691_231 => (number + 20_000_000) * DAY,
        700_101..=991_231 => (number + 19_000_000) * DAY,
        10_000_101..=99_991_231 => number * DAY,
        101_000_000..=691_231_235_959 => number + 20_000_000_000_000,
        700_101_000_000..=991_231_235_959 => number + 19_000_000_000_000,
        _ => return None,
    };
    let (day, clock) = (full / DAY, full % DAY);
    let date = Date::new(u16::try_from(day / 10_000).ok()?, (day / 100 % 100) as u8, (day % 100) as u8);
    let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
    if date.year > 9999 || hour > 23 || minute > 59 || second > 59 || !rules.passes(date) {
        return None;
    }
    let value = DateTime::new(date, (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND);
    let has_time = number > 99_991_231;
    Some(Parsed { value, truncated: false, has_time, offset: None, scale: 0 })
}

/// 123456 is 12:34:56; a number as long as a DATETIME gives its time of day.
pub fn time_from_number(number: i64) -> Option<Parsed<Time>> {
    if number.unsigned_abs() >= 10_000_000_000
        && number > 0
        && let Some(parsed) = datetime_from_number(number, Strictness::default())
    {
        return Some(time_of(parsed));
    }
    let size = number.unsigned_abs();
    let whole = |value, truncated| Some(Parsed { value, truncated, has_time: true, offset: None, scale: 0 });
    if size > 8_385_959 {
        let limit = if number < 0 { -Time::MAX.micros() } else { Time::MAX.micros() };
        return whole(Time::from_micros(limit), true);
    }
    let (hours, minutes, seconds) = (size / 10_000, size / 100 % 100, size % 100);
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let micros = (hours * 3600 + minutes * 60 + seconds) as i64 * MICROS_PER_SECOND;
    whole(Time::from_micros(if number < 0 { -micros } else { micros }), false)
}
