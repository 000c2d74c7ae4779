//! `to_date` and `to_timestamp`: a text is read along a template, and the fields that were found become a date and a time.
//!
//! A separator of the template matches one of the text or none; outside `FX` spaces before fields are skipped. The template's other characters skip one character of the text each, whatever it is.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::{Convention, KeywordKind, Node, Ordinal, ROMAN, TemplateField, is_separator, parse};
use crate::error::{PgError, Result as PgResult, state};
use crate::functions::state::StateOf;
use crate::functions::temporal::arithmetic::timestamp_overflow;
use crate::functions::temporal::values::text;
use crate::types::temporal::calendar::{DAYS, MONTHS, Reading, days_in_month, is_leap, julian_of_iso_week};
use crate::types::temporal::io::{days_of, timestamp_in_zone, timestamp_of};
use crate::types::temporal::typmod::adjust_timestamp;
use crate::types::temporal::{DateTimeError, date_parts, field_overflow, is_space, overflow, validate_parts};
use crate::value::Value;

/// The largest hour of an offset from UTC.
const ZONE_HOUR_MAX: i32 = 15;

/// The numbers that a text had for the fields of its template; 0 is none.
#[derive(Default)]
struct FieldValues {
    is_iso: Option<bool>,
    hour: i32,
    is_12_hours: bool,
    is_pm: i32,
    minute: i32,
    second: i32,
    second_of_day: i32,
    /// Sunday is 1.
    weekday: i32,
    day: i32,
    day_of_year: i32,
    month: i32,
    millisecond: i32,
    microsecond: i32,
    year: i32,
    year_digits: u8,
    is_bc: i32,
    week: i32,
    week_of_month: i32,
    century: i32,
    julian: i32,
    zone_sign: i32,
    zone_hour: i32,
    zone_minute: i32,
    /// Digits of a fraction: `FF1` to `FF6`.
    precision: i32,
}

#[cold]
fn format_error(message: String) -> PgError {
    PgError::new(state::INVALID_DATETIME_FORMAT, message)
}

/// Sets a field that a template may have twice.
fn set(place: &mut i32, value: i32, field: &TemplateField) -> PgResult<()> {
    if *place != 0 && *place != value {
        let error = format_error(format!("conflicting values for \"{}\" field in formatting string", field.key.name));
        return Err(error.detail("This value contradicts a previous setting for the same field type."));
    }
    *place = value;
    Ok(())
}

struct TemplateReader<'a> {
    text: &'a [u8],
    at: usize,
    nodes: &'a [Node<'a>],
    found: FieldValues,
    is_exact: bool,
    /// Characters that were skipped beyond those of the template.
    extra: i32,
}

