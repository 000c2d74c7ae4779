//! `to_char`.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::{Case, KeywordKind, Node, Ordinal, ROMAN, TemplateField, cased, parse};
use crate::error::{PgError, Result as PgResult, state};
use crate::functions::state::StateOf;
use crate::functions::temporal::values::{micros, span, text};
use crate::types::temporal::calendar::{DAYS, MONTHS, Reading, iso_week, iso_year_day};
use crate::types::temporal::{LocalOffset, MICROS_PER_SECOND, Span, is_finite_timestamp};
use crate::value::Value;

/// The fields that a template shows. Those of an interval have signs.
struct ShownFields {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    day_of_year: i64,
    is_interval: bool,
    offset: Option<LocalOffset>,
}

impl ShownFields {
    fn of_reading(reading: &Reading, offset: Option<LocalOffset>) -> ShownFields {
        ShownFields {
            year: reading.year.into(),
            month: reading.month.into(),
            day: reading.day.into(),
            hour: reading.hour.into(),
            minute: reading.minute.into(),
            second: reading.second.into(),
            micros: reading.micros.into(),
            day_of_year: reading.day_of_year(),
            is_interval: false,
            offset,
        }
    }

    fn of_span(span: Span) -> ShownFields {
        let (months, days) = (i64::from(span.months), i64::from(span.days));
        let seconds = span.micros / MICROS_PER_SECOND;
        ShownFields {
            year: months / 12,
            month: months % 12,
            day: days,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            micros: span.micros % MICROS_PER_SECOND,
            // The days of the whole interval, in 32 bits.
            day_of_year: i64::from((months.wrapping_mul(30) as i32).wrapping_add(span.days)),
            is_interval: true,
            offset: None,
        }
    }

    fn reading(&self) -> Reading {
        Reading::of_date(self.year as i32, self.month as i32, self.day as i32)
    }

    /// A year as it is shown: positive, except of an interval.
    fn shown_year(&self, year: i64) -> i64 {
        if self.is_interval || year > 0 { year } else { 1 - year }
    }

    fn iso_year(&self) -> i64 {
        self.shown_year(iso_week(&self.reading()).0)
    }

    fn east(&self) -> i64 {
        self.offset.as_ref().map_or(0, |offset| offset.seconds.into())
    }
}

/// Appends a number with zeros to a width, which counts its sign, and the ordinal's letters behind it.
fn number(value: i64, width: usize, field: &TemplateField, out: &mut String) {
    let width = if field.fills { 0 } else { width };
    ordinal(&format!("{value:0width$}"), field, out);
}

fn ordinal(digits: &str, field: &TemplateField, out: &mut String) {
    out.push_str(digits);
    let is_teen = digits.len() > 1 && digits.as_bytes()[digits.len() - 2] == b'1';
    let letters = match digits.as_bytes().last() {
        Some(b'1') if !is_teen => "ST",
        Some(b'2') if !is_teen => "ND",
        Some(b'3') if !is_teen => "RD",
        _ => "TH",
    };
    match field.ordinal {
        Ordinal::None => {}
        Ordinal::Upper => out.push_str(letters),
        Ordinal::Lower => out.push_str(&letters.to_ascii_lowercase()),
    }
}

/// Appends a name, with spaces to a width.
fn name(text: &str, case: Case, width: usize, field: &TemplateField, out: &mut String) {
    let width = if field.fills || field.is_local { 0 } else { width };
    out.push_str(&format!("{:<width$}", cased(text, case)));
}

fn era(has_points: bool, case: Case, is_bc: bool) -> String {
    let text = match (has_points, is_bc) {
        (false, false) => "AD",
        (false, true) => "BC",
        (true, false) => "A.D.",
        (true, true) => "B.C.",
    };
    cased(text, case)
}

fn meridian(has_points: bool, case: Case, is_pm: bool) -> String {
    let text = match (has_points, is_pm) {
        (false, false) => "AM",
        (false, true) => "PM",
        (true, false) => "A.M.",
        (true, true) => "P.M.",
    };
    cased(text, case)
}