impl TemplateReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_spaces(&mut self) -> i32 {
        let from = self.at;
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        (self.at - from) as i32
    }

    fn skip_character(&mut self) {
        if self.at < self.text.len() {
            self.at += 1;
            while self.peek().is_some_and(|byte| byte & 0xc0 == 0x80) {
                self.at += 1;
            }
        }
    }

    fn read(&mut self) -> PgResult<()> {
        let nodes = self.nodes;
        for (place, node) in nodes.iter().enumerate() {
            if self.at >= self.text.len() {
                break;
            }
            let is_field = matches!(node, Node::Field(_));
            let begins_exact = matches!(node, Node::Field(field) if field.key.kind == KeywordKind::Exact);
            if !self.is_exact && !begins_exact && (is_field || place == 0) {
                self.extra += self.skip_spaces();
            }
            match node {
                Node::Separator(_) | Node::Space(_) if !self.is_exact => {
                    self.extra -= 1;
                    if self.peek().is_some_and(|byte| is_space(byte) || is_separator(byte)) {
                        self.at += 1;
                        self.extra += 1;
                    }
                }
                Node::Text(_) if !self.is_exact && self.extra > 0 => self.extra -= 1,
                Node::Separator(_) | Node::Space(_) | Node::Text(_) => self.skip_character(),
                Node::Field(field) => {
                    self.set_convention(field)?;
                    self.field(field, place)?;
                    if !self.is_exact {
                        self.extra = self.skip_spaces();
                    }
                }
            }
        }
        Ok(())
    }

    fn set_convention(&mut self, field: &TemplateField) -> PgResult<()> {
        if field.key.convention == Convention::Any {
            return Ok(());
        }
        let is_iso = field.key.convention == Convention::IsoWeek;
        if *self.found.is_iso.get_or_insert(is_iso) != is_iso {
            let error = format_error("invalid combination of date conventions".into());
            return Err(error.hint("Do not mix Gregorian and ISO week date conventions in a formatting template."));
        }
        Ok(())
    }

    /// Returns whether what follows a field cannot be a digit, so that the field takes all digits there are.
    fn ends_with_digits(&self, field: &TemplateField, place: usize) -> bool {
        if field.ordinal != Ordinal::None {
            return true;
        }
        match self.nodes.get(place + 1) {
            None => true,
            Some(Node::Field(next)) => !next.key.is_digits,
            Some(Node::Separator(text) | Node::Space(text) | Node::Text(text)) => {
                !matches!(text.as_bytes(), [byte] if byte.is_ascii_digit())
            }
        }
    }

    /// Reads a number of so many digits. Returns it with the characters that it took.
    fn integer(&mut self, digits: usize, field: &TemplateField, place: usize) -> PgResult<(i32, usize)> {
        let from = self.at;
        self.skip_spaces();
        let rest = &self.text[self.at..];
        let copy = &rest[..rest.len().min(digits)];
        let name = field.key.name;
        let number = if field.fills || self.ends_with_digits(field, place) {
            let (number, used) = leading_long(&self.text[from..]);
            self.at = from + used;
            number
        } else {
            const HINT: &str = "If your source string is not fixed-width, try using the \"FM\" modifier.";
            if rest.len() < digits {
                let error = format_error(format!("source string too short for \"{name}\" formatting field"));
                let remain = rest.len();
                let detail = format!("Field requires {digits} characters, but only {remain} remain.");
                return Err(error.detail(detail).hint(HINT));
            }
            let (number, used) = leading_long(copy);
            if used > 0 && used < digits {
                let detail = format!("Field requires {digits} characters, but only {used} could be parsed.");
                return Err(invalid_value(copy, name).detail(detail).hint(HINT));
            }
            self.at += used;
            number
        };
        if self.at == from {
            return Err(invalid_value(copy, name).detail("Value must be an integer."));
        }
        let number = number.and_then(|number| i32::try_from(number).ok()).ok_or_else(|| {
            let text = format!("value for \"{name}\" in source string is out of range");
            let detail = format!("Value must be in the range {} to {}.", i32::MIN, i32::MAX);
            overflow(&text).detail(detail)
        })?;
        Ok((number, self.at - from))
    }

    /// Reads a number of the length of the field's name into a place of `found`.
    fn number(
        &mut self,
        field: &TemplateField,
        place: usize,
        target: fn(&mut FieldValues) -> &mut i32,
    ) -> PgResult<usize> {
        self.number_of(field.key.name.len(), field, place, target)
    }

    fn number_of(
        &mut self,
        digits: usize,
        field: &TemplateField,
        place: usize,
        target: fn(&mut FieldValues) -> &mut i32,
    ) -> PgResult<usize> {
        let (number, length) = self.integer(digits, field, place)?;
        set(target(&mut self.found), number, field)?;
        Ok(length)
    }

    /// Reads one of some words in any case, and returns its place.
    fn one_of(&mut self, words: &[&str], field: &TemplateField) -> PgResult<usize> {
        let rest = &self.text[self.at..];
        let is_next =
            |word: &str| rest.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word.as_bytes()));
        match words.iter().position(|word| is_next(word)) {
            Some(place) => {
                self.at += words[place].len();
                Ok(place)
            }
            None => {
                let end = rest.iter().position(|byte| is_space(*byte)).unwrap_or(rest.len());
                let error = invalid_value(&rest[..end], field.key.name);
                Err(error.detail("The given value did not match any of the allowed values for this field."))
            }
        }
    }

    fn field(&mut self, field: &TemplateField, place: usize) -> PgResult<()> {
        match field.key.kind {
            KeywordKind::Exact => {
                self.is_exact = true;
                return Ok(());
            }
            KeywordKind::Meridian(has_points, _) => {
                let words = if has_points { ["a.m.", "p.m."] } else { ["am", "pm"] };
                let is_pm = self.one_of(&words, field)? as i32;
                set(&mut self.found.is_pm, is_pm, field)?;
                self.found.is_12_hours = true;
                return Ok(());
            }
            KeywordKind::Era(has_points, _) => {
                let words = if has_points { ["a.d.", "b.c."] } else { ["ad", "bc"] };
                let is_bc = self.one_of(&words, field)? as i32;
                return set(&mut self.found.is_bc, is_bc, field);
            }
            KeywordKind::MonthName(_) | KeywordKind::MonthShort(_) => {
                let is_short = matches!(field.key.kind, KeywordKind::MonthShort(_));
                let month = self.one_of(&MONTHS.map(|name| if is_short { &name[..3] } else { name }), field)?;
                return set(&mut self.found.month, month as i32 + 1, field);
            }
            KeywordKind::DayName(_) | KeywordKind::DayShort(_) => {
                let is_short = matches!(field.key.kind, KeywordKind::DayShort(_));
                let day = self.one_of(&DAYS.map(|name| if is_short { &name[..3] } else { name }), field)?;
                set(&mut self.found.weekday, day as i32, field)?;
                self.found.weekday = self.found.weekday.wrapping_add(1);
                return Ok(());
            }
            KeywordKind::Roman(_) => {
                let mut words = ROMAN;
                words.reverse();
                let month = 12 - self.one_of(&words, field)? as i32;
                return set(&mut self.found.month, month, field);
            }
            KeywordKind::Zone(_) | KeywordKind::Offset => {
                let text = format!("formatting field \"{}\" is only supported in to_char", field.key.name);
                return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text));
            }
            KeywordKind::ZoneHour => {
                self.zone_sign();
                self.number_of(2, field, place, |found| &mut found.zone_hour)?;
                return Ok(());
            }
            KeywordKind::ZoneMinute => {
                if self.found.zone_sign == 0 {
                    self.found.zone_sign = 1;
                }
                self.number_of(2, field, place, |found| &mut found.zone_minute)?;
                return Ok(());
            }
            _ => self.numeric_field(field, place)?,
        }
        if field.ordinal != Ordinal::None {
            self.skip_character();
            self.skip_character();
        }
        Ok(())
    }

    /// The sign of an offset. It may have been taken for a separator.
    fn zone_sign(&mut self) {
        self.found.zone_sign = match self.peek() {
            Some(sign @ (b'+' | b'-' | b' ')) => {
                self.at += 1;
                if sign == b'-' { -1 } else { 1 }
            }
            _ if self.extra > 0 && self.at > 0 && self.text[self.at - 1] == b'-' => -1,
            _ => 1,
        };
    }

    fn numeric_field(&mut self, field: &TemplateField, place: usize) -> PgResult<()> {
        match field.key.kind {
            KeywordKind::Hour12 => {
                self.number_of(2, field, place, |found| &mut found.hour)?;
                self.found.is_12_hours = true;
            }
            KeywordKind::Hour24 => drop(self.number_of(2, field, place, |found| &mut found.hour)?),
            KeywordKind::Minute => drop(self.number(field, place, |found| &mut found.minute)?),
            KeywordKind::Second => drop(self.number(field, place, |found| &mut found.second)?),
            KeywordKind::SecondOfDay => drop(self.number(field, place, |found| &mut found.second_of_day)?),
            KeywordKind::Millisecond => {
                let length = self.number_of(3, field, place, |found| &mut found.millisecond)?;
                let scale = [1, 100, 10].get(length).copied().unwrap_or(1);
                self.found.millisecond = self.found.millisecond.wrapping_mul(scale);
            }
            KeywordKind::Microsecond | KeywordKind::Fraction(_) => {
                let mut digits = 6;
                if let KeywordKind::Fraction(precision) = field.key.kind {
                    self.found.precision = precision.into();
                    digits = precision.into();
                }
                let length = self.number_of(digits, field, place, |found| &mut found.microsecond)?;
                let scale = [1, 100_000, 10_000, 1000, 100, 10].get(length).copied().unwrap_or(1);
                self.found.microsecond = self.found.microsecond.wrapping_mul(scale);
            }
            KeywordKind::Month => drop(self.number(field, place, |found| &mut found.month)?),
            KeywordKind::DayOfYear => drop(self.number(field, place, |found| &mut found.day_of_year)?),
            KeywordKind::IsoDayOfYear => drop(self.number_of(3, field, place, |found| &mut found.day_of_year)?),
            KeywordKind::DayOfMonth => drop(self.number(field, place, |found| &mut found.day)?),
            KeywordKind::DayOfWeek => drop(self.number(field, place, |found| &mut found.weekday)?),
            KeywordKind::IsoDay => {
                self.number_of(1, field, place, |found| &mut found.weekday)?;
                // Sunday is 1, not 7.
                let next = self.found.weekday.wrapping_add(1);
                self.found.weekday = if next > 7 { 1 } else { next };
            }
            KeywordKind::Week | KeywordKind::IsoWeek => drop(self.number(field, place, |found| &mut found.week)?),
            // It would say too little: the quarter is read and left.
            KeywordKind::Quarter => drop(self.integer(1, field, place)?),
            KeywordKind::Century => drop(self.number(field, place, |found| &mut found.century)?),
            KeywordKind::YearWithComma => self.year_with_comma(field)?,
            KeywordKind::Year(digits) | KeywordKind::IsoYear(digits) => {
                let length = self.number(field, place, |found| &mut found.year)?;
                if digits < 4 && length < 4 {
                    self.found.year = near_2020(self.found.year);
                }
                self.found.year_digits = digits;
            }
            KeywordKind::WeekOfMonth => drop(self.number(field, place, |found| &mut found.week_of_month)?),
            KeywordKind::Julian => drop(self.number(field, place, |found| &mut found.julian)?),
            _ => {}
        }
        Ok(())
    }

    fn year_with_comma(&mut self, field: &TemplateField) -> PgResult<()> {
        let error = || format_error("invalid input string for \"Y,YYY\"".into());
        let rest = &self.text[self.at..];
        let (thousands, used) = leading_long(rest);
        if used == 0 || rest.get(used) != Some(&b',') {
            return Err(error());
        }
        let rest = &rest[used + 1..];
        let spaces = rest.iter().take_while(|byte| is_space(**byte)).count();
        let limited = &rest[spaces..rest.len().min(spaces + 3)];
        let (years, digits) = leading_long(limited);
        if digits == 0 {
            return Err(error());
        }
        let thousands = thousands.unwrap_or(0) as i32;
        let total = thousands.wrapping_mul(1000).wrapping_add(years.unwrap_or(0) as i32);
        set(&mut self.found.year, total, field)?;
        self.found.year_digits = 4;
        self.at += used + 1 + spaces + digits;
        Ok(())
    }
}

#[cold]
fn invalid_value(text: &[u8], name: &str) -> PgError {
    format_error(format!("invalid value \"{}\" for \"{name}\"", String::from_utf8_lossy(text)))
}

/// Completes a year of fewer than four digits to the one nearest to 2020.
fn near_2020(year: i32) -> i32 {
    match year {
        ..70 => year.wrapping_add(2000),
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

/// Reads a number as C's `strtol`. `None` out of range. Returns it with its bytes, 0 if there is no number.
fn leading_long(bytes: &[u8]) -> (Option<i64>, usize) {
    let spaces = bytes.iter().take_while(|byte| is_space(**byte)).count();
    let mut at = spaces;
    let is_negative = bytes.get(at) == Some(&b'-');
    if matches!(bytes.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return (Some(0), 0);
    }
    let sum = bytes[at..at + digits].iter().try_fold(0i64, |number, byte| {
        let digit = i64::from(byte - b'0');
        number.checked_mul(10)?.checked_add(if is_negative { -digit } else { digit })
    });
    (sum, at + digits)
}

/// The parts that a text gave, as a reading.
struct TemplateMoment {
    reading: Reading,
    /// The offset in seconds west of UTC.
    west: Option<i32>,
    precision: i32,
}

fn moment(source: &str, template: &str) -> PgResult<TemplateMoment> {
    let nodes = parse(template);
    let mut reader = TemplateReader {
        text: source.as_bytes(),
        at: 0,
        nodes: &nodes,
        found: FieldValues::default(),
        is_exact: false,
        extra: 0,
    };
    reader.read()?;
    let found = reader.found;
    let mut reading = Reading::of_date(0, 1, 1);
    found.set_clock(&mut reading)?;
    found.set_date(&mut reading, source)?;
    let micros = found.millisecond.wrapping_mul(1000).wrapping_add(found.microsecond);
    reading.micros = micros;
    let is_clock = (0..24).contains(&reading.hour)
        && (0..60).contains(&reading.minute)
        && (0..60).contains(&reading.second)
        && (0..1_000_000).contains(&reading.micros);
    if !is_clock {
        return Err(field_overflow(source));
    }
    Ok(TemplateMoment { reading, west: found.west(source)?, precision: found.precision })
}

impl FieldValues {
    fn set_clock(&self, reading: &mut Reading) -> PgResult<()> {
        let seconds = self.second_of_day;
        (reading.hour, reading.minute, reading.second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        for (part, found) in
            [(&mut reading.second, self.second), (&mut reading.minute, self.minute), (&mut reading.hour, self.hour)]
        {
            if found != 0 {
                *part = found;
            }
        }
        if self.is_12_hours {
            if !(1..=12).contains(&reading.hour) {
                let error = format_error(format!("hour \"{}\" is invalid for the 12-hour clock", reading.hour));
                return Err(error.hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            if self.is_pm != 0 && reading.hour < 12 {
                reading.hour += 12;
            } else if self.is_pm == 0 && reading.hour == 12 {
                reading.hour = 0;
            }
        }
        Ok(())
    }

    /// Returns the year of year and century; `None` if the text gave neither, or a number out of range.
    fn year(&self) -> Option<i64> {
        let (year, century) = (i64::from(self.year), i64::from(self.century));
        let century = if self.is_bc != 0 { -century } else { century };
        if year != 0 {
            if century != 0 && self.year_digits <= 2 {
                let rest = year % 100;
                return Some(match (rest != 0, century >= 0) {
                    (true, true) => rest + (century - 1) * 100,
                    (true, false) => (century + 1) * 100 - rest + 1,
                    (false, true) => century * 100,
                    (false, false) => century * 100 + 1,
                });
            }
            let year = if self.is_bc != 0 { -year } else { year };
            return Some(if year < 0 { year + 1 } else { year });
        }
        match century {
            0 => None,
            1.. => Some((century - 1) * 100 + 1),
            _ => Some(century * 100 + 1),
        }
    }

    fn set_date(&self, reading: &mut Reading, source: &str) -> PgResult<()> {
        let mut parts = 0;
        if let Some(year) = self.year() {
            // The sum has 32 bits on the real server.
            reading.year = year as i32;
            parts |= date_parts::YEAR;
        }
        if self.julian != 0 {
            reading.set_date(self.julian.into());
            parts |= date_parts::DATE;
        }
        let is_iso = self.is_iso == Some(true);
        let (mut day_of_year, mut day) = (self.day_of_year, self.day);
        if self.week != 0 {
            if is_iso {
                let monday = julian_of_iso_week(reading.year.into(), self.week.into());
                let days = match self.weekday {
                    0 => 0,
                    weekday if weekday > 1 => weekday - 2,
                    _ => 6,
                };
                reading.set_date(monday + i64::from(days));
                parts |= date_parts::DATE;
            } else {
                day_of_year = (self.week.wrapping_sub(1)).wrapping_mul(7).wrapping_add(1);
            }
        }
        if self.week_of_month != 0 {
            day = (self.week_of_month.wrapping_sub(1)).wrapping_mul(7).wrapping_add(1);
        }
        if day != 0 {
            reading.day = day;
            parts |= date_parts::DAY;
        }
        if self.month != 0 {
            reading.month = self.month;
            parts |= date_parts::MONTH;
        }
        if day_of_year != 0 && (reading.month <= 1 || reading.day <= 1) {
            if reading.year == 0 && self.is_bc == 0 {
                return Err(format_error("cannot calculate day of year without year information".into()));
            }
            if is_iso {
                let before = julian_of_iso_week(reading.year.into(), 1) - 1;
                reading.set_date(before + i64::from(day_of_year));
                parts |= date_parts::DATE;
            } else {
                set_day_of_year(reading, day_of_year);
                parts |= date_parts::MONTH | date_parts::DAY;
            }
        }
        if parts == 0 {
            return Ok(());
        }
        validate_parts(reading, parts).map_err(|_| DateTimeError::FieldOverflow.report(source, "timestamp"))
    }

    /// Returns the offset in seconds west of UTC.
    fn west(&self, source: &str) -> PgResult<Option<i32>> {
        if self.zone_sign == 0 {
            return Ok(None);
        }
        let is_offset = (0..=ZONE_HOUR_MAX).contains(&self.zone_hour) && (0..60).contains(&self.zone_minute);
        if !is_offset {
            return Err(DateTimeError::ZoneOverflow.report(source, "timestamp"));
        }
        let seconds = (self.zone_hour * 60 + self.zone_minute) * 60;
        Ok(Some(if self.zone_sign > 0 { -seconds } else { seconds }))
    }
}

/// Sets month and day, as far as they are not set, by a day of the year.
fn set_day_of_year(reading: &mut Reading, day_of_year: i32) {
    let mut first = 0;
    let mut month = 1;
    while month <= 12 {
        let length = if month == 2 { 28 + i32::from(is_leap(reading.year)) } else { days_in_month(2001, month) };
        if day_of_year <= first + length {
            break;
        }
        first += length;
        month += 1;
    }
    if reading.month <= 1 {
        reading.month = month;
    }
    if reading.day <= 1 {
        reading.day = day_of_year - first;
    }
}

pub fn to_date(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let source = text(values, 0)?;
    let moment = moment(source, text(values, 1)?)?;
    let days = days_of(&moment.reading).ok_or_else(|| overflow(&format!("date out of range: \"{source}\"")))?;
    Ok(Value::Int(days.into()))
}

pub fn to_timestamp(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let TemplateMoment { reading, west, precision } = moment(text(values, 0)?, text(values, 1)?)?;
    let at = match west {
        Some(west) => timestamp_of(&reading, west),
        None => timestamp_in_zone(&reading, &ctx.state().io.zone),
    };
    let at = at.ok_or_else(timestamp_overflow)?;
    Ok(Value::Int(if precision == 0 { at } else { adjust_timestamp(at, precision) }))
}