/// Fields that no interval has.
fn is_calendars(kind: KeywordKind) -> bool {
    matches!(
        kind,
        KeywordKind::Zone(_)
            | KeywordKind::ZoneHour
            | KeywordKind::ZoneMinute
            | KeywordKind::Offset
            | KeywordKind::Era(..)
            | KeywordKind::MonthName(_)
            | KeywordKind::MonthShort(_)
            | KeywordKind::DayName(_)
            | KeywordKind::DayShort(_)
            | KeywordKind::DayOfWeek
            | KeywordKind::IsoDay
    )
}

fn show_field(field: &TemplateField, shown: &ShownFields, out: &mut String) {
    let padded = |value: i64, width: usize| if value >= 0 { width } else { width + 1 };
    let east = shown.east();
    match field.key.kind {
        KeywordKind::Era(has_points, case) => out.push_str(&era(has_points, case, shown.year <= 0)),
        KeywordKind::Meridian(has_points, case) => out.push_str(&meridian(has_points, case, shown.hour % 24 >= 12)),
        KeywordKind::Hour12 => {
            let hour = if shown.hour % 12 == 0 { 12 } else { shown.hour % 12 };
            number(hour, padded(shown.hour, 2), field, out);
        }
        KeywordKind::Hour24 => number(shown.hour, padded(shown.hour, 2), field, out),
        KeywordKind::Minute => number(shown.minute, padded(shown.minute, 2), field, out),
        KeywordKind::Second => number(shown.second, padded(shown.second, 2), field, out),
        KeywordKind::Fraction(digits) => fraction(shown.micros, digits, field, out),
        KeywordKind::Millisecond => fraction(shown.micros, 3, field, out),
        KeywordKind::Microsecond => fraction(shown.micros, 6, field, out),
        KeywordKind::SecondOfDay => {
            ordinal(&(shown.hour * 3600 + shown.minute * 60 + shown.second).to_string(), field, out);
        }
        KeywordKind::Zone(case) => {
            if let Some(offset) = &shown.offset {
                let case = if case == Case::Upper { Case::Capital } else { case };
                out.push_str(&cased(&offset.abbreviation, case));
            }
        }
        KeywordKind::ZoneHour => {
            out.push(if east >= 0 { '+' } else { '-' });
            out.push_str(&format!("{:02}", east.abs() / 3600));
        }
        KeywordKind::ZoneMinute => out.push_str(&format!("{:02}", east.abs() % 3600 / 60)),
        KeywordKind::Offset => {
            out.push(if east >= 0 { '+' } else { '-' });
            let width = if field.fills { 0 } else { 2 };
            out.push_str(&format!("{:0width$}", east.abs() / 3600));
            if east.abs() % 3600 != 0 {
                out.push_str(&format!(":{:02}", east.abs() % 3600 / 60));
            }
        }
        KeywordKind::MonthName(case) => name(MONTHS[(shown.month - 1) as usize], case, 9, field, out),
        KeywordKind::MonthShort(case) => out.push_str(&cased(&MONTHS[(shown.month - 1) as usize][..3], case)),
        KeywordKind::Month => number(shown.month, padded(shown.month, 2), field, out),
        KeywordKind::DayName(case) => name(DAYS[shown.reading().weekday() as usize], case, 9, field, out),
        KeywordKind::DayShort(case) => out.push_str(&cased(&DAYS[shown.reading().weekday() as usize][..3], case)),
        KeywordKind::DayOfYear => number(shown.day_of_year, 3, field, out),
        KeywordKind::IsoDayOfYear => number(iso_year_day(&shown.reading()), 3, field, out),
        KeywordKind::DayOfMonth => number(shown.day, 2, field, out),
        KeywordKind::DayOfWeek => number(shown.reading().weekday() + 1, 1, field, out),
        KeywordKind::IsoDay => number((shown.reading().weekday() + 6) % 7 + 1, 1, field, out),
        KeywordKind::Week => {
            let days = (shown.day_of_year as i32).wrapping_sub(1);
            number((days / 7 + 1).into(), 2, field, out);
        }
        KeywordKind::IsoWeek => number(iso_week(&shown.reading()).1, 2, field, out),
        KeywordKind::WeekOfMonth => number((shown.day - 1) / 7 + 1, 1, field, out),
        KeywordKind::Quarter if shown.month != 0 => number((shown.month - 1) / 3 + 1, 1, field, out),
        KeywordKind::Quarter => {}
        KeywordKind::Century => {
            let century = match shown.year {
                year if shown.is_interval => year / 100,
                year if year > 0 => (year - 1) / 100 + 1,
                year => year / 100 - 1,
            };
            number(century, padded(century, 2), field, out);
        }
        KeywordKind::YearWithComma => {
            let year = shown.shown_year(shown.year);
            ordinal(&format!("{},{:03}", year / 1000, year % 1000), field, out);
        }
        KeywordKind::Year(digits) => year(shown.shown_year(shown.year), digits, shown, field, out),
        KeywordKind::IsoYear(digits) => year(shown.iso_year(), digits, shown, field, out),
        KeywordKind::Roman(case) => roman(case, shown, field, out),
        // The fields of a long interval make a day beyond 32 bits.
        KeywordKind::Julian => number((shown.reading().julian() as i32).into(), 1, field, out),
        KeywordKind::Exact => {}
    }
}

/// Appends the last digits of a year, all of them for four.
fn year(year: i64, digits: u8, shown: &ShownFields, field: &TemplateField, out: &mut String) {
    let shortened = if digits == 4 { year } else { year % 10i64.pow(digits.into()) };
    if digits == 1 {
        return ordinal(&shortened.to_string(), field, out);
    }
    let is_negative = shown.shown_year(shown.year) < 0;
    number(shortened, usize::from(digits) + usize::from(is_negative), field, out);
}

fn fraction(micros: i64, digits: u8, field: &TemplateField, out: &mut String) {
    let shortened = micros / 10i64.pow(6 - u32::from(digits));
    ordinal(&format!("{shortened:0width$}", width = usize::from(digits)), field, out);
}

/// The months of an interval count on from its years: 0 is XII, -1 is XII too.
fn roman(case: Case, shown: &ShownFields, field: &TemplateField, out: &mut String) {
    let at = match shown.month {
        0 if shown.year == 0 => return,
        0 => {
            if shown.year >= 0 {
                11
            } else {
                0
            }
        }
        month if month < 0 => 12 + month,
        month => month - 1,
    };
    name(ROMAN[at as usize], case, 4, &TemplateField { is_local: false, ..*field }, out);
}

fn show(template: &str, shown: &ShownFields) -> PgResult<String> {
    let mut out = String::with_capacity(template.len() + 16);
    for node in parse(template) {
        match node {
            Node::Separator(text) | Node::Space(text) | Node::Text(text) => out.push_str(text),
            Node::Field(field) if shown.is_interval && is_calendars(field.key.kind) => {
                let message = "invalid format specification for an interval value";
                let error = PgError::new(state::INVALID_DATETIME_FORMAT, message);
                return Err(error.hint("Intervals are not tied to specific calendar dates."));
            }
            Node::Field(field) => show_field(&field, shown, &mut out),
        }
    }
    Ok(out)
}

/// Shows fields by a template. NULL for an empty one.
fn shown_text(template: &str, shown: impl FnOnce() -> ShownFields) -> Result<Value> {
    if template.is_empty() {
        return Ok(Value::Null);
    }
    let _claim = crate::functions::args::claim(template.len())?;
    Ok(Value::text(show(template, &shown())?))
}

/// NULL of an infinity.
pub fn timestamp_to_char(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 0)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Null);
    }
    shown_text(text(values, 1)?, || ShownFields::of_reading(&Reading::of_micros(at), None))
}

/// NULL of an infinity.
pub fn timestamptz_to_char(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = micros(values, 0)?;
    if !is_finite_timestamp(at) {
        return Ok(Value::Null);
    }
    let zone = &ctx.state().io.zone;
    shown_text(text(values, 1)?, || ShownFields::of_reading(&zone.reading_at(at), Some(zone.local_offset_at(at))))
}

pub fn interval_to_char(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let span = span(values, 0)?;
    shown_text(text(values, 1)?, || ShownFields::of_span(span))
}
